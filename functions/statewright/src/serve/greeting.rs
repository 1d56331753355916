//! What `serve` prints when it listens.

use statewright_shared::services::identity::bootstrap::FirstUser;

use crate::args::Store;

/// Where it listens and where its data and key are. After a first start also the lines to paste for both kinds of
/// client, and the link for a first sign-in with a browser. `location` is where the data is, for people.
pub(super) fn greeting(
    url: &str,
    console: Option<&str>,
    store: Store,
    location: &str,
    first: Option<&FirstUser>,
) -> String {
    let held = match store {
        Store::Folder => "data and master.key",
        Store::Aws => "data",
    };
    let mut text = format!("Statewright listens on {url}, with its {held} in {location}");
    if let Some(console) = console {
        text += &format!("\nThe console is also on {console}, where links of `pulumi` lead");
    }
    if let Some(FirstUser { login, token, invited }) = first {
        let path = invited.path();
        text += &format!(
            "

This is the first start. It created the user {login} and an access token, which is shown only now.

For Pulumi, paste this into another terminal:

    export PULUMI_ACCESS_TOKEN={token}
    pulumi login {url}

For OpenTofu and Terraform:

    export STATEWRIGHT_TOKEN={token}
    statewright login {url}

For the console, open this link in a browser. It signs you in once, within three days:

    {url}{path}
"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use statewright_shared::domain::names::Login;
    use statewright_shared::ports::Timestamp;
    use statewright_shared::services::identity::invitations::Invited;

    use super::*;

    const URL: &str = "http://localhost:8080";

    #[test]
    fn a_first_start_prints_the_lines_to_paste() {
        let invited = Invited { code: "admin.1f".to_owned(), until: Timestamp::from_seconds(0) };
        let first = FirstUser { login: Login::parse("admin").unwrap(), token: "swt_0".to_owned(), invited };
        let console = Some("http://localhost:3000");
        let text = greeting(URL, console, Store::Folder, "/srv/statewright", Some(&first));
        let wanted = "\
Statewright listens on http://localhost:8080, with its data and master.key in /srv/statewright
The console is also on http://localhost:3000, where links of `pulumi` lead

This is the first start. It created the user admin and an access token, which is shown only now.

For Pulumi, paste this into another terminal:

    export PULUMI_ACCESS_TOKEN=swt_0
    pulumi login http://localhost:8080

For OpenTofu and Terraform:

    export STATEWRIGHT_TOKEN=swt_0
    statewright login http://localhost:8080

For the console, open this link in a browser. It signs you in once, within three days:

    http://localhost:8080/invite?code=admin.1f
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn a_later_start_prints_one_line() {
        let text = greeting(URL, None, Store::Folder, "/srv/statewright", None);
        assert_eq!(
            text,
            "Statewright listens on http://localhost:8080, with its data and master.key in /srv/statewright"
        );
        let text = greeting(URL, None, Store::Aws, "the table t and the bucket b", None);
        assert_eq!(
            text,
            "Statewright listens on http://localhost:8080, with its data in the table t and the bucket b"
        );
    }
}

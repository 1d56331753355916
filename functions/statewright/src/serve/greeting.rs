//! What `serve` prints when it listens.

use std::path::Path;

use statewright_shared::services::identity::bootstrap::FirstUser;

use crate::args::Store;

/// Where it listens and where its data and key are; after a first start also the lines to paste for both kinds of client,
/// and the command for a first sign-in with a browser. `data` is the folder, if it is not the default one.
pub(super) fn greeting(
    url: &str,
    console: Option<&str>,
    store: Store,
    location: &str,
    data: Option<&Path>,
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
    if let Some(FirstUser { login, token }) = first {
        text += &format!(
            "

This is the first start. It created the user {login} and an access token, which is shown only now.

For Pulumi, paste this into another terminal:

    export PULUMI_ACCESS_TOKEN={token}
    pulumi login {url}

For OpenTofu and Terraform:

    export STATEWRIGHT_TOKEN={token}
    statewright login {url}

For the console in a browser, this prints a link that signs you in once. It opens the store of the server:

    statewright user invite {login} --server {url}{}
",
            data.map(|folder| format!(" --data {}", for_a_shell(&folder.to_string_lossy())))
                .unwrap_or_default()
        );
    }
    text
}

/// A text as a shell reads it: in quotes, if it has other characters than those of most paths.
fn for_a_shell(text: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | ',' | '@');
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use statewright_shared::domain::names::Login;

    use super::*;

    const URL: &str = "http://localhost:8080";

    #[test]
    fn a_first_start_prints_the_lines_to_paste() {
        let first = FirstUser { login: Login::parse("admin").unwrap(), token: "swt_0".to_owned() };
        let console = Some("http://localhost:3000");
        let text = greeting(URL, console, Store::Folder, "/srv/statewright", None, Some(&first));
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

For the console in a browser, this prints a link that signs you in once. It opens the store of the server:

    statewright user invite admin --server http://localhost:8080
";
        assert_eq!(text, wanted);
        for (folder, shown) in [("/srv/statewright", "/srv/statewright"), ("/my data's", r"'/my data'\''s'")]
        {
            let text = greeting(URL, None, Store::Folder, folder, Some(Path::new(folder)), Some(&first));
            let line = format!("    statewright user invite admin --server {URL} --data {shown}\n");
            assert!(text.ends_with(&line), "{text}");
        }
    }

    #[test]
    fn a_later_start_prints_one_line() {
        let text = greeting(URL, None, Store::Folder, "/srv/statewright", None, None);
        assert_eq!(
            text,
            "Statewright listens on http://localhost:8080, with its data and master.key in /srv/statewright"
        );
        let text = greeting(URL, None, Store::Aws, "the table t and the bucket b", None, None);
        assert_eq!(
            text,
            "Statewright listens on http://localhost:8080, with its data in the table t and the bucket b"
        );
    }
}

//! What `serve` prints when it listens.

use statewright_shared::services::identity::bootstrap::FirstUser;

use crate::args::{AwsStore, Data, Store};

/// Where it listens and where its data and key are; after a first start also the lines to paste for both kinds of client,
/// and the command for a first sign-in with a browser. `location` is where the data is, for people.
pub(super) fn greeting(
    url: &str,
    console: Option<&str>,
    data: &Data,
    location: &str,
    first: Option<&FirstUser>,
) -> String {
    let held = match data.store {
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
            options(data)
        );
    }
    text
}

/// The options with which a command opens the same store, with a space before each. Another terminal may lack the
/// variables of this process.
fn options(data: &Data) -> String {
    let option = |name: &str, value: &str| format!(" --{name} {}", for_a_shell(value));
    match data.store {
        Store::Folder => {
            data.folder.as_ref().map(|folder| option("data", &folder.to_string_lossy())).unwrap_or_default()
        }
        Store::Aws => {
            let AwsStore { table, bucket, kms_key, s3_path_style, attempt_timeout: _ } = &data.aws;
            let mut options = option("store", "aws");
            for (name, value) in [("table", table), ("bucket", bucket), ("kms-key", kms_key)] {
                options.extend(value.as_ref().map(|value| option(name, value)));
            }
            if *s3_path_style {
                options += " --s3-path-style";
            }
            options
        }
    }
}

/// A text as a shell reads it: in quotes, if it has other characters than those of most paths.
fn for_a_shell(text: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | ',' | '@' | ':');
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use statewright_shared::domain::names::Login;

    use super::*;

    const URL: &str = "http://localhost:8080";

    fn in_folder(folder: Option<&str>) -> Data {
        let attempt_timeout = Duration::from_secs(1);
        let aws =
            AwsStore { table: None, bucket: None, kms_key: None, s3_path_style: false, attempt_timeout };
        Data { folder: folder.map(Into::into), store: Store::Folder, aws }
    }

    fn on_aws() -> Data {
        let mut data = Data { store: Store::Aws, ..in_folder(Some("/unused")) };
        let name = |text: &str| Some(text.to_owned());
        (data.aws.table, data.aws.bucket) = (name("t"), name("b"));
        data.aws.kms_key = name("alias/key");
        data
    }

    #[test]
    fn a_first_start_prints_the_lines_to_paste() {
        let first = FirstUser { login: Login::parse("admin").unwrap(), token: "swt_0".to_owned() };
        let console = Some("http://localhost:3000");
        let text = greeting(URL, console, &in_folder(None), "/srv/statewright", Some(&first));
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
            let text = greeting(URL, None, &in_folder(Some(folder)), folder, Some(&first));
            let line = format!("    statewright user invite admin --server {URL} --data {shown}\n");
            assert!(text.ends_with(&line), "{text}");
        }
        let line = format!(
            "    statewright user invite admin --server {URL} --store aws --table t --bucket b --kms-key alias/key"
        );
        let mut data = on_aws();
        let text = greeting(URL, None, &data, "the table t", Some(&first));
        assert!(text.ends_with(&format!("{line}\n")), "{text}");
        data.aws.s3_path_style = true;
        let text = greeting(URL, None, &data, "the table t", Some(&first));
        assert!(text.ends_with(&format!("{line} --s3-path-style\n")), "{text}");
    }

    #[test]
    fn a_later_start_prints_one_line() {
        let text = greeting(URL, None, &in_folder(Some("/srv/statewright")), "/srv/statewright", None);
        assert_eq!(
            text,
            "Statewright listens on http://localhost:8080, with its data and master.key in /srv/statewright"
        );
        let text = greeting(URL, None, &on_aws(), "the table t and the bucket b", None);
        assert_eq!(
            text,
            "Statewright listens on http://localhost:8080, with its data in the table t and the bucket b"
        );
    }
}

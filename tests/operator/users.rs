//! The commands of a server's users in unusual situations: their messages, and what they leave unchanged.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use statewright_shared::domain::role::Role;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::commands::{of_user, output, statewright};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;

/// A server, and a folder for its user.
async fn start() -> (TestApp, TempDir) {
    (TestApp::embedded().await, tempfile::tempdir().unwrap())
}

/// The stderr of a command that fails and prints nothing to stdout.
async fn refused(app: &TestApp, folder: &Path, arguments: &[&str]) -> String {
    refused_with(app, folder, &[], arguments).await
}

/// The same with other variables.
async fn refused_with(
    app: &TestApp,
    folder: &Path,
    variables: &[(&str, &str)],
    arguments: &[&str],
) -> String {
    let mut command = of_user(app, folder, arguments);
    for (name, value) in variables {
        if value.is_empty() {
            command.env_remove(name)
        } else {
            command.env(name, value)
        };
    }
    let output = output(&mut command).await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{arguments:?}: {}", output.stderr);
    output.stderr
}

async fn stdout_of(app: &TestApp, folder: &Path, arguments: &[&str]) -> String {
    let output = output(&mut of_user(app, folder, arguments)).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    output.stdout
}

#[tokio::test]
async fn without_server_or_token_the_error_lists_the_sources() {
    let (app, home) = start().await;
    let list = ["state", "list"];
    let message = refused_with(&app, home.path(), &[("STATEWRIGHT_URL", "")], &list).await;
    assert!(message.contains("STATEWRIGHT_URL") && message.contains("statewright login"), "{message}");
    let message = refused_with(&app, home.path(), &[("STATEWRIGHT_TOKEN", "")], &list).await;
    assert!(message.contains("STATEWRIGHT_TOKEN") && message.contains(&app.url), "{message}");
    let other = ("STATEWRIGHT_URL", "http://state.example.com");
    let message = refused_with(&app, home.path(), &[other], &list).await;
    assert!(message.contains("has no TLS") && message.contains("--allow-http"), "{message}");
}

#[tokio::test]
async fn the_file_of_pulumi_login_is_enough() {
    let (app, home) = start().await;
    stdout_of(&app, home.path(), &["state", "create", "net"]).await;
    fs::remove_file(home.path().join(".statewright.json")).unwrap();
    log_in(home.path(), &app.url, &[(&app.url, &app.token)]);
    let mut command = of_user(&app, home.path(), &["state", "list"]);
    command.env_remove("STATEWRIGHT_URL").env_remove("STATEWRIGHT_TOKEN");
    let output = output(&mut command).await;
    assert!(output.stdout.contains("net/default"), "{output:?}");
}

/// The file of `pulumi login` in a home: the current login, and the tokens of all servers with a login.
fn log_in(home: &Path, current: &str, tokens: &[(&str, &str)]) {
    let tokens: serde_json::Map<_, _> =
        tokens.iter().map(|(url, token)| ((*url).to_owned(), (*token).into())).collect();
    let credentials = serde_json::json!({ "current": current, "accessTokens": tokens, "accounts": {} });
    fs::create_dir_all(home.join(".pulumi")).unwrap();
    fs::write(home.join(".pulumi/credentials.json"), credentials.to_string()).unwrap();
}

#[tokio::test]
async fn a_login_needs_no_pulumi_and_no_variable() {
    let (app, home) = start().await;
    stdout_of(&app, home.path(), &["state", "create", "net"]).await;
    fs::remove_file(home.path().join(".statewright.json")).unwrap();
    let file = home.path().join(".config/statewright/credentials.json");
    let plain = |arguments: &[&str]| {
        let mut command = of_user(&app, home.path(), arguments);
        command.env_remove("STATEWRIGHT_URL").env_remove("STATEWRIGHT_TOKEN");
        command
    };
    // A token that the server refuses is not stored.
    let wrong = [("STATEWRIGHT_TOKEN", "swt_wrong")];
    refused_with(&app, home.path(), &wrong, &["login", &app.url]).await;
    assert!(!file.exists());
    let nothing = output(&mut plain(&["login", &app.url])).await;
    assert!(nothing.code == Some(1) && nothing.stderr.contains("no token given"), "{nothing:?}");
    // From stdin, as a script does.
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, format!("{}\n", app.token).as_bytes()).unwrap();
    drop(writer);
    let printed = output(plain(&["login", &app.url]).stdin(reader)).await;
    assert!(
        printed.code == Some(0) && printed.stdout.contains(&format!("alice at {}, member of {ORG}", app.url)),
        "{printed:?}"
    );
    assert!(!printed.stdout.contains(&app.token) && !printed.stderr.contains(&app.token));
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let listed = output(&mut plain(&["state", "list"])).await;
    assert!(listed.stdout.contains("net/default"), "{listed:?}");
    let who = output(&mut plain(&["whoami", "--json"])).await;
    let who: serde_json::Value = serde_json::from_str(&who.stdout).unwrap();
    assert_eq!((&who["user"], &who["organizations"]), (&"alice".into(), &serde_json::json!([ORG])));
    // The variables that a shell needs to run a client by itself.
    let env = output(&mut plain(&["tf", "-s", "net", "env"])).await.stdout;
    assert!(env.contains(&format!("export TF_HTTP_ADDRESS='{}/tfstate/", app.url)), "{env}");
    assert!(env.ends_with(&format!("export TF_HTTP_PASSWORD='{}'\n", app.token)), "{env}");
    assert_eq!(output(&mut plain(&["tf", "env"])).await.stdout.lines().count(), 2);
    for was_logged_in in [true, false] {
        let printed = output(&mut plain(&["logout", &app.url, "--json"])).await.stdout;
        let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(printed["wasLoggedIn"], was_logged_in);
    }
    let printed = output(&mut plain(&["state", "list"])).await;
    assert!(printed.code == Some(1) && printed.stderr.contains("statewright login"), "{printed:?}");
}

/// A folder's configuration with a backend of this state.
fn backend(app: &TestApp, folder: &Path, state: &str) {
    let text = format!(
        "terraform {{\n  backend \"http\" {{\n    address = \"{}/tfstate/{state}\"\n  }}\n}}\n",
        app.url
    );
    fs::write(folder.join("backend.tf"), text).unwrap();
}

#[tokio::test]
async fn the_backend_of_a_folder_is_as_good_as_a_link() {
    let (app, home) = start().await;
    stdout_of(&app, home.path(), &["state", "create", "mm/one"]).await;
    fs::remove_file(home.path().join(".statewright.json")).unwrap();
    let printed = refused(&app, home.path(), &["state", "versions"]).await;
    assert!(printed.contains("no state is named"), "{printed}");
    backend(&app, home.path(), &format!("{ORG}/mm/one"));
    let name = |printed: &str| printed.lines().next().unwrap().split_whitespace().last().unwrap().to_owned();
    let printed = stdout_of(&app, home.path(), &["state", "get"]).await;
    assert_eq!(name(&printed), format!("{ORG}/mm/one"));
    stdout_of(&app, home.path(), &["state", "versions"]).await;
    stdout_of(&app, home.path(), &["state", "set", "env=dev"]).await;
    // The backend's server is the command's server too, and gets no token of the environment because of that.
    let bare = [("STATEWRIGHT_URL", "")];
    let printed = refused_with(&app, home.path(), &bare, &["state", "get"]).await;
    assert!(printed.contains(&format!("is not sent to {}", app.url)), "{printed}");
}

#[tokio::test]
async fn a_link_and_a_backend_do_not_disagree_in_silence() {
    let (app, home) = start().await;
    stdout_of(&app, home.path(), &["state", "create", "mm/one", "--init"]).await;
    // A backend that we wrote is deleted with the link.
    let printed = stdout_of(&app, home.path(), &["state", "create", "mm/two", "--force"]).await;
    assert!(
        printed.contains(".statewright.json and backend.tf") || printed.contains("backend.tf"),
        "{printed}"
    );
    let written = fs::read_to_string(home.path().join("backend.tf")).unwrap();
    assert!(written.contains("mm/two"), "{written}");
    let linked =
        output(&mut of_user(&app, home.path(), &["state", "get", "mm/one", "--link", "--force"])).await;
    assert!(linked.code == Some(0) && linked.stderr.contains("linked this folder to"), "{linked:?}");
    assert!(fs::read_to_string(home.path().join("backend.tf")).unwrap().contains("mm/one"));
    // A backend that we did not write stays, and so does the link.
    backend(&app, home.path(), &format!("{ORG}/mm/two"));
    let printed = refused(&app, home.path(), &["state", "create", "mm/three", "--force"]).await;
    assert!(printed.contains("backend.tf keeps the state of this folder in acme/mm/two"), "{printed}");
    let missing = app.get(&format!("/api/orgs/{ORG}/tfstates/mm/three")).send().await;
    missing.refused(404);
    for command in [
        &["state", "get"][..],
        &["state", "versions"],
        &["state", "lock", "--reason", "freeze"],
        &["state", "restore", "--version", "1"],
        &["state", "delete", "--yes"],
        &["dep", "sync"],
    ] {
        let printed = refused(&app, home.path(), command).await;
        assert!(
            printed.contains("acme/mm/one") && printed.contains("acme/mm/two") && printed.contains("-s"),
            "{command:?}: {printed}"
        );
    }
    stdout_of(&app, home.path(), &["state", "get", "-s", "mm/one"]).await;
    // Its old name leads to the same state.
    stdout_of(&app, home.path(), &["state", "rename", "mm/new", "-s", "mm/one"]).await;
    backend(&app, home.path(), &format!("{ORG}/mm/one"));
    assert!(stdout_of(&app, home.path(), &["state", "get"]).await.contains("acme/mm/new"));
}

#[tokio::test]
async fn a_token_for_outputs_reads_those_of_a_state_by_its_name() {
    let (app, home) = start().await;
    stdout_of(&app, home.path(), &["state", "create", "net"]).await;
    let state = serde_json::json!({ "version": 4, "serial": 1, "lineage": "a", "resources": [],
        "outputs": { "url": { "value": "a<b", "type": "string" }, "o": { "value": { "a": [1.50, 2] }, "type": "string" } } });
    app.post(&format!("/tfstate/{ORG}/net"), &state).send().await.expect(200);
    let token = app.scoped_token(Role::Outputs).await;
    for arguments in [&["state", "outputs", "net", "-o", "url"][..], &["state", "outputs", "-o", "url"]] {
        let printed = output(of_user(&app, home.path(), arguments).env("STATEWRIGHT_TOKEN", &token)).await;
        assert_eq!((printed.code, printed.stdout.as_str()), (Some(0), "a<b\n"), "{arguments:?}: {printed:?}");
    }
    let shown = stdout_of(&app, home.path(), &["state", "outputs"]).await;
    assert!(shown.contains(r#""a<b""#) && shown.contains(r#"{"a": [1.5, 2]}"#), "{shown}");
}

#[tokio::test]
async fn resources_and_changes_are_shown_without_values() {
    let (app, home) = start().await;
    stdout_of(&app, home.path(), &["state", "create", "net"]).await;
    let write = async |serial: u64, value: &str| {
        let state = serde_json::json!({ "version": 4, "serial": serial, "lineage": "a", "outputs": {}, "resources": [{
            "mode": "managed", "type": "aws_vpc", "name": "main", "provider": "provider[\"r/hashicorp/aws\"].west",
            "instances": [{ "attributes": { "tags": { "Name": value } }, "dependencies": ["aws_x.y"] }] }] });
        app.post(&format!("/tfstate/{ORG}/net"), &state).send().await.expect(200);
    };
    let printed = refused(&app, home.path(), &["state", "resources"]).await;
    assert!(printed.contains("has no version yet"), "{printed}");
    write(1, "hunter2").await;
    write(2, "hunter3").await;
    let printed = stdout_of(&app, home.path(), &["state", "resources"]).await;
    let row: Vec<&str> = printed.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["aws_vpc.main", "aws_vpc", "r/hashicorp/aws.west", "1"]);
    let printed =
        stdout_of(&app, home.path(), &["state", "resources", "net", "--version", "1", "--json"]).await;
    let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(
        (&document["version"], &document["resources"][0]["dependencyCount"]),
        (&"1".into(), &1.into())
    );
    assert!(!printed.contains("hunter2"));
    let printed = stdout_of(&app, home.path(), &["state", "diff", "1", "2"]).await;
    assert_eq!(printed, "~ aws_vpc.main\n    ~ tags.Name\n");
}

#[tokio::test]
async fn advice_about_a_refused_write_is_safe_to_follow() {
    let (app, home) = start().await;
    stdout_of(&app, home.path(), &["state", "create", "net"]).await;
    stdout_of(&app, home.path(), &["state", "policy", "--locks-required", "true"]).await;
    let state =
        serde_json::json!({ "version": 4, "serial": 1, "lineage": "a", "outputs": {}, "resources": [] });
    app.post(&format!("/tfstate/{ORG}/net"), &state).send().await.refused(409);
    fs::remove_file(home.path().join(".statewright.json")).unwrap();
    let printed = stdout_of(&app, home.path(), &["state", "why", "net"]).await;
    assert!(
        !printed.contains("run it again") && printed.contains("enable locking for later runs"),
        "{printed}"
    );
    let id = printed.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    let name = format!("{ORG}/net/default");
    assert!(printed.contains(&format!("statewright state diff 0 {id} -s {name}")), "{printed}");
    let restore = ["state", "restore", &name, "--version", id];
    assert!(printed.contains(&format!("statewright {}", restore.join(" "))), "{printed}");
    stdout_of(&app, home.path(), &restore).await;
}

#[tokio::test]
async fn the_server_of_a_link_gets_only_the_token_stored_for_it() {
    let (app, home) = start().await;
    stdout_of(&app, home.path(), &["state", "create", "net"]).await;
    let commands =
        [&["state", "list"][..], &["state", "get"], &["dep", "list"], &["outputs"], &["policy", "get"]];
    // A repository of another person has a link to their server.
    let theirs = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", theirs.local_addr().unwrap());
    let link = home.path().join(".statewright.json");
    let ours = fs::read_to_string(&link).unwrap();
    fs::write(&link, ours.replace(&app.url, &url)).unwrap();
    log_in(home.path(), &app.url, &[(&app.url, &app.token)]);
    for command in commands {
        for variables in [
            &[("STATEWRIGHT_TOKEN", app.token.as_str())][..],
            &[("STATEWRIGHT_TOKEN", &app.token), ("PULUMI_BACKEND_URL", &app.url)],
            &[("STATEWRIGHT_TOKEN", ""), ("PULUMI_ACCESS_TOKEN", &app.token)],
        ] {
            let variables = [&[("STATEWRIGHT_URL", "")], variables].concat();
            let message = refused_with(&app, home.path(), &variables, command).await;
            assert!(
                message.contains(&format!("is not sent to {url}")),
                "{command:?} {variables:?}: {message}"
            );
            assert!(
                message.contains(&format!("STATEWRIGHT_URL={url}")) && !message.contains(&app.token),
                "{message}"
            );
        }
    }
    let accepted = tokio::time::timeout(Duration::ZERO, theirs.accept()).await;
    assert!(accepted.is_err(), "no client connected to it");
    // The link to our server, while `pulumi login` is at theirs.
    fs::write(&link, ours).unwrap();
    log_in(home.path(), &url, &[(&app.url, &app.token), (&url, "swt_theirs")]);
    for command in commands {
        let mut command = of_user(&app, home.path(), command);
        let output =
            output(command.env_remove("STATEWRIGHT_URL").env("STATEWRIGHT_TOKEN", "swt_other")).await;
        assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{command:?}");
    }
}

#[tokio::test]
async fn a_wrong_token_is_reported_with_its_source() {
    let (app, home) = start().await;
    let wrong = [("STATEWRIGHT_TOKEN", "swt_wrong")];
    let message = refused_with(&app, home.path(), &wrong, &["state", "list"]).await;
    assert!(
        message.contains("STATEWRIGHT_TOKEN") && message.contains(&format!("statewright login {}", app.url)),
        "{message}"
    );
    assert!(!message.contains("swt_wrong"), "{message}");
}

#[tokio::test]
async fn an_absent_server_and_another_program_have_different_errors() {
    let (app, home) = start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let message = refused_with(&app, home.path(), &[("STATEWRIGHT_URL", &gone)], &["state", "list"]).await;
    assert!(
        message.contains(&format!("cannot reach {gone}")) && message.contains("nothing was changed"),
        "{message}"
    );
    let page = axum_page("<html>hello</html>").await;
    let message = refused_with(&app, home.path(), &[("STATEWRIGHT_URL", &page)], &["state", "list"]).await;
    assert!(message.contains("is not a Statewright server") && message.contains("--server"), "{message}");
}

#[tokio::test]
async fn a_certificate_is_trusted_by_the_platform_or_the_user() {
    let (app, home) = start().await;
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (home.path().join("cert.pem"), home.path().join("key.pem"));
    fs::write(&cert, certified.cert.pem()).unwrap();
    fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let data = home.path().join("data");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key];
    let mut server = statewright(&data, &serve).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut says = async |beginning: &str| loop {
        let line = lines.next_line().await.unwrap().expect("the server prints its address");
        if let Some(rest) = line.strip_prefix(beginning) {
            return rest.split(',').next().unwrap().to_owned();
        }
    };
    let url = says("Statewright listens on ").await;
    let token = says("    export PULUMI_ACCESS_TOKEN=").await;
    assert!(url.starts_with("https://"), "{url}");
    let variables =
        [("STATEWRIGHT_URL", url.as_str()), ("STATEWRIGHT_TOKEN", &token), ("SSL_CERT_FILE", cert)];
    let mut command = of_user(&app, home.path(), &["state", "list"]);
    let listed = output(command.envs(variables)).await;
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
    let message = refused_with(&app, home.path(), &variables[..2], &["state", "list"]).await;
    assert!(message.contains("ertificate") && message.contains("SSL_CERT_FILE"), "{message}");
}

/// A server that answers everything with this page.
async fn axum_page(page: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(
        async move { axum::serve(listener, axum::Router::new().fallback(async move || page)).await },
    );
    url
}

#[tokio::test]
async fn a_missing_or_unnamed_state_is_reported_with_a_remedy() {
    let (app, home) = start().await;
    let message = refused(&app, home.path(), &["state", "get", "net/prod"]).await;
    assert!(
        message.contains(&format!("state {ORG}/net/prod not found")) && message.contains("state list"),
        "{message}"
    );
    let message = refused(&app, home.path(), &["state", "get"]).await;
    assert!(message.contains("-s PROJECT/STATE") && message.contains("state init"), "{message}");
    let message = refused(&app, home.path(), &["state", "list", "--org", "others"]).await;
    assert!(message.contains("others") && message.contains("--org"), "{message}");
    stdout_of(&app, home.path(), &["state", "create", "net"]).await;
    let message = refused(&app, home.path(), &["state", "create", "net", "--force"]).await;
    assert!(message.contains("already exists") && message.contains("state init"), "{message}");
    let message = refused(&app, home.path(), &["state", "diff", "1", "2"]).await;
    assert!(message.contains("has no version") && message.contains("state versions"), "{message}");
    let message = refused(&app, home.path(), &["state", "pull"]).await;
    assert!(message.contains("has no version yet"), "{message}");
    let message = refused(&app, home.path(), &["state", "outputs", "--output", "o"]).await;
    assert!(message.contains("has no outputs"), "{message}");
}

#[tokio::test]
async fn a_link_to_a_state_of_another_server_is_reported() {
    let (app, home) = start().await;
    stdout_of(&app, home.path(), &["state", "create", "net"]).await;
    let other = TestApp::embedded().await;
    let message = refused(&other, home.path(), &["state", "get"]).await;
    assert!(message.contains(&app.url) && message.contains(&other.url), "{message}");
    let message = refused(&other, home.path(), &["state", "create", "net"]).await;
    assert!(message.contains("is linked to another state") && message.contains("--force"), "{message}");
    stdout_of(&other, home.path(), &["state", "create", "net", "--force"]).await;
    stdout_of(&other, home.path(), &["state", "get"]).await;
}

#[tokio::test]
async fn a_link_that_a_newer_program_wrote_is_refused_by_its_name() {
    let (app, home) = start().await;
    fs::write(home.path().join(".statewright.json"), r#"{"format":9}"#).unwrap();
    let message = refused(&app, home.path(), &["state", "list"]).await;
    assert!(message.contains(".statewright.json") && message.contains("newer"), "{message}");
}

#[tokio::test]
async fn other_files_stay_and_a_second_backend_is_not_written() {
    let (app, home) = start().await;
    let (main, backend) = (home.path().join("main.tf"), home.path().join("backend.tf"));
    fs::write(&backend, "# mine\n").unwrap();
    let message = refused(&app, home.path(), &["state", "create", "net", "--init"]).await;
    assert!(message.contains("backend.tf") && message.contains("--force"), "{message}");
    assert!(stdout_of(&app, home.path(), &["state", "list"]).await.lines().count() == 1, "nothing was made");
    stdout_of(&app, home.path(), &["state", "create", "net", "--init", "--force"]).await;
    assert!(fs::read_to_string(&backend).unwrap().starts_with("# Managed by statewright"));
    // The folder has a state, so another one needs a confirmation.
    let message = refused(&app, home.path(), &["state", "create", "other"]).await;
    assert!(message.contains("is linked to another state") && message.contains("--force"), "{message}");
    fs::remove_file(&backend).unwrap();
    fs::write(&main, "terraform {\n  backend \"s3\" {}\n}\n").unwrap();
    let message = refused(&app, home.path(), &["state", "init"]).await;
    assert!(message.contains("main.tf already has a backend (s3)"), "{message}");
    assert!(!backend.exists());
}

#[tokio::test]
async fn nothing_is_deleted_without_a_confirmation() {
    let (app, home) = start().await;
    stdout_of(&app, home.path(), &["state", "create", "net"]).await;
    let message = refused(&app, home.path(), &["state", "delete"]).await;
    assert!(message.contains("--yes"), "{message}");
    let state = r#"{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"l","outputs":{"s":{"value":"hush","type":"string","sensitive":true}},"resources":[{"mode":"managed","type":"t","name":"n","provider":"p","instances":[{"schema_version":0,"attributes":{}}]}],"check_results":null}"#;
    fs::write(home.path().join("a.tfstate"), state).unwrap();
    stdout_of(&app, home.path(), &["state", "import", "a.tfstate"]).await;
    let message = refused(&app, home.path(), &["state", "delete", "--yes"]).await;
    assert!(message.contains("1 resource") && message.contains("--force"), "{message}");
    // A user who names a secret sees it.
    assert!(!stdout_of(&app, home.path(), &["state", "outputs"]).await.contains("hush"));
    assert!(!stdout_of(&app, home.path(), &["state", "outputs", "--json"]).await.contains("hush"));
    assert_eq!(stdout_of(&app, home.path(), &["state", "outputs", "--output", "s"]).await, "hush\n");
    assert_eq!(stdout_of(&app, home.path(), &["state", "outputs", "net", "-o", "s"]).await, "hush\n");
    assert!(stdout_of(&app, home.path(), &["state", "outputs", "--show-sensitive"]).await.contains("hush"));
}

#[tokio::test]
async fn a_deleted_state_is_undeleted_by_a_unique_name() {
    let (app, home) = start().await;
    let id = async |arguments: &[&str]| {
        let printed = stdout_of(&app, home.path(), &[arguments, &["--json"]].concat()).await;
        serde_json::from_str::<serde_json::Value>(&printed).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let first = id(&["state", "create", "net/prod"]).await;
    // One with the same prefix, and one of another project.
    for other in ["net/prod2", "net2/prod"] {
        stdout_of(&app, home.path(), &["state", "create", other, "--force"]).await;
        stdout_of(&app, home.path(), &["state", "delete", other, "--yes"]).await;
    }
    let printed = refused(&app, home.path(), &["state", "undelete", "net/prod"]).await;
    assert!(
        printed.contains(&format!("no deleted state is named {ORG}/net/prod"))
            && printed.contains("state list --deleted"),
        "{printed}"
    );
    stdout_of(&app, home.path(), &["state", "delete", "net/prod", "--yes"]).await;
    for named in [&["net/prod"][..], &["-s", &format!("{ORG}/net/prod")]] {
        assert_eq!(id(&[&["state", "undelete"], named].concat()).await, first);
        stdout_of(&app, home.path(), &["state", "delete", "net/prod", "--yes"]).await;
    }
    // A second one of that name: the error says when each of them was deleted.
    let second = id(&["state", "create", "net/prod", "--force"]).await;
    stdout_of(&app, home.path(), &["state", "delete", "net/prod", "--yes"]).await;
    let printed = refused(&app, home.path(), &["state", "undelete", "net/prod"]).await;
    assert!(printed.contains("2 deleted states") && printed.contains("the id of"), "{printed}");
    for removed in [&first, &second] {
        let line = printed.lines().find(|line| line.contains(removed)).unwrap();
        assert!(line.contains("deleted 20") && line.contains("by alice"), "{printed}");
    }
    assert_eq!(id(&["state", "undelete", &second]).await, second);
    // The other one replaces the first, which is empty; it does not replace one with a version.
    assert_eq!(id(&["state", "undelete", &first]).await, first);
    stdout_of(&app, home.path(), &["state", "delete", "net/prod", "--yes"]).await;
    let path = format!("/tfstate/{ORG}/net/prod");
    app.post(&path, &serde_json::json!({ "version": 4, "serial": 1, "lineage": "a" }))
        .send()
        .await
        .expect(200);
    let printed = refused(&app, home.path(), &["state", "undelete", &first]).await;
    assert!(printed.contains("already exists"), "{printed}");
}

#[tokio::test]
async fn a_policy_change_keeps_the_other_settings() {
    let (app, home) = start().await;
    stdout_of(&app, home.path(), &["state", "create", "net"]).await;
    let shown = async |arguments: &[&str]| {
        stdout_of(&app, home.path(), &[&["state", "policy"], arguments].concat()).await
    };
    assert_eq!(shown(&[]).await, format!("{ORG}/net/default has no write policy\n"));
    shown(&["--locks-required", "true", "--lock-expires-after", "12h"]).await;
    let printed = shown(&["net", "--delete-allowed", "true", "--strict", "true"]).await;
    let expected = ["deleteAllowed", "lockExpiresAfterSeconds 43200", "locksRequired", "strict"].join(", ");
    assert_eq!(printed, format!("{ORG}/net/default: {expected}\n"));
    let delete = app.request(reqwest::Method::DELETE, &format!("/tfstate/{ORG}/net"));
    delete.send().await.expect(200);
    stdout_of(&app, home.path(), &["state", "undelete"]).await;
    let printed =
        shown(&["--locks-required", "false", "--lock-expires-after", "never", "--strict", "false"]).await;
    assert_eq!(printed, format!("{ORG}/net/default: deleteAllowed\n"));
    let wrong =
        output(&mut of_user(&app, home.path(), &["state", "policy", "--lock-expires-after", "soon"])).await;
    assert!(wrong.code == Some(2) && wrong.stderr.contains("12h"), "{wrong:?}");
}

#[tokio::test]
async fn outputs_are_shown_of_whatever_is_named_as_elsewhere() {
    let (app, home) = start().await;
    stdout_of(&app, home.path(), &["state", "create", "net/prod"]).await;
    let text = r#"{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"l","outputs":{"o":{"value":"v","type":"string"}},"resources":[],"check_results":null}"#;
    fs::write(home.path().join("a.tfstate"), text).unwrap();
    stdout_of(&app, home.path(), &["state", "import", "a.tfstate"]).await;
    let shown = stdout_of(&app, home.path(), &["state", "get", "--json"]).await;
    let id = serde_json::from_str::<serde_json::Value>(&shown).unwrap()["id"].as_str().unwrap().to_owned();
    fs::remove_file(home.path().join(".statewright.json")).unwrap();
    let full = format!("{ORG}/net/prod");
    for named in ["net/prod", &full, &id] {
        for command in [&["outputs"][..], &["state", "outputs"]] {
            let printed = stdout_of(&app, home.path(), &[command, &[named]].concat()).await;
            assert!(
                printed.lines().any(|line| line.starts_with("o ") && line.ends_with("\"v\"")),
                "{printed}"
            );
        }
    }
    let printed = refused(&app, home.path(), &["outputs", &id, "--kind", "stack"]).await;
    assert!(printed.contains("the id of a state"), "{printed}");
    let printed = refused(&app, home.path(), &["outputs", "others/net/prod"]).await;
    assert!(printed.contains("others"), "{printed}");
}

#[tokio::test]
async fn a_list_shows_the_status_of_states() {
    let (app, home) = start().await;
    for project in ["net", "web"] {
        stdout_of(&app, home.path(), &["state", "create", project, "--force"]).await;
    }
    stdout_of(&app, home.path(), &["dep", "add", "net", "vpc"]).await;
    let listed = stdout_of(&app, home.path(), &["state", "list"]).await;
    let row = |name: &str| {
        let line = listed.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("STATE")[8..], ["STATUS", "DEPENDS", "ON", "LABELS"], "{listed}");
    assert_eq!(row("net/default")[8..], ["clean", "-"], "{listed}");
    assert_eq!(row("web/default")[8..], ["stale", "net/default"], "{listed}");
    let shown = stdout_of(&app, home.path(), &["state", "get", "web"]).await;
    assert!(shown.contains("\nstatus     stale\ndepends on net/default\n"), "{shown}");
}

#[tokio::test]
async fn lists_are_read_to_their_end() {
    let (app, home) = start().await;
    // More than a page of the server's.
    for number in 0..205 {
        let state = serde_json::json!({ "project": "net", "state": format!("s{number:03}") });
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &state).send().await.expect(200);
    }
    let listed = stdout_of(&app, home.path(), &["state", "list"]).await;
    assert_eq!(listed.lines().count(), 206);
    let some = stdout_of(&app, home.path(), &["state", "list", "--limit", "3", "--json"]).await;
    let some: serde_json::Value = serde_json::from_str(&some).unwrap();
    assert_eq!(some["states"].as_array().unwrap().len(), 3);
    assert_eq!(
        stdout_of(&app, home.path(), &["state", "list", "--project", "other"]).await.lines().count(),
        1
    );
}

#[tokio::test]
async fn completions_have_the_commands_of_users() {
    let (app, home) = start().await;
    let script = stdout_of(&app, home.path(), &["completions", "bash"]).await;
    for word in ["undelete", "rejected", "--show-sensitive", "tf"] {
        assert!(script.contains(word), "{word}");
    }
}

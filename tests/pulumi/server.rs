//! The server as a program: its first start, its operator's commands, its end, its crash.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use rustix::process::Signal;
use statewright_tests::app::{TestApp, USER};
use statewright_tests::cli::PulumiCli;
use statewright_tests::commands::statewright;
pub(crate) use statewright_tests::server::Server;
use statewright_tests::visitor::Visitor;
use tempfile::TempDir;

use crate::support::{UP, assert_says, export, names, pending};

/// The timeout of a command.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs an operator's command to its end.
pub(crate) async fn operator(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = statewright(folder, arguments);
    tokio::time::timeout(PATIENCE, command.output()).await.expect("the command ends in time").unwrap()
}

/// The stdout of an operator's command that succeeds.
async fn stdout_of(folder: &Path, arguments: &[&str]) -> String {
    let output = operator(folder, arguments).await;
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The stderr of an operator's command that is refused.
async fn refused(folder: &Path, arguments: &[&str]) -> String {
    let output = operator(folder, arguments).await;
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {words}");
    words
}

pub(crate) fn folder() -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("data");
    (parent, folder)
}

/// A bench program with a stack `dev` on a server.
async fn bench(server: &Server, token: &str, project: &str, settings: &[(&str, &str)]) -> PulumiCli {
    let cli = PulumiCli::new().backend(&server.url).token(token);
    cli.bench_project(project, settings);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli
}

/// All files of a folder with their contents, except for the lock, which names the last process that tried.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            all.extend(contents(&entry.path()));
        } else if entry.file_name() != "lock" {
            all.insert(entry.path(), std::fs::read(entry.path()).unwrap());
        }
    }
    all
}

#[tokio::test]
async fn the_first_start_shows_a_token_and_the_second_does_not() {
    let (_parent, folder) = folder();
    let mut server = Server::start(&folder, "127.0.0.1:0").await;
    let token = server.token.clone().unwrap();

    // The lines to paste, exactly.
    let cli = PulumiCli::new();
    let login = cli.clone().token(&token).run(["login", &server.url]).await.assert_success();
    assert_says(&login, &["as admin"]);

    let url = server.url.clone();
    assert_eq!(server.says("    export STATEWRIGHT_TOKEN=").await, token);
    assert_eq!(server.says("    statewright login ").await, url);

    // The first user has no password, and signs in with a browser by this link, and later by that of the command.
    server
        .says("For the console, open this link in a browser. It signs you in once, within three days:")
        .await;
    let printed = server.says("    ").await;
    let invite = ["user", "invite", "admin", "--server", &url];
    let signs_in = async |link: &str| {
        let code = link.strip_prefix(&format!("{url}/invite?code=")).unwrap();
        let mut browser = Visitor::new(&url);
        browser.submit("/invite", &[("code", code)]).await.leads("/user/settings/account");
        assert_eq!(browser.user().await.as_deref(), Some("admin"));
        browser.submit("/invite", &[("code", code)]).await.refuses(403);
    };
    signs_in(&printed).await;
    signs_in(stdout_of(&folder, &invite).await.trim()).await;

    let second = refused(&folder, &["serve", "--listen", "127.0.0.1:0"]).await;
    assert!(second.contains("another server (process ") && second.contains("Stop it first"), "{second}");
    let pid = server.pid().as_raw_nonzero();
    assert!(second.contains(&format!("(process {pid})")), "{second}");

    let address = server.address();
    server.signal(Signal::TERM);
    let (code, rest) = server.ended().await;
    assert_eq!((code, rest.trim()), (Some(0), ""));

    let server = Server::start(&folder, &address).await;
    cli.run(["whoami"]).await.assert_success();
    cli.run(["stack", "ls", "--all"]).await.assert_success();
    server.signal(Signal::INT);
    let (code, rest) = server.ended().await;
    assert_eq!(code, Some(0));
    assert!(!rest.contains("TOKEN") && !rest.contains("invite"), "{rest}");
}

#[tokio::test]
async fn the_help_shows_the_default_address() {
    let (_parent, folder) = folder();
    let help = stdout_of(&folder, &["serve", "--help"]).await;
    assert!(help.contains("[default: 127.0.0.1:8080]"), "{help}");
    assert!(!folder.exists());
}

#[tokio::test]
async fn deltas_are_offered_on_request_only() {
    let (_parent, folder) = folder();
    let variable = [("STATEWRIGHT_OFFER_DELTA_CHECKPOINTS", "3000")];
    for (arguments, environment, cutoff) in [
        (&[][..], &[][..], None),
        (&["--offer-delta-checkpoints"], &[], Some(1_048_576)),
        (&["--offer-delta-checkpoints=2000"], &variable[..], Some(2_000)),
        (&[], &variable[..], Some(3_000)),
    ] {
        let server = Server::start_with(&folder, "127.0.0.1:0", arguments, environment).await;
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = http.get(format!("{}/api/capabilities", server.url)).send().await.unwrap();
        let answer: serde_json::Value = answer.json().await.unwrap();
        let offered = answer["capabilities"].as_array().unwrap().iter();
        let mut offered = offered.filter(|offered| offered["capability"] == "delta-checkpoint-uploads-v2");
        let offer = offered.next();
        assert_eq!(offer.map(|offer| offer["version"].clone()), cutoff.map(|_| 2.into()));
        let bytes = offer.and_then(|offer| offer["configuration"]["checkpointCutoffSizeBytes"].as_u64());
        assert_eq!(bytes, cutoff);
        server.signal(Signal::TERM);
        assert_eq!(server.ended().await.0, Some(0));
    }
}

#[tokio::test]
async fn a_missing_or_wrong_master_key_is_refused_and_nothing_changes() {
    let (_parent, folder) = folder();
    let server = Server::start(&folder, "127.0.0.1:0").await;
    server.signal(Signal::TERM);
    assert_eq!(server.ended().await.0, Some(0));
    let (_other_parent, other) = self::folder();
    let server = Server::start(&other, "127.0.0.1:0").await;
    server.signal(Signal::TERM);
    assert_eq!(server.ended().await.0, Some(0));

    let key = folder.join("master.key");
    let right = std::fs::read(&key).unwrap();
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let create = ["token", "create", "other"];

    std::fs::remove_file(&key).unwrap();
    let before = contents(&folder);
    for command in [serve.as_slice(), create.as_slice()] {
        let words = refused(&folder, command).await;
        assert!(words.contains("master.key is missing") && words.contains("Nothing was changed"), "{words}");
    }
    assert_eq!(before, contents(&folder));

    std::fs::copy(other.join("master.key"), &key).unwrap();
    let before = contents(&folder);
    for command in [serve.as_slice(), create.as_slice()] {
        let words = refused(&folder, command).await;
        assert!(
            words.contains("is not the key under which") && words.contains("Nothing was changed"),
            "{words}"
        );
    }
    assert_eq!(before, contents(&folder));

    std::fs::write(&key, right).unwrap();
    let server = Server::start(&folder, "127.0.0.1:0").await;
    assert_eq!(server.token, None);
}

/// The client retries for a few seconds: long enough for a server that a service manager restarts.
async fn survive(project: &str, arguments: &[&str], variables: &[(&str, &str)]) {
    let (_parent, folder) = folder();
    let server = Server::start_with(&folder, "127.0.0.1:0", arguments, &[]).await;
    let token = server.token.clone().unwrap();
    let mut cli =
        bench(&server, &token, project, &[("count", "8"), ("chain", "true"), ("delayMs", "250")]).await;
    for (name, value) in variables {
        cli = cli.env(name, value);
    }

    let up = cli.spawn(UP);
    // First it is stopped gracefully, as for an upgrade; then it is killed.
    let address = server.address();
    up.says("item-00001 creating").await;
    server.signal(Signal::TERM);
    assert_eq!(server.ended().await.0, Some(0));
    let server = Server::start_with(&folder, &address, arguments, &[]).await;
    up.says("item-00004 creating").await;
    server.signal(Signal::KILL);
    assert_eq!(server.ended().await.0, None);
    let _server = Server::start_with(&folder, &address, arguments, &[]).await;
    let up = up.wait().await.assert_success();
    assert_says(&up, &["+ 9 created"]);

    let state = export(&cli).await;
    let mut expected = vec![format!("{project}-dev"), "default".to_owned()];
    expected.extend((0..8).map(|item| format!("item-0000{item}")));
    assert_eq!(names(&state), expected);
    assert_eq!(pending(&state), Vec::<String>::new());
}

#[tokio::test]
async fn an_up_survives_the_end_of_its_server() {
    survive("survivor", &[], &[]).await;
}

/// The new server does not have the text that the next delta changes in its cache: it reads the log.
#[tokio::test]
async fn an_up_in_deltas_survives_the_end_of_its_server() {
    let arguments = ["--offer-delta-checkpoints=1000"];
    survive("deltas", &arguments, &[("PULUMI_DISABLE_JOURNALING", "true")]).await;
}

#[tokio::test]
async fn tokens_are_created_and_revoked_while_a_server_runs() {
    let (_parent, folder) = folder();
    let server = Server::start(&folder, "127.0.0.1:0").await;
    let token = server.token.clone().unwrap();
    let cli = bench(&server, &token, "keys", &[("count", "2"), ("chain", "true"), ("delayMs", "500")]).await;

    let up = cli.spawn(UP);
    up.says("item-00000 creating").await;
    let made = stdout_of(&folder, &["token", "create", "ci", "--expires-in", "12h"]).await;
    let ci = PulumiCli::new().backend(&server.url).token(made.trim());
    let whoami = ci.run(["whoami", "--verbose"]).await.assert_success();
    assert_says(&whoami, &["User: admin", "Token type: personal"]);
    up.wait().await.assert_success();

    let again = refused(&folder, &["token", "create", "ci"]).await;
    assert!(again.contains("already has a token named ci"), "{again}");
    let unused = stdout_of(&folder, &["token", "create", "unused"]).await;
    let listed = stdout_of(&folder, &["token", "list"]).await;
    assert!(!listed.contains(made.trim()) && !listed.contains(unused.trim()), "{listed}");
    let rows: Vec<Vec<&str>> = listed.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let names: Vec<_> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(names, ["ci", "first-start", "unused"]);
    assert_ne!(rows[0][2], "never");
    assert_eq!((rows[1][2], rows[2][2]), ("never", "never"));
    assert_ne!(rows[0][3], "never", "it was used");
    assert_eq!(rows[2][3], "never");

    // The server never saw this one, so it has nothing in its cache.
    stdout_of(&folder, &["token", "revoke", "unused"]).await;
    let ended = PulumiCli::new().token(unused.trim()).run(["login", &server.url]).await.assert_failure();
    assert_says(&ended, &["Unauthorized: No credentials provided or are invalid."]);
    let words = refused(&folder, &["token", "revoke", "unused"]).await;
    assert!(words.contains("has no token named unused"), "{words}");
    let words = refused(&folder, &["token", "list", "--user", "nobody"]).await;
    assert!(words.contains("nobody"), "{words}");
}

#[tokio::test]
async fn a_revoked_token_is_refused_within_a_minute() {
    let app = TestApp::embedded_on_manual_clock().await;
    let made = stdout_of(app.folder(), &["token", "create", "ci", "--user", USER]).await;
    let ci = PulumiCli::new().backend(&app.url).token(made.trim());
    ci.run(["stack", "ls", "--all"]).await.assert_success();
    stdout_of(app.folder(), &["token", "revoke", "ci", "--user", USER]).await;
    app.advance(Duration::from_secs(61));
    let refused = ci.run(["stack", "ls", "--all"]).await.assert_failure();
    assert_says(&refused, &["this command requires logging in"]);
}

/// As `mkdir`, or a volume of a container, creates it.
#[tokio::test]
async fn a_new_folder_is_private_and_an_open_one_gives_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().unwrap();
    let (folder, log) = (place.path().join("data"), place.path().join("log"));
    let open = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    let run = async || {
        let file = std::fs::File::create(&log).unwrap();
        let server = Server::start_logging(&folder, "127.0.0.1:0", &[], &[], file.into()).await;
        server.signal(Signal::TERM);
        server.ended().await;
        std::fs::read_to_string(&log).unwrap()
    };
    std::fs::create_dir(&folder).unwrap();
    open(0o755);
    let first = run().await;
    assert!(!first.contains("have access to"), "{first}");
    assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    open(0o750);
    let warned = run().await;
    let words =
        format!("other users of this machine have access to {0}: run `chmod 700 {0}`", folder.display());
    assert!(warned.contains("WARN") && warned.contains(&words), "{warned}");
}

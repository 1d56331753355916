//! Retention and recovery by an operator: deleted stacks, backups, master keys. The server is the program itself.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use statewright_tests::cli::PulumiCli;
use statewright_tests::commands::{document, refused, run, stdout_of};

use crate::server::{Server, folder as new_folder};
use crate::support::{SECRET_PROGRAM, UP, assert_says, export, names, pending};

const PATIENCE: Duration = Duration::from_secs(60);
const PLAINTEXT: &str = "correct-horse-battery-staple";

fn client(server: &Server) -> PulumiCli {
    PulumiCli::new().backend(&server.url).token(server.token.as_ref().expect("this was its first start"))
}

/// Kills a server, like a power cut, and returns its URL.
async fn stop(server: Server) -> String {
    let address = server.address();
    server.signal(Signal::KILL);
    server.ended().await;
    address
}

async fn json_of(folder: &Path, arguments: &[&str]) -> Value {
    document(folder, arguments).await
}

/// A client with a program that has a secret, deployed once.
async fn with_secret(server: &Server, project: &str) -> PulumiCli {
    let cli = client(server);
    cli.yaml_project(project, SECRET_PROGRAM);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(["config", "set", "--secret", "password", PLAINTEXT]).await.assert_success();
    cli.run(UP).await.assert_success();
    cli
}

async fn shows_secret(cli: &PulumiCli) {
    let shown = cli.run(["stack", "output", "--json", "--show-secrets"]).await.assert_success().json();
    assert_eq!(shown["hidden"], PLAINTEXT, "{shown}");
}

#[tokio::test]
async fn a_deleted_stack_is_listed_and_undeleted_with_its_secrets() {
    let (_parent, folder) = new_folder();
    let server = Server::start(&folder, "127.0.0.1:0").await;
    let cli = with_secret(&server, "kept").await;
    let before = export(&cli).await;
    cli.run(["stack", "rm", "dev", "--yes", "--force", "--preserve-config"]).await.assert_success();
    let gone = cli.run(["stack", "select", "dev"]).await.assert_failure();
    assert_says(&gone, &["no stack named 'dev' found"]);

    let listed = json_of(&folder, &["stack", "list", "--deleted"]).await;
    let line = &listed["stacks"][0];
    let who = (&line["stack"], &line["deleted"]["user"]);
    assert_eq!(who, (&"main/kept/dev".into(), &"admin".into()), "{listed}");
    assert_eq!(json_of(&folder, &["stack", "list"]).await["stacks"], serde_json::json!([]));

    // The name may be taken meanwhile, and then no stack is undeleted over it.
    cli.run(["stack", "init", "dev"]).await.assert_success();
    let words = refused(&folder, 1, &["stack", "restore", "main/kept/dev"]).await;
    assert!(words.contains("stack main/kept/dev already exists"), "{words}");
    cli.run(["stack", "rm", "dev", "--yes", "--preserve-config"]).await.assert_success();
    let words = refused(&folder, 1, &["stack", "restore", "main/kept/dev", "--deleted"]).await;
    assert!(words.contains("select one by its id"), "{words}");
    let id = line["id"].as_str().unwrap();
    let back = stdout_of(&folder, &["stack", "restore", "main/kept/dev", "--deleted", "--id", id]).await;
    assert!(back.contains("main/kept/dev is undeleted"), "{back}");

    cli.run(["stack", "select", "dev"]).await.assert_success();
    assert_eq!(export(&cli).await, before);
    shows_secret(&cli).await;
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["2 unchanged"]);
    let check = json_of(&folder, &["check", "--orphans"]).await;
    assert_eq!((&check["problems"], &check["orphans"]), (&0.into(), &serde_json::json!([])), "{check}");
}

#[tokio::test]
async fn a_backup_made_during_an_update_restores_and_continues() {
    let (parent, folder) = new_folder();
    let (backup, restored) = (parent.path().join("backup"), parent.path().join("restored"));
    let (to, from) = (backup.to_str().unwrap(), restored.to_str().unwrap());
    let server = Server::start(&folder, "127.0.0.1:0").await;
    let secret = with_secret(&server, "secret").await;
    let cli = client(&server);
    let slow = "resources:
  first:
    type: bench:index:Item
  slow:
    type: bench:index:Item
    properties:
      delayMs: 600000
    options:
      dependsOn:
        - ${first}
";
    cli.yaml_project("slow", slow);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    let up = cli.spawn(UP);
    up.says("slow creating").await;
    let state = async || export(&cli).await;
    let saved = tokio::time::timeout(PATIENCE, async {
        loop {
            let state = state().await;
            if pending(&state) == ["creating slow"] {
                return state;
            }
        }
    });
    let saved = saved.await.expect("it is saved in time");
    let made = json_of(&folder, &["backup", "--to", to]).await;
    assert_eq!((&made["masterKey"], &made["missing"]), (&true.into(), &serde_json::json!([])), "{made}");
    // A second one into the same folder has little to do.
    let again = json_of(&folder, &["backup", "--to", to]).await;
    assert_eq!((&again["blobs"], &again["blobsCopied"]), (&made["blobs"], &0.into()), "{again}");
    up.kill().await;
    let address = stop(server).await;

    let words = refused(&folder, 1, &["restore", "--from", to]).await;
    assert!(words.contains("is not empty. Nothing was changed"), "{words}");
    let done = stdout_of(&folder, &["restore", "--from", to, "--data", from]).await;
    assert!(done.contains("statewright serve --data"), "{done}");
    let check = json_of(&restored, &["check"]).await;
    assert_eq!(check["problems"], 0, "{check}");

    // At the same address, since the states name it.
    let _server = Server::start(&restored, &address).await;
    assert_eq!(state().await, saved);
    let held = cli.run(UP).await.assert_failure();
    assert_says(&held, &["Another update is currently in progress"]);
    cli.run(["cancel", "--yes"]).await.assert_success();
    cli.yaml_project("slow", &slow.replace("600000", "0"));
    cli.run(UP).await.assert_success();
    let after = names(&state().await);
    assert!(after.contains(&"first".to_owned()) && after.contains(&"slow".to_owned()), "{after:?}");
    shows_secret(&secret).await;
    secret.run(UP).await.assert_success();
}

#[tokio::test]
async fn a_rotated_master_key_is_removed_at_the_servers_next_start() {
    let (_parent, folder) = new_folder();
    let server = Server::start(&folder, "127.0.0.1:0").await;
    let cli = with_secret(&server, "rotated").await;
    let keys = || {
        let text = std::fs::read_to_string(folder.join("master.key")).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    let old = keys();
    let rotated = json_of(&folder, &["key", "rotate"]).await;
    assert_eq!((&rotated["rewrapped"], &rotated["oldKeyRemoved"]), (&2.into(), &false.into()), "{rotated}");
    let both = keys();
    assert_eq!((both.len(), &both[1..]), (2, old.as_slice()));
    shows_secret(&cli).await;
    cli.run(UP).await.assert_success();
    let renewed = json_of(&folder, &["key", "rotate", "--stack", "main/rotated/dev"]).await;
    assert_eq!(renewed["dataKey"], 2, "{renewed}");

    let address = stop(server).await;
    let server = Server::start(&folder, &address).await;
    shows_secret(&cli).await;
    assert_eq!(keys(), both[..1]);
    cli.run(["config", "set", "--secret", "another", "secret"]).await.assert_success();
    cli.run(UP).await.assert_success();
    stop(server).await;

    // Without a running server it is removed at once.
    let rotated = json_of(&folder, &["key", "rotate"]).await;
    assert_eq!((&rotated["rewrapped"], &rotated["oldKeyRemoved"]), (&3.into(), &true.into()), "{rotated}");
    assert!(keys().len() == 1 && keys() != both[..1]);
    let _server = Server::start(&folder, &address).await;
    shows_secret(&cli).await;
    let got = cli.run(["config", "get", "another"]).await.assert_success();
    assert_eq!(got.stdout.trim(), "secret");
    assert_eq!(json_of(&folder, &["check"]).await["problems"], 0);
}

#[tokio::test]
async fn a_check_with_problems_exits_with_1() {
    let (_parent, folder) = new_folder();
    let server = Server::start(&folder, "127.0.0.1:0").await;
    with_secret(&server, "broken").await;
    let snapshots = folder.join("blobs/snap");
    let stack = std::fs::read_dir(&snapshots).unwrap().next().unwrap().unwrap().path();
    std::fs::remove_dir_all(&stack).unwrap();
    let output = run(&folder, &["check"]).await;
    let (printed, words) = (output.stdout, output.stderr);
    assert_eq!(output.code, Some(1), "{printed}");
    assert!(
        printed.contains("main/broken/dev: version 1: the blob snap/") && printed.contains("is missing"),
        "{printed}"
    );
    // The index of its resources is missing too.
    assert!(words.contains("2 problems found"), "{words}");
}

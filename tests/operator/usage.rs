//! The command line itself: invalid ones, completions, and questions on a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::commands::{refused, statewright, stdout_of};

use crate::support::{Run, stack};

#[tokio::test]
async fn an_unknown_command_exits_with_2_and_changes_nothing() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("data");
    for arguments in [
        &["stack"][..],
        &["stack", "versions", "dev"],
        &["stack", "publish", "acme/shop/dev", "--slot", "1"],
        &["stack", "restore", "acme/shop/dev", "--version", "1", "--deleted"],
        &["stack", "restore", "acme/shop/dev", "--id", "none"],
        &["backup"],
        &["copy", "--from", "aws", "--to", "aws"],
        &["copy", "--from", "here", "--to", "./here"],
        &["copy", "--from", "here"],
        &["serve", "--store", "aws", "--aws-attempt-timeout", "1h"],
        &["backup", "--store", "aws", "--to", "there"],
        &["backup", "--to", "s3://there"],
        &["backup", "--to", "s3://there/folder"],
        &["backup", "--to", "there", "--verify"],
        &["key", "rotate", "--store", "aws"],
        &["doctor", "--url", "here"],
        &["serve", "--keep-versions", "0"],
        &["user", "create", "b"],
        &["rehome", "--from", "here", "--to", "https://there"],
        &["rehome", "--from", "https://there/", "--to", "https://there"],
        &["token", "create", "ci", "--expires-in", "soon"],
        &["token", "create", "ci", "--certificate"],
        &["user", "password"],
        &["user", "password", "bob", "correct horse battery"],
        &["token", "create", "ci", "--may", "everything"],
        &["org", "member", "role", "acme", "bob"],
        &["user", "create", "bob", "--role", "owner"],
        &["serve", "--json"],
        &["completions", "bash", "--json"],
        &["completions", "tcsh"],
        &["state", "create", "a/b/c/d"],
        &["state", "create", "net", "--label", "env"],
        &["state", "get", "net", "-s", "other"],
        &["state", "lock"],
        &["state", "restore", "net"],
        &["state", "diff", "1", "newest"],
        &["state", "list", "--server", "here"],
        &["tf"],
        &["tf", "--json", "--", "plan"],
    ] {
        let words = refused(&folder, 2, arguments).await;
        assert!(words.starts_with("error: "), "{arguments:?}: {words}");
    }
    assert!(!folder.exists());
    // A missing folder is not an error of usage.
    let words = refused(&folder, 1, &["stack", "list"]).await;
    assert!(words.contains("there is no data folder"), "{words}");
}

#[tokio::test]
async fn a_wrong_description_of_providers_stops_the_start() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("data");
    let provider = r#"[{ "name": "corp", "issuer": "https://id.example.com", "clientId": "x",
        "clientSecretVariable": "MISSING", "server": "https://state.example.com" }]"#;
    for (text, why) in [
        ("corp", "the value of --sign-in-providers is not a JSON list of providers: "),
        (provider, "the variable \"MISSING\" with its client secret is empty"),
    ] {
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--sign-in-providers", text];
        let words = refused(&folder, 1, &arguments).await;
        assert!(words.contains(why), "{words}");
    }
    assert!(!folder.exists());
}

#[tokio::test]
async fn completions_know_every_command() {
    let parent = tempfile::tempdir().unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout_of(parent.path(), &["completions", shell]).await;
        for word in ["serve", "token", "user", "org", "stack", "rehome", "show-log", "from-log", "dry-run"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
}

/// Answers the question of a command on a terminal, and returns everything that the terminal shows.
async fn on_a_terminal(app: &TestApp, arguments: &[&str], answer: &str) -> (Option<i32>, String) {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let side = rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let of = |side: &OwnedFd| side.try_clone().unwrap();
    let mut command = statewright(app.folder(), arguments);
    command.stdin(of(&side)).stdout(of(&side)).stderr(of(&side));
    let mut child = command.spawn().unwrap();
    drop(command);
    drop(side);
    let mut terminal = File::from(terminal);
    terminal.write_all(answer.as_bytes()).unwrap();
    let shown = tokio::task::spawn_blocking(move || {
        let mut shown = Vec::new();
        // Once the other side is closed, reading fails.
        let mut part = [0; 1024];
        while let Ok(count) = terminal.read(&mut part)
            && count > 0
        {
            shown.extend_from_slice(&part[..count]);
        }
        String::from_utf8(shown).unwrap()
    });
    let code = child.wait().await.unwrap().code();
    (code, shown.await.unwrap())
}

#[tokio::test]
async fn a_person_is_asked_before_an_update_is_ended() {
    let app = TestApp::embedded().await;
    stack(&app, "shop").await;
    let run = Run::begin(&app, "shop").await;
    run.append(1, "a").await.expect(204);
    let named = format!("{ORG}/shop/dev");
    let unlock = ["stack", "unlock", &named];

    let words = refused(app.folder(), 1, &unlock).await;
    let holder = format!("{named} is locked by update {} by alice (first-start) since ", run.id);
    assert!(words.contains(&holder) && words.contains("to confirm, add --yes"), "{words}");
    let (code, shown) = on_a_terminal(&app, &unlock, "n\n").await;
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("End it? [y/N]") && shown.contains("nothing was changed"), "{shown}");
    run.append(2, "b").await.expect(204);

    let (code, shown) = on_a_terminal(&app, &unlock, "y\n").await;
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains(&format!("{named} is unlocked")), "{shown}");
    run.append(3, "c").await.refused(403);
    let words = refused(app.folder(), 1, &unlock).await;
    assert!(words.contains("no update locks"), "{words}");
}

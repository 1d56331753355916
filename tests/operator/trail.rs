//! `statewright audit`, and the records of the operator's commands.

use serde_json::Value;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::commands::{document, refused, run, stdout_of};

use crate::support::{export, import, stack, state};

#[tokio::test]
async fn the_operator_reads_the_trails_of_the_store() {
    let app = TestApp::embedded().await;
    let folder = app.folder();
    stack(&app, "shop").await;
    import(&app, "shop", &state("shop", &app.url, &[("a", 1)])).await;
    export(&app, "shop").await;
    let named = format!("{ORG}/shop/dev");
    stdout_of(folder, &["stack", "restore", &named, "--version", "1"]).await;
    stdout_of(folder, &["user", "create", "bob", "--org", ORG]).await;

    let tail = document(folder, &["audit", "tail", ORG]).await;
    let records = tail["records"].as_array().unwrap();
    let actions: Vec<&str> = records.iter().map(|record| record["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["stack.create", "stack.import", "stack.export", "stack.restore"]);
    assert_eq!(records[0]["user"], "alice");
    // The command and what it did have the same ID.
    let server = document(folder, &["audit", "tail", "--action", "command"]).await;
    let commands = server["records"].as_array().unwrap();
    assert_eq!(commands.len(), 2, "{server}");
    assert_eq!(commands[0]["request_id"], records[3]["request_id"]);
    assert!(commands[1]["description"].as_str().unwrap().starts_with("user create bob"), "{server}");

    let only = document(folder, &["audit", "tail", ORG, "--count", "1"]).await;
    assert_eq!(only["records"].as_array().unwrap().len(), 1);
    let stacks = stdout_of(folder, &["audit", "export", ORG, "--stack", "shop/dev"]).await;
    let lines: Vec<Value> = stacks.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!((&lines[0]["action"], &lines[0]["stack"]), (&"stack.create".into(), &"dev".into()));
    let csv =
        stdout_of(folder, &["audit", "export", ORG, "--format", "csv", "--action", "stack.import"]).await;
    assert_eq!(csv.lines().count(), 2, "{csv}");
    let cef = stdout_of(folder, &["audit", "export", ORG, "--format", "cef", "--user", "alice"]).await;
    assert_eq!(cef.lines().count(), 3, "{cef}");
    assert_eq!(stdout_of(folder, &["audit", "export", ORG, "--since", "2999-01-01"]).await, "");
    refused(folder, 2, &["audit", "tail", ORG, "--since", "monday"]).await;
    refused(folder, 2, &["audit", "export", ORG, "--json"]).await;
    // A command that only reads leaves no record.
    let server = document(folder, &["audit", "tail"]).await;
    assert_eq!(server["records"].as_array().unwrap().len(), 2);
    let checked = run(folder, &["check"]).await;
    assert_eq!(checked.code, Some(0), "{}{}", checked.stdout, checked.stderr);
}

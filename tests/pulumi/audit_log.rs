//! `pulumi org audit-log`.

use statewright_tests::app::{ORG, TestApp};

use crate::BACKEND;
use crate::support::{SECRET_PROGRAM, UP, assert_says, client, yaml};

#[tokio::test]
async fn the_audit_log_is_listed_and_exported() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "audited", SECRET_PROGRAM).await;
    cli.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    cli.run(UP).await.assert_success();
    cli.run(["stack", "output", "--show-secrets"]).await.assert_success();
    cli.run(["stack", "export", "--file", "state.json"]).await.assert_success();

    let listed = cli.run(["org", "audit-log", "list", "--org", ORG, "--all"]).await.assert_success();
    let all = [
        "stack.create",
        "update.begin",
        "update.end",
        "secrets.open",
        "stack.export",
        "audited/dev",
        "alice",
    ];
    assert_says(&listed, &all);
    assert!(!listed.stdout.contains("hunter2"), "{}", listed.stdout);
    let some =
        ["org", "audit-log", "list", "--org", ORG, "--all", "--event-type", "update.end", "--user", "alice"];
    let some = cli.run(some).await.assert_success();
    assert_says(&some, &["update.end", "succeeded"]);
    assert!(!some.stdout.contains("update.begin"), "{}", some.stdout);

    let csv = ["org", "audit-log", "export", "--org", ORG, "--format", "csv"];
    let csv = cli.run(csv).await.assert_success();
    assert!(csv.stdout.starts_with("Timestamp,Name,Login,Event,Description,SourceIP,"), "{}", csv.stdout);
    assert_says(&csv, &[",alice,alice,update.end,audited/dev: succeeded,"]);
    let cef = ["org", "audit-log", "export", "--org", ORG, "--format", "cef"];
    let cef = cli.run(cef).await.assert_success();
    assert!(cef.stdout.lines().all(|line| line.contains(" CEF:0|Statewright|")), "{}", cef.stdout);

    let bob = client(&app).token(&app.member("bob", "laptop").await);
    let refused = bob.run(["org", "audit-log", "list", "--org", ORG]).await.assert_failure();
    assert_says(&refused, &["needs the role auditor"]);
}

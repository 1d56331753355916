//! The history: what was done, by whom, when; and canceling when nothing runs.

use serde_json::Value;
use statewright_tests::app::TestApp;

use crate::BACKEND;
use crate::support::{DESTROY, REFRESH, assert_says, bench};

#[tokio::test]
async fn history_has_the_updates_and_no_previews() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "past", &[]).await;
    cli.run(["config", "set", "count", "2"]).await.assert_success();
    let hash = cli.commit();
    cli.run(["up", "--yes", "--message", "the first"]).await.assert_success();
    cli.run(["preview"]).await.assert_success();
    cli.run(["config", "set", "count", "3"]).await.assert_success();
    cli.run(["up", "--yes", "--skip-preview", "--message", "one more"]).await.assert_success();
    cli.run(REFRESH).await.assert_success();
    cli.run(DESTROY).await.assert_success();

    let history = cli.run(["stack", "history", "--json"]).await.assert_success().json();
    let rows = history.as_array().unwrap();
    let column = |name: &str| rows.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("version"), [4, 3, 2, 1].map(Value::from));
    assert_eq!(column("kind"), ["destroy", "refresh", "update", "update"]);
    assert_eq!(column("result"), ["succeeded"; 4]);
    assert_eq!(rows[3]["message"], "the first");
    assert_eq!(rows[2]["message"], "one more");
    assert_eq!(rows[3]["resourceChanges"], serde_json::json!({"create": 3}));
    assert_eq!(rows[2]["resourceChanges"], serde_json::json!({"create": 1, "same": 3}));
    assert_eq!(rows[0]["resourceChanges"], serde_json::json!({"delete": 4}));
    assert_eq!(rows[3]["config"]["past:count"]["value"], "2");
    assert_eq!(rows[2]["config"]["past:count"]["value"], "3");
    assert_eq!(rows[3]["environment"]["git.head"], hash);
    assert_eq!(rows[3]["environment"]["git.headName"], "refs/heads/trunk");
    assert_eq!(rows[3]["environment"]["git.author"], "tester");
    assert_eq!(rows[3]["environment"]["exec.kind"], "cli");

    let page =
        cli.run(["stack", "history", "--page-size", "2", "--page", "2", "--json"]).await.assert_success();
    let page: Vec<_> = page.json().as_array().unwrap().iter().map(|row| row["version"].clone()).collect();
    assert_eq!(page, [2, 1].map(Value::from));
    // The configuration of the last update can be fetched from the server.
    std::fs::remove_file(cli.project_dir().join("Pulumi.dev.yaml")).unwrap();
    cli.run(["config", "refresh", "--force"]).await.assert_success();
    let count = cli.run(["config", "get", "count"]).await.assert_success();
    assert_eq!(count.stdout.trim(), "3");
    // Versions without a program keep it.
    cli.run(["stack", "export", "--file", "state.json"]).await.assert_success();
    cli.run(["stack", "import", "--file", "state.json"]).await.assert_success();
    std::fs::remove_file(cli.project_dir().join("Pulumi.dev.yaml")).unwrap();
    cli.run(["config", "refresh", "--force"]).await.assert_success();
    let count = cli.run(["config", "get", "count"]).await.assert_success();
    assert_eq!(count.stdout.trim(), "3");

    let shown = cli.run(["stack", "history"]).await.assert_success();
    assert_says(
        &shown,
        &["Version: 5", "Version: 4", "Version: 1", "the first", "one more", "exec.kind: cli"],
    );
}

#[tokio::test]
async fn events_of_an_update_can_be_read_afterwards() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "said", &[("count", "2"), ("chain", "true"), ("failAt", "1")]).await;
    cli.run(crate::support::UP).await.assert_failure();
    let update = crate::support::stack(&app, "said").await["activeUpdate"].as_str().unwrap().to_owned();

    let read =
        cli.run(["stack", "history", "events", &update, "--all", "--output", "json"]).await.assert_success();
    for word in ["resourcePreEvent", "item-00000", "bench: create failed as asked", "summaryEvent"] {
        assert!(read.stdout.contains(word), "{word} is not in:\n{read}");
    }
    let summary = cli.run(["stack", "history", "events", &update, "--summary"]).await.assert_success();
    assert_says(&summary, &["bench: create failed as asked"]);
}

#[tokio::test]
async fn there_is_nothing_to_cancel_unless_something_runs() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "calm", &[]).await;
    let never = cli.run(["cancel", "--yes"]).await.assert_failure();
    assert_says(&never, &["has never been updated"]);

    cli.run(crate::support::UP).await.assert_success();
    let over = cli.run(["cancel", "--yes"]).await.assert_failure();
    assert_says(
        &over,
        &["[409] Conflict: there is nothing to cancel: the last update ended as succeeded at"],
    );
    let history = cli.run(["stack", "history", "--json"]).await.assert_success().json();
    assert_eq!(history[0]["result"], "succeeded");
}

//! Clients that are killed during an update.

use std::time::Duration;

use serde_json::Value;
use statewright_tests::app::TestApp;
use statewright_tests::cli::PulumiCli;

use crate::BACKEND;
use crate::support::{UP, assert_says, bench, export, names, pending, stack, state_once, yaml};

/// Two quick resources, then one that takes this long, each after the one before.
fn program(delay_ms: u32) -> String {
    format!(
        "resources:
  first:
    type: bench:index:Item
  second:
    type: bench:index:Item
    options:
      dependsOn:
        - ${{first}}
  slow:
    type: bench:index:Item
    properties:
      delayMs: {delay_ms}
    options:
      dependsOn:
        - ${{second}}
"
    )
}

/// A client that was killed while it created the third resource.
async fn killed_in_the_middle(app: &TestApp, project: &str, setting: Option<&str>) -> PulumiCli {
    let mut cli = yaml(app, project, &program(600_000)).await;
    if let Some(name) = setting {
        cli = cli.env(name, "true");
    }
    let up = cli.spawn(UP);
    up.says("slow creating").await;
    state_once(app, project, |state| pending(state) == ["creating slow"]).await;
    let killed = up.kill().await;
    assert_eq!(killed.code, None, "{killed}");
    cli
}

async fn goes_on(app: &TestApp, cli: &PulumiCli, project: &str) {
    let state = export(cli).await;
    assert_made(&state, project, &["first", "second"]);
    assert_eq!(pending(&state), ["creating slow"]);
    assert_eq!(stack(app, project).await["version"], 1);
    let history = cli.run(["stack", "history", "--json"]).await.assert_success().json();
    assert_eq!(history[0]["result"], "failed", "{history}");

    cli.yaml_project(project, &program(0));
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["+ 1 created", "3 unchanged"]);
    // Only the user can find out whether the interrupted creation made a resource; then the entry is removed.
    cli.run(["refresh", "--yes", "--skip-preview", "--clear-pending-creates"]).await.assert_success();
    let state = export(cli).await;
    assert_made(&state, project, &["first", "second", "slow"]);
    assert_eq!(pending(&state), Vec::<String>::new());
}

/// Fails unless the state has these resources and no others. In YAML programs stack and provider come in any
/// order.
#[track_caller]
fn assert_made(state: &Value, project: &str, items: &[&str]) {
    let mut made = names(state);
    made.sort();
    let mut expected = vec!["default".to_owned(), format!("{project}-dev")];
    expected.extend(items.iter().map(ToString::to_string));
    expected.sort();
    assert_eq!(made, expected);
}

#[tokio::test]
async fn after_a_kill_and_a_cancel_everything_saved_is_there() {
    let app = TestApp::on(BACKEND).await;
    let cli = killed_in_the_middle(&app, "cancelled", None).await;
    let held = cli.run(UP).await.assert_failure();
    assert_says(&held, &["Another update is currently in progress. alice"]);
    cli.run(["cancel", "--yes"]).await.assert_success();
    goes_on(&app, &cli, "cancelled").await;
}

#[tokio::test]
async fn everything_saved_survives_a_kill_and_the_end_of_the_lease() {
    let app = TestApp::on_manual_clock(BACKEND).await;
    let cli = killed_in_the_middle(&app, "expired", None).await;
    app.advance(Duration::from_secs(300));
    let held = cli.run(UP).await.assert_failure();
    assert_says(&held, &["Another update is currently in progress. alice"]);
    app.advance(Duration::from_secs(1));
    goes_on(&app, &cli, "expired").await;
}

#[tokio::test]
async fn everything_saved_without_a_journal_survives_a_kill() {
    let app = TestApp::on(BACKEND).await;
    let cli = killed_in_the_middle(&app, "whole", Some("PULUMI_DISABLE_JOURNALING")).await;
    cli.run(["cancel", "--yes"]).await.assert_success();
    goes_on(&app, &cli, "whole").await;
}

/// Ctrl-C: the running steps end and are saved, and the stack is free at once.
#[tokio::test]
async fn an_interrupted_client_leaves_nothing_open() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "halted", &[("count", "4"), ("chain", "true"), ("delayMs", "1200")]).await;
    let up = cli.spawn(UP);
    up.says("item-00001 creating").await;
    up.interrupt();
    up.wait().await.assert_failure();
    let state = export(&cli).await;
    assert_eq!(names(&state), ["halted-dev", "default", "item-00000", "item-00001"]);
    assert_eq!(pending(&state), Vec::<String>::new());
    cli.run(UP).await.assert_success();
    assert_eq!(names(&export(&cli).await).len(), 6);
}

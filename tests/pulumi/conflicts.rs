//! Two clients on one stack.

use std::time::Duration;

use serde_json::json;
use statewright_shared::domain::names::{Login, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::services::identity::tokens;
use statewright_tests::app::TestApp;
use statewright_tests::cli::PulumiCli;
use statewright_tests::tools;

use crate::BACKEND;
use crate::support::{UP, assert_says, bench, export, names, pending, stack, state, state_once};

/// Slow enough for another client to interfere.
const SLOW: &[(&str, &str)] = &[("count", "3"), ("chain", "true"), ("delayMs", "1200")];

/// Another person on another machine, with the same program.
async fn colleague(app: &TestApp, project: &str, settings: &[(&str, &str)]) -> PulumiCli {
    let cli = PulumiCli::new().backend(&app.url).token(app.member("bob", "laptop").await);
    cli.bench_project(project, settings);
    cli.run(["stack", "select", "acme/dev"]).await.assert_success();
    cli
}

#[tokio::test]
async fn a_second_up_gets_the_holder_and_a_preview_runs() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "busy", SLOW).await;
    let colleague = colleague(&app, "busy", &[("count", "3"), ("chain", "true")]).await;

    // Paused for as long as this test needs: no resource is created until the client continues.
    let up = cli.spawn(UP);
    up.says("item-00000 creating").await;
    state_once(&app, "busy", |state| !pending(state).is_empty()).await;
    up.pause();

    let refused = colleague.run(UP).await.assert_failure();
    colleague.snapshots().bind(|| {
        insta::assert_snapshot!(refused, @r#"
$ pulumi up --yes --skip-preview
exit code: 1
----- stdout -----
Updating (dev)
----- stderr -----
error: [409] Conflict: Another update is currently in progress. alice (token "first-start") started this update of acme/busy/dev [AGO], at [DATE], and it last saved something [AGO]. Wait for it to end, or run `pulumi cancel` to stop it and keep what it saved. If its client is gone, its lease ends by itself in 4 min.
To learn more about possible reasons and resolution, visit https://www.pulumi.com/docs/support/troubleshooting/common-issues/update-conflicts/
"#)
    });
    let older = colleague.clone().env("PULUMI_DISABLE_BEGIN_UPDATE", "true");
    // Its preview runs; only the update after it is refused.
    let refused = older.run(["up", "--yes"]).await.assert_failure();
    assert_says(&refused, &["Previewing update (dev)", "to create"]);
    assert_says(
        &refused,
        &["[409] Conflict: Another update is currently in progress. alice (token \"first-start\")"],
    );
    let shown = colleague.run(["stack"]).await.assert_success();
    assert_says(&shown, &["Update in progress"]);
    let listed = colleague.run(["stack", "ls"]).await.assert_success();
    assert_says(&listed, &["in progress"]);
    let listed = colleague.run(["stack", "ls", "--json"]).await.assert_success().json();
    assert_eq!(listed[0]["updateInProgress"], true, "{listed}");
    let removal = colleague.run(["stack", "rm", "dev", "--yes", "--force"]).await.assert_failure();
    assert_says(&removal, &["Another update is currently in progress. alice"]);

    let preview = colleague.run(["preview"]).await.assert_success();
    assert_says(&preview, &["to create"]);
    let now = stack(&app, "busy").await;
    assert_eq!((&now["version"], &now["currentOperation"]["kind"]), (&0.into(), &"update".into()), "{now}");

    up.resume();
    up.wait().await.assert_success();
    assert_eq!(stack(&app, "busy").await["version"], 1);
    let listed = colleague.run(["stack", "ls", "--json"]).await.assert_success().json();
    assert_eq!(listed[0]["updateInProgress"], false, "{listed}");
    assert_eq!(names(&export(&cli).await), ["busy-dev", "default", "item-00000", "item-00001", "item-00002"]);
    colleague.run(UP).await.assert_success();
    assert_eq!(stack(&app, "busy").await["version"], 2);
}

/// A laptop that sleeps past the end of its lease must not overwrite what was done meanwhile.
#[tokio::test]
async fn a_client_that_slept_past_its_lease_is_stopped() {
    let app = TestApp::on_manual_clock(BACKEND).await;
    let cli = bench(&app, "sleepy", SLOW).await;
    let colleague = colleague(&app, "sleepy", &[("count", "4"), ("chain", "true"), ("value", "awake")]).await;

    let up = cli.spawn(UP);
    up.says("item-00001 creating").await;
    state_once(&app, "sleepy", |state| pending(state) == ["creating item-00001"]).await;
    up.pause();
    app.advance(Duration::from_secs(301));

    // The colleague starts from what was saved: the first item exists and is not created again.
    let second = colleague.run(UP).await.assert_success();
    assert_says(&second, &["+ 3 created", "~ 1 updated"]);
    let after = state(&app, "sleepy").await;

    up.resume();
    let refused = up.wait().await.assert_failure();
    assert_says(&refused, &["the update ended as failed at", "run the command again"]);
    assert_eq!(state(&app, "sleepy").await, after);
    assert_eq!(stack(&app, "sleepy").await["version"], 2);
}

/// Programs that wait for others rely on recognizing a conflict.
#[tokio::test]
async fn the_automation_api_distinguishes_a_conflict_from_a_failure() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "automated", SLOW).await;
    let up = cli.spawn(UP);
    up.says("item-00000 creating").await;
    state_once(&app, "automated", |state| !pending(state).is_empty()).await;
    up.pause();
    let (python, program) = tools::automation_api();
    let view = async || {
        let arguments = [program.as_os_str(), "dev".as_ref()];
        cli.run_program(python, &arguments).await.assert_success().json()
    };
    let expected = json!({
        "listed": { "dev": true }, "up": "ConcurrentUpdateError", "create": "StackAlreadyExistsError",
        "select": "StackNotFoundError",
    });
    assert_eq!(view().await, expected);
    up.resume();
    up.wait().await.assert_success();
    let seen = view().await;
    assert_eq!((&seen["listed"]["dev"], &seen["up"]), (&json!(false), &json!("done")), "{seen}");
}

/// Every user who sees a stack sees the id of its update. The update still belongs to the user who began it,
/// with each of that user's tokens.
#[tokio::test]
async fn an_update_is_its_users_though_others_see_its_id() {
    let app = TestApp::on(BACKEND).await;
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    let abe = app.member_with_role(Role::Apply, "abe", "ci").await;
    let cli = bench(&app, "owned", SLOW).await.token(ann);
    let colleague = cli.clone().token(&abe);
    let up = cli.spawn(UP);
    up.says("item-00000 creating").await;
    state_once(&app, "owned", |state| !pending(state).is_empty()).await;
    up.pause();

    let seen = app.get("/api/stacks/acme/owned/dev").token(&abe).send().await.expect(200);
    let path = format!("/api/stacks/acme/owned/dev/update/{}", seen["activeUpdate"].as_str().unwrap());
    let start = json!({ "journalVersion": 2 });
    let words = app.post(&path, &start).token(&abe).send().await.refused(409);
    assert!(words.contains("Another update is currently in progress. ann (token \"ci\")"), "{words}");
    let refused = colleague.run(["cancel", "--yes"]).await.assert_failure();
    assert_says(&refused, &["canceling another user's update needs the role member"]);
    let (login, name) = (Login::parse("ann").unwrap(), TokenName::parse("second").unwrap());
    let second = tokens::create_token(&app.context, &login, &name, None).await.unwrap();
    let started = app.post(&path, &start).token(&second).send().await.expect(200);
    assert!(started["token"].is_string(), "{started}");

    up.resume();
    up.wait().await.assert_success();
    assert_eq!(
        names(&export(&cli).await),
        ["owned-dev", "default", "item-00000", "item-00001", "item-00002"]
    );
}

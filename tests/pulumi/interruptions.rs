//! Clients that are stopped: by their user, by another one.

use statewright_tests::app::TestApp;
use statewright_tests::cli::PulumiCli;

use crate::BACKEND;
use crate::support::{UP, assert_says, bench, export, history, names, pending, state, state_once};

/// Items one after the other, each of which takes longer than a test waits.
const ENDLESS: &[(&str, &str)] = &[("count", "3"), ("chain", "true"), ("delayMs", "600000")];

/// The same, slow enough for another client to interfere.
const SLOW: &[(&str, &str)] = &[("count", "3"), ("chain", "true"), ("delayMs", "1200")];

/// A client that is interrupted twice exits at once, and its running step stays pending.
#[tokio::test]
async fn a_client_interrupted_twice_leaves_its_step_pending() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "twice", ENDLESS).await;
    let up = cli.spawn(UP);
    up.says("item-00000 creating").await;
    state_once(&app, "twice", |state| pending(state) == ["creating item-00000"]).await;
    up.interrupt();
    up.says("press ^C again").await;
    up.interrupt();
    let stopped = up.wait().await.assert_failure();
    assert_says(&stopped, &["^C received; terminating", "error: update cancelled"]);
    let state = export(&cli).await;
    assert_eq!(names(&state), ["twice-dev", "default"]);
    assert_eq!(pending(&state), ["creating item-00000"]);
    assert_eq!(history(&cli).await, ["update failed"]);

    // The stack is free at once, and the pending operation stays until a user has checked its outcome.
    cli.bench_project("twice", &[("count", "3"), ("chain", "true")]);
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["with 1 pending operations from previous deployment", "+ 3 created"]);
    assert_eq!(pending(&export(&cli).await), ["creating item-00000"]);
    assert_eq!(history(&cli).await, ["update succeeded", "update failed"]);
}

/// Only members of the organization may cancel; the client notices at its next write.
#[tokio::test]
async fn an_update_is_cancelled_by_another_member_only() {
    for (project, setting) in [("journaled", None), ("saved", Some("PULUMI_DISABLE_JOURNALING"))] {
        let app = TestApp::on(BACKEND).await;
        let mut cli = bench(&app, project, SLOW).await;
        if let Some(setting) = setting {
            cli = cli.env(setting, "true");
        }
        let user = async |token: String| {
            let cli = PulumiCli::new().backend(&app.url).token(token);
            cli.bench_project(project, &[("count", "3"), ("chain", "true")]);
            cli
        };
        let stranger = user(app.other_user("mallory", "elsewhere").await).await;
        let member = user(app.member("bob", "laptop").await).await;
        let cancel = ["cancel", "--yes", "--stack", "acme/dev"];

        let up = cli.spawn(UP);
        up.says("item-00001 creating").await;
        state_once(&app, project, |state| pending(state) == ["creating item-00001"]).await;
        // Paused for as long as the others take.
        up.pause();
        let refused = stranger.run(cancel).await.assert_failure();
        assert_says(&refused, &["no stack named"]);
        member.run(cancel).await.assert_success();
        let after = state(&app, project).await;
        assert_eq!(names(&after), [&format!("{project}-dev"), "default", "item-00000"]);
        assert_eq!(pending(&after), ["creating item-00001"]);

        up.resume();
        let stopped = up.wait().await.assert_failure();
        assert_says(&stopped, &["bob cancelled the update at", "run the command again"]);
        assert_eq!(state(&app, project).await, after);
        member.run(UP.into_iter().chain(["--stack", "acme/dev"])).await.assert_success();
        assert_eq!(history(&cli).await, ["update succeeded", "update failed"]);
    }
}

//! Functions that are killed while they publish, and functions that are frozen.

use statewright_gateway::Between;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::aws::{Gateway, Play, StandIn};
use statewright_tests::cli::PulumiCli;
use statewright_tests::functions::{Functions, Setting};

use crate::support::{UP, bench, export, resources};

/// I3: the function dies while it stores the snapshot. The client retries, and another process continues from
/// the seal.
#[tokio::test]
async fn a_clients_retry_finishes_the_publish_of_a_killed_function() {
    let functions = Functions::start().await;
    let aws = functions.aws("head");
    let cli = bench(&functions, "killed", &[("count", "5")]).await;
    aws.play("PUT", 1, Play::HoldTheAnswer);
    let up = cli.spawn(UP);
    aws.asked_for("PUT", 1).await;
    let before = functions.gateway().processes_started("head");
    functions.gateway().kill("head");
    up.wait().await.assert_success();
    assert!(functions.gateway().processes_started("head") > before, "another process finished it");
    assert_eq!(resources(&export(&cli).await).len(), 7);
    let history = cli.run(["stack", "history", "--json"]).await.assert_success().json();
    assert_eq!(history.as_array().map(Vec::len), Some(1), "one version: {history}");
}

/// I3: a server that shares the store dies while it publishes, and so does its client. The schedule's event
/// finishes the update.
#[tokio::test]
async fn the_sweep_finishes_an_update_whose_publisher_and_client_died() {
    let stand_in = StandIn::of_this_process();
    let names = stand_in.fresh_store().await.1;
    let aws = Gateway::before(stand_in).await;
    // Its clock is months behind that of the functions, so that no test has to wait for the end of a lease.
    let app = TestApp::aws_long_ago(&aws.url, &names).await;
    let cli = PulumiCli::new().backend(&app.url).token(&app.token);
    cli.bench_project("left", &[("count", "5")]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    aws.play("PUT", 1, Play::HoldTheAnswer);
    let up = cli.spawn(UP);
    aws.asked_for("PUT", 1).await;
    drop(app);
    up.kill().await;

    let functions = Functions::start_as(Setting { names: Some(names), ..Setting::default() }).await;
    let swept = functions.sweep().await.unwrap();
    assert_eq!((&swept["ended"], &swept["failed"]), (&1.into(), &0.into()), "{swept}");
    let cli = cli.backend(&functions.url).token(&functions.token);
    let state =
        cli.run(["stack", "export", "--stack", &format!("{ORG}/left/dev")]).await.assert_success().json();
    assert_eq!(resources(&state).len(), 7, "{state}");
    let swept = functions.sweep().await.unwrap();
    assert_eq!(swept["ended"], 0, "{swept}");
}

#[tokio::test]
async fn a_function_makes_no_calls_after_its_answer() {
    let setting = Setting { between: Between::Frozen, ..Setting::default() };
    let functions = Functions::start_as(setting).await;
    let cli = bench(&functions, "frozen", &[("count", "3")]).await;
    cli.run(UP).await.assert_success();
    // Work left over in a stopped process would be done when it continues, before the calls of the next event.
    let calls = || ["read", "admin"].map(|name| functions.aws(name).seen().len());
    let before = calls();
    let http = reqwest::Client::new();
    for path in ["/api/capabilities", "/healthz"] {
        let answer = http.get(format!("{}{path}", functions.url)).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    assert_eq!(calls(), before, "these two routes call no service");
}

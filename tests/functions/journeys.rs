//! The real client through the functions.

use std::process::Stdio;

use serde_json::Value;
use statewright_gateway::{Between, GatewayKind};
use statewright_tests::aws::StandIn;
use statewright_tests::cli::PulumiCli;
use statewright_tests::functions::Functions;
use statewright_tests::functions::{Behind, Setting};
use statewright_tests::tools;

use crate::support::{DESTROY, UP, bench, export, resources};

/// A stack's life: its start, secrets in its configuration, two updates, a preview, a refresh, its history, a
/// rename and its end.
pub(crate) async fn life(functions: &Functions) {
    let cli = bench(functions, "life", &[("count", "10"), ("secretEvery", "3")]).await;
    cli.run(["config", "set", "--secret", "password", "in-the-dark"]).await.assert_success();
    cli.run(UP).await.assert_success();
    let first = export(&cli).await;
    assert_eq!(resources(&first).len(), 12, "ten items, their stack and their provider: {first}");
    assert!(!first.to_string().contains("in-the-dark"));

    cli.run(["preview"]).await.assert_success();
    cli.run(["refresh", "--yes", "--skip-preview"]).await.assert_success();
    cli.run(["stack", "tag", "set", "team", "web"]).await.assert_success();
    cli.run(["stack", "rename", "acme/life/prod"]).await.assert_success();
    let password = cli.run(["config", "get", "password"]).await.assert_success();
    assert_eq!(password.stdout.trim(), "in-the-dark");
    let history = cli.run(["stack", "history", "--json"]).await.assert_success().json();
    assert!(history.as_array().is_some_and(|history| history.len() >= 3), "{history}");

    cli.run(DESTROY).await.assert_success();
    cli.run(["stack", "rm", "--yes"]).await.assert_success();
}

#[tokio::test]
async fn a_stack_lives_through_an_http_api() {
    life(&Functions::start().await).await;
}

#[tokio::test]
async fn a_stack_lives_behind_a_load_balancer() {
    life(&Functions::start_as(Setting { kind: GatewayKind::Balancer, ..Setting::default() }).await).await;
}

#[tokio::test]
async fn a_stack_lives_through_function_urls_of_a_stage_with_a_name() {
    let (kind, stage) = (GatewayKind::FunctionUrl, Some("live".to_owned()));
    life(&Functions::start_as(Setting { kind, stage, ..Setting::default() }).await).await;
}

#[tokio::test]
async fn a_stack_works_when_every_function_is_cold() {
    let functions = Functions::start_as(Setting { between: Between::Killed, ..Setting::default() }).await;
    life(&functions).await;
    assert!(functions.gateway().processes_started("log") > 10, "each event has a process of its own");
}

#[tokio::test]
async fn a_stack_lives_when_processes_are_frozen_between_requests() {
    life(&Functions::start_as(Setting { between: Between::Frozen, ..Setting::default() }).await).await;
}

#[tokio::test]
async fn the_operator_creates_the_first_token() {
    let functions = Behind::start(Setting::default()).await;
    let environment = StandIn::of_this_process().environment(&functions.names);
    let stdout_of = async |arguments: &[&str]| {
        let mut command = tokio::process::Command::new(tools::statewright());
        command.args(arguments).arg("--json").env_clear().stdin(Stdio::null()).envs(environment.clone());
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let client = |token: &str| PulumiCli::new().backend(functions.url()).token(token);
    client("swt_none").run(["whoami"]).await.assert_failure();
    stdout_of(&["org", "create", "acme"]).await;
    stdout_of(&["user", "create", "alice", "--org", "acme"]).await;
    let token = stdout_of(&["token", "create", "laptop", "--user", "alice"]).await;
    let token = token["token"].as_str().unwrap_or_else(|| panic!("{token}"));
    let who = client(token).run(["whoami"]).await.assert_success();
    assert_eq!(who.stdout.trim(), "alice");
}

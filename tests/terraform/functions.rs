//! The same clients through functions behind an HTTP API.

use serde_json::Value;
use statewright_tests::app::{Backend, ORG, TestApp};

use crate::support::{APPLY, Client, DESTROY, ONE, SLOW, apply_slowly, client_of, go, shown, text, versions};

journeys! {
    a_state_lives_on_functions
    a_state_works_when_every_function_is_cold
    a_run_stops_before_a_state_too_large_for_a_function
}

async fn a_state_lives_on_functions(client: Client) {
    life(TestApp::on(Backend::Functions).await, client).await;
}

async fn a_state_works_when_every_function_is_cold(client: Client) {
    life(TestApp::on(Backend::ColdFunctions).await, client).await;
}

/// A first apply, manual edits of a state, a killed client and its lock, and the end.
async fn life(app: TestApp, client: Client) {
    let cli = client_of(&app, client, "net", ONE).await;
    cli.run(APPLY).await.assert_success();
    let plan = cli.run(["plan", "-detailed-exitcode"]).await.assert_success();
    assert!(plan.stdout.contains("No changes"), "{plan}");
    let listed = cli.run(["state", "list"]).await.assert_success();
    assert_eq!(listed.stdout.trim(), "terraform_data.a");
    let mut pulled = cli.run(["state", "pull"]).await.assert_success().json();
    assert_eq!(pulled, text(&app, "net").await.expect(200));
    pulled["serial"] = 50.into();
    cli.write("push.tfstate", &pulled.to_string());
    cli.run(["state", "push", "push.tfstate"]).await.assert_success();
    assert_eq!(versions(&app).await.len(), 2);

    cli.write("main.tf", &format!("{ONE}{SLOW}"));
    apply_slowly(&cli).await.kill().await;
    go(&cli);
    let lock = shown(&app).await["lock"]["ID"].as_str().unwrap().to_owned();
    cli.run(["plan"]).await.assert_failure();
    cli.run(["force-unlock", "-force", &lock]).await.assert_success();
    cli.run(APPLY).await.assert_success();
    cli.run(DESTROY).await.assert_success();
    let state = shown(&app).await;
    assert_eq!((&state["lock"], &state["current"]["resourceCount"]), (&Value::Null, &0.into()));
}

async fn a_run_stops_before_a_state_too_large_for_a_function(client: Client) {
    let app = TestApp::on(Backend::Functions).await;
    let cli = client_of(&app, client, "net", ONE).await;
    cli.run(APPLY).await.assert_success();
    let mut state = text(&app, "net").await.expect(200);
    state["serial"] = 50.into();
    state["outputs"]["long"] = serde_json::json!({ "value": "x".repeat(3_900_000), "type": "string" });
    app.post(&format!("/tfstate/{ORG}/net"), &state).send().await.expect(200);
    cli.write("main.tf", &format!("{ONE}resource \"terraform_data\" \"b\" {{}}\n"));
    let refused = cli.run(APPLY).await.assert_failure();
    assert!(refused.stderr.contains("413"), "{refused}");
    assert!(!refused.stdout.contains("Creating"), "{refused}");
    assert_eq!(versions(&app).await[0]["serial"], 50);
    cli.run(["plan", "-lock=false"]).await.assert_success();
}

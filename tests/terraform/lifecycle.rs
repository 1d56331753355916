//! A state from its first day to its last.

use serde_json::{Value, json};
use statewright_tests::app::{ORG, USER};

use crate::support::{APPLY, Client, DESTROY, ONE, shown, start, text, versions};

journeys! {
    a_state_is_made_read_and_emptied
    an_apply_leaves_its_records_in_the_trail
}

async fn a_state_is_made_read_and_emptied(client: Client) {
    let (app, cli) = start(client, ONE).await;
    app.take_requests();
    let applied = cli.run(APPLY).await.assert_success();
    assert!(applied.stdout.contains("1 added"), "{applied}");
    let requests = app.take_requests();
    let lines: Vec<&str> = requests.iter().map(String::as_str).collect();
    let expected = [
        "POST /tfstate/acme/net/lock",
        "GET /tfstate/acme/net",
        "GET /tfstate/acme/net",
        "POST /tfstate/acme/net",
        "DELETE /tfstate/acme/net/lock",
    ];
    assert_eq!(lines, expected);

    let plan = cli.run(["plan", "-detailed-exitcode"]).await.assert_success();
    assert!(plan.stdout.contains("No changes"), "{plan}");
    assert_eq!(cli.run(["output", "-raw", "o"]).await.assert_success().stdout, "naïve 🦀");
    let pulled = cli.run(["state", "pull"]).await.assert_success().json();
    assert_eq!(pulled, text(&app, "net").await.expect(200));

    let destroyed = cli.run(DESTROY).await.assert_success();
    assert!(destroyed.stdout.contains("1 destroyed"), "{destroyed}");
    let plan = cli.run(["plan"]).await.assert_success();
    assert!(plan.stdout.contains("1 to add"), "{plan}");

    let state = shown(&app).await;
    assert_eq!(state["lock"], json!(null));
    assert_eq!(state["version"], 2);
    assert_eq!(state["current"]["resourceCount"], 0);
    let versions = versions(&app).await;
    assert_eq!(versions[0]["changes"]["removed"], json!(["terraform_data.a"]));
    assert_eq!(versions[1]["changes"]["added"], json!(["terraform_data.a"]));
    for version in &versions {
        assert_eq!(version["lock"]["operation"], "OperationTypeApply");
        assert_eq!(version["lock"]["version"], client.version());
        assert_eq!(version["terraformVersion"], client.version());
        assert_eq!(version["by"], "alice");
    }
}

async fn an_apply_leaves_its_records_in_the_trail(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.run(APPLY).await.assert_success();
    let trail = app.get(&format!("/api/orgs/{ORG}/auditlogs/v2?state=net/default")).send().await.expect(200);
    let events = trail["auditLogEvents"].as_array().unwrap();
    let of = |event: &Value| {
        let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        (word(&event["event"]), word(&event["description"]))
    };
    let mut seen: Vec<(String, String)> = events.iter().map(of).collect();
    seen.reverse();
    let actions: Vec<&str> = seen.iter().map(|(event, _)| event.as_str()).collect();
    for expected in ["state.create", "state.lock", "state.read", "state.write", "state.unlock"] {
        assert!(actions.contains(&expected), "no {expected} in {seen:?}");
    }
    let at = |action: &str| actions.iter().position(|other| *other == action);
    assert!(at("state.lock") < at("state.write") && at("state.write") < at("state.unlock"), "{seen:?}");
    let (_, written) = seen.iter().find(|(event, _)| event == "state.write").unwrap();
    assert_eq!(written, "net/default: version 1");
    for event in events {
        assert_eq!(event["user"]["githubLogin"], USER, "{event}");
    }
    assert!(!trail.to_string().contains("naïve"), "no value is in a record: {trail}");
}

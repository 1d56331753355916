//! The whole answer of each route's plain case: a changed answer shows here.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_tests::app::{Answer, ORG, TestApp};

use crate::world::{Stack, begin_body, deployment, entry, program};

/// Replaces what differs from run to run, after checking its form.
fn redacted(mut value: Value) -> Value {
    redact(&mut value);
    value
}

fn redact(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(members) => {
            for (name, value) in members {
                let stands_for = match (name.as_str(), value.as_str()) {
                    ("id" | "updateID" | "updateId" | "activeUpdate", Some(text)) if is_uuid(text) => {
                        "[uuid]"
                    }
                    ("token", Some(text)) if text.starts_with("swu1.") && text.split('.').count() == 4 => {
                        "[update token]"
                    }
                    ("ciphertext", Some(text)) if is_base64(text) => "[ciphertext]",
                    ("bytes", None) if value.as_u64().is_some_and(|bytes| bytes > 0) => "[bytes]",
                    _ => {
                        redact(value);
                        continue;
                    }
                };
                *value = stands_for.into();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

fn is_base64(text: &str) -> bool {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).is_ok_and(|bytes| !bytes.is_empty())
}

/// Compares a whole answer: the status, and the body except for what differs from run to run.
macro_rules! assert_answer {
    ($name:literal, $answer:expr) => {
        let answer: Answer = $answer;
        let body = if answer.bytes.is_empty() { Value::Null } else { redacted(answer.value()) };
        insta::assert_json_snapshot!($name, json!({ "status": answer.status.as_u16(), "body": body }));
    };
}

/// A stack of the project `shop`, so that its answers are the same in every run.
async fn shop(app: &TestApp) -> Stack<'_> {
    Stack::in_project(app, "shop").await
}

#[tokio::test]
async fn answers_about_the_account_stay_the_same() {
    let app = TestApp::memory().await;
    assert_answer!("capabilities", app.get("/api/capabilities").send().await);
    assert_answer!("cli_version", app.get("/api/cli/version").send().await);
    assert_answer!("health", app.get("/healthz").send().await);
    assert_answer!("user", app.get("/api/user").send().await);
    assert_answer!("default_organization", app.get("/api/user/organizations/default").send().await);
    assert_answer!("no_credentials", app.get("/api/user").anonymous().send().await);
    assert_answer!("not_supported", app.get("/api/orgs/acme/hooks").send().await);
}

#[tokio::test]
async fn answers_about_stacks_stay_the_same() {
    let app = TestApp::memory().await;
    let path = format!("/api/stacks/{ORG}/shop");
    let body = json!({ "stackName": "dev", "tags": { "pulumi:runtime": "yaml" } });
    assert_answer!("create_stack", app.post(&path, &body).send().await);
    assert_answer!("create_stack_again", app.post(&path, &body).send().await);
    let dev = format!("{path}/dev");
    assert_answer!("get_stack", app.get(&dev).send().await);
    assert_answer!("get_stack_missing", app.get(&format!("{path}/prod")).send().await);
    assert_answer!("list_stacks", app.get("/api/user/stacks").send().await);
    assert_answer!("set_tags", app.patch(&format!("{dev}/tags"), &json!({ "a": "b" })).send().await);
    assert_answer!("export_empty", app.get(&format!("{dev}/export")).send().await);
    assert_answer!("outputs_empty", app.get(&format!("{dev}/outputs")).send().await);
    assert_answer!("history_empty", app.get(&format!("{dev}/updates?pageSize=10&page=1")).send().await);
    assert_answer!("latest_update_missing", app.get(&format!("{dev}/updates/latest")).send().await);
    assert_answer!("policy_packs", app.get(&format!("{dev}/policypacks")).send().await);
    for (project, status) in [("shop", 200), ("none", 404)] {
        let head = app.request(Method::HEAD, &format!("/api/stacks/{ORG}/{project}")).send().await;
        assert_eq!((head.status.as_u16(), head.bytes.len()), (status, 0), "{project}");
    }
    let gone = app.request(Method::DELETE, &format!("{dev}?force=false")).send().await;
    assert_answer!("delete_stack", gone);
}

#[tokio::test]
async fn answers_about_secrets_stay_the_same() {
    let app = TestApp::memory().await;
    let stack = shop(&app).await;
    let sealed = stack.post("/encrypt", &json!({ "plaintext": "c2VjcmV0" })).send().await;
    let ciphertext = sealed.value();
    assert_answer!("encrypt", sealed);
    assert_answer!("decrypt", stack.post("/decrypt", &ciphertext).send().await);
    let foreign = json!({ "ciphertext": "AQAAAAE=" });
    assert_answer!("decrypt_foreign", stack.post("/decrypt", &foreign).send().await);
    let name = json!({ "secretName": "shop:password" });
    assert_answer!("log_decryption", stack.post("/decrypt/log-decryption", &name).send().await);
    let command = json!({ "commandName": "stack output" });
    assert_answer!(
        "log_batch_decryption",
        stack.post("/decrypt/log-batch-decryption", &command).send().await
    );
}

#[tokio::test]
async fn answers_of_an_update_stay_the_same() {
    let app = TestApp::memory().await;
    let stack = shop(&app).await;
    let mut program = program(false);
    program["metadata"] = json!({ "message": "deploy", "environment": { "git.head": "0123abc" } });
    program["config"] = json!({ "shop:size": { "string": "3", "secret": false, "object": false } });
    let created = stack.post("/update", &program).send().await;
    let id = created.value()["updateID"].as_str().unwrap().to_owned();
    assert_answer!("create_update", created);
    let path = format!("{}/update/{id}", stack.path);
    assert_answer!("update_not_started", app.get(&path).send().await);
    let started = app.post(&path, &json!({ "journalVersion": 2 })).send().await;
    let token = started.value()["token"].as_str().unwrap().to_owned();
    assert_answer!("start_update", started);
    assert_answer!("get_stack_running", stack.get("").send().await);
    assert_answer!("update_running", app.get(&path).send().await);
    assert_answer!("begin_update_refused", stack.begin_call("update", false).send().await);

    let root = json!({
        "urn": "urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev", "custom": false, "type": "pulumi:pulumi:Stack",
        "outputs": { "url": "https://shop.example" },
    });
    let providers =
        json!({ "operationID": 0, "secretsProvider": { "type": "service", "state": { "project": "shop" } } });
    let entries = json!({ "entries": [entry(1, 6, &providers), entry(2, 1, &json!({ "state": root })), stack.made(3, "a")] });
    let to_update = |method: Method, tail: &str, body: &Value| {
        app.request(method, &format!("{path}/{tail}")).update_token(&token).json(body)
    };
    app.advance(Duration::from_secs(150));
    assert_answer!("journal_entries", to_update(Method::PATCH, "journalentries", &entries).send().await);
    let events = json!({ "events": [
        { "sequence": 0, "timestamp": 1, "preludeEvent": { "config": {} } },
        { "sequence": 1, "timestamp": 2, "summaryEvent": { "resourceChanges": { "create": 2 } } },
    ] });
    assert_answer!("events_batch", to_update(Method::POST, "events/batch", &events).send().await);
    let renew = json!({ "token": "", "duration": 300 });
    assert_answer!("renew_lease", to_update(Method::POST, "renew_lease", &renew).send().await);
    assert_answer!(
        "complete",
        to_update(Method::POST, "complete", &json!({ "status": "succeeded" })).send().await
    );
    assert_answer!(
        "renew_lease_of_an_ended_update",
        to_update(Method::POST, "renew_lease", &renew).send().await
    );

    assert_answer!("update_succeeded", app.get(&path).send().await);
    assert_answer!("events", app.get(&format!("{path}/events")).send().await);
    assert_answer!("export", stack.get("/export").send().await);
    assert_answer!("export_version", stack.get("/export/1").send().await);
    assert_answer!("export_version_missing", stack.get("/export/2").send().await);
    assert_answer!("outputs", stack.get("/outputs").send().await);
    assert_answer!("history", stack.get("/updates?pageSize=10&page=1").send().await);
    assert_answer!("latest_update", stack.get("/updates/latest").send().await);
    assert_answer!("list_stacks_updated", app.get("/api/user/stacks").send().await);
    assert_answer!("cancel_of_an_ended_update", app.post(&format!("{path}/cancel"), &json!({})).send().await);
    let remove = app.request(Method::DELETE, &format!("{}?force=false", stack.path)).send().await;
    assert_answer!("delete_stack_with_resources", remove);
}

#[tokio::test]
async fn answers_of_each_kind_of_update_stay_the_same() {
    let app = TestApp::memory().await;
    let stack = shop(&app).await;
    for kind in ["preview", "refresh", "destroy"] {
        let created = stack.post(&format!("/{kind}"), &program(kind == "preview")).send().await;
        assert_answer!("create_other_update", created);
    }
    let mut whole = begin_body("destroy", false);
    whole["journalVersion"] = Value::Null;
    let begun = stack.post("/begin-update", &whole).send().await;
    let path = format!("{}/update/{}", stack.path, begun.value()["updateID"].as_str().unwrap());
    let token = begun.value()["token"].as_str().unwrap().to_owned();
    assert_answer!("begin_update", begun);
    let mut checkpoint = deployment(&[stack.resource("a")]);
    checkpoint["isInvalid"] = false.into();
    let call = app.patch(&format!("{path}/checkpoint"), &checkpoint).update_token(&token);
    assert_answer!("checkpoint", call.send().await);
    assert_answer!("cancel", app.post(&format!("{path}/cancel"), &json!({})).send().await);
    let imported = stack.post("/import", &deployment(&[stack.resource("b")])).send().await;
    let path = format!("{}/update/{}", stack.path, imported.value()["updateId"].as_str().unwrap());
    assert_answer!("import", imported);
    assert_answer!("update_of_an_import", app.get(&path).send().await);
    assert_answer!("begin_update_with_a_base", stack.begin_call("update", true).send().await);
}

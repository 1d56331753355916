//! What tests of the console share: how people sign in, and what they look at, made without a client.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::domain::names::Login;
use statewright_shared::services::identity::passwords;

use crate::app::{ORG, TestApp, USER};
use crate::browser::Chromium;

/// The password of everybody who signs in.
pub const PASSWORD: &str = "correct horse battery";

/// A browser in which [`USER`] is signed in, at this path of the console.
pub async fn signed_in(app: &TestApp, path: &str) -> (Chromium, String) {
    signed_in_as(app, USER, path).await
}

/// A browser in which this user is signed in, at this path, and the address of the console.
pub async fn signed_in_as(app: &TestApp, login: &str, path: &str) -> (Chromium, String) {
    let console = app.console().await;
    let page = signed_in_at(app, login, &format!("{console}{path}")).await;
    (page, console)
}

/// A browser that opened this address of a console, signed in, and was led back to it.
pub async fn signed_in_at(app: &TestApp, login: &str, url: &str) -> Chromium {
    let mut page = led_to_sign_in(app, login, url).await;
    page.fill("input[name=login]", login).await;
    page.fill("input[name=password]", PASSWORD).await;
    page.press("Enter").await;
    page.arrives(url).await;
    page
}

/// As [`signed_in_as`], by keyboard alone.
pub async fn signed_in_by_keys(app: &TestApp, login: &str, path: &str) -> (Chromium, String) {
    let console = app.console().await;
    let url = format!("{console}{path}");
    let mut page = led_to_sign_in(app, login, &url).await;
    page.signs_in_by_keys(login, PASSWORD).await;
    page.arrives(&url).await;
    (page, console)
}

/// Gives the user a password, and opens this address. Every address leads to the page of sign-ins, and back.
async fn led_to_sign_in(app: &TestApp, login: &str, url: &str) -> Chromium {
    let user = Login::parse(login).expect("valid");
    passwords::set(&app.context, &user, PASSWORD).await.expect("the user may have it");
    let mut page = Chromium::start();
    page.open(url).await;
    page.sees("input[name=login]").await;
    // The first request was refused, which is an error of the browser's console.
    page.run(&json!({ "command": "problems" })).await;
    page
}

/// The API's path of the stack `dev` of a project.
fn stack_path(project: &str) -> String {
    format!("/api/stacks/{ORG}/{project}/dev")
}

/// Makes the stack `dev` of this project.
pub async fn make_stack(app: &TestApp, project: &str) {
    let new = json!({ "stackName": "dev" });
    app.post(&format!("/api/stacks/{ORG}/{project}"), &new).send().await.expect(200);
}

/// A secret with this value, as the state of that stack has it.
pub async fn secret(app: &TestApp, project: &str, value: &Value) -> Value {
    let plaintext = json!({ "plaintext": STANDARD.encode(value.to_string()) });
    let sealed_value = app.post(&format!("{}/encrypt", stack_path(project)), &plaintext).send().await;
    sealed(&sealed_value.expect(200)["ciphertext"])
}

/// A secret with this ciphertext.
pub fn sealed(ciphertext: &Value) -> Value {
    let kind = "1b47061264138c4ac30d75fd1eb44270";
    json!({ "4dabf18193072939515e22adb298388d": kind, "ciphertext": ciphertext })
}

/// Stores the next version of that stack, with these outputs.
pub async fn save_outputs(app: &TestApp, project: &str, outputs: &Value) {
    let root = json!({
        "urn": format!("urn:pulumi:dev::{project}::pulumi:pulumi:Stack::{project}-dev"),
        "type": "pulumi:pulumi:Stack", "custom": false, "outputs": outputs,
    });
    let key = json!({ "type": "service", "state": { "owner": ORG, "project": project, "stack": "dev" } });
    save(app, project, &json!({ "secrets_providers": key, "resources": [root] })).await;
}

/// Stores the next version of that stack, with these resources.
pub async fn save_resources(app: &TestApp, project: &str, resources: &[Value]) {
    save(app, project, &json!({ "resources": resources })).await;
}

async fn save(app: &TestApp, project: &str, deployment: &Value) {
    let mut state = json!({ "version": 3, "deployment": deployment });
    state["deployment"]["manifest"] = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
    let call = app.request(Method::POST, &format!("{}/import", stack_path(project)));
    call.gzip(state.to_string().as_bytes()).send().await.expect(200);
}

/// A Terraform state with one resource of this address range.
pub fn tfstate(serial: u64, range: &str) -> Value {
    let instance = json!({ "schema_version": 0, "attributes": { "id": "vpc-1", "cidr": range } });
    json!({
        "version": 4, "terraform_version": "1.12.6", "serial": serial,
        "lineage": "11111111-2222-4333-8444-555555555555",
        "outputs": { "password": { "value": "hunter2", "type": "string", "sensitive": true } },
        "resources": [{
            "mode": "managed", "type": "aws_vpc", "name": "main",
            "provider": "provider[\"example.com/hashicorp/aws\"]", "instances": [instance],
        }],
    })
}

/// A lock for an apply, as a client asks for it.
pub fn tflock(who: &str) -> Value {
    json!({
        "ID": "8a7f2c1e-3b4d-4e5f-9a8b-7c6d5e4f3a2b", "Operation": "OperationTypeApply", "Info": "",
        "Who": who, "Version": "1.12.6", "Created": "2026-01-01T00:00:00Z", "Path": "",
    })
}

/// Sends a state or a lock to this path, as a client does.
pub async fn send_state(app: &TestApp, path: &str, body: &Value) {
    let call = app.post(path, body).anonymous().header("Authorization", &format!("Bearer {}", app.token));
    let answer = call.send().await;
    assert_eq!(answer.status.as_u16(), 200, "{}", answer.text());
}

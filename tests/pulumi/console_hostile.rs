//! Texts of clients and of other people that try to be markup, to turn what is around them, or to be wider than
//! the page: on every page of the console that shows such a text.

use reqwest::Method;
use serde_json::{Value, json};
use statewright_tests::app::{Call, ORG, TestApp};
use statewright_tests::browser::Chromium;
use statewright_tests::issuer::Issuer;

use crate::BACKEND;
use crate::console::signed_in;

/// Tries to be markup, and to turn what follows.
const MARKUP: &str = "<img src=x onerror=alert(1)>\u{202e}turned";

/// A name that tries it.
const NAME: &str = "<script>alert(2)</script>\u{202e}name";

const URN: &str = "urn:pulumi:dev::web::pkg:m:T::<script>alert(2)</script>\u{202e}name";

/// A README whose links do something.
const README: &str = "[one](javascript:alert(5)) [two](JavaScript&colon;alert(6)) <javascript:alert(7)> \
    ![three](javascript:alert(8)) [four](data:text/html,<script>alert(9)</script>)";

/// Characters of the longest texts.
const LENGTH: usize = 10_000;

async fn done(call: Call<'_>) -> Value {
    let answer = call.send().await;
    assert!(answer.status.is_success(), "{} {}", answer.status, answer.text());
    if answer.bytes.is_empty() { Value::Null } else { answer.value() }
}

/// A stack whose names, values, tags, message and output try everything.
async fn stack(app: &TestApp) {
    let (projects, long) = (format!("/api/stacks/{ORG}/web"), "x".repeat(LENGTH));
    let path = format!("{projects}/dev");
    done(app.post(&projects, &json!({ "stackName": "dev" }))).await;
    let root = "urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev";
    let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
    for value in ["before", MARKUP] {
        let values = json!({ (MARKUP): value, "long": long });
        let outputs = json!({ (MARKUP): value, "long": long, "readme": README });
        let resources = json!([
            { "urn": root, "type": "pulumi:pulumi:Stack", "custom": false, "outputs": outputs },
            {
                "urn": URN, "type": "pkg:m:T", "custom": true, "id": MARKUP, "parent": root,
                "inputs": values, "outputs": values,
            },
            {
                "urn": format!("urn:pulumi:dev::web::pkg:m:T::{long}"), "type": "pkg:m:T", "custom": true,
                "id": long, "parent": root, "dependencies": [URN],
            },
        ]);
        let deployment = json!({ "manifest": manifest, "resources": resources });
        let state = json!({ "version": 3, "deployment": deployment }).to_string();
        done(app.request(Method::POST, &format!("{path}/import")).gzip(state.as_bytes())).await;
    }

    let environment = json!({
        "git.headName": format!("refs/heads/{MARKUP}"), "git.author": MARKUP, "ci.system": MARKUP,
        "ci.build.url": "javascript:alert(3)",
    });
    let program = json!({
        "name": "web", "runtime": "yaml", "main": "", "description": "",
        "config": { "web:key": { "string": MARKUP, "secret": false, "object": false } },
        "options": { "dryRun": false, "parallel": 16 },
        "metadata": { "message": format!("{MARKUP} {long}"), "environment": environment },
    });
    let begin = json!({
        "updateKind": "update", "program": program, "journalVersion": 2, "tags": { "team": MARKUP },
    });
    let begun = done(app.post(&format!("{path}/begin-update"), &begin)).await;
    let update = format!("{path}/update/{}", begun["updateID"].as_str().unwrap());
    let token = begun["token"].as_str().unwrap();
    let said = json!({
        "urn": URN, "severity": "error", "color": "raw", "message": format!("{MARKUP} {long}"),
    });
    let events = json!({ "events": [{ "sequence": 1, "timestamp": 1, "diagnosticEvent": said }] });
    let batch = app.request(Method::POST, &format!("{update}/events/batch")).update_token(token);
    done(batch.gzip(events.to_string().as_bytes())).await;
    let ended = app.post(&format!("{update}/complete"), &json!({ "status": "succeeded" }));
    done(ended.update_token(token)).await;
    let protection = app.request(Method::PUT, &format!("{path}/protection"));
    done(protection.json(&json!({ "reason": MARKUP }))).await;
}

/// A state with such names, which is locked.
async fn state(app: &TestApp) {
    let path = format!("/tfstate/{ORG}/net/prod");
    let address = format!("module.net[\"{NAME}\"]");
    for (serial, value) in [(1, "before"), (2, MARKUP)] {
        let instance = json!({
            "index_key": MARKUP, "schema_version": 0,
            "attributes": { "id": value, "long": "x".repeat(LENGTH) },
        });
        let state = json!({
            "version": 4, "terraform_version": "1.12.6", "serial": serial,
            "lineage": "11111111-2222-4333-8444-555555555555",
            "outputs": { "text": { "value": MARKUP, "type": "string" } },
            "resources": [{
                "module": address, "mode": "managed", "type": "aws_subnet", "name": "all",
                "provider": "provider[\"example.com/hashicorp/aws\"]", "instances": [instance],
            }],
        });
        done(bearing(app, app.post(&path, &state))).await;
    }
    let lock = json!({
        "ID": "8a7f2c1e-3b4d-4e5f-9a8b-7c6d5e4f3a2b", "Operation": MARKUP, "Info": "y".repeat(500),
        "Who": MARKUP, "Version": MARKUP, "Created": "2026-01-01T00:00:00Z", "Path": "",
    });
    done(bearing(app, app.post(&format!("{path}/lock"), &lock))).await;
}

/// The request with the token as clients of states send it.
fn bearing<'a>(app: &TestApp, call: Call<'a>) -> Call<'a> {
    call.anonymous().header("Authorization", &format!("Bearer {}", app.token))
}

/// An environment, a team, a token and an issuer.
async fn organization(app: &TestApp) {
    let environments = format!("/api/esc/environments/{ORG}");
    done(app.post(&environments, &json!({ "project": "shop", "name": "live" }))).await;
    let path = format!("{environments}/shop/live");
    let definition =
        format!("values:\n  text: \"<img src=x onerror=alert(4)>\"\n  long: {}\n", "x".repeat(LENGTH));
    let edited = app.request(Method::PATCH, &path).header("Content-Type", "application/x-yaml");
    done(edited.raw(definition.into_bytes())).await;
    done(app.post(&format!("{path}/tags"), &json!({ "name": "team", "value": MARKUP }))).await;

    let org = format!("/api/orgs/{ORG}");
    let team = json!({ "name": "shop", "displayName": MARKUP, "description": MARKUP });
    done(app.post(&format!("{org}/teams/pulumi"), &team)).await;
    let token = json!({ "name": "ci", "description": MARKUP, "expires": 0, "roleID": "apply" });
    done(app.post(&format!("{org}/tokens"), &token)).await;
    let issuer = Issuer::new("https://ci.example.com");
    let issuer = json!({ "name": MARKUP, "url": issuer.url, "jwks": issuer.key_set() });
    done(app.post(&format!("{org}/oidc/issuers"), &issuer)).await;
}

/// Expects that no text of the page is markup, turns anything, or is wider than the page.
async fn is_harmless(page: &mut Chromium, path: &str) {
    page.has_no_alien_element().await;
    let text = page.text().await;
    assert!(!text.contains('\u{202e}'), "{path} shows a character that turns what follows: {text}");
    // Scripts, images and handlers that are refused are errors of the console.
    assert_eq!(page.run(&json!({ "command": "problems" })).await, json!([]), "{path}");
    for width in [390, 1280] {
        page.run(&json!({ "command": "size", "width": width, "height": 800 })).await;
        let overflows = page.run(&json!({ "command": "overflows" })).await;
        assert_eq!(overflows, json!(false), "{path} is wider than {width} px");
    }
}

#[tokio::test]
async fn texts_of_others_do_no_harm_on_any_page() {
    let app = TestApp::on(BACKEND).await;
    Box::pin(stack(&app)).await;
    Box::pin(state(&app)).await;
    Box::pin(organization(&app)).await;
    let (mut page, console) = signed_in(&app, &format!("/{ORG}")).await;
    let urn: String = URN.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let (markup, name) = (":has-text('onerror=alert(1)')", ":has-text('alert(2)')");
    let (stack, state, environment) = ("web/dev", "-/states/net/prod", "esc/shop/live");
    for (path, seen) in [
        (String::new(), format!("td{markup}")),
        ("-/stacks".to_owned(), format!(".item{markup}")),
        (stack.to_owned(), format!("td{markup}")),
        (stack.to_owned(), format!(".notice{markup}")),
        (stack.to_owned(), format!("dd{markup}")),
        (stack.to_owned(), "section:has(h2:text-is('README')):has-text('four')".to_owned()),
        (format!("{stack}/resources"), format!("[role=treeitem]{name}")),
        (format!("{stack}/resources?urn={urn}"), format!("h2{name}")),
        (format!("{stack}/resources?urn={urn}"), format!("td{markup}")),
        (format!("{stack}/resources?urn={urn}&show=history"), format!(".new{markup}")),
        (format!("{stack}/resources?urn={urn}&show=neighbours"), format!(".node{name}")),
        (format!("{stack}/updates"), format!("td{markup}")),
        (format!("{stack}/updates/3"), format!(".lead{markup}")),
        (format!("{stack}/updates/3?show=diagnostics"), format!(".line{markup}")),
        (format!("{stack}/versions?from=1&to=2"), format!(".new{markup}")),
        (format!("{stack}/settings/options"), format!("td{markup}")),
        (state.to_owned(), format!(".notice{markup}")),
        (format!("{state}/resources"), format!("[role=treeitem]{name}")),
        (format!("{state}/versions?from=1&to=2"), "h1:has-text('prod')".to_owned()),
        ("-/locks".to_owned(), format!("td{markup}")),
        (environment.to_owned(), "textarea[aria-label=Definition]".to_owned()),
        (format!("{environment}/revisions?from=1&to=2"), ".added:has-text('alert(4)')".to_owned()),
        (format!("{environment}/settings"), format!("td{markup}")),
        ("-/environments".to_owned(), format!(".label{markup}")),
        ("-/teams".to_owned(), format!(".step-head{markup}")),
        ("-/tokens?of=organization".to_owned(), format!("td{markup}")),
        ("-/issuers".to_owned(), format!("tr{markup}")),
        ("-/audit".to_owned(), format!("td{markup}")),
        ("-/dependencies".to_owned(), "h1:has-text('Dependencies')".to_owned()),
    ] {
        page.open(format!("{console}/{ORG}/{path}").trim_end_matches('/')).await;
        page.sees(&seen).await;
        is_harmless(&mut page, &path).await;
    }
    // The description of a team is in its closed panel.
    page.open(&format!("{console}/{ORG}/-/teams")).await;
    page.click(".step-head").await;
    page.sees(&format!(".step-body{markup}")).await;
    is_harmless(&mut page, "a team").await;
    // Values that a person opens.
    page.open(&format!("{console}/{ORG}/{environment}/values")).await;
    page.click("button:has-text('Open the values')").await;
    page.sees("td:has-text('alert(4)')").await;
    is_harmless(&mut page, "the opened values").await;
    page.open(&format!("{console}/{ORG}/{state}")).await;
    page.click("button:has-text('Show values')").await;
    page.sees(&format!("code{markup}")).await;
    is_harmless(&mut page, "the values of a state").await;
}

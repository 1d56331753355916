//! Files that a person saves at the console: byte for byte what the API has, under a name that says what it is.

use reqwest::Method;
use serde_json::json;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::console::signed_in;

use crate::BACKEND;

/// A state as no program of ours would write it.
const ODD: &str = "{\n\t\"version\": 4,  \"serial\": 1, \"lineage\": \"11111111-2222-4333-8444-555555555555\",\n\
                   \"terraform_version\":\"1.12.6\", \"outputs\": { \"n\": { \"value\": 1.000, \"type\": \"number\" } },\n\
                   \"resources\": [ ]  }\n";

#[tokio::test]
async fn a_person_saves_exactly_what_the_api_has() {
    let app = TestApp::on(BACKEND).await;
    let stack = format!("/api/stacks/{ORG}/web");
    app.post(&stack, &json!({ "stackName": "dev" })).send().await.expect(200);
    let network = json!({
        "urn": "urn:pulumi:dev::web::pkg:m:T::network", "type": "pkg:m:T", "custom": true, "id": "id-network",
        "inputs": { "text": "ü \u{202e} 🦀" }, "outputs": { "big": 12_345_678_901_234_567_u64 },
    });
    let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
    let deployment = json!({ "manifest": manifest, "resources": [network] });
    let import = app.request(Method::POST, &format!("{stack}/dev/import"));
    let state = json!({ "version": 3, "deployment": deployment }).to_string();
    import.gzip(state.as_bytes()).send().await.expect(200);
    let write = app.request(Method::POST, &format!("/tfstate/{ORG}/net/prod")).anonymous();
    let write = write.header("Authorization", &format!("Bearer {}", app.token));
    let written = write.header("Content-Type", "application/json").raw(ODD.as_bytes().to_vec()).send().await;
    assert_eq!(written.status.as_u16(), 200, "{}", written.text());

    let (mut page, console) = signed_in(&app, &format!("/{ORG}/web/dev/versions")).await;
    let export = app.get(&format!("{stack}/dev/export/1")).send().await;
    assert_eq!(export.headers["content-disposition"], "attachment; filename=\"web-dev-1.json\"");
    page.saves("[aria-label='Download version 1']", "web-dev-1.json", &export.bytes).await;

    page.open(&format!("{console}/{ORG}/-/states/net/prod/versions")).await;
    page.saves("[aria-label='Download version 1']", "net-prod-1.tfstate", ODD.as_bytes()).await;

    // The records of the exports themselves are not among these.
    page.open(&format!("{console}/{ORG}/-/audit?event=state.write")).await;
    page.sees("td:has-text('state.write')").await;
    let trail = format!("/api/orgs/{ORG}/auditlogs/v2/export?eventFilter=state.write&format=csv");
    let records = app.get(&trail).send().await;
    assert!(records.text().contains("state.write"), "{}", records.text());
    let (button, name) = ("[aria-label='Export what is filtered as CSV']", format!("{ORG}-audit.csv"));
    page.saves(button, &name, &records.bytes).await;

    // Each is recorded, as with a token.
    for action in ["stack.export", "state.download", "audit.export"] {
        page.open(&format!("{console}/{ORG}/-/audit?event={action}")).await;
        page.sees(&format!("tr:has-text('{action}'):has-text('browser')")).await;
    }
    let problems = page.run(&json!({ "command": "problems" })).await;
    assert_eq!(problems, json!([]), "errors of the console");
}

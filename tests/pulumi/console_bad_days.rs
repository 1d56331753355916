//! The console when something goes wrong meanwhile: it says what happened, what is safe, and what to do.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use statewright_shared::adapters::{ManualClock, SystemClock};
use statewright_shared::ports::Clock as _;
use statewright_shared::services::maintenance::sweep::sweep;
use statewright_shared::settings::{Retention, Settings};
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::console::{signed_in, signed_in_as};

use crate::BACKEND;
use crate::console::FILTER;

/// The API's path of the stack that these tests have.
fn stack_path() -> String {
    format!("/api/stacks/{ORG}/web/dev")
}

/// Makes the stack `web/dev`, with as many versions.
async fn stack_of(app: &TestApp, versions: usize) {
    let new = json!({ "stackName": "dev" });
    app.post(&format!("/api/stacks/{ORG}/web"), &new).send().await.expect(200);
    for size in 0..versions {
        let network = json!({
            "urn": "urn:pulumi:dev::web::pkg:m:T::network", "type": "pkg:m:T", "custom": true,
            "id": "id-network", "inputs": { "size": size }, "outputs": { "size": size },
        });
        let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
        let deployment = json!({ "manifest": manifest, "resources": [network] });
        let state = json!({ "version": 3, "deployment": deployment }).to_string();
        let call = app.request(Method::POST, &format!("{}/import", stack_path()));
        call.gzip(state.as_bytes()).send().await.expect(200);
    }
}

#[tokio::test]
async fn rights_that_are_taken_meanwhile_are_explained() {
    let app = TestApp::on_manual_clock(BACKEND).await;
    stack_of(&app, 1).await;
    let token = app.member("bob", "laptop").await;
    let (mut page, console) = signed_in_as(&app, "bob", &format!("/{ORG}/web/dev")).await;
    page.click("nav[aria-label='Stack'] a:has-text('Settings')").await;
    page.click("button:text-is('Rename')").await;
    page.fill("[role=alertdialog] input >> nth=1", "prod").await;

    // A process may remember for a minute what somebody may do.
    let member = format!("/api/orgs/{ORG}/members/bob");
    let role = json!({ "role": "view" });
    assert!(app.patch(&member, &role).send().await.status.is_success());
    app.advance(Duration::from_secs(61));
    page.click("[role=alertdialog] button:has-text('Rename it')").await;
    page.sees("[role=alertdialog] [role=alert]:has-text('Not allowed')").await;
    page.sees("[role=alertdialog] [role=alert]:has-text('your rights were changed meanwhile')").await;
    page.check_failure("console-refused", &["status of 403"]).await;
    let typed = page.run(&json!({ "command": "input", "what": "[role=alertdialog] input >> nth=1" })).await;
    assert_eq!(typed, "prod");
    let name = json!({ "newName": "prod", "newProject": "web" });
    let rename = format!("{}/rename", stack_path());
    app.post(&rename, &name).token(&token).send().await.refused(403);
    // What is left is shown, without the buttons that would be refused.
    page.open(&format!("{console}/{ORG}/web/dev/settings/options")).await;
    page.sees("text=Renaming, transferring and deleting need the role member").await;
    page.sees("main:not(:has(button:text-is('Rename')))").await;
    page.open(&format!("{console}/{ORG}/-/audit")).await;
    page.sees("main [role=alert]:has-text('Not allowed')").await;
    page.check_failure("console-not-allowed", &["status of 403"]).await;

    // Somebody who is not a member any more finds nothing.
    assert!(app.request(Method::DELETE, &member).send().await.status.is_success());
    app.advance(Duration::from_secs(61));
    let status = app.get(&stack_path()).token(&token).send().await.status.as_u16();
    assert!(status == 403 || status == 404, "{status}");
    page.open(&format!("{console}/{ORG}/web/dev")).await;
    page.sees("main [role=alert]").await;
    let text = page.text().await;
    assert!(!text.contains("Outputs") && !text.contains("Overview"), "{text}");
    page.has_no_problem_but(&["status of 403", "status of 404"]).await;
}

#[tokio::test]
async fn a_version_that_is_erased_meanwhile_is_named() {
    let retention = Retention { versions: NonZeroU64::new(1), ..Retention::DEFAULT };
    let settings = Settings { retention, ..Settings::default() };
    let app = TestApp::on_with(BACKEND, settings).await;
    stack_of(&app, 2).await;
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/web/dev")).await;
    page.open(&format!("{console}/{ORG}/web/dev/resources?version=1")).await;
    page.sees("text=This is version 1.").await;
    page.sees("[role=treeitem]:has-text('network')").await;

    let mut later = app.process_with(settings);
    later.clock = Arc::new(ManualClock::new(SystemClock.now().plus(Duration::from_secs(3_600))));
    for _ in 0..10 {
        sweep(&later).await.unwrap();
    }
    let erased = app.get(&format!("{}/resources?version=1", stack_path())).send().await.expect(404);
    assert_eq!(erased["reason"], "stack_version_erased", "{erased}");
    page.fill(FILTER, "net").await;
    page.sees("[role=alert]:has-text('This version is erased')").await;
    page.sees("[role=alert]:has-text('Newer versions are kept')").await;
    // The way on is still there.
    page.click("a:has-text('To the current one')").await;
    page.sees("main:not(:has([role=alert]))").await;
    page.sees("[role=treeitem]:has-text('network')").await;
    page.open(&format!("{console}/{ORG}/web/dev/versions?from=1&to=2")).await;
    page.sees("[role=alert]:has-text('This version is erased')").await;
    page.sees("td.strong:text-is('2')").await;
    page.has_no_problem_but(&["status of 404"]).await;
}

#[tokio::test]
async fn a_server_that_is_away_is_waited_for() {
    let app = TestApp::on(BACKEND).await;
    stack_of(&app, 1).await;
    let (mut page, _) = signed_in(&app, &format!("/{ORG}/-/stacks")).await;
    page.sees(".item a:text-is('dev')").await;
    page.away(true).await;
    page.click(".item a:text-is('dev')").await;
    page.sees("[role=alert]:has-text('The server does not answer. Nothing was changed by this page.')").await;
    page.check_failure("console-away", &["net::ERR_CONNECTION_REFUSED"]).await;
    page.away(false).await;
    page.click("button:has-text('Try again')").await;
    page.click("nav[aria-label='Stack'] a:has-text('Settings')").await;

    // Whether a change was made is not known, so the page does not say so, and keeps what was typed.
    page.click("button:has-text('New tag')").await;
    page.fill("[role=alertdialog] input >> nth=0", "team").await;
    page.fill("[role=alertdialog] input >> nth=1", "shop").await;
    page.away(true).await;
    page.click("[role=alertdialog] button:has-text('Add it')").await;
    page.sees("[role=alertdialog] [role=alert]:has-text('it is not known whether this was done')").await;
    page.away(false).await;
    page.click("[role=alertdialog] button:has-text('Add it')").await;
    page.sees("tr:has-text('team'):has-text('shop')").await;
    page.has_no_problem_but(&["net::ERR_CONNECTION_REFUSED"]).await;
}

#[tokio::test]
async fn an_update_that_ends_while_it_is_cancelled_has_ended() {
    let app = TestApp::on(BACKEND).await;
    stack_of(&app, 1).await;
    let program = json!({
        "name": "web", "runtime": "yaml", "main": "", "description": "", "config": {},
        "options": { "dryRun": false, "parallel": 16 }, "metadata": { "message": "", "environment": {} },
    });
    let begin = json!({ "updateKind": "update", "program": program, "journalVersion": 2 });
    let begun = app.post(&format!("{}/begin-update", stack_path()), &begin).send().await.expect(200);
    let update = format!("{}/update/{}", stack_path(), begun["updateID"].as_str().unwrap());
    let (mut page, _) = signed_in(&app, &format!("/{ORG}/web/dev")).await;
    page.sees("text=Update is running").await;
    page.click(".notice button:text-is('Cancel')").await;
    page.sees("[role=alertdialog]").await;
    let complete = app.post(&format!("{update}/complete"), &json!({ "status": "succeeded" }));
    let ended = complete.update_token(begun["token"].as_str().unwrap()).send().await;
    assert!(ended.status.is_success(), "{}", ended.text());
    let refused = app.request(Method::POST, &format!("{update}/cancel")).send().await.expect(409);
    assert_eq!(refused["reason"], "nothing_to_cancel", "{refused}");
    page.fill("[role=alertdialog] textarea", "it hangs").await;
    page.click("[role=alertdialog] button:has-text('Cancel the update')").await;
    page.sees("[role=alertdialog] [role=alert]:has-text('It has ended by itself meanwhile')").await;
    page.click("[role=alertdialog] button:has-text('Leave it')").await;
    page.sees("main:not(:has-text('is running'))").await;
    page.sees(".badge:has-text('Succeeded')").await;
    page.has_no_problem_but(&["status of 409"]).await;
}

#[tokio::test]
async fn a_state_that_no_page_could_hold_is_saved() {
    let app = TestApp::on(BACKEND).await;
    app.post(&format!("/api/stacks/{ORG}/web"), &json!({ "stackName": "dev" })).send().await.expect(200);
    let resource = |name: &str, value: &str| {
        json!({
            "urn": format!("urn:pulumi:dev::web::pkg:m:T::{name}"), "type": "pkg:m:T", "custom": true,
            "id": format!("id-{name}"), "inputs": {}, "outputs": { "value": value },
        })
    };
    let resources = [resource("large", &"x".repeat(32_000_000)), resource("small", "just a word")];
    let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
    let deployment = json!({ "manifest": manifest, "resources": resources });
    let state = json!({ "version": 3, "deployment": deployment }).to_string();
    let call = app.request(Method::POST, &format!("{}/import", stack_path()));
    call.gzip(state.as_bytes()).send().await.expect(200);

    let (mut page, _) = signed_in(&app, &format!("/{ORG}/web/dev/resources")).await;
    page.click("[role=treeitem]:has-text('large')").await;
    page.sees("text=Its properties have 32.0 MB, which is too long for a page").await;
    // The page works on, with all that is not too long.
    page.sees("h2:has-text('Depends on')").await;
    page.click("[role=treeitem]:has-text('small')").await;
    page.sees("code:has-text('just a word')").await;
    page.click("[role=treeitem]:has-text('large')").await;
    page.click("main .notice a:has-text('Versions')").await;
    let whole = app.get(&format!("{}/export/1", stack_path())).send().await;
    assert!(whole.bytes.len() > 32_000_000, "{}", whole.bytes.len());
    page.saves("[aria-label='Download version 1']", "web-dev-1.json", &whole.bytes).await;
    page.sees("td.strong:text-is('1')").await;
}

//! What the pages of the console ask the server for when they are opened. The bill of an hour at the console counts it.

use std::collections::BTreeMap;
use std::fs;

use serde_json::json;
use statewright_shared::api::routes::Route;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::browser::Chromium;
use statewright_tests::console::signed_in;
use statewright_tests::rows::route;

use crate::BACKEND;
use crate::console::PROGRAM;
use crate::support::{UP, yaml};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/console-requests.json");

/// Made again with `UPDATE_PAGES=1 cargo test --workspace --test pulumi pages_ask_for`.
#[tokio::test]
async fn pages_ask_for_what_the_bill_counts() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "web", PROGRAM).await;
    cli.run(UP).await.assert_success();
    cli.run(UP).await.assert_success();
    let home = format!("/{ORG}");
    let (mut page, console) = signed_in(&app, &home).await;
    page.rests().await;
    let stack = format!("{home}/web/dev");
    let mut asked: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, path) in [
        ("home", home.clone()),
        ("list", format!("{home}/-/stacks")),
        ("stack", stack.clone()),
        ("resources", format!("{stack}/resources")),
        ("activity", format!("{stack}/updates")),
        ("update", format!("{stack}/updates/2")),
        ("versions", format!("{stack}/versions?from=1&to=2")),
        ("locks", format!("{home}/-/locks")),
        ("audit", format!("{home}/-/audit")),
    ] {
        app.take_requests();
        page.open(&format!("{console}{path}")).await;
        page.rests().await;
        let row = |route: &Route| format!("{} {}", route.method, route.path);
        let mut rows: Vec<String> =
            app.take_requests().iter().filter_map(|line| route(line)).map(row).collect();
        rows.sort();
        asked.insert(name, rows);
    }
    if std::env::var_os("UPDATE_PAGES").is_some() {
        fs::write(FILE, serde_json::to_string_pretty(&asked).unwrap() + "\n").unwrap();
    }
    let kept: BTreeMap<&str, Vec<String>> =
        serde_json::from_str(include_str!("../data/console-requests.json")).unwrap();
    if std::env::var_os("UPDATE_PAGES").is_none() {
        assert_eq!(asked, kept, "see the command above");
    }
    asks_less_after_a_while(&app, &mut page, &format!("{console}{stack}")).await;
}

/// A running update is asked for as often as the bill counts it, and not at all by a hidden tab.
async fn asks_less_after_a_while(app: &TestApp, page: &mut Chromium, stack: &str) {
    let begin = json!({ "updateKind": "update", "program": {} });
    app.post(&format!("/api/stacks/{ORG}/web/dev/begin-update"), &begin).send().await.expect(200);
    page.has_a_clock().await;
    page.open(&format!("{stack}/updates/3")).await;
    page.sees("span:has-text('followed live')").await;
    page.rests().await;
    page.stops_the_clock().await;
    let first = page.passes(10, "/events").await;
    assert!((9..=11).contains(&first), "{first} requests in ten of the first seconds");
    page.passes(22, "/events").await;
    let later = page.passes(20, "/events").await;
    assert!((3..=5).contains(&later), "{later} requests in twenty seconds after half a minute");

    page.hides(true).await;
    let hidden = page.passes(62, "/api/").await;
    assert_eq!(hidden, 0, "a hidden tab asks");
    page.hides(false).await;
    let again = page.passes(1, "/events").await;
    assert!(again >= 1, "a tab that is looked at again does not ask");
    page.sees("span:has-text('followed live')").await;
}

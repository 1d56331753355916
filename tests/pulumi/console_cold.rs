//! The console and sign-ins with a real provider when every function is cold: each request starts a process, and the
//! pages work all the same. The journeys are those of other files.

use serde_json::json;
use statewright_tests::app::{Backend, ORG, TestApp};
use statewright_tests::console::{make_stack, save_outputs, secret, signed_in};

use crate::{browser, console, console_journeys};

const COLD: Backend = Backend::ColdFunctions;

#[tokio::test]
async fn a_secret_is_shown_when_every_function_is_cold() {
    let app = TestApp::on(COLD).await;
    make_stack(&app, "web").await;
    let password = secret(&app, "web", &json!("hunter2")).await;
    save_outputs(&app, "web", &json!({ "password": password })).await;
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/web/dev")).await;
    page.sees("tr:has-text('password')").await;
    assert!(!page.text().await.contains("hunter2"));
    page.click("tr:has-text('password') button:text-is('Show')").await;
    page.sees("code:has-text('hunter2')").await;
    // It is in the trail.
    page.open(&format!("{console}/{ORG}/-/audit")).await;
    page.sees("tr:has-text('secrets.open'):has-text('browser')").await;
    page.has_no_problem().await;
}

#[tokio::test]
async fn pulumi_logs_in_by_a_browser_when_functions_are_cold() {
    Box::pin(browser::pulumi_logs_in(COLD)).await;
}

#[tokio::test]
async fn a_real_provider_is_not_replayed_to_cold_functions() {
    Box::pin(browser::is_not_replayed_or_mixed_up(COLD)).await;
}

#[tokio::test]
async fn cold_functions_show_a_lock_and_an_edit_of_others() {
    Box::pin(console_journeys::meets_a_lock_and_an_edit(COLD)).await;
}

#[tokio::test]
async fn cold_functions_show_less_to_a_person_with_less() {
    Box::pin(console_journeys::sees_less(COLD)).await;
}

#[tokio::test]
async fn cold_functions_compare_and_restore_a_version() {
    Box::pin(console_journeys::finds_compares_and_restores(COLD)).await;
}

#[tokio::test]
async fn cold_functions_show_an_update_to_its_end() {
    Box::pin(console::watches_to_the_end(COLD)).await;
}

#[tokio::test]
async fn cold_functions_cancel_an_update() {
    drop(Box::pin(console::watches_and_cancels(COLD)).await);
}

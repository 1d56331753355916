//! What the console keeps: a secret that is shown once, what was typed, what was opened, and whose page it is.

use serde_json::json;
use statewright_shared::domain::names::Login;
use statewright_shared::services::identity::passwords;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::browser::Chromium;
use statewright_tests::console::{PASSWORD, make_stack, save_outputs, sealed, secret, signed_in};

use crate::BACKEND;

const ASKED: &str = "[role=alertdialog]:has-text('Leave without saving?')";

/// Opens the page of the organization's tokens, with another page before it.
async fn opens_tokens(page: &mut Chromium, console: &str) {
    page.click("nav[aria-label='Organization'] a:has-text('Teams')").await;
    page.arrives(&format!("{console}/{ORG}/-/teams")).await;
    page.click("nav[aria-label='Organization'] a:has-text('Tokens')").await;
    page.arrives(&format!("{console}/{ORG}/-/tokens")).await;
}

/// Tries to go elsewhere by the keyboard. Nothing opens over a dialog.
async fn tries_to_leave(page: &mut Chromium) {
    page.press("Control+k").await;
    page.rests().await;
    page.sees("body:not(:has(.palette))").await;
    page.back().await;
    page.sees(ASKED).await;
}

#[tokio::test]
async fn a_secret_that_is_shown_once_stays_until_it_is_taken() {
    let app = TestApp::on(BACKEND).await;
    let (mut page, console) = signed_in(&app, &format!("/{ORG}")).await;
    opens_tokens(&mut page, &console).await;
    let tokens = page.url().await;
    page.click("button:has-text('Create a token')").await;
    page.fill("[role=alertdialog] input >> nth=0", "deploys").await;
    tries_to_leave(&mut page).await;
    page.press("Escape").await;
    page.sees(&format!("body:not(:has({ASKED}))")).await;
    let typed = page.run(&json!({ "command": "input", "what": "[role=alertdialog] input >> nth=0" })).await;
    assert_eq!(typed, "deploys");

    page.click("[role=alertdialog] button:has-text('Create the token')").await;
    page.sees(".once code").await;
    let secret = page.value(".once code").await;
    page.press("Escape").await;
    tries_to_leave(&mut page).await;
    page.sees(&format!("{ASKED}:has-text('shown only once')")).await;
    page.press("Escape").await;
    page.sees(&format!("body:not(:has({ASKED}))")).await;
    assert_eq!(page.value(".once code").await, secret);
    assert_eq!(page.url().await, tokens);
    page.click("button:has-text('I have it')").await;
    page.sees("body:not(:has(.once))").await;
    page.sees("tr:has-text('deploys')").await;
    // Nothing is lost any more.
    page.back().await;
    page.arrives(&format!("{console}/{ORG}/-/teams")).await;
    page.has_no_problem().await;
}

#[tokio::test]
async fn a_refusal_is_seen_after_an_early_escape() {
    let app = TestApp::on(BACKEND).await;
    let (mut page, _) = signed_in(&app, &format!("/{ORG}/-/members")).await;
    page.click("button:has-text('Invite')").await;
    page.fill("[role=alertdialog] input", "no such login").await;
    page.hold(true).await;
    page.click("[role=alertdialog] button:has-text('Make the link')").await;
    page.sees("[role=alertdialog] button[aria-disabled='true']:has-text('Make the link')").await;
    page.press("Escape").await;
    page.hold(false).await;
    page.sees("[role=alertdialog] [role=alert]").await;
    let typed = page.run(&json!({ "command": "input", "what": "[role=alertdialog] input" })).await;
    assert_eq!(typed, "no such login");
    page.has_no_problem_but(&["status of 400"]).await;
}

#[tokio::test]
async fn a_form_is_not_sent_for_somebody_else() {
    let app = TestApp::on(BACKEND).await;
    app.member("bob", "laptop").await;
    passwords::set(&app.context, &Login::parse("bob").unwrap(), PASSWORD).await.unwrap();
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/-/members")).await;
    page.click("button:has-text('Invite')").await;
    page.fill("[role=alertdialog] input", "carol").await;
    page.run(&json!({ "command": "forget" })).await;
    page.click("[role=alertdialog] button:has-text('Make the link')").await;
    page.sees("[role=alertdialog] :text('Your session is over')").await;
    page.signs_in_elsewhere(&format!("{console}/signin"), "bob", PASSWORD).await;
    app.take_requests();
    page.click("[role=alertdialog] button:has-text('Make the link')").await;
    page.sees("[role=alertdialog] [role=alert]:has-text('You are signed in as bob now')").await;
    let requests = app.take_requests();
    assert!(!requests.iter().any(|line| line.starts_with("POST ")), "{requests:?}");
    let typed = page.run(&json!({ "command": "input", "what": "[role=alertdialog] input" })).await;
    assert_eq!(typed, "carol");
    page.click("[role=alertdialog] button:has-text('Reload the page')").await;
    page.sees("[aria-label='Your user, bob']").await;
    page.sees("main:not(:has(button:text-is('Invite')))").await;
    page.has_no_problem_but(&["status of 401"]).await;
}

/// Makes the stack `web/dev` with an output of three secrets, of which no key opens the last.
async fn stack_of_secrets(app: &TestApp) {
    make_stack(app, "web").await;
    let mut many = Vec::new();
    for value in ["first", "second"] {
        many.push(secret(app, "web", &json!(value)).await);
    }
    many.push(sealed(&json!("bm90IGEgc2VjcmV0")));
    save_outputs(app, "web", &json!({ "many": many })).await;
}

/// The requests to open secrets since the last call.
fn opened(app: &TestApp) -> usize {
    app.take_requests().iter().filter(|line| line.starts_with("POST ") && line.ends_with("/decrypt")).count()
}

#[tokio::test]
async fn secrets_that_were_opened_are_shown_after_a_refusal() {
    let app = TestApp::on(BACKEND).await;
    stack_of_secrets(&app).await;
    let (mut page, _) = signed_in(&app, &format!("/{ORG}/web/dev")).await;
    page.click("tr:has-text('many') button:text-is('Show')").await;
    page.sees("tr:has-text('many') [role=alert]").await;
    let shown = page.value("tr:has-text('many') code >> nth=1").await;
    assert!(shown.contains("first") && shown.contains("second") && shown.contains('•'), "{shown}");
    page.click("tr:has-text('many') button:text-is('Hide')").await;
    page.sees("main:not(:has-text('second'))").await;

    // Who leaves the page opens nothing more.
    page.rests().await;
    assert_eq!(opened(&app), 3);
    page.hold(true).await;
    page.click("tr:has-text('many') button:text-is('Show')").await;
    page.sees("tr:has-text('many') button[aria-disabled='true']").await;
    page.click("nav[aria-label='Stack'] a:has-text('Settings')").await;
    page.sees("h2:has-text('Name, organization and end')").await;
    page.hold(false).await;
    page.rests().await;
    assert_eq!(opened(&app), 0);
    // Of the secret that no key opens.
    page.has_no_problem_but(&["status of 400"]).await;
}

#[tokio::test]
async fn a_secret_without_a_session_leads_to_the_sign_in() {
    let app = TestApp::on(BACKEND).await;
    stack_of_secrets(&app).await;
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/web/dev")).await;
    page.sees("tr:has-text('many')").await;
    page.run(&json!({ "command": "forget" })).await;
    page.click("tr:has-text('many') button:text-is('Show')").await;
    // Nothing was typed, so nothing is lost.
    page.arrives(&format!("{console}/signin?next=")).await;
    page.has_no_problem_but(&["status of 401"]).await;
}

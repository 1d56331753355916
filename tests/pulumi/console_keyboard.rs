//! Everything that people do at the console, by keyboard alone: no test here clicks, or fills by a selector.
//!
//! What has the focus shows it, and after each dialog the focus is on the page.

use serde_json::json;
use statewright_shared::domain::names::Login;
use statewright_shared::services::identity::passwords;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::browser::Chromium;

use crate::BACKEND;
use crate::console::{PASSWORD, PROGRAM};
use crate::console_states::tfstate;
use crate::support::{UP, bench, names, state, yaml};

/// Signs in, and returns the address of the console.
async fn sign_in(app: &TestApp, page: &mut Chromium) -> String {
    passwords::set(&app.context, &Login::parse(USER).unwrap(), PASSWORD).await.unwrap();
    let console = app.console().await;
    page.open(&format!("{console}/{ORG}")).await;
    page.arrives(&format!("{console}/signin?next=")).await;
    page.reach("textbox", "User").await;
    page.types(USER).await;
    page.press("Tab").await;
    assert_eq!(page.focused().await, "password");
    page.types(PASSWORD).await;
    page.press("Enter").await;
    page.arrives(&format!("{console}/{ORG}")).await;
    page.sees(&format!("h1:text-is('{ORG}')")).await;
    console
}

/// Goes to the place of this name by these letters.
async fn go(page: &mut Chromium, letters: &str, place: &str, url: &str) {
    page.press("Control+k").await;
    page.sees("[placeholder='Stack, state or page']:focus").await;
    page.types(letters).await;
    page.reach_by("ArrowDown", "menuitem", &format!("{place}…")).await;
    page.press("Enter").await;
    page.arrives(url).await;
    page.keeps_focus().await;
}

/// Presses the button that opens a dialog.
async fn asks(page: &mut Chromium, button: &str) {
    page.enter("button", button).await;
    page.sees("[role=alertdialog]").await;
}

/// Opens the menu of a row, and what it offers by this name.
async fn asks_by_menu(page: &mut Chromium, row: &str, item: &str) {
    page.enter("button", row).await;
    page.reach_by("ArrowDown", "menuitem", item).await;
    page.press("Enter").await;
    page.sees("[role=alertdialog]").await;
}

#[tokio::test]
async fn a_person_follows_a_stack_by_keyboard_alone() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "web", PROGRAM).await;
    cli.run(UP).await.assert_success();
    cli.yaml_project("web", &PROGRAM.replace("value: first", "value: second"));
    cli.run(UP).await.assert_success();
    let slow = bench(&app, "slow", &[("count", "120"), ("chain", "true"), ("delayMs", "1000")]).await;
    let mut page = Chromium::start();
    let console = sign_in(&app, &mut page).await;
    let stack = format!("{console}/{ORG}/web/dev");

    // The list, one stack, and a secret of it.
    page.enter("link", "Stacks and states").await;
    page.arrives(&format!("{console}/{ORG}/-/stacks")).await;
    page.reach("searchbox", "Filter by name or label").await;
    page.types("web").await;
    page.sees(".title-row:has-text('1 of 2')").await;
    page.enter("link", "dev").await;
    page.arrives(&stack).await;
    page.enter("button", "Show").await;
    page.sees("code:has-text('hunter2')").await;
    page.keeps_focus().await;
    page.has_focus("button", "Hide").await;
    page.press("Enter").await;
    page.sees("main:not(:has-text('hunter2'))").await;
    page.keeps_focus().await;
    page.has_focus("button", "Show").await;

    // The tree: what is below an item is hidden and shown again, and an item is chosen.
    page.reach_by("Shift+Tab", "link", "Resources").await;
    page.press("Enter").await;
    page.arrives(&format!("{stack}/resources")).await;
    page.sees("[role=treeitem]:has-text('database')").await;
    page.reach("tree", "Resources").await;
    page.press("Home").await;
    page.reach_by("ArrowDown", "treeitem", "web-dev…").await;
    page.press("ArrowLeft").await;
    page.sees(".tree:not(:has([role=treeitem]:has-text('database')))").await;
    page.press("ArrowRight").await;
    page.reach_by("ArrowDown", "treeitem", "database…").await;
    page.press("Enter").await;
    page.sees("h2:has-text('Depends on')").await;
    page.has_focus("tree", "Resources").await;
    page.enter("button", "History").await;
    page.sees(".step:has-text('Update 2') .new:has-text('second')").await;
    page.enter("link", "As it was then").await;
    page.sees("text=This is version 2.").await;
    page.keeps_focus().await;

    // The history, and what one update did.
    page.reach_by("Shift+Tab", "link", "Activity").await;
    page.press("Enter").await;
    page.arrives(&format!("{stack}/updates")).await;
    page.enter("link", "Update 2").await;
    page.arrives(&format!("{stack}/updates/2")).await;
    page.enter("button", "database…").await;
    page.sees(".old:has-text('first')").await;

    // Two versions are compared, and one is restored, after another thought.
    page.reach_by("Shift+Tab", "link", "Versions").await;
    page.press("Enter").await;
    page.arrives(&format!("{stack}/versions")).await;
    page.enter("button", "Compare").await;
    page.sees(".new:has-text('second')").await;
    asks(&mut page, "Restore version 1").await;
    page.press("Escape").await;
    page.keeps_focus().await;
    page.has_focus("button", "Restore version 1").await;
    asks(&mut page, "Restore version 1").await;
    page.enter("button", "Restore it").await;
    page.sees("td.strong:text-is('3')").await;
    page.keeps_focus().await;
    page.has_focus("button", "Restore version 1").await;

    // A running update is found, watched and cancelled. Its buttons go, and the focus stays on the page.
    let up = slow.spawn(UP);
    up.says("item-00001 creating").await;
    let running = format!("{console}/{ORG}/slow/dev");
    go(&mut page, "slow", "slow/dev", &running).await;
    page.enter("link", "Watch it").await;
    page.arrives(&format!("{running}/updates/1")).await;
    page.sees(".step:has-text('item-00000')").await;
    asks(&mut page, "Cancel").await;
    page.enter("button", "Cancel the update").await;
    page.sees(".badge:has-text('Failed')").await;
    page.keeps_focus().await;
    up.wait().await.assert_failure();
    assert!(names(&state(&app, "slow").await).contains(&"item-00000".to_owned()));
}

#[tokio::test]
async fn an_organization_is_run_by_keyboard_alone() {
    let app = TestApp::on(BACKEND).await;
    yaml(&app, "web", PROGRAM).await;
    let environment = json!({ "project": "shop", "name": "live" });
    app.post(&format!("/api/esc/environments/{ORG}"), &environment).send().await.expect(204);
    let lock = json!({
        "ID": "8a7f2c1e-3b4d-4e5f-9a8b-7c6d5e4f3a2b", "Operation": "OperationTypeApply", "Info": "",
        "Who": "carol@build", "Version": "1.12.6", "Created": "2026-01-01T00:00:00Z", "Path": "",
    });
    for (path, body) in [("", tfstate(1, "10.0.0.0/16")), ("/lock", lock)] {
        let call = app.post(&format!("/tfstate/{ORG}/net/prod{path}"), &body).anonymous();
        let call = call.header("Authorization", &format!("Bearer {}", app.token));
        assert_eq!(call.send().await.status.as_u16(), 200);
    }
    let mut page = Chromium::start();
    let console = sign_in(&app, &mut page).await;
    let org = format!("{console}/{ORG}");

    // The row goes with its lock, and the focus stays on the page.
    go(&mut page, "lock", "Locks", &format!("{org}/-/locks")).await;
    page.sees("td:has-text('carol@build')").await;
    asks(&mut page, "Unlock").await;
    page.reach("textbox", "Reason, for the audit trail").await;
    page.types("the build machine is gone").await;
    page.enter("button", "Unlock").await;
    page.sees("text=No state is locked").await;
    page.keeps_focus().await;

    go(&mut page, "shop/live", "shop/live", &format!("{org}/esc/shop/live")).await;
    page.reach("textbox", "Definition").await;
    page.press("Control+a").await;
    page.types("values:\n  region: eu-2").await;
    page.sees("text=No errors").await;
    page.reach_by("Shift+Tab", "button", "Save").await;
    page.press("Enter").await;
    page.sees("text=Saved as revision 2").await;
    page.keeps_focus().await;
    page.has_focus("button", "Save").await;

    // Somebody is invited, gets another role, and is removed.
    go(&mut page, "members", "Members", &format!("{org}/-/members")).await;
    asks(&mut page, "Invite").await;
    page.reach("textbox", "Login").await;
    page.types("dora").await;
    page.enter("button", "Make the link").await;
    page.sees(".once code").await;
    page.enter("button", "I have it").await;
    page.keeps_focus().await;
    page.has_focus("button", "Invite").await;
    asks_by_menu(&mut page, "Change dora", "Role").await;
    page.reach("combobox", "Role…").await;
    page.types("view").await;
    page.enter("button", "Change the role").await;
    page.sees("tr:has-text('dora'):has-text('view')").await;
    page.keeps_focus().await;
    page.has_focus("button", "Change dora").await;
    asks_by_menu(&mut page, "Change dora", "Remove").await;
    page.enter("button", "Remove the member").await;
    page.sees("main:not(:has(tr:has-text('dora')))").await;
    page.keeps_focus().await;
    // And is added again, as the user that the server has now.
    asks(&mut page, "Add a user").await;
    page.reach("textbox", "Login").await;
    page.types("dora").await;
    page.enter("button", "Add the user").await;
    page.sees("tr:has-text('dora'):has-text('plan')").await;
    page.keeps_focus().await;
    page.has_focus("button", "Add a user").await;

    go(&mut page, "tokens", "Tokens", &format!("{org}/-/tokens")).await;
    asks(&mut page, "Create a token").await;
    page.reach("textbox", "Name").await;
    page.types("by-keys").await;
    page.enter("button", "Create the token").await;
    page.sees(".once code").await;
    page.enter("button", "I have it").await;
    page.keeps_focus().await;
    page.has_focus("button", "Create a token").await;
    page.sees("tr:has-text('by-keys')").await;

    go(&mut page, "audit", "Audit trail", &format!("{org}/-/audit")).await;
    page.reach("searchbox", "Login").await;
    page.types(USER).await;
    page.arrives(&format!("{org}/-/audit?user={USER}")).await;
    page.reach("combobox", "Action…").await;
    page.press("ArrowDown").await;
    page.arrives(&format!("{org}/-/audit?user={USER}&event=")).await;

    go(&mut page, "web/dev", "web/dev", &format!("{org}/web/dev")).await;
    page.enter("link", "Settings").await;
    page.arrives(&format!("{org}/web/dev/settings/options")).await;
    asks(&mut page, "New tag").await;
    page.reach("textbox", "Name").await;
    page.types("team").await;
    page.reach("textbox", "Value").await;
    page.types("shop").await;
    page.enter("button", "Add it").await;
    page.sees("tr:has-text('team'):has-text('shop')").await;
    page.keeps_focus().await;
    page.has_focus("button", "New tag").await;

    page.enter("button", &format!("Your user, {USER}")).await;
    page.reach_by("ArrowDown", "menuitem", "Sign out").await;
    page.press("Enter").await;
    page.arrives(&format!("{console}/signout")).await;
}

//! Everything that people do at the console, by keyboard alone: no test here clicks, or fills by a selector.
//!
//! What has the focus shows it, and after each dialog the focus is on the page.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use statewright_shared::domain::names::Login;
use statewright_shared::services::identity::invitations;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::browser::Chromium;
use statewright_tests::console::{PASSWORD, make_stack, signed_in_by_keys};
use statewright_tests::issuer::Issuer;

use crate::BACKEND;
use crate::console::PROGRAM;
use crate::support::{UP, bench, names, state, yaml};

/// A browser in which [`USER`] is signed in, at the start of the organization.
async fn at_home(app: &TestApp) -> (Chromium, String) {
    let (mut page, console) = signed_in_by_keys(app, USER, &format!("/{ORG}")).await;
    page.sees(&format!("h1:text-is('{ORG}')")).await;
    (page, console)
}

#[tokio::test]
async fn a_new_person_begins_by_keyboard_alone() {
    let app = TestApp::on(BACKEND).await;
    let user = Login::parse(USER).unwrap();
    let invited = invitations::invite(&app.context, &user, Duration::from_secs(3600)).await.unwrap();
    let console = app.console().await;
    let account = format!("{console}/user/settings/account");
    let mut page = Chromium::start();
    page.open(&format!("{console}{}", invited.path())).await;
    page.enter("button", &format!("Sign in as {USER}")).await;
    page.arrives(&account).await;
    page.reach("textbox", "New password").await;
    page.types(PASSWORD).await;
    page.reach("textbox", "The new password again").await;
    page.types(PASSWORD).await;
    page.enter("button", "Set the password").await;
    page.sees("text=You have a password").await;

    // From now on, the password is enough.
    page.enter("link", "Sign out").await;
    page.arrives(&format!("{console}/signout")).await;
    page.enter("button", "Sign out").await;
    page.arrives(&format!("{console}/signin")).await;
    page.signs_in_by_keys(USER, PASSWORD).await;
    page.arrives(&account).await;
    page.enter("link", "Statewright").await;
    page.arrives(&format!("{console}/{ORG}")).await;
    page.sees(&format!("h1:text-is('{ORG}')")).await;
    page.has_no_problem().await;
}

#[tokio::test]
async fn a_person_follows_a_stack_by_keyboard_alone() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "web", PROGRAM).await;
    cli.run(UP).await.assert_success();
    cli.yaml_project("web", &PROGRAM.replace("value: first", "value: second"));
    cli.run(UP).await.assert_success();
    let slow = bench(&app, "slow", &[("count", "120"), ("chain", "true"), ("delayMs", "1000")]).await;
    let quick = bench(&app, "quick", &[("count", "2"), ("chain", "true"), ("delayMs", "500")]).await;
    let (mut page, console) = at_home(&app).await;
    let stack = format!("{console}/{ORG}/web/dev");

    // The list, one stack, and a secret of it.
    page.enter("link", "Stacks and states").await;
    page.arrives(&format!("{console}/{ORG}/-/stacks")).await;
    page.reach("searchbox", "Filter by name, tag or label").await;
    page.types("web").await;
    page.sees(".title-row:has-text('1 of 3')").await;
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
    // A secret of the resource.
    page.enter("button", "Show").await;
    page.sees("code:has-text('hunter2')").await;
    page.keeps_focus().await;
    page.has_focus("button", "Hide").await;
    page.reach_by("Shift+Tab", "button", "History").await;
    page.press("Enter").await;
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
    page.asks("Restore version 1").await;
    page.press("Escape").await;
    page.keeps_focus().await;
    page.has_focus("button", "Restore version 1").await;
    page.asks("Restore version 1").await;
    page.enter("button", "Restore it").await;
    page.sees("td.strong:text-is('3')").await;
    page.keeps_focus().await;
    page.has_focus("button", "Restore version 1").await;

    // Both secrets that were shown are in the trail.
    page.goes_to("audit", "Audit trail", &format!("{console}/{ORG}/-/audit")).await;
    for event in ["secrets.open", "secrets.reveal"] {
        page.sees(&format!("tr:has-text('{event}'):has-text('browser')")).await;
    }

    // A running update is found and watched to its end. The client waits until somebody looks.
    let up = quick.spawn(UP);
    up.says("item-00000 creating").await;
    up.pause();
    let running = format!("{console}/{ORG}/quick/dev");
    page.goes_to("quick", "quick/dev", &running).await;
    page.enter("link", "Watch it").await;
    page.arrives(&format!("{running}/updates/1")).await;
    page.sees("text=followed live").await;
    up.resume();
    page.sees(".step:has-text('item-00001')").await;
    page.sees(".title-row:has(h2) .badge:has-text('Succeeded')").await;
    page.keeps_focus().await;
    up.wait().await.assert_success();

    // Another one is cancelled. Its buttons go, and the focus stays on the page.
    let up = slow.spawn(UP);
    up.says("item-00001 creating").await;
    let running = format!("{console}/{ORG}/slow/dev");
    page.goes_to("slow", "slow/dev", &running).await;
    page.enter("link", "Watch it").await;
    page.arrives(&format!("{running}/updates/1")).await;
    page.sees(".step:has-text('item-00000')").await;
    page.asks("Cancel").await;
    page.reach("textbox", "Reason, for the audit trail").await;
    page.types("it was started by mistake").await;
    page.enter("button", "Cancel the update").await;
    page.sees("main .badge:text-is('Cancelled')").await;
    page.keeps_focus().await;
    up.wait().await.assert_failure();
    assert!(names(&state(&app, "slow").await).contains(&"item-00000".to_owned()));
    page.has_no_problem().await;
}

#[tokio::test]
async fn an_organization_is_run_by_keyboard_alone() {
    let app = TestApp::on(BACKEND).await;
    make_stack(&app, "web").await;
    let (mut page, console) = at_home(&app).await;
    let org = format!("{console}/{ORG}");

    // Somebody is invited, gets another role, and is removed.
    page.goes_to("members", "Members", &format!("{org}/-/members")).await;
    page.asks("Invite").await;
    page.reach("textbox", "Login").await;
    page.types("dora").await;
    page.enter("button", "Make the link").await;
    page.sees(".once code").await;
    page.enter("button", "I have it").await;
    page.keeps_focus().await;
    page.has_focus("button", "Invite").await;
    page.asks_by_menu("Change dora", "Role").await;
    page.reach("combobox", "Role…").await;
    page.types("view").await;
    page.enter("button", "Change the role").await;
    page.sees("tr:has-text('dora'):has-text('view')").await;
    page.keeps_focus().await;
    page.has_focus("button", "Change dora").await;
    page.asks_by_menu("Change dora", "Remove").await;
    page.enter("button", "Remove the member").await;
    page.sees("main:not(:has(tr:has-text('dora')))").await;
    page.keeps_focus().await;
    // And is added again, as the user that the server has now.
    page.asks("Add a user").await;
    page.reach("textbox", "Login").await;
    page.types("dora").await;
    page.enter("button", "Add the user").await;
    page.sees("tr:has-text('dora'):has-text('plan')").await;
    page.keeps_focus().await;
    page.has_focus("button", "Add a user").await;

    page.goes_to("tokens", "Tokens", &format!("{org}/-/tokens")).await;
    page.asks("Create a token").await;
    page.reach("textbox", "Name").await;
    page.types("by-keys").await;
    page.enter("button", "Create the token").await;
    page.sees(".once code").await;
    page.enter("button", "I have it").await;
    page.keeps_focus().await;
    page.has_focus("button", "Create a token").await;
    page.sees("tr:has-text('by-keys')").await;
    page.asks_by_menu("Change by-keys", "Rotate").await;
    page.check_briefly("console-rotate").await;
    page.enter("button", "Rotate it").await;
    page.sees(".once code").await;
    page.enter("button", "I have it").await;
    page.keeps_focus().await;

    // The days are typed as the browser's language writes them.
    let audit = format!("{org}/-/audit");
    page.goes_to("audit", "Audit trail", &audit).await;
    page.reach("textbox", "From").await;
    page.types("01312020").await;
    page.arrives(&format!("{audit}?from=2020-01-31")).await;
    page.sees("tr:has-text('token.rotate'):has-text('by-keys')").await;
    page.reach("textbox", "until").await;
    page.types("02012020").await;
    page.arrives(&format!("{audit}?from=2020-01-31&until=2020-02-01")).await;
    page.sees("text=No record matches").await;
    page.reach("searchbox", "Login").await;
    page.types(USER).await;
    page.arrives(&format!("{audit}?from=2020-01-31&until=2020-02-01&user={USER}")).await;
    page.reach("combobox", "Action…").await;
    page.press("ArrowDown").await;
    page.arrives(&format!("{audit}?from=2020-01-31&until=2020-02-01&user={USER}&event=")).await;

    page.goes_to("web/dev", "web/dev", &format!("{org}/web/dev")).await;
    page.enter("link", "Settings").await;
    page.arrives(&format!("{org}/web/dev/settings/options")).await;
    page.asks("New tag").await;
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
    page.has_no_problem().await;
}

#[tokio::test]
async fn an_admin_decides_by_keyboard_alone() {
    let app = TestApp::on(BACKEND).await;
    app.member("bob", "laptop").await;
    make_stack(&app, "web").await;
    let new = json!({ "project": "net", "state": "old" });
    let made = app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
    let old = format!("/api/tfstates/{}", made["id"].as_str().unwrap());
    app.request(Method::DELETE, &old).send().await.expect(204);
    let (mut page, console) = at_home(&app).await;
    let org = format!("{console}/{ORG}");

    // A team, and who is in it.
    page.goes_to("teams", "Teams", &format!("{org}/-/teams")).await;
    page.asks("Create a team").await;
    page.reach("textbox", "Name").await;
    page.types("shop").await;
    page.enter("button", "Create the team").await;
    page.sees(".step-head:has-text('shop')").await;
    page.keeps_focus().await;
    page.has_focus("button", "Create a team").await;
    page.enter("button", "shop").await;
    page.asks("Add a member").await;
    page.reach("combobox", "Login").await;
    page.types("bob").await;
    page.enter("button", "Add").await;
    page.sees(".step-body li:has-text('bob')").await;
    page.keeps_focus().await;
    page.has_focus("button", "Add a member").await;

    // What the team may do, and why.
    page.goes_to("grants", "Grants", &format!("{org}/-/grants")).await;
    page.asks("Give a role").await;
    page.reach("combobox", "To…").await;
    page.press("ArrowDown").await;
    page.reach("combobox", "Name").await;
    page.types("shop").await;
    page.reach("textbox", "On").await;
    page.types("web/*").await;
    page.enter("button", "Give the role").await;
    page.sees("tr:has-text('team:shop'):has-text('web/*')").await;
    page.keeps_focus().await;
    page.has_focus("button", "Give a role").await;
    page.reach("combobox", "Login").await;
    page.types("bob").await;
    page.reach("combobox", "Stack, as PROJECT/NAME").await;
    page.types("web/dev").await;
    page.enter("button", "Explain").await;
    page.sees("tr:has-text('apply'):has-text('to team:shop on web/*')").await;
    page.asks("Remove the grant to team:shop on web/*").await;
    page.enter("button", "Remove the grant").await;
    page.sees("text=There are no grants").await;
    page.keeps_focus().await;

    // An issuer.
    page.goes_to("issuers", "Issuers", &format!("{org}/-/issuers")).await;
    page.asks("Add an issuer").await;
    let issuer = Issuer::new("https://ci.example.com");
    page.reach("combobox", "Address").await;
    page.types(&issuer.url).await;
    page.reach("textbox", "Name").await;
    page.types("Our CI").await;
    page.reach("textbox", "Public keys…").await;
    page.types(&issuer.key_set().to_string()).await;
    page.enter("button", "Add the issuer").await;
    page.sees("tr:has-text('https://ci.example.com')").await;
    page.keeps_focus().await;
    page.has_focus("button", "Add an issuer").await;
    page.asks_by_menu("Change Our CI", "Delete").await;
    page.enter("button", "Delete it").await;
    page.sees("text=No issuer is registered").await;
    page.keeps_focus().await;

    // A protection, and its end.
    page.goes_to("web/dev", "web/dev", &format!("{org}/web/dev")).await;
    page.asks("Protect").await;
    page.reach("textbox", "Reason, for the audit trail").await;
    page.types("it is production").await;
    page.enter("button", "Protect it").await;
    page.sees(".notice:has-text('it is production')").await;
    page.keeps_focus().await;
    page.asks("Lift").await;
    page.enter("button", "Lift it").await;
    page.sees("button:has-text('Protect')").await;
    page.keeps_focus().await;

    // What was deleted returns.
    page.goes_to("deleted", "Deleted stacks and states", &format!("{org}/-/deleted")).await;
    page.asks("Undelete net/old").await;
    page.enter("button", "Undelete it").await;
    page.sees("text=No deleted state is kept").await;
    page.keeps_focus().await;
    page.has_no_problem().await;
}

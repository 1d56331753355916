//! People at the console: stacks that the real client makes, updates that run meanwhile, and states.
//!
//! Each page is checked as those of `browser.rs` are: for faults of accessibility in both themes, errors of the browser's
//! console, requests to other machines, and its width on a phone.

use serde_json::json;
use statewright_tests::app::{Backend, ORG, TestApp};
use statewright_tests::browser::Chromium;
use statewright_tests::cli::PulumiCli;
use statewright_tests::console::signed_in;

use crate::BACKEND;
use crate::support::{UP, assert_says, bench, names, state, urn, yaml};

/// A program whose message and values try to be markup, and which has a secret.
pub(crate) const PROGRAM: &str = "resources:
  network:
    type: bench:index:Item
    properties:
      value: <img src=x onerror=alert(1)>
  database:
    type: bench:index:Item
    properties:
      value: first
      secretValue:
        fn::secret: hunter2
    options:
      dependsOn: [\"${network}\"]
outputs:
  address: ${network.value}
  password: ${database.secretValue}
";

/// The field above the tree of resources.
pub(crate) const FILTER: &str = "[aria-label='Filter by name, type or ID']";

#[tokio::test]
async fn a_person_follows_a_stack_from_the_clients_link() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "web", PROGRAM).await;
    cli.run(UP.into_iter().chain(["--message", "Move <b>everything</b>"])).await.assert_success();
    cli.run(["preview"]).await.assert_success();
    let changed = PROGRAM.replace("value: first", "value: second");
    cli.yaml_project("web", &changed);
    cli.run(UP).await.assert_success();

    let stack = format!("/{ORG}/web/dev");
    let (mut page, console) = signed_in(&app, &format!("{stack}/updates/2")).await;
    page.sees("h2:has-text('Update 2')").await;
    page.sees(".step:has-text('database')").await;
    page.click(".step-head:has-text('database')").await;
    page.sees(".old:has-text('first')").await;
    page.sees(".new:has-text('second')").await;
    page.check_page("console-update").await;
    page.open(&format!("{console}{stack}/updates/1")).await;
    page.sees(".step:has-text('network')").await;
    let text = page.text().await;
    assert!(text.contains("Move <b>everything</b>") && !text.contains("hunter2"), "{text}");

    // Without a path, the organization of the person.
    page.open(&console).await;
    page.arrives(&format!("{console}/{ORG}")).await;
    page.sees("td:has-text('web/dev')").await;
    page.check_page("console-home").await;
    page.press("Tab").await;
    assert_eq!(page.focused().await, "To the content");
    page.click("nav a:has-text('Stacks and states')").await;
    page.sees(".item:has-text('dev')").await;
    page.check_page("console-list").await;
    page.fill("[aria-label='Filter by name, tag or label']", "nothing like it").await;
    page.sees("text=Nothing matches these filters").await;
    assert!(page.url().await.ends_with("/-/stacks?q=nothing+like+it"), "{}", page.url().await);

    // A secret is shown when a person asks, and the audit trail says so.
    page.open(&format!("{console}{stack}")).await;
    page.sees("th:has-text('password')").await;
    let text = page.text().await;
    assert!(text.contains("<img src=x onerror=alert(1)>") && !text.contains("hunter2"), "{text}");
    page.check_page("console-stack").await;
    page.click("button:has-text('Show')").await;
    page.sees("code:has-text('hunter2')").await;
    page.open(&format!("{console}/{ORG}/-/audit")).await;
    page.sees("tr:has-text('secrets.open'):has-text('browser')").await;
    page.check_page("console-audit").await;

    // When what ran.
    page.open(&format!("{console}{stack}/updates/2?show=timeline")).await;
    page.sees("tr:has-text('database') .bar-of").await;
    page.run(&json!({ "command": "select", "what": ".filters select", "value": "slowest" })).await;
    page.arrives(&format!("{console}{stack}/updates/2?show=timeline&sort=slowest")).await;
    page.check_page("console-timeline").await;

    // Resources, by keyboard.
    page.open(&format!("{console}{stack}/resources")).await;
    page.sees("[role=treeitem]:has-text('database')").await;
    page.check_page("console-resources").await;
    page.click("[role=treeitem]:has-text('database')").await;
    page.sees("h2:has-text('Depends on')").await;
    let text = page.text().await;
    assert!(text.contains("id-database") && !text.contains("hunter2"), "{text}");
    page.check_page("console-resource").await;
    // A secret of a resource too.
    page.click("section:has(h2:has-text('Inputs')) button:has-text('Show')").await;
    page.sees("section:has(h2:has-text('Inputs')) code:has-text('hunter2')").await;
    page.fill(FILTER, "network").await;
    // The server filters.
    page.sees(".tree:not(:has([role=treeitem]:has-text('database')))").await;
    page.press("Tab").await;
    page.press("End").await;
    page.press("Enter").await;
    page.sees("h2:has-text('network')").await;
    history_and_neighbours(&mut page, &format!("{console}{stack}/resources"), "web").await;

    // Two versions, and one restored.
    page.open(&format!("{console}{stack}/versions?from=1&to=2")).await;
    page.sees(".new:has-text('second')").await;
    let text = page.text().await;
    assert!(text.contains("1 changed") && !text.contains("hunter2"), "{text}");
    page.check_page("console-versions").await;
    page.click("[aria-label='Restore version 1']").await;
    page.sees("[role=alertdialog]").await;
    page.click("button:has-text('Restore it')").await;
    page.sees("td.strong:text-is('3')").await;
    let restored = state(&app, "web").await;
    assert!(restored.to_string().contains("first") && !restored.to_string().contains("second"), "{restored}");

    // Anywhere, by a few letters.
    page.press("Control+k").await;
    page.sees("[placeholder='Stack, state or page']").await;
    page.fill("[placeholder='Stack, state or page']", "lock").await;
    page.press("ArrowDown").await;
    page.press("Enter").await;
    page.arrives(&format!("{console}/{ORG}/-/locks")).await;
    page.open(&format!("{console}/{ORG}/neo/tasks/1")).await;
    page.sees("text=This server has no assistant").await;
    page.check_page("console-not-here").await;

    // Tags of stacks and labels of states group the list, and are found.
    cli.run(["stack", "tag", "set", "team", "shop"]).await.assert_success();
    let labelled = json!({ "project": "net", "labels": { "team": "network" } });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &labelled).send().await.expect(200);
    page.open(&format!("{console}/{ORG}/-/stacks")).await;
    page.sees(".item:has-text('team=shop')").await;
    let select = "label:has-text('Group by') select";
    page.run(&json!({ "command": "select", "what": select, "value": "team" })).await;
    page.sees("section[aria-label='shop'] .item:has-text('web/dev')").await;
    page.sees("section[aria-label='network'] .item:has-text('net/default')").await;
    for (words, found) in [("team=shop", "web/dev"), ("team=network", "net/default")] {
        page.fill("[aria-label='Filter by name, tag or label']", words).await;
        page.sees(".title-row:has-text('1 of 2')").await;
        page.sees(&format!(".item:has-text('{found}')")).await;
    }
    let url = page.url().await;
    assert!(url.contains("group=team") && url.contains("q=team%3Dnetwork"), "{url}");
    page.open(&url).await;
    page.sees("section[aria-label='network'] .item:has-text('net/default')").await;
}

/// What changed the item `database`, whose second version has another value, and what is around it.
async fn history_and_neighbours(page: &mut Chromium, resources: &str, project: &str) {
    let of_database = urn(project, "database").replace(':', "%3A");
    page.open(&format!("{resources}?urn={of_database}&show=history")).await;
    page.sees(".step:has-text('Update 2') .new:has-text('second')").await;
    page.sees(".step:has-text('Update 1'):has-text('created')").await;
    assert!(!page.text().await.contains("hunter2"), "a secret is shown");
    page.check_page("console-resource-history").await;
    page.click(".step:has-text('Update 1') a:has-text('As it was then')").await;
    page.sees("text=This is version 1.").await;
    page.sees("td:has-text('first')").await;

    page.open(&format!("{resources}?urn={of_database}&show=neighbours")).await;
    page.sees(".node:has-text('network')").await;
    page.check_page("console-neighbours").await;
    // By keyboard alone: to the graph, from one node to another, and to its page.
    page.click("button:has-text('Neighbors')").await;
    let mut presses = 0;
    while !page.focused().await.starts_with("database, ") {
        page.press("Tab").await;
        presses += 1;
        assert!(presses < 8, "the graph cannot be reached");
    }
    page.press("ArrowLeft").await;
    let focused = page.focused().await;
    let next = focused.split(", ").next().unwrap();
    assert_ne!(next, "database", "an arrow key leads nowhere");
    page.press("Enter").await;
    page.sees(&format!(".node.current:has-text('{next}')")).await;
    page.sees(&format!("h2:has-text('{next}')")).await;
}

#[tokio::test]
async fn an_update_is_watched_to_its_end() {
    Box::pin(watches_to_the_end(BACKEND)).await;
}

/// Watches an update until it has succeeded.
pub(crate) async fn watches_to_the_end(backend: Backend) {
    let app = TestApp::on(backend).await;
    let cli = bench(&app, "ends", &[("count", "5"), ("chain", "true"), ("delayMs", "1000")]).await;
    let stack = format!("/{ORG}/ends/dev");
    let (mut page, console) = signed_in(&app, &stack).await;
    let up = cli.spawn(UP.into_iter().chain(["--message", "Watch it"]));
    up.says("item-00000 creating").await;
    page.open(&format!("{console}{stack}/updates/1")).await;
    page.sees("span:has-text('followed live')").await;
    // What the client said of it is known while it runs.
    page.sees("p.lead:has-text('Watch it')").await;
    page.sees(".notice:has-text('Update is running')").await;
    // From here on, nothing is opened, loaded again or clicked.
    page.run(&json!({ "command": "problems" })).await;
    for item in 0..5 {
        page.sees(&format!(".step:has-text('item-0000{item}'):has-text('created')")).await;
    }
    page.sees(".title-row:has(h2:has-text('Update 1')):has-text('Succeeded')").await;
    page.sees("main:not(:has(span:has-text('followed live')))").await;
    page.sees("main:not(:has(.notice:has-text('Update is running')))").await;
    up.wait().await.assert_success();
    assert_eq!(page.run(&json!({ "command": "problems" })).await, json!([]));
    page.click(".tabs a:has-text('Overview')").await;
    page.sees("section:has-text('Last update') a:has-text('Update 1')").await;
}

/// Watches an update of the stack `slow/dev` and cancels it. Returns the server, the client, and the browser with the address
/// of the console.
pub(crate) async fn watches_and_cancels(backend: Backend) -> (TestApp, PulumiCli, Chromium, String) {
    let app = TestApp::on(backend).await;
    // It would take two minutes.
    let slow = [("count", "120"), ("chain", "true"), ("delayMs", "1000")];
    let cli = bench(&app, "slow", &slow).await;
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/slow/dev")).await;
    let up = cli.spawn(UP);
    up.says("item-00001 creating").await;
    page.open(&format!("{console}/{ORG}/slow/dev")).await;
    page.sees("text=Update is running").await;
    page.check_page("console-running").await;
    page.click("a:has-text('Watch it')").await;
    page.arrives(&format!("{console}/{ORG}/slow/dev/updates/1")).await;
    page.sees(".step:has-text('item-00000')").await;
    page.check_page("console-live").await;
    page.open(&format!("{console}/{ORG}/-/locks")).await;
    page.sees("tr:has-text('slow/dev') td:has-text('wrote')").await;
    page.click("td button:has-text('Cancel')").await;
    page.fill("[role=alertdialog] textarea", "it was started by mistake").await;
    page.click("[role=alertdialog] button:has-text('Cancel the update')").await;
    page.sees("text=No update holds a stack").await;
    up.wait().await.assert_failure();
    page.open(&format!("{console}/{ORG}/-/audit?event=update.cancel")).await;
    page.sees("tr:has-text('slow/dev'):has-text('it was started by mistake')").await;
    (app, cli, page, console)
}

#[tokio::test]
async fn a_running_update_is_watched_and_cancelled() {
    let (app, cli, mut page, console) = Box::pin(watches_and_cancels(BACKEND)).await;
    // Clients call it failed, as they know no other word. People do.
    for page_of_it in ["", "/updates", "/updates/1", "/versions"] {
        page.open(&format!("{console}/{ORG}/slow/dev{page_of_it}")).await;
        page.sees("main .badge:text-is('Cancelled')").await;
    }
    let kept = names(&state(&app, "slow").await);
    assert!(kept.starts_with(&["slow-dev", "default", "item-00000"].map(str::to_owned)), "{kept:?}");
    page.open(&format!("{console}/{ORG}")).await;
    page.sees("section:has-text('Failed last time') a:has-text('slow/dev')").await;

    // Nothing updates it while a person holds it.
    page.open(&format!("{console}/{ORG}/-/locks")).await;
    page.click("button:has-text('Hold a stack')").await;
    page.sees("[role=alertdialog]:has-text('Hold slow/dev?')").await;
    page.fill("[role=alertdialog] textarea", "the network is moved").await;
    page.click("[role=alertdialog] button:has-text('Hold it')").await;
    page.sees("tr:has-text('slow/dev'):has-text('the network is moved')").await;
    let refused = cli.run(UP).await.assert_failure();
    assert_says(&refused, &["is held by alice", "the network is moved", "statewright stack release"]);
    page.open(&format!("{console}/{ORG}/slow/dev")).await;
    page.sees(".notice:has-text('On hold'):has-text('the network is moved')").await;
    page.click(".notice button:has-text('Release')").await;
    page.click("[role=alertdialog] button:has-text('Release it')").await;
    page.sees("button:has-text('Hold')").await;

    // After signing out, nothing is shown, and what was open leads to the sign-in and back.
    page.click("[aria-label^='Your user']").await;
    page.click("[role=menuitem]:has-text('Sign out')").await;
    page.arrives(&format!("{console}/signout")).await;
    page.click("main button").await;
    page.arrives(&format!("{console}/signin")).await;
    page.open(&format!("{console}/{ORG}/slow/dev")).await;
    page.arrives(&format!("{console}/signin?next=")).await;
    page.sees("input[name=login]").await;
}

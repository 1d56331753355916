//! Short journeys at the console, most of them by keyboard alone: what others hold and change meanwhile, what a person may
//! not see, and a version that comes back. `console_cold.rs` has them through cold functions.

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::domain::role::Role;
use statewright_tests::app::{Backend, ORG, TestApp, USER};
use statewright_tests::console::{
    make_stack, save_outputs, save_resources, secret, send_state, signed_in, signed_in_by_keys, tflock,
    tfstate,
};

use crate::BACKEND;
use crate::console::FILTER;

const EDITOR: &str = "textarea[aria-label=Definition]";

/// Stores the next revision of the environment with this name, whatever it has.
async fn save_environment(app: &TestApp, name: &str, text: &str) {
    let call = app.request(Method::PATCH, &format!("/api/esc/environments/{ORG}/{name}"));
    call.raw(text.as_bytes().to_vec()).send().await.expect(200);
}

#[tokio::test]
async fn a_lock_and_an_edit_of_others_are_met() {
    Box::pin(meets_a_lock_and_an_edit(BACKEND)).await;
}

/// Unlocks a state with a reason, and edits an environment that somebody else edits.
pub(crate) async fn meets_a_lock_and_an_edit(backend: Backend) {
    let app = TestApp::on(backend).await;
    let environment = json!({ "project": "shop", "name": "live" });
    app.post(&format!("/api/esc/environments/{ORG}"), &environment).send().await.expect(204);
    let state = format!("/tfstate/{ORG}/net/prod");
    send_state(&app, &state, &tfstate(1, "10.0.0.0/16")).await;
    send_state(&app, &format!("{state}/lock"), &tflock("carol@build")).await;
    let (mut page, console) = signed_in_by_keys(&app, USER, &format!("/{ORG}")).await;
    page.sees("td:has-text('net/prod'), li:has-text('net/prod')").await;
    let org = format!("{console}/{ORG}");

    // The row goes with its lock, and the focus stays on the page.
    page.goes_to("lock", "Locks", &format!("{org}/-/locks")).await;
    page.sees("td:has-text('carol@build')").await;
    page.asks("Unlock").await;
    page.reach("textbox", "Reason, for the audit trail").await;
    page.types("the build machine is gone").await;
    page.enter("button", "Unlock").await;
    page.sees("text=No state is locked").await;
    page.keeps_focus().await;
    page.goes_to("audit", "Audit trail", &format!("{org}/-/audit")).await;
    page.sees("tr:has-text('state.unlock'):has-text('the build machine is gone')").await;

    // The editor offers the values that begin so, and completes the name where the cursor is.
    let live = format!("{org}/esc/shop/live");
    page.goes_to("shop/live", "shop/live", &live).await;
    page.reach("textbox", "Definition").await;
    page.press("Control+a").await;
    page.types("values:\n  region: eu-2").await;
    page.sees("text=No errors").await;
    page.has_no_problem().await;
    page.types("\nzone: ${re").await;
    page.sees("[aria-label='Values that begin so']").await;
    page.enter("button", "region").await;
    page.has_focus("textbox", "Definition").await;
    let mine = "values:\n  region: eu-2\n  zone: ${region}";
    assert_eq!(page.input(EDITOR).await, mine);

    // Somebody else saves meanwhile. Nothing is lost: neither theirs nor what was typed.
    save_environment(&app, "shop/live", "values:\n  region: eu-9\n").await;
    page.reach_by("Shift+Tab", "button", "Save").await;
    page.press("Enter").await;
    page.sees("text=Somebody saved revision 2 while you edited").await;
    page.sees(".removed:has-text('eu-9')").await;
    assert_eq!(page.input(EDITOR).await, mine);
    page.reach_by("Shift+Tab", "button", "Save mine over revision 2").await;
    page.press("Enter").await;
    page.sees("text=Saved as revision 3").await;
    page.keeps_focus().await;
    assert_eq!(page.input(EDITOR).await, mine);
    page.reach_by("Shift+Tab", "link", "Revisions").await;
    page.press("Enter").await;
    page.arrives(&format!("{live}/revisions")).await;
    page.asks_by_menu("More about revision 2", "Restore").await;
    page.enter("button", "Restore it").await;
    page.sees("tr:has-text('latest') a:text-is('4')").await;
    page.keeps_focus().await;
    let now = app.get(&format!("/api/esc/environments/{ORG}/shop/live")).send().await;
    assert_eq!(now.text(), "values:\n  region: eu-9\n");
    // The refusal of the first try, and of the check if a slow machine sent it with half a name.
    page.has_no_problem_but(&["status of 409", "status of 400"]).await;
}

/// Makes a stack, a state and an environment `dev` of this project, each with two versions and a secret.
async fn units(app: &TestApp, project: &str) {
    make_stack(app, project).await;
    let password = secret(app, project, &json!("hunter2")).await;
    for address in ["first", "second"] {
        save_outputs(app, project, &json!({ "address": address, "password": password })).await;
    }
    for (serial, range) in [(1, "10.0.0.0/16"), (2, "10.1.0.0/16")] {
        send_state(app, &format!("/tfstate/{ORG}/{project}/dev"), &tfstate(serial, range)).await;
    }
    let environment = json!({ "project": project, "name": "dev" });
    app.post(&format!("/api/esc/environments/{ORG}"), &environment).send().await.expect(204);
    let definition = "values: {password: {fn::secret: hunter2}}\n";
    save_environment(app, &format!("{project}/dev"), definition).await;
}

/// Everything in a page that shows a value or changes something, which the role `view` does not allow.
const ACTIONS: &str = "button:text-is('Show'), button:text-is('Show values'), button:text-is('Decrypt'), \
    button:text-is('Open the values'), [aria-label^='Download'], [aria-label^='Restore'], \
    [aria-label^='More about'], [aria-label^='Tag revision'], button:text-is('Protect'), \
    button:text-is('Lock by hand'), button:text-is('New tag'), button:text-is('New label'), \
    button:text-is('Turn on'), button:text-is('Rename'), button:text-is('Transfer'), \
    button:text-is('Delete')";

#[tokio::test]
async fn a_person_with_less_sees_less() {
    Box::pin(sees_less(BACKEND)).await;
}

/// Looks at everything with the role `view` on one project.
pub(crate) async fn sees_less(backend: Backend) {
    let app = TestApp::on(backend).await;
    // First of all: a function remembers the grants for a minute.
    let bob = app.member_with_role(Role::None, "bob", "laptop").await;
    let grant = json!({ "to": "user:bob", "on": "web/*", "role": "view" });
    app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    units(&app, "web").await;
    units(&app, "vault").await;

    // The list, and the way to everything else, have what there is for bob.
    let (mut page, console) = signed_in_by_keys(&app, "bob", &format!("/{ORG}/-/stacks")).await;
    page.sees(".title-row:has-text('2 of 2')").await;
    page.rests().await;
    page.sees("main:not(:has-text('vault'))").await;
    for hidden in ["Audit trail", "Issuers", "Server"] {
        page.sees(&format!("nav[aria-label=Organization]:not(:has-text('{hidden}'))")).await;
    }
    page.enter("link", "dev").await;
    page.arrives(&format!("{console}/{ORG}/web/dev")).await;
    page.sees("section:has(h2:text-is('Outputs')) [role=alert]:has-text('Not allowed')").await;
    page.sees(&format!("main:not(:has({ACTIONS}))")).await;
    page.enter("link", "Versions").await;
    page.arrives(&format!("{console}/{ORG}/web/dev/versions")).await;
    page.sees("td.strong:text-is('1')").await;
    page.sees(&format!("main:not(:has({ACTIONS}))")).await;
    page.enter("link", "Settings").await;
    page.sees("text=Renaming, transferring and deleting need the role member").await;
    page.sees(&format!("main:not(:has({ACTIONS}))")).await;

    // Other pages of web, by their addresses: each with something that is there, and without what bob may not do.
    for (path, seen) in [
        ("-/states/web/dev", "th:has-text('password')"),
        ("-/states/web/dev/versions", "td .strong:text-is('1')"),
        ("-/states/web/dev/resources?address=aws_vpc.main", "text=Showing them needs the role plan"),
        ("-/states/web/dev/settings", "text=Renaming and deleting need the role member"),
        ("esc/web/dev", EDITOR),
        ("esc/web/dev/values", "text=It needs the role plan on this environment"),
        ("esc/web/dev/revisions", "td a:text-is('1')"),
    ] {
        page.open(&format!("{console}/{ORG}/{path}")).await;
        page.sees(seen).await;
        page.rests().await;
        page.sees(&format!("main:not(:has({ACTIONS}))")).await;
        assert!(!page.text().await.contains("hunter2"), "{path}");
    }

    // What is hidden has no page either.
    for (path, title) in [
        ("vault/dev", "This is not here"),
        ("vault/dev/versions", "This is not here"),
        ("-/states/vault/dev", "This is not here"),
        ("esc/vault/dev", "This is not here"),
        ("-/audit", "Not allowed"),
        ("-/issuers", "Not allowed"),
    ] {
        page.open(&format!("{console}/{ORG}/{path}")).await;
        page.sees(&format!("main [role=alert]:has-text('{title}')")).await;
    }
    page.open(&format!("{console}/{ORG}/-/operator")).await;
    page.sees("h1:text-is('There is nothing at this address')").await;
    page.has_no_problem_but(&["status of 403", "status of 404"]).await;

    // And no answer.
    let state = app.get(&format!("/api/orgs/{ORG}/tfstates/web/dev")).send().await.expect(200);
    let state = format!("/api/tfstates/{}", state["id"].as_str().unwrap());
    let (web, vault) = (format!("/api/stacks/{ORG}/web/dev"), format!("/api/stacks/{ORG}/vault/dev"));
    let environments = format!("/api/esc/environments/{ORG}");
    let org = format!("/api/orgs/{ORG}");
    for (method, path, status) in [
        (Method::GET, vault.clone(), 404),
        (Method::GET, format!("{vault}/updates"), 404),
        (Method::GET, format!("{org}/tfstates/vault/dev"), 404),
        (Method::GET, format!("{environments}/vault/dev"), 404),
        (Method::GET, format!("{web}/outputs"), 403),
        (Method::GET, format!("{web}/export"), 403),
        (Method::POST, format!("{web}/updates/1/restore"), 403),
        (Method::DELETE, web.clone(), 403),
        (Method::GET, format!("{state}/outputs"), 403),
        (Method::GET, format!("{state}/versions/1/text"), 403),
        (Method::POST, format!("{state}/versions/1/restore"), 403),
        (Method::GET, format!("{environments}/web/dev/decrypt"), 403),
        (Method::POST, format!("{environments}/web/dev/open"), 403),
        (Method::GET, format!("{org}/auditlogs/v2"), 403),
        (Method::GET, format!("{org}/oidc/issuers"), 403),
        (Method::GET, format!("{org}/grants"), 403),
        (Method::GET, "/api/admin/status".to_owned(), 403),
    ] {
        let answer = app.request(method.clone(), &path).token(&bob).send().await;
        assert_eq!(answer.status.as_u16(), status, "{method} {path}: {}", answer.text());
    }
    let reason = json!({ "reason": "mine" });
    for path in [format!("{web}/protection"), format!("{state}/protection")] {
        let refused = app.request(Method::PUT, &path).json(&reason).token(&bob).send().await;
        refused.refused(403);
    }
    let listed = app.get("/api/user/stacks").token(&bob).send().await.expect(200);
    let projects: Vec<&Value> =
        listed["stacks"].as_array().unwrap().iter().map(|it| &it["projectName"]).collect();
    assert_eq!(projects, ["web"]);
}

#[tokio::test]
async fn a_version_is_compared_and_comes_back() {
    Box::pin(finds_compares_and_restores(BACKEND)).await;
}

/// Finds a resource and what changed it, compares two versions, and restores the first.
pub(crate) async fn finds_compares_and_restores(backend: Backend) {
    let app = TestApp::on(backend).await;
    make_stack(&app, "web").await;
    for size in ["small", "large"] {
        let resources = ["network", "database"].map(|name| {
            let urn = format!("urn:pulumi:dev::web::pkg:m:T::{name}");
            let (id, inputs) = (format!("id-{name}"), json!({ "size": size }));
            json!({ "urn": urn, "type": "pkg:m:T", "custom": true, "id": id, "inputs": inputs })
        });
        save_resources(&app, "web", &resources).await;
    }
    let stack = format!("/{ORG}/web/dev");
    let (mut page, console) = signed_in(&app, &format!("{stack}/resources")).await;
    page.fill(FILTER, "id-data").await;
    page.sees(".filters:has-text('1 of ')").await;
    page.click("[role=treeitem]:has-text('database')").await;
    page.click("button:has-text('History')").await;
    page.sees(".step:has-text('Import 1'):has-text('created')").await;
    page.sees(".step:has-text('Import 2') .new:has-text('large')").await;
    page.click(".step:has-text('Import 2') a:has-text('All changes of version 2')").await;
    page.arrives(&format!("{console}{stack}/versions?from=1&to=2")).await;
    page.sees(".old:has-text('small')").await;
    page.sees(".new:has-text('large')").await;
    page.click("[aria-label='Restore version 1']").await;
    page.click("[role=alertdialog] button:has-text('Restore it')").await;
    page.sees("td.strong:text-is('3')").await;
    page.has_no_problem().await;
    let now = app.get(&format!("/api/stacks/{ORG}/web/dev/export")).send().await.expect(200);
    let sizes = now["deployment"]["resources"].as_array().unwrap().iter().map(|it| &it["inputs"]["size"]);
    assert_eq!(sizes.collect::<Vec<_>>(), ["small", "small"]);
}

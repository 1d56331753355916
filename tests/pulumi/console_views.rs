//! What pages show of what is there: home and the list with its filters, an update while it runs, graphs, and the map.
//!
//! No client works here: each stack and each update is made by the API, so a page looks the same each time.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::SystemClock;
use statewright_shared::ports::Clock as _;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::browser::Chromium;
use statewright_tests::console::{make_stack, save_resources, send_state, signed_in, tflock, tfstate};

use crate::BACKEND;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The API's path of the stack `dev` of a project.
fn path_of(project: &str) -> String {
    format!("/api/stacks/{ORG}/{project}/dev")
}

/// The URN of a resource at the top of that stack.
fn urn(project: &str, name: &str) -> String {
    format!("urn:pulumi:dev::{project}::pkg:m:T::{name}")
}

/// A resource at the top of that stack.
fn resource(project: &str, name: &str) -> Value {
    json!({ "urn": urn(project, name), "type": "pkg:m:T", "custom": true, "id": format!("id-{name}") })
}

/// Makes the stack `dev` of this project, with as many resources.
async fn stack_of(app: &TestApp, project: &str, count: usize) {
    make_stack(app, project).await;
    let resources: Vec<Value> = (0..count).map(|at| resource(project, &format!("item-{at}"))).collect();
    save_resources(app, project, &resources).await;
}

/// An update that runs.
struct Update<'a> {
    app: &'a TestApp,
    /// The API's path of it.
    path: String,
    token: String,
    /// When its events begin, in seconds since 1970.
    began: i64,
    /// Events that were sent.
    sent: u64,
}

impl<'a> Update<'a> {
    /// Begins one of that stack, with this configuration.
    async fn begin(app: &'a TestApp, project: &str, config: &Value) -> Self {
        let program = json!({
            "name": project, "runtime": "yaml", "main": "", "description": "", "config": config,
            "options": { "dryRun": false, "parallel": 16 },
            "metadata": { "message": "Make it larger", "environment": {} },
        });
        let begin = json!({ "updateKind": "update", "program": program, "journalVersion": 2 });
        let path = path_of(project);
        let begun = app.post(&format!("{path}/begin-update"), &begin).send().await.expect(200);
        let text = |name: &str| begun[name].as_str().unwrap().to_owned();
        let path = format!("{path}/update/{}", text("updateID"));
        Self { app, path, token: text("token"), began: SystemClock.now().seconds() - 60, sent: 0 }
    }

    /// Sends these events, which happened after as many seconds.
    async fn says(&mut self, seconds: i64, events: &[Value]) {
        let mut batch = Vec::new();
        for event in events {
            self.sent += 1;
            let mut event = event.clone();
            event["sequence"] = json!(self.sent);
            event["timestamp"] = json!(self.began + seconds);
            batch.push(event);
        }
        let batch = json!({ "events": batch }).to_string();
        let call = self.app.request(Method::POST, &format!("{}/events/batch", self.path));
        call.update_token(&self.token).gzip(batch.as_bytes()).send().await.expect(204);
    }

    async fn ends(&self, status: &str) {
        let call = self.app.post(&format!("{}/complete", self.path), &json!({ "status": status }));
        let answer = call.update_token(&self.token).send().await;
        assert!(answer.status.is_success(), "{}", answer.text());
    }
}

/// What an event says of the update of a resource.
fn step(urn: &str) -> Value {
    let side = |size: u64| json!({ "urn": urn, "type": "pkg:m:T", "inputs": { "size": size } });
    json!({
        "op": "update", "urn": urn, "type": "pkg:m:T", "old": side(2), "new": side(3), "detailedDiff": null,
    })
}

/// A message about a resource.
fn said(urn: &str, severity: &str, message: &str) -> Value {
    json!({ "diagnosticEvent": { "urn": urn, "severity": severity, "color": "raw", "message": message } })
}

/// Chooses in the field with this label.
async fn choose(page: &mut Chromium, label: &str, value: &str) {
    let what = format!("label:has(span:text-is('{label}')) select");
    page.run(&json!({ "command": "select", "what": what, "value": value })).await;
}

/// Expects these stacks and states in the list alone, in this order, each as the list names it.
async fn lists(page: &mut Chromium, expected: &[&str]) {
    let first = expected[0];
    page.sees(&format!(".title-row span:has-text('{} of ')", expected.len())).await;
    page.sees(&format!("section.card:first-of-type .item:first-child a:text-is('{first}')")).await;
    let url = page.url().await;
    assert_eq!(page.texts(".item-name > a").await, expected, "{url}");
}

/// Stacks that changed on different days, the oldest first: one whose update failed, and one whose update runs. And a
/// state that somebody locks.
async fn everything(app: &TestApp) {
    for (project, count) in [("web", 2), ("shop", 3), ("api", 5)] {
        stack_of(app, project, count).await;
        app.advance(DAY);
    }
    let tag = json!({ "name": "team", "value": "shop" });
    app.post(&format!("{}/tags", path_of("web")), &tag).send().await.expect(204);
    Update::begin(app, "api", &json!({})).await.ends("failed").await;
    app.advance(DAY);
    let state = json!({ "project": "net", "state": "prod", "labels": { "team": "network" } });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &state).send().await.expect(200);
    let path = format!("/tfstate/{ORG}/net/prod");
    send_state(app, &path, &tfstate(1, "10.0.0.0/16")).await;
    send_state(app, &format!("{path}/lock"), &tflock("carol@build")).await;
    stack_of(app, "job", 4).await;
    Update::begin(app, "job", &json!({})).await;
}

#[tokio::test]
async fn home_and_the_list_show_and_filter_what_is_there() {
    let app = TestApp::on_manual_clock(BACKEND).await;
    everything(&app).await;

    // Each card of the start leads to what it names.
    let (mut page, console) = signed_in(&app, &format!("/{ORG}")).await;
    let runs = "section:has(h2:has-text('Runs now'))";
    page.sees(&format!("{runs} li:has-text('Update'):has-text('job/dev'):has-text('by {USER}, for')")).await;
    page.sees(&format!("{runs} a[href='/{ORG}/job/dev/updates/2']")).await;
    let locked = "section:has(h2:has-text('Locked states'))";
    page.sees(&format!("{locked} li:has-text('Apply'):has-text('net/prod'):has-text('by carol@build,')"))
        .await;
    page.sees(&format!("{locked} a[href='/{ORG}/-/states/net/prod']")).await;
    page.sees("section:has(h2:has-text('Failed last time')) li:has-text('api/dev')").await;
    for (text, value) in
        [("stacks", "4"), ("state", "1"), ("resources", "15"), ("running now", "1"), ("state locked", "1")]
    {
        page.sees(&format!(".tile:has(.tile-text:text-is('{text}')) .tile-value:text-is('{value}')")).await;
    }
    page.check_page("console-home-busy").await;
    page.press("Control+k").await;
    page.sees(".palette [role=menuitem]").await;
    page.check_briefly("console-palette").await;
    page.press("Escape").await;
    page.sees("body:not(:has(.palette))").await;

    // Who has what, and each order and filter, which a link keeps.
    let list = format!("{console}/{ORG}/-/stacks");
    page.open(&list).await;
    page.sees(&format!(".item:has-text('4 resources') .badge:text-is('{USER}')")).await;
    page.sees(".item:has-text('team=network') .badge:text-is('carol@build')").await;
    page.sees(".item:has-text('team=shop') .badge:text-is('Succeeded')").await;
    let cases: [(&str, &str, &str, &[&str]); 9] = [
        ("Sort by", "oldest", "sort=oldest", &["web/dev", "shop/dev", "api/dev", "net/prod", "job/dev"]),
        ("Sort by", "changed", "sort=changed", &["job/dev", "net/prod", "api/dev", "shop/dev", "web/dev"]),
        (
            "Sort by",
            "resources",
            "sort=resources",
            &["api/dev", "job/dev", "shop/dev", "web/dev", "net/prod"],
        ),
        ("Sort by", "result", "sort=result", &["api/dev", "job/dev", "shop/dev", "web/dev", "net/prod"]),
        ("Kind", "state", "kind=state", &["prod"]),
        ("Project", "shop", "project=shop", &["dev"]),
        ("Last result", "failed", "result=failed", &["dev"]),
        ("In use", "yes", "used=yes", &["dev", "prod"]),
        ("Group by", "team", "group=team", &["net/prod", "web/dev", "api/dev", "job/dev", "shop/dev"]),
    ];
    for (label, value, query, expected) in cases {
        page.open(&list).await;
        page.sees(".title-row:has-text('5 of 5')").await;
        choose(&mut page, label, value).await;
        let url = format!("{list}?{query}");
        page.arrives(&url).await;
        assert_eq!(page.url().await, url);
        lists(&mut page, expected).await;
        page.open(&url).await;
        lists(&mut page, expected).await;
        let chosen = page.input(&format!("label:has(span:text-is('{label}')) select")).await;
        assert_eq!(chosen, value, "{url}");
    }
    // The last one has groups.
    assert_eq!(page.texts("section.card h2").await, ["network", "shop", "Without team"]);
    page.check_briefly("console-list-grouped").await;
    page.open(&list).await;
    page.sees("section[aria-label=web]").await;
    assert_eq!(page.texts("section.card h2").await, ["api", "job", "net", "shop", "web"]);
    for (words, project) in [("carol", "net"), (USER, "job")] {
        page.fill("[aria-label='Filter by name, tag or label']", words).await;
        page.sees(".title-row:has-text('1 of 5')").await;
        page.sees(&format!("section[aria-label='{project}'] .item")).await;
    }

    // The days of the audit trail are in its address too. The manual clock began with this year.
    let audit = format!("{console}/{ORG}/-/audit?event=state.create");
    page.open(&format!("{audit}&from=2026-01-04&until=2026-01-06")).await;
    page.sees("tr:has-text('state.create'):has-text('net/prod')").await;
    assert_eq!(page.input("label:has-text('From') input").await, "2026-01-04");
    assert_eq!(page.input("label:has-text('until') input").await, "2026-01-06");
    page.open(&format!("{audit}&from=2026-01-01&until=2026-01-03")).await;
    page.sees("text=No record matches").await;
    page.has_no_problem().await;
}

#[tokio::test]
async fn an_update_is_shown_while_it_runs_and_after_it() {
    let app = TestApp::on(BACKEND).await;
    stack_of(&app, "web", 2).await;
    let (hub, far) = (urn("web", "item-0"), urn("web", "item-1"));
    let config = json!({
        "web:region": { "string": "eu-1", "secret": false, "object": false },
        "web:password": { "string": "v1:c2VhbGVk", "secret": true, "object": false },
    });
    let mut update = Update::begin(&app, "web", &config).await;
    let begins = json!({ "resourcePreEvent": { "metadata": step(&hub) } });
    update.says(0, &[said(&hub, "warning", "this size costs more"), begins]).await;

    // The timeline grows by itself.
    let stack = format!("/{ORG}/web/dev");
    let (mut page, console) = signed_in(&app, &format!("{stack}/updates/2")).await;
    let shows = "[aria-label='What is shown'] button";
    page.sees(".step:has-text('item-0') .badge:text-is('running')").await;
    page.click(&format!("{shows}:has-text('Timeline')")).await;
    page.arrives(&format!("{console}{stack}/updates/2?show=timeline")).await;
    page.sees("span:has-text('followed live')").await;
    page.sees("tr:has-text('item-0'):has(td:text-is('not ended')) .bar-of.busy").await;
    page.check_page("console-live-timeline").await;
    let ends = json!({ "resOutputsEvent": { "metadata": step(&hub) } });
    let begins = json!({ "resourcePreEvent": { "metadata": step(&far) } });
    update.says(3, &[ends, begins]).await;
    page.sees("tr:has-text('item-0'):has(td:text-is('3 s')) .bar-of.good").await;
    page.sees("tr:has-text('item-1'):has(td:text-is('not ended')) .bar-of.busy").await;

    // Meanwhile, at another page: what holds the stack.
    let locks = format!("{console}/{ORG}/-/locks");
    page.open(&locks).await;
    let row = "[aria-label='Updates that run'] tr:has-text('web/dev')";
    page.sees(&format!("{row}:has-text('{USER}'):has-text('nothing written yet')")).await;
    page.check_page("console-locks-running").await;
    page.click(&format!("{row} button:text-is('Cancel')")).await;
    page.sees("[role=alertdialog]:has-text('Cancel the update of web/dev?')").await;
    page.check_briefly("console-cancel").await;
    page.click("[role=alertdialog] button:text-is('Leave it')").await;
    page.sees("body:not(:has([role=alertdialog]))").await;
    page.click("button:has-text('Hold a stack')").await;
    page.sees("[role=alertdialog]:has-text('Hold web/dev?')").await;
    page.check_briefly("console-hold").await;
    page.fill("[role=alertdialog] textarea", "the network is moved").await;
    page.click("[role=alertdialog] button:text-is('Hold it')").await;
    page.sees("[aria-label='Stacks on hold'] tr:has-text('the network is moved')").await;

    // It fails, and the page that is open says so by itself.
    page.open(&format!("{console}{stack}/updates/2?show=timeline")).await;
    page.sees("tr:has-text('item-1'):has(td:text-is('not ended'))").await;
    let fails = json!({ "resOpFailedEvent": { "metadata": step(&far), "status": 1, "steps": 1 } });
    update.says(5, &[said(&far, "error", "no room is left"), fails]).await;
    page.sees("tr:has-text('item-1'):has(.badge:text-is('failed')):has(td:text-is('2 s')) .bar-of.bad").await;
    update.ends("failed").await;
    page.sees(".title-row:has(h2:text-is('Update 2')) .badge:text-is('Failed')").await;
    page.sees("main:not(:has(span:has-text('followed live')))").await;

    // What was said, and every resource.
    page.click(&format!("{shows}:has-text('Output')")).await;
    page.arrives(&format!("{console}{stack}/updates/2?show=diagnostics")).await;
    page.sees(".line.warn:has-text('item-0'):has-text('this size costs more')").await;
    page.sees(".line.bad:has-text('item-1'):has-text('no room is left')").await;
    page.check_page("console-update-output").await;
    page.click(&format!("{shows}:has-text('All resources')")).await;
    page.arrives(&format!("{console}{stack}/updates/2?show=all")).await;
    page.sees(".step:has-text('item-0') .badge:text-is('updated')").await;
    page.sees(".step:has-text('item-1') .badge:text-is('failed')").await;
    page.sees(".notice:has-text('item-1: no room is left')").await;
    page.check_briefly("console-update-all").await;

    // The configuration of the last update, without its secret. The stack is still held.
    page.open(&format!("{console}{stack}")).await;
    let config = "[aria-label=Configuration] tr";
    page.sees(&format!("{config}:has-text('web:region') code:text-is('eu-1')")).await;
    page.sees(&format!("{config}:has-text('web:password') code.masked")).await;
    assert!(!page.text().await.contains("c2VhbGVk"), "a secret is shown");
    page.sees(".notice:has-text('On hold'):has-text('the network is moved')").await;
    page.check_briefly("console-on-hold").await;
}

/// Resources below one parent, which are enough to be drawn as one.
const LEAVES: usize = 70;

#[tokio::test]
async fn graphs_are_folded_and_the_map_has_an_order() {
    let app = TestApp::on(BACKEND).await;
    make_stack(&app, "web").await;
    let folder = "urn:pulumi:dev::web::pkg:m:C::folder";
    let leaf = |at: usize| format!("urn:pulumi:dev::web::pkg:m:C$pkg:m:T::leaf-{at}");
    for size in ["small", "large"] {
        let mut hub = resource("web", "hub");
        hub["inputs"] = json!({ "size": size });
        let mut resources = vec![json!({ "urn": folder, "type": "pkg:m:C", "custom": false }), hub];
        resources.extend((0..LEAVES).map(|at| {
            json!({
                "urn": leaf(at), "type": "pkg:m:T", "custom": true, "id": format!("id-{at}"), "parent": folder,
                "dependencies": [urn("web", "hub")],
            })
        }));
        let mut far = resource("web", "far");
        far["dependencies"] = json!([leaf(0)]);
        resources.push(far);
        save_resources(&app, "web", &resources).await;
    }

    // One step from a resource, and two. The address has the number.
    let resources = format!("/{ORG}/web/dev/resources");
    let around =
        |name: &str| format!("{resources}?urn={}&show=neighbours", urn("web", name).replace(':', "%3A"));
    let (mut page, console) = signed_in(&app, &resources).await;
    page.open(&format!("{console}{}", around("far"))).await;
    page.sees(".graph .node:has-text('leaf-0')").await;
    page.sees(".graph:not(:has(.node:has-text('hub')))").await;
    choose(&mut page, "Steps away", "2").await;
    page.sees(".graph .node:has-text('hub')").await;
    let url = page.url().await;
    assert_eq!(url, format!("{console}{}&hops=2", around("far")));
    page.open(&url).await;
    page.sees(".graph .node:has-text('hub')").await;
    // Many of one type below one parent are one node, and the list has each.
    page.open(&format!("{console}{}", around("hub"))).await;
    page.sees(&format!(".graph .node:has-text('{LEAVES} × pkg:m:T'):has-text('below folder')")).await;
    page.sees(".foot:has-text('Those of one type below one parent are drawn as one.')").await;
    page.sees("[aria-label='What is around it, as a list'] li:has-text('leaf-69')").await;
    page.sees(".graph:not(:has(.node:has-text('leaf-')))").await;
    page.check_briefly("console-neighbours-folded").await;

    // What a restoration asks, over what it would undo.
    page.open(&format!("{console}/{ORG}/web/dev/versions?from=1&to=2")).await;
    page.sees(".new:has-text('large')").await;
    page.click("[aria-label='Restore version 1']").await;
    page.sees("[role=alertdialog]:has-text('Make version 1 the next one?')").await;
    page.check_briefly("console-restore").await;
    page.press("Escape").await;

    // Each stack reads outputs of the one before.
    let projects = ["base", "shop", "top"];
    for (at, project) in projects.iter().enumerate() {
        make_stack(&app, project).await;
        let before = at.checked_sub(1).map(|before| format!("{ORG}/{}/dev", projects[before]));
        let references: Vec<Value> = before.iter().map(|name| stack_reference(project, name)).collect();
        save_resources(&app, project, &references).await;
    }
    page.open(&format!("{console}/{ORG}/-/dependencies")).await;
    page.sees(".graph .node:has-text('base/dev')").await;
    page.sees("text=1 other stack or state is not connected").await;
    let rows = "[aria-label='Stacks and states in an order to apply them'] tbody tr";
    for (at, project) in projects.iter().enumerate() {
        let row = format!("{rows}:nth-child({place}):has(td:text-is('{place}'))", place = at + 1);
        page.sees(&format!("{row} th a:text-is('{project}/dev')")).await;
        if let Some(before) = at.checked_sub(1) {
            page.sees(&format!("{row} td:last-child a:text-is('{}/dev')", projects[before])).await;
        }
    }
    // The map stays on the page while the next one is laid out.
    page.marks(".graph").await;
    page.fill("[aria-label='Filter by name']", "base").await;
    page.arrives(&format!("{console}/{ORG}/-/dependencies?q=base")).await;
    page.sees(".graph[data-marked]:not(:has(.node:has-text('top/dev')))").await;
    page.sees(".graph[data-marked] .node:has-text('shop/dev')").await;
    page.sees(&format!("main:not(:has({rows}:has(th:has-text('top/dev'))))")).await;
    assert_eq!(page.texts(&format!("{rows} th")).await, ["base/dev", "shop/dev"]);

    // A stack that is not there.
    page.has_no_problem().await;
    page.open(&format!("{console}/{ORG}/nothing/dev")).await;
    page.sees("main [role=alert]:has-text('This is not here')").await;
    page.check_failure("console-no-stack", &["status of 404"]).await;
}

/// A resource of that stack that reads the outputs of the stack with this whole name.
fn stack_reference(project: &str, name: &str) -> Value {
    let kind = "pulumi:pulumi:StackReference";
    json!({
        "urn": format!("urn:pulumi:dev::{project}::{kind}::before"), "type": kind, "custom": true, "external": true,
        "id": name, "inputs": { "name": name }, "outputs": { "name": name, "outputs": {} },
    })
}

//! People at the console: stacks that the real client makes, updates that run meanwhile, and states.
//!
//! Each page is checked as those of `browser.rs` are: for faults of accessibility in both themes, errors of the browser's
//! console, requests to other machines, and its width on a phone.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::domain::names::Login;
use statewright_shared::services::identity::passwords;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::browser::Chromium;
use statewright_tests::issuer::Issuer;

use crate::BACKEND;
use crate::support::{UP, assert_says, bench, client, export, names, resources, state, urn, yaml};

const PASSWORD: &str = "correct horse battery";

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

/// A browser that is signed in, at this path of the console.
pub(crate) async fn signed_in(app: &TestApp, path: &str) -> (Chromium, String) {
    passwords::set(&app.context, &Login::parse(USER).unwrap(), PASSWORD).await.unwrap();
    let console = app.console().await;
    let mut page = Chromium::start();
    page.open(&format!("{console}{path}")).await;
    // Every address leads to the page of sign-ins, and back.
    page.sees("input[name=login]").await;
    page.fill("input[name=login]", login).await;
    page.fill("input[name=password]", PASSWORD).await;
    // The first request was refused, which is an error of the browser's console.
    page.run(&json!({ "command": "problems" })).await;
    page.press("Enter").await;
    page.arrives(&format!("{console}{path}")).await;
    (page, console)
}

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
    page.fill("[aria-label='Filter by name or label']", "nothing like it").await;
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
    page.click("button:has-text('Neighbours')").await;
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

/// The field above the tree of resources.
const FILTER: &str = "[aria-label='Filter by name, type or ID']";

/// Components of the large stack, and buckets below each.
const SITES: usize = 100;
const BUCKETS: usize = 500;

/// The components below the root of a large stack, with their buckets. The last bucket has this tag.
fn sites(root: &str, tag: &str) -> Vec<Value> {
    let of_type = |types: &str, name: &str| format!("urn:pulumi:dev::large::{types}::{name}");
    let mut resources = Vec::with_capacity(SITES * (BUCKETS + 1));
    for site in 0..SITES {
        let urn = of_type("shop:index:Site", &format!("site-{site:03}"));
        for at in site * BUCKETS..(site + 1) * BUCKETS {
            let name = format!("bucket-{at:05}");
            let tag = if at + 1 == SITES * BUCKETS { tag } else { "same" };
            let inputs = json!({ "tags": { "is": tag } });
            let arn = format!("arn:aws:s3:eu-west-1:123456789012:{name}");
            resources.push(json!({
                "urn": of_type("shop:index:Site$aws:s3/bucket:Bucket", &name), "type": "aws:s3/bucket:Bucket",
                "custom": true, "id": name, "parent": urn, "inputs": inputs,
                "outputs": { "arn": arn, "bucket": name, "tags": inputs["tags"] },
            }));
        }
        let first = resources.len() - BUCKETS;
        let component = json!({ "urn": urn, "type": "shop:index:Site", "custom": false, "parent": root });
        resources.insert(first, component);
    }
    resources
}

#[tokio::test]
async fn a_resource_is_found_among_fifty_thousand() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "large", &[("count", "1")]).await.patience(Duration::from_secs(600));
    cli.run(UP).await.assert_success();
    let small = export(&cli).await;
    let few = resources(&small);
    let root = few[0]["urn"].as_str().unwrap();
    for tag in ["before", "after"] {
        let mut large = small.clone();
        large["deployment"]["resources"].as_array_mut().unwrap().extend(sites(root, tag));
        cli.write("large.json", &large.to_string());
        cli.run(["stack", "import", "--file", "large.json"]).await.assert_success();
    }

    let path = format!("/{ORG}/large/dev/resources");
    let (mut page, console) = signed_in(&app, &path).await;
    page.sees("[role=treeitem]:has-text('site-000')").await;
    let all = few.len() + SITES * (BUCKETS + 1);
    page.sees(&format!("text={},{:03} in all", all / 1000, all % 1000)).await;
    page.check_page("console-large").await;
    // The next pages come as the end is reached.
    page.click(FILTER).await;
    page.press("Tab").await;
    for at in ["#row-505", "#row-1005"] {
        page.press("End").await;
        page.sees(at).await;
    }
    page.fill(FILTER, "bucket-49999").await;
    page.sees(".filters:has-text('1 of ')").await;
    page.arrives(&format!("{console}{path}?q=bucket-49999")).await;
    page.click("[role=treeitem]:has-text('bucket-49999')").await;
    let bucket = "https://eu-west-1.console.aws.amazon.com/s3/buckets/bucket-49999?region=eu-west-1";
    page.sees(&format!("a[href='{bucket}'][rel='noreferrer noopener']")).await;
    page.sees("a:text-is('site-099')").await;
    page.click("button:has-text('History')").await;
    page.sees(".step:has-text('Import 3') .old:has-text('before')").await;
    page.sees(".step:has-text('Import 3') .new:has-text('after')").await;
    page.sees(".step:has-text('Import 2'):has-text('created')").await;
    page.check_page("console-large-history").await;
    // No page read the whole state.
    page.open(&format!("{console}/{ORG}/-/audit?user={USER}&event=stack.export")).await;
    page.sees("h1:has-text('Audit trail')").await;
    page.sees("main:not(:has(td:has-text('browser'))):not(:has(.waiting))").await;
}

/// A program whose README tries to run, to load and to lay itself over the page.
const WITH_README: &str = r#"outputs:
  address: https://shop.example/
  password:
    fn::secret: hunter2
  readme: |
    # The shop <script>alert(1)</script>

    It is at $${outputs.address}, with $${outputs.password}.

    #### Links

    [out](https://shop.example/a) [script](javascript:alert(1)) [data](data:text/html,1) [here](/signout)

    ![logo](https://shop.example/logo.png) <img src="https://shop.example/x.png" onerror="alert(1)">

    <div style="position: fixed; inset: 0">over all</div>

    | a | b |
    |---|---|
    | 1 | 2 |
"#;

#[tokio::test]
async fn a_readme_is_shown_and_does_no_harm() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "shop", WITH_README).await;
    cli.run(UP).await.assert_success();
    let (mut page, _) = signed_in(&app, &format!("/{ORG}/shop/dev")).await;
    page.sees(".markdown h3:has-text('The shop <script>alert(1)</script>')").await;
    page.sees(".markdown a[href='https://shop.example/a'][rel='noreferrer nofollow']").await;
    // An image is a link, and the value of another output is in the text.
    page.sees(".markdown a[href='https://shop.example/logo.png']:text-is('logo')").await;
    page.sees(".markdown p:has-text('It is at https://shop.example/, with')").await;
    page.sees(".markdown:not(:has(img, script, [style]))").await;
    for text in ["script", "data", "here"] {
        page.sees(&format!(".markdown:not(:has(a:text-is('{text}')))")).await;
    }
    assert!(!page.text().await.contains("hunter2"), "a secret is in the text");
    // Asks of other machines are among what is checked.
    page.check_page("console-readme").await;
}

#[tokio::test]
async fn a_running_update_is_watched_and_cancelled() {
    let app = TestApp::on(BACKEND).await;
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
    page.click("td button:has-text('Cancel')").await;
    page.click("[role=alertdialog] button:has-text('Cancel the update')").await;
    page.sees("text=No update holds a stack").await;
    up.wait().await.assert_failure();
    let kept = names(&state(&app, "slow").await);
    assert!(kept.starts_with(&["slow-dev", "default", "item-00000"].map(str::to_owned)), "{kept:?}");
    page.open(&format!("{console}/{ORG}")).await;
    page.sees("section:has-text('Failed last time') a:has-text('slow/dev')").await;

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

/// A state with one resource of this address range.
fn tfstate(serial: u64, range: &str) -> Value {
    let instance = json!({ "schema_version": 0, "attributes": { "id": "vpc-1", "cidr": range } });
    json!({
        "version": 4, "terraform_version": "1.12.6", "serial": serial,
        "lineage": "11111111-2222-4333-8444-555555555555",
        "outputs": { "password": { "value": "hunter2", "type": "string", "sensitive": true } },
        "resources": [{
            "mode": "managed", "type": "aws_vpc", "name": "main",
            "provider": "provider[\"example.com/hashicorp/aws\"]", "instances": [instance],
        }],
    })
}

#[tokio::test]
async fn a_state_is_compared_and_unlocked_with_a_reason() {
    let app = TestApp::on(BACKEND).await;
    let path = format!("/tfstate/{ORG}/net/prod");
    let post = async |path: &str, body: &Value| {
        let call = app.post(path, body).anonymous().header("Authorization", &format!("Bearer {}", app.token));
        assert_eq!(call.send().await.status.as_u16(), 200);
    };
    post(&path, &tfstate(1, "10.0.0.0/16")).await;
    post(&path, &tfstate(2, "10.1.0.0/16")).await;
    let lock = json!({
        "ID": "8a7f2c1e-3b4d-4e5f-9a8b-7c6d5e4f3a2b", "Operation": "OperationTypeApply", "Info": "",
        "Who": "carol@build", "Version": "1.12.6", "Created": "2026-01-01T00:00:00Z", "Path": "",
    });
    post(&format!("{path}/lock"), &lock).await;

    let (mut page, console) = signed_in(&app, &format!("/{ORG}/-/states/net/prod")).await;
    page.sees("text=Locked for Apply").await;
    page.sees("th:has-text('password')").await;
    page.check_page("console-state").await;
    page.click("button:has-text('Show values')").await;
    page.sees(".value button:has-text('Show')").await;
    assert!(!page.text().await.contains("hunter2"));
    page.click(".value button:has-text('Show')").await;
    page.sees("code:has-text('hunter2')").await;
    page.open(&format!("{console}/{ORG}/-/states/net/prod/versions?from=1&to=2")).await;
    page.sees("code:has-text('cidr')").await;
    assert!(!page.text().await.contains("10.1.0.0/16"), "a value is shown");
    page.check_page("console-state-versions").await;

    page.open(&format!("{console}/{ORG}/-/locks")).await;
    page.sees("td:has-text('carol@build')").await;
    page.check_page("console-locks").await;
    page.click("td button:has-text('Unlock')").await;
    page.sees("[role=alertdialog]").await;
    page.fill("[role=alertdialog] textarea", "the build machine is gone").await;
    page.click("[role=alertdialog] button:has-text('Unlock')").await;
    page.sees("text=No state is locked").await;
    page.open(&format!("{console}/{ORG}/-/audit?event=state.unlock")).await;
    page.sees("td:has-text('the build machine is gone')").await;
    for (path, title) in
        [("members", "Members"), ("teams", "Teams"), ("grants", "Grants"), ("tokens", "Tokens")]
    {
        page.open(&format!("{console}/{ORG}/-/{path}")).await;
        page.sees(&format!("h1:has-text('{title}')")).await;
        page.sees("section").await;
        page.check_page(&format!("console-{path}")).await;
    }
}

/// The state of [`tfstate`], with resources of a module that depend on its own, and a password.
fn with_modules(serial: u64, range: &str) -> Value {
    let mut state = tfstate(serial, range);
    let subnet = |key: u64| {
        let mark = json!([[{ "type": "get_attr", "value": "password" }]]);
        json!({
            "index_key": key, "schema_version": 0, "dependencies": ["aws_vpc.main"],
            "attributes": { "id": format!("<img src=x onerror=alert({key})>"), "password": "hunter2" },
            "sensitive_attributes": mark,
        })
    };
    let subnets = json!({
        "module": "module.net[\"a.b\"]", "mode": "managed", "type": "aws_subnet", "name": "all",
        "provider": "provider[\"example.com/hashicorp/aws\"]", "instances": [subnet(0), subnet(1)],
    });
    state["resources"].as_array_mut().unwrap().push(subnets);
    state
}

#[tokio::test]
async fn a_resource_of_a_state_has_neighbors_history_and_values() {
    let app = TestApp::on(BACKEND).await;
    let post = async |path: &str, body: &Value| {
        let call = app.post(path, body).anonymous().header("Authorization", &format!("Bearer {}", app.token));
        assert_eq!(call.send().await.status.as_u16(), 200);
    };
    let path = format!("/tfstate/{ORG}/net/prod");
    post(&path, &tfstate(1, "10.0.0.0/16")).await;
    post(&path, &with_modules(2, "10.0.0.0/16")).await;
    post(&path, &with_modules(3, "10.1.0.0/16")).await;
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &json!({ "project": "app" })).send().await.expect(200);
    let edge = json!({ "producer": "net/prod", "output": "password", "consumer": "app" });
    app.post(&format!("/api/orgs/{ORG}/tfstate-edges"), &edge).send().await.expect(200);

    let state = format!("/{ORG}/-/states/net/prod");
    let (mut page, console) = signed_in(&app, &state).await;
    page.click("nav[aria-label='State'] a:has-text('Resources')").await;
    page.sees("[role=treeitem]:has-text('aws_vpc.main')").await;
    page.sees("[role=treeitem]:has-text('module.net[\"a.b\"]')").await;
    page.check_page("console-state-resources").await;
    // The tree by keyboard: the module is closed and opened, and its first resource is chosen.
    page.click("[role=treeitem]:has-text('aws_vpc.main')").await;
    page.sees("h2:has-text('Needed by')").await;
    page.sees("tr:has-text('Changed'):has-text('3')").await;
    page.sees("tr:has-text('Created'):has-text('1')").await;
    page.sees(".graph").await;
    page.check_page("console-state-resource").await;
    page.fill("[aria-label='Filter by address or provider']", "subnet").await;
    page.sees("text=2 of 3").await;
    page.press("Tab").await;
    page.press("Home").await;
    page.press("ArrowLeft").await;
    page.press("ArrowRight").await;
    page.press("ArrowDown").await;
    page.press("Enter").await;
    page.sees("h2:has-text('all[0]')").await;
    let url = page.url().await;
    assert!(url.contains("q=subnet") && url.contains("address="), "{url}");
    assert!(!page.text().await.contains("onerror"), "a value is shown");
    page.click("button:has-text('Show values')").await;
    page.sees("code:has-text('onerror=alert(0)')").await;
    assert!(!page.text().await.contains("hunter2"), "a sensitive value is shown");
    page.check_page("console-state-values").await;
    page.click("button:has-text('Show sensitive ones too')").await;
    page.sees("code:has-text('hunter2')").await;
    page.click(".list-row a:has-text('aws_vpc.main')").await;
    page.sees("h2:has-text('main')").await;
    page.open(&format!("{console}/{ORG}/-/audit?event=state.values")).await;
    page.sees("td:has-text('with sensitive values')").await;

    // The map leads to both ends.
    page.click("nav[aria-label='Organization'] a:has-text('Dependencies')").await;
    page.sees(".graph").await;
    page.sees("tr:has-text('app/default'):has-text('Stale')").await;
    page.check_page("console-dependencies").await;
    page.fill("[aria-label='Filter by name']", "nothing like it").await;
    page.sees("text=Nothing here is found by this filter").await;
    page.fill("[aria-label='Filter by name']", "").await;
    page.click("td a:has-text('net/prod')").await;
    page.arrives(&format!("{console}{state}")).await;
}

#[tokio::test]
async fn an_admin_changes_the_organization_and_protects_a_stack() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "web", PROGRAM).await;
    cli.run(UP).await.assert_success();
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/-/members")).await;

    // A person is invited, and gets another role. The link is shown once.
    page.click("button:has-text('Invite')").await;
    page.fill("[role=alertdialog] input", "dora").await;
    page.check_page("console-invite").await;
    page.click("[role=alertdialog] button:has-text('Make the link')").await;
    page.sees(".once code").await;
    let link = page.value(".once code").await;
    assert!(link.starts_with(&format!("{console}/invite?code=dora.")), "{link}");
    page.click("button:has-text('I have it')").await;
    page.click("[aria-label='Change dora']").await;
    page.click("[role=menuitem]:has-text('Role')").await;
    page.run(&json!({ "command": "select", "what": "[role=alertdialog] select", "value": "view" })).await;
    page.click("button:has-text('Change the role')").await;
    page.sees("tr:has-text('dora'):has-text('view')").await;

    // She gets more by a team with a grant, and the page tells why.
    page.open(&format!("{console}/{ORG}/-/teams")).await;
    page.click("button:has-text('Create a team')").await;
    page.fill("[role=alertdialog] input >> nth=0", "shop").await;
    page.click("[role=alertdialog] button:has-text('Create the team')").await;
    page.click(".step-head:has-text('shop')").await;
    page.click("button:has-text('Add a member')").await;
    page.fill("[role=alertdialog] input", "dora").await;
    page.click("[role=alertdialog] button:has-text('Add')").await;
    page.sees(".step-body li:has-text('dora')").await;
    page.check_page("console-team").await;
    page.open(&format!("{console}/{ORG}/-/grants")).await;
    page.click("button:has-text('Give a role')").await;
    page.run(&json!({ "command": "select", "what": "[role=alertdialog] select >> nth=0", "value": "team" }))
        .await;
    page.fill("[role=alertdialog] input >> nth=0", "shop").await;
    page.fill("[role=alertdialog] input >> nth=1", "web/*").await;
    page.check_page("console-grant").await;
    page.click("[role=alertdialog] button:has-text('Give the role')").await;
    page.sees("tr:has-text('team:shop')").await;
    page.fill("form input >> nth=0", "dora").await;
    page.fill("form input >> nth=1", "web/dev").await;
    page.press("Enter").await;
    page.sees("tr:has-text('apply'):has-text('to team:shop on web/*')").await;
    assert!(page.url().await.ends_with("/-/grants?user=dora&stack=web%2Fdev"), "{}", page.url().await);
    page.check_page("console-why").await;
    page.click("[aria-label='Remove the grant to team:shop on web/*']").await;
    page.click("button:has-text('Remove the grant')").await;
    page.sees("text=There are no grants").await;

    // The secret of a token is shown once.
    page.open(&format!("{console}/{ORG}/-/tokens?of=organization")).await;
    page.click("button:has-text('Create a token')").await;
    page.fill("[role=alertdialog] input >> nth=0", "deploys").await;
    page.run(&json!({ "command": "select", "what": "[role=alertdialog] select >> nth=1", "value": "28800" }))
        .await;
    page.check_page("console-new-token").await;
    page.click("[role=alertdialog] button:has-text('Create the token')").await;
    page.sees(".once code").await;
    let secret = page.value(".once code").await;
    assert!(secret.starts_with("swt_"), "{secret}");
    page.click("button:has-text('I have it')").await;
    page.sees("tr:has-text('deploys')").await;
    assert!(!page.text().await.contains(&secret), "the secret is still shown");
    page.click("[aria-label='Change deploys']").await;
    page.click("[role=menuitem]:has-text('Revoke')").await;
    page.click("button:has-text('Revoke the token')").await;
    page.sees("main:not(:has(tr:has-text('deploys')))").await;
    page.open(&format!("{console}/{ORG}/-/audit?event=token.delete")).await;
    page.sees("td:has-text('deploys')").await;

    // What is protected is not deleted, until the protection is lifted.
    page.open(&format!("{console}/{ORG}/web/dev")).await;
    page.click("button:has-text('Protect')").await;
    page.fill("[role=alertdialog] textarea", "it is production").await;
    page.click("button:has-text('Protect it')").await;
    page.sees(".notice:has-text('it is production')").await;
    page.check_page("console-protected").await;
    let refused = cli.run(["stack", "rm", "--yes", "--force"]).await.assert_failure();
    assert_says(&refused, &["with the reason \"it is production\""]);
    page.click("button:has-text('Lift')").await;
    page.click("button:has-text('Lift it')").await;
    page.sees("button:has-text('Protect')").await;
    cli.run(["stack", "rm", "--yes", "--force"]).await.assert_success();
}

#[tokio::test]
async fn a_deleted_state_is_undeleted() {
    let app = TestApp::on(BACKEND).await;
    let new = json!({ "project": "net", "state": "old" });
    let state = app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
    let id = state["id"].as_str().unwrap();
    app.request(Method::DELETE, &format!("/api/tfstates/{id}")).send().await.expect(204);

    let (mut page, console) = signed_in(&app, &format!("/{ORG}/-/deleted")).await;
    page.sees("tr:has-text('net/old')").await;
    page.check_page("console-deleted").await;
    page.click("[aria-label='Undelete net/old']").await;
    page.click("button:has-text('Undelete it')").await;
    page.sees("text=No deleted state is kept").await;
    page.open(&format!("{console}/{ORG}/-/states/net/old")).await;
    page.sees("h1:has-text('old')").await;
}

#[tokio::test]
async fn a_stack_is_renamed_deleted_and_undeleted() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "web", PROGRAM).await;
    cli.run(UP).await.assert_success();
    // The address that the client prints.
    let settings = format!("/{ORG}/web/dev/settings/options");
    let (mut page, console) = signed_in(&app, &settings).await;
    page.click("button:has-text('New tag')").await;
    page.fill("[role=alertdialog] input >> nth=0", "team").await;
    page.fill("[role=alertdialog] input >> nth=1", "shop").await;
    page.click("[role=alertdialog] button:has-text('Add it')").await;
    page.sees("tr:has-text('team'):has-text('shop')").await;
    page.check_page("console-stack-settings").await;
    page.click("button:text-is('Rename')").await;
    page.fill("[role=alertdialog] input >> nth=1", "prod").await;
    page.click("[role=alertdialog] button:has-text('Rename it')").await;
    page.arrives(&format!("{console}/{ORG}/web/prod/settings/options")).await;
    page.sees("li:has-text('Rename acme/web/dev to acme/web/prod')").await;

    page.click("button:text-is('Delete')").await;
    page.fill("[role=alertdialog] input", "web/prod").await;
    page.check_page("console-delete-stack").await;
    page.click("[role=alertdialog] button:has-text('Delete it')").await;
    page.arrives(&format!("{console}/{ORG}/-/deleted")).await;
    page.sees("tr:has-text('web/prod')").await;
    page.check_page("console-deleted-stack").await;
    page.click("[aria-label='Undelete web/prod']").await;
    page.click("button:has-text('Undelete it')").await;
    page.sees("text=No deleted stack is kept").await;
    page.open(&format!("{console}/{ORG}/web/prod")).await;
    page.sees("th:has-text('password')").await;
    // The address of a search of resources, which the client prints.
    page.open(&format!("{console}/{ORG}/resources?query=type%3Abucket")).await;
    page.sees("text=This server does not search the resources of all stacks").await;
    page.open(&format!("{console}/{ORG}/-/audit?event=stack.undelete")).await;
    page.sees("tr:has-text('web/prod'):has-text('browser')").await;
}

#[tokio::test]
async fn a_state_gets_labels_and_another_name() {
    let app = TestApp::on(BACKEND).await;
    let new = json!({ "project": "net", "state": "prod" });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/-/labels")).await;
    page.sees("text=There is none, so states may have any labels").await;
    page.click("button:text-is('Change')").await;
    page.fill("[role=alertdialog] input >> nth=0", "team").await;
    page.check_page("console-change-labels").await;
    page.click("[role=alertdialog] button:has-text('Change the policy')").await;
    page.sees("tr:has-text('net/prod')").await;
    page.check_page("console-labels").await;
    page.click("a:has-text('net/prod')").await;
    page.arrives(&format!("{console}/{ORG}/-/states/net/prod/settings")).await;
    page.click("button:has-text('New label')").await;
    page.fill("[role=alertdialog] input >> nth=0", "team").await;
    page.fill("[role=alertdialog] input >> nth=1", "shop").await;
    page.click("[role=alertdialog] button:has-text('Add it')").await;
    page.sees("tr:has-text('team'):has-text('shop')").await;
    page.click("[aria-label='Turn on: Needs the lock']").await;
    page.click("[role=alertdialog] button:has-text('Change it')").await;
    page.sees("[aria-label='Turn off: Needs the lock']").await;
    page.check_page("console-state-settings").await;
    page.click("button:text-is('Rename')").await;
    page.fill("[role=alertdialog] input >> nth=1", "live").await;
    page.click("[role=alertdialog] button:has-text('Rename it')").await;
    page.arrives(&format!("{console}/{ORG}/-/states/net/live/settings")).await;
    page.open(&format!("{console}/{ORG}/-/labels")).await;
    page.sees("text=None of 1 states breaks it").await;
}

#[tokio::test]
async fn the_server_is_shown_to_its_admins_and_issuers_are_added() {
    let app = TestApp::on(BACKEND).await;
    app.member("bob", "laptop").await;
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/-/operator")).await;
    page.sees("h1:has-text('Server')").await;
    page.sees(&format!("tr:has-text('{ORG}')")).await;
    page.sees("text=Nothing waits").await;
    page.check_page("console-server").await;

    page.open(&format!("{console}/{ORG}/-/issuers")).await;
    page.click("button:has-text('Add an issuer')").await;
    let issuer = Issuer::new("https://ci.example.com");
    page.fill("[role=alertdialog] input >> nth=0", &issuer.url).await;
    page.fill("[role=alertdialog] input >> nth=1", "Our CI").await;
    page.fill("[role=alertdialog] textarea", &issuer.key_set().to_string()).await;
    page.check_page("console-add-issuer").await;
    page.click("[role=alertdialog] button:has-text('Add the issuer')").await;
    page.sees("tr:has-text('https://ci.example.com')").await;
    page.click("button:has-text('Add a policy')").await;
    page.fill("[role=alertdialog] textarea", "sub=repo:acme/app").await;
    page.check_page("console-add-policy").await;
    page.click("[role=alertdialog] button:has-text('Add the policy')").await;
    page.sees("tr:has-text('sub=repo:acme/app')").await;
    page.check_page("console-issuers").await;
    let issuers = app.get(&format!("/api/orgs/{ORG}/oidc/issuers")).send().await.expect(200);
    assert_eq!(issuers["oidcIssuers"][0]["name"], "Our CI");
    page.click("[aria-label='Change Our CI']").await;
    page.click("[role=menuitem]:has-text('Delete')").await;
    page.click("[role=alertdialog] button:has-text('Delete it')").await;
    page.sees("text=No issuer is registered").await;

    // Somebody else finds nothing there, and no way to it.
    let (mut page, _) = signed_in_as(&app, "bob", &format!("/{ORG}/-/operator")).await;
    page.sees("text=There is nothing at this address").await;
    let text = page.text().await;
    assert!(!text.contains("Server\n") && !text.contains("Issuers"), "{text}");
}

#[tokio::test]
async fn a_session_that_ends_loses_nothing_that_was_typed() {
    let app = TestApp::on(BACKEND).await;
    let name = json!({ "project": "web", "name": "dev" });
    app.post(&format!("/api/esc/environments/{ORG}"), &name).send().await.expect(204);
    let editor = "textarea[aria-label=Definition]";
    let (mut page, console) = signed_in(&app, &format!("/{ORG}/esc/web/dev")).await;
    page.sees(editor).await;
    page.fill(editor, "values:\n  region: eu-1\n").await;
    page.sees("text=No errors").await;
    page.run(&json!({ "command": "forget" })).await;
    page.click("button:text-is('Save')").await;
    page.sees("text=Your session is over").await;
    let typed = page.run(&json!({ "command": "input", "what": editor })).await;
    assert_eq!(typed, "values:\n  region: eu-1\n");
    // A page without such a text leads to the sign-in, and back.
    page.run(&json!({ "command": "problems" })).await;
    page.click("button:has-text('Drop changes')").await;
    page.open(&format!("{console}/{ORG}/-/locks")).await;
    page.sees("input[name=login]").await;
}

/// A definition with a secret.
const DEFINITION: &str = "values:
  region: eu-1
  password:
    fn::secret: hunter2
  pulumiConfig:
    page: <img src=x onerror=alert(1)>
    password: ${password}
";

#[tokio::test]
async fn an_environment_is_edited_while_somebody_else_edits_it() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app);
    cli.write("environment.yaml", DEFINITION);
    let name = format!("{ORG}/web/prod");
    cli.run(["env", "init", &name, "--file", "environment.yaml"]).await.assert_success();
    cli.run(["env", "tag", &name, "team", "shop"]).await.assert_success();

    let environment = format!("/{ORG}/esc/web/prod");
    let editor = "textarea[aria-label=Definition]";
    let (mut page, console) = signed_in(&app, &environment).await;
    page.sees(editor).await;
    page.check_page("console-environment").await;
    page.fill(editor, "values:\n  region: ${nope}\n").await;
    page.sees(".list-row:has-text('unknown property')").await;
    page.check_page("console-environment-errors").await;

    // The secret is masked in the editor, and stays what it was.
    let edited = "values:\n  region: eu-2\n  password: {fn::secret: {ciphertext: ••••••••1}}\n";
    page.fill(editor, edited).await;
    page.sees("text=No errors").await;
    cli.run(["env", "set", &name, "region", "eu-9"]).await.assert_success();
    page.click("button:text-is('Save')").await;
    page.sees("text=Somebody saved revision 3 while you edited").await;
    page.sees(".removed:has-text('eu-9')").await;
    // The conflict is an error of the browser's console.
    page.run(&json!({ "command": "problems" })).await;
    page.check_page("console-environment-overtaken").await;
    let kept = cli.run(["env", "get", &name, "region"]).await.assert_success();
    assert!(kept.stdout.contains("eu-9"), "{kept}");
    page.click("button:has-text('Save mine over revision 3')").await;
    page.sees("text=Saved as revision 4").await;
    let opened = cli.run(["env", "open", &name]).await.assert_success().json();
    assert_eq!(opened, json!({ "region": "eu-2", "password": "hunter2" }));
    page.click("button:has-text('Decrypt')").await;
    page.click("button:has-text('Hide secrets')").await;

    // What is not saved is not lost by a wrong click.
    page.fill(editor, "values: {}\n").await;
    page.click(".tabs a:has-text('Opened values')").await;
    page.sees("[role=alertdialog]:has-text('Leave without saving?')").await;
    page.click("[role=alertdialog] button:text-is('Leave')").await;

    page.click("button:has-text('Open the values')").await;
    page.sees("th:has-text('password')").await;
    assert!(!page.text().await.contains("hunter2"));
    page.check_page("console-environment-values").await;
    page.click(".value button:has-text('Show')").await;
    page.sees("code:has-text('hunter2')").await;

    page.open(&format!("{console}{environment}/revisions?from=2&to=4")).await;
    page.sees(".removed:has-text('onerror')").await;
    page.sees(".added:has-text('eu-2')").await;
    assert!(!page.text().await.contains("hunter2"));
    page.check_page("console-environment-revisions").await;
    page.click("[aria-label='Tag revision 2']").await;
    page.fill("[role=alertdialog] input", "stable").await;
    page.click("[role=alertdialog] button:has-text('Add the tag')").await;
    page.sees(".tag:has-text('stable')").await;
    page.click("[aria-label='More about revision 2']").await;
    page.click("[role=menuitem]:has-text('Restore')").await;
    page.click("[role=alertdialog] button:has-text('Restore it')").await;
    page.sees("tr:has-text('latest') a:text-is('5')").await;
    let opened = cli.run(["env", "open", &name]).await.assert_success().json();
    assert_eq!(opened["pulumiConfig"]["password"], "hunter2");

    page.open(&format!("{console}{environment}/settings")).await;
    page.sees("td:has-text('shop')").await;
    page.check_page("console-environment-settings").await;
    page.open(&format!("{console}/{ORG}/-/environments?q=team%3Dshop")).await;
    page.sees(".item a:text-is('prod')").await;
    page.check_page("console-environments").await;
    for event in ["environment.decrypt", "environment.open", "environment.edit"] {
        page.open(&format!("{console}/{ORG}/-/audit?event={event}")).await;
        page.sees(&format!("tr:has-text('{event}'):has-text('browser')")).await;
    }
}

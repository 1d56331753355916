//! The pages of Terraform states.

use reqwest::Method;
use serde_json::{Value, json};
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::browser::Chromium;
use statewright_tests::console::{send_state, signed_in, tflock, tfstate};

use crate::BACKEND;

#[tokio::test]
async fn a_state_is_compared_and_unlocked_with_a_reason() {
    let app = TestApp::on(BACKEND).await;
    let path = format!("/tfstate/{ORG}/net/prod");
    send_state(&app, &path, &tfstate(1, "10.0.0.0/16")).await;
    send_state(&app, &path, &tfstate(2, "10.1.0.0/16")).await;
    send_state(&app, &format!("{path}/lock"), &tflock("carol@build")).await;

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

    // Whether the holder has written.
    page.open(&format!("{console}/{ORG}/-/states/net/prod")).await;
    page.sees(".notice:has-text('nothing written yet')").await;
    page.open(&format!("{console}/{ORG}/-/locks")).await;
    page.sees("tr:has-text('carol@build'):has-text('nothing written yet')").await;
    send_state(&app, &format!("{path}?ID=8a7f2c1e-3b4d-4e5f-9a8b-7c6d5e4f3a2b"), &tfstate(3, "10.2.0.0/16"))
        .await;
    page.open(&format!("{console}/{ORG}/-/states/net/prod")).await;
    page.sees(".notice:has-text('wrote')").await;
    let new = json!({ "project": "app" });
    let other = app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
    page.open(&format!("{console}/{ORG}/-/locks")).await;
    page.sees("tr:has-text('carol@build'):has-text('has written')").await;
    page.check_page("console-locks").await;
    page.click("td button:has-text('Unlock')").await;
    page.sees("[role=alertdialog]").await;
    page.check_briefly("console-unlock").await;
    page.fill("[role=alertdialog] textarea", "the build machine is gone").await;
    page.click("[role=alertdialog] button:has-text('Unlock')").await;
    page.sees("text=No state is locked").await;
    page.open(&format!("{console}/{ORG}/-/audit?event=state.unlock")).await;
    page.sees("td:has-text('the build machine is gone')").await;

    // What the run that lost its lock still sends is kept next to the versions, of which any two are compared.
    let held = format!("{path}?ID=8a7f2c1e-3b4d-4e5f-9a8b-7c6d5e4f3a2b");
    let late = app.post(&held, &tfstate(4, "10.3.0.0/16")).anonymous();
    late.header("Authorization", &format!("Bearer {}", app.token)).send().await.refused(409);
    page.open(&format!("{console}/{ORG}/-/states/net/prod/versions")).await;
    page.sees("[aria-label='Refused writes'] tr:has-text('its lock was taken away'):has(td:text-is('4'))")
        .await;
    page.check_briefly("console-state-refused").await;
    for (field, version) in [("Compare", "1"), ("with", "3")] {
        let what = format!("label:has(span:text-is('{field}')) select");
        page.run(&json!({ "command": "select", "what": what, "value": version })).await;
    }
    page.click("button:text-is('Compare')").await;
    page.arrives(&format!("{console}/{ORG}/-/states/net/prod/versions?from=1&to=3")).await;
    page.sees("h2:has-text('Version 1 compared with version 3')").await;
    page.sees(".diff-path:text-is('cidr')").await;
    page.open(&format!("{console}/{ORG}/-/states/net/prod")).await;
    for (fact, value) in
        [("Version", "3"), ("Serial", "3"), ("Lineage", "11111111-2222-4333-8444-555555555555")]
    {
        page.sees(&format!(".facts div:has(dt:text-is('{fact}')) dd:has-text('{value}')")).await;
    }

    // One of the others is locked by hand.
    page.open(&format!("{console}/{ORG}/-/locks")).await;
    page.click("button:has-text('Lock by hand')").await;
    let select = "[role=alertdialog] select";
    page.run(&json!({ "command": "select", "what": select, "value": other["id"] })).await;
    page.fill("[role=alertdialog] textarea", "the network is moved").await;
    page.check_briefly("console-lock-by-hand").await;
    page.click("[role=alertdialog] button:has-text('Lock it')").await;
    page.sees("tr:has-text('app/default'):has-text('By hand'):has-text('the network is moved')").await;
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
    state["resources"][0]["instances"][0]["attributes"]["arn"] =
        json!("arn:aws:ec2:eu-west-1:111122223333:vpc/vpc-1");
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
    let path = format!("/tfstate/{ORG}/net/prod");
    send_state(&app, &path, &tfstate(1, "10.0.0.0/16")).await;
    send_state(&app, &path, &with_modules(2, "10.0.0.0/16")).await;
    send_state(&app, &path, &with_modules(3, "10.1.0.0/16")).await;
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
    page.sees(".graph .node:has-text('main')").await;
    page.click("[aria-label='What changed in version 3']").await;
    page.sees(".diff-path:text-is('cidr')").await;
    page.check_page("console-state-resource").await;
    page.run(&json!({ "command": "select", "what": ".one select", "value": "2" })).await;
    page.arrives(&format!("{console}{state}/resources?address=aws_vpc.main&hops=2")).await;
    page.sees(".graph .node:has-text('all[0]')").await;
    // The button brings the graph into view.
    page.click(".graph [aria-label='Smaller']").await;
    page.check_page("console-state-graph").await;
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
    page.sees("h2:text-is('main')").await;
    page.click("button:has-text('Show values')").await;
    let place = "eu-west-1.console.aws.amazon.com/vpcconsole/home?region=eu-west-1";
    page.sees(&format!("a[href='https://{place}#VpcDetails:VpcId=vpc-1']:has-text('Open in AWS')")).await;
    page.click("tr:has-text('Created') a:has-text('As it was then')").await;
    page.sees(".notice:has-text('This is version 1')").await;
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
    // The table is below the map.
    page.sees(".graph .node:has-text('net/prod')").await;
    page.click("td a:has-text('net/prod')").await;
    page.arrives(&format!("{console}{state}")).await;
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
    page.open(&format!("{console}/{ORG}/-/states/net/live")).await;
    page.sees("section:has(h2:has-text('Labels')) .facts div:has(dt:text-is('team')) dd:text-is('shop')")
        .await;
    page.open(&format!("{console}/{ORG}/-/labels")).await;
    page.sees("text=The one state keeps to it").await;
}

#[tokio::test]
async fn the_focus_goes_to_the_next_row_when_one_goes() {
    let app = TestApp::on(BACKEND).await;
    for name in ["a", "b", "c"] {
        let new = json!({ "project": "net", "state": name });
        let state = app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
        let path = format!("/api/tfstates/{}", state["id"].as_str().unwrap());
        app.request(Method::DELETE, &path).send().await.expect(204);
    }
    let (mut page, _) = signed_in(&app, &format!("/{ORG}/-/deleted")).await;
    // The next one, the one before the last, and the heading of an empty list.
    for (name, next) in [
        ("b", "[aria-label='Undelete net/c']:focus"),
        ("c", "[aria-label='Undelete net/a']:focus"),
        ("a", "h2:focus:has-text('Deleted states')"),
    ] {
        page.click(&format!("[aria-label='Undelete net/{name}']")).await;
        page.click("button:has-text('Undelete it')").await;
        page.sees(next).await;
    }
}

#[tokio::test]
async fn two_people_change_the_policy_and_neither_change_is_lost() {
    let app = TestApp::on(BACKEND).await;
    let path = format!("/api/orgs/{ORG}/tfstate-policy");
    let (mut page, _) = signed_in(&app, &format!("/{ORG}/-/labels")).await;
    page.click("button:text-is('Change')").await;
    page.fill("[role=alertdialog] input >> nth=0", "team").await;
    let theirs = json!({ "version": 0, "policy": { "immutableKeys": ["env"] } });
    app.request(Method::PUT, &path).json(&theirs).send().await.expect(200);
    page.click("[role=alertdialog] button:has-text('Change the policy')").await;
    page.sees("text=changed the policy while you did").await;
    let typed = async |page: &mut Chromium, nth: usize| {
        let what = format!("[role=alertdialog] input >> nth={nth}");
        page.run(&json!({ "command": "input", "what": what })).await
    };
    assert_eq!((typed(&mut page, 0).await, typed(&mut page, 2).await), (json!("team"), json!("env")));
    // And once more: what the first change did to the form is still said.
    let again = json!({ "immutableKeys": ["env"], "allowedKeys": ["env", "team"] });
    let again = json!({ "version": 1, "policy": again });
    app.request(Method::PUT, &path).json(&again).send().await.expect(200);
    page.click("[role=alertdialog] button:has-text('Change the policy')").await;
    page.sees("[role=alertdialog] .notice:has-text('of: Allowed keys, Keys whose first value is final.')")
        .await;
    page.sees("[role=alertdialog] [role=alert]:has-text('Your change was not saved.')").await;
    page.run(&json!({ "command": "problems" })).await;
    page.click("[role=alertdialog] button:has-text('Change the policy')").await;
    page.sees("main code:has-text('team')").await;
    let policy = app.get(&path).send().await.expect(200)["policy"].clone();
    let both = (&policy["requiredKeys"], &policy["immutableKeys"]);
    assert_eq!(both, (&json!(["team"]), &json!(["env"])));
}

#[tokio::test]
async fn the_same_change_of_two_people_leaves_nothing_to_save() {
    let app = TestApp::on(BACKEND).await;
    let (mut page, _) = signed_in(&app, &format!("/{ORG}/-/labels")).await;
    page.click("button:text-is('Change')").await;
    page.fill("[role=alertdialog] input >> nth=0", "team").await;
    let theirs = json!({ "version": 0, "policy": { "requiredKeys": ["team"] } });
    let path = format!("/api/orgs/{ORG}/tfstate-policy");
    app.request(Method::PUT, &path).json(&theirs).send().await.expect(200);
    page.click("[role=alertdialog] button:has-text('Change the policy')").await;
    page.sees("[role=alertdialog] [role=alert]:has-text('there is nothing left to save')").await;
    page.sees("[role=alertdialog] button[aria-disabled='true']:has-text('Change the policy')").await;
    let policy = app.get(&path).send().await.expect(200);
    assert_eq!((&policy["version"], &policy["policy"]["requiredKeys"]), (&json!(1), &json!(["team"])));
}

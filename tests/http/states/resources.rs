//! The resources of Terraform states: pages of them, one with its attributes, its history, and the map of an
//! organization.

use serde_json::{Value, json};
use statewright_shared::domain::role::Role;
use statewright_shared::domain::tfstate::{MASK, NAMED_MAX};
use statewright_shared::services::states::resources::{FILTER_BYTES_MAX, HISTORY_PAGE};
use statewright_tests::app::{Answer, ORG, TestApp};

use crate::api::call_counts::{counted, describe_calls};
use crate::api::routes::STATE;
use crate::world::{Stack, deployment};

const SECRET: &str = "hunter2";

fn resource(module: &str, name: &str, instances: &[Value]) -> Value {
    let mut resource = json!({
        "mode": "managed", "type": "terraform_data", "name": name,
        "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": instances,
    });
    if !module.is_empty() {
        resource["module"] = module.into();
    }
    resource
}

fn instance(value: &str, needs: &[&str]) -> Value {
    json!({
        "schema_version": 0, "dependencies": needs,
        "attributes": { "id": value, "password": SECRET, "list": [{ "key": SECRET, "n": 1.10 }] },
        "sensitive_attributes": [
            [{ "type": "get_attr", "value": "password" }],
            [{ "type": "get_attr", "value": "list" }, { "type": "index", "value": { "value": 0, "type": "number" } },
             { "type": "get_attr", "value": "key" }],
        ],
    })
}

fn state(serial: u64, resources: &[Value]) -> Value {
    json!({
        "version": 4, "terraform_version": "1.12.6", "serial": serial, "lineage": "aaaa", "outputs": {},
        "resources": resources,
    })
}

/// The state that all these tests are about, with no version yet.
struct Net<'a>(&'a TestApp);

impl<'a> Net<'a> {
    async fn new(app: &'a TestApp) -> Self {
        let new = json!({ "id": STATE, "project": "net" });
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
        Self(app)
    }

    async fn write(&self, text: &Value) {
        self.0.post(&format!("/tfstate/{STATE}"), text).send().await.expect(200);
    }

    async fn get(&self, tail: &str) -> Answer {
        self.0.get(&format!("/api/tfstates/{STATE}{tail}")).send().await
    }

    async fn values(&self, body: &Value, token: &str) -> Answer {
        self.0.post(&format!("/api/tfstates/{STATE}/resource/values"), body).token(token).send().await
    }

    /// A state with a base, two instances of a module that need it, and one that needs these.
    async fn with_four(app: &'a TestApp) -> Self {
        let net = Self::new(app).await;
        let with_key = |key: u64| {
            let mut one = instance("mid", &["terraform_data.base"]);
            one["index_key"] = key.into();
            one
        };
        net.write(&state(
            1,
            &[
                resource("", "top", &[instance("top", &["module.m.terraform_data.mid"])]),
                resource("module.m", "mid", &[with_key(0), with_key(1)]),
                resource("", "base", &[instance("base", &[])]),
            ],
        ))
        .await;
        net
    }
}

fn addresses(page: &Value) -> Vec<&str> {
    page["resources"].as_array().unwrap().iter().map(|one| one["address"].as_str().unwrap()).collect()
}

const BASE: &str = "terraform_data.base";
const TOP: &str = "terraform_data.top";
const MID: [&str; 2] = ["module.m.terraform_data.mid[0]", "module.m.terraform_data.mid[1]"];

#[tokio::test]
async fn resources_are_listed_in_pages_of_one_version() {
    let app = TestApp::memory().await;
    let net = Net::with_four(&app).await;
    let all = net.get("/resources").await.expect(200);
    assert_eq!(addresses(&all), [BASE, TOP, MID[0], MID[1]]);
    assert_eq!((&all["version"], &all["total"], &all["matched"]), (&json!(1), &json!(4), &json!(4)));
    assert_eq!(all["continuationToken"], Value::Null);
    let expected = json!({
        "address": MID[0], "module": "module.m", "mode": "managed", "type": "terraform_data", "name": "mid",
        "key": "0", "provider": "terraform.io/builtin/terraform", "dependencyCount": 1,
    });
    assert_eq!(all["resources"][2], expected);

    let found = net.get("/resources?filter=MID%20%5B1").await.expect(200);
    assert_eq!(addresses(&found), [MID[1]]);
    assert_eq!((&found["total"], &found["matched"]), (&json!(4), &json!(1)));

    let first = net.get("/resources?size=3").await.expect(200);
    assert_eq!(addresses(&first), [BASE, TOP, MID[0]]);
    // The next page is of the same version, whatever was written meanwhile.
    net.write(&state(2, &[])).await;
    let token = first["continuationToken"].as_str().unwrap();
    let second = net.get(&format!("/resources?size=3&continuationToken={token}")).await.expect(200);
    assert_eq!((addresses(&second), &second["version"]), (vec![MID[1]], &json!(1)));
    assert_eq!(net.get("/resources").await.expect(200)["total"], 0);
    assert_eq!(addresses(&net.get("/resources?version=1&size=1").await.expect(200)), [BASE]);
    assert_eq!(addresses(&net.get("/resources?version=1&size=0").await.expect(200)), [BASE]);

    for bad in [
        format!("/resources?version=2&continuationToken={token}"),
        "/resources?continuationToken=none".to_owned(),
        "/resources?continuationToken=MQ".to_owned(),
        "/resources?version=0".to_owned(),
        "/resources?size=many".to_owned(),
        format!("/resources?filter={}", "x".repeat(FILTER_BYTES_MAX + 1)),
        "/resource".to_owned(),
        "/resource?address=".to_owned(),
        format!("/resource?address={BASE}&version=x"),
        "/resource/history".to_owned(),
        format!("/resource/history?address={BASE}&continuationToken=x"),
    ] {
        net.get(&bad).await.refused(400);
    }
    for missing in ["/resources?version=9".to_owned(), format!("/resource?address={BASE}&version=9")] {
        net.get(&missing).await.refused(404);
    }
}

#[tokio::test]
async fn one_resource_has_its_neighbors_and_values_on_request_only() {
    let app = TestApp::memory().await;
    let net = Net::with_four(&app).await;
    let top = net.get(&format!("/resource?address={TOP}")).await;
    assert!(!top.text().contains(SECRET));
    let top = top.expect(200);
    assert_eq!((&top["dependencies"], &top["dependents"]), (&json!(MID), &json!([])));
    let base = net.get(&format!("/resource?address={BASE}&version=1")).await.expect(200);
    assert_eq!((&base["dependencies"], &base["dependents"]), (&json!([]), &json!(MID)));
    assert_eq!((&base["version"], &base["dependentsMore"]), (&json!(1), &json!(0)));
    let missing = net.get("/resource?address=terraform_data.none").await.refused(404);
    assert!(missing.contains("version 1 has no resource terraform_data.none"), "{missing}");

    let viewer = app.member_with_role(Role::View, "victor", "laptop").await;
    let planner = app.member_with_role(Role::Plan, "paula", "laptop").await;
    for tail in [
        "/resources".to_owned(),
        format!("/resource?address={BASE}"),
        format!("/resource/history?address={BASE}"),
    ] {
        app.get(&format!("/api/tfstates/{STATE}{tail}")).token(&viewer).send().await.expect(200);
    }
    let ask = json!({ "address": BASE });
    net.values(&ask, &viewer).await.refused(403);
    app.take_audit();
    let masked = net.values(&ask, &planner).await;
    assert!(!masked.text().contains(SECRET), "{}", masked.text());
    // Numbers are as the client wrote them.
    assert!(masked.text().contains("1.1"), "{}", masked.text());
    let masked = masked.expect(200);
    assert_eq!(masked["attributes"]["password"], MASK);
    assert_eq!(masked["attributes"]["list"][0]["key"], MASK);
    assert_eq!(masked["attributes"]["id"], "base");
    assert_eq!(
        (&masked["sensitive"], &masked["masked"]),
        (&json!(["list[0].key", "password"]), &json!(true))
    );
    let unmask = json!({ "address": BASE, "version": "1", "unmask": true });
    let shown = net.values(&unmask, &planner).await.expect(200);
    assert_eq!(shown["attributes"]["password"], SECRET);
    let records = app.take_audit();
    let details: Vec<_> = records.iter().map(|record| (&record["action"], &record["user"])).collect();
    assert_eq!(details, [(&json!("state.values"), &json!("paula")); 2]);
    let all = records.iter().map(Value::to_string).collect::<String>();
    assert!(all.contains(BASE) && all.contains("with sensitive values") && !all.contains(SECRET), "{all}");
    net.values(&json!({}), &planner).await.refused(400);
    net.values(&json!({ "address": "terraform_data.none" }), &planner).await.refused(404);
}

/// The addresses around one, and `from -> to` of each dependency.
fn around(answer: &Value) -> (Vec<&str>, Vec<String>) {
    let nodes: Vec<&str> =
        answer["nodes"].as_array().unwrap().iter().map(|node| node["address"].as_str().unwrap()).collect();
    let name = |place: &Value| nodes[usize::try_from(place.as_u64().unwrap()).unwrap()];
    let edges = answer["edges"].as_array().unwrap().iter();
    let edges = edges.map(|edge| format!("{} -> {}", name(&edge["from"]), name(&edge["to"]))).collect();
    (nodes, edges)
}

#[tokio::test]
async fn what_is_around_a_resource_is_found_by_steps() {
    let app = TestApp::memory().await;
    let net = Net::with_four(&app).await;
    let path = format!("/resource/neighbours?address={BASE}");
    let near = net.get(&path).await.expect(200);
    let edges = [format!("{} -> {BASE}", MID[0]), format!("{} -> {BASE}", MID[1])];
    assert_eq!(around(&near), (vec![BASE, MID[0], MID[1]], edges.to_vec()));
    assert_eq!((&near["version"], &near["isCut"]), (&json!(1), &Value::Null));
    let node = json!({
        "address": MID[1], "module": "module.m", "mode": "managed", "type": "terraform_data", "name": "mid",
        "key": "1",
    });
    assert_eq!(near["nodes"][2], node);
    for hops in [2, 3] {
        let far = net.get(&format!("{path}&hops={hops}&version=1")).await.expect(200);
        let (nodes, edges) = around(&far);
        assert_eq!((nodes, edges.len()), (vec![BASE, MID[0], MID[1], TOP], 4));
    }
    assert!(!near.to_string().contains(SECRET));
    net.get(&format!("{path}&hops=far")).await.refused(400);
    net.get("/resource/neighbours").await.refused(400);
    net.get("/resource/neighbours?address=terraform_data.none").await.refused(404);
    let viewer = app.member_with_role(Role::View, "victor", "laptop").await;
    app.get(&format!("/api/tfstates/{STATE}{path}")).token(&viewer).send().await.expect(200);
}

#[tokio::test]
async fn two_versions_are_compared_in_one_resource() {
    let app = TestApp::memory().await;
    let net = Net::with_four(&app).await;
    let two = |base: &str, top: &str| {
        [resource("", "base", &[instance(base, &[])]), resource("", "top", &[instance(top, &[])])]
    };
    net.write(&state(2, &two("base", "other"))).await;
    net.write(&state(3, &two("new", "other"))).await;
    let diff = async |one: u64, other: u64, address: &str| {
        net.get(&format!("/versions/{one}/diff/{other}?address={address}")).await.expect(200)
    };
    let changed = diff(2, 3, BASE).await;
    assert_eq!(changed["resources"]["changed"], json!([BASE]));
    let properties = json!([{ "path": "id", "change": "changed" }]);
    let of_base = json!([{ "address": BASE, "properties": properties, "more": 0 }]);
    assert_eq!(changed["changedProperties"], of_base);
    assert!(!changed.to_string().contains("new"), "{changed}");
    let same = diff(2, 3, TOP).await;
    assert_eq!((&same["resources"]["changedCount"], &same["changedProperties"]), (&json!(0), &json!([])));
    assert_eq!(diff(1, 2, MID[0]).await["resources"]["removed"], json!([MID[0]]));
    assert_eq!(diff(2, 1, MID[0]).await["resources"]["added"], json!([MID[0]]));
    let none = diff(1, 2, "terraform_data.none").await;
    let counts = ["addedCount", "changedCount", "removedCount"].map(|name| none["resources"][name].clone());
    assert_eq!(counts, [json!(0), json!(0), json!(0)]);
}

#[tokio::test]
async fn an_encrypted_version_says_that_nothing_is_known() {
    let app = TestApp::memory().await;
    let net = Net::new(&app).await;
    let none = net.get("/resources").await.expect(200);
    assert_eq!((&none["version"], &none["total"], addresses(&none).len()), (&json!(0), &json!(0), 0));
    net.get(&format!("/resource?address={BASE}")).await.refused(404);
    assert_eq!(net.get(&format!("/resource/history?address={BASE}")).await.expect(200)["entries"], json!([]));
    let base = resource("", "base", &[instance("base", &[])]);
    net.write(&state(1, std::slice::from_ref(&base))).await;
    let encrypted = json!({
        "serial": 2, "lineage": "aaaa", "meta": {}, "encrypted_data": "eA==", "encryption_version": "v0",
    });
    net.write(&encrypted).await;
    let of_base = ["/resource", "/resource/neighbours"].map(|row| format!("{row}?address={BASE}"));
    for tail in of_base.iter().chain(&["/resources".to_owned()]) {
        let refused = net.get(tail).await.refused(422);
        assert!(refused.contains("version 2"), "{refused}");
    }
    net.values(&json!({ "address": BASE }), &app.token).await.refused(422);
    net.write(&state(3, &[base])).await;
    let history = net.get(&format!("/resource/history?address={BASE}")).await.expect(200);
    assert_eq!(history["unknown"], json!([3, 2]));
    assert_eq!(ops(&history), ["1 create"]);
}

/// Each entry of a history: its version and what that did.
fn ops(history: &Value) -> Vec<String> {
    let entries = history["entries"].as_array().unwrap().iter();
    entries.map(|entry| format!("{} {}", entry["version"], entry["op"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn a_history_has_the_versions_that_changed_a_resource() {
    let app = TestApp::memory().await;
    let net = Net::new(&app).await;
    // More instances than a version names.
    let many = |value: &str| -> Vec<Value> {
        (0..NAMED_MAX + 10).map(|n| resource("", &format!("n{n:03}"), &[instance(value, &[])])).collect()
    };
    let last = format!("terraform_data.n{:03}", NAMED_MAX + 9);
    let mut texts = vec![many("a"), many("b"), many("b"), Vec::new(), many("b")];
    texts[2].push(resource("", "base", &[instance("base", &[])]));
    for (serial, resources) in (1..).zip(&texts) {
        net.write(&state(serial, resources)).await;
    }
    let history = net.get(&format!("/resource/history?address={last}")).await.expect(200);
    assert_eq!(ops(&history), ["5 create", "4 delete", "2 change", "1 create"]);
    assert_eq!((&history["unknown"], &history["continuationToken"]), (&json!([]), &Value::Null));
    let newest = &history["entries"][0];
    assert_eq!((&newest["serial"], newest["by"].is_string()), (&json!(5), true));
    let history = net.get(&format!("/resource/history?address={BASE}")).await.expect(200);
    assert_eq!(ops(&history), ["4 delete", "3 create"]);
}

#[tokio::test]
async fn a_long_history_comes_in_parts_with_constant_calls() {
    let (app, counter) = counted().await;
    let net = Net::new(&app).await;
    let versions = 2 * HISTORY_PAGE + 3;
    for serial in 1..=versions {
        let base = resource("", "base", &[instance(&format!("v{}", serial / 2), &[])]);
        net.write(&state(serial as u64, &[base])).await;
    }
    let (mut found, mut token, mut parts) = (Vec::new(), String::new(), 0);
    loop {
        counter.take();
        let history = net.get(&format!("/resource/history?address={BASE}{token}")).await.expect(200);
        assert_eq!(describe_calls(counter.take()), "1 get, 1 query (2)");
        found.extend(ops(&history));
        parts += 1;
        match history["continuationToken"].as_str() {
            Some(next) => token = format!("&continuationToken={next}"),
            None => break,
        }
    }
    assert_eq!(parts, 3);
    let mut expected: Vec<_> = (2..=versions).filter(|v| v % 2 == 0).map(|v| format!("{v} change")).collect();
    expected.reverse();
    expected.push("1 create".to_owned());
    assert_eq!(found, expected);
}

#[tokio::test]
async fn i10_cheap_resources_cost_one_read_of_the_text() {
    let (app, counter) = counted().await;
    let net = Net::with_four(&app).await;
    net.get("/resources").await.expect(200);
    for (tail, calls) in [
        ("/resources?size=1".to_owned(), "1 get, 1 blob get (2)"),
        ("/resources?version=1".to_owned(), "2 get, 1 blob get (3)"),
        (format!("/resource?address={BASE}"), "1 get, 1 blob get (2)"),
        (format!("/resource/neighbours?hops=3&address={BASE}"), "1 get, 1 blob get (2)"),
        (format!("/resource/history?address={BASE}"), "1 get, 1 query (2)"),
    ] {
        counter.take();
        net.get(&tail).await.expect(200);
        assert_eq!(describe_calls(counter.take()), calls, "{tail}");
    }
    counter.take();
    net.values(&json!({ "address": BASE }), &app.token).await.expect(200);
    assert_eq!(describe_calls(counter.take()), "1 get, 1 commit, 1 blob get (3)");
}

async fn map(app: &TestApp, token: &str) -> Value {
    app.get(&format!("/api/orgs/{ORG}/dependency-map")).token(token).send().await.expect(200)
}

/// `kind project/name status layer` of each node, and `from -> to stale` of each edge.
fn drawn(map: &Value) -> (Vec<String>, Vec<String>) {
    let nodes = map["nodes"].as_array().unwrap();
    let name =
        |node: &Value| format!("{}/{}", node["project"].as_str().unwrap(), node["name"].as_str().unwrap());
    let mut shown: Vec<String> = nodes
        .iter()
        .map(|node| {
            let (kind, status) =
                (node["kind"].as_str().unwrap(), node["status"].as_str().unwrap_or("unknown"));
            format!("{kind} {} {status} {}", name(node), node["layer"])
        })
        .collect();
    shown.sort();
    let end = |end: &Value| name(&nodes[usize::try_from(end.as_u64().unwrap()).unwrap()]);
    let edges = map["edges"].as_array().unwrap().iter();
    let mut edges: Vec<String> = edges
        .map(|edge| {
            let kind = edge["kind"].as_str().unwrap();
            format!("{kind} {} -> {} {}", end(&edge["from"]), end(&edge["to"]), edge["stale"])
        })
        .collect();
    edges.sort();
    (shown, edges)
}

/// Publishes a version of a stack that reads these stacks.
async fn reads(stack: &Stack<'_>, names: &[&str]) {
    let reference = |(number, name): (usize, &&str)| {
        let urn = format!("urn:pulumi:dev::{}::pulumi:pulumi:StackReference::r{number}", stack.project);
        json!({
            "urn": urn, "custom": true, "id": name, "type": "pulumi:pulumi:StackReference", "external": true,
            "inputs": { "name": name }, "outputs": { "name": name, "outputs": {} },
        })
    };
    let mut resources: Vec<Value> = names.iter().enumerate().map(reference).collect();
    resources.push(stack.resource("own"));
    stack.import(&deployment(&resources)).await;
}

#[tokio::test]
async fn the_map_shows_who_reads_whom_and_what_was_updated_since() {
    let app = TestApp::memory().await;
    let base = Stack::in_project(&app, "base").await;
    let web = Stack::in_project(&app, "web").await;
    let top = Stack::in_project(&app, "top").await;
    Stack::in_project(&app, "alone").await.publish(&["a"]).await;
    base.publish(&["a"]).await;
    app.advance(std::time::Duration::from_secs(60));
    reads(&web, &["acme/base/dev", "acme/none/dev", "other/base/dev"]).await;
    app.advance(std::time::Duration::from_secs(60));
    reads(&top, &["acme/web/dev"]).await;
    for project in ["net", "db"] {
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &json!({ "project": project }))
            .send()
            .await
            .expect(200);
    }
    let edge = json!({ "producer": "net", "output": "o", "consumer": "db" });
    app.post(&format!("/api/orgs/{ORG}/tfstate-edges"), &edge).send().await.expect(200);

    let found = map(&app, &app.token).await;
    let (nodes, edges) = drawn(&found);
    assert_eq!(
        nodes,
        [
            "stack base/dev clean 0",
            "stack top/dev clean 2",
            "stack web/dev clean 1",
            "tfstate db/default stale 1",
            "tfstate net/default clean 0",
        ]
    );
    let expected = [
        "edge net/default -> db/default true",
        "reference base/dev -> web/dev false",
        "reference web/dev -> top/dev false",
    ];
    assert_eq!(edges, expected);
    assert_eq!((&found["apart"], &found["cut"]), (&json!(1), &json!(false)));
    assert_eq!(
        found["edges"].as_array().unwrap().iter().filter(|edge| edge["outputs"] == json!(["o"])).count(),
        1
    );

    // An update of the base may have changed what the others read.
    app.advance(std::time::Duration::from_secs(60));
    base.publish(&["a", "b"]).await;
    let (nodes, edges) = drawn(&map(&app, &app.token).await);
    assert_eq!(
        nodes[..3],
        ["stack base/dev clean 0", "stack top/dev potentially-stale 2", "stack web/dev potentially-stale 1"]
    );
    assert_eq!(edges[1], "reference base/dev -> web/dev true");
    // A version without the reference has no edge any more.
    web.publish(&["a"]).await;
    let (_, edges) = drawn(&map(&app, &app.token).await);
    assert_eq!(edges.len(), 2, "{edges:?}");
}

/// A hidden end would tell that it exists.
#[tokio::test]
async fn i8_walled_the_map_hides_what_the_caller_may_not_see() {
    let app = TestApp::memory().await;
    let base = Stack::in_project(&app, "base").await;
    let web = Stack::in_project(&app, "web").await;
    base.publish(&["a"]).await;
    reads(&web, &["acme/base/dev"]).await;
    for project in ["net", "web"] {
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &json!({ "project": project }))
            .send()
            .await
            .expect(200);
    }
    let edge = json!({ "producer": "net", "output": "o", "consumer": "web" });
    app.post(&format!("/api/orgs/{ORG}/tfstate-edges"), &edge).send().await.expect(200);
    let bob = app.member_with_role(Role::None, "bob", "laptop").await;
    app.get(&format!("/api/orgs/{ORG}/dependency-map")).token(&bob).send().await.refused(403);
    let grant = async |on: &str| {
        let grant = json!({ "to": "user:bob", "on": on, "role": "view" });
        app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await
    };
    assert!(grant("web/*").await.status.is_success());
    let hidden = map(&app, &bob).await;
    assert_eq!(drawn(&hidden), (Vec::new(), Vec::new()));
    assert!(!hidden.to_string().contains("base"), "{hidden}");
    assert!(grant("base/*").await.status.is_success());
    assert_eq!(drawn(&map(&app, &bob).await).1, ["reference base/dev -> web/dev false"]);
    // With `view` on both ends, the names of the outputs are shown: they are names of properties.
    assert!(grant("net/*").await.status.is_success());
    let shown = map(&app, &bob).await;
    let edge = shown["edges"].as_array().unwrap().iter().find(|edge| edge["kind"] == "edge").unwrap();
    assert_eq!(edge["outputs"], json!(["o"]));
    let stranger = app.other_user("mallory", "evil").await;
    app.get(&format!("/api/orgs/{ORG}/dependency-map")).token(&stranger).send().await.refused(404);
}

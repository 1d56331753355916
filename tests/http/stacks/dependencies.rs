//! Edges between Terraform states, and the status that follows from them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use statewright_shared::adapters::{MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds};
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::{InputName, Login, OrgName, OutputName};
use statewright_shared::domain::role::Role;
use statewright_shared::domain::tfstate::Ends;
use statewright_shared::layout::{StateEdge, put_with};
use statewright_shared::ports::{Expect, Ids, Ledger as _, Revision};
use statewright_shared::services::maintenance::sweep;
use statewright_shared::services::states::dependencies::{EDGES_MAX, MOCK_BYTES_MAX};
use statewright_tests::app::{Answer, ORG, START, TestApp};

use crate::api::call_counts::{counted, describe_calls};

const DAY: Duration = Duration::from_secs(86_400);

fn edges_path() -> String {
    format!("/api/orgs/{ORG}/tfstate-edges")
}

/// States that are named by their projects.
struct Web<'a> {
    app: &'a TestApp,
}

impl<'a> Web<'a> {
    async fn of(app: &'a TestApp, projects: &[&str]) -> Self {
        let web = Self { app };
        for project in projects {
            let path = format!("/api/orgs/{ORG}/tfstates");
            app.post(&path, &json!({ "project": project })).send().await.expect(200);
        }
        web
    }

    async fn id(&self, project: &str) -> String {
        let path = format!("/api/orgs/{ORG}/tfstates/{project}/default");
        self.app.get(&path).send().await.expect(200)["id"].as_str().unwrap().to_owned()
    }

    /// A run under a lock that takes 10 seconds, and writes these outputs. Time passes before and after.
    async fn run(&self, project: &str, serial: u64, outputs: &Value) {
        self.app.advance(Duration::from_secs(10));
        let lock = self.begin(project, serial).await;
        self.app.advance(Duration::from_secs(10));
        self.end(project, serial, &lock, outputs).await;
        self.app.advance(Duration::from_secs(10));
    }

    async fn begin(&self, project: &str, serial: u64) -> Value {
        let lock = json!({ "ID": format!("{project}-{serial}"), "Operation": "OperationTypeApply" });
        self.app.post(&format!("/tfstate/{ORG}/{project}/lock"), &lock).send().await.expect(200);
        lock
    }

    async fn end(&self, project: &str, serial: u64, lock: &Value, outputs: &Value) {
        let path = format!("/tfstate/{ORG}/{project}");
        let query = format!("{path}?ID={}", lock["ID"].as_str().unwrap());
        self.app.post(&query, &text(serial, outputs)).send().await.expect(200);
        self.app.request(Method::DELETE, &format!("{path}/lock")).json(lock).send().await.expect(200);
    }

    async fn add(&self, body: &Value) -> Answer {
        self.app.post(&edges_path(), body).send().await
    }

    /// An edge of the output `o`.
    async fn connect(&self, producer: &str, consumer: &str) -> Value {
        let body = json!({ "producer": producer, "output": "o", "consumer": consumer });
        self.add(&body).await.expect(200)
    }

    /// The state's status, and that of each of its edges by its input.
    async fn status(&self, project: &str) -> String {
        let path = format!("/api/tfstates/{}/dependencies", self.id(project).await);
        shown(&self.app.get(&path).send().await.expect(200))
    }

    /// The same from the list of all statuses; `clean` for a state that is not in it. Checks that the list of
    /// states agrees.
    async fn listed_status(&self, project: &str) -> String {
        let path = format!("/api/orgs/{ORG}/tfstate-statuses");
        let all = self.app.get(&path).send().await.expect(200);
        let states = all["states"].as_array().unwrap();
        let status =
            states.iter().find(|state| state["project"] == project).map_or("clean".to_owned(), shown);
        // A deleted one is in no list.
        let in_list = self.in_list(project).await;
        let expected = if in_list.is_null() { None } else { status.split(',').next() };
        assert_eq!(in_list["status"].as_str(), expected, "{project}: {status}");
        status
    }

    /// The line of a state in the list of all, with its status.
    async fn in_list(&self, project: &str) -> Value {
        let path = format!("/api/orgs/{ORG}/tfstates?project={project}&status=true");
        let all = self.app.get(&path).send().await.expect(200);
        all["states"][0].clone()
    }

    async fn layers(&self, query: &str) -> Vec<Vec<String>> {
        let path = format!("/api/orgs/{ORG}/tfstate-topology?{query}");
        let topology = self.app.get(&path).send().await.expect(200);
        let name = |state: &Value| state["project"].as_str().unwrap().to_owned();
        let layers = topology["layers"].as_array().unwrap().iter();
        layers.map(|layer| layer.as_array().unwrap().iter().map(name).collect()).collect()
    }

    /// `producer.output -> consumer.input` of each edge found by this query.
    async fn found(&self, query: &str) -> Vec<String> {
        let answer = self.app.get(&format!("{}?{query}", edges_path())).send().await.expect(200);
        let line = |edge: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
            format!(
                "{}.{} -> {}.{}",
                text(&edge["producer"]["project"]),
                text(&edge["output"]),
                text(&edge["consumer"]["project"]),
                text(&edge["input"])
            )
        };
        let mut lines: Vec<String> = answer["edges"].as_array().unwrap().iter().map(line).collect();
        lines.sort();
        lines
    }
}

fn shown(state: &Value) -> String {
    let mut words = state["status"].as_str().unwrap().to_owned();
    for edge in state["edges"].as_array().unwrap() {
        let (input, status) = (edge["input"].as_str().unwrap(), edge["status"].as_str().unwrap());
        write!(words, ", {input} {status}").unwrap();
    }
    words
}

fn text(serial: u64, outputs: &Value) -> Value {
    let outputs: serde_json::Map<String, Value> = outputs
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), json!({ "value": value, "type": "dynamic" })))
        .collect();
    json!({ "version": 4, "serial": serial, "lineage": "a", "outputs": outputs, "resources": [] })
}

#[tokio::test]
async fn an_edge_is_added_shown_found_and_removed() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db", "web"]).await;
    let net = web.id("net").await;
    let edge = web.connect("net", "web").await;
    assert_eq!(edge["producer"], json!({ "id": net, "project": "net", "state": "default" }));
    assert_eq!(
        (&edge["output"], &edge["input"], &edge["createdBy"]),
        (&json!("o"), &json!("net_o"), &json!("alice"))
    );
    let path = format!("{}/{}", edges_path(), edge["id"].as_str().unwrap());
    assert_eq!(app.get(&path).send().await.expect(200), edge);

    let named =
        json!({ "producer": net, "output": "vpc-id", "consumer": "db/default", "input": "vpc", "mock": [1] });
    assert_eq!(web.add(&named).await.expect(200)["mock"], json!([1]));
    assert_eq!(web.found("").await, ["net.o -> web.net_o", "net.vpc-id -> db.vpc"]);
    assert_eq!(web.found("consumer=web").await, ["net.o -> web.net_o"]);
    assert_eq!(web.found("producer=net&output=vpc-id").await, ["net.vpc-id -> db.vpc"]);
    assert_eq!(web.found(&format!("producer={}", web.id("db").await)).await, [""; 0]);

    // The names are the current ones of the states.
    app.patch(&format!("/api/tfstates/{net}"), &json!({ "project": "network" })).send().await.expect(200);
    assert_eq!(web.found("consumer=web").await, ["network.o -> web.net_o"]);
    assert_eq!(app.get(&path).send().await.expect(200)["producer"]["project"], "network");

    app.request(Method::DELETE, &path).send().await.expect(204);
    for method in [Method::GET, Method::DELETE, Method::PATCH] {
        app.request(method, &path).json(&json!({ "mock": 1 })).send().await.refused(404);
    }
    assert_eq!(web.found("").await, ["network.vpc-id -> db.vpc"]);
}

#[tokio::test]
async fn the_same_edge_again_is_the_same() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "web"]).await;
    let edge = web.connect("net", "web").await;
    app.advance(DAY);
    assert_eq!(web.connect("net", "web").await, edge);
    let named = json!({ "producer": "net", "output": "o", "consumer": "web", "input": "net_o" });
    assert_eq!(web.add(&named).await.expect(200), edge);
    // Also after a rename, which does not change its input.
    let path = format!("/api/tfstates/{}", web.id("net").await);
    app.patch(&path, &json!({ "project": "network" })).send().await.expect(200);
    assert_eq!(web.connect("network", "web").await["id"], edge["id"]);
    let other = json!({ "producer": "network", "output": "o", "consumer": "web", "input": "again" });
    assert_ne!(web.add(&other).await.expect(200)["id"], edge["id"]);
    assert_eq!(web.found("").await.len(), 2);
    let mocked = json!({ "producer": "network", "output": "o", "consumer": "web", "input": "net_o", "mock": { "a": 1.50 } });
    assert_eq!(web.add(&mocked).await.expect(200)["id"], edge["id"]);
    let path = format!("{}/{}", edges_path(), edge["id"].as_str().unwrap());
    assert!(app.get(&path).send().await.text().contains(r#""mock":{"a":1.5}"#));
    app.patch(&path, &json!({ "mock": null })).send().await.expect(200);
    assert_eq!(app.get(&path).send().await.expect(200)["mock"], Value::Null);
}

#[tokio::test]
async fn an_invalid_edge_is_refused_with_text() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["a", "b", "c", "d"]).await;
    for (producer, consumer) in [("a", "b"), ("b", "c"), ("c", "d")] {
        web.connect(producer, consumer).await;
    }
    let edge =
        |producer: &str, consumer: &str| json!({ "producer": producer, "output": "o", "consumer": consumer });
    let cycle = web.add(&edge("d", "b")).await.refused(409);
    assert!(cycle.contains("d/default -> b/default -> c/default -> d/default"), "{cycle}");
    let itself = web.add(&edge("a", "a")).await.refused(409);
    assert!(itself.contains("a/default -> a/default"), "{itself}");
    for missing in ["nothing", "019b7c3a-0000-7000-8000-00000000ffff", "a/prod"] {
        web.add(&edge("a", missing)).await.refused(404);
        web.add(&edge(missing, "a")).await.refused(404);
    }
    for (name, value) in [
        ("output", json!("a b")),
        ("output", json!("")),
        ("input", json!("9")),
        ("input", json!("ä")),
        ("producer", json!("a/b/c")),
        ("other", json!(1)),
    ] {
        let mut body = edge("a", "d");
        body[name] = value;
        web.add(&body).await.refused(400);
    }
    let mut taken = edge("b", "d");
    taken["input"] = "c_o".into();
    let words = web.add(&taken).await.refused(409);
    assert!(words.contains("d/default already has a dependency named c_o"), "{words}");
    let mut long = edge("a", "d");
    long["mock"] = "x".repeat(MOCK_BYTES_MAX).into();
    let words = web.add(&long).await.refused(413);
    assert!(words.contains("a mock value of 4098 bytes"), "{words}");
    long["mock"] = "x".repeat(MOCK_BYTES_MAX - 2).into();
    web.add(&long).await.expect(200);
    app.get(&format!("/api/orgs/{ORG}/tfstate-topology?direction=left")).send().await.refused(400);
    app.get(&format!("{}?consumer=nothing", edges_path())).send().await.refused(404);
    app.get(&format!("{}?continuationToken=%21", edges_path())).send().await.refused(400);
    assert_eq!(web.found("").await.len(), 4);
}

#[tokio::test]
async fn states_come_in_the_order_in_which_they_can_be_applied() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db", "cache", "web", "alone"]).await;
    for (producer, consumer) in
        [("net", "db"), ("net", "cache"), ("db", "web"), ("cache", "web"), ("net", "web")]
    {
        web.connect(producer, consumer).await;
    }
    let layers = |layers: &[&[&str]]| -> Vec<Vec<String>> {
        layers.iter().map(|layer| layer.iter().map(|name| (*name).to_owned()).collect()).collect()
    };
    assert_eq!(web.layers("").await, layers(&[&["net"], &["cache", "db"], &["web"]]));
    assert_eq!(web.layers("direction=up").await, layers(&[&["web"], &["cache", "db"], &["net"]]));
    assert_eq!(web.layers("state=db").await, layers(&[&["db"], &["web"]]));
    assert_eq!(web.layers("state=db&direction=up").await, layers(&[&["db"], &["net"]]));
    assert_eq!(web.layers("state=alone").await, layers(&[&["alone"]]));
}

#[tokio::test]
async fn a_state_is_stale_from_a_change_of_its_inputs_to_its_next_run() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db", "web"]).await;
    web.connect("net", "db").await;
    web.connect("db", "web").await;
    assert_eq!(web.status("db").await, "stale, net_o pending");
    web.run("net", 1, &json!({ "o": { "b": [1], "a": "hunter2" } })).await;
    assert_eq!(web.status("db").await, "stale, net_o pending");
    web.run("db", 1, &json!({ "o": 1 })).await;
    web.run("web", 1, &json!({})).await;
    assert_eq!(web.status("db").await, "clean, net_o clean");
    assert_eq!(web.status("web").await, "clean, db_o clean");

    // Other outputs, and the same value spelled differently, change nothing.
    web.run("net", 2, &json!({ "o": { "a": "hunter2", "b": [1.0] }, "other": 1 })).await;
    assert_eq!(web.status("db").await, "clean, net_o clean");
    web.run("net", 3, &json!({ "o": "other", "other": 1 })).await;
    assert_eq!(web.status("db").await, "stale, net_o dirty");
    assert_eq!(web.status("web").await, "potentially-stale, db_o clean");
    assert_eq!(web.status("net").await, "clean");
    for project in ["net", "db", "web"] {
        assert_eq!(web.listed_status(project).await, web.status(project).await);
    }
    // Back to its old value.
    web.run("net", 4, &json!({ "o": { "b": [1], "a": "hunter2" } })).await;
    assert_eq!(web.status("db").await, "clean, net_o clean");
    web.run("net", 5, &json!({ "o": "third" })).await;
    web.run("db", 2, &json!({ "o": 2 })).await;
    assert_eq!(web.status("db").await, "clean, net_o clean");
    assert_eq!(web.status("web").await, "stale, db_o dirty");
    web.run("web", 2, &json!({})).await;
    assert_eq!(web.status("web").await, "clean, db_o clean");

    // The output is removed, and returns with another value.
    web.run("net", 6, &json!({})).await;
    assert_eq!(web.status("db").await, "stale, net_o missing-output");
    web.run("net", 7, &json!({ "o": "fourth" })).await;
    assert_eq!(web.status("db").await, "stale, net_o dirty");
    // A restore brings back the value that it ran with.
    let api = format!("/api/tfstates/{}", web.id("net").await);
    app.post(&format!("{api}/versions/5/restore"), &Value::Null).send().await.expect(200);
    app.advance(DAY);
    assert_eq!(web.status("db").await, "clean, net_o clean");
}

#[tokio::test]
async fn a_run_that_began_before_a_change_has_not_seen_it_for_sure() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db"]).await;
    web.connect("net", "db").await;
    web.run("net", 1, &json!({ "o": 1 })).await;
    let lock = web.begin("db", 1).await;
    web.run("net", 2, &json!({ "o": 2 })).await;
    web.end("db", 1, &lock, &json!({})).await;
    assert_eq!(web.status("db").await, "stale, net_o dirty");
    // A value that changes and changes back during the run may have been read.
    let lock = web.begin("db", 2).await;
    web.run("net", 3, &json!({ "o": 3 })).await;
    web.run("net", 4, &json!({ "o": 2 })).await;
    web.end("db", 2, &lock, &json!({})).await;
    assert_eq!(web.status("db").await, "stale, net_o dirty");
    web.run("db", 3, &json!({})).await;
    assert_eq!(web.status("db").await, "clean, net_o clean");
}

/// Edits of resources and restores of an old version are not runs.
#[tokio::test]
async fn an_edit_without_a_run_does_not_make_a_state_clean() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db"]).await;
    web.connect("net", "db").await;
    web.run("net", 1, &json!({ "o": 1 })).await;
    web.run("db", 1, &json!({})).await;
    web.run("net", 2, &json!({ "o": 2 })).await;
    let lock = json!({ "ID": "mv", "Operation": "state-mv" });
    app.post(&format!("/tfstate/{ORG}/db/lock"), &lock).send().await.expect(200);
    web.end("db", 2, &lock, &json!({})).await;
    assert_eq!(web.status("db").await, "stale, net_o dirty");
    web.run("db", 3, &json!({})).await;
    assert_eq!(web.status("db").await, "clean, net_o clean");
    let api = format!("/api/tfstates/{}", web.id("db").await);
    app.post(&format!("{api}/versions/1/restore"), &Value::Null).send().await.expect(200);
    assert_eq!(web.status("db").await, "stale, net_o dirty");
}

#[tokio::test]
async fn a_mock_value_replaces_an_output_that_does_not_exist() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db"]).await;
    let edge = web.connect("net", "db").await;
    let path = format!("{}/{}", edges_path(), edge["id"].as_str().unwrap());
    app.patch(&path, &json!({ "mock": "vpc-0" })).send().await.expect(200);
    assert_eq!(web.status("db").await, "clean, net_o mock");
    web.run("db", 1, &json!({})).await;
    web.run("net", 1, &json!({ "other": 1 })).await;
    assert_eq!(web.status("db").await, "clean, net_o mock");
    web.run("net", 2, &json!({ "o": "vpc-1" })).await;
    assert_eq!(web.status("db").await, "stale, net_o dirty");
    app.patch(&path, &json!({})).send().await.expect(200);
    assert_eq!(web.status("db").await, "stale, net_o dirty");
}

#[tokio::test]
async fn a_value_that_violates_its_schema_is_reported_with_the_value() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db"]).await;
    web.connect("net", "db").await;
    let schemas = json!({ "outputs": { "o": { "type": "string" } } });
    app.patch(&format!("/api/tfstates/{}/schemas", web.id("net").await), &schemas).send().await.expect(200);
    web.run("net", 1, &json!({ "o": 7 })).await;
    web.run("db", 1, &json!({})).await;
    assert_eq!(web.status("db").await, "clean, net_o clean-invalid");
    web.run("net", 2, &json!({ "o": 8 })).await;
    assert_eq!(web.status("db").await, "stale, net_o dirty-invalid");
    web.run("net", 3, &json!({ "o": "nine" })).await;
    assert_eq!(web.status("db").await, "stale, net_o dirty");
}

/// The contents of an encrypted state are unknown, so each of its writes counts as a change.
#[tokio::test]
async fn each_write_of_an_encrypted_producer_makes_consumers_stale() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db"]).await;
    web.connect("net", "db").await;
    let encrypted = async |serial: u64| {
        let body = json!({ "serial": serial, "lineage": "a", "encrypted_data": "AA==", "encryption_version": "v0", "meta": {} });
        app.post(&format!("/tfstate/{ORG}/net"), &body).send().await.expect(200);
    };
    encrypted(1).await;
    web.run("db", 1, &json!({})).await;
    assert_eq!(web.status("db").await, "clean, net_o clean");
    encrypted(2).await;
    assert_eq!(web.status("db").await, "stale, net_o dirty");
    let path = format!("/api/tfstates/{}/versions/2", web.id("net").await);
    assert_eq!(app.get(&path).send().await.expect(200)["outputs"], json!([]));
}

/// Nothing stored about an output contains its value, or a hash that could confirm a guess.
#[tokio::test]
async fn i7_secret_a_digest_reveals_nothing_of_a_value() {
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let ledger = MemoryLedger::new();
    let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
    let app = TestApp::memory_with(Arc::new(ledger.clone()), Arc::new(MemoryBlobs::new()), keys, ids).await;
    let web = Web::of(&app, &["net", "db"]).await;
    let outputs = json!({ "o": "hunter2", "same": "hunter2" });
    for project in ["net", "db"] {
        web.run(project, 1, &outputs).await;
    }
    let items = ledger.items();
    let texts: Vec<String> =
        items.iter().map(|item| String::from_utf8_lossy(&item.value).into_owned()).collect();
    let digests: Vec<&str> =
        texts.iter().flat_map(|text| text.split("\"digest\":\"").skip(1)).map(|rest| &rest[..22]).collect();
    let [one, same, elsewhere, _] = digests[..] else { panic!("{digests:?}") };
    assert_eq!(one, same, "digests of one state can be compared");
    assert_ne!(one, elsewhere, "digests of different states cannot");
    for guess in ["hunter2", "\"hunter2\""] {
        use base64::Engine as _;
        use base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let hash = Sha256::digest(guess);
        let plain = URL_SAFE_NO_PAD.encode(hash);
        assert!(!texts.iter().any(|text| text.contains(guess) || text.contains(&plain[..20])), "{guess}");
    }
    let path = format!("/api/tfstates/{}/versions/1", web.id("net").await);
    let shown = app.get(&path).send().await.expect(200);
    assert_eq!(shown["outputs"][0]["name"], "o");
    assert!(shown["outputs"][0]["since"].is_string() && !shown.to_string().contains(one), "{shown}");
}

#[tokio::test]
async fn a_deleted_state_shows_in_its_edges_until_it_is_erased() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db", "web"]).await;
    web.connect("net", "db").await;
    web.connect("db", "web").await;
    for (project, serial) in [("net", 1), ("db", 1), ("web", 1)] {
        web.run(project, serial, &json!({ "o": 1 })).await;
    }
    assert_eq!(web.status("web").await, "clean, db_o clean");
    let db = web.id("db").await;
    app.request(Method::DELETE, &format!("/api/tfstates/{db}")).send().await.expect(204);
    assert_eq!(web.found("").await, ["db.o -> web.db_o", "net.o -> db.net_o"]);
    let listed = app.get(&format!("{}?consumer={db}", edges_path())).send().await.expect(200);
    assert_eq!(
        listed["edges"][0]["consumer"],
        json!({ "id": db, "project": "db", "state": "default", "removed": true })
    );
    assert_eq!(web.status("web").await, "stale, db_o missing-output");
    assert_eq!(web.listed_status("db").await, "clean", "a deleted state is not in the list");
    let refused = web.add(&json!({ "producer": db, "output": "p", "consumer": "web" })).await;
    refused.refused(404);
    app.post(&format!("/api/tfstates/{db}/undelete"), &Value::Null).send().await.expect(200);
    assert_eq!(web.status("web").await, "clean, db_o clean");

    app.request(Method::DELETE, &format!("/api/tfstates/{db}")).send().await.expect(204);
    app.advance(31 * DAY);
    while sweep::sweep(&app.context).await.unwrap().more {}
    assert_eq!(web.found("").await, [""; 0]);
    assert_eq!(web.status("web").await, "clean");
    web.connect("net", "web").await;
}

#[tokio::test]
async fn the_largest_graph_of_an_organization_is_answered_quickly() {
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let ledger = MemoryLedger::new();
    let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
    let app = TestApp::memory_with(Arc::new(ledger.clone()), Arc::new(MemoryBlobs::new()), keys, ids).await;
    let web = Web::of(&app, &["net", "db"]).await;
    let org = OrgName::parse(ORG).unwrap();
    let consumer = StateId::parse(&web.id("db").await).unwrap();
    let write = |number: usize, mock: &[u8]| {
        let producer = StateId::parse(&format!("019b7c3a-0000-7000-8000-{number:012}")).unwrap();
        let ends = Ends {
            producer,
            output: OutputName::parse("o").unwrap(),
            consumer,
            input: InputName::parse(&format!("i{number}")).unwrap(),
        };
        let key = StateEdge::key(&org, ends.id());
        let edge = StateEdge { ends, created: START, created_by: Login::parse("alice").unwrap() };
        put_with(key, Expect::Any, Revision(number as u64), &edge, mock)
    };
    for first in (1..=EDGES_MAX).step_by(100) {
        ledger.commit((first..first + 100).map(|number| write(number, b"")).collect()).await.unwrap();
    }
    let refused = web.add(&json!({ "producer": "net", "output": "o", "consumer": "db" })).await;
    let words = refused.refused(409);
    assert!(words.contains("has 10000 dependencies, and at most 10000"), "{words}");
    // There are too many upstream states to check all of them.
    let path = format!("/api/tfstates/{consumer}/dependencies");
    let status = app.get(&path).send().await.expect(200);
    assert_eq!((&status["partial"], &status["status"]), (&json!(true), &json!("stale")));
    assert_eq!(web.in_list("db").await["status"], "stale");
    let topology = web.layers_of_ids().await;
    assert_eq!(topology, [EDGES_MAX, 1]);
    let mut after = String::new();
    let mut count = 0;
    loop {
        let page = app.get(&format!("{}?{after}", edges_path())).send().await.expect(200);
        count += page["edges"].as_array().unwrap().len();
        let Some(next) = page["continuationToken"].as_str() else { break };
        after = format!("continuationToken={next}");
    }
    assert_eq!(count, EDGES_MAX);
    // If each of its inputs has a value, it is clean or potentially stale, and which one is unknown.
    for first in (1..=EDGES_MAX).step_by(100) {
        ledger.commit((first..first + 100).map(|number| write(number, b"1")).collect()).await.unwrap();
    }
    web.run("db", 1, &json!({})).await;
    let status = app.get(&path).send().await.expect(200);
    assert_eq!((&status["partial"], &status["status"]), (&json!(true), &json!("clean")));
    let listed = web.in_list("db").await;
    assert_eq!((&listed["status"], listed["dependsOn"].as_array().unwrap().len()), (&Value::Null, EDGES_MAX));
    assert_eq!(web.in_list("net").await["status"], "clean");
}

#[tokio::test]
async fn a_list_has_the_status_of_states_on_request() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db", "web", "other"]).await;
    web.connect("net", "db").await;
    web.connect("db", "web").await;
    let second = json!({ "producer": "db", "output": "p", "consumer": "web" });
    web.add(&second).await.expect(200);
    let path = format!("/api/orgs/{ORG}/tfstates");
    let plain = app.get(&path).send().await.expect(200);
    assert!(plain["states"].as_array().unwrap().iter().all(|state| state.get("status").is_none()), "{plain}");
    for (serial, project) in [(1, "net"), (2, "db"), (3, "web")] {
        web.run(project, serial, &json!({ "o": 1, "p": 1 })).await;
    }
    web.run("net", 4, &json!({ "o": 2 })).await;
    let listed = app.get(&format!("{path}?status=true")).send().await.expect(200);
    let shown: Vec<String> = listed["states"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| format!("{} {} {}", it["project"], it["status"], it["dependsOn"]))
        .collect();
    assert_eq!(
        shown,
        [
            r#""db" "stale" ["net/default"]"#,
            r#""net" "clean" []"#,
            r#""other" "clean" []"#,
            r#""web" "potentially-stale" ["db/default"]"#,
        ]
    );
    let alone = app.get(&format!("{path}/web/default?status=true")).send().await.expect(200);
    assert_eq!(
        (&alone["status"], &alone["dependsOn"]),
        (&json!("potentially-stale"), &json!(["db/default"]))
    );
    assert_eq!(app.get(&format!("{path}/web/default")).send().await.expect(200).get("status"), None);
    // Only those of the page are checked, with their upstream states.
    let one = app.get(&format!("{path}?status=true&project=web")).send().await.expect(200);
    assert_eq!(one["states"], json!([listed["states"][3]]));
}

impl Web<'_> {
    async fn layers_of_ids(&self) -> Vec<usize> {
        let path = format!("/api/orgs/{ORG}/tfstate-topology");
        let topology = self.app.get(&path).send().await.expect(200);
        topology["layers"].as_array().unwrap().iter().map(|layer| layer.as_array().unwrap().len()).collect()
    }
}

#[tokio::test]
async fn changes_of_edges_are_audited() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db"]).await;
    app.take_audit();
    let edge = web.connect("net", "db").await;
    web.add(&json!({ "producer": "db", "output": "o", "consumer": "net" })).await.refused(409);
    let id = edge["id"].as_str().unwrap();
    let path = format!("{}/{id}", edges_path());
    app.patch(&path, &json!({ "mock": "hunter2" })).send().await.expect(200);
    app.request(Method::DELETE, &path).send().await.expect(204);
    let records = app.take_audit();
    let shown: Vec<String> = records
        .iter()
        .map(|record| {
            let text = |name: &str| record[name].as_str().unwrap_or("-").to_owned();
            format!("{} {} {}: {}", text("action"), text("result"), text("organization"), text("detail"))
        })
        .collect();
    assert_eq!(
        shown,
        [
            format!("edge.add done acme: edge {id}: net/default o to db/default"),
            "edge.add refused acme: -".to_owned(),
            format!("edge.edit done acme: edge {id}: net/default o to db/default"),
            format!("edge.remove done acme: edge {id}: net/default o to db/default"),
        ]
    );
}

/// A member of a part adds edges within it. An edge is shown with its consumer, whose configuration names the producer.
#[tokio::test]
async fn an_edge_needs_rights_at_both_of_its_ends() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db", "web"]).await;
    let edge = web.connect("net", "web").await;
    let one = format!("{}/{}", edges_path(), edge["id"].as_str().unwrap());
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    let give = async |on: &str, role: &str| {
        let grant = json!({ "to": "user:bob", "on": on, "role": role });
        app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    };
    let add = async |producer: &str, consumer: &str| {
        let body = json!({ "producer": producer, "output": "o", "consumer": consumer });
        app.post(&edges_path(), &body).token(&bob).send().await
    };
    let seen = async || {
        let edges = app.get(&edges_path()).token(&bob).send().await.expect(200);
        edges["edges"].as_array().unwrap().len()
    };
    let ask =
        async |method: Method| app.request(method, &one).json(&json!({ "mock": 1 })).token(&bob).send().await;
    give("net/*", "member").await;
    for (producer, consumer) in [("net", "db"), ("db", "net")] {
        let words = add(producer, consumer).await.refused(404);
        assert!(words.contains("state acme/db/default not found"), "{words}");
    }
    assert_eq!(seen().await, 0, "the producer alone does not show it");
    for method in [Method::GET, Method::PATCH, Method::DELETE] {
        ask(method).await.refused(404);
    }

    give("db/*", "plan").await;
    for (producer, consumer) in [("net", "db"), ("db", "net")] {
        let words = add(producer, consumer).await.refused(403);
        assert!(words.contains("needs the role member in acme/db/default, and bob has plan"), "{words}");
    }
    give("web/*", "plan").await;
    assert_eq!(seen().await, 1);
    assert_eq!(ask(Method::GET).await.expect(200)["id"], edge["id"]);
    for method in [Method::PATCH, Method::DELETE] {
        ask(method).await.refused(404);
    }
    assert_eq!(web.found("").await, ["net.o -> web.net_o"]);
    give("web/*", "member").await;
    ask(Method::DELETE).await.expect(204);
    give("db/*", "member").await;
    add("net", "db").await.expect(200);
}

#[tokio::test]
async fn i8_walled_states_of_others_are_in_no_edge() {
    let app = TestApp::memory().await;
    let web = Web::of(&app, &["net", "db"]).await;
    let edge = web.connect("net", "db").await;
    let stranger = app.other_user("mallory", "evil").await;
    let create = app.post("/api/orgs/evil/tfstates", &json!({ "project": "theirs" })).token(&stranger);
    let theirs = create.send().await.expect(200)["id"].clone();
    let net = web.id("net").await;
    for body in [
        json!({ "producer": net, "output": "o", "consumer": theirs }),
        json!({ "producer": theirs, "output": "o", "consumer": net }),
    ] {
        let request = app.post("/api/orgs/evil/tfstate-edges", &body).token(&stranger);
        request.send().await.refused(404);
        web.add(&body).await.refused(404);
    }
    // Even a member of both cannot connect them, nor list the edges of one through the other.
    let both = app.member_of(&["acme", "evil"], "carol", "both").await;
    let body = json!({ "producer": net, "output": "o", "consumer": theirs });
    for org in ["acme", "evil"] {
        app.post(&format!("/api/orgs/{org}/tfstate-edges"), &body).token(&both).send().await.refused(404);
    }
    let path = format!("/api/orgs/evil/tfstate-edges/{}", edge["id"].as_str().unwrap());
    app.get(&path).token(&both).send().await.refused(404);
    app.get(&format!("/api/tfstates/{net}/dependencies")).token(&stranger).send().await.refused(404);
}

#[tokio::test]
async fn i10_cheap_marks_cost_no_call_and_statuses_a_bounded_number() {
    let (app, counter) = counted().await;
    let web = Web::of(&app, &["net", "db"]).await;
    let mut table = String::new();
    let mut note = |what: &str| writeln!(table, "{what:20}{}", describe_calls(counter.take())).unwrap();
    for serial in 1..=2 {
        web.run("net", serial, &json!({ "o": serial })).await;
        web.run("db", serial, &json!({})).await;
    }
    let write = format!("/tfstate/{ORG}/net");
    app.get("/api/user").send().await.expect(200);
    counter.take();
    app.get(&format!("/api/orgs/{ORG}/tfstates?status=true")).send().await.expect(200);
    note("states, no edges");
    app.post(&write, &text(3, &json!({ "o": 3, "p": 3 }))).send().await.expect(200);
    note("write");
    web.connect("net", "db").await;
    note("add edge");
    web.connect("net", "db").await;
    note("add it again");
    let id = web.id("db").await;
    counter.take();
    let status = format!("/api/tfstates/{id}/dependencies");
    app.get(&status).send().await.expect(200);
    note("status");
    web.run("db", 3, &json!({})).await;
    web.run("net", 4, &json!({ "o": 4, "p": 3 })).await;
    counter.take();
    app.get(&status).send().await.expect(200);
    note("status, dirty");
    app.get(&format!("/api/orgs/{ORG}/tfstate-statuses")).send().await.expect(200);
    note("statuses, dirty");
    app.get(&format!("/api/orgs/{ORG}/tfstate-topology")).send().await.expect(200);
    note("topology");
    app.get(&edges_path()).send().await.expect(200);
    note("list");
    app.get(&format!("/api/orgs/{ORG}/tfstates?status=true")).send().await.expect(200);
    note("states, dirty");
    app.get(&format!("/api/orgs/{ORG}/tfstates")).send().await.expect(200);
    note("states");
    insta::assert_snapshot!(table, @r"
    states, no edges    2 query (2)
    write               3 get, 1 joint commit, 1 blob put (3)
    add edge            3 get, 1 query, 1 commit, 1 joint commit (4)
    add it again        3 get, 1 query, 1 commit (3)
    status              3 get, 3 query (3)
    status, dirty       4 get, 3 query (4)
    statuses, dirty     3 get, 3 query (3)
    topology            2 get, 1 query (2)
    list                2 get, 1 query (2)
    states, dirty       3 get, 4 query (4)
    states              1 query (1)
    ");
}

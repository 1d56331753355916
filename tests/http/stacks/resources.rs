//! The resources of a stack: pages, filters, one resource, its neighbors and its history.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::account::ByteAccount;
use statewright_shared::adapters::{MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds};
use statewright_shared::domain::ids::StackId;
use statewright_shared::domain::role::Role;
use statewright_shared::domain::update::Outcome;
use statewright_shared::layout::{Record, StackHead, StackVersion, delete, put};
use statewright_shared::ports::{Expect, Ids, Ledger as _};
use statewright_shared::services::maintenance::check;
use statewright_shared::services::stacks::indexing;
use statewright_shared::services::updates;
use statewright_shared::services::updates::tokens;
use statewright_shared::settings::{Retention, Settings};
use statewright_tests::app::{ORG, TestApp};

use crate::api::call_counts::{counted, describe_calls};
use crate::world::{Stack, begin_body, deployment, entry};

const SIGNATURE: &str = "4dabf18193072939515e22adb298388d";
const SECRET: &str = "1b47061264138c4ac30d75fd1eb44270";

fn quoted(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn sealed(ciphertext: &str) -> Value {
    json!({ SIGNATURE: SECRET, "ciphertext": ciphertext })
}

/// A resource with more members.
fn with(stack: &Stack<'_>, name: &str, more: &Value) -> Value {
    let mut resource = stack.resource(name);
    for (name, value) in more.as_object().unwrap() {
        resource[name] = value.clone();
    }
    resource
}

/// The rows of a page, as `name` or `(name)` for one that is only an ancestor.
fn names(page: &Value) -> Vec<String> {
    let name = |row: &Value| {
        let name = row["name"].as_str().unwrap();
        if row["isContext"] == true { format!("({name})") } else { name.to_owned() }
    };
    page["resources"].as_array().unwrap().iter().map(name).collect()
}

async fn all_pages(stack: &Stack<'_>, query: &str) -> Vec<Vec<String>> {
    let (mut pages, mut next) = (Vec::new(), String::new());
    loop {
        let page = stack.get(&format!("/resources?{query}{next}")).send().await.expect(200);
        pages.push(names(&page));
        match page["continuationToken"].as_str() {
            Some(token) => next = format!("&continuationToken={token}"),
            None => return pages,
        }
    }
}

async fn resource(stack: &Stack<'_>, name: &str) -> Value {
    stack.get(&format!("/resource?urn={}", quoted(&stack.urn(name)))).send().await.expect(200)
}

/// The history of a resource: `version op: path how old new, …`, and where it ends.
async fn history(stack: &Stack<'_>, name: &str) -> Vec<String> {
    let path = format!("/resource/history?urn={}", quoted(&stack.urn(name)));
    let (mut lines, mut next) = (Vec::new(), String::new());
    loop {
        let page = stack.get(&format!("{path}{next}")).send().await.expect(200);
        for entry in page["entries"].as_array().unwrap() {
            let change = |change: &Value| {
                let value = |name: &str| change.get(name).map(Value::to_string).unwrap_or_default();
                let secret = if change["secret"] == true { " secret" } else { "" };
                let (path, how) = (change["path"].as_str().unwrap(), change["how"].as_str().unwrap());
                format!("{path} {how}{secret} {}>{}", value("old"), value("new"))
            };
            let changes: Vec<String> = entry["changes"].as_array().unwrap().iter().map(change).collect();
            let more = if entry["changesCut"] == true { " more" } else { "" };
            let (version, op) = (&entry["version"], entry["op"].as_str().unwrap());
            lines.push(format!("{version} {op}: {}{more}", changes.join(", ")));
        }
        match page["continuationToken"].as_str() {
            Some(token) => next = format!("&continuationToken={token}"),
            None => {
                let ends = &page["ends"];
                lines.push(format!("{} {}", ends["why"].as_str().unwrap(), ends["version"]));
                return lines;
            }
        }
    }
}

fn below(stack: &Stack<'_>, name: &str, parent: &str) -> Value {
    with(stack, name, &json!({ "parent": stack.urn(parent) }))
}

/// `a` over `b` over `d`, `a` over `c`, and 1,200 more.
async fn tree(stack: &Stack<'_>) {
    let mut all =
        vec![stack.resource("a"), below(stack, "b", "a"), below(stack, "c", "a"), below(stack, "d", "b")];
    all.extend((0..1_200).map(|number| stack.resource(&format!("r{number:04}"))));
    stack.import(&deployment(&all)).await;
}

#[tokio::test]
async fn pages_have_each_resource_once_in_the_order_of_the_tree() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let none = stack.get("/resources").send().await.expect(200);
    assert_eq!(none, json!({ "version": 0, "total": 0, "historyFrom": 0, "resources": [] }));
    tree(&stack).await;
    let mut expected: Vec<String> = ["a", "b", "d", "c"].map(str::to_owned).into();
    expected.extend((0..1_200).map(|number| format!("r{number:04}")));
    for (query, sizes) in
        [("", vec![500, 500, 204]), ("size=1000", vec![1_000, 204]), ("size=9999", vec![1_000, 204])]
    {
        let pages = all_pages(&stack, query).await;
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), sizes, "{query}");
        assert_eq!(pages.concat(), expected);
    }
    let page = stack.get("/resources?size=3").send().await.expect(200);
    assert_eq!(
        (&page["version"], &page["total"], &page["historyFrom"]),
        (&json!(1), &json!(1_204), &json!(1))
    );
    let row = &page["resources"][1];
    let expected = json!({
        "urn": stack.urn("b"), "type": "pkg:m:T", "name": "b", "id": "id-b", "parent": stack.urn("a"),
        "depth": 1, "childCount": 1, "custom": true, "changed": 1,
    });
    assert_eq!(*row, expected);
}

#[tokio::test]
async fn later_pages_show_the_version_of_the_first() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a", "b", "c"]).await;
    let first = stack.get("/resources?size=2").send().await.expect(200);
    stack.publish(&["x"]).await;
    let next = first["continuationToken"].as_str().unwrap();
    let second = stack.get(&format!("/resources?size=2&continuationToken={next}")).send().await.expect(200);
    assert_eq!((names(&second), &second["version"]), (vec!["c".to_owned()], &json!(1)));
    let old = stack.get("/resources?version=1").send().await.expect(200);
    assert_eq!(names(&old), ["a", "b", "c"]);
    assert_eq!(names(&stack.get("/resources").send().await.expect(200)), ["x"]);
    for query in ["version=3", "version=0"] {
        stack.get(&format!("/resources?{query}")).send().await.refused(404);
    }
    for query in ["version=x", "size=-1", "continuationToken=x", "continuationToken=MQ"] {
        stack.get(&format!("/resources?{query}")).send().await.refused(400);
    }
}

#[tokio::test]
async fn a_filter_shows_matches_with_their_ancestors() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    tree(&stack).await;
    let page = stack.get("/resources?filter=ID-D%20t").send().await.expect(200);
    assert_eq!(names(&page), ["(a)", "(b)", "d"]);
    assert_eq!((&page["matches"], &page["total"]), (&json!(1), &json!(1_204)));
    // A page begins again with the ancestors of its first match.
    let pages = all_pages(&stack, "filter=id-b%20&size=1").await;
    assert_eq!(pages, [["(a)", "b"]]);
    let pages = all_pages(&stack, "filter=pkg:m:T&size=3").await;
    assert_eq!(pages[0], ["a", "b", "d"]);
    assert_eq!(pages[1], ["(a)", "c", "r0000", "r0001"]);
    assert_eq!(all_pages(&stack, "filter=r11&size=40").await.concat().len(), 100);
    assert_eq!(names(&stack.get("/resources?filter=nothing").send().await.expect(200)), [""; 0]);
    let words = "a%20".repeat(21);
    let refused = stack.get(&format!("/resources?filter={words}")).send().await.refused(400);
    assert!(refused.contains("at most 20"), "{refused}");
}

#[tokio::test]
async fn the_children_of_a_resource_are_listed_alone() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    tree(&stack).await;
    let of = async |name: &str, more: &str| {
        let path = format!("/resources?parent={}{more}", quoted(&stack.urn(name)));
        let page = stack.get(&path).send().await.expect(200);
        (names(&page), page["matches"].clone(), page["continuationToken"].as_str().map(str::to_owned))
    };
    let (rows, matches, next) = of("a", "&size=1").await;
    assert_eq!((rows, matches), (vec!["b".to_owned()], json!(2)));
    let (rows, _, end) = of("a", &format!("&size=1&continuationToken={}", next.unwrap())).await;
    assert_eq!((rows, end), (vec!["c".to_owned()], None));
    assert_eq!(of("b", "").await.0, ["d"]);
    assert_eq!(of("d", "").await.0, [""; 0]);
    assert_eq!(of("a", "&filter=id-c").await.0, ["c"]);
    let path = format!("/resources?parent={}", quoted(&stack.urn("nobody")));
    stack.get(&path).send().await.refused(404);
}

#[tokio::test]
async fn versions_are_compared_without_secrets() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let urn = |name: &str| stack.urn(name);
    let a = |size: u64, key: &str| json!({ "inputs": { "size": size, "key": sealed(key) }, "modified": size.to_string() });
    let of = |name: &str, more: &Value| with(&stack, name, more);
    let first =
        [of("a", &a(1, "AAAA")), of("s", &a(1, "AAAA")), stack.resource("gone"), stack.resource("same")];
    stack.import(&deployment(&first)).await;
    let second =
        [of("a", &a(2, "AAAA")), of("s", &a(1, "BBBB")), stack.resource("same"), stack.resource("new")];
    stack.import(&deployment(&second)).await;
    let changes = |of: Value| json!({ "urn": urn(of["name"].as_str().unwrap()), "changes": of["changes"] });
    let expected = json!({
        "addedCount": 1, "removedCount": 1, "changedCount": 2,
        "added": [{ "urn": urn("new") }], "removed": [{ "urn": urn("gone") }],
        "changed": [
            changes(json!({ "name": "a", "changes": [{ "path": "inputs.size", "how": "changed", "old": 1, "new": 2 }] })),
            changes(json!({ "name": "s", "changes": [{ "path": "inputs.key", "how": "changed", "secret": true }] })),
        ],
    });
    assert_eq!(stack.get("/updates/1/diff/2").send().await.expect(200), expected);
    let back = stack.get("/updates/2/diff/1").send().await.expect(200);
    assert_eq!(back["added"], expected["removed"]);
    let same = stack.get("/updates/2/diff/2").send().await.expect(200);
    assert_eq!((&same["changedCount"], &same["addedCount"]), (&json!(0), &json!(0)));

    // A viewer sees what differs, without values.
    let viewer = app.member_with_role(Role::View, "vera", "laptop").await;
    let seen = stack.get("/updates/1/diff/2").token(&viewer).send().await.expect(200);
    assert_eq!(seen["changed"][0]["changes"], json!([{ "path": "inputs.size", "how": "changed" }]));
    let outputs = app.member_with_role(Role::Outputs, "otto", "laptop").await;
    stack.get("/updates/1/diff/2").token(&outputs).send().await.refused(403);
    let foreign = app.other_user("fred", "elsewhere").await;
    stack.get("/updates/1/diff/2").token(&foreign).send().await.refused(404);
    stack.get("/updates/1/diff/3").send().await.refused(404);
    stack.get("/updates/1/diff/0").send().await.refused(400);
    stack.get("/updates/latest/diff/1").send().await.refused(400);

    // Under another name, the same resources differ.
    app.post(&format!("{}/rename", stack.path), &json!({ "newName": "prod" })).send().await.expect(200);
    let path = format!("/api/stacks/{ORG}/{}/prod/updates/1/diff/2", stack.project);
    let renamed = app.get(&path).send().await.expect(200);
    assert_eq!((&renamed["addedCount"], &renamed["changedCount"]), (&json!(1), &json!(2)));
}

#[tokio::test]
async fn one_resource_has_properties_without_secrets_and_relations() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let urn = |name: &str| stack.urn(name);
    let provider = format!("{}::the-id", urn("p"));
    let inputs = json!({ "size": 3, "list": [sealed("AAAA")] });
    let all = [
        stack.resource("p"),
        stack.resource("b"),
        with(
            &stack,
            "a",
            &json!({
                "provider": provider, "dependencies": [urn("b")], "propertyDependencies": { "size": [urn("b")] },
                "inputs": inputs, "outputs": { "password": sealed("BBBB") }, "protect": true, "external": true,
                "created": "2026-01-01T00:00:00Z", "modified": "2026-01-02T00:00:00Z",
                "sourcePosition": "project:///index.ts#3,1",
            }),
        ),
        with(&stack, "c", &json!({ "dependencies": [urn("a")], "deletedWith": urn("a") })),
    ];
    stack.import(&deployment(&all)).await;
    let found = resource(&stack, "a").await;
    let related = |name: &str, kinds: &[&str]| json!({ "urn": urn(name), "type": "pkg:m:T", "name": name, "kinds": kinds });
    let expected = json!({
        "urn": urn("a"), "type": "pkg:m:T", "name": "a", "id": "id-a", "depth": 0, "childCount": 0, "custom": true,
        "protect": true, "external": true, "provider": provider, "changed": 1, "version": 1, "historyFrom": 1,
        "inputs": { "size": 3, "list": [{ "secret": true }] }, "outputs": { "password": { "secret": true } },
        "dependencies": [related("b", &["dependency", "property"]), related("p", &["provider"])],
        "dependencyCount": 2, "dependents": [related("c", &["dependency", "deletedWith"])], "dependentCount": 1,
        "propertyDependencies": { "size": [urn("b")] }, "created": "2026-01-01T00:00:00Z",
        "modified": "2026-01-02T00:00:00Z", "sourcePosition": "project:///index.ts#3,1",
    });
    assert_eq!(found, expected);
    let missing = stack.get(&format!("/resource?urn={}", quoted(&urn("x")))).send().await;
    assert!(missing.refused(404).contains("has no resource"));
    assert!(stack.get("/resource").send().await.refused(400).contains("urn"));

    // A viewer sees that there are values, and names.
    let viewer = app.member_with_role(Role::View, "vera", "laptop").await;
    let path = format!("/resource?urn={}", quoted(&urn("a")));
    let seen = stack.get(&path).token(&viewer).send().await.expect(200);
    assert_eq!(seen["inputs"], json!({ "size": "[masked]", "list": "[masked]" }));
    assert_eq!((&seen["valuesHidden"], &seen["id"]), (&json!(true), &json!("id-a")));
}

/// A version whose resource `a` has secrets of this server, and of another provider.
async fn with_secrets(stack: &Stack<'_>) {
    let seal = async |plaintext: &str| {
        let body = json!({ "plaintext": STANDARD.encode(plaintext) });
        let answer = stack.post("/encrypt", &body).send().await.expect(200);
        sealed(answer["ciphertext"].as_str().unwrap())
    };
    let settings = json!({ "key": seal(r#""in-text""#).await, "region": "eu" }).to_string();
    let more = json!({
        "inputs": { "users": [{ "a/b": seal(r#"{"n":[1,2]}"#).await }], "settings": settings, "size": 3 },
        "outputs": {
            "password": seal(r#""hunter2""#).await, "odd": seal("not JSON").await,
            "phrase": sealed("v1:7Jc0VtK1:AAAA"), "other": sealed("AAAA"),
        },
    });
    stack.import(&deployment(&[with(stack, "a", &more), stack.resource("b")])).await;
}

#[tokio::test]
async fn a_secret_of_a_resource_is_opened_and_recorded() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    with_secrets(&stack).await;
    stack.publish(&["a"]).await;
    let ask = |path: &str| json!({ "urn": stack.urn("a"), "version": 1, "path": path });
    let planner = app.member_with_role(Role::Plan, "paula", "laptop").await;
    let reveal = async |path: &str| {
        let call = stack.post("/resource/secret", &ask(path)).token(&planner);
        call.send().await.expect(200)
    };
    app.take_audit();
    assert_eq!(reveal("/outputs/password").await, json!({ "version": 1, "value": "hunter2" }));
    let records = app.take_audit();
    let [record] = &records[..] else { panic!("not one record: {records:?}") };
    assert_eq!((&record["action"], &record["user"]), (&json!("secrets.reveal"), &json!("paula")));
    let expected = format!("version 1, /outputs/password of {}", stack.urn("a"));
    assert_eq!(record["detail"], expected);
    assert!(!record.to_string().contains("hunter2"), "{record}");
    assert_eq!(reveal("/inputs/users/0/a~1b").await["value"], json!({ "n": [1, 2] }));
    let text = reveal("/inputs/settings").await["value"].as_str().unwrap().to_owned();
    let text: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(text, json!({ "key": "in-text", "region": "eu" }));
    // A later version is the current one.
    let current = json!({ "urn": stack.urn("a"), "path": "/outputs/password" });
    let refused = stack.post("/resource/secret", &current).send().await.refused(404);
    assert!(refused.contains("version 2") && refused.contains("has no secret"), "{refused}");
}

#[tokio::test]
async fn what_is_no_secret_of_the_server_is_not_opened() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    with_secrets(&stack).await;
    let ask = |path: &str| json!({ "urn": stack.urn("a"), "path": path });
    for path in ["/outputs/phrase", "/outputs/other", "/outputs/odd"] {
        let refused = stack.post("/resource/secret", &ask(path)).send().await.refused(409);
        assert!(refused.contains("pulumi stack export --show-secrets"), "{path}: {refused}");
    }
    for path in
        ["", "/", "/inputs", "/inputs/size", "/inputs/users/1/x", "/outputs/password/ciphertext", "/id"]
    {
        let refused = stack.post("/resource/secret", &ask(path)).send().await.refused(404);
        assert!(refused.contains("has no secret"), "{path}: {refused}");
    }
    let path = "/outputs/password";
    for (body, status) in [
        (json!({ "path": path }), 400),
        (json!({ "urn": stack.urn("x"), "path": path }), 404),
        (json!({ "urn": stack.urn("a"), "path": path, "delete": true }), 404),
        (json!({ "urn": stack.urn("a"), "path": path, "version": 9 }), 404),
        (json!({ "urn": stack.urn("a"), "path": path, "version": "1" }), 400),
        (json!({ "urn": stack.urn("a"), "place": path }), 400),
    ] {
        stack.post("/resource/secret", &body).send().await.refused(status);
    }
    for role in [Role::View, Role::Outputs] {
        let token = app.member_with_role(role, &format!("one-{role:?}").to_lowercase(), "laptop").await;
        let refused = stack.post("/resource/secret", &ask(path)).token(&token).send().await.refused(403);
        assert!(refused.contains("plan") && !refused.contains("hunter2"), "{refused}");
    }
    let foreign = app.other_user("fred", "elsewhere").await;
    stack.post("/resource/secret", &ask(path)).token(&foreign).send().await.refused(404);
}

#[tokio::test]
async fn i10_cheap_a_secret_takes_three_reads_of_blobs() {
    let (app, counter) = counted().await;
    let stack = Stack::new(&app).await;
    with_secrets(&stack).await;
    let ask = json!({ "urn": stack.urn("a"), "path": "/outputs/password" });
    counter.take();
    stack.post("/resource/secret", &ask).send().await.expect(200);
    // The head, the directory of the index, the entry, the text, and the record.
    assert_eq!(describe_calls(counter.take()), "1 get, 1 commit, 3 blob get (5)");
}

#[tokio::test]
async fn only_those_who_see_the_stack_see_its_resources() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let urn = quoted(&stack.urn("a"));
    let outputs = app.member_with_role(Role::Outputs, "otto", "laptop").await;
    let none = app.member_with_role(Role::None, "nora", "laptop").await;
    let foreign = app.other_user("fred", "elsewhere").await;
    for path in [
        "/resources".to_owned(),
        format!("/resource?urn={urn}"),
        format!("/resource/history?urn={urn}"),
        format!("/resource/neighbours?urn={urn}"),
    ] {
        stack.get(&path).send().await.expect(200);
        stack.get(&path).token(&outputs).send().await.refused(403);
        for (token, status) in [(&none, 403), (&foreign, 404)] {
            let refused = stack.get(&path).token(token).send().await.refused(status);
            let missing = stack.app.get(&format!("/api/stacks/{ORG}/{}/none{path}", stack.project));
            let missing = missing.token(token).send().await.refused(status);
            assert_eq!(refused.replace("/dev", "/none"), missing, "I8: as what does not exist");
        }
        stack.get(&path).anonymous().send().await.refused(401);
    }
}

#[tokio::test]
async fn of_resources_with_one_urn_each_is_found() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let old = |id: &str| with(&stack, "a", &json!({ "id": id, "delete": true }));
    stack.import(&deployment(&[stack.resource("a"), old("old-1"), old("old-2")])).await;
    let page = stack.get("/resources").send().await.expect(200);
    let rows: Vec<(&Value, &Value)> =
        page["resources"].as_array().unwrap().iter().map(|row| (&row["id"], &row["delete"])).collect();
    let (yes, no) = (json!(true), Value::Null);
    assert_eq!(rows, [(&json!("id-a"), &no), (&json!("old-1"), &yes), (&json!("old-2"), &yes)]);
    assert_eq!(resource(&stack, "a").await["id"], "id-a");
    let path = format!("/resource?delete=true&urn={}", quoted(&stack.urn("a")));
    assert_eq!(stack.get(&path).send().await.expect(200)["id"], "old-1");
    // When the deletions are done, the one that stays has not changed.
    stack.import(&deployment(&[stack.resource("a")])).await;
    assert_eq!(resource(&stack, "a").await["changed"], 1);
    stack.get(&path).send().await.refused(404);
}

#[tokio::test]
async fn a_neighbourhood_is_bounded_by_hops() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let of = |name: &str, more: &[&str]| {
        let urns: Vec<String> = more.iter().map(|name| stack.urn(name)).collect();
        let provider = format!("{}::1", stack.urn("p"));
        with(&stack, name, &json!({ "dependencies": urns, "provider": provider }))
    };
    let mut all = vec![stack.resource("p"), of("a", &[]), of("b", &["a"]), of("c", &["b"]), of("d", &["c"])];
    all.extend((0..400).map(|number| of(&format!("r{number}"), &[])));
    stack.import(&deployment(&all)).await;
    let around = async |name: &str, hops: u32| {
        let path = format!("/resource/neighbours?hops={hops}&urn={}", quoted(&stack.urn(name)));
        stack.get(&path).send().await.expect(200)
    };
    let nodes = |found: &Value| -> Vec<String> {
        found["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let one = around("b", 1).await;
    assert_eq!(nodes(&one), ["b", "a", "c", "p"]);
    assert_eq!(one.get("isCut"), None);
    let mut edges: Vec<String> = one["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| {
            let name = |end: &str| nodes(&one)[usize::try_from(edge[end].as_u64().unwrap()).unwrap()].clone();
            format!("{} {} {}", name("from"), edge["kind"].as_str().unwrap(), name("to"))
        })
        .collect();
    edges.sort();
    assert_eq!(edges, ["a provider p", "b dependency a", "b provider p", "c dependency b", "c provider p"]);
    // The provider leads to no others, unless it is in the middle.
    assert_eq!(nodes(&around("b", 2).await).len(), 5);
    assert_eq!(nodes(&around("r7", 3).await), ["r7", "p"]);
    let of_provider = around("p", 1).await;
    assert_eq!((nodes(&of_provider).len(), &of_provider["isCut"]), (300, &json!(true)));
}

#[tokio::test]
async fn a_history_follows_what_changed_a_resource() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let one = |id: &str, size: u32, password: &str| {
        let inputs = json!({ "size": size, "password": sealed(password) });
        with(&stack, "a", &json!({ "id": id, "inputs": inputs }))
    };
    let other = |size: u32| with(&stack, "b", &json!({ "inputs": { "size": size } }));
    for resources in [
        vec![other(1)],
        vec![one("i-1", 1, "AA"), other(1)],
        // Only another resource changes.
        vec![one("i-1", 1, "AA"), other(2)],
        vec![one("i-1", 2, "BB"), other(2)],
        vec![one("i-2", 2, "BB"), other(2)],
        vec![other(2)],
        vec![other(3)],
        vec![one("i-3", 2, "BB"), other(3)],
    ] {
        stack.import(&deployment(&resources)).await;
    }
    let expected = [
        "8 create: ",
        "6 delete: ",
        r#"5 replace: id changed "i-1">"i-2""#,
        "4 change: inputs.password changed secret >, inputs.size changed 1>2",
        "2 create: ",
        "created 2",
    ];
    assert_eq!(history(&stack, "a").await, expected);
    let of_other =
        ["7 change: inputs.size changed 2>3", "3 change: inputs.size changed 1>2", "1 create: ", "created 1"];
    assert_eq!(history(&stack, "b").await, of_other);
    // The history seen from an old version, and that of a resource that is gone.
    let urn = quoted(&stack.urn("a"));
    let at = async |version: u64| {
        let path = format!("/resource/history?version={version}&urn={urn}");
        let page = stack.get(&path).send().await.expect(200);
        page["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["version"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(at(7).await, [6, 5, 4, 2]);
    assert_eq!(at(3).await, [2]);
    stack.get(&format!("/resource/history?version=1&urn={urn}")).send().await.refused(404);
    let page = stack.get(&format!("/resource/history?urn={urn}")).send().await.expect(200);
    let newest = &page["entries"][0];
    assert_eq!((&newest["kind"], &newest["result"]), (&json!("import"), &json!("succeeded")));
    assert_eq!(newest["requestedBy"]["githubLogin"], "alice");
    assert!(newest["time"].as_str().unwrap().ends_with('Z') && newest["updateID"].is_string());
    // A viewer sees paths, and no values.
    let viewer = app.member_with_role(Role::View, "vera", "laptop").await;
    let seen = stack.get(&format!("/resource/history?urn={urn}")).token(&viewer).send().await.expect(200);
    let changes = &seen["entries"][2]["changes"][0];
    assert_eq!(*changes, json!({ "path": "id", "how": "changed" }));
}

#[tokio::test]
async fn a_long_history_comes_in_pages_of_ten() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    for size in 1..=23 {
        stack.import(&deployment(&[with(&stack, "a", &json!({ "inputs": { "size": size } }))])).await;
    }
    let lines = history(&stack, "a").await;
    assert_eq!(lines.len(), 24);
    assert_eq!(lines[0], "23 change: inputs.size changed 22>23");
    assert_eq!((lines[22].as_str(), lines[23].as_str()), ("1 create: ", "created 1"));
}

#[tokio::test]
async fn updates_with_a_journal_are_indexed_too() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let body = begin_body("update", false);
    let run = stack.begun(stack.post("/begin-update", &body)).await;
    run.append(&[stack.made(1, "a"), stack.made(2, "b")]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    let run = stack.begin().await;
    let mut changed = stack.resource("b");
    changed["inputs"] = json!({ "size": 2 });
    run.append(&[entry(1, 1, &json!({ "state": changed, "removeOld": 1 }))]).await.expect(204);
    run.complete("failed").await.expect(204);
    assert_eq!(
        history(&stack, "b").await,
        [r#"2 change: inputs added >{"size":2}"#, "1 create: ", "created 1"]
    );
    assert_eq!(resource(&stack, "a").await["changed"], 1);
    // An update without a change has the index of the version before.
    stack.begin().await.complete("succeeded").await.expect(204);
    let page = stack.get("/resources").send().await.expect(200);
    assert_eq!((&page["version"], names(&page).len()), (&json!(3), 2));
    // A rename keeps the history of each resource.
    app.post(&format!("{}/rename", stack.path), &json!({ "newName": "prod" })).send().await.expect(200);
    let path = format!("/api/stacks/{ORG}/{}/prod", stack.project);
    let page = app.get(&format!("{path}/resources")).send().await.expect(200);
    let urns: Vec<&str> =
        page["resources"].as_array().unwrap().iter().map(|row| row["urn"].as_str().unwrap()).collect();
    assert!(urns.iter().all(|urn| urn.starts_with("urn:pulumi:prod::")), "{urns:?}");
    let changed: Vec<&Value> =
        page["resources"].as_array().unwrap().iter().map(|row| &row["changed"]).collect();
    assert_eq!(changed, [&json!(1), &json!(2)]);
}

/// A server in memory whose store can be inspected.
struct Kept {
    app: TestApp,
    ledger: MemoryLedger,
    blobs: MemoryBlobs,
}

impl Kept {
    async fn with(retention: Retention) -> Self {
        let (ledger, blobs) = (MemoryLedger::new(), MemoryBlobs::new());
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
        let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
        let settings = Settings { retention, ..Settings::default() };
        let ports = (Arc::new(ledger.clone()), Arc::new(blobs.clone()));
        let app = TestApp::memory_with_settings(ports.0, ports.1, keys, ids, settings).await;
        Self { app, ledger, blobs }
    }

    async fn stack(&self) -> StackId {
        let all = check::stacks(&self.app.context, &(self.ledger.clone(), self.blobs.clone())).await.unwrap();
        all.into_iter().next().unwrap()
    }

    /// The store as a program without indexes leaves it.
    async fn without_indexes(&self, versions: std::ops::RangeInclusive<u64>) {
        let (ctx, stack) = (&self.app.context, self.stack().await);
        for number in versions {
            let key = StackVersion::key(stack, number);
            let mut version =
                StackVersion::decode(&self.ledger.get(&key).await.unwrap().unwrap().value).unwrap();
            version.snapshot.index = None;
            let write = put(key, Expect::Any, ctx.ids.revision(), &version);
            self.ledger.commit(vec![write]).await.unwrap();
            let key = StackHead::key(stack);
            let mut head = StackHead::decode(&self.ledger.get(&key).await.unwrap().unwrap().value).unwrap();
            if head.version == number {
                head.snapshot.as_mut().unwrap().index = None;
                self.ledger.commit(vec![put(key, Expect::Any, ctx.ids.revision(), &head)]).await.unwrap();
            }
        }
    }

    /// Sweeps until nothing can be due any more.
    async fn sweep(&self) {
        for _ in 0..10 {
            self.app.sweep().await;
        }
    }

    async fn index(&self) -> u64 {
        indexing::index(&self.app.context, self.stack().await, |_| ()).await.unwrap().indexed
    }

    /// Indexes three versions, of which the second is erased after the command listed it: its index goes with a sweep.
    async fn erases_the_second_meanwhile(&self) {
        let id = self.stack().await;
        let erase_second = |number: u64| {
            if number == 1 {
                let write = delete(StackVersion::key(id, 2), Expect::Any);
                self.ledger.commit(vec![write]).now_or_never().unwrap().unwrap();
            }
        };
        let indexed = indexing::index(&self.app.context, id, erase_second).await.unwrap();
        assert_eq!((indexed.versions, indexed.indexed, self.indexes()), (3, 2, 3));
        self.app.advance(Duration::from_secs(40 * 86_400));
        self.sweep().await;
        assert_eq!(self.indexes(), 2);
    }

    async fn problems(&self) -> Vec<String> {
        check::stack(&self.app.context, self.stack().await).await.unwrap().problems
    }

    fn indexes(&self) -> usize {
        self.blobs.keys().iter().filter(|key| key.as_str().contains("-index-")).count()
    }
}

async fn sizes(stack: &Stack<'_>, sizes: std::ops::RangeInclusive<u32>) {
    for size in sizes {
        stack.import(&deployment(&[with(stack, "a", &json!({ "inputs": { "size": size } }))])).await;
    }
}

#[tokio::test]
async fn versions_of_an_older_program_are_indexed_by_the_operator() {
    let kept = Kept::with(Retention::DEFAULT).await;
    let stack = Stack::new(&kept.app).await;
    sizes(&stack, 1..=3).await;
    kept.without_indexes(1..=3).await;
    // Short versions are read as a whole, and their history is not known.
    let page = stack.get("/resources").send().await.expect(200);
    assert_eq!((names(&page), &page["historyFrom"]), (vec!["a".to_owned()], &json!(3)));
    assert_eq!(resource(&stack, "a").await["inputs"], json!({ "size": 3 }));
    assert_eq!(history(&stack, "a").await, ["3 seen: ", "unindexed 2"]);
    // The first index of this program knows nothing of the versions before.
    sizes(&stack, 4..=5).await;
    let seen = ["5 change: inputs.size changed 4>5", "4 seen: ", "unindexed 3"];
    assert_eq!(history(&stack, "a").await, seen);
    assert_eq!(kept.problems().await, [""; 0]);

    assert_eq!(kept.index().await, 5);
    let whole = history(&stack, "a").await;
    assert_eq!((whole.len(), whole[4].as_str(), whole[5].as_str()), (6, "1 create: ", "created 1"));
    assert_eq!(stack.get("/resources").send().await.expect(200)["historyFrom"], 1);
    assert_eq!(kept.problems().await, [""; 0]);
    // A repeat changes nothing, and the indexes that were replaced are deleted after their time.
    assert_eq!(kept.index().await, 0);
    assert_eq!(history(&stack, "a").await, whole);
    let before = kept.indexes();
    kept.app.advance(Duration::from_secs(40 * 86_400));
    kept.sweep().await;
    assert!(kept.indexes() < before);
    assert_eq!(kept.problems().await, [""; 0]);
    assert_eq!(history(&stack, "a").await, whole);
}

#[tokio::test]
async fn an_index_is_made_in_the_memory_of_the_publish() {
    const MIB: usize = 1 << 20;
    let kept = Kept::with(Retention::DEFAULT).await;
    let stack = Stack::new(&kept.app).await;
    let resources: Vec<Value> = (1..=3_000).map(|number| stack.resource(&format!("r{number}"))).collect();
    stack.import(&deployment(&resources)).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "last")]).await.expect(204);
    let ctx = &kept.app.context;
    let claims = tokens::verify(ctx, &run.token, &run.id).await.unwrap();

    // One request holds memory, another one waits for all of it. The publish gets enough for the deployment, and no more.
    let account = ByteAccount::new(32 * MIB, Arc::clone(&ctx.clock));
    let (holds, waits, publishes) = (account.open(&1), account.open(&2), account.open(&3));
    holds.take(22 * MIB).await.unwrap();
    waits.take(1 << 10).await.unwrap();
    let mut whole = std::pin::pin!(waits.take(32 * MIB));
    assert!(whole.as_mut().now_or_never().is_none());
    publishes.take(1 << 10).await.unwrap();
    let ends = updates::complete(ctx, &claims, Outcome::Succeeded);
    publishes.during(Box::pin(ends)).await.unwrap();

    let page = stack.get("/resources?size=1").send().await.expect(200);
    assert_eq!((&page["total"], kept.indexes()), (&json!(3_001), 2));
    assert_eq!(kept.problems().await, [""; 0]);
}

#[tokio::test]
async fn the_operator_indexes_what_is_left_of_a_history() {
    let retention = Retention { versions: NonZeroU64::new(2), ..Retention::DEFAULT };
    let kept = Kept::with(retention).await;
    let stack = Stack::new(&kept.app).await;
    sizes(&stack, 1..=4).await;
    kept.app.advance(Duration::from_secs(3_600));
    kept.sweep().await;
    kept.without_indexes(3..=4).await;
    assert_eq!(kept.index().await, 2);
    let lines = history(&stack, "a").await;
    assert_eq!(lines, ["4 change: inputs.size changed 3>4", "3 seen: ", "erased 2"]);
}

#[tokio::test]
async fn the_index_of_a_version_that_is_erased_meanwhile_is_deleted() {
    let kept = Kept::with(Retention::DEFAULT).await;
    let stack = Stack::new(&kept.app).await;
    sizes(&stack, 1..=3).await;
    kept.without_indexes(1..=3).await;
    kept.erases_the_second_meanwhile().await;
}

#[tokio::test]
async fn a_large_version_without_an_index_names_the_command() {
    let kept = Kept::with(Retention::DEFAULT).await;
    let stack = Stack::new(&kept.app).await;
    let long = "x".repeat(9 << 20);
    stack.import(&deployment(&[with(&stack, "a", &json!({ "inputs": { "text": long } }))])).await;
    kept.without_indexes(1..=1).await;
    let urn = quoted(&stack.urn("a"));
    for path in [
        "/resources".to_owned(),
        format!("/resource?urn={urn}"),
        format!("/resource/history?urn={urn}"),
        format!("/resource/neighbours?urn={urn}"),
    ] {
        let refused = stack.get(&path).send().await.refused(409);
        let command = format!("`statewright stack index {ORG}/{}/dev`", stack.project);
        assert!(refused.contains(&command), "{refused}");
    }
    assert_eq!(kept.index().await, 1);
    assert_eq!(names(&stack.get("/resources").send().await.expect(200)), ["a"]);
    let shown = resource(&stack, "a").await;
    assert_eq!(shown["inputs"]["text"].as_str().unwrap().len(), 9 << 20);
}

#[tokio::test]
async fn a_history_ends_where_versions_were_erased() {
    let retention = Retention { versions: NonZeroU64::new(3), ..Retention::DEFAULT };
    let kept = Kept::with(retention).await;
    let stack = Stack::new(&kept.app).await;
    sizes(&stack, 1..=6).await;
    kept.app.advance(Duration::from_secs(3_600));
    kept.sweep().await;
    let lines = history(&stack, "a").await;
    assert_eq!(
        lines,
        [
            "6 change: inputs.size changed 5>6",
            "5 change: inputs.size changed 4>5",
            "4 change:  more",
            "erased 3"
        ]
    );
    // The indexes of erased versions are deleted with their deployments.
    let before = kept.indexes();
    kept.app.advance(Duration::from_secs(40 * 86_400));
    kept.sweep().await;
    assert_eq!((before, kept.indexes()), (6, 3));
    assert_eq!(kept.problems().await, [""; 0]);
    kept.app.request(Method::DELETE, &format!("{}?force=true", stack.path)).send().await.expect(204);
    kept.app.advance(Duration::from_secs(100 * 86_400));
    kept.sweep().await;
    kept.app.advance(Duration::from_secs(100 * 86_400));
    kept.sweep().await;
    assert_eq!(kept.indexes(), 0);
}

#[tokio::test]
async fn a_damaged_index_is_reported_and_stops_no_update() {
    let kept = Kept::with(Retention::DEFAULT).await;
    let stack = Stack::new(&kept.app).await;
    sizes(&stack, 1..=2).await;
    for key in kept.blobs.keys().iter().filter(|key| key.as_str().contains("-index-")) {
        kept.app.context.blobs.put(key, vec![0; 10_000].into()).await.unwrap();
    }
    for path in ["/resources".to_owned(), format!("/resource?urn={}", quoted(&stack.urn("a")))] {
        let refused = stack.get(&path).send().await.refused(500);
        assert!(refused.contains("`statewright stack index`"), "{refused}");
    }
    assert_eq!(kept.problems().await.len(), 2);
    sizes(&stack, 3..=3).await;
    let page = stack.get("/resources").send().await.expect(200);
    assert_eq!((&page["version"], &page["historyFrom"]), (&json!(3), &json!(3)));
}

#[tokio::test]
async fn damaged_and_missing_indexes_are_made_again() {
    let kept = Kept::with(Retention::DEFAULT).await;
    let stack = Stack::new(&kept.app).await;
    sizes(&stack, 1..=4).await;
    let whole = history(&stack, "a").await;
    let blobs = &kept.app.context.blobs;
    let keys: Vec<_> = kept.blobs.keys().into_iter().filter(|key| key.as_str().contains("-index-")).collect();
    blobs.put(&keys[0], vec![0; 10_000].into()).await.unwrap();
    blobs.delete(&keys[1]).await.unwrap();
    assert_eq!(kept.problems().await.len(), 2);
    assert_eq!(kept.index().await, 2);
    assert_eq!((kept.problems().await, history(&stack, "a").await), (Vec::new(), whole.clone()));
    assert_eq!(kept.index().await, 0);
    // The blobs have their former keys, so nothing else deletes them later.
    kept.app.advance(Duration::from_secs(40 * 86_400));
    kept.sweep().await;
    assert_eq!((kept.indexes(), history(&stack, "a").await), (4, whole));
}

#[tokio::test]
async fn a_repaired_index_of_an_erased_version_is_deleted() {
    let kept = Kept::with(Retention::DEFAULT).await;
    let stack = Stack::new(&kept.app).await;
    sizes(&stack, 1..=3).await;
    for key in kept.blobs.keys().iter().filter(|key| key.as_str().contains("-index-")) {
        kept.app.context.blobs.delete(key).await.unwrap();
    }
    kept.erases_the_second_meanwhile().await;
}

/// Memory for a page does not grow with the stack.
#[tokio::test]
async fn i9_bounded_a_page_takes_the_same_memory_for_any_stack() {
    let app = TestApp::memory().await;
    let most = async |count: usize| {
        let stack = Stack::new(&app).await;
        let all: Vec<Value> = (0..count).map(|number| stack.resource(&format!("r{number:05}"))).collect();
        stack.import(&deployment(&all)).await;
        let urn = quoted(&stack.urn("r00001"));
        app.most_reserved();
        let mut all = Vec::new();
        for path in ["/resources", "/resources?filter=r00001", &format!("/resource?urn={urn}")] {
            stack.get(path).send().await.expect(200);
            all.push(app.most_reserved());
        }
        all
    };
    let (few, many) = (most(1_000).await, most(20_000).await);
    for (few, many) in few.iter().zip(&many) {
        assert!(*many < few + (1 << 20), "{few} and {many}");
    }
}

#[tokio::test]
async fn i10_cheap_a_history_reads_the_versions_that_changed_it() {
    let (app, counter) = counted().await;
    let stack = Stack::new(&app).await;
    sizes(&stack, 1..=2).await;
    for _ in 0..30 {
        stack.publish(&["b"]).await;
        stack.publish(&["c"]).await;
    }
    let urn = quoted(&stack.urn("a"));
    counter.take();
    stack.get(&format!("/resource/history?urn={urn}")).send().await.expect(200);
    // The head and the current index; then, for each of three versions, its record, its directory and its entry;
    // and two texts.
    assert_eq!(describe_calls(counter.take()), "4 get, 10 blob get (14)");
}

#[tokio::test]
async fn values_that_are_too_long_are_left_out_on_request() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let (long, short) = (json!({ "a": "x".repeat(5 << 20) }), json!({ "a": "word" }));
    let resources = [
        with(&stack, "long", &json!({ "inputs": {}, "outputs": long })),
        with(&stack, "short", &json!({ "inputs": {}, "outputs": short })),
    ];
    stack.import(&deployment(&resources)).await;
    let get = async |name: &str, more: &str| {
        let path = format!("/resource?urn={}{more}", quoted(&stack.urn(name)));
        stack.get(&path).send().await.expect(200)
    };
    assert_eq!(get("long", "").await["outputs"], long);
    let found = get("long", "&short=true").await;
    assert_eq!((found.get("inputs"), found.get("outputs")), (None, None));
    let bytes = long.to_string().len() + "{}".len();
    assert_eq!((&found["valuesBytes"], &found["dependencyCount"]), (&json!(bytes), &json!(0)));
    let found = get("short", "&short=true").await;
    assert_eq!((&found["outputs"], found.get("valuesBytes")), (&short, None));
}

//! The operator's `check`: it finds nothing in a sound store, and names every fault.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::json;
use statewright_shared::adapters::{MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds};
use statewright_shared::domain::ids::{EdgeId, StackId, StateId, UpdateId};
use statewright_shared::domain::names::{EnvironmentAddress, InputName, OrgName, StateAddress};
use statewright_shared::domain::tfstate::Ends;
use statewright_shared::layout::{
    DeletedState, EnvironmentHead, FormerStateName, Record, Slot, Snapshot, StackEntry, StackHead,
    StackVersion, StateEdge, StateEntry, StateGraph, StateHead, StateLock, StateLockEntry, StateSchemas,
    StoredLabelPolicy, WrappedDataKey, delete, put_bytes,
};
use statewright_shared::ports::{BlobKey, Blobs as _, Expect, Ids, ItemKey, Ledger as _};
use statewright_shared::services::keys::master_key;
use statewright_shared::services::maintenance::check;
use statewright_shared::services::maintenance::check::Orphans;
use statewright_shared::services::maintenance::check_states;
use statewright_shared::services::store::compression::gzip;
use statewright_tests::app::{ORG, TestApp};

use crate::world::{Run, Stack};

struct Store {
    app: TestApp,
    ledger: MemoryLedger,
    blobs: MemoryBlobs,
    keys: MemoryKeys,
}

impl Store {
    async fn new() -> Self {
        let (ledger, blobs) = (MemoryLedger::with_inline_bytes_max(100), MemoryBlobs::new());
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
        let keys = MemoryKeys::new(Arc::clone(&ids));
        let ports = (Arc::new(ledger.clone()), Arc::new(blobs.clone()), Arc::new(keys.clone()));
        let app = TestApp::memory_with(ports.0, ports.1, ports.2, ids).await;
        Self { app, ledger, blobs, keys }
    }

    fn inventory(&self) -> (MemoryLedger, MemoryBlobs) {
        (self.ledger.clone(), self.blobs.clone())
    }

    /// The problems of the stacks and the store.
    async fn problems(&self) -> Vec<String> {
        let (ctx, inventory) = (&self.app.context, self.inventory());
        let mut problems = Vec::new();
        for id in check::stacks(ctx, &inventory).await.unwrap() {
            problems.extend(check::stack(ctx, id).await.unwrap().problems);
        }
        for id in check_states::states(ctx, &inventory).await.unwrap() {
            problems.extend(check_states::state(ctx, id).await.unwrap().problems);
        }
        problems.extend(check::store(ctx, &inventory).await.unwrap());
        problems
    }

    /// The problems with another record under the item's key, which is restored afterwards.
    async fn with(&self, key: &ItemKey, value: Option<Bytes>) -> Vec<String> {
        let before = self.ledger.get(key).await.unwrap();
        match value {
            Some(value) => self.write(key.clone(), value).await,
            None => self.remove(key.clone()).await,
        }
        let problems = self.problems().await;
        match before {
            Some(item) => self.write(key.clone(), item.value).await,
            None => self.remove(key.clone()).await,
        }
        problems
    }

    async fn read<T: Record>(&self, key: &ItemKey) -> T {
        T::decode(&self.ledger.get(key).await.unwrap().unwrap().value).unwrap()
    }

    #[track_caller]
    fn assert_one(problems: &[String], words: &str) {
        assert!(
            matches!(problems, [only] if only.contains(words)),
            "{words:?} is not what {problems:?} says"
        );
    }

    async fn version(&self, stack: StackId, version: u64) -> StackVersion {
        let item = self.ledger.get(&StackVersion::key(stack, version)).await.unwrap().unwrap();
        StackVersion::decode(&item.value).unwrap()
    }

    async fn write(&self, key: impl Into<ItemKey>, value: Bytes) {
        let write = put_bytes(key, Expect::Any, self.app.context.ids.revision(), value);
        self.ledger.commit(vec![write]).await.unwrap();
    }

    async fn remove(&self, key: impl Into<ItemKey>) {
        self.ledger.commit(vec![delete(key, Expect::Any)]).await.unwrap();
    }
}

/// A stack with four versions, a secret, and a running update.
async fn stack(store: &Store) -> (Stack<'_>, StackId, Run<'_>) {
    let stack = Stack::new(&store.app).await;
    stack.post("/encrypt", &json!({ "plaintext": STANDARD.encode("hunter2") })).send().await.expect(200);
    for number in 1..=3 {
        stack.publish(&[&format!("r{number}")]).await;
    }
    stack.begin().await.complete("succeeded").await.expect(204);
    let run = stack.begin().await;
    for number in 1..=3 {
        run.append(&[stack.made(number, &format!("{number}-{}", "long".repeat(20)))]).await.expect(204);
    }
    let id = StackId::parse(stack.get("").send().await.expect(200)["id"].as_str().unwrap()).unwrap();
    (stack, id, run)
}

#[tokio::test]
async fn a_sound_store_has_no_findings_and_no_unnamed_blobs() {
    let store = Store::new().await;
    let (stack, id, run) = stack(&store).await;
    assert_eq!(store.problems().await, [""; 0]);
    let report = check::stack(&store.app.context, id).await.unwrap();
    assert_eq!((report.versions, report.is_deleted), (4, false));
    assert_eq!(check::orphans(&store.app.context, &store.inventory()).await.unwrap(), Orphans::default());
    run.complete("succeeded").await.expect(204);
    store
        .app
        .request(reqwest::Method::DELETE, &format!("{}?force=true", stack.path))
        .send()
        .await
        .expect(204);
    assert_eq!(store.problems().await, [""; 0]);
    let report = check::stack(&store.app.context, id).await.unwrap();
    assert_eq!((report.versions, report.is_deleted), (5, true));
    assert_eq!(check::orphans(&store.app.context, &store.inventory()).await.unwrap(), Orphans::default());
}

#[tokio::test]
async fn imports_in_a_head_are_compared_with_the_text() {
    let store = Store::new().await;
    let all = format!("/api/esc/environments/{ORG}");
    for name in ["base", "top"] {
        store.app.post(&all, &json!({ "project": "web", "name": name })).send().await.expect(204);
    }
    store.app.patch(&format!("{all}/web/top"), &json!({ "imports": ["web/base"] })).send().await.expect(200);
    assert_eq!(store.problems().await, [""; 0]);
    let key: ItemKey = EnvironmentHead::key(&EnvironmentAddress::parse(ORG, "web", "top").unwrap()).into();
    let head: EnvironmentHead = store.read(&key).await;
    let of_older_program = EnvironmentHead { imports: None, ..head.clone() };
    assert_eq!(store.with(&key, Some(of_older_program.encode())).await, [""; 0]);
    let wrong = EnvironmentHead { imports: Some(BTreeSet::new()), ..head };
    let found = store.with(&key, Some(wrong.encode())).await;
    Store::assert_one(&found, "acme/web/top names other imports than its text");
}

#[tokio::test]
async fn an_unnamed_blob_is_found_and_stays() {
    let store = Store::new().await;
    stack(&store).await;
    let orphan = BlobKey::parse("snap/nobody/nothing").unwrap();
    store.blobs.put(&orphan, Bytes::from("left")).await.unwrap();
    let found = check::orphans(&store.app.context, &store.inventory()).await.unwrap();
    assert_eq!((found.blobs, found.problems), (vec![orphan.clone()], vec![]));
    assert!(store.blobs.get(&orphan).await.unwrap().is_some());
    assert_eq!(store.problems().await, [""; 0]);
    // An unreadable record may name any blob, so it is reported.
    store.write(ItemKey::new("EVENTS#x", "1"), Bytes::from("x")).await;
    let found = check::orphans(&store.app.context, &store.inventory()).await.unwrap();
    assert_eq!(found.blobs, [orphan]);
    Store::assert_one(&found.problems, "event batch");
}

#[tokio::test]
async fn a_missing_or_altered_blob_is_reported_with_its_version() {
    for altered in [None, Some("other bytes")] {
        let store = Store::new().await;
        let (_, id, _) = stack(&store).await;
        let key = store.version(id, 2).await.snapshot.key().unwrap();
        let words = match altered {
            None => {
                store.blobs.delete(&key).await.unwrap();
                "is missing"
            }
            Some(bytes) => {
                store.blobs.put(&key, Bytes::from(bytes)).await.unwrap();
                "does not match its hash"
            }
        };
        let problems = store.problems().await;
        Store::assert_one(&problems, words);
        Store::assert_one(&problems, "version 2");
    }
}

/// Replaces the deployment of version 2, with an item that fits its bytes.
async fn replace_deployment(store: &Store, id: StackId, text: &str, resource_count: u64) {
    let version = store.version(id, 2).await;
    let body = gzip(text.as_bytes());
    let sha256 = crate::world::hex_bytes(&body);
    let snapshot = Snapshot {
        sha256,
        bytes_gzip: body.len() as u64,
        bytes_text: text.len() as u64,
        resource_count,
        index: None,
        ..version.snapshot.clone()
    };
    store.blobs.put(&snapshot.key().unwrap(), body).await.unwrap();
    store.write(StackVersion::key(id, 2), StackVersion { snapshot, ..version }.encode()).await;
}

#[tokio::test]
async fn a_deployment_that_breaks_a_rule_must_be_marked() {
    let store = Store::new().await;
    let (stack, id, _) = stack(&store).await;
    let mut orphan = stack.resource("child");
    orphan["parent"] = json!(stack.urn("nobody"));
    let mut state = crate::world::deployment(&[orphan]);
    replace_deployment(&store, id, &state.to_string(), 1).await;
    Store::assert_one(&store.problems().await, "but it is not marked as damaged");
    state["deployment"]["metadata"] =
        json!({ "integrity_error": { "version": "3", "command": "x", "error": "a parent is missing" } });
    replace_deployment(&store, id, &state.to_string(), 1).await;
    assert_eq!(store.problems().await, [""; 0]);
    replace_deployment(&store, id, &state.to_string(), 2).await;
    Store::assert_one(&store.problems().await, "its number of resources differs");
    replace_deployment(&store, id, "{}", 0).await;
    Store::assert_one(&store.problems().await, "version 2: the deployment in");
}

#[tokio::test]
async fn versions_have_no_gap_except_deleted_ones() {
    let store = Store::new().await;
    let (_, id, _) = stack(&store).await;
    store.remove(StackVersion::key(id, 1)).await;
    assert_eq!(store.problems().await, [""; 0]);
    store.remove(StackVersion::key(id, 3)).await;
    Store::assert_one(&store.problems().await, "versions 3 to 3 are missing");
    store.write(StackVersion::key(id, 2), Bytes::from("no record")).await;
    let problems = store.problems().await;
    assert!(problems.iter().any(|problem| problem.contains("version 2: a version record")), "{problems:?}");
}

#[tokio::test]
async fn a_head_has_to_show_the_last_version() {
    let store = Store::new().await;
    let (_, id, _) = stack(&store).await;
    let item = store.ledger.get(&StackHead::key(id)).await.unwrap().unwrap();
    let head = StackHead::decode(&item.value).unwrap();
    store.write(StackHead::key(id), StackHead { version: 5, ..head.clone() }.encode()).await;
    Store::assert_one(&store.problems().await, "its head is at version 5, but the last one is 4");
    let first = store.version(id, 1).await.snapshot;
    store.write(StackHead::key(id), StackHead { snapshot: Some(first), ..head.clone() }.encode()).await;
    Store::assert_one(&store.problems().await, "its head differs from version 4");
    store.write(StackHead::key(id), StackHead { running: None, ..head.clone() }.encode()).await;
    Store::assert_one(
        &store.problems().await,
        "its name is marked as held by an update, but no update holds it",
    );
    let nobody = Some(UpdateId::new(store.app.context.ids.uuid()));
    store.write(StackHead::key(id), StackHead { running: nobody, ..head.clone() }.encode()).await;
    Store::assert_one(&store.problems().await, "has no record");
    store.remove(StackEntry::key(&head.address)).await;
    store.write(StackHead::key(id), head.encode()).await;
    Store::assert_one(&store.problems().await, "its name does not lead to it");
    store.remove(StackHead::key(id)).await;
    Store::assert_one(&store.problems().await, "has no head");
}

#[tokio::test]
async fn the_log_of_a_running_update_is_whole() {
    let store = Store::new().await;
    let (_, _, run) = stack(&store).await;
    let id = UpdateId::parse(&run.id).unwrap();
    let logs = store.blobs.keys().into_iter().filter(|key| key.as_str().starts_with("log/"));
    let logs: Vec<BlobKey> = logs.collect();
    let body = store.blobs.get(&logs[0]).await.unwrap().unwrap().into_bytes().await.unwrap();
    store.blobs.delete(&logs[0]).await.unwrap();
    Store::assert_one(&store.problems().await, "is missing");
    store.blobs.put(&logs[0], body).await.unwrap();
    store.remove(Slot::key(id, 2)).await;
    Store::assert_one(&store.problems().await, "lacks slot 2");
}

#[tokio::test]
async fn check_covers_names_keys_and_the_signer() {
    let store = Store::new().await;
    let (stack, id, _) = stack(&store).await;
    let name = StackEntry::key(
        &statewright_shared::domain::names::StackAddress::parse("acme", &stack.project, "other").unwrap(),
    );
    let item = store.ledger.items().into_iter().find(|item| item.key.sort.ends_with("/dev")).unwrap();
    store.write(name.clone(), item.value).await;
    Store::assert_one(&store.problems().await, "leads to no stack of that name");
    store.remove(name).await;
    store.write(ItemKey::new("DUE#1", "00000000000000000001#x"), Bytes::from("x")).await;
    Store::assert_one(&store.problems().await, "due item");
    store.remove(ItemKey::new("DUE#1", "00000000000000000001#x")).await;
    let key = WrappedDataKey::key(id, 1);
    let whole = store.ledger.get(&key).await.unwrap().unwrap().value;
    let mut altered = whole.to_vec();
    *altered.last_mut().unwrap() ^= 1;
    store.write(key.clone(), altered.into()).await;
    Store::assert_one(&store.problems().await, "its data key 0000000001");
    store.write(key, whole).await;
    store.keys.add_master();
    store.keys.forget_old_masters();
    let problems = store.problems().await;
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[1].contains("the key that signs update tokens"), "{problems:?}");
}

#[tokio::test]
async fn after_a_new_master_key_everything_is_under_it_and_opens() {
    let store = Store::new().await;
    let (stack, id, run) = stack(&store).await;
    let ctx = &store.app.context;
    let sealed = stack.post("/encrypt", &json!({ "plaintext": STANDARD.encode("old") })).send().await;
    let sealed = sealed.expect(200)["ciphertext"].clone();
    store.keys.add_master();
    // A process that was running before continues, with its caches.
    run.append(&[stack.made(9, "between")]).await.expect(204);
    let done = master_key::rewrap(ctx, &store.inventory(), &|_| {}).await.unwrap();
    assert_eq!((done.keys, done.rewrapped), (2, 2));
    let done = master_key::rewrap(ctx, &store.inventory(), &|_| {}).await.unwrap();
    assert_eq!((done.keys, done.rewrapped), (2, 0));
    store.keys.forget_old_masters();
    assert_eq!(store.problems().await, [""; 0]);
    for app in [&store.app, &store.app.another_process("new").await] {
        let opened =
            stack.at(app).post("/decrypt", &json!({ "ciphertext": sealed })).send().await.expect(200);
        assert_eq!(opened["plaintext"], STANDARD.encode("old"));
        run.at(app).renew(300).await.expect(200);
    }
    // A new data key seals, and the old one still opens.
    assert_eq!(statewright_shared::services::keys::data_keys::renew_key(ctx, id).await.unwrap(), 2);
    let again = stack.post("/encrypt", &json!({ "plaintext": STANDARD.encode("old") })).send().await;
    let again = again.expect(200)["ciphertext"].clone();
    let number =
        |sealed: &serde_json::Value| STANDARD.decode(sealed.as_str().unwrap()).unwrap()[1..5].to_vec();
    assert_eq!((number(&sealed), number(&again)), (vec![0, 0, 0, 1], vec![0, 0, 0, 2]));
    let both = json!({ "ciphertexts": [sealed, again] });
    let opened = stack.post("/batch-decrypt", &both).send().await.expect(200);
    assert_eq!(opened["plaintexts"].as_object().unwrap().len(), 2);
}

/// States `net`, `db` and `web` with an edge from each to the next, `gone`, which was deleted, and a label
/// policy. Returns the ids of the first three.
async fn states(store: &Store) -> [StateId; 3] {
    let app = &store.app;
    let mut ids = Vec::new();
    for project in ["net", "db", "web", "gone"] {
        let new = json!({ "project": project, "labels": { "env": "dev" } });
        let made = app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
        ids.push(StateId::parse(made["id"].as_str().unwrap()).unwrap());
    }
    for (producer, consumer) in [("net", "db"), ("db", "web"), ("gone", "web")] {
        let edge = json!({ "producer": producer, "output": "o", "consumer": consumer, "mock": 1 });
        app.post(&format!("/api/orgs/{ORG}/tfstate-edges"), &edge).send().await.expect(200);
    }
    let text = json!({ "version": 4, "serial": 1, "lineage": "l", "outputs": {}, "resources": [] });
    app.post(&format!("/tfstate/{ORG}/net"), &text).send().await.expect(200);
    let schemas = json!({ "outputs": { "o": { "type": "string" } } });
    app.patch(&format!("/api/tfstates/{}/schemas", ids[0]), &schemas).send().await.expect(200);
    let policy = json!({ "version": 0, "policy": { "requiredKeys": ["env"] } });
    let path = format!("/api/orgs/{ORG}/tfstate-policy");
    app.request(reqwest::Method::PUT, &path).json(&policy).send().await.expect(200);
    app.request(reqwest::Method::DELETE, &format!("/api/tfstates/{}", ids[3])).send().await.expect(204);
    [ids[0], ids[1], ids[2]]
}

#[tokio::test]
async fn check_covers_edges_and_the_item_that_moves_with_them() {
    let store = Store::new().await;
    assert_eq!(store.problems().await, [""; 0]);
    let [net, db, web] = states(&store).await;
    // One of them leads from a deleted state, which may be undeleted.
    assert_eq!(store.problems().await, [""; 0]);
    let org = OrgName::parse(ORG).unwrap();
    let graph = StateGraph::key(&org);
    Store::assert_one(
        &store.with(&graph, None).await,
        "the edges of acme: the item that counts them is missing",
    );
    let other = StateGraph { edge_count: 7 }.encode();
    Store::assert_one(
        &store.with(&graph, Some(other)).await,
        "there are 3, but the item that counts them has 7",
    );
    Store::assert_one(
        &store.with(&graph, Some(Bytes::from_static(b"\x01"))).await,
        "a graph of states record is damaged",
    );

    let mut edge = None;
    for item in store.ledger.items() {
        let Ok(id) = StateEdge::id_in(&item.key) else { continue };
        let (record, _) = StateEdge::decode_with(&item.value).unwrap();
        if record.ends.producer == net {
            edge = Some((item.key, id, record));
        }
    }
    let (key, id, record) = edge.unwrap();
    Store::assert_one(&store.with(&key, None).await, "there are 2, but the item that counts them has 3");
    Store::assert_one(
        &store.with(&key, Some(Bytes::from_static(b"\x01"))).await,
        "edge between states record is damaged",
    );
    let no_json = record.encode_with(b"{");
    Store::assert_one(
        &store.with(&key, Some(no_json)).await,
        &format!("edge {id}: its mock value is not JSON"),
    );
    let with = |ends: Ends| StateEdge { ends, ..record.clone() }.encode();
    // The key is made of the ends, so it must match them.
    let renamed = Ends { input: InputName::parse("other").unwrap(), ..record.ends.clone() };
    let words = format!("edge {id}: by what it connects, its id should be {}", renamed.id());
    Store::assert_one(&store.with(&key, Some(with(renamed))).await, &words);

    // Another edge in its place, with a key of its own.
    let replaced = async |ends: Ends| {
        let whole = store.ledger.get(&key).await.unwrap().unwrap().value;
        store.remove(key.clone()).await;
        let problems = store.with(&StateEdge::key(&org, ends.id()), Some(with(ends))).await;
        store.write(key.clone(), whole).await;
        problems
    };
    let nobody = StateId::parse("019b7c3a-0000-7000-8000-000000000001").unwrap();
    let words = format!("there is no state {nobody}, its producer");
    Store::assert_one(&replaced(Ends { producer: nobody, ..record.ends.clone() }).await, &words);
    let words = format!("there is no state {nobody}, its consumer");
    Store::assert_one(&replaced(Ends { consumer: nobody, ..record.ends.clone() }).await, &words);
    let cycle = replaced(Ends { producer: web, ..record.ends.clone() }).await;
    Store::assert_one(&cycle, "these states are in a cycle, or behind one: ");
    assert!(cycle[0].contains(&db.to_string()) && cycle[0].contains(&web.to_string()), "{cycle:?}");
    let twice = Ends { consumer: web, input: InputName::parse("db_o").unwrap(), ..record.ends.clone() };
    Store::assert_one(&replaced(twice).await, "its consumer also uses the input db_o for edge");

    let stranger = store.app.other_user("mallory", "evil").await;
    let theirs = store.app.post("/api/orgs/evil/tfstates", &json!({ "project": "theirs" })).token(&stranger);
    let theirs = theirs.send().await.expect(200);
    let theirs = StateId::parse(theirs["id"].as_str().unwrap()).unwrap();
    let words = format!("its producer {theirs} is a state of evil");
    Store::assert_one(&replaced(Ends { producer: theirs, ..record.ends.clone() }).await, &words);

    // Edges of a missing organization.
    let nowhere = OrgName::parse("nowhere").unwrap();
    let problems = store.with(&StateGraph::key(&nowhere), Some(StateGraph { edge_count: 0 }.encode())).await;
    Store::assert_one(&problems, "the edges of nowhere: there is no such organization");
    let key = StateEdge::key(&org, EdgeId::new(store.app.context.ids.uuid()));
    let key = ItemKey::new(key.partition.clone(), "TFEDGE#x");
    let problems = store.with(&key, Some(record.encode())).await;
    assert!(
        problems.iter().any(|it| it.contains("TFEDGE#x") && it.contains("is not the key")),
        "{problems:?}"
    );
    // The check repaired nothing.
    assert_eq!(store.problems().await, [""; 0]);
}

#[tokio::test]
async fn lists_of_states_agree_with_their_heads() {
    let store = Store::new().await;
    let [net, ..] = states(&store).await;
    let org = OrgName::parse(ORG).unwrap();
    let name = StateEntry::key(&StateAddress::parse(ORG, "net", None).unwrap());
    let entry: StateEntry = store.read(&name).await;
    for other in [
        StateEntry { serial: Some(7), ..entry.clone() },
        StateEntry { labels: Default::default(), ..entry.clone() },
        StateEntry { version: 9, ..entry.clone() },
    ] {
        Store::assert_one(
            &store.with(&name, Some(other.encode())).await,
            "the name of a state, acme/net/default, differs from its head",
        );
    }
    let elsewhere = StateEntry::key(&StateAddress::parse(ORG, "other", None).unwrap());
    Store::assert_one(
        &store.with(&elsewhere, Some(entry.encode())).await,
        "the name of a state, acme/other/default, leads to no state of that name",
    );
    let damaged = store.with(&name, Some(Bytes::from_static(b"\x01"))).await;
    assert!(damaged.iter().any(|it| it.contains("acme/net/default: a state name record")), "{damaged:?}");

    let is_deleted = |key: &ItemKey| DeletedState::name_in(key).is_ok();
    let deleted = store.ledger.items().into_iter().map(|item| item.key).find(is_deleted).unwrap();
    let record: DeletedState = store.read(&deleted).await;
    let other = DeletedState { entry: StateEntry { bytes: 7, ..record.entry.clone() }, ..record.clone() };
    Store::assert_one(
        &store.with(&deleted, Some(other.encode())).await,
        "the deleted state, acme/gone/default, differs from its head",
    );
    // An existing state is not deleted.
    let other = DeletedState { entry: entry.clone(), ..record };
    let there = DeletedState::key(&StateAddress::parse(ORG, "net", None).unwrap(), net);
    Store::assert_one(&store.with(&there, Some(other.encode())).await, "leads to no state of that name");

    let former = FormerStateName::key(&StateAddress::parse(ORG, "before", None).unwrap());
    let nowhere = FormerStateName { id: StateId::new(store.app.context.ids.uuid()) };
    Store::assert_one(
        &store.with(&former, Some(nowhere.encode())).await,
        "the former name of a state, acme/before/default, leads to no state",
    );
    let ours = FormerStateName { id: net };
    assert_eq!(store.with(&former, Some(ours.encode())).await, [""; 0]);

    let policy = StoredLabelPolicy::key(&org);
    Store::assert_one(
        &store.with(&policy, Some(Bytes::from_static(b"\x01"))).await,
        "acme: a label policy record",
    );
    let schemas = StateSchemas::key(net);
    Store::assert_one(&store.with(&schemas, None).await, "its schemas are missing");
    Store::assert_one(
        &store.with(&schemas, Some(Bytes::from_static(b"\x01"))).await,
        "output schemas record",
    );
    let head_key = StateHead::key(net);
    let head: StateHead = store.read(&head_key).await;
    let unaware = StateHead { has_schemas: false, ..head };
    Store::assert_one(
        &store.with(&head_key, Some(unaware.encode())).await,
        "its head says that it has no schemas",
    );
    let lock = StateLock::key(net);
    Store::assert_one(
        &store.with(&lock, Some(Bytes::from_static(b"\x01"))).await,
        "its lock: a state lock record",
    );
    let hold = store.app.post(&format!("/api/tfstates/{net}/lock"), &json!({ "reason": "we move" }));
    hold.send().await.expect(200);
    store.app.get(&format!("/api/orgs/{ORG}/tfstate-locks")).send().await.expect(200);
    Store::assert_one(
        &store.with(&StateLockEntry::key(&org, net), None).await,
        "its lock is not in the list of locks",
    );
    assert_eq!(store.problems().await, [""; 0]);
}

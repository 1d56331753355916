//! Retention: logs, events, versions, deleted stacks, and the blobs of all of them.
//!
//! Values over a few bytes go into blobs here, so that every deletion has blobs to delete.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::{MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds};
use statewright_shared::context::Context;
use statewright_shared::domain::ids::{StackId, UpdateId};
use statewright_shared::domain::names::StackAddress;
use statewright_shared::layout::{Content, Payload, Record, Slot, StackHead, StackVersion, delete, put};
use statewright_shared::ports::{Expect, Ids, Item};
use statewright_shared::services::error::StackError;
use statewright_shared::services::maintenance::sweep::{GRACE, Swept, sweep};
use statewright_shared::services::{Error, stacks};
use statewright_shared::settings::{Retention, Settings};
use statewright_tests::app::{ORG, START, TestApp};

use crate::world::{Run, Stack, deployment, entry};

const DAY: Duration = Duration::from_secs(86_400);
const LEASE: Duration = Duration::from_secs(300);
const TICK: Duration = Duration::from_nanos(1);

/// A server in memory whose store can be inspected.
struct Kept {
    app: TestApp,
    ledger: MemoryLedger,
    blobs: MemoryBlobs,
}

impl Kept {
    async fn new() -> Self {
        Self::with(Retention::DEFAULT).await
    }

    async fn with(retention: Retention) -> Self {
        let (ledger, blobs) = (MemoryLedger::with_inline_bytes_max(150), MemoryBlobs::new());
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
        let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
        let settings = Settings { retention, ..Settings::default() };
        let (ledger_port, blobs_port) = (Arc::new(ledger.clone()), Arc::new(blobs.clone()));
        let app = TestApp::memory_with_settings(ledger_port, blobs_port, keys, ids, settings).await;
        Self { app, ledger, blobs }
    }

    /// Sweeps until nothing is due, and returns the totals.
    async fn sweep(&self) -> Swept {
        sweep_all(&self.app.context).await
    }

    /// The sort keys of items whose partition begins with this.
    fn items(&self, partition: &str) -> Vec<String> {
        let items = self.ledger.items().into_iter().filter(|item| item.key.partition.starts_with(partition));
        items.map(|item| item.key.sort).collect()
    }

    fn blobs(&self, class: &str) -> Vec<String> {
        let keys = self.blobs.keys().into_iter().map(|key| key.to_string());
        keys.filter(|key| key.starts_with(class)).collect()
    }

    /// Everything that names this, except due items and the audit trail, which outlives what it is about.
    fn traces(&self, id: &str) -> Vec<String> {
        let is_apart = |item: &Item| ["DUE#", "AUDIT#"].iter().any(|of| item.key.partition.starts_with(*of));
        let items = self.ledger.items().into_iter().filter(|item| !is_apart(item));
        let named = items.filter(|item| {
            format!("{:?}", item.key).contains(id) || String::from_utf8_lossy(&item.value).contains(id)
        });
        let blobs = self.blobs.keys().into_iter().map(|key| key.to_string()).filter(|key| key.contains(id));
        named.map(|item| format!("{:?}", item.key)).chain(blobs).collect()
    }
}

async fn sweep_all(ctx: &Context) -> Swept {
    let mut all = Swept::default();
    loop {
        let swept = sweep(ctx).await.unwrap();
        let Swept { ended, running, over, erased, pruned, blobs, failed, overdue_seconds: _, more } = swept;
        all.ended += ended;
        all.running += running;
        all.over += over;
        all.erased += erased;
        all.pruned += pruned;
        all.blobs += blobs;
        all.failed += failed;
        if !more && swept == Swept::default() {
            return all;
        }
    }
}

async fn post_events(run: &Run<'_>, app: &TestApp, first: u64) {
    let events: Vec<Value> = (first..first + 2)
        .map(|sequence| {
            let text = format!("what happened, at length, at {sequence}");
            json!({ "sequence": sequence, "timestamp": 1, "stdoutEvent": { "message": text, "color": "raw" } })
        })
        .collect();
    let call = app.request(Method::POST, &format!("{}/events/batch", run.path));
    let body = json!({ "events": events }).to_string();
    call.update_token(&run.token).gzip(body.as_bytes()).send().await.expect(204);
}

/// An update that makes a resource, with events.
async fn updated<'a>(stack: &Stack<'a>, name: &str) -> Run<'a> {
    let run = stack.begin().await;
    run.append(&[stack.made(1, name)]).await.expect(204);
    post_events(&run, stack.app, 1).await;
    run.complete("succeeded").await.expect(204);
    run
}

async fn events_of(run: &Run<'_>, app: &TestApp) -> u16 {
    app.get(&format!("{}/events", run.path)).send().await.status.as_u16()
}

fn address(stack: &Stack<'_>) -> StackAddress {
    StackAddress::parse(ORG, &stack.project, "dev").unwrap()
}

async fn stack_id(stack: &Stack<'_>) -> StackId {
    StackId::parse(stack.get("").send().await.expect(200)["id"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn logs_and_events_are_deleted_after_their_retention() {
    let kept = Kept::new().await;
    let app = &kept.app;
    let stack = Stack::new(app).await;
    let run = updated(&stack, "a").await;
    let logs = kept.blobs("log/");
    assert!(!logs.is_empty() && kept.items(&format!("UPDATE#{}", run.id)).len() > 3);
    app.advance(LEASE + GRACE + TICK);
    assert_eq!(kept.sweep().await.over, 1);

    app.advance(90 * DAY - LEASE - TICK);
    assert_eq!(kept.sweep().await, Swept::default());
    app.advance(TICK + TICK);
    assert_eq!(kept.sweep().await.over, 1);
    let left = kept.items(&format!("UPDATE#{}", run.id));
    assert!(left.iter().all(|sort| !sort.starts_with("L#")) && left.contains(&"META".to_owned()), "{left:?}");
    assert_eq!(events_of(&run, app).await, 200);
    // The log is gone, and an older table would still find its blobs.
    assert_eq!(kept.blobs("log/"), logs);
    app.advance(36 * DAY + GRACE + TICK);
    assert_eq!(kept.sweep().await.blobs, logs.len());
    assert!(kept.blobs("log/").is_empty());

    app.advance((365 - 90 - 36) * DAY);
    assert_eq!(kept.sweep().await.erased, 1);
    assert_eq!(kept.items(&format!("EVENTS#{}", run.id)), [""; 0]);
    assert_eq!(events_of(&run, app).await, 404);
    app.advance(37 * DAY);
    kept.sweep().await;
    assert_eq!(kept.blobs("events/"), [""; 0]);
    // The version is unchanged.
    assert_eq!(stack.resources().await, ["a"]);
    let named: Vec<String> = kept.traces(&run.id).into_iter().filter(|trace| !trace.contains("V#")).collect();
    let stack_id = stack_id(&stack).await.to_string();
    assert!(named.iter().all(|trace| trace.contains(&stack_id)), "{named:?}");
}

#[tokio::test]
async fn a_sweep_judges_by_the_settings_of_its_day() {
    let kept = Kept::new().await;
    let stack = Stack::new(&kept.app).await;
    let run = updated(&stack, "a").await;
    kept.app.advance(LEASE + GRACE + TICK);
    kept.sweep().await;
    kept.app.advance(90 * DAY);
    let longer = Retention { logs: 100 * DAY, ..Retention::DEFAULT };
    let longer = kept.app.process_with(Settings { retention: longer, ..Settings::default() });
    let slots = || kept.items(&format!("UPDATE#{}", run.id)).iter().filter(|s| s.starts_with("L#")).count();
    assert_eq!(sweep_all(&longer).await, Swept { over: 1, ..Swept::default() });
    assert_eq!(slots(), 2);
    kept.app.advance(10 * DAY);
    assert_eq!(sweep_all(&longer).await, Swept { over: 1, ..Swept::default() });
    assert_eq!(slots(), 0);
}

#[tokio::test]
async fn events_may_go_before_the_log() {
    let kept = Kept::with(Retention { events: 7 * DAY, ..Retention::DEFAULT }).await;
    let stack = Stack::new(&kept.app).await;
    let run = updated(&stack, "a").await;
    kept.app.advance(7 * DAY + GRACE + TICK);
    kept.sweep().await;
    assert_eq!(kept.items(&format!("EVENTS#{}", run.id)), [""; 0]);
    assert!(kept.items(&format!("UPDATE#{}", run.id)).iter().any(|sort| sort.starts_with("L#")));
    kept.app.advance(83 * DAY);
    assert_eq!(kept.sweep().await.erased, 1);
    assert_eq!(kept.items(&format!("UPDATE#{}", run.id)), [""; 0]);
}

/// However short the retention: a late request must find that the update is over.
#[tokio::test]
async fn a_log_is_kept_until_late_requests_are_refused() {
    let moment = Duration::from_secs(60);
    let kept = Kept::with(Retention { events: moment, logs: moment, ..Retention::DEFAULT }).await;
    let stack = Stack::new(&kept.app).await;
    let run = updated(&stack, "a").await;
    let other = kept.app.another_process("other").await;
    let late = async |words: &str| {
        for app in [&kept.app, &other] {
            let refused = run.at(app).append(&[stack.made(5, "late")]).await.refused(403);
            assert!(refused.contains(words), "{refused}");
        }
    };
    for _ in 0..20 {
        kept.app.advance(Duration::from_secs(120));
        kept.sweep().await;
        late("ended as succeeded").await;
    }
    kept.app.advance(Duration::from_secs(7200));
    kept.sweep().await;
    kept.sweep().await;
    assert_eq!(kept.items(&format!("UPDATE#{}", run.id)), [""; 0]);
    late("no longer exists").await;
    assert_eq!(kept.items(&format!("UPDATE#{}", run.id)), [""; 0]);
}

#[tokio::test]
async fn a_log_with_skipped_entries_is_kept_as_long_as_its_version() {
    let retention = Retention { versions: NonZeroU64::new(1), ..Retention::DEFAULT };
    let kept = Kept::with(retention).await;
    let app = &kept.app;
    let stack = Stack::new(app).await;
    let run = stack.begin().await;
    // It has nothing to delete.
    let impossible = entry(2, 1, &json!({ "removeOld": 77, "state": stack.resource("b") }));
    run.append(&[stack.made(1, "a"), impossible]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    let version: StackVersion = {
        let item = app.context.ledger.get(&StackVersion::key(stack_id(&stack).await, 1)).await.unwrap();
        StackVersion::decode(&item.unwrap().value).unwrap()
    };
    assert_eq!(version.skipped_count, 1);
    let slots = || kept.items(&format!("UPDATE#{}", run.id)).iter().filter(|s| s.starts_with("L#")).count();
    app.advance(1000 * DAY);
    kept.sweep().await;
    assert_eq!(slots(), 2);
    stack.publish(&["other"]).await;
    app.advance(GRACE + TICK);
    assert_eq!(kept.sweep().await.pruned, 1);
    app.advance(GRACE + TICK);
    kept.sweep().await;
    assert_eq!(slots(), 0);
    assert_eq!(kept.items(&format!("UPDATE#{}", run.id)), [""; 0]);
}

#[tokio::test]
async fn excess_versions_are_deleted_with_a_note_and_pages_stay_right() {
    let retention = Retention { versions: NonZeroU64::new(3), ..Retention::DEFAULT };
    let kept = Kept::with(retention).await;
    let app = &kept.app;
    let stack = Stack::new(app).await;
    for number in 1..=8 {
        stack.publish(&[&format!("r{number}")]).await;
    }
    assert_eq!(
        kept.blobs("snap/")
            .iter()
            .filter(|key| !key.ends_with("-outputs") && !key.contains("-index-"))
            .count(),
        8
    );
    app.advance(GRACE + TICK);
    assert_eq!(kept.sweep().await.pruned, 5);
    let words = stack.get("/export/5").send().await.refused(404);
    assert!(
        words.contains("version 5 of stack") && words.contains("the oldest that is kept is 6"),
        "{words}"
    );
    let words = stack.get("/updates/1").send().await.refused(404);
    assert!(words.contains("no longer kept"), "{words}");
    assert!(stack.get("/export/9").send().await.refused(404).contains("has no version 9"));
    for number in 6..=8 {
        let export = stack.get(&format!("/export/{number}")).send().await.expect(200);
        assert!(export.to_string().contains(&format!("::r{number}")), "{export}");
    }
    let page = async |page: u64| -> Vec<u64> {
        let history = stack.get(&format!("/updates?pageSize=2&page={page}")).send().await.expect(200);
        history["updates"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["version"].as_u64().unwrap())
            .collect()
    };
    assert_eq!((page(1).await, page(2).await, page(3).await), (vec![8, 7], vec![6], vec![]));
    assert_eq!(stack.history().await.len(), 3);
    // Their blobs outlive them.
    app.advance(36 * DAY);
    assert_eq!(kept.sweep().await.blobs, 0);
    app.advance(GRACE + TICK);
    // A deployment and its index each.
    assert_eq!(kept.sweep().await.blobs, 10);
    let snapshots = kept
        .blobs("snap/")
        .iter()
        .filter(|key| !key.ends_with("-outputs") && !key.contains("-index-"))
        .count();
    assert_eq!(snapshots, 3);
    stack.publish(&["last"]).await;
    assert_eq!((stack.version().await, stack.resources().await), (9, vec!["last".to_owned()]));
}

#[tokio::test]
async fn a_blob_stays_as_long_as_any_version_names_it() {
    let retention = Retention { versions: NonZeroU64::new(2), ..Retention::DEFAULT };
    let kept = Kept::with(retention).await;
    let (app, ctx) = (&kept.app, &kept.app.context);
    let stack = Stack::new(app).await;
    stack.publish(&["first"]).await;
    let id = stack_id(&stack).await;
    // A version without a change names the blob of the one before.
    stack.begin().await.complete("succeeded").await.expect(204);
    stack.publish(&["second"]).await;
    // A version that restores an old one names the old blob.
    let read = async |number| {
        let item = ctx.ledger.get(&StackVersion::key(id, number)).await.unwrap().unwrap();
        StackVersion::decode(&item.value).unwrap()
    };
    let old = read(1).await;
    assert_eq!(old.snapshot, read(2).await.snapshot);
    let head = ctx.ledger.get(&StackHead::key(id)).await.unwrap().unwrap();
    let restored = StackVersion { version: 4, update: UpdateId::new(ctx.ids.uuid()), ..old.clone() };
    let moved = StackHead {
        version: 4,
        snapshot: Some(old.snapshot.clone()),
        ..StackHead::decode(&head.value).unwrap()
    };
    let writes = vec![
        put(StackVersion::key(id, 4), Expect::Absent, ctx.ids.revision(), &restored),
        put(StackHead::key(id), Expect::Revision(head.revision), ctx.ids.revision(), &moved),
    ];
    ctx.ledger.commit(writes).await.unwrap();
    stack.begin().await.complete("succeeded").await.expect(204);
    app.advance(GRACE + LEASE + TICK);
    assert_eq!(kept.sweep().await.pruned, 3);
    app.advance(40 * DAY);
    kept.sweep().await;
    assert_eq!(stack.resources().await, ["first"]);

    // The last version that names it is deleted, and the blob after its time.
    for name in ["third", "fourth"] {
        stack.publish(&[name]).await;
    }
    app.advance(GRACE + TICK);
    assert_eq!(kept.sweep().await.pruned, 2);
    app.advance(36 * DAY);
    kept.sweep().await;
    assert!(kept.blobs("snap/").contains(&old.snapshot.blob));
    app.advance(GRACE + TICK);
    kept.sweep().await;
    assert!(!kept.blobs("snap/").contains(&old.snapshot.blob));
    assert_eq!(stack.resources().await, ["fourth"]);
}

#[tokio::test]
async fn the_base_of_a_running_update_is_never_pruned() {
    let retention = Retention { versions: NonZeroU64::new(1), ..Retention::DEFAULT };
    let kept = Kept::with(retention).await;
    let stack = Stack::new(&kept.app).await;
    stack.publish(&["a"]).await;
    stack.publish(&["a", "b"]).await;
    let run = stack.begin().await;
    kept.app.advance(GRACE + TICK);
    assert_eq!(kept.sweep().await.pruned, 1);
    run.append(&[stack.made(1, "c")]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.version().await, 3);
    assert!(stack.resources().await.contains(&"c".to_owned()));
}

#[tokio::test]
async fn a_stack_of_many_versions_is_pruned_in_bounded_pages() {
    let kept = Kept::with(Retention { versions: NonZeroU64::new(4), ..Retention::DEFAULT }).await;
    let (app, ctx) = (&kept.app, &kept.app.context);
    let stack = Stack::new(app).await;
    stack.publish(&["a"]).await;
    let id = stack_id(&stack).await;
    let item = ctx.ledger.get(&StackVersion::key(id, 1)).await.unwrap().unwrap();
    let first = StackVersion::decode(&item.value).unwrap();
    for version in 2..=2000 {
        let next = StackVersion { version, update: UpdateId::new(ctx.ids.uuid()), ..first.clone() };
        let key = StackVersion::key(id, version);
        ctx.ledger.commit(vec![put(key, Expect::Absent, ctx.ids.revision(), &next)]).await.unwrap();
    }
    let head = ctx.ledger.get(&StackHead::key(id)).await.unwrap().unwrap();
    let moved = StackHead { version: 2000, ..StackHead::decode(&head.value).unwrap() };
    let write = put(StackHead::key(id), Expect::Any, ctx.ids.revision(), &moved);
    ctx.ledger.commit(vec![write]).await.unwrap();
    stack.publish(&["b"]).await;
    app.advance(GRACE + TICK);
    let first = sweep(ctx).await.unwrap();
    assert!(first.more && first.pruned >= 1000 && first.pruned < 1997, "{first:?}");
    let rest = kept.sweep().await;
    assert_eq!(first.pruned + rest.pruned, 1997);
    assert_eq!(stack.history().await.len(), 4);
}

#[tokio::test]
async fn a_log_of_thousands_of_slots_is_deleted_in_bounded_pages() {
    let kept = Kept::new().await;
    let (app, ctx) = (&kept.app, &kept.app.context);
    let stack = Stack::new(app).await;
    let run = updated(&stack, "a").await;
    let id = UpdateId::parse(&run.id).unwrap();
    for number in 3..=5000 {
        let slot = Slot { at: START, content: Content::Entries(Payload::Inline), made: None };
        let write = put(Slot::key(id, number), Expect::Absent, ctx.ids.revision(), &slot);
        ctx.ledger.commit(vec![write]).await.unwrap();
    }
    app.advance(LEASE + GRACE + TICK);
    kept.sweep().await;
    app.advance(90 * DAY);
    let slots = || kept.items(&format!("UPDATE#{id}")).iter().filter(|sort| sort.starts_with("L#")).count();
    assert!(sweep(ctx).await.unwrap().more);
    let left = slots();
    assert!(left > 1000 && left < 4000, "{left} are left");
    kept.sweep().await;
    assert_eq!(slots(), 0);
}

/// A stack with everything that a stack can have.
async fn full<'a>(kept: &'a Kept) -> (Stack<'a>, String) {
    let stack = Stack::new(&kept.app).await;
    kept.app.patch(&format!("{}/tags", stack.path), &json!({ "team": "storage" })).send().await.expect(204);
    let sealed = stack.post("/encrypt", &json!({ "plaintext": STANDARD.encode("hunter2") })).send().await;
    let sealed = sealed.expect(200)["ciphertext"].as_str().unwrap().to_owned();
    updated(&stack, "a").await;
    let preview = stack.preview().await;
    post_events(&preview, &kept.app, 1).await;
    preview.complete("succeeded").await.expect(204);
    stack.created().await;
    let mut outputs = stack.resource("root");
    outputs["type"] = json!("pulumi:pulumi:Stack");
    outputs["urn"] = json!(format!("urn:pulumi:dev::{}::pulumi:pulumi:Stack::root", stack.project));
    outputs["outputs"] = json!({ "long": "x".repeat(200) });
    stack.import(&deployment(&[outputs, stack.resource("b")])).await;
    // Renamed and back, so that it has a former name.
    let away = json!({ "newName": "away" });
    stack.post("/rename", &away).send().await.expect(200);
    let path = stack.path.replace("/dev", "/away");
    kept.app.post(&format!("{path}/rename"), &json!({ "newName": "dev" })).send().await.expect(200);
    (stack, sealed)
}

async fn remove(stack: &Stack<'_>) {
    stack.app.request(Method::DELETE, &format!("{}?force=true", stack.path)).send().await.expect(204);
}

async fn opens(stack: &Stack<'_>, sealed: &str) -> bool {
    let opened = stack.post("/decrypt", &json!({ "ciphertext": sealed })).send().await;
    opened.status == 200
}

#[tokio::test]
async fn a_deleted_stack_is_undeleted_unchanged() {
    let kept = Kept::new().await;
    let ctx = &kept.app.context;
    let (stack, sealed) = full(&kept).await;
    let (export, history, tags) =
        (stack.export().await, stack.history().await, stack.get("").send().await.expect(200)["tags"].clone());
    let id = stack_id(&stack).await;
    remove(&stack).await;
    stack.get("").send().await.refused(404);
    assert!(!opens(&stack, &sealed).await);
    let listed = stacks::deleted::list(ctx, &address(&stack).org).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].id, &listed[0].address, listed[0].by.as_str()), (id, &address(&stack), "alice"));

    kept.app.advance(30 * DAY);
    kept.sweep().await;
    assert_eq!(stacks::deleted::undelete(ctx, &address(&stack), None).await.unwrap(), id);
    kept.sweep().await;
    assert_eq!((stack.export().await, stack.history().await), (export, history));
    assert_eq!(stack.get("").send().await.expect(200)["tags"], tags);
    assert!(opens(&stack, &sealed).await);
    updated(&stack, "after").await;
    let again = stacks::deleted::undelete(ctx, &address(&stack), None).await;
    assert!(matches!(&again, Err(Error::Stack(StackError::NoneDeleted(_)))), "{again:?}");
    // The due item of its deletion finds it undeleted.
    kept.app.advance(60 * DAY);
    assert_eq!(kept.sweep().await.failed, 0);
    assert!(stack.resources().await.contains(&"after".to_owned()) && opens(&stack, &sealed).await);
}

#[tokio::test]
async fn a_deleted_stack_is_undeleted_only_if_its_name_is_free() {
    let kept = Kept::new().await;
    let (ctx, app) = (&kept.app.context, &kept.app);
    let stack = Stack::new(app).await;
    stack.publish(&["first"]).await;
    let first = stack_id(&stack).await;
    remove(&stack).await;
    let stack = Stack::in_project(app, &stack.project).await;
    let taken = stacks::deleted::undelete(ctx, &address(&stack), None).await;
    assert!(matches!(taken, Err(Error::Stack(StackError::Exists(_)))), "{taken:?}");
    assert_eq!(stack.resources().await, [""; 0], "the new stack is untouched");
    stack.publish(&["second"]).await;
    let second = stack_id(&stack).await;
    remove(&stack).await;
    let which = stacks::deleted::undelete(ctx, &address(&stack), None).await.unwrap_err().to_string();
    assert!(which.contains(&first.to_string()) && which.contains(&second.to_string()), "{which}");
    assert_eq!(stacks::deleted::undelete(ctx, &address(&stack), Some(first)).await.unwrap(), first);
    assert_eq!(stack.resources().await, ["first"]);
}

#[tokio::test]
async fn a_deleted_stack_is_erased_wholly_after_its_retention() {
    let kept = Kept::new().await;
    let ctx = &kept.app.context;
    let (other, other_sealed) = full(&kept).await;
    let (stack, _) = full(&kept).await;
    let id = stack_id(&stack).await;
    let updates: Vec<String> = kept
        .items(&format!("STACK#{id}"))
        .iter()
        .filter_map(|s| Some(s.strip_prefix("U#")?.to_owned()))
        .collect();
    assert_eq!(updates.len(), 6);
    kept.app.advance(DAY);
    remove(&stack).await;
    kept.app.advance(30 * DAY + GRACE);
    kept.sweep().await;
    assert!(!kept.items(&format!("KEY#{id}")).is_empty());
    kept.app.advance(TICK);
    assert_eq!(kept.sweep().await.erased, 1);
    let late = stacks::deleted::undelete(ctx, &address(&stack), None).await;
    assert!(matches!(late, Err(Error::Stack(StackError::NoneDeleted(_)))), "{late:?}");
    let items_left = |id: &str| {
        let traces = kept.traces(id).into_iter();
        traces.filter(|trace| trace.contains("ItemKey")).collect::<Vec<_>>()
    };
    assert_eq!(items_left(&id.to_string()), [""; 0]);
    for update in &updates {
        assert_eq!(items_left(update), [""; 0]);
    }
    // Its blobs outlive its deletion by the usual time.
    assert!(!kept.blobs(&format!("snap/{id}/")).is_empty());
    kept.app.advance(6 * DAY + GRACE);
    kept.sweep().await;
    for owner in updates.iter().chain([&id.to_string()]) {
        assert_eq!(kept.traces(owner), [""; 0]);
    }
    // The due items of its updates find nothing and are removed.
    kept.app.advance(365 * DAY);
    assert_eq!(kept.sweep().await.failed, 0);
    assert!(opens(&other, &other_sealed).await, "another stack of the organization is unchanged");
    assert!(other.resources().await.contains(&"b".to_owned()));
}

/// A folder from before stacks had a list of updates, and updates had due items.
#[tokio::test]
async fn erasing_a_stack_with_unlisted_updates_leaves_only_previews() {
    let kept = Kept::new().await;
    let ctx = &kept.app.context;
    let stack = Stack::new(&kept.app).await;
    let runs = [updated(&stack, "a").await.id, updated(&stack, "b").await.id];
    let id = stack_id(&stack).await;
    let old = |item: &&Item| item.key.sort.starts_with("U#") || item.key.partition.starts_with("DUE#");
    for item in kept.ledger.items().iter().filter(old) {
        ctx.ledger.commit(vec![delete(item.key.clone(), Expect::Any)]).await.unwrap();
    }
    remove(&stack).await;
    kept.app.advance(31 * DAY);
    assert_eq!(kept.sweep().await.erased, 1);
    kept.app.advance(40 * DAY);
    kept.sweep().await;
    for owner in runs.iter().chain([&id.to_string()]) {
        assert_eq!(kept.traces(owner), [""; 0]);
    }
}

#[tokio::test]
async fn a_name_that_another_stack_left_later_stays_its_alias() {
    let kept = Kept::new().await;
    let (stack, _) = full(&kept).await;
    remove(&stack).await;
    // Another stack has the former name, which stays.
    let path = format!("/api/stacks/{ORG}/{}", stack.project);
    kept.app.post(&path, &json!({ "stackName": "away" })).send().await.expect(200);
    let away = Stack { path: format!("{path}/away"), app: &kept.app, project: stack.project.clone() };
    let sealed =
        away.post("/encrypt", &json!({ "plaintext": STANDARD.encode("new") })).send().await.expect(200);
    away.post("/rename", &json!({ "newName": "moved" })).send().await.expect(200);
    kept.app.advance(31 * DAY);
    kept.sweep().await;
    assert!(opens(&away, sealed["ciphertext"].as_str().unwrap()).await);
}

#[tokio::test]
async fn several_processes_erase_and_prune_once_and_agree() {
    let retention = Retention { versions: NonZeroU64::new(2), ..Retention::DEFAULT };
    let kept = Kept::with(retention).await;
    let other = kept.app.process_with(kept.app.context.settings);
    let (gone, _) = full(&kept).await;
    let stack = Stack::new(&kept.app).await;
    for number in 1..=40 {
        stack.publish(&[&format!("r{number}")]).await;
    }
    let id = stack_id(&gone).await.to_string();
    remove(&gone).await;
    kept.app.advance(37 * DAY);
    for _ in 0..4 {
        let (one, two) = futures::join!(sweep_all(&kept.app.context), sweep_all(&other));
        assert_eq!((one.failed, two.failed), (0, 0));
        kept.app.advance(37 * DAY);
    }
    kept.app.advance(400 * DAY);
    kept.sweep().await;
    assert_eq!(kept.traces(&id), [""; 0]);
    assert_eq!((stack.history().await.len(), stack.resources().await), (2, vec!["r40".to_owned()]));
    let snapshots = kept
        .blobs("snap/")
        .iter()
        .filter(|key| !key.ends_with("-outputs") && !key.contains("-index-"))
        .count();
    assert_eq!(snapshots, 2);
}

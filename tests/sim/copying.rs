//! Goal: a store is copied to another one wherever the copy dies, no server can open an unfinished copy, and
//! the target works.
//!
//! Method: copying fails or dies at each of its calls of the target in turn, and is started again. Then both
//! stores have the same contents except for the wrapping of keys, and the scene is played to its end in the
//! target.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use statewright_shared::adapters::{Fault, Faults, MemoryBlobs, MemoryLedger};
use statewright_shared::context::Context;
use statewright_shared::layout::{Due, Signer, named_blobs, put, put_bytes};
use statewright_shared::ports::{
    Blob, BlobKey, Blobs, Expect, Inventory, Item, ItemKey, Ledger, PortError, Revision, Timestamp,
};
use statewright_shared::services::Error;
use statewright_shared::services::maintenance::check;
use statewright_shared::services::maintenance::copy::{Copied, Source, Target, copy, refuse_unfinished};

use super::scene::{Scene, Step};
use super::world::{Dice, World};

/// A stack with two versions, a secret, events and a running update.
pub(crate) async fn scene() -> Scene {
    let scene = Scene::new(World::memory());
    let ctx = scene.world.process("first");
    for step in [
        Step::CreateStack,
        Step::Encrypt,
        Step::Begin,
        Step::Append(1),
        Step::Complete,
        Step::Begin,
        Step::Append(2),
    ] {
        scene.act(&ctx, step).await.unwrap();
    }
    scene
}

pub(crate) fn inventory(world: &World) -> (MemoryLedger, MemoryBlobs) {
    (world.ledger_in_memory(), world.blobs_in_memory().clone())
}

/// Copies through this process of the target.
async fn copy_to(scene: &Scene, target: &World, process: &Context) -> Result<Copied, Error> {
    let ctx = scene.world.process("copy");
    let (from, to) = (inventory(&scene.world), inventory(target));
    let source = Source { ctx: &ctx, inventory: &from, is_shared: false };
    copy(source, Target { ctx: process, inventory: &to, wrap: target.keys_in_memory() }, false, &|_| {}).await
}

/// What both stores must agree on: all items except for the wrapping of keys, and all blobs that items name.
async fn content(world: &World) -> (BTreeMap<ItemKey, (Revision, Vec<u8>)>, BTreeMap<BlobKey, Vec<u8>>) {
    let is_key = |item: &Item| item.key == Signer::key() || item.key.partition.starts_with("KEY#");
    let mut blobs = BTreeMap::new();
    let items = world.items();
    for named in items.iter().flat_map(|item| named_blobs(item).unwrap()) {
        if let Some(blob) = world.blobs_in_memory().get(&named.key).await.unwrap() {
            blobs.insert(named.key, blob.into_bytes().await.unwrap().to_vec());
        }
    }
    let value = |item: &Item| if is_key(item) { Vec::new() } else { item.value.to_vec() };
    let items = items.into_iter().map(|item| (item.key.clone(), (item.revision, value(&item)))).collect();
    (items, blobs)
}

/// Fails unless the target is whole and equals the source.
pub(crate) async fn assert_alike(scene: &Scene, target: &World) {
    assert_eq!(content(&scene.world).await, content(target).await);
    let (ctx, inventory) = (target.process("check"), inventory(target));
    let mut problems = check::store(&ctx, &inventory).await.unwrap();
    for id in check::stacks(&ctx, &inventory).await.unwrap() {
        problems.extend(check::stack(&ctx, id).await.unwrap().problems);
    }
    assert_eq!(problems, Vec::<String>::new());
    refuse_unfinished(&ctx).await.unwrap();
}

#[tokio::test]
async fn a_copy_continues_wherever_it_died_and_its_target_works() {
    let probe = scene().await;
    let faults = Faults::none();
    let target = probe.world.elsewhere();
    let done = copy_to(&probe, &target, &target.faulty("copy", &faults)).await.unwrap();
    assert!(done.finished && !done.resumed && done.is_whole(), "{done:?}");
    assert_eq!((done.items_written, done.keys, done.blobs_copied), (done.items, 2, done.blobs));
    assert_alike(&probe, &target).await;
    let calls = faults.calls();
    assert!(calls > 15, "{calls}");
    for nth in 1..=calls {
        for fault in [Fault::Before, Fault::After, Fault::Lost, Fault::DeathBefore, Fault::DeathAfter] {
            let mut scene = scene().await;
            let target = scene.world.elsewhere();
            let faults = Faults::none();
            let process = target.faulty("copy", &faults);
            // Longer than any retry, or for ever.
            faults.fail_from(nth, 10_000, fault);
            let died = tokio::select! {
                ended = copy_to(&scene, &target, &process) => ended.is_err(),
                () = faults.death() => true,
            };
            drop(process);
            let again = target.process("again");
            // If only the last answer was lost, the copy is finished.
            let is_marked = refuse_unfinished(&again).await.is_err();
            if is_marked {
                assert!(died, "{fault:?} at {nth}");
                let done = copy_to(&scene, &target, &again).await.unwrap();
                assert!(done.finished && done.resumed, "{fault:?} at {nth}: {done:?}");
            } else if target.items().is_empty() {
                copy_to(&scene, &target, &again).await.unwrap();
            }
            assert_alike(&scene, &target).await;
            scene.world = target;
            scene.finish().await;
        }
    }
}

/// Blobs whose puts take a while, and that count the concurrent ones.
#[derive(Debug)]
struct Crowded {
    inner: MemoryBlobs,
    under_way: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
impl Blobs for Crowded {
    async fn put(&self, key: &BlobKey, body: Bytes) -> Result<(), PortError> {
        let under_way = self.under_way.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(under_way, Ordering::SeqCst);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        self.under_way.fetch_sub(1, Ordering::SeqCst);
        self.inner.put(key, body).await
    }

    async fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError> {
        self.inner.get(key).await
    }

    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError> {
        self.inner.get_range(key, range).await
    }

    async fn delete(&self, key: &BlobKey) -> Result<(), PortError> {
        self.inner.delete(key).await
    }
}

/// A disk syncs concurrent writes together.
#[tokio::test]
async fn many_blobs_are_copied_side_by_side() {
    let scene = scene().await;
    for number in 0..60 {
        let key = format!("snap/many/{number:03}");
        let blob = BlobKey::parse(&key).unwrap();
        scene.world.blobs_in_memory().put(&blob, Bytes::from(vec![7; 1_000])).await.unwrap();
        let due = Due::Blob { key, stack: None };
        let write = put(due.key(Timestamp(0)), Expect::Any, Revision(number), &due);
        scene.world.ledger_in_memory().commit(vec![write]).await.unwrap();
    }
    let target = scene.world.elsewhere();
    let blobs = Arc::new(Crowded {
        inner: target.blobs_in_memory().clone(),
        under_way: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
    });
    let mut process = target.process("copy");
    process.blobs = blobs.clone();
    let done = copy_to(&scene, &target, &process).await.unwrap();
    assert!(done.finished && done.blobs_copied >= 60, "{done:?}");
    assert!(blobs.most.load(Ordering::SeqCst) >= 60, "{}", blobs.most.load(Ordering::SeqCst));
    assert_alike(&scene, &target).await;
}

#[tokio::test]
async fn a_repeated_copy_follows_a_source_that_changed_meanwhile() {
    let scene = scene().await;
    let target = scene.world.elsewhere();
    let faults = Faults::none();
    // Among the blobs.
    faults.fail_from(8, 10_000, Fault::Before);
    copy_to(&scene, &target, &target.faulty("copy", &faults)).await.unwrap_err();
    let there = target.items().len();
    assert!(there > 5, "{there}");

    let ctx = scene.world.process("between");
    for step in [Step::Complete, Step::Begin, Step::Append(3)] {
        scene.act(&ctx, step).await.unwrap();
    }
    // What only the target has is deleted.
    let extra = ItemKey::new("UPDATE#gone", "META");
    let write = put_bytes(extra.clone(), Expect::Absent, Revision(7), "gone".into());
    target.ledger_in_memory().commit(vec![write]).await.unwrap();

    let done = copy_to(&scene, &target, &target.process("again")).await.unwrap();
    assert_eq!((done.finished, done.resumed, done.removed), (true, true, 1), "{done:?}");
    assert_alike(&scene, &target).await;
}

#[tokio::test]
async fn altered_items_of_a_target_are_found_by_hash() {
    let scene = scene().await;
    let target = scene.world.elsewhere();
    let faults = Faults::none();
    // Everything is copied, but the mark is not removed yet.
    let probe = scene.world.elsewhere();
    copy_to(&scene, &probe, &probe.faulty("copy", &faults)).await.unwrap();
    let last = faults.calls();
    let faults = Faults::none();
    faults.fail_from(last, 10_000, Fault::Before);
    copy_to(&scene, &target, &target.faulty("copy", &faults)).await.unwrap_err();

    let blob = inventory(&target).blobs(None).await.unwrap().found.into_iter().next().unwrap();
    target.blobs_in_memory().put(&blob, "rotten".into()).await.unwrap();
    let key = target.items().into_iter().find(|item| item.key.partition.starts_with("KEY#")).unwrap();
    let mut value = key.value.to_vec();
    *value.last_mut().unwrap() ^= 1;
    let write = put_bytes(key.key, Expect::Any, key.revision, value.into());
    target.ledger_in_memory().commit(vec![write]).await.unwrap();

    let done = copy_to(&scene, &target, &target.process("again")).await.unwrap();
    assert_eq!((done.finished, done.blobs_copied, done.items_written), (true, 1, 1), "{done:?}");
    assert_alike(&scene, &target).await;
}

#[tokio::test]
async fn a_target_with_other_data_is_refused_and_unchanged() {
    let source = scene().await;
    let refused = async |target: &World, words: &str| {
        let before = (target.items(), target.blobs_in_memory().keys());
        let refusal = copy_to(&source, target, &target.process("copy")).await.unwrap_err();
        assert!(refusal.to_string().contains(words), "{refusal}");
        assert_eq!((target.items(), target.blobs_in_memory().keys()), before);
    };
    let other = scene().await;
    refused(&other.world, "the target is not empty").await;
    // A finished copy cannot be a target either.
    let target = source.world.elsewhere();
    copy_to(&source, &target, &target.process("copy")).await.unwrap();
    refused(&target, "the target is not empty").await;

    let target = source.world.elsewhere();
    target.blobs_in_memory().put(&BlobKey::parse("snap/a/b").unwrap(), "somebody's".into()).await.unwrap();
    refused(&target, "the target is not empty").await;

    let another = Scene::new(source.world.elsewhere());
    another.act(&another.world.process("first"), Step::CreateStack).await.unwrap();
    another.act(&another.world.process("first"), Step::Begin).await.unwrap();
    let target = another.world.elsewhere();
    let faults = Faults::none();
    faults.fail_from(4, 10_000, Fault::Before);
    copy_to(&another, &target, &target.faulty("copy", &faults)).await.unwrap_err();
    refused(&target, "an unfinished copy of another store").await;
}

#[tokio::test]
async fn a_source_with_missing_blobs_is_copied_only_with_an_option() {
    let scene = scene().await;
    let (target, ctx) = (scene.world.elsewhere(), scene.world.process("copy"));
    let blobs = inventory(&scene.world).blobs(None).await.unwrap().found;
    let [gone, rotten] = [&blobs[0], &blobs[1]];
    scene.world.blobs_in_memory().delete(gone).await.unwrap();
    scene.world.blobs_in_memory().put(rotten, "rotten".into()).await.unwrap();
    let process = target.process("copy");
    for despite_damage in [false, true] {
        let (from, to) = (inventory(&scene.world), inventory(&target));
        let source = Source { ctx: &ctx, inventory: &from, is_shared: false };
        let to = Target { ctx: &process, inventory: &to, wrap: target.keys_in_memory() };
        let done = copy(source, to, despite_damage, &|_| {}).await.unwrap();
        assert_eq!(done.finished, despite_damage);
        let found: Vec<&BlobKey> = done.missing.iter().chain(&done.damaged).collect();
        assert_eq!(found, [gone, rotten]);
        assert_eq!(refuse_unfinished(&process).await.is_ok(), despite_damage);
    }
}

#[tokio::test]
async fn a_source_that_others_may_use_is_not_copied_while_updates_run() {
    let scene = scene().await;
    let (target, ctx) = (scene.world.elsewhere(), scene.world.process("copy"));
    let (from, to) = (inventory(&scene.world), inventory(&target));
    let process = target.process("copy");
    let attempt = async || {
        let source = Source { ctx: &ctx, inventory: &from, is_shared: true };
        let to = Target { ctx: &process, inventory: &to, wrap: target.keys_in_memory() };
        copy(source, to, false, &|_| {}).await
    };
    let refusal = attempt().await.unwrap_err().to_string();
    assert!(refusal.contains("updates run on the source (1)"), "{refusal}");
    assert!(target.items().is_empty());
    scene.act(&scene.world.process("first"), Step::Complete).await.unwrap();
    assert!(attempt().await.unwrap().finished);
}

/// Two concurrent attempts, of which one was believed dead: the first to finish is served at once, and the
/// other must not touch what the server writes.
#[tokio::test]
async fn an_overtaken_copy_writes_nothing_more() {
    let source = scene().await;
    let mut lost = 0;
    for seed in 0..300 {
        let target = source.world.elsewhere();
        let dice = Arc::new(Dice::new(seed));
        let (new, head) = (ItemKey::new("TOKEN#new", "META"), Signer::key());
        let attempt = async |name: &str| {
            let process = target.jittery(name, None, &dice);
            let ended = copy_to(&source, &target, &process).await;
            if let Ok(done) = &ended {
                assert!(done.finished, "{done:?}");
                let writes = [&new, &head]
                    .map(|key| put_bytes(key.clone(), Expect::Any, Revision(77), "served".into()));
                target.ledger_in_memory().commit(writes.to_vec()).await.unwrap();
            }
            ended
        };
        let (one, other) = tokio::join!(attempt("one"), attempt("other"));
        let served = target.ledger_in_memory();
        for key in [&new, &head] {
            let item = served.get(key).await.unwrap();
            assert_eq!(item.map(|item| item.revision), Some(Revision(77)), "{seed}: {one:?} {other:?}");
        }
        let refusals: Vec<String> =
            [one, other].into_iter().filter_map(Result::err).map(|error| error.to_string()).collect();
        // None, if the late one had compared everything and only had to remove the mark.
        assert!(refusals.len() <= 1, "{seed}: {refusals:?}");
        lost +=
            refusals.iter().filter(|words| words.contains("another copy into this target was begun")).count();
    }
    assert!(lost > 100, "{lost}");
}

//! Backups of a store on AWS: whatever interrupts one, the previous backup is intact, and the next one is whole.

use std::sync::Arc;
use std::time::Duration;

use statewright_shared::adapters::{Fault, Faults, Kept, MemoryLedger, Unavailable};
use statewright_shared::context::Context;
use statewright_shared::layout::Signer;
use statewright_shared::ports::{
    BlobKey, Blobs as _, Expect, Inventory as _, Ledger as _, Write, WriteAction,
};
use statewright_shared::services::Error;
use statewright_shared::services::maintenance::backup;
use statewright_shared::services::maintenance::backup::{
    BackedUp, BackupRequest, KEPT, Shelf, back_up, items_of_part, torn,
};
use statewright_shared::services::maintenance::copy::{Source, Target, copy};

use super::copying::{assert_alike, inventory, scene};
use super::scene::{Scene, Step};
use super::world::World;

/// A moment of the scene, which does not move.
fn moment(scene: &Scene) -> MemoryLedger {
    let ledger = MemoryLedger::new();
    let puts = scene.world.items().into_iter().map(|item| Write {
        key: item.key,
        expect: Expect::Absent,
        action: WriteAction::Put { revision: item.revision, value: item.value, expires: item.expires },
    });
    for put in puts {
        futures::executor::block_on(ledger.commit(vec![put])).unwrap();
    }
    ledger
}

/// The scene's store on another ledger.
fn over(scene: &Scene, ledger: &MemoryLedger) -> Context {
    let mut ctx = scene.world.process("moment");
    ctx.ledger = Arc::new(ledger.clone());
    ctx
}

async fn back_up_to(
    scene: &Scene,
    shelf: &World,
    process: &Context,
    verify: bool,
) -> Result<BackedUp, Error> {
    let (ledger, live) = (moment(scene), scene.world.process("live"));
    let (ctx, items, there) =
        (over(scene, &ledger), (ledger.clone(), scene.world.blobs_in_memory().clone()), inventory(shelf));
    let moment = Source { ctx: &ctx, inventory: &items, is_shared: false };
    let at = scene.world.now();
    let wanted = BackupRequest { moment, live: &live, at, master_key: "the key", wrap: None, verify };
    back_up(wanted, Shelf { ctx: process, inventory: &there }, &|_| {}).await
}

/// The backup on the shelf, restored as a store of its own.
async fn restore_backup(scene: &Scene, shelf: &World) -> World {
    let target = scene.world.elsewhere();
    let process = shelf.process("restore");
    let made = backup::last(&process).await.unwrap().expect("there is a finished backup");
    let blobs = Arc::new(shelf.blobs_in_memory().clone());
    let store = Kept::new(blobs, KEPT, made.parts(), made.looked_up().unwrap(), items_of_part);
    let mut ctx = scene.world.process("restore");
    (ctx.ledger, ctx.blobs) = (Arc::new(store.clone()), Arc::new(store.clone()));
    let (there, process) = (inventory(&target), target.process("restore"));
    let source = Source { ctx: &ctx, inventory: &store, is_shared: false };
    let to = Target { ctx: &process, inventory: &there, wrap: target.keys_in_memory() };
    let done = copy(source, to, false, &|_| {}).await.unwrap();
    assert!(done.finished && done.is_whole(), "{done:?}");
    target
}

#[tokio::test]
async fn a_backup_is_whole_wherever_the_one_before_broke_off() {
    let probe = scene().await;
    let faults = Faults::none();
    let shelf = probe.world.elsewhere();
    let done = back_up_to(&probe, &shelf, &shelf.faulty("backup", &faults), false).await.unwrap();
    assert_eq!(done.blobs_copied, done.blobs, "{done:?}");
    assert_alike(&probe, &restore_backup(&probe, &shelf).await).await;
    let calls = faults.calls();
    assert!(calls > 5, "{calls}");
    for nth in 1..=calls {
        for fault in [Fault::Before, Fault::After, Fault::Lost, Fault::DeathBefore, Fault::DeathAfter] {
            let mut scene = scene().await;
            let shelf = scene.world.elsewhere();
            back_up_to(&scene, &shelf, &shelf.process("first"), false).await.unwrap();
            let first = restore_backup(&scene, &shelf).await.items().len();
            let ctx = scene.world.process("between");
            for step in [Step::Append(3), Step::Complete, Step::Begin, Step::Append(4)] {
                scene.act(&ctx, step).await.unwrap();
            }
            let faults = Faults::none();
            let process = shelf.faulty("backup", &faults);
            faults.fail_from(nth, 10_000, fault);
            tokio::select! {
                _ = back_up_to(&scene, &shelf, &process, false) => {}
                () = faults.death() => {}
            }
            // The previous backup, or the new one.
            let between = restore_backup(&scene, &shelf).await.items().len();
            assert!(between == first || between == scene.world.items().len(), "{fault:?} at {nth}");
            let again = back_up_to(&scene, &shelf, &shelf.process("again"), false).await.unwrap();
            assert!(again.blobs_copied < again.blobs, "{fault:?} at {nth}: {again:?}");
            scene.world = restore_backup(&scene, &shelf).await;
            scene.finish().await;
        }
    }
}

#[tokio::test]
async fn the_next_backup_copies_new_blobs_and_removes_old_items() {
    let scene = scene().await;
    let shelf = scene.world.elsewhere();
    let process = shelf.process("backup");
    let first = back_up_to(&scene, &shelf, &process, false).await.unwrap();
    let again = back_up_to(&scene, &shelf, &process, false).await.unwrap();
    assert_eq!((again.blobs, again.blobs_copied), (first.blobs, 0));
    let parts = |shelf: &World| {
        let keys = shelf.blobs_in_memory().keys();
        keys.iter()
            .filter(|key| key.as_str().starts_with("items/") || key.as_str().starts_with("runs/"))
            .count()
    };
    assert_eq!(parts(&shelf), 1);
    // A running backup keeps its items until no process can be working on it any more.
    let other = BlobKey::parse("runs/other").unwrap();
    let begun = format!("{{\"begun\":{}}}", shelf.now().0);
    shelf.blobs_in_memory().put(&other, begun.into()).await.unwrap();
    let part = BlobKey::parse("items/other/000000").unwrap();
    shelf.blobs_in_memory().put(&part, "part".into()).await.unwrap();
    back_up_to(&scene, &shelf, &process, false).await.unwrap();
    assert_eq!(parts(&shelf), 3);
    process.clock.sleep(Duration::from_secs(8 * 24 * 3600)).await;
    back_up_to(&scene, &shelf, &process, false).await.unwrap();
    assert_eq!(parts(&shelf), 1);
}

#[tokio::test]
async fn altered_blobs_of_a_backup_are_found_and_corrected() {
    let scene = scene().await;
    let shelf = scene.world.elsewhere();
    let process = shelf.process("backup");
    back_up_to(&scene, &shelf, &process, false).await.unwrap();
    let kept = shelf.blobs_in_memory().keys().into_iter().find(|key| key.as_str().starts_with("blobs/snap/"));
    shelf.blobs_in_memory().put(&kept.unwrap(), "rotten".into()).await.unwrap();
    let verified = back_up_to(&scene, &shelf, &process, true).await.unwrap();
    assert_eq!((verified.blobs_copied, verified.damaged.len()), (1, 0), "{verified:?}");
    assert_alike(&scene, &restore_backup(&scene, &shelf).await).await;

    // A part that was altered is refused.
    let made = backup::last(&process).await.unwrap().unwrap();
    let (part, sha256) = made.parts().remove(0);
    shelf.blobs_in_memory().put(&part, "rotten".into()).await.unwrap();
    let store = Kept::new(
        Arc::new(shelf.blobs_in_memory().clone()),
        KEPT,
        vec![(part, sha256)],
        Vec::new(),
        items_of_part,
    );
    let refusal = store.items("", None).await.unwrap_err();
    assert!(std::error::Error::source(&refusal).unwrap().to_string().contains("is damaged"), "{refusal:?}");
}

#[tokio::test]
async fn a_place_with_other_contents_is_refused_for_a_backup() {
    let scene = scene().await;
    let refused = async |shelf: &World, words: &str| {
        let before = shelf.blobs_in_memory().keys();
        let refusal = back_up_to(&scene, shelf, &shelf.process("backup"), false).await.unwrap_err();
        assert!(refusal.to_string().contains(words), "{refusal}");
        assert_eq!(shelf.blobs_in_memory().keys(), before);
    };
    let shelf = scene.world.elsewhere();
    shelf.blobs_in_memory().put(&BlobKey::parse("letters/mine").unwrap(), "dear".into()).await.unwrap();
    refused(&shelf, "something that is not a backup").await;
    let other = Scene::new(scene.world.elsewhere());
    for step in [Step::CreateStack, Step::Begin] {
        other.act(&other.world.process("first"), step).await.unwrap();
    }
    let shelf = scene.world.elsewhere();
    back_up_to(&other, &shelf, &shelf.process("backup"), false).await.unwrap();
    refused(&shelf, "a backup of another store").await;
}

/// A moment whose items are not of the same instant: for each commit of a session, each of its items in turn is
/// in its old form.
#[tokio::test]
async fn a_moment_within_a_commit_is_noticed() {
    let scene = scene().await;
    let ctx = scene.world.process("live");
    let mut noticed = 0;
    for step in [Step::Complete, Step::Import(5), Step::Rename] {
        let before = moment(&scene);
        scene.act(&ctx, step).await.unwrap();
        let after = scene.world.items();
        let live_items = inventory(&scene.world);
        let live = Source { ctx: &ctx, inventory: &live_items, is_shared: true };
        let whole = moment(&scene);
        let find = async |ledger: &MemoryLedger| {
            let moment = over(&scene, ledger);
            let items = (ledger.clone(), scene.world.blobs_in_memory().clone());
            torn(Source { ctx: &moment, inventory: &items, is_shared: false }, live).await.unwrap()
        };
        assert_eq!(find(&whole).await, Vec::<String>::new());
        for item in after.iter().filter(|item| {
            let partition = &item.key.partition;
            partition.starts_with("STACK#") && (item.key.sort == "HEAD" || item.key.sort.starts_with("V#"))
        }) {
            let old = before.get(&item.key).await.unwrap();
            if old.as_ref().is_some_and(|old| old.revision == item.revision) {
                continue;
            }
            let late = moment(&scene);
            let action = old.map_or(WriteAction::Delete, |old| WriteAction::Put {
                revision: old.revision,
                value: old.value,
                expires: old.expires,
            });
            let write = Write { key: item.key.clone(), expect: Expect::Any, action };
            late.commit(vec![write]).await.unwrap();
            let found = find(&late).await;
            assert!(!found.is_empty(), "{:?} as it was before {step:?} was not noticed", item.key);
            noticed += 1;
        }
    }
    assert!(noticed >= 4, "{noticed}");
}

/// A data key may have been made within the second of the moment, with its first ciphertext stored already.
#[tokio::test]
async fn a_key_that_is_younger_than_the_moment_is_in_the_backup() {
    let scene = scene().await;
    let (ledger, live) = (moment(&scene), scene.world.process("live"));
    let key = ledger.items().into_iter().find(|item| item.key.partition.starts_with("KEY#")).unwrap();
    let gone = Write { key: key.key.clone(), expect: Expect::Any, action: WriteAction::Delete };
    ledger.commit(vec![gone]).await.unwrap();
    let (ctx, items) = (over(&scene, &ledger), (ledger.clone(), scene.world.blobs_in_memory().clone()));
    let shelf = scene.world.elsewhere();
    let (mut process, there) = (shelf.process("backup"), inventory(&shelf));
    // A backup has blobs alone.
    (process.ledger, process.keys) = (Arc::new(Unavailable), Arc::new(Unavailable));
    let wanted = BackupRequest {
        moment: Source { ctx: &ctx, inventory: &items, is_shared: false },
        live: &live,
        at: scene.world.now(),
        master_key: "the key",
        wrap: None,
        verify: false,
    };
    back_up(wanted, Shelf { ctx: &process, inventory: &there }, &|_| {}).await.unwrap();
    let back = restore_backup(&scene, &shelf).await;
    assert!(back.ledger_in_memory().get(&key.key).await.unwrap().is_some());
    assert!(back.ledger_in_memory().get(&Signer::key()).await.unwrap().is_some());
}

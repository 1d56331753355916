//! Goal: everything that is deleted is deleted wholly, and nothing else with it, wherever a sweep dies or fails
//! on the way.
//!
//! Method: a run without faults counts the calls and shows the end. Then a sweep meets each kind of fault at
//! each of its calls in turn, or dies there, and another process sweeps on. The end is the same.

use std::num::NonZeroU64;
use std::time::Duration;

use statewright_shared::adapters::{Fault, Faults};
use statewright_shared::context::Context;
use statewright_shared::domain::ids::StackId;
use statewright_shared::layout::{Due, Record};
use statewright_shared::ports::Item;
use statewright_shared::services::maintenance::sweep::sweep;
use statewright_shared::services::stacks;
use statewright_shared::services::store::compression::gzip;
use statewright_shared::services::store::stack_lookup;
use statewright_shared::services::updates::events;
use statewright_shared::services::updates::events::NewBatch;
use statewright_shared::settings::Retention;

use super::scene::{Scene, Step};
use super::world::World;

const DAY: Duration = Duration::from_secs(86_400);

/// Sweeps until nothing is due now. The next sweep handles failures.
async fn sweep_all(ctx: &Context) {
    while sweep(ctx).await.is_ok_and(|swept| swept.more) {}
}

/// A stack with versions, logs, events and a secret, whose blobs are outside the ledger.
async fn scene() -> (Scene, StackId) {
    let mut world = World::memory();
    world.settings.retention = Retention { versions: NonZeroU64::new(2), ..Retention::DEFAULT };
    let scene = Scene::new(world);
    let ctx = scene.world.process("first");
    let mut steps = vec![Step::CreateStack, Step::Encrypt];
    for number in 1..=4 {
        steps.extend([Step::Begin, Step::Append(number), Step::Complete]);
    }
    for step in steps {
        scene.act(&ctx, step).await.unwrap();
    }
    scene.act(&ctx, Step::Begin).await.unwrap();
    let noise = super::world::sha256(b"noise").repeat(8);
    let batch = NewBatch { first: 1, last: 2, count: 2, summary: None, gzip: gzip(noise.as_bytes()) };
    events::append(&ctx, &scene.claims().unwrap(), batch).await.unwrap();
    scene.act(&ctx, Step::Complete).await.unwrap();
    scene.act(&ctx, Step::Rename).await.unwrap();
    let stack = stack_lookup::locate(&ctx, &scene.caller, &scene.address).await.unwrap().id;
    (scene, stack)
}

/// The store's contents, except for what depends on timing: revisions, the times of due items, and the due
/// items of updates, which may be swept once more after everything of them is deleted.
fn end(scene: &Scene) -> (Vec<String>, Vec<String>) {
    let word = |item: &Item| match item.key.partition.starts_with("DUE#") {
        true => match Due::decode(&item.value).unwrap() {
            Due::Update(_) => None,
            due => Some(format!("{due:?}")),
        },
        false => Some(format!("{:?}", item.key)),
    };
    let mut items: Vec<String> = scene.world.items().iter().filter_map(word).collect();
    items.sort();
    items.dedup();
    // Copies of the roots of audit trails are kept for weeks after their day.
    let blobs = scene.world.blobs_in_memory().keys().iter().map(ToString::to_string).collect::<Vec<_>>();
    (items, blobs.into_iter().filter(|blob| !blob.starts_with("audit/")).collect())
}

#[derive(Debug, Clone, Copy)]
enum Goes {
    /// Logs, and excess versions.
    Old,
    /// The deleted stack.
    Stack,
    /// Blobs that no item names any more.
    Blobs,
}

impl Goes {
    /// Brings a scene to the moment of the deletion.
    async fn prepare(self, scene: &Scene) {
        let ctx = scene.world.process("first");
        match self {
            Self::Old => scene.world.clock.advance(91 * DAY),
            Self::Stack => {
                scene.act(&ctx, Step::Remove).await.unwrap();
                scene.world.clock.advance(31 * DAY);
            }
            Self::Blobs => {
                scene.act(&ctx, Step::Remove).await.unwrap();
                scene.world.clock.advance(31 * DAY);
                sweep_all(&ctx).await;
                scene.world.clock.advance(7 * DAY);
            }
        }
    }
}

async fn goes_wholly(goes: Goes) {
    let (whole, _) = scene().await;
    goes.prepare(&whole).await;
    let before = end(&whole);
    let faults = Faults::none();
    sweep_all(&whole.world.faulty("first", &faults)).await;
    let calls = faults.calls();
    let expected = end(&whole);
    assert_ne!(before, expected);
    for nth in 1..=calls {
        for fault in [Fault::Before, Fault::After, Fault::Lost, Fault::DeathBefore, Fault::DeathAfter] {
            for length in [1, 4, 10_000] {
                let (scene, _) = scene().await;
                goes.prepare(&scene).await;
                let faults = Faults::none();
                let process = scene.world.faulty("first", &faults);
                faults.fail_from(nth, length, fault);
                tokio::select! {
                    () = sweep_all(&process) => {}
                    () = faults.death() => {}
                }
                drop(process);
                sweep_all(&scene.world.process("second")).await;
                assert_eq!(end(&scene), expected, "{goes:?}, call {nth} of {calls}: {fault:?} for {length}");
                if !matches!(goes, Goes::Old) {
                    scene.world.clock.advance(400 * DAY);
                    sweep_all(&scene.world.process("last")).await;
                    let left = scene.world.items();
                    // The copy of a day's root outlives the root by weeks.
                    let is_of_stack = |item: &&Item| !item.key.sort.contains("#blob-audit/");
                    let mut due = left.iter().filter(|item| item.key.partition.starts_with("DUE#"));
                    let due = due.find(is_of_stack);
                    assert!(due.is_none(), "{goes:?}, call {nth}: {fault:?} leaves {due:?} due");
                }
            }
        }
    }
}

#[tokio::test]
async fn logs_and_old_versions_go_wholly_wherever_a_sweep_dies() {
    Box::pin(goes_wholly(Goes::Old)).await;
}

#[tokio::test]
async fn a_deleted_stack_is_erased_wholly_wherever_a_sweep_dies() {
    Box::pin(goes_wholly(Goes::Stack)).await;
    let (scene, stack) = scene().await;
    Goes::Stack.prepare(&scene).await;
    sweep_all(&scene.world.process("first")).await;
    let (items, _) = end(&scene);
    let left: Vec<_> = items.iter().filter(|item| item.contains(&stack.to_string())).collect();
    assert!(left.iter().all(|item| item.starts_with("Blob") || item.starts_with("Outputs")), "{left:?}");
}

#[tokio::test]
async fn blobs_go_wholly_wherever_a_sweep_dies() {
    Box::pin(goes_wholly(Goes::Blobs)).await;
    let (scene, _) = scene().await;
    Goes::Blobs.prepare(&scene).await;
    sweep_all(&scene.world.process("first")).await;
    assert_eq!(end(&scene).1, [""; 0]);
}

/// A stack is undeleted whole, or erased whole: never something in between.
#[tokio::test]
async fn a_stack_is_undeleted_whole_or_not_at_all_during_erasure() {
    let (probe, _) = scene().await;
    Goes::Stack.prepare(&probe).await;
    let faults = Faults::none();
    sweep_all(&probe.world.faulty("first", &faults)).await;
    let (mut back, mut gone) = (0, 0);
    for nth in 1..=faults.calls() {
        for fault in [Fault::DeathBefore, Fault::DeathAfter] {
            let (scene, stack) = scene().await;
            Goes::Stack.prepare(&scene).await;
            let faults = Faults::none();
            let process = scene.world.faulty("first", &faults);
            faults.fail_at(nth, fault);
            tokio::select! {
                () = sweep_all(&process) => {}
                () = faults.death() => {}
            }
            drop(process);
            let ctx = scene.world.process("second");
            match stacks::deleted::undelete(&ctx, &scene.address, None).await {
                Ok(restored) => {
                    assert_eq!(restored, stack);
                    back += 1;
                    sweep_all(&ctx).await;
                    scene.finish().await;
                }
                Err(error) => {
                    assert!(error.to_string().contains("no deleted stack"), "{error:?}");
                    gone += 1;
                    sweep_all(&ctx).await;
                    let items = end(&scene).0;
                    assert!(!items.iter().any(|item| item.contains(&format!("STACK#{stack}"))), "{items:?}");
                }
            }
        }
    }
    assert!(back > 0 && gone > 0, "{back} were undeleted, {gone} were erased");
}

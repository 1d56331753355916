//! Goal: every process that ends an update after its publisher's death ends it in the same place, with the same
//! bytes.
//!
//! Method: the publisher dies at every call of a complete in turn, before and after the store did it, or loses
//! the store for good. Then one of three continues: the client, which repeats its complete to the restarted
//! process; a request for the stack there; or a request in another process, which first waits for the dead
//! publisher.

use std::collections::BTreeSet;

use statewright_shared::adapters::{Fault, Faults};
use statewright_shared::domain::update::{Status, Update};
use statewright_shared::layout::{StackHead, StackVersion};
use statewright_shared::services::updates::takeover;

use super::scene::{Scene, Step};
use super::world::World;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Successor {
    RepeatedComplete,
    Restarted,
    Another,
}

/// The final state of an update.
#[derive(Debug, PartialEq, Eq)]
struct End {
    head: StackHead,
    version: StackVersion,
    snapshots: Vec<String>,
}

async fn scene(world: World) -> (Scene, Faults, statewright_shared::context::Context) {
    let scene = Scene::new(world);
    let faults = Faults::none();
    let process = scene.world.faulty("first", &faults);
    for step in [
        Step::CreateStack,
        Step::Begin,
        Step::Append(1),
        Step::Complete,
        Step::Begin,
        Step::Append(2),
        Step::Append(3),
        Step::Append(4),
    ] {
        Box::pin(scene.act(&process, step)).await.unwrap();
    }
    (scene, faults, process)
}

async fn end(scene: &Scene) -> End {
    let stack = scene.claims().unwrap().stack;
    let head: StackHead = scene.world.read(&StackHead::key(stack)).await.unwrap();
    // Each publisher writes the audit record of its own end, at its own time.
    let head = StackHead { trail: None, ..head };
    let version = scene.world.read(&StackVersion::key(stack, head.version)).await.unwrap();
    End { head, version, snapshots: scene.world.snapshots().await }
}

async fn status(scene: &Scene) -> Status {
    let id = scene.claims().unwrap().update;
    scene.world.read::<Update>(&Update::key(id)).await.unwrap().status
}

/// Kills the publisher of an update at each of its calls, in a new world each time.
async fn kill_at_each_call(
    world: impl AsyncFn() -> World,
    fates: &[Fault],
    successors: impl Fn(u64) -> Vec<Successor>,
) {
    let (scene_whole, faults, process) = scene(world().await).await;
    let before = faults.calls();
    scene_whole.act(&process, Step::Complete).await.unwrap();
    let calls = faults.calls() - before;
    let whole = end(&scene_whole).await;
    let (mut died_sealed, mut died_running, mut died_ended) = (0, 0, 0);

    for nth in 1..=calls {
        for &fault in fates {
            for successor in successors(nth) {
                let (scene, faults, process) = scene(world().await).await;
                faults.fail_from(nth, 10_000, fault);
                tokio::select! {
                    result = scene.act(&process, Step::Complete) => assert!(result.is_err()),
                    () = faults.death() => {}
                }
                drop(process);
                scene.check().await;
                let status_at_death = status(&scene).await;
                let died_at = scene.world.now();

                let name = if successor == Successor::Another { "second" } else { "first" };
                let process = scene.world.process(name);
                let is_running = matches!(status_at_death, Status::Running { .. });
                if successor == Successor::RepeatedComplete {
                    scene.act(&process, Step::Complete).await.unwrap();
                } else {
                    if is_running {
                        scene.act(&process, Step::Lapse).await.unwrap();
                    }
                    scene.act(&process, Step::Meet).await.unwrap();
                }
                let place = format!("call {nth} of {calls}, {fault:?}, then {successor:?}");
                let end = end(&scene).await;
                match status_at_death {
                    Status::Running { .. } => {
                        died_running += 1;
                        assert_eq!(end.head.version, whole.head.version, "{place}");
                    }
                    Status::Sealed { .. } => {
                        died_sealed += 1;
                        assert_eq!(end, whole, "{place}");
                        let waited = scene.world.now().since(died_at).as_secs();
                        // It waits for a publisher that may be alive; a restarted process with its name need not.
                        assert_eq!(
                            waited >= 15,
                            successor == Successor::Another,
                            "{place}: waited {waited} s"
                        );
                    }
                    Status::Ended { .. } => {
                        died_ended += 1;
                        assert_eq!(end, whole, "{place}");
                    }
                    Status::NotStarted => panic!("{place}: it is not started"),
                }
                assert_eq!(scene.published(&process).await, BTreeSet::from([1, 2, 3, 4]), "{place}");
                scene.check().await;
                scene.finish().await;
            }
        }
    }
    assert!(
        died_sealed > 0 && died_running > 0 && died_ended > 0,
        "{died_running}, {died_sealed}, {died_ended}"
    );
}

#[tokio::test]
async fn every_successor_of_a_dead_publisher_makes_the_same_version() {
    let fates = [Fault::DeathBefore, Fault::DeathAfter, Fault::Before, Fault::Lost, Fault::After];
    let successors = |_| vec![Successor::RepeatedComplete, Successor::Restarted, Successor::Another];
    Box::pin(kill_at_each_call(async || World::memory(), &fates, successors)).await;
}

/// The store's own answers decide there, so one successor after each call is enough; the three take turns.
#[tokio::test]
async fn i3_acked_kept_each_successor_on_aws_makes_the_same_version() {
    let successors = |nth| {
        vec![match nth % 3 {
            0 => Successor::RepeatedComplete,
            1 => Successor::Restarted,
            _ => Successor::Another,
        }]
    };
    Box::pin(kill_at_each_call(World::aws, &[Fault::DeathBefore, Fault::DeathAfter], successors)).await;
}

/// Both find the update sealed, and both do all of the work.
#[tokio::test]
async fn two_that_publish_at_once_make_one_version() {
    let (whole, _, process) = scene(World::memory()).await;
    whole.act(&process, Step::Complete).await.unwrap();

    let (scene, faults, process) = scene(World::memory()).await;
    let before = faults.calls();
    // The first call after the seal never ends, so the update stays sealed.
    for nth in 1.. {
        faults.fail_at(nth, Fault::DeathBefore);
        tokio::select! {
            result = scene.act(&process, Step::Complete) => panic!("{result:?} before the update was sealed"),
            () = faults.death() => {}
        }
        faults.heal();
        if matches!(status(&scene).await, Status::Sealed { .. }) {
            break;
        }
    }
    assert!(faults.calls() > before);
    let (one, other) = (scene.world.process("first"), scene.world.process("first"));
    let (one, other) = futures::join!(
        takeover::locate_settled(&one, &scene.caller, &scene.address),
        takeover::locate_settled(&other, &scene.caller, &scene.address),
    );
    assert_eq!(one.unwrap().head.value, other.unwrap().head.value);
    assert_eq!(end(&scene).await, end(&whole).await);
    scene.finish().await;
}

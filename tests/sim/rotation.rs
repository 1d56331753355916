//! Goal: a rotation of the master key finishes wherever the command dies, and everything is readable at any
//! moment.
//!
//! Method: rewrapping fails or dies at each of its calls in turn; another process continues. Only then is the
//! old key forgotten, and everything still opens.

use statewright_shared::adapters::{Fault, Faults, MemoryBlobs, MemoryLedger};
use statewright_shared::services::keys::master_key;

use super::scene::{Scene, Step};
use super::world::World;

async fn scene() -> Scene {
    let scene = Scene::new(World::memory());
    let ctx = scene.world.process("first");
    for step in [Step::CreateStack, Step::Encrypt, Step::Begin, Step::Append(1)] {
        scene.act(&ctx, step).await.unwrap();
    }
    scene.world.keys_in_memory().add_master();
    scene
}

fn inventory(scene: &Scene) -> (MemoryLedger, MemoryBlobs) {
    (scene.world.ledger_in_memory(), scene.world.blobs_in_memory().clone())
}

#[tokio::test]
async fn rewrapping_continues_wherever_it_died() {
    let probe = scene().await;
    let faults = Faults::none();
    let process = probe.world.faulty("command", &faults);
    let done = master_key::rewrap(&process, &inventory(&probe), &|_| {}).await.unwrap();
    assert_eq!(done.rewrapped, 2);
    let calls = faults.calls();
    assert!(calls >= 5, "{calls}");
    for nth in 1..=calls {
        for fault in [Fault::Before, Fault::After, Fault::Lost, Fault::DeathBefore, Fault::DeathAfter] {
            for length in [1, 10_000] {
                let scene = scene().await;
                let faults = Faults::none();
                let process = scene.world.faulty("command", &faults);
                faults.fail_from(nth, length, fault);
                let inventory = inventory(&scene);
                tokio::select! {
                    _ = master_key::rewrap(&process, &inventory, &|_| {}) => {}
                    () = faults.death() => {}
                }
                drop(process);
                scene.check_handed_out(&scene.world.process("between")).await;
                let done =
                    master_key::rewrap(&scene.world.process("again"), &inventory, &|_| {}).await.unwrap();
                assert_eq!(done.keys, 2);
                scene.world.keys_in_memory().forget_old_masters();
                scene.finish().await;
            }
        }
    }
}

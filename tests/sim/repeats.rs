//! A fault at each call of a step, in each way and for several lengths, and then the step again.

use std::fmt::Debug;

use statewright_shared::adapters::{Fault, Faults};
use statewright_shared::context::Context;
use statewright_shared::services::Error;

use super::world::World;

/// Calls that fail for as long as a test runs.
const FOREVER: u64 = 10_000;

/// The number of failing calls, and whether another process repeats the step.
const OUTAGES: [(u64, bool); 4] = [(1, false), (1, true), (4, false), (FOREVER, true)];

/// A store with the records of one test.
pub(super) trait Scene: Sized {
    type Step: Copy + Debug;

    fn new() -> Self;

    fn world(&self) -> &World;

    async fn act(&self, process: &Context, step: Self::Step) -> Result<(), Error>;

    /// What holds at each moment.
    async fn check(&self);

    /// What holds once `step` was done after `prior`.
    async fn check_done(&self, prior: &[Self::Step], step: Self::Step);

    /// Whether this is the answer to a request that was done already.
    fn is_answer_to_repeat(step: Self::Step, error: &Error) -> bool;
}

/// Fails each call of each case's last step, and repeats it.
pub(super) async fn survive_every_fault<S: Scene>(cases: &[(&[S::Step], S::Step)]) {
    for &(prior, step) in cases {
        let (scene, faults) = (S::new(), Faults::none());
        let process = scene.world().faulty("first", &faults);
        prepare(&scene, &process, prior).await;
        let before = faults.calls();
        Box::pin(scene.act(&process, step)).await.unwrap();
        let calls = faults.calls() - before;
        assert!(calls > 0, "a use case without a call has nothing that can fail");
        for nth in 1..=calls {
            for fault in [Fault::Before, Fault::Lost, Fault::After] {
                for (length, is_new) in OUTAGES {
                    Box::pin(break_at::<S>(prior, step, nth, fault, length, is_new)).await;
                }
            }
        }
    }
}

async fn prepare<S: Scene>(scene: &S, process: &Context, steps: &[S::Step]) {
    for step in steps {
        Box::pin(scene.act(process, *step)).await.unwrap();
    }
}

async fn break_at<S: Scene>(
    prior: &[S::Step],
    step: S::Step,
    nth: u64,
    fault: Fault,
    length: u64,
    is_new: bool,
) {
    let (scene, faults) = (S::new(), Faults::none());
    let process = scene.world().faulty("first", &faults);
    prepare(&scene, &process, prior).await;
    faults.fail_from(nth, length, fault);
    let first = Box::pin(scene.act(&process, step)).await;
    faults.heal();
    scene.check().await;
    // There was no other client, so a client whose request was done does not get the answer for a request that
    // was done before.
    if let Err(error) = &first {
        assert!(matches!(error, Error::Port(_)), "a fault gave {error:?}");
    }
    let process = if is_new { scene.world().process("second") } else { process };
    for _ in 0..=u64::from(first.is_err()) {
        if let Err(error) = Box::pin(scene.act(&process, step)).await {
            assert!(S::is_answer_to_repeat(step, &error), "the repeat of {step:?} gave {error:?}");
        }
        scene.check().await;
    }
    Box::pin(scene.check_done(prior, step)).await;
}

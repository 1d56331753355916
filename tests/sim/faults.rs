//! Goal: whichever call of a use case fails, in whichever way, for however long, and whichever process continues:
//! the stack is valid and nothing acknowledged is lost.
//!
//! Method: a run without faults counts the calls. Then, for each call, each kind of fault and each length of
//! it, the client does what the real one does. It repeats the request, on the process that failed or on a new
//! one, if it is one that the CLI repeats; or it is gone and its lease ends. A request is then delivered once
//! more.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use statewright_shared::adapters::{Fault, Faults};
use statewright_shared::context::Context;
use statewright_shared::domain::update::Outcome;
use statewright_shared::services::error::{AccessError, IdentityError, StackError, UpdateError};
use statewright_shared::services::maintenance::sweep::sweep;
use statewright_shared::services::store::compression::gzip;
use statewright_shared::services::store::stack_lookup;
use statewright_shared::services::updates::log;
use statewright_shared::services::{Error, stacks, updates};

use super::scene::{Scene, Step, batch, new_update};
use super::world::{Delay, World};

/// A request under test.
struct Case {
    /// The steps before it.
    prior: &'static [Step],
    step: Step,
    /// Whether the CLI repeats the request by itself.
    is_retried: bool,
}

/// How things continue after the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recovery {
    /// The client repeats its request to the process that failed.
    SameProcess,
    /// The client repeats its request to a process that has just started.
    NewProcess,
    /// The client is gone.
    Gone,
}

/// The length of the fault in calls, and what follows. A use case survives one failed call by itself; four is
/// the number of its attempts; if the store does not recover, another process or none continues.
const OUTAGES: [(u64, Recovery); 6] = [
    (1, Recovery::SameProcess),
    (1, Recovery::NewProcess),
    (1, Recovery::Gone),
    (4, Recovery::SameProcess),
    (FOREVER, Recovery::NewProcess),
    (FOREVER, Recovery::Gone),
];

const FOREVER: u64 = 10_000;

const A_VERSION: [Step; 4] = [Step::CreateStack, Step::Begin, Step::Append(1), Step::Complete];
const A_REMOVED_STACK: [Step; 5] =
    [Step::CreateStack, Step::Begin, Step::Append(1), Step::Complete, Step::Remove];
const RUNNING: [Step; 7] = [
    Step::CreateStack,
    Step::Begin,
    Step::Append(1),
    Step::Complete,
    Step::Begin,
    Step::Append(2),
    Step::Append(3),
];

async fn scene_before(case: &Case, is_warm: bool) -> (Scene, Faults, Context) {
    let scene = Scene::new(World::memory());
    let faults = Faults::none();
    let process = scene.world.faulty("first", &faults);
    for step in case.prior {
        scene.act(&process, *step).await.unwrap();
    }
    // Caches save calls, so a process without them has other calls that can fail.
    let process = if is_warm { process } else { scene.world.faulty("first", &faults) };
    (scene, faults, process)
}

async fn calls(case: &Case, is_warm: bool) -> u64 {
    let (scene, faults, process) = scene_before(case, is_warm).await;
    let before = faults.calls();
    scene.act(&process, case.step).await.unwrap();
    scene.finish().await;
    faults.calls() - before
}

/// The answer to a client whose request was done already.
fn is_answer_to_repeat(step: Step, error: &Error) -> bool {
    match step {
        Step::CreateStack => matches!(error, Error::Stack(StackError::Exists(_))),
        Step::CreateAndStart | Step::Begin | Step::BeginWhole => {
            matches!(error, Error::Update(UpdateError::Held(_)))
        }
        Step::Remove => matches!(error, Error::Stack(StackError::NotFound(_))),
        Step::Undelete => matches!(error, Error::Stack(StackError::NoneDeleted(_))),
        Step::RevokeToken => matches!(error, Error::Identity(IdentityError::NoToken { .. })),
        Step::CreateToken => matches!(error, Error::Identity(IdentityError::TokenExists { .. })),
        Step::CreateUser => matches!(error, Error::Identity(IdentityError::UserExists(_))),
        Step::CreateUserToken => matches!(error, Error::Identity(IdentityError::TokenExists { .. })),
        Step::RemoveUser => matches!(error, Error::Access(AccessError::NoUser(_))),
        Step::Append(_)
        | Step::Checkpoint(_)
        | Step::Save(_)
        | Step::Delta(_)
        | Step::Renew
        | Step::Complete
        | Step::Cancel
        | Step::Import(_)
        | Step::Rename
        | Step::Encrypt
        | Step::Meet
        | Step::Lapse
        | Step::Restore
        | Step::Rehome
        | Step::SetRole
        | Step::Bootstrap => false,
    }
}

async fn break_at(case: &Case, is_warm: bool, nth: u64, fault: Fault, length: u64, recovery: Recovery) {
    let (scene, faults, process) = scene_before(case, is_warm).await;
    let before = faults.calls();
    faults.fail_from(nth, length, fault);
    let first = scene.act(&process, case.step).await;
    assert!(faults.calls() >= before + nth, "no call met the fault");
    faults.heal();
    scene.check().await;
    // There was no other client, so a client whose request was done does not get the answer for a request that
    // was done before.
    if let Err(error) = &first {
        assert!(matches!(error, Error::Port(_)), "a fault gave {error:?}");
    }
    let new;
    let process = match recovery {
        Recovery::SameProcess => &process,
        Recovery::NewProcess => {
            new = scene.world.process("second");
            &new
        }
        Recovery::Gone => return scene.finish().await,
    };
    if first.is_err() {
        if let Err(error) = scene.act(process, case.step).await {
            assert!(!case.is_retried && is_answer_to_repeat(case.step, &error), "the repeat gave {error:?}");
        }
        scene.check().await;
    }
    if let Err(error) = scene.act(process, case.step).await {
        assert!(is_answer_to_repeat(case.step, &error), "the second delivery gave {error:?}");
    }
    scene.check().await;
    scene.finish().await;
}

async fn break_everywhere(case: Case) {
    for is_warm in [true, false] {
        let calls = Box::pin(calls(&case, is_warm)).await;
        assert!(calls > 0, "a use case without a call has nothing that can fail");
        for nth in 1..=calls {
            for fault in [Fault::Before, Fault::Lost, Fault::After] {
                for (length, recovery) in OUTAGES {
                    let run = Box::pin(break_at(&case, is_warm, nth, fault, length, recovery));
                    if let Err(panic) = AssertUnwindSafe(run).catch_unwind().await {
                        let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
                        panic!(
                            "{text}\n{:?}, warm: {is_warm}, call {nth} of {calls}: {fault:?} for {length}, then \
                             {recovery:?}",
                            case.step
                        );
                    }
                }
            }
        }
    }
}

macro_rules! cases {
    ($($name:ident: $prior:expr => $step:expr, $is_retried:expr;)*) => {$(
        #[tokio::test]
        async fn $name() {
            break_everywhere(Case { prior: &$prior, step: $step, is_retried: $is_retried }).await;
        }
    )*};
}

// The requests that the CLI repeats: pulumi v3.274.1, `pkg/backend/httpstate/client`; GET, and all that a
// running update sends with its token, encryption and cancel.
cases! {
    create_stack_survives_every_fault: [] => Step::CreateStack, false;
    create_and_start_survive_every_fault: A_VERSION => Step::CreateAndStart, false;
    begin_survives_every_fault: A_VERSION => Step::Begin, false;
    append_survives_every_fault: RUNNING => Step::Append(4), true;
    checkpoint_survives_every_fault:
        [Step::CreateStack, Step::BeginWhole, Step::Checkpoint(1), Step::Checkpoint(2)] => Step::Checkpoint(3), true;
    save_survives_every_fault: [Step::CreateStack, Step::BeginWhole, Step::Save(1)] => Step::Save(2), true;
    delta_survives_every_fault:
        [Step::CreateStack, Step::BeginWhole, Step::Save(1), Step::Delta(2)] => Step::Delta(3), true;
    renew_survives_every_fault: RUNNING => Step::Renew, true;
    complete_survives_every_fault: RUNNING => Step::Complete, true;
    cancel_survives_every_fault: RUNNING => Step::Cancel, true;
    import_survives_every_fault: A_VERSION => Step::Import(2), false;
    remove_survives_every_fault: A_VERSION => Step::Remove, false;
    undelete_survives_every_fault: A_REMOVED_STACK => Step::Undelete, false;
    rename_survives_every_fault:
        [Step::CreateStack, Step::Encrypt, Step::Begin, Step::Append(1), Step::Complete] => Step::Rename, false;
    rename_of_a_new_stack_survives_every_fault: [Step::CreateStack] => Step::Rename, false;
    encrypt_survives_every_fault: [Step::CreateStack] => Step::Encrypt, true;
    takeover_survives_every_fault:
        [Step::CreateStack, Step::Begin, Step::Append(1), Step::Append(2), Step::Lapse] => Step::Meet, true;
    create_token_survives_every_fault: [Step::Bootstrap] => Step::CreateToken, false;
    revoke_token_survives_every_fault: [Step::Bootstrap, Step::CreateToken] => Step::RevokeToken, false;
    bootstrap_survives_every_fault: [] => Step::Bootstrap, false;
    restore_survives_every_fault: A_VERSION => Step::Restore, false;
    rehome_survives_every_fault: [Step::CreateStack, Step::Import(1)] => Step::Rehome, false;
    create_user_survives_every_fault: [Step::Bootstrap] => Step::CreateUser, false;
    set_role_survives_every_fault: [Step::Bootstrap, Step::CreateUser] => Step::SetRole, false;
    remove_user_survives_every_fault:
        [Step::Bootstrap, Step::CreateUser, Step::CreateUserToken] => Step::RemoveUser, false;
}

/// The one answer that a client does not request again is that of a begin: if it cannot be built, the stack
/// must not be held.
#[tokio::test]
async fn a_begin_whose_token_cannot_be_signed_holds_nothing() {
    let scene = Scene::new(World::memory());
    for step in A_VERSION {
        scene.act(&scene.world.process("first"), step).await.unwrap();
    }
    let faults = Faults::none();
    let process = scene.world.without_keys("second", &faults);
    for step in [Step::Begin, Step::CreateAndStart] {
        faults.fail_from(1, 1_000, Fault::Before);
        let refused = scene.act(&process, step).await;
        assert!(matches!(refused, Err(Error::Port(_))), "{refused:?}");
        faults.heal();
        let stack = stack_lookup::locate(&process, &scene.caller, &scene.address).await.unwrap();
        assert_eq!(stack.head.value.running, None);
    }
    scene.act(&process, Step::Begin).await.unwrap();
    scene.finish().await;
}

/// The master key is used least of all ports, and over a network; one failure must not refuse a request.
#[tokio::test]
async fn a_master_key_that_fails_for_a_moment_is_asked_again() {
    for fault in [Fault::Before, Fault::Lost, Fault::After] {
        for length in 1..=3 {
            let scene = Scene::new(World::memory());
            let faults = Faults::none();
            let process = scene.world.without_keys("first", &faults);
            scene.act(&process, Step::CreateStack).await.unwrap();
            for step in [Step::Encrypt, Step::Begin] {
                faults.fail_from(1, length, fault);
                let before = faults.calls();
                scene.act(&process, step).await.unwrap();
                assert!(faults.calls() >= before + length, "{step:?} did not meet the fault");
                faults.heal();
            }
            let process = scene.world.without_keys("second", &faults);
            faults.fail_from(1, length, fault);
            scene.check_handed_out(&process).await;
            scene.finish().await;
        }
    }
}

/// A preview renews its lease too, and leaves nothing all the same.
#[tokio::test]
async fn a_preview_holds_no_lock_and_expires_by_itself() {
    let scene = Scene::new(World::memory());
    let process = scene.world.process("first");
    for step in A_VERSION {
        scene.act(&process, step).await.unwrap();
    }
    let mut new = new_update();
    new.dry_run = true;
    let begun = updates::begin(&process, &scene.caller, &scene.address, new, None, 2).await.unwrap();
    assert_eq!((begun.located.head.value.running, begun.started.version), (None, 1));
    let id = begun.started.update;
    let claims = updates::tokens::verify(&process, &begun.started.token, &id.to_string()).await.unwrap();
    scene.put_caller().await;
    updates::renew(&process, &scene.address, &claims, 300).await.unwrap();
    let saved = log::append_entries(&process, &claims, gzip(batch(5).to_string().as_bytes())).await;
    assert!(matches!(saved, Err(Error::Update(UpdateError::Fenced(_)))), "{saved:?}");
    for _ in 0..2 {
        updates::complete(&process, &claims, Outcome::Succeeded).await.unwrap();
    }
    let traces = || {
        let id = id.to_string();
        scene.world.items().iter().filter(|item| format!("{:?}", item.key).contains(&id)).count()
    };
    sweep(&process).await.unwrap();
    assert!(traces() > 0);
    scene.world.clock.advance(Duration::from_secs(91 * 86_400));
    // The first sweep finds it expired, and the second deletes it.
    sweep(&process).await.unwrap();
    assert_eq!(traces(), 0);
    assert_eq!(stacks::get(&process, &scene.caller, &scene.address).await.unwrap().head.version, 1);
    scene.finish().await;
}

/// A renewal whose answer was lost must not end an update, and an expired lease ends it before any request
/// finds it.
#[tokio::test]
async fn an_update_stays_open_until_its_recorded_lease_ends() {
    let scene = Scene::new(World::memory());
    let process = scene.world.process("first");
    for step in RUNNING {
        scene.act(&process, step).await.unwrap();
    }
    let old = scene.claims().unwrap();
    let append =
        async |number| log::append_entries(&process, &old, gzip(batch(number).to_string().as_bytes())).await;
    scene.world.clock.advance(Duration::from_secs(200));
    scene.act(&process, Step::Renew).await.unwrap();
    scene.world.clock.advance(Duration::from_secs(150));
    assert!(scene.world.now() > old.expires);
    append(10).await.unwrap();
    scene.world.clock.advance(Duration::from_secs(150));
    append(11).await.unwrap();
    scene.world.clock.advance(Duration::from_nanos(1));
    let late = append(12).await;
    assert!(matches!(late, Err(Error::Update(UpdateError::Fenced(_)))), "{late:?}");
    scene.act(&process, Step::Meet).await.unwrap();
    assert_eq!(scene.published(&process).await, BTreeSet::from([1, 2, 3, 10, 11]));
}

/// A commit that takes effect late: after its failure was reported, between the calls that follow.
async fn commit_belatedly(case: &Case) {
    let mut belated = 0;
    for nth in 1.. {
        for calls_later in 1..=4 {
            let scene = Scene::new(World::memory());
            let process = scene.world.process("first");
            for step in case.prior {
                scene.act(&process, *step).await.unwrap();
            }
            let delay = Arc::new(Delay::new(nth, calls_later));
            let process = scene.world.belated("first", &delay);
            let done = scene.act(&process, case.step).await;
            if !delay.was_met() {
                done.unwrap();
                assert!(belated > 0, "a use case without a commit has nothing to delay");
                return;
            }
            belated += 1;
            let place = format!("{:?}, commit {nth}, {calls_later} calls later", case.step);
            done.unwrap_or_else(|error| panic!("{place}: {error:?}"));
            scene.check().await;
            scene.finish().await;
        }
    }
}

#[tokio::test]
async fn a_commit_that_takes_effect_after_it_was_given_up_counts_once() {
    for (prior, step) in [
        (&[][..], Step::CreateStack),
        (&A_VERSION, Step::CreateAndStart),
        (&A_VERSION, Step::Begin),
        (&RUNNING, Step::Append(4)),
        (&[Step::CreateStack, Step::BeginWhole, Step::Save(1), Step::Delta(2)], Step::Delta(3)),
        (&RUNNING, Step::Renew),
        (&RUNNING, Step::Complete),
        (&RUNNING, Step::Cancel),
        (&A_VERSION, Step::Import(2)),
        (&A_VERSION, Step::Rename),
        (&A_REMOVED_STACK, Step::Undelete),
        (&[Step::CreateStack], Step::Encrypt),
        (&[Step::Bootstrap], Step::CreateToken),
        (&[Step::Bootstrap, Step::CreateToken], Step::RevokeToken),
        (&[], Step::Bootstrap),
        (&A_VERSION, Step::Restore),
        (&[Step::CreateStack, Step::Import(1)], Step::Rehome),
        (&[Step::Bootstrap], Step::CreateUser),
        (&[Step::Bootstrap, Step::CreateUser], Step::SetRole),
        (&[Step::Bootstrap, Step::CreateUser, Step::CreateUserToken], Step::RemoveUser),
    ] {
        Box::pin(commit_belatedly(&Case { prior, step, is_retried: false })).await;
    }
}

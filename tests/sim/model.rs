//! Goal: over any sequence of requests, through two processes, a stack behaves like a model of a few lines.
//!
//! Method: each operation is done to a plain model and to the services; after each, answers and state are
//! compared.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::Config;
use statewright_shared::context::Context;
use statewright_shared::domain::update::{LEASE, NotNow, Outcome};
use statewright_shared::ports::Timestamp;
use statewright_shared::services::error::{StackError, UpdateError};
use statewright_shared::services::stacks::history;
use statewright_shared::services::store::compression::gunzip;
use statewright_shared::services::updates::log;
use statewright_shared::services::{Error, stacks, updates};

use super::scene::{Scene, Step, numbers};
use super::world::World;

#[derive(Debug, Clone, Copy)]
enum Operation {
    Create,
    Remove {
        force: bool,
    },
    Begin,
    Append,
    Renew,
    Complete(Outcome),
    Cancel,
    Import,
    Encrypt,
    Wait {
        seconds: u64,
    },
    /// To one tick before the end of the lease, to it, or after it.
    WaitForLease {
        ticks_behind: i8,
    },
}

/// The client's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Done,
    Exists,
    Missing,
    NoUpdate,
    HasResources,
    Held,
    Over,
    Fenced,
}

/// The state of the client's last update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Running,
    Completed(Outcome),
    Cancelled,
    Expired,
}

#[derive(Debug)]
struct Stack {
    serial: u64,
    version: u64,
    state: BTreeSet<u64>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    until: Timestamp,
    acked: BTreeSet<u64>,
}

/// The reference: one name, and the update that the client began last.
#[derive(Debug, Default)]
struct Model {
    stacks_made: u64,
    stack: Option<Stack>,
    update: Option<(u64, Fate)>,
}

impl Model {
    fn end(&mut self, fate: Fate) {
        if let Some(stack) = &mut self.stack
            && let Some(running) = stack.running.take()
        {
            stack.version += 1;
            stack.state.extend(running.acked);
            self.update = self.update.map(|(serial, _)| (serial, fate));
        }
    }

    /// Every request ends an update whose lease is over.
    fn look(&mut self, now: Timestamp) {
        let running = self.stack.as_ref().and_then(|stack| stack.running.as_ref());
        if running.is_some_and(|running| now > running.until) {
            self.end(Fate::Expired);
        }
    }

    fn fate(&self) -> Option<Fate> {
        self.update.map(|(_, fate)| fate)
    }

    /// `number`: what an append or an import saves. `None`: the client has nothing to do this with.
    fn apply(&mut self, operation: Operation, number: u64, now: Timestamp) -> Option<Answer> {
        let is_running = self.fate() == Some(Fate::Running);
        let answer = match operation {
            Operation::Create if self.stack.is_some() => Answer::Exists,
            Operation::Create => {
                self.stacks_made += 1;
                let serial = self.stacks_made;
                self.stack = Some(Stack { serial, version: 0, state: BTreeSet::new(), running: None });
                Answer::Done
            }
            Operation::Remove { force } => match &self.stack {
                None => Answer::Missing,
                Some(Stack { running: Some(_), .. }) => Answer::Held,
                Some(Stack { state, .. }) if !force && !state.is_empty() => Answer::HasResources,
                Some(_) => {
                    self.stack = None;
                    Answer::Done
                }
            },
            Operation::Begin => match &mut self.stack {
                None => Answer::Missing,
                Some(Stack { running: Some(_), .. }) => Answer::Held,
                Some(stack) => {
                    stack.running = Some(Running { until: now.plus(LEASE), acked: BTreeSet::new() });
                    self.update = Some((stack.serial, Fate::Running));
                    Answer::Done
                }
            },
            Operation::Append | Operation::Renew => {
                self.update?;
                let stack = self.stack.as_mut().filter(|_| is_running);
                match stack.and_then(|stack| stack.running.as_mut()) {
                    Some(running) if matches!(operation, Operation::Append) => {
                        running.acked.insert(number);
                        Answer::Done
                    }
                    Some(running) => {
                        running.until = now.plus(LEASE);
                        Answer::Done
                    }
                    None => Answer::Fenced,
                }
            }
            Operation::Complete(outcome) => match self.fate()? {
                Fate::Running => {
                    self.end(Fate::Completed(outcome));
                    Answer::Done
                }
                Fate::Completed(ended) if ended == outcome => Answer::Done,
                Fate::Completed(_) | Fate::Cancelled | Fate::Expired => Answer::Fenced,
            },
            Operation::Cancel => {
                let (serial, fate) = self.update?;
                match (&self.stack, fate) {
                    (None, _) => Answer::Missing,
                    (Some(stack), _) if stack.serial != serial => Answer::NoUpdate,
                    (Some(_), Fate::Running) => {
                        self.end(Fate::Cancelled);
                        Answer::Done
                    }
                    (Some(_), Fate::Cancelled) => Answer::Done,
                    (Some(_), Fate::Completed(_) | Fate::Expired) => Answer::Over,
                }
            }
            Operation::Import => match &mut self.stack {
                None => Answer::Missing,
                Some(Stack { running: Some(_), .. }) => Answer::Held,
                Some(stack) => {
                    stack.version += 1;
                    stack.state.insert(number);
                    Answer::Done
                }
            },
            Operation::Encrypt => self.stack.as_ref().map_or(Answer::Missing, |_| Answer::Done),
            Operation::Wait { .. } | Operation::WaitForLease { .. } => Answer::Done,
        };
        Some(answer)
    }
}

fn answer_of(result: Result<(), Error>) -> Answer {
    match result {
        Ok(()) => Answer::Done,
        Err(Error::Stack(StackError::Exists(_))) => Answer::Exists,
        Err(Error::Stack(StackError::NotFound(_))) => Answer::Missing,
        Err(Error::Update(UpdateError::NotFound { .. })) => Answer::NoUpdate,
        Err(Error::Stack(StackError::HasResources)) => Answer::HasResources,
        Err(Error::Update(UpdateError::Held(_))) => Answer::Held,
        Err(Error::Update(
            UpdateError::NotNow(NotNow::Over { .. }) | UpdateError::NothingToCancel { .. },
        )) => Answer::Over,
        Err(Error::Update(UpdateError::Fenced(_))) => Answer::Fenced,
        Err(other) => panic!("{other:?}"),
    }
}

async fn act(
    scene: &Scene,
    ctx: &Context,
    operation: Operation,
    number: u64,
    model: &Model,
) -> Result<(), Error> {
    let import = |resources: &BTreeSet<u64>| {
        let resources: Vec<_> =
            resources.iter().chain([&number]).map(|n| super::scene::resource(*n)).collect();
        serde_json::json!({"version": 3, "deployment": {"resources": resources}}).to_string()
    };
    match operation {
        Operation::Create => scene.act(ctx, Step::CreateStack).await,
        Operation::Remove { force } => stacks::delete(ctx, &scene.caller, &scene.address, force).await,
        Operation::Begin => scene.act(ctx, Step::Begin).await,
        Operation::Append => scene.act(ctx, Step::Append(number)).await,
        Operation::Renew => scene.act(ctx, Step::Renew).await,
        Operation::Complete(outcome) => updates::complete(ctx, &scene.claims().unwrap(), outcome).await,
        Operation::Cancel => scene.act(ctx, Step::Cancel).await,
        Operation::Import => {
            let before = model.stack.as_ref().map(|stack| stack.state.clone()).unwrap_or_default();
            let text = import(&before).into();
            let import = updates::direct::import(ctx, &scene.caller, &scene.address, text);
            import.await.map(drop)
        }
        Operation::Encrypt => scene.act(ctx, Step::Encrypt).await,
        Operation::Wait { seconds } => {
            scene.world.clock.advance(Duration::from_secs(seconds));
            Ok(())
        }
        Operation::WaitForLease { ticks_behind } => {
            let running = model.stack.as_ref().and_then(|stack| stack.running.as_ref());
            if let Some(Running { until, .. }) = running {
                let instant = Timestamp(until.0 + i64::from(ticks_behind));
                scene.world.clock.advance(instant.since(scene.world.now()));
            }
            Ok(())
        }
    }
}

async fn compare(scene: &Scene, ctx: &Context, model: &mut Model, place: &str) {
    model.look(scene.world.now());
    let view = stacks::get(ctx, &scene.caller, &scene.address).await;
    let Some(stack) = &model.stack else {
        assert!(matches!(view, Err(Error::Stack(StackError::NotFound(_)))), "{place}: {view:?}");
        return;
    };
    let view = view.unwrap();
    assert_eq!(view.head.version, stack.version, "{place}");
    let claims = scene.claims().map(|claims| claims.update);
    assert_eq!(view.head.running, claims.filter(|_| stack.running.is_some()), "{place}");
    let mut state = stack.state.clone();
    if stack.version > 0 {
        let export = stacks::export(ctx, &scene.caller, &scene.address, Some(stack.version)).await.unwrap();
        assert_eq!(numbers(&gunzip(&export.unwrap()).unwrap()), state, "{place}");
    }
    state.extend(stack.running.iter().flat_map(|running| &running.acked));
    assert_eq!(scene.published(ctx).await, state, "{place}: readers see what a running update has saved");
    let history = history::list(ctx, &scene.caller, &scene.address, None).await.unwrap();
    assert_eq!(history.versions.len() as u64, stack.version, "{place}");
    if model.fate() != Some(Fate::Running)
        && let Some(claims) = scene.claims()
    {
        let late = log::append_entries(ctx, &claims, bytes::Bytes::new()).await;
        assert!(matches!(late, Err(Error::Update(UpdateError::Fenced(_)))), "{place}: {late:?}");
    }
    scene.check().await;
}

async fn run(operations: Vec<(Operation, bool)>) {
    let scene = Scene::new(World::memory());
    let processes = [scene.world.process("first"), scene.world.process("second")];
    let mut model = Model::default();
    for (index, (operation, is_second)) in operations.iter().enumerate() {
        let ctx = &processes[usize::from(*is_second)];
        let place = format!("{operation:?} as number {index} of {operations:?}");
        let number = index as u64;
        if scene.claims().is_none() && needs_update(*operation) {
            continue;
        }
        let answer = answer_of(act(&scene, ctx, *operation, number, &model).await);
        let expected = model.apply(*operation, number, scene.world.now());
        assert_eq!(Some(answer), expected, "{place}");
        // The other process serves this one, so that neither can rely on its cache alone.
        compare(&scene, &processes[usize::from(!is_second)], &mut model, &place).await;
    }
}

/// Whether a client without an update could not send this.
fn needs_update(operation: Operation) -> bool {
    matches!(operation, Operation::Append | Operation::Renew | Operation::Complete(_) | Operation::Cancel)
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        2 => Just(Operation::Create),
        1 => any::<bool>().prop_map(|force| Operation::Remove { force }),
        5 => Just(Operation::Begin),
        9 => Just(Operation::Append),
        2 => Just(Operation::Renew),
        2 => prop_oneof![Just(Outcome::Succeeded), Just(Outcome::Failed)].prop_map(Operation::Complete),
        2 => Just(Operation::Cancel),
        2 => Just(Operation::Import),
        1 => Just(Operation::Encrypt),
        2 => (0..200u64).prop_map(|seconds| Operation::Wait { seconds }),
        1 => (-1..=1i8).prop_map(|ticks_behind| Operation::WaitForLease { ticks_behind }),
    ]
}

proptest! {
    #![proptest_config(Config { cases: 150, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_stack_behaves_like_its_model(operations in prop::collection::vec((operation(), any::<bool>()), 1..40)) {
        // Without a stack there is little to test, so there usually is one.
        let operations = std::iter::once((Operation::Create, false)).chain(operations).collect();
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run(operations));
    }
}

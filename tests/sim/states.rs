//! Goal: whichever call of a use case of Terraform states fails, in whichever way, for however long: a repeated
//! request has the effect of one, and nothing acknowledged is lost.
//!
//! Method: as in [`super::faults`], with the requests of a run (a lock, a write, an unlock) and those of people.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use statewright_shared::context::Context;
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::{InputName, Login, OrgName, OutputName, StateAddress, TokenName};
use statewright_shared::domain::role::Right;
use statewright_shared::domain::tfstate::{Ends, LabelKey, LabelPolicy, LabelValue, LockInfo};
use statewright_shared::layout::{
    DeletedState, FormerStateName, StateEntry, StateGraph, StateHead, StateLock, StateSchemas, StateVersion,
    StoredLabelPolicy, Token, User,
};
use statewright_shared::ports::{BlobKey, Blobs as _, Timestamp};
use statewright_shared::services::Error;
use statewright_shared::services::caller::Caller;
use statewright_shared::services::error::StateError;
use statewright_shared::services::maintenance::sweep;
use statewright_shared::services::states::dependencies::{Filter, Named, NewEdge};
use statewright_shared::services::states::label_policy;
use statewright_shared::services::states::versions::StateVersionRef;
use statewright_shared::services::states::{self, Beginning, Edit, StateRef};
use statewright_shared::services::store::compression::gunzip;
use statewright_shared::settings::StateLimits;

use super::repeats;
use super::world::{Delay, World, sha256};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Create,
    Lock,
    Write(u64),
    WriteUnlocked(u64),
    Reject,
    Unlock,
    Break,
    Rename,
    Remove,
    Undelete,
    Restore,
    CreateOther,
    Connect,
    Mock,
    Disconnect,
    Label,
    Infer,
    SetPolicy,
}

fn label(key: &str) -> LabelKey {
    LabelKey::parse(key).unwrap()
}

struct Scene {
    world: World,
    caller: Caller,
    id: StateId,
    address: StateAddress,
    /// The state that reads an output of the first.
    other: StateId,
}

fn text(serial: u64) -> Bytes {
    format!(
        r#"{{"version":4,"serial":{serial},"lineage":"a","outputs":{{"o":{{"value":"x","type":"string"}}}},"resources":[
            {{"type":"t","name":"n{serial}","instances":[{{"attributes":{{"text":"{}"}}}}]}}]}}"#,
        // Long enough that it does not fit into an item.
        sha256(&serial.to_be_bytes()).repeat(4)
    )
    .into()
}

impl Scene {
    fn new() -> Self {
        let org = OrgName::parse("acme").unwrap();
        let (login, created) = (Login::parse("alice").unwrap(), Timestamp(0));
        let name = TokenName::parse("laptop").unwrap();
        let user = User { orgs: vec![org], ..User::new(login.clone(), created) };
        let token = Token::personal(login, name, created);
        let caller = Caller::new(user, token).asking_for(Right::Member);
        let id = StateId::parse("019b7c3a-0000-7000-8000-000000000001").unwrap();
        let address = StateAddress::parse("acme", "net", None).unwrap();
        let other = StateId::parse("019b7c3a-0000-7000-8000-000000000002").unwrap();
        Self { world: World::memory(), caller, id, address, other }
    }

    fn org(&self) -> &OrgName {
        &self.address.org
    }

    fn edge(&self, producer: StateId, consumer: StateId) -> NewEdge {
        let output = OutputName::parse("o").unwrap();
        NewEdge {
            producer: StateRef::Id(producer),
            output,
            consumer: StateRef::Id(consumer),
            input: None,
            mock: None,
        }
    }

    /// All edges. The graph's item counts them.
    async fn edges(&self) -> Vec<Named> {
        let ctx = self.world.process("reader");
        let filter = Filter::default();
        let list = states::dependencies::list(&ctx, &self.caller, self.org(), &filter, None);
        let (edges, _) = Box::pin(list).await.unwrap();
        let graph: Option<StateGraph> = self.world.read(&StateGraph::key(self.org())).await;
        assert_eq!(graph.map_or(0, |graph| graph.edge_count), edges.len() as u64);
        edges
    }

    /// Takes a step. The future of one is large.
    fn act(&self, ctx: &Context, step: Step) -> Pin<Box<impl Future<Output = Result<(), Error>>>> {
        Box::pin(self.take(ctx, step))
    }

    async fn take(&self, ctx: &Context, step: Step) -> Result<(), Error> {
        let (caller, state) = (&self.caller, &StateRef::Id(self.id));
        let info = LockInfo { id: "run".to_owned(), ..LockInfo::default() };
        match step {
            Step::Create => {
                let beginning = Beginning { id: Some(self.id), ..Beginning::default() };
                let made = states::create(ctx, caller, &self.address, &beginning).await?;
                assert_eq!(made.id, self.id);
            }
            Step::Lock => drop(states::locks::lock(ctx, caller, state, &info, &StateLimits::SERVER).await?),
            Step::Write(serial) => {
                drop(states::writes::write(ctx, caller, state, Some("run"), text(serial), || Ok(())).await?);
            }
            Step::WriteUnlocked(serial) => {
                drop(states::writes::write(ctx, caller, state, None, text(serial), || Ok(())).await?);
            }
            Step::Reject => {
                match states::writes::write(ctx, caller, state, Some("other"), text(99), || Ok(())).await {
                    Err(Error::State(StateError::WriteRefused { .. })) => {}
                    Err(error) => return Err(error),
                    Ok(written) => panic!("it was accepted: {written:?}"),
                }
            }
            Step::Unlock => drop(states::locks::unlock(ctx, caller, state, Some("run")).await?),
            Step::Break => drop(states::locks::unlock(ctx, caller, state, None).await?),
            Step::Rename => {
                let address = StateAddress::parse("acme", "net", Some("prod")).ok();
                drop(states::edit(ctx, caller, state, &Edit { address, ..Edit::default() }).await?);
            }
            Step::Remove => drop(states::delete(ctx, caller, state, true).await?),
            Step::Undelete => drop(states::undelete(ctx, caller, self.id).await?),
            Step::Restore => {
                drop(states::writes::restore(ctx, caller, state, &StateVersionRef::Version(1)).await?);
            }
            Step::CreateOther => {
                let address = StateAddress::parse("acme", "other", None).unwrap();
                let beginning = Beginning { id: Some(self.other), ..Beginning::default() };
                drop(states::create(ctx, caller, &address, &beginning).await?);
            }
            Step::Connect => {
                drop(
                    states::dependencies::add(ctx, caller, self.org(), &self.edge(self.id, self.other))
                        .await?,
                );
            }
            Step::Mock => {
                let edge = self.edges().await.pop().unwrap().edge.id;
                drop(
                    states::dependencies::set_mock(ctx, caller, self.org(), edge, Some("[1]".to_owned()))
                        .await?,
                );
            }
            Step::Disconnect => {
                let output = OutputName::parse("o").unwrap();
                let input = InputName::parse("net_o").unwrap();
                let ends = Ends { producer: self.id, output, consumer: self.other, input };
                drop(states::dependencies::remove(ctx, caller, self.org(), ends.id()).await?);
            }
            Step::Label => {
                let labels = [(label("env"), Some(LabelValue::Bool(true)))].into();
                drop(states::edit(ctx, caller, state, &Edit { labels, ..Edit::default() }).await?);
            }
            Step::Infer => {
                let edit = states::schemas::Edit { infer: Some(true), ..states::schemas::Edit::default() };
                drop(states::schemas::edit(ctx, caller, state, &edit).await?);
            }
            Step::SetPolicy => {
                let policy = LabelPolicy { max_keys: 3, ..LabelPolicy::default() };
                drop(label_policy::replace(ctx, caller, &self.address.org, 0, policy).await?);
            }
        }
        Ok(())
    }

    async fn head(&self) -> Option<StateHead> {
        self.world.read(&StateHead::key(self.id)).await
    }

    async fn holder(&self) -> Option<String> {
        let lock: Option<StateLock> = self.world.read(&StateLock::key(self.id)).await;
        lock?.holder.map(|holder| holder.info.id)
    }

    /// What must be true at any moment.
    async fn check(&self) {
        let Some(head) = self.head().await else { return };
        for version in 1..=head.version {
            let record: StateVersion = self
                .world
                .read(&StateVersion::key(self.id, version))
                .await
                .expect("I2: versions are dense up to the head");
            assert_eq!(record.version, version);
            let key = BlobKey::parse(&record.kept.blob).unwrap();
            let blob =
                self.world.blobs_in_memory().get(&key).await.unwrap().expect("a version's blob is there");
            let blob = blob.into_bytes().await.unwrap();
            assert_eq!(
                sha256(&blob),
                record.kept.blob_sha256,
                "I2: a version's bytes are those that were written"
            );
            if version == head.version {
                assert_eq!(Some(record.kept), head.current, "the head has the newest version");
                let are_judged = record.outputs.iter().all(|output| output.validity.is_some());
                assert_eq!(are_judged, head.has_schemas, "the newest is checked against the schemas");
            }
        }
        let above: Option<StateVersion> =
            self.world.read(&StateVersion::key(self.id, head.version + 1)).await;
        assert_eq!(above, None, "I2: no version is above the head");
        let name = self.world.read(&StateEntry::key(&head.address)).await;
        let leads_here = name.map(|entry: StateEntry| (entry.id, entry.version, entry.labels));
        assert_eq!(leads_here, head.deleted.is_none().then_some((self.id, head.version, head.labels)));
        let removed = self.world.read(&DeletedState::key(&head.address, self.id)).await;
        assert_eq!(removed.map(|it: DeletedState| it.at), head.deleted, "the list of deleted states has it");
        // A state keeps all its former names, and a deleted one its last.
        let has_left = head.address != self.address || head.deleted.is_some();
        let former: Option<FormerStateName> = self.world.read(&FormerStateName::key(&self.address)).await;
        if has_left && head.version > 0 {
            assert_eq!(former.map(|former| former.id), Some(self.id), "its old name leads to it");
        }
        let schemas: Option<StateSchemas> = self.world.read(&StateSchemas::key(self.id)).await;
        assert_eq!(schemas.is_some(), head.has_schemas);
    }

    /// What is true when a step was done after these.
    async fn check_done(&self, prior: &[Step], step: Step) {
        let head = self.head().await.unwrap();
        let writes = |step: &&Step| matches!(step, Step::Write(_) | Step::WriteUnlocked(_));
        let before = prior.iter().filter(writes).count() as u64;
        match step {
            Step::Create | Step::Undelete => assert_eq!(head.deleted, None),
            Step::Lock => assert_eq!(self.holder().await.as_deref(), Some("run")),
            Step::Unlock | Step::Break => assert_eq!(self.holder().await, None),
            Step::Write(serial) | Step::WriteUnlocked(serial) => {
                assert_eq!(head.version, before + 1, "I5: a write that is repeated is one version");
                let ctx = self.world.process("reader");
                let gzip =
                    states::versions::current_gzip(&ctx, &self.caller, &StateRef::Id(self.id)).await.unwrap();
                assert_eq!(gunzip(&gzip.unwrap()).unwrap(), text(serial), "I3: byte for byte");
            }
            Step::Reject => {
                let ctx = self.world.process("reader");
                let rejected =
                    states::versions::rejected(&ctx, &self.caller, &StateRef::Id(self.id)).await.unwrap();
                let [(_, rejected)] = &rejected[..] else { panic!("{rejected:?}") };
                let key = BlobKey::parse(&rejected.kept.blob).unwrap();
                assert!(self.world.blobs_in_memory().get(&key).await.unwrap().is_some());
                assert_eq!(head.version, before);
            }
            Step::Rename => assert_eq!(head.address.state.as_str(), "prod"),
            Step::Remove => assert!(head.deleted.is_some()),
            Step::Restore => assert!(head.version > before),
            Step::CreateOther => {}
            Step::Connect | Step::Mock => {
                let [Named { edge, .. }] = &self.edges().await[..] else { panic!("I5: one edge") };
                assert_eq!((edge.ends.producer, edge.ends.consumer), (self.id, self.other));
                assert_eq!(edge.mock.as_deref(), (step == Step::Mock).then_some("[1]"));
            }
            Step::Disconnect => assert_eq!(self.edges().await, []),
            Step::Label => assert!(head.labels.contains_key(&label("env"))),
            Step::Infer => {
                let schemas: StateSchemas = self.world.read(&StateSchemas::key(self.id)).await.unwrap();
                assert_eq!(schemas.outputs.len(), usize::from(head.version > 0));
            }
            Step::SetPolicy => {
                let key = StoredLabelPolicy::key(&self.address.org);
                let stored: StoredLabelPolicy = self.world.read(&key).await.unwrap();
                assert_eq!((stored.version, stored.policy.max_keys), (1, 3), "I5: it is replaced once");
            }
        }
    }
}

impl repeats::Scene for Scene {
    type Step = Step;

    fn new() -> Self {
        Self::new()
    }

    fn world(&self) -> &World {
        &self.world
    }

    async fn act(&self, process: &Context, step: Step) -> Result<(), Error> {
        Self::act(self, process, step).await
    }

    async fn check(&self) {
        Self::check(self).await;
    }

    async fn check_done(&self, prior: &[Step], step: Step) {
        Self::check_done(self, prior, step).await;
    }

    fn is_answer_to_repeat(step: Step, error: &Error) -> bool {
        matches!(
            (step, error),
            (Step::Remove, Error::State(StateError::NotFound(_)))
                | (Step::Disconnect, Error::State(StateError::NoDependency(_)))
        )
    }
}

const HELD: [Step; 3] = [Step::Create, Step::Lock, Step::Write(1)];

const TWO: [Step; 2] = [Step::Create, Step::CreateOther];

const CONNECTED: [Step; 3] = [Step::Create, Step::CreateOther, Step::Connect];

const CASES: [(&[Step], Step); 21] = [
    (&TWO, Step::Connect),
    (&CONNECTED, Step::Mock),
    (&CONNECTED, Step::Disconnect),
    (&[], Step::Create),
    (&[Step::Create], Step::Lock),
    (&[Step::Create, Step::Lock], Step::Write(1)),
    (&HELD, Step::Write(2)),
    (&[Step::Create, Step::WriteUnlocked(1)], Step::WriteUnlocked(2)),
    (&[Step::Create, Step::WriteUnlocked(1)], Step::Reject),
    (&HELD, Step::Unlock),
    (&HELD, Step::Break),
    (&[Step::Create, Step::WriteUnlocked(1)], Step::Rename),
    (&[Step::Create, Step::WriteUnlocked(1), Step::Rename], Step::Remove),
    (&[Step::Create, Step::WriteUnlocked(1)], Step::Remove),
    (&[Step::Create, Step::WriteUnlocked(1), Step::Remove], Step::Undelete),
    (&[Step::Create, Step::WriteUnlocked(1), Step::WriteUnlocked(2)], Step::Restore),
    (&HELD, Step::Label),
    (&HELD, Step::Infer),
    (&[Step::Create], Step::SetPolicy),
    (&[Step::Create, Step::Infer, Step::Lock], Step::Write(1)),
    (&[Step::Create, Step::Label, Step::WriteUnlocked(1)], Step::Infer),
];

#[tokio::test]
async fn i3_acked_kept_i5_repeatable_states_survive_every_fault() {
    repeats::survive_every_fault::<Scene>(&CASES).await;
}

#[tokio::test]
async fn a_late_commit_of_a_state_counts_once() {
    for (prior, step) in CASES {
        'commits: for nth in 1.. {
            for calls_later in 1..=4 {
                let scene = Scene::new();
                let process = scene.world.process("first");
                for step in prior {
                    scene.act(&process, *step).await.unwrap();
                }
                let delay = Arc::new(Delay::new(nth, calls_later));
                let process = scene.world.belated("first", &delay);
                let done = scene.act(&process, step).await;
                done.unwrap_or_else(|error| panic!("{step:?}, commit {nth}, {calls_later} later: {error:?}"));
                scene.check().await;
                Box::pin(scene.check_done(prior, step)).await;
                if !delay.was_met() {
                    assert!(nth > 1, "a use case without a commit has nothing to delay");
                    break 'commits;
                }
            }
        }
    }
}

/// I1 one-writer: of racing runs, with pauses at every call, each writes only under its lock.
#[tokio::test]
async fn i1_one_writer_racing_runs_of_a_state_take_turns() {
    for seed in 0..20 {
        let scene = Scene::new();
        scene.act(&scene.world.process("first"), Step::Create).await.unwrap();
        let dice = Arc::new(super::world::Dice::new(seed));
        let run = async |name: &str| {
            let ctx = scene.world.jittery(name, None, &dice);
            let (caller, state) = (&scene.caller, &StateRef::Id(scene.id));
            let info = LockInfo { id: name.to_owned(), ..LockInfo::default() };
            loop {
                match states::locks::lock(&ctx, caller, state, &info, &StateLimits::SERVER).await {
                    Ok(_) => break,
                    Err(Error::State(StateError::Locked(_))) => dice.pause(8).await,
                    Err(error) => panic!("{error:?}"),
                }
            }
            let before = states::locate(&ctx, caller, state).await.unwrap().head.value.version;
            let serial = before + 1;
            let written = states::writes::write(&ctx, caller, state, Some(name), text(serial), || Ok(()))
                .await
                .unwrap();
            assert_eq!(written.version, serial, "only the holder of the lock wrote");
            states::locks::unlock(&ctx, caller, state, Some(name)).await.unwrap();
        };
        futures::join!(run("one"), run("two"), run("three"));
        scene.check().await;
        assert_eq!((scene.head().await.unwrap().version, scene.holder().await), (3, None), "seed {seed}");
    }
}

/// Of two edges that make a cycle together, whichever is first, one is refused.
#[tokio::test]
async fn two_edges_at_once_make_no_cycle() {
    let mut firsts = 0;
    for seed in 0..40 {
        let scene = Scene::new();
        for step in TWO {
            scene.act(&scene.world.process("first"), step).await.unwrap();
        }
        let dice = Arc::new(super::world::Dice::new(seed));
        let add = async |name: &str, producer, consumer| {
            let ctx = scene.world.jittery(name, None, &dice);
            states::dependencies::add(&ctx, &scene.caller, scene.org(), &scene.edge(producer, consumer)).await
        };
        let (one, other) =
            futures::join!(add("one", scene.id, scene.other), add("two", scene.other, scene.id));
        let refused = match (&one, &other) {
            (Ok(_), Err(refused)) => {
                firsts += 1;
                refused
            }
            (Err(refused), Ok(_)) => refused,
            both => panic!("seed {seed}: {both:?}"),
        };
        assert!(matches!(refused, Error::State(StateError::Cycle(_))), "{refused:?}");
        assert_eq!(scene.edges().await.len(), 1);
    }
    assert!((1..40).contains(&firsts), "either may be first: {firsts}");
}

/// An erased state has no edges left, even if one was added at the moment of its deletion.
#[tokio::test]
async fn erasing_a_state_deletes_its_edges() {
    let mut added = 0;
    for seed in 0..40 {
        let scene = Scene::new();
        for step in TWO {
            scene.act(&scene.world.process("first"), step).await.unwrap();
        }
        let dice = Arc::new(super::world::Dice::new(seed));
        let [adds, removes] = ["adds", "removes"].map(|name| scene.world.jittery(name, None, &dice));
        let (connected, removed) =
            futures::join!(scene.act(&adds, Step::Connect), scene.act(&removes, Step::Remove));
        removed.unwrap();
        match connected {
            Ok(()) => added += 1,
            Err(error) => assert!(matches!(error, Error::State(StateError::NotFound(_))), "{error:?}"),
        }
        let ctx = scene.world.process("sweeper");
        scene.world.clock.advance(ctx.settings.retention.deleted + Duration::from_secs(60));
        while sweep::sweep(&ctx).await.unwrap().more {}
        assert_eq!(scene.head().await, None, "it is erased");
        assert_eq!(scene.edges().await, []);
    }
    assert!((1..40).contains(&added), "either may be first: {added}");
}

//! Goal: on AWS, whatever fails between several processes and the store, and whichever of them dies when, what
//! was acknowledged is published (I3), once (I2, I5), by one writer (I1), and nothing after the seal (I4); what
//! is published is whole (I6).
//!
//! Method: 16 clients of four processes that share only a table, a bucket and a key. One request to AWS in
//! eight fails: refused before it is done, failed, its answer lost, or done late, after its sender has
//! continued. Processes die between any two requests, with all their work, and new ones replace them. A client
//! without an answer repeats its request, as the real one does. The seed decides the faults, and the order of
//! requests decides who meets them: a failed seed need not fail again. It is printed all the same.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use statewright_shared::context::Context;
use statewright_shared::domain::update::{LEASE, NotNow};
use statewright_shared::layout::StackVersion;
use statewright_shared::services::error::UpdateError;
use statewright_shared::services::{Error, stacks};
use statewright_tests::aws::{Gateway, StandIn};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::scene::{Scene, Step};
use super::world::{Dice, World};

const PROCESSES: usize = 4;

/// Seeds of each run; one takes some seconds.
const SEEDS: u64 = 3;

/// One in this many requests to AWS fails.
const WRONG_ONE_IN: u32 = 8;

/// The missing answers after which a client gives up, as the real one does some day.
const ATTEMPTS_MAX: u32 = 60;

struct Fleet {
    scene: Scene,
    processes: Vec<Process>,
    dice: Dice,
    /// Whether the clients are done.
    is_quiet: watch::Sender<bool>,
}

/// The slot of a process, and the proxy between it and AWS.
struct Process {
    gateway: Gateway,
    now: Mutex<Arc<Alive>>,
}

/// One process until it dies.
struct Alive {
    context: Context,
    death: Notify,
    is_dead: Mutex<bool>,
}

impl Fleet {
    async fn new(seed: u64) -> Self {
        let scene = Scene::new(World::aws().await);
        let mut processes = Vec::new();
        for number in 0..PROCESSES {
            let gateway = Gateway::before(StandIn::of_this_process()).await;
            let now = Mutex::new(Arc::new(start(&scene, &gateway, &format!("{number}.0")).await));
            processes.push(Process { gateway, now });
        }
        Self { scene, processes, dice: Dice::new(seed), is_quiet: watch::Sender::new(false) }
    }

    /// A number below `bound`.
    fn roll(&self, bound: usize) -> usize {
        usize::try_from(self.dice.roll(bound as u64)).unwrap()
    }

    fn process(&self, number: usize) -> &Process {
        &self.processes[number % PROCESSES]
    }

    /// Sends a request to one process after the other until it is answered.
    async fn send(&self, client: usize, step: Step) -> Result<(), Error> {
        for attempt in 0..ATTEMPTS_MAX {
            let process = self.process(client + attempt as usize);
            let alive = Arc::clone(&process.now.lock().unwrap());
            let answer = tokio::select! {
                answer = self.scene.act(&alive.context, step) => answer,
                () = alive.died() => continue,
            };
            match answer {
                // 503: the client retries.
                Err(Error::Port(_) | Error::Contended(_)) => {}
                answer => return answer,
            }
        }
        panic!("client {client} was not answered: {step:?}");
    }

    /// Waits until some more requests have come to a process, below this number of them, or no more will come.
    async fn pause(&self, client: usize, bound: usize) {
        let requests = self.roll(bound);
        let mut is_quiet = self.is_quiet.subscribe();
        tokio::select! {
            () = self.process(client).gateway.sees_more(requests) => {}
            _ = is_quiet.wait_for(|is_quiet| *is_quiet) => {}
        }
    }

    async fn append(&self, client: usize, from: u64) {
        for number in from..from + 4 {
            match self.send(client, Step::Append(number)).await {
                Ok(()) => {}
                Err(Error::Update(UpdateError::Fenced(_))) => return,
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    async fn renew(&self, client: usize) {
        for _ in 0..4 {
            match self.send(client, Step::Renew).await {
                Ok(()) => {}
                Err(Error::Update(UpdateError::Fenced(_))) => return,
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    /// Ends the update: by a complete, a cancel, or a request that finds it, in one case out of two after its
    /// lease.
    async fn end(&self, client: usize, step: Step) {
        self.pause(client, 30).await;
        if step == Step::Meet && self.roll(2) == 0 {
            self.scene.world.clock.advance(LEASE + Duration::from_nanos(1));
        }
        match self.send(client, step).await {
            Ok(())
            | Err(
                Error::Update(UpdateError::Fenced(_))
                | Error::Update(UpdateError::NotNow(NotNow::Over { .. }))
                | Error::Update(UpdateError::NothingToCancel { .. }),
            ) => {}
            Err(other) => panic!("{step:?}: {other:?}"),
        }
    }

    /// Kills one process after the other, and starts another in its place.
    async fn kill(&self) {
        for life in 1..=6 {
            let number = self.roll(PROCESSES);
            self.pause(number, 12).await;
            let process = self.process(number);
            let next = Arc::new(start(&self.scene, &process.gateway, &format!("{number}.{life}")).await);
            let last = std::mem::replace(&mut *process.now.lock().unwrap(), next);
            *last.is_dead.lock().unwrap() = true;
            last.death.notify_waiters();
        }
    }

    async fn calm(&self) {
        for process in &self.processes {
            process.gateway.calm().await;
        }
    }
}

async fn start(scene: &Scene, gateway: &Gateway, name: &str) -> Alive {
    let context = scene.world.process_behind(name, &gateway.url).await;
    Alive { context, death: Notify::new(), is_dead: Mutex::new(false) }
}

impl Alive {
    async fn died(&self) {
        let death = self.death.notified();
        // Checked after the wait began, so that no death is missed.
        if !*self.is_dead.lock().unwrap() {
            death.await;
        }
    }
}

async fn race(seed: u64) {
    let fleet = Arc::new(Fleet::new(seed).await);
    for step in [Step::CreateStack, Step::Begin, Step::Append(1), Step::Complete, Step::Begin] {
        fleet.send(0, step).await.unwrap();
    }
    let update = fleet.scene.claims().unwrap();
    for (number, process) in fleet.processes.iter().enumerate() {
        process.gateway.play_by_chance(seed * 100 + number as u64, WRONG_ONE_IN);
    }

    let (mut busy, mut ending) = (JoinSet::new(), JoinSet::new());
    let ends = [Step::Complete, Step::Complete, Step::Cancel, Step::Meet];
    for client in 0..10 {
        let fleet = Arc::clone(&fleet);
        busy.spawn(async move { fleet.append(client, 100 + 10 * client as u64).await });
    }
    for client in 10..12 {
        let fleet = Arc::clone(&fleet);
        busy.spawn(async move { fleet.renew(client).await });
    }
    for (client, step) in (12..16).zip(ends) {
        let fleet = Arc::clone(&fleet);
        ending.spawn(async move { fleet.end(client, step).await });
    }
    let killer = tokio::spawn({
        let fleet = Arc::clone(&fleet);
        async move { fleet.kill().await }
    });
    busy.join_all().await;
    fleet.is_quiet.send_replace(true);
    ending.join_all().await;
    killer.abort();
    fleet.calm().await;

    let scene = &fleet.scene;
    assert_eq!(scene.claims().unwrap().update, update.update);
    scene.check().await;
    scene.finish().await;
    let last = scene.world.process("reader");
    let view = stacks::get(&last, &scene.caller, &scene.address).await.unwrap();
    assert_eq!(view.head.version, 3, "one version for each update");
    for number in 1..=3 {
        let version: StackVersion = scene.world.read(&StackVersion::key(update.stack, number)).await.unwrap();
        assert_eq!((version.integrity_error, version.skipped), (None, Vec::new()), "I6");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i1_to_i6_hold_for_16_clients_while_processes_and_aws_fail() {
    for seed in 0..SEEDS {
        println!("seed {seed}");
        Box::pin(race(seed)).await;
    }
}

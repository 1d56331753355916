//! `bench bill`: what a user's work costs on AWS, at public list prices.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;
use statewright_shared::adapters::aws::Names;
use statewright_shared::adapters::{ManualClock, SystemClock, SystemIds};
use statewright_shared::context::Context;
use statewright_shared::ports::Clock;
use statewright_shared::services::maintenance::sweep::sweep;
use statewright_tests::app::{SeenRequest, TestApp};
use statewright_tests::aws::{self, Gateway, StandIn};
use statewright_tests::cli::PulumiCli;
use statewright_tests::meter::{Stored, Usage};

use crate::month::{AUDIT_DAYS, BLOB_DAYS, EVENT_DAYS, Idle, LOG_DAYS, Month, Trail, Work};
use crate::person;
use crate::serving::{self, Things};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The number of resources; may be given several times
    #[arg(long = "size", value_name = "RESOURCES", default_values = ["10", "100", "200", "1000"])]
    sizes: Vec<usize>,
    /// Bytes of output that each resource carries in the state
    #[arg(long, default_value_t = 1024)]
    payload_bytes: u32,
    /// One in this many resources has a secret
    #[arg(long, default_value_t = 10)]
    secret_every: u32,
    /// The number of processes that share the store; requests go to each in turn
    #[arg(long, default_value_t = 1)]
    processes: usize,
    /// Also show the cost of each kind of call
    #[arg(long)]
    detail: bool,
    /// Leave out everything after the first `up` and the one that changes nothing
    #[arg(long)]
    only_up: bool,
    /// Compute the month of a team of 50 instead: 500 stacks, 300 ups of 150 resources a day
    #[arg(long)]
    team: bool,
}

/// Our own limits, in dollars: the work, the resources, the limit.
const LIMITS: [(&str, usize, f64); 3] =
    [("up", 200, 0.0004), ("up", 1_000, 0.0015), ("up, no change", 10_000, 0.0035)];

/// The same with the functions that serve it.
const SERVED_LIMITS: [(&str, usize, f64); 2] = [("up", 200, 0.0006), ("up", 1_000, 0.0025)];

/// The largest first `up` with the client's default settings. In addition to its journal the client keeps a
/// copy of the state, which it writes whole, to nowhere, after each step that changed something
/// (`DiscardPersister` in `pkg/backend/httpstate/backend.go`, v3.274.1): that takes hours for 10,000 resources,
/// so a larger `up` turns it off.
const QUADRATIC: usize = 2_000;

/// Sweeps of a server in a month of 30 days.
const SWEEPS_A_MONTH: u64 = 30 * 24 * 60;

/// The resources of a project of the team, the bytes of each, and one in how many has a secret.
const TEAM_PROJECT: [&str; 3] = ["150", "1024", "10"];

/// A price list: dollars for a million of each thing, by its name in [`Usage::billed`] and in everything else
/// that is counted, and for a month of storage.
#[derive(Debug, Deserialize)]
pub(crate) struct Prices {
    region: String,
    as_of: String,
    per_million: BTreeMap<String, f64>,
    per_month: BTreeMap<String, f64>,
}

impl Prices {
    pub(crate) fn load() -> io::Result<Self> {
        Ok(serde_json::from_str(include_str!("prices.json"))?)
    }

    /// The dollars for storing this for a month.
    pub(crate) fn of_month(&self, name: &str, count: f64) -> io::Result<f64> {
        let unknown = || io::Error::other(format!("prices.json has no price for a month of {name}"));
        Ok(self.per_month.get(name).ok_or_else(unknown)? * count)
    }

    /// The dollars for these things.
    pub(crate) fn of(&self, things: &[(&'static str, f64)]) -> io::Result<f64> {
        things.iter().try_fold(0.0, |sum, (name, count)| {
            let unknown = || io::Error::other(format!("prices.json has no price for {name}"));
            Ok(sum + self.per_million.get(*name).ok_or_else(unknown)? * count / 1e6)
        })
    }
}

/// A store with its meter, a server on it, and a client.
struct Lane {
    gateway: Gateway,
    names: Names,
    app: TestApp,
    cli: PulumiCli,
    prices: Prices,
    detail: bool,
    /// Whether something cost more than its limit.
    is_over: AtomicBool,
}

/// Does all the work for each size, and prints its cost.
#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) async fn run(arguments: Arguments) -> io::Result<()> {
    let lane = Lane::new(&arguments).await?;
    println!(
        "{} bytes of payload, every {}th resource with a secret; list prices of {} as of {}",
        arguments.payload_bytes, arguments.secret_every, lane.prices.region, lane.prices.as_of
    );
    println!(
        "{:>9}  {:30} {:>8} {:>8} {:>8} {:>6} {:>6} {:>4} {:>11} {:>9} {:>8} {:>11} {:>9}",
        "resources",
        "work",
        "calls",
        "written",
        "read",
        "put",
        "got",
        "key",
        "dollars",
        "limit",
        "requests",
        "in all",
        "limit"
    );
    // On a store of its own, where nothing else was done today.
    let trail = Lane::new(&arguments).await?.trail().await?;
    let is_person_over = Lane::new(&arguments).await?.person().await?;
    if arguments.team {
        Box::pin(lane.team(trail)).await?;
    } else {
        for size in &arguments.sizes {
            lane.life(*size, &arguments).await?;
        }
        println!(
            "the audit trail of an `up` of {} and its preview, {} bytes: {:.7} to store, {:.7} to erase; \
             {:.7} to sign a day",
            TEAM_PROJECT[0], trail.bytes, trail.writing, trail.erasing, trail.signing
        );
        lane.idle().await?;
    }
    match is_person_over || lane.is_over.load(Ordering::Relaxed) {
        true => Err(io::Error::other("a limit is exceeded: the table has OVER next to it")),
        false => Ok(()),
    }
}

impl Lane {
    async fn new(arguments: &Arguments) -> io::Result<Self> {
        let stand_in = StandIn::of_this_process();
        let (_, names) = stand_in.fresh_store().await;
        let gateway = Gateway::before(stand_in).await;
        let app = TestApp::aws_fleet(&gateway.url, &names, arguments.processes).await;
        let cli =
            PulumiCli::new().backend(&app.url).token(&app.token).patience(Duration::from_secs(4 * 3600));
        let (prices, detail) = (Prices::load()?, arguments.detail);
        let lane = Self { gateway, names, app, cli, prices, detail, is_over: AtomicBool::new(false) };
        // The first command of a home asks for its user, and a server's first requests fill its caches.
        lane.cli.bench_project("warm", &[("count", "1"), ("secretEvery", "1")]);
        lane.cli.run(["stack", "init", "warm"]).await.assert_success();
        lane.cli.run(["up", "--yes", "--stack", "warm"]).await.assert_success();
        Ok(lane)
    }

    /// A stack of this many resources, from its first day to its last.
    async fn life(&self, size: usize, arguments: &Arguments) -> io::Result<()> {
        let settings =
            [size.to_string(), arguments.payload_bytes.to_string(), arguments.secret_every.to_string()];
        let [count, payload, secret_every] = &settings;
        self.cli.bench_project(
            "bill",
            &[("count", count), ("payloadBytes", payload), ("secretEvery", secret_every)],
        );
        let stack = format!("n{size}");
        self.work(size, "stack init", &["stack", "init", &stack]).await?;
        match size {
            0..=QUADRATIC => self.work(size, "up", &["up", "--yes", "--stack", &stack]).await?,
            _ => {
                let cli = self
                    .cli
                    .clone()
                    .env("PULUMI_EXPERIMENTAL", "true")
                    .env("PULUMI_SKIP_CHECKPOINTS", "true");
                self.work_of(&cli, size, "up, no checkpoints", &["up", "--yes", "--stack", &stack]).await?;
            }
        }
        let export = self.cli.run(["stack", "export", "--stack", &stack]).await.assert_success().json();
        let kept = export["deployment"]["resources"].as_array().map_or(0, Vec::len);
        if kept != size + 2 {
            return Err(io::Error::other(format!("{kept} resources in the state, not {}", size + 2)));
        }
        self.work(size, "up, no change", &["up", "--yes", "--stack", &stack]).await?;
        if arguments.only_up {
            return Ok(());
        }
        self.work(size, "preview", &["preview", "--stack", &stack]).await?;
        self.work(size, "refresh", &["refresh", "--yes", "--stack", &stack]).await?;
        self.work(size, "destroy", &["destroy", "--yes", "--stack", &stack]).await?;
        // Stored data costs once more when it is deleted.
        for (days, what) in [(1, "sweep, next day"), (91, "sweep, logs go"), (366, "sweep, events go")] {
            let before = self.usage();
            let clock = ManualClock::new(SystemClock.now().plus(Duration::from_secs(days * 24 * 3600)));
            self.sweep(Arc::new(clock)).await?;
            self.tell(size, what, &before, None)?;
        }
        Ok(())
    }

    /// The cost of an idle deployment: a server sweeps each minute, functions every five.
    async fn idle(&self) -> io::Result<()> {
        let before = self.usage();
        self.sweep(Arc::new(SystemClock)).await?;
        let sweep = self.gateway.usage() - before.all;
        let times = |times: u64| (0..times).fold(Usage::default(), |sum, _| sum + sweep);
        self.print(0, "a month of a server's sweeps", times(SWEEPS_A_MONTH), None)?;
        let served = serving::of_idle_month(&sweep);
        let sweeps = times(SWEEPS_A_MONTH / 5);
        let dollars = self.prices.of(&sweeps.billed())? + self.prices.of(&served)?;
        self.print(0, "a month of the sweep function", sweeps, Some(served))?;
        self.tell_idle(dollars).map(drop)
    }

    #[expect(clippy::print_stdout, reason = "a command's output")]
    fn tell_idle(&self, sweeps: f64) -> io::Result<Idle> {
        let idle = Idle::of(&self.prices, sweeps)?;
        println!(
            "a month of idle functions: {:.2}; from the third year on {:.2}; without metrics and alarms {:.2}",
            idle.first_year, idle.third_year, idle.bare
        );
        Ok(idle)
    }

    fn project_of_team(&self, name: &str) {
        let [size, payload, secret_every] = TEAM_PROJECT;
        self.cli.bench_project(
            name,
            &[("count", size), ("payloadBytes", payload), ("secretEvery", secret_every)],
        );
    }

    /// The cost of the audit trail of an `up` of the team and of its preview.
    async fn trail(&self) -> io::Result<Trail> {
        self.project_of_team("trail");
        self.cli.run(["stack", "init", "trail"]).await.assert_success();
        let (usage, stored) = (self.gateway.usage_of_audit(), self.gateway.stored_of_audit());
        self.cli.run(["preview", "--stack", "trail"]).await.assert_success();
        self.cli.run(["up", "--yes", "--stack", "trail"]).await.assert_success();
        let writing = self.prices.of(&(self.gateway.usage_of_audit() - usage).billed())?;
        let (bytes, all) = (self.gateway.stored_of_audit() - stored, self.gateway.stored_of_audit());
        let swept = async |after: f64| {
            let usage = self.gateway.usage_of_audit();
            let clock = ManualClock::new(SystemClock.now().plus(days(after)));
            self.sweep(Arc::new(clock)).await?;
            self.prices.of(&(self.gateway.usage_of_audit() - usage).billed())
        };
        let signing = swept(2.0).await?;
        // Of all records of the store, these have a part.
        let erasing = swept(AUDIT_DAYS + 3.0).await? * bytes as f64 / all as f64;
        let left = self.gateway.stored_of_audit();
        if left > 0 || signing <= 0.0 {
            return Err(io::Error::other(format!("{left} bytes of audit records are left")));
        }
        Ok(Trail { writing, erasing, signing, bytes })
    }

    /// An hour of a person at the console. Returns whether it costs more than its limit.
    #[expect(clippy::print_stdout, reason = "a command's output")]
    async fn person(&self) -> io::Result<bool> {
        let update = person::prepare(&self.app, &self.cli).await?;
        let before = self.gateway.usage();
        let requests = person::work(&self.app, &update).await?;
        let usage = self.gateway.usage() - before;
        let dollars =
            self.prices.of(&usage.billed())? + self.prices.of(&serving::of_requests(&requests, &usage))?;
        let is_over = dollars > person::LIMIT;
        println!(
            "an hour at the console, ten minutes of it watching an update: {} requests, {dollars:.6} dollars \
             (limit {}{})",
            requests.len(),
            person::LIMIT,
            if is_over { ", OVER" } else { "" }
        );
        Ok(is_over)
    }

    /// The month of a team of 50: the maximum, where every `up` creates everything, and the minimum, where none
    /// changes anything.
    #[expect(clippy::print_stdout, reason = "a command's output")]
    async fn team(&self, trail: Trail) -> io::Result<()> {
        let before = self.usage();
        self.sweep(Arc::new(SystemClock)).await?;
        let sweep = self.gateway.usage() - before.all;
        let sweeps = (0..SWEEPS_A_MONTH / 5).fold(Usage::default(), |sum, _| sum + sweep);
        let dollars = self.prices.of(&sweeps.billed())? + self.prices.of(&serving::of_idle_month(&sweep))?;
        let idle = self.tell_idle(dollars)?;
        self.project_of_team("team");
        println!(
            "{:44} {:>6} {:>9} {:>6} {:>6} {:>7} {:>6} {:>6} {:>5} {:>7} {:>11} {:>9}",
            "300 ups of 150 resources a day, after a year",
            "ups",
            "previews",
            "going",
            "GB",
            "table",
            "GB",
            "bucket",
            "idle",
            "in all",
            "the gateway",
            "the trail"
        );
        for (stack, what) in [("made", "everything created"), ("same", "nothing changes")] {
            self.cli.run(["stack", "init", stack]).await.assert_success();
            if stack == "same" {
                self.cli.run(["up", "--yes", "--stack", stack]).await.assert_success();
            }
            let preview = self.priced(&["preview", "--stack", stack]).await?;
            // Only what the next command leaves is counted.
            let later = SystemClock.now().plus(days(EVENT_DAYS + 2.0 * BLOB_DAYS));
            self.sweep(Arc::new(ManualClock::new(later))).await?;
            let up = self.priced(&["up", "--yes", "--stack", stack]).await?;
            let gateway = up.gateway + preview.gateway;
            let mut work =
                Work { up: up.dollars, preview: preview.dollars, gateway, trail, ..Work::default() };
            let mut at_most = up.left;
            let mut gone = Vec::new();
            // The days of a blob begin with the sweep that finds it unnamed, so each is a little later than the
            // one before.
            let steps = [LOG_DAYS, LOG_DAYS + BLOB_DAYS, EVENT_DAYS, EVENT_DAYS + BLOB_DAYS];
            for (after, slack) in steps.into_iter().zip([1.0, 3.0, 5.0, 7.0]) {
                let (there, usage) = (self.gateway.stored(), self.gateway.usage());
                let later = SystemClock.now().plus(days(after + slack));
                self.sweep(Arc::new(ManualClock::new(later))).await?;
                work.going += self.prices.of(&(self.gateway.usage() - usage).billed())?;
                let went = there - self.gateway.stored();
                at_most = at_most - went;
                gone.push(went);
            }
            work.version = at_most;
            if let [logs, blobs_of_logs, events, blobs_of_events] = gone[..] {
                work.log = Stored { table: logs.table, bucket: blobs_of_logs.bucket };
                work.events = Stored { table: events.table, bucket: blobs_of_events.bucket };
            }
            let month = Month::of(&self.prices, &work, idle.first_year)?;
            let (in_table, in_bucket) = month.gigabytes;
            println!(
                "{what:44} {:>6.2} {:>9.2} {:>6.2} {in_table:>6.2} {:>7.2} {in_bucket:>6.2} {:>6.2} {:>5.2} {:>7.2} \
                 {:>11.2} {:>9.2}",
                month.ups,
                month.previews,
                month.going,
                month.table,
                month.bucket,
                month.idle,
                month.in_all(),
                month.gateway,
                month.audit
            );
            println!("{:44} {work:?}", "");
        }
        Ok(())
    }

    /// The cost of a command with the functions that serve it, and what it leaves in the store.
    async fn priced(&self, command: &[&str]) -> io::Result<Priced> {
        let (before, stored) = (self.gateway.usage(), self.gateway.stored());
        self.app.take_seen();
        self.cli.run(command).await.assert_success();
        let usage = self.gateway.usage() - before;
        let served = serving::of_requests(&self.app.take_seen(), &usage);
        let dollars = self.prices.of(&usage.billed())? + self.prices.of(&served)?;
        let of_gateway = served.iter().copied().filter(|(name, _)| *name == "http_api_request");
        let gateway = self.prices.of(&of_gateway.collect::<Vec<_>>())?;
        Ok(Priced { dollars, gateway, left: self.gateway.stored() - stored })
    }

    /// Sweeps until nothing is due, as a process with this time.
    async fn sweep(&self, clock: Arc<dyn Clock>) -> io::Result<()> {
        let (chance, patience) = (Arc::new(SystemIds), Arc::new(SystemClock));
        let store =
            aws::store(&self.gateway.url, &self.names, patience, Arc::<SystemIds>::clone(&chance)).await;
        let (ledger, blobs, keys) = (Arc::new(store.ledger), Arc::new(store.blobs), Arc::new(store.keys));
        let context = Context::new(ledger, blobs, keys, clock, chance, "sweep".to_owned());
        while sweep(&context).await.map_err(io::Error::other)?.more {}
        Ok(())
    }

    async fn work(&self, size: usize, what: &str, command: &[&str]) -> io::Result<()> {
        self.work_of(&self.cli, size, what, command).await
    }

    async fn work_of(&self, cli: &PulumiCli, size: usize, what: &str, command: &[&str]) -> io::Result<()> {
        let before = self.usage();
        self.app.take_requests();
        cli.run(command).await.assert_success();
        let requests = self.app.take_seen();
        self.tell(size, what, &before, Some(&requests))
    }

    fn usage(&self) -> Before {
        let (all, audit) = (self.gateway.usage(), self.gateway.usage_of_audit());
        Before { all, audit, operations: self.gateway.usage_by_operation() }
    }

    #[expect(clippy::print_stdout, reason = "a command's output")]
    fn tell(
        &self,
        size: usize,
        what: &str,
        before: &Before,
        requests: Option<&[SeenRequest]>,
    ) -> io::Result<()> {
        let Before { all, audit, operations } = self.usage();
        let (spent, audit) = (all - before.all, audit - before.audit);
        let served = requests.map(|requests| serving::of_requests(requests, &spent));
        self.print(size, what, spent, served)?;
        if audit != Usage::default() {
            self.print(size, "  of it, the audit trail", audit, None)?;
        }
        if self.detail {
            for (name, count) in usage_and(&spent, requests) {
                println!("{:>13}{name:30} {count:>14.3} {:>11.7}", "", self.prices.of(&[(name, count)])?);
            }
            for (name, count) in serving::by_group(requests.unwrap_or_default()) {
                println!("{:>13}requests to {name}: {count}", "");
            }
            let operations: BTreeMap<_, _> = operations.into_iter().collect();
            for (name, usage) in operations {
                let usage = usage - before.operations.get(&name).copied().unwrap_or_default();
                if usage.requests() > 0 {
                    let dollars = self.prices.of(&usage.billed())?;
                    println!("{:>13}{name:30} {} {dollars:>11.7}", "", columns(&usage));
                }
            }
        }
        Ok(())
    }

    #[expect(clippy::print_stdout, reason = "a command's output")]
    fn print(&self, size: usize, what: &str, usage: Usage, served: Option<Things>) -> io::Result<()> {
        let dollars = self.prices.of(&usage.billed())?;
        let compared = |limits: &[(&str, usize, f64)], dollars: f64| {
            let limit = limits.iter().find(|(work, resources, _)| *work == what && *resources == size);
            limit.map_or_else(String::new, |(_, _, limit)| {
                let is_over = dollars >= *limit;
                self.is_over.fetch_or(is_over, Ordering::Relaxed);
                format!("{limit:.4}{}", if is_over { " OVER" } else { "" })
            })
        };
        let limit = compared(&LIMITS, dollars);
        print!("{size:>9}  {what:30} {} {dollars:>11.7} {limit:>9}", columns(&usage));
        if let Some(things) = served {
            let requests = things.iter().find(|(name, _)| *name == "lambda_request").map_or(0.0, |it| it.1);
            let in_all = dollars + self.prices.of(&things)?;
            let limit = compared(&SERVED_LIMITS, in_all);
            print!(" {requests:>8} {in_all:>11.7} {limit:>9}");
        }
        println!();
        Ok(())
    }
}

/// The calls so far: all, those for the audit trail, and all by operation.
struct Before {
    all: Usage,
    audit: Usage,
    operations: HashMap<String, Usage>,
}

/// The cost of a command.
struct Priced {
    dollars: f64,
    /// Of these, the gateway's.
    gateway: f64,
    left: Stored,
}

fn days(days: f64) -> Duration {
    Duration::from_secs_f64(days * 24.0 * 3600.0)
}

/// Everything billed.
fn usage_and(usage: &Usage, requests: Option<&[SeenRequest]>) -> Things {
    let served = requests.map(|requests| serving::of_requests(requests, usage)).unwrap_or_default();
    usage.billed().into_iter().chain(served).collect()
}

fn columns(usage: &Usage) -> String {
    let [written, read, put, got, key] = usage.billed().map(|(_, count)| count);
    format!("{:>8} {written:>8} {read:>8} {put:>6} {got:>6} {key:>4}", usage.requests())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_counted_has_a_price() {
        let prices = Prices::load().unwrap();
        let usage = Usage { write_units: 1_000_000, s3_puts: 200_000, ..Usage::default() };
        let dollars = prices.of(&usage.billed()).unwrap();
        assert!((dollars - 1.625).abs() < 1e-9, "{dollars}");
        let functions =
            serving::of_requests(&[SeenRequest { line: "GET /api/user".to_owned(), bytes: 0 }], &usage);
        assert!(prices.of(&functions).unwrap() > 0.0, "serving has a price too");
        assert!(prices.of(&[("a thing that nobody sells", 1.0)]).is_err());
    }
}

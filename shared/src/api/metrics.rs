//! Metrics about requests, in the text format of Prometheus. Labels are rows of the route table and a few
//! fixed words, so requests cannot make their number grow.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::route::Route;
use crate::ports::Timestamp;
use crate::services::maintenance::sweep::Swept;

/// Upper bounds of the latency buckets, in seconds: an append takes a few milliseconds, a large import seconds.
const BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    method: &'static str,
    route: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    method: &'static str,
    route: &'static str,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Version {
    version: &'static str,
}

/// The metrics of a process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Family<OfRoute, Histogram>,
    request_bytes: Family<OfRoute, Counter>,
    answer_bytes: Family<OfRoute, Counter>,
    under_way: Gauge,
    refusals: Family<Why, Counter>,
    swept: Family<Ended, Counter>,
    updates_running: Gauge,
    memory_bytes: Gauge,
}

/// What is counted of one request.
pub(super) struct Seen {
    pub(super) route: Option<&'static Route>,
    /// The status; `None` if the client disconnected before the answer was ready.
    pub(super) status: Option<u16>,
    pub(super) duration: Duration,
    pub(super) request_bytes: u64,
    pub(super) answer_bytes: u64,
    pub(super) refused_for: Option<&'static str>,
}

impl Metrics {
    pub(super) fn new(started: Timestamp) -> Self {
        let mut registry = Registry::default();
        let start = Gauge::<f64, AtomicU64>::default();
        start.set(Duration::from_nanos(u64::try_from(started.0).unwrap_or(0)).as_secs_f64());
        let memory_bytes = Gauge::default();
        registry.register_with_unit(
            "process_start_time",
            "When the process started, since 1970",
            Unit::Seconds,
            start,
        );
        registry.register_with_unit(
            "process_resident_memory",
            "The memory of the process; 0 if the platform does not report it",
            Unit::Bytes,
            memory_bytes.clone(),
        );
        let own = registry.sub_registry_with_prefix("statewright");
        let build = Family::<Version, Gauge>::default();
        build.get_or_create(&Version { version: env!("CARGO_PKG_VERSION") }).set(1);
        own.register("build", "The program's version", build);
        let requests = Family::default();
        own.register(
            "requests",
            "Requests by the class of their answer; gone: the client disconnected first",
            requests.clone(),
        );
        let seconds = Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram);
        own.register_with_unit(
            "request_duration",
            "The time from a request's head to its answer's head",
            Unit::Seconds,
            seconds.clone(),
        );
        let request_bytes = Family::default();
        own.register_with_unit(
            "request_size",
            "The bodies of requests, as sent",
            Unit::Bytes,
            request_bytes.clone(),
        );
        let answer_bytes = Family::default();
        own.register_with_unit(
            "answer_size",
            "The bodies of answers, as sent",
            Unit::Bytes,
            answer_bytes.clone(),
        );
        let under_way = Gauge::default();
        own.register("requests_under_way", "Requests that are not answered yet", under_way.clone());
        let refusals = Family::default();
        own.register("refusals", "Refused requests by reason, for reasons worth watching", refusals.clone());
        let swept = Family::default();
        own.register("swept_updates", "Updates that a sweep ended, or failed to", swept.clone());
        let updates_running = Gauge::default();
        own.register("updates_running", "Running updates, without previews", updates_running.clone());
        Self {
            registry,
            requests,
            seconds,
            request_bytes,
            answer_bytes,
            under_way,
            refusals,
            swept,
            updates_running,
            memory_bytes,
        }
    }

    pub(super) fn begin(&self) {
        self.under_way.inc();
    }

    pub(super) fn end(&self, seen: &Seen) {
        self.under_way.dec();
        let (method, route) = seen.route.map_or(("-", "-"), |route| (route.method.as_str(), route.path));
        let status = match seen.status {
            Some(100..=299) => "2xx",
            Some(300..=399) => "3xx",
            Some(400..=499) => "4xx",
            Some(_) => "5xx",
            None => "gone",
        };
        self.requests.get_or_create(&Answered { method, route, status }).inc();
        let labels = OfRoute { method, route };
        self.seconds.get_or_create(&labels).observe(seen.duration.as_secs_f64());
        self.request_bytes.get_or_create(&labels).inc_by(seen.request_bytes);
        self.answer_bytes.get_or_create(&labels).inc_by(seen.answer_bytes);
        if let Some(reason) = seen.refused_for {
            self.refusals.get_or_create(&Why { reason }).inc();
        }
    }

    /// Counts the results of a sweep.
    pub fn swept(&self, swept: &Swept) {
        for (result, count) in [("ended", swept.ended), ("failed", swept.failed)] {
            self.swept.get_or_create(&Ended { result }).inc_by(count as u64);
        }
    }

    /// The metrics in the text format of Prometheus.
    pub(super) fn text(&self, updates_running: usize) -> String {
        self.updates_running.set(i64::try_from(updates_running).unwrap_or(i64::MAX));
        self.memory_bytes.set(resident_bytes().unwrap_or(0));
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            // Writing to a string does not fail.
            Err(_) => String::new(),
        }
    }
}

/// The process's resident memory, as Linux reports it.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

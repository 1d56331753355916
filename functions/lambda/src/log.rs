//! JSON lines on standard output, which the platform collects: events, audit records and metrics.
//!
//! A function handles one request at a time, so a line knows its request and the number of AWS calls made for
//! it. Each byte is billed, so lines omit what the log group implies and what nearly always holds: a line
//! without a level has the level INFO, one with a `route` is about a request, and one with `cold` is about
//! the first event of a process. A route is a method and a path, such as `PATCH {update}/journalentries`. The
//! stack of an update is in the audit record of its begin.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use statewright_shared::adapters::SystemClock;
use statewright_shared::adapters::aws::Clients;
use statewright_shared::api::audit::{AuditLog, Record};
use statewright_shared::ports::{Clock as _, Timestamp};
use statewright_traces::{NoCollector, Traces};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

/// A request waits for its spans to be sent, so this is short.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(1);

/// The log. Clones share their state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<State>);

#[derive(Debug, Default)]
struct State {
    clients: OnceLock<Clients>,
    current: Mutex<Current>,
}

/// The event being handled.
#[derive(Debug, Default)]
struct Current {
    request_id: Option<String>,
    calls_before: u64,
    events: u64,
}

impl Log {
    /// Starts logging, and sends spans to the trace collector at this address, if there is one.
    ///
    /// # Errors
    /// If the address is invalid.
    pub(crate) fn start(collector: Option<&str>) -> Result<(Self, Traces), NoCollector> {
        let log = Self::default();
        let (traces, spans) = statewright_traces::start(collector, COLLECTOR_TIMEOUT)?;
        let lines = log.clone().with_filter(filter_fn(is_logged));
        // Fails only in tests, where a subscriber is already set.
        let _ =
            tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines).with(spans));
        Ok((log, traces))
    }

    /// Adds the number of calls by these clients to later lines.
    pub(crate) fn counts(&self, clients: &Clients) {
        let _ = self.0.clients.set(clients.clone());
    }

    /// Starts an event.
    pub(crate) fn begin(&self, request_id: &str) {
        let calls_before = self.calls();
        let mut current = self.0.current.lock().unwrap_or_else(PoisonError::into_inner);
        let events = current.events + 1;
        *current = Current { request_id: Some(request_id.to_owned()), calls_before, events };
    }

    /// Writes metrics in CloudWatch's embedded format, which is read only from log groups of the standard
    /// class. Their only dimension is the deployment, if it has a name, to separate two in one account. Each
    /// value of another dimension would be billed as a metric.
    pub(crate) fn metrics(&self, deployment: Option<&str>, metrics: &[Metric]) {
        let described: Vec<Value> =
            metrics.iter().map(|metric| json!({ "Name": metric.name, "Unit": metric.unit })).collect();
        let mut line = Map::new();
        let dimensions: Vec<&str> = deployment.iter().map(|_| DEPLOYMENT).collect();
        let directive = json!([{ "Namespace": NAMESPACE, "Dimensions": [dimensions], "Metrics": described }]);
        let milliseconds = SystemClock.now().0 / 1_000_000;
        line.insert("_aws".to_owned(), json!({ "Timestamp": milliseconds, "CloudWatchMetrics": directive }));
        line.extend(deployment.map(|name| (DEPLOYMENT.to_owned(), name.into())));
        line.extend(metrics.iter().map(|metric| (metric.name.to_owned(), metric.value.into())));
        write(&Value::Object(line));
    }

    fn calls(&self) -> u64 {
        self.0.clients.get().map_or(0, Clients::calls)
    }
}

/// The CloudWatch namespace of the metrics.
const NAMESPACE: &str = "Statewright";

/// The dimension of the metrics.
const DEPLOYMENT: &str = "Deployment";

#[derive(Debug)]
pub(crate) struct Metric {
    name: &'static str,
    unit: &'static str,
    value: u64,
}

impl Metric {
    pub(crate) fn count(name: &'static str, value: usize) -> Self {
        Self { name, unit: "Count", value: value as u64 }
    }

    pub(crate) fn seconds(name: &'static str, value: u64) -> Self {
        Self { name, unit: "Seconds", value }
    }
}

/// One write for each line, so that lines do not mix.
fn write(line: &Value) {
    let mut text = line.to_string();
    text.push('\n');
    // stdout is closed, so the error cannot be reported.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

impl AuditLog for Log {
    fn keep(&self, record: &Record) {
        if let Ok(record) = serde_json::to_value(record) {
            write(&json!({ "audit": record }));
        }
    }
}

/// Whether to log an event: ours from INFO, those of libraries from WARN.
fn is_logged(metadata: &Metadata<'_>) -> bool {
    let is_ours = metadata.target() == "access" || metadata.target().starts_with("statewright");
    *metadata.level() <= if is_ours { Level::INFO } else { Level::WARN }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let is_information = *metadata.level() == Level::INFO;
        let is_of_request = metadata.target() == "access";
        if is_of_request {
            fields.join_method_and_route();
        }
        if is_information && is_of_request {
            OMITTED_OF_REQUESTS.iter().for_each(|name| drop(fields.0.remove(name)));
            if fields.0.contains_key("update") {
                fields.0.remove("stack");
            }
        } else {
            fields.0.insert("target", metadata.target().into());
        }
        if !is_information {
            fields.0.insert("level", metadata.level().as_str().into());
        }
        let calls = self.calls();
        {
            let current = self.0.current.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(request_id) = &current.request_id {
                fields.0.insert("request_id", request_id.as_str().into());
                fields.0.insert("service_calls", calls.saturating_sub(current.calls_before).into());
                if current.events == 1 {
                    fields.0.insert("cold", true.into());
                }
            }
        }
        // The platform reads the level only if there is a timestamp of this name.
        let milliseconds = Timestamp(SystemClock.now().0 / 1_000_000 * 1_000_000);
        fields.0.insert("timestamp", milliseconds.to_rfc3339().into());
        let line: Map<String, Value> =
            fields.0.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        write(&Value::Object(line));
    }
}

/// Fields that the line of a request omits: its text, values that the gateway makes constant, and values that
/// audit records or the gateway's metrics have.
const OMITTED_OF_REQUESTS: [&str; 5] = ["message", "http", "from", "request_bytes", "answer_bytes"];

/// Common prefixes of paths, and their abbreviations.
const BEGINNINGS: [(&str, &str); 2] = [
    ("/api/stacks/{org}/{project}/{stack}/{kind}/{update}", "{update}"),
    ("/api/stacks/{org}/{project}/{stack}", "{stack}"),
];

#[derive(Default)]
struct Fields(BTreeMap<&'static str, Value>);

impl Fields {
    fn join_method_and_route(&mut self) {
        let (Some(Value::String(method)), Some(Value::String(path))) =
            (self.0.remove("method"), self.0.remove("route"))
        else {
            return;
        };
        let shorter =
            |(beginning, short): &(&str, &str)| Some(format!("{short}{}", path.strip_prefix(beginning)?));
        let path = BEGINNINGS.iter().find_map(shorter).unwrap_or(path.clone());
        self.0.insert("route", format!("{method} {path}").into());
    }
}

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name(), ((value * 10.0).round() / 10.0).into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut text = value.to_string();
        let mut source = value.source();
        while let Some(error) = source {
            text.push_str(": ");
            text.push_str(&error.to_string());
            source = error.source();
        }
        self.0.insert(field.name(), text.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}").into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_has_its_method_and_abbreviated_prefixes() {
        for (method, path, expected) in [
            ("GET", "/api/user", "GET /api/user"),
            ("GET", "/api/stacks/{org}/{project}/{stack}", "GET {stack}"),
            ("POST", "/api/stacks/{org}/{project}/{stack}/batch-encrypt", "POST {stack}/batch-encrypt"),
            (
                "POST",
                "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/complete",
                "POST {update}/complete",
            ),
            ("BREW", "-", "BREW -"),
        ] {
            let mut fields = Fields(BTreeMap::from([("method", method.into()), ("route", path.into())]));
            fields.join_method_and_route();
            assert_eq!(fields.0, BTreeMap::from([("route", expected.into())]));
        }
    }
}

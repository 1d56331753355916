//! Logging to stderr, and traces.

use std::io::{self, IsTerminal as _};

use statewright_traces::{SEND_TIMEOUT, Traces};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, fmt};

use super::options::{LogFormat, Serve};
use crate::output::{Log, LogLines};

/// Starts the log on stderr, with one line of the target `access` for each request, and sends spans to the
/// collector, if any.
pub(super) fn start(args: &Serve) -> anyhow::Result<Traces> {
    let filter = args.log.clone();
    let form = match args.log_format {
        LogFormat::Json => LogLines::Json,
        LogFormat::Text if io::stderr().is_terminal() => LogLines::Colored,
        LogFormat::Text => LogLines::Text,
    };
    let lines = fmt::layer().with_writer(move || Log(form));
    // The default would color lines everywhere, unless NO_COLOR is set.
    let lines = if io::stderr().is_terminal() { lines } else { lines.with_ansi(false) };
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match args.log_format {
        LogFormat::Text => lines.with_filter(filter).boxed(),
        LogFormat::Json => lines.json().with_filter(filter).boxed(),
    };
    let endpoint = args.otlp_endpoint.as_deref();
    let (traces, spans) = statewright_traces::start(endpoint, SEND_TIMEOUT)?;
    tracing_subscriber::registry().with(lines).with(spans).init();
    if endpoint.is_some() && !cfg!(feature = "otlp") {
        // The address may be in the environment for other programs, so the server starts.
        tracing::warn!(
            "no traces are sent: this program was built without OTLP. Build one with it: cargo build --profile dist \
             --features dist"
        );
    }
    Ok(traces)
}

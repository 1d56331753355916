//! The log of the program, and its spans for a collector.

use statewright_traces::{NoCollector, SEND_TIMEOUT, Traces};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry, fmt};

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogForm {
    /// Text without colors.
    Text,
    /// Text with the colors of a terminal.
    Colored,
    /// A JSON object on each line.
    Json,
}

/// Starts the log with one line of the target `access` for each request, and sends spans to the collector at this
/// address, if any. The writer gets one line for each write.
///
/// # Errors
/// If the address of the collector is invalid.
///
/// # Panics
/// If the process has a log already.
pub fn start_log(
    form: LogForm,
    filter: Targets,
    writer: BoxMakeWriter,
    collector: Option<&str>,
) -> Result<Traces, NoCollector> {
    let lines = fmt::layer().with_writer(writer);
    // The default would color lines everywhere, unless NO_COLOR is set.
    let lines = if form == LogForm::Colored { lines } else { lines.with_ansi(false) };
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match form {
        LogForm::Json => lines.json().with_filter(filter).boxed(),
        LogForm::Text | LogForm::Colored => lines.with_filter(filter).boxed(),
    };
    let (traces, spans) = statewright_traces::start(collector, SEND_TIMEOUT)?;
    tracing_subscriber::registry().with(lines).with(spans).init();
    Ok(traces)
}

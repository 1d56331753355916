//! Logging to stderr, and traces.

use std::io::{self, IsTerminal as _};

use statewright_server::{LogForm, start_log};
use statewright_traces::Traces;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use super::options::{LogFormat, Serve};
use crate::output::Log;

/// Starts the log on stderr, with one line of the target `access` for each request, and sends spans to the
/// collector, if any.
pub(super) fn start(args: &Serve) -> anyhow::Result<Traces> {
    let form = match args.log_format {
        LogFormat::Json => LogForm::Json,
        LogFormat::Text if io::stderr().is_terminal() => LogForm::Colored,
        LogFormat::Text => LogForm::Text,
    };
    let collector = args.otlp_endpoint.as_deref();
    let writer = BoxMakeWriter::new(move || Log(form));
    let traces = start_log(form, args.log.clone(), writer, collector)?;
    if collector.is_some() && !cfg!(feature = "otlp") {
        // The address may be in the environment for other programs, so the server starts.
        tracing::warn!(
            "no traces are sent: this program was built without OTLP. Build one with it: cargo build --profile dist \
             --features dist"
        );
    }
    Ok(traces)
}

//! The log on stderr.

use tracing_subscriber::EnvFilter;

use super::options::LogFormat;

/// Lines of the target `access` are one a request.
pub(super) fn log_to_stderr(format: LogFormat) {
    let filter = EnvFilter::try_from_env("STATEWRIGHT_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => builder.init(),
        LogFormat::Json => builder.json().init(),
    }
}

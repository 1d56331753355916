//! Traces for a collector, with OTLP over HTTP: a span for each request, as a child of the client's, and one
//! for each of its store calls. Without an address, or without the feature `otlp`, nothing is started.

use std::time::Duration;

/// The address of a collector is invalid.
#[derive(Debug, thiserror::Error)]
#[error("cannot send traces to {0}")]
pub struct NoCollector(String, #[source] Box<dyn std::error::Error + Send + Sync>);

/// Timeout of sending a batch of spans in the background.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "otlp")]
pub use otlp::{Traces, start};

#[cfg(not(feature = "otlp"))]
mod none;
#[cfg(not(feature = "otlp"))]
pub use none::{Traces, start};

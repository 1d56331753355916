//! Traces for a collector that speaks OTLP over HTTP: a span for each request, below the client's own, and one for each of its calls
//! of the store. Without an address, or built without the feature `otlp`, nothing is started.

use std::time::Duration;

/// Traces cannot be sent to an address.
#[derive(Debug, thiserror::Error)]
#[error("cannot send traces to {0}")]
pub struct NoCollector(String, #[source] Box<dyn std::error::Error + Send + Sync>);

/// How long a batch of spans may take to be sent, where nobody waits for it.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(10);

#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "otlp")]
pub use otlp::{Traces, start};

#[cfg(not(feature = "otlp"))]
mod none;
#[cfg(not(feature = "otlp"))]
pub use none::{Traces, start};

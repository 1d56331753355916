//! Elapsed time for reports. No test depends on it.

use std::time::{Duration, Instant};

/// Measures wall time since [`Stopwatch::start`].
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    started: Instant,
}

impl Stopwatch {
    /// Starts measuring now.
    #[expect(clippy::disallowed_methods, reason = "a measurement uses the real clock, not the clock port")]
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

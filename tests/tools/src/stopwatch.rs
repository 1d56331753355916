//! Real elapsed time, for what reports how long it took. No test decides anything by it.

use std::time::{Duration, Instant};

/// Measures wall time from [`Stopwatch::start`] on.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    started: Instant,
}

impl Stopwatch {
    /// Starts measuring now.
    #[expect(
        clippy::disallowed_methods,
        reason = "a measurement is of the real clock, whatever the clock port says"
    )]
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

//! A clock on which nobody waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::{Clock, Timestamp};

/// A clock that stands still until somebody sleeps, and then is at once that much later. Clones show the same time, so
/// where several sleep, time passes faster for each of them than it asked: never slower.
#[derive(Debug, Clone)]
pub struct SteppingClock {
    now: Arc<AtomicI64>,
}

impl SteppingClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self { now: Arc::new(AtomicI64::new(start.0)) }
    }

    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        let nanoseconds = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        self.now.fetch_add(nanoseconds, Ordering::SeqCst);
    }
}

#[async_trait]
impl Clock for SteppingClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }

    async fn sleep(&self, duration: Duration) {
        self.advance(duration);
        // Others get their turn, as they would during a real sleep.
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_sleep_moves_the_time_by_its_length_for_every_clone() {
        let clock = SteppingClock::new(Timestamp(5));
        clock.clone().sleep(Duration::from_nanos(7)).await;
        assert_eq!(clock.now(), Timestamp(12));
    }
}

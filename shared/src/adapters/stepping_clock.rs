//! A clock on which sleeping takes no time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::ports::{Clock, Timestamp};

/// A clock that moves only when somebody sleeps, and then at once by the time asked for. Clones show
/// the same time, so with several sleepers each may wake later than it asked, but never earlier.
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
        // Let other tasks run, as a real sleep does.
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

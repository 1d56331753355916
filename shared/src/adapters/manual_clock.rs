//! A clock that a test moves.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use crate::ports::{Clock, Timestamp};

/// A clock that only moves when a test moves it. Clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock {
    time: watch::Sender<Timestamp>,
}

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Timestamp) -> Self {
        Self { time: watch::Sender::new(start) }
    }

    /// Moves the clock forward and wakes the sleepers whose deadline has passed.
    pub fn advance(&self, duration: Duration) {
        self.time.send_modify(|time| *time = time.plus(duration));
    }

    /// Moves the clock to `instant`, which may be in its past.
    pub fn set(&self, instant: Timestamp) {
        self.time.send_replace(instant);
    }
}

impl Default for ManualClock {
    /// A clock that shows an arbitrary instant with whole seconds: 2026-01-02T03:04:05Z.
    fn default() -> Self {
        Self::new(Timestamp::from_seconds(1_767_323_045))
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.time.borrow()
    }

    async fn sleep(&self, duration: Duration) {
        // Subscribe before reading the deadline, so that no movement in between is missed.
        let mut time = self.time.subscribe();
        let deadline = self.now().plus(duration);
        // This fails only when the sender is gone, and `self` holds the sender.
        let _ = time.wait_for(|now| *now >= deadline).await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_sleeper_wakes_at_its_instant_and_not_a_tick_before() {
        let clock = ManualClock::default();
        let sleeper = clock.clone();
        let mut sleep = sleeper.sleep(Duration::from_secs(5)).boxed();
        assert!(sleep.as_mut().now_or_never().is_none());
        clock.advance(Duration::from_nanos(4_999_999_999));
        assert!(sleep.as_mut().now_or_never().is_none());
        clock.advance(Duration::from_nanos(1));
        assert!(sleep.now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_sleeper_in_another_task_is_woken() {
        let clock = ManualClock::default();
        let sleeper = clock.clone();
        let until = clock.now().plus(Duration::from_secs(1));
        let task = tokio::spawn(async move {
            while sleeper.now() < until {
                sleeper.sleep(Duration::from_millis(1)).await;
            }
        });
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(1));
        task.await.expect("the sleeper ends");
    }

    #[tokio::test]
    async fn a_sleep_of_zero_returns_at_once() {
        assert!(ManualClock::default().sleep(Duration::ZERO).now_or_never().is_some());
    }

    #[test]
    fn clones_show_the_same_time() {
        let clock = ManualClock::default();
        let other = clock.clone();
        clock.set(Timestamp(7));
        assert_eq!(other.now(), Timestamp(7));
    }

    #[test]
    fn the_default_instant_is_the_documented_one() {
        assert_eq!(ManualClock::default().now().to_rfc3339(), "2026-01-02T03:04:05Z");
    }
}

//! The machine's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

use crate::ports::{Clock, Timestamp};

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "the only place that reads the machine's time")]
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(0).plus(since_epoch)
    }

    async fn sleep(&self, duration: Duration) {
        #[expect(clippy::disallowed_methods, reason = "the only place that waits on the machine's time")]
        tokio::time::sleep(duration).await;
    }
}

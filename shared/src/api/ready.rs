//! Whether the server can do its work. Callers may ask at any rate; it is checked at most once a second.

use std::time::Duration;

use tokio::sync::Mutex;

use crate::context::Context;
use crate::ports::Timestamp;
use crate::services::maintenance::health;
use crate::services::maintenance::health::Part;

/// The time for which a result is reused.
const REUSED_FOR: Duration = Duration::from_secs(1);

/// The time after which a part that does not answer counts as not working.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The last result. Callers that ask during a check wait for its result.
#[derive(Debug, Default)]
pub(super) struct Readiness(Mutex<Option<(Timestamp, Option<Part>)>>);

impl Readiness {
    /// The part that does not work, if any.
    pub(super) async fn ask(&self, ctx: &Context) -> Option<Part> {
        let mut last = self.0.lock().await;
        let now = ctx.now();
        if let Some((at, answer)) = *last
            && at <= now
            && now.since(at) < REUSED_FOR
        {
            return answer;
        }
        let answer = health::check(ctx, WAIT_MAX).await;
        if let Err((part, error)) = &answer {
            tracing::error!(
                error = error.as_ref().map(|error| error as &dyn std::error::Error),
                part = part.as_str(),
                "not ready"
            );
        }
        let answer = answer.err().map(|(part, _)| part);
        *last = Some((ctx.now(), answer));
        answer
    }
}

//! Whether the server can do its work, asked as often as anybody likes and looked at once a second.

use std::time::Duration;

use tokio::sync::Mutex;

use crate::context::Context;
use crate::ports::Timestamp;
use crate::services::maintenance::health;
use crate::services::maintenance::health::Part;

/// An answer is repeated for so long.
const BELIEVED_FOR: Duration = Duration::from_secs(1);

/// A part that does not answer for so long is not well.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// The last answer. Whoever asks while it is being found waits for it.
#[derive(Debug, Default)]
pub(super) struct Readiness(Mutex<Option<(Timestamp, Option<Part>)>>);

impl Readiness {
    /// The part that is not well, if one is not.
    pub(super) async fn ask(&self, ctx: &Context) -> Option<Part> {
        let mut last = self.0.lock().await;
        let now = ctx.now();
        if let Some((at, answer)) = *last
            && at <= now
            && now.since(at) < BELIEVED_FOR
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

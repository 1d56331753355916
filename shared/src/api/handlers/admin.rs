//! What operators ask.

use super::{Answer, json};

/// Whether the process serves. It touches no store: a store that is away answers 503 where it is needed.
pub(crate) async fn health() -> Answer {
    json(&serde_json::json!({ "status": "ok" }))
}

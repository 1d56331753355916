//! What operators ask.

use axum::extract::State;

use crate::api::app::App;
use crate::api::error::Failure;
use crate::api::response::{Answer, json};

/// Whether the process serves. It touches no store: a store that is away answers 503 where it is needed.
pub(crate) async fn health() -> Answer {
    json(&serde_json::json!({ "status": "ok" }))
}

/// Whether the server can do its work: the ledger can be read, the master key opens what it should, and blobs can be
/// written. Looked at once a second at most, whoever asks how often.
pub(crate) async fn ready(State(app): State<App>) -> Answer {
    match app.readiness().ask(&app).await {
        None => json(&serde_json::json!({ "status": "ok" })),
        Some(part) => Err(Failure::NotReady(part.as_str())),
    }
}

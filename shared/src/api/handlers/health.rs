//! Health checks, for operators and their probes.

use axum::extract::State;

use crate::api::app::App;
use crate::api::error::Failure;
use crate::api::response::{Answer, json};

/// Whether the process serves requests. Reads no store: an unavailable store is reported as 503 by the
/// requests that need it.
pub(crate) async fn health() -> Answer {
    json(&serde_json::json!({ "status": "ok" }))
}

/// Whether the server can do its work: read the ledger, unwrap a key with the master key, and write blobs.
/// Checked at most once a second, at any rate of requests.
pub(crate) async fn ready(State(app): State<App>) -> Answer {
    match app.readiness().ask(&app).await {
        None => json(&serde_json::json!({ "status": "ok" })),
        Some(part) => Err(Failure::NotReady(part.as_str())),
    }
}

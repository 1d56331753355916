//! What a running update saves.

use axum::extract::State;
use bytes::Bytes;

use super::{Answer, nothing};
use crate::api::App;
use crate::api::body::Body;
use crate::domain::claims::Claims;
use crate::domain::events::without_unchanged;
use crate::journal::{self, BatchError};
use crate::layout::records::Summary;
use crate::services::texts::{gzip, gzip_well, refuse_plaintext};
use crate::services::{Error, events as event_service, log, saves};
use crate::wire::pulumi::{Checkpoint, EngineEvent, EventBatch};

/// Journal entries. The engine touches the cloud only after this answer, so it means that they are durable. A batch
/// that comes twice counts once.
pub(crate) async fn journal_entries(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    let entries = journal::parse_batch(&body.text).map_err(refused_batch)?;
    if entries.is_empty() {
        // Even so a client whose update is over is told.
        log::check_open(&app, &claims).await?;
        return nothing();
    }
    drop(entries);
    refuse_plaintext(&body.text)?;
    log::append_entries(&app, &claims, body.into_gzip()).await?;
    nothing()
}

fn refused_batch(error: BatchError) -> Error {
    match error {
        BatchError::TooManyEntries => Error::TooMany(error.to_string()),
        BatchError::Malformed(_) | BatchError::Entry { .. } => Error::Invalid(error.to_string()),
    }
}

/// A whole deployment, from clients that do not journal. The same one twice counts once.
pub(crate) async fn checkpoint(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    let checkpoint: Checkpoint<'_> = body.parse()?;
    log::append_checkpoint(&app, &claims, untyped(&checkpoint)).await?;
    nothing()
}

/// A whole deployment as text, onto which its client counts the deltas that follow.
pub(crate) async fn checkpoint_verbatim(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    save(&app, &claims, saves::Kind::Whole, body).await
}

/// What changed since the text before. Where it does not fit, the client sends the whole text under the same number.
pub(crate) async fn checkpoint_delta(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    save(&app, &claims, saves::Kind::Delta, body).await
}

async fn save(app: &App, claims: &Claims, kind: saves::Kind, body: Body) -> Answer {
    let text = body.text.clone();
    saves::save(app, claims, kind, text, body.into_gzip()).await?;
    nothing()
}

/// The deployment with its version and features, as it is exported.
fn untyped(checkpoint: &Checkpoint<'_>) -> String {
    let features = match checkpoint.features.map(|features| features.get()) {
        None | Some("null") => String::new(),
        Some(features) => format!("\"features\":{features},"),
    };
    format!("{{\"version\":{},{features}\"deployment\":{}}}", checkpoint.version, checkpoint.deployment.get())
}

/// Engine events, up to three batches at a time and in any order.
pub(crate) async fn events(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    let batch: EventBatch = body.parse()?;
    let events = batch.events.unwrap_or_default();
    let sequences = || events.iter().map(|event| event.sequence);
    let batch = event_service::NewBatch {
        first: sequences().min().unwrap_or(0),
        last: sequences().max().unwrap_or(0),
        count: events.len() as u64,
        summary: summary(&events),
        gzip: kept(body),
    };
    event_service::append(&app, &claims, batch).await?;
    nothing()
}

/// A batch as it is kept: see decision 15.
fn kept(body: Body) -> Bytes {
    let shorter = std::str::from_utf8(&body.text).ok().and_then(without_unchanged);
    shorter.map_or_else(|| body.into_gzip(), |text| gzip_well(text.as_bytes()))
}

/// One event, from clients of before there were batches.
pub(crate) async fn event(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    let event: EngineEvent = body.parse()?;
    let batch = [br#"{"events":["#, body.text.trim_ascii(), b"]}"].concat();
    let batch = event_service::NewBatch {
        first: event.sequence,
        last: event.sequence,
        count: 1,
        gzip: gzip(&batch),
        summary: summary(&[event]),
    };
    event_service::append(&app, &claims, batch).await?;
    nothing()
}

fn summary(events: &[EngineEvent]) -> Option<Summary> {
    let summary = events.iter().find_map(|event| event.summary_event.as_ref())?;
    Some(Summary { resource_changes: summary.resource_changes.clone().unwrap_or_default() })
}

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
use crate::services::store::compression::{gzip, gzip_well, refuse_plaintext};
use crate::services::updates::{events as event_service, log};
use crate::services::work::{self, SMALL_BYTES_MAX};
use crate::services::{Error, updates};
use crate::wire::pulumi::{Checkpoint, EngineEvent, EventBatch};

/// Journal entries. The engine touches the cloud only after this answer, so it means that they are durable. A batch
/// that comes twice counts once.
pub(crate) async fn journal_entries(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    let bytes = body.text.len();
    let judge = move || {
        if journal::parse_batch(&body.text).map_err(refused_batch)?.is_empty() {
            return Ok(None);
        }
        refuse_plaintext(&body.text)?;
        Ok(Some(body.into_gzip()))
    };
    let judged = if bytes <= SMALL_BYTES_MAX { judge() } else { work::on(bytes, judge).await };
    match judged? {
        Some(gzip) => log::append_entries(&app, &claims, gzip).await?,
        // Even so a client whose update is over is told.
        None => log::check_open(&app, &claims).await?,
    }
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
    let text = work::on(body.text.len(), move || Ok(untyped(&body.parse()?))).await?;
    log::append_checkpoint(&app, &claims, text).await?;
    nothing()
}

/// A whole deployment as text, onto which its client counts the deltas that follow.
pub(crate) async fn checkpoint_verbatim(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    save(&app, &claims, updates::checkpoints::Kind::Whole, body).await
}

/// What changed since the text before. Where it does not fit, the client sends the whole text under the same number.
pub(crate) async fn checkpoint_delta(State(app): State<App>, claims: Claims, body: Body) -> Answer {
    save(&app, &claims, updates::checkpoints::Kind::Delta, body).await
}

async fn save(app: &App, claims: &Claims, kind: updates::checkpoints::Kind, body: Body) -> Answer {
    let text = body.text.clone();
    let gzip = work::on(text.len(), move || Ok(body.into_gzip())).await?;
    updates::checkpoints::save(app, claims, kind, text, gzip).await?;
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
    let bytes = body.text.len();
    let read = move || {
        let batch: EventBatch = body.parse()?;
        let events = batch.events.unwrap_or_default();
        let sequences = || events.iter().map(|event| event.sequence);
        Ok(event_service::NewBatch {
            first: sequences().min().unwrap_or(0),
            last: sequences().max().unwrap_or(0),
            count: events.len() as u64,
            summary: summary(&events),
            gzip: kept(body),
        })
    };
    let batch = if bytes <= SMALL_BYTES_MAX { read() } else { work::on(bytes, read).await }?;
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
    let bytes = body.text.len();
    let read = move || {
        let event: EngineEvent = body.parse()?;
        let batch = [br#"{"events":["#, body.text.trim_ascii(), b"]}"].concat();
        Ok(event_service::NewBatch {
            first: event.sequence,
            last: event.sequence,
            count: 1,
            gzip: gzip(&batch),
            summary: summary(&[event]),
        })
    };
    let batch = if bytes <= SMALL_BYTES_MAX { read() } else { work::on(bytes, read).await }?;
    event_service::append(&app, &claims, batch).await?;
    nothing()
}

fn summary(events: &[EngineEvent]) -> Option<Summary> {
    let summary = events.iter().find_map(|event| event.summary_event.as_ref())?;
    Some(Summary { resource_changes: summary.resource_changes.clone().unwrap_or_default() })
}

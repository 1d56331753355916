//! How the server is doing, and what it stores, for its admins.

use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::api::app::App;
use crate::api::query::Parameters;
use crate::api::response::{Answer, json, json_list};
use crate::ports::Timestamp;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
use crate::services::maintenance::overview::{self, Position, Stored, Waiting};
use crate::wire::server::{ServerStatus, Storage, StoredIn, SweepStatus, WaitingUpdate};

/// What works, what waits, and how old the key is.
pub(crate) async fn status(State(app): State<App>, caller: Caller) -> Answer {
    let status = overview::status(&app, &caller).await?;
    let health = app.readiness().ask(&app).await.map_or("ok", |part| part.as_str());
    let waiting = |Waiting { update, stack, by, since }: Waiting| WaitingUpdate {
        update_id: update.to_string(),
        stack: stack.map(|stack| stack.to_string()),
        by: by.into(),
        since: since.to_rfc3339(),
    };
    json(&ServerStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        health: health.to_owned(),
        signs_since: status.signs_since.map(Timestamp::to_rfc3339),
        sweep: SweepStatus {
            overdue: status.overdue,
            more: status.overdue_more,
            oldest: status.oldest.map(Timestamp::to_rfc3339),
            recent: status.recent,
            updates: status.waiting.into_iter().map(waiting).collect(),
        },
    })
}

/// A page of what organizations store.
pub(crate) async fn storage(State(app): State<App>, caller: Caller, Parameters(query): Parameters) -> Answer {
    caller.check_server_admin(&app)?;
    let from = query.get("continuationToken").filter(|token| !token.is_empty());
    let from = from.map(|token| parse_position(token)).transpose()?;
    let (parts, next) = overview::stored(&app, &caller, from).await?;
    let shown = |Stored { org, stacks, states, resources, bytes, unmeasured }: Stored| StoredIn {
        name: org.to_string(),
        stacks,
        states,
        resources,
        bytes,
        unmeasured,
    };
    json_list(Storage {
        organizations: parts.into_iter().map(shown).collect(),
        continuation_token: next.map(|next| write_position(&next)).transpose()?,
    })
    .await
}

fn write_position(position: &Position) -> Result<String, Error> {
    let text = serde_json::to_vec(position).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(text))
}

fn parse_position(token: &str) -> Result<Position, Error> {
    let text = URL_SAFE_NO_PAD.decode(token).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok())
        .ok_or(Error::Invalid(InvalidInput::ContinuationToken))
}

//! The protocol of the `backend "http"` of Terraform and OpenTofu. These clients show their users only a
//! status, so each status is chosen for the client's reaction to it. Above all, no handler here answers 404,
//! which clients take for an empty state.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use md5::{Digest, Md5};

use crate::api::app::App;
use crate::api::auth::RunCaller;
use crate::api::body::{Body, JsonBody};
use crate::api::error::Failure;
use crate::api::gateway::Gateway;
use crate::api::path::StatePath;
use crate::api::query::Parameters;
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json, json_gzip, json_text, no_content};
use crate::api::tfstate_methods::{OF_STATES, not_allowed_unless};
use crate::domain::tfstate::LockInfo;
use crate::services::caller::Caller;
use crate::services::error::{InvalidInput, StateError};
use crate::services::states::StateRef;
use crate::services::states::locks::short;
use crate::services::states::writes::Proof;
use crate::services::{Error, states};
use crate::wire::tfstate::LockInfo as WireLockInfo;

/// The query parameter with the ID of the lock under which a client writes.
const LOCK_ID: &str = "ID";

/// The current state as its client sent it; no content if it has no version yet.
pub(crate) async fn get(
    State(app): State<App>,
    caller: RunCaller,
    StatePath(state): StatePath,
    headers: HeaderMap,
) -> Answer {
    let caller = caller.holding(&app, &state, Proof::Token).await?;
    match states::versions::current_gzip(&app, &caller, &state).await.map_err(hide)? {
        Some(gzip) => json_gzip(&headers, gzip),
        None => no_content(),
    }
}

/// Writes the next version of a state. A repeat after a lost answer returns the same version.
pub(crate) async fn write(
    State(app): State<App>,
    caller: RunCaller,
    StatePath(state): StatePath,
    context: RequestContext,
    Parameters(mut query): Parameters,
    (gateway, headers): (Gateway, HeaderMap),
    body: Body,
) -> Answer {
    let lock_id = query.remove(LOCK_ID).filter(|id| !id.is_empty());
    let caller = caller.holding(&app, &state, Proof::Id(lock_id.as_deref())).await?;
    let bytes = body.text.len();
    let (claimed, sent) = (headers.get("Content-MD5").cloned(), body.as_sent().clone());
    let verify = move || claimed.map_or(Ok(()), |claimed| check_md5(&claimed, &sent));
    let written = states::writes::write(&app, &caller, &state, lock_id.as_deref(), body.text, verify)
        .await
        .map_err(hide)?;
    context.state_named(&written.address);
    context.detail(match (written.replayed, &lock_id) {
        (true, _) => format!("version {}, sent again", written.version),
        (false, Some(_)) => format!("version {}", written.version),
        (false, None) => format!("version {}, without a lock", written.version),
    });
    let mut response = StatusCode::OK.into_response();
    let headers = response.headers_mut();
    headers.insert("X-Statewright-Version", HeaderValue::from(written.version));
    let limits = gateway.states(app.settings.states);
    if bytes >= limits.warn_from {
        let warning = format!(
            "the state has {bytes} bytes: split states of {} bytes or more, since the server accepts at most {}",
            limits.warn_from, limits.bytes_max
        );
        if let Ok(warning) = HeaderValue::from_str(&warning) {
            headers.insert("X-Statewright-State-Size-Warning", warning);
        }
    }
    Ok(response)
}

/// Sent whether the state exists or not.
const UNLESS_ALLOWED: &str = ". The policy of a state allows it with deleteAllowed: `statewright state policy STATE --delete-allowed true`. \
     `statewright state delete STATE` needs no such policy";

/// Deletes a state if its policy allows clients to. It can be undeleted for a while. A state that is locked
/// or has resources stays. No command of Terraform or OpenTofu sends this.
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    context: RequestContext,
) -> Answer {
    let found = states::find(&app, &caller, &state).await.map_err(hide)?;
    let Some(found) = found.filter(|found| found.head.value.policy.delete_allowed) else {
        return Ok(not_allowed_unless(&Method::DELETE, OF_STATES, UNLESS_ALLOWED));
    };
    context.state_named(&found.head.value.address);
    states::delete(&app, &caller, &StateRef::Id(found.id), false).await.map_err(hide)?;
    Ok(StatusCode::OK.into_response())
}

/// Locks a state. A repeat with the same ID after a lost answer changes nothing.
pub(crate) async fn lock(
    State(app): State<App>,
    caller: Caller,
    StatePath(state): StatePath,
    (gateway, context): (Gateway, RequestContext),
    JsonBody(info): JsonBody<WireLockInfo>,
) -> Answer {
    let info = LockInfo::from(info);
    info.check().map_err(InvalidInput::from)?;
    let limits = gateway.states(app.settings.states);
    let address = states::locks::lock(&app, &caller, &state, &info, &limits).await.map_err(hide)?;
    context.state_named(&address);
    context.detail(format!("lock {}", short(&info.id)));
    json(&WireLockInfo::from(info))
}

/// Unlocks a state: the lock with the ID in the body or the query, or, without an ID, any lock, as
/// Terraform's `force-unlock` does.
pub(crate) async fn unlock(
    State(app): State<App>,
    caller: RunCaller,
    StatePath(state): StatePath,
    context: RequestContext,
    Parameters(mut query): Parameters,
    body: Body,
) -> Answer {
    let info = match body.text.trim_ascii() {
        [] => None,
        _ => Some(LockInfo::from(body.parse::<WireLockInfo>()?)),
    };
    let in_query = query.remove(LOCK_ID).filter(|id| !id.is_empty());
    let lock_id = info.as_ref().map(|info| info.id.as_str()).or(in_query.as_deref());
    let caller = caller.holding(&app, &state, Proof::Id(lock_id)).await?;
    if let Some(info) = &info {
        info.check().map_err(InvalidInput::from)?;
    }
    let (address, unlocked) = states::locks::unlock(&app, &caller, &state, lock_id).await.map_err(hide)?;
    if let Some(address) = &address {
        context.state_named(address);
    }
    context.detail(unlocked.describe(&caller));
    Ok(StatusCode::OK.into_response())
}

/// A state with the current outputs only, for `terraform_remote_state` with the role `outputs`.
pub(crate) async fn outputs(State(app): State<App>, caller: Caller, StatePath(state): StatePath) -> Answer {
    let outputs = states::versions::outputs(&app, &caller, &state).await.map_err(hide)?;
    match outputs {
        Some(states::versions::Outputs { document: Some(document), .. }) => {
            Ok(json_text(Bytes::from(document)))
        }
        Some(states::versions::Outputs { outputs: None, .. }) => Err(StateError::Encrypted.into()),
        Some(_) | None => no_content(),
    }
}

/// Turns the errors for a missing state and for one that the caller may not see into errors that no client
/// takes for an empty state.
fn hide(error: Error) -> Failure {
    match error {
        Error::State(StateError::NotFound(state)) => StateError::Forbidden(state).into(),
        other => other,
    }
    .into()
}

/// Refuses a body whose `Content-MD5` is wrong.
fn check_md5(claimed: &HeaderValue, body: &Bytes) -> Result<(), Error> {
    let claimed = claimed.to_str().ok().and_then(|text| STANDARD.decode(text.trim()).ok());
    if claimed.is_some_and(|claimed| claimed == Md5::digest(body).as_slice()) {
        return Ok(());
    }
    Err(InvalidInput::BodyChanged.into())
}

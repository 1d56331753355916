//! The browsers in which a person is signed in: the caller, or a member of an organization.

use axum::extract::State;

use crate::api::app::App;
use crate::api::path::{BrowserText, MemberPath};
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json, json_list, no_content};
use crate::services::caller::Caller;
use crate::services::identity::session_requests;
use crate::services::identity::sessions::Listed;
use crate::wire::sessions::{EndedSessions, Session, Sessions};

async fn shown(listed: Vec<Listed>) -> Answer {
    json_list(Sessions { sessions: listed.into_iter().map(|one| Session::of(one.id, one.record)).collect() })
        .await
}

/// The sessions of the caller.
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Answer {
    shown(session_requests::list(&app, &caller).await?).await
}

/// Ends a session of the caller.
pub(crate) async fn end(State(app): State<App>, caller: Caller, BrowserText(id): BrowserText) -> Answer {
    session_requests::end(&app, &caller, &id).await?;
    no_content()
}

/// The sessions of a member of the organization alone.
pub(crate) async fn list_of_member(
    State(app): State<App>,
    caller: Caller,
    MemberPath(org, login): MemberPath,
) -> Answer {
    shown(session_requests::list_of_member(&app, &caller, &org, &login).await?).await
}

/// Ends a session of a member of the organization alone.
pub(crate) async fn end_of_member(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    MemberPath(org, login): MemberPath,
    BrowserText(id): BrowserText,
) -> Answer {
    context.detail(login.as_str());
    session_requests::end_of_member(&app, &caller, &org, &login, &id).await?;
    no_content()
}

/// Ends all sessions of a member of the organization alone.
pub(crate) async fn end_all_of_member(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    MemberPath(org, login): MemberPath,
) -> Answer {
    context.detail(login.as_str());
    let ended = session_requests::end_all_of_member(&app, &caller, &org, &login).await?;
    json(&EndedSessions { ended })
}

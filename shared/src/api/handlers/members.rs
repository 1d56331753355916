//! The organization itself, and its members.

use axum::extract::State;

use super::user::shown_member;
use crate::api::app::App;
use crate::api::body::JsonBody;
use crate::api::path::{MemberPath, OrgPath};
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json, json_list, no_content};
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
use crate::services::identity::{members, teams};
use crate::wire::access::{InvitationLink, MemberEdit, OrganizationDetails, TeamsOfMember};

/// An organization. The server stores nothing about it but its name.
pub(crate) async fn organization(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    caller.lists(&app, &org).await?;
    json(&OrganizationDetails {
        github_login: org.to_string(),
        name: org.to_string(),
        avatar_url: String::new(),
        repos: Vec::new(),
    })
}

/// The role that a body names. A role's ID is its name.
fn role_in(MemberEdit { role, fga_role_id }: MemberEdit) -> Result<Role, Error> {
    let shortened = |role: &str| role.chars().take(60).collect::<String>();
    match (fga_role_id.filter(|id| !id.is_empty()), role) {
        (Some(id), _) => Role::parse(&id).ok_or(Error::Invalid(InvalidInput::RoleId)),
        (None, role) => {
            let role = role.unwrap_or_default();
            Role::parse(&role).ok_or_else(|| InvalidInput::Role(shortened(&role)).into())
        }
    }
}

/// The role that a body gives to this user. An organization that the caller may not see answers like a missing one,
/// whatever the body is.
async fn given_role(
    app: &App,
    caller: &Caller,
    context: &RequestContext,
    (org, login): (&OrgName, &Login),
    edit: MemberEdit,
) -> Result<Role, Error> {
    caller.check_org(app, org).await?;
    let role = role_in(edit)?;
    context.detail(format!("{login} as {role}"));
    Ok(role)
}

/// Makes a user of this server a member.
pub(crate) async fn add(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    MemberPath(org, login): MemberPath,
    JsonBody(edit): JsonBody<MemberEdit>,
) -> Answer {
    let role = given_role(&app, &caller, &context, (&org, &login), edit).await?;
    Box::pin(members::add(&app, &caller, &org, &login, role)).await?;
    json(&shown_member((login, role)))
}

/// Invites a person, who becomes a member.
pub(crate) async fn invite(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    MemberPath(org, login): MemberPath,
    JsonBody(edit): JsonBody<MemberEdit>,
) -> Answer {
    let role = given_role(&app, &caller, &context, (&org, &login), edit).await?;
    let (invited, role) = Box::pin(members::invite(&app, &caller, &org, &login, role)).await?;
    let (path, expires) = (invited.path(), invited.until.to_rfc3339());
    json(&InvitationLink { user: login.into(), role, path, expires })
}

/// Changes the role of a member.
pub(crate) async fn edit(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    MemberPath(org, login): MemberPath,
    JsonBody(edit): JsonBody<MemberEdit>,
) -> Answer {
    let role = given_role(&app, &caller, &context, (&org, &login), edit).await?;
    members::set_role(&app, &caller, &org, &login, role).await?;
    no_content()
}

/// Ends a membership.
pub(crate) async fn remove(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    MemberPath(org, login): MemberPath,
) -> Answer {
    context.detail(login.as_str());
    members::remove(&app, &caller, &org, &login).await?;
    no_content()
}

/// The teams of a member, by their names for people.
pub(crate) async fn teams_of(
    State(app): State<App>,
    caller: Caller,
    MemberPath(org, login): MemberPath,
) -> Answer {
    json_list(TeamsOfMember { teams: teams::of_member(&app, &caller, &org, &login).await? }).await
}

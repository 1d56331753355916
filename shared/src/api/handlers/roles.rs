//! The roles of this server, which are fixed, and who has them on a whole organization.

use axum::extract::State;

use crate::api::app::App;
use crate::api::path::{OrgPath, RoleText, TeamPath};
use crate::api::query::Parameters;
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json, json_list, no_content};
use crate::domain::access::Scope;
use crate::domain::names::{OrgName, TeamName};
use crate::domain::role::{Right, Role};
use crate::ports::Timestamp;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::IdentityError;
use crate::services::identity::bootstrap;
use crate::services::identity::teams::{self, ShownTeam, TeamEdit};
use crate::wire::access::{Permissions, Person, RoleDetails, Roles, UsersWithRole};

/// What the roles are for.
fn purpose(role: Role) -> &'static str {
    match role {
        Role::None => "Nothing: only grants give rights.",
        Role::View => "See everything but secrets and values.",
        Role::Auditor => "See what view sees, and read the audit trail.",
        Role::Outputs => "List stacks and states, and read their outputs.",
        Role::Plan => "Read everything, open secrets, preview and plan.",
        Role::Apply => "Update stacks, apply states, and create new ones.",
        Role::Member => "Everything with stacks, states and environments.",
        Role::Admin => "Everything, also members, teams, grants and tokens.",
    }
}

/// The nearest names of Pulumi Cloud for a right.
fn scopes(right: Right) -> &'static [&'static str] {
    match right {
        Right::See => &["stack:list", "environment:list"],
        Right::View => &["organization:read", "team:list", "environment:read"],
        Right::Outputs => &[],
        Right::Plan => &["stack:read", "stack:export", "stack:encrypt", "stack:decrypt", "environment:open"],
        Right::Apply => {
            &["stack:create", "stack:write", "stack:import", "stack_tags:update", "environment:write"]
        }
        Right::Member => &["stack:delete", "stack:rename", "stack:transfer", "stack:cancel_update"],
        Right::Audit => &["audit_logs:read", "audit_logs:export"],
        Right::Admin => {
            &["stack_access:update", "team:create", "team:update", "team:delete", "org_member:update"]
        }
    }
}

fn shown(org: &OrgName, role: Role) -> RoleDetails {
    let held = Right::ALL.into_iter().filter(|right| role.gives(*right));
    let long_ago = Timestamp(0).to_rfc3339();
    RoleDetails {
        id: role.to_string(),
        org_id: org.to_string(),
        name: role.to_string(),
        description: purpose(role).to_owned(),
        resource_type: "global".to_owned(),
        ux_purpose: "role".to_owned(),
        default_identifier: matches!(role, Role::Member | Role::Admin).then(|| role.to_string()),
        details: Permissions {
            kind: "PermissionDescriptorAllow".to_owned(),
            permissions: held.flat_map(scopes).map(|scope| (*scope).to_owned()).collect(),
        },
        version: 1,
        is_org_default: role == Role::Member,
        created: long_ago.clone(),
        modified: long_ago,
    }
}

fn parse(id: &str) -> Result<Role, Error> {
    let unknown = || IdentityError::NoRole(id.chars().take(60).collect()).into();
    Role::parse(id).ok_or_else(unknown)
}

/// The roles. Other purposes than roles have none.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
) -> Answer {
    caller.lists(&app, &org).await?;
    let is_asked = query.get("uxPurpose").is_none_or(|purpose| purpose.is_empty() || purpose == "role");
    let roles = Role::ALL.into_iter().filter(|_| is_asked).map(|role| shown(&org, role));
    json_list(Roles { roles: roles.collect() }).await
}

/// A role.
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    RoleText(role): RoleText,
) -> Answer {
    caller.lists(&app, &org).await?;
    json(&shown(&org, parse(&role)?))
}

/// Refuses a custom role, which would do nothing.
pub(crate) async fn create(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    caller.check_org(&app, &org).await?;
    Err(IdentityError::CustomRole.into())
}

/// The members with a role.
pub(crate) async fn users(
    State(app): State<App>,
    caller: Caller,
    OrgPath(org): OrgPath,
    RoleText(role): RoleText,
) -> Answer {
    let members = bootstrap::members(&app, &caller, &org).await?;
    let role = parse(&role)?;
    let with_it = members.iter().filter(|(_, has)| *has == role);
    json_list(UsersWithRole { users: with_it.map(|(login, _)| Person::from(login)).collect() }).await
}

/// The roles of a team on the whole organization.
fn everywhere(team: &ShownTeam) -> impl Iterator<Item = Role> {
    team.grants.iter().filter(|(on, _)| *on == Scope::Organization).map(|(_, role)| *role)
}

/// The role of a team on the whole organization, if it has one.
pub(crate) async fn of_team(State(app): State<App>, caller: Caller, TeamPath(org, team): TeamPath) -> Answer {
    let team = teams::get(&app, &caller, &org, &team).await?;
    json_list(Roles { roles: everywhere(&team).map(|role| shown(&org, role)).collect() }).await
}

/// The role in the path, which the audit record has with its team.
fn named(context: &RequestContext, team: &TeamName, role: &str) -> Result<Role, Error> {
    let role = parse(role)?;
    context.detail(format!("{team}: {role}"));
    Ok(role)
}

/// Gives a team a role on the whole organization, in the place of the one that it had.
pub(crate) async fn give_team(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    TeamPath(org, team): TeamPath,
    RoleText(role): RoleText,
) -> Answer {
    let role = named(&context, &team, &role)?;
    let edit = TeamEdit::of_role(Scope::Organization, Some(role).filter(|role| *role != Role::None));
    teams::edit(&app, &caller, &org, &team, edit).await?;
    no_content()
}

/// Takes the role that a team has on the whole organization.
pub(crate) async fn take_from_team(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    TeamPath(org, team): TeamPath,
    RoleText(role): RoleText,
) -> Answer {
    let role = named(&context, &team, &role)?;
    let has = teams::get(&app, &caller, &org, &team).await?;
    if !everywhere(&has).any(|held| held == role) {
        return Err(IdentityError::NoGrant { org }.into());
    }
    teams::edit(&app, &caller, &org, &team, TeamEdit::of_role(Scope::Organization, None)).await?;
    no_content()
}

//! Grants, the document of all of them, and why somebody may do something.

use std::collections::HashMap;

use axum::extract::{Query, State};
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderValue};

use crate::api::app::App;
use crate::api::body::JsonBody;
use crate::api::path::{OrgPath, StackPath};
use crate::api::query::Parameters;
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json, json_list, no_content};
use crate::domain::access::{Grant, GrantedRole, Grantee, Scope, TeamRole};
use crate::domain::names::{Login, TeamName};
use crate::domain::role::{Right, Role};
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
use crate::services::identity::grants::{self, Explained, Kind};
use crate::services::identity::own_rights;
use crate::services::store::stack_lookup;
use crate::wire::access::{
    AccessDocument, ExplainedAccess, ExplainedRight, Grants, OwnGrant, OwnRights, OwnTeam, names_of,
};

fn in_short(Grant { to, on, role }: &Grant) -> String {
    format!("{} to {to} on {on}", role.0)
}

/// The grants that the caller may give and take.
pub(crate) async fn list(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    json_list(Grants { grants: grants::list(&app, &caller, &org).await? }).await
}

/// Gives a role. A repeat changes nothing.
pub(crate) async fn add(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    OrgPath(org): OrgPath,
    JsonBody(grant): JsonBody<Grant>,
) -> Answer {
    context.detail(in_short(&grant));
    grants::add(&app, &caller, &org, &grant).await?;
    json(&grant)
}

/// Takes a role: the grant is in the query.
pub(crate) async fn remove(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    OrgPath(org): OrgPath,
    Parameters(query): Parameters,
) -> Answer {
    // First of all: a stranger learns nothing from the query's errors.
    caller.lists(&app, &org).await?;
    let text = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    let role = Role::parse(text("role"));
    let role = role.ok_or_else(|| InvalidInput::Role(text("role").chars().take(60).collect()))?;
    let to = Grantee::parse(text("to")).map_err(InvalidInput::from)?;
    let on = Scope::parse(text("on")).map_err(InvalidInput::from)?;
    let grant = Grant { to, on, role: GrantedRole(role) };
    context.detail(in_short(&grant));
    grants::remove(&app, &caller, &org, &grant).await?;
    no_content()
}

/// The teams and grants as one document, with their version as the ETag.
pub(crate) async fn export(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    let (document, version) = grants::export(&app, &caller, &org).await?;
    let mut answer = json_list(AccessDocument::new(document, version.clone())).await?;
    // Always valid: the version is a number.
    if let Ok(etag) = HeaderValue::from_str(&format!("\"{version}\"")) {
        answer.headers_mut().insert(ETAG, etag);
    }
    Ok(answer)
}

/// Whether nothing shall change. Any other text is refused: a misspelled one would change everything.
fn dry_run(query: &HashMap<String, String>) -> Result<bool, InvalidInput> {
    match query.get("dryRun").map(String::as_str) {
        _ if query.keys().any(|name| name != "dryRun") => Err(InvalidInput::DryRun),
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(InvalidInput::DryRun),
    }
}

/// Replaces the teams and grants, or with `dryRun=true` only shows what that would change.
pub(crate) async fn apply(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    (OrgPath(org), Query(query), headers): (OrgPath, Query<HashMap<String, String>>, HeaderMap),
    JsonBody(body): JsonBody<AccessDocument>,
) -> Answer {
    let (document, version) = body.read()?;
    let expected = headers.get(IF_MATCH).and_then(|value| value.to_str().ok()).filter(|it| *it != "*");
    let expected = expected.map(|expected| expected.trim_matches('"').to_owned()).or(version);
    let dry_run = dry_run(&query)?;
    if dry_run {
        context.detail("a dry run");
    }
    let difference = grants::apply(&app, &caller, &org, &document, expected.as_deref(), dry_run).await?;
    json(&difference)
}

/// What the caller may do with a stack, or for an admin what the user in the query may do with everything of this name,
/// and why.
pub(crate) async fn explain(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
    Parameters(query): Parameters,
) -> Answer {
    let of_user = query.get("user").map(|login| Login::parse(login)).transpose()?;
    let kind = query.get("kind").map(|kind| Kind::parse(kind).ok_or(InvalidInput::NameKind)).transpose()?;
    // The rights of a named user are those on the name: a state or an environment may have it.
    let kind = match (&of_user, kind) {
        (Some(_), kind) => kind,
        (None, None | Some(Kind::Stack)) => {
            stack_lookup::locate(&app, &caller, &address).await?;
            Some(Kind::Stack)
        }
        (None, Some(Kind::State | Kind::Environment)) => return Err(InvalidInput::NameKind.into()),
    };
    let found = Box::pin(grants::explain_as(&app, &caller, &address, of_user.as_ref(), kind)).await?;
    json_list(explained(found)).await
}

/// What the caller may do in an organization.
pub(crate) async fn own(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    let own = own_rights::of(&app, &caller, &org).await?;
    let team = |(name, role): (TeamName, Option<TeamRole>)| OwnTeam {
        name: name.to_string(),
        role: role.map(|role| role.as_str().to_owned()),
    };
    let grant = |granted: own_rights::Granted| OwnGrant {
        on: granted.on.to_string(),
        role: granted.role,
        rights: names_of(granted.rights),
    };
    json_list(OwnRights {
        login: caller.user.login.to_string(),
        role: own.role,
        admin: own.rights.has(Right::Admin),
        rights: names_of(own.rights),
        somewhere: names_of(own.somewhere),
        teams: own.teams.into_iter().map(team).collect(),
        grants: own.grants.into_iter().map(grant).collect(),
        within: own.within.map(|within| within.to_string()),
        server_admin: own.is_server_admin,
    })
    .await
}

fn explained(Explained { login, role, role_here, rights, kind }: Explained) -> ExplainedAccess {
    let rights = rights.into_iter().map(ExplainedRight::new).collect();
    let kind = kind.map(|kind| kind.as_str().to_owned());
    ExplainedAccess { login: login.into(), role, role_here, rights, kind }
}

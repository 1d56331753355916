//! Access tokens of the caller, of an organization, of a team and of a member.

use std::collections::HashMap;

use axum::extract::State;
use serde::de::DeserializeOwned;

use crate::api::app::App;
use crate::api::body::{Body, JsonBody};
use crate::api::path::{OrgPath, TokensPath};
use crate::api::query::{Parameters, number, parse_position, write_position};
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json, json_list, no_content};
use crate::domain::access::Scope;
use crate::domain::names::{OrgName, TokenName};
use crate::domain::role::Role;
use crate::layout::TokenEntry;
use crate::ports::Timestamp;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::{IdentityError, InvalidInput};
use crate::services::identity::token_requests::{self, TokenRequest};
use crate::services::identity::tokens::{Issued, Owner, Shows, TokenPage};
use crate::wire::tokens::{
    CreatedToken, NewOrgToken, NewPersonalToken, NewTeamToken, OrganizationRules, OrganizationSettings,
    RotateToken, RotatedToken, Token, Tokens,
};

/// Tokens of a page, at most and by default. A client that finds its token by its ID reads only the first page.
const PAGE_MAX: usize = 1_000;

/// The length of a client's reason in the audit log, in characters, at most.
const REASON_CHARACTERS_MAX: usize = 200;

/// The tokens of the owner that the path names, or of the caller.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    path: TokensPath,
    Parameters(query): Parameters,
) -> Answer {
    let owner = owner(&caller, &path)?;
    let PageQuery { shows, after, max } = page_query(&query)?;
    shown(token_requests::list(&app, &caller, &owner, shows, after.as_ref(), max).await?).await
}

/// The tokens of a member that work in the organization alone.
pub(crate) async fn list_of_member(
    State(app): State<App>,
    caller: Caller,
    path: TokensPath,
    Parameters(query): Parameters,
) -> Answer {
    let PageQuery { shows, after, max } = page_query(&query)?;
    let (org, login) = path.member()?;
    let page = token_requests::list_of_member(&app, &caller, org, login, shows, after.as_ref(), max);
    shown(page.await?).await
}

/// The part of a list that a query asks for.
struct PageQuery {
    shows: Shows,
    after: Option<TokenName>,
    max: usize,
}

fn page_query(query: &HashMap<String, String>) -> Result<PageQuery, Error> {
    let invalid = || Error::Invalid(InvalidInput::TokenPage { max: PAGE_MAX });
    let shows = match query.get("filter").map(String::as_str) {
        None | Some("" | "active") => Shows::Active,
        Some("expired") => Shows::Expired,
        Some("all") => Shows::All,
        Some(_) => return Err(InvalidInput::TokenFilter.into()),
    };
    let after = match query.get("continuationToken").filter(|token| !token.is_empty()) {
        Some(token) => {
            let name = parse_position(token).map_err(|_| invalid())?;
            Some(TokenName::parse(&name).map_err(|_| invalid())?)
        }
        None => None,
    };
    let max = match number(query, "maxResults").map_err(|_| invalid())? {
        Some(max) => usize::try_from(max).ok().filter(|max| (1..=PAGE_MAX).contains(max)),
        None => Some(PAGE_MAX),
    };
    Ok(PageQuery { shows, after, max: max.ok_or_else(invalid)? })
}

async fn shown(page: TokenPage) -> Answer {
    json_list(Tokens {
        tokens: page.tokens.into_iter().map(|token| Token::of(token.entry, token.used)).collect(),
        continuation_token: write_position(page.next.map(String::from)),
    })
    .await
}

/// The owner that the path names; the caller if it names none.
fn owner(caller: &Caller, path: &TokensPath) -> Result<Owner, Error> {
    match (&path.org, &path.team) {
        (Some(org), Some(team)) => Ok(Owner::Team(org.clone(), team.clone())),
        (Some(org), None) => Ok(Owner::Organization(org.clone())),
        (None, _) => token_requests::personal(caller),
    }
}

/// The body of a request for a token.
pub(crate) trait AsksForToken {
    /// What it asks for.
    fn into_request(self) -> Result<TokenRequest, Error>;
}

impl AsksForToken for NewPersonalToken {
    fn into_request(self) -> Result<TokenRequest, Error> {
        let request = request_of(self.name, self.description, self.expires, self.on)?;
        let org = given(self.organization).map(|org| OrgName::parse(&org)).transpose()?;
        Ok(TokenRequest { role: role(self.role_id)?, org, ..request })
    }
}

impl AsksForToken for NewOrgToken {
    fn into_request(self) -> Result<TokenRequest, Error> {
        let role = match (self.admin.unwrap_or_default(), role(self.role_id)?) {
            (true, None | Some(Role::Admin)) => Some(Role::Admin),
            (true, Some(_)) => return Err(IdentityError::TwoRoles.into()),
            (false, role) => role,
        };
        Ok(TokenRequest { role, ..request_of(self.name, self.description, self.expires, self.on)? })
    }
}

impl AsksForToken for NewTeamToken {
    fn into_request(self) -> Result<TokenRequest, Error> {
        request_of(self.name, self.description, self.expires, self.on)
    }
}

/// What bodies for all kinds of tokens have. The expiry is in seconds since the epoch.
fn request_of(
    name: Option<String>,
    description: Option<String>,
    expires: Option<i64>,
    on: Option<String>,
) -> Result<TokenRequest, Error> {
    Ok(TokenRequest {
        name: given(name).map(|name| TokenName::parse(&name)).transpose()?,
        description: description.unwrap_or_default(),
        expires: at(expires),
        within: given(on).map(|on| Scope::parse(&on)).transpose().map_err(InvalidInput::from)?,
        ..TokenRequest::default()
    })
}

/// Creates a token of the owner that the path names, or of the caller.
pub(crate) async fn create<N: AsksForToken + DeserializeOwned + Send + 'static>(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    path: TokensPath,
    Parameters(query): Parameters,
    JsonBody(new): JsonBody<N>,
) -> Answer {
    let request = new.into_request()?;
    let owner = owner(&caller, &path)?;
    let Issued { secret, entry } = token_requests::create(&app, &caller, owner, request).await?;
    record(&context, &entry, &query);
    json(&CreatedToken { id: entry.id().to_owned(), token_value: secret })
}

/// Replaces the secret of a token.
pub(crate) async fn rotate(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    path: TokensPath,
    Parameters(query): Parameters,
    JsonBody(how): JsonBody<RotateToken>,
) -> Answer {
    let owner = owner(&caller, &path)?;
    let (grace, expires) = (how.grace_seconds.unwrap_or_default(), at(how.expires));
    let Issued { secret, entry } =
        token_requests::rotate(&app, &caller, &owner, &path.token, grace, expires).await?;
    record(&context, &entry, &query);
    json(&RotatedToken::of(secret, &entry))
}

/// Ends a token.
pub(crate) async fn end(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    path: TokensPath,
    Parameters(query): Parameters,
) -> Answer {
    let owner = owner(&caller, &path)?;
    let entry = token_requests::end(&app, &caller, &owner, &path.token).await?;
    record(&context, &entry, &query);
    no_content()
}

/// Ends a token of a member that works in the organization alone.
pub(crate) async fn end_of_member(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    path: TokensPath,
    Parameters(query): Parameters,
) -> Answer {
    let (org, login) = path.member()?;
    let entry = token_requests::end_of_member(&app, &caller, org, login, &path.token).await?;
    record(&context, &entry, &query);
    no_content()
}

/// Changes the rules of an organization.
pub(crate) async fn set_rules(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    OrgPath(org): OrgPath,
    body: Body,
) -> Answer {
    // An organization that the caller may not see answers like a missing one, whatever the body is.
    caller.check_org(&app, &org).await?;
    let new: OrganizationSettings = body.parse()?;
    let days = match new.set_max_access_token_expiry_days {
        Some(days) => {
            token_requests::set_days_left_max(&app, &caller, &org, days).await?;
            context.detail(format!("access tokens have at most {days} days left"));
            days
        }
        None => token_requests::days_left_max(&app, &caller, &org).await?.into(),
    };
    json(&OrganizationRules { max_access_token_expiry_days: days })
}

/// Records which token a request is about, and the reason that its client gives.
fn record(context: &RequestContext, entry: &TokenEntry, query: &HashMap<String, String>) {
    let token = &entry.token;
    let mut detail = format!("{} token {} of {}", token.of.as_str(), token.name, token.login);
    if let Some(reason) = query.get("reason") {
        let reason: String = reason.chars().take(REASON_CHARACTERS_MAX).collect();
        detail = format!("{detail}, reason {reason:?}");
    }
    context.detail(detail);
}

/// A text that is not empty: clients send an empty one for none.
fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn role(id: Option<String>) -> Result<Option<Role>, Error> {
    let known =
        |id: String| Role::parse(&id).ok_or_else(|| IdentityError::NoRole(id.chars().take(60).collect()));
    Ok(given(id).map(known).transpose()?)
}

/// An expiry in seconds since the epoch. 0 means never.
fn at(expires: Option<i64>) -> Option<Timestamp> {
    expires.filter(|expires| *expires != 0).map(Timestamp::from_seconds)
}

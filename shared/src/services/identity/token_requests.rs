//! Access tokens by the API: what a caller may do with them.
//!
//! No caller gives more than it has. A token that a request creates or rotates allows at most what the token of the
//! request allows, and ends with it at the latest.

use std::time::Duration;

use super::membership;
use super::tokens::{self, Issued, NewToken, Owner, Shows, TokenPage};
use crate::context::Context;
use crate::domain::access::{Scope, TeamRole};
use crate::domain::hidden::has_hidden;
use crate::domain::names::{Login, OrgName, TeamName, TokenName};
use crate::domain::role::{Right, Role};
use crate::layout::{OrgAccess, Stored, Token, TokenEntry, User};
use crate::ports::{Expect, Timestamp};
use crate::services::caller::{Caller, SESSION};
use crate::services::error::{AccessError, IdentityError, InvalidInput};
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};

/// The days until a token expires, at most, if it expires: two years. Source: the OpenAPI document of Pulumi Cloud.
const DAYS_MAX: u64 = 2 * 366;

/// The limit that an organization can set on the days that tokens have left, at most.
const DAYS_LEFT_MAX: u32 = 730;

const SECONDS_OF_A_DAY: u64 = 24 * 3_600;

/// The length of the name of a machine token, at most. Source: as above.
const NAME_CHARACTERS_MAX: usize = 40;

/// The length of a description, at most. A page of 1,000 tokens stays below a megabyte.
const DESCRIPTION_CHARACTERS_MAX: usize = 500;

/// The time in seconds for which the old secret of a rotated token may still work: 30 days.
const GRACE_SECONDS_MAX: u64 = 30 * SECONDS_OF_A_DAY;

/// Random bytes in the name of a personal token that was created without one.
const NAME_RANDOM_BYTES: usize = 6;

/// A token that a request asks for.
#[derive(Debug, Default)]
pub struct TokenRequest {
    /// The name. A machine token needs one; a personal token gets one.
    pub name: Option<TokenName>,
    /// What it is for.
    pub description: String,
    /// When it ends; `None` for never, or with the token of the request.
    pub expires: Option<Timestamp>,
    /// The highest role of a personal or a team token, or the role of an organization's token.
    pub role: Option<Role>,
    /// The only organization in which a personal token works.
    pub org: Option<OrgName>,
    /// The only part of each organization in which the token works.
    pub within: Option<Scope>,
}

/// The owner of the caller's personal tokens.
///
/// # Errors
/// [`IdentityError::TokensOfMachine`].
pub fn personal(caller: &Caller) -> Result<Owner, Error> {
    match caller.token.of.is_user() {
        true => Ok(Owner::User(caller.user.login.clone())),
        false => Err(IdentityError::TokensOfMachine.into()),
    }
}

/// Refuses a caller who may not manage the tokens of this owner: tokens of an organization belong to its admins, and
/// those of a team to the admins of the team too.
async fn check(ctx: &Context, caller: &Caller, owner: &Owner) -> Result<(), Error> {
    match owner {
        Owner::User(login) => match personal(caller)? == Owner::User(login.clone()) {
            true => Ok(()),
            false => Err(AccessError::NoUser(login.clone()).into()),
        },
        Owner::Organization(org) => {
            caller.in_org(ctx, org).await?.check(Right::Admin, "managing tokens of an organization")
        }
        Owner::Team(org, team) => {
            let standing = caller.in_org(ctx, org).await?;
            match standing.has(Right::Admin) || is_team_admin(ctx, caller, org, team).await? {
                true => Ok(()),
                false => standing.check(Right::Admin, "managing tokens of a team"),
            }
        }
    }
}

/// Whether the caller is an admin of a team, and the token allows administration.
async fn is_team_admin(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    team: &TeamName,
) -> Result<bool, Error> {
    let is_limited =
        caller.token.within.is_some() || !caller.token.may.is_none_or(|may| may.gives(Right::Admin));
    if !caller.token.of.is_user() || is_limited {
        return Ok(false);
    }
    let access = store::access::of(ctx, org).await?;
    let role = access.teams.get(team).and_then(|team| team.members.get(&caller.user.login));
    Ok(role == Some(&TeamRole::Admin))
}

/// A page of an owner's tokens.
///
/// # Errors
/// [`AccessError::NoOrg`], [`AccessError::NotAllowed`]; as [`tokens::list`].
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    owner: &Owner,
    shows: Shows,
    after: Option<&TokenName>,
    max: usize,
) -> Result<TokenPage, Error> {
    check(ctx, caller, owner).await?;
    tokens::list(ctx, owner, shows, after, max).await
}

/// Creates a token.
///
/// # Errors
/// As [`list`]; [`IdentityError`] for what the token must not be.
pub async fn create(
    ctx: &Context,
    caller: &Caller,
    owner: Owner,
    request: TokenRequest,
) -> Result<Issued, Error> {
    check(ctx, caller, &owner).await?;
    if request.description.chars().count() > DESCRIPTION_CHARACTERS_MAX {
        let characters_max = DESCRIPTION_CHARACTERS_MAX;
        return Err(IdentityError::TokenDescriptionTooLong { characters_max }.into());
    }
    if request.description.lines().any(has_hidden) {
        return Err(IdentityError::HiddenCharacters { what: "description of the token" }.into());
    }
    request.within.as_ref().map_or(Ok(()), Scope::check_new).map_err(InvalidInput::from)?;
    check_expiry(ctx, request.expires)?;
    let own = &caller.token;
    let (may, org, name) = match &owner {
        Owner::User(_) => {
            let org = request.org.or_else(|| own.org.clone());
            if let Some(org) = org.as_ref().filter(|org| !caller.is_member(org)) {
                return Err(AccessError::NoOrg(org.clone()).into());
            }
            (request.role.or(own.may), org, request.name.map_or_else(|| new_name(ctx), Ok)?)
        }
        Owner::Organization(_) => {
            (Some(request.role.unwrap_or(Role::Member)), None, machine_name(request.name)?)
        }
        // It has no role of its own: the team's grants decide, and this limits them.
        Owner::Team(..) => (request.role.or(own.may), None, machine_name(request.name)?),
    };
    let expires = request.expires.or(own.expires);
    let within = request.within.or_else(|| own.within.clone());
    check_role(own, may)?;
    check_scope(own, within.as_ref())?;
    check_end(own, expires)?;
    let new = NewToken {
        org,
        within,
        may,
        description: request.description,
        created_by: Some(caller.user.login.clone()),
        expires,
        ..NewToken::new(owner, name)
    };
    tokens::issue(ctx, new).await
}

/// Replaces the secret of a token. The old one works for this many seconds more.
///
/// # Errors
/// As [`create`]; as [`tokens::find`] and [`tokens::rotate`].
pub async fn rotate(
    ctx: &Context,
    caller: &Caller,
    owner: &Owner,
    id: &str,
    grace_seconds: i64,
    expires: Option<Timestamp>,
) -> Result<Issued, Error> {
    check(ctx, caller, owner).await?;
    check_expiry(ctx, expires)?;
    let grace = u64::try_from(grace_seconds).ok().filter(|seconds| *seconds <= GRACE_SECONDS_MAX);
    let grace = grace.ok_or(IdentityError::TokenGraceTooLong { seconds_max: GRACE_SECONDS_MAX })?;
    let TokenEntry { token, .. } = tokens::find(ctx, owner, id).await?;
    check_within(&caller.token, &token)?;
    check_end(&caller.token, expires.or(token.expires))?;
    tokens::rotate(ctx, owner, &token.name, Duration::from_secs(grace), expires).await
}

/// Ends a token, and returns its entry. A limited token ends itself, and tokens that allow no more.
///
/// # Errors
/// As [`list`]; as [`tokens::find`] and [`tokens::revoke`].
pub async fn end(ctx: &Context, caller: &Caller, owner: &Owner, id: &str) -> Result<TokenEntry, Error> {
    check(ctx, caller, owner).await?;
    let TokenEntry { token, .. } = tokens::find(ctx, owner, id).await?;
    let own = &caller.token;
    let is_itself = (&token.of, &token.name, token.created) == (&own.of, &own.name, own.created);
    if !is_itself {
        check_within(own, &token)?;
    }
    tokens::revoke(ctx, owner, &token.name).await
}

/// A page of the personal tokens of a member that work in this organization alone. Others are not of its admin.
///
/// # Errors
/// As [`list`]; [`AccessError::NoUser`] for a user who is not a member.
pub async fn list_of_member(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    login: &Login,
    shows: Shows,
    after: Option<&TokenName>,
    max: usize,
) -> Result<TokenPage, Error> {
    let here = of_member(ctx, caller, org, login).await?;
    let owner = Owner::User(login.clone());
    let mut page = tokens::list(ctx, &owner, shows, after, max).await?;
    page.tokens.retain(|listed| here.has(&listed.entry.token));
    Ok(page)
}

/// Ends a personal token of a member that works in this organization alone.
///
/// # Errors
/// As [`list_of_member`]; [`IdentityError::NoTokenWithId`], also for a token that works elsewhere too.
pub async fn end_of_member(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    login: &Login,
    id: &str,
) -> Result<TokenEntry, Error> {
    let here = of_member(ctx, caller, org, login).await?;
    let owner = Owner::User(login.clone());
    let TokenEntry { token, .. } = tokens::find(ctx, &owner, id).await?;
    match here.has(&token) {
        true => tokens::revoke(ctx, &owner, &token.name).await,
        false => Err(IdentityError::NoTokenWithId.into()),
    }
}

/// A member, and what works in one organization alone: other credentials of the member are not of its admins.
pub(super) struct Here {
    org: OrgName,
    pub(super) user: User,
}

impl Here {
    /// Whether the member is in no other organization.
    pub(super) fn is_only(&self) -> bool {
        self.user.orgs.len() == 1
    }

    fn has(&self, token: &Token) -> bool {
        token.org.as_ref().map_or(self.is_only(), |only| *only == self.org)
    }
}

pub(super) async fn of_member(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    login: &Login,
) -> Result<Here, Error> {
    caller.check_org(ctx, org).await?;
    let user = membership::user(ctx, login).await?.value;
    if !user.orgs.contains(org) {
        return Err(AccessError::NoUser(login.clone()).into());
    }
    Ok(Here { org: org.clone(), user })
}

/// The days that access tokens have left at most in an organization; 0 for no limit.
///
/// # Errors
/// [`AccessError::NoOrg`], [`AccessError::NotAllowed`].
pub async fn days_left_max(ctx: &Context, caller: &Caller, org: &OrgName) -> Result<u32, Error> {
    caller.check_org(ctx, org).await?;
    Ok(store::access::of(ctx, org).await?.token_days_max.unwrap_or_default())
}

/// Sets the days that access tokens have left at most in an organization; 0 for no limit. The token of the request has to
/// meet the limit: it could not lift it again.
///
/// # Errors
/// [`AccessError::NoOrg`], [`AccessError::NotAllowed`]; [`IdentityError::TokenDaysTooMany`],
/// [`IdentityError::OwnTokenLivesTooLong`].
pub async fn set_days_left_max(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    days: i64,
) -> Result<(), Error> {
    caller.check_org(ctx, org).await?;
    let days = u32::try_from(days).ok().filter(|days| *days <= DAYS_LEFT_MAX);
    let days = days.ok_or(IdentityError::TokenDaysTooMany { days_max: DAYS_LEFT_MAX })?;
    let days_max = Some(days).filter(|days| *days > 0);
    if let Some(days_max) = days_max
        && !caller.ends_within(ctx, days_max)
    {
        return Err(IdentityError::OwnTokenLivesTooLong { org: org.clone(), days_max }.into());
    }
    let mut attempts = Attempts::at("the access of the organization");
    loop {
        attempts.begin()?;
        let stored = store::access::stored(ctx, org).await?;
        let expect = stored.as_ref().map_or(Expect::Absent, Stored::unchanged);
        let mut access = stored.map_or_else(OrgAccess::default, |stored| stored.value);
        if access.token_days_max == days_max {
            return Ok(());
        }
        access.token_days_max = days_max;
        let write = store::put(ctx, OrgAccess::key(org), expect, &access);
        let done = store::commit(ctx, vec![write]).await?;
        ctx.memory.access.forget(org);
        if done.is_ok() {
            return Ok(());
        }
    }
}

fn machine_name(name: Option<TokenName>) -> Result<TokenName, Error> {
    let name = name.ok_or(IdentityError::NoTokenName)?;
    match name.as_str().chars().count() <= NAME_CHARACTERS_MAX {
        true => Ok(name),
        false => Err(IdentityError::TokenNameTooLong { characters_max: NAME_CHARACTERS_MAX }.into()),
    }
}

/// A name for a personal token that was created without one.
fn new_name(ctx: &Context) -> Result<TokenName, Error> {
    let mut random = [0; NAME_RANDOM_BYTES];
    ctx.ids.fill(&mut random);
    Ok(TokenName::parse(&format!("token-{}", hex::encode(random)))?)
}

fn check_expiry(ctx: &Context, expires: Option<Timestamp>) -> Result<(), Error> {
    let Some(expires) = expires else { return Ok(()) };
    let now = ctx.now();
    if expires <= now {
        return Err(IdentityError::TokenExpiryPast.into());
    }
    match expires <= now.plus(Duration::from_secs(DAYS_MAX * SECONDS_OF_A_DAY)) {
        true => Ok(()),
        false => Err(IdentityError::TokenExpiryTooLate { days_max: DAYS_MAX }.into()),
    }
}

/// Refuses what a token of the request must not change: a token with a higher role, or in more organizations or more of
/// them.
fn check_within(own: &Token, token: &Token) -> Result<(), Error> {
    check_role(own, token.may)?;
    check_scope(own, token.within.as_ref())?;
    match &own.org {
        Some(only) if token.org.as_ref() != Some(only) => {
            Err(IdentityError::ExceedsOwnOrg(only.clone()).into())
        }
        _ => Ok(()),
    }
}

fn check_role(own: &Token, may: Option<Role>) -> Result<(), Error> {
    let Some(most) = own.may else { return Ok(()) };
    match may.is_some_and(|may| most.rights().contains(may.rights())) || most == Role::Admin {
        true => Ok(()),
        false => Err(IdentityError::ExceedsOwnRole(most).into()),
    }
}

fn check_scope(own: &Token, within: Option<&Scope>) -> Result<(), Error> {
    let Some(most) = &own.within else { return Ok(()) };
    match within.is_some_and(|within| most.covers(within)) {
        true => Ok(()),
        false => Err(IdentityError::ExceedsOwnScope(most.clone()).into()),
    }
}

fn check_end(own: &Token, expires: Option<Timestamp>) -> Result<(), Error> {
    // The tokens of a person outlast the session in which they are created: that takes a recent sign-in.
    match own.expires.filter(|_| own.name.as_str() != SESSION) {
        Some(end) if expires.is_none_or(|expires| expires > end) => {
            Err(IdentityError::OutlivesOwn(end).into())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Timestamp = Timestamp(1_000);

    fn token(may: Option<Role>, org: Option<&str>, expires: Option<Timestamp>) -> Token {
        let (login, name) = (Login::parse("bob").unwrap(), TokenName::parse("ci").unwrap());
        let org = org.map(|org| OrgName::parse(org).unwrap());
        Token { may, org, expires, ..Token::personal(login, name, Timestamp(0)) }
    }

    #[test]
    fn a_token_changes_only_what_allows_no_more() {
        let rows = [
            (None, None, true),
            (None, Some(Role::Plan), true),
            (Some(Role::Admin), None, true),
            (Some(Role::Plan), None, false),
            (Some(Role::Plan), Some(Role::Plan), true),
            (Some(Role::Plan), Some(Role::View), true),
            (Some(Role::Plan), Some(Role::Apply), false),
            (Some(Role::Member), Some(Role::Auditor), false),
            (Some(Role::Auditor), Some(Role::View), true),
            // Each reads what the other does not.
            (Some(Role::Outputs), Some(Role::View), false),
            (Some(Role::View), Some(Role::Outputs), false),
        ];
        for (own, other, expected) in rows {
            let checked = check_within(&token(own, None, None), &token(other, None, None));
            assert_eq!(checked.is_ok(), expected, "{own:?} {other:?}");
        }
        for (own, other, expected) in [
            (None, None, true),
            (None, Some("acme"), true),
            (Some("acme"), Some("acme"), true),
            (Some("acme"), Some("beta"), false),
            (Some("acme"), None, false),
        ] {
            let checked = check_within(&token(None, own, None), &token(None, other, None));
            assert_eq!(checked.is_ok(), expected, "{own:?} {other:?}");
        }
    }

    #[test]
    fn no_token_outlives_the_one_that_makes_it() {
        let endless = token(None, None, None);
        assert!(check_end(&endless, None).is_ok() && check_end(&endless, Some(END)).is_ok());
        let ending = token(None, None, Some(END));
        assert!(check_end(&ending, Some(END)).is_ok());
        assert!(check_end(&ending, Some(Timestamp(END.0 + 1))).is_err());
        assert!(check_end(&ending, None).is_err());
    }
}

//! Sessions by the API: a person's own, and those of a member.
//!
//! A session allows what its user may do, in all organizations of the user. So a limited token ends none, and an admin
//! of an organization sees and ends those of a member who is in no other.

use super::sessions::{self, Listed};
use super::token_requests::{of_member, personal};
use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::layout::User;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::SignInError;

/// The sessions of the caller.
///
/// # Errors
/// `IdentityError::TokensOfMachine`.
pub async fn list(ctx: &Context, caller: &Caller) -> Result<Vec<Listed>, Error> {
    personal(caller)?;
    sessions::list(ctx, &caller.user, None).await
}

/// Ends a session of the caller, by its ID.
///
/// # Errors
/// As [`list`]; [`SignInError::SessionExceedsToken`], [`SignInError::NoSuchSession`].
pub async fn end(ctx: &Context, caller: &Caller, id: &str) -> Result<(), Error> {
    personal(caller)?;
    let is_limited = caller.token.may.is_some_and(|may| may != Role::Admin);
    if is_limited || caller.token.org.is_some() || caller.token.within.is_some() {
        return Err(SignInError::SessionExceedsToken.into());
    }
    sessions::end_by_id(ctx, &caller.user.login, id).await
}

/// The sessions of a member of this organization alone.
///
/// # Errors
/// `AccessError::NoOrg`, `AccessError::NotAllowed`; `AccessError::NoUser` for a user who is not a member;
/// [`SignInError::SessionsOfSeveralOrgs`] for a member who is in another organization too.
pub async fn list_of_member(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    login: &Login,
) -> Result<Vec<Listed>, Error> {
    let user = only_here(ctx, caller, org, login).await?;
    sessions::list(ctx, &user, None).await
}

/// Ends a session of a member of this organization alone, by its ID.
///
/// # Errors
/// As [`list_of_member`]; [`SignInError::NoSuchSession`].
pub async fn end_of_member(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    login: &Login,
    id: &str,
) -> Result<(), Error> {
    only_here(ctx, caller, org, login).await?;
    sessions::end_by_id(ctx, login, id).await
}

/// Ends all sessions of a member of this organization alone, and returns how many.
///
/// # Errors
/// As [`list_of_member`].
pub async fn end_all_of_member(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    login: &Login,
) -> Result<usize, Error> {
    only_here(ctx, caller, org, login).await?;
    sessions::end_all(ctx, login).await
}

/// The member, who is in no other organization.
async fn only_here(ctx: &Context, caller: &Caller, org: &OrgName, login: &Login) -> Result<User, Error> {
    let here = of_member(ctx, caller, org, login).await?;
    match here.is_only() {
        true => Ok(here.user),
        false => Err(SignInError::SessionsOfSeveralOrgs(login.clone()).into()),
    }
}

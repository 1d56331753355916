//! The first user and organization of a store, and the members of an organization.

use super::invitations::Invited;
use super::tokens::{Shown, entry_of, new_token, token_writes};
use super::{directory, invitations, membership};
use crate::context::Context;
use crate::domain::names::{Login, OrgName, TokenName, check_new_owner};
use crate::domain::role::Role;
use crate::layout::{Member, Org, User};
use crate::ports::Expect;
use crate::services::caller::Caller;
use crate::services::{Error, store};

/// The members of an organization with their roles, by login. Costs one query, for every caller.
///
/// # Errors
/// `AccessError::NoOrg` unless the caller is a member.
pub async fn members(ctx: &Context, caller: &Caller, org: &OrgName) -> Result<Vec<(Login, Role)>, Error> {
    caller.check_org(ctx, org).await?;
    membership::read_members(ctx, org).await
}

/// The user that the first start creates.
#[derive(Debug)]
pub struct FirstUser {
    /// The admin user.
    pub login: Login,
    /// The user's access token. It is shown only this once.
    pub token: String,
    /// The invitation for the first sign-in with a browser.
    pub invited: Invited,
}

/// Whether the store has a user: this one, or any. A store that is older than the directory gets one, which
/// lists this user and all users who share an organization with a listed user.
///
/// # Errors
/// Errors of the ports.
pub async fn has_users(ctx: &Context, login: &Login) -> Result<bool, Error> {
    if store::read(ctx, &User::key(login)).await?.is_some() {
        directory::complete_once(ctx, login).await?;
        return Ok(true);
    }
    directory::has_users(ctx).await
}

/// Creates the first user and organization with an access token and an invitation, unless the store has a user.
///
/// # Errors
/// [`Error::Identity`] for the operator's reserved name, and errors of the ports.
pub async fn bootstrap(ctx: &Context, login: &Login, org: &OrgName) -> Result<Option<FirstUser>, Error> {
    if has_users(ctx, login).await? {
        return Ok(None);
    }
    directory::check_name(login)?;
    check_new_owner(org.as_str())?;
    let now = ctx.now();
    let name = TokenName::parse("first-start")?;
    let (secret, token) = new_token(ctx, login, &name, None, None);
    let user = User::new(login.clone(), now).as_member(org, Role::Admin);
    let mut writes = vec![
        store::put(ctx, User::key(login), Expect::Absent, &user),
        store::put(ctx, Org::key(org), Expect::Absent, &Org { created: now }),
        store::put(ctx, Member::key(org, login), Expect::Absent, &Member { role: Role::Admin }),
    ];
    writes.extend([directory::user_write(ctx, login, now), directory::org_write(ctx, org, now)]);
    writes.extend(token_writes(ctx, &entry_of(Shown::Token(&secret), &token)));
    let (invited, invitation) = invitations::first(ctx, &user);
    writes.push(invitation);
    // Refused: another process was first, and shows its own token.
    let is_first = store::commit(ctx, writes).await?.is_ok();
    Ok(is_first.then(|| FirstUser { login: login.clone(), token: secret, invited }))
}

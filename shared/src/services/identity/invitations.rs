//! Invitations: links with which a user signs in once, without a provider or a password.

use std::time::Duration;

use super::{membership, sign_in};
use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::layout::{Invitation, User, check, delete};
use crate::ports::{Expect, Timestamp};
use crate::services::error::{AccessError, IdentityError, SignInError};
use crate::services::store::retry::Attempts;
use crate::services::store::sha256_hex;
use crate::services::{Error, store};

/// The time in which an invitation can be used, unless the operator chooses.
pub const INVITATION_VALID: Duration = Duration::from_secs(3 * 24 * 3600);

/// A new invitation.
#[derive(Debug)]
pub struct Invited {
    /// The code for the link. It is shown only this once.
    pub code: String,
    /// When it stops.
    pub until: Timestamp,
}

/// Invites a user. An earlier invitation of the user stops.
///
/// # Errors
/// [`AccessError::NoUser`].
pub async fn invite(ctx: &Context, login: &Login, valid: Duration) -> Result<Invited, Error> {
    make(ctx, login, valid, None).await
}

/// Invites a member for an admin of this organization. The link stops once the user leaves it, or gets rights elsewhere.
///
/// # Errors
/// [`AccessError::NoUser`].
pub(super) async fn invite_to(ctx: &Context, login: &Login, org: &OrgName) -> Result<Invited, Error> {
    make(ctx, login, INVITATION_VALID, Some(org)).await
}

async fn make(
    ctx: &Context,
    login: &Login,
    valid: Duration,
    org: Option<&OrgName>,
) -> Result<Invited, Error> {
    let mut random = [0; 32];
    ctx.ids.fill(&mut random);
    let secret = hex::encode(random);
    let mut attempts = Attempts::at("the user");
    loop {
        attempts.begin()?;
        let user = membership::user(ctx, login).await?;
        let until = ctx.now().plus(valid);
        let (hash, user_made) = (sha256_hex(secret.as_bytes()), user.value.created);
        let invitation = Invitation { hash, user_made, until, org: org.cloned() };
        let writes = vec![
            store::put(ctx, Invitation::key(login), Expect::Any, &invitation),
            check(User::key(login), user.unchanged()),
        ];
        if store::commit(ctx, writes).await?.is_ok() {
            return Ok(Invited { code: format!("{login}.{secret}"), until });
        }
    }
}

/// The user whom a code invites, without using it.
///
/// # Errors
/// [`SignInError::NoInvitation`].
pub async fn invited(ctx: &Context, code: &str) -> Result<Login, Error> {
    find(ctx, code).await.map(|(login, _)| login)
}

/// Uses a code, and returns its user. It works once.
///
/// # Errors
/// [`SignInError::NoInvitation`].
pub async fn redeem(ctx: &Context, code: &str) -> Result<Login, Error> {
    let (login, unchanged) = find(ctx, code).await?;
    match store::commit(ctx, vec![delete(Invitation::key(&login), unchanged)]).await? {
        Ok(()) => Ok(login),
        // Another request used it first, or the operator made another one.
        Err(_) => Err(SignInError::NoInvitation.into()),
    }
}

async fn find(ctx: &Context, code: &str) -> Result<(Login, Expect), Error> {
    let none = || Error::from(SignInError::NoInvitation);
    let (login, secret) = code.split_once('.').ok_or_else(none)?;
    let login = Login::parse(login).map_err(|_| none())?;
    let found = store::read(ctx, &Invitation::key(&login)).await?.ok_or_else(none)?;
    let is_it = found.value.hash == sha256_hex(secret.as_bytes()) && found.value.until > ctx.now();
    let user = match membership::user(ctx, &login).await {
        Ok(user) => user.value,
        Err(Error::Access(AccessError::NoUser(_))) => return Err(none()),
        Err(error) => return Err(error),
    };
    if !is_it || user.created != found.value.user_made {
        return Err(none());
    }
    if let Some(org) = &found.value.org
        && (!user.orgs.contains(org) || Box::pin(rights_elsewhere(ctx, &user, org)).await?.is_some())
    {
        return Err(none());
    }
    Ok((login, found.unchanged()))
}

/// Refuses a user whom an admin of this organization must not invite.
///
/// # Errors
/// [`IdentityError::InvitedByOperator`].
pub(super) async fn check_of_org(ctx: &Context, user: &User, org: &OrgName) -> Result<(), Error> {
    match rights_elsewhere(ctx, user, org).await? {
        Some(why) => Err(IdentityError::InvitedByOperator { login: user.login.clone(), why }.into()),
        None => Ok(()),
    }
}

/// Why the user may have rights outside of this organization, which the holder of a link gets too. The rules of a provider
/// may give some at the next sign-in.
async fn rights_elsewhere(ctx: &Context, user: &User, org: &OrgName) -> Result<Option<&'static str>, Error> {
    if ctx.server_admins.contains(&user.login) {
        return Ok(Some(OF_SERVER_ADMIN));
    }
    if user.orgs.iter().any(|other| other != org) {
        return Ok(Some("this user is in another organization"));
    }
    let accounts = sign_in::accounts(ctx, &user.login).await?;
    Ok((!accounts.is_empty()).then_some("this user has an account of a provider"))
}

/// Why an admin of an organization makes no link for a login that administers the server.
pub(super) const OF_SERVER_ADMIN: &str = "this is the login of an admin of the server";

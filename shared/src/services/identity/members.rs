//! Members of an organization, for its admins. The operator's commands are in [`orgs`].

use super::invitations::{self, INVITATION_VALID, Invited};
use super::orgs::{self, LastAdmin};
use super::{passwords, sign_in, users};
use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::layout::User;
use crate::services::caller::Caller;
use crate::services::error::{AccessError, IdentityError};
use crate::services::{Error, store};

/// Makes a user of this server a member with this role. Processes that cache the user see the change within a minute.
///
/// # Errors
/// `AccessError::NotAllowed`, [`AccessError::NoUser`]; [`IdentityError::AlreadyMember`].
pub async fn add(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    login: &Login,
    role: Role,
) -> Result<(), Error> {
    caller.check_org(ctx, org).await?;
    let already = || IdentityError::AlreadyMember { login: login.clone(), org: org.clone() };
    let decide = |has: Option<Role>| match has {
        None => Ok(role),
        Some(_) => Err(already().into()),
    };
    orgs::change(ctx, org, login, LastAdmin::Stays, decide).await.map(drop)
}

/// Invites a person by a link that works once, and returns the role that the person has. A login that no user has becomes
/// a user of this server, who is a member with this role. A member keeps the role, and is invited again only as long as
/// the invitation is the member's one way in: an admin here does not sign in as somebody who has another.
///
/// # Errors
/// `AccessError::NotAllowed`; [`IdentityError::UserExists`] for a user who is not a member;
/// [`IdentityError::NotInvited`].
pub async fn invite(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    login: &Login,
    role: Role,
) -> Result<(Invited, Role), Error> {
    caller.check_org(ctx, org).await?;
    let refused = |why| Error::from(IdentityError::NotInvited { login: login.clone(), why });
    if caller.is_user(login) {
        return Err(refused("a user cannot invite themselves"));
    }
    // An admin here would sign in as the admin of the server, or make a user of that name.
    if ctx.server_admins.contains(login) {
        return Err(refused("this is the login of an admin of the server, so the operator has to"));
    }
    let Some(user) = store::read(ctx, &User::key(login)).await? else {
        users::create(ctx, login, std::slice::from_ref(org), role).await?;
        return Ok((invitations::invite(ctx, login, INVITATION_VALID).await?, role));
    };
    let has = user.value.role_in(org).ok_or_else(|| IdentityError::UserExists(login.clone()))?;
    if user.value.orgs.len() > 1 {
        return Err(refused(
            "this user is in another organization too, so only the operator can invite them",
        ));
    }
    if passwords::is_set(ctx, login).await? || !sign_in::accounts(ctx, login).await?.is_empty() {
        return Err(refused(
            "this user has a password or an account of a provider, so only the operator can invite them",
        ));
    }
    Ok((invitations::invite(ctx, login, INVITATION_VALID).await?, has))
}

/// Changes a member's role. Processes that cache the user see the change within a minute.
///
/// # Errors
/// `AccessError::NotAllowed`, [`AccessError::NoUser`] for a user who is not a member; [`IdentityError::LastAdmin`].
pub async fn set_role(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    login: &Login,
    role: Role,
) -> Result<(), Error> {
    caller.check_org(ctx, org).await?;
    let missing = || Error::Access(AccessError::NoUser(login.clone()));
    let decide = |has: Option<Role>| has.map(|_| role).ok_or_else(missing);
    orgs::change(ctx, org, login, LastAdmin::Stays, decide).await.map(drop)
}

/// Ends the membership of another user, with the user's places in teams and the grants to the user.
///
/// # Errors
/// `AccessError::NotAllowed`, [`AccessError::NoUser`] for a user who is not a member; [`IdentityError::RemovesSelf`],
/// [`IdentityError::LastAdmin`].
pub async fn remove(ctx: &Context, caller: &Caller, org: &OrgName, login: &Login) -> Result<(), Error> {
    caller.check_org(ctx, org).await?;
    if caller.is_user(login) {
        return Err(IdentityError::RemovesSelf(org.clone()).into());
    }
    match orgs::remove(ctx, org, login, LastAdmin::Stays).await? {
        true => Ok(()),
        false => Err(AccessError::NoUser(login.clone()).into()),
    }
}

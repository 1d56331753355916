//! Members of an organization, for its admins. The operator's commands are in [`orgs`].

use super::orgs::{self, LastAdmin};
use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::{AccessError, IdentityError};

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

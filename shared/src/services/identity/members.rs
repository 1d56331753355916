//! Members of an organization, for its admins. The operator's commands are in [`orgs`].

use super::invitations::{self, Invited};
use super::orgs::{self, LastAdmin};
use super::users;
use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::layout::User;
use crate::services::caller::Caller;
use crate::services::error::{AccessError, IdentityError, OperatorsAlone};
use crate::services::{Error, store};

/// Makes a user of this server a member with this role. Processes that cache the user see the change within a minute.
///
/// # Errors
/// `AccessError::NotAllowed`, [`AccessError::NoUser`]; [`IdentityError::AlreadyMember`],
/// [`IdentityError::AddedByOperator`].
pub async fn add(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    login: &Login,
    role: Role,
) -> Result<(), Error> {
    caller.check_org(ctx, org).await?;
    // Otherwise an admin could end how a user of others signs in.
    if let Some(user) = store::read(ctx, &User::key(login)).await?
        && user.value.loses_sign_in_for(org)
    {
        return Err(IdentityError::AddedByOperator { login: login.clone(), org: org.clone() }.into());
    }
    let already = || IdentityError::AlreadyMember { login: login.clone(), org: org.clone() };
    let decide = |has: Option<Role>| match has {
        None => Ok(role),
        Some(_) => Err(already().into()),
    };
    orgs::change(ctx, org, login, LastAdmin::Stays, decide).await.map(drop)
}

/// Invites a person by a link that works once, and returns the role that the person has. A login that no user has becomes
/// a user of this server. Such a user becomes a member with this role, and so does a user of no organization who never
/// signed in. A member keeps the role: with the link, a person who forgot the password sets another.
///
/// The holder of the link signs in as the user. So it is made only for a user who has no rights outside of the organization,
/// and stops when the user gets some. A user of no organization who can sign in needs no link: see [`add`].
///
/// # Errors
/// `AccessError::NotAllowed`; [`IdentityError::InvitesSelf`], [`IdentityError::InvitedByOperator`],
/// [`IdentityError::SignsInAlready`].
pub async fn invite(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    login: &Login,
    role: Role,
) -> Result<(Invited, Role), Error> {
    caller.check_org(ctx, org).await?;
    if caller.is_user(login) {
        return Err(IdentityError::InvitesSelf.into());
    }
    // An admin here would sign in as the admin of the server, or make a user of that name.
    if ctx.server_admins.contains(login) {
        let why = OperatorsAlone::ServerAdmin;
        return Err(IdentityError::InvitedByOperator { login: login.clone(), why }.into());
    }
    let role = match store::read(ctx, &User::key(login)).await? {
        None => {
            users::create(ctx, login, std::slice::from_ref(org), role).await?;
            role
        }
        Some(user) => {
            if user.value.orgs.is_empty() && Box::pin(invitations::signs_in(ctx, &user.value)).await? {
                return Err(IdentityError::SignsInAlready { login: login.clone(), org: org.clone() }.into());
            }
            invitations::check_of_org(ctx, &user.value, org).await?;
            match user.value.role_in(org) {
                Some(has) => has,
                None => {
                    let decide = |has: Option<Role>| Ok(has.unwrap_or(role));
                    orgs::change(ctx, org, login, LastAdmin::Stays, decide).await?.role
                }
            }
        }
    };
    Ok((invitations::invite_to(ctx, login, org, &caller.user.login).await?, role))
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

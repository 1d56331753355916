//! Organizations and their members, for the operator. A membership is stored twice: with the
//! organization and with the user. One commit changes both, and one read returns all that a caller may see.

use std::collections::BTreeSet;

use super::{directory, membership, resets};
use crate::context::Context;
use crate::domain::names::{Login, OrgName, check_new_owner};
use crate::domain::role::Role;
use crate::layout::{Member, Org, Stored, User, check, delete};
use crate::ports::{Expect, Timestamp, Write};
use crate::services::error::IdentityError;
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};

/// Members that a new organization can have; others are added later.
const FIRST_MEMBERS_MAX: usize = 40;

/// Creates an organization with these members.
///
/// # Errors
/// [`IdentityError::OrgExists`], [`IdentityError::TooManyMembers`]; `AccessError::NoUser`; a name that paths begin with.
pub async fn create(ctx: &Context, org: &OrgName, members: &[Login]) -> Result<Timestamp, Error> {
    check_new_owner(org.as_str())?;
    let members: BTreeSet<&Login> = members.iter().collect();
    if members.len() > FIRST_MEMBERS_MAX {
        return Err(IdentityError::TooManyMembers { max: FIRST_MEMBERS_MAX }.into());
    }
    let mut attempts = Attempts::at("a user");
    loop {
        attempts.begin()?;
        let created = ctx.now();
        let mut writes = vec![
            store::put(ctx, Org::key(org), Expect::Absent, &Org { created }),
            directory::org_write(ctx, org, created),
        ];
        // All is checked before a sign-in ends.
        let mut users = Vec::with_capacity(members.len());
        for &login in &members {
            users.push((login, membership::user(ctx, login).await?));
        }
        if store::read(ctx, &Org::key(org)).await?.is_some() {
            return Err(IdentityError::OrgExists(org.clone()).into());
        }
        let mut ended = Vec::new();
        for (login, user) in users {
            if user.value.loses_sign_in_for(org) {
                writes.extend(Box::pin(resets::end(ctx, login, None)).await?);
                ended.push(login);
            }
            writes.push(membership::member_write(ctx, org, login, Role::Member));
            writes.push(membership::user_write(ctx, org, &user, Role::Member));
        }
        match store::commit(ctx, writes).await? {
            Ok(()) => {
                for login in ended {
                    Box::pin(resets::end_sessions_and_tokens(ctx, login)).await?;
                    forget(ctx, login);
                }
                return Ok(created);
            }
            Err(refusal) if refusal.index == 0 => {
                return Err(IdentityError::OrgExists(org.clone()).into());
            }
            Err(_) => {}
        }
    }
}

/// The members of an organization with their roles, by login.
///
/// # Errors
/// `AccessError::NoOrg`.
pub async fn members(ctx: &Context, org: &OrgName) -> Result<Vec<(Login, Role)>, Error> {
    membership::org(ctx, org).await?;
    membership::read_members(ctx, org).await
}

/// A membership after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership {
    /// The role that the user has now.
    pub role: Role,
    /// Whether the change was needed.
    pub changed: bool,
}

/// Whether a change may leave an organization without an admin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastAdmin {
    /// It may: the operator can appoint another one.
    MayGo,
    /// It may not.
    Stays,
}

/// Adds a user to the organization with this role. A member keeps the current role. Processes that cache the
/// user see the change within a minute.
///
/// # Errors
/// `AccessError::NoOrg`, `AccessError::NoUser`.
pub async fn add_member(
    ctx: &Context,
    org: &OrgName,
    login: &Login,
    role: Role,
) -> Result<Membership, Error> {
    change(ctx, org, login, LastAdmin::MayGo, |has| Ok(has.unwrap_or(role))).await
}

/// Changes a member's role. Processes that cache the user see the change within a minute. An update that
/// needs a higher role ends with its lease.
///
/// # Errors
/// `AccessError::NoOrg`, `AccessError::NoUser`, [`IdentityError::NotAMember`].
pub async fn set_role(ctx: &Context, org: &OrgName, login: &Login, role: Role) -> Result<Membership, Error> {
    let not_a_member =
        || Error::Identity(IdentityError::NotAMember { login: login.clone(), org: org.clone(), role });
    change(ctx, org, login, LastAdmin::MayGo, |has| has.map(|_| role).ok_or_else(not_a_member)).await
}

/// Changes a membership to what `decide` makes of the present role.
pub(super) async fn change(
    ctx: &Context,
    org: &OrgName,
    login: &Login,
    last: LastAdmin,
    decide: impl Fn(Option<Role>) -> Result<Role, Error>,
) -> Result<Membership, Error> {
    let mut attempts = Attempts::at("the user");
    loop {
        attempts.begin()?;
        let record = membership::org(ctx, org).await?;
        let user = membership::user(ctx, login).await?;
        let has = user.value.role_in(org);
        let role = decide(has)?;
        // In a store of format 1, the first user's record does not say that the user is an admin.
        let listed = store::read(ctx, &Member::key(org, login)).await?;
        if has == Some(role) && listed.is_some_and(|member| member.value.role == role) {
            return Ok(Membership { role, changed: false });
        }
        let of_org = match has == Some(Role::Admin) && role != Role::Admin {
            true => admin_leaves(ctx, org, &record, login, last).await?,
            false => check(Org::key(org), record.unchanged()),
        };
        let mut writes = vec![
            membership::member_write(ctx, org, login, role),
            of_org,
            membership::user_write(ctx, org, &user, role),
        ];
        let ends = user.value.loses_sign_in_for(org);
        if ends {
            writes.extend(Box::pin(resets::end(ctx, login, None)).await?);
        }
        if store::commit(ctx, writes).await?.is_ok() {
            if ends {
                Box::pin(resets::end_sessions_and_tokens(ctx, login)).await?;
            }
            forget(ctx, login);
            return Ok(Membership { role, changed: true });
        }
    }
}

/// The write of the organization's item that goes with every commit that takes the role `admin` from a member. It
/// replaces the item, so of two such commits at the same time one is refused and decided again.
///
/// # Errors
/// [`IdentityError::LastAdmin`], if the last admin stays.
pub(super) async fn admin_leaves(
    ctx: &Context,
    org: &OrgName,
    record: &Stored<Org>,
    login: &Login,
    last: LastAdmin,
) -> Result<Write, Error> {
    check_another_admin(ctx, org, login, last).await?;
    Ok(store::put(ctx, Org::key(org), record.unchanged(), &record.value))
}

/// Refuses to take the role of the last admin. An admin is a user whose own role is `admin`: a grant does not count,
/// because others may take it at the same time.
async fn check_another_admin(
    ctx: &Context,
    org: &OrgName,
    login: &Login,
    last: LastAdmin,
) -> Result<(), Error> {
    if last == LastAdmin::MayGo {
        return Ok(());
    }
    for (other, role) in membership::read_members(ctx, org).await? {
        if other == *login || role != Role::Admin {
            continue;
        }
        let user = store::read(ctx, &User::key(&other)).await?;
        if user.is_some_and(|user| user.value.role_in(org) == Some(Role::Admin)) {
            return Ok(());
        }
    }
    Err(IdentityError::LastAdmin { login: login.clone(), org: org.clone() }.into())
}

/// Ends a membership, with the user's places in teams and the grants to the user; false if there was none. Processes
/// that cache the user see the change within a minute.
///
/// # Errors
/// `AccessError::NoOrg`, `AccessError::NoUser`.
pub async fn remove_member(ctx: &Context, org: &OrgName, login: &Login) -> Result<bool, Error> {
    remove(ctx, org, login, LastAdmin::MayGo).await
}

/// Forgets what this process knows of a user, so that a change of the membership takes effect here at once.
fn forget(ctx: &Context, login: &Login) {
    ctx.memory.callers.forget_those(|(_, user)| user.login == *login);
    ctx.memory.sessions.forget_those(|(_, user)| user.login == *login);
}

pub(super) async fn remove(
    ctx: &Context,
    org: &OrgName,
    login: &Login,
    last: LastAdmin,
) -> Result<bool, Error> {
    let mut attempts = Attempts::at("the user");
    loop {
        attempts.begin()?;
        let record = membership::org(ctx, org).await?;
        let user = membership::user(ctx, login).await?;
        if !user.value.orgs.contains(org) {
            return Ok(false);
        }
        let next = user.value.clone().without(org);
        let mut writes = vec![
            delete(Member::key(org, login), Expect::Any),
            store::put(ctx, User::key(login), user.unchanged(), &next),
        ];
        if user.value.role_in(org) == Some(Role::Admin) {
            writes.push(admin_leaves(ctx, org, &record, login, last).await?);
        }
        writes.extend(store::access::left(ctx, org, login).await?);
        if store::commit(ctx, writes).await?.is_ok() {
            forget(ctx, login);
            return Ok(true);
        }
    }
}

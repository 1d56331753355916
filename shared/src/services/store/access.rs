//! Reads and changes who may do what in an organization, and reads the tags that grants name.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cache::REMEMBERED_FOR;
use crate::context::Context;
use crate::domain::access::{self, ACCESS_BYTES_MAX, Access, GRANTS_MAX, TEAM_MEMBERS_MAX, TEAMS_MAX};
use crate::domain::names::{Login, OrgName, StackAddress};
use crate::domain::role::Role;
use crate::layout::{Member, OrgAccess, Record as _, StackEntry, Stored, User, check};
use crate::ports::{Expect, Revision, Write};
use crate::services::error::IdentityError;
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};

/// The teams and grants of an organization. One read, cached for a minute.
///
/// # Errors
/// Errors of the ports.
pub(crate) async fn of(ctx: &Context, org: &OrgName) -> Result<Arc<Access>, Error> {
    let now = ctx.now();
    if let Some(access) = ctx.memory.access.get(org, now, REMEMBERED_FOR) {
        return Ok(access);
    }
    let access = Arc::new(stored(ctx, org).await?.map(|stored| stored.value.0).unwrap_or_default());
    ctx.memory.access.put(org.clone(), now, Arc::clone(&access));
    Ok(access)
}

/// The same, as it is stored at this moment; `None` if nothing was ever stored.
///
/// # Errors
/// Errors of the ports.
pub(crate) async fn stored(ctx: &Context, org: &OrgName) -> Result<Option<Stored<OrgAccess>>, Error> {
    store::read(ctx, &OrgAccess::key(org)).await
}

/// Changes the teams and grants of an organization in one conditional write. `decide` makes the next ones of those that
/// are stored and of their revision; `None` changes nothing. If the change names a user, the same commit checks that the
/// user is still a member. Other processes apply the change within a minute.
///
/// # Errors
/// Errors of `decide`; [`IdentityError::Outsider`], [`IdentityError::AccessTooLarge`].
pub(crate) async fn change<T>(
    ctx: &Context,
    org: &OrgName,
    names: Option<&Login>,
    decide: impl Fn(&Access, Option<Revision>) -> Result<(Option<Access>, T), Error>,
) -> Result<T, Error> {
    let mut attempts = Attempts::at("the teams and grants");
    loop {
        attempts.begin()?;
        let found = stored(ctx, org).await?;
        let (expect, revision, access) = match found {
            Some(found) => (found.unchanged(), Some(found.revision), found.value.0),
            None => (Expect::Absent, None, Access::default()),
        };
        let (next, answer) = decide(&access, revision)?;
        let Some(next) = next else { return Ok(answer) };
        check_size(org, &next)?;
        let mut writes = vec![store::put(ctx, OrgAccess::key(org), expect, &OrgAccess(next))];
        if let Some(login) = names {
            let user = store::read(ctx, &User::key(login)).await?;
            let user = user.filter(|user| user.value.orgs.contains(org));
            let outsider = || IdentityError::Outsider { login: login.clone(), org: org.clone() };
            writes.push(check(User::key(login), user.ok_or_else(outsider)?.unchanged()));
        }
        let written = store::commit(ctx, writes).await?;
        ctx.memory.access.forget(org);
        if written.is_ok() {
            return Ok(answer);
        }
    }
}

/// Members that are read to find admins among them, at most.
const MEMBERS_READ_MAX: usize = 500;

/// Admins that a refusal names, at most.
const ADMINS_NAMED_MAX: usize = 3;

/// Some admins of an organization, for a refusal that they can lift. One query.
///
/// # Errors
/// Errors of the ports.
pub(crate) async fn some_admins(ctx: &Context, org: &OrgName) -> Result<Vec<Login>, Error> {
    let (items, _) = store::page::read(ctx, Member::of_org(org), None, MEMBERS_READ_MAX).await?;
    let mut admins = Vec::new();
    for item in &items {
        if admins.len() < ADMINS_NAMED_MAX && Member::decode(&item.value)?.role == Role::Admin {
            admins.push(Member::login_in(&item.key)?);
        }
    }
    Ok(admins)
}

/// Refuses teams and grants that do not fit into their item.
///
/// # Errors
/// [`IdentityError::AccessTooLarge`].
pub(crate) fn check_size(org: &OrgName, access: &Access) -> Result<(), Error> {
    let bytes = serde_json::to_vec(access).map_err(|error| Error::Broken(error.to_string()))?.len();
    let members = access.teams.values().map(|team| team.members.len()).sum();
    for (what, count, max) in [
        ("teams", access.teams.len(), TEAMS_MAX),
        ("members of teams", members, TEAM_MEMBERS_MAX),
        ("grants", access.grants.len(), GRANTS_MAX),
        ("bytes of teams and grants", bytes, ACCESS_BYTES_MAX),
    ] {
        if count > max {
            return Err(IdentityError::AccessTooLarge { org: org.clone(), what, count, max }.into());
        }
    }
    Ok(())
}

/// The write that takes a user who leaves the organization out of its teams and grants, if they name the user.
///
/// # Errors
/// Errors of the ports.
pub(crate) async fn left(ctx: &Context, org: &OrgName, login: &Login) -> Result<Option<Write>, Error> {
    let Some(stored) = stored(ctx, org).await? else { return Ok(None) };
    let next = access::without_member(&stored.value, login);
    Ok(next.map(|next| {
        ctx.memory.access.forget(org);
        store::put(ctx, OrgAccess::key(org), stored.unchanged(), &OrgAccess(next))
    }))
}

/// The tags of a stack, for a grant that names one. One read, cached for a minute; none if there is no such stack.
///
/// # Errors
/// Errors of the ports.
pub(crate) async fn tags_of_stack(
    ctx: &Context,
    address: &StackAddress,
) -> Result<Arc<BTreeMap<String, String>>, Error> {
    let now = ctx.now();
    if let Some(tags) = ctx.memory.tags.get(address, now, REMEMBERED_FOR) {
        return Ok(tags);
    }
    let entry = store::read(ctx, &StackEntry::key(address)).await?;
    let tags = Arc::new(entry.map(|entry| entry.value.tags).unwrap_or_default());
    ctx.memory.tags.put(address.clone(), now, Arc::clone(&tags));
    Ok(tags)
}

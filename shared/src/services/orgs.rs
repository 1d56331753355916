//! Organizations and their members, for whoever works at the store itself. A membership stands in two places that move
//! in one commit: with the organization, and with the user, so that one read tells what a caller may see.

use std::collections::BTreeSet;

use super::{Error, RACES_MAX, directory, store, users};
use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::layout::ItemKeys;
use crate::layout::record::{Record, Stored, check, delete, put};
use crate::layout::records::{Member, Org, Role, User};
use crate::ports::{Expect, Item, Timestamp, Write};

/// Members that an organization is made with; others are added later.
const FIRST_MEMBERS_MAX: usize = 40;

/// Makes an organization with these members.
///
/// # Errors
/// [`Error::Invalid`] when there is one of that name; [`Error::NoUser`].
pub async fn create(ctx: &Context, org: &OrgName, members: &[Login]) -> Result<Timestamp, Error> {
    let members: BTreeSet<&Login> = members.iter().collect();
    if members.len() > FIRST_MEMBERS_MAX {
        return Err(Error::TooMany(format!(
            "an organization is made with at most {FIRST_MEMBERS_MAX} members; add the others to it"
        )));
    }
    for _ in 0..RACES_MAX {
        let created = ctx.now();
        let mut writes = vec![
            put(ItemKeys::org(org), Expect::Absent, ctx.ids.revision(), Org { created }.encode()),
            directory::org_write(ctx, org, created),
        ];
        for &login in &members {
            writes.push(member_write(ctx, org, login));
            writes.push(joined_write(ctx, org, &users::read(ctx, login).await?));
        }
        match store::commit(ctx, writes).await? {
            Ok(()) => return Ok(created),
            Err(refusal) if refusal.index == 0 => {
                return Err(Error::Invalid(format!(
                    "there is an organization {org} already: choose another name"
                )));
            }
            Err(_) => {}
        }
    }
    Err(Error::Contended("a user"))
}

/// The members of an organization with their roles, by login.
///
/// # Errors
/// [`Error::NoOrg`].
pub async fn members(ctx: &Context, org: &OrgName) -> Result<Vec<(Login, Role)>, Error> {
    read(ctx, org).await?;
    read_members(ctx, org).await
}

/// Makes a user a member, and says whether that changed anything. Processes that remember the user learn it within a
/// minute.
///
/// # Errors
/// [`Error::NoOrg`], [`Error::NoUser`].
pub async fn add_member(ctx: &Context, org: &OrgName, login: &Login) -> Result<bool, Error> {
    for _ in 0..RACES_MAX {
        let record = read(ctx, org).await?;
        let user = users::read(ctx, login).await?;
        if user.value.orgs.contains(org) {
            return Ok(false);
        }
        let writes = vec![
            member_write(ctx, org, login),
            check(ItemKeys::org(org), record.unchanged()),
            joined_write(ctx, org, &user),
        ];
        if store::commit(ctx, writes).await?.is_ok() {
            return Ok(true);
        }
    }
    Err(Error::Contended("the user"))
}

/// Ends a membership, and says whether there was one. Processes that remember the user learn it within a minute.
///
/// # Errors
/// [`Error::NoOrg`], [`Error::NoUser`].
pub async fn remove_member(ctx: &Context, org: &OrgName, login: &Login) -> Result<bool, Error> {
    for _ in 0..RACES_MAX {
        read(ctx, org).await?;
        let user = users::read(ctx, login).await?;
        if !user.value.orgs.contains(org) {
            return Ok(false);
        }
        let orgs = user.value.orgs.iter().filter(|other| *other != org).cloned().collect();
        let next = User { orgs, ..user.value.clone() };
        let writes = vec![
            delete(ItemKeys::member(org, login), Expect::Any),
            put(ItemKeys::user(login), user.unchanged(), ctx.ids.revision(), next.encode()),
        ];
        if store::commit(ctx, writes).await?.is_ok() {
            return Ok(true);
        }
    }
    Err(Error::Contended("the user"))
}

/// An organization that is there.
pub(super) async fn read(ctx: &Context, org: &OrgName) -> Result<Stored<Org>, Error> {
    store::read::<Org>(ctx, &ItemKeys::org(org)).await?.ok_or_else(|| Error::NoOrg(org.clone()))
}

/// The write of a membership that stands with the organization.
pub(super) fn member_write(ctx: &Context, org: &OrgName, login: &Login) -> Write {
    let member = Member { role: Role::Member }.encode();
    put(ItemKeys::member(org, login), Expect::Any, ctx.ids.revision(), member)
}

/// The write of a membership that stands with the user, who is not a member yet.
fn joined_write(ctx: &Context, org: &OrgName, user: &Stored<User>) -> Write {
    let mut next = user.value.clone();
    next.orgs.push(org.clone());
    put(ItemKeys::user(&next.login), user.unchanged(), ctx.ids.revision(), next.encode())
}

pub(super) async fn read_members(ctx: &Context, org: &OrgName) -> Result<Vec<(Login, Role)>, Error> {
    let (partition, prefix) = ItemKeys::members(org);
    let items = store::query_all(ctx, partition, prefix, usize::MAX).await?;
    let member = |item: &Item| {
        let login = ItemKeys::parse_member_sort(&item.key.sort)
            .ok_or_else(|| Error::Broken(format!("{:?} is not the key of a member", item.key.sort)))?;
        Ok((login, Member::decode(&item.value)?.role))
    };
    items.iter().map(member).collect()
}

//! Users and organizations as they are stored, and the two writes of a membership: one with each.

use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::layout::ItemKeys;
use crate::layout::record::{Record, Stored, put};
use crate::layout::records::{Member, Org, User};
use crate::ports::{Expect, Item, Write};
use crate::services::{Error, store};

/// A user that is there.
pub(super) async fn user(ctx: &Context, login: &Login) -> Result<Stored<User>, Error> {
    store::read::<User>(ctx, &ItemKeys::user(login)).await?.ok_or_else(|| Error::NoUser(login.clone()))
}

/// An organization that is there.
pub(super) async fn org(ctx: &Context, org: &OrgName) -> Result<Stored<Org>, Error> {
    store::read::<Org>(ctx, &ItemKeys::org(org)).await?.ok_or_else(|| Error::NoOrg(org.clone()))
}

/// The write of a membership that stands with the organization.
pub(super) fn member_write(ctx: &Context, org: &OrgName, login: &Login, role: Role) -> Write {
    let member = Member { role }.encode();
    put(ItemKeys::member(org, login), Expect::Any, ctx.ids.revision(), member)
}

/// The write of a membership that stands with the user, whether it is new or has another role.
pub(super) fn user_write(ctx: &Context, org: &OrgName, user: &Stored<User>, role: Role) -> Write {
    let next = user.value.clone().as_member(org, role);
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

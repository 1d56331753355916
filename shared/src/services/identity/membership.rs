//! Reads users and organizations, and makes the two writes of a membership: one for each side.

use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::layout::{Member, Org, Record, Stored, User};
use crate::ports::{Expect, Item, Timestamp, Write};
use crate::services::error::AccessError;
use crate::services::{Error, store};

/// Reads a user, who must exist.
pub(super) async fn user(ctx: &Context, login: &Login) -> Result<Stored<User>, Error> {
    store::read(ctx, &User::key(login))
        .await?
        .ok_or_else(|| Error::Access(AccessError::NoUser(login.clone())))
}

/// Reads an organization, which must exist.
pub(super) async fn org(ctx: &Context, org: &OrgName) -> Result<Stored<Org>, Error> {
    store::read(ctx, &Org::key(org)).await?.ok_or_else(|| Error::Access(AccessError::NoOrg(org.clone())))
}

/// The write of a membership on the organization's side.
pub(super) fn member_write(ctx: &Context, org: &OrgName, login: &Login, role: Role) -> Write {
    store::put(ctx, Member::key(org, login), Expect::Any, &Member { role })
}

/// The write of a membership on the user's side: a new one, or another role.
pub(super) fn user_write(ctx: &Context, org: &OrgName, user: &Stored<User>, role: Role) -> Write {
    let next = user.value.clone().as_member(org, role);
    store::put(ctx, User::key(&next.login), user.unchanged(), &next)
}

pub(super) async fn read_members(ctx: &Context, org: &OrgName) -> Result<Vec<(Login, Role)>, Error> {
    let items = store::query_all(ctx, Member::of_org(org), usize::MAX).await?;
    let member = |item: &Item| {
        let login = Member::login_in(&item.key)?;
        Ok((login, Member::decode(&item.value)?.role))
    };
    items.iter().map(member).collect()
}

/// Refuses a user whom the provider has to confirm again.
pub(super) fn check_confirmed(user: &User, now: Timestamp) -> Result<(), Error> {
    match user.confirmed_until.is_some_and(|until| until <= now) {
        true => Err(AccessError::SignInNeeded(user.orgs.first().cloned()).into()),
        false => Ok(()),
    }
}

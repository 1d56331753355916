//! Lists users and organizations, for the operator. No request uses this, so no caller learns of others, and
//! nothing scans the table.

use std::collections::BTreeSet;

use super::membership;
use crate::context::Context;
use crate::domain::names::{Login, OrgName, TokenName, check_new_owner};
use crate::domain::role::Role;
use crate::layout::{Broken, DirectoryEntry, KeyPrefix, Org, Record, Token, User};
use crate::ports::{Expect, Item, ItemKey, Timestamp, Write};
use crate::services::caller::Caller;
use crate::services::error::IdentityError;
use crate::services::{Error, store};

/// The operator's login in histories. No user has this name.
pub const OPERATOR: &str = "operator";

/// The default user and organization of a first start.
const FIRST: (&str, &str) = ("admin", "main");

/// The organizations, by name, with their creation times.
///
/// # Errors
/// Errors of the ports.
pub async fn orgs(ctx: &Context) -> Result<Vec<(OrgName, Timestamp)>, Error> {
    let listed = || query(ctx, DirectoryEntry::orgs(), DirectoryEntry::org_in);
    let orgs = listed().await?;
    if !orgs.is_empty() {
        return Ok(orgs);
    }
    // The store is older than the directory, and no server has been started on it since.
    let (login, org) = (Login::parse(FIRST.0)?, OrgName::parse(FIRST.1)?);
    complete(ctx, vec![login], vec![org]).await?;
    listed().await
}

/// The users, by login, with their creation times.
///
/// # Errors
/// Errors of the ports.
pub async fn users(ctx: &Context) -> Result<Vec<(Login, Timestamp)>, Error> {
    // Creates the directory of an old store.
    orgs(ctx).await?;
    query(ctx, DirectoryEntry::users(), DirectoryEntry::login_in).await
}

/// Whether the directory lists any user.
pub(super) async fn has_users(ctx: &Context) -> Result<bool, Error> {
    Ok(!store::query_all(ctx, DirectoryEntry::users(), 1).await?.is_empty())
}

async fn query<T>(
    ctx: &Context,
    entries: KeyPrefix<DirectoryEntry>,
    name_in: fn(&ItemKey) -> Result<T, Broken>,
) -> Result<Vec<(T, Timestamp)>, Error> {
    let entry = |item: &Item| Ok((name_in(&item.key)?, DirectoryEntry::decode(&item.value)?.created));
    store::query_all(ctx, entries, usize::MAX).await?.iter().map(entry).collect()
}

/// The operator as a caller of use cases: an admin of every organization. API requests never use this caller;
/// they have the caller of their access token. `named` is the organization that the command names: a store
/// that is older than the directory may not list it yet.
///
/// # Errors
/// Errors of the ports.
pub async fn operator(ctx: &Context, named: Option<&OrgName>) -> Result<Caller, Error> {
    let mut orgs: Vec<OrgName> = orgs(ctx).await?.into_iter().map(|(org, _)| org).collect();
    if let Some(named) = named
        && !orgs.contains(named)
        && store::read(ctx, &Org::key(named)).await?.is_some()
    {
        complete(ctx, Vec::new(), vec![named.clone()]).await?;
        orgs.push(named.clone());
    }
    let (login, name, created) = (Login::parse(OPERATOR)?, TokenName::parse("command-line")?, ctx.now());
    let token = Token::personal(login.clone(), name, created);
    let operator = User::new(login, created);
    Ok(Caller::new(orgs.iter().fold(operator, |user, org| user.as_member(org, Role::Admin)), token))
}

/// The write that lists a user in the directory.
pub(super) fn user_write(ctx: &Context, login: &Login, created: Timestamp) -> Write {
    store::put(ctx, DirectoryEntry::key_of_user(login), Expect::Any, &DirectoryEntry { created })
}

/// The write that lists an organization in the directory.
pub(super) fn org_write(ctx: &Context, org: &OrgName, created: Timestamp) -> Write {
    store::put(ctx, DirectoryEntry::key_of_org(org), Expect::Any, &DirectoryEntry { created })
}

/// Lists a user of a store that is older than the directory, and all users who can be found from this one.
/// Costs one read if the user is listed.
pub(super) async fn complete_once(ctx: &Context, login: &Login) -> Result<(), Error> {
    match store::get(ctx, &DirectoryEntry::key_of_user(login)).await? {
        Some(_) => Ok(()),
        None => complete(ctx, vec![login.clone()], Vec::new()).await,
    }
}

/// Lists these users and organizations, then their organizations and members, and so on.
async fn complete(ctx: &Context, mut logins: Vec<Login>, mut names: Vec<OrgName>) -> Result<(), Error> {
    let (mut users_seen, mut orgs_seen) = (BTreeSet::new(), BTreeSet::new());
    loop {
        if let Some(login) = logins.pop() {
            if users_seen.insert(login.clone())
                && let Some(user) = store::read(ctx, &User::key(&login)).await?
            {
                let _ = store::commit(ctx, vec![user_write(ctx, &login, user.value.created)]).await?;
                names.extend(user.value.orgs);
            }
        } else if let Some(org) = names.pop() {
            if orgs_seen.insert(org.clone())
                && let Some(record) = store::read(ctx, &Org::key(&org)).await?
            {
                let _ = store::commit(ctx, vec![org_write(ctx, &org, record.value.created)]).await?;
                logins.extend(membership::read_members(ctx, &org).await?.into_iter().map(|(login, _)| login));
            }
        } else {
            return Ok(());
        }
    }
}

/// Refuses the operator's reserved name, and those of paths.
pub(super) fn check_name(login: &Login) -> Result<(), Error> {
    check_new_owner(login.as_str())?;
    if login.as_str() == OPERATOR {
        return Err(IdentityError::ReservedLogin(OPERATOR).into());
    }
    Ok(())
}

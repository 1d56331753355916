//! Users, for whoever works at the store itself.

use std::collections::BTreeMap;

use super::directory;
use super::directory::OPERATOR;
use super::tokens::end_tokens;
use super::{membership, passwords};
use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::layout::{DirectoryEntry, Member, Org, User, check, delete};
use crate::ports::Expect;
use crate::services::error::{AccessError, IdentityError};
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};

/// Memberships that one commit makes or ends.
const MEMBERSHIPS_MAX: usize = 40;

/// Makes a user, a member of these organizations with this role; the first of them owns the stacks that the user names
/// without one.
///
/// # Errors
/// [`IdentityError::UserExists`]; [`AccessError::NoOrg`].
pub async fn create(ctx: &Context, login: &Login, names: &[OrgName], role: Role) -> Result<User, Error> {
    check_name(login)?;
    let nobody = User { login: login.clone(), created: ctx.now(), orgs: Vec::new(), roles: BTreeMap::new() };
    let user = names.iter().fold(nobody, |user, org| user.as_member(org, role));
    if user.orgs.len() > MEMBERSHIPS_MAX {
        return Err(IdentityError::TooManyMemberships { max: MEMBERSHIPS_MAX }.into());
    }
    // What is left of a user of that name whose removal did not end.
    if store::read(ctx, &User::key(login)).await?.is_none() {
        end_tokens(ctx, login).await?;
    }
    let mut writes = vec![
        store::put(ctx, User::key(login), Expect::Absent, &user),
        directory::user_write(ctx, login, user.created),
    ];
    for org in &user.orgs {
        let record = membership::org(ctx, org).await?;
        writes.push(membership::member_write(ctx, org, login, role));
        writes.push(check(Org::key(org), record.unchanged()));
    }
    match store::commit(ctx, writes).await? {
        Ok(()) => Ok(user),
        Err(refusal) if refusal.index == 0 => Err(IdentityError::UserExists(login.clone()).into()),
        Err(_) => Err(Error::Contended("an organization")),
    }
}

/// Refuses the name under which the history knows the operator.
pub(super) fn check_name(login: &Login) -> Result<(), Error> {
    if login.as_str() == OPERATOR {
        return Err(IdentityError::ReservedLogin(OPERATOR).into());
    }
    Ok(())
}

/// All users, by login.
///
/// # Errors
/// Those of the ports.
pub async fn list(ctx: &Context) -> Result<Vec<User>, Error> {
    let mut users = Vec::new();
    for (login, _) in directory::users(ctx).await? {
        // One that is being removed may be listed still.
        if let Some(user) = store::read(ctx, &User::key(&login)).await? {
            users.push(user.value);
        }
    }
    Ok(users)
}

/// What went with a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// Access tokens that were ended.
    pub tokens: usize,
    /// Organizations that the user was a member of.
    pub orgs: Vec<OrgName>,
}

/// Removes a user with all access tokens, client certificates and the password. Processes that remember one forget it within a minute; an update that
/// runs ends with its lease. A repeat after a crash takes away what the first left.
///
/// # Errors
/// [`AccessError::NoUser`].
pub async fn remove(ctx: &Context, login: &Login) -> Result<Removed, Error> {
    let mut left: Vec<OrgName> = Vec::new();
    let mut attempts = Attempts::at("the user");
    loop {
        let attempt = attempts.begin()?;
        let Some(user) = store::read(ctx, &User::key(login)).await? else {
            let tokens = end_tokens(ctx, login).await?;
            // It was there a moment ago: an earlier attempt removed it, and its answer was lost.
            if attempt > 0 || tokens > 0 {
                return Ok(Removed { tokens, orgs: left });
            }
            return Err(AccessError::NoUser(login.clone()).into());
        };
        let mut orgs = user.value.orgs.clone();
        let ended = orgs.split_off(orgs.len().saturating_sub(MEMBERSHIPS_MAX));
        let mut writes: Vec<_> =
            ended.iter().map(|org| delete(Member::key(org, login), Expect::Any)).collect();
        if orgs.is_empty() {
            // From here on no token of the user's is good: whoever reads one looks for its owner.
            writes.push(delete(User::key(login), user.unchanged()));
            writes.push(delete(DirectoryEntry::key_of_user(login), Expect::Any));
            writes.extend(passwords::removal(login));
        } else {
            let fewer = ended.iter().fold(user.value.clone(), User::without);
            writes.push(store::put(ctx, User::key(login), user.unchanged(), &fewer));
        }
        if store::commit(ctx, writes).await?.is_err() {
            continue;
        }
        left.splice(0..0, ended);
        if orgs.is_empty() {
            return Ok(Removed { tokens: end_tokens(ctx, login).await?, orgs: left });
        }
    }
}

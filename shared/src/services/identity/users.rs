//! Users, for the operator.

use super::directory;
use super::oidc::consents;
use super::tokens::end_tokens;
use super::{accounts, membership, passwords, sessions};
use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::layout::{DirectoryEntry, Invitation, Member, Org, User, check, delete};
use crate::ports::Expect;
use crate::services::error::{AccessError, IdentityError};
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};

/// Memberships that one commit creates.
const MEMBERSHIPS_MAX: usize = 40;

/// Memberships that one commit ends. Each can take three writes.
const ENDED_MAX: usize = 25;

/// Creates a user, who is a member of these organizations with this role. The first organization owns the
/// stacks that the user names without one.
///
/// # Errors
/// [`IdentityError::UserExists`], [`IdentityError::TooManyMemberships`]; [`AccessError::NoOrg`].
pub async fn create(ctx: &Context, login: &Login, names: &[OrgName], role: Role) -> Result<User, Error> {
    directory::check_name(login)?;
    let user = User::new(login.clone(), ctx.now());
    let user = names.iter().fold(user, |user, org| user.as_member(org, role));
    if user.orgs.len() > MEMBERSHIPS_MAX {
        return Err(IdentityError::TooManyMemberships { max: MEMBERSHIPS_MAX }.into());
    }
    // Left over from a user of that name whose deletion did not finish.
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

/// All users, by login.
///
/// # Errors
/// Errors of the ports.
pub async fn list(ctx: &Context) -> Result<Vec<User>, Error> {
    let mut users = Vec::new();
    for (login, _) in directory::users(ctx).await? {
        // A user who is being deleted may still be listed.
        if let Some(user) = store::read(ctx, &User::key(&login)).await? {
            users.push(user.value);
        }
    }
    Ok(users)
}

/// What was deleted with a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedUser {
    /// Access tokens that were revoked.
    pub tokens: usize,
    /// Organizations that the user was a member of.
    pub orgs: Vec<OrgName>,
}

/// Deletes what belongs to a login alone, and returns the number of its tokens.
async fn end_all(ctx: &Context, login: &Login) -> Result<usize, Error> {
    consents::end(ctx, login).await?;
    end_tokens(ctx, login).await
}

/// Deletes a user with all access tokens, client certificates, sessions, accounts and the password. Processes that cache one
/// forget it within a minute. A running update ends with its lease. Run again after a crash, it deletes what
/// is left.
///
/// # Errors
/// [`AccessError::NoUser`].
pub async fn remove(ctx: &Context, login: &Login) -> Result<DeletedUser, Error> {
    let mut left: Vec<OrgName> = Vec::new();
    let mut attempts = Attempts::at("the user");
    loop {
        let attempt = attempts.begin()?;
        let Some(user) = store::read(ctx, &User::key(login)).await? else {
            let tokens = end_all(ctx, login).await?;
            sessions::end_all(ctx, login).await?;
            // It existed a moment ago: an earlier attempt deleted it, and its answer was lost.
            if attempt > 0 || tokens > 0 {
                return Ok(DeletedUser { tokens, orgs: left });
            }
            return Err(AccessError::NoUser(login.clone()).into());
        };
        let mut orgs = user.value.orgs.clone();
        let ended = orgs.split_off(orgs.len().saturating_sub(ENDED_MAX));
        let mut writes = Vec::new();
        for org in &ended {
            writes.push(delete(Member::key(org, login), Expect::Any));
            writes.extend(store::access::left(ctx, org, login).await?);
            // So that no admin who is removed at this moment relies on this one.
            if user.value.role_in(org) == Some(Role::Admin)
                && let Some(record) = store::read(ctx, &Org::key(org)).await?
            {
                writes.push(store::put(ctx, Org::key(org), record.unchanged(), &record.value));
            }
        }
        if orgs.is_empty() {
            // Before the user: until then, a person of one of these accounts gets no other user.
            accounts::forget(ctx, login, None).await?;
            writes.push(delete(Invitation::key(login), Expect::Any));
            // From here on, no token of the user is valid: every request with one reads its owner.
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
            let tokens = end_all(ctx, login).await?;
            sessions::end_all(ctx, login).await?;
            return Ok(DeletedUser { tokens, orgs: left });
        }
    }
}

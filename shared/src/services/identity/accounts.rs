//! The accounts of providers that are linked with users.

use super::membership;
use crate::context::Context;
use crate::domain::names::{Login, ProviderName};
use crate::layout::{Identity, IdentityEntry, Record as _, User, delete};
use crate::ports::{Expect, Write};
use crate::services::error::SignInError;
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};

/// Accounts that one commit unlinks, at most.
const AT_ONCE: usize = 40;

/// The accounts that are linked with a user.
///
/// # Errors
/// `AccessError::NoUser`.
pub async fn list(ctx: &Context, login: &Login) -> Result<Vec<IdentityEntry>, Error> {
    membership::user(ctx, login).await?;
    entries(ctx, login).await
}

async fn entries(ctx: &Context, login: &Login) -> Result<Vec<IdentityEntry>, Error> {
    let items = store::query_all(ctx, IdentityEntry::of_user(login), usize::MAX).await?;
    items.iter().map(|item| Ok(IdentityEntry::decode(&item.value)?)).collect()
}

/// Unlinks the accounts of a provider from a user. Without any account, the user's tokens no longer stop by
/// themselves. Returns how many were unlinked.
///
/// # Errors
/// `AccessError::NoUser`, [`SignInError::NotLinked`].
pub async fn unlink(ctx: &Context, login: &Login, provider: &ProviderName) -> Result<usize, Error> {
    let mut attempts = Attempts::at("the user");
    loop {
        attempts.begin()?;
        let user = membership::user(ctx, login).await?;
        let (ended, left): (Vec<_>, Vec<_>) =
            entries(ctx, login).await?.into_iter().partition(|entry| entry.provider == *provider);
        if ended.is_empty() {
            return Err(SignInError::NotLinked { login: login.clone(), provider: provider.clone() }.into());
        }
        let mut next = user.value.clone();
        if left.is_empty() {
            next.confirmed_until = None;
        }
        let mut writes = vec![store::put(ctx, User::key(login), user.unchanged(), &next)];
        writes.extend(ended.iter().take(AT_ONCE).flat_map(|entry| removal(login, entry)));
        if store::commit(ctx, writes).await?.is_ok() {
            return Ok(ended.len());
        }
    }
}

/// Forgets all accounts of a user, apart from the one with this hash.
pub(super) async fn forget(ctx: &Context, login: &Login, kept: Option<&str>) -> Result<(), Error> {
    let mut ended = entries(ctx, login).await?;
    ended.retain(|entry| Some(entry.hash.as_str()) != kept);
    for chunk in ended.chunks(AT_ONCE) {
        let writes = chunk.iter().flat_map(|entry| removal(login, entry)).collect();
        if store::commit(ctx, writes).await?.is_err() {
            return Err(Error::Contended("the user's accounts"));
        }
    }
    Ok(())
}

fn removal(login: &Login, entry: &IdentityEntry) -> [Write; 2] {
    let identity = delete(Identity::key(&entry.hash), Expect::Any);
    [identity, delete(IdentityEntry::key(login, &entry.hash), Expect::Any)]
}

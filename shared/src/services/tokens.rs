//! Access tokens.

use std::time::Duration;

use super::caller::Caller;
use super::store::{self, sha256_hex};
use super::{Error, RACES_MAX, membership};
use crate::context::{Context, REMEMBERED_FOR};
use crate::domain::names::{Login, TokenName};
use crate::domain::role::Role;
use crate::layout::ItemKeys;
use crate::layout::record::{Record, check, delete, put};
use crate::layout::records::{Token, TokenEntry, User};
use crate::ports::{Expect, Timestamp, Write};

/// Every access token starts with this, so that scanners for leaked secrets can find it.
pub const TOKEN_PREFIX: &str = "swt_";

/// Finds who shows this access token. One read of the token and one of its owner, remembered for a minute.
///
/// # Errors
/// [`Error::Unauthenticated`] unless the token is known and valid now.
pub async fn authenticate(ctx: &Context, token: &str) -> Result<Caller, Error> {
    let (caller, _) = authenticate_run(ctx, token, Duration::ZERO).await?;
    Ok(caller)
}

/// As [`authenticate`], but for so long after its end a token still tells who shows it, with when it ended: whoever asks has to
/// prove otherwise that they may. A token that was revoked tells nothing.
///
/// # Errors
/// [`Error::Unauthenticated`].
pub async fn authenticate_run(
    ctx: &Context,
    token: &str,
    grace: Duration,
) -> Result<(Caller, Option<Timestamp>), Error> {
    const INVALID: Error = Error::Unauthenticated(
        "the access token is not valid; log in again with `pulumi login` and a token of this server",
    );
    let now = ctx.now();
    let hash = sha256_hex(token.as_bytes());
    let (token, user) = match ctx.memory.callers.get(&hash, now, REMEMBERED_FOR) {
        Some(known) => known,
        None => {
            let token = store::read::<Token>(ctx, &ItemKeys::token(&hash)).await?.ok_or(INVALID)?.value;
            let user = store::read::<User>(ctx, &ItemKeys::user(&token.login)).await?.ok_or(INVALID)?.value;
            ctx.memory.callers.put(hash, now, (token.clone(), user.clone()));
            (token, user)
        }
    };
    let ended = token.expires.filter(|expires| *expires <= now);
    if ended.is_some_and(|ended| ended.plus(grace) <= now) {
        return Err(Error::Unauthenticated(
            "the access token has expired; make a new one and log in with it",
        ));
    }
    Ok((Caller::new(user, token), ended))
}

/// Makes an access token, and returns it: it is shown this once, only its hash is kept.
///
/// # Errors
/// [`Error::NoUser`]; [`Error::Invalid`] when the user has a token of that name.
pub async fn create_token(
    ctx: &Context,
    login: &Login,
    name: &TokenName,
    expires_in: Option<Duration>,
) -> Result<String, Error> {
    create_scoped_token(ctx, login, name, None, expires_in).await
}

/// As [`create_token`], for a token that may do at most this, or what its owner may where that is less.
///
/// # Errors
/// As [`create_token`].
pub async fn create_scoped_token(
    ctx: &Context,
    login: &Login,
    name: &TokenName,
    may: Option<Role>,
    expires_in: Option<Duration>,
) -> Result<String, Error> {
    for _ in 0..RACES_MAX {
        let user = membership::user(ctx, login).await?;
        let expires = expires_in.map(|duration| ctx.now().plus(duration));
        let (secret, token) = new_token(ctx, login, name, may, expires);
        let mut writes = token_writes(ctx, &secret, &token);
        // No token comes to be after its owner is gone: another user of the same name would have it.
        let owner = writes.len();
        writes.push(check(ItemKeys::user(login), user.unchanged()));
        match store::commit(ctx, writes).await? {
            Ok(()) => return Ok(secret),
            Err(refusal) if refusal.index == owner => {}
            Err(_) => {
                return Err(Error::Invalid(format!(
                    "user {login} has a token named {name} already: choose another name, or revoke that one first"
                )));
            }
        }
    }
    Err(Error::Contended("the user"))
}

/// The access tokens of a user, by name.
///
/// # Errors
/// [`Error::NoUser`].
pub async fn list_tokens(ctx: &Context, login: &Login) -> Result<Vec<Token>, Error> {
    membership::user(ctx, login).await?;
    let (partition, prefix) = ItemKeys::user_tokens(login);
    let items = store::query_all(ctx, partition, prefix, usize::MAX).await?;
    items.iter().map(|item| Ok(TokenEntry::decode(&item.value)?.token)).collect()
}

/// Ends all access tokens of a user, whether that is there or not, and says how many there were.
pub(super) async fn end_tokens(ctx: &Context, login: &Login) -> Result<usize, Error> {
    let (partition, prefix) = ItemKeys::user_tokens(login);
    let items = store::query_all(ctx, partition, prefix, usize::MAX).await?;
    // Two writes for each, within the bounds of a commit.
    for chunk in items.chunks(50) {
        let mut writes = Vec::with_capacity(2 * chunk.len());
        for item in chunk {
            let hash = TokenEntry::decode(&item.value)?.hash;
            writes.push(delete(ItemKeys::token(&hash), Expect::Any));
            writes.push(delete(item.key.clone(), Expect::Any));
            ctx.memory.callers.forget(&hash);
        }
        if store::commit(ctx, writes).await?.is_err() {
            return Err(Error::Contended("the user's tokens"));
        }
    }
    Ok(items.len())
}

/// Ends an access token. Processes that remember it forget it within a minute.
///
/// # Errors
/// [`Error::Invalid`] when there is no such token.
pub async fn revoke_token(ctx: &Context, login: &Login, name: &TokenName) -> Result<(), Error> {
    for attempt in 0..RACES_MAX {
        let key = ItemKeys::user_token(login, name);
        let Some(entry) = store::read::<TokenEntry>(ctx, &key).await? else {
            // It was there a moment ago: an earlier attempt removed it, and its answer was lost.
            if attempt > 0 {
                return Ok(());
            }
            return Err(Error::Invalid(format!("user {login} has no token named {name}")));
        };
        let hash = entry.value.hash.clone();
        let writes = vec![delete(key, entry.unchanged()), delete(ItemKeys::token(&hash), Expect::Any)];
        let removed = store::commit(ctx, writes).await?;
        ctx.memory.callers.forget(&hash);
        if removed.is_ok() {
            return Ok(());
        }
    }
    Err(Error::Contended("the token"))
}

pub(super) fn new_token(
    ctx: &Context,
    login: &Login,
    name: &TokenName,
    may: Option<Role>,
    expires: Option<Timestamp>,
) -> (String, Token) {
    let mut random = [0; 32];
    ctx.ids.fill(&mut random);
    let secret = format!("{TOKEN_PREFIX}{}", hex::encode(random));
    (secret, Token { name: name.clone(), login: login.clone(), created: ctx.now(), expires, may })
}

pub(super) fn token_writes(ctx: &Context, secret: &str, token: &Token) -> Vec<Write> {
    let hash = sha256_hex(secret.as_bytes());
    let entry = TokenEntry { hash: hash.clone(), token: token.clone() };
    vec![
        put(ItemKeys::token(&hash), Expect::Absent, ctx.ids.revision(), token.encode()),
        put(
            ItemKeys::user_token(&token.login, &token.name),
            Expect::Absent,
            ctx.ids.revision(),
            entry.encode(),
        ),
    ]
}

//! Users' passwords, for clients of states. A user has none until the operator sets one.
//!
//! Checking a password is expensive on purpose, so few are checked at once, on threads that serve no
//! requests. A correct password is cached like an access token. After wrong passwords for a user, or for many
//! from one address, the next check has to wait. All of this is in the process's memory, so each of several
//! processes allows some attempts.

use std::net::IpAddr;
use std::time::Duration;

use argon2::password_hash::{self, phc::Output};
use argon2::{Algorithm, Argon2, Block, Params, PasswordHash, PasswordHasher as _, Version};
use futures::StreamExt as _;

use super::guesses::{self, count, wait};
use super::membership;
use super::membership::check_confirmed;
use super::tokens::TOKEN_PREFIX;
use crate::cache::{Failures, REMEMBERED_FOR};
use crate::context::Context;
use crate::domain::names::{Login, TokenName};
use crate::layout::{DirectoryEntry, Password, Stored, Token, User, check, delete, put_bytes};
use crate::ports::{Expect, Item, Write};
use crate::services::Error;
use crate::services::caller::{Caller, PASSWORD};
use crate::services::error::{AccessError, IdentityError};
use crate::services::store;
use crate::services::store::retry::Attempts;
use crate::services::store::sha256_hex;
use crate::services::work::in_background;

/// The length of a password, in characters, at least.
pub const CHARACTERS_MIN: usize = 12;

/// The length of a password, in bytes, at most.
pub const BYTES_MAX: usize = 1024;

/// Users whose old passwords are moved at once.
const MOVED_AT_ONCE: usize = 16;

/// The time that a request waits for its check.
const TURN_MAX: Duration = Duration::from_secs(3);

/// Wrong passwords from one address that cause no wait. Many people may be behind one.
const FREE_OF_SOURCE: u32 = 20;

/// Wrong passwords in a row for one user that count for their address: a client with an old password does not slow
/// everybody there.
const COUNTED_OF_USER: u32 = 5;

/// The hash that stands in for a missing password, so that the check takes as long. No password is known for
/// it.
const NO_PASSWORD_HASH: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

const WRONG: Error = Error::Access(AccessError::WrongPassword);

/// Finds the user with this password, which came from this address. Costs two concurrent reads of the password and,
/// if it is correct, one of its owner, cached for a minute.
///
/// # Errors
/// [`AccessError::WrongPassword`]; [`AccessError::TooManyFailures`] and [`AccessError::TooManyPasswords`] if
/// it was not checked.
pub async fn authenticate(
    ctx: &Context,
    login: &str,
    password: &str,
    from: Option<IpAddr>,
) -> Result<Caller, Error> {
    let Ok(login) = Login::parse(login) else { return Err(WRONG) };
    if password.len() > BYTES_MAX {
        return Err(WRONG);
    }
    let shown = hash_in_memory(ctx, &login, password);
    let known = || {
        let (token, user) = ctx.memory.callers.get(&shown, ctx.now(), REMEMBERED_FOR)?;
        // The password of such a user may have ended.
        user.reset_by.is_none().then(|| Caller::new(user, token))
    };
    if let Some(caller) = known() {
        check_confirmed(&caller.user, ctx.now())?;
        return Ok(caller);
    }
    // One check at a time for each user: a client cannot try many passwords at once, and one that many
    // clients send at once is checked once.
    let failures = ctx.memory.passwords.failures(&login);
    let mut failures = in_time(ctx, failures.lock_owned()).await?;
    if let Some(caller) = known() {
        return Ok(caller);
    }
    let (sources, source) = (&ctx.memory.passwords.sources, guesses::source(from));
    let check_wait = |failures: &Failures| {
        let of_source = source.as_deref().map(|source| sources.failures(source)).unwrap_or_default();
        match wait(failures, ctx.now()).max(wait(&of_source, ctx.now())) {
            Some(wait) => Err(AccessError::TooManyFailures(wait)),
            None => Ok(()),
        }
    };
    check_wait(&failures)?;
    let mut slot = in_time(ctx, ctx.memory.passwords.slot()).await?;
    // Again: guesses for other users may have been counted for the address meanwhile.
    check_wait(&failures)?;
    let stored = stored(ctx, &login).await?;
    let hash =
        stored.as_ref().map_or_else(|| NO_PASSWORD_HASH.to_owned(), |stored| stored.value.hash.clone());
    let password = password.to_owned();
    let is_right = in_background(move || {
        // Held until the check ends, even if the request is dropped.
        is_of(&password, &hash, slot.memory())
    });
    let (true, Some(stored)) = (is_right.await?, stored) else {
        count(&mut failures, ctx.now());
        if let Some(source) = source.filter(|_| failures.in_a_row <= COUNTED_OF_USER) {
            sources.count(&source, |failures| guesses::count_after(FREE_OF_SOURCE, failures, ctx.now()));
        }
        return Err(WRONG);
    };
    *failures = Failures::default();
    let user = store::read(ctx, &User::key(&login)).await?.ok_or(WRONG)?.value;
    check_confirmed(&user, ctx.now())?;
    let token = Token::personal(login, TokenName::parse(PASSWORD)?, stored.value.set);
    ctx.memory.callers.put(shown, ctx.now(), (token.clone(), user.clone()));
    Ok(Caller::new(user, token))
}

/// A user's password. Always reads both places, so that the time reveals nothing.
async fn stored(ctx: &Context, login: &Login) -> Result<Option<Stored<Password>>, Error> {
    let (place, old) = (Password::key(login), Password::old_key(login));
    let (found, old) = futures::try_join!(store::read(ctx, &place), store::read(ctx, &old))?;
    Ok(found.or(old))
}

/// Moves passwords from their old place to [`Password::key`], and returns how many. A server does this before
/// its first request. Setting a password moves it too.
///
/// # Errors
/// Errors of the ports.
pub async fn move_old(ctx: &Context) -> Result<u64, Error> {
    let users = store::query_all(ctx, DirectoryEntry::users(), usize::MAX).await?;
    let logins = users.iter().filter_map(|item| DirectoryEntry::login_in(&item.key).ok());
    let move_one = |login: Login| async move {
        let old = Password::old_key(&login);
        let Some(Item { revision, value, .. }) = store::get(ctx, &old).await? else { return Ok(false) };
        let writes = vec![
            put_bytes(Password::key(&login), Expect::Absent, ctx.ids.revision(), value),
            delete(old, Expect::Revision(revision)),
        ];
        // Refused: the password was set or removed meanwhile, and is in its new place.
        Ok::<_, Error>(store::commit(ctx, writes).await?.is_ok())
    };
    let mut moves = futures::stream::iter(logins.map(move_one)).buffer_unordered(MOVED_AT_ONCE);
    let mut moved = 0;
    while let Some(is_moved) = moves.next().await {
        moved += u64::from(is_moved?);
    }
    Ok(moved)
}

/// Sets a user's password, or replaces it.
///
/// # Errors
/// [`AccessError::NoUser`]; [`IdentityError`] if the password is too short, too long, or looks like an access
/// token.
pub async fn set(ctx: &Context, login: &Login, password: &str) -> Result<(), Error> {
    if password.chars().count() < CHARACTERS_MIN {
        return Err(IdentityError::PasswordTooShort { characters_min: CHARACTERS_MIN }.into());
    }
    if password.len() > BYTES_MAX {
        return Err(IdentityError::PasswordTooLong { bytes_max: BYTES_MAX }.into());
    }
    if password.starts_with(TOKEN_PREFIX) {
        return Err(IdentityError::PasswordLooksLikeToken { prefix: TOKEN_PREFIX }.into());
    }
    let mut salt = [0; 16];
    ctx.ids.fill(&mut salt);
    let password = password.to_owned();
    let hash = in_background(move || hash(&password, &salt)).await?;
    let mut attempts = Attempts::at("the user");
    loop {
        attempts.begin()?;
        // Never store a password after its owner is deleted: a later user of the same name would have it.
        let user = membership::user(ctx, login).await?;
        let password = Password { hash: hash.clone(), set: ctx.now() };
        let writes = vec![
            store::put(ctx, Password::key(login), Expect::Any, &password),
            delete(Password::old_key(login), Expect::Any),
            check(User::key(login), user.unchanged()),
        ];
        if store::commit(ctx, writes).await?.is_ok() {
            return Ok(());
        }
    }
}

/// Deletes a user's password, if there is one. Processes that cache it forget it within a minute.
///
/// # Errors
/// [`AccessError::NoUser`].
pub async fn remove(ctx: &Context, login: &Login) -> Result<(), Error> {
    membership::user(ctx, login).await?;
    match store::commit(ctx, removal(login).into()).await? {
        Ok(()) => Ok(()),
        Err(_) => Err(Error::Contended("the password")),
    }
}

/// The writes that delete a user's password.
pub(super) fn removal(login: &Login) -> [Write; 2] {
    [Password::key(login), Password::old_key(login)].map(|key| delete(key, Expect::Any))
}

/// Whether a user has a password.
///
/// # Errors
/// Errors of the ports.
pub async fn is_set(ctx: &Context, login: &Login) -> Result<bool, Error> {
    Ok(stored(ctx, login).await?.is_some())
}

/// Waits for a turn, up to [`TURN_MAX`].
async fn in_time<T>(ctx: &Context, turn: impl Future<Output = T>) -> Result<T, Error> {
    tokio::select! {
        biased;
        turn = turn => Ok(turn),
        () = ctx.clock.sleep(TURN_MAX) => Err(Error::Access(AccessError::TooManyPasswords)),
    }
}

/// The cache key of a password: a hash under a key that only this process has and that it never stores.
fn hash_in_memory(ctx: &Context, login: &Login, password: &str) -> String {
    let key = ctx.memory.passwords.key(&*ctx.ids);
    sha256_hex(&[key.as_slice(), login.as_str().as_bytes(), b"\0", password.as_bytes()].concat())
}

/// Argon2id with 19 MiB, two passes and one lane: the library's defaults.
///
/// Source: OWASP Password Storage Cheat Sheet, its first recommendation.
fn hash(password: &str, salt: &[u8]) -> Result<String, Error> {
    match Argon2::default().hash_password_with_salt(password.as_bytes(), salt) {
        Ok(hash) => Ok(hash.to_string()),
        Err(error) => Err(Error::Internal(format!("a password cannot be hashed: {error}"))),
    }
}

/// Whether this is the hash of that password. The hash names its own parameters.
fn is_of(password: &str, hash: &str, memory: &mut Vec<Block>) -> Result<bool, Error> {
    computed(password, hash, memory)
        .map_err(|error| Error::Broken(format!("the hash of a password cannot be used: {error}")))
}

fn computed(password: &str, hash: &str, memory: &mut Vec<Block>) -> Result<bool, password_hash::Error> {
    let hash = PasswordHash::new(hash)?;
    let (Some(salt), Some(expected)) = (&hash.salt, &hash.hash) else {
        return Err(password_hash::Error::EncodingInvalid);
    };
    let params = Params::try_from(&hash)?;
    let version = hash.version.map_or(Ok(Version::default()), Version::try_from)?;
    let blocks = params.block_count();
    let argon = Argon2::new(Algorithm::try_from(hash.algorithm.as_str())?, version, params);
    // Grows at the first check, and for a hash that needs more. The memory is kept.
    if memory.len() < blocks {
        memory.resize(blocks, Block::default());
    }
    let mut out = vec![0; expected.len()];
    let memory = memory.get_mut(..blocks).unwrap_or_default();
    argon.hash_password_into_with_memory(password.as_bytes(), salt, &mut out, memory)?;
    // Compares in constant time.
    Ok(Output::new(&out)? == *expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_names_its_parameters_and_matches_one_password() {
        let made = hash("correct horse battery", &[7; 16]).unwrap();
        assert!(made.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{made}");
        let work = |hash: &str| hash.split('$').take(4).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            (work(&made), made.len()),
            (work(NO_PASSWORD_HASH), NO_PASSWORD_HASH.len()),
            "the one for no password takes as long"
        );
        let mut memory = Vec::new();
        let mut is_of = |password, hash| is_of(password, hash, &mut memory);
        assert!(is_of("correct horse battery", &made).unwrap());
        assert!(!is_of("correct horse batterz", &made).unwrap());
        assert!(!is_of("correct horse battery", NO_PASSWORD_HASH).unwrap());
        assert!(is_of("", "$argon2id$nonsense").is_err());
        assert!(is_of("", "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ").is_err(), "no hash");
        // A hash with weaker parameters, as an earlier or later version may write.
        let other = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$tW0pYDZcSxs0SCUMVH4g9r0JbsT8C1kTdUDSyVfoHIA";
        assert!(is_of("password", other).is_ok());
        assert!(is_of("correct horse battery", &made).unwrap(), "after another hash used the memory");
        assert_eq!(memory.len(), 19_456, "allocated once");
    }
}

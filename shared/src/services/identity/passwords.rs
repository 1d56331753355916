//! Passwords of users, for clients of states. Nobody has one until the operator sets it.
//!
//! Looking at a password is made expensive, so it is done for few at once and away from the threads that serve. One that was
//! right is remembered as an access token is; who shows wrong ones for a user has to wait before more are looked at. Both are
//! in the process's memory: several processes each let some be tried.

use std::time::Duration;

use argon2::password_hash::{self, phc::Output};
use argon2::{Algorithm, Argon2, Block, Params, PasswordHash, PasswordHasher as _, Version};
use futures::StreamExt as _;

use super::membership;
use super::tokens::TOKEN_PREFIX;
use crate::cache::{Failures, REMEMBERED_FOR};
use crate::context::Context;
use crate::domain::names::{Login, TokenName};
use crate::layout::{DirectoryEntry, Password, Stored, Token, User, check, delete, put_bytes};
use crate::ports::{Expect, Item, Timestamp, Write};
use crate::services::Error;
use crate::services::caller::{Caller, PASSWORD};
use crate::services::error::{AccessError, IdentityError};
use crate::services::store;
use crate::services::store::retry::Attempts;
use crate::services::store::sha256_hex;
use crate::services::work::in_background;

/// The fewest characters of a password.
pub const CHARACTERS_MIN: usize = 12;

/// The longest password, in bytes.
pub const BYTES_MAX: usize = 1024;

/// So many wrong passwords in a row for a user are only refused.
const FREE_FAILURES: u32 = 5;

/// After more the wait doubles with each from a second up to this, which is what clients wait at most.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Wrong passwords are forgotten when there was none for so long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(900);

/// Users that are looked at at once, where all are.
const LOOKED_AT_ONCE: usize = 16;

/// A request waits so long for its turn.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a password is compared with where there is none, so that this takes as long: the hash of nothing that is known.
const NOBODYS: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

const WRONG: Error = Error::Access(AccessError::WrongPassword);

/// Finds who shows this password. Two reads of the password at once and, if it is right, one of its owner, remembered for a minute.
///
/// # Errors
/// [`AccessError`] unless it is the user's; [`AccessError::TooManyFailures`] and [`AccessError::TooManyPasswords`] where it was
/// not looked at.
pub async fn authenticate(ctx: &Context, login: &str, password: &str) -> Result<Caller, Error> {
    let Ok(login) = Login::parse(login) else { return Err(WRONG) };
    if password.len() > BYTES_MAX {
        return Err(WRONG);
    }
    let shown = hash_in_memory(ctx, &login, password);
    let known = || {
        let (token, user) = ctx.memory.callers.get(&shown, ctx.now(), REMEMBERED_FOR)?;
        Some(Caller::new(user, token))
    };
    if let Some(caller) = known() {
        return Ok(caller);
    }
    // One after another for each user: so nobody tries many at once, and one that many show at once is looked at once.
    let failures = ctx.memory.passwords.failures(&login);
    let mut failures = in_time(ctx, failures.lock_owned()).await?;
    if let Some(caller) = known() {
        return Ok(caller);
    }
    if let Some(wait) = wait(&failures, ctx.now()) {
        return Err(AccessError::TooManyFailures(wait).into());
    }
    let mut slot = in_time(ctx, ctx.memory.passwords.slot()).await?;
    let stored = stored(ctx, &login).await?;
    let hash = stored.as_ref().map_or_else(|| NOBODYS.to_owned(), |stored| stored.value.hash.clone());
    let password = password.to_owned();
    let is_right = in_background(move || {
        // Held to the end, also when who asked has gone.
        is_of(&password, &hash, slot.memory())
    });
    let (true, Some(stored)) = (is_right.await?, stored) else {
        count(&mut failures, ctx.now());
        return Err(WRONG);
    };
    *failures = Failures::default();
    let user = store::read(ctx, &User::key(&login)).await?.ok_or(WRONG)?.value;
    let token = Token {
        name: TokenName::parse(PASSWORD)?,
        login,
        created: stored.value.set,
        expires: None,
        may: None,
    };
    ctx.memory.callers.put(shown, ctx.now(), (token.clone(), user.clone()));
    Ok(Caller::new(user, token))
}

/// A user's password. Both places are always asked, so that the time tells nothing.
async fn stored(ctx: &Context, login: &Login) -> Result<Option<Stored<Password>>, Error> {
    let (place, old) = (Password::key(login), Password::old_key(login));
    let (found, old) = futures::try_join!(store::read(ctx, &place), store::read(ctx, &old))?;
    Ok(found.or(old))
}

/// Moves the passwords that lie among what is said of users to where they lie now, and says how many. What a server does before its
/// first request; a password that is set anew moves as well.
///
/// # Errors
/// Those of the ports.
pub async fn move_old(ctx: &Context) -> Result<u64, Error> {
    let users = store::query_all(ctx, DirectoryEntry::users(), usize::MAX).await?;
    let logins = users.iter().filter_map(|item| DirectoryEntry::login_in(&item.key).ok());
    let look = |login: Login| async move {
        let old = Password::old_key(&login);
        let Some(Item { revision, value, .. }) = store::get(ctx, &old).await? else { return Ok(false) };
        let writes = vec![
            put_bytes(Password::key(&login), Expect::Absent, ctx.ids.revision(), value),
            delete(old, Expect::Revision(revision)),
        ];
        // Refused: it was set anew or taken away meanwhile, and is where it belongs.
        Ok::<_, Error>(store::commit(ctx, writes).await?.is_ok())
    };
    let mut looks = futures::stream::iter(logins.map(look)).buffer_unordered(LOOKED_AT_ONCE);
    let mut moved = 0;
    while let Some(one) = looks.next().await {
        moved += u64::from(one?);
    }
    Ok(moved)
}

/// Sets a user's password, in the place of one that was there.
///
/// # Errors
/// [`AccessError::NoUser`]; [`IdentityError`] for one that is too short or too long, or looks like an access token.
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
        // No password comes to be after its owner is gone: another user of the same name would have it.
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

/// Takes a user's password away, if there is one. Processes that remember whoever showed it forget that within a minute.
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

/// The writes that take a user's password away.
pub(super) fn removal(login: &Login) -> [Write; 2] {
    [Password::key(login), Password::old_key(login)].map(|key| delete(key, Expect::Any))
}

/// Whether a user has a password.
///
/// # Errors
/// Those of the ports.
pub async fn is_set(ctx: &Context, login: &Login) -> Result<bool, Error> {
    Ok(stored(ctx, login).await?.is_some())
}

/// What is waited for, if it comes in time.
async fn in_time<T>(ctx: &Context, turn: impl Future<Output = T>) -> Result<T, Error> {
    tokio::select! {
        biased;
        turn = turn => Ok(turn),
        () = ctx.clock.sleep(PATIENCE) => Err(Error::Access(AccessError::TooManyPasswords)),
    }
}

/// What a password is remembered by, under a key that this process alone has, and forgets.
fn hash_in_memory(ctx: &Context, login: &Login, password: &str) -> String {
    let key = ctx.memory.passwords.key(&*ctx.ids);
    sha256_hex(&[key.as_slice(), login.as_str().as_bytes(), b"\0", password.as_bytes()].concat())
}

/// How long nothing is looked at, in whole seconds. A clock that jumped back keeps nobody out.
fn wait(failures: &Failures, now: Timestamp) -> Option<Duration> {
    let wait = failures.refused_until.since(now);
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    (!wait.is_zero() && wait <= WAIT_MAX).then(|| Duration::from_secs(seconds))
}

fn count(failures: &mut Failures, now: Timestamp) {
    if now.since(failures.refused_until) > FORGOTTEN_AFTER {
        failures.in_a_row = 0;
    }
    failures.in_a_row = failures.in_a_row.saturating_add(1);
    let wait = match failures.in_a_row.checked_sub(FREE_FAILURES) {
        None => Duration::ZERO,
        Some(more) => Duration::from_secs(1 << more.min(5)).min(WAIT_MAX),
    };
    failures.refused_until = now.plus(wait);
}

/// Argon2id with 19 MiB, two passes and one lane, the defaults of the library.
///
/// Source: the first of what OWASP's Password Storage Cheat Sheet recommends.
fn hash(password: &str, salt: &[u8]) -> Result<String, Error> {
    match Argon2::default().hash_password_with_salt(password.as_bytes(), salt) {
        Ok(hash) => Ok(hash.to_string()),
        Err(error) => Err(Error::Broken(format!("a password cannot be hashed: {error}"))),
    }
}

/// Whether this is the hash of that password, with whatever it was made.
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
    // The first time, and where a hash says that it takes more: the memory stays.
    if memory.len() < blocks {
        memory.resize(blocks, Block::default());
    }
    let mut out = vec![0; expected.len()];
    let memory = memory.get_mut(..blocks).unwrap_or_default();
    argon.hash_password_into_with_memory(password.as_bytes(), salt, &mut out, memory)?;
    // In constant time.
    Ok(Output::new(&out)? == *expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_says_how_it_was_made_and_is_of_its_password_alone() {
        let made = hash("correct horse battery", &[7; 16]).unwrap();
        assert!(made.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{made}");
        let work = |hash: &str| hash.split('$').take(4).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!((work(&made), made.len()), (work(NOBODYS), NOBODYS.len()), "nobody's takes as long");
        let mut memory = Vec::new();
        let mut is_of = |password, hash| is_of(password, hash, &mut memory);
        assert!(is_of("correct horse battery", &made).unwrap());
        assert!(!is_of("correct horse batterz", &made).unwrap());
        assert!(!is_of("correct horse battery", NOBODYS).unwrap());
        assert!(is_of("", "$argon2id$nonsense").is_err());
        assert!(is_of("", "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ").is_err(), "no hash");
        // One that was made with less work, as an earlier or a later version may.
        let other = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$tW0pYDZcSxs0SCUMVH4g9r0JbsT8C1kTdUDSyVfoHIA";
        assert!(is_of("password", other).is_ok());
        assert!(is_of("correct horse battery", &made).unwrap(), "after what another left in the memory");
        assert_eq!(memory.len(), 19_456, "made once");
    }

    #[test]
    fn the_wait_doubles_and_has_an_end() {
        let (mut failures, mut now) = (Failures::default(), Timestamp::from_seconds(1_000));
        let mut waits = Vec::new();
        for _ in 0..12 {
            count(&mut failures, now);
            let wait = wait(&failures, now).unwrap_or_default();
            waits.push(wait.as_secs());
            now = now.plus(wait);
        }
        assert_eq!(waits, [0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(wait(&failures, now), None);
        assert_eq!(wait(&failures, Timestamp::from_seconds(0)), None, "the clock jumped back");
        count(&mut failures, now.plus(FORGOTTEN_AFTER + Duration::from_secs(1)));
        assert_eq!(failures.in_a_row, 1);
    }
}

//! Sessions: the browsers in which a user is signed in. A cookie has the login and a random secret, and the store
//! its hash, so that a session can be ended.

use std::time::Duration;

use super::membership;
use super::membership::check_confirmed;
use super::tokens::{self, NewToken, Owner};
use crate::cache::REMEMBERED_FOR;
use crate::context::Context;
use crate::domain::access::Scope;
use crate::domain::hidden::without_hidden;
use crate::domain::names::{Login, OrgName, TokenName};
use crate::domain::update::Requester;
use crate::layout::{Record, SignedInBy, Stored, Token, User, WebSession, check, delete, expiring};
use crate::ports::{Expect, Timestamp};
use crate::services::caller::{Caller, SESSION};
use crate::services::error::SignInError;
use crate::services::store::sha256_hex;
use crate::services::{Error, store};

/// The time for which a session lasts. People sign in once on a day of work.
pub const SESSION_MAX: Duration = Duration::from_secs(24 * 3600);

/// The time after a sign-in in which a session may make tokens and change how its user signs in.
pub const RECENT: Duration = Duration::from_secs(3600);

/// The length of a browser's name that is stored, in characters, at most.
const BROWSER_CHARACTERS_MAX: usize = 120;

/// Sessions of a user that are listed.
const LISTED_MAX: usize = 200;

/// The prefix of a session's secret, by which scanners find leaked ones.
const PREFIX: &str = "sws_";

/// A session, with its caller.
#[derive(Debug, Clone)]
pub struct Session {
    /// The signed-in user, with a token that stands for the session.
    pub caller: Caller,
    /// The stored session.
    pub record: WebSession,
    hash: String,
}

impl Session {
    /// Refuses what needs a recent sign-in.
    ///
    /// # Errors
    /// [`SignInError::SessionTooOld`].
    pub fn check_recent(&self, ctx: &Context) -> Result<(), Error> {
        if self.is_recent(ctx.now()) { Ok(()) } else { Err(SignInError::SessionTooOld.into()) }
    }

    /// Whether the person signed in a short time ago.
    pub fn is_recent(&self, now: Timestamp) -> bool {
        now.since(self.record.signed_in) <= RECENT
    }
}

/// A session that has begun.
#[derive(Debug)]
pub struct Begun {
    /// The value of its cookie, which is shown only this once.
    pub cookie: String,
    /// The user, for the audit record.
    pub requester: Requester,
    /// The organizations of the user, whose audit trails get the record too.
    pub orgs: Vec<OrgName>,
}

/// Begins a session of a user who has just proven who they are, and returns its cookie. Its secret is new with each
/// sign-in.
///
/// # Errors
/// `AccessError::NoUser` if the user was removed meanwhile; `AccessError::SignInNeeded`.
pub async fn begin(ctx: &Context, login: &Login, by: SignedInBy, browser: &str) -> Result<Begun, Error> {
    begin_of(ctx, membership::user(ctx, login).await?, by, browser).await
}

/// The same for a user who has been read, and must not have changed since then.
///
/// # Errors
/// [`Error::Contended`] for a user who has; `AccessError::SignInNeeded`.
pub async fn begin_of(
    ctx: &Context,
    user: Stored<User>,
    by: SignedInBy,
    browser: &str,
) -> Result<Begun, Error> {
    let (now, login) = (ctx.now(), user.value.login.clone());
    check_confirmed(&user.value, now)?;
    let mut random = [0; 32];
    ctx.ids.fill(&mut random);
    let secret = format!("{PREFIX}{}", hex::encode(random));
    let until = user.value.stops(Some(now.plus(SESSION_MAX))).unwrap_or(now);
    let browser = without_hidden(browser).chars().take(BROWSER_CHARACTERS_MAX).collect();
    let session = WebSession { user_made: user.value.created, signed_in: now, until, by, browser };
    let put =
        store::put(ctx, WebSession::key(&login, &sha256_hex(secret.as_bytes())), Expect::Absent, &session);
    // Never store a session after its user is removed: a later user of the same name would have it.
    let writes = vec![expiring(put, until), check(User::key(&login), user.unchanged())];
    match store::commit(ctx, writes).await? {
        Ok(()) => Ok(Begun {
            cookie: format!("{login}.{secret}"),
            orgs: user.value.orgs.clone(),
            requester: Caller::new(user.value, token_of(&session, &login)?).requester(),
        }),
        Err(_) => Err(Error::Contended("the user")),
    }
}

/// The token that stands for a session.
fn token_of(session: &WebSession, login: &Login) -> Result<Token, Error> {
    let token = Token::personal(login.clone(), TokenName::parse(SESSION)?, session.signed_in);
    Ok(Token { expires: Some(session.until), ..token })
}

/// Finds the session of this cookie. Takes two parallel reads, cached for a minute.
///
/// # Errors
/// [`SignInError::NoSession`], `AccessError::SignInNeeded`.
pub async fn authenticate(ctx: &Context, cookie: &str) -> Result<Session, Error> {
    let none = || Error::from(SignInError::NoSession);
    let (login, hash) = parsed(cookie).ok_or_else(none)?;
    let now = ctx.now();
    let key = (login.clone(), hash.clone());
    let known = ctx.memory.sessions.get(&key, now, REMEMBERED_FOR);
    // If an admin reset how the user signs in, the session ends at once when the user gets rights elsewhere.
    let (record, user) = match known.filter(|(_, user)| user.reset_by.is_none()) {
        Some(known) => known,
        None => {
            let (session, user) = (WebSession::key(&login, &hash), User::key(&login));
            let (session, user) = futures::try_join!(store::read(ctx, &session), store::read(ctx, &user))?;
            let (session, user) = (session.ok_or_else(none)?.value, user.ok_or_else(none)?.value);
            ctx.memory.sessions.put(key, now, (session.clone(), user.clone()));
            (session, user)
        }
    };
    if record.until <= now || record.user_made != user.created {
        return Err(none());
    }
    check_confirmed(&user, now)?;
    let token = token_of(&record, &login)?;
    Ok(Session { caller: Caller::new(user, token), record, hash })
}

/// Makes an access token of the person, who signed in a short time ago, and returns it. It is shown only this once.
///
/// # Errors
/// [`SignInError::SessionTooOld`]; those of [`tokens::issue`].
pub async fn issue_token(
    ctx: &Context,
    session: &Session,
    name: &TokenName,
    description: &str,
    within: Option<Scope>,
    lasts: Duration,
) -> Result<String, Error> {
    session.check_recent(ctx)?;
    let login = session.caller.user.login.clone();
    let new = NewToken {
        within,
        description: description.to_owned(),
        created_by: Some(login.clone()),
        expires: Some(ctx.now().plus(lasts)),
        ..NewToken::new(Owner::User(login), name.clone())
    };
    Ok(tokens::issue(ctx, new).await?.secret)
}

/// Ends the session of this cookie, if there is one.
///
/// # Errors
/// Errors of the ports.
pub async fn end(ctx: &Context, cookie: &str) -> Result<(), Error> {
    let Some((login, hash)) = parsed(cookie) else { return Ok(()) };
    ctx.memory.sessions.forget(&(login.clone(), hash.clone()));
    match store::commit(ctx, vec![delete(WebSession::key(&login, &hash), Expect::Any)]).await? {
        Ok(()) => Ok(()),
        Err(_) => Err(Error::Contended("the session")),
    }
}

/// A session in a list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The ID, with which it is ended.
    pub id: String,
    /// The stored session.
    pub record: WebSession,
    /// Whether it is the session that asks.
    pub is_this: bool,
}

/// The sessions of a user, by login.
///
/// # Errors
/// `AccessError::NoUser`.
pub async fn list_of(ctx: &Context, login: &Login) -> Result<Vec<Listed>, Error> {
    let user = membership::user(ctx, login).await?;
    list(ctx, &user.value, None).await
}

/// The sessions of a user that are not over, newest first. `this` is the one that asks, if a session does.
///
/// # Errors
/// Errors of the ports.
pub async fn list(ctx: &Context, user: &User, this: Option<&Session>) -> Result<Vec<Listed>, Error> {
    let items = store::query_all(ctx, WebSession::of_user(&user.login), LISTED_MAX).await?;
    let this = this.map(|this| WebSession::key(&user.login, &this.hash).sort.clone());
    let mut listed = Vec::new();
    for item in items {
        let record = WebSession::decode(&item.value)?;
        let id = WebSession::id_in(&item.key.sort).unwrap_or_default().to_owned();
        // The store may delete a session later than it is over.
        if record.until > ctx.now() && record.user_made == user.created {
            listed.push(Listed { id, record, is_this: this.as_ref() == Some(&item.key.sort) });
        }
    }
    listed.sort_by_key(|listed| std::cmp::Reverse(listed.record.signed_in));
    Ok(listed)
}

/// Ends a session of a user, by its ID in a list. Processes that cache it forget it within a minute.
///
/// # Errors
/// [`SignInError::NoSuchSession`].
pub async fn end_by_id(ctx: &Context, login: &Login, id: &str) -> Result<(), Error> {
    let is_id = id.len() == WebSession::ID_CHARACTERS && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_id {
        return Err(SignInError::NoSuchSession.into());
    }
    let items = store::query_all(ctx, WebSession::with_id(login, id), LISTED_MAX).await?;
    if items.is_empty() {
        return Err(SignInError::NoSuchSession.into());
    }
    end_items(ctx, login, items.into_iter().map(|item| item.key.sort)).await
}

/// Ends all sessions of a user, whether the user exists or not, and returns how many.
///
/// # Errors
/// Errors of the ports.
pub async fn end_all(ctx: &Context, login: &Login) -> Result<usize, Error> {
    let items = store::query_all(ctx, WebSession::of_user(login), usize::MAX).await?;
    let ended = items.len();
    end_items(ctx, login, items.into_iter().map(|item| item.key.sort)).await?;
    Ok(ended)
}

/// Sessions that one commit ends.
const ENDED_AT_ONCE: usize = 50;

async fn end_items(ctx: &Context, login: &Login, sorts: impl Iterator<Item = String>) -> Result<(), Error> {
    let hashes: Vec<String> =
        sorts.filter_map(|sort| WebSession::hash_in(&sort).map(str::to_owned)).collect();
    for chunk in hashes.chunks(ENDED_AT_ONCE) {
        let delete = |hash: &String| delete(WebSession::key(login, hash), Expect::Any);
        for hash in chunk {
            ctx.memory.sessions.forget(&(login.clone(), hash.clone()));
        }
        if store::commit(ctx, chunk.iter().map(delete).collect()).await?.is_err() {
            return Err(Error::Contended("the sessions"));
        }
    }
    Ok(())
}

/// The login and the hash of the secret of a cookie.
fn parsed(cookie: &str) -> Option<(Login, String)> {
    let (login, secret) = cookie.split_once('.')?;
    let hex = secret.strip_prefix(PREFIX)?;
    let is_secret = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_secret.then_some(())?;
    Some((Login::parse(login).ok()?, sha256_hex(secret.as_bytes())))
}

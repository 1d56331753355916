//! Logins of our own command line: a person allows it in a browser, and the program gets a code, for which
//! only the program that began the login gets a token (RFC 7636 and RFC 8252). The token makes short-lived
//! ones for other programs.

use std::time::Duration;

use super::membership::{self, check_confirmed};
use super::sessions::Session;
use super::token_requests::personal;
use super::tokens::{self, NewToken, Owner};
use crate::context::Context;
use crate::domain::names::{Login, TokenName};
use crate::domain::pkce::Challenge;
use crate::domain::principal::Principal;
use crate::domain::update::Requester;
use crate::layout::{LoginCode, delete, expiring};
use crate::ports::{Expect, Timestamp};
use crate::services::error::{AccessError, ExchangeError};
use crate::services::store::sha256_hex;
use crate::services::{Error, store};

/// The time in which a code can be used: a person may have to copy it.
pub const CODE_VALID: Duration = Duration::from_secs(300);

/// The lifetime of a short-lived token.
pub const SHORT: Duration = Duration::from_secs(3600);

/// The prefix of a code's secret, by which scanners find leaked ones.
const PREFIX: &str = "swc_";

/// A token that the command line got.
#[derive(Debug)]
pub struct IssuedToken {
    /// The token, shown only this once.
    pub secret: String,
    /// Its lifetime in whole seconds.
    pub seconds: u64,
    /// The user with the new token, for the audit record.
    pub requester: Requester,
}

/// Makes the code that the person allows, who signed in a short time ago. Only the program with the verifier
/// of `challenge` can use it.
///
/// # Errors
/// `SignInError::SessionTooOld`.
pub async fn give(
    ctx: &Context,
    session: &Session,
    challenge: &Challenge,
    description: &str,
    lasts: Duration,
) -> Result<String, Error> {
    session.check_recent(ctx)?;
    let user = &session.caller.user;
    let mut random = [0; 32];
    ctx.ids.fill(&mut random);
    let secret = format!("{PREFIX}{}", hex::encode(random));
    let code = LoginCode {
        user_made: user.created,
        challenge: challenge.to_string(),
        description: description.to_owned(),
        seconds: lasts.as_secs(),
        until: ctx.now().plus(CODE_VALID),
    };
    let key = LoginCode::key(&user.login, &sha256_hex(secret.as_bytes()));
    let write = expiring(store::put(ctx, key, Expect::Absent, &code), code.until);
    match store::commit(ctx, vec![write]).await? {
        Ok(()) => Ok(format!("{}.{secret}", user.login)),
        Err(_) => Err(Error::Contended("the code")),
    }
}

/// Uses a code, and gives its token. A code works once, and only with its verifier; all other codes are
/// refused alike.
///
/// # Errors
/// [`ExchangeError::Code`]; [`AccessError::SignInNeeded`].
pub async fn redeem(ctx: &Context, code: &str, verifier: &str) -> Result<IssuedToken, Error> {
    let wrong = || Error::from(ExchangeError::Code);
    let (login, secret) = code.split_once('.').ok_or_else(wrong)?;
    let login = Login::parse(login).map_err(|_| wrong())?;
    let hash = sha256_hex(secret.as_bytes());
    let found = store::read(ctx, &LoginCode::key(&login, &hash)).await?.ok_or_else(wrong)?;
    let (code, now) = (&found.value, ctx.now());
    let is_proven = Challenge::of(verifier).is_some_and(|challenge| challenge.as_str() == code.challenge);
    if !is_proven || code.until <= now {
        return Err(wrong());
    }
    let user = match membership::user(ctx, &login).await {
        Ok(user) => user.value,
        Err(Error::Access(AccessError::NoUser(_))) => return Err(wrong()),
        Err(error) => return Err(error),
    };
    if user.created != code.user_made {
        return Err(wrong());
    }
    check_confirmed(&user, now)?;
    let used = delete(LoginCode::key(&login, &hash), found.unchanged());
    if store::commit(ctx, vec![used]).await?.is_err() {
        // Another request used it first.
        return Err(wrong());
    }
    let expires = now.plus(Duration::from_secs(code.seconds));
    let new = NewToken {
        description: code.description.clone(),
        created_by: Some(login.clone()),
        expires: Some(expires),
        ..NewToken::new(Owner::User(login), token_name(ctx, "cli")?)
    };
    issue(ctx, new, expires).await
}

/// Gives a token for an hour to the owner of a personal token. It allows the same, and ends no later.
///
/// # Errors
/// As [`tokens::authenticate`] and [`personal`].
pub async fn shorten(ctx: &Context, token: &str) -> Result<IssuedToken, Error> {
    let caller = tokens::authenticate(ctx, token).await?;
    let (owner, own) = (personal(&caller)?, &caller.token);
    let until = ctx.now().plus(SHORT);
    let expires = own.expires.map_or(until, |expires| expires.min(until));
    let new = NewToken {
        org: own.org.clone(),
        within: own.within.clone(),
        may: own.may,
        description: format!("for an hour, made by the token {}", own.name),
        created_by: Some(caller.user.login.clone()),
        expires: Some(expires),
        is_short_lived: true,
        ..NewToken::new(owner, token_name(ctx, "short")?)
    };
    issue(ctx, new, expires).await
}

async fn issue(ctx: &Context, new: NewToken, expires: Timestamp) -> Result<IssuedToken, Error> {
    let seconds = expires.since(ctx.now()).as_secs();
    let issued = tokens::issue(ctx, new).await?;
    let token = issued.entry.token;
    let requester = Requester { login: token.login, token: token.name, of: Principal::User };
    Ok(IssuedToken { secret: issued.secret, seconds, requester })
}

/// A name for a token that a program gets.
///
/// # Errors
/// None: the name is valid.
pub fn token_name(ctx: &Context, kind: &str) -> Result<TokenName, Error> {
    let mut random = [0; 6];
    ctx.ids.fill(&mut random);
    Ok(TokenName::parse(&format!("{kind}-{}", hex::encode(random)))?)
}

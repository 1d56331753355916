//! Access tokens, and client certificates, which serve as access tokens: their secret is a private key.

use std::time::Duration;

use super::membership;
use crate::cache::REMEMBERED_FOR;
use crate::context::Context;
use crate::domain::names::{Login, TokenName};
use crate::domain::role::Role;
use crate::layout::{Record, Token, TokenEntry, User, check, delete};
use crate::ports::{Expect, Timestamp, Write};
use crate::services::Error;
use crate::services::caller::{Caller, PASSWORD};
use crate::services::error::{AccessError, IdentityError};
use crate::services::store;
use crate::services::store::retry::Attempts;
use crate::services::store::sha256_hex;

/// The prefix of every access token, by which scanners find leaked ones.
pub const TOKEN_PREFIX: &str = "swt_";

/// The time after a token expires in which its runs may still end: a lock or an update proves that the run
/// began in time. A revoked token has no such time.
pub const TOKEN_GRACE: Duration = Duration::from_secs(24 * 3600);

/// Precedes a client certificate in the input of its hash. No text contains this first byte, so no text sent
/// as an access token has the hash of a certificate.
const CERTIFICATE_PREFIX: &[u8] = b"\xffcertificate ";

/// A client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Its DER form.
    pub der: Vec<u8>,
    /// When it expires.
    pub not_after: Timestamp,
}

/// The credentials of a request.
#[derive(Debug, Clone, Copy)]
pub enum Shown<'a> {
    /// An access token.
    Token(&'a str),
    /// A client certificate as DER. The client proved on this connection that it has the private key.
    Certificate(&'a [u8]),
}

impl Shown<'_> {
    fn hash(self) -> String {
        match self {
            Self::Token(token) => sha256_hex(token.as_bytes()),
            Self::Certificate(der) => sha256_hex(&[CERTIFICATE_PREFIX, der].concat()),
        }
    }

    fn is_unknown(self) -> Error {
        Error::Access(match self {
            Self::Token(_) => AccessError::UnknownToken,
            Self::Certificate(_) => AccessError::UnknownCertificate,
        })
    }

    fn is_over(self) -> Error {
        Error::Access(match self {
            Self::Token(_) => AccessError::TokenExpired,
            Self::Certificate(_) => AccessError::CertificateExpired,
        })
    }
}

/// Finds the owner of this access token. Costs one read of the token and one of its owner, cached for a
/// minute.
///
/// # Errors
/// [`AccessError`] unless the token is known and valid.
pub async fn authenticate(ctx: &Context, token: &str) -> Result<Caller, Error> {
    let (caller, _) = authenticate_run(ctx, Shown::Token(token), Duration::ZERO).await?;
    Ok(caller)
}

/// The same for a client certificate too. For `grace` after it expires, a token still identifies its owner,
/// and this returns when it expired: the caller has to prove in another way what it may do. A revoked token
/// identifies no user.
///
/// # Errors
/// [`AccessError`].
pub async fn authenticate_run(
    ctx: &Context,
    shown: Shown<'_>,
    grace: Duration,
) -> Result<(Caller, Option<Timestamp>), Error> {
    let now = ctx.now();
    let hash = shown.hash();
    let (token, user) = match ctx.memory.callers.get(&hash, now, REMEMBERED_FOR) {
        Some(known) => known,
        None => {
            let unknown = || shown.is_unknown();
            let token = store::read(ctx, &Token::key(&hash)).await?.ok_or_else(unknown)?.value;
            let user = store::read(ctx, &User::key(&token.login)).await?.ok_or_else(unknown)?.value;
            ctx.memory.callers.put(hash, now, (token.clone(), user.clone()));
            (token, user)
        }
    };
    let ended = token.expires.filter(|expires| *expires <= now);
    if ended.is_some_and(|ended| ended.plus(grace) <= now) {
        return Err(shown.is_over());
    }
    Ok((Caller::new(user, token), ended))
}

/// Creates an access token and returns it. It is shown only this once; only its hash is stored.
///
/// # Errors
/// [`AccessError::NoUser`]; [`IdentityError::TokenExists`], [`IdentityError::ReservedTokenName`].
pub async fn create_token(
    ctx: &Context,
    login: &Login,
    name: &TokenName,
    expires_in: Option<Duration>,
) -> Result<String, Error> {
    create_scoped_token(ctx, login, name, None, expires_in).await
}

/// The same for a token with a highest role: it may do this, or what its owner may if that is less.
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
    let expires = expires_in.map(|duration| ctx.now().plus(duration));
    let (secret, token) = new_token(ctx, login, name, may, expires);
    store_token(ctx, Shown::Token(&secret), &token).await?;
    Ok(secret)
}

/// Registers a client certificate as a token of a user, and returns its entry in the user's list. The token
/// expires with the certificate or earlier, and may do at most what this role may. The certificate is pinned:
/// its issuer does not matter.
///
/// # Errors
/// As [`create_token`]; [`IdentityError::CertificateExpired`], [`IdentityError::CertificateInUse`].
pub async fn create_certificate(
    ctx: &Context,
    login: &Login,
    name: &TokenName,
    certificate: &Certificate,
    may: Option<Role>,
    expires_in: Option<Duration>,
) -> Result<TokenEntry, Error> {
    let (now, end) = (ctx.now(), certificate.not_after);
    if end <= now {
        return Err(IdentityError::CertificateExpired(end).into());
    }
    let expires = expires_in.map_or(end, |duration| now.plus(duration).min(end));
    let token = Token { name: name.clone(), login: login.clone(), created: now, expires: Some(expires), may };
    store_token(ctx, Shown::Certificate(&certificate.der), &token).await
}

async fn store_token(ctx: &Context, shown: Shown<'_>, token: &Token) -> Result<TokenEntry, Error> {
    let Token { login, name, .. } = token;
    if name.as_str() == PASSWORD {
        return Err(IdentityError::ReservedTokenName(name.clone()).into());
    }
    let mut attempts = Attempts::at("the user");
    loop {
        attempts.begin()?;
        let user = membership::user(ctx, login).await?;
        let entry = entry_of(shown, token);
        let mut writes = token_writes(ctx, &entry);
        // Never store a token after its owner is deleted: a later user of the same name would have it.
        let owner = writes.len();
        writes.push(check(User::key(login), user.unchanged()));
        match store::commit(ctx, writes).await? {
            Ok(()) => return Ok(entry),
            Err(refusal) if refusal.index == owner => {}
            // The other token may be gone by now, so check the name and not the hash.
            Err(_) => {
                let named = store::get(ctx, &TokenEntry::key(login, name)).await?;
                return Err(match named {
                    Some(_) => IdentityError::TokenExists { login: login.clone(), name: name.clone() },
                    None => IdentityError::CertificateInUse,
                }
                .into());
            }
        }
    }
}

/// The access tokens and client certificates of a user, by name.
///
/// # Errors
/// [`AccessError::NoUser`].
pub async fn list_tokens(ctx: &Context, login: &Login) -> Result<Vec<TokenEntry>, Error> {
    membership::user(ctx, login).await?;
    let items = store::query_all(ctx, TokenEntry::of_user(login), usize::MAX).await?;
    items.iter().map(|item| Ok(TokenEntry::decode(&item.value)?)).collect()
}

/// Revokes all access tokens of a user, whether the user exists or not, and returns how many.
pub(super) async fn end_tokens(ctx: &Context, login: &Login) -> Result<usize, Error> {
    let items = store::query_all(ctx, TokenEntry::of_user(login), usize::MAX).await?;
    // Two writes for each token, within the limits of a commit.
    for chunk in items.chunks(50) {
        let mut writes = Vec::with_capacity(2 * chunk.len());
        for item in chunk {
            let hash = TokenEntry::decode(&item.value)?.hash;
            writes.push(delete(Token::key(&hash), Expect::Any));
            writes.push(delete(item.key.clone(), Expect::Any));
            ctx.memory.callers.forget(&hash);
        }
        if store::commit(ctx, writes).await?.is_err() {
            return Err(Error::Contended("the user's tokens"));
        }
    }
    Ok(items.len())
}

/// Revokes an access token. Processes that cache it forget it within a minute.
///
/// # Errors
/// [`IdentityError::NoToken`].
pub async fn revoke_token(ctx: &Context, login: &Login, name: &TokenName) -> Result<(), Error> {
    let mut attempts = Attempts::at("the token");
    loop {
        let attempt = attempts.begin()?;
        let key = TokenEntry::key(login, name);
        let Some(entry) = store::read(ctx, &key).await? else {
            // It existed a moment ago: an earlier attempt deleted it, and its answer was lost.
            if attempt > 0 {
                return Ok(());
            }
            return Err(IdentityError::NoToken { login: login.clone(), name: name.clone() }.into());
        };
        let hash = entry.value.hash.clone();
        let writes = vec![delete(key, entry.unchanged()), delete(Token::key(&hash), Expect::Any)];
        let removed = store::commit(ctx, writes).await?;
        ctx.memory.callers.forget(&hash);
        if removed.is_ok() {
            return Ok(());
        }
    }
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

/// A token's entry in its owner's list, with the hash in the key of the token's item.
pub(super) fn entry_of(shown: Shown<'_>, token: &Token) -> TokenEntry {
    let certificate = match shown {
        Shown::Token(_) => None,
        Shown::Certificate(der) => Some(sha256_hex(der)),
    };
    TokenEntry { hash: shown.hash(), certificate, token: token.clone() }
}

pub(super) fn token_writes(ctx: &Context, entry: &TokenEntry) -> Vec<Write> {
    let token = &entry.token;
    vec![
        store::put(ctx, Token::key(&entry.hash), Expect::Absent, token),
        store::put(ctx, TokenEntry::key(&token.login, &token.name), Expect::Absent, entry),
    ]
}

//! Access tokens, and client certificates, which serve as access tokens: their secret is a private key.

use std::time::Duration;

use super::last_use::UsedToken;
use super::{last_use, membership, principals};
use crate::cache::REMEMBERED_FOR;
use crate::context::Context;
use crate::domain::access::Scope;
use crate::domain::names::{Login, OrgName, TeamName, TokenName};
use crate::domain::principal::Principal;
use crate::domain::role::Role;
use crate::layout::{
    FormerSecret, Key, Org, OrgAccess, Record, Stored, Token, TokenEntry, User, check, delete, expiring,
};
use crate::ports::{Expect, Order, Timestamp, Write};
use crate::services::Error;
use crate::services::caller::{Caller, PASSWORD, SESSION};
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

/// Finds the owner of this access token. Costs one read of the token, and two parallel ones of its owner and of
/// its last use, cached for a minute. Once an hour, a use of the token costs a write.
///
/// # Errors
/// [`AccessError`] unless the token is known and valid.
pub async fn authenticate(ctx: &Context, token: &str) -> Result<Caller, Error> {
    authenticate_telling(ctx, token, || ()).await
}

/// The same. Calls `tell` when a token that has not expired was found in the store, before its owner is read.
///
/// # Errors
/// As [`authenticate`].
pub async fn authenticate_telling(ctx: &Context, token: &str, tell: impl FnOnce()) -> Result<Caller, Error> {
    let (caller, _) = accept(ctx, Shown::Token(token), Duration::ZERO, User::stops, tell).await?;
    Ok(caller)
}

/// The same for an answer that tells no more than who asks: a token that stopped because the provider has to confirm its
/// user again is accepted too ([`Caller::is_stopped`]), and no use of it is recorded. One that has expired or was revoked
/// is not.
///
/// # Errors
/// As [`authenticate`].
pub async fn identify(ctx: &Context, token: &str) -> Result<Caller, Error> {
    let (caller, _) = accept(ctx, Shown::Token(token), Duration::ZERO, |_, expires| expires, || ()).await?;
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
    accept(ctx, shown, grace, User::stops, || ()).await
}

/// `ends` tells when a token of this user with this expiry ends. Calls `tell` as [`authenticate_telling`] does.
async fn accept(
    ctx: &Context,
    shown: Shown<'_>,
    grace: Duration,
    ends: fn(&User, Option<Timestamp>) -> Option<Timestamp>,
    tell: impl FnOnce(),
) -> Result<(Caller, Option<Timestamp>), Error> {
    let now = ctx.now();
    let hash = shown.hash();
    let known = ctx.memory.callers.get(&hash, now, REMEMBERED_FOR);
    // If an admin reset how the user signs in, the token ends at once when the user gets rights elsewhere: otherwise it
    // could make another one within the minute.
    let (token, user, due) = match known.filter(|(_, user)| user.reset_by.is_none()) {
        Some((token, user)) => (token, user, None),
        None => {
            let unknown = || shown.is_unknown();
            let item = store::get(ctx, &Token::key(&hash)).await?.ok_or_else(unknown)?;
            let token = Token::decode(&item.value)?;
            if token.expires.is_none_or(|expires| expires > now) {
                tell();
            }
            let (user, due) = futures::join!(
                principals::find(ctx, &token.of, &token.login),
                last_use::due(ctx, &token, item.expires)
            );
            let user = user?.and_then(|user| principals::with_role_of(&token, user)).ok_or_else(unknown)?;
            ctx.memory.callers.put(hash, now, (token.clone(), user.clone()));
            (token, user, due)
        }
    };
    let ended = ends(&user, token.expires).filter(|ends| *ends <= now);
    if ended.is_some_and(|ended| ended.plus(grace) <= now) {
        membership::check_confirmed(&user, now)?;
        return Err(shown.is_over());
    }
    // Not the end of a run whose token has expired, and not of one that stopped.
    let stopped = user.stops(token.expires).filter(|stops| *stops <= now);
    if let Some(due) = due.filter(|_| stopped.is_none()) {
        last_use::record(ctx, &token, due).await;
    }
    let caller = Caller::new(user, token);
    Ok(match shown {
        Shown::Token(_) => (caller.with_access_token(), ended),
        Shown::Certificate(_) => (caller, ended),
    })
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
    let owner = Owner::User(login.clone());
    Ok(issue(ctx, NewToken { may, expires, ..NewToken::new(owner, name.clone()) }).await?.secret)
}

/// The owner of a token: the principal that it identifies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A user. The token may do what the user may.
    User(Login),
    /// An organization. The token is a machine with a role of its own.
    Organization(OrgName),
    /// A team of an organization. The token is a machine that may do what the team may.
    Team(OrgName, TeamName),
}

impl Owner {
    /// The login of the tokens: the user's, or the organization's name.
    pub fn login(&self) -> Login {
        match self {
            Self::User(login) => login.clone(),
            Self::Organization(org) | Self::Team(org, _) => org.into(),
        }
    }

    /// The principal that the tokens identify.
    pub fn principal(&self) -> Principal {
        match self {
            Self::User(_) => Principal::User,
            Self::Organization(_) => Principal::Organization,
            Self::Team(_, team) => Principal::Team(team.clone()),
        }
    }

    fn org(&self) -> Option<&OrgName> {
        match self {
            Self::User(_) => None,
            Self::Organization(org) | Self::Team(org, _) => Some(org),
        }
    }

    /// When the owner was created. One read.
    async fn created(&self, ctx: &Context) -> Result<Timestamp, Error> {
        let missing = || match self {
            Self::User(login) => Error::Access(AccessError::NoUser(login.clone())),
            Self::Organization(org) => Error::Access(AccessError::NoOrg(org.clone())),
            Self::Team(org, team) => {
                Error::Identity(IdentityError::NoTeam { org: org.clone(), team: team.clone() })
            }
        };
        let found = principals::find(ctx, &self.principal(), &self.login()).await?;
        Ok(found.ok_or_else(missing)?.created)
    }

    /// Whether this is a token of the owner, who was created at `created`. A team of the same name may have been there
    /// before.
    fn has(&self, token: &Token, created: Timestamp) -> bool {
        token.of == self.principal() && (token.of.team().is_none() || token.created >= created)
    }

    fn lacks(&self, name: &TokenName) -> Error {
        let name = name.clone();
        match self {
            Self::User(login) => IdentityError::NoToken { login: login.clone(), name },
            Self::Organization(org) | Self::Team(org, _) => {
                IdentityError::NoMachineToken { org: org.clone(), name }
            }
        }
        .into()
    }

    fn is_of_other_kind(&self) -> Error {
        let kind = match self {
            Self::User(_) => "a personal",
            Self::Organization(_) => "an organization",
            Self::Team(..) => "a team",
        };
        IdentityError::TokenOfOtherKind { kind }.into()
    }
}

/// A token to create.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Its owner.
    pub owner: Owner,
    /// Its name, which no other token of a user has. Names of machine tokens are used once in an organization.
    pub name: TokenName,
    /// The only organization in which a personal token works; `None` for all of the user's.
    pub org: Option<OrgName>,
    /// The only part of each organization in which it works; `None` for all of it.
    pub within: Option<Scope>,
    /// The highest role of a personal token, or the role of an organization's token. A team's token has none.
    pub may: Option<Role>,
    /// What it is for.
    pub description: String,
    /// Who creates it; `None` for the operator.
    pub created_by: Option<Login>,
    /// When it ends; `None` for never.
    pub expires: Option<Timestamp>,
    /// Whether its items expire by themselves some time after the token: for tokens of one job, of which there are
    /// many.
    pub is_short_lived: bool,
}

impl NewToken {
    /// A token without limits.
    pub fn new(owner: Owner, name: TokenName) -> Self {
        Self {
            owner,
            name,
            org: None,
            within: None,
            may: None,
            description: String::new(),
            created_by: None,
            expires: None,
            is_short_lived: false,
        }
    }
}

/// A new token.
#[derive(Debug)]
pub struct Issued {
    /// The token itself, which is shown only this once: only its hash is stored.
    pub secret: String,
    /// Its entry in its owner's list.
    pub entry: TokenEntry,
}

/// Creates a token. One commit, after a read of its owner.
///
/// # Errors
/// [`AccessError::NoUser`], [`AccessError::NoOrg`], [`IdentityError::NoTeam`]; [`IdentityError::TokenExists`],
/// [`IdentityError::TokenNameUsed`], [`IdentityError::ReservedTokenName`].
pub async fn issue(ctx: &Context, new: NewToken) -> Result<Issued, Error> {
    let secret = new_secret(ctx);
    let token = Token {
        name: new.name,
        login: new.owner.login(),
        created: ctx.now(),
        expires: new.expires,
        may: new.may,
        of: new.owner.principal(),
        org: new.org.or_else(|| new.owner.org().cloned()),
        within: new.within.filter(|within| *within != Scope::Organization),
        created_by: new.created_by,
        description: new.description,
    };
    let entry = store_token(ctx, Shown::Token(&secret), &token, new.is_short_lived).await?;
    Ok(Issued { secret, entry })
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
    let token = Token { expires: Some(expires), may, ..Token::personal(login.clone(), name.clone(), now) };
    store_token(ctx, Shown::Certificate(&certificate.der), &token, false).await
}

async fn store_token(
    ctx: &Context,
    shown: Shown<'_>,
    token: &Token,
    is_short_lived: bool,
) -> Result<TokenEntry, Error> {
    let Token { login, name, of, .. } = token;
    if [PASSWORD, SESSION].contains(&name.as_str()) {
        return Err(IdentityError::ReservedTokenName(name.clone()).into());
    }
    let mut attempts = Attempts::at("the token's owner");
    loop {
        attempts.begin()?;
        let unchanged = owner_unchanged(ctx, of, login).await?;
        let entry = entry_of(shown, token);
        let mut writes = token_writes(ctx, &entry);
        if let Some(expires) = token.expires.filter(|_| is_short_lived) {
            let until = expires.plus(TOKEN_GRACE);
            writes = writes.into_iter().map(|write| expiring(write, until)).collect();
        }
        // Never store a token after its owner is deleted: a later owner of the same name would have it.
        let owner = writes.len();
        writes.push(unchanged);
        match store::commit(ctx, writes).await? {
            Ok(()) => return Ok(entry),
            Err(refusal) if refusal.index == owner => {}
            // The other token may be gone by now, so check the name and not the hash.
            Err(_) => {
                let named = store::get(ctx, &TokenEntry::key_of(of, login, name)).await?;
                return Err(match named {
                    Some(_) if of.is_user() => {
                        IdentityError::TokenExists { login: login.clone(), name: name.clone() }
                    }
                    Some(_) => IdentityError::TokenNameUsed { org: login.into(), name: name.clone() },
                    None => IdentityError::CertificateInUse,
                }
                .into());
            }
        }
    }
}

/// The condition that the owner of a new token still exists.
async fn owner_unchanged(ctx: &Context, of: &Principal, login: &Login) -> Result<Write, Error> {
    let org = OrgName::from(login);
    Ok(match of {
        Principal::User => check(User::key(login), membership::user(ctx, login).await?.unchanged()),
        Principal::Organization => check(Org::key(&org), membership::org(ctx, &org).await?.unchanged()),
        Principal::Team(team) => {
            let access = store::access::stored(ctx, &org).await?;
            let access = access.filter(|access| access.value.teams.contains_key(team));
            let missing = || IdentityError::NoTeam { org: org.clone(), team: team.clone() };
            check(OrgAccess::key(&org), access.ok_or_else(missing)?.unchanged())
        }
    })
}

/// The ID that the API has for the token with this secret.
pub fn id_of(secret: &str) -> String {
    TokenEntry::id_in(&Shown::Token(secret).hash()).to_owned()
}

/// Which tokens a list has. Revoked ones are in none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shows {
    /// Tokens that work.
    #[default]
    Active,
    /// Tokens that have expired.
    Expired,
    /// Both.
    All,
}

impl Shows {
    fn has(self, token: &Token, now: Timestamp) -> bool {
        let is_expired = token.expires.is_some_and(|expires| expires <= now);
        match self {
            Self::Active => !is_expired,
            Self::Expired => is_expired,
            Self::All => true,
        }
    }
}

/// A page of a list of tokens.
#[derive(Debug)]
pub struct TokenPage {
    /// The tokens, by name.
    pub tokens: Vec<UsedToken>,
    /// The name after which the next page begins; `None` on the last.
    pub next: Option<TokenName>,
}

/// Entries that a query reads at once.
const ENTRIES_AT_ONCE: usize = 500;

/// Entries that are read for one page: a list may have many that the page does not show.
const ENTRIES_PER_PAGE_MAX: usize = 10_000;

/// A page of an owner's tokens, of at most `max`.
///
/// # Errors
/// [`AccessError::NoUser`], [`AccessError::NoOrg`], [`IdentityError::NoTeam`].
pub async fn list(
    ctx: &Context,
    owner: &Owner,
    shows: Shows,
    after: Option<&TokenName>,
    max: usize,
) -> Result<TokenPage, Error> {
    let (now, created) = (ctx.now(), owner.created(ctx).await?);
    let (mut entries, mut last, mut read) = (Vec::new(), None, 0);
    let is_complete = scan(ctx, owner, after, |entry: TokenEntry| {
        if entries.len() == max || read == ENTRIES_PER_PAGE_MAX {
            return false;
        }
        read += 1;
        last = Some(entry.token.name.clone());
        let token = &entry.token;
        if entry.revoked.is_none() && owner.has(token, created) && shows.has(token, now) {
            entries.push(entry);
        }
        true
    })
    .await?;
    let tokens = last_use::of_entries(ctx, (&owner.principal(), &owner.login()), after, entries).await?;
    Ok(TokenPage { tokens, next: last.filter(|_| !is_complete) })
}

/// All tokens of an owner, by name: for a user, also client certificates.
///
/// # Errors
/// As [`list`].
pub async fn list_all(ctx: &Context, owner: &Owner) -> Result<Vec<UsedToken>, Error> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = list(ctx, owner, Shows::All, after.as_ref(), usize::MAX).await?;
        all.extend(page.tokens);
        after = page.next;
        if after.is_none() {
            return Ok(all);
        }
    }
}

/// The token of an owner with this ID.
///
/// # Errors
/// As [`list`]; [`IdentityError::NoTokenWithId`], [`IdentityError::TokenOfOtherKind`].
pub async fn find(ctx: &Context, owner: &Owner, id: &str) -> Result<TokenEntry, Error> {
    let created = owner.created(ctx).await?;
    let mut found = None;
    scan(ctx, owner, None, |entry: TokenEntry| {
        if entry.id() == id && entry.revoked.is_none() {
            found = Some(entry);
        }
        found.is_none()
    })
    .await?;
    let found = found.ok_or(IdentityError::NoTokenWithId)?;
    if owner.has(&found.token, created) {
        return Ok(found);
    }
    let is_of_a_team = |of: &Principal| of.team().is_some();
    match is_of_a_team(&found.token.of) == is_of_a_team(&owner.principal()) {
        // Of another team, or of an earlier one of this name.
        true => Err(IdentityError::NoTokenWithId.into()),
        false => Err(owner.is_of_other_kind()),
    }
}

/// Gives the entries of an owner's list to `take`, by name, until it returns false. Returns whether the list ended.
async fn scan(
    ctx: &Context,
    owner: &Owner,
    after: Option<&TokenName>,
    mut take: impl FnMut(TokenEntry) -> bool + Send,
) -> Result<bool, Error> {
    let (of, login) = (owner.principal(), owner.login());
    let after = after.map(|name| TokenEntry::key_of(&of, &login, name).sort.clone());
    let mut query = TokenEntry::list(&of, &login).query(after, Order::Ascending, ENTRIES_AT_ONCE);
    loop {
        let page = store::query(ctx, &query).await?;
        for item in &page.items {
            if !take(TokenEntry::decode(&item.value)?) {
                return Ok(false);
            }
        }
        query.after = page.items.last().map(|item| item.key.sort.clone());
        if !page.more || query.after.is_none() {
            return Ok(true);
        }
    }
}

/// Revokes all access tokens of a user, whether the user exists or not, and returns how many.
pub(super) async fn end_tokens(ctx: &Context, login: &Login) -> Result<usize, Error> {
    let items = store::query_all(ctx, TokenEntry::of_user(login), usize::MAX).await?;
    // At most four writes for each token, within the limits of a commit.
    for chunk in items.chunks(25) {
        let mut writes = Vec::with_capacity(4 * chunk.len());
        for item in chunk {
            let entry = TokenEntry::decode(&item.value)?;
            writes.push(delete(item.key.clone(), Expect::Any));
            writes.push(last_use::forgotten(&entry.token));
            for hash in entry.hashes() {
                writes.push(delete(Token::key(hash), Expect::Any));
                ctx.memory.callers.forget(hash);
            }
        }
        if store::commit(ctx, writes).await?.is_err() {
            return Err(Error::Contended("the user's tokens"));
        }
    }
    Ok(items.len())
}

/// Revokes an access token of a user. Processes that cache it forget it within a minute.
///
/// # Errors
/// [`IdentityError::NoToken`].
pub async fn revoke_token(ctx: &Context, login: &Login, name: &TokenName) -> Result<(), Error> {
    revoke(ctx, &Owner::User(login.clone()), name).await.map(|_| ())
}

/// Revokes a token with all its secrets, and returns its entry. Processes that cache it forget it within a minute. The
/// entry of a machine token stays, because its name is used only once.
///
/// # Errors
/// [`IdentityError::NoToken`], [`IdentityError::NoMachineToken`], [`IdentityError::TokenOfOtherKind`].
pub async fn revoke(ctx: &Context, owner: &Owner, name: &TokenName) -> Result<TokenEntry, Error> {
    let mut attempts = Attempts::at("the token");
    let mut ended = None;
    loop {
        attempts.begin()?;
        let (key, entry) = match (read_entry(ctx, owner, name).await, ended) {
            (Ok(found), _) => found,
            // It existed a moment ago: an earlier attempt ended it, and its answer was lost.
            (
                Err(Error::Identity(IdentityError::NoToken { .. } | IdentityError::NoMachineToken { .. })),
                Some(entry),
            ) => return Ok(entry),
            (Err(error), _) => return Err(error),
        };
        let mut writes = vec![match owner {
            Owner::User(_) => delete(key, entry.unchanged()),
            Owner::Organization(_) | Owner::Team(..) => {
                let next = TokenEntry { revoked: Some(ctx.now()), former: None, ..entry.value.clone() };
                store::put(ctx, key, entry.unchanged(), &next)
            }
        }];
        writes.extend(entry.value.hashes().map(|hash| delete(Token::key(hash), Expect::Any)));
        writes.push(last_use::forgotten(&entry.value.token));
        let done = store::commit(ctx, writes).await?;
        for hash in entry.value.hashes() {
            ctx.memory.callers.forget(hash);
        }
        if done.is_ok() {
            return Ok(entry.value);
        }
        ended = Some(entry.value);
    }
}

/// The entry of an owner's token that is not revoked.
async fn read_entry(
    ctx: &Context,
    owner: &Owner,
    name: &TokenName,
) -> Result<(Key<TokenEntry>, Stored<TokenEntry>), Error> {
    let of = owner.principal();
    let key = TokenEntry::key_of(&of, &owner.login(), name);
    let entry = store::read(ctx, &key).await?.filter(|entry| entry.value.revoked.is_none());
    let entry = entry.ok_or_else(|| owner.lacks(name))?;
    match entry.value.token.of == of {
        true => Ok((key, entry)),
        false => Err(owner.is_of_other_kind()),
    }
}

/// Replaces the secret of a token. The token keeps its name and what it allows; updates and locks that it took
/// continue. The old secret works for `grace` more, and a secret from before an earlier rotation ends at once.
///
/// # Errors
/// As [`revoke`]; [`IdentityError::NoSecretToRotate`], [`IdentityError::TokenExpiryPast`].
pub async fn rotate(
    ctx: &Context,
    owner: &Owner,
    name: &TokenName,
    grace: Duration,
    expires: Option<Timestamp>,
) -> Result<Issued, Error> {
    let secret = new_secret(ctx);
    let mut attempts = Attempts::at("the token");
    loop {
        attempts.begin()?;
        let now = ctx.now();
        let (key, stored) = read_entry(ctx, owner, name).await?;
        let TokenEntry { hash, token: old, former: older, certificate, .. } = &stored.value;
        if certificate.is_some() {
            return Err(IdentityError::NoSecretToRotate.into());
        }
        let token = Token { expires: expires.or(old.expires), ..old.clone() };
        if token.expires.is_some_and(|expires| expires <= now) {
            return Err(IdentityError::TokenExpiryPast.into());
        }
        let until = now.plus(grace);
        let until = old.expires.map_or(until, |expires| expires.min(until));
        let former = (until > now).then(|| FormerSecret { hash: hash.clone(), until });
        let mut writes = vec![match &former {
            Some(_) => {
                let ending = Token { expires: Some(until), ..old.clone() };
                store::put(ctx, Token::key(hash), Expect::Any, &ending)
            }
            None => delete(Token::key(hash), Expect::Any),
        }];
        writes.extend(older.as_ref().map(|older| delete(Token::key(&older.hash), Expect::Any)));
        let next = TokenEntry {
            hash: Shown::Token(&secret).hash(),
            token: token.clone(),
            former,
            ..stored.value.clone()
        };
        writes.push(store::put(ctx, Token::key(&next.hash), Expect::Absent, &token));
        writes.push(store::put(ctx, key, stored.unchanged(), &next));
        // Never store a secret after its owner is deleted: a later owner of the same name would have it.
        writes.push(owner_unchanged(ctx, &token.of, &token.login).await?);
        let done = store::commit(ctx, writes).await?;
        for hash in stored.value.hashes() {
            ctx.memory.callers.forget(hash);
        }
        if done.is_ok() {
            return Ok(Issued { secret, entry: next });
        }
    }
}

fn new_secret(ctx: &Context) -> String {
    let mut random = [0; 32];
    ctx.ids.fill(&mut random);
    format!("{TOKEN_PREFIX}{}", hex::encode(random))
}

pub(super) fn new_token(
    ctx: &Context,
    login: &Login,
    name: &TokenName,
    may: Option<Role>,
    expires: Option<Timestamp>,
) -> (String, Token) {
    (new_secret(ctx), Token { expires, may, ..Token::personal(login.clone(), name.clone(), ctx.now()) })
}

/// A token's entry in its owner's list, with the hash in the key of the token's item.
pub(super) fn entry_of(shown: Shown<'_>, token: &Token) -> TokenEntry {
    let certificate = match shown {
        Shown::Token(_) => None,
        Shown::Certificate(der) => Some(sha256_hex(der)),
    };
    TokenEntry { hash: shown.hash(), certificate, token: token.clone(), revoked: None, former: None }
}

pub(super) fn token_writes(ctx: &Context, entry: &TokenEntry) -> Vec<Write> {
    let token = &entry.token;
    vec![
        store::put(ctx, Token::key(&entry.hash), Expect::Absent, token),
        store::put(ctx, TokenEntry::key_of(&token.of, &token.login, &token.name), Expect::Absent, entry),
    ]
}

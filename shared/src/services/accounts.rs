//! Users, organizations and access tokens.

use std::time::Duration;

use super::store::{self, sha256_hex};
use super::{Error, RACES_MAX, directory, orgs, users};
use crate::context::{Context, REMEMBERED_FOR};
use crate::domain::names::{Login, OrgName, TokenName};
use crate::domain::update::Requester;
use crate::layout::ItemKeys;
use crate::layout::record::{Record, check, delete, put};
use crate::layout::records::{Member, Org, Role, Token, TokenEntry, User};
use crate::ports::{Expect, Timestamp, Write};

/// An authenticated caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user.
    pub user: User,
    /// The access token that was shown.
    pub token: Token,
}

impl Caller {
    /// This caller as the one who asks for an update.
    pub fn requester(&self) -> Requester {
        Requester { login: self.user.login.clone(), token: self.token.name.clone() }
    }

    /// Whether the caller is a member.
    pub fn may_see(&self, org: &OrgName) -> bool {
        self.user.orgs.contains(org)
    }

    /// Refuses whoever is not a member, exactly as if the organization did not exist.
    ///
    /// # Errors
    /// [`Error::NoOrg`].
    pub fn check_org(&self, org: &OrgName) -> Result<(), Error> {
        if self.may_see(org) { Ok(()) } else { Err(Error::NoOrg(org.clone())) }
    }
}

/// The members of an organization with their roles, by login. One query, whoever asks.
///
/// # Errors
/// [`Error::NoOrg`] unless the caller is one of them.
pub async fn members(ctx: &Context, caller: &Caller, org: &OrgName) -> Result<Vec<(Login, Role)>, Error> {
    caller.check_org(org)?;
    orgs::read_members(ctx, org).await
}

/// Every access token starts with this, so that scanners for leaked secrets can find it.
pub const TOKEN_PREFIX: &str = "swt_";

/// Finds who shows this access token. One read of the token and one of its owner, remembered for a minute.
///
/// # Errors
/// [`Error::Unauthenticated`] unless the token is known and valid now.
pub async fn authenticate(ctx: &Context, token: &str) -> Result<Caller, Error> {
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
    if token.expires.is_some_and(|expires| expires <= now) {
        return Err(Error::Unauthenticated(
            "the access token has expired; make a new one and log in with it",
        ));
    }
    Ok(Caller { user, token })
}

/// What the first start made.
#[derive(Debug)]
pub struct FirstUser {
    /// The admin user.
    pub login: Login,
    /// Its access token, shown once.
    pub token: String,
}

/// Makes the first user and organization with an access token, unless there is a user of that name already. A store from
/// before there was a directory gets one: with this user, and with everybody who shares an organization with a listed one.
///
/// # Errors
/// [`Error::Invalid`] for the name that means the operator, and those of the ports.
pub async fn bootstrap(ctx: &Context, login: &Login, org: &OrgName) -> Result<Option<FirstUser>, Error> {
    if store::read::<User>(ctx, &ItemKeys::user(login)).await?.is_some() {
        directory::complete_once(ctx, login).await?;
        return Ok(None);
    }
    users::check_name(login)?;
    let now = ctx.now();
    let name = TokenName::parse("first-start")?;
    let (secret, token) = new_token(ctx, login, &name, None);
    let user = User { login: login.clone(), created: now, orgs: vec![org.clone()] };
    let mut writes = vec![
        put(ItemKeys::user(login), Expect::Absent, ctx.ids.revision(), user.encode()),
        put(ItemKeys::org(org), Expect::Absent, ctx.ids.revision(), Org { created: now }.encode()),
        put(
            ItemKeys::member(org, login),
            Expect::Absent,
            ctx.ids.revision(),
            Member { role: Role::Admin }.encode(),
        ),
    ];
    writes.extend([directory::user_write(ctx, login, now), directory::org_write(ctx, org, now)]);
    writes.extend(token_writes(ctx, &secret, &token));
    // Refused: another process was first, and it shows its own token.
    Ok(store::commit(ctx, writes).await?.is_ok().then(|| FirstUser { login: login.clone(), token: secret }))
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
    for _ in 0..RACES_MAX {
        let user = users::read(ctx, login).await?;
        let expires = expires_in.map(|duration| ctx.now().plus(duration));
        let (secret, token) = new_token(ctx, login, name, expires);
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
    users::read(ctx, login).await?;
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

fn new_token(ctx: &Context, login: &Login, name: &TokenName, expires: Option<Timestamp>) -> (String, Token) {
    let mut random = [0; 32];
    ctx.ids.fill(&mut random);
    let secret = format!("{TOKEN_PREFIX}{}", hex::encode(random));
    (secret, Token { name: name.clone(), login: login.clone(), created: ctx.now(), expires })
}

fn token_writes(ctx: &Context, secret: &str, token: &Token) -> Vec<Write> {
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

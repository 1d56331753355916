//! Decides whether an update's lease may be renewed.
//!
//! The user who runs the update must still be allowed to. A renewal checks the current permissions, so a role, a
//! membership, a token, a user or the stack itself that is taken away ends the update with its lease.
//!
//! This server must have issued the update token: somebody else may have a copy of the signing key. Each token carries a
//! secret whose hash the update's record has stored since the start. So a forged token expires with the lease that it
//! claims.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::context::Context;
use crate::domain::claims::Claims;
use crate::domain::names::{Login, StackAddress, TokenName};
use crate::domain::update::{Requester, Update};
use crate::layout::{StackEntry, StackHead, Stored, Token, TokenEntry, User};
use crate::ports::Timestamp;
use crate::services::caller::{CLOCKS_APART, Caller};
use crate::services::error::{AccessError, Fenced, Revoked};
use crate::services::identity::principals;
use crate::services::identity::tokens::TOKEN_GRACE;
use crate::services::store::sha256_hex;
use crate::services::store::update_record::read_own;
use crate::services::{Error, store};

/// The length of the secret that renews update tokens, in random bytes.
const SECRET_BYTES: usize = 16;

/// Creates another secret for renewing tokens of this update, and the record that stores its hash.
pub(super) fn bind(ctx: &Context, update: &Update) -> (Update, String) {
    let mut random = [0; SECRET_BYTES];
    ctx.ids.fill(&mut random);
    let secret = URL_SAFE_NO_PAD.encode(random);
    (update.renewed_by_one_more(sha256_hex(secret.as_bytes())), secret)
}

/// Refuses to renew a token that this server did not issue. Tokens of an update that an older program started carry no
/// secret: for them a signature by the current key is enough.
///
/// # Errors
/// `UpdateError::Fenced`.
pub(super) fn check_bound(claims: &Claims, update: &Update) -> Result<(), Error> {
    let is_ours = match &claims.renewal {
        Some(secret) => update.renewed_by.contains(&sha256_hex(secret.as_bytes())),
        None => update.renewed_by.is_empty() && !claims.is_of_former_key,
    };
    if is_ours { Ok(()) } else { Err(Fenced::TokenNotIssued.into()) }
}

/// The current stored records of an update's user, tokens and stack.
pub(crate) struct Standing {
    login: Login,
    user: Option<User>,
    /// The access tokens that the update depends on, by name: the one that the update token was issued for, and the one
    /// that created the update. `None` for one that no longer exists.
    tokens: Vec<(TokenName, Option<Token>)>,
    head: Option<StackHead>,
}

/// Reads the record of a token's update, and its standing. Takes four parallel reads, and two more after them if another
/// token created the update, or if an older program issued the update token.
///
/// # Errors
/// `UpdateError::Fenced` when the update is gone.
pub(super) async fn read(ctx: &Context, claims: &Claims) -> Result<(Stored<Update>, Standing), Error> {
    let head_key = StackHead::key(claims.stack);
    let bearer = async {
        let Some(bearer) = &claims.bearer else { return Ok(None) };
        let (user, token) = find(ctx, &bearer.requester()).await?;
        // A token created later under the same name is another token.
        let token = token.filter(|token| token.created == bearer.made);
        Ok::<_, Error>(Some((user, (bearer.token.clone(), token))))
    };
    let (record, head, bearer) =
        futures::try_join!(read_own(ctx, claims), store::read(ctx, &head_key), bearer)?;
    let requester = record.value.requester.clone();
    let (mut user, mut tokens) = (None, Vec::new());
    if let Some((found, token)) = bearer {
        (user, tokens) = (found, vec![token]);
    }
    if tokens.iter().all(|(known, _)| *known != requester.token) {
        let (found, token) = find(ctx, &requester).await?;
        let created = record.value.created.plus(CLOCKS_APART);
        user = found;
        tokens.push((requester.token, token.filter(|token| token.created <= created)));
    }
    Ok((record, Standing { login: requester.login, user, tokens, head: head.map(|head| head.value) }))
}

/// Reads a user or a machine, and the access token of this name. Only access tokens begin updates, and each has an entry
/// in its owner's list.
async fn find(ctx: &Context, requester: &Requester) -> Result<(Option<User>, Option<Token>), Error> {
    let Requester { login, token, of } = requester;
    let token_key = TokenEntry::key_of(of, login, token);
    let (user, entry) = futures::try_join!(principals::find(ctx, of, login), store::read(ctx, &token_key))?;
    let entry = entry.filter(|entry| entry.value.revoked.is_none() && entry.value.token.of == *of);
    Ok((user, entry.map(|entry| entry.value.token)))
}

impl Standing {
    /// Refuses an update if its stack is gone or its bearer lost permission. Makes no call unless the stack was renamed.
    ///
    /// # Errors
    /// `UpdateError::Fenced`: the client then ends, as it must.
    pub(crate) async fn check(
        self,
        ctx: &Context,
        address: &StackAddress,
        update: &Update,
    ) -> Result<(), Error> {
        let Self { login, user, tokens, head } = self;
        let now = ctx.now();
        let head = head.filter(|head| head.deleted.is_none());
        let head = head.ok_or_else(|| ended(Revoked::StackDeleted(address.clone())))?;
        // A preview continues under the name that it began with, unless another stack has taken that name.
        let is_renamed = head.address != *address;
        if is_renamed && store::get(ctx, &StackEntry::key(address)).await?.is_some() {
            return Err(ended(Revoked::NameTaken(address.clone())));
        }
        let is_same = |user: &User| update.user_made.is_none_or(|made| user.created == made);
        let user = user.filter(is_same).ok_or_else(|| ended(Revoked::UserRemoved(login.clone())))?;
        // An expired token may finish what it began, for the same grace period as under a lock.
        let in_time = |expires: Timestamp| {
            now < expires || (update.created < expires && now < expires.plus(TOKEN_GRACE))
        };
        for (name, token) in tokens {
            let gone = || ended(Revoked::TokenRevoked { login: login.clone(), token: name.clone() });
            let token = token.ok_or_else(gone)?;
            if !user.stops(token.expires).is_none_or(in_time) {
                return Err(ended(Revoked::TokenExpired { login, token: name }));
            }
            let user = principals::with_role_of(&token, user.clone()).ok_or_else(gone)?;
            let caller = Caller::new(user, token).asking_for(update.needs());
            let standing = caller.on_stack(ctx, &head.address).await;
            standing.and_then(|standing| standing.check(caller.needs(), "this")).map_err(|refused| {
                match refused {
                    Error::Access(AccessError::NoOrg(org)) => {
                        ended(Revoked::NotAMember { login: login.clone(), org })
                    }
                    Error::Access(AccessError::NotAllowed(why)) => ended(Revoked::NotAllowed(why)),
                    other => other,
                }
            })?;
        }
        Ok(())
    }
}

fn ended(why: Revoked) -> Error {
    Fenced::Revoked(why).into()
}

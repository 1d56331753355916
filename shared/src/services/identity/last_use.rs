//! When access tokens and client certificates were last used.
//!
//! The request that finds a token in the store, and not in the cache, reads its last use at the same time as its owner.
//! If that is an hour ago, the request records the new one before it continues: a function does nothing after its
//! answer. Neither call is repeated, and neither of them can refuse the request.

use std::collections::HashMap;
use std::time::Duration;

use tracing::{Instrument as _, trace_span};

use crate::context::Context;
use crate::domain::names::{Login, TokenName};
use crate::domain::principal::Principal;
use crate::layout::{Record, Stored, Token, TokenEntry, TokenUse, delete, expiring};
use crate::ports::{CommitError, Expect, Order, Timestamp, Write};
use crate::services::{Error, store};

/// The time between two records of a token's use: each costs a write.
const RECORDED_EVERY: Duration = Duration::from_secs(3600);

/// Last uses that a query reads at once.
const READ_AT_ONCE: usize = 500;

/// The record of a use that is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct DueRecord {
    expect: Expect,
    /// When the store may delete it: with the token, if that expires by itself.
    until: Option<Timestamp>,
}

/// The record that a use of this token needs, if it needs one. `until` is when the store may delete the token.
pub(super) async fn due(ctx: &Context, token: &Token, until: Option<Timestamp>) -> Option<DueRecord> {
    let read = async {
        let key = TokenUse::key(&token.of, &token.login, &token.name);
        let item = ctx.ledger.get(&key).instrument(trace_span!(target: "store", "ledger get")).await?;
        Ok::<_, Error>(item.map(|item| Stored::<TokenUse>::read(&item)).transpose()?)
    };
    match read.await {
        Ok(None) => Some(DueRecord { expect: Expect::Absent, until }),
        Ok(Some(stored)) => {
            let TokenUse { made, used } = stored.value;
            let is_recent = made == token.created && ctx.now().since(used) < RECORDED_EVERY;
            (!is_recent).then(|| DueRecord { expect: stored.unchanged(), until })
        }
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "the last use of a token was not read");
            None
        }
    }
}

/// Records that the token is used now.
pub(super) async fn record(ctx: &Context, token: &Token, DueRecord { expect, until }: DueRecord) {
    let key = TokenUse::key(&token.of, &token.login, &token.name);
    let put = store::put(ctx, key, expect, &TokenUse { made: token.created, used: ctx.now() });
    let write = match until {
        Some(until) => expiring(put, until),
        None => put,
    };
    let span = trace_span!(target: "store", "ledger commit", writes = 1);
    match ctx.ledger.commit(vec![write]).instrument(span).await {
        // Refused: another request has just recorded its use, or the token was revoked.
        Ok(()) | Err(CommitError::Refused(_)) => {}
        Err(CommitError::Port(error)) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the last use of a token was not recorded"
            );
        }
    }
}

/// The write that forgets the use of a token that ends.
pub(super) fn forgotten(token: &Token) -> Write {
    delete(TokenUse::key(&token.of, &token.login, &token.name), Expect::Any)
}

/// An entry of a list of tokens, with the last use of the token.
#[derive(Debug, Clone)]
pub struct UsedToken {
    /// The entry.
    pub entry: TokenEntry,
    /// When the token was last used, to the hour; `None` if it never was.
    pub used: Option<Timestamp>,
}

/// Adds the last uses to entries that follow each other in the list of a principal, after the name `after`. One query.
pub(super) async fn of_entries(
    ctx: &Context,
    (of, login): (&Principal, &Login),
    after: Option<&TokenName>,
    entries: Vec<TokenEntry>,
) -> Result<Vec<UsedToken>, Error> {
    let mut uses = match entries.last() {
        Some(last) => read(ctx, (of, login), after, &last.token.name).await?,
        None => HashMap::new(),
    };
    let with_use = |entry: TokenEntry| {
        // Left over from an earlier token of the name, if it was made at another time.
        let found = uses.remove(&entry.token.name).filter(|found| found.made == entry.token.created);
        UsedToken { used: found.map(|found| found.used), entry }
    };
    Ok(entries.into_iter().map(with_use).collect())
}

async fn read(
    ctx: &Context,
    (of, login): (&Principal, &Login),
    after: Option<&TokenName>,
    last: &TokenName,
) -> Result<HashMap<TokenName, TokenUse>, Error> {
    let after = after.map(|name| name.as_str().to_owned());
    let mut query = TokenUse::list(of, login).query(after, Order::Ascending, READ_AT_ONCE);
    let mut uses = HashMap::new();
    loop {
        let page = store::query(ctx, &query).await?;
        for item in &page.items {
            uses.insert(TokenUse::name_in(&item.key)?, TokenUse::decode(&item.value)?);
        }
        query.after = page.items.last().map(|item| item.key.sort.clone());
        let is_past = query.after.as_ref().is_none_or(|read| read.as_str() >= last.as_str());
        if !page.more || is_past {
            return Ok(uses);
        }
    }
}

//! The audit trail in the store. Each organization has one, and so has the server.
//!
//! A use case that changes something takes three steps:
//!
//! ```text
//! let entry = audit::entry(ctx, "stack.delete", &About::Stack(&address));
//! let rider = audit::ride(ctx, entry, head.trail.as_ref());   // next_head.trail = rider.mark()
//! audit::commit(ctx, writes, rider).await?
//! ```
//!
//! The record is then a part of the commit that it describes, and the next link of the chain in the head that the
//! commit writes. A commit without a head uses [`commit_by_writer`] instead, whose chain is one of this process.
//! For what no commit describes, such as showing a secret, [`keep`] stores a record on its own.
//!
//! Caller, address and ID of the request come from the current [`Act`]. What is not a request has none.

mod act;
pub mod actions;
pub mod reading;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

pub use self::act::Act;
use self::act::RequestFacts;
use crate::cache::Alike;
use crate::context::Context;
use crate::domain::ids::UpdateId;
use crate::domain::names::{EnvironmentAddress, OrgName, StackAddress, StateAddress};
use crate::domain::update::Requester;
use crate::layout::{
    AuditDay, AuditEntry, AuditLink, AuditMark, AuditRecord, AuditResult, Due, Record, put_bytes,
};
use crate::ports::{Expect, ItemKey, Refusal, Timestamp, Write};
use crate::services::store::due::due_write;
use crate::services::{Error, store};

/// The time after the end of a day in which records of that day may still be stored.
const DAY_OPEN_FOR: Duration = Duration::from_secs(3600);

/// Characters of a detail that are stored, at most.
const DETAIL_CHARS_MAX: usize = 500;

/// What an action is about.
#[derive(Debug, Clone, Copy)]
pub enum About<'a> {
    /// The server: its users, its keys, its store.
    Server,
    /// An organization: its members, teams, tokens and policies.
    Org(&'a OrgName),
    Stack(&'a StackAddress),
    /// An update of a stack.
    Update(&'a StackAddress, UpdateId),
    /// A Terraform state.
    State(&'a StateAddress),
    Environment(&'a EnvironmentAddress),
}

/// An entry for this action, done now by the caller of the current request. The row of the request should have the
/// same action; then the request gets no second record.
pub fn entry(ctx: &Context, action: &str, about: &About<'_>) -> AuditEntry {
    let mut record = AuditRecord::new(ctx.now(), action);
    if let Some(RequestFacts { action: of_request, by, stack: _, detail, from, request }) = Act::current() {
        if let Some(by) = by {
            record.set_caller(by);
        }
        (record.from, record.request) = (from, request);
        record.detail = detail.filter(|_| of_request == Some(action)).map(|detail| shortened(&detail));
    }
    let text = |name: &str| Some(name.to_owned());
    let trail = match about {
        About::Server => None,
        About::Org(org) => Some((*org).clone()),
        About::Stack(address) | About::Update(address, _) => {
            (record.project, record.stack) = (text(address.project.as_str()), text(address.stack.as_str()));
            Some(address.org.clone())
        }
        About::State(address) => {
            (record.project, record.state) = (text(address.project.as_str()), text(address.state.as_str()));
            Some(address.org.clone())
        }
        About::Environment(address) => {
            (record.project, record.environment) =
                (text(address.project.as_str()), text(address.name.as_str()));
            Some(address.org.clone())
        }
    };
    if let About::Update(_, update) = about {
        record.update = Some(update.to_string());
    }
    AuditEntry { trail, record }
}

/// An entry for the end of the update of the current request, if the request is this action. The stack is the one that
/// the request names.
pub(super) fn entry_of_update(ctx: &Context, action: &str, update: UpdateId) -> Option<AuditEntry> {
    let RequestFacts { action: of_request, stack, .. } = Act::current()?;
    let stack = stack.filter(|_| of_request == Some(action))?;
    Some(entry(ctx, action, &About::Update(&stack, update)))
}

impl AuditRecord {
    /// Sets who did it.
    pub(crate) fn set_caller(&mut self, by: Requester) {
        (self.user, self.of, self.token) = (Some(by.login), by.of, Some(by.token));
    }

    /// Who did it, and with which token, if it has both.
    pub(crate) fn caller(&self) -> Option<Requester> {
        let (login, token) = (self.user.clone()?, self.token.clone()?);
        Some(Requester { login, token, of: self.of.clone() })
    }
}

impl AuditEntry {
    /// This entry with a detail: short, no secret, and no long text of a client.
    #[must_use]
    pub fn saying(mut self, detail: impl Into<String>) -> Self {
        self.record.detail = Some(shortened(&detail.into()));
        self
    }

    /// This entry with more at the end of its detail, unless that is empty.
    #[must_use]
    pub(super) fn adding(self, more: &str) -> Self {
        if more.is_empty() {
            return self;
        }
        let before = self.record.detail.as_ref();
        let detail = before.map_or_else(|| more.to_owned(), |before| format!("{before}; {more}"));
        self.saying(detail)
    }
}

/// A detail for one line. Clients may send any text as a part of it.
fn shortened(detail: &str) -> String {
    detail.chars().map(|c| if c.is_control() { ' ' } else { c }).take(DETAIL_CHARS_MAX).collect()
}

/// Records that a commit stores along with what they describe.
pub(crate) struct Rider {
    writes: Vec<Write>,
    days: Vec<(Option<OrgName>, AuditDay)>,
    action: String,
    mark: AuditMark,
}

impl Rider {
    /// The new end of the chain, for the head that the commit writes.
    pub(crate) fn mark(&self) -> Option<AuditMark> {
        Some(self.mark.clone())
    }

    /// Adds another record to the same chain.
    #[must_use]
    pub(crate) fn and(mut self, ctx: &Context, entry: AuditEntry) -> Self {
        let next = ride(ctx, entry, Some(&self.mark));
        self.writes.extend(next.writes);
        self.days.extend(next.days);
        self.mark = next.mark;
        self
    }
}

/// The next record of the chain that ends at `before`; without one, the first of a new chain.
pub(super) fn ride(ctx: &Context, entry: AuditEntry, before: Option<&AuditMark>) -> Rider {
    let AuditEntry { trail, mut record } = entry;
    let (chain, number) = match before {
        Some(before) => (before.chain.clone(), before.number + 1),
        None => (random_hex(ctx), 1),
    };
    record.link = AuditLink {
        chain: chain.clone(),
        number,
        before: before.map(|before| (before.hash.clone(), before.at)),
    };
    let at = record.at;
    // The number keeps the records of this process in their order, if the clock did not move between them.
    let id = format!("{:04x}{}", ctx.memory.trails.next_record(), random_hex(ctx));
    let key: ItemKey = AuditRecord::key(trail.as_ref(), at, &id).into();
    let value = record.encode();
    let hash = hash(&key, &value);
    let write = put_bytes(key, Expect::Absent, ctx.ids.revision(), value);
    Rider {
        writes: vec![write],
        days: vec![(trail, AuditDay::of(at))],
        action: record.action,
        mark: AuditMark { chain, number, hash, at },
    }
}

fn random_hex(ctx: &Context) -> String {
    let mut bytes = [0; 8];
    ctx.ids.fill(&mut bytes);
    hex::encode(bytes)
}

/// The hash of a stored record: of its key and its bytes.
pub(super) fn hash(key: &ItemKey, value: &[u8]) -> String {
    let mut hash = Sha256::new();
    for part in [key.partition.as_bytes(), b"\n", key.sort.as_bytes(), b"\n", value] {
        hash.update(part);
    }
    URL_SAFE_NO_PAD.encode(hash.finalize())
}

/// Commits writes with the records that describe them. The inner result is a refusal, as of [`store::commit`].
pub(super) async fn commit(
    ctx: &Context,
    mut writes: Vec<Write>,
    rider: Rider,
) -> Result<Result<(), Refusal>, Error> {
    let Rider { writes: records, mut days, action, .. } = rider;
    writes.extend(records);
    days.sort_unstable();
    days.dedup();
    // The first record of a day in this process brings the due item that closes the day.
    days.retain(|day| ctx.memory.trails.days.get(day, ctx.now(), REMEMBERED).is_none());
    for (trail, day) in &days {
        let due = Due::Audit { trail: trail.clone(), day: *day };
        writes.push(due_write(ctx, &due, closes(*day)));
    }
    let done = store::commit(ctx, writes).await?;
    if done.is_ok() {
        for day in days {
            ctx.memory.trails.days.put(day, ctx.now(), ());
        }
        Act::note_stored(&action);
    }
    Ok(done)
}

/// How long a process remembers that a day has its due item: longer than the day.
const REMEMBERED: Duration = Duration::from_secs(48 * 3600);

/// When no more records of a day are stored.
pub(super) fn closes(day: AuditDay) -> Timestamp {
    day.end().plus(DAY_OPEN_FOR)
}

/// Commits writes with a record in a chain of this process, for commits that write no head of a stack or state.
pub(super) async fn commit_by_writer(
    ctx: &Context,
    writes: Vec<Write>,
    entry: AuditEntry,
) -> Result<Result<(), Refusal>, Error> {
    commit_all_by_writer(ctx, writes, entry, Vec::new()).await
}

async fn commit_all_by_writer(
    ctx: &Context,
    writes: Vec<Write>,
    first: AuditEntry,
    others: Vec<AuditEntry>,
) -> Result<Result<(), Refusal>, Error> {
    let chain = ctx.memory.trails.take_chain();
    let first = ride(ctx, first, chain.as_ref());
    let rider = others.into_iter().fold(first, |rider, entry| rider.and(ctx, entry));
    let mark = rider.mark.clone();
    // After an error it is not known where the chain ends, so it ends here.
    let done = commit(ctx, writes, rider).await?;
    match &done {
        Ok(()) => ctx.memory.trails.return_chain(mark),
        Err(_) => chain.into_iter().for_each(|chain| ctx.memory.trails.return_chain(chain)),
    }
    Ok(done)
}

/// Records that one commit stores, at most. Each may bring a due item.
const ALONE_MAX: usize = 40;

/// Stores records on their own, with as few commits as possible.
async fn store_alone(ctx: &Context, entries: Vec<AuditEntry>) -> Result<(), Error> {
    let mut entries = entries.into_iter();
    while let Some(first) = entries.next() {
        let others = entries.by_ref().take(ALONE_MAX - 1).collect();
        if commit_all_by_writer(ctx, Vec::new(), first, others).await?.is_err() {
            return Err(Error::Contended("the audit trail"));
        }
    }
    Ok(())
}

/// Stores a record of what no commit describes. This is the function for events of users, tokens and organizations
/// whose commit is not in reach.
///
/// # Errors
/// Those of the ports. Then the action has no record.
pub async fn keep(ctx: &Context, entry: AuditEntry) -> Result<(), Error> {
    store_alone(ctx, vec![entry]).await
}

/// As [`keep`], and copies of the record in the trails of these organizations, with as few commits as possible.
///
/// # Errors
/// Those of the ports. Then the action may have no record.
pub async fn keep_in_each(ctx: &Context, entry: AuditEntry, also: &[OrgName]) -> Result<(), Error> {
    store_alone(ctx, in_each(entry, also)).await
}

/// An entry, with copies for the trails of these organizations.
fn in_each(entry: AuditEntry, also: &[OrgName]) -> Vec<AuditEntry> {
    let copy = |org: &OrgName| AuditEntry { trail: Some(org.clone()), record: entry.record.clone() };
    let mut all: Vec<AuditEntry> = also.iter().map(copy).collect();
    all.push(entry);
    all
}

/// Stores a record of a request that may come often: a refusal, or a look at a secret. The first for a minute is
/// stored at once; alike ones after it are counted, and stored together later. Refusals of a caller are alike
/// whatever they are about. The trails of `also` get copies.
///
/// # Errors
/// Those of the ports. Then the request has no record.
pub async fn keep_summed(ctx: &Context, entry: AuditEntry, also: &[OrgName]) -> Result<(), Error> {
    let record = &entry.record;
    let target = || {
        let of = [&record.project, &record.stack, &record.state, &record.environment];
        of.map(|part| part.as_deref().unwrap_or_default()).join("/")
    };
    let target = (record.result == AuditResult::Done).then(target);
    keep_alike(ctx, in_each(entry, also), target).await
}

/// As [`keep_summed`], for a refusal of who is not a user or a token: `by` tells one from another. It is short.
///
/// # Errors
/// Those of the ports. Then the request has no record.
pub(in crate::services) async fn keep_summed_by(
    ctx: &Context,
    by: &str,
    entry: AuditEntry,
) -> Result<(), Error> {
    keep_alike(ctx, vec![entry], Some(by.to_owned())).await
}

async fn keep_alike(ctx: &Context, entries: Vec<AuditEntry>, target: Option<String>) -> Result<(), Error> {
    let trails = &ctx.memory.trails;
    let (mut kinds, mut now) = (Vec::new(), Vec::new());
    for entry in entries {
        let record = &entry.record;
        let alike = Alike {
            trail: entry.trail.clone(),
            user: record.user.clone(),
            of: record.of.clone(),
            token: record.token.clone(),
            action: record.action.clone(),
            result: record.result,
            target: target.clone(),
        };
        now.extend(trails.sum_up(alike.clone(), entry));
        kinds.push(alike);
    }
    store_alone(ctx, now).await.inspect_err(|_| kinds.iter().for_each(|alike| trails.forget(alike)))
}

/// Stores the counts of requests whose minute is over; at the end of a process, all of them.
///
/// # Errors
/// Those of the ports.
pub async fn flush(ctx: &Context, all: bool) -> Result<(), Error> {
    store_alone(ctx, ctx.memory.trails.take_sums(ctx.now(), all)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_covers_the_key_and_the_bytes() {
        let key = |partition: &str, sort: &str| ItemKey::new(partition, sort);
        let one = hash(&key("a", "b"), b"c");
        assert_eq!(one, hash(&key("a", "b"), b"c"));
        for other in [hash(&key("a", "b"), b"d"), hash(&key("a", "x"), b"c"), hash(&key("x", "b"), b"c")] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn a_detail_is_one_short_line() {
        assert_eq!(shortened(&"é".repeat(600)), "é".repeat(500));
        assert_eq!(shortened("two\nlines"), "two lines");
    }
}

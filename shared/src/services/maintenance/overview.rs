//! What admins of the server look at: what waits for a sweep, the key that signs, and what each organization stores. Each
//! function makes a bounded number of calls, whatever the store holds.

use serde::{Deserialize, Serialize};

use super::sweep::GRACE;
use crate::context::Context;
use crate::domain::ids::UpdateId;
use crate::domain::names::{Login, OrgName, StackAddress};
use crate::domain::update::{LEASE, Status as UpdateStatus, Update};
use crate::layout::{DUE_SHARDS, DirectoryEntry, Due, Record, Signer, StackEntry, StackHead, StateEntry};
use crate::ports::{Item, Order, Timestamp};
use crate::services::caller::Caller;
use crate::services::{Error, store};

/// Due items of each shard that are read.
const DUE_PAGE: usize = 100;

/// Waiting updates whose records are read.
const SHOWN_MAX: usize = 20;

/// Entries in one query.
const ENTRIES_PAGE: usize = 500;

/// Queries for entries in one request.
const QUERIES_MAX: usize = 16;

/// Organizations that one request looks at.
const ORGS_PAGE: usize = 8;

/// What a sweep has to do, and the key that signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// When the key that signs the tokens of updates was made; `None` before the first start of a server.
    pub signs_since: Option<Timestamp>,
    /// How many due items wait for a sweep.
    pub overdue: usize,
    /// Whether there are more than were read.
    pub overdue_more: bool,
    /// The time of the oldest.
    pub oldest: Option<Timestamp>,
    /// How many updates are due before a lease can end: those that run, and those that ended within that time.
    pub recent: usize,
    /// The updates whose lease is over and that no sweep has ended yet, the oldest first.
    pub waiting: Vec<Waiting>,
}

/// An update that waits for a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The ID of the update.
    pub update: UpdateId,
    /// The stack, if it still exists.
    pub stack: Option<StackAddress>,
    /// Who began it.
    pub by: Login,
    /// When its lease ended.
    pub since: Timestamp,
}

/// Tells what waits for a sweep. One read, one query for each shard of due items, and two reads for each of up to 20
/// updates that wait.
///
/// # Errors
/// `AccessError::NotServerAdmin`.
pub async fn status(ctx: &Context, caller: &Caller) -> Result<Status, Error> {
    caller.check_server_admin(ctx)?;
    let signer = store::read(ctx, &Signer::key()).await?;
    let now = ctx.now();
    let is_overdue = |at: Timestamp| now > at.plus(GRACE);
    let mut status = Status {
        signs_since: signer.map(|signer| signer.value.created),
        overdue: 0,
        overdue_more: false,
        oldest: None,
        recent: 0,
        waiting: Vec::new(),
    };
    let mut updates = Vec::new();
    for shard in 0..DUE_SHARDS {
        let page = store::query(ctx, &Due::of_shard(shard).query(None, Order::Ascending, DUE_PAGE)).await?;
        for item in &page.items {
            let at = Due::time_in(&item.key)?;
            let update = match Due::decode(&item.value) {
                Ok(Due::Update(update)) => Some(update),
                // A newer program may have written another kind, which waits all the same.
                _ => None,
            };
            if is_overdue(at) {
                status.overdue += 1;
                status.oldest = Some(status.oldest.map_or(at, |oldest| oldest.min(at)));
                updates.extend(update.map(|update| (at, update)));
            } else if update.is_some() && at <= now.plus(LEASE) {
                status.recent += 1;
            }
        }
        let is_last_overdue = |item: &Item| Due::time_in(&item.key).is_ok_and(is_overdue);
        status.overdue_more |= page.more && page.items.last().is_some_and(is_last_overdue);
    }
    updates.sort_unstable();
    for (since, update) in updates.into_iter().take(SHOWN_MAX) {
        status.waiting.extend(waiting(ctx, update, since).await?);
    }
    Ok(status)
}

/// `None` for an update that has ended: its due item is for its log.
async fn waiting(ctx: &Context, id: UpdateId, since: Timestamp) -> Result<Option<Waiting>, Error> {
    let Some(update) = store::read(ctx, &Update::key(id)).await? else { return Ok(None) };
    if !matches!(update.value.status, UpdateStatus::Running { .. } | UpdateStatus::Sealed { .. }) {
        return Ok(None);
    }
    let head = store::read(ctx, &StackHead::key(update.value.stack)).await?;
    let stack = head.map(|head| head.value.address);
    Ok(Some(Waiting { update: id, stack, by: update.value.requester.login, since }))
}

/// What an organization stores, or a part of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The organization.
    pub org: OrgName,
    pub stacks: u64,
    /// Terraform states.
    pub states: u64,
    /// Resources in the current versions of both.
    pub resources: u64,
    /// Bytes of the current versions: of stacks as they are stored, and of states as their clients sent them.
    pub bytes: u64,
    /// Stacks whose size is not known, because an older program published the last version.
    pub unmeasured: u64,
}

/// Where the next part begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Position {
    /// With the organization after this one.
    After(OrgName),
    /// Within an organization.
    Within {
        /// The organization.
        org: OrgName,
        /// Whether its stacks are counted already.
        states: bool,
        /// The last key that was read.
        after: Option<String>,
    },
}

/// Counts what organizations store, a part in each call: an organization whose entries are many is in several parts, whose
/// counts add up. One query for the organizations, and at most 16 for their entries.
///
/// # Errors
/// `AccessError::NotServerAdmin`.
pub async fn stored(
    ctx: &Context,
    caller: &Caller,
    from: Option<Position>,
) -> Result<(Vec<Stored>, Option<Position>), Error> {
    caller.check_server_admin(ctx)?;
    let (mut parts, mut queries) = (Vec::new(), 0);
    let last = match from {
        None => None,
        Some(Position::After(org)) => Some(org),
        Some(Position::Within { org, states, after }) => {
            let (part, next) = stored_in(ctx, &org, (states, after), &mut queries).await?;
            parts.push(part);
            if next.is_some() {
                return Ok((parts, next));
            }
            Some(org)
        }
    };
    let after = last.map(|org| DirectoryEntry::key_of_org(&org).sort.clone());
    let page = store::query(ctx, &DirectoryEntry::orgs().query(after, Order::Ascending, ORGS_PAGE)).await?;
    for item in &page.items {
        let org = DirectoryEntry::org_in(&item.key)?;
        let (part, next) = stored_in(ctx, &org, (false, None), &mut queries).await?;
        parts.push(part);
        if next.is_some() {
            return Ok((parts, next));
        }
    }
    let last = page.items.last().filter(|_| page.more);
    let next = last.map(|item| DirectoryEntry::org_in(&item.key)).transpose()?;
    Ok((parts, next.map(Position::After)))
}

/// Counts the entries of one organization, from a position on, until the request has made its queries.
async fn stored_in(
    ctx: &Context,
    org: &OrgName,
    (mut states, mut after): (bool, Option<String>),
    queries: &mut usize,
) -> Result<(Stored, Option<Position>), Error> {
    let mut part = Stored { org: org.clone(), stacks: 0, states: 0, resources: 0, bytes: 0, unmeasured: 0 };
    loop {
        if *queries == QUERIES_MAX {
            return Ok((part, Some(Position::Within { org: org.clone(), states, after })));
        }
        *queries += 1;
        let mut query = match states {
            false => StackEntry::of_org(org, None).query(None, Order::Ascending, ENTRIES_PAGE),
            true => StateEntry::of_org(org, None).query(None, Order::Ascending, ENTRIES_PAGE),
        };
        // A client may send any position: only those within the prefix are valid.
        query.after = after.take().filter(|after| after.starts_with(&query.prefix));
        let page = store::query(ctx, &query).await?;
        for item in &page.items {
            match states {
                false => part.add_stack(&StackEntry::decode(&item.value)?),
                true => part.add_state(&StateEntry::decode(&item.value)?),
            }
        }
        after = page.items.last().filter(|_| page.more).map(|item| item.key.sort.clone());
        match (after.is_some(), states) {
            (true, _) => {}
            (false, false) => states = true,
            (false, true) => return Ok((part, None)),
        }
    }
}

impl Stored {
    fn add_stack(&mut self, entry: &StackEntry) {
        self.stacks += 1;
        self.resources += entry.resource_count.unwrap_or(0);
        self.bytes += entry.newest.as_ref().map_or(0, |newest| newest.bytes);
        self.unmeasured += u64::from(entry.newest.is_none() && entry.last_update.is_some());
    }

    fn add_state(&mut self, entry: &StateEntry) {
        self.states += 1;
        self.resources += entry.resource_count.unwrap_or(0);
        self.bytes += entry.bytes;
    }
}

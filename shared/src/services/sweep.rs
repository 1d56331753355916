//! What is due: updates that nobody meets any more, and what is kept no longer.
//!
//! Whatever makes a thing that will be due leaves a due item in the same commit, and a sweep looks at the items whose
//! time is over, and only at these. An update leaves one at the end of its lease: if its client is gone, it is ended with
//! what it saved; if it renewed its lease, it is looked at again when that ends; when it is over, it is looked at again
//! when its log and its events have been kept for long enough (see [`super::retention`]). So do versions that are more
//! than are kept, stacks that were removed, and blobs that nothing names any more.
//!
//! A sweep may run twice, late, or in several processes, and what it judges by is as it was chosen for that day.

use std::time::Duration;

use super::{Error, publish, removed, retention, store};
use crate::context::Context;
use crate::domain::ids::UpdateId;
use crate::domain::update::Update;
use crate::layout::ItemKeys;
use crate::layout::keys::DUE_SHARDS;
use crate::layout::record::{Record, delete, put};
use crate::layout::records::Due;
use crate::ports::{Expect, Item, Order, Query, Timestamp, Write};

/// A client whose lease is over may be about to renew it late; whoever wants the stack need not wait for that, a sweep does.
pub const GRACE: Duration = Duration::from_secs(30);

/// Due items of a shard that one sweep looks at.
const PAGE: usize = 100;

/// Commits that a sweep makes for one due item before it turns to the next one.
const PAGES_MAX: usize = 50;

/// The write that makes something be looked at after this instant.
pub(crate) fn due_write(ctx: &Context, due: &Due, at: Timestamp) -> Write {
    put(ItemKeys::due(due, at), Expect::Any, ctx.ids.revision(), due.encode())
}

/// What becomes of a due item that was looked at.
pub(super) enum Next {
    /// There is nothing more to do.
    Done,
    /// It is looked at again after this instant, which lies ahead.
    At(Timestamp),
    /// Something else is looked at after this instant.
    Becomes(Due, Timestamp),
    /// There is more to do than was done at once: it stays due, and so do the others.
    MoreOfIt,
    /// Something changed at this moment: the next sweep sees what.
    AsItIs,
}

/// How many pages may still be removed for a due item.
pub(super) struct Pages(usize);

impl Default for Pages {
    fn default() -> Self {
        Self(PAGES_MAX)
    }
}

impl Pages {
    /// Takes one, if there is one left.
    pub(super) fn take(&mut self) -> bool {
        let left = self.0.checked_sub(1);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Updates that were ended because their lease was over, or published because nobody had.
    pub ended: usize,
    /// Updates that still run or are just being published, to be looked at later.
    pub running: usize,
    /// Updates that were over, to be looked at later for what they left.
    pub over: usize,
    /// Updates and removed stacks of which the last was erased.
    pub erased: usize,
    /// Versions that were removed, because more are there than are kept.
    pub pruned: usize,
    /// Blobs that were removed.
    pub blobs: usize,
    /// Due items that could not be looked at; the log says why, and the next sweep tries again.
    pub failed: usize,
    /// Whether more may be due.
    pub more: bool,
}

/// Looks at one bounded page of each shard.
///
/// # Errors
/// Those of the ports when a page cannot be read. What goes wrong with one update does not keep it from the others.
pub async fn sweep(ctx: &Context) -> Result<Swept, Error> {
    let mut swept = Swept::default();
    for shard in 0..DUE_SHARDS {
        let query = Query {
            partition: ItemKeys::due_partition(shard),
            prefix: String::new(),
            after: None,
            order: Order::Ascending,
            limit: PAGE,
        };
        let page = store::query(ctx, &query).await?;
        let now = ctx.now();
        let due: Vec<&Item> = page
            .items
            .iter()
            .take_while(|item| ItemKeys::parse_due_sort(&item.key.sort).is_none_or(|at| now > at.plus(GRACE)))
            .collect();
        swept.more |= due.len() == PAGE;
        for item in due {
            if let Err(error) = look_at(ctx, item, &mut swept).await {
                swept.failed += 1;
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    due = item.key.sort,
                    "cannot sweep"
                );
            }
        }
    }
    Ok(swept)
}

async fn look_at(ctx: &Context, item: &Item, swept: &mut Swept) -> Result<(), Error> {
    let due = Due::decode(&item.value)?;
    let next = match &due {
        Due::Update(update) => look_at_update(ctx, *update, swept).await?,
        Due::Versions(stack) => retention::prune(ctx, *stack, swept).await?,
        Due::Stack(stack) => removed::look_at(ctx, *stack, swept).await?,
        Due::Outputs { stack, key } => retention::look_at_outputs(ctx, *stack, key).await?,
        Due::Blob { key, stack } => retention::look_at_blob(ctx, key, *stack, swept).await?,
    };
    let mut writes = vec![delete(item.key.clone(), Expect::Revision(item.revision))];
    match next {
        Next::Done => {}
        Next::At(at) => writes.push(due_write(ctx, &due, at)),
        Next::Becomes(other, at) => writes.push(due_write(ctx, &other, at)),
        Next::MoreOfIt => {
            swept.more = true;
            return Ok(());
        }
        Next::AsItIs => return Ok(()),
    }
    // Refused: another sweep was here, and did the same.
    let _ = store::commit(ctx, writes).await?;
    Ok(())
}

async fn look_at_update(ctx: &Context, id: UpdateId, swept: &mut Swept) -> Result<Next, Error> {
    let key = ItemKeys::update(id);
    // Without a record everything of it is gone.
    let Some(record) = store::read::<Update>(ctx, &key).await? else { return Ok(Next::Done) };
    if let Some(over) = record.value.over_since() {
        return match ctx.now() < over {
            // A preview that goes on.
            true => Ok(Next::At(over)),
            false => retention::look_at_update(ctx, id, &record.value, over, swept).await,
        };
    }
    let Some(at) = publish::overdue_from(&record.value) else { return Ok(Next::Done) };
    if ctx.now() <= at.plus(GRACE) {
        swept.running += 1;
        return Ok(Next::At(at));
    }
    if !publish::finish(ctx, id, record).await? {
        // Renewed or ended at this moment: the next sweep sees which.
        return Ok(Next::AsItIs);
    }
    swept.ended += 1;
    Ok(Next::At(ctx.now().plus(retention::kept_at_least(ctx))))
}

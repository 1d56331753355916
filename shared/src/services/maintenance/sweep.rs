//! The sweep: ends abandoned updates, and erases what is no longer kept.
//!
//! A write that creates something with an end also puts a due item, in the same commit. A sweep reads only the items
//! whose time has come.
//!
//! - An update has one for the end of its lease. If its client is gone, the sweep ends the update with what it saved.
//!   If the client renewed the lease, the item moves to the new end. After the update ended, the item moves to the time
//!   when its log and its events may be erased (see [`crate::services::updates::retention`]).
//! - A day of an audit trail has one for its end, when it is signed, and then for the time when it is erased.
//! - Versions above the number to keep, deleted stacks, states and environments, and blobs that no item names have
//!   due items too.
//!
//! A sweep may run twice, late, or in several processes: it applies the settings in force when it runs.

use std::iter;
use std::time::Duration;

use super::audit_days;
use crate::context::Context;
use crate::domain::ids::UpdateId;
use crate::domain::update::Update;
use crate::layout::{DUE_SHARDS, Due, Record, delete};
use crate::ports::{Expect, Item, Order};
pub use crate::services::store::due::Swept;
use crate::services::store::due::{Next, due_write};
use crate::services::updates::{retention, takeover};
use crate::services::{Error, environments, stacks, states, store};

/// How long a sweep waits after the time of a due item, because a client may renew its lease late. A request for the
/// stack does not wait for that.
pub const GRACE: Duration = Duration::from_secs(30);

/// Due items on each further page of a shard.
const PAGE: usize = 100;

/// Due items on the first page of a shard. Most sweeps find nothing due, and a read of this many costs no more than a
/// read of one (4 KB).
const FIRST_PAGE: usize = 20;

/// Further pages of a shard in one sweep, while each contains an item that fails: such items stay due, and must not
/// block those behind them.
const FAILING_PAGES_MAX: usize = 20;

/// Sweeps a bounded number of items in each shard, and more if the first ones fail.
///
/// # Errors
/// Those of the ports if a page cannot be read. A failure of one item does not stop the sweep of the others.
pub async fn sweep(ctx: &Context) -> Result<Swept, Error> {
    let mut swept = Swept::default();
    for shard in 0..DUE_SHARDS {
        let mut after = None;
        let pages = iter::once(FIRST_PAGE).chain(iter::repeat_n(PAGE, FAILING_PAGES_MAX));
        for limit in pages {
            let query = Due::of_shard(shard).query(after, Order::Ascending, limit);
            let page = store::query(ctx, &query).await?;
            let now = ctx.now();
            let due: Vec<&Item> = page
                .items
                .iter()
                .take_while(|item| Due::time_in(&item.key).ok().is_none_or(|at| now > at.plus(GRACE)))
                .collect();
            let failed_before = swept.failed;
            for item in &due {
                if let Err(error) = sweep_one(ctx, item, &mut swept).await {
                    swept.failed += 1;
                    let due = Due::time_in(&item.key).unwrap_or(now);
                    swept.overdue_seconds = swept.overdue_seconds.max(now.since(due).as_secs());
                    let error = &error as &dyn std::error::Error;
                    tracing::error!(error, due = item.key.sort, "cannot sweep");
                }
            }
            after = due.last().map(|item| item.key.sort.clone());
            if due.len() < limit {
                break;
            }
            if limit == PAGE && swept.failed == failed_before {
                swept.more = true;
                break;
            }
        }
    }
    Ok(swept)
}

async fn sweep_one(ctx: &Context, item: &Item, swept: &mut Swept) -> Result<(), Error> {
    let due = Due::decode(&item.value)?;
    let next = match &due {
        Due::Update(update) => sweep_update(ctx, *update, swept).await?,
        Due::Versions(stack) => retention::prune(ctx, *stack, swept).await?,
        Due::Stack(stack) => stacks::deleted::erase_when_due(ctx, *stack, swept).await?,
        Due::Outputs { stack, key } => retention::sweep_outputs(ctx, *stack, key).await?,
        Due::Blob { key, stack } => retention::sweep_blob(ctx, key, *stack, swept).await?,
        Due::StateVersions(state) => states::retention::prune(ctx, *state, swept).await?,
        Due::State(state) => states::retention::erase_when_due(ctx, *state, swept).await?,
        Due::RejectedState { state, id } => states::retention::sweep_rejected(ctx, *state, id).await?,
        Due::Environment { id, address } => {
            environments::retention::erase_when_due(ctx, *id, address, swept).await?
        }
        Due::Audit { trail, day } => audit_days::sweep(ctx, trail.as_ref(), *day).await?,
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
    // A refusal means that another sweep did the same.
    let _ = store::commit(ctx, writes).await?;
    Ok(())
}

async fn sweep_update(ctx: &Context, id: UpdateId, swept: &mut Swept) -> Result<Next, Error> {
    let key = Update::key(id);
    // Without a record, all data of the update is gone.
    let Some(record) = store::read(ctx, &key).await? else { return Ok(Next::Done) };
    if let Some(over) = record.value.over_since() {
        return match ctx.now() < over {
            // A preview that is still running.
            true => Ok(Next::At(over)),
            false => retention::sweep_update(ctx, id, &record.value, over, swept).await,
        };
    }
    let Some(at) = takeover::overdue_from(&record.value) else { return Ok(Next::Done) };
    if ctx.now() <= at.plus(GRACE) {
        swept.running += 1;
        return Ok(Next::At(at));
    }
    if !takeover::expire_and_publish(ctx, id, record).await? {
        // The update was renewed or ended at this moment. The next sweep sees which.
        return Ok(Next::AsItIs);
    }
    swept.ended += 1;
    Ok(Next::At(ctx.now().plus(retention::kept_at_least(ctx))))
}

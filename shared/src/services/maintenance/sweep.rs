//! What is due: updates that nobody meets any more, and what is kept no longer.
//!
//! Whatever makes a thing that will be due leaves a due item in the same commit, and a sweep looks at the items whose
//! time is over, and only at these. An update leaves one at the end of its lease: if its client is gone, it is ended with
//! what it saved; if it renewed its lease, it is looked at again when that ends; when it is over, it is looked at again
//! when its log and its events have been kept for long enough (see [`crate::services::updates::retention`]). So do versions that are more
//! than are kept, stacks that were removed, and blobs that nothing names any more.
//!
//! A sweep may run twice, late, or in several processes, and what it judges by is as it was chosen for that day.

use std::iter;
use std::time::Duration;

use crate::context::Context;
use crate::domain::ids::UpdateId;
use crate::domain::update::Update;
use crate::layout::{DUE_SHARDS, Due, Record, delete};
use crate::ports::{Expect, Item, Order};
pub use crate::services::store::due::Swept;
use crate::services::store::due::{Next, due_write};
use crate::services::updates::{retention, takeover};
use crate::services::{Error, environments, stacks, states, store};

/// A client whose lease is over may be about to renew it late; whoever wants the stack need not wait for that, a sweep does.
pub const GRACE: Duration = Duration::from_secs(30);

/// Due items of a shard that one sweep looks at.
const PAGE: usize = 100;

/// What is looked at first: most sweeps find nothing due, and so many items cost no more to read than one (4 KB).
const FIRST_PAGE: usize = 20;

/// Pages of a shard that one sweep looks at, as long as each holds something that cannot be done: that stays due, and must
/// not stand before what can.
const FAILING_PAGES_MAX: usize = 20;

/// Looks at one bounded page of each shard, and at more of them where the first ones hold what cannot be done.
///
/// # Errors
/// Those of the ports when a page cannot be read. What goes wrong with one thing does not keep it from the others.
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

async fn sweep_update(ctx: &Context, id: UpdateId, swept: &mut Swept) -> Result<Next, Error> {
    let key = Update::key(id);
    // Without a record everything of it is gone.
    let Some(record) = store::read(ctx, &key).await? else { return Ok(Next::Done) };
    if let Some(over) = record.value.over_since() {
        return match ctx.now() < over {
            // A preview that goes on.
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
        // Renewed or ended at this moment: the next sweep sees which.
        return Ok(Next::AsItIs);
    }
    swept.ended += 1;
    Ok(Next::At(ctx.now().plus(retention::kept_at_least(ctx))))
}

//! What is due: updates that nobody meets any more.
//!
//! Starting an update leaves a due item at the end of its lease. A sweep looks at the items whose time is over, and only at
//! these: an update whose client is gone is ended with what it saved, one that renewed its lease is looked at again when
//! that ends, and of one that is over the item goes. Whoever meets a stack earlier does the same at once, so a sweep may
//! run twice, late, or in several processes.

use std::time::Duration;

use super::{Error, publish, store};
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

/// The write that makes an update be looked at after this instant.
pub(crate) fn due_write(ctx: &Context, update: UpdateId, at: Timestamp) -> Write {
    put(ItemKeys::due(update, at), Expect::Any, ctx.ids.revision(), Due { update }.encode())
}

/// What a sweep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Updates that were ended because their lease was over, or published because nobody had.
    pub ended: usize,
    /// Updates that still run or are just being published, to be looked at later.
    pub running: usize,
    /// Updates that were over.
    pub over: usize,
    /// Updates that could not be looked at or ended; the log says why, and the next sweep tries again.
    pub failed: usize,
    /// Whether a page was full, so that more may be due.
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
    let id = Due::decode(&item.value)?.update;
    let done = || delete(item.key.clone(), Expect::Revision(item.revision));
    let record = store::read::<Update>(ctx, &ItemKeys::update(id)).await?;
    let due_from = record.as_ref().and_then(|record| publish::overdue_from(&record.value));
    let writes = match (record, due_from) {
        (Some(record), Some(at)) if ctx.now() > at.plus(GRACE) => {
            if !publish::finish(ctx, id, record).await? {
                // Renewed or ended at this moment: the next sweep sees which.
                return Ok(());
            }
            swept.ended += 1;
            vec![done()]
        }
        (Some(_), Some(at)) => {
            swept.running += 1;
            vec![done(), due_write(ctx, id, at)]
        }
        (Some(_) | None, _) => {
            swept.over += 1;
            vec![done()]
        }
    };
    // Refused: another sweep was here, and did the same.
    let _ = store::commit(ctx, writes).await?;
    Ok(())
}

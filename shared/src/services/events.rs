//! Engine events: what an update's display is made of. They are kept to be shown; no state depends on them.

use bytes::Bytes;

use super::accounts::Caller;
use super::{Error, log, stacks, store};
use crate::context::Context;
use crate::domain::claims::Claims;
use crate::domain::names::StackAddress;
use crate::layout::ItemKeys;
use crate::layout::keys::events_blob;
use crate::layout::record::{Record, put};
use crate::layout::records::{EventBatch, Summary};
use crate::limits::SUMMARY_BYTES_MAX;
use crate::ports::{Expect, Order, Query};

/// Batches on one page.
const BATCHES_PER_PAGE: usize = 20;

/// A batch of events as a client sent it.
#[derive(Debug)]
pub struct NewBatch {
    /// The lowest sequence number in it.
    pub first: u64,
    /// The highest.
    pub last: u64,
    /// Events in it.
    pub count: u64,
    /// The totals, if the last event of the update is in it.
    pub summary: Option<Summary>,
    /// The gzip of the JSON body.
    pub gzip: Bytes,
}

/// Keeps a batch. A repeat replaces it with itself. Two calls in sequence.
///
/// # Errors
/// [`Error::Fenced`] when the update is over.
pub async fn append(ctx: &Context, claims: &Claims, batch: NewBatch) -> Result<(), Error> {
    let id = claims.update;
    log::check_open(ctx, claims).await?;
    if batch.count == 0 {
        return Ok(());
    }
    let (payload, tail) = store::keep(ctx, || events_blob(id, batch.first, batch.last), batch.gzip).await?;
    let record = EventBatch { count: batch.count, payload };
    let key = ItemKeys::events(id, batch.first, batch.last);
    let mut writes = vec![put(key, Expect::Any, ctx.ids.revision(), record.encode_with(&tail))];
    // Totals that no engine sums up are only not shown: they would be in the version, which has to fit the ledger.
    let summary =
        batch.summary.map(|summary| summary.encode()).filter(|summary| summary.len() <= SUMMARY_BYTES_MAX);
    if let Some(summary) = summary {
        let key = ItemKeys::update_summary(id);
        writes.push(put(key, Expect::Any, ctx.ids.revision(), summary));
    }
    // Nothing is expected, so nothing can be refused.
    let _ = store::commit(ctx, writes).await?;
    Ok(())
}

/// A page of an update's events.
#[derive(Debug)]
pub struct EventsPage {
    /// The gzipped JSON bodies of batches, by their first sequence number.
    pub batches: Vec<Bytes>,
    /// Where the next page begins; `None` once the update is over and all was read.
    pub next: Option<String>,
}

/// Reads events from a position on (empty for the start).
///
/// # Errors
/// [`Error::NoUpdate`].
pub async fn read(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    update: &str,
    from: &str,
) -> Result<EventsPage, Error> {
    let (_, id, record) = stacks::update(ctx, caller, address, update).await?;
    let partition = ItemKeys::events(id, 0, 0).partition;
    let after = (!from.is_empty()).then(|| from.to_owned());
    let query =
        Query { partition, prefix: String::new(), after, order: Order::Ascending, limit: BATCHES_PER_PAGE };
    let page = store::query(ctx, &query).await?;
    let mut batches = Vec::with_capacity(page.items.len());
    for item in &page.items {
        let (batch, tail) = EventBatch::decode_with(&item.value)?;
        batches.push(store::fetch(ctx, &batch.payload, tail).await?);
    }
    let live = record.value.is_live(ctx.now());
    let last = page.items.last().map_or_else(|| from.to_owned(), |item| item.key.sort.clone());
    Ok(EventsPage { batches, next: (page.more || live).then_some(last) })
}

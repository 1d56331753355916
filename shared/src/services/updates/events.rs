//! Engine events: the input of an update's display. They are stored only to be shown; no state depends on them.

use bytes::Bytes;

use super::log;
use crate::context::Context;
use crate::domain::claims::Claims;
use crate::domain::names::StackAddress;
use crate::layout::{EventBatch, Payload, Record, UpdateSummary};
use crate::limits::{BATCH_BYTES_MAX, SUMMARY_BYTES_MAX};
use crate::ports::{Expect, Order};
use crate::services::caller::Caller;
use crate::services::store::compression::{declared_length, gunzip_within};
use crate::services::store::stack_lookup;
use crate::services::{Error, store, work};

/// The maximum number of batches on one page.
const BATCHES_PER_PAGE: usize = 20;

/// The maximum size of the batches on one page, inflated, in bytes. A longer batch is alone on its page.
pub const PAGE_BYTES_MAX: usize = 4 << 20;

/// A batch of events from a client.
#[derive(Debug)]
pub struct NewBatch {
    /// The lowest sequence number in the batch.
    pub first: u64,
    /// The highest sequence number in the batch.
    pub last: u64,
    /// The number of events.
    pub count: u64,
    /// The totals, if the batch contains the last event of the update.
    pub summary: Option<UpdateSummary>,
    /// The gzip of the JSON body.
    pub gzip: Bytes,
}

/// Stores a batch. A repeat overwrites it with the same content. Two calls in sequence.
///
/// # Errors
/// [`UpdateError::Fenced`] when the update is over.
pub async fn append(ctx: &Context, claims: &Claims, batch: NewBatch) -> Result<(), Error> {
    let id = claims.update;
    log::check_open(ctx, claims).await?;
    if batch.count == 0 {
        return Ok(());
    }
    let (payload, tail) =
        store::keep(ctx, || EventBatch::new_blob(id, batch.first, batch.last), batch.gzip).await?;
    let record = EventBatch { count: batch.count, payload };
    let key = EventBatch::key(id, batch.first, batch.last);
    let mut writes = vec![store::put_with(ctx, key, Expect::Any, &record, &tail)];
    // A summary over the limit does not come from an engine. It is dropped, at the cost of its display alone: the version
    // includes it, and has to fit into the ledger.
    let summary = batch.summary.filter(|summary| summary.encode().len() <= SUMMARY_BYTES_MAX);
    writes.extend(summary.map(|summary| store::put(ctx, UpdateSummary::key(id), Expect::Any, &summary)));
    // The writes have no condition, so they cannot be refused.
    let _ = store::commit(ctx, writes).await?;
    Ok(())
}

/// A page of an update's events.
#[derive(Debug)]
pub struct EventsPage {
    /// The JSON bodies of the batches, ordered by their first sequence number.
    pub batches: Vec<Bytes>,
    /// The position of the next page; `None` once the update is over and everything was read.
    pub next: Option<String>,
    /// Whether the caller may see the values in them.
    pub shows_values: bool,
}

impl EventsPage {
    /// The total size of the batches in bytes.
    pub fn bytes(&self) -> usize {
        self.batches.iter().map(Bytes::len).sum()
    }
}

/// Reads events after a position (empty for the start): batches of [`PAGE_BYTES_MAX`] in total, or one longer batch.
///
/// # Errors
/// [`UpdateError::NotFound`].
pub async fn read(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    update: &str,
    from: &str,
) -> Result<EventsPage, Error> {
    let (located, id, record) = stack_lookup::update(ctx, caller, address, update).await?;
    let shows_values = caller.sees_values(ctx, &located.head.value.address).await?;
    let after = (!from.is_empty()).then(|| from.to_owned());
    let query = EventBatch::of_update(id).query(after, Order::Ascending, BATCHES_PER_PAGE);
    let page = store::query(ctx, &query).await?;
    let (mut batches, mut bytes, mut last) = (Vec::new(), 0, from.to_owned());
    let mut more = page.more;
    let mut items = page.items.into_iter().peekable();
    while let Some(item) = items.next() {
        let (batch, tail) = EventBatch::decode_with(&item.value)?;
        let room = if batches.is_empty() { BATCH_BYTES_MAX } else { PAGE_BYTES_MAX - bytes };
        let Some(text) = text_within(ctx, &batch.payload, tail, room).await? else {
            more = true;
            break;
        };
        bytes += text.len();
        batches.push(text);
        last = item.key.sort;
        if bytes >= PAGE_BYTES_MAX {
            more |= items.peek().is_some();
            break;
        }
    }
    let live = record.value.is_live(ctx.now());
    Ok(EventsPage { batches, next: (more || live).then_some(last), shows_values })
}

/// The text of a batch; `None` if it exceeds the rest of the page.
async fn text_within(
    ctx: &Context,
    payload: &Payload,
    tail: Bytes,
    bytes_max: usize,
) -> Result<Option<Bytes>, Error> {
    let gzip = store::fetch(ctx, payload, tail).await?;
    let bytes = declared_length(&gzip);
    if bytes > bytes_max {
        return Ok(None);
    }
    // Twice the size: the response built from the text needs as much again.
    let text = work::with(bytes, 2, move || gunzip_within(&gzip, bytes_max)).await?;
    Ok(text.map(Bytes::from))
}

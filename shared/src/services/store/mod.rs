//! Reading and committing records, with lost answers recognised.

pub mod compression;
pub(crate) mod deletion;
pub(crate) mod due;
pub mod page;
pub(crate) mod retry;
pub mod stack_lookup;
pub mod stack_tags;
pub(crate) mod update_record;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::{Instrument as _, trace_span};

use super::Error;
use crate::account::{self, Full};
use crate::context::Context;
use crate::layout::{self, Key, KeyPrefix, Payload, Record, Stored};
use crate::limits::SIGNED_URL_VALID;
use crate::ports::{
    BlobKey, CommitError, Cursor, DataKey, Expect, Inventory, Item, ItemKey, KeyContext, KeysError, Order,
    Page, Part, PortError, Query, Refusal, SignedUrl, Wrap, WrappedKey, Write, WriteAction,
};

/// Attempts at one call of a port before its failure is passed on; the waits between them double from [`FIRST_WAIT`].
const ATTEMPTS_MAX: usize = 4;
const FIRST_WAIT: Duration = Duration::from_millis(20);

/// Items of fewer bytes are not counted: a request holds a few of them, and most requests no others.
const COUNTED_FROM: usize = 16 << 10;

/// The put of a record. Its revision is new, so that a commit whose answer was lost recognises it.
pub(crate) fn put<T: Record>(ctx: &Context, key: Key<T>, expect: Expect, record: &T) -> Write {
    layout::put(key, expect, ctx.ids.revision(), record)
}

/// The put of a record with a tail.
pub(crate) fn put_with<T: Record>(
    ctx: &Context,
    key: Key<T>,
    expect: Expect,
    record: &T,
    tail: &[u8],
) -> Write {
    layout::put_with(key, expect, ctx.ids.revision(), record, tail)
}

/// A record, if it is there.
pub(crate) async fn read<T: Record>(ctx: &Context, key: &Key<T>) -> Result<Option<Stored<T>>, Error> {
    get(ctx, key).await?.map(|item| Stored::read(&item).map_err(Error::from)).transpose()
}

/// An item, if it is there. Reads have no effect, so every failure is tried again.
pub(crate) async fn get(ctx: &Context, key: &ItemKey) -> Result<Option<Item>, Error> {
    let item =
        retry(ctx, || ctx.ledger.get(key)).instrument(trace_span!(target: "store", "ledger get")).await?;
    if let Some(long) = item.as_ref().filter(|item| item.value.len() > COUNTED_FROM) {
        account::take(long.value.len()).await?;
    }
    Ok(item)
}

/// All items whose keys start so, page by page, up to `limit`.
pub(crate) async fn query_all<T>(
    ctx: &Context,
    prefix: KeyPrefix<T>,
    limit: usize,
) -> Result<Vec<Item>, Error> {
    let mut query = prefix.query(None, Order::Ascending, limit);
    let mut items = Vec::new();
    loop {
        let page = self::query(ctx, &query).await?;
        query.after = page.items.last().map(|item| item.key.sort.clone());
        items.extend(page.items);
        if !page.more || items.len() >= limit {
            return Ok(items);
        }
        query.limit = limit - items.len();
    }
}

/// A part of all items whose partition begins so.
pub(crate) async fn inventory_items(
    ctx: &Context,
    inventory: &dyn Inventory,
    prefix: &str,
    from: Option<&Cursor>,
) -> Result<Part<Item>, Error> {
    retry(ctx, || inventory.items(prefix, from)).await
}

/// The keys of all blobs, in their order.
pub(crate) async fn inventory_blobs(
    ctx: &Context,
    inventory: &dyn Inventory,
) -> Result<BTreeSet<BlobKey>, Error> {
    let (mut keys, mut from) = (BTreeSet::new(), None);
    loop {
        let part = retry(ctx, || inventory.blobs(from.as_ref())).await?;
        keys.extend(part.found);
        from = part.next;
        if from.is_none() {
            return Ok(keys);
        }
    }
}

/// One page of a query.
pub(crate) async fn query(ctx: &Context, query: &Query) -> Result<Page, Error> {
    let page = retry(ctx, || ctx.ledger.query(query))
        .instrument(trace_span!(target: "store", "ledger query"))
        .await?;
    let bytes: usize = page.items.iter().map(|item| item.value.len()).sum();
    if bytes > COUNTED_FROM {
        // Once as they were read, and once as what is made of them. How long a page is, is known only when it is there; a
        // ledger has pages of a megabyte.
        account::take(bytes * 2).await?;
    }
    Ok(page)
}

async fn retry<T, F: Future<Output = Result<T, PortError>>>(
    ctx: &Context,
    mut call: impl FnMut() -> F,
) -> Result<T, Error> {
    let mut wait = FIRST_WAIT;
    for _ in 1..ATTEMPTS_MAX {
        match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "a port failed; trying again")
            }
        }
        ctx.clock.sleep(wait).await;
        wait *= 2;
    }
    Ok(call().await?)
}

/// A new data key. One whose answer was lost is never used, so every failure is tried again.
pub(crate) async fn generate_key(
    ctx: &Context,
    context: &KeyContext,
) -> Result<(DataKey, WrappedKey), Error> {
    retry_keys(ctx, || ctx.keys.generate(context)).await
}

/// A wrapped key, opened.
pub(crate) async fn unwrap_key(
    ctx: &Context,
    wrapped: &WrappedKey,
    context: &KeyContext,
) -> Result<DataKey, Error> {
    retry_keys(ctx, || ctx.keys.unwrap(wrapped, context)).await
}

/// A data key from elsewhere, wrapped.
pub(crate) async fn wrap_key(
    ctx: &Context,
    wrap: &dyn Wrap,
    key: &DataKey,
    context: &KeyContext,
) -> Result<WrappedKey, Error> {
    retry_keys(ctx, || wrap.wrap(key, context)).await
}

/// A wrapped key under the newest master key; `None` where it is so already.
pub(crate) async fn rewrap_key(
    ctx: &Context,
    wrapped: &WrappedKey,
    context: &KeyContext,
) -> Result<Option<WrappedKey>, Error> {
    retry_keys(ctx, || ctx.keys.rewrap(wrapped, context)).await
}

/// A mismatch is an answer, and so is a master key that cannot be used: asking again gives it again.
async fn retry_keys<T, F: Future<Output = Result<T, KeysError>>>(
    ctx: &Context,
    mut call: impl FnMut() -> F,
) -> Result<T, Error> {
    let asked = retry(ctx, || {
        let call = call();
        async move {
            match call.await {
                Ok(answer) => Ok(Ok(answer)),
                Err(KeysError::Port(error)) => Err(error),
                Err(answer @ (KeysError::Mismatch | KeysError::Unusable(_))) => Ok(Err(answer)),
            }
        }
    });
    Ok(asked.await??)
}

/// Commits. The inner result tells a refusal, which is for the caller to decide about.
///
/// An attempt whose answer was lost is looked up before the next one: puts carry revisions that only this call made,
/// so finding one of them means that the whole commit was done.
pub(crate) async fn commit(ctx: &Context, writes: Vec<Write>) -> Result<Result<(), Refusal>, Error> {
    let span = trace_span!(target: "store", "ledger commit", writes = writes.len());
    try_to_commit(ctx, writes).instrument(span).await
}

async fn try_to_commit(ctx: &Context, writes: Vec<Write>) -> Result<Result<(), Refusal>, Error> {
    let mut wait = FIRST_WAIT;
    for attempt in 1.. {
        let error = match ctx.ledger.commit(writes.clone()).await {
            Ok(()) => return Ok(Ok(())),
            Err(CommitError::Refused(refusal)) => {
                let own = attempt > 1 && is_done(ctx, &writes).await?;
                return Ok(if own { Ok(()) } else { Err(refusal) });
            }
            Err(CommitError::Port(error)) => error,
        };
        if attempt >= ATTEMPTS_MAX {
            return Err(error.into());
        }
        tracing::warn!(error = &error as &dyn std::error::Error, "a commit failed; trying again");
        ctx.clock.sleep(wait).await;
        wait *= 2;
        if matches!(error, PortError::Unknown { .. }) && is_done(ctx, &writes).await? {
            return Ok(Ok(()));
        }
    }
    unreachable!("the loop has no other end than a return")
}

async fn is_done(ctx: &Context, writes: &[Write]) -> Result<bool, Error> {
    for write in writes {
        if let WriteAction::Put { revision, .. } = &write.action
            && get(ctx, &write.key).await?.is_some_and(|item| item.revision == *revision)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The lower-case hex SHA-256 of these bytes.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Decides where bytes of a record go that may be long: into its tail, or into a blob that is written first, so that
/// the record never points to nothing.
pub(crate) async fn keep(
    ctx: &Context,
    key: impl FnOnce() -> BlobKey,
    bytes: Bytes,
) -> Result<(Payload, Bytes), Error> {
    if bytes.len() <= ctx.ledger.inline_bytes_max() {
        return Ok((Payload::Inline, bytes));
    }
    let key = key();
    let sha256 = sha256_hex(&bytes);
    put_blob(ctx, &key, bytes).await?;
    Ok((Payload::Blob { key: key.to_string(), sha256 }, Bytes::new()))
}

/// Removes a blob. Every failure is tried again.
pub(crate) async fn delete_blob(ctx: &Context, key: &BlobKey) -> Result<(), Error> {
    retry(ctx, || ctx.blobs.delete(key)).await
}

/// Stores a blob. A key is written with the same bytes only, so every failure is tried again.
pub(crate) async fn put_blob(ctx: &Context, key: &BlobKey, bytes: Bytes) -> Result<(), Error> {
    let span = trace_span!(target: "store", "blob put", bytes = bytes.len());
    retry(ctx, || ctx.blobs.put(key, bytes.clone())).instrument(span).await
}

/// The bytes of a payload, checked against their hash.
pub(crate) async fn fetch(ctx: &Context, payload: &Payload, tail: Bytes) -> Result<Bytes, Error> {
    fetch_for(ctx, payload, tail, 0).await
}

/// The same, for work that takes this many times the bytes more: that is reserved with them.
pub(crate) async fn fetch_for(
    ctx: &Context,
    payload: &Payload,
    tail: Bytes,
    factor: usize,
) -> Result<Bytes, Error> {
    match payload {
        Payload::Inline => Ok(tail),
        Payload::Blob { key, sha256 } => fetch_checked(ctx, key, sha256, factor).await,
    }
}

/// The same, unless it is longer than this: then its length, and it is not read.
pub(crate) async fn fetch_within(
    ctx: &Context,
    payload: &Payload,
    tail: Bytes,
    bytes_max: usize,
) -> Result<Result<Bytes, usize>, Error> {
    let Payload::Blob { key, sha256 } = payload else {
        return Ok(if tail.len() <= bytes_max { Ok(tail) } else { Err(tail.len()) });
    };
    let parsed = BlobKey::parse(key).ok_or_else(|| Error::Broken(format!("{key:?} is not a blob key")))?;
    let found = retry(ctx, || async {
        let Some(blob) = ctx.blobs.get(&parsed).await? else { return Ok(None) };
        match usize::try_from(blob.bytes_total) {
            Ok(bytes) if bytes <= bytes_max => Ok(Some(Ok(blob.into_bytes().await?))),
            bytes => Ok(Some(Err(bytes.unwrap_or(usize::MAX)))),
        }
    });
    let found = found.instrument(trace_span!(target: "store", "blob get")).await?;
    let found = found.ok_or_else(|| Error::Broken(format!("the blob {key} is missing")))?;
    match &found {
        Ok(bytes) if sha256_hex(bytes) != *sha256 => {
            Err(Error::Broken(format!("the blob {key} does not match its hash")))
        }
        Ok(_) | Err(_) => Ok(found),
    }
}

/// A URL at which the store itself hands out a blob, where it has such a thing.
pub(crate) async fn signed_url(ctx: &Context, key: &str) -> Result<Option<SignedUrl>, Error> {
    let parsed = BlobKey::parse(key).ok_or_else(|| Error::Broken(format!("{key:?} is not a blob key")))?;
    Ok(ctx.blobs.signed_url(&parsed, SIGNED_URL_VALID).await?)
}

/// The bytes of a blob as they are, if it is there, for work that takes this many times the bytes more: that is reserved with them.
pub(crate) async fn get_blob(ctx: &Context, key: &BlobKey, factor: usize) -> Result<Option<Bytes>, Error> {
    let bytes_reserved = AtomicUsize::new(0);
    let read = || async {
        let Some(blob) = ctx.blobs.get(key).await? else { return Ok(Ok(None)) };
        let bytes = usize::try_from(blob.bytes_total).unwrap_or(usize::MAX);
        let before = bytes_reserved.fetch_max(bytes, Ordering::Relaxed);
        let more = bytes.saturating_sub(before);
        let reserve = async {
            if factor > 0 {
                account::take_ahead(more.saturating_mul(1 + factor)).await?;
            }
            account::take(more).await
        };
        if let Err(full) = reserve.await {
            return Ok::<_, PortError>(Err::<_, Full>(full));
        }
        blob.into_bytes().await.map(|bytes| Ok(Some(bytes)))
    };
    Ok(retry(ctx, read).instrument(trace_span!(target: "store", "blob get")).await??)
}

/// As [`get_blob`], where its bytes are taken out of this room before they are read; they go back with the permit.
pub(crate) async fn get_blob_in<'a>(
    ctx: &Context,
    key: &BlobKey,
    room: &'a Semaphore,
    room_bytes: u32,
) -> Result<Option<(Bytes, SemaphorePermit<'a>)>, Error> {
    retry(ctx, || async move {
        let Some(blob) = ctx.blobs.get(key).await? else { return Ok(None) };
        let bytes = u32::try_from(blob.bytes_total).map_or(room_bytes, |bytes| bytes.min(room_bytes));
        let permit =
            room.acquire_many(bytes).await.map_err(|closed| PortError::not_done("reading a blob", closed))?;
        Ok(Some((blob.into_bytes().await?, permit)))
    })
    .await
}

/// The lower-case hex SHA-256 of a blob as it is, if it is there. It is never in memory as a whole.
pub(crate) async fn hash_blob(ctx: &Context, key: &BlobKey) -> Result<Option<String>, Error> {
    retry(ctx, || async move {
        let Some(mut blob) = ctx.blobs.get(key).await? else { return Ok(None) };
        let mut hash = Sha256::new();
        while let Some(chunk) = blob.stream.next().await {
            hash.update(&chunk?);
        }
        Ok(Some(hex::encode(hash.finalize())))
    })
    .await
}

/// A blob, checked against its hash: one that is missing or altered is reported as such, and never served.
pub(crate) async fn fetch_blob(ctx: &Context, key: &str, sha256: &str) -> Result<Bytes, Error> {
    fetch_checked(ctx, key, sha256, 0).await
}

async fn fetch_checked(ctx: &Context, key: &str, sha256: &str, factor: usize) -> Result<Bytes, Error> {
    let parsed = BlobKey::parse(key).ok_or_else(|| Error::Broken(format!("{key:?} is not a blob key")))?;
    let bytes = get_blob(ctx, &parsed, factor)
        .await?
        .ok_or_else(|| Error::Broken(format!("the blob {key} is missing")))?;
    if sha256_hex(&bytes) != sha256 {
        return Err(Error::Broken(format!("the blob {key} does not match its hash")));
    }
    Ok(bytes)
}

//! Reads and commits records, and recognizes commits whose answer was lost.

pub(crate) mod access;
pub mod compression;
pub(super) mod deletion;
pub(super) mod due;
pub(super) mod located;
pub mod page;
pub(super) mod protection;
pub(super) mod resource_index;
pub(super) mod retry;
pub mod stack_lookup;
pub mod stack_tags;
pub(super) mod update_record;

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
use crate::domain::file_name::FileName;
use crate::layout::{self, Key, KeyPrefix, Payload, Record, Stored};
use crate::limits::SIGNED_URL_VALID;
use crate::ports::{
    BlobKey, CommitError, Cursor, DataKey, Expect, Inventory, Item, ItemKey, KeyContext, KeysError, Order,
    Page, Part, PortError, Query, Refusal, SignedUrl, Wrap, WrappedKey, Write, WriteAction,
};

/// The maximum number of attempts at a port call before its failure is returned. The wait between them starts at
/// [`FIRST_WAIT`] and doubles.
const ATTEMPTS_MAX: usize = 4;
const FIRST_WAIT: Duration = Duration::from_millis(20);

/// The size up to which an item does not count against the request's memory, in bytes. A request holds only a few such
/// items, and most requests hold no others.
const COUNTED_FROM: usize = 16 << 10;

/// The put of a record. Its revision is new, which identifies this commit if the answer is lost.
pub(super) fn put<T: Record>(ctx: &Context, key: Key<T>, expect: Expect, record: &T) -> Write {
    layout::put(key, expect, ctx.ids.revision(), record)
}

/// The put of a record with a tail of bytes.
pub(super) fn put_with<T: Record>(
    ctx: &Context,
    key: Key<T>,
    expect: Expect,
    record: &T,
    tail: &[u8],
) -> Write {
    layout::put_with(key, expect, ctx.ids.revision(), record, tail)
}

/// Reads a record, if it exists.
pub(super) async fn read<T: Record>(ctx: &Context, key: &Key<T>) -> Result<Option<Stored<T>>, Error> {
    get(ctx, key).await?.map(|item| Stored::read(&item).map_err(Error::from)).transpose()
}

/// Reads an item, if it exists. Reads have no effect, so every failure is retried.
pub(super) async fn get(ctx: &Context, key: &ItemKey) -> Result<Option<Item>, Error> {
    let item =
        retry(ctx, || ctx.ledger.get(key)).instrument(trace_span!(target: "store", "ledger get")).await?;
    if let Some(long) = item.as_ref().filter(|item| item.value.len() > COUNTED_FROM) {
        account::take(long.value.len()).await?;
    }
    Ok(item)
}

/// Reads all items of a key prefix, page by page, up to `limit` items.
pub(super) async fn query_all<T>(
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

/// Reads one part of all items whose partition starts with `prefix`.
pub(super) async fn inventory_items(
    ctx: &Context,
    inventory: &dyn Inventory,
    prefix: &str,
    from: Option<&Cursor>,
) -> Result<Part<Item>, Error> {
    retry(ctx, || inventory.items(prefix, from)).await
}

/// Reads the keys of all blobs.
pub(super) async fn inventory_blobs(
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

/// Reads one page of a query.
pub(super) async fn query(ctx: &Context, query: &Query) -> Result<Page, Error> {
    let page = retry(ctx, || ctx.ledger.query(query))
        .instrument(trace_span!(target: "store", "ledger query"))
        .await?;
    let bytes: usize = page.items.iter().map(|item| item.value.len()).sum();
    if bytes > COUNTED_FROM {
        // Counts twice: for the items as read, and for what is decoded from them. The size of a page is unknown until it
        // arrives; a ledger has pages of one megabyte.
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

/// Generates a data key. A key whose answer was lost is never used, so every failure is retried.
pub(super) async fn generate_key(
    ctx: &Context,
    context: &KeyContext,
) -> Result<(DataKey, WrappedKey), Error> {
    retry_keys(ctx, || ctx.keys.generate(context)).await
}

/// Unwraps a wrapped key.
pub(super) async fn unwrap_key(
    ctx: &Context,
    wrapped: &WrappedKey,
    context: &KeyContext,
) -> Result<DataKey, Error> {
    retry_keys(ctx, || ctx.keys.unwrap(wrapped, context)).await
}

/// Wraps a data key that another store generated.
pub(super) async fn wrap_key(
    ctx: &Context,
    wrap: &dyn Wrap,
    key: &DataKey,
    context: &KeyContext,
) -> Result<WrappedKey, Error> {
    retry_keys(ctx, || wrap.wrap(key, context)).await
}

/// Rewraps a key under the newest master key; `None` if that wraps it already.
pub(super) async fn rewrap_key(
    ctx: &Context,
    wrapped: &WrappedKey,
    context: &KeyContext,
) -> Result<Option<WrappedKey>, Error> {
    retry_keys(ctx, || ctx.keys.rewrap(wrapped, context)).await
}

/// Retries a call for keys. A mismatch or an unusable master key is an answer, which a retry would only repeat.
async fn retry_keys<T, F: Future<Output = Result<T, KeysError>>>(
    ctx: &Context,
    mut call: impl FnMut() -> F,
) -> Result<T, Error> {
    let answer = retry(ctx, || {
        let call = call();
        async move {
            match call.await {
                Ok(answer) => Ok(Ok(answer)),
                Err(KeysError::Port(error)) => Err(error),
                Err(answer @ (KeysError::Mismatch | KeysError::Unusable(_))) => Ok(Err(answer)),
            }
        }
    });
    Ok(answer.await??)
}

/// Commits writes. The inner result is a refusal, about which the caller decides.
///
/// An attempt whose answer was lost is looked up before the next one: puts carry revisions that only this call made,
/// so finding one of them means that the whole commit was done.
pub(super) async fn commit(ctx: &Context, writes: Vec<Write>) -> Result<Result<(), Refusal>, Error> {
    let span = trace_span!(target: "store", "ledger commit", writes = writes.len());
    let done = try_to_commit(ctx, writes).instrument(span).await?;
    if done.is_ok() {
        ctx.has_committed.store(true, Ordering::Relaxed);
    }
    Ok(done)
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

/// The SHA-256 of these bytes, in lowercase hex.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Places bytes of a record that may be long: into its tail, or into a blob that is written first, so that the record
/// never points to a missing blob.
pub(super) async fn keep(
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

/// Deletes a blob. Every failure is retried.
pub(super) async fn delete_blob(ctx: &Context, key: &BlobKey) -> Result<(), Error> {
    retry(ctx, || ctx.blobs.delete(key)).await
}

/// Stores a blob. A key is only ever written with the same bytes, so every failure is retried.
pub(super) async fn put_blob(ctx: &Context, key: &BlobKey, bytes: Bytes) -> Result<(), Error> {
    let span = trace_span!(target: "store", "blob put", bytes = bytes.len());
    retry(ctx, || ctx.blobs.put(key, bytes.clone())).instrument(span).await
}

/// Reads the bytes of a payload and checks them against their hash.
pub(super) async fn fetch(ctx: &Context, payload: &Payload, tail: Bytes) -> Result<Bytes, Error> {
    fetch_for(ctx, payload, tail, 0).await
}

/// Like [`fetch`], and reserves memory for work that needs `factor` times the bytes in addition.
pub(super) async fn fetch_for(
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

/// Like [`fetch`]; a payload that exceeds `bytes_max` bytes is not read, and its length is returned as the inner error.
pub(super) async fn fetch_within(
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

/// A URL at which the store itself serves a blob, which a browser saves as this file; `None` if the store does not support
/// this.
pub(super) async fn signed_url(
    ctx: &Context,
    key: &str,
    file: &FileName,
) -> Result<Option<SignedUrl>, Error> {
    let parsed = BlobKey::parse(key).ok_or_else(|| Error::Broken(format!("{key:?} is not a blob key")))?;
    Ok(ctx.blobs.signed_url(&parsed, SIGNED_URL_VALID, file.as_str()).await?)
}

/// Reads a blob without checking its hash, if it exists. Reserves memory for its bytes, and for work that needs `factor`
/// times the bytes in addition.
pub(super) async fn get_blob(ctx: &Context, key: &BlobKey, factor: usize) -> Result<Option<Bytes>, Error> {
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

/// Reads a blob within a shared memory budget: its bytes are acquired from `room` before the read, and returned with the
/// permit.
pub(super) async fn get_blob_in<'a>(
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

/// The SHA-256 of a blob in lowercase hex, if the blob exists. Reads it in chunks, never as a whole.
pub(super) async fn hash_blob(ctx: &Context, key: &BlobKey) -> Result<Option<String>, Error> {
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

/// Reads a blob and checks it against its hash. A missing or altered blob is an error, and is never served.
pub(super) async fn fetch_blob(ctx: &Context, key: &str, sha256: &str) -> Result<Bytes, Error> {
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

//! Stores the rows of long states, and reads them block by block. See
//! [`tfstate::rows`](crate::domain::tfstate::rows). The directory and each block are sealed with the state's data key.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::blobs;
use super::blobs::SentText;
use crate::account;
use crate::context::Context;
use crate::domain::ids::StateId;
use crate::domain::tfstate::rows::{
    Directory, FIRST_ROWS, RELATING_BYTES_MAX, Row, RowBlock, bytes_of_first_rows, make, memory,
    write_directory,
};
use crate::domain::tfstate::{Detail, ENTRIES_MAX, Index, Page, Pager, Place};
use crate::layout::{KeptRows, KeptState};
use crate::ports::BlobKey;
use crate::services::keys::data_keys;
use crate::services::store::resource_index::{PIECE_BYTES, Reading};
use crate::services::work::{self, SMALL_BYTES_MAX};
use crate::services::{Error, store};

/// The memory for an entry of an index in addition to its address, in bytes.
const ENTRY_BYTES: usize = 96;

/// The memory for what is related to an instance, in bytes, at most: names on both sides of it.
const RELATED_BYTES_MAX: usize = 4 << 20;

/// Makes the rows of a long text, seals them, and stores them next to the blob of the text. `None` for a short text, for
/// one that rows cannot describe, and if that fails: a text is stored without rows too. A write does not wait for their
/// memory, which is given back here.
pub(super) async fn keep(ctx: &Context, state: StateId, blob: &BlobKey, sent: &SentText) -> Option<KeptRows> {
    let text = sent.long_text.clone()?;
    let kept = account::apart(keep_of(ctx, state, blob, sent, text)).await;
    kept.unwrap_or_else(|error| {
        tracing::warn!(error = &error as &dyn std::error::Error, "a long state is stored without rows");
        None
    })
}

async fn keep_of(
    ctx: &Context,
    state: StateId,
    blob: &BlobKey,
    sent: &SentText,
    text: Bytes,
) -> Result<Option<KeptRows>, Error> {
    if sent.document.is_encrypted {
        return Ok(None);
    }
    account::try_take(memory(text.len()))?;
    let document = Arc::clone(&sent.document);
    let blocks = work::on(text.len(), move || {
        make(&text, document.index.as_ref())
            .map_err(|error| Error::Internal(format!("a text was parsed before: {error}")))
    });
    let Some(mut blocks) = blocks.await? else { return Ok(None) };
    let count: u64 = blocks.iter().map(|block| u64::from(block.rows)).sum();
    let bytes = blocks.iter().map(|block| block.compressed.len()).sum::<usize>();
    let compressed = blocks.iter_mut().map(|block| std::mem::take(&mut block.compressed)).collect();
    let sealed = data_keys::encrypt(ctx, state, compressed).await?;
    let sha256 = sent.sha256.clone();
    let (directory, first_bytes, sealed) = work::on(bytes, move || {
        let directory = write_directory(&sha256, &blocks, &sealed);
        Ok((directory, bytes_of_first_rows(&blocks, &sealed), sealed))
    })
    .await?;
    let directory = data_keys::seal(ctx, state.into(), directory).await?;
    let key = data_keys::number_of(&directory)
        .ok_or_else(|| Error::Internal("what was sealed has no number of a key".to_owned()))?;
    let directory_bytes = directory.len() as u64;
    let (joined, sha256) = work::on(bytes, move || {
        let total = sealed.iter().map(Vec::len).sum::<usize>();
        let mut joined = Vec::with_capacity(directory.len() + total);
        joined.extend_from_slice(&directory);
        for block in sealed {
            joined.extend_from_slice(&block);
        }
        let sha256 = store::sha256_hex(&joined);
        Ok((Bytes::from(joined), sha256))
    })
    .await?;
    let all_bytes = joined.len() as u64 - directory_bytes;
    let blob = KeptState::new_rows_blob(blob);
    if let Err(error) = store::put_blob(ctx, &blob, joined).await {
        // It may be stored all the same.
        blobs::discard(ctx, [blob.as_str()]).await;
        return Err(error);
    }
    Ok(Some(KeptRows { sha256, key, count, bytes: [directory_bytes, first_bytes, all_bytes] }))
}

/// What is read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Directory,
    FirstRows,
    All,
    /// All of it, and not piece by piece: so it is read again if it breaks off.
    Whole,
}

/// Rows that are read block by block.
struct Opened<'a> {
    ctx: &'a Context,
    state: StateId,
    blob: String,
    directory: Directory,
    reading: Reading,
    /// The blocks that the reading has.
    ahead: Range<usize>,
}

/// Opens the rows of a text; `None` if it has none. One read, and the data key is loaded at the same time.
async fn open<'a>(
    ctx: &'a Context,
    state: StateId,
    kept: &KeptState,
    reach: Reach,
) -> Result<Option<Opened<'a>>, Error> {
    let Some(rows) = &kept.rows else { return Ok(None) };
    let blob = kept.rows_blob();
    let [directory_bytes, first_bytes, all_bytes] = rows.bytes;
    let end = directory_bytes.saturating_add(match reach {
        Reach::Directory => 0,
        Reach::FirstRows => first_bytes,
        Reach::All | Reach::Whole => all_bytes,
    });
    let in_memory = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let length = in_memory(directory_bytes);
    let read_bytes = if reach == Reach::Whole { in_memory(end) } else { PIECE_BYTES };
    account::take(Directory::memory(length).saturating_add(read_bytes)).await?;
    let key = data_keys::load(ctx, state.into(), rows.key);
    let read = async {
        match reach {
            Reach::Whole => Reading::whole(ctx, &blob, 0..end).await,
            Reach::Directory | Reach::FirstRows | Reach::All => Reading::open(ctx, &blob, 0..end).await,
        }
    };
    let (mut reading, ()) = futures::try_join!(read, key)?;
    let sealed = reading.next(&blob, length).await?;
    let plain = data_keys::open(ctx, state.into(), Vec::from(sealed)).await?;
    let directory = Directory::parse(&plain, &kept.sha256, directory_bytes)
        .map_err(|damaged| Error::Broken(format!("the blob {blob}: {damaged}")))?;
    let blob_end = directory_bytes.saturating_add(all_bytes);
    if directory.rows() != rows.count || directory.end().unwrap_or(directory_bytes) != blob_end {
        return Err(Error::Broken(format!("the directory of the blob {blob} is not that of its record")));
    }
    let ahead = 0..directory.blocks.partition_point(|block| block.range().end <= end);
    Ok(Some(Opened { ctx, state, blob, directory, reading, ahead }))
}

impl Opened<'_> {
    /// All blocks.
    fn all(&self) -> Range<usize> {
        0..self.directory.blocks.len()
    }

    /// Reads these blocks one after the other, and reports their rows until one returns `false`. At most one read.
    async fn each(
        &mut self,
        blocks: Range<usize>,
        mut each: impl FnMut(&Row<'_>) -> bool,
    ) -> Result<(), Error> {
        let Self { ctx, state, blob, directory, reading, ahead } = self;
        let wanted = directory.blocks.get(blocks.clone()).unwrap_or_default();
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(()) };
        let longest = |length: fn(&RowBlock) -> u32| wanted.iter().map(length).max().unwrap_or(0) as usize;
        let sealed = longest(|block| block.bytes).saturating_mul(2);
        account::take(longest(|block| block.bytes_raw).saturating_mul(2).saturating_add(sealed)).await?;
        if blocks.start != ahead.start || blocks.end > ahead.end {
            *reading = Reading::open(ctx, blob, first.range().start..last.range().end).await?;
            *ahead = blocks;
        }
        for block in wanted {
            let sealed = reading.next(blob, block.bytes as usize).await?;
            ahead.start += 1;
            let damaged = |damaged| Error::Broken(format!("the blob {blob}: {damaged}"));
            block.check(&sealed).map_err(damaged)?;
            let compressed = data_keys::open(ctx, (*state).into(), Vec::from(sealed)).await?;
            let raw = match block.bytes_raw as usize > SMALL_BYTES_MAX {
                true => {
                    let of = block.clone();
                    let inflate = move || Ok(of.inflate(&compressed));
                    work::on(block.bytes_raw as usize, inflate).await?
                }
                false => block.inflate(&compressed),
            };
            let raw = raw.map_err(damaged)?;
            if !block.rows_in(&raw, &mut each).map_err(damaged)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// What is made of the row with this address. Of several, the last one counts. At most one read.
    async fn find<T>(&mut self, address: &str, make: impl Fn(&Row<'_>) -> T) -> Result<Option<T>, Error> {
        let mut found = None;
        let blocks = self.directory.blocks_of(address);
        account::take(self.directory.page_memory(blocks.clone(), 1)).await?;
        self.each(blocks, |row| {
            if row.address == address {
                found = Some(make(row));
            }
            true
        })
        .await?;
        Ok(found)
    }
}

/// A page of the resource instances of a text; `None` if it has no rows. One read if it is the first page, of at most
/// 499, or has a filter; else two. One more if many instances share an address.
pub(super) async fn page(
    ctx: &Context,
    state: StateId,
    kept: &KeptState,
    filter: &str,
    after: Option<&Place>,
    size: usize,
) -> Result<Option<Page>, Error> {
    let mut pager = Pager::new(filter, after, size);
    let lists_all = pager.lists_all();
    let reach = match after {
        _ if !lists_all => Reach::All,
        // One row more tells whether others follow.
        None if size < FIRST_ROWS => Reach::FirstRows,
        _ => Reach::Directory,
    };
    let Some(mut opened) = open(ctx, state, kept, reach).await? else { return Ok(None) };
    let all = opened.all();
    let first = opened.directory.blocks_after(after, size.saturating_add(1));
    let first = if lists_all { first } else { all.clone() };
    let rest = first.end..all.end;
    // Rows that share a place are one on a page, so it may need the rest.
    for blocks in [first, rest] {
        if blocks.is_empty() || lists_all && pager.is_full() {
            break;
        }
        account::take(opened.directory.page_memory(blocks.clone(), size)).await?;
        opened
            .each(blocks, |row| {
                pager.offer(row);
                !(lists_all && pager.is_full())
            })
            .await?;
    }
    let page = pager.end();
    let rows = opened.directory.rows();
    Ok(Some(if lists_all { Page { total: rows, matched: rows, ..page } } else { page }))
}

/// The resource instance with this address; `None` if the text has no rows, and then `Some(None)` if it has no such
/// instance. Three reads.
pub(super) async fn detail(
    ctx: &Context,
    state: StateId,
    kept: &KeptState,
    address: &str,
) -> Result<Option<Option<Detail>>, Error> {
    let Some(mut opened) = open(ctx, state, kept, Reach::Directory).await? else { return Ok(None) };
    let all = opened.all();
    let related = opened.directory.bytes_raw(all.clone()).min(RELATED_BYTES_MAX);
    account::take(related.saturating_add(RELATING_BYTES_MAX)).await?;
    let Some(mut relating) = opened.find(address, |row| row.relating()).await? else { return Ok(Some(None)) };
    opened
        .each(all, |row| {
            relating.offer(row);
            true
        })
        .await?;
    Ok(Some(Some(relating.end())))
}

/// The digest of the instance with this address; `None` if the text has no rows, and then `Some(None)` if it has no such
/// instance. Two reads.
pub(super) async fn digest(
    ctx: &Context,
    state: StateId,
    kept: &KeptState,
    address: &str,
) -> Result<Option<Option<[u8; 8]>>, Error> {
    let Some(mut opened) = open(ctx, state, kept, Reach::Directory).await? else { return Ok(None) };
    opened.find(address, |row| row.digest).await.map(Some)
}

/// The index of a text with rows; `None` if it has none, or more than an index has. One read.
pub(super) async fn index(ctx: &Context, state: StateId, kept: &KeptState) -> Result<Option<Index>, Error> {
    let count = kept.rows.as_ref().map_or(0, |rows| usize::try_from(rows.count).unwrap_or(usize::MAX));
    if count > ENTRIES_MAX {
        return Ok(None);
    }
    let Some(mut opened) = open(ctx, state, kept, Reach::Whole).await? else { return Ok(None) };
    let all = opened.all();
    let addresses = opened.directory.bytes_raw(all.clone());
    account::take(addresses.saturating_add(count.saturating_mul(ENTRY_BYTES))).await?;
    let mut index = Index::default();
    opened
        .each(all, |row| {
            index.add(row.address, row.digest);
            true
        })
        .await?;
    Ok(Some(index))
}

/// What rows tell; `None` if they are damaged, as for a text without rows. The operator's check reports the damage.
pub(super) fn unless_damaged<T>(told: Result<Option<T>, Error>) -> Result<Option<T>, Error> {
    match told {
        Err(error @ (Error::Broken(_) | Error::TooNew(_))) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "the rows of a state are damaged");
            Ok(None)
        }
        told => told,
    }
}

/// Checks that the rows of a text are complete, if it has any: every block, and their number.
///
/// # Errors
/// [`Error::Broken`]; those of the ports.
pub(crate) async fn check(ctx: &Context, state: StateId, kept: &KeptState) -> Result<(), Error> {
    let Some(rows) = &kept.rows else { return Ok(()) };
    let blob = kept.rows_blob();
    let key = BlobKey::parse(&blob).ok_or_else(|| Error::Broken(format!("{blob:?} is not a blob key")))?;
    match store::hash_blob(ctx, &key).await? {
        None => return Err(Error::Broken(format!("the blob {blob} is missing"))),
        Some(sha256) if sha256 != rows.sha256 => {
            return Err(Error::Broken(format!("the blob {blob} does not match its hash")));
        }
        Some(_) => {}
    }
    let Some(mut opened) = open(ctx, state, kept, Reach::All).await? else { return Ok(()) };
    let all = opened.all();
    opened.each(all, |_| true).await
}

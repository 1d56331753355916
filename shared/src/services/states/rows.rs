//! Stores the rows of long states, and reads them block by block. See
//! [`tfstate::rows`](crate::domain::tfstate::rows). The directory and each block are sealed with the state's data key.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::blobs::SentText;
use crate::account;
use crate::context::Context;
use crate::domain::ids::StateId;
use crate::domain::tfstate::rows::{
    Directory, FIRST_ROWS, Measured, NewBlock, Row, RowBlock, bytes_of_first_rows, make, measure,
    write_directory,
};
use crate::domain::tfstate::{Detail, Document, ENTRIES_MAX, Index, Page, Pager, Place};
use crate::layout::{KeptRows, KeptState};
use crate::ports::BlobKey;
use crate::services::keys::data_keys;
use crate::services::store::resource_index::{PIECE_BYTES, Reading};
use crate::services::work::{self, SMALL_BYTES_MAX};
use crate::services::{Error, store};

/// The memory for blocks while they are stored, as a multiple of them: sealed, and joined.
const STORED_FACTOR: usize = 2;

/// The memory for an entry of an index in addition to its address, in bytes.
const ENTRY_BYTES: usize = 96;

/// The memory for what is related to an instance, in bytes, at most: names on both sides of it.
const RELATED_BYTES_MAX: usize = 4 << 20;

/// Makes the rows of a long text, seals them, and stores them next to the blob of the text. `None` for a short text, for
/// one that rows cannot describe, and if there is no memory: then the text is stored without rows.
pub(super) async fn keep(
    ctx: &Context,
    state: StateId,
    blob: &BlobKey,
    sent: &SentText,
) -> Result<Option<KeptRows>, Error> {
    let Some(text) = sent.long_text.clone() else { return Ok(None) };
    match keep_of(ctx, state, blob, sent, text).await {
        Err(error @ Error::NoRoom(_)) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "a long state is stored without rows");
            Ok(None)
        }
        kept => kept,
    }
}

async fn keep_of(
    ctx: &Context,
    state: StateId,
    blob: &BlobKey,
    sent: &SentText,
    text: Bytes,
) -> Result<Option<KeptRows>, Error> {
    let Some((measured, mut blocks)) = make_blocks(text, Arc::clone(&sent.document)).await? else {
        return Ok(None);
    };
    let bytes = blocks.iter().map(|block| block.compressed.len()).sum::<usize>();
    account::take(bytes.saturating_mul(STORED_FACTOR)).await?;
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
    store::put_blob(ctx, &KeptState::new_rows_blob(blob), joined).await?;
    let count = measured.rows as u64;
    Ok(Some(KeptRows { sha256, key, count, bytes: [directory_bytes, first_bytes, all_bytes] }))
}

/// The blocks of a text's rows. Their memory is reserved first.
async fn make_blocks(
    text: Bytes,
    document: Arc<Document>,
) -> Result<Option<(Measured, Vec<NewBlock>)>, Error> {
    if document.is_encrypted {
        return Ok(None);
    }
    let same = text.clone();
    // The text was parsed before, so this cannot fail.
    let measured = work::on(text.len(), move || Ok(measure(&same).ok().flatten())).await?;
    let Some(measured) = measured else { return Ok(None) };
    account::take(measured.memory()).await?;
    work::on(text.len(), move || match make(&text, &measured, document.index.as_ref()) {
        Ok(blocks) => Ok(Some((measured, blocks))),
        Err(damaged) => {
            tracing::error!(
                error = &damaged as &dyn std::error::Error,
                "a long state is stored without rows"
            );
            Ok(None)
        }
    })
    .await
}

/// What is read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Directory,
    FirstRows,
    All,
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
        Reach::All => all_bytes,
    });
    let length = usize::try_from(directory_bytes).unwrap_or(usize::MAX);
    account::take(Directory::memory(length).saturating_add(PIECE_BYTES)).await?;
    let key = data_keys::load(ctx, state.into(), rows.key);
    let (mut reading, ()) = futures::try_join!(Reading::open(ctx, &blob, 0..end), key)?;
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
/// 499, or has a filter; else two.
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
    let count = opened.directory.blocks.len();
    let first = opened.directory.blocks_after(after, size.saturating_add(1));
    let mut blocks = if lists_all { first } else { opened.all() };
    account::take(opened.directory.page_memory(blocks.clone(), size)).await?;
    while !(blocks.is_empty() || lists_all && pager.is_full()) {
        opened
            .each(blocks.clone(), |row| {
                pager.offer(row);
                !(lists_all && pager.is_full())
            })
            .await?;
        // Rows that share a place are one on a page.
        blocks = blocks.end..blocks.end.saturating_add(1).min(count);
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
    let Some(mut relating) = opened.find(address, |row| row.relating()).await? else { return Ok(Some(None)) };
    let all = opened.all();
    account::take(opened.directory.bytes_raw(all.clone()).min(RELATED_BYTES_MAX)).await?;
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
    let Some(mut opened) = open(ctx, state, kept, Reach::All).await? else { return Ok(None) };
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

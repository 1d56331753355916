//! Stores the indexes of snapshots' resources, and reads them and single resources part by part. See
//! [`resource_index`](crate::domain::resource_index).

use std::io::Write;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use flate2::write::GzDecoder;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};

use super::compression::gunzip;
use super::{hash_blob, put_blob, retry, sha256_hex};
use crate::account;
use crate::context::Context;
use crate::domain::ids::StackId;
use crate::domain::resource_index::{
    Block, Built, Damaged, Directory, Entry, Key, Places, Previous, PreviousEntry, TEXT_FACTOR, build,
    edges_in, entries_in, inflate, rows_in, scan, text_hash,
};
use crate::layout::{Snapshot, SnapshotIndex};
use crate::ports::{BlobKey, PortError};
use crate::services::Error;
use crate::services::store::stack_lookup;
use crate::services::work::{self, SMALL_BYTES_MAX};

/// The memory that an entry of the index before takes, in bytes: an item of the list of entries, and of the list of those
/// that were deleted.
const ENTRY_BYTES: u64 = 128;

/// Bytes of one piece of a blob that is read, at most. Adapters read smaller pieces.
pub(in crate::services) const PIECE_BYTES: usize = 256 << 10;

/// The longest text of a snapshot that is read as a whole because it has no index, in bytes.
const UNINDEXED_BYTES_MAX: u64 = 8 << 20;

/// A deployment whose index is made.
pub(in crate::services) enum Deployment {
    /// Its text, if that is in memory.
    Text(Bytes),
    /// Its gzip, as it is stored.
    Gzip(Bytes),
}

impl Deployment {
    /// The index of its resources, of which it has this number; `None` if it is not a deployment.
    fn index(
        &self,
        version: u64,
        resources: usize,
        previous: Option<&Previous>,
    ) -> Result<Option<Built>, Error> {
        let inflated;
        let text: &[u8] = match self {
            Self::Text(text) => text,
            Self::Gzip(gzip) => {
                inflated = gunzip(gzip)?;
                &inflated
            }
        };
        Ok(scan(text, resources).map(|scanned| build(scanned, version, previous)))
    }
}

fn in_memory(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn broken(index: &str, damaged: &Damaged) -> Error {
    Error::IndexDamaged(format!("the blob {index}: {damaged}"))
}

/// The error for a part of an index that cannot be read.
fn of_index(error: Error) -> Error {
    match error {
        Error::Broken(words) => Error::IndexDamaged(words),
        other => other,
    }
}

fn key(text: &str) -> Result<BlobKey, Error> {
    BlobKey::parse(text).ok_or_else(|| Error::Broken(format!("{text:?} is not a blob key")))
}

/// Makes and stores the index of a version with this snapshot. `before` is the snapshot of the version before, whose
/// index tells which resources changed; if that is damaged, changes are known from this version on. `None` if the
/// resources of the deployment cannot be read, which ends no update.
///
/// The caller has reserved [`TEXT_FACTOR`] times the text, as a fold does: its own texts are freed by now. The tables of
/// the resources are reserved here, unless they were reserved ahead, with the snapshot that the fold began from.
///
/// # Errors
/// [`Error::NoRoom`]: then nothing is stored, and the version may be published without an index. Those of the ports.
pub(in crate::services) async fn make(
    ctx: &Context,
    stack: StackId,
    (version, snapshot): (u64, &Snapshot),
    before: Option<&Snapshot>,
    deployment: Deployment,
) -> Result<Option<SnapshotIndex>, Error> {
    account::take(snapshot.table_bytes()).await?;
    let previous = match before.and_then(|snapshot| Some((snapshot, snapshot.index.as_ref()?))) {
        None => None,
        Some((snapshot, index)) => match previous(ctx, snapshot, index).await {
            Ok(previous) => Some(previous),
            Err(error @ (Error::Broken(_) | Error::IndexDamaged(_) | Error::TooNew(_))) => {
                tracing::warn!(%stack, version, error = &error as &dyn std::error::Error, "an index is damaged");
                None
            }
            Err(error) => return Err(error),
        },
    };
    let resources = in_memory(snapshot.resource_count);
    let work = move || deployment.index(version, resources, previous.as_ref());
    let built = work::on(in_memory(snapshot.bytes_text), work).await?;
    let Some(Built { bytes, places, entries, since }) = built else { return Ok(None) };
    let sha256 = sha256_hex(&bytes);
    let directory = places.directory();
    let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let directory = bytes.get(within(directory.start)..within(directory.end)).unwrap_or_default();
    let index = SnapshotIndex {
        directory: directory_hash(directory),
        sha256,
        since,
        entries,
        bytes: SnapshotIndex::lengths(&places),
    };
    put_blob(ctx, &key(&snapshot.index_blob(&index))?, bytes.into()).await?;
    Ok(Some(index))
}

/// What an index tells about the next version. One read.
async fn previous(ctx: &Context, snapshot: &Snapshot, index: &SnapshotIndex) -> Result<Previous, Error> {
    let blob = snapshot.index_blob(index);
    let places = index.places();
    let range = places.lookup_and_directory();
    let reserved = range.end.saturating_add(index.entries.saturating_mul(ENTRY_BYTES));
    account::take(usize::try_from(reserved).unwrap_or(usize::MAX)).await?;
    let bytes = read_range(ctx, &blob, range).await.map_err(of_index)?;
    let index = index.clone();
    let read = move || {
        let damaged = |error: Damaged| broken(&blob, &error);
        let lookup_bytes = usize::try_from(places.lookup_bytes).unwrap_or(usize::MAX);
        let (lookup, directory) = bytes
            .split_at_checked(lookup_bytes)
            .ok_or_else(|| Error::IndexDamaged(format!("the blob {blob} is too short")))?;
        let directory = parse_directory(&blob, &index, directory)?;
        let mut entries = Vec::with_capacity(usize::try_from(index.entries).unwrap_or_default());
        for block in directory.lookup() {
            let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let compressed = lookup.get(at(block.range().start)..at(block.range().end)).unwrap_or_default();
            let raw = inflate(block, compressed).map_err(damaged)?;
            entries.extend(entries_in(block, &raw).map_err(damaged)?.into_iter().map(PreviousEntry::from));
        }
        Ok(Previous { since: directory.since, entries })
    };
    work::on(usize::try_from(reserved).unwrap_or(usize::MAX), read).await
}

fn parse_directory(blob: &str, index: &SnapshotIndex, bytes: &[u8]) -> Result<Directory, Error> {
    if directory_hash(bytes) != index.directory {
        return Err(Error::IndexDamaged(format!("the directory of the blob {blob} does not match its hash")));
    }
    Directory::parse(bytes, &index.places()).map_err(|damaged| broken(blob, &damaged))
}

fn directory_hash(bytes: &[u8]) -> String {
    let mut hash = sha256_hex(bytes);
    hash.truncate(SnapshotIndex::DIRECTORY_DIGITS);
    hash
}

/// Reads a part of a blob, whose bytes are reserved.
async fn read_range(ctx: &Context, blob: &str, range: Range<u64>) -> Result<Bytes, Error> {
    let (parsed, length) = (key(blob)?, range.end.saturating_sub(range.start));
    let read = || async {
        let Some(part) = ctx.blobs.get_range(&parsed, range.clone()).await? else { return Ok(None) };
        part.into_bytes().await.map(Some)
    };
    match retry(ctx, read).await? {
        Some(bytes) if bytes.len() as u64 == length => Ok(bytes),
        Some(_) => Err(Error::Broken(format!("the blob {blob} is too short"))),
        None => Err(Error::Broken(format!("the blob {blob} is missing"))),
    }
}

/// An index that is read block by block.
pub(in crate::services) struct Opened {
    /// Where its blocks are.
    pub(in crate::services) directory: Directory,
    source: Source,
    places: Places,
    /// The first blocks of rows, if they were read.
    first_rows: Bytes,
}

enum Source {
    Stored(String),
    /// Made of a whole snapshot.
    Made(Bytes),
}

/// Opens the index of a version's snapshot, with its first rows if the caller will list them. One read. A version without
/// an index is read as a whole, if it is short; `None` if it is long.
pub(in crate::services) async fn open(
    ctx: &Context,
    version: u64,
    snapshot: &Snapshot,
    wants_rows: bool,
) -> Result<Option<Opened>, Error> {
    let Some(index) = &snapshot.index else { return open_unindexed(ctx, version, snapshot).await };
    let places = index.places();
    let range = if wants_rows { places.directory_and_first_rows() } else { places.directory() };
    let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
    account::take(length.saturating_mul(2)).await?;
    let blob = snapshot.index_blob(index);
    let mut bytes = read_range(ctx, &blob, range).await.map_err(of_index)?;
    let directory_bytes = usize::try_from(places.directory_bytes).unwrap_or(usize::MAX);
    let directory = bytes.split_to(directory_bytes.min(bytes.len()));
    let directory = parse_directory(&blob, index, &directory)?;
    Ok(Some(Opened { directory, source: Source::Stored(blob), places, first_rows: bytes }))
}

async fn open_unindexed(ctx: &Context, version: u64, snapshot: &Snapshot) -> Result<Option<Opened>, Error> {
    if snapshot.bytes_text > UNINDEXED_BYTES_MAX {
        return Ok(None);
    }
    let gzip = stack_lookup::fetch_snapshot(ctx, snapshot, TEXT_FACTOR).await?;
    let (bytes, resources) = (in_memory(snapshot.bytes_text), in_memory(snapshot.resource_count));
    account::take(bytes.saturating_mul(TEXT_FACTOR).saturating_add(snapshot.table_bytes())).await?;
    let make = move || Deployment::Gzip(gzip).index(version, resources, None);
    let Some(Built { bytes, places, .. }) = work::on(bytes, make).await? else {
        return Err(Error::Broken(format!("the blob {} is not a deployment", snapshot.blob)));
    };
    let bytes = Bytes::from(bytes);
    let within = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let directory = bytes.slice(within(places.directory().start)..within(places.directory().end));
    let directory =
        Directory::parse(&directory, &places).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(Some(Opened { directory, source: Source::Made(bytes), places, first_rows: Bytes::new() }))
}

impl Opened {
    /// Reads these blocks, one after the other. At most one read of the store, whatever their number.
    pub(in crate::services) async fn walk<'a>(
        &self,
        ctx: &Context,
        blocks: &'a [Block],
    ) -> Result<Walk<'a>, Error> {
        let name = self.name().to_owned();
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else {
            return Ok(Walk { name, blocks: blocks.iter(), reading: Reading::of(Bytes::new()) });
        };
        let longest =
            |length: fn(&Block) -> u32| blocks.iter().map(length).max().unwrap_or_default() as usize;
        let raw = longest(|block| block.bytes_raw).saturating_mul(2);
        account::take(longest(|block| block.bytes).saturating_add(raw).saturating_add(PIECE_BYTES)).await?;
        let range = first.at..last.range().end;
        Ok(Walk { name, blocks: blocks.iter(), reading: self.read(ctx, range).await? })
    }

    fn name(&self) -> &str {
        match &self.source {
            Source::Stored(blob) => blob,
            Source::Made(_) => "of the index in memory",
        }
    }

    async fn read(&self, ctx: &Context, range: Range<u64>) -> Result<Reading, Error> {
        let rows_at = self.places.lookup_and_directory().end;
        let part = |bytes: &Bytes, at: u64| {
            let within = |to: u64| usize::try_from(to.checked_sub(at)?).ok();
            let (start, end) = (within(range.start)?, within(range.end)?);
            (end <= bytes.len()).then(|| bytes.slice(start..end))
        };
        let here = match &self.source {
            Source::Made(bytes) => part(bytes, 0),
            Source::Stored(_) => part(&self.first_rows, rows_at),
        };
        match here {
            Some(bytes) => Ok(Reading::of(bytes)),
            None => Reading::open(ctx, self.name(), range).await.map_err(of_index),
        }
    }

    /// The entries of a key in the lookup: the resources with a URN, or the deleted one. At most one read.
    pub(in crate::services) async fn entries(&self, ctx: &Context, key: Key) -> Result<Vec<Entry>, Error> {
        let blocks = self.directory.lookup_of(key);
        let mut walk = self.walk(ctx, blocks).await?;
        let mut found = Vec::new();
        while let Some((block, raw)) = walk.next().await? {
            let entries = entries_in(block, &raw).map_err(|error| broken(self.name(), &error))?;
            found.extend(entries.into_iter().filter(|entry| entry.key == key));
        }
        Ok(found)
    }
}

/// Blocks that are read one after the other.
pub(in crate::services) struct Walk<'a> {
    name: String,
    blocks: std::slice::Iter<'a, Block>,
    reading: Reading,
}

impl<'a> Walk<'a> {
    /// The next block, checked and inflated.
    pub(in crate::services) async fn next(&mut self) -> Result<Option<(&'a Block, Vec<u8>)>, Error> {
        self.next_with(|_| true).await
    }

    /// The next of the wanted blocks.
    pub(in crate::services) async fn next_with(
        &mut self,
        is_wanted: impl Fn(&Block) -> bool,
    ) -> Result<Option<(&'a Block, Vec<u8>)>, Error> {
        let (block, compressed) = loop {
            let Some(block) = self.blocks.next() else { return Ok(None) };
            let compressed = self.reading.next(&self.name, block.bytes as usize).await.map_err(of_index)?;
            if is_wanted(block) {
                break (block, compressed);
            }
        };
        let name = self.name.clone();
        let (of, bytes) = (block.clone(), block.bytes_raw as usize);
        let inflate = move || inflate(&of, &compressed).map_err(|error| broken(&name, &error));
        let raw = match bytes > SMALL_BYTES_MAX {
            true => work::on(bytes, inflate).await?,
            false => {
                // A walk through many short blocks lets other requests in between.
                tokio::task::yield_now().await;
                inflate()?
            }
        };
        Ok(Some((block, raw)))
    }

    /// The error for a block whose content does not read back.
    pub(in crate::services) fn broken(&self, damaged: Damaged) -> Error {
        broken(&self.name, &damaged)
    }
}

/// A part of a blob that is being read.
pub(in crate::services) struct Reading {
    stream: BoxStream<'static, Result<Bytes, PortError>>,
    left: Bytes,
}

impl Reading {
    fn of(bytes: Bytes) -> Self {
        Self { stream: stream::empty().boxed(), left: bytes }
    }

    pub(in crate::services) async fn open(
        ctx: &Context,
        blob: &str,
        range: Range<u64>,
    ) -> Result<Self, Error> {
        let parsed = key(blob)?;
        let found = retry(ctx, || ctx.blobs.get_range(&parsed, range.clone())).await?;
        let found = found.ok_or_else(|| Error::Broken(format!("the blob {blob} is missing")))?;
        Ok(Self { stream: found.stream, left: Bytes::new() })
    }

    /// A part that is read as a whole, whose bytes are reserved: it is read again if it breaks off.
    pub(in crate::services) async fn whole(
        ctx: &Context,
        blob: &str,
        range: Range<u64>,
    ) -> Result<Self, Error> {
        read_range(ctx, blob, range).await.map(Self::of)
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, Error> {
        Ok(self.stream.next().await.transpose()?)
    }

    /// The next bytes, of this number.
    pub(in crate::services) async fn next(&mut self, blob: &str, length: usize) -> Result<Bytes, Error> {
        let mut joined = BytesMut::new();
        loop {
            if joined.is_empty() && self.left.len() >= length {
                return Ok(self.left.split_to(length));
            }
            let missing = length - joined.len();
            joined.extend_from_slice(&self.left.split_to(missing.min(self.left.len())));
            if joined.len() == length {
                return Ok(joined.freeze());
            }
            match self.piece().await? {
                Some(piece) => self.left = piece,
                None => return Err(Error::Broken(format!("the blob {blob} is too short"))),
            }
        }
    }
}

/// The text of a resource in a snapshot, checked against the hash in its entry. The snapshot is inflated up to the end of
/// the text, piece by piece. One read.
pub(in crate::services) async fn resource_text(
    ctx: &Context,
    snapshot: &Snapshot,
    entry: &Entry,
) -> Result<String, Error> {
    let bytes = usize::try_from(entry.bytes).unwrap_or(usize::MAX);
    // The text, what is parsed of it, and the masked parts; and the pieces on the way.
    account::take(bytes.saturating_mul(4).saturating_add(2 * PIECE_BYTES)).await?;
    let mut reading = Reading::open(ctx, &snapshot.blob, 0..snapshot.bytes_gzip).await?;
    let mut decoder =
        GzDecoder::new(Window { skip: entry.offset, length: bytes, found: Vec::with_capacity(bytes) });
    let broken = |why: &str| Error::Broken(format!("the blob {}: {why}", snapshot.blob));
    while decoder.get_ref().found.len() < bytes {
        let Some(piece) = reading.piece().await? else { return Err(broken("a resource is missing")) };
        let inflate = move || {
            // The window refuses what is behind its end, which is not read.
            let written = decoder.write_all(&piece).and_then(|()| decoder.flush());
            let is_whole = decoder.get_ref().found.len() == bytes;
            match written {
                Err(error) if !is_whole => {
                    Err(Error::Broken(format!("stored bytes do not inflate: {error}")))
                }
                _ => Ok(decoder),
            }
        };
        decoder = work::on(SMALL_BYTES_MAX, inflate).await?;
    }
    let text = std::mem::take(&mut decoder.get_mut().found);
    let text = String::from_utf8(text).map_err(|_| broken("a resource is not UTF-8"))?;
    if text_hash(&text) != Some(entry.hash) {
        return Err(broken("a resource does not match its hash in the index"));
    }
    Ok(text)
}

/// Keeps a part of what is written, and refuses what comes after a write that completed it.
struct Window {
    skip: u64,
    length: usize,
    found: Vec<u8>,
}

impl Write for Window {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.found.len() == self.length {
            return Err(std::io::Error::other("the part is complete"));
        }
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(bytes.len());
        self.skip -= skipped as u64;
        let rest = bytes.get(skipped..).unwrap_or_default();
        let taken = rest.len().min(self.length - self.found.len());
        self.found.extend_from_slice(rest.get(..taken).unwrap_or_default());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Whether the blob of an index is there, with the bytes that were stored. Reads it in chunks.
pub(in crate::services) async fn is_whole(
    ctx: &Context,
    snapshot: &Snapshot,
    index: &SnapshotIndex,
) -> Result<bool, Error> {
    let found = hash_blob(ctx, &key(&snapshot.index_blob(index))?).await?;
    Ok(found.is_some_and(|sha256| sha256 == index.sha256))
}

/// Checks that an index is complete and describes its snapshot: every block, and the number of resources.
///
/// # Errors
/// [`Error::Broken`]; those of the ports.
pub(in crate::services) async fn check(
    ctx: &Context,
    snapshot: &Snapshot,
    index: &SnapshotIndex,
) -> Result<(), Error> {
    let blob = snapshot.index_blob(index);
    let wrong = |words: &str| Error::Broken(format!("the index in {blob}: {words}"));
    match hash_blob(ctx, &key(&blob)?).await? {
        None => return Err(Error::Broken(format!("the blob {blob} is missing"))),
        Some(sha256) if sha256 != index.sha256 => return Err(wrong("it does not match its hash")),
        Some(_) => {}
    }
    let Some(opened) = open(ctx, index.since, snapshot, false).await? else { return Ok(()) };
    let all = 0..u32::MAX;
    let mut walk = opened.walk(ctx, opened.directory.rows(&all)).await?;
    while let Some((block, raw)) = walk.next().await? {
        rows_in(block, &raw).map_err(|damaged| walk.broken(damaged))?;
    }
    let mut walk = opened.walk(ctx, opened.directory.edges(&all)).await?;
    while let Some((block, raw)) = walk.next().await? {
        edges_in(block, &raw, |_| ()).map_err(|damaged| walk.broken(damaged))?;
    }
    let mut walk = opened.walk(ctx, opened.directory.lookup()).await?;
    while let Some((block, raw)) = walk.next().await? {
        entries_in(block, &raw).map_err(|damaged| walk.broken(damaged))?;
    }
    match u64::from(opened.directory.row_count()) == snapshot.resource_count {
        true => Ok(()),
        false => Err(wrong("its number of resources differs from the one of the snapshot")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_keeps_its_part_and_ends_the_work_behind_it() {
        let mut window = Window { skip: 3, length: 4, found: Vec::new() };
        for part in ["ab", "cde", "fghi"] {
            assert_eq!(window.write(part.as_bytes()).unwrap(), part.len());
        }
        assert_eq!(window.found, b"defg");
        assert!(window.write(b"j").is_err());
    }
}

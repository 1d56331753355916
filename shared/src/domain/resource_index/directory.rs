//! Where the blocks of an index are, and what is in them.

use std::ops::Range;

use sha2::{Digest, Sha256};

use super::codec::{Taker, decompress, put_number};
use super::hash::Key;
use super::model::{Damaged, Edge, EdgeKind, Entry, Flags, Row};

/// The first bytes of a directory, with its format.
const MAGIC: [u8; 5] = *b"SWRX\x01";

/// The bytes of a hash that the directory has of each block.
const HASH_BYTES: usize = 16;

/// Where the sections of an index are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Places {
    /// The length of the lookup, which comes first.
    pub lookup_bytes: u64,
    /// The length of the directory, which comes next.
    pub directory_bytes: u64,
    /// The length of the blocks with the first rows.
    pub first_rows_bytes: u64,
    /// The length of all rows, which come next.
    pub rows_bytes: u64,
    /// The length of the edges, which come last.
    pub edges_bytes: u64,
}

impl Places {
    /// The directory, and the lookup in front of it.
    pub fn lookup_and_directory(&self) -> Range<u64> {
        0..self.lookup_bytes.saturating_add(self.directory_bytes)
    }

    /// The directory.
    pub fn directory(&self) -> Range<u64> {
        self.lookup_bytes..self.lookup_and_directory().end
    }

    /// The directory, and the first rows after it.
    pub fn directory_and_first_rows(&self) -> Range<u64> {
        let end = self.lookup_and_directory().end.saturating_add(self.first_rows_bytes);
        self.lookup_bytes..end
    }
}

/// A block of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The number of its first item: a row, or an entry of the lookup.
    pub first: u32,
    /// The number of items.
    pub count: u32,
    /// Where it begins in the blob.
    pub at: u64,
    /// Its length in the blob.
    pub bytes: u32,
    /// Its length when it is inflated.
    pub bytes_raw: u32,
    /// The key of its first entry, in the lookup.
    key: Key,
    hash: [u8; HASH_BYTES],
}

impl Block {
    /// The items.
    pub fn items(&self) -> Range<u32> {
        self.first..self.first.saturating_add(self.count)
    }

    /// The bytes in the blob.
    pub fn range(&self) -> Range<u64> {
        self.at..self.at.saturating_add(u64::from(self.bytes))
    }
}

/// The blocks of a section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Section(Vec<Block>);

impl Section {
    pub(super) fn add(&mut self, items: usize, block: &[u8], bytes_raw: usize, key: Key) {
        let (first, at) = self.0.last().map_or((0, 0), |last| (last.items().end, last.range().end));
        let small = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        self.0.push(Block {
            first,
            count: small(items),
            at,
            bytes: small(block.len()),
            bytes_raw: small(bytes_raw),
            key,
            hash: hash_of(block),
        });
    }

    /// The length of the blocks that hold this many items.
    pub(super) fn bytes_of_first(&self, items: u32) -> u64 {
        let within = self.0.partition_point(|block| block.first < items);
        self.0.get(..within).and_then(<[Block]>::last).map_or(0, |last| last.range().end)
    }

    fn items(&self) -> u32 {
        self.0.last().map_or(0, |last| last.items().end)
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_number(out, self.0.len() as u64);
        for block in &self.0 {
            for number in [block.count, block.bytes, block.bytes_raw] {
                put_number(out, u64::from(number));
            }
            out.extend_from_slice(&block.key.to_be_bytes());
            out.extend_from_slice(&block.hash);
        }
    }

    fn read(taker: &mut Taker<'_>, mut at: u64) -> Result<Self, Damaged> {
        let (mut blocks, mut first) = (Vec::new(), 0_u32);
        for _ in 0..taker.number()? {
            let (count, bytes, bytes_raw) = (taker.small()?, taker.small()?, taker.small()?);
            let (key, hash) = (Key::from_be_bytes(taker.bytes()?), taker.bytes()?);
            blocks.push(Block { first, count, at, bytes, bytes_raw, key, hash });
            first = first.checked_add(count).ok_or(Damaged("it has too many rows"))?;
            at = at.saturating_add(u64::from(bytes));
        }
        Ok(Self(blocks))
    }

    /// The blocks with these items.
    fn with(&self, items: &Range<u32>) -> &[Block] {
        let start = self.0.partition_point(|block| block.items().end <= items.start);
        let end = self.0.partition_point(|block| block.first < items.end);
        self.0.get(start..end).unwrap_or_default()
    }
}

pub(super) fn write_directory(version: u64, since: u64, sections: [&Section; 3]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_number(&mut out, version);
    put_number(&mut out, since);
    for section in sections {
        section.write(&mut out);
    }
    out
}

/// The directory of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// The version that was indexed.
    pub version: u64,
    /// The version from which on changes are known.
    pub since: u64,
    lookup: Section,
    rows: Section,
    edges: Section,
}

impl Directory {
    /// Reads the directory of an index with these sections.
    ///
    /// # Errors
    /// [`Damaged`], also for the format of a newer program.
    pub fn parse(bytes: &[u8], places: &Places) -> Result<Self, Damaged> {
        let mut taker = Taker::new(bytes);
        if taker.bytes::<5>()? != MAGIC {
            return Err(Damaged("its format is not known: a newer version of the server may have made it"));
        }
        let (version, since) = (taker.number()?, taker.number()?);
        let rows_at = places.lookup_and_directory().end;
        let lookup = Section::read(&mut taker, 0)?;
        let rows = Section::read(&mut taker, rows_at)?;
        let edges = Section::read(&mut taker, rows_at.saturating_add(places.rows_bytes))?;
        if !taker.is_empty() || rows.items() != edges.items() {
            return Err(Damaged("its directory is wrong"));
        }
        Ok(Self { version, since, lookup, rows, edges })
    }

    /// The number of resources.
    pub fn row_count(&self) -> u32 {
        self.rows.items()
    }

    /// The blocks with these rows.
    pub fn rows(&self, rows: &Range<u32>) -> &[Block] {
        self.rows.with(rows)
    }

    /// The blocks with the edges from these rows.
    pub fn edges(&self, rows: &Range<u32>) -> &[Block] {
        self.edges.with(rows)
    }

    /// All blocks of the lookup.
    pub fn lookup(&self) -> &[Block] {
        &self.lookup.0
    }

    /// The block with the first entry of a key, and the next one if it also may have it.
    pub fn lookup_of(&self, key: Key) -> &[Block] {
        let blocks = &self.lookup.0;
        let next = blocks.partition_point(|block| block.key < key);
        let end = if blocks.get(next).is_some_and(|block| block.key == key) { next + 1 } else { next };
        blocks.get(next.saturating_sub(1)..end).unwrap_or_default()
    }
}

fn hash_of(bytes: &[u8]) -> [u8; HASH_BYTES] {
    Sha256::digest(bytes).first_chunk().copied().unwrap_or_default()
}

/// Checks and inflates a block.
///
/// # Errors
/// [`Damaged`].
pub fn inflate(block: &Block, compressed: &[u8]) -> Result<Vec<u8>, Damaged> {
    if hash_of(compressed) != block.hash {
        return Err(Damaged("a block does not match its hash"));
    }
    decompress(compressed, block.bytes_raw as usize)
}

/// The rows of an inflated block.
///
/// # Errors
/// [`Damaged`].
pub fn rows_in<'a>(block: &Block, raw: &'a [u8]) -> Result<Vec<Row<&'a str>>, Damaged> {
    let mut taker = Taker::new(raw);
    let row = |_| -> Result<Row<&'a str>, Damaged> {
        Ok(Row {
            urn: taker.text()?,
            own_type: taker.text()?,
            id: taker.text()?,
            provider: taker.text()?,
            parent_urn: taker.text()?,
            parent: taker.some()?,
            depth: taker.small()?,
            children: taker.small()?,
            below: taker.small()?,
            flags: Flags(u8::try_from(taker.small()?).map_err(|_| Damaged("a flag is not known"))?),
            changed: taker.number()?,
        })
    };
    let rows = (0..block.count).map(row).collect::<Result<Vec<_>, Damaged>>()?;
    if taker.is_empty() { Ok(rows) } else { Err(Damaged("a block is too long")) }
}

/// The entries of an inflated block of the lookup.
///
/// # Errors
/// [`Damaged`].
pub fn entries_in(block: &Block, raw: &[u8]) -> Result<Vec<Entry>, Damaged> {
    let mut taker = Taker::new(raw);
    let entry = |_| -> Result<Entry, Damaged> {
        Ok(Entry {
            key: Key::from_be_bytes(taker.bytes()?),
            row: taker.some()?,
            hash: taker.bytes()?,
            changed: taker.number()?,
            before: taker.number()?,
            offset: taker.number()?,
            bytes: taker.number()?,
        })
    };
    let entries = (0..block.count).map(entry).collect::<Result<Vec<_>, Damaged>>()?;
    if taker.is_empty() { Ok(entries) } else { Err(Damaged("a block is too long")) }
}

/// Reports the edges of an inflated block, by the row that they come from.
///
/// # Errors
/// [`Damaged`].
pub fn edges_in(block: &Block, raw: &[u8], mut each: impl FnMut(Edge)) -> Result<(), Damaged> {
    let mut taker = Taker::new(raw);
    for from in block.items() {
        for _ in 0..taker.number()? {
            let [kind] = taker.bytes()?;
            let kind = EdgeKind::ALL.get(usize::from(kind)).ok_or(Damaged("a kind of edge is not known"))?;
            each(Edge { from, to: taker.small()?, kind: *kind });
        }
    }
    if taker.is_empty() { Ok(()) } else { Err(Damaged("a block is too long")) }
}

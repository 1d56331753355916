//! Makes the index of a version from its resources and the index of the version before.

use super::codec::{compress, put_number, put_some, put_text};
use super::directory::{Places, Section, write_directory};
use super::hash::{Key, TextHash};
use super::model::{DELETED_MAX, Edge, Entry, FIRST_ROWS, Row};
use super::scan::{Scanned, ScannedRow};

/// Rows of a block, at most.
const ROWS_PER_BLOCK: usize = 256;

/// Entries of a block of the lookup, at most.
const ENTRIES_PER_BLOCK: usize = 1024;

/// Rows of a block of edges, at most.
const EDGE_ROWS_PER_BLOCK: usize = 1024;

/// Bytes of a block before it is compressed: the item that reaches this is the last.
const BLOCK_BYTES: usize = 64 << 10;

/// What the index of the version before knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Previous {
    /// The version from which on changes are known.
    pub since: u64,
    /// By key.
    pub entries: Vec<PreviousEntry>,
}

/// The part of an [`Entry`] that the next version needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousEntry {
    /// The hash of the URN.
    pub key: Key,
    /// Whether the version has the resource.
    pub is_there: bool,
    /// The hash of its text.
    pub hash: TextHash,
    /// The last version that changed it.
    pub changed: u64,
    /// The version that changed it before.
    pub before: u64,
}

impl From<Entry> for PreviousEntry {
    fn from(entry: Entry) -> Self {
        let Entry { key, row, hash, changed, before, .. } = entry;
        Self { key, is_there: row.is_some(), hash, changed, before }
    }
}

/// An index, ready to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The bytes of the blob. The same input results in the same bytes.
    pub bytes: Vec<u8>,
    /// Where its sections are.
    pub places: Places,
    /// The number of entries in the lookup, with those of deleted resources.
    pub entries: u64,
    /// The version from which on changes are known.
    pub since: u64,
}

/// Makes the index of a version. Without an index of the version before, every resource counts as changed in this one.
pub fn build(scanned: Scanned, version: u64, previous: Option<&Previous>) -> Built {
    let Scanned { mut rows, edges } = scanned;
    let since = previous.map_or(version, |previous| previous.since);
    let entries = entries(&mut rows, version, previous.map(|previous| previous.entries.as_slice()));
    let mut lookup = Writer::default();
    for entry in &entries {
        lookup.add(ENTRIES_PER_BLOCK, entry.key, |out| write_entry(out, entry));
    }
    let mut listed = Writer::default();
    for row in &rows {
        listed.add(ROWS_PER_BLOCK, 0, |out| write_row(out, &row.row));
    }
    let mut referring = Writer::default();
    let mut rest = edges.as_slice();
    for row in (0_u32..).take(rows.len()) {
        let own = rest.partition_point(|edge| edge.from <= row);
        let (own, others) = rest.split_at(own);
        rest = others;
        referring.add(EDGE_ROWS_PER_BLOCK, 0, |out| write_edges(out, own));
    }
    let (lookup, listed, referring) = (lookup.end(), listed.end(), referring.end());
    let directory = write_directory(version, since, [&lookup.0, &listed.0, &referring.0]);
    let places = Places {
        lookup_bytes: lookup.1.len() as u64,
        directory_bytes: directory.len() as u64,
        first_rows_bytes: listed.0.bytes_of_first(FIRST_ROWS as u32),
        rows_bytes: listed.1.len() as u64,
        edges_bytes: referring.1.len() as u64,
    };
    let bytes = [lookup.1, directory, listed.1, referring.1].concat();
    Built { bytes, places, entries: entries.len() as u64, since }
}

/// The entries of all resources and of deleted ones, by key. Also notes in each row which version changed it.
fn entries(rows: &mut [ScannedRow], version: u64, previous: Option<&[PreviousEntry]>) -> Vec<Entry> {
    let mut order: Vec<u32> = (0..u32::try_from(rows.len()).unwrap_or(u32::MAX)).collect();
    // Several resources may have one URN: the first is compared with the first, as in a difference of deployments.
    order.sort_unstable_by_key(|row| rows.get(*row as usize).map(|row| (row.key, row.place)));
    let mut before = previous.unwrap_or_default().iter().peekable();
    let mut entries: Vec<Entry> = Vec::with_capacity(rows.len());
    let mut deleted: Vec<Entry> = Vec::new();
    let mut last = None;
    for row in order {
        let Some(scanned) = rows.get_mut(row as usize) else { continue };
        let key = scanned.key;
        while let Some(gone) = before.next_if(|known| known.key < key) {
            deleted.extend(gone_entry(gone, version, last));
        }
        let known = before.next_if(|known| known.key == key);
        last = Some(key);
        let (changed, earlier) = match known {
            Some(known) if known.is_there && known.hash == scanned.hash => (known.changed, known.before),
            Some(known) => (version, known.changed),
            None => (version, 0),
        };
        scanned.row.changed = changed;
        entries.push(Entry {
            key,
            row: Some(row),
            hash: scanned.hash,
            changed,
            before: earlier,
            offset: scanned.offset,
            bytes: scanned.bytes,
        });
    }
    for gone in before {
        deleted.extend(gone_entry(gone, version, last));
    }
    deleted.dedup_by_key(|entry| entry.key);
    if deleted.len() > DELETED_MAX {
        deleted.sort_unstable_by_key(|entry| (std::cmp::Reverse(entry.changed), entry.key));
        deleted.truncate(DELETED_MAX);
    }
    entries.extend(deleted);
    // Stable: of equal keys, the order above stays.
    entries.sort_by_key(|entry| entry.key);
    entries
}

/// The entry of a resource that the version lacks. A resource that had waited for its deletion is forgotten, and so is
/// one of several with the same URN, as long as one of these is left.
fn gone_entry(gone: &PreviousEntry, version: u64, last: Option<Key>) -> Option<Entry> {
    let is_waiting = gone.key & 1 == 1;
    if is_waiting || last == Some(gone.key) {
        return None;
    }
    let (changed, before) = match gone.is_there {
        true => (version, gone.changed),
        false => (gone.changed, gone.before),
    };
    Some(Entry { key: gone.key, row: None, hash: [0; 16], changed, before, offset: 0, bytes: 0 })
}

fn write_entry(out: &mut Vec<u8>, entry: &Entry) {
    out.extend_from_slice(&entry.key.to_be_bytes());
    put_some(out, entry.row);
    out.extend_from_slice(&entry.hash);
    for number in [entry.changed, entry.before, entry.offset, entry.bytes] {
        put_number(out, number);
    }
}

fn write_row(out: &mut Vec<u8>, row: &Row) {
    for text in [&row.urn, &row.own_type, &row.id, &row.provider, &row.parent_urn] {
        put_text(out, text);
    }
    put_some(out, row.parent);
    for number in [row.depth, row.children, row.below, u32::from(row.flags.0)] {
        put_number(out, u64::from(number));
    }
    put_number(out, row.changed);
}

fn write_edges(out: &mut Vec<u8>, edges: &[Edge]) {
    put_number(out, edges.len() as u64);
    for edge in edges {
        out.push(edge.kind as u8);
        put_number(out, u64::from(edge.to));
    }
}

/// Writes a section block by block.
#[derive(Default)]
struct Writer {
    section: Section,
    bytes: Vec<u8>,
    raw: Vec<u8>,
    items: usize,
    key: Key,
}

impl Writer {
    fn add(&mut self, items_max: usize, key: Key, write: impl FnOnce(&mut Vec<u8>)) {
        if self.items == 0 {
            self.key = key;
        }
        write(&mut self.raw);
        self.items += 1;
        if self.items >= items_max || self.raw.len() >= BLOCK_BYTES {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        if self.items > 0 {
            let block = compress(&self.raw);
            self.section.add(self.items, &block, self.raw.len(), self.key);
            self.bytes.extend_from_slice(&block);
            self.raw.clear();
            self.items = 0;
        }
    }

    fn end(mut self) -> (Section, Vec<u8>) {
        self.end_block();
        (self.section, self.bytes)
    }
}

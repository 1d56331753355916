//! Makes the index of a version from its resources and the index of the version before.

use std::borrow::Cow;
use std::cmp::Reverse;

use super::codec::{put_number, put_some, put_text};
use super::directory::{Places, write_directory};
use super::hash::{Key, TextHash};
use super::model::{DELETED_MAX, Entry, FIRST_ROWS, Row};
use super::scan::{Scanned, ScannedRow};
use super::writer::Writer;

/// Rows of a block, at most.
const ROWS_PER_BLOCK: usize = 256;

/// Entries of a block of the lookup, at most.
const ENTRIES_PER_BLOCK: usize = 1024;

/// The memory of the texts while an index is made, as a multiple of the deployment's text: that text, and the blocks of
/// rows and edges, which contain parts of it, before and after they are joined.
pub const TEXT_FACTOR: usize = 3;

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
pub fn build(scanned: Scanned<'_>, version: u64, previous: Option<&Previous>) -> Built {
    let Scanned { mut rows, edges } = scanned;
    let since = previous.map_or(version, |previous| previous.since);
    let known = previous.map(|previous| previous.entries.as_slice()).unwrap_or_default();
    let (entries, deleted) = entries(&mut rows, version, known);
    let count = entries.len() as u64 + deleted.len() as u64;
    let mut lookup = Writer::default();
    let mut write = |entry: &Entry| lookup.add(ENTRIES_PER_BLOCK, entry.key, |out| write_entry(out, entry));
    let mut gone = deleted.iter().peekable();
    for entry in &entries {
        while let Some(gone) = gone.next_if(|gone| gone.key < entry.key) {
            write(gone);
        }
        write(entry);
    }
    gone.for_each(write);
    drop((entries, deleted));
    let mut listed = Writer::default();
    for row in &rows {
        listed.add(ROWS_PER_BLOCK, 0, |out| write_row(out, &row.row));
    }
    // Before the blocks are joined.
    drop(rows);
    let (lookup, listed) = (lookup.end(), listed.end());
    let directory = write_directory(version, since, [&lookup.section, &listed.section, &edges.section]);
    let places = Places {
        lookup_bytes: lookup.bytes() as u64,
        directory_bytes: directory.len() as u64,
        first_rows_bytes: listed.section.bytes_of_first(FIRST_ROWS as u32),
        rows_bytes: listed.bytes() as u64,
        edges_bytes: edges.bytes() as u64,
    };
    let total = lookup.bytes() + directory.len() + listed.bytes() + edges.bytes();
    let mut bytes = Vec::with_capacity(total);
    lookup.append_to(&mut bytes);
    bytes.extend_from_slice(&directory);
    listed.append_to(&mut bytes);
    edges.append_to(&mut bytes);
    Built { bytes, places, entries: count, since }
}

/// The entries of all resources, and those of deleted ones, each by key. Also notes in each row which version changed it.
fn entries(
    rows: &mut [ScannedRow<'_>],
    version: u64,
    previous: &[PreviousEntry],
) -> (Vec<Entry>, Vec<Entry>) {
    let mut order: Vec<u32> = (0..u32::try_from(rows.len()).unwrap_or(u32::MAX)).collect();
    // Several resources may have one URN: the first is compared with the first, as in a difference of deployments.
    order.sort_unstable_by_key(|row| rows.get(*row as usize).map(|row| (row.key, row.place)));
    let mut before = previous.iter().peekable();
    let mut entries: Vec<Entry> = Vec::with_capacity(rows.len());
    let mut deleted = Deleted::of_at_most(previous.len());
    let mut last = None;
    for row in order {
        let Some(scanned) = rows.get_mut(row as usize) else { continue };
        let key = scanned.key;
        while let Some(gone) = before.next_if(|known| known.key < key) {
            deleted.add(gone_entry(gone, version, last));
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
        deleted.add(gone_entry(gone, version, last));
    }
    (entries, deleted.end())
}

/// The entries of deleted resources, of which those that were deleted last are kept.
struct Deleted {
    entries: Vec<Entry>,
    last: Option<Key>,
}

impl Deleted {
    fn of_at_most(count: usize) -> Self {
        Self { entries: Vec::with_capacity(count.min(2 * DELETED_MAX)), last: None }
    }

    fn add(&mut self, gone: Option<Entry>) {
        let Some(gone) = gone else { return };
        // Of several with one URN, the first counts.
        if self.last.replace(gone.key) == Some(gone.key) {
            return;
        }
        self.entries.push(gone);
        if self.entries.len() >= 2 * DELETED_MAX {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if self.entries.len() > DELETED_MAX {
            self.entries.sort_unstable_by_key(|entry| (Reverse(entry.changed), entry.key));
            self.entries.truncate(DELETED_MAX);
        }
    }

    fn end(mut self) -> Vec<Entry> {
        self.forget_oldest();
        self.entries.sort_unstable_by_key(|entry| entry.key);
        self.entries
    }
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

fn write_row(out: &mut Vec<u8>, row: &Row<Cow<'_, str>>) {
    for text in [&row.urn, &row.own_type, &row.id, &row.provider, &row.parent_urn] {
        put_text(out, text);
    }
    put_some(out, row.parent);
    for number in [row.depth, row.children, row.below, u32::from(row.flags.0)] {
        put_number(out, u64::from(number));
    }
    put_number(out, row.changed);
}

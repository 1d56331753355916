//! Adapters that keep everything in memory, for tests.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};

use super::cursor::{cursor_behind, item_behind};
use super::key_range::sort_range;
use super::master_key::KeyRing;
use crate::ports::{
    Blob, BlobKey, Blobs, CommitError, Cursor, DataKey, Expect, Ids, Inventory, Item, ItemKey, KeyContext,
    Keys, KeysError, Ledger, Order, Page, Part, PortError, Query, Refusal, Wrap, WrappedKey, Write,
    WriteAction, verify_writes,
};

/// Bytes of values in one page, unless its only item is larger. Small, so that tests meet the pages of
/// a store that limits them.
const PAGE_BYTES_MAX: usize = 1_000_000;

/// Items in one part of an inventory. Small, so that every test meets more than one part.
const PART_ITEMS_MAX: usize = 7;

/// A ledger in memory. Clones are handles to the same items.
#[derive(Debug, Clone)]
pub struct MemoryLedger {
    partitions: Arc<Mutex<HashMap<String, Partition>>>,
    inline_bytes_max: usize,
}

/// Items by sort key, in the order of its bytes.
type Partition = BTreeMap<Vec<u8>, Item>;

impl MemoryLedger {
    /// An empty ledger that takes values of up to 16 KB inline.
    pub fn new() -> Self {
        Self::with_inline_bytes_max(16 * 1024)
    }

    /// An empty ledger with another limit, so that a test chooses which values go into blobs.
    pub fn with_inline_bytes_max(inline_bytes_max: usize) -> Self {
        Self { partitions: Arc::default(), inline_bytes_max }
    }

    /// All items, ordered by key, for a test to compare.
    pub fn items(&self) -> Vec<Item> {
        let mut items: Vec<Item> =
            lock(&self.partitions).values().flat_map(BTreeMap::values).cloned().collect();
        items.sort_by(|a, b| a.key.cmp(&b.key));
        items
    }
}

impl Default for MemoryLedger {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Inventory for (MemoryLedger, MemoryBlobs) {
    async fn items(&self, prefix: &str, from: Option<&Cursor>) -> Result<Part<Item>, PortError> {
        let after = from.map(item_behind).transpose()?;
        let mut found = self.0.items();
        found.retain(|item| {
            item.key.partition.starts_with(prefix) && after.as_ref().is_none_or(|after| item.key > *after)
        });
        let more = found.len() > PART_ITEMS_MAX;
        found.truncate(PART_ITEMS_MAX);
        let next = found.last().filter(|_| more).map(|item| cursor_behind(&item.key));
        Ok(Part { found, next })
    }

    async fn blobs(&self, from: Option<&Cursor>) -> Result<Part<BlobKey>, PortError> {
        let mut found = self.1.keys();
        found.retain(|key| from.is_none_or(|Cursor(after)| key.as_str() > after.as_str()));
        let more = found.len() > PART_ITEMS_MAX;
        found.truncate(PART_ITEMS_MAX);
        let next = found.last().filter(|_| more).map(|key| Cursor(key.to_string()));
        Ok(Part { found, next })
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        Ok(find(&lock(&self.partitions), key).cloned())
    }

    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        let partitions = lock(&self.partitions);
        let range = sort_range(query);
        let mut page = Page { items: Vec::new(), more: false };
        let Some(partition) = partitions.get(&query.partition).filter(|_| range.start < range.end) else {
            return Ok(page);
        };
        let in_range = partition.range(range).map(|(_, item)| item);
        let mut page_bytes = 0;
        let mut take = |item: &Item| {
            page_bytes += item.value.len();
            page.more = page.items.len() >= query.limit.max(1)
                || (page_bytes > PAGE_BYTES_MAX && !page.items.is_empty());
            if !page.more {
                page.items.push(item.clone());
            }
            !page.more
        };
        match query.order {
            Order::Ascending => in_range.take_while(|item| take(item)).for_each(drop),
            Order::Descending => in_range.rev().take_while(|item| take(item)).for_each(drop),
        }
        Ok(page)
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        verify_writes(&writes)?;
        let mut partitions = lock(&self.partitions);
        for (index, write) in writes.iter().enumerate() {
            let current = find(&partitions, &write.key);
            let holds = match write.expect {
                Expect::Any => true,
                Expect::Absent => current.is_none(),
                Expect::Revision(revision) => current.is_some_and(|item| item.revision == revision),
            };
            if !holds {
                return Err(CommitError::Refused(Refusal { index, current: current.cloned() }));
            }
        }
        for Write { key, action, .. } in writes {
            match action {
                WriteAction::Put { revision, value, expires } => {
                    let partition = partitions.entry(key.partition.clone()).or_default();
                    partition.insert(key.sort.clone().into_bytes(), Item { key, revision, value, expires });
                }
                WriteAction::Delete => {
                    if let Some(partition) = partitions.get_mut(&key.partition) {
                        partition.remove(key.sort.as_bytes());
                    }
                }
                WriteAction::Check => {}
            }
        }
        Ok(())
    }

    fn inline_bytes_max(&self) -> usize {
        self.inline_bytes_max
    }
}

fn find<'a>(partitions: &'a HashMap<String, Partition>, key: &ItemKey) -> Option<&'a Item> {
    partitions.get(&key.partition)?.get(key.sort.as_bytes())
}

/// Blobs in memory. Clones are handles to the same blobs.
#[derive(Debug, Clone, Default)]
pub struct MemoryBlobs {
    blobs: Arc<Mutex<BTreeMap<BlobKey, Bytes>>>,
}

impl MemoryBlobs {
    /// A store without blobs.
    pub fn new() -> Self {
        Self::default()
    }

    /// All keys in order, for a test to compare.
    pub fn keys(&self) -> Vec<BlobKey> {
        lock(&self.blobs).keys().cloned().collect()
    }
}

#[async_trait]
impl Blobs for MemoryBlobs {
    async fn put(&self, key: &BlobKey, body: Bytes) -> Result<(), PortError> {
        lock(&self.blobs).insert(key.clone(), body);
        Ok(())
    }

    async fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError> {
        Ok(lock(&self.blobs)
            .get(key)
            .cloned()
            .map(|body| Blob { bytes_total: body.len() as u64, stream: stream::iter([Ok(body)]).boxed() }))
    }

    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError> {
        Ok(lock(&self.blobs).get(key).map(|body| {
            let within = |at: u64| usize::try_from(at).map_or(body.len(), |at| at.min(body.len()));
            let (start, end) = (within(range.start), within(range.end));
            let part = body.slice(start..end.max(start));
            Blob { bytes_total: part.len() as u64, stream: stream::iter([Ok(part)]).boxed() }
        }))
    }

    async fn delete(&self, key: &BlobKey) -> Result<(), PortError> {
        lock(&self.blobs).remove(key);
        Ok(())
    }
}

/// Data keys under master keys that exist only in this process. Clones share them.
#[derive(Clone)]
pub struct MemoryKeys {
    masters: Arc<Mutex<Masters>>,
    ids: Arc<dyn Ids>,
}

struct Masters {
    /// The newest first.
    keys: Vec<[u8; 32]>,
    ring: KeyRing,
}

impl MemoryKeys {
    /// Draws a new master key from `ids`, which also gives the data keys.
    pub fn new(ids: Arc<dyn Ids>) -> Self {
        let masters = Masters { keys: Vec::new(), ring: KeyRing::new([]) };
        let new = Self { masters: Arc::new(Mutex::new(masters)), ids };
        new.add_master();
        new
    }

    /// Draws a master key that wraps from now on; the older ones still open.
    pub fn add_master(&self) {
        let mut bytes = [0; 32];
        self.ids.fill(&mut bytes);
        self.change(|keys| keys.insert(0, bytes));
    }

    /// Forgets all master keys but the newest.
    pub fn forget_old_masters(&self) {
        self.change(|keys| keys.truncate(1));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<[u8; 32]>)) {
        let mut masters = lock(&self.masters);
        change(&mut masters.keys);
        masters.ring = KeyRing::new(&masters.keys);
    }
}

impl fmt::Debug for MemoryKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryKeys(..)")
    }
}

#[async_trait]
impl Keys for MemoryKeys {
    async fn generate(&self, context: &KeyContext) -> Result<(DataKey, WrappedKey), KeysError> {
        lock(&self.masters).ring.generate(self.ids.as_ref(), context)
    }

    async fn unwrap(&self, wrapped: &WrappedKey, context: &KeyContext) -> Result<DataKey, KeysError> {
        lock(&self.masters).ring.unwrap(wrapped, context)
    }

    async fn rewrap(
        &self,
        wrapped: &WrappedKey,
        context: &KeyContext,
    ) -> Result<Option<WrappedKey>, KeysError> {
        lock(&self.masters).ring.rewrap(wrapped, self.ids.as_ref(), context)
    }
}

#[async_trait]
impl Wrap for MemoryKeys {
    async fn wrap(&self, key: &DataKey, context: &KeyContext) -> Result<WrappedKey, KeysError> {
        lock(&self.masters).ring.wrap(key, self.ids.as_ref(), context)
    }
}

/// The state behind a mutex. It is consistent even if a holder panicked: nothing here panics between two changes.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Stores that outlive processes, and processes that use them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use statewright_shared::adapters::aws::Names;
use statewright_shared::adapters::{
    Faults, Faulty, MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds, SteppingClock,
};
use statewright_shared::context::Context;
use statewright_shared::domain::ids::{StackId, UpdateId};
use statewright_shared::domain::update::{Status, Update, UpdateKind};
use statewright_shared::layout::{
    Content, Key, KeyPrefix, Record, Slot, Snapshot, StackHead, StackVersion, WrappedDataKey, put_bytes,
};
use statewright_shared::ports::{
    Blob, BlobKey, Blobs, Clock, CommitError, DataKey, Expect, Ids as _, Item, ItemKey, KeyContext, Keys,
    KeysError, Ledger, Order, Page, PortError, Query, Timestamp, WrappedKey, Write,
};
use statewright_shared::settings::Settings;
use statewright_tests::aws::{self, StandIn};

/// When every world begins: 2026-01-01T00:00:00Z.
const START: Timestamp = Timestamp(1_767_225_600_000_000_000);

/// The largest inline value. It is small, so that most batches and every checkpoint go into blobs too.
const INLINE_BYTES_MAX: usize = 220;

/// A ledger behind a pointer, so that any can be wrapped.
#[derive(Clone)]
pub(crate) struct AnyLedger(Arc<dyn Ledger>);

#[async_trait]
impl Ledger for AnyLedger {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        self.0.get(key).await
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.0.query(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        self.0.commit(writes).await
    }
    fn inline_bytes_max(&self) -> usize {
        INLINE_BYTES_MAX
    }
}

#[derive(Clone)]
pub(crate) struct AnyBlobs(Arc<dyn Blobs>);

#[async_trait]
impl Blobs for AnyBlobs {
    async fn put(&self, key: &BlobKey, body: Bytes) -> Result<(), PortError> {
        self.0.put(key, body).await
    }
    async fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError> {
        self.0.get(key).await
    }
    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError> {
        self.0.get_range(key, range).await
    }
    async fn delete(&self, key: &BlobKey) -> Result<(), PortError> {
        self.0.delete(key).await
    }
}

#[derive(Clone)]
pub(crate) struct AnyKeys(Arc<dyn Keys>);

#[async_trait]
impl Keys for AnyKeys {
    async fn generate(&self, context: &KeyContext) -> Result<(DataKey, WrappedKey), KeysError> {
        self.0.generate(context).await
    }
    async fn unwrap(&self, wrapped: &WrappedKey, context: &KeyContext) -> Result<DataKey, KeysError> {
        self.0.unwrap(wrapped, context).await
    }
    async fn rewrap(
        &self,
        wrapped: &WrappedKey,
        context: &KeyContext,
    ) -> Result<Option<WrappedKey>, KeysError> {
        self.0.rewrap(wrapped, context).await
    }
}

/// A port whose calls yield a seeded number of times, before and after.
struct Jittery<P> {
    inner: P,
    dice: Arc<Dice>,
}

/// Seeded numbers.
pub(crate) struct Dice(AtomicU64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A number below `bound` (SplitMix64).
    pub(crate) fn roll(&self, bound: u64) -> u64 {
        let mut z =
            self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed).wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    /// Yields up to `bound - 1` times.
    pub(crate) async fn pause(&self, bound: u64) {
        for _ in 0..self.roll(bound) {
            tokio::task::yield_now().await;
        }
    }
}

impl<P> Jittery<P> {
    async fn around<T>(&self, call: impl Future<Output = T>) -> T {
        self.dice.pause(4).await;
        let answer = call.await;
        self.dice.pause(4).await;
        answer
    }
}

#[async_trait]
impl<L: Ledger> Ledger for Jittery<L> {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        self.around(self.inner.get(key)).await
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.around(self.inner.query(query)).await
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        self.around(self.inner.commit(writes)).await
    }
    fn inline_bytes_max(&self) -> usize {
        self.inner.inline_bytes_max()
    }
}

#[async_trait]
impl<B: Blobs> Blobs for Jittery<B> {
    async fn put(&self, key: &BlobKey, body: Bytes) -> Result<(), PortError> {
        self.around(self.inner.put(key, body)).await
    }
    async fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError> {
        self.around(self.inner.get(key)).await
    }
    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError> {
        self.around(self.inner.get_range(key, range)).await
    }
    async fn delete(&self, key: &BlobKey) -> Result<(), PortError> {
        self.around(self.inner.delete(key)).await
    }
}

/// Which commit takes effect late, and how many calls later.
pub(crate) struct Delay(Mutex<Delayed>);

struct Delayed {
    commits_before: u64,
    calls_left: u64,
    writes: Option<Vec<Write>>,
    was_met: bool,
}

impl Delay {
    pub(crate) fn new(nth: u64, calls_later: u64) -> Self {
        Self(Mutex::new(Delayed {
            commits_before: nth - 1,
            calls_left: calls_later,
            writes: None,
            was_met: false,
        }))
    }

    pub(crate) fn was_met(&self) -> bool {
        self.0.lock().unwrap().was_met
    }

    /// Takes these writes, if they belong to the late commit.
    fn keeps(&self, writes: &[Write]) -> bool {
        let mut delayed = self.0.lock().unwrap();
        if delayed.was_met {
            return false;
        }
        if delayed.commits_before > 0 {
            delayed.commits_before -= 1;
            return false;
        }
        delayed.was_met = true;
        delayed.writes = Some(writes.to_vec());
        true
    }

    /// The writes that take effect with this call.
    fn due(&self) -> Option<Vec<Write>> {
        let mut delayed = self.0.lock().unwrap();
        delayed.writes.as_ref()?;
        delayed.calls_left -= 1;
        if delayed.calls_left == 0 { delayed.writes.take() } else { None }
    }
}

/// A ledger with one late commit.
struct Belated {
    inner: AnyLedger,
    delay: Arc<Delay>,
}

impl Belated {
    async fn catch_up(&self) {
        if let Some(writes) = self.delay.due() {
            // Refused, if a repeat has overtaken it.
            let _ = self.inner.commit(writes).await;
        }
    }
}

#[async_trait]
impl Ledger for Belated {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        let item = self.inner.get(key).await;
        self.catch_up().await;
        item
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        let page = self.inner.query(query).await;
        self.catch_up().await;
        page
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        if self.delay.keeps(&writes) {
            return Err(PortError::unknown("a commit", "it is late, by script").into());
        }
        let done = self.inner.commit(writes).await;
        self.catch_up().await;
        done
    }
    fn inline_bytes_max(&self) -> usize {
        self.inner.inline_bytes_max()
    }
}

/// The stores of one installation, with its time.
pub(crate) struct World {
    ledger: AnyLedger,
    blobs: AnyBlobs,
    keys: AnyKeys,
    pub(crate) clock: SteppingClock,
    ids: SeededIds,
    lies: Lies,
    pub(crate) settings: Settings,
    /// Every version that was seen, for I2: it never changes.
    versions: Mutex<HashMap<(StackId, u64), StackVersion>>,
}

/// Where a world is stored, to inspect it without the ports.
enum Lies {
    InMemory(InMemory),
    OnAws(Names),
}

/// The stores of a world in memory, and the blobs and keys of one with another ledger.
#[derive(Clone)]
struct InMemory {
    ledger: Option<MemoryLedger>,
    blobs: MemoryBlobs,
    keys: MemoryKeys,
}

impl World {
    pub(crate) fn memory() -> Self {
        let ledger = MemoryLedger::new();
        Self::with(Arc::new(ledger.clone()), Some(ledger), SeededIds::new(1))
    }

    /// Another installation at the same time, with its own master key and randomness.
    pub(crate) fn elsewhere(&self) -> Self {
        let ledger = MemoryLedger::new();
        let world = Self::with(Arc::new(ledger.clone()), Some(ledger), SeededIds::new(2));
        Self { clock: self.clock.clone(), ..world }
    }

    pub(crate) fn over(ledger: Arc<dyn Ledger>) -> Self {
        Self::with(ledger, None, SeededIds::new(1))
    }

    fn with(ledger: Arc<dyn Ledger>, in_memory: Option<MemoryLedger>, ids: SeededIds) -> Self {
        let blobs = MemoryBlobs::new();
        let keys = MemoryKeys::new(Arc::new(ids.clone()));
        Self {
            ledger: AnyLedger(ledger),
            blobs: AnyBlobs(Arc::new(blobs.clone())),
            keys: AnyKeys(Arc::new(keys.clone())),
            clock: SteppingClock::new(START),
            ids,
            lies: Lies::InMemory(InMemory { ledger: in_memory, blobs, keys }),
            settings: Settings::default(),
            versions: Mutex::default(),
        }
    }

    /// On a store of its own on AWS.
    pub(crate) async fn aws() -> Self {
        let stand_in = StandIn::of_this_process();
        let (_, names) = stand_in.fresh_store().await;
        let (ids, clock) = (SeededIds::new(1), SteppingClock::new(START));
        // The adapter has a clock of its own for its waits: otherwise leases would end during them.
        let patience = Arc::new(SteppingClock::new(START));
        let store = aws::store(&stand_in.url, &names, patience, Arc::new(ids.clone())).await;
        Self {
            ledger: AnyLedger(Arc::new(store.ledger)),
            blobs: AnyBlobs(Arc::new(store.blobs)),
            keys: AnyKeys(Arc::new(store.keys)),
            clock,
            ids,
            lies: Lies::OnAws(names),
            settings: Settings::default(),
            versions: Mutex::default(),
        }
    }

    /// Writes an item over any other, without a process.
    pub(crate) async fn put(&self, key: &ItemKey, value: Bytes) {
        let write = put_bytes(key.clone(), Expect::Any, self.ids.revision(), value);
        self.ledger.commit(vec![write]).await.unwrap();
    }

    /// A process of a world on AWS with its own clients for this URL.
    pub(crate) async fn process_behind(&self, name: &str, url: &str) -> Context {
        let Lies::OnAws(names) = &self.lies else { panic!("the world is in memory") };
        let patience = Arc::new(SteppingClock::new(START));
        let store = aws::store(url, names, patience, Arc::new(self.ids.clone())).await;
        let ledger = AnyLedger(Arc::new(store.ledger));
        self.context(name, Arc::new(ledger), Arc::new(store.blobs), Arc::new(store.keys))
    }

    fn context(
        &self,
        name: &str,
        ledger: Arc<dyn Ledger>,
        blobs: Arc<dyn Blobs>,
        keys: Arc<dyn Keys>,
    ) -> Context {
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let mut context =
            Context::new(ledger, blobs, keys, clock, Arc::new(self.ids.clone()), name.to_owned());
        context.settings = self.settings;
        context
    }

    /// A process that has just started, with empty caches.
    pub(crate) fn process(&self, name: &str) -> Context {
        self.context(
            name,
            Arc::new(self.ledger.clone()),
            Arc::new(self.blobs.clone()),
            Arc::new(self.keys.clone()),
        )
    }

    /// As [`World::process`], with faults between it and the stores.
    pub(crate) fn faulty(&self, name: &str, faults: &Faults) -> Context {
        self.context(
            name,
            Arc::new(Faulty::new(self.ledger.clone(), faults.clone())),
            Arc::new(Faulty::new(self.blobs.clone(), faults.clone())),
            Arc::new(Faulty::new(self.keys.clone(), faults.clone())),
        )
    }

    /// As [`World::process`], with faults between it and its master key.
    pub(crate) fn without_keys(&self, name: &str, faults: &Faults) -> Context {
        let keys = Faulty::new(self.keys.clone(), faults.clone());
        self.context(name, Arc::new(self.ledger.clone()), Arc::new(self.blobs.clone()), Arc::new(keys))
    }

    /// As [`World::process`], on a ledger with one late commit.
    pub(crate) fn belated(&self, name: &str, delay: &Arc<Delay>) -> Context {
        let ledger = Belated { inner: self.ledger.clone(), delay: Arc::clone(delay) };
        self.context(name, Arc::new(ledger), Arc::new(self.blobs.clone()), Arc::new(self.keys.clone()))
    }

    /// As [`World::process`], on another handle to the same ledger if one is given, and with seeded pauses.
    pub(crate) fn jittery(&self, name: &str, ledger: Option<Arc<dyn Ledger>>, dice: &Arc<Dice>) -> Context {
        let ledger = ledger.map_or_else(|| self.ledger.clone(), AnyLedger);
        self.context(
            name,
            Arc::new(Jittery { inner: ledger, dice: Arc::clone(dice) }),
            Arc::new(Jittery { inner: self.blobs.clone(), dice: Arc::clone(dice) }),
            Arc::new(self.keys.clone()),
        )
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) async fn read<T: Record>(&self, key: &Key<T>) -> Option<T> {
        self.ledger.get(key).await.unwrap().map(|item| T::decode(&item.value).unwrap())
    }

    async fn all<T>(&self, prefix: KeyPrefix<T>) -> Vec<Item> {
        let mut query = prefix.query(None, Order::Ascending, 1_000);
        let mut items = Vec::new();
        loop {
            let page = self.ledger.query(&query).await.unwrap();
            query.after = page.items.last().map(|item| item.key.sort.clone());
            items.extend(page.items);
            if !page.more {
                return items;
            }
        }
    }

    fn in_memory(&self) -> &InMemory {
        match &self.lies {
            Lies::InMemory(in_memory) => in_memory,
            Lies::OnAws(_) => panic!("the world is on AWS"),
        }
    }

    /// The ledger of a world in memory.
    pub(crate) fn ledger_in_memory(&self) -> MemoryLedger {
        self.in_memory().ledger.clone().expect("the world is in memory")
    }

    /// The blobs of a world in memory.
    pub(crate) fn blobs_in_memory(&self) -> &MemoryBlobs {
        &self.in_memory().blobs
    }

    /// The keys of a world in memory.
    pub(crate) fn keys_in_memory(&self) -> &MemoryKeys {
        &self.in_memory().keys
    }

    /// The keys of all snapshots, in their order.
    pub(crate) async fn snapshots(&self) -> Vec<String> {
        let all = match &self.lies {
            Lies::InMemory(in_memory) => in_memory.blobs.keys().iter().map(ToString::to_string).collect(),
            Lies::OnAws(names) => {
                let all = StandIn::of_this_process().at_rest(names).await.into_iter();
                all.filter_map(|(place, _)| place.strip_prefix("blobs/").map(str::to_owned)).collect()
            }
        };
        let mut snapshots: Vec<String> = all;
        snapshots.retain(|key| key.starts_with("snap/"));
        snapshots.sort();
        snapshots
    }

    /// All items of a world in memory.
    pub(crate) fn items(&self) -> Vec<Item> {
        self.ledger_in_memory().items()
    }

    /// The number of a stack's data keys.
    pub(crate) async fn data_keys(&self, stack: StackId) -> usize {
        self.all(WrappedDataKey::of_owner(stack)).await.len()
    }

    /// Asserts what must be true of a stack at any moment, whatever was interrupted.
    pub(crate) async fn check_stack(&self, stack: StackId) {
        let head: StackHead = self.read(&StackHead::key(stack)).await.expect("a stack has a head");
        let versions = self.all(StackVersion::of_stack(stack)).await;
        let mut publishers = Vec::new();
        let first = match (self.settings.retention.versions, versions.first()) {
            (Some(_), Some(item)) => StackVersion::decode(&item.value).unwrap().version,
            (None, _) | (_, None) => 1,
        };
        for (number, item) in (first..).zip(&versions) {
            let version = StackVersion::decode(&item.value).unwrap();
            assert_eq!(version.version, number, "I2: versions rise by one");
            assert_eq!(item.key, StackVersion::key(stack, number));
            let before = self.versions.lock().unwrap().insert((stack, number), version.clone());
            assert!(before.is_none_or(|before| before == version), "I2: a published version never changes");
            self.check_snapshot(&version.snapshot).await;
            self.check_update(version.update, false).await;
            publishers.push(version.update);
        }
        assert_eq!(head.version + 1, first + versions.len() as u64, "I2: the head is at the last version");
        let last = versions.last().map(|item| StackVersion::decode(&item.value).unwrap().snapshot);
        assert_eq!(head.snapshot, last, "the head has the latest snapshot");
        publishers.sort();
        publishers.dedup();
        assert_eq!(publishers.len(), versions.len(), "I5: an update publishes once");
        if let Some(running) = head.running {
            assert!(!publishers.contains(&running), "I1: what holds the stack has not been published");
            self.check_update(running, true).await;
        }
    }

    async fn check_snapshot(&self, snapshot: &Snapshot) {
        let blob =
            self.blobs.get(&snapshot.key().unwrap()).await.unwrap().expect("a version's blob is there");
        let bytes = blob.into_bytes().await.unwrap();
        assert_eq!(sha256(&bytes), snapshot.sha256, "I2: a version's bytes are those that were published");
    }

    /// Asserts that an update's record and log agree. `holds`: whether the head names it.
    async fn check_update(&self, id: UpdateId, holds: bool) {
        let update: Update = self.read(&Update::key(id)).await.expect("an update has a record");
        let slots: Vec<Slot> = (1..)
            .zip(&self.all(Slot::of_update(id)).await)
            .map(|(number, item)| {
                assert_eq!(item.key, Slot::key(id, number), "slots are dense");
                Slot::decode(&item.value).unwrap()
            })
            .collect();
        let seals = slots.iter().filter(|slot| matches!(slot.content, Content::Seal(_))).count();
        let ends_sealed = matches!(slots.last(), Some(Slot { content: Content::Seal(_), .. }));
        assert!(seals <= 1, "a log is sealed once");
        assert_eq!(seals == 1, ends_sealed, "I4: nothing follows a seal");
        match &update.status {
            Status::Running { .. } => assert!(holds && !ends_sealed, "{update:?}"),
            Status::Sealed { .. } => assert!(holds && ends_sealed, "{update:?}"),
            Status::Ended { at, .. } => {
                let has_no_log = matches!(update.kind, UpdateKind::Import | UpdateKind::Rename);
                let is_kept_no_more = slots.is_empty() && self.now() > at.plus(self.settings.retention.logs);
                assert!(!holds && (has_no_log || ends_sealed || is_kept_no_more), "{update:?}");
            }
            Status::NotStarted => panic!("an update that never started does not hold or publish: {update:?}"),
        }
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

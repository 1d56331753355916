//! Adapters that count the calls made through them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;

use crate::ports::{
    Blob, BlobKey, Blobs, CommitError, DataKey, Item, ItemKey, KeyContext, Keys, KeysError, Ledger, Page,
    PortError, Query, WrappedKey, Write,
};

/// The number of calls of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls {
    /// `Ledger::get`.
    pub ledger_gets: u64,
    /// `Ledger::query`.
    pub ledger_queries: u64,
    /// `Ledger::commit` of one write.
    pub ledger_single_commits: u64,
    /// `Ledger::commit` of several writes. DynamoDB charges twice as much for each of them.
    pub ledger_joint_commits: u64,
    /// `Blobs::put`.
    pub blob_puts: u64,
    /// `Blobs::get` and `Blobs::get_range`.
    pub blob_gets: u64,
    /// `Blobs::delete`.
    pub blob_deletes: u64,
    /// `Keys::generate`.
    pub keys_generated: u64,
    /// `Keys::unwrap`.
    pub keys_unwrapped: u64,
    /// The longest chain of calls that waited for one another; calls that overlap count as one. A store
    /// over a network makes a request wait for this many round trips.
    pub in_sequence: u64,
}

impl Calls {
    /// The sum of all calls.
    pub fn total(&self) -> u64 {
        let ledger =
            self.ledger_gets + self.ledger_queries + self.ledger_single_commits + self.ledger_joint_commits;
        let blobs = self.blob_puts + self.blob_gets + self.blob_deletes;
        ledger + blobs + self.keys_generated + self.keys_unwrapped
    }
}

/// The shared counter of several wrappers. Clones share the counts, so one counter serves all three ports.
#[derive(Debug, Clone, Default)]
pub struct Counter {
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    ledger_gets: AtomicU64,
    ledger_queries: AtomicU64,
    ledger_single_commits: AtomicU64,
    ledger_joint_commits: AtomicU64,
    blob_puts: AtomicU64,
    blob_gets: AtomicU64,
    blob_deletes: AtomicU64,
    keys_generated: AtomicU64,
    keys_unwrapped: AtomicU64,
    /// The longest finished chain of calls.
    ended: AtomicU64,
}

impl Counter {
    /// A counter at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// The calls since the last `take`, or since the beginning. Resets the counter.
    pub fn take(&self) -> Calls {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Calls {
            ledger_gets: take(&self.counts.ledger_gets),
            ledger_queries: take(&self.counts.ledger_queries),
            ledger_single_commits: take(&self.counts.ledger_single_commits),
            ledger_joint_commits: take(&self.counts.ledger_joint_commits),
            blob_puts: take(&self.counts.blob_puts),
            blob_gets: take(&self.counts.blob_gets),
            blob_deletes: take(&self.counts.blob_deletes),
            keys_generated: take(&self.counts.keys_generated),
            keys_unwrapped: take(&self.counts.keys_unwrapped),
            in_sequence: take(&self.counts.ended),
        }
    }

    /// Makes a call. Its step is one later than the latest step that had ended when the call began.
    async fn count<T>(&self, of: impl Fn(&Counts) -> &AtomicU64, call: impl Future<Output = T>) -> T {
        of(&self.counts).fetch_add(1, Ordering::Relaxed);
        let step = self.counts.ended.load(Ordering::Relaxed) + 1;
        let answer = call.await;
        self.counts.ended.fetch_max(step, Ordering::Relaxed);
        answer
    }
}

/// A port whose calls are counted.
#[derive(Debug, Clone)]
pub struct Counting<P> {
    inner: P,
    counter: Counter,
}

impl<P> Counting<P> {
    /// Counts the calls to `inner` in `counter`.
    pub fn new(inner: P, counter: Counter) -> Self {
        Self { inner, counter }
    }
}

#[async_trait]
impl<L: Ledger> Ledger for Counting<L> {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        self.counter.count(|counts| &counts.ledger_gets, self.inner.get(key)).await
    }

    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.counter.count(|counts| &counts.ledger_queries, self.inner.query(query)).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        if writes.len() == 1 {
            self.counter.count(|counts| &counts.ledger_single_commits, self.inner.commit(writes)).await
        } else {
            self.counter.count(|counts| &counts.ledger_joint_commits, self.inner.commit(writes)).await
        }
    }

    fn inline_bytes_max(&self) -> usize {
        self.inner.inline_bytes_max()
    }
}

#[async_trait]
impl<B: Blobs> Blobs for Counting<B> {
    async fn put(&self, key: &BlobKey, body: Bytes) -> Result<(), PortError> {
        self.counter.count(|counts| &counts.blob_puts, self.inner.put(key, body)).await
    }

    async fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError> {
        self.counter.count(|counts| &counts.blob_gets, self.inner.get(key)).await
    }

    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError> {
        self.counter.count(|counts| &counts.blob_gets, self.inner.get_range(key, range)).await
    }

    async fn delete(&self, key: &BlobKey) -> Result<(), PortError> {
        self.counter.count(|counts| &counts.blob_deletes, self.inner.delete(key)).await
    }
}

#[async_trait]
impl<K: Keys> Keys for Counting<K> {
    async fn generate(&self, context: &KeyContext) -> Result<(DataKey, WrappedKey), KeysError> {
        self.counter.count(|counts| &counts.keys_generated, self.inner.generate(context)).await
    }

    async fn unwrap(&self, wrapped: &WrappedKey, context: &KeyContext) -> Result<DataKey, KeysError> {
        self.counter.count(|counts| &counts.keys_unwrapped, self.inner.unwrap(wrapped, context)).await
    }

    async fn rewrap(
        &self,
        wrapped: &WrappedKey,
        context: &KeyContext,
    ) -> Result<Option<WrappedKey>, KeysError> {
        // A key service opens and wraps in one call.
        self.counter.count(|counts| &counts.keys_unwrapped, self.inner.rewrap(wrapped, context)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::{MemoryBlobs, MemoryLedger};
    use crate::ports::{Expect, WriteAction};

    #[tokio::test]
    async fn calls_of_all_ports_are_counted_by_kind_until_they_are_taken() {
        let counter = Counter::new();
        let ledger = Counting::new(MemoryLedger::new(), counter.clone());
        let blobs = Counting::new(MemoryBlobs::new(), counter.clone());
        let write =
            |sort| Write { key: ItemKey::new("P", sort), expect: Expect::Absent, action: WriteAction::Check };
        ledger.commit(vec![write("a")]).await.unwrap();
        ledger.commit(vec![write("a"), write("b")]).await.unwrap();
        ledger.get(&ItemKey::new("P", "a")).await.unwrap();
        blobs.delete(&BlobKey::parse("a").unwrap()).await.unwrap();
        blobs.delete(&BlobKey::parse("a").unwrap()).await.unwrap();

        let expected = Calls {
            ledger_gets: 1,
            ledger_single_commits: 1,
            ledger_joint_commits: 1,
            blob_deletes: 2,
            in_sequence: 5,
            ..Calls::default()
        };
        assert_eq!(counter.take(), expected);
        assert_eq!(counter.take(), Calls::default());
    }

    #[tokio::test]
    async fn calls_that_overlap_are_one_step_of_a_sequence() {
        let counter = Counter::new();
        let ask = |turns| {
            counter.count(|counts| &counts.ledger_gets, async move {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
            })
        };
        futures::join!(ask(3), ask(1), ask(2));
        futures::join!(ask(2), ask(2));
        ask(0).await;
        assert_eq!(counter.take(), Calls { ledger_gets: 6, in_sequence: 3, ..Calls::default() });
        ask(1).await;
        assert_eq!(counter.take().in_sequence, 1);
    }
}

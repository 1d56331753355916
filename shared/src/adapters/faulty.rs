//! Adapters that fail by a script.

use std::collections::BTreeMap;
use std::future::pending;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::Notify;

use crate::ports::{
    Blob, BlobKey, Blobs, CommitError, DataKey, Item, ItemKey, KeyContext, Keys, KeysError, Ledger, Page,
    PortError, Query, WrappedKey, Write,
};

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Before it reaches the store: [`PortError::NotDone`].
    Before,
    /// After the store has done it: [`PortError::Unknown`], although it was done. A refusal is lost in
    /// the same way.
    After,
    /// Before it reaches the store, but the caller cannot know: [`PortError::Unknown`], although it was not done.
    Lost,
    /// The call succeeds. If it reads a blob, the content breaks off, and ends with [`PortError::NotDone`].
    Cut,
    /// The process dies before the call reaches the store, so the call never returns. See [`Faults::death`].
    DeathBefore,
    /// The process dies after the store has done it, so the call never returns.
    DeathAfter,
}

/// Which calls fail. Clones share the script and its count, so one script can serve all ports of a test
/// and fail each call in turn.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    script: Arc<Mutex<Script>>,
    died: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Script {
    calls: u64,
    faults: BTreeMap<u64, Fault>,
}

impl Faults {
    /// A script without faults.
    pub fn none() -> Self {
        Self::default()
    }

    /// Makes the `nth` call from now on fail; 1 is the next call.
    pub fn fail_at(&self, nth: u64, fault: Fault) {
        self.with(|script| script.faults.insert(script.calls + nth, fault));
    }

    /// Makes `count` calls from the `nth` on fail, like a store that is unavailable for a while.
    pub fn fail_from(&self, nth: u64, count: u64, fault: Fault) {
        (nth..nth.saturating_add(count)).for_each(|nth| self.fail_at(nth, fault));
    }

    /// Cancels all faults to come: the store is available again.
    pub fn heal(&self) {
        self.with(|script| script.faults.clear());
    }

    /// Returns once a call has met its death. That call never returns, so a caller that selects over
    /// both drops it, as the end of a process does.
    pub async fn death(&self) {
        self.died.notified().await;
    }

    /// The number of calls so far, failed ones included.
    pub fn calls(&self) -> u64 {
        self.with(|script| script.calls)
    }

    /// Counts a call and returns its fault, if the script has one.
    fn next(&self) -> Option<Fault> {
        self.with(|script| {
            script.calls += 1;
            script.faults.remove(&script.calls)
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Script) -> T) -> T {
        act(&mut self.script.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn die<T>(&self) -> T {
        self.died.notify_one();
        pending().await
    }

    /// Makes the call, or fails it as the script says.
    async fn meet<T, E: From<PortError>>(&self, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.make(call, self.next()).await
    }

    /// The same for a call that reads a blob.
    async fn meet_blob(
        &self,
        call: impl Future<Output = Result<Option<Blob>, PortError>>,
    ) -> Result<Option<Blob>, PortError> {
        let fault = self.next();
        let found = self.make(call, fault).await?;
        Ok(if fault == Some(Fault::Cut) { found.map(cut) } else { found })
    }

    async fn make<T, E: From<PortError>>(
        &self,
        call: impl Future<Output = Result<T, E>>,
        fault: Option<Fault>,
    ) -> Result<T, E> {
        match fault {
            None | Some(Fault::Cut) => call.await,
            Some(Fault::Before) => Err(PortError::not_done("a call", "a fault before it, by script").into()),
            Some(Fault::Lost) => {
                Err(PortError::unknown("a call", "a fault on the way to it, by script").into())
            }
            Some(Fault::After) => {
                let _lost = call.await;
                Err(PortError::unknown("a call", "a fault after it, by script").into())
            }
            Some(Fault::DeathBefore) => self.die().await,
            Some(Fault::DeathAfter) => {
                let _lost = call.await;
                self.die().await
            }
        }
    }
}

/// A blob whose content breaks off within the first piece.
fn cut(Blob { bytes_total, stream }: Blob) -> Blob {
    let half = stream.take(1).map_ok(|piece| piece.slice(..piece.len() / 2));
    let end = stream::iter([Err(PortError::not_done("a call", "a fault within it, by script"))]);
    Blob { bytes_total, stream: half.chain(end).boxed() }
}

/// A port whose calls fail by a script.
#[derive(Debug, Clone)]
pub struct Faulty<P> {
    inner: P,
    faults: Faults,
}

impl<P> Faulty<P> {
    /// Sends the calls to `inner` through `faults`.
    pub fn new(inner: P, faults: Faults) -> Self {
        Self { inner, faults }
    }
}

#[async_trait]
impl<L: Ledger> Ledger for Faulty<L> {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        self.faults.meet(self.inner.get(key)).await
    }

    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.faults.meet(self.inner.query(query)).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        self.faults.meet(self.inner.commit(writes)).await
    }

    fn inline_bytes_max(&self) -> usize {
        self.inner.inline_bytes_max()
    }
}

#[async_trait]
impl<B: Blobs> Blobs for Faulty<B> {
    async fn put(&self, key: &BlobKey, body: Bytes) -> Result<(), PortError> {
        self.faults.meet(self.inner.put(key, body)).await
    }

    async fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError> {
        self.faults.meet_blob(self.inner.get(key)).await
    }

    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError> {
        self.faults.meet_blob(self.inner.get_range(key, range)).await
    }

    async fn delete(&self, key: &BlobKey) -> Result<(), PortError> {
        self.faults.meet(self.inner.delete(key)).await
    }
}

#[async_trait]
impl<K: Keys> Keys for Faulty<K> {
    async fn generate(&self, context: &KeyContext) -> Result<(DataKey, WrappedKey), KeysError> {
        self.faults.meet(self.inner.generate(context)).await
    }

    async fn unwrap(&self, wrapped: &WrappedKey, context: &KeyContext) -> Result<DataKey, KeysError> {
        self.faults.meet(self.inner.unwrap(wrapped, context)).await
    }

    async fn rewrap(
        &self,
        wrapped: &WrappedKey,
        context: &KeyContext,
    ) -> Result<Option<WrappedKey>, KeysError> {
        self.faults.meet(self.inner.rewrap(wrapped, context)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::{MemoryBlobs, MemoryLedger};
    use crate::ports::{Expect, Revision, WriteAction};

    fn append(sort: &str) -> Vec<Write> {
        let action = WriteAction::Put { revision: Revision(1), value: Bytes::new(), expires: None };
        vec![Write { key: ItemKey::new("P", sort), expect: Expect::Absent, action }]
    }

    #[tokio::test]
    async fn only_the_scripted_call_fails_and_says_whether_it_is_known() {
        let faults = Faults::none();
        let store = MemoryLedger::new();
        let ledger = Faulty::new(store.clone(), faults.clone());

        faults.fail_at(2, Fault::Before);
        faults.fail_at(3, Fault::Lost);
        faults.fail_at(4, Fault::After);
        assert!(ledger.commit(append("1")).await.is_ok());
        let before = ledger.commit(append("2")).await;
        assert!(matches!(before, Err(CommitError::Port(PortError::NotDone { .. }))));
        let lost = ledger.commit(append("3")).await;
        assert!(matches!(lost, Err(CommitError::Port(PortError::Unknown { .. }))));
        let after = ledger.commit(append("4")).await;
        assert!(matches!(after, Err(CommitError::Port(PortError::Unknown { .. }))));
        assert!(ledger.commit(append("5")).await.is_ok());

        let sorts: Vec<String> = store.items().into_iter().map(|item| item.key.sort).collect();
        assert_eq!(sorts, ["1", "4", "5"]);
        assert_eq!(faults.calls(), 5);
    }

    #[tokio::test]
    async fn an_unavailable_store_works_again_when_healed() {
        let faults = Faults::none();
        let ledger = Faulty::new(MemoryLedger::new(), faults.clone());
        faults.fail_from(1, 1_000, Fault::Before);
        assert!(ledger.commit(append("1")).await.is_err());
        assert!(ledger.commit(append("1")).await.is_err());
        faults.heal();
        assert!(ledger.commit(append("1")).await.is_ok());
    }

    #[tokio::test]
    async fn the_content_of_a_blob_breaks_off_by_script() {
        let faults = Faults::none();
        let blobs = Faulty::new(MemoryBlobs::new(), faults.clone());
        let key = BlobKey::parse("a/b").unwrap();
        faults.fail_at(1, Fault::Cut);
        blobs.put(&key, Bytes::from_static(b"abcd")).await.unwrap();
        faults.fail_at(1, Fault::Cut);
        let mut cut = blobs.get_range(&key, 0..4).await.unwrap().unwrap();
        assert_eq!(cut.stream.next().await.unwrap().unwrap(), "ab");
        assert!(matches!(cut.stream.next().await, Some(Err(PortError::NotDone { .. }))));
        let whole = blobs.get(&key).await.unwrap().unwrap();
        assert_eq!(whole.into_bytes().await.unwrap(), "abcd");
    }

    #[tokio::test]
    async fn a_killed_call_never_returns_and_is_reported() {
        for (fault, stored) in [(Fault::DeathBefore, 0), (Fault::DeathAfter, 1)] {
            let faults = Faults::none();
            let store = MemoryLedger::new();
            let ledger = Faulty::new(store.clone(), faults.clone());
            faults.fail_at(1, fault);
            tokio::select! {
                _ = ledger.commit(append("1")) => panic!("a dead process does not answer"),
                () = faults.death() => {}
            }
            assert_eq!(store.items().len(), stored);
        }
    }
}

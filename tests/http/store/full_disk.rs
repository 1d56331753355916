//! A disk that becomes full during an update, and has room again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use statewright_shared::adapters::{MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds};
use statewright_shared::ports::{
    Blob, BlobKey, Blobs, CommitError, Ids, Item, ItemKey, Ledger, NoRoom, Page, PortError, Query, Write,
};
use statewright_tests::app::{Answer, TestApp};

use crate::world::Stack;

/// A store that refuses writes while its disk is full, and still reads.
#[derive(Clone)]
struct OnDisk<P> {
    store: P,
    is_full: Arc<AtomicBool>,
}

impl<P> OnDisk<P> {
    fn check_room(&self, what: &'static str) -> Result<(), PortError> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(PortError::not_done(what, NoRoom::because("no space left on device")));
        }
        Ok(())
    }
}

#[async_trait]
impl<L: Ledger> Ledger for OnDisk<L> {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        self.store.get(key).await
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.store.query(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        self.check_room("committing")?;
        self.store.commit(writes).await
    }
    fn inline_bytes_max(&self) -> usize {
        1_000
    }
}

#[async_trait]
impl<B: Blobs> Blobs for OnDisk<B> {
    async fn put(&self, key: &BlobKey, body: Bytes) -> Result<(), PortError> {
        self.check_room("storing a blob")?;
        self.store.put(key, body).await
    }
    async fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError> {
        self.store.get(key).await
    }
    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError> {
        self.store.get_range(key, range).await
    }
    async fn delete(&self, key: &BlobKey) -> Result<(), PortError> {
        self.store.delete(key).await
    }
}

/// Waits for an answer while the clock moves, since the server retries before it gives up.
async fn answer(app: &TestApp, asking: impl Future<Output = Answer>) -> Answer {
    let mut asking = std::pin::pin!(asking);
    loop {
        tokio::select! {
            biased;
            answer = &mut asking => return answer,
            () = tokio::task::yield_now() => app.advance(std::time::Duration::from_millis(1)),
        }
    }
}

#[tokio::test]
async fn a_full_disk_is_reported_and_an_update_continues_with_room() {
    let is_full = Arc::new(AtomicBool::new(false));
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let app = TestApp::memory_with(
        Arc::new(OnDisk { store: MemoryLedger::new(), is_full: Arc::clone(&is_full) }),
        Arc::new(OnDisk { store: MemoryBlobs::new(), is_full: Arc::clone(&is_full) }),
        Arc::new(MemoryKeys::new(Arc::clone(&ids))),
        ids,
    )
    .await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "before")]).await.expect(204);

    is_full.store(true, Ordering::Relaxed);
    let long: String =
        (0..1_000_u32).map(|number| format!("{:x}", number.wrapping_mul(2_654_435_761))).collect();
    for name in ["refused", long.as_str()] {
        let words = answer(&app, run.append(&[stack.made(2, name)])).await.refused(507);
        assert!(words.contains("the disk of the server is full"), "{words}");
        assert!(words.contains("What was acknowledged is kept"), "{words}");
    }
    answer(&app, run.renew(300)).await.refused(507);
    answer(&app, stack.begin_call("update", true).send()).await.refused(507);
    answer(&app, run.complete("succeeded")).await.refused(507);
    // Reads continue, except looks at secrets, which are not shown without an audit record.
    stack.get("").send().await.expect(200);
    answer(&app, stack.get("/export").send()).await.refused(507);

    is_full.store(false, Ordering::Relaxed);
    run.append(&[stack.made(2, "after")]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(stack.resources().await, ["before", "after"]);
}

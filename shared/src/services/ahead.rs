//! A stack that is looked for while the caller of the request is still being found, so that the request waits for fewer
//! calls in sequence.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::Error;
use super::store::located::Located;
use crate::domain::names::StackAddress;

type Found = Result<Option<Located>, Error>;

/// A search for a stack. What it finds is for callers who may see the stack, and only they wait for it.
///
/// It is a task of its own: reads queue for the connections to a store, and one whose turn has come blocks the others until
/// it goes on, whatever its request waits for. Dropping the search ends it.
#[derive(Debug)]
pub(crate) struct Search {
    address: StackAddress,
    task: JoinHandle<Found>,
}

impl Search {
    /// Begins a search.
    pub(crate) fn begin(
        address: StackAddress,
        finding: impl Future<Output = Found> + Send + 'static,
    ) -> Self {
        Self { address, task: tokio::spawn(finding.in_current_span()) }
    }

    /// Waits for what it finds.
    pub(super) async fn found(mut self) -> Found {
        let interrupted = |error| Err(Error::Internal(format!("a search was interrupted: {error}")));
        (&mut self.task).await.unwrap_or_else(interrupted)
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The search of one request, for the first use case that needs the stack: one that needs it once more reads it again.
#[derive(Debug, Clone, Default)]
pub(super) struct Ahead(Arc<Mutex<Option<Search>>>);

impl Ahead {
    pub(super) fn of(search: Search) -> Self {
        Self(Arc::new(Mutex::new(Some(search))))
    }

    pub(super) fn take(&self, address: &StackAddress) -> Option<Search> {
        let mut search = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        search.take_if(|search| search.address == *address)
    }
}

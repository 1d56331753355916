//! A stack that is looked for while the caller of the request is still being found, so that the request waits for fewer
//! calls in sequence.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task;

use futures::future::{BoxFuture, MaybeDone, maybe_done};

use super::Error;
use super::store::located::Located;
use crate::domain::names::StackAddress;

type Found = Result<Option<Located>, Error>;

/// A search for a stack. What it finds is for callers who may see the stack, and only they wait for it.
pub(crate) struct Search {
    address: StackAddress,
    finding: MaybeDone<BoxFuture<'static, Found>>,
}

impl Search {
    /// A search that has not begun.
    pub(crate) fn new(address: StackAddress, finding: impl Future<Output = Found> + Send + 'static) -> Self {
        Self { address, finding: maybe_done(Box::pin(finding)) }
    }

    /// Begins the search, or goes on with it.
    pub(crate) fn go_on(&mut self, cx: &mut task::Context<'_>) {
        let _ = Pin::new(&mut self.finding).poll(cx);
    }

    /// Waits for what it finds.
    pub(super) async fn found(mut self) -> Found {
        (&mut self.finding).await;
        let found = Pin::new(&mut self.finding).take_output();
        found.unwrap_or_else(|| Err(Error::Internal("a search ended without a result".to_owned())))
    }
}

/// The search of one request, for the first use case that needs the stack: one that needs it once more reads it again.
#[derive(Clone, Default)]
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

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead").finish_non_exhaustive()
    }
}

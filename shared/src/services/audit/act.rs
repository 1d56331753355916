//! The request or command that is being handled: who asked for what. It is set around the work, so that a use case
//! can write a record without knowing of requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::names::StackAddress;
use crate::domain::update::Requester;

tokio::task_local! {
    static ACT: Arc<Act>;
}

/// A request or a command.
#[derive(Debug, Default)]
pub struct Act {
    /// The address of the connection.
    from: Option<String>,
    /// The ID of the request.
    request: Option<String>,
    facts: Mutex<Facts>,
    is_stored: AtomicBool,
}

#[derive(Debug, Default)]
struct Facts {
    action: Option<&'static str>,
    by: Option<Requester>,
    stack: Option<StackAddress>,
    detail: Option<String>,
}

/// What a record takes from the request.
pub(super) struct RequestFacts {
    pub(super) action: Option<&'static str>,
    pub(super) by: Option<Requester>,
    pub(super) stack: Option<StackAddress>,
    pub(super) detail: Option<String>,
    pub(super) from: Option<String>,
    pub(super) request: Option<String>,
}

impl Act {
    /// A request with this ID, from this address.
    pub fn new(request: Option<String>, from: Option<String>) -> Self {
        Self { from, request, ..Self::default() }
    }

    /// Handles the request: `work` and everything that it calls finds this act.
    pub async fn during<F: Future>(self: &Arc<Self>, work: F) -> F::Output {
        ACT.scope(Arc::clone(self), work).await
    }

    /// Sets the action: that of the row of the request.
    pub fn set_action(&self, action: Option<&'static str>) {
        self.facts().action = action;
    }

    /// Sets the user and the token.
    pub fn set_caller(&self, by: Requester) {
        self.facts().by = Some(by);
    }

    /// The user and the token, once they are known.
    pub fn caller(&self) -> Option<Requester> {
        self.facts().by.clone()
    }

    /// Sets the stack that the request names.
    pub fn set_stack(&self, stack: StackAddress) {
        self.facts().stack = Some(stack);
    }

    /// Sets the detail of the record, as far as it is known before the action is done.
    pub fn set_detail(&self, detail: String) {
        self.facts().detail = Some(detail);
    }

    /// Whether a commit of a use case stored the record of this act.
    pub fn is_stored(&self) -> bool {
        self.is_stored.load(Ordering::Relaxed)
    }

    /// Whether the current act is this action.
    pub(crate) fn is_now(action: &str) -> bool {
        ACT.try_with(|act| act.facts().action == Some(action)).unwrap_or(false)
    }

    pub(super) fn current() -> Option<RequestFacts> {
        ACT.try_with(|act| {
            let (from, request) = (act.from.clone(), act.request.clone());
            let facts = act.facts();
            RequestFacts {
                action: facts.action,
                by: facts.by.clone(),
                stack: facts.stack.clone(),
                detail: facts.detail.clone(),
                from,
                request,
            }
        })
        .ok()
    }

    /// Notes that a record of this action was stored.
    pub(super) fn note_stored(action: &str) {
        let _ = ACT.try_with(|act| {
            if act.facts().action == Some(action) {
                act.is_stored.store(true, Ordering::Relaxed);
            }
        });
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

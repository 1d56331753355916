//! What a request reads while its caller is being found, so that it waits for fewer calls in sequence: who may do what in
//! the organization that its path names, and the stack.
//!
//! Until its credentials were found in the store, that is one read: the rights, or the name of the stack. So a request
//! without valid credentials causes no more reads for naming a stack. Only callers who may see what was read wait for it:
//! the time of an answer does not tell what exists. A failure is found again where the answer is needed.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task;

use axum::http::Method;
use futures::future::maybe_done;
use tokio::sync::SetOnce;

use super::app::App;
use super::request_context::RequestContext;
use super::route::{Group, Route};
use crate::domain::names::{OrgName, StackAddress};
use crate::services::Error;
use crate::services::ahead::Search;
use crate::services::caller::Caller;
use crate::services::store::{access, stack_lookup};

/// Whether the credentials of a request were found in the store.
#[derive(Clone, Default)]
pub(super) struct Known(Arc<SetOnce<()>>);

impl Known {
    /// Tells that they were found.
    pub(super) fn tell(&self) {
        // It may have been told before.
        let _ = self.0.set(());
    }

    async fn wait(&self) {
        self.0.wait().await;
    }
}

/// The reads of one request.
///
/// They precede its permit and its reservation of memory, as those of its credentials do. A request then holds the rights
/// and one item of the stack, of 400 KB each at most, and the server limits its connections.
pub(super) struct Prefetch {
    org: Option<OrgName>,
    /// The stack, until the search for it begins.
    sought: Option<StackAddress>,
    search: Option<Search>,
    /// Whether the name of the stack is read first, and the rights after the credentials were found.
    is_name_first: bool,
    known: Known,
}

impl Prefetch {
    /// The reads of a request for this row. Nothing is read yet.
    pub(super) fn of(app: &App, route: &Route, context: &RequestContext) -> Self {
        let sought = context.address().filter(|_| finds_stack(route));
        let is_name_first = sought.as_ref().is_some_and(|address| stack_lookup::is_news(app, address));
        Self { org: context.org(), sought, search: None, is_name_first, known: Known::default() }
    }

    /// What authentication tells when it has found the credentials.
    pub(super) fn known(&self) -> Known {
        self.known.clone()
    }

    /// Authenticates, and reads at the same time. The caller gets the search for the stack, if there was something to wait
    /// for meanwhile.
    pub(super) async fn during<T>(
        mut self,
        app: &App,
        authenticating: impl Future<Output = Result<T, Error>>,
        caller: impl Fn(&mut T) -> &mut Caller,
    ) -> Result<T, Error> {
        let Some(org) = self.org.clone() else { return authenticating.await };
        let (known, is_name_first) = (self.known.clone(), self.is_name_first);
        let rights = async {
            if is_name_first {
                known.wait().await;
            }
            let _ = access::of(app, &org).await;
        };
        let mut authenticating = pin!(authenticating);
        let mut rights = pin!(maybe_done(rights));
        let mut authenticated = alongside(authenticating.as_mut(), |cx| {
            let _ = rights.as_mut().poll(cx);
            self.begin(app);
        })
        .await?;
        self.known.tell();
        let caller = caller(&mut authenticated);
        if caller.is_member(&org) {
            alongside(rights.as_mut(), |_| self.begin(app)).await;
            if let Some(search) = self.search {
                caller.look_ahead(search);
            }
        }
        Ok(authenticated)
    }

    /// Begins to look for the stack, if that has not begun.
    fn begin(&mut self, app: &App) {
        let Some(address) = self.sought.take() else { return };
        let (app, known, is_name_first) = (app.clone(), self.known.clone(), self.is_name_first);
        let sought = address.clone();
        self.search = Some(Search::begin(address, async move {
            if !is_name_first {
                known.wait().await;
            }
            stack_lookup::find_after(&app, &sought, known.wait()).await
        }));
    }
}

/// Whether the handler of this row finds the stack of its path before it reads anything else.
fn finds_stack(route: &Route) -> bool {
    let is_of_stack = route.path.starts_with("/api/stacks/{org}/{project}/{stack}");
    route.method == Method::GET && route.group == Group::Read && is_of_stack
}

/// Waits for `first`. Until then, `others` go on each time that it does.
fn alongside<F: Future>(
    mut first: Pin<&mut F>,
    mut others: impl FnMut(&mut task::Context<'_>),
) -> impl Future<Output = F::Output> {
    poll_fn(move |cx| {
        let polled = first.as_mut().poll(cx);
        if polled.is_pending() {
            others(cx);
        }
        polled
    })
}

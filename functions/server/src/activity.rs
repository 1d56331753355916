//! Tracks the requests of a connection until their responses are sent, and detects slow clients.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use statewright_shared::ports::{Clock, Timestamp};

/// The interval between checks of a connection. Shorter than any timeout of a request, because a timer that
/// ends before all others wakes up a thread.
const LOOK_EVERY: Duration = Duration::from_secs(20);

/// The period in which a client must read at least [`PROGRESS_BYTES_MIN`] of its response, else the
/// connection is closed.
pub(super) const WRITE_PAUSE_MAX: Duration = Duration::from_secs(30);

/// See [`WRITE_PAUSE_MAX`].
pub(super) const PROGRESS_BYTES_MIN: usize = 64 << 10;

/// The requests of a connection, until their responses are sent.
///
/// A request only updates counters, which the connection checks at intervals: so a request sets no timer and
/// wakes up no thread.
pub(super) struct Activity {
    clock: Arc<dyn Clock>,
    under_way: AtomicUsize,
    had_one: AtomicBool,
    /// Whether bytes arrived that are not a request yet and have no response.
    is_unanswered: AtomicBool,
    /// Whether part of the last request's body is unread.
    is_body_unread: Arc<AtomicBool>,
    /// When the connection became idle.
    since: AtomicI64,
    /// Responses longer than one frame.
    answers: Mutex<Vec<Weak<Progress>>>,
}

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Idle {
    /// It has no request.
    Resting,
    /// Its client reads a response too slowly.
    TooSlow,
}

/// The progress of sending a response.
///
/// [`Patient`] detects a socket that accepts nothing. But an HTTP/2 client can hold back one response while
/// the socket accepts others.
#[derive(Debug)]
struct Progress {
    bytes: AtomicUsize,
    /// Whether the server is still producing the next part, so that the client is not to blame.
    is_ours: AtomicBool,
    seen: Mutex<(Timestamp, usize)>,
}

impl Progress {
    fn is_too_slow(&self, now: Timestamp) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, before) = *seen;
        if now.since(since) < WRITE_PAUSE_MAX {
            return false;
        }
        let bytes = self.bytes.load(Ordering::SeqCst);
        *seen = (now, bytes);
        bytes - before < PROGRESS_BYTES_MIN && !self.is_ours.load(Ordering::SeqCst)
    }
}

impl Activity {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let since = AtomicI64::new(clock.now().0);
        Self {
            clock,
            under_way: AtomicUsize::new(0),
            had_one: AtomicBool::new(false),
            is_unanswered: AtomicBool::new(false),
            is_body_unread: Arc::default(),
            since,
            answers: Mutex::default(),
        }
    }

    fn answers(&self) -> Arc<Progress> {
        let seen = Mutex::new((self.clock.now(), 0));
        let progress =
            Arc::new(Progress { bytes: AtomicUsize::new(0), is_ours: AtomicBool::new(false), seen });
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|answer| answer.strong_count() > 0);
        answers.push(Arc::downgrade(&progress));
        progress
    }

    fn is_too_slow(&self) -> bool {
        let now = self.clock.now();
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.iter().filter_map(Weak::upgrade).any(|answer| answer.is_too_slow(now))
    }

    /// Records that bytes arrived.
    pub(super) fn hear(&self) {
        if self.under_way.load(Ordering::SeqCst) == 0 {
            self.is_unanswered.store(true, Ordering::SeqCst);
        }
    }

    /// Records that a response is being sent.
    pub(super) fn say(&self) {
        self.is_unanswered.store(false, Ordering::SeqCst);
    }

    /// Whether a request has no response yet.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::SeqCst) > 0
    }

    /// Whether part of the last request's body is unread.
    pub(super) fn is_body_unread(&self) -> bool {
        self.is_body_unread.load(Ordering::SeqCst)
    }

    /// Completes after this duration.
    pub(super) fn after(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let clock = Arc::clone(&self.clock);
        Box::pin(async move { clock.sleep(duration).await })
    }

    pub(super) fn is_unanswered(&self) -> bool {
        self.is_unanswered.load(Ordering::SeqCst)
    }

    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        self.had_one.store(true, Ordering::SeqCst);
        self.is_unanswered.store(false, Ordering::SeqCst);
        UnderWay(Arc::clone(self))
    }

    /// Starts the idle time.
    pub(super) fn rest(&self) {
        self.since.store(self.clock.now().0, Ordering::SeqCst);
    }

    /// Completes when the connection has been idle for this long, or for `first` if it never had a request;
    /// or when its client reads a response too slowly.
    pub(super) async fn idle(&self, first: Duration, duration: Duration) -> Idle {
        loop {
            let left = match self.under_way.load(Ordering::SeqCst) {
                0 => {
                    let patience = if self.had_one.load(Ordering::SeqCst) { duration } else { first };
                    let since = Timestamp(self.since.load(Ordering::SeqCst));
                    patience.saturating_sub(self.clock.now().since(since))
                }
                _ if self.is_too_slow() => return Idle::TooSlow,
                _ => LOOK_EVERY,
            };
            if left.is_zero() {
                return Idle::Resting;
            }
            self.clock.sleep(left.min(LOOK_EVERY)).await;
        }
    }
}

pub(super) struct UnderWay(Arc<Activity>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.rest();
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The body of a response, which counts as in progress until it is sent.
pub(super) struct Answering {
    body: Body,
    under_way: UnderWay,
    progress: Option<Arc<Progress>>,
}

impl Answering {
    pub(super) fn new(body: Body, under_way: UnderWay) -> Self {
        Self { body, under_way, progress: None }
    }
}

impl HttpBody for Answering {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        // Most responses are one frame and need no tracking.
        if this.progress.is_none() && matches!(polled, Poll::Ready(Some(Ok(_)))) && !this.body.is_end_stream()
        {
            this.progress = Some(this.under_way.0.answers());
        }
        if let Some(progress) = &this.progress {
            progress.is_ours.store(polled.is_pending(), Ordering::SeqCst);
            if let Poll::Ready(Some(Ok(frame))) = &polled {
                progress.bytes.fetch_add(frame.data_ref().map_or(0, Bytes::len), Ordering::SeqCst);
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a request, which records whether it was read completely.
pub(super) struct Asking {
    body: Incoming,
    is_left: Arc<AtomicBool>,
    is_over: bool,
}

impl Asking {
    pub(super) fn new(body: Incoming, activity: &Activity) -> Self {
        let is_left = Arc::clone(&activity.is_body_unread);
        is_left.store(!body.is_end_stream(), Ordering::SeqCst);
        Self { body, is_left, is_over: false }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.is_left.store(!(self.is_over || self.body.is_end_stream()), Ordering::SeqCst);
    }
}

impl HttpBody for Asking {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        self.is_over |= matches!(polled, Poll::Ready(None)) || self.body.is_end_stream();
        if self.is_over {
            self.is_left.store(false, Ordering::SeqCst);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

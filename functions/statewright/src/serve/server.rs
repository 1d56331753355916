//! Connections: how they are accepted, how long a client may keep one waiting, and how they end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use statewright_shared::api::{ClientCertificate, Peer, ShowedToken};
use statewright_shared::ports::{Clock, Timestamp};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use super::tls::Tls;

/// The TLS handshake has to be done by then.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// The head of a connection's first request has to be there by then.
const FIRST_REQUEST_MAX: Duration = Duration::from_secs(30);

/// A connection without a request is kept for so long. The CLI keeps its own for 90 seconds; longer than that, so that it
/// does not send a request, which it may not repeat, into one that is just being closed.
const IDLE_MAX: Duration = Duration::from_secs(120);

/// How often a connection is looked at. Shorter than any time that a request sets for itself, because to set one that ends
/// before all others wakes up a thread.
const LOOK_EVERY: Duration = Duration::from_secs(20);

/// A client that takes less than [`PROGRESS_BYTES_MIN`] of its answer in this time is not waited for.
const WRITE_PAUSE_MAX: Duration = Duration::from_secs(30);

/// See [`WRITE_PAUSE_MAX`].
const PROGRESS_BYTES_MIN: usize = 64 << 10;

/// Requests under way may take so long when the server stops: long enough for a publish, and less than what service
/// managers wait.
const STOP_MAX: Duration = Duration::from_secs(25);

/// What a client needs to read that its connection ends.
const GOODBYE_MAX: Duration = Duration::from_secs(5);

/// The head of a request, in bytes. The longest that the CLI sends is some 2 KB.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Requests at once on one connection of HTTP/2. The CLI opens another connection for more.
const STREAMS_MAX: u32 = 256;

/// What is listened on, and what is served there.
pub(super) struct Server {
    pub(super) listener: TcpListener,
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) router: Router,
    pub(super) clock: Arc<dyn Clock>,
    /// Connections at once; more wait to be accepted. Half of them are kept for those that have shown a valid token.
    pub(super) connections_max: usize,
    /// Connections of one address that have not; others are closed at once. `None` for any number.
    pub(super) per_address_max: Option<usize>,
}

impl Server {
    /// Serves until it is asked to stop, and then until the requests under way are answered, but not for ever.
    pub(super) async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listener, tls, router, clock, connections_max, per_address_max } = self;
        let slots = Slots::new(connections_max, per_address_max);
        let (stopping, stopped) = watch::channel(false);
        let mut stop = pin!(stop);
        loop {
            let (slot, stream, peer) = tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = accept(&listener, &slots, &*clock) => accepted,
            };
            let connection = Connection {
                router: router.clone(),
                clock: Arc::clone(&clock),
                peer,
                stopped: stopped.clone(),
                activity: Arc::new(Activity::new(Arc::clone(&clock))),
                slot: Arc::new(slot),
            };
            let tls = tls.as_ref().map(|tls| TlsAcceptor::from(tls.config()));
            tokio::spawn(connection.open(stream, tls));
        }
        drop((listener, stopped));
        stopping.send_replace(true);
        // Every connection holds a receiver until it ends.
        tokio::select! {
            () = stopping.closed() => {}
            () = clock.sleep(STOP_MAX) => {
                tracing::warn!(connections = stopping.receiver_count(), "requests under way are given up");
            }
        }
    }
}

async fn accept(listener: &TcpListener, slots: &Slots, clock: &dyn Clock) -> (Slot, TcpStream, SocketAddr) {
    // Nobody closes the semaphore.
    let permit = Arc::clone(&slots.open).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let Some(counted) = slots.count(peer) else {
                    tracing::debug!(%peer, "an address has as many connections as it may have");
                    continue;
                };
                let slot = Slot {
                    held: Mutex::new(Held { _permit: permit, _counted: counted }),
                    kept: Arc::clone(&slots.kept),
                    is_kept: AtomicBool::new(false),
                };
                // Answers are small and awaited; without this each may wait for the client's acknowledgement.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "cannot send small answers at once");
                }
                return (slot, stream, peer);
            }
            // Of one connection, such as one that was closed before it was accepted, or of all, such as no more files.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                clock.sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Places for connections.
struct Slots {
    open: Arc<Semaphore>,
    /// For connections that have shown a valid token.
    kept: Arc<Semaphore>,
    by_address: Arc<Mutex<HashMap<IpAddr, usize>>>,
    per_address_max: Option<usize>,
}

impl Slots {
    fn new(connections_max: usize, per_address_max: Option<usize>) -> Self {
        let kept = connections_max / 2;
        Self {
            open: Arc::new(Semaphore::new(connections_max - kept)),
            kept: Arc::new(Semaphore::new(kept)),
            by_address: Arc::default(),
            per_address_max,
        }
    }

    /// Counts a connection of this address, unless there are too many.
    fn count(&self, peer: SocketAddr) -> Option<Option<Counted>> {
        let Some(max) = self.per_address_max else { return Some(None) };
        let address = network(peer.ip());
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_address.entry(address).or_insert(0);
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(Some(Counted { by_address: Arc::clone(&self.by_address), address }))
    }
}

/// What one client has of addresses: the whole network of 64 bits, where it is IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address => address,
    }
}

/// A connection that counts among those of its address.
struct Counted {
    by_address: Arc<Mutex<HashMap<IpAddr, usize>>>,
    address: IpAddr,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

/// The place of a connection.
struct Slot {
    held: Mutex<Held>,
    kept: Arc<Semaphore>,
    is_kept: AtomicBool,
}

/// What goes back when the connection ends.
struct Held {
    _permit: Option<OwnedSemaphorePermit>,
    _counted: Option<Counted>,
}

impl Slot {
    /// Moves a connection that has shown a valid token to the places that are kept for such, if one is free.
    fn keep(&self) {
        if self.is_kept.load(Ordering::Relaxed) {
            return;
        }
        let Ok(permit) = Arc::clone(&self.kept).try_acquire_owned() else { return };
        self.is_kept.store(true, Ordering::Relaxed);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *held, Held { _permit: Some(permit), _counted: None });
        drop((held, before));
    }
}

struct Connection {
    router: Router,
    clock: Arc<dyn Clock>,
    peer: SocketAddr,
    stopped: watch::Receiver<bool>,
    activity: Arc<Activity>,
    slot: Arc<Slot>,
}

impl Connection {
    async fn open(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        let stream = Patient { stream, clock: Arc::clone(&self.clock), blocked: None, taken: 0 };
        let Some(tls) = tls else { return self.serve(stream, None).await };
        let shaken = tokio::select! {
            shaken = tls.accept(stream) => shaken,
            () = self.clock.sleep(HANDSHAKE_MAX) => Err(io::ErrorKind::TimedOut.into()),
        };
        match shaken {
            Ok(stream) => {
                let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                let certificate = shown.map(|der| ClientCertificate(Bytes::copy_from_slice(der)));
                self.serve(stream, certificate).await;
            }
            Err(error) => tracing::debug!(%error, peer = %self.peer, "no TLS handshake"),
        }
    }

    async fn serve(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        certificate: Option<ClientCertificate>,
    ) {
        let mut builder = auto::Builder::new(TokioExecutor::new());
        builder.http1().max_buf_size(HEAD_BYTES_MAX);
        builder
            .http2()
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(30))
            .max_concurrent_streams(STREAMS_MAX)
            .max_header_list_size(HEAD_BYTES_MAX as u32);
        let (router, peer, activity) = (self.router, Peer(self.peer), Arc::clone(&self.activity));
        let slot = Arc::clone(&self.slot);
        let showed = ShowedToken(Arc::new(move || slot.keep()));
        let service = service_fn(move |request: Request<Incoming>| {
            let (router, certificate, under_way) = (router.clone(), certificate.clone(), activity.begin());
            let showed = showed.clone();
            async move {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(peer);
                request.extensions_mut().insert(showed);
                certificate.map(|certificate| request.extensions_mut().insert(certificate));
                let answer = router.oneshot(request).await?;
                Ok::<_, Infallible>(
                    answer.map(|body| Body::new(Answering { body, under_way, progress: None })),
                )
            }
        });
        let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            ended = serving.as_mut() => return tell(self.peer, ended),
            () = stop(&mut self.stopped) => serving.as_mut().graceful_shutdown(),
            idle = self.activity.idle(FIRST_REQUEST_MAX, IDLE_MAX) => {
                if idle == Idle::TooSlow {
                    tracing::debug!(peer = %self.peer, "a client took too little of its answer");
                    return;
                }
                serving.as_mut().graceful_shutdown();
                self.activity.rest();
                // One whose request is only half there does not take the hint.
                tokio::select! {
                    ended = serving.as_mut() => tell(self.peer, ended),
                    _ = self.activity.idle(GOODBYE_MAX, GOODBYE_MAX) => {}
                }
                return;
            }
        }
        tell(self.peer, serving.await);
    }
}

/// Returns when the server stops.
async fn stop(stopped: &mut watch::Receiver<bool>) {
    // An error says that the server is gone, which is a stop too.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// How a connection ended interests whoever looks into a client's trouble.
fn tell(peer: SocketAddr, ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(%peer, error = &*error as &dyn std::error::Error, "a connection broke");
    }
}

/// The requests of a connection, until their answers are sent.
///
/// A request only notes that it is there: who waits for the connection to be idle looks now and then, so that a request
/// costs no timer and wakes up nobody.
struct Activity {
    clock: Arc<dyn Clock>,
    under_way: AtomicUsize,
    had_one: AtomicBool,
    /// When it began to rest.
    since: AtomicI64,
    /// Of answers that are longer than one frame.
    answers: Mutex<Vec<Weak<Progress>>>,
}

/// Why a connection is not waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Idle {
    /// It has no request.
    Resting,
    /// Its client takes too little of an answer.
    TooSlow,
}

/// How an answer goes out.
///
/// A socket that takes nothing is noticed by [`Patient`]. On a connection of HTTP/2 the client may hold one answer back while the
/// socket is free.
#[derive(Debug)]
struct Progress {
    bytes: AtomicUsize,
    /// Whether the answer is not made yet, so that the client is not the one who is waited for.
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
    fn new(clock: Arc<dyn Clock>) -> Self {
        let since = AtomicI64::new(clock.now().0);
        let (under_way, had_one) = (AtomicUsize::new(0), AtomicBool::new(false));
        Self { clock, under_way, had_one, since, answers: Mutex::default() }
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

    fn begin(self: &Arc<Self>) -> UnderWay {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        self.had_one.store(true, Ordering::SeqCst);
        UnderWay(Arc::clone(self))
    }

    /// Counts its rest from now on.
    fn rest(&self) {
        self.since.store(self.clock.now().0, Ordering::SeqCst);
    }

    /// Returns when the connection had no request for this long, or for `first` if it never had one; or when its client takes too
    /// little of an answer.
    async fn idle(&self, first: Duration, duration: Duration) -> Idle {
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

struct UnderWay(Arc<Activity>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.rest();
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The body of an answer, which is under way until it is sent.
struct Answering {
    body: Body,
    under_way: UnderWay,
    progress: Option<Arc<Progress>>,
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
        // Most answers are one frame, of which nothing needs to be known.
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

/// A stream whose writes fail when the other side takes too little for too long.
struct Patient {
    stream: TcpStream,
    clock: Arc<dyn Clock>,
    /// The end of its time, while something is there that the other side has not taken.
    blocked: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// What it took of that time's bytes.
    taken: usize,
}

impl Patient {
    fn wait(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(taken) = &result {
            self.taken = self.taken.saturating_add(taken.as_ref().map_or(0, |taken| *taken));
            if self.taken >= PROGRESS_BYTES_MIN {
                self.blocked = None;
            }
            return result;
        }
        let blocked = match &mut self.blocked {
            Some(blocked) => blocked,
            None => {
                let clock = Arc::clone(&self.clock);
                self.taken = 0;
                self.blocked.insert(Box::pin(async move { clock.sleep(WRITE_PAUSE_MAX).await }))
            }
        };
        blocked.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wait(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wait(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // It is flushed when all has been taken.
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.blocked = None;
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;

//! Connections: how they are accepted, how long a client may keep one waiting, and how they end.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
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
use statewright_shared::api::{ClientCertificate, Peer};
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

/// A client that takes nothing of its answer for so long is not waited for.
const WRITE_PAUSE_MAX: Duration = Duration::from_secs(30);

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
    /// Connections at once; more wait to be accepted.
    pub(super) connections_max: usize,
}

impl Server {
    /// Serves until it is asked to stop, and then until the requests under way are answered, but not for ever.
    pub(super) async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listener, tls, router, clock, connections_max } = self;
        let slots = Arc::new(Semaphore::new(connections_max));
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
            };
            let tls = tls.as_ref().map(|tls| TlsAcceptor::from(tls.config()));
            tokio::spawn(async move {
                connection.open(stream, tls).await;
                drop(slot);
            });
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

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    clock: &dyn Clock,
) -> (Option<OwnedSemaphorePermit>, TcpStream, SocketAddr) {
    // Nobody closes the semaphore.
    let slot = Arc::clone(slots).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
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

struct Connection {
    router: Router,
    clock: Arc<dyn Clock>,
    peer: SocketAddr,
    stopped: watch::Receiver<bool>,
    activity: Arc<Activity>,
}

impl Connection {
    async fn open(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        let stream = Patient { stream, clock: Arc::clone(&self.clock), blocked: None };
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
        let service = service_fn(move |request: Request<Incoming>| {
            let (router, certificate, under_way) = (router.clone(), certificate.clone(), activity.begin());
            async move {
                let mut request = request.map(Body::new);
                request.extensions_mut().insert(peer);
                certificate.map(|certificate| request.extensions_mut().insert(certificate));
                let answer = router.oneshot(request).await;
                answer.map(|answer| answer.map(|body| Body::new(Answering { body, _under_way: under_way })))
            }
        });
        let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            ended = serving.as_mut() => return tell(self.peer, ended),
            () = stop(&mut self.stopped) => serving.as_mut().graceful_shutdown(),
            () = self.activity.idle(FIRST_REQUEST_MAX, IDLE_MAX) => {
                serving.as_mut().graceful_shutdown();
                self.activity.rest();
                // One whose request is only half there does not take the hint.
                tokio::select! {
                    ended = serving.as_mut() => tell(self.peer, ended),
                    () = self.activity.idle(GOODBYE_MAX, GOODBYE_MAX) => {}
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
}

impl Activity {
    fn new(clock: Arc<dyn Clock>) -> Self {
        let since = AtomicI64::new(clock.now().0);
        Self { clock, under_way: AtomicUsize::new(0), had_one: AtomicBool::new(false), since }
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

    /// Returns when the connection had no request for this long, or for `first` if it never had one.
    async fn idle(&self, first: Duration, duration: Duration) {
        loop {
            let left = match self.under_way.load(Ordering::SeqCst) {
                0 => {
                    let patience = if self.had_one.load(Ordering::SeqCst) { duration } else { first };
                    let since = Timestamp(self.since.load(Ordering::SeqCst));
                    patience.saturating_sub(self.clock.now().since(since))
                }
                _ => LOOK_EVERY,
            };
            if left.is_zero() {
                return;
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
    _under_way: UnderWay,
}

impl HttpBody for Answering {
    type Data = <Body as HttpBody>::Data;
    type Error = <Body as HttpBody>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A stream whose writes fail when the other side takes nothing for too long.
struct Patient {
    stream: TcpStream,
    clock: Arc<dyn Clock>,
    blocked: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Patient {
    fn wait<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.blocked = None;
            return result;
        }
        let clock = Arc::clone(&self.clock);
        let blocked =
            self.blocked.get_or_insert_with(|| Box::pin(async move { clock.sleep(WRITE_PAUSE_MAX).await }));
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
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;

//! What every request of the program goes through: connections, which are accepted, waited for and closed, the
//! router, and the log. The commands are in another package, which is built to be small, and this one to be fast.
//!
//! HTTP libraries close some connections without a response, for example after an incomplete request head.
//! This module sends those clients an error, and makes sure that a response to a request whose body was not
//! read is not lost to a TCP reset.

mod activity;
mod log;
mod stream;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Version};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use statewright_shared::api::{self, App, ClientCertificate, Peer, ShowedToken, routes::Everything};
use statewright_shared::domain::oidc::addresses;
use statewright_shared::ports::Clock;
use statewright_shared::wire::Reason;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use self::activity::{Activity, Answering, Asking, Idle};
use self::stream::{Heard, Lent, Patient};

pub use self::log::{LogForm, start_log};
pub use self::tls::Tls;

/// Timeout of the TLS handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// Timeout for the head of a connection's first request.
const FIRST_REQUEST_MAX: Duration = Duration::from_secs(30);

/// Timeout of a connection without a request. Longer than the 90 seconds for which Pulumi's CLI keeps its
/// connections, so that it does not send a request that it cannot repeat into a connection that is just being
/// closed.
const IDLE_MAX: Duration = Duration::from_secs(120);

/// Time for requests in progress when the server stops: enough for a publication, and less than service
/// managers allow.
const STOP_MAX: Duration = Duration::from_secs(25);

/// Time for a client to notice that its connection closes.
const GOODBYE_MAX: Duration = Duration::from_secs(5);

/// The size limit of a request head, in bytes. The longest that Pulumi's CLI sends is some 2 KB.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// The size limit, in bytes, of a request body that is discarded after an early refusal so that the
/// connection can be reused. After a longer one the connection is closed.
const READ_OUT_MAX: u64 = 16 << 10;

/// Connections above the limit of an address that get an explanation at the same time; others are closed
/// silently.
const TURNED_AWAY_MAX: usize = 64;

/// Concurrent requests on one HTTP/2 connection. Pulumi's CLI opens another connection for more.
const STREAMS_MAX: u32 = 256;

/// A router of all routes.
pub fn router(app: App) -> Router {
    // It is generic, so it is built with the package that names it.
    api::router::<Everything>(app)
}

/// Work of any kind. What takes and returns it is built with this package, for speed: generic functions, and futures that
/// others wait for by their own type, are built with the package that uses them.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What is served, and at which sockets.
pub struct Server {
    /// The listening sockets, at least one.
    pub listeners: Vec<TcpListener>,
    /// The certificate; `None` for plain HTTP.
    pub tls: Option<Arc<Tls>>,
    /// The routes of every socket.
    pub router: Router,
    /// Tells how long a client has been silent.
    pub clock: Arc<dyn Clock>,
    /// The limit on connections; others wait to be accepted. Half of them are reserved for clients that have
    /// shown a valid token.
    pub connections_max: usize,
    /// The limit on connections without a valid token from one address; others are closed. `None` for no
    /// limit.
    pub per_address_max: Option<usize>,
}

impl Server {
    /// Serves until it is asked to stop, then waits for requests in progress, but at most [`STOP_MAX`].
    pub fn run(self, stop: Work) -> Work {
        Box::pin(self.serve(stop))
    }

    async fn serve(self, mut stop: Work) {
        let Self { listeners, tls, router, clock, connections_max, per_address_max } = self;
        let slots = Slots::new(connections_max, per_address_max);
        let (is_plain, turned_away) = (tls.is_none(), Arc::new(Semaphore::new(TURNED_AWAY_MAX)));
        // With TLS an explanation would need a handshake, which costs too much.
        let turn_away = |stream: TcpStream| {
            let Ok(permit) = Arc::clone(&turned_away).try_acquire_owned() else { return };
            if is_plain {
                tokio::spawn(turn_away(stream, Arc::clone(&clock), permit));
            }
        };
        let (stopping, stopped) = watch::channel(false);
        loop {
            let (slot, stream, peer) = tokio::select! {
                biased;
                () = &mut stop => break,
                accepted = accept(&listeners, &slots, &*clock, &turn_away) => accepted,
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
        drop((listeners, stopped));
        stopping.send_replace(true);
        // Every connection holds a receiver until it ends.
        tokio::select! {
            () = stopping.closed() => {}
            () = clock.sleep(STOP_MAX) => {
                tracing::warn!(connections = stopping.receiver_count(), "stopping despite requests in progress");
            }
        }
    }
}

/// Explains to a client that it has too many connections.
async fn turn_away(stream: TcpStream, clock: Arc<dyn Clock>, permit: OwnedSemaphorePermit) {
    const WHY: &str = "this address has too many connections without a valid token: close some of them";
    let mut heard = Heard::new(stream, Arc::new(Activity::new(Arc::clone(&clock))));
    heard.answer_unheard(Reason::TooManyRequests, WHY).await;
    heard.linger(&*clock).await;
    drop(permit);
}

async fn accept(
    listeners: &[TcpListener],
    slots: &Slots,
    clock: &dyn Clock,
    turn_away: &(dyn Fn(TcpStream) + Sync),
) -> (Slot, TcpStream, SocketAddr) {
    // The semaphore is never closed.
    let permit = Arc::clone(&slots.open).acquire_owned().await.ok();
    loop {
        let next = poll_fn(|task| {
            let ready = listeners.iter().map(|listener| listener.poll_accept(task)).find(Poll::is_ready);
            ready.unwrap_or(Poll::Pending)
        });
        match next.await {
            Ok((stream, peer)) => {
                let Some(counted) = slots.count(peer) else {
                    tracing::debug!(%peer, "connection refused: its address has reached the limit");
                    turn_away(stream);
                    continue;
                };
                let slot = Slot {
                    held: Mutex::new(Held { _permit: permit, _counted: counted }),
                    kept: Arc::clone(&slots.kept),
                    is_kept: AtomicBool::new(false),
                };
                // Responses are small and clients wait for them: without this, each may wait for the client's
                // acknowledgement.
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "cannot set TCP_NODELAY");
                }
                return (slot, stream, peer);
            }
            // Either one connection was closed before it was accepted, or no connection can be accepted, for
            // example without free file descriptors.
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                clock.sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

struct Slots {
    open: Arc<Semaphore>,
    /// Reserved for connections that have shown a valid token.
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

    /// Counts a connection of this address; `None` if the address has too many.
    fn count(&self, peer: SocketAddr) -> Option<Option<Counted>> {
        let Some(max) = self.per_address_max else { return Some(None) };
        let address = addresses::of_client(peer.ip());
        let mut by_address = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let count = by_address.entry(address).or_insert(0);
        if *count >= max {
            return None;
        }
        *count += 1;
        Some(Some(Counted { by_address: Arc::clone(&self.by_address), address }))
    }
}

/// A connection counted for its address. Dropping it ends the count.
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

struct Slot {
    held: Mutex<Held>,
    kept: Arc<Semaphore>,
    is_kept: AtomicBool,
}

/// Permits that are released when the connection ends.
struct Held {
    _permit: Option<OwnedSemaphorePermit>,
    _counted: Option<Counted>,
}

impl Slot {
    /// Moves a connection that has shown a valid token to the reserved places, if one is free.
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
        let clock = Arc::clone(&self.clock);
        let Some(tls) = tls else { return self.serve(Patient::new(stream, clock), None).await };
        let shake = async {
            let is_plain = is_plain(&stream).await?;
            let stream = Patient::new(stream, clock);
            if is_plain { Ok(Err(stream)) } else { tls.accept(stream).await.map(Ok) }
        };
        let shaken = tokio::select! {
            shaken = shake => shaken,
            () = self.clock.sleep(HANDSHAKE_MAX) => Err(io::ErrorKind::TimedOut.into()),
        };
        match shaken {
            Ok(Err(plain)) => {
                let mut heard = Heard::new(plain, self.activity);
                heard.answer_unheard(Reason::InvalidRequest, "this server uses TLS: use https://").await;
                heard.linger(&*self.clock).await;
            }
            Ok(Ok(stream)) => {
                let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
                let certificate = shown.map(|der| ClientCertificate(Bytes::copy_from_slice(der)));
                self.serve(stream, certificate).await;
            }
            Err(error) => tracing::debug!(%error, peer = %self.peer, "TLS handshake failed"),
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
            let (showed, activity) = (showed.clone(), Arc::clone(&activity));
            async move {
                let version = request.version();
                // Unknown for a chunked body.
                let is_short = request.body().size_hint().exact().is_some_and(|bytes| bytes <= READ_OUT_MAX);
                let (head, body) = request.into_parts();
                let mut request = Request::from_parts(head, Body::new(Asking::new(body, &activity)));
                request.extensions_mut().insert(peer);
                request.extensions_mut().insert(showed);
                certificate.map(|certificate| request.extensions_mut().insert(certificate));
                let mut answer = router.oneshot(request).await?;
                if activity.is_body_unread() && !is_short && version <= Version::HTTP_11 {
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(answer.map(|body| Body::new(Answering::new(body, under_way))))
            }
        });
        let (stream, owner) = Lent::new(stream, Arc::clone(&self.activity));
        let end = {
            let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
            tokio::select! {
                ended = serving.as_mut() => {
                    let is_well = ended.is_ok();
                    log_end(self.peer, ended);
                    if is_well { End::Well } else { End::Broken }
                }
                () = stop(&mut self.stopped) => {
                    serving.as_mut().graceful_shutdown();
                    log_end(self.peer, serving.await);
                    End::Stopped
                }
                idle = self.activity.idle(FIRST_REQUEST_MAX, IDLE_MAX) => {
                    if idle == Idle::TooSlow {
                        tracing::debug!(peer = %self.peer, "closed: the client read its response too slowly");
                        return;
                    }
                    serving.as_mut().graceful_shutdown();
                    self.activity.rest();
                    // A connection with an incomplete request ignores the graceful shutdown.
                    tokio::select! {
                        ended = serving.as_mut() => log_end(self.peer, ended),
                        _ = self.activity.idle(GOODBYE_MAX, GOODBYE_MAX) => {}
                    }
                    End::Late
                }
            }
        };
        let Some(mut heard) = owner.take() else { return };
        let is_logged = match end.answer() {
            Some((reason, why)) => heard.answer(reason, why).await,
            None => false,
        };
        if is_logged || end == End::Broken || self.activity.is_body_unread() {
            heard.linger(&*self.clock).await;
        }
    }
}

/// Whether a client starts with a letter, as in HTTP and unlike in TLS (RFC 8446, section 5.1).
async fn is_plain(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let bytes = stream.peek(&mut first).await?;
    Ok(bytes > 0 && first[0].is_ascii_alphabetic())
}

/// How HTTP on a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Every request got a response.
    Well,
    /// The client sent something invalid or incomplete.
    Broken,
    /// The client was too slow.
    Late,
    /// The server is stopping.
    Stopped,
}

impl End {
    /// The response to a request that HTTP left unanswered.
    fn answer(self) -> Option<(Reason, &'static str)> {
        match self {
            Self::Well => None,
            Self::Broken => Some((
                Reason::InvalidRequest,
                "this is not a valid HTTP/1.1 or HTTP/2 request, or it is incomplete: send it again",
            )),
            Self::Late => {
                Some((Reason::RequestTimeout, "the request was not complete in time: send it again"))
            }
            Self::Stopped => Some((Reason::ServerStopping, "the server is stopping: send the request again")),
        }
    }
}

/// Completes when the server stops.
async fn stop(stopped: &mut watch::Receiver<bool>) {
    // An error means that the server was dropped, which also stops the connection.
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

/// Logs how a connection ended, to help with problems of clients.
fn log_end(peer: SocketAddr, ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(%peer, error = &*error as &dyn std::error::Error, "connection failed");
    }
}

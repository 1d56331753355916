//! Slow and broken clients, on a clock that the tests control.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Json;
use axum::body::HttpBody;
use axum::extract::Extension;
use axum::routing::{get, post};
use hyper::body::Frame;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::client::ResolvesClientCert;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, RootCertStore, SignatureScheme, SupportedProtocolVersion};
use statewright_shared::adapters::ManualClock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

use super::activity::PROGRESS_BYTES_MIN;
use super::*;

struct Running {
    address: SocketAddr,
    clock: ManualClock,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

async fn start(router: Router, tls: Option<Arc<Tls>>, connections_max: usize) -> Running {
    start_with(router, tls, connections_max, None).await
}

async fn start_with(
    router: Router,
    tls: Option<Arc<Tls>>,
    connections_max: usize,
    per_address_max: Option<usize>,
) -> Running {
    start_at(router, tls, connections_max, per_address_max, None).await
}

async fn start_at(
    router: Router,
    tls: Option<Arc<Tls>>,
    connections_max: usize,
    per_address_max: Option<usize>,
    also: Option<TcpListener>,
) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let listeners = [Some(listener), also].into_iter().flatten().collect();
    let clock = ManualClock::default();
    let (stop, stopped) = oneshot::channel();
    let port: Arc<dyn Clock> = Arc::new(clock.clone());
    let server = Server { listeners, tls, router, clock: port, connections_max, per_address_max };
    let server = tokio::spawn(server.run(Box::pin(async {
        let _ = stopped.await;
    })));
    Running { address, clock, stop, server }
}

fn echo() -> Router {
    let peer = |Extension(Peer(peer)): Extension<Peer>| async move { Json(peer.ip().to_string()) };
    let certificate = |certificate: Option<Extension<ClientCertificate>>| async move {
        certificate.map_or_else(Vec::new, |Extension(ClientCertificate(der))| der.to_vec())
    };
    Router::new()
        .route("/peer", get(peer))
        .route("/certificate", get(certificate))
        .route("/echo", post(|body: String| async move { body }))
}

impl Running {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Advances the clock by a second at a time until this is done. Returns the number of seconds.
    async fn pass_time_until<T>(&self, work: impl Future<Output = T>) -> (T, u32) {
        let mut work = pin!(work);
        let mut seconds = 0;
        loop {
            // The server must observe each second before the next: a sleep counts from its start.
            for _ in 0..20 {
                tokio::select! {
                    biased;
                    done = work.as_mut() => return (done, seconds),
                    () = tokio::task::yield_now() => {}
                }
            }
            self.clock.advance(Duration::from_secs(1));
            seconds += 1;
            assert!(seconds < 100_000, "it never ends");
        }
    }
}

const ASK: &[u8] = b"GET /peer HTTP/1.1\r\nHost: test\r\n\r\n";

async fn answer(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\"127.0.0.1\"") {
        assert_ne!(stream.read_buf(&mut text).await.unwrap(), 0, "{}", String::from_utf8_lossy(&text));
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn a_client_without_a_complete_request_is_disconnected() {
    let server = start(echo(), None, 10).await;
    for beginning in [&b""[..], b"GET /peer HT", b"PRI * HTTP/2.0\r\n", &ASK[..ASK.len() - 2]] {
        let mut stream = server.connect().await;
        stream.write_all(beginning).await.unwrap();
        let mut rest = Vec::new();
        let (read, seconds) = server.pass_time_until(stream.read_to_end(&mut rest)).await;
        read.unwrap();
        let expected = if beginning.is_empty() { "" } else { "HTTP/1.1 408 Request Timeout\r\n" };
        let rest = String::from_utf8(rest).unwrap();
        assert!(rest.starts_with(expected) && rest.is_empty() == expected.is_empty(), "{rest}");
        assert!(seconds >= 30, "{seconds}");
    }
}

#[tokio::test]
async fn an_idle_connection_is_kept_for_a_limited_time() {
    let server = start(echo(), None, 10).await;
    let mut stream = server.connect().await;
    for _ in 0..3 {
        stream.write_all(ASK).await.unwrap();
        let text = answer(&mut stream).await;
        assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
        server.clock.advance(IDLE_MAX - Duration::from_secs(1));
    }
    let mut rest = Vec::new();
    let (read, seconds) = server.pass_time_until(stream.read_to_end(&mut rest)).await;
    assert_eq!((read.unwrap(), rest.len()), (0, 0));
    assert!(seconds > 0, "it was closed too early");
}

/// Signals when it is dropped.
struct Dropped(Option<oneshot::Sender<()>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        if let Some(sender) = self.0.take() {
            let _ = sender.send(());
        }
    }
}

struct Endless(#[expect(dead_code, reason = "held to be dropped")] Dropped);

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b' '; 1 << 16])))))
    }
}

/// A server whose answer at `/endless` never ends, and what is sent when that answer is dropped.
async fn start_endless() -> (Running, oneshot::Receiver<()>) {
    let (sender, dropped) = oneshot::channel();
    let sender = Arc::new(Mutex::new(Some(sender)));
    let endless = move || {
        let sender = sender.lock().unwrap().take();
        async move { Body::new(Endless(Dropped(sender))) }
    };
    (start(Router::new().route("/endless", get(endless)), None, 10).await, dropped)
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
    let (server, dropped) = start_endless().await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /endless HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
    let (dropped, seconds) = server.pass_time_until(dropped).await;
    dropped.unwrap();
    assert!(seconds >= 30, "{seconds}");
}

#[tokio::test]
async fn a_client_that_reads_too_slowly_is_disconnected() {
    let (server, dropped) = start_endless().await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /endless HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
    let (mut dropped, mut seconds) = (pin!(dropped), 0);
    let trickle = async {
        let mut little = [0; 512];
        loop {
            tokio::select! {
                biased;
                dropped = dropped.as_mut() => return dropped.unwrap(),
                read = stream.read(&mut little) => {
                    read.unwrap();
                    server.clock.advance(Duration::from_millis(500));
                    seconds += 1;
                    tokio::task::yield_now().await;
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), trickle).await.expect("it is disconnected in time");
    assert!(seconds >= 60, "{seconds} halves of a second");
}

#[tokio::test]
async fn a_client_that_reads_fast_enough_stays_connected() {
    let long = || async { vec![b' '; 4 << 20] };
    let server = start(Router::new().route("/long", get(long)), None, 10).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /long HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").await.unwrap();
    let (mut read, mut piece) = (0, vec![0; PROGRESS_BYTES_MIN]);
    loop {
        let bytes = stream.read(&mut piece).await.unwrap();
        if bytes == 0 {
            break;
        }
        read += bytes;
        server.clock.advance(Duration::from_millis(100));
        tokio::task::yield_now().await;
    }
    assert!(read > 4 << 20, "{read}");
}

#[tokio::test]
async fn an_unread_http_2_response_ends_its_connection() {
    let (server, dropped) = start_endless().await;
    let stream = TokioIo::new(server.connect().await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("http://test/endless").body(Body::empty()).unwrap();
    // The body is never read.
    let answer = sender.send_request(request).await.unwrap();
    let (dropped, seconds) = server.pass_time_until(dropped).await;
    dropped.unwrap();
    assert!((30..=100).contains(&seconds), "{seconds}");
    drop(answer);
}

#[tokio::test]
async fn connections_without_a_token_are_limited_per_address() {
    let shows = |Extension(ShowedToken(notify)): Extension<ShowedToken>| async move {
        notify();
        Json("127.0.0.1")
    };
    let router = echo().route("/token", get(shows));
    let server = start_with(router, None, 20, Some(2)).await;
    let ask = async |stream: &mut TcpStream, path: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"\"127.0.0.1\"") {
            if stream.read_buf(&mut text).await.unwrap_or(0) == 0 {
                return false;
            }
        }
        true
    };
    let (mut one, mut two) = (server.connect().await, server.connect().await);
    assert!(ask(&mut one, "/peer").await && ask(&mut two, "/peer").await);
    let mut third = server.connect().await;
    let answer = exchange(&mut third, ASK, Sent::AndWaits).await;
    assert!(answer.starts_with("HTTP/1.1 429 ") && answer.contains("too many connections"), "{answer}");
    assert!(ask(&mut one, "/token").await);
    let mut three = server.connect().await;
    assert!(ask(&mut three, "/peer").await, "the first connection has a reserved place");
    assert!(!ask(&mut server.connect().await, "/peer").await);
    assert!(ask(&mut one, "/token").await && ask(&mut two, "/peer").await);
    drop(three);
    let again = async { while !ask(&mut server.connect().await, "/peer").await {} };
    tokio::time::timeout(Duration::from_secs(60), again).await.expect("its place is released");
}

#[tokio::test]
async fn a_second_socket_has_the_same_routes_and_limits() {
    let also = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let second = also.local_addr().unwrap();
    let server = start_at(echo(), None, 20, Some(2), Some(also)).await;
    let mut streams = [server.connect().await, TcpStream::connect(second).await.unwrap()];
    for stream in &mut streams {
        stream.write_all(ASK).await.unwrap();
        assert!(answer(stream).await.starts_with("HTTP/1.1 200 "));
    }
    for address in [server.address, second] {
        let mut third = TcpStream::connect(address).await.unwrap();
        let answer = exchange(&mut third, ASK, Sent::AndWaits).await;
        assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    }
    server.stop.send(()).unwrap();
    drop(streams);
    server.server.await.unwrap();
    for address in [server.address, second] {
        assert!(TcpStream::connect(address).await.is_err(), "{address} is still served");
    }
}

/// What a client does after sending a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    /// It waits for the response.
    AndWaits,
    /// It closes its sending side.
    AndEnds,
}

/// Returns everything received by a client that reads only after sending everything, and the errors of its
/// connection.
async fn exchange(stream: &mut TcpStream, bytes: &[u8], sent: Sent) -> String {
    let talk = async {
        // The server decides whether it reads everything.
        let written = stream.write_all(bytes).await;
        if sent == Sent::AndEnds {
            let _ = stream.shutdown().await;
        }
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer).await;
        let lost =
            if written.is_err() || read.is_err() { format!("{written:?} {read:?}") } else { String::new() };
        String::from_utf8_lossy(&answer).into_owned() + &lost
    };
    tokio::time::timeout(Duration::from_secs(60), talk).await.expect("the exchange ends")
}

/// A server that refuses most requests after reading their head.
async fn refusing(tls: Option<Arc<Tls>>) -> Running {
    let refuse = || async { axum::http::StatusCode::UNAUTHORIZED };
    let read = |body: Result<Bytes, axum::extract::rejection::BytesRejection>| async move {
        match body {
            Ok(body) => Ok(body.len().to_string()),
            Err(refused) => Err(refused),
        }
    };
    start(echo().route("/refuse", post(refuse)).route("/read", post(read)), tls, 10).await
}

/// Every client reads the error, even one that sends more before it reads.
#[tokio::test]
async fn every_bad_request_gets_a_response() {
    let server = refusing(None).await;
    let long = |bytes: usize| "x".repeat(bytes);
    let rest = long(4 << 20);
    let head = |line: &str, more: &str| format!("{line}\r\nHost: test\r\n{more}\r\n");
    let post = |path: &str, more: &str, body: &str| {
        format!("{}{body}", head(&format!("POST {path} HTTP/1.1"), more))
    };
    let length = |bytes: usize| format!("Content-Length: {bytes}\r\n");
    let many: String = (0..200).map(|number| format!("X-{number}: 1\r\n")).collect();
    let chunked = "Transfer-Encoding: chunked\r\n";
    let cases = [
        ("no HTTP", format!("\u{0}\u{1}\u{2}garbage\r\n\r\n{rest}"), 400),
        ("a bad method", head("G(T / HTTP/1.1", "") + &rest, 400),
        ("a bad version", head("GET / HTTP/9.9", "") + &rest, 400),
        ("a bad path", head("GET /a\u{1}b HTTP/1.1", "") + &rest, 400),
        ("no version", "GET /\r\n\r\n".to_owned() + &rest, 400),
        ("a bad name of a header", head("GET /peer HTTP/1.1", "a b: c\r\n") + &rest, 400),
        ("a bad value of a header", head("GET /peer HTTP/1.1", "a: \u{1}\r\n") + &rest, 400),
        ("a header without a colon", head("GET /peer HTTP/1.1", "nothing\r\n") + &rest, 400),
        ("a bad length", post("/read", "Content-Length: -1\r\n", &rest), 400),
        ("two lengths", post("/read", "Content-Length: 1\r\nContent-Length: 2\r\n", &rest), 400),
        ("an unknown encoding", post("/read", "Transfer-Encoding: other\r\n", &rest), 400),
        ("half of HTTP/2", format!("PRI * HTTP/2.0\r\n\r\n{rest}"), 400),
        ("a path that is too long", head(&format!("GET /{} HTTP/1.1", long(70_000)), "") + &rest, 431),
        ("a header that is too long", head("GET /peer HTTP/1.1", &format!("a: {}\r\n", long(1 << 20))), 431),
        ("too many headers", head("GET /peer HTTP/1.1", &many) + &rest, 431),
        ("a refused body", post("/refuse", &length(rest.len()), &rest), 401),
        (
            "a refused body in chunks",
            post("/refuse", chunked, &format!("400000\r\n{rest}\r\n0\r\n\r\n")),
            401,
        ),
        ("a body that is too long", post("/read", &length(rest.len()), &rest), 413),
        ("a bad chunk", post("/read", chunked, &format!("zz\r\n{rest}")), 400),
    ];
    let mut wrong = Vec::new();
    for (what, bytes, status) in cases {
        let answer = exchange(&mut server.connect().await, bytes.as_bytes(), Sent::AndWaits).await;
        let is_closed = answer.to_lowercase().contains("\r\nconnection: close\r\n");
        let is_so = answer.starts_with(&format!("HTTP/1.1 {status} ")) && !answer.contains("Err(");
        if !is_closed || !is_so || answer.matches("HTTP/1.1 4").count() != 1 {
            wrong.push(format!("{what}: {answer}"));
        }
    }
    // Incomplete input.
    for (what, bytes) in [
        ("a line", "GET /pe".to_owned()),
        ("a head", "GET /peer HTTP/1.1\r\nHost: test\r\n".to_owned()),
        ("HTTP/2", "PRI * HT".to_owned()),
        ("a body", post("/read", &length(100), "half")),
        ("a chunk", post("/read", chunked, "64\r\nhalf")),
    ] {
        let mut stream = server.connect().await;
        // The server waits for the end of a body.
        let time = async {
            loop {
                let _ = tokio::time::timeout(Duration::from_millis(20), std::future::pending::<()>()).await;
                server.clock.advance(Duration::from_secs(1));
            }
        };
        let answer = tokio::select! {
            answer = exchange(&mut stream, bytes.as_bytes(), Sent::AndEnds) => answer,
            () = time => unreachable!("time does not end"),
        };
        if !answer.starts_with("HTTP/1.1 400 Bad Request\r\n") || answer.matches("HTTP/1.1 4").count() != 1 {
            wrong.push(format!("half of {what}: {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // A client that closes its sending side still gets its response.
    for _ in 0..20 {
        let answer = exchange(&mut server.connect().await, ASK, Sent::AndEnds).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:?}");
        let chunks = post("/read", chunked, "4\r\nbody\r\n0\r\n\r\n");
        let answer = exchange(&mut server.connect().await, chunks.as_bytes(), Sent::AndEnds).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:?}");
    }
    // Without a request there is no response.
    assert_eq!(exchange(&mut server.connect().await, b"", Sent::AndEnds).await, "");
}

#[tokio::test]
async fn requests_of_a_disconnected_client_are_aborted() {
    let (sender, dropped) = oneshot::channel();
    let sender = Arc::new(Mutex::new(Some(sender)));
    let never = move || {
        let dropped = Dropped(sender.lock().unwrap().take());
        async move {
            let _dropped = dropped;
            std::future::pending::<&str>().await
        }
    };
    let server = start(Router::new().route("/peer", get(never)), None, 10).await;
    let mut stream = server.connect().await;
    stream.write_all(ASK).await.unwrap();
    drop(stream);
    let (dropped, seconds) = server.pass_time_until(dropped).await;
    dropped.unwrap();
    assert!((5..=60).contains(&seconds), "{seconds}");
}

/// A short body is discarded and the connection is reused.
#[tokio::test]
async fn a_refused_short_body_keeps_the_connection() {
    let server = refusing(None).await;
    let mut stream = server.connect().await;
    for _ in 0..3 {
        let refused = b"POST /refuse HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\n{}";
        stream.write_all(refused).await.unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut text).await.unwrap(), 0);
        }
        assert!(!String::from_utf8(text).unwrap().to_lowercase().contains("connection: close"));
    }
    stream.write_all(ASK).await.unwrap();
    answer(&mut stream).await;
}

#[tokio::test]
async fn plain_http_on_a_tls_port_gets_an_explanation() {
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path());
    let tls = Tls::load(&folder.path().join("cert.pem"), &folder.path().join("key.pem")).unwrap();
    let server = refusing(Some(Arc::new(tls))).await;
    let answer = exchange(&mut server.connect().await, ASK, Sent::AndWaits).await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("uses TLS"), "{answer}");
}

/// A route that signals when it is called, and responds when the test lets it.
fn waiting() -> (Router, oneshot::Receiver<()>, oneshot::Sender<()>) {
    let (started, has_started) = oneshot::channel();
    let (go, gone) = oneshot::channel::<()>();
    let once = Arc::new(Mutex::new(Some((started, gone))));
    let wait = move || {
        let once = once.lock().unwrap().take();
        async move {
            if let Some((started, gone)) = once {
                started.send(()).unwrap();
                let _ = gone.await;
            }
            "\"127.0.0.1\""
        }
    };
    (Router::new().route("/peer", get(wait)), has_started, go)
}

#[tokio::test]
async fn a_stop_waits_only_for_requests_in_progress() {
    let (router, has_started, go) = waiting();
    let server = start(router, None, 10).await;
    let (mut idle, mut busy) = (server.connect().await, server.connect().await);
    busy.write_all(ASK).await.unwrap();
    has_started.await.unwrap();
    let Running { server, stop, .. } = server;
    stop.send(()).unwrap();
    assert_eq!(idle.read(&mut [0]).await.unwrap(), 0);
    assert!(!server.is_finished());
    go.send(()).unwrap();
    let text = answer(&mut busy).await;
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    server.await.unwrap();
}

#[tokio::test]
async fn a_stop_waits_for_a_limited_time() {
    let (router, was_asked, _go) = waiting();
    let mut server = start(router, None, 10).await;
    let mut busy = server.connect().await;
    busy.write_all(ASK).await.unwrap();
    was_asked.await.unwrap();
    std::mem::replace(&mut server.stop, oneshot::channel().0).send(()).unwrap();
    let handle = std::mem::replace(&mut server.server, tokio::spawn(async {}));
    let (ended, seconds) = server.pass_time_until(handle).await;
    ended.unwrap();
    assert_eq!(seconds, 25);
}

#[tokio::test]
async fn connections_over_the_limit_wait_for_a_free_place() {
    let server = start(echo(), None, 1).await;
    let mut first = server.connect().await;
    first.write_all(ASK).await.unwrap();
    answer(&mut first).await;
    let mut second = server.connect().await;
    second.write_all(ASK).await.unwrap();
    // The first connection is still served.
    first.write_all(ASK).await.unwrap();
    answer(&mut first).await;
    drop(first);
    answer(&mut second).await;
}

/// Writes a certificate for `localhost` and its key to files. Returns the certificate of its issuer.
fn certificate(folder: &Path) -> CertificateDer<'static> {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    std::fs::write(folder.join("cert.pem"), own.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    authority.der().clone()
}

/// The protocol negotiated with a client that trusts this authority and offers these protocols.
async fn agreed(
    server: &Running,
    authority: CertificateDer<'static>,
    offer: &[&str],
) -> io::Result<Option<Vec<u8>>> {
    let mut roots = RootCertStore::empty();
    roots.add(authority).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = offer.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, server.connect().await).await?;
    Ok(stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec))
}

#[tokio::test]
async fn tls_offers_http_2_and_its_certificate_can_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let old = certificate(folder.path());
    let tls = Arc::new(Tls::load(&folder.path().join("cert.pem"), &folder.path().join("key.pem")).unwrap());
    let server = start(echo(), Some(Arc::clone(&tls)), 10).await;
    assert_eq!(agreed(&server, old.clone(), &["h2", "http/1.1"]).await.unwrap(), Some(b"h2".to_vec()));
    assert_eq!(agreed(&server, old.clone(), &["http/1.1"]).await.unwrap(), Some(b"http/1.1".to_vec()));
    assert_eq!(agreed(&server, old.clone(), &[]).await.unwrap(), None);

    let new = certificate(folder.path());
    agreed(&server, new.clone(), &[]).await.unwrap_err();
    tls.reload();
    agreed(&server, new.clone(), &[]).await.unwrap();
    agreed(&server, old, &[]).await.unwrap_err();
    // An incomplete replacement changes nothing.
    std::fs::write(folder.path().join("key.pem"), "nothing").unwrap();
    tls.reload();
    agreed(&server, new, &[]).await.unwrap();
}

#[tokio::test]
async fn a_client_without_a_tls_handshake_is_disconnected() {
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path());
    let tls = Tls::load(&folder.path().join("cert.pem"), &folder.path().join("key.pem")).unwrap();
    let server = start(echo(), Some(Arc::new(tls)), 10).await;
    let mut stream = server.connect().await;
    let (read, seconds) = server.pass_time_until(stream.read(&mut [0])).await;
    assert_eq!(read.unwrap(), 0);
    assert!(seconds >= 10, "{seconds}");
}

fn client() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    // The connection does not check the validity period.
    params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    params.not_before = rcgen::date_time_ymd(2000, 1, 1);
    (params.self_signed(&key).unwrap().der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into()))
}

/// Shows a certificate unconditionally, with the right or a wrong key.
#[derive(Debug)]
struct Shows(Arc<CertifiedKey>);

impl ResolvesClientCert for Shows {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
    fn has_certs(&self) -> bool {
        true
    }
}

/// The certificate that the server sees from a client that shows this one and signs with this key, in this
/// version of TLS.
async fn certificate_seen(
    server: &Running,
    authority: &CertificateDer<'static>,
    version: &'static SupportedProtocolVersion,
    client: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> io::Result<Vec<u8>> {
    let provider = rustls::crypto::ring::default_provider();
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).unwrap();
    let signing = client.map(|(certificate, key)| {
        Arc::new(CertifiedKey::new(vec![certificate], provider.key_provider.load_private_key(key).unwrap()))
    });
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots);
    let config = match signing {
        Some(key) => config.with_client_cert_resolver(Arc::new(Shows(key))),
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, server.connect().await).await?;
    stream.write_all(b"GET /certificate HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n").unwrap();
    Ok(answer.split_off(end + 4))
}

#[tokio::test]
async fn a_client_certificate_is_optional_but_needs_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let authority = certificate(folder.path());
    let tls = Tls::load(&folder.path().join("cert.pem"), &folder.path().join("key.pem")).unwrap();
    let server = start(echo(), Some(Arc::new(tls)), 10).await;
    for version in [&TLS12, &TLS13] {
        let (own, key) = client();
        let seen = certificate_seen(&server, &authority, version, None).await.unwrap();
        assert_eq!(seen, b"", "{version:?}");
        let shown = Some((own.clone(), key.clone_key()));
        let seen = certificate_seen(&server, &authority, version, shown).await.unwrap();
        assert_eq!(seen, own.as_ref(), "{version:?}");
        let (others, _) = client();
        certificate_seen(&server, &authority, version, Some((others, key))).await.unwrap_err();
    }
}

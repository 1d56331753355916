//! Requests to other servers over HTTPS, with HTTP/1.1 and TLS by the platform's root certificates (or those of
//! `SSL_CERT_FILE`). Without TLS, only to addresses that the operator names, such as this machine.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Uri};
use hyper_rustls::ConfigBuilderExt as _;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::domain::oidc::addresses::Allowed;
use crate::domain::oidc::aws;
use crate::ports::{BoxError, WEB_ANSWER_BYTES_MAX, WEB_TIME_MAX, Web, WebAnswer, WebError, WebRequest};

/// Addresses of a host that are tried, at most.
const ADDRESSES_TRIED_MAX: usize = 4;

/// The port of HTTPS.
const HTTPS_PORT: u16 = 443;

/// Where AWS STS is reached, instead of at the addresses of its hosts: at an endpoint in a private network. It is
/// written as `HOST` or `HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StsEndpoint {
    /// The name or the address, without the brackets of IPv6.
    host: String,
    port: u16,
}

/// A text that is not a host with a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it must be a host, or a host and a port, such as sts.internal.example.com:443")]
pub struct InvalidEndpoint;

impl FromStr for StsEndpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let uri: Uri = text.parse().map_err(|_| InvalidEndpoint)?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or(InvalidEndpoint)?;
        if uri.scheme().is_some() || text.contains('@') {
            return Err(InvalidEndpoint);
        }
        let port = match text.strip_prefix(host) {
            Some("") => HTTPS_PORT,
            _ => uri.port_u16().ok_or(InvalidEndpoint)?,
        };
        Ok(Self { host: without_brackets(host), port })
    }
}

/// A client that connects to the addresses that the operator allows, and to public ones.
pub struct Https {
    allowed: Allowed,
    sts: Option<StsEndpoint>,
    /// Made at the first request, because reading the root certificates takes milliseconds.
    tls: Mutex<Option<Arc<ClientConfig>>>,
}

impl Https {
    /// A client that may also connect to these addresses inside.
    pub fn new(allowed: Allowed) -> Self {
        Self { allowed, sts: None, tls: Mutex::new(None) }
    }

    /// The same client, which reaches AWS STS at this endpoint if there is one, also inside. The endpoint has to show a
    /// certificate for the host of AWS that the request names, so no other server can answer for AWS.
    #[must_use]
    pub fn with_sts(self, endpoint: Option<StsEndpoint>) -> Self {
        Self { sts: endpoint, ..self }
    }

    /// The endpoint at which it reaches a target.
    fn endpoint_of(&self, target: &Target) -> Option<&StsEndpoint> {
        self.sts.as_ref().filter(|_| target.is_secure && aws::is_host(&target.host))
    }

    fn tls(&self) -> Result<TlsConnector, WebError> {
        let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = &*tls {
            return Ok(Arc::clone(config).into());
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_native_roots()
            .map_err(failed)?
            .with_no_client_auth();
        Ok(Arc::clone(tls.insert(Arc::new(config))).into())
    }

    /// The addresses of a target, all of which may be used.
    async fn addresses(&self, target: &Target) -> Result<Vec<SocketAddr>, WebError> {
        if let Some(endpoint) = self.endpoint_of(target) {
            // The operator named it, for these requests only.
            return look_up(&endpoint.host, endpoint.port).await;
        }
        let found = look_up(&target.host, target.port).await?;
        // A name with an address outside and one inside is an attempt to reach the second.
        if let Some(inside) = found.iter().find(|address| !self.allowed.allows(address.ip())) {
            return Err(WebError::Inside(inside.ip()));
        }
        if !target.is_secure && !found.iter().all(|address| self.allowed.names(address.ip())) {
            return Err(WebError::Url);
        }
        Ok(found)
    }

    async fn connect(&self, target: &Target) -> Result<TcpStream, WebError> {
        let mut last: BoxError = "the host has no address".into();
        let addresses = self.addresses(target).await?;
        for address in addresses.into_iter().take(ADDRESSES_TRIED_MAX) {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error.into(),
            }
        }
        Err(WebError::Failed(last))
    }

    async fn exchange(&self, request: WebRequest) -> Result<WebAnswer, WebError> {
        let target = Target::of(&request.url)?;
        let stream = self.connect(&target).await?;
        if !target.is_secure {
            return exchange_on(stream, target, request, [0; 32]).await;
        }
        let name = ServerName::try_from(target.host.clone()).map_err(|_| WebError::Url)?;
        let stream = self.tls()?.connect(name, stream).await.map_err(failed)?;
        let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificate = certificates.first().map(|first| Sha256::digest(first).into()).unwrap_or_default();
        exchange_on(stream, target, request, certificate).await
    }
}

async fn look_up(host: &str, port: u16) -> Result<Vec<SocketAddr>, WebError> {
    Ok(match host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => tokio::net::lookup_host((host, port)).await.map_err(failed)?.collect(),
    })
}

async fn exchange_on<S>(
    stream: S,
    target: Target,
    request: WebRequest,
    certificate: [u8; 32],
) -> Result<WebAnswer, WebError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.map_err(failed)?;
    // Ends with this call.
    let mut connected = JoinSet::new();
    connected.spawn(connection);
    let method = if request.body.is_some() { Method::POST } else { Method::GET };
    let mut message = Request::builder().method(method).uri(target.path);
    if let Some(headers) = message.headers_mut() {
        headers.insert(HOST, HeaderValue::try_from(target.authority).map_err(|_| WebError::Url)?);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        for (name, value) in request.headers {
            let name = HeaderName::try_from(name).map_err(failed)?;
            headers.insert(name, HeaderValue::try_from(value).map_err(failed)?);
        }
    }
    let message = message.body(Full::new(request.body.unwrap_or_default())).map_err(failed)?;
    let answer = sender.send_request(message).await.map_err(failed)?;
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), WEB_ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => WebError::TooLong,
        false => WebError::Failed(error),
    })?;
    Ok(WebAnswer { status, body: body.to_bytes(), certificate })
}

const AGENT: &str = concat!("statewright/", env!("CARGO_PKG_VERSION"));

fn failed(error: impl Into<BoxError>) -> WebError {
    WebError::Failed(error.into())
}

fn without_brackets(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').to_owned()
}

/// The parts of an address.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    /// Whether it is reached with TLS.
    is_secure: bool,
    /// The name or the address, without the brackets of IPv6.
    host: String,
    port: u16,
    /// For the `Host` header.
    authority: String,
    path: String,
}

impl Target {
    fn of(url: &str) -> Result<Self, WebError> {
        let uri: Uri = url.parse().map_err(|_| WebError::Url)?;
        let authority = uri.authority().ok_or(WebError::Url)?.as_str();
        let host = uri.host().unwrap_or_default();
        let is_secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(WebError::Url),
        };
        if host.is_empty() || authority.contains('@') {
            return Err(WebError::Url);
        }
        Ok(Self {
            is_secure,
            host: without_brackets(host),
            port: uri.port_u16().unwrap_or(if is_secure { HTTPS_PORT } else { 80 }),
            authority: authority.to_owned(),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        })
    }
}

#[async_trait]
impl Web for Https {
    async fn send(&self, request: WebRequest) -> Result<WebAnswer, WebError> {
        match tokio::time::timeout(WEB_TIME_MAX, self.exchange(request)).await {
            Ok(answered) => answered,
            Err(_) => Err(WebError::Slow),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[test]
    fn only_an_address_with_https_and_a_host_is_a_target() {
        let target = |url: &str| Target::of(url).map(|target| (target.host, target.port, target.path));
        let found = |host: &str, port, path: &str| (host.to_owned(), port, path.to_owned());
        assert_eq!(target("https://a/b?c=d").unwrap(), found("a", 443, "/b?c=d"));
        assert_eq!(target("https://a:8443").unwrap(), found("a", 8443, "/"));
        assert_eq!(target("https://[::1]:8443/x").unwrap(), found("::1", 8443, "/x"));
        for bad in [
            "ftp://a",
            "a",
            "/a",
            "https://",
            "https://user@a",
            "https://user:x@a/",
            "file:///etc/passwd",
            "",
        ] {
            assert!(matches!(target(bad), Err(WebError::Url)), "{bad}");
        }
    }

    /// Answers one request with this text, and returns what was sent.
    async fn answering(answer: String) -> (String, tokio::task::JoinHandle<String>) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/a?b=c", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut sent = vec![0; 4096];
            let length = stream.read(&mut sent).await.unwrap();
            // The client may have gone, because the answer is too long.
            let _ = stream.write_all(answer.as_bytes()).await;
            String::from_utf8_lossy(&sent[..length]).into_owned()
        });
        (url, served)
    }

    #[tokio::test]
    async fn plain_http_is_for_addresses_that_the_operator_names() {
        let named = Https::new(Allowed::parse("127.0.0.1").unwrap());
        let answer = "HTTP/1.1 302 Found\r\nlocation: http://192.0.2.1/\r\ncontent-length: 5\r\n\r\nthere";
        let (url, served) = answering(answer.to_owned()).await;
        let mut request =
            WebRequest { body: Some(Bytes::from_static(b"a=b")), ..WebRequest::get(url.clone()) };
        request.headers.push(("content-type".to_owned(), "text/plain".to_owned()));
        let answer = named.send(request).await.unwrap();
        assert_eq!((answer.status, answer.body.as_ref()), (302, b"there".as_slice()), "not followed");
        let sent = served.await.unwrap();
        assert!(sent.starts_with("POST /a?b=c HTTP/1.1\r\nhost: 127.0.0.1:"), "{sent}");
        assert!(sent.contains("content-type: text/plain\r\n") && sent.ends_with("\r\n\r\na=b"), "{sent}");
        let public = Https::new(Allowed::default());
        assert!(matches!(public.send(WebRequest::get(url)).await, Err(WebError::Inside(_))));
        let open = public.send(WebRequest::get("http://1.1.1.1/".to_owned())).await;
        assert!(matches!(open, Err(WebError::Url)), "a public address needs TLS");
    }

    #[test]
    fn an_endpoint_is_a_host_with_or_without_a_port() {
        let endpoint = |text: &str| text.parse::<StsEndpoint>().map(|found| (found.host, found.port));
        let found = |host: &str, port| Ok((host.to_owned(), port));
        assert_eq!(endpoint("sts.internal.example.com"), found("sts.internal.example.com", 443));
        assert_eq!(endpoint("10.0.0.7:8443"), found("10.0.0.7", 8443));
        assert_eq!(endpoint("[::1]:8443"), found("::1", 8443));
        for bad in
            ["", ":443", "a:", "a:b", "a:70000", "a/b", "/", "*", "https://a", "h://h:1", "x@a", "a:1@a:2"]
        {
            assert_eq!(endpoint(bad), Err(InvalidEndpoint), "{bad}");
        }
    }

    #[tokio::test]
    async fn only_aws_sts_is_reached_at_its_endpoint() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let endpoint = at.to_string().parse().unwrap();
        let https = Https::new(Allowed::default()).with_sts(Some(endpoint));
        let is_there = |url: &str| https.endpoint_of(&Target::of(url).unwrap()).is_some();
        assert!(is_there("https://sts.eu-central-1.amazonaws.com/?a=b"));
        for other in [
            "https://sts.eu-central-1.amazonaws.com.example.com",
            "https://s3.eu-central-1.amazonaws.com",
            "http://sts.eu-central-1.amazonaws.com",
        ] {
            assert!(!is_there(other), "{other}");
        }
        // Nothing else reaches its address inside.
        let inside = https.send(WebRequest::get(format!("https://{at}/"))).await;
        assert!(matches!(inside, Err(WebError::Inside(_))));
        let ended = tokio::spawn(async move { listener.accept().await.map(drop) });
        let failed = https.send(WebRequest::get("https://sts.amazonaws.com/".to_owned())).await;
        assert!(matches!(failed, Err(WebError::Failed(_))), "it has no certificate");
        ended.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn an_answer_that_is_too_long_is_refused() {
        let body = "x".repeat(WEB_ANSWER_BYTES_MAX + 1);
        let (url, _served) = answering(format!("HTTP/1.1 200 OK\r\n\r\n{body}")).await;
        let named = Https::new(Allowed::parse("127.0.0.1").unwrap());
        assert!(matches!(named.send(WebRequest::get(url)).await, Err(WebError::TooLong)));
    }

    #[tokio::test]
    async fn a_host_inside_is_refused_before_a_connection() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let https = Https::new(Allowed::default());
        for host in [
            "127.0.0.1",
            "localhost",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "169.254.169.254",
            "2130706433",
            "0x7f.1",
        ] {
            let error = https.send(WebRequest::get(format!("https://{host}:{port}/"))).await.unwrap_err();
            assert!(matches!(error, WebError::Inside(_) | WebError::Failed(_)), "{host}: {error}");
        }
        let inside = https.send(WebRequest::get(format!("https://localhost:{port}/"))).await.unwrap_err();
        assert!(matches!(inside, WebError::Inside(_)), "{inside}");
        let came = listener.accept().map_err(|error| error.kind());
        assert_eq!(came.err(), Some(std::io::ErrorKind::WouldBlock), "nothing connected");
    }
}

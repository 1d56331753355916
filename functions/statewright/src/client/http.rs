//! HTTP/1.1 connections, with TLS by the platform's roots (or those of `SSL_CERT_FILE`), through the HTTPS
//! proxy of the environment, as for `tofu` and `pulumi`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use axum::body::{Body, to_bytes};
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, USER_AGENT,
};
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioExecutor;
use rustls::ClientConfig;
use rustls::crypto::ring;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::services::store::compression;

use super::call::Call;
use super::failure::Failure;
use super::settings::Settings;

/// Timeout of connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// Timeout until a response begins, in addition to the time for sending the body.
const ANSWER: Duration = Duration::from_secs(60);

/// Slowest accepted transfer of a body, in either direction.
const BYTES_PER_SECOND: u64 = 32 * 1024;

/// Size limit of a response: above the longest state that a server can accept.
const ANSWER_BYTES_MAX: usize = 600 << 20;

/// Redirects lose bodies and methods, so none are followed.
const AGENT: &str = concat!("statewright/", env!("CARGO_PKG_VERSION"));

pub(super) struct Http(Transport);

enum Transport {
    Straight(Client<HttpsConnector<HttpConnector>, Body>),
    ByProxy(Client<HttpsConnector<Tunnel<HttpConnector>>, Body>),
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Http")
    }
}

impl Http {
    /// Prepares connections to a server, without opening one.
    ///
    /// # Errors
    /// If the platform has no root certificates, for HTTPS.
    pub(super) fn to(server: &ServerUrl) -> anyhow::Result<Self> {
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(CONNECT));
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let uri: Uri = server.as_str().parse().context("the server's address is not a valid URI")?;
        let is_secure = uri.scheme_str() == Some("https");
        let proxy = is_secure.then(|| Matcher::from_env().intercept(&uri)).flatten();
        let builder = || {
            let builder = HttpsConnectorBuilder::new();
            if is_secure {
                builder
                    .with_provider_and_native_roots(ring::default_provider())
                    .context("this machine has no root certificates: set SSL_CERT_FILE to a file with them")
            } else {
                // A fallback without roots: no connection uses it.
                let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
                    .with_safe_default_protocol_versions()
                    .context("the TLS library supports no protocol version")?
                    .with_root_certificates(rustls::RootCertStore::empty())
                    .with_no_client_auth();
                Ok(builder.with_tls_config(config))
            }
        };
        let client = Client::builder(TokioExecutor::new());
        Ok(Self(match proxy {
            Some(proxy) => {
                let tunnel = Tunnel::new(proxy.uri().clone(), tcp);
                let tunnel = match proxy.basic_auth() {
                    Some(auth) => tunnel.with_auth(auth.clone()),
                    None => tunnel,
                };
                let connector = builder()?.https_or_http().enable_http1().wrap_connector(tunnel);
                Transport::ByProxy(client.clone().build(connector))
            }
            None => {
                let connector = builder()?.https_or_http().enable_http1().wrap_connector(tcp);
                Transport::Straight(client.clone().build(connector))
            }
        }))
    }

    pub(super) async fn send(&self, call: &Call, settings: &Settings) -> Result<Bytes, Failure> {
        let server = &settings.server;
        let no_answer = |source: anyhow::Error| Failure::NoAnswer { server: server.clone(), source };
        let request = request(call, settings)
            .map_err(|source| Failure::Unreachable { server: server.clone(), source })?;
        let length = u64::try_from(call.body.len()).unwrap_or(u64::MAX);
        let patience = ANSWER + Duration::from_secs(length / BYTES_PER_SECOND);
        let answered = match &self.0 {
            Transport::Straight(client) => tokio::time::timeout(patience, client.request(request)).await,
            Transport::ByProxy(client) => tokio::time::timeout(patience, client.request(request)).await,
        };
        let response = answered
            .map_err(|_| no_answer(anyhow!("no response within {} s", patience.as_secs())))?
            .map_err(|error| match error.is_connect() {
                true => Failure::Unreachable { server: server.clone(), source: error.into() },
                false => no_answer(error.into()),
            })?;
        let (status, headers, body) = read(response).await.map_err(no_answer)?;
        if status.is_success() {
            return Ok(body);
        }
        if status.is_redirection() {
            let to = headers.get("location").and_then(|to| to.to_str().ok()).unwrap_or("somewhere else");
            return Err(Failure::strange(server, format_args!("it redirects to {to}")));
        }
        let text = |name: &str| headers.get(name)?.to_str().ok();
        let pause = text(RETRY_AFTER.as_str()).and_then(|after| after.parse().ok()).map(Duration::from_secs);
        let request = text("x-pulumi-request-id");
        Err(Failure::refused(server, settings.token_from, status, pause, request, &body))
    }
}

/// The status of the answer to a GET of this path, as the server's clients would ask for it. No token is sent.
///
/// # Errors
/// When no answer came in time, with why.
pub(crate) async fn reach(server: &ServerUrl, path: &str, wait_max: Duration) -> anyhow::Result<u16> {
    let request = Request::builder().uri(format!("{server}{path}")).body(Body::empty())?;
    let answered = match Http::to(server)?.0 {
        Transport::Straight(client) => tokio::time::timeout(wait_max, client.request(request)).await,
        Transport::ByProxy(client) => tokio::time::timeout(wait_max, client.request(request)).await,
    };
    Ok(answered.context("no answer came in time")??.status().as_u16())
}

fn request(call: &Call, settings: &Settings) -> anyhow::Result<Request<Body>> {
    let uri = format!("{}{}", settings.server, call.target);
    let mut token = HeaderValue::try_from(format!("token {}", settings.token.as_str()))
        .context("the token contains invalid characters")?;
    token.set_sensitive(true);
    let mut request =
        Request::builder().method(call.method.clone()).uri(uri).body(Body::from(call.body.clone()))?;
    let headers = request.headers_mut();
    if !settings.token.as_str().is_empty() {
        headers.insert(AUTHORIZATION, token);
    }
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    if !call.body.is_empty() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    Ok(request)
}

async fn read(response: Response<Incoming>) -> anyhow::Result<(StatusCode, HeaderMap, Bytes)> {
    let (parts, body) = response.into_parts();
    let length = u64::try_from(ANSWER_BYTES_MAX).unwrap_or(u64::MAX);
    let patience = Duration::from_secs(length / BYTES_PER_SECOND);
    let body = tokio::time::timeout(patience, to_bytes(Body::new(body), ANSWER_BYTES_MAX))
        .await
        .context("the response was too slow")?
        .context("the response ended too early")?;
    let body = match parts.headers.get(CONTENT_ENCODING) {
        Some(coding) if coding == "gzip" => {
            compression::gunzip(&body).context("the response is not valid gzip")?.into()
        }
        _ => body,
    };
    Ok((parts.status, parts.headers, body))
}

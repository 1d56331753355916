//! The host that a client addressed.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;

use super::app::App;
use crate::services::stacks::rehome;

/// The length of a DNS name with a port, in bytes, at most.
const HOST_BYTES_MAX: usize = 259;

/// The host that the client addressed, as the client or the proxy in front reports it; empty if neither does.
/// Use it only in answers to the same request: anyone can send any value.
#[derive(Debug)]
pub(super) struct AskedHost(String);

impl FromRequestParts<App> for AskedHost {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers, &parts.uri))
    }
}

impl AskedHost {
    pub(super) fn of(headers: &HeaderMap, uri: &Uri) -> Self {
        Self(named(headers, uri).into_iter().flatten().next().unwrap_or_default())
    }

    /// Whether every host that the request names is of this kind. A client can send any value for the one that a proxy
    /// reports, so that one alone proves nothing.
    pub(super) fn are_all(headers: &HeaderMap, uri: &Uri, is: fn(&str) -> bool) -> bool {
        let named: Vec<String> = named(headers, uri).into_iter().flatten().collect();
        !named.is_empty() && named.iter().all(|host| is(host))
    }

    /// The host as text.
    pub(super) fn into_text(self) -> String {
        self.0
    }

    /// The server's address as the client used it, in characters that need no escaping.
    pub(super) fn address(&self, headers: &HeaderMap, uri: &Uri) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
        if self.0.is_empty() || !self.0.chars().all(is_plain) {
            return "https://THIS-SERVER".to_owned();
        }
        let forwarded = headers.get("X-Forwarded-Proto").and_then(|proto| proto.to_str().ok());
        // With several proxies, the first value is the client's. HTTP/2, which browsers use only over TLS,
        // names the scheme.
        let scheme = forwarded.and_then(|proto| proto.split(',').next()).or(uri.scheme_str()).map(str::trim);
        format!("{}://{}", if scheme == Some("https") { "https" } else { "http" }, self.0)
    }

    /// Warns the client if the state of the stack names another server: the CLI prints these headers.
    pub(super) fn compare(&self, app: &App, secrets_url: Option<&str>, response: &mut Response) {
        let warning = rehome::warning(app, &self.0, secrets_url);
        if let Some(Ok(value)) = warning.map(|warning| HeaderValue::from_str(&warning)) {
            response.headers_mut().append("X-Pulumi-Warning", value);
        }
    }
}

/// The hosts that a request names: that of `X-Forwarded-Host`, and its own.
fn named(headers: &HeaderMap, uri: &Uri) -> [Option<String>; 2] {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(first);
    let own = || uri.authority().map(|authority| first(authority.as_str()));
    [header("X-Forwarded-Host"), header(HOST.as_str()).or_else(own)]
}

/// With several proxies, the first value is the client's.
fn first(hosts: &str) -> String {
    let host = hosts.split(',').next().unwrap_or_default().trim();
    if host.len() <= HOST_BYTES_MAX { host.to_owned() } else { String::new() }
}

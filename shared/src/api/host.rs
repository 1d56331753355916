//! The host under which the server is asked.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::header::HOST;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Uri};
use axum::response::Response;

use super::app::App;
use crate::services::stacks::rehome;

/// A name in DNS is not longer, with its port.
const HOST_BYTES_MAX: usize = 259;

/// The host that a client asked for, by its own word or by that of the proxy in front; empty if neither says it. Good for
/// telling the client something about its own request, and for nothing else: anybody can write anything there.
#[derive(Debug)]
pub(super) struct AskedHost(String);

impl FromRequestParts<App> for AskedHost {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        let header = |headers: &HeaderMap, name: &str| {
            headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let host = header(&parts.headers, "X-Forwarded-Host")
            .or_else(|| header(&parts.headers, HOST.as_str()))
            .or_else(|| parts.uri.authority().map(ToString::to_string))
            .unwrap_or_default();
        // Of several proxies the first one has the client's word.
        let host = host.split(',').next().unwrap_or_default().trim().to_owned();
        Ok(Self(if host.len() <= HOST_BYTES_MAX { host } else { String::new() }))
    }
}

impl AskedHost {
    /// The server's address as it was asked for, in letters that need no escaping anywhere.
    pub(super) fn address(&self, headers: &HeaderMap, uri: &Uri) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
        if self.0.is_empty() || !self.0.chars().all(is_plain) {
            return "https://THIS-SERVER".to_owned();
        }
        let forwarded = headers.get("X-Forwarded-Proto").and_then(|proto| proto.to_str().ok());
        // Of several proxies the first one has the client's word. HTTP/2, which browsers speak over TLS alone, names the scheme.
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

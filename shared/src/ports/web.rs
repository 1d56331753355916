//! Requests to other servers, whose addresses users choose.

use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::BoxError;

/// The time for a request with its whole answer.
pub const WEB_TIME_MAX: Duration = Duration::from_secs(5);

/// The length of an answer in bytes, at most. The keys of an issuer take some kilobytes.
pub const WEB_ANSWER_BYTES_MAX: usize = 1 << 20;

/// A request to another server.
#[derive(Debug, Clone)]
pub struct WebRequest {
    /// The address, with `https://`.
    pub url: String,
    /// Additional headers.
    pub headers: Vec<(String, String)>,
    /// The body of a POST; `None` for a GET.
    pub body: Option<Bytes>,
}

impl WebRequest {
    /// A GET.
    pub fn get(url: String) -> Self {
        Self { url, headers: Vec::new(), body: None }
    }
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub struct WebAnswer {
    pub status: u16,
    pub body: Bytes,
    /// The SHA-256 of the server's own certificate, which a trusted authority has signed.
    pub certificate: [u8; 32],
}

/// Why there is no answer. The texts are for the admin who chose the address.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    #[error("the address is not valid: use https://, a host, and a path without a user")]
    Url,
    #[error(
        "its host has the address {0}, which is inside a network: the operator allows such addresses one by one"
    )]
    Inside(IpAddr),
    #[error("there was no answer within {} s", WEB_TIME_MAX.as_secs())]
    Slow,
    #[error("the answer is longer than {WEB_ANSWER_BYTES_MAX} bytes")]
    TooLong,
    #[error("the connection failed: {0}")]
    Failed(#[source] BoxError),
}

/// Sends requests to other servers.
///
/// A request uses TLS with a certificate that a trusted authority has signed. It goes to an address of the public
/// Internet, or to one that the operator allows; all addresses of the host are checked, and the connection uses one of
/// those that were checked. A redirect is an answer like any other and is not followed. A request takes at most
/// [`WEB_TIME_MAX`], and its answer has at most [`WEB_ANSWER_BYTES_MAX`].
#[async_trait]
pub trait Web: Send + Sync + 'static {
    /// Sends one request.
    ///
    /// # Errors
    /// [`WebError`].
    async fn send(&self, request: WebRequest) -> Result<WebAnswer, WebError>;
}

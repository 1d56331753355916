//! Reading bodies: limited before they are read and while they inflate, and inflated by their first bytes, since what
//! stands between a client and us does not always keep the header true.

use std::io::Read;

use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_ENCODING;
use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use serde::de::DeserializeOwned;

use super::App;
use super::error::Failure;
use crate::services::Error;
use crate::services::publish::gzip;

/// The longest body that the route takes, in bytes, as sent and inflated. Put there by the guard.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimit(pub(super) usize);

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A body: the text, and its gzip as it was sent, if it was.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) text: Bytes,
    sent_gzip: Option<Bytes>,
}

impl Body {
    /// The gzip of the text: as sent, where it was, so that nothing is compressed twice.
    pub(super) fn into_gzip(self) -> Bytes {
        self.sent_gzip.unwrap_or_else(|| gzip(&self.text))
    }

    /// The text as JSON of a shape.
    pub(super) fn parse<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, Failure> {
        serde_json::from_slice(&self.text).map_err(|error| {
            Failure(Error::Invalid(format!("the request body is not what this call takes: {error}")))
        })
    }
}

impl FromRequest<App> for Body {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &App) -> Result<Self, Failure> {
        let BodyLimit(bytes_max) =
            request.extensions().get().copied().ok_or_else(|| {
                Failure(Error::Broken("a route without a body limit reads a body".to_owned()))
            })?;
        let said_gzip = request.headers().get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
        let sent = axum::body::to_bytes(request.into_body(), bytes_max).await.map_err(|error| {
            // The limit is told by the error's source only.
            let over = std::error::Error::source(&error)
                .is_some_and(|source| source.to_string().contains("length limit"));
            Failure(if over {
                Error::TooLarge { what: "a request body", bytes: bytes_max + 1, bytes_max }
            } else {
                Error::Invalid(format!("the request body could not be read to its end: {error}"))
            })
        })?;
        if sent.starts_with(&GZIP_MAGIC) {
            let text = inflate(&sent, bytes_max)?;
            return Ok(Self { text, sent_gzip: Some(sent) });
        }
        if said_gzip && !sent.is_empty() {
            return Err(Failure(Error::Invalid(
                "the request body is said to be compressed, and is no gzip".to_owned(),
            )));
        }
        Ok(Self { text: sent, sent_gzip: None })
    }
}

fn inflate(gzip: &[u8], bytes_max: usize) -> Result<Bytes, Failure> {
    // Typical JSON shrinks to a quarter at most; the limit holds whatever a header claims.
    let mut text = Vec::with_capacity((gzip.len() * 4).min(bytes_max));
    MultiGzDecoder::new(gzip)
        .take(bytes_max as u64 + 1)
        .read_to_end(&mut text)
        .map_err(|error| Failure(Error::Invalid(format!("the request body is a damaged gzip: {error}"))))?;
    if text.len() > bytes_max {
        return Err(Failure(Error::TooLarge {
            what: "an inflated request body",
            bytes: text.len(),
            bytes_max,
        }));
    }
    Ok(text.into())
}

/// A body that is JSON of a shape.
#[derive(Debug)]
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<App> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        Body::from_request(request, app).await?.parse().map(Self)
    }
}

//! The gateway in front of a function. It allows shorter requests and answers than the server itself.

use std::convert::Infallible;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::FromRequestParts;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::error::Failure;
use crate::limits::{BALANCER_BYTES_MAX, FUNCTION_BYTES_MAX};
use crate::services::Error;
use crate::services::store::compression::gzip;
use crate::settings::StateLimits;

/// The limits of the gateway that passed on a request. The server's front end puts them into the request's
/// extensions. A request without them came through a socket, which has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gateway {
    /// The length of a body in either direction, as sent, in bytes.
    pub bytes_max: usize,
}

impl Gateway {
    /// The limit of events of an HTTP API or a function URL.
    pub const FUNCTION: Self = Self { bytes_max: FUNCTION_BYTES_MAX };

    /// The limit of events of a load balancer.
    pub const BALANCER: Self = Self { bytes_max: BALANCER_BYTES_MAX };

    pub(super) const OPEN: Self = Self { bytes_max: usize::MAX };

    /// The longest stored gzip that fits into an answer, in bytes.
    pub(super) fn stored_bytes_max(self) -> u64 {
        u64::try_from(self.bytes_max).unwrap_or(u64::MAX)
    }

    /// The limits of Terraform states behind this gateway: a client sends a state uncompressed.
    pub(super) fn states(self, chosen: StateLimits) -> StateLimits {
        if self == Self::OPEN { chosen } else { chosen.behind_gateway(self.bytes_max) }
    }

    /// Warns the client if a stack's state has reached half of the limit: the CLI prints these headers.
    pub(super) fn warn(self, gzip_bytes: u64, response: &mut Response) {
        if gzip_bytes <= self.stored_bytes_max() / 2 {
            return;
        }
        let warning = format!(
            "this stack's state has {gzip_bytes} bytes when compressed, and this server's gateway lets through at most {}: \
             before the state is that large, run `statewright serve`, for example in a container, on the same store",
            self.bytes_max
        );
        if let Ok(value) = HeaderValue::from_str(&warning) {
            response.headers_mut().append("X-Pulumi-Warning", value);
        }
    }

    /// Makes an answer fit. A long text is compressed if the client accepts that. An answer that is still too
    /// long is refused here, since the gateway's own error is one that no client understands.
    pub(super) async fn pass(self, takes_gzip: bool, response: Response) -> Response {
        if self == Self::OPEN {
            return response;
        }
        // An answer that is produced while it is sent has no known length.
        let response = match response.body().size_hint().exact() {
            Some(_) => response,
            None => match self.whole(response).await {
                Ok(response) => response,
                Err(failure) => return failure.into_response(),
            },
        };
        let bytes = response.body().size_hint().lower();
        if bytes <= TEXT_BYTES_MAX {
            return response;
        }
        let is_text = !response.headers().contains_key(CONTENT_ENCODING);
        if is_text && takes_gzip {
            return self.fits(compressed(response).await);
        }
        // A text becomes a JSON string in the event, with a backslash before every quote.
        let weight = if is_text { bytes.saturating_mul(2) } else { bytes };
        self.fits_as(weight, response)
    }

    /// The whole answer in memory, unless it is too long.
    async fn whole(self, response: Response) -> Result<Response, Failure> {
        let (parts, body) = response.into_parts();
        // A text that will be compressed may be several times as long.
        let bytes_max = self.bytes_max.saturating_mul(COMPRESSED_AT_LEAST);
        match to_bytes(body, bytes_max).await {
            Ok(text) => Ok(Response::from_parts(parts, Body::from(text))),
            Err(_) => Err(Failure::AnswerTooLong(self.bytes_max)),
        }
    }

    fn fits(self, response: Response) -> Response {
        self.fits_as(response.body().size_hint().lower(), response)
    }

    fn fits_as(self, weight: u64, response: Response) -> Response {
        if weight <= self.stored_bytes_max() {
            return response;
        }
        Failure::AnswerTooLong(self.bytes_max).into_response()
    }
}

/// The text that is sent uncompressed, in bytes, at most.
const TEXT_BYTES_MAX: u64 = 64 << 10;

/// The longest text that is compressed, as a multiple of the gateway's limit: a longer one would not fit
/// compressed either.
const COMPRESSED_AT_LEAST: usize = 8;

async fn compressed(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(text) => {
            parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.remove(CONTENT_LENGTH);
            Response::from_parts(parts, Body::from(gzip(&text)))
        }
        Err(error) => {
            let broken = Error::Broken(format!("an answer could not be read to its end: {error}"));
            Failure::from(broken).into_response()
        }
    }
}

/// Redirects the client to a URL of the store itself. No cache may keep the answer: anyone with the URL can
/// read the state.
pub(super) fn redirect(url: &str) -> Result<Response, Failure> {
    let headers = [("Location", url), ("Cache-Control", "no-store")];
    Ok((StatusCode::TEMPORARY_REDIRECT, headers).into_response())
}

impl FromRequestParts<App> for Gateway {
    type Rejection = Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}

impl Gateway {
    pub(super) fn of(parts: &Parts) -> Self {
        parts.extensions.get().copied().unwrap_or(Self::OPEN)
    }
}

//! Reading bodies: limited before they are read and while they inflate, and inflated by their first bytes, since what
//! stands between a client and us does not always keep the header true.

mod buffer;

use std::io::{self, Read};
use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_ENCODING;
use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use futures::StreamExt;
use http_body::Body as _;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use self::buffer::Buffer;
use super::App;
use super::door::Door;
use super::error::Failure;
use super::gate::Share;
use crate::limits::{BODY_PAUSE_MAX, BODY_TIME_MAX};
use crate::services::Error;
use crate::services::texts::gzip;

/// The longest body that the route takes, in bytes, as sent and inflated, and the request's share of the memory for
/// bodies. Put there by the guard, which holds the share for as long as the request lasts.
#[derive(Debug, Clone)]
pub(super) struct BodyLimit {
    pub(super) bytes_max: usize,
    pub(super) share: Arc<Mutex<Share>>,
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// What is made of a text while it is parsed and stored takes about as much memory again.
const PARSED_FACTOR: usize = 2;

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

    /// The bytes as they were sent.
    pub(super) fn as_sent(&self) -> &Bytes {
        self.sent_gzip.as_ref().unwrap_or(&self.text)
    }

    /// The text, whatever it means.
    pub(super) fn text(&self) -> Result<&str, Failure> {
        std::str::from_utf8(&self.text)
            .map_err(|error| Error::Invalid(format!("the request body is not UTF-8: {error}")).into())
    }

    /// The text as JSON of a shape.
    pub(super) fn parse<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, Failure> {
        // All of it: what is passed over here and kept as it came is read later by somebody who looks closer.
        serde_json::from_str(self.text()?).map_err(|error| {
            Error::Invalid(format!("the request body is not what this call takes: {error}")).into()
        })
    }
}

impl FromRequest<App> for Body {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        let BodyLimit { bytes_max, share } = request
            .extensions()
            .get()
            .cloned()
            .ok_or_else(|| Error::Broken("a route without a body limit reads a body".to_owned()))?;
        let mut share = share.lock().await;
        let door = request.extensions().get().copied().unwrap_or(Door::OPEN);
        let said_gzip = request.headers().get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
        let sent_bytes_max = bytes_max.min(door.bytes_max);
        let sent = match receive(app, &mut share, request.into_body(), sent_bytes_max).await {
            Err(Failure::Refused(Error::TooLarge { .. })) if door.bytes_max < bytes_max => {
                return Err(Failure::DoorTooNarrow(door.bytes_max));
            }
            received => received?,
        };
        if sent.starts_with(&GZIP_MAGIC) {
            let text = inflate(app, &mut share, &sent, bytes_max).await?;
            return Ok(Self { text, sent_gzip: Some(sent) });
        }
        if said_gzip && !sent.is_empty() {
            let words = "the request body is said to be compressed, and is no gzip";
            return Err(Error::Invalid(words.to_owned()).into());
        }
        share.take(app.room(), &*app.clock, sent.len().saturating_mul(PARSED_FACTOR - 1)).await?;
        Ok(Self { text: sent, sent_gzip: None })
    }
}

/// The body as sent. What arrives is paid for before more is read, and a client that sends nothing is not waited for.
async fn receive(
    app: &App,
    share: &mut Share,
    body: axum::body::Body,
    bytes_max: usize,
) -> Result<Bytes, Failure> {
    let too_large = || Error::TooLarge { what: "a request body", bytes: bytes_max + 1, bytes_max };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large().into());
    }
    let since = app.now();
    // Said by the client; memory is taken as the bytes come.
    let bytes_said = usize::try_from(body.size_hint().lower()).unwrap_or(0);
    let mut stream = body.into_data_stream();
    let (mut bytes, mut first, mut whole) = (0, Bytes::new(), None);
    loop {
        let piece = tokio::select! {
            biased;
            piece = stream.next() => piece,
            () = app.clock.sleep(BODY_PAUSE_MAX) => return Err(Failure::Stalled),
        };
        let Some(piece) = piece else { break };
        let piece = piece.map_err(|error| {
            Error::Invalid(format!("the request body could not be read to its end: {error}"))
        })?;
        if app.now().since(since) > BODY_TIME_MAX {
            return Err(Failure::Stalled);
        }
        bytes += piece.len();
        if bytes > bytes_max {
            return Err(too_large().into());
        }
        share.take(app.room(), &*app.clock, piece.len()).await?;
        // Most bodies come in one piece, and need not be copied.
        if bytes == piece.len() {
            first = piece;
            continue;
        }
        let whole = match &mut whole {
            Some(whole) => whole,
            None => {
                let mut begun = room_for(bytes_said.max(bytes))?;
                begun.append(&std::mem::take(&mut first)).map_err(longer)?;
                whole.insert(begun)
            }
        };
        whole.append(&piece).map_err(longer)?;
    }
    Ok(whole.map_or(first, Buffer::freeze))
}

fn room_for(bytes: usize) -> Result<Buffer, Failure> {
    Buffer::with_capacity(bytes).map_err(|error| {
        tracing::error!(%error, bytes, "there is no memory for a request body");
        Failure::NoRoom
    })
}

fn longer(_: io::Error) -> Failure {
    Error::Invalid("the request body is longer than was said".to_owned()).into()
}

/// Deflate makes no more than so many bytes of one.
const INFLATES_MAX: usize = 1032;

/// The text of a gzip. Its memory is paid for before it is taken: by the length that the gzip says at its end, and where
/// that is wrong, as for several members, by one that is counted first.
async fn inflate(app: &App, share: &mut Share, gzip: &[u8], bytes_max: usize) -> Result<Bytes, Failure> {
    let said = gzip.last_chunk().map_or(0, |last| u32::from_le_bytes(*last) as usize);
    let said = said.min(gzip.len().saturating_mul(INFLATES_MAX)).min(bytes_max);
    share.take(app.room(), &*app.clock, said.saturating_mul(PARSED_FACTOR)).await?;
    if let Some(text) = inflate_within(gzip, said)? {
        return Ok(text);
    }
    let mut text = MultiGzDecoder::new(gzip).take(bytes_max as u64 + 1);
    let bytes = io::copy(&mut text, &mut io::sink()).map_err(damaged)?;
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if bytes > bytes_max {
        return Err(Error::TooLarge { what: "an inflated request body", bytes, bytes_max }.into());
    }
    share.take(app.room(), &*app.clock, (bytes - said).saturating_mul(PARSED_FACTOR)).await?;
    Ok(inflate_within(gzip, bytes)?
        .ok_or_else(|| Error::Broken("a gzip inflates to two lengths".to_owned()))?)
}

fn damaged(error: io::Error) -> Failure {
    Error::Invalid(format!("the request body is a damaged gzip: {error}")).into()
}

/// The text, unless it is longer than this.
fn inflate_within(gzip: &[u8], bytes_max: usize) -> Result<Option<Bytes>, Failure> {
    let mut text = room_for(bytes_max)?;
    let is_whole = text.fill(MultiGzDecoder::new(gzip)).map_err(damaged)?;
    Ok(is_whole.then(|| text.freeze()))
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

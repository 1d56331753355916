//! Reading bodies: limited before they are read and while they inflate, and inflated by their first bytes, since what
//! stands between a client and us does not always keep the header true.

mod buffer;
mod pace;

use std::io;

use axum::extract::{FromRequest, Request};
use axum::http::header::CONTENT_ENCODING;
use bytes::buf::Reader;
use bytes::{Buf as _, Bytes};
use flate2::bufread::MultiGzDecoder;
use http_body::Body as _;
use serde::de::DeserializeOwned;

use self::buffer::Buffer;
use self::pace::Pace;
use super::answer::FRAME_BYTES;
use super::app::App;
use super::error::Failure;
use super::gateway::Gateway;
use crate::account::{self, Full};
use crate::services::Error;
use crate::services::error::InvalidInput;
use crate::services::store::compression::{gzip, length_said};
use crate::services::work::{self, SMALL_BYTES_MAX};

/// The longest body that the route takes, in bytes, as sent and inflated, and how many times its text a request holds. Put there
/// by the guard.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimit {
    pub(super) bytes_max: usize,
    pub(super) factor: usize,
}

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

    /// The text alone.
    pub(super) fn into_text(self) -> Bytes {
        self.text
    }

    /// The bytes as they were sent.
    pub(super) fn as_sent(&self) -> &Bytes {
        self.sent_gzip.as_ref().unwrap_or(&self.text)
    }

    /// The text, whatever it means.
    pub(super) fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(&self.text).map_err(|error| Error::Invalid(error.into()))
    }

    /// As [`parse`](Self::parse), away from the threads that serve where the text is long.
    pub(super) async fn parsed<T: DeserializeOwned + Send + 'static>(self) -> Result<T, Failure> {
        if self.text.len() <= SMALL_BYTES_MAX {
            return Ok(self.parse()?);
        }
        // A refusal is no failure of the work.
        Ok(work::on(self.text.len(), move || Ok(self.parse())).await??)
    }

    /// The text as JSON of a shape.
    pub(super) fn parse<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, Error> {
        // All of it: what is passed over here and kept as it came is read later by somebody who looks closer.
        serde_json::from_str(self.text()?).map_err(|error| Error::Invalid(InvalidInput::BodyShape(error)))
    }
}

impl FromRequest<App> for Body {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        let BodyLimit { bytes_max, factor } = request
            .extensions()
            .get()
            .copied()
            .ok_or_else(|| Error::Broken("a route without a body limit reads a body".to_owned()))?;
        let gateway = request.extensions().get().copied().unwrap_or(Gateway::OPEN);
        let said_gzip = request.headers().get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
        let sent_bytes_max = bytes_max.min(gateway.bytes_max);
        let sent = match receive(app, request.into_body(), sent_bytes_max).await {
            Err(Failure::Refused(Error::TooLarge { .. })) if gateway.bytes_max < bytes_max => {
                return Err(Failure::RequestTooLargeForGateway(gateway.bytes_max));
            }
            received => received?,
        };
        if sent.starts_with(&GZIP_MAGIC) {
            return inflate(sent, bytes_max, factor).await;
        }
        if said_gzip && !sent.is_empty() {
            return Err(InvalidInput::BodyNotGzip.into());
        }
        account::take(sent.len().saturating_mul(factor - 1)).await.map_err(Error::from)?;
        Ok(Self { text: sent, sent_gzip: None })
    }
}

/// The body as sent. What arrives is paid for before more is read, so a slow client holds no more than it has sent.
async fn receive(app: &App, body: axum::body::Body, bytes_max: usize) -> Result<Bytes, Failure> {
    let too_large = || Error::TooLarge { what: "a request body", bytes: bytes_max + 1, bytes_max };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large().into());
    }
    // Said by the client; memory is taken as the bytes come.
    let bytes_said = usize::try_from(body.size_hint().lower()).unwrap_or(0);
    let mut stream = body.into_data_stream();
    let (mut bytes, mut first, mut whole) = (0, Bytes::new(), None);
    let mut pace = Pace::default();
    loop {
        let Some(piece) = pace.next(app, &mut stream).await? else { break };
        let piece = piece.map_err(|error| InvalidInput::BodyLost(error.to_string()))?;
        bytes += piece.len();
        if bytes > bytes_max {
            return Err(too_large().into());
        }
        account::take(piece.len()).await.map_err(Error::from)?;
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

fn room_for(bytes: usize) -> Result<Buffer, Error> {
    Buffer::with_capacity(bytes).map_err(|error| {
        tracing::error!(%error, bytes, "there is no memory for a request body");
        Error::from(Full)
    })
}

fn longer(_: io::Error) -> Error {
    Error::Invalid(InvalidInput::BodyTooLong)
}

/// The text of a gzip. Its memory is reserved before it is taken: by the length that the gzip says at its end, and where that is
/// not all of it, as for several members, piece by piece.
async fn inflate(gzip: Bytes, bytes_max: usize, factor: usize) -> Result<Body, Failure> {
    let said = length_said(&gzip);
    let too_large = |bytes| Error::TooLarge { what: "an inflated request body", bytes, bytes_max };
    if said > bytes_max {
        return Err(too_large(said).into());
    }
    account::take(said.saturating_mul(factor)).await.map_err(Error::from)?;
    let from = MultiGzDecoder::new(gzip.clone().reader());
    let mut inflating = Inflating { from, pieces: Vec::new(), bytes: 0, next: None };
    let mut piece = said;
    loop {
        let is_whole;
        (inflating, is_whole) = inflating.go_on(piece).await?;
        if is_whole {
            break;
        }
        if inflating.bytes >= bytes_max {
            return Err(too_large(bytes_max + 1).into());
        }
        piece = inflating.bytes.max(FRAME_BYTES).min(bytes_max - inflating.bytes);
        // Once more than the text takes: pieces are put together at the end.
        account::take(piece.saturating_mul(factor + 1)).await.map_err(Error::from)?;
    }
    let is_as_said = inflating.pieces.len() <= 1;
    let text = inflating.into_text().await?;
    // What a gzip says of its length is believed later, so one that does not say it is not kept.
    Ok(Body { text, sent_gzip: is_as_said.then_some(gzip) })
}

/// A text that is being inflated.
struct Inflating {
    from: MultiGzDecoder<Reader<Bytes>>,
    pieces: Vec<Bytes>,
    bytes: usize,
    /// The byte after them.
    next: Option<u8>,
}

impl Inflating {
    /// Inflates this many bytes more, and tells whether that was all.
    async fn go_on(mut self, bytes: usize) -> Result<(Self, bool), Failure> {
        let go_on = move || {
            let mut piece = room_for(bytes)?;
            piece.append(self.next.take().as_slice()).map_err(longer)?;
            self.next = piece.fill(&mut self.from).map_err(damaged)?;
            let piece = piece.freeze();
            self.bytes += piece.len();
            self.pieces.push(piece);
            let is_whole = self.next.is_none();
            Ok((self, is_whole))
        };
        Ok(if bytes <= SMALL_BYTES_MAX { go_on() } else { work::on(bytes, go_on).await }?)
    }

    async fn into_text(mut self) -> Result<Bytes, Failure> {
        if self.pieces.len() <= 1 {
            return Ok(self.pieces.pop().unwrap_or_default());
        }
        let join = move || {
            let mut text = room_for(self.bytes)?;
            for piece in self.pieces {
                text.append(&piece).map_err(longer)?;
            }
            Ok(text.freeze())
        };
        Ok(work::on(self.bytes, join).await?)
    }
}

fn damaged(error: io::Error) -> Error {
    Error::Invalid(InvalidInput::BodyDamaged(error))
}

/// A body that is JSON of a shape.
#[derive(Debug)]
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        Body::from_request(request, app).await?.parsed().await.map(Self)
    }
}

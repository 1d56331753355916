//! Reads bodies. Their size is limited before they are read and while they inflate. A gzip is recognized by
//! its first bytes, since proxies between a client and this server do not always keep the header correct.

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
use crate::services::store::compression::{declared_length, gzip};
use crate::services::work::{self, SMALL_BYTES_MAX};

/// The route's limits for a body, which the guard sets: its length in bytes, as sent and inflated, and the
/// number of copies of its text that a request holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimit {
    pub(super) bytes_max: usize,
    pub(super) factor: usize,
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A body: its text, and its gzip if it was sent as one.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) text: Bytes,
    sent_gzip: Option<Bytes>,
}

impl Body {
    /// The gzip of the text: as sent, if it was, so that nothing is compressed twice.
    pub(super) fn into_gzip(self) -> Bytes {
        self.sent_gzip.unwrap_or_else(|| gzip(&self.text))
    }

    /// The text, without the gzip.
    pub(super) fn into_text(self) -> Bytes {
        self.text
    }

    /// The bytes as sent.
    pub(super) fn as_sent(&self) -> &Bytes {
        self.sent_gzip.as_ref().unwrap_or(&self.text)
    }

    /// The text, not parsed.
    pub(super) fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(&self.text).map_err(|error| Error::Invalid(error.into()))
    }

    /// The same as [`parse`](Self::parse). A long text is parsed on a thread that serves no requests.
    pub(super) async fn parsed<T: DeserializeOwned + Send + 'static>(self) -> Result<T, Failure> {
        if self.text.len() <= SMALL_BYTES_MAX {
            return Ok(self.parse()?);
        }
        // A parse error is a refusal, not a failure of the work.
        Ok(work::on(self.text.len(), move || Ok(self.parse())).await??)
    }

    /// Parses the text as JSON.
    pub(super) fn parse<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, Error> {
        // Check the whole text: parts that are skipped here and stored as sent are parsed more strictly
        // later.
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
            .ok_or_else(|| Error::Internal("a route without a body limit reads a body".to_owned()))?;
        let gateway = request.extensions().get().copied().unwrap_or(Gateway::OPEN);
        let claims_gzip = request.headers().get(CONTENT_ENCODING).is_some_and(|value| value != "identity");
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
        if claims_gzip && !sent.is_empty() {
            return Err(InvalidInput::BodyNotGzip.into());
        }
        account::take(sent.len().saturating_mul(factor - 1)).await.map_err(Error::from)?;
        Ok(Self { text: sent, sent_gzip: None })
    }
}

/// Reads the body as sent. Reserves memory for the bytes that arrive before it reads more, so a slow client
/// holds only what it has sent.
async fn receive(app: &App, body: axum::body::Body, bytes_max: usize) -> Result<Bytes, Failure> {
    let too_large = || Error::TooLarge { what: "a request body", bytes: bytes_max + 1, bytes_max };
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(too_large().into());
    }
    // The client claims this length. Memory is reserved as the bytes arrive.
    let bytes_claimed = usize::try_from(body.size_hint().lower()).unwrap_or(0);
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
        // Most bodies arrive in one piece and need no copy.
        if bytes == piece.len() {
            first = piece;
            continue;
        }
        let whole = match &mut whole {
            Some(whole) => whole,
            None => {
                let mut begun = room_for(bytes_claimed.max(bytes))?;
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

/// Inflates a gzip. Reserves the memory first, by the length in the gzip's trailer. If the text is longer
/// than that, as with several members, reserves it piece by piece.
async fn inflate(gzip: Bytes, bytes_max: usize, factor: usize) -> Result<Body, Failure> {
    let claimed = declared_length(&gzip);
    let too_large = |bytes| Error::TooLarge { what: "an inflated request body", bytes, bytes_max };
    if claimed > bytes_max {
        return Err(too_large(claimed).into());
    }
    account::take(claimed.saturating_mul(factor)).await.map_err(Error::from)?;
    let from = MultiGzDecoder::new(gzip.clone().reader());
    let mut inflating = Inflating { from, pieces: Vec::new(), bytes: 0, next: None };
    let mut piece = claimed;
    loop {
        let is_whole;
        (inflating, is_whole) = inflating.inflate_more(piece).await?;
        if is_whole {
            break;
        }
        if inflating.bytes >= bytes_max {
            return Err(too_large(bytes_max + 1).into());
        }
        piece = inflating.bytes.max(FRAME_BYTES).min(bytes_max - inflating.bytes);
        // One copy more than for other texts: the pieces are joined at the end.
        account::take(piece.saturating_mul(factor + 1)).await.map_err(Error::from)?;
    }
    let is_length_right = inflating.pieces.len() <= 1;
    let text = inflating.into_text().await?;
    // Later reads trust the length in a gzip's trailer, so do not keep a gzip with a wrong one.
    Ok(Body { text, sent_gzip: is_length_right.then_some(gzip) })
}

/// A text while it is being inflated.
struct Inflating {
    from: MultiGzDecoder<Reader<Bytes>>,
    pieces: Vec<Bytes>,
    bytes: usize,
    /// The byte that follows these pieces.
    next: Option<u8>,
}

impl Inflating {
    /// Inflates this many more bytes; true at the end of the text.
    async fn inflate_more(mut self, bytes: usize) -> Result<(Self, bool), Failure> {
        let inflate_more = move || {
            let mut piece = room_for(bytes)?;
            piece.append(self.next.take().as_slice()).map_err(longer)?;
            self.next = piece.fill(&mut self.from).map_err(damaged)?;
            let piece = piece.freeze();
            self.bytes += piece.len();
            self.pieces.push(piece);
            let is_whole = self.next.is_none();
            Ok((self, is_whole))
        };
        Ok(if bytes <= SMALL_BYTES_MAX { inflate_more() } else { work::on(bytes, inflate_more).await }?)
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

/// A body that is parsed as JSON.
#[derive(Debug)]
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<App> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &App) -> Result<Self, Failure> {
        Body::from_request(request, app).await?.parsed().await.map(Self)
    }
}

//! Bodies of answers. Their bytes count in the account until the socket has taken them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{self, Read as _};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use bytes::buf::{Buf as _, Reader};
use flate2::bufread::MultiGzDecoder;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body::{Frame, SizeHint};

use crate::account::{Portion, Reservation};
use crate::services::{Error, work};

/// The size of a frame of a long answer, in bytes.
pub(super) const FRAME_BYTES: usize = 64 << 10;

/// Frames that one piece of work inflates.
const FRAMES_AT_ONCE: usize = 4;

/// Bytes that an answer holds until its end, if it is produced while it is sent. Stored in the answer's
/// extensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Holds(pub(super) usize);

/// Returns the answer with the part of the request's reservation that it still needs.
pub(super) fn accounted(mut response: Response, reservation: Reservation) -> Response {
    if let Some(Holds(bytes)) = response.extensions_mut().remove() {
        reservation.settle(bytes);
        return response.map(|body| Body::new(Accounted { body, reservation, by_frame: false }));
    }
    let bytes = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
    if bytes <= FRAME_BYTES {
        // Shorter than what a connection buffers for any answer.
        return response;
    }
    reservation.settle(bytes);
    response.map(|body| Body::new(Accounted { body, reservation, by_frame: true }))
}

/// The body of an answer, with the bytes that it holds.
struct Accounted {
    body: Body,
    reservation: Reservation,
    by_frame: bool,
}

impl HttpBody for Accounted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        Pin::new(&mut this.body).poll_frame(cx).map_ok(|frame| match this.by_frame {
            // A frame keeps its bytes until all parts of it are sent, which may be after the end of this
            // body.
            true => frame.map_data(|bytes| {
                let portion = this.reservation.split(bytes.len());
                Bytes::from_owner(Sent { bytes, _portion: portion })
            }),
            false => frame,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes that are being sent, with their part of the reservation.
struct Sent {
    bytes: Bytes,
    _portion: Portion,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns a body that inflates a gzip while it is sent, and the bytes that it holds.
pub(super) fn inflating(gzip: Bytes) -> (Body, Holds) {
    let holds = Holds(gzip.len() + FRAMES_AT_ONCE * FRAME_BYTES);
    let frames = stream::try_unfold(Some(MultiGzDecoder::new(gzip.reader())), |decoder| async {
        let Some(decoder) = decoder else { return Ok(None) };
        // Always in the background: each piece is small, but together they are long work.
        work::on(usize::MAX, move || inflate_some(decoder)).await.map(Some)
    });
    let frames = frames.map_ok(|frames: Vec<Bytes>| stream::iter(frames).map(Ok::<_, Error>)).try_flatten();
    (Body::from_stream(frames), holds)
}

type Decoder = MultiGzDecoder<Reader<Bytes>>;

fn inflate_some(mut decoder: Decoder) -> Result<(Vec<Bytes>, Option<Decoder>), Error> {
    let mut frames = Vec::with_capacity(FRAMES_AT_ONCE);
    while frames.len() < FRAMES_AT_ONCE {
        let mut frame = Vec::with_capacity(FRAME_BYTES);
        decoder
            .by_ref()
            .take(FRAME_BYTES as u64)
            .read_to_end(&mut frame)
            .map_err(|error| Error::Broken(format!("stored bytes do not inflate: {error}")))?;
        let is_last = frame.len() < FRAME_BYTES;
        frames.push(frame.into());
        if is_last {
            return Ok((frames, None));
        }
    }
    Ok((frames, Some(decoder)))
}

/// Text that is written in pieces. Each piece is freed when it is sent.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    full: VecDeque<Bytes>,
    last: Vec<u8>,
}

impl Pieces {
    /// The JSON text of a value.
    pub(super) fn of(value: &impl serde::Serialize) -> Result<Self, Error> {
        let mut pieces = Self::default();
        serde_json::to_writer(&mut pieces, value)
            .map_err(|error| Error::Internal(format!("an answer does not serialize: {error}")))?;
        Ok(pieces)
    }

    pub(super) fn into_body(mut self) -> Body {
        let last = Bytes::from(std::mem::take(&mut self.last));
        if self.full.is_empty() {
            return Body::from(last);
        }
        self.full.push_back(last);
        Body::new(self)
    }
}

impl io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = FRAME_BYTES - self.last.len();
        let now = bytes.get(..room).unwrap_or(bytes);
        self.last.extend_from_slice(now);
        if self.last.len() == FRAME_BYTES {
            let next = Vec::with_capacity(FRAME_BYTES);
            self.full.push_back(std::mem::replace(&mut self.last, next).into());
        }
        Ok(now.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.full.pop_front().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.full.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.full.iter().map(|piece| piece.len() as u64).sum())
    }
}

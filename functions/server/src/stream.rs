//! The stream of a connection: timeouts for slow clients, a response where HTTP ended without one, and
//! delivery of the last response.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::StatusCode;
use statewright_shared::ports::Clock;
use statewright_shared::wire::Reason;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;

use super::activity::{Activity, PROGRESS_BYTES_MIN, WRITE_PAUSE_MAX};

/// How long input is discarded before a connection is closed. Closing it with unread input resets it, and the
/// client loses the response that it has not read yet.
const LINGER_MAX: Duration = Duration::from_secs(5);

/// How long a client that has closed its sending side may wait for a response. It may also have gone away,
/// which looks the same.
const GONE_AFTER: Duration = Duration::from_secs(5);

/// How long to wait for the end of a body after the client closed its sending side. After this the request
/// fails.
const BODY_END_WITHIN: Duration = Duration::from_secs(1);

/// The start of every HTTP/2 connection (RFC 9113, section 3.4).
const HTTP_2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream whose writes fail if the other side reads too little for too long.
pub(super) struct Patient {
    stream: TcpStream,
    clock: Arc<dyn Clock>,
    /// The timeout, while data is waiting for the other side.
    blocked: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Bytes that the other side accepted since the timeout started.
    taken: usize,
}

impl Patient {
    pub(super) fn new(stream: TcpStream, clock: Arc<dyn Clock>) -> Self {
        Self { stream, clock, blocked: None, taken: 0 }
    }

    fn wait(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(taken) = &result {
            self.taken = self.taken.saturating_add(taken.as_ref().map_or(0, |taken| *taken));
            if self.taken >= PROGRESS_BYTES_MIN {
                self.blocked = None;
            }
            return result;
        }
        let blocked = match &mut self.blocked {
            Some(blocked) => blocked,
            None => {
                let clock = Arc::clone(&self.clock);
                self.taken = 0;
                self.blocked.insert(Box::pin(async move { clock.sleep(WRITE_PAUSE_MAX).await }))
            }
        };
        blocked.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wait(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wait(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The stream is flushed once everything was accepted.
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if flushed.is_ready() {
            self.blocked = None;
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A stream that records what it received.
pub(super) struct Heard<S> {
    stream: S,
    activity: Arc<Activity>,
    /// The first bytes, enough to detect HTTP/2.
    beginning: Vec<u8>,
    end: End,
}

/// Whether more input can arrive.
enum End {
    No,
    /// The client closed its sending side.
    HalfClosed {
        /// When the client is assumed to be gone.
        gone: Pin<Box<dyn Future<Output = ()> + Send>>,
        /// When an unfinished body is assumed to be incomplete; `None` after that.
        broken_off: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    },
    Gone,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Heard<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> Self {
        Self { stream, activity, beginning: Vec::new(), end: End::No }
    }

    fn hear(&mut self, bytes: &[u8]) {
        let missing = HTTP_2.len().saturating_sub(self.beginning.len());
        self.beginning.extend(bytes.iter().take(missing));
        if !bytes.is_empty() {
            self.activity.hear();
        }
    }

    /// Sends an error with this reason if HTTP has left a request unanswered. Returns whether it did.
    pub(super) async fn answer(&mut self, reason: Reason, why: &str) -> bool {
        let is_needed = self.activity.is_unanswered() && self.beginning != HTTP_2;
        if is_needed {
            self.answer_unheard(reason, why).await;
        }
        is_needed
    }

    /// Sends this response in any case.
    pub(super) async fn answer_unheard(&mut self, reason: Reason, why: &str) {
        let status = StatusCode::from_u16(reason.status()).unwrap_or_default();
        let message = format!("{}: {why}", status.canonical_reason().unwrap_or_default());
        let body =
            serde_json::json!({ "code": status.as_u16(), "message": message, "reason": reason }).to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        // A client that does not read it is gone.
        let _ = self.stream.write_all(format!("{head}{body}").as_bytes()).await;
        let _ = self.stream.flush().await;
    }

    /// Closes the sending side, then waits for the client to do the same, up to [`LINGER_MAX`].
    pub(super) async fn linger(mut self, clock: &dyn Clock) {
        let read_out = async {
            let _ = self.stream.shutdown().await;
            let mut forgotten = vec![0; 16 << 10];
            while self.stream.read(&mut forgotten).await.is_ok_and(|bytes| bytes > 0) {}
        };
        tokio::select! {
            () = read_out => {}
            () = clock.sleep(LINGER_MAX) => {}
        }
    }
}

/// A stream lent to HTTP. Dropping it returns the stream to its owner.
pub(super) struct Lent<S> {
    heard: Option<Heard<S>>,
    owner: Owner<S>,
}

/// Receives the lent stream back.
pub(super) struct Owner<S>(Arc<Mutex<Option<Heard<S>>>>);

impl<S> Clone for Owner<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Owner<S> {
    /// The stream, if it was returned.
    pub(super) fn take(self) -> Option<Heard<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Lent<S> {
    pub(super) fn new(stream: S, activity: Arc<Activity>) -> (Self, Owner<S>) {
        let owner = Owner(Arc::default());
        (Self { heard: Some(Heard::new(stream, activity)), owner: owner.clone() }, owner)
    }

    /// The stream, which is present until drop.
    fn heard(&mut self) -> io::Result<&mut Heard<S>> {
        self.heard.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl<S> Drop for Lent<S> {
    fn drop(&mut self) {
        *self.owner.0.lock().unwrap_or_else(PoisonError::into_inner) = self.heard.take();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Lent<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let heard = self.heard()?;
        if matches!(heard.end, End::No) {
            let (before, has_room) = (buffer.filled().len(), buffer.remaining() > 0);
            let polled = Pin::new(&mut heard.stream).poll_read(cx, buffer);
            heard.hear(buffer.filled().get(before..).unwrap_or_default());
            let is_end = has_room && buffer.filled().len() == before && matches!(polled, Poll::Ready(Ok(())));
            if !is_end {
                return polled;
            }
            heard.end = End::HalfClosed {
                gone: heard.activity.after(GONE_AFTER),
                broken_off: Some(heard.activity.after(BODY_END_WITHIN)),
            };
        }
        // HTTP aborts requests in progress when it reads the end of the input, so the end is withheld.
        if let End::HalfClosed { gone, broken_off } = &mut heard.end
            && heard.activity.is_under_way()
        {
            if broken_off.as_mut().is_some_and(|end| end.as_mut().poll(cx).is_ready()) {
                *broken_off = None;
            }
            if broken_off.is_some() || !heard.activity.is_body_unread() {
                std::task::ready!(gone.as_mut().poll(cx));
            }
            heard.end = End::Gone;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lent<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let heard = self.heard()?;
        heard.activity.say();
        Pin::new(&mut heard.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let heard = self.heard()?;
        heard.activity.say();
        Pin::new(&mut heard.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.heard.as_ref().is_some_and(|heard| heard.stream.is_write_vectored())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.heard()?.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.heard()?.stream).poll_shutdown(cx)
    }
}

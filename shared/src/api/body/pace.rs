//! Limits the time that a client may take for its body.

use std::time::Duration;

use axum::Error as BodyError;
use axum::body::BodyDataStream;
use bytes::Bytes;
use futures::StreamExt as _;

use super::super::app::App;
use super::super::error::Failure;
use crate::account::{self, Full};
use crate::limits::{BODY_PAUSE_MAX, BODY_PROGRESS_BYTES_MIN, BODY_TIME_MAX, BODY_TURN_MAX};
use crate::services::Error;

/// The time that a client has taken so far. While the server waits for memory, it does not read the body, and
/// that time does not count.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The time for the whole body.
    waited: Duration,
    /// The time since the client last made progress.
    paused: Duration,
    bytes: usize,
    /// The time in which other requests waited for this one to end.
    in_turn: Duration,
}

impl Pace {
    /// The next piece of a body; `None` at its end.
    ///
    /// # Errors
    /// [`Failure::Stalled`] if the client sends too little; [`Full`] if other requests would have to wait for
    /// it.
    pub(super) async fn next(
        &mut self,
        app: &App,
        stream: &mut BodyDataStream,
    ) -> Result<Option<Result<Bytes, BodyError>>, Failure> {
        let has_turn = account::current().is_some_and(|reservation| reservation.has_turn());
        let patience =
            BODY_PAUSE_MAX.saturating_sub(self.paused).min(BODY_TIME_MAX.saturating_sub(self.waited));
        let of_turn = BODY_TURN_MAX.saturating_sub(self.in_turn);
        let is_short = has_turn && of_turn < patience;
        let began = app.now();
        let piece = tokio::select! {
            biased;
            piece = stream.next() => piece,
            () = app.clock.sleep(if is_short { of_turn } else { patience }) => {
                return Err(if is_short { Error::from(Full).into() } else { Failure::Stalled });
            }
        };
        let took = app.now().since(began);
        self.waited += took;
        self.paused += took;
        self.in_turn += if has_turn { took } else { Duration::ZERO };
        self.bytes += piece.as_ref().and_then(|piece| piece.as_ref().ok()).map_or(0, Bytes::len);
        if self.bytes >= BODY_PROGRESS_BYTES_MIN {
            (self.paused, self.bytes) = (Duration::ZERO, 0);
        }
        Ok(piece)
    }
}

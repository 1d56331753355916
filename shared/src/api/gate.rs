//! How much one caller may ask for at once, and how much memory the bodies of all of them may take.

use std::collections::HashMap;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::Failure;
use crate::domain::ids::UpdateId;
use crate::domain::update::Requester;
use crate::ports::Clock;

/// Whose requests are counted together: those that show the same token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Who {
    Person(Requester),
    Update(UpdateId),
}

/// Counts the requests that are under way for each token.
#[derive(Debug)]
pub(super) struct Gate {
    per_token_max: usize,
    inside: Mutex<HashMap<Who, usize>>,
}

impl Gate {
    pub(super) fn new(per_token_max: usize) -> Self {
        Self { per_token_max, inside: Mutex::default() }
    }

    /// Lets a request in until the pass is dropped.
    pub(super) fn enter(self: &Arc<Self>, who: Who) -> Result<Pass, Failure> {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        let count = inside.entry(who.clone()).or_insert(0);
        if *count >= self.per_token_max {
            return Err(Failure::TooManyRequests(self.per_token_max));
        }
        *count += 1;
        Ok(Pass { gate: Arc::clone(self), who })
    }
}

/// A request that is inside.
#[derive(Debug)]
pub(super) struct Pass {
    gate: Arc<Gate>,
    who: Who,
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut inside = self.gate.inside.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = inside.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                inside.remove(&self.who);
            }
        }
    }
}

/// Memory is handed out in pieces of so many bytes.
const PIECE: usize = 64 << 10;

/// A request waits so long for others to be done with their memory.
pub(super) const WAIT_FOR_ROOM: Duration = Duration::from_secs(20);

/// The memory for bodies that are received, inflated and parsed at once.
///
/// Requests take it piece by piece, and one that waits while it holds some would wait for ever for others that do the
/// same. So one at a time may go over the limit: it ends, and gives back what the others wait for. What is taken in all
/// is the limit and the largest request.
#[derive(Debug)]
pub(super) struct Room {
    pieces: Arc<Semaphore>,
    overdraft: Arc<Semaphore>,
}

impl Room {
    pub(super) fn new(bytes_max: usize) -> Self {
        let pieces = (bytes_max / PIECE).clamp(1, Semaphore::MAX_PERMITS);
        Self { pieces: Arc::new(Semaphore::new(pieces)), overdraft: Arc::new(Semaphore::new(1)) }
    }
}

/// What one request holds of the room, until it is dropped.
#[derive(Debug, Default)]
pub(super) struct Share {
    used: usize,
    held: usize,
    pieces: Option<OwnedSemaphorePermit>,
    overdraft: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Takes so many bytes more, at once or when others gave some back.
    pub(super) async fn take(&mut self, room: &Room, clock: &dyn Clock, bytes: usize) -> Result<(), Failure> {
        self.used = self.used.saturating_add(bytes);
        let missing = self.used.saturating_sub(self.held).div_ceil(PIECE);
        if missing == 0 || self.overdraft.is_some() {
            return Ok(());
        }
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        let pieces = async {
            match Arc::clone(&room.pieces).acquire_many_owned(missing).await {
                Ok(pieces) => pieces,
                Err(_closed) => pending().await,
            }
        };
        let overdraft = async {
            match Arc::clone(&room.overdraft).acquire_owned().await {
                Ok(overdraft) => overdraft,
                Err(_closed) => pending().await,
            }
        };
        tokio::select! {
            biased;
            pieces = pieces => {
                self.held += missing as usize * PIECE;
                match &mut self.pieces {
                    Some(held) => held.merge(pieces),
                    held => *held = Some(pieces),
                }
            }
            overdraft = overdraft => self.overdraft = Some(overdraft),
            () = clock.sleep(WAIT_FOR_ROOM) => return Err(Failure::NoRoom),
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests;

//! Work for processors alone, away from the threads that serve.

use std::num::NonZero;
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Error;
use crate::account;

/// Work on more bytes than this has to wait for its turn.
pub(crate) const SMALL_BYTES_MAX: usize = 1 << 20;

/// Turns for long work: one for each processor but one, which is left to those who serve.
static TURNS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, NonZero::get);
    Arc::new(Semaphore::new(processors.saturating_sub(1).max(1)))
});

/// A turn for long work; none is needed for work on few bytes.
pub(super) struct Turn(#[expect(dead_code, reason = "held to be dropped")] Option<OwnedSemaphorePermit>);

/// Waits for the turn of work on this many bytes.
pub(super) async fn turn(bytes: usize) -> Turn {
    match bytes > SMALL_BYTES_MAX {
        // Nobody closes it.
        true => Turn(Arc::clone(&TURNS).acquire_owned().await.ok()),
        false => Turn(None),
    }
}

/// Does work on this many bytes. What the request has reserved is held until the work ends, also when its client has gone.
///
/// # Errors
/// Those of the work.
pub(crate) async fn on<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let turn = turn(bytes).await;
    in_background(move || {
        let _turn = turn;
        work()
    })
    .await
}

/// Reserves this many times the bytes, and does work on them.
///
/// # Errors
/// Those of the work; [`Error::NoRoom`].
pub(crate) async fn with<T: Send + 'static>(
    bytes: usize,
    factor: usize,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    account::take(bytes.saturating_mul(factor)).await?;
    on(bytes, work).await
}

/// Does work that is short, or that has its turn.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let reserved = account::current();
    tokio::task::spawn_blocking(move || {
        let _reserved = reserved;
        work()
    })
    .await
    .map_err(|error| Error::Broken(format!("work was interrupted: {error}")))?
}

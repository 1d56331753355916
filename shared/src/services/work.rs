//! CPU-bound work, off the threads that serve requests.

use std::collections::{HashMap, VecDeque};
use std::num::NonZero;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;

use tokio::sync::oneshot;

use super::Error;
use crate::account;

/// The maximum size of work that runs without waiting for a turn, in bytes.
pub(crate) const SMALL_BYTES_MAX: usize = 1 << 20;

/// The turns for long work: one for each processor except one, which is left for serving requests.
static TURNS: LazyLock<Turns> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, NonZero::get);
    Turns::new(processors.saturating_sub(1).max(1))
});

/// Turns that rotate among owners: however much work an owner has queued, another owner waits for at most one piece of it.
#[derive(Clone)]
struct Turns(Arc<Mutex<Line>>);

struct Line {
    free: usize,
    waiting: VecDeque<(u64, oneshot::Sender<Turn>)>,
    /// The number of each owner's last turn. Cleared once the queue is empty.
    last: HashMap<u64, u64>,
    count: u64,
}

impl Line {
    /// The first waiter of the owner whose last turn is the oldest.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        self.waiting.retain(|(_, granted)| !granted.is_closed());
        let turn_of = |owner: &u64| self.last.get(owner).copied().unwrap_or_default();
        let places = self.waiting.iter().enumerate();
        let (index, _) = places.min_by_key(|(_, (owner, _))| turn_of(owner))?;
        let (owner, granted) = self.waiting.remove(index)?;
        self.count += 1;
        self.last.insert(owner, self.count);
        if self.waiting.is_empty() {
            self.last.clear();
        }
        Some(granted)
    }
}

impl Turns {
    fn new(free: usize) -> Self {
        let (waiting, last) = (VecDeque::new(), HashMap::new());
        Self(Arc::new(Mutex::new(Line { free, waiting, last, count: 0 })))
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take(&self, owner: u64) -> Turn {
        let (sender, granted) = oneshot::channel();
        self.line().waiting.push_back((owner, sender));
        self.pass();
        // A waiter leaves the queue only when it is granted a turn or has gone away.
        granted.await.unwrap_or(Turn(None))
    }

    fn pass(&self) {
        let mut line = self.line();
        while line.free > 0 {
            let Some(granted) = line.next() else { return };
            line.free -= 1;
            if let Err(mut refused) = granted.send(Turn(Some(self.clone()))) {
                // The request is gone, so the turn is free again.
                refused.0 = None;
                line.free += 1;
            }
        }
    }
}

/// A turn for long work, held until dropped. Small work has an empty one.
pub(super) struct Turn(Option<Turns>);

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.0.take() {
            turns.line().free += 1;
            turns.pass();
        }
    }
}

/// Waits for a turn for work on `bytes` bytes.
pub(super) async fn turn(bytes: usize) -> Turn {
    match bytes > SMALL_BYTES_MAX {
        // Responses in transit are built in pieces outside a request, and share one owner.
        true => TURNS.take(account::current().map_or(0, |reservation| reservation.owner())).await,
        false => Turn(None),
    }
}

/// Runs work on `bytes` bytes. The request's reservation is held until the work ends, even if the client disconnects.
///
/// # Errors
/// The errors of the work.
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

/// Reserves `factor` times `bytes` and runs the work.
///
/// # Errors
/// The errors of the work; [`Error::NoRoom`].
pub(super) async fn with<T: Send + 'static>(
    bytes: usize,
    factor: usize,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    account::take(bytes.saturating_mul(factor)).await?;
    on(bytes, work).await
}

/// Runs work that is short or already has its turn.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let reserved = account::current();
    tokio::task::spawn_blocking(move || {
        let _reserved = reserved;
        work()
    })
    .await
    .map_err(|error| Error::Internal(format!("work was interrupted: {error}")))?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An owner with a long queue does not make another owner wait for all of it.
    #[tokio::test]
    async fn turns_go_around_among_owners() {
        let turns = Turns::new(1);
        let first = turns.take(1).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for (owner, name) in [(1, "a"), (1, "b"), (1, "c"), (2, "x"), (2, "y"), (3, "z")] {
            let (turns, order) = (turns.clone(), Arc::clone(&order));
            waiting.push(tokio::spawn(async move {
                let _turn = turns.take(owner).await;
                order.lock().unwrap().push(name);
            }));
            tokio::task::yield_now().await;
        }
        // A waiter that gives up leaves its turn to the others.
        waiting.remove(1).abort();
        tokio::task::yield_now().await;
        drop(first);
        for one in waiting {
            one.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["a", "x", "z", "c", "y"]);
        assert_eq!(turns.line().free, 1);
    }
}

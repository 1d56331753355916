//! One account of the bytes that requests hold in memory: what clients sent, what was fetched from the store
//! for them, what is made of both, and answers that are not sent yet.
//!
//! Bytes are reserved before they are allocated. A reservation belongs to a request. It is found through the
//! task that works for the request, moves with work that leaves the task, and then with the answer. Work
//! without a request, such as an operator's command, is not counted.
//!
//! # No request waits for ever
//!
//! A request that holds nothing waits in the queue and blocks no other. One that holds memory and needs more
//! than its owner's share must have the *turn*. One request at a time has the turn, until its answer is ready.
//! The turn opens the part of the account that shares leave free. Queued requests always leave
//! enough for the request with the turn to end: otherwise the newest of them are refused. So the request with the turn
//! waits only for requests that wait for no other here, and each of those ends, or joins the queue and is
//! counted there.

mod line;

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use self::line::{Books, Waiting};
use crate::ports::{Clock, Timestamp};

/// The total time that a request waits for others to release memory.
pub const WAIT_MAX: Duration = Duration::from_secs(20);

/// Other requests held the memory that a request needs for longer than it may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many large requests are under way: try again")]
pub struct Full;

/// The account.
///
/// An owner holds at most as much as is still free: a single owner half of the account, each of two owners a
/// third. So one owner never blocks another's small requests. One request at a time, the one with the turn,
/// may hold more, up to seven eighths of the account, and never counts as more than that.
#[derive(Clone)]
pub struct ByteAccount(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    owners: RandomState,
    books: Mutex<Books>,
}

impl ByteAccount {
    /// An account of this many bytes.
    pub fn new(bytes_max: usize, clock: Arc<dyn Clock>) -> Self {
        let books = Mutex::new(Books::new(bytes_max));
        Self(Arc::new(Shared { clock, owners: RandomState::new(), books }))
    }

    /// An empty reservation for a request of this owner.
    pub fn open(&self, owner: &impl Hash) -> Reservation {
        let shared = Arc::clone(&self.0);
        let (owner, id) = (shared.owners.hash_one(owner), shared.books().next_id());
        let request = Request {
            shared,
            owner,
            id,
            held: AtomicUsize::new(0),
            is_answered: AtomicBool::new(false),
            waited: Mutex::default(),
        };
        Reservation(Inner::new(Arc::new(request)))
    }

    /// The reserved bytes.
    pub fn used(&self) -> usize {
        self.0.books().used()
    }

    /// The peak of reserved bytes since the last call.
    pub fn take_most(&self) -> usize {
        self.0.books().take_most()
    }
}

impl Shared {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grants what queued requests can have now, and refuses those that block the turn.
    fn let_in(&self, mut books: MutexGuard<'_, Books>) {
        let (granted, refused) = books.let_in();
        // Release the lock first: dropping these may drop the last part of a request, whose drop takes the lock.
        drop(books);
        for Waiting { granted, .. } in granted {
            // If the request has gone meanwhile, its reservation releases what was granted.
            let _ = granted.send(());
        }
        drop(refused);
    }
}

/// A request with all its parts.
struct Request {
    shared: Arc<Shared>,
    owner: u64,
    id: u64,
    /// The bytes of its parts.
    held: AtomicUsize,
    /// Whether its answer is ready: then its bytes are those of the answer.
    is_answered: AtomicBool,
    waited: Mutex<Waited>,
}

/// The time that a request has waited; concurrent waits count once.
#[derive(Default)]
struct Waited {
    before: Duration,
    now: usize,
    since: Option<Timestamp>,
}

impl Request {
    fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn is_answered(&self) -> bool {
        self.is_answered.load(Ordering::Relaxed)
    }

    fn end_turn(&self) {
        let mut books = self.shared.books();
        if books.end_turn(self.id) {
            self.shared.let_in(books);
        }
    }

    fn waited(&self) -> MutexGuard<'_, Waited> {
        self.waited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait. Returns the time that is left.
    fn begin_to_wait(&self) -> Duration {
        let (mut waited, now) = (self.waited(), self.shared.clock.now());
        let since = *waited.since.get_or_insert(now);
        waited.now += 1;
        WAIT_MAX.saturating_sub(waited.before).saturating_sub(now.since(since))
    }

    fn end_to_wait(&self) {
        let mut waited = self.waited();
        waited.now -= 1;
        if waited.now == 0 {
            let since = waited.since.take();
            waited.before += since.map_or(Duration::ZERO, |since| self.shared.clock.now().since(since));
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.end_turn();
    }
}

/// The bytes of one part of a request, or of all of it.
struct Inner {
    request: Arc<Request>,
    held: AtomicUsize,
    /// Of these, the bytes reserved ahead and not taken yet.
    ahead: AtomicUsize,
}

impl Inner {
    fn new(request: Arc<Request>) -> Arc<Self> {
        Arc::new(Self { request, held: AtomicUsize::new(0), ahead: AtomicUsize::new(0) })
    }

    fn add(&self, books: &mut Books, bytes: usize) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.request.held.fetch_add(bytes, Ordering::Relaxed);
        books.add(self.request.owner, bytes, self.request.is_answered());
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let (held, request) = (*self.held.get_mut(), &self.request);
        if held > 0 {
            let mut books = request.shared.books();
            request.held.fetch_sub(held, Ordering::Relaxed);
            books.give_back(request.owner, held, request.is_answered());
            request.shared.let_in(books);
        }
    }
}

/// The bytes of one request, until the last clone is dropped.
#[derive(Clone)]
pub struct Reservation(Arc<Inner>);

impl Reservation {
    /// Reserved bytes.
    pub fn bytes(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    /// The owner that the bytes count for.
    pub(crate) fn owner(&self) -> u64 {
        self.0.request.owner
    }

    /// Whether the request has the turn, so that others wait for its end.
    pub fn has_turn(&self) -> bool {
        self.0.request.shared.books().has_turn(self.0.request.id)
    }

    /// Gives up the turn, before the request waits for another one that may need it.
    pub fn give_turn_away(&self) {
        self.0.request.end_turn();
    }

    /// Reserves more bytes, at once or when other requests release some.
    ///
    /// # Errors
    /// [`Full`] if that took too long, or if the request would block one that waits longer.
    pub async fn take(&self, bytes: usize) -> Result<(), Full> {
        let mut ahead = 0;
        let _ = self.0.ahead.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |there| {
            ahead = there.min(bytes);
            Some(there - ahead)
        });
        self.reserve(bytes - ahead).await
    }

    /// Reserves more bytes if they are free now: for work that a request can do without.
    ///
    /// # Errors
    /// [`Full`].
    pub fn try_take(&self, bytes: usize) -> Result<(), Full> {
        let is_granted = self.0.request.shared.books().grant(&self.0, bytes);
        if is_granted { Ok(()) } else { Err(Full) }
    }

    /// Reserves more bytes that are then taken bit by bit: for work whose total is known before it begins, so
    /// that it waits while it holds nothing.
    ///
    /// # Errors
    /// [`Full`].
    pub async fn take_ahead(&self, bytes: usize) -> Result<(), Full> {
        self.reserve(bytes).await?;
        self.0.ahead.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    async fn reserve(&self, bytes: usize) -> Result<(), Full> {
        let request = &self.0.request;
        let shared = &request.shared;
        let (id, granted) = {
            let mut books = shared.books();
            if books.grant(&self.0, bytes) {
                return Ok(());
            }
            let (sender, granted) = oneshot::channel();
            let id = books.wait(Arc::clone(&self.0), bytes, sender);
            shared.let_in(books);
            (id, granted)
        };
        // The request may also be dropped while it waits.
        let _in_line = InLine { request, id };
        let left = request.begin_to_wait();
        tokio::select! {
            biased;
            granted = granted => granted.map_err(|_| Full),
            () = shared.clock.sleep(left) => Err(Full),
        }
    }

    /// Counts bytes that are allocated already. Others wait for them, but this call does not.
    pub fn owe(&self, bytes: usize) {
        self.0.add(&mut self.0.request.shared.books(), bytes);
    }

    /// Holds this many bytes from now on: those of an answer, once all work for it has ended. Work that
    /// continues keeps its bytes.
    pub fn settle(&self, bytes: usize) {
        let (held, request) = (self.bytes(), &self.0.request);
        if held < bytes {
            self.owe(bytes - held);
        } else if Arc::strong_count(&self.0) == 1 {
            drop(self.split(held - bytes));
        }
        {
            let mut books = request.shared.books();
            request.is_answered.store(true, Ordering::Relaxed);
            books.answer(request.owner, request.held());
        }
        request.end_turn();
    }

    /// Takes bytes out of it, which release themselves.
    pub fn split(&self, bytes: usize) -> Portion {
        let mut taken = 0;
        // Never more than it holds: a part that was counted too low has nothing to give.
        let _ = self.0.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
            taken = bytes.min(held);
            Some(held - taken)
        });
        self.0.request.held.fetch_sub(taken, Ordering::Relaxed);
        Portion { request: Arc::clone(&self.0.request), bytes: taken }
    }

    /// Runs the work of a request, whose bytes are reserved here.
    pub async fn during<F: Future>(&self, work: F) -> F::Output {
        CURRENT.scope(self.clone(), work).await
    }
}

/// Bytes of a reservation that are released when this is dropped.
pub struct Portion {
    request: Arc<Request>,
    bytes: usize,
}

impl Drop for Portion {
    fn drop(&mut self) {
        let Self { request, bytes } = self;
        if *bytes > 0 {
            let mut books = request.shared.books();
            books.give_back(request.owner, *bytes, request.is_answered());
            request.shared.let_in(books);
        }
    }
}

/// A position in the queue.
struct InLine<'a> {
    request: &'a Request,
    id: u64,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        self.request.end_to_wait();
        let shared = &self.request.shared;
        let mut books = shared.books();
        let left = books.leave(self.id);
        if left.is_some() {
            // Requests behind it need not wait for it any more.
            shared.let_in(books);
        } else {
            drop(books);
        }
        drop(left);
    }
}

tokio::task_local! {
    static CURRENT: Reservation;
}

/// The reservation of the request that this task works for.
pub fn current() -> Option<Reservation> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Reserves bytes for the request that this task works for.
///
/// # Errors
/// [`Full`].
pub async fn take(bytes: usize) -> Result<(), Full> {
    match current() {
        Some(reservation) => reservation.take(bytes).await,
        None => Ok(()),
    }
}

/// Reserves bytes for the request that this task works for, if they are free now. See [`Reservation::try_take`].
///
/// # Errors
/// [`Full`].
pub fn try_take(bytes: usize) -> Result<(), Full> {
    current().map_or(Ok(()), |reservation| reservation.try_take(bytes))
}

/// Reserves bytes for the request that this task works for, to be taken bit by bit. See
/// [`Reservation::take_ahead`].
///
/// # Errors
/// [`Full`].
pub async fn take_ahead(bytes: usize) -> Result<(), Full> {
    match current() {
        Some(reservation) => reservation.take_ahead(bytes).await,
        None => Ok(()),
    }
}

/// Gives up the turn of the request that this task works for. See [`Reservation::give_turn_away`].
pub fn give_turn_away() {
    if let Some(reservation) = current() {
        reservation.give_turn_away();
    }
}

/// Runs a part of a request's work whose bytes are released when it ends.
pub async fn apart<F: Future>(work: F) -> F::Output {
    match current() {
        Some(Reservation(whole)) => {
            let part = Reservation(Inner::new(Arc::clone(&whole.request)));
            CURRENT.scope(part, work).await
        }
        None => work.await,
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests;

//! One account of the bytes that requests hold in memory: what clients sent, what was fetched from the store for them, what
//! is made of both, and answers that their clients have not taken yet.
//!
//! Bytes are reserved before they are allocated. A reservation belongs to a request: it is found through the task that works
//! for it, goes along with work that leaves the task, and then with the answer. What is not reserved for anybody, as by an
//! operator's command, is free.
//!
//! # No request waits for ever
//!
//! A request that holds nothing waits in the line and is in nobody's way. One that holds something and needs more than its owner's
//! share leaves room for has to have the *turn*, which one request has at a time, until its answer is ready. The turn opens the room that shares
//! leave free. Requests that wait in the line never hold so much that the one with the turn cannot end: where they would, the
//! newest of them are refused. So the one with the turn waits for requests that wait for nobody here, and each of those ends, or
//! joins the line and is counted there.

mod line;

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use self::line::{Books, Waiting};
use crate::ports::{Clock, Timestamp};

/// A request waits at most this long in all until others have given back what it needs.
pub const WAIT_MAX: Duration = Duration::from_secs(20);

/// Others hold the memory that a request needs, and kept it while the request waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many large requests are under way; try again")]
pub struct Full;

/// The account.
///
/// An owner holds at most as much as is still free: alone that is half of the account, two have a third each. So what one
/// owner asks for never keeps another's small requests out. One request at a time, the one with the turn, may have more: up to
/// seven eighths of the account, and it counts as no more than that.
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

    /// A reservation for a request of this owner, of nothing yet.
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

    /// Bytes that are reserved now.
    pub fn used(&self) -> usize {
        self.0.books().used()
    }

    /// The most bytes that were reserved at any moment since this was asked before.
    pub fn take_most(&self) -> usize {
        self.0.books().take_most()
    }
}

impl Shared {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grants what those in the line wait for whose time it is, and refuses those that are in the way of the turn.
    fn let_in(&self, mut books: MutexGuard<'_, Books>) {
        let (granted, refused) = books.let_in();
        // What they hold on to may be the last of a request, which then asks for the books.
        drop(books);
        for Waiting { granted, .. } in granted {
            // A request that has gone meanwhile gives back what it got with its reservation.
            let _ = granted.send(());
        }
        drop(refused);
    }
}

/// A request, with all of its parts.
struct Request {
    shared: Arc<Shared>,
    owner: u64,
    id: u64,
    /// What its parts hold.
    held: AtomicUsize,
    /// Whether its answer is ready: then what it holds is that.
    is_answered: AtomicBool,
    waited: Mutex<Waited>,
}

/// How long a request has waited, wherever it waited for more than one thing at a time once.
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

    /// Begins to wait. How long it may.
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

/// What one part of a request holds, or all of it.
struct Inner {
    request: Arc<Request>,
    held: AtomicUsize,
    /// Of these, what was reserved ahead and not taken yet.
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

/// What one request holds, until the last clone is dropped.
#[derive(Clone)]
pub struct Reservation(Arc<Inner>);

impl Reservation {
    /// Bytes that are held.
    pub fn bytes(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    /// Who the bytes count for.
    pub(crate) fn owner(&self) -> u64 {
        self.0.request.owner
    }

    /// Whether the request has the turn, so that others wait for its end.
    pub fn has_turn(&self) -> bool {
        self.0.request.shared.books().has_turn(self.0.request.id)
    }

    /// Gives the turn away: before the request waits for another one, which may need it.
    pub fn give_turn_away(&self) {
        self.0.request.end_turn();
    }

    /// Reserves these bytes more, at once or when others gave some back.
    ///
    /// # Errors
    /// [`Full`] where that took too long, or where the request would be in the way of one that waits longer.
    pub async fn take(&self, bytes: usize) -> Result<(), Full> {
        let mut ahead = 0;
        let _ = self.0.ahead.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |there| {
            ahead = there.min(bytes);
            Some(there - ahead)
        });
        self.reserve(bytes - ahead).await
    }

    /// Reserves these bytes more, which are then taken bit by bit: for work whose whole length is known before it begins, so that it
    /// waits while it holds nothing.
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
        // Also where the request goes while it waits.
        let _in_line = InLine { request, id };
        let left = request.begin_to_wait();
        tokio::select! {
            biased;
            granted = granted => granted.map_err(|_| Full),
            () = shared.clock.sleep(left) => Err(Full),
        }
    }

    /// Counts bytes that are there already. Others wait for them, and this does not.
    pub fn owe(&self, bytes: usize) {
        self.0.add(&mut self.0.request.shared.books(), bytes);
    }

    /// Holds this many bytes from now on: those of an answer, once all work for it has ended. Work that goes on keeps what it
    /// has.
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

    /// Takes bytes out of it, which go back by themselves.
    pub fn split(&self, bytes: usize) -> Portion {
        let mut taken = 0;
        // Never more than it holds: what counts as less than it is has nothing to give.
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

/// Bytes of a reservation that go back when this is dropped.
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

/// A place in the line of those that wait, until it is left.
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
            // Those behind it need not wait for it any more.
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

/// Reserves bytes for the request that this task works for, which are then taken bit by bit. See [`Reservation::take_ahead`].
///
/// # Errors
/// [`Full`].
pub async fn take_ahead(bytes: usize) -> Result<(), Full> {
    match current() {
        Some(reservation) => reservation.take_ahead(bytes).await,
        None => Ok(()),
    }
}

/// Gives the turn away that the request may have which this task works for. See [`Reservation::give_turn_away`].
pub fn give_turn_away() {
    if let Some(reservation) = current() {
        reservation.give_turn_away();
    }
}

/// Runs a part of a request's work whose bytes go back when it ends.
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

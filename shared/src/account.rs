//! One account of the bytes that requests hold in memory: what clients sent, what was fetched from the store for them, what
//! is made of both, and answers that their clients have not taken yet.
//!
//! Bytes are reserved before they are allocated. A reservation belongs to a request: it is found through the task that works
//! for it, goes along with work that leaves the task, and then with the answer. What is not reserved for anybody, as by an
//! operator's command, is free.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::ports::Clock;

/// A request waits at most this long until others have given back what it needs.
pub const WAIT_MAX: Duration = Duration::from_secs(20);

/// While an oversized request waits for others to end, no request begins that takes more than this.
const SMALL: usize = 16 << 20;

/// Others hold the memory that a request needs, and kept it while the request waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many large requests are under way; try again")]
pub struct Full;

/// The account.
///
/// An owner holds at most as much as is still free: alone that is half of the account, two have a third each. So what one
/// owner asks for never keeps another's small requests out. A request that needs more than half by itself is oversized: one
/// at a time runs, and counts as seven eighths at most.
#[derive(Clone)]
pub struct ByteAccount(Arc<Shared>);

struct Shared {
    bytes_max: usize,
    clock: Arc<dyn Clock>,
    owners: RandomState,
    books: Mutex<Books>,
}

#[derive(Default)]
struct Books {
    used: usize,
    most: usize,
    by_owner: HashMap<u64, usize>,
    /// The oversized request that runs.
    oversized: Option<u64>,
    oversized_waiting: usize,
    waiting: VecDeque<Waiting>,
    next_id: u64,
}

struct Waiting {
    id: u64,
    bytes: usize,
    is_oversized: bool,
    reservation: Arc<Inner>,
    granted: oneshot::Sender<()>,
}

impl ByteAccount {
    /// An account of this many bytes.
    pub fn new(bytes_max: usize, clock: Arc<dyn Clock>) -> Self {
        let shared = Shared { bytes_max, clock, owners: RandomState::new(), books: Mutex::default() };
        Self(Arc::new(shared))
    }

    /// A reservation for a request of this owner, of nothing yet.
    pub fn open(&self, owner: &impl Hash) -> Reservation {
        Reservation(Inner::new(&self.0, self.0.owners.hash_one(owner)))
    }

    /// Bytes that are reserved now.
    pub fn used(&self) -> usize {
        self.0.books().used
    }

    /// The most bytes that were reserved at any moment since this was asked before.
    pub fn take_most(&self) -> usize {
        let mut books = self.0.books();
        let used = books.used;
        std::mem::replace(&mut books.most, used)
    }
}

impl Shared {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most that one request counts as.
    fn one_max(&self) -> usize {
        self.bytes_max - self.bytes_max / 8
    }

    /// What these bytes add to what a request counts as.
    fn counted(&self, inner: &Inner, bytes: usize) -> usize {
        let held = inner.held.load(Ordering::Relaxed);
        held.saturating_add(bytes).min(self.one_max()).saturating_sub(held)
    }

    fn is_oversized(&self, inner: &Inner, bytes: usize) -> bool {
        inner.held.load(Ordering::Relaxed) + self.counted(inner, bytes) > self.bytes_max / 2
    }

    /// Adds these bytes if there is room for them.
    fn grant(&self, books: &mut Books, inner: &Inner, bytes: usize) -> bool {
        let free = self.bytes_max.saturating_sub(books.used);
        let is_oversized = self.is_oversized(inner, bytes);
        let bytes = self.counted(inner, bytes);
        if bytes == 0 {
            return true;
        }
        if is_oversized {
            if bytes > free || books.oversized.is_some_and(|id| id != inner.id) {
                return false;
            }
            books.oversized = Some(inner.id);
        } else {
            let owned = books.by_owner.get(&inner.owner).copied().unwrap_or(0);
            let is_new = inner.held.load(Ordering::Relaxed) == 0;
            let is_held_back =
                is_new && bytes > SMALL && books.oversized_waiting > 0 && books.oversized.is_none();
            if is_held_back || owned + bytes > free.saturating_sub(bytes) {
                return false;
            }
        }
        self.add(books, inner, bytes);
        true
    }

    fn add(&self, books: &mut Books, inner: &Inner, bytes: usize) {
        inner.held.fetch_add(bytes, Ordering::Relaxed);
        books.used += bytes;
        books.most = books.most.max(books.used);
        *books.by_owner.entry(inner.owner).or_insert(0) += bytes;
    }

    fn give_back(&self, owner: u64, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut books = self.books();
        books.used -= bytes;
        if let Some(owned) = books.by_owner.get_mut(&owner) {
            *owned -= bytes;
            if *owned == 0 {
                books.by_owner.remove(&owner);
            }
        }
        self.let_in(books);
    }

    /// Grants what those wait for whose turn it is.
    fn let_in(&self, mut books: MutexGuard<'_, Books>) {
        let (mut granted, mut index) = (Vec::new(), 0);
        while let Some(waiting) = books.waiting.get(index) {
            let (inner, bytes) = (Arc::clone(&waiting.reservation), waiting.bytes);
            if self.grant(&mut books, &inner, bytes) {
                granted.extend(books.remove_waiting(index));
            } else {
                index += 1;
            }
        }
        drop(books);
        for Waiting { granted, .. } in granted {
            // A request that has gone meanwhile gives back what it got with its reservation.
            let _ = granted.send(());
        }
    }
}

impl Books {
    fn remove_waiting(&mut self, index: usize) -> Option<Waiting> {
        let waiting = self.waiting.remove(index)?;
        self.oversized_waiting -= usize::from(waiting.is_oversized);
        Some(waiting)
    }
}

struct Inner {
    shared: Arc<Shared>,
    owner: u64,
    id: u64,
    held: AtomicUsize,
}

impl Inner {
    fn new(shared: &Arc<Shared>, owner: u64) -> Arc<Self> {
        let mut books = shared.books();
        books.next_id += 1;
        Arc::new(Self { shared: Arc::clone(shared), owner, id: books.next_id, held: AtomicUsize::new(0) })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut books = self.shared.books();
        let was_oversized = books.oversized == Some(self.id);
        if was_oversized {
            books.oversized = None;
        }
        let held = *self.held.get_mut();
        if held > 0 {
            drop(books);
            self.shared.give_back(self.owner, held);
        } else if was_oversized {
            self.shared.let_in(books);
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

    /// Reserves these bytes more, at once or when others gave some back.
    ///
    /// # Errors
    /// [`Full`] where that took too long.
    pub async fn take(&self, bytes: usize) -> Result<(), Full> {
        let shared = &self.0.shared;
        let (id, granted) = {
            let mut books = shared.books();
            if shared.grant(&mut books, &self.0, bytes) {
                return Ok(());
            }
            books.next_id += 1;
            let (id, (sender, granted)) = (books.next_id, oneshot::channel());
            let is_oversized = shared.is_oversized(&self.0, bytes);
            books.oversized_waiting += usize::from(is_oversized);
            let reservation = Arc::clone(&self.0);
            books.waiting.push_back(Waiting { id, bytes, is_oversized, reservation, granted: sender });
            (id, granted)
        };
        // Also where the request goes while it waits.
        let _in_line = InLine { shared, id };
        tokio::select! {
            biased;
            granted = granted => granted.map_err(|_| Full),
            () = shared.clock.sleep(WAIT_MAX) => Err(Full),
        }
    }

    /// Counts bytes that are there already. Others wait for them, and this does not.
    pub fn owe(&self, bytes: usize) {
        let shared = &self.0.shared;
        shared.add(&mut shared.books(), &self.0, bytes);
    }

    /// Holds this many bytes from now on: those of an answer, once all work for it has ended. Work that goes on keeps what it
    /// has.
    pub fn settle(&self, bytes: usize) {
        let held = self.bytes();
        if held < bytes {
            self.owe(bytes - held);
        } else if Arc::strong_count(&self.0) == 1 {
            drop(self.split(held - bytes));
        }
    }

    /// Takes bytes out of it, which go back by themselves.
    pub fn split(&self, bytes: usize) -> Portion {
        let mut taken = 0;
        // Never more than it holds: what counts as less than it is has nothing to give.
        let _ = self.0.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
            taken = bytes.min(held);
            Some(held - taken)
        });
        Portion { shared: Arc::clone(&self.0.shared), owner: self.0.owner, bytes: taken }
    }

    /// Runs the work of a request, whose bytes are reserved here.
    pub async fn during<F: Future>(&self, work: F) -> F::Output {
        CURRENT.scope(self.clone(), work).await
    }
}

/// Bytes of a reservation that go back when this is dropped.
pub struct Portion {
    shared: Arc<Shared>,
    owner: u64,
    bytes: usize,
}

impl Drop for Portion {
    fn drop(&mut self) {
        self.shared.give_back(self.owner, self.bytes);
    }
}

/// A place in the line of those that wait, until it is left.
struct InLine<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let mut books = self.shared.books();
        let Some(index) = books.waiting.iter().position(|it| it.id == self.id) else { return };
        let left = books.remove_waiting(index);
        // Those behind an oversized request need not wait for it any more.
        self.shared.let_in(books);
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

/// Runs a part of a request's work whose bytes go back when it ends.
pub async fn apart<F: Future>(work: F) -> F::Output {
    match current() {
        Some(Reservation(whole)) => {
            let part = Reservation(Inner::new(&whole.shared, whole.owner));
            CURRENT.scope(part, work).await
        }
        None => work.await,
    }
}

#[cfg(all(test, feature = "testing"))]
mod tests;

//! The one connection that writes: the thread that has it, the groups of commits, and the checkpoints.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::file::BUSY_TIMEOUT;
use super::reader::find;
use crate::ports::{
    BoxError, CommitError, Expect, ItemKey, NoRoom, PortError, Refusal, Revision, Timestamp, Write,
    WriteAction,
};

/// The size from which the file of the log is truncated after a checkpoint; a shorter one is overwritten from
/// its beginning.
pub(super) const LOG_KEPT_BYTES: i64 = 16 << 20;

/// Commits that may wait at a time; more callers wait to be let in. With at most 4 MB each, this limits the
/// memory.
const COMMITS_WAITING_MAX: usize = 256;

/// Bytes in one transaction, so that a group of large commits does not keep its first member waiting.
const GROUP_BYTES_MAX: usize = 16_000_000;

/// Bytes written since the last checkpoint before the next one. A checkpoint also runs once no commit has come
/// for [`IDLE`]. SQLite's own checkpoints would delay some caller's commit.
const CHECKPOINT_AFTER_BYTES: usize = 12_000_000;

/// See [`CHECKPOINT_AFTER_BYTES`].
const IDLE: Duration = Duration::from_millis(500);

pub(super) type Answer = Result<(), CommitError>;

/// A commit on its way to the writing thread.
pub(super) struct Job {
    pub(super) writes: Vec<Write>,
    pub(super) answer: oneshot::Sender<Answer>,
    /// Held until the answer is given.
    pub(super) _permit: OwnedSemaphorePermit,
}

/// The handle to the writing thread.
pub(super) struct Writer {
    shared: Arc<Writing>,
    /// `None` only while being dropped: that ends the thread.
    jobs: Option<mpsc::Sender<Message>>,
    permits: Arc<Semaphore>,
    thread: Option<JoinHandle<()>>,
}

/// The state that the thread and the callers that write by themselves share.
struct Writing {
    connection: Mutex<Connection>,
    /// Bytes written since the last checkpoint.
    bytes_since_checkpoint: AtomicUsize,
    /// Jobs that queue up for the thread. No commit overtakes them.
    queued: AtomicUsize,
}

/// A message to the writer's thread.
enum Message {
    Commit(Job),
    /// A caller wrote by itself after a quiet time, so a checkpoint will be due.
    Written,
}

impl Writer {
    pub(super) fn start(connection: Connection) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let shared = Arc::new(Writing {
            connection: Mutex::new(connection),
            bytes_since_checkpoint: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
        });
        let writing = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("ledger-writer".to_owned())
            .spawn(move || write_groups(&writing, &queue))?;
        Ok(Self {
            shared,
            jobs: Some(jobs),
            permits: Arc::new(Semaphore::new(COMMITS_WAITING_MAX)),
            thread: Some(thread),
        })
    }

    pub(super) async fn commit(&self, writes: Vec<Write>) -> Answer {
        const WHAT: &str = "committing";
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|closed| PortError::not_done(WHAT, closed))?;
        let (answer, answered) = oneshot::channel();
        let job = Job { writes, answer, _permit: permit };
        let Some(jobs) = &self.jobs else {
            return Err(PortError::not_done(WHAT, "the ledger is closed").into());
        };
        self.write_or_queue(job, jobs);
        answered.await.unwrap_or_else(|lost| Err(PortError::unknown(WHAT, lost).into()))
    }
}

impl Writer {
    /// If the writer is free, the caller writes by itself, without a detour over another thread: two switches
    /// between threads are a good part of a small commit's time. Otherwise the jobs queue up and share a sync.
    fn write_or_queue(&self, job: Job, jobs: &mpsc::Sender<Message>) {
        let free = match self.shared.queued.load(Ordering::Relaxed) {
            0 => self.shared.connection.try_lock().ok(),
            _ => None,
        };
        let sent = match free {
            Some(connection) => {
                let was_quiet = self.shared.write(&connection, vec![job]) == 0;
                drop(connection);
                if was_quiet { jobs.send(Message::Written) } else { Ok(()) }
            }
            None => {
                self.shared.queued.fetch_add(1, Ordering::Relaxed);
                jobs.send(Message::Commit(job))
            }
        };
        if sent.is_err() {
            // A job that was lost with it reports that to its caller: its answer is dropped.
            tracing::error!("the thread that writes the ledger has ended");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to wait for.
            let _ = thread.join();
        }
    }
}

impl Writing {
    /// Writes a group, and returns how many bytes a checkpoint had to move before.
    fn write(&self, connection: &Connection, group: Vec<Job>) -> usize {
        let bytes = group.iter().map(bytes_of).sum();
        write_group(connection, group);
        self.bytes_since_checkpoint.fetch_add(bytes, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn checkpoint(&self) {
        checkpoint(&self.lock());
        self.bytes_since_checkpoint.store(0, Ordering::Relaxed);
    }
}

/// Answers all queued jobs, group by group, and runs checkpoints, until the last handle is gone.
fn write_groups(writing: &Writing, queue: &mpsc::Receiver<Message>) {
    let mut bytes_before = 0;
    loop {
        let bytes = writing.bytes_since_checkpoint.load(Ordering::Relaxed);
        // An idle server does not wake up twice a second: the thread sleeps until a message comes.
        let first = match bytes {
            0 => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
            _ => queue.recv_timeout(IDLE),
        };
        match first {
            Ok(Message::Commit(first)) => write_queued(writing, queue, first),
            Ok(Message::Written) => {}
            Err(RecvTimeoutError::Timeout) if bytes == bytes_before => writing.checkpoint(),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        bytes_before = writing.bytes_since_checkpoint.load(Ordering::Relaxed);
        if bytes_before >= CHECKPOINT_AFTER_BYTES {
            writing.checkpoint();
            bytes_before = 0;
        }
    }
}

/// Writes the jobs that have queued up by the time the connection is free.
fn write_queued(writing: &Writing, queue: &mpsc::Receiver<Message>, first: Job) {
    let connection = writing.lock();
    let mut group_bytes = bytes_of(&first);
    let mut group = vec![first];
    while group_bytes < GROUP_BYTES_MAX
        && let Ok(next) = queue.try_recv()
    {
        if let Message::Commit(next) = next {
            group_bytes += bytes_of(&next);
            group.push(next);
        }
    }
    writing.queued.fetch_sub(group.len(), Ordering::Relaxed);
    writing.write(&connection, group);
}

/// The approximate bytes that a job adds to the log: the pages of its values, and one for each write.
fn bytes_of(job: &Job) -> usize {
    let bytes_of_write = |write: &Write| match &write.action {
        WriteAction::Put { value, .. } => 4096 + value.len(),
        WriteAction::Delete => 4096,
        WriteAction::Check => 0,
    };
    job.writes.iter().map(bytes_of_write).sum()
}

/// Runs a checkpoint, as far as no reader needs the older pages. The log is complete either way, so an error (a
/// full disk) is only logged; the next checkpoint tries again.
fn checkpoint(connection: &Connection) {
    if let Err(error) = try_checkpoint(connection) {
        tracing::warn!(%error, "a checkpoint of the ledger failed");
    }
}

pub(super) fn try_checkpoint(connection: &Connection) -> rusqlite::Result<()> {
    let pages = |row: &Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
    let (in_log, carried) = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], pages)?;
    let page_bytes: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    if in_log == carried && in_log * page_bytes > LOG_KEPT_BYTES {
        // Skip this while a reader is active, so that no writer waits for it; the next checkpoint tries again.
        connection.busy_timeout(Duration::ZERO)?;
        let cut = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        connection.busy_timeout(BUSY_TIMEOUT)?;
        cut?;
    }
    Ok(())
}

/// Applies the commits of a group in one transaction and then answers all of them.
pub(super) fn write_group(connection: &Connection, group: Vec<Job>) {
    let outcome = transact(connection, &group);
    for (position, job) in group.into_iter().enumerate() {
        // A caller that has gone away misses only the answer.
        let _ = job.answer.send(match &outcome {
            Ok(refusals) => match refusals.get(position).cloned().flatten() {
                None => Ok(()),
                Some(refusal) => Err(CommitError::Refused(refusal)),
            },
            Err(failure) => Err(failure.to_port_error().into()),
        });
    }
}

/// Why a whole group failed.
struct GroupFailure {
    error: Arc<rusqlite::Error>,
    /// Whether the transaction certainly left no trace.
    undone: bool,
}

impl GroupFailure {
    /// The error for one of the members; they share the source.
    fn to_port_error(&self) -> PortError {
        let source: BoxError = Box::new(Arc::clone(&self.error));
        let is_full = self.error.sqlite_error_code() == Some(ErrorCode::DiskFull);
        let source = if is_full { NoRoom::because(source) } else { source };
        match self.undone {
            true => PortError::NotDone { what: "committing", source },
            false => PortError::Unknown { what: "committing", source },
        }
    }
}

/// The refusal of each member, after the transaction is on disk.
fn transact(connection: &Connection, group: &[Job]) -> Result<Vec<Option<Refusal>>, GroupFailure> {
    let undone = |error| GroupFailure { error: Arc::new(error), undone: true };
    let transaction = Open::begin(connection).map_err(undone)?;
    // An error here drops the transaction, which rolls it back: nothing of the group has reached the log's end
    // mark, so nothing of it can come back.
    let refusals = group
        .iter()
        .map(|job| apply(connection, &job.writes))
        .collect::<rusqlite::Result<Vec<_>>>()
        .map_err(undone)?;
    transaction.commit().map_err(|error| {
        // A busy commit has not begun. After any other error the end mark may be in the log, synced or not.
        let undone = matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
        GroupFailure { error: Arc::new(error), undone }
    })?;
    Ok(refusals)
}

/// A transaction, rolled back when it is dropped without a commit. Unlike that of `rusqlite` it caches its
/// statements: parsing them took a twentieth of a small commit's time.
struct Open<'a>(&'a Connection);

impl<'a> Open<'a> {
    /// Takes the write lock at once. A transaction that begins as a reader could find the lock taken when it is
    /// too late to wait.
    fn begin(connection: &'a Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self(connection))
    }

    fn commit(self) -> rusqlite::Result<()> {
        self.0.prepare_cached("COMMIT")?.execute([]).map(drop)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit()
            && let Err(error) = self.0.execute_batch("ROLLBACK")
        {
            tracing::error!(%error, "a transaction of the ledger could not be rolled back");
        }
    }
}

/// Applies one commit, or nothing of it and returns the refusal.
fn apply(transaction: &Connection, writes: &[Write]) -> rusqlite::Result<Option<Refusal>> {
    // Most commits are one new item, which needs no read first.
    if let [Write { key, expect: Expect::Absent, action: WriteAction::Put { revision, expires, value } }] =
        writes
    {
        return Ok(match insert(transaction, NEW, key, *revision, *expires, value)? {
            0 => Some(Refusal { index: 0, current: find(transaction, key)? }),
            _ => None,
        });
    }
    for (index, write) in writes.iter().enumerate() {
        if !holds(transaction, write)? {
            return Ok(Some(Refusal { index, current: find(transaction, &write.key)? }));
        }
    }
    for Write { key, action, .. } in writes {
        match action {
            WriteAction::Put { revision, expires, value } => {
                insert(transaction, OVER, key, *revision, *expires, value)?;
            }
            WriteAction::Delete => {
                transaction
                    .prepare_cached("DELETE FROM items WHERE partition = ?1 AND sort = ?2")?
                    .execute(params![key.partition.as_bytes(), key.sort.as_bytes()])?;
            }
            WriteAction::Check => {}
        }
    }
    Ok(None)
}

/// Inserts an item that does not exist.
const NEW: &str = "INSERT INTO items VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";

/// Inserts an item or replaces the existing one.
const OVER: &str = "INSERT INTO items VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (partition, sort)
    DO UPDATE SET revision = excluded.revision, expires = excluded.expires, value = excluded.value";

/// Writes one item with this statement, and returns the number of rows written.
fn insert(
    transaction: &Connection,
    way: &'static str,
    key: &ItemKey,
    revision: Revision,
    expires: Option<Timestamp>,
    value: &[u8],
) -> rusqlite::Result<usize> {
    transaction.prepare_cached(way)?.execute(params![
        key.partition.as_bytes(),
        key.sort.as_bytes(),
        revision.0.cast_signed(),
        expires.map(|instant| instant.0),
        value
    ])
}

/// Whether the write's expectation holds.
fn holds(transaction: &Connection, write: &Write) -> rusqlite::Result<bool> {
    if write.expect == Expect::Any {
        return Ok(true);
    }
    let current = transaction
        .prepare_cached("SELECT revision FROM items WHERE partition = ?1 AND sort = ?2")?
        .query_row(params![write.key.partition.as_bytes(), write.key.sort.as_bytes()], |row| {
            row.get::<_, i64>(0)
        })
        .optional()?;
    Ok(match write.expect {
        Expect::Any => true,
        Expect::Absent => current.is_none(),
        Expect::Revision(revision) => current == Some(revision.0.cast_signed()),
    })
}

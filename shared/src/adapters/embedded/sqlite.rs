//! The ledger in one SQLite file.
//!
//! One connection writes. If it is free, the caller of a commit writes by itself. While the disk syncs one
//! group of commits, the next ones queue up for a thread; then it writes all of them in one transaction, so
//! that they share a sync. Nothing is answered before that transaction is on disk, not even a refusal, because
//! a refusal may show an item that an earlier commit of the same group wrote.
//!
//! Reads run concurrently on connections of their own. SQLite shows them a transaction only after its log was
//! synced.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, TransactionBehavior, params};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::disk::create_private_file;
use crate::adapters::key_range::sort_range;
use crate::ports::{
    BoxError, CommitError, Expect, Item, ItemKey, Ledger, NoRoom, Order, Page, PortError, Query, Refusal,
    Revision, Timestamp, Write, WriteAction, verify_writes,
};

/// Marks the file as ours: "STWR" in ASCII.
const APPLICATION_ID: i32 = 0x5354_5752;

/// The schema that this program reads and writes. An older file is upgraded, a newer one is refused.
const SCHEMA_VERSION: i32 = 2;

/// Keys are blobs, because those compare as bytes and know no encoding. They are in an index of their own: in
/// one tree with the values, every comparison on the way to a key would read the whole value next to it. The
/// value comes last, so that the columns before it are read without it.
const SCHEMA: &str = "
    CREATE TABLE items (
        partition BLOB NOT NULL,
        sort BLOB NOT NULL,
        revision INTEGER NOT NULL,
        expires INTEGER,
        value BLOB NOT NULL,
        UNIQUE (partition, sort)
    ) STRICT;
    PRAGMA application_id = 0x53545752;
    PRAGMA user_version = 2;
";

/// Statements that upgrade a file of version 1, which had one tree: before [`SCHEMA`], and after it.
const FROM_ONE_TREE: [&str; 2] = [
    "ALTER TABLE items RENAME TO one_tree",
    "INSERT INTO items SELECT partition, sort, revision, expires, value FROM one_tree ORDER BY partition, sort;
     DROP TABLE one_tree;",
];

/// The time that a connection waits for another process's transaction. An operator's command holds the write
/// lock for milliseconds; a process that holds it for longer is stuck, and then an error is better than
/// waiting.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Values up to this size go into the ledger. A blob costs two syncs (its file and its folder) in addition to
/// that of the item that points to it; an inline value is written twice (log and database) but synced once. On
/// a plain disk a commit of this size takes as long as storing the blob alone, so below it inline always wins.
const INLINE_BYTES_MAX: usize = 256 * 1024;

/// Bytes of values in one page, so that the memory for a query is limited whatever its limit.
const PAGE_BYTES_MAX: usize = 1_000_000;

/// The size from which the file of the log is truncated after a checkpoint; a shorter one is overwritten from
/// its beginning.
const LOG_KEPT_BYTES: i64 = 16 << 20;

/// Commits that may wait at a time; more callers wait to be let in. With at most 4 MB each, this limits the
/// memory.
const COMMITS_WAITING_MAX: usize = 256;

/// Bytes in one transaction, so that a group of large commits does not keep its first member waiting.
const GROUP_BYTES_MAX: usize = 16_000_000;

/// Concurrent readers. More than there are cores brings nothing when the pages are in memory, and a few more
/// hide a slow disk when they are not.
const READERS_MAX: usize = 8;

/// Bytes written since the last checkpoint before the next one. A checkpoint also runs once no commit has come
/// for [`IDLE`]. SQLite's own checkpoints would delay some caller's commit.
const CHECKPOINT_AFTER_BYTES: usize = 12_000_000;

/// See [`CHECKPOINT_AFTER_BYTES`].
const IDLE: Duration = Duration::from_millis(500);

/// Why the file of a ledger could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenLedgerError {
    /// A newer program has written it.
    #[error(
        "{} has format {found}, and this program reads only format {SCHEMA_VERSION}. Nothing was changed. Use the \
         newer program that wrote it, or restore a backup from before the upgrade",
        path.display()
    )]
    Newer { path: PathBuf, found: i32 },
    /// It belongs to another program.
    #[error(
        "{} is a SQLite file of another program. Nothing was changed. Choose another folder",
        path.display()
    )]
    Foreign { path: PathBuf },
    /// Its file system cannot do what the ledger needs.
    #[error(
        "{} is on a file system without support for a write-ahead log (SQLite chose mode {mode:?}). Put the folder on a local disk",
        path.display()
    )]
    NoLog {
        path: PathBuf,
        /// The journal mode that SQLite chose.
        mode: String,
    },
    /// It does not contain a ledger.
    #[error("{} contains no ledger yet. Start the server once, which creates it", path.display())]
    Empty { path: PathBuf },
    /// SQLite could not open or read it.
    #[error("{} could not be opened", path.display())]
    Sqlite {
        path: PathBuf,
        /// SQLite's own error.
        #[source]
        source: rusqlite::Error,
    },
    /// The writer's thread could not be started.
    #[error("the thread that writes {} could not be started", path.display())]
    Thread {
        path: PathBuf,
        /// The system's own error.
        #[source]
        source: std::io::Error,
    },
}

/// The ledger in one SQLite file. Clones are handles to the same connections; dropping the last one waits for
/// the running commits and closes the file.
///
/// Several processes may open one file: their commits take turns.
#[derive(Clone)]
pub struct SqliteLedger {
    shared: Arc<Shared>,
}

struct Shared {
    /// Dropped first: the last connection to close deletes the log, and a read-only one cannot.
    readers: Readers,
    writer: Writer,
}

impl SqliteLedger {
    /// Opens the ledger in the file at `path` and creates it if there is none. The folder must exist.
    ///
    /// # Errors
    /// See [`OpenLedgerError`]; a file that is not a ledger of a known format is left as it is.
    pub fn open_or_create(path: &Path) -> Result<Self, OpenLedgerError> {
        Self::open_with(path, OpenFlags::SQLITE_OPEN_CREATE)
    }

    /// Opens the ledger in the file at `path`, but never creates one.
    ///
    /// # Errors
    /// See [`OpenLedgerError`].
    pub fn open_existing(path: &Path) -> Result<Self, OpenLedgerError> {
        Self::open_with(path, OpenFlags::empty())
    }

    fn open_with(path: &Path, create: OpenFlags) -> Result<Self, OpenLedgerError> {
        let failed = |source| OpenLedgerError::Sqlite { path: path.to_owned(), source };
        if !create.is_empty() {
            // Create the file for its owner alone, which SQLite does not; the log gets the same permissions. If
            // this fails, the file exists already, or SQLite will report why it cannot be created.
            let _ = create_private_file(path);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | create;
        let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;

        match known_schema(&connection, path)? {
            Some(SCHEMA_VERSION) => {}
            None if create.is_empty() => return Err(OpenLedgerError::Empty { path: path.to_owned() }),
            Some(_) | None => make_schema(&mut connection, path)?,
        }
        // Sync every commit before it is visible. On a Mac only this kind of sync reaches the disk.
        for (pragma, value) in [("synchronous", "FULL"), ("fullfsync", "ON"), ("checkpoint_fullfsync", "ON")]
        {
            connection.pragma_update(None, pragma, value).map_err(failed)?;
        }
        connection.pragma_update(None, "wal_autocheckpoint", 0).map_err(failed)?;

        Ok(Self {
            shared: Arc::new(Shared {
                writer: Writer::start(connection)
                    .map_err(|source| OpenLedgerError::Thread { path: path.to_owned(), source })?,
                readers: Readers::new(path.to_owned()),
            }),
        })
    }

    /// Whether the ledger has no items.
    ///
    /// # Errors
    /// As for every read.
    pub async fn is_empty(&self) -> Result<bool, PortError> {
        self.read("looking for any item", |connection| {
            Ok(!connection.prepare_cached("SELECT 1 FROM items LIMIT 1")?.exists([])?)
        })
        .await
    }

    /// One page of the items whose partition starts with `prefix`, by partition and sort key, strictly after
    /// `after`.
    ///
    /// # Errors
    /// As for every read.
    pub async fn scan(&self, prefix: &str, after: Option<&ItemKey>, limit: usize) -> Result<Page, PortError> {
        let (prefix, after) = (prefix.to_owned(), after.cloned());
        self.read("reading all items", move |connection| scan(connection, &prefix, after.as_ref(), limit))
            .await
    }

    /// Writes a copy of the ledger as it is at one moment to a new file, for its owner alone, and syncs it.
    /// Commits continue meanwhile, and are not in the copy.
    ///
    /// # Errors
    /// [`PortError::NotDone`]; an unfinished file may be left.
    pub async fn copy_to(&self, path: &Path) -> Result<(), PortError> {
        const WHAT: &str = "copying the ledger";
        let target = path.to_str().ok_or_else(|| PortError::not_done(WHAT, "its path is not UTF-8"))?;
        let target = target.to_owned();
        // SQLite accepts an empty file, and so keeps its permissions.
        let file = create_private_file(path).map_err(|error| PortError::not_done(WHAT, error))?;
        self.read(WHAT, move |connection| connection.execute("VACUUM INTO ?1", [target]).map(drop)).await?;
        tokio::task::spawn_blocking(move || file.sync_all())
            .await
            .map_err(|join| PortError::not_done(WHAT, join))?
            .map_err(|error| PortError::not_done(WHAT, error))
    }

    /// Gives a copy that no process has opened yet the write-ahead log of a ledger.
    ///
    /// # Errors
    /// As for opening one.
    pub fn ready_copy(path: &Path) -> Result<(), OpenLedgerError> {
        let failed = |source| OpenLedgerError::Sqlite { path: path.to_owned(), source };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        if known_schema(&connection, path)?.is_none() {
            return Err(OpenLedgerError::Empty { path: path.to_owned() });
        }
        use_log(&connection, path)
    }

    /// Deletes expired items among the `limit` items after `after`, from the beginning with `None`. Returns
    /// where to continue, or `None` at the end. An item that changes meanwhile is left to the next round.
    ///
    /// # Errors
    /// As for every read and commit; deleted items stay deleted, and calling again is safe.
    pub async fn drop_expired(
        &self,
        now: Timestamp,
        after: Option<ItemKey>,
        limit: usize,
    ) -> Result<Option<ItemKey>, PortError> {
        let (expired, last) = self
            .read("looking for expired items", move |connection| {
                find_expired(connection, now, after.as_ref(), limit)
            })
            .await?;
        for chunk in expired.chunks(100) {
            match self.commit(chunk.to_vec()).await {
                Ok(()) | Err(CommitError::Refused(_)) => {}
                Err(CommitError::Port(error)) => return Err(error),
            }
        }
        Ok(last)
    }

    async fn permit_to_read(&self, what: &'static str) -> Result<OwnedSemaphorePermit, PortError> {
        let permit = Arc::clone(&self.shared.readers.permits).acquire_owned().await;
        permit.map_err(|closed| PortError::not_done(what, closed))
    }

    /// Runs `read` on a connection of the pool, off the threads of the caller's runtime: a page may have to
    /// come from a slow disk.
    async fn read<T: Send + 'static>(
        &self,
        what: &'static str,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, PortError> {
        let permit = self.permit_to_read(what).await?;
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            shared.readers.with(read)
        })
        .await
        .map_err(|join| PortError::not_done(what, join))?
        .map_err(|error| PortError::not_done(what, error))
    }
}

impl fmt::Debug for SqliteLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteLedger").field("path", &self.shared.readers.path).finish_non_exhaustive()
    }
}

/// The version of the schema in the file, one that this program knows; `None` for an empty file. Changes nothing.
fn known_schema(connection: &Connection, path: &Path) -> Result<Option<i32>, OpenLedgerError> {
    let failed = |source| OpenLedgerError::Sqlite { path: path.to_owned(), source };
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let application = number("application_id").map_err(failed)?;
    let found = number("user_version").map_err(failed)?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(failed)?;
    match (application, found) {
        (APPLICATION_ID, 1..=SCHEMA_VERSION) => Ok(Some(found)),
        (APPLICATION_ID, _) => Err(OpenLedgerError::Newer { path: path.to_owned(), found }),
        (0, 0) if tables == 0 => Ok(None),
        _ => Err(OpenLedgerError::Foreign { path: path.to_owned() }),
    }
}

fn use_log(connection: &Connection, path: &Path) -> Result<(), OpenLedgerError> {
    let failed = |source| OpenLedgerError::Sqlite { path: path.to_owned(), source };
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(failed)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(OpenLedgerError::NoLog { path: path.to_owned(), mode });
    }
    Ok(())
}

/// Creates the schema in an empty file or upgrades an older one, in one transaction.
fn make_schema(connection: &mut Connection, path: &Path) -> Result<(), OpenLedgerError> {
    let failed = |source| OpenLedgerError::Sqlite { path: path.to_owned(), source };
    use_log(connection, path)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    match known_schema(&transaction, path)? {
        // Another process was faster.
        Some(SCHEMA_VERSION) => {}
        Some(_) => {
            tracing::info!(path = %path.display(), "upgrading the ledger to this program's format");
            let [before, after] = FROM_ONE_TREE;
            for step in [before, SCHEMA, after] {
                transaction.execute_batch(step).map_err(failed)?;
            }
        }
        None => transaction.execute_batch(SCHEMA).map_err(failed)?,
    }
    transaction.commit().map_err(failed)
}

#[async_trait]
impl Ledger for SqliteLedger {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        const WHAT: &str = "reading an item";
        let _permit = self.permit_to_read(WHAT).await?;
        // Read on this thread: finding one item takes some microseconds, and handing it to another thread takes
        // ten times as long.
        self.shared
            .readers
            .with(|connection| find(connection, key))
            .map_err(|error| PortError::not_done(WHAT, error))
    }

    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        let query = query.clone();
        self.read("querying items", move |connection| find_page(connection, &query)).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        verify_writes(&writes)?;
        self.shared.writer.commit(writes).await
    }

    fn inline_bytes_max(&self) -> usize {
        INLINE_BYTES_MAX
    }
}

fn find(connection: &Connection, key: &ItemKey) -> rusqlite::Result<Option<Item>> {
    connection
        .prepare_cached("SELECT revision, expires, value FROM items WHERE partition = ?1 AND sort = ?2")?
        .query_row(params![key.partition.as_bytes(), key.sort.as_bytes()], |row| item(key.clone(), row))
        .optional()
}

fn find_page(connection: &Connection, query: &Query) -> rusqlite::Result<Page> {
    let mut statement = connection.prepare_cached(match query.order {
        Order::Ascending => {
            "SELECT revision, expires, value, sort FROM items
             WHERE partition = ?1 AND sort >= ?2 AND sort < ?3 ORDER BY sort"
        }
        Order::Descending => {
            "SELECT revision, expires, value, sort FROM items
             WHERE partition = ?1 AND sort >= ?2 AND sort < ?3 ORDER BY sort DESC"
        }
    })?;
    let range = sort_range(query);
    let mut rows = statement.query(params![query.partition.as_bytes(), range.start, range.end])?;
    let mut page = Page { items: Vec::new(), more: false };
    let mut page_bytes = 0;
    while let Some(row) = rows.next()? {
        page_bytes += row.get_ref(2)?.as_blob()?.len();
        let full = page.items.len() >= query.limit.max(1);
        if full || (page_bytes > PAGE_BYTES_MAX && !page.items.is_empty()) {
            page.more = true;
            break;
        }
        page.items.push(item(ItemKey { partition: query.partition.clone(), sort: text(row, 3)? }, row)?);
    }
    Ok(page)
}

fn scan(
    connection: &Connection,
    prefix: &str,
    after: Option<&ItemKey>,
    limit: usize,
) -> rusqlite::Result<Page> {
    let mut statement = connection.prepare_cached(
        "SELECT revision, expires, value, sort, partition FROM items
         WHERE (partition, sort) > (?1, ?2) AND partition >= ?3 ORDER BY partition, sort",
    )?;
    let (partition, sort) = after.map_or(("", ""), |key| (&key.partition, &key.sort));
    let mut rows = statement.query(params![partition.as_bytes(), sort.as_bytes(), prefix.as_bytes()])?;
    let mut page = Page { items: Vec::new(), more: false };
    let mut page_bytes = 0;
    while let Some(row) = rows.next()? {
        let key = ItemKey { partition: text(row, 4)?, sort: text(row, 3)? };
        if !key.partition.starts_with(prefix) {
            break;
        }
        page_bytes += row.get_ref(2)?.as_blob()?.len();
        let full = page.items.len() >= limit.max(1);
        if full || (page_bytes > PAGE_BYTES_MAX && !page.items.is_empty()) {
            page.more = true;
            break;
        }
        page.items.push(item(key, row)?);
    }
    Ok(page)
}

/// Deletes for the expired ones of the `limit` items after `after`, and the last of those items if there are more.
fn find_expired(
    connection: &Connection,
    now: Timestamp,
    after: Option<&ItemKey>,
    limit: usize,
) -> rusqlite::Result<(Vec<Write>, Option<ItemKey>)> {
    let mut statement = connection.prepare_cached(
        "SELECT partition, sort, revision, expires FROM items WHERE (partition, sort) > (?1, ?2)
         ORDER BY partition, sort LIMIT ?3",
    )?;
    let (partition, sort) = after.map_or(("", ""), |key| (&key.partition, &key.sort));
    let limit = i64::try_from(limit.max(1)).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![partition.as_bytes(), sort.as_bytes(), limit])?;
    let (mut expired, mut last, mut seen) = (Vec::new(), None, 0);
    while let Some(row) = rows.next()? {
        seen += 1;
        let key = ItemKey { partition: text(row, 0)?, sort: text(row, 1)? };
        if row.get::<_, Option<i64>>(3)?.is_some_and(|expires| expires <= now.0) {
            let expect = Expect::Revision(Revision(row.get::<_, i64>(2)?.cast_unsigned()));
            expired.push(Write { key: key.clone(), expect, action: WriteAction::Delete });
        }
        last = Some(key);
    }
    Ok((expired, last.filter(|_| seen == limit)))
}

/// A part of a key.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    String::from_utf8(row.get(column)?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Blob, error.into())
    })
}

/// The item in a row that begins with revision, expiry and value.
fn item(key: ItemKey, row: &Row<'_>) -> rusqlite::Result<Item> {
    Ok(Item {
        key,
        revision: Revision(row.get::<_, i64>(0)?.cast_unsigned()),
        value: Bytes::from(row.get::<_, Vec<u8>>(2)?),
        expires: row.get::<_, Option<i64>>(1)?.map(Timestamp),
    })
}

/// Connections that read.
struct Readers {
    path: PathBuf,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    fn new(path: PathBuf) -> Self {
        Self { path, permits: Arc::new(Semaphore::new(READERS_MAX)), idle: Mutex::default() }
    }

    /// Lends an idle connection, or a new one. After an error it is closed: the next reader gets a fresh one.
    fn with<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let idle = self.idle().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.connect()?,
        };
        let found = read(&connection)?;
        self.idle().push(connection);
        Ok(found)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Ok(connection)
    }
}

type Answer = Result<(), CommitError>;

/// A commit on its way to the writing thread.
struct Job {
    writes: Vec<Write>,
    answer: oneshot::Sender<Answer>,
    /// Held until the answer is given.
    _permit: OwnedSemaphorePermit,
}

/// The handle to the writing thread.
struct Writer {
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
    fn start(connection: Connection) -> std::io::Result<Self> {
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

    async fn commit(&self, writes: Vec<Write>) -> Answer {
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

fn try_checkpoint(connection: &Connection) -> rusqlite::Result<()> {
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
fn write_group(connection: &Connection, group: Vec<Job>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn put(sort: &str, expect: Expect, revision: u64) -> Write {
        let action =
            WriteAction::Put { revision: Revision(revision), value: Bytes::from("value"), expires: None };
        Write { key: ItemKey::new("P", sort), expect, action }
    }

    /// Jobs of these commits, and where their answers arrive.
    fn group(commits: Vec<Vec<Write>>) -> (Vec<Job>, Vec<oneshot::Receiver<Answer>>) {
        let permits = Arc::new(Semaphore::new(commits.len()));
        commits
            .into_iter()
            .map(|writes| {
                let (answer, answered) = oneshot::channel();
                let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
                (Job { writes, answer, _permit: permit }, answered)
            })
            .unzip()
    }

    /// A connection like the writer's, but without a wait for locks.
    fn writer(path: &Path) -> Connection {
        let connection = Connection::open(path).unwrap();
        connection.busy_timeout(Duration::ZERO).unwrap();
        connection
    }

    fn sorts(path: &Path) -> Vec<String> {
        let connection = Connection::open(path).unwrap();
        let mut statement = connection.prepare("SELECT CAST(sort AS TEXT) FROM items").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[tokio::test]
    async fn a_ledger_of_the_first_format_is_upgraded_with_all_items() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        let old = Connection::open(&path).unwrap();
        old.execute_batch(
            "PRAGMA journal_mode = WAL;
             CREATE TABLE items (
                 partition BLOB NOT NULL, sort BLOB NOT NULL, revision INTEGER NOT NULL, expires INTEGER,
                 value BLOB NOT NULL, PRIMARY KEY (partition, sort)
             ) WITHOUT ROWID, STRICT;
             PRAGMA application_id = 0x53545752;
             PRAGMA user_version = 1;
             INSERT INTO items VALUES (CAST('P' AS BLOB), CAST('b' AS BLOB), -1, NULL, zeroblob(5000));
             INSERT INTO items VALUES (CAST('P' AS BLOB), CAST('a' AS BLOB), 7, 1000, CAST('x' AS BLOB));",
        )
        .unwrap();
        drop(old);
        for opened in [SqliteLedger::open_existing(&path), SqliteLedger::open_or_create(&path)] {
            let items = opened.unwrap().scan("", None, 10).await.unwrap().items;
            let [a, b] = items.try_into().unwrap();
            assert_eq!((a.key, a.revision), (ItemKey::new("P", "a"), Revision(7)));
            assert_eq!((a.expires, a.value), (Some(Timestamp(1000)), Bytes::from("x")));
            assert_eq!((b.key, b.revision), (ItemKey::new("P", "b"), Revision(u64::MAX)));
            assert_eq!((b.expires, b.value), (None, Bytes::from(vec![0; 5000])));
        }
        let tables = "SELECT group_concat(name) FROM sqlite_schema WHERE type = 'table'";
        let tables: String =
            Connection::open(&path).unwrap().query_row(tables, [], |row| row.get(0)).unwrap();
        assert_eq!(tables, "items");
    }

    #[test]
    fn a_refused_commit_of_a_group_does_not_affect_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        drop(SqliteLedger::open_or_create(&path).unwrap());
        let (jobs, mut answers) = group(vec![
            vec![put("a", Expect::Absent, 1)],
            vec![put("b", Expect::Any, 2), put("a", Expect::Absent, 2)],
            vec![put("a", Expect::Revision(Revision(1)), 3), put("c", Expect::Absent, 3)],
            vec![put("a", Expect::Revision(Revision(1)), 4)],
        ]);
        write_group(&writer(&path), jobs);

        let revision_in_the_way = |answer: Answer| match answer {
            Err(CommitError::Refused(refusal)) => (refusal.index, refusal.current.unwrap().revision),
            other => panic!("{other:?}"),
        };
        let [first, second, third, fourth] = answers
            .iter_mut()
            .map(|answer| answer.try_recv().unwrap())
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        first.unwrap();
        assert_eq!(revision_in_the_way(second), (1, Revision(1)));
        third.unwrap();
        assert_eq!(revision_in_the_way(fourth), (0, Revision(3)));
        assert_eq!(sorts(&path), ["a", "c"]);
    }

    #[test]
    fn a_group_that_cannot_begin_is_surely_not_done() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        drop(SqliteLedger::open_or_create(&path).unwrap());
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let writer = writer(&path);
        let commits = || vec![vec![put("a", Expect::Absent, 1)], vec![put("a", Expect::Absent, 2)]];

        let (jobs, answers) = group(commits());
        write_group(&writer, jobs);
        for mut answer in answers {
            let answer = answer.try_recv().unwrap();
            assert!(matches!(answer, Err(CommitError::Port(PortError::NotDone { .. }))), "{answer:?}");
        }
        assert_eq!(sorts(&path), [""; 0]);

        other.execute_batch("ROLLBACK").unwrap();
        let (jobs, mut answers) = group(commits());
        write_group(&writer, jobs);
        assert!(answers.iter_mut().next().unwrap().try_recv().unwrap().is_ok());
        assert_eq!(sorts(&path), ["a"]);
    }

    #[test]
    fn a_group_that_fails_in_the_middle_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        drop(SqliteLedger::open_or_create(&path).unwrap());
        let writer = writer(&path);
        // Simulates a full disk at the second member.
        writer
            .execute_batch(
                "CREATE TEMP TRIGGER full BEFORE INSERT ON main.items WHEN NEW.sort = CAST('b' AS BLOB)
                 BEGIN SELECT RAISE(FAIL, 'full'); END",
            )
            .unwrap();
        let (jobs, answers) =
            group(vec![vec![put("a", Expect::Absent, 1)], vec![put("b", Expect::Absent, 2)]]);
        write_group(&writer, jobs);
        for mut answer in answers {
            let answer = answer.try_recv().unwrap();
            assert!(matches!(answer, Err(CommitError::Port(PortError::NotDone { .. }))), "{answer:?}");
        }
        assert_eq!(sorts(&path), [""; 0]);
    }

    #[test]
    fn a_group_reports_a_full_disk_and_continues_with_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        drop(SqliteLedger::open_or_create(&path).unwrap());
        let writer = writer(&path);
        let pages = |count: u32| {
            let set = format!("PRAGMA max_page_count = {count}");
            writer.query_row(&set, [], |_| Ok(())).unwrap();
        };
        let large = || {
            let mut write = put("a", Expect::Absent, 1);
            if let WriteAction::Put { value, .. } = &mut write.action {
                *value = Bytes::from(vec![7; 100_000]);
            }
            let (jobs, mut answers) = group(vec![vec![write]]);
            write_group(&writer, jobs);
            answers.iter_mut().next().unwrap().try_recv().unwrap()
        };
        // No larger than it is.
        pages(1);
        let full = large();
        assert!(matches!(&full, Err(CommitError::Port(error)) if error.has_no_room()), "{full:?}");
        assert_eq!(sorts(&path), [""; 0]);
        pages(1_000);
        large().unwrap();
        assert_eq!(sorts(&path), ["a"]);
    }

    #[test]
    fn a_group_whose_commit_fails_may_have_been_done() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        drop(SqliteLedger::open_or_create(&path).unwrap());
        let writer = writer(&path);
        // A deferred constraint is checked by COMMIT, so it simulates any failure there.
        writer
            .execute_batch(
                "PRAGMA foreign_keys = ON;
                 CREATE TABLE parents (id BLOB PRIMARY KEY);
                 CREATE TABLE children (id BLOB REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
                 CREATE TEMP TRIGGER orphan AFTER INSERT ON main.items
                 BEGIN INSERT INTO children VALUES (NEW.sort); END",
            )
            .unwrap();
        let (jobs, answers) =
            group(vec![vec![put("a", Expect::Absent, 1)], vec![put("a", Expect::Absent, 2)]]);
        write_group(&writer, jobs);
        for mut answer in answers {
            let answer = answer.try_recv().unwrap();
            assert!(matches!(answer, Err(CommitError::Port(PortError::Unknown { .. }))), "{answer:?}");
        }
        assert!(writer.is_autocommit(), "the next group can begin");
    }

    #[tokio::test]
    async fn the_log_is_carried_over_and_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        let ledger = SqliteLedger::open_or_create(&path).unwrap();
        let value = Bytes::from(vec![7; 300_000]);
        for revision in 0..100 {
            let action =
                WriteAction::Put { revision: Revision(revision), value: value.clone(), expires: None };
            let write = Write { key: ItemKey::new("P", "a"), expect: Expect::Any, action };
            ledger.commit(vec![write]).await.unwrap();
        }
        let log = std::fs::metadata(folder.path().join("ledger.sqlite-wal")).unwrap().len();
        assert!(log < 20_000_000, "30 MB were written, and the log has {log} bytes");
    }

    #[test]
    fn the_log_of_a_peak_becomes_short_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.sqlite");
        drop(SqliteLedger::open_or_create(&path).unwrap());
        let bytes = || std::fs::metadata(folder.path().join("ledger.sqlite-wal")).unwrap().len();
        let writer = Connection::open(&path).unwrap();
        writer.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM items").unwrap();
        writer
            .execute_batch("CREATE TABLE peak (value); INSERT INTO peak VALUES (zeroblob(20000000))")
            .unwrap();
        let long = bytes();
        assert!(long > LOG_KEPT_BYTES as u64, "{long}");
        try_checkpoint(&writer).unwrap();
        assert_eq!(bytes(), long, "a reader still needs the older pages");
        reader.execute_batch("COMMIT").unwrap();
        try_checkpoint(&writer).unwrap();
        assert_eq!(bytes(), 0);
        writer.execute_batch("INSERT INTO peak VALUES (1)").unwrap();
        let short = bytes();
        try_checkpoint(&writer).unwrap();
        assert_eq!(bytes(), short, "a short one is overwritten");
    }

    #[tokio::test]
    async fn expired_items_are_dropped_page_by_page_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SqliteLedger::open_or_create(&folder.path().join("ledger.sqlite")).unwrap();
        let now = Timestamp::from_seconds(1000);
        let expiries = [None, Some(0), Some(now.0 - 1), Some(now.0), Some(now.0 + 1), Some(i64::MAX)];
        let writes: Vec<Write> = (0..250)
            .flat_map(|n| expiries.iter().enumerate().map(move |(kind, expires)| (n, kind, *expires)))
            .map(|(n, kind, expires)| {
                let key = ItemKey::new(format!("P{}", n % 7), format!("{n}#{kind}"));
                let expires = expires.map(Timestamp);
                let action = WriteAction::Put { revision: Revision(1), value: Bytes::new(), expires };
                Write { key, expect: Expect::Absent, action }
            })
            .collect();
        for chunk in writes.chunks(100) {
            ledger.commit(chunk.to_vec()).await.unwrap();
        }
        let (mut after, mut pages) = (None, 0);
        loop {
            pages += 1;
            after = ledger.drop_expired(now, after, 400).await.unwrap();
            if after.is_none() {
                break;
            }
        }
        assert_eq!(pages, 4, "1500 items in pages of 400");
        let left = sorts(&folder.path().join("ledger.sqlite"));
        assert_eq!(left.len(), 250 * 3);
        assert!(left.iter().all(|sort| ["#0", "#4", "#5"].iter().any(|kind| sort.ends_with(kind))));
    }
}

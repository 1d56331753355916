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
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::OwnedSemaphorePermit;

use super::disk::create_private_file;
use crate::ports::{
    CommitError, Item, ItemKey, Ledger, Page, PortError, Query, Timestamp, Write, verify_writes,
};

mod file;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use self::file::{BUSY_TIMEOUT, SCHEMA_VERSION, known_schema, make_schema, use_log};
use self::reader::{Readers, find, find_expired, find_page, scan};
use self::writer::Writer;

pub use self::file::OpenLedgerError;

/// Values up to this size go into the ledger. A blob costs two syncs (its file and its folder) in addition to
/// that of the item that points to it; an inline value is written twice (log and database) but synced once. On
/// a plain disk a commit of this size takes as long as storing the blob alone, so below it inline always wins.
const INLINE_BYTES_MAX: usize = 256 * 1024;

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

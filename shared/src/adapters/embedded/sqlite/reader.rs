//! The reads of a ledger, and the connections that they share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, params};
use tokio::sync::Semaphore;

use super::file::BUSY_TIMEOUT;
use crate::adapters::key_range::sort_range;
use crate::ports::{Expect, Item, ItemKey, Order, Page, Query, Revision, Timestamp, Write, WriteAction};

/// Bytes of values in one page, so that the memory for a query is limited whatever its limit.
const PAGE_BYTES_MAX: usize = 1_000_000;

/// Concurrent readers. More than there are cores brings nothing when the pages are in memory, and a few more
/// hide a slow disk when they are not.
const READERS_MAX: usize = 8;

pub(super) fn find(connection: &Connection, key: &ItemKey) -> rusqlite::Result<Option<Item>> {
    connection
        .prepare_cached("SELECT revision, expires, value FROM items WHERE partition = ?1 AND sort = ?2")?
        .query_row(params![key.partition.as_bytes(), key.sort.as_bytes()], |row| item(key.clone(), row))
        .optional()
}

pub(super) fn find_page(connection: &Connection, query: &Query) -> rusqlite::Result<Page> {
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

pub(super) fn scan(
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
pub(super) fn find_expired(
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
pub(super) struct Readers {
    pub(super) path: PathBuf,
    pub(super) permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, permits: Arc::new(Semaphore::new(READERS_MAX)), idle: Mutex::default() }
    }

    /// Lends an idle connection, or a new one. After an error it is closed: the next reader gets a fresh one.
    pub(super) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
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

//! The file of a ledger: its format, and why it cannot be opened.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

/// Marks the file as ours: "STWR" in ASCII.
const APPLICATION_ID: i32 = 0x5354_5752;

/// The schema that this program reads and writes. An older file is upgraded, a newer one is refused.
pub(super) const SCHEMA_VERSION: i32 = 2;

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

/// Statements that upgrade a file of version 1, whose table was one tree. The first runs before [`SCHEMA`], the second
/// after it.
const FROM_ONE_TREE: [&str; 2] = [
    "ALTER TABLE items RENAME TO one_tree",
    "INSERT INTO items SELECT partition, sort, revision, expires, value FROM one_tree ORDER BY partition, sort;
     DROP TABLE one_tree;",
];

/// The time that a connection waits for another process's transaction. An operator's command holds the write
/// lock for milliseconds; a process that holds it for longer is stuck, and then an error is better than
/// waiting.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

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

/// The version of the schema in the file, one that this program knows; `None` for an empty file. Changes nothing.
pub(super) fn known_schema(connection: &Connection, path: &Path) -> Result<Option<i32>, OpenLedgerError> {
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

pub(super) fn use_log(connection: &Connection, path: &Path) -> Result<(), OpenLedgerError> {
    let failed = |source| OpenLedgerError::Sqlite { path: path.to_owned(), source };
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)).map_err(failed)?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(OpenLedgerError::NoLog { path: path.to_owned(), mode });
    }
    Ok(())
}

/// Creates the schema in an empty file or upgrades an older one, in one transaction.
pub(super) fn make_schema(connection: &mut Connection, path: &Path) -> Result<(), OpenLedgerError> {
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

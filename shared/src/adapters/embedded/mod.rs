//! The store of the single binary: SQLite, files and a master key in one folder.

mod sqlite;

pub use sqlite::{OpenLedgerError, SqliteLedger};

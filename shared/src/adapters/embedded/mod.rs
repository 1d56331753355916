//! The store of the single binary: SQLite, files and a master key in one folder.

mod disk;
mod files;
mod folder;
mod key_file;
mod sqlite;

pub use files::FileBlobs;
pub use folder::{DataFolder, FolderError};
pub use key_file::{FileKeys, KeyFileError};
pub use sqlite::{OpenLedgerError, SqliteLedger};

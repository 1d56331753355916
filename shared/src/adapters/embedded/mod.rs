//! The store of the single binary: SQLite, files and a master key in one folder.

mod backup;
mod disk;
mod files;
mod folder;
mod key_file;
mod sqlite;

pub use backup::{BackedUp, BackupError, Named, RestoreFrom, Restored, back_up, restore};
pub use files::{Copied, FileBlobs};
pub use folder::{DataFolder, FolderError, KeyLock};
pub use key_file::{FileKeys, KeyFileError};
pub use sqlite::{OpenLedgerError, SqliteLedger};

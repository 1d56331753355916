//! One folder that contains a whole store.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::disk::{
    create_private_folder, is_for_all, is_for_others, make_private, open_lock_file, sync_folder,
};
use super::{FileBlobs, FileKeys, KeyFileError, OpenLedgerError, SqliteLedger};
use crate::adapters::SystemIds;
use crate::adapters::cursor::{cursor_behind, item_behind};
use crate::ports::{
    BlobKey, CommitError, Cursor, Expect, Ids, Inventory, Item, ItemKey, KeyContext, Keys, KeysError, Ledger,
    Page, Part, PortError, WrappedKey, Write, WriteAction,
};

/// Items in one part of an inventory.
const PART_ITEMS_MAX: usize = 1000;

/// The three ports on one folder:
///
/// | name | content |
/// | --- | --- |
/// | `ledger.sqlite` (`-wal`, `-shm`) | the ledger |
/// | `blobs/` | the blobs, each under its key |
/// | `master.key` | the master key, for its owner alone |
/// | `lock` | locked by the running server, and contains its process id |
/// | `key-lock` | locked while the master key is replaced, or copied with its ledger |
/// | `restoring` | exists until a restore into the folder has finished: it is not a store yet |
///
/// The ledger has a check value, wrapped under the master key, which proves that key and ledger belong together.
///
/// Keep this value alive: once the server's is dropped, another server may take the folder.
#[derive(Debug)]
pub struct DataFolder {
    pub ledger: SqliteLedger,
    pub blobs: FileBlobs,
    pub keys: FileKeys,
    path: PathBuf,
    /// Dropped last: the others close their files first.
    _lock: Option<FolderLock>,
}

/// Why a folder could not be opened. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// There is no such folder, and it must not be created.
    #[error(
        "there is no data folder at {}. This command opens the data itself, without a server: name its folder with --data, or \
         start a server, which creates one. Who has only an access token uses the console or the HTTP API",
        path.display()
    )]
    Absent { path: PathBuf },
    /// Any user may replace its files.
    #[error(
        "every user of this machine may write into {} and so replace its files. Nothing was changed. Restrict it to its owner: \
         chmod 700 {}",
        path.display(),
        path.display()
    )]
    ForAll { path: PathBuf },
    /// Another server uses it.
    #[error(
        "another server (process {pid}) uses {}. Stop it first, or choose another folder",
        path.display()
    )]
    Served {
        path: PathBuf,
        /// The process id in the lock file, or `unknown`.
        pid: String,
    },
    /// A restore into it was interrupted.
    #[error(
        "a restore into {} was not finished. Run it again, or remove the folder",
        path.display()
    )]
    Unfinished { path: PathBuf },
    /// Another command uses its master key.
    #[error("another command uses the master key of {}. Wait until it has ended", path.display())]
    KeyLocked { path: PathBuf },
    /// There is data but no master key.
    #[error(
        "{} is missing, and without it the secrets in {} cannot be read. Nothing was changed. Restore the key from \
         your copy",
        key.display(),
        ledger.display()
    )]
    KeyMissing {
        /// Where the key should be.
        key: PathBuf,
        /// The data that needs it.
        ledger: PathBuf,
    },
    /// The data was written under another master key.
    #[error(
        "{} is not the key under which {} was written. Nothing was changed. Restore the right key, or the ledger \
         that belongs to this one",
        key.display(),
        ledger.display()
    )]
    KeyWrong { key: PathBuf, ledger: PathBuf },
    /// There are blobs but no ledger.
    #[error(
        "{} is missing or empty, but {} is not empty. Nothing was changed. Restore the ledger from a backup, or choose a new \
         folder",
        ledger.display(),
        blobs.display()
    )]
    LedgerMissing {
        /// Where the ledger should be.
        ledger: PathBuf,
        /// The blobs that belong to it.
        blobs: PathBuf,
    },
    /// The ledger has items but no check value.
    #[error(
        "{} has no record of its master key. Nothing was changed. Restore it from a backup",
        ledger.display()
    )]
    Unmarked { ledger: PathBuf },
    /// The ledger's file could not be opened.
    #[error(transparent)]
    Ledger(#[from] OpenLedgerError),
    /// The master key's file could not be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The system refused to access a file or folder.
    #[error("{} could not be {what}. Check the disk and the permissions", path.display())]
    System {
        path: PathBuf,
        /// The attempted action, as a participle.
        what: &'static str,
        /// The system's own error.
        #[source]
        source: io::Error,
    },
    /// The check value could not be read or written.
    #[error("the check of the master key in {} failed", ledger.display())]
    Check {
        ledger: PathBuf,
        /// The port's error.
        #[source]
        source: PortError,
    },
}

impl DataFolder {
    /// Opens the folder for the only server on it, and creates it, for its owner alone, if there is none.
    /// Restricts an existing empty folder to its owner, if this user owns it.
    ///
    /// # Errors
    /// See [`FolderError`]. A folder with a missing part is refused and left as it is, never filled up.
    pub async fn open_server(path: &Path, ids: Arc<dyn Ids>) -> Result<Self, FolderError> {
        make(path)?;
        refuse_for_all(path)?;
        if is_new(path)? && is_for_others(path).is_ok_and(|is_so| is_so) {
            // Another user cannot restrict it; the server then warns that the folder is open.
            let _ = make_private(path);
        }
        let lock = lock(path)?;
        let names = Files::in_folder(path);
        names.refuse_unfinished()?;
        let (key_there, ledger_there) = (is_there(&names.key)?, has_bytes(&names.ledger)?);
        if ledger_there && !key_there {
            return Err(FolderError::KeyMissing { key: names.key, ledger: names.ledger });
        }
        let blobs_there = names.has_blobs()?;
        if !ledger_there && blobs_there {
            return Err(FolderError::LedgerMissing { ledger: names.ledger, blobs: names.blobs });
        }
        // The key is created before the ledger, so no crash leaves a ledger without a key.
        let keys = match key_there {
            true => FileKeys::open(&names.key, Arc::clone(&ids))?,
            false => FileKeys::create(&names.key, Arc::clone(&ids))?,
        };
        let ledger = SqliteLedger::open_or_create(&names.ledger)?;
        check(&ledger, &keys, (!blobs_there).then_some(ids.as_ref()), &names).await?;
        let blobs = FileBlobs::open_or_create(&names.blobs).map_err(|source| FolderError::System {
            path: names.blobs,
            what: "opened",
            source,
        })?;
        Ok(Self { ledger, blobs, keys, path: path.to_owned(), _lock: Some(lock) })
    }

    /// Like [`DataFolder::open_beside`], but with the lock of a server: while the value lives, no server can
    /// open the folder.
    ///
    /// # Errors
    /// [`FolderError::Served`] while a server runs, and those of [`DataFolder::open_beside`].
    pub async fn open_alone(path: &Path, ids: Arc<dyn Ids>) -> Result<Self, FolderError> {
        // Without a folder, create nothing, not even the lock.
        let opened = Self::open_beside(path, ids).await?;
        Ok(Self { _lock: Some(lock(path)?), ..opened })
    }

    /// Opens the folder for an operator's command, while a server may be using it. Creates nothing.
    ///
    /// # Errors
    /// See [`FolderError`].
    pub async fn open_beside(path: &Path, ids: Arc<dyn Ids>) -> Result<Self, FolderError> {
        let names = Files::in_folder(path);
        names.refuse_unfinished()?;
        if !has_bytes(&names.ledger)? {
            return Err(match names.has_blobs()? {
                true => FolderError::LedgerMissing { ledger: names.ledger, blobs: names.blobs },
                false => FolderError::Absent { path: path.to_owned() },
            });
        }
        refuse_for_all(path)?;
        if !is_there(&names.key)? {
            return Err(FolderError::KeyMissing { key: names.key, ledger: names.ledger });
        }
        let keys = FileKeys::open(&names.key, ids)?;
        let ledger = SqliteLedger::open_existing(&names.ledger)?;
        check(&ledger, &keys, None, &names).await?;
        let blobs = FileBlobs::open_existing(&names.blobs);
        Ok(Self { ledger, blobs, keys, path: path.to_owned(), _lock: None })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether users other than its owner may list it or do more. Its files are for their owner alone in any case.
    pub fn is_for_others(&self) -> bool {
        is_for_others(&self.path).is_ok_and(|is_so| is_so)
    }

    /// Prevents other processes from replacing the master key and from making data keys next to the server.
    ///
    /// # Errors
    /// [`FolderError::KeyLocked`] while another process holds this lock.
    pub fn lock_keys(&self) -> Result<KeyLock, FolderError> {
        let path = self.path.join("key-lock");
        let failed = |source| FolderError::System { path: path.clone(), what: "locked", source };
        let file = open_lock_file(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(KeyLock { _held: FolderLock(file) }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
            Err(TryLockError::WouldBlock) => Err(FolderError::KeyLocked { path: self.path.clone() }),
        }
    }

    /// Wraps the check value under the newest master key, if another one wraps it.
    ///
    /// # Errors
    /// [`FolderError::Check`], [`FolderError::KeyWrong`].
    pub async fn rewrap_check(&self) -> Result<(), FolderError> {
        let names = Files::in_folder(&self.path);
        let failed = |source| FolderError::Check { ledger: names.ledger.clone(), source };
        let Some(item) = self.ledger.get(&check_key()).await.map_err(failed)? else {
            return Err(FolderError::Unmarked { ledger: names.ledger });
        };
        let rewrapped = self.keys.rewrap(&WrappedKey(item.value.into()), &check_context()).await;
        let rewrapped = rewrapped.map_err(|error| match error {
            KeysError::Mismatch => {
                FolderError::KeyWrong { key: names.key.clone(), ledger: names.ledger.clone() }
            }
            KeysError::Unusable(source) => failed(PortError::not_done("opening the check value", source)),
            KeysError::Port(source) => failed(source),
        })?;
        let Some(wrapped) = rewrapped else { return Ok(()) };
        let revision = SystemIds.revision();
        let action = WriteAction::Put { revision, value: Bytes::from(wrapped.0), expires: None };
        let write = Write { key: check_key(), expect: Expect::Revision(item.revision), action };
        self.ledger.commit(vec![write]).await.map_err(|error| match error {
            CommitError::Refused(_) => {
                failed(PortError::not_done("writing the check value", "another process was faster"))
            }
            CommitError::Port(source) => failed(source),
        })
    }
}

#[async_trait]
impl Inventory for DataFolder {
    async fn items(&self, prefix: &str, from: Option<&Cursor>) -> Result<Part<Item>, PortError> {
        let after = from.map(item_behind).transpose()?;
        let Page { items: found, more } = self.ledger.scan(prefix, after.as_ref(), PART_ITEMS_MAX).await?;
        let next = found.last().filter(|_| more).map(|item| cursor_behind(&item.key));
        Ok(Part { found, next })
    }

    /// All at once: every listing reads the folders from their beginning.
    async fn blobs(&self, _from: Option<&Cursor>) -> Result<Part<BlobKey>, PortError> {
        Ok(Part { found: self.blobs.keys().await?, next: None })
    }
}

/// The lock on the master key.
#[derive(Debug)]
pub struct KeyLock {
    _held: FolderLock,
}

/// The paths of the parts of a folder.
pub(super) struct Files {
    pub(super) ledger: PathBuf,
    pub(super) blobs: PathBuf,
    pub(super) key: PathBuf,
    pub(super) restoring: PathBuf,
}

impl Files {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self {
            ledger: folder.join("ledger.sqlite"),
            blobs: folder.join("blobs"),
            key: folder.join("master.key"),
            restoring: folder.join("restoring"),
        }
    }

    fn refuse_unfinished(&self) -> Result<(), FolderError> {
        if is_there(&self.restoring)? {
            let folder = self.restoring.parent().unwrap_or(Path::new("."));
            return Err(FolderError::Unfinished { path: folder.to_owned() });
        }
        Ok(())
    }

    /// Whether there is a class of blobs. The folder for temporary files does not count.
    fn has_blobs(&self) -> Result<bool, FolderError> {
        let failed = |source| FolderError::System { path: self.blobs.clone(), what: "read", source };
        let entries = match fs::read_dir(&self.blobs) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            if !entry.map_err(failed)?.file_name().to_string_lossy().starts_with('.') {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

pub(super) fn is_there(path: &Path) -> Result<bool, FolderError> {
    path.try_exists().map_err(|source| FolderError::System { path: path.to_owned(), what: "read", source })
}

/// Whether the file exists and is not empty: an interrupted start leaves an empty one, and so may a broken disk.
fn has_bytes(path: &Path) -> Result<bool, FolderError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len() > 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(FolderError::System { path: path.to_owned(), what: "read", source }),
    }
}

/// Refuses a folder in which any user could replace the server's files.
fn refuse_for_all(path: &Path) -> Result<(), FolderError> {
    match is_for_all(path) {
        Ok(false) => Ok(()),
        Ok(true) => Err(FolderError::ForAll { path: path.to_owned() }),
        Err(source) => Err(FolderError::System { path: path.to_owned(), what: "read", source }),
    }
}

/// Whether a folder has only what a file system or an interrupted start creates.
fn is_new(path: &Path) -> Result<bool, FolderError> {
    let failed = |source| FolderError::System { path: path.to_owned(), what: "read", source };
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != "lost+found" && name != "lock" {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Creates the folder and its parents, if there is none.
pub(super) fn make(path: &Path) -> Result<(), FolderError> {
    let failed = |source| FolderError::System { path: path.to_owned(), what: "made", source };
    if path.is_dir() {
        return Ok(());
    }
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        None => create_private_folder(path).map_err(failed),
        Some(parent) => fs::create_dir_all(parent)
            .and_then(|()| create_private_folder(path))
            .and_then(|()| sync_folder(parent))
            .map_err(failed),
    }
}

/// The locked file. The system releases the lock however the process ends.
#[derive(Debug)]
pub(super) struct FolderLock(File);

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that is just being started has a copy of it for a moment.
        // If unlocking fails, closing releases it later.
        let _ = self.0.unlock();
    }
}

/// Locks the folder for this process, until the lock is dropped.
pub(super) fn lock(folder: &Path) -> Result<FolderLock, FolderError> {
    let path = folder.join("lock");
    let failed = |source| FolderError::System { path: path.clone(), what: "locked", source };
    let mut file = open_lock_file(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(source)) => return Err(failed(source)),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let read = file.take(20).read_to_string(&mut text);
            let pid = match (read, text.trim()) {
                (Ok(_), pid) if !pid.is_empty() => pid.to_owned(),
                _ => "unknown".to_owned(),
            };
            return Err(FolderError::Served { path: folder.to_owned(), pid });
        }
    }
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(failed)?;
    Ok(FolderLock(file))
}

fn check_key() -> ItemKey {
    ItemKey::new("FOLDER", "MASTER#CHECK")
}

fn check_context() -> KeyContext {
    KeyContext { name: "folder", value: "check".to_owned() }
}

/// Opens the check value. Creates it if `maker` is given, as it is for a folder without blobs, and the ledger
/// has no items either: only then nothing can have been written under another key.
pub(super) async fn check(
    ledger: &SqliteLedger,
    keys: &FileKeys,
    maker: Option<&dyn Ids>,
    names: &Files,
) -> Result<(), FolderError> {
    let failed = |source| FolderError::Check { ledger: names.ledger.clone(), source };
    let (key, context) = (check_key(), check_context());
    let fails_to_open = |error| match error {
        KeysError::Mismatch => FolderError::KeyWrong { key: names.key.clone(), ledger: names.ledger.clone() },
        KeysError::Unusable(source) => failed(PortError::not_done("opening the check value", source)),
        KeysError::Port(source) => failed(source),
    };
    match (ledger.get(&key).await.map_err(failed)?, maker) {
        (Some(item), _) => {
            keys.unwrap(&WrappedKey(item.value.into()), &context).await.map_err(fails_to_open)?;
        }
        (None, Some(ids)) if ledger.is_empty().await.map_err(failed)? => {
            let (_, wrapped) = keys.generate(&context).await.map_err(fails_to_open)?;
            let action =
                WriteAction::Put { revision: ids.revision(), value: Bytes::from(wrapped.0), expires: None };
            ledger.commit(vec![Write { key, expect: Expect::Absent, action }]).await.map_err(|error| {
                match error {
                    CommitError::Refused(_) => {
                        failed(PortError::not_done("writing the check value", "another process was faster"))
                    }
                    CommitError::Port(source) => failed(source),
                }
            })?;
        }
        (None, _) => return Err(FolderError::Unmarked { ledger: names.ledger.clone() }),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_lock_is_free_while_a_starting_process_has_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path()).unwrap();
        let _copy = held.0.try_clone().unwrap();
        assert!(matches!(lock(folder.path()), Err(FolderError::Served { .. })));
        drop(held);
        lock(folder.path()).unwrap();
    }
}

//! Blobs as files.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use sha2::{Digest, Sha256};

use super::disk::{create_private_file, create_private_folder, sync_folder, why};
use crate::adapters::SystemIds;
use crate::ports::{Blob, BlobKey, Blobs, Cursor, Ids, Inventory, Item, Part, PortError};

/// The folder of files that have no final name yet. No segment of a key starts with a dot.
const TEMPORARY: &str = ".tmp";

/// Bytes of one piece of a blob that is read.
const CHUNK_BYTES: usize = 256 * 1024;

/// The maximum number of folders remembered as synced. When it is reached, all are forgotten.
const FOLDERS_KNOWN_MAX: usize = 10_000;

/// Blobs as files below a folder, each under the path that its key spells. Clones are handles to the same folder.
///
/// A blob is written under a temporary name and synced before it is renamed, so that a name always leads to the
/// whole blob. Then the folder is synced, so that the name stays.
#[derive(Debug, Clone)]
pub struct FileBlobs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    root: PathBuf,
    /// Folders whose name in their parent is known to be synced. That a folder exists does not prove it:
    /// another process, or this one before a crash, may have created it and not synced it yet.
    folders_known: Mutex<HashSet<PathBuf>>,
}

impl FileBlobs {
    /// Opens the store at `root`, creates it if there is none, and deletes the files of interrupted puts. Only
    /// for the process that holds the folder's lock: it would delete the file of another process's running put,
    /// which would then fail.
    ///
    /// # Errors
    /// When the folder cannot be created, read or cleaned.
    pub fn open_or_create(root: &Path) -> io::Result<Self> {
        let temporary = root.join(TEMPORARY);
        for folder in [root, &temporary] {
            if !folder.is_dir() {
                create_private_folder(folder)?;
            }
            folder.parent().map_or(Ok(()), sync_folder)?;
        }
        for leftover in fs::read_dir(&temporary)? {
            fs::remove_file(leftover?.path())?;
        }
        Ok(Self::open_existing(root))
    }

    /// A handle to the store at `root`, which another process may be using. Changes nothing.
    pub fn open_existing(root: &Path) -> Self {
        Self { shared: Arc::new(Shared { root: root.to_owned(), folders_known: Mutex::default() }) }
    }

    /// The keys of all blobs, in their order.
    ///
    /// # Errors
    /// [`PortError::NotDone`] when a folder cannot be read.
    pub async fn keys(&self) -> Result<Vec<BlobKey>, PortError> {
        const WHAT: &str = "listing the blobs";
        self.run(WHAT, |shared| {
            let mut keys = Vec::new();
            list(&shared.root, "", &mut keys).map_err(|error| PortError::not_done(WHAT, error))?;
            keys.sort_unstable();
            Ok(keys)
        })
        .await
    }

    /// The length of a blob in bytes, if it exists.
    ///
    /// # Errors
    /// [`PortError::NotDone`] when the system does not report it.
    pub async fn length(&self, key: &BlobKey) -> Result<Option<u64>, PortError> {
        let key = key.clone();
        self.run("looking for a blob", move |shared| shared.length(&key)).await
    }

    /// Copies a blob from another store, and returns the length and the hex SHA-256 of the copy; `None` if the
    /// other store has no such blob. A copied blob is as durable as one that was put.
    ///
    /// # Errors
    /// As for a put.
    pub async fn copy_from(&self, from: &Self, key: &BlobKey) -> Result<Option<Copied>, PortError> {
        let (from, key) = (Arc::clone(&from.shared), key.clone());
        self.run("copying a blob", move |shared| {
            let not_done = |error| PortError::not_done("copying a blob", error);
            let source = match File::open(from.path(&key)) {
                Err(error) if is_absence(&error) => return Ok(None),
                opened => opened.map_err(not_done)?,
            };
            shared.put_with(&key, |temporary| copy_synced(source, temporary)).map(Some)
        })
        .await
    }

    /// Runs `work` off the threads of the caller's runtime.
    async fn run<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Shared) -> Result<T, PortError> + Send + 'static,
    ) -> Result<T, PortError> {
        let shared = Arc::clone(&self.shared);
        tokio::task::spawn_blocking(move || work(&shared))
            .await
            .unwrap_or_else(|join| Err(PortError::unknown(what, join)))
    }
}

/// A folder of blobs alone has no items.
#[async_trait]
impl Inventory for FileBlobs {
    async fn items(&self, _: &str, _: Option<&Cursor>) -> Result<Part<Item>, PortError> {
        Ok(Part { found: Vec::new(), next: None })
    }

    async fn blobs(&self, _: Option<&Cursor>) -> Result<Part<BlobKey>, PortError> {
        Ok(Part { found: self.keys().await?, next: None })
    }
}

#[async_trait]
impl Blobs for FileBlobs {
    async fn put(&self, key: &BlobKey, body: Bytes) -> Result<(), PortError> {
        let key = key.clone();
        self.run("storing a blob", move |shared| shared.put(&key, &body)).await
    }

    async fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError> {
        let key = key.clone();
        self.run("reading a blob", move |shared| shared.get(&key)).await
    }

    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError> {
        let key = key.clone();
        self.run("reading a part of a blob", move |shared| shared.get_range(&key, range)).await
    }

    async fn delete(&self, key: &BlobKey) -> Result<(), PortError> {
        let key = key.clone();
        self.run("deleting a blob", move |shared| shared.delete(&key)).await
    }
}

impl Shared {
    fn put(&self, key: &BlobKey, body: &[u8]) -> Result<(), PortError> {
        self.put_with(key, |temporary| write_synced(temporary, body))
    }

    fn length(&self, key: &BlobKey) -> Result<Option<u64>, PortError> {
        match fs::metadata(self.path(key)) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if is_absence(&error) => Ok(None),
            Err(error) => Err(PortError::not_done("looking for a blob", error)),
        }
    }

    /// Writes a temporary file with `write`, syncs it, and gives it the name of a blob.
    fn put_with<T>(&self, key: &BlobKey, write: impl FnOnce(&Path) -> io::Result<T>) -> Result<T, PortError> {
        let path = self.path(key);
        let folder = path.parent().unwrap_or(&self.root);
        let temporary = self.root.join(TEMPORARY).join(SystemIds.uuid().simple().to_string());
        let written = self
            .make_folder(folder)
            .and_then(|()| write(&temporary))
            .and_then(|written| fs::rename(&temporary, &path).map(|()| written));
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                // A leftover file is deleted at the next start.
                let _ = fs::remove_file(&temporary);
                self.folders_known().clear();
                return Err(PortError::not_done("storing a blob", why(error)));
            }
        };
        sync_folder(folder).map_err(|error| PortError::unknown("storing a blob", why(error)))?;
        Ok(written)
    }

    fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError> {
        self.get_range(key, 0..u64::MAX)
    }

    fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError> {
        let not_done = |error| PortError::not_done("reading a blob", error);
        let mut file = match File::open(self.path(key)) {
            Err(error) if is_absence(&error) => return Ok(None),
            opened => opened.map_err(not_done)?,
        };
        let length = file.metadata().map_err(not_done)?.len();
        let start = range.start.min(length);
        let bytes_total = range.end.min(length).saturating_sub(start);
        if start > 0 {
            file.seek(SeekFrom::Start(start)).map_err(not_done)?;
        }
        let mut reading = Reading { file, bytes_left: bytes_total };
        // Read the first piece here, so that a small blob takes one read.
        let first = reading.next_chunk().map_err(not_done)?;
        let rest = stream::try_unfold(reading, |mut reading| async move {
            if reading.bytes_left == 0 {
                return Ok(None);
            }
            tokio::task::spawn_blocking(move || Ok(Some((reading.next_chunk()?, reading))))
                .await
                .unwrap_or_else(|join| Err(io::Error::other(join)))
                .map_err(|error| PortError::not_done("reading a blob", error))
        });
        Ok(Some(Blob { bytes_total, stream: stream::iter([Ok(first)]).chain(rest).boxed() }))
    }

    fn delete(&self, key: &BlobKey) -> Result<(), PortError> {
        let path = self.path(key);
        match fs::remove_file(&path) {
            Err(error) if !is_absence(&error) => return Err(PortError::not_done("deleting a blob", error)),
            // The file is absent, but an earlier delete may have ended before its sync, so sync the folder.
            _ => {}
        }
        match sync_folder(path.parent().unwrap_or(&self.root)) {
            Err(error) if !is_absence(&error) => Err(PortError::unknown("deleting a blob", error)),
            _ => Ok(()),
        }
    }

    /// The file of a blob. A key is a relative path that cannot lead out of the root, see [`BlobKey`].
    fn path(&self, key: &BlobKey) -> PathBuf {
        self.root.join(key.as_str())
    }

    /// Creates a folder below the root and its parents, and syncs them.
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        if folder == self.root || self.folders_known().contains(folder) {
            return Ok(());
        }
        let parent = folder.parent().unwrap_or(&self.root);
        self.make_folder(parent)?;
        match create_private_folder(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => sync_folder(parent)?,
        }
        let mut known = self.folders_known();
        if known.len() >= FOLDERS_KNOWN_MAX {
            known.clear();
        }
        known.insert(folder.to_owned());
        Ok(())
    }

    fn folders_known(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        self.folders_known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the error means that there is no such file, also because a part of the path is a file.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn write_synced(path: &Path, body: &[u8]) -> io::Result<()> {
    let mut file = create_private_file(path)?;
    file.write_all(body)?;
    // Sync the size too: it is needed to read the bytes back.
    file.sync_data()
}

/// The length and hash of a copied blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Its length in bytes.
    pub bytes: u64,
    /// Its hex SHA-256.
    pub sha256: String,
}

fn copy_synced(mut from: File, to: &Path) -> io::Result<Copied> {
    let mut file = create_private_file(to)?;
    let (mut hash, mut bytes) = (Sha256::new(), 0);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let length = from.read(&mut chunk)?;
        let read = chunk.get(..length).unwrap_or_default();
        if read.is_empty() {
            break;
        }
        hash.update(read);
        file.write_all(read)?;
        bytes += length as u64;
    }
    file.sync_data()?;
    Ok(Copied { bytes, sha256: hex::encode(hash.finalize()) })
}

/// The keys of the blobs in a folder and below it. Leaves out everything else, such as the folder for temporary
/// files. A blob that is deleted meanwhile may be listed or not.
fn list(folder: &Path, prefix: &str, keys: &mut Vec<BlobKey>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if is_absence(&error) => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let key = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{key}/"), keys)?;
        } else {
            keys.extend(BlobKey::parse(&key));
        }
    }
    Ok(())
}

/// A file that is being read.
struct Reading {
    file: File,
    bytes_left: u64,
}

impl Reading {
    /// The next piece; an error when the file ends before the announced length.
    fn next_chunk(&mut self) -> io::Result<Bytes> {
        let length = usize::try_from(self.bytes_left).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        let mut chunk = vec![0; length];
        self.file.read_exact(&mut chunk)?;
        self.bytes_left -= length as u64;
        Ok(chunk.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> BlobKey {
        BlobKey::parse(text).unwrap()
    }

    #[tokio::test]
    async fn opening_deletes_the_files_of_interrupted_puts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("blobs");
        let blobs = FileBlobs::open_or_create(&root).unwrap();
        blobs.put(&key("snap/a/b"), Bytes::from("whole")).await.unwrap();
        let leftover = root.join(TEMPORARY).join("half");
        fs::write(&leftover, "ha").unwrap();

        let blobs = FileBlobs::open_or_create(&root).unwrap();
        assert!(!leftover.exists());
        let whole = blobs.get(&key("snap/a/b")).await.unwrap().unwrap().into_bytes().await.unwrap();
        assert_eq!(whole, "whole");
    }

    #[tokio::test]
    async fn a_put_leaves_nothing_but_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = FileBlobs::open_or_create(&folder.path().join("blobs")).unwrap();
        blobs.put(&key("snap/a/b"), Bytes::from("whole")).await.unwrap();
        assert_eq!(fs::read(folder.path().join("blobs/snap/a/b")).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path().join("blobs/.tmp")).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_put_that_cannot_be_done_leaves_nothing_and_says_not_done() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = FileBlobs::open_or_create(&folder.path().join("blobs")).unwrap();
        // A folder has the file's name.
        fs::create_dir_all(folder.path().join("blobs/snap/a/b")).unwrap();
        let outcome = blobs.put(&key("snap/a/b"), Bytes::from("whole")).await;
        assert!(matches!(outcome, Err(PortError::NotDone { .. })));
        assert_eq!(fs::read_dir(folder.path().join("blobs/.tmp")).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_put_on_a_full_disk_says_so_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = FileBlobs::open_or_create(&folder.path().join("blobs")).unwrap();
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            let outcome = blobs.shared.put_with(&key("snap/a/b"), |temporary| {
                fs::write(temporary, "half of it")?;
                Err::<(), _>(kind.into())
            });
            assert!(outcome.unwrap_err().has_no_room());
            assert_eq!(fs::read_dir(folder.path().join("blobs/.tmp")).unwrap().count(), 0);
        }
        let outcome = blobs.shared.put_with(&key("snap/a/b"), |_| Err::<(), _>(io::ErrorKind::Other.into()));
        assert!(!outcome.unwrap_err().has_no_room());
    }

    #[tokio::test]
    async fn a_file_that_was_cut_short_ends_with_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = FileBlobs::open_or_create(&folder.path().join("blobs")).unwrap();
        blobs.put(&key("snap/a/b"), Bytes::from(vec![7; 600_000])).await.unwrap();
        let blob = blobs.get(&key("snap/a/b")).await.unwrap().unwrap();
        File::options()
            .write(true)
            .open(folder.path().join("blobs/snap/a/b"))
            .unwrap()
            .set_len(300_000)
            .unwrap();
        assert!(matches!(blob.into_bytes().await, Err(PortError::NotDone { .. })));
    }
}

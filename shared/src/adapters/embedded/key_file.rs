//! The master key in a file.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use zeroize::Zeroizing;

use super::disk::{create_private_file, sync_folder};
use crate::adapters::master_key::KeyRing;
use crate::ports::{BoxError, DataKey, Ids, KeyContext, Keys, KeysError, PortError, Wrap, WrappedKey};

/// The prefix of a key, with the version of the format.
const PREFIX: &str = "statewright-master-key-1:";

/// The comment for a person who opens the file. The program ignores lines that start with `#`.
const EXPLANATION: &str = "\
# The master key of this Statewright folder. Together with the folder, it opens every secret; without
# it, no secret can be read. Keep a copy where the folder's backups are not.
";

/// The comment while the first key replaces the others.
const SEVERAL: &str = "\
# The first key wraps. What the others have wrapped is being wrapped again: `statewright key rotate`.
";

/// Why a key file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// Users other than its owner may use it.
    #[error(
        "{} is open to users other than its owner (mode {mode:03o}). Run: chmod 600 {}",
        path.display(),
        path.display()
    )]
    Exposed { path: PathBuf, mode: u32 },
    /// It does not contain a key of a known format.
    #[error(
        "{} is not a master key that this program can read. Restore the file from your copy",
        path.display()
    )]
    Malformed { path: PathBuf },
    /// It could not be read.
    #[error("{} could not be read", path.display())]
    Read {
        path: PathBuf,
        /// The system's own error.
        #[source]
        source: io::Error,
    },
    /// It could not be created.
    #[error("{} could not be created", path.display())]
    Create {
        path: PathBuf,
        /// The system's own error.
        #[source]
        source: io::Error,
    },
}

/// Data keys under the master keys in a file. Clones share them.
///
/// There is one master key, and more while it is being replaced: the first wraps, all of them open. Another
/// process may replace the file at any time, so it is checked before a data key is made, and read again when a
/// wrapped key names an unknown master key.
#[derive(Clone)]
pub struct FileKeys {
    shared: Arc<Shared>,
    ids: Arc<dyn Ids>,
}

struct Shared {
    path: PathBuf,
    loaded: Mutex<Loaded>,
}

/// The keys as they were read, and the file they came from.
struct Loaded {
    ring: KeyRing,
    version: FileVersion,
}

/// Identifies a version of the file.
type FileVersion = (u64, u64, Option<SystemTime>);

/// Master keys, the newest first.
type MasterKeys = Vec<Zeroizing<[u8; 32]>>;

impl FileKeys {
    /// Draws a master key from `ids` and stores it at `path`, for its owner alone. A crash leaves the whole
    /// file or none.
    ///
    /// # Errors
    /// [`KeyFileError::Create`], also when there is a file already: a master key is never overwritten.
    pub fn create(path: &Path, ids: Arc<dyn Ids>) -> Result<Self, KeyFileError> {
        let text = write(&[draw(ids.as_ref())]);
        create_whole_file(path, &temporary_name(ids.as_ref()), text.as_bytes())
            .map_err(|source| KeyFileError::Create { path: path.to_owned(), source })?;
        Self::open(path, ids)
    }

    /// Reads the master keys at `path`. Data keys are drawn from `ids`.
    ///
    /// # Errors
    /// See [`KeyFileError`]; a file that others could have read or changed is refused.
    pub fn open(path: &Path, ids: Arc<dyn Ids>) -> Result<Self, KeyFileError> {
        let (keys, version) = read(path)?;
        let loaded = Loaded { ring: ring(&keys), version };
        Ok(Self { shared: Arc::new(Shared { path: path.to_owned(), loaded: Mutex::new(loaded) }), ids })
    }

    /// The number of master keys in the file now: 1, or more while the first replaces the others.
    ///
    /// # Errors
    /// See [`KeyFileError`].
    pub fn master_count(&self) -> Result<usize, KeyFileError> {
        Ok(read(&self.shared.path)?.0.len())
    }

    /// Puts a new master key before the others, which still open what they have wrapped. A crash leaves the old
    /// file or the new one. For one caller at a time: see [`super::DataFolder::lock_keys`].
    ///
    /// # Errors
    /// See [`KeyFileError`].
    pub fn add_master(&self) -> Result<(), KeyFileError> {
        let (mut keys, _) = read(&self.shared.path)?;
        keys.insert(0, draw(self.ids.as_ref()));
        self.replace(&keys)
    }

    /// Deletes all master keys but the newest. Data keys under another one cannot be opened any more. For one
    /// caller at a time.
    ///
    /// # Errors
    /// See [`KeyFileError`].
    pub fn forget_old_masters(&self) -> Result<(), KeyFileError> {
        let (mut keys, _) = read(&self.shared.path)?;
        keys.truncate(1);
        self.replace(&keys)
    }

    fn replace(&self, keys: &MasterKeys) -> Result<(), KeyFileError> {
        let path = &self.shared.path;
        replace_file(path, &temporary_name(self.ids.as_ref()), write(keys).as_bytes())
            .map_err(|source| KeyFileError::Create { path: path.clone(), source })?;
        let mut loaded = self.lock();
        self.load(&mut loaded)
    }

    fn load(&self, loaded: &mut Loaded) -> Result<(), KeyFileError> {
        let (keys, version) = read(&self.shared.path)?;
        *loaded = Loaded { ring: ring(&keys), version };
        Ok(())
    }

    /// The keys that the file has now.
    fn newest(&self) -> Result<MutexGuard<'_, Loaded>, KeysError> {
        const WHAT: &str = "reading the master key";
        let not_done = |error| KeysError::Port(PortError::not_done(WHAT, error));
        let mut loaded = self.lock();
        let metadata = fs::metadata(&self.shared.path).map_err(|error| not_done(BoxError::from(error)))?;
        if file_version(&metadata) != loaded.version {
            self.load(&mut loaded).map_err(|error| not_done(error.into()))?;
        }
        Ok(loaded)
    }

    /// The keys as last read, or those of the file now if they lack the requested one.
    fn knowing(&self, wrapped: &WrappedKey) -> Result<MutexGuard<'_, Loaded>, KeysError> {
        let loaded = self.lock();
        if loaded.ring.knows(wrapped) {
            return Ok(loaded);
        }
        drop(loaded);
        self.newest()
    }

    fn lock(&self) -> MutexGuard<'_, Loaded> {
        self.shared.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FileKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileKeys(..)")
    }
}

#[async_trait]
impl Keys for FileKeys {
    async fn generate(&self, context: &KeyContext) -> Result<(DataKey, WrappedKey), KeysError> {
        self.newest()?.ring.generate(self.ids.as_ref(), context)
    }

    async fn unwrap(&self, wrapped: &WrappedKey, context: &KeyContext) -> Result<DataKey, KeysError> {
        self.knowing(wrapped)?.ring.unwrap(wrapped, context)
    }

    async fn rewrap(
        &self,
        wrapped: &WrappedKey,
        context: &KeyContext,
    ) -> Result<Option<WrappedKey>, KeysError> {
        self.newest()?.ring.rewrap(wrapped, self.ids.as_ref(), context)
    }
}

#[async_trait]
impl Wrap for FileKeys {
    async fn wrap(&self, key: &DataKey, context: &KeyContext) -> Result<WrappedKey, KeysError> {
        self.newest()?.ring.wrap(key, self.ids.as_ref(), context)
    }
}

fn draw(ids: &dyn Ids) -> Zeroizing<[u8; 32]> {
    let mut bytes = Zeroizing::new([0; 32]);
    ids.fill(bytes.as_mut());
    bytes
}

fn ring(keys: &MasterKeys) -> KeyRing {
    KeyRing::new(keys.iter().map(|key| &**key))
}

fn temporary_name(ids: &dyn Ids) -> String {
    format!(".master-key-{}", ids.uuid().simple())
}

fn read(path: &Path) -> Result<(MasterKeys, FileVersion), KeyFileError> {
    let failed = |source| KeyFileError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    refuse_if_exposed(path, &metadata)?;
    let mut text = Zeroizing::new(String::new());
    // A key file has some hundred bytes; a longer file is not read to its end.
    file.take(4096).read_to_string(&mut text).map_err(failed)?;
    let keys = parse(&text).ok_or_else(|| KeyFileError::Malformed { path: path.to_owned() })?;
    Ok((keys, file_version(&metadata)))
}

#[cfg(unix)]
fn file_version(metadata: &fs::Metadata) -> FileVersion {
    (std::os::unix::fs::MetadataExt::ino(metadata), metadata.len(), metadata.modified().ok())
}

#[cfg(not(unix))]
fn file_version(metadata: &fs::Metadata) -> FileVersion {
    (0, metadata.len(), metadata.modified().ok())
}

/// The keys in the text of a key file: its lines except blank ones and comments, all different.
fn parse(text: &str) -> Option<MasterKeys> {
    let mut keys = MasterKeys::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut bytes = Zeroizing::new([0; 32]);
        hex::decode_to_slice(line.strip_prefix(PREFIX)?, bytes.as_mut()).ok()?;
        if keys.contains(&bytes) {
            return None;
        }
        keys.push(bytes);
    }
    (!keys.is_empty()).then_some(keys)
}

/// The text of a key file.
fn write(keys: &[Zeroizing<[u8; 32]>]) -> Zeroizing<String> {
    let mut text = Zeroizing::new(EXPLANATION.to_owned());
    if keys.len() > 1 {
        text.push_str(SEVERAL);
    }
    for key in keys {
        text.push_str(PREFIX);
        text.push_str(&Zeroizing::new(hex::encode(key.as_ref())));
        text.push('\n');
    }
    text
}

/// Replaces a file by a whole new one.
fn replace_file(path: &Path, temporary_name: &str, body: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = folder.join(temporary_name);
    let replaced = create_private_file(&temporary).and_then(|mut file| {
        file.write_all(body)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    if replaced.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    replaced.and_then(|()| sync_folder(folder))
}

/// Creates a file that is whole from the moment it has its name; fails if the name is taken.
fn create_whole_file(path: &Path, temporary_name: &str, body: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = folder.join(temporary_name);
    let linked = create_private_file(&temporary).and_then(|mut file| {
        file.write_all(body)?;
        file.sync_all()?;
        // A rename would replace a file of that name; a link does not.
        fs::hard_link(&temporary, path)
    });
    let removed = fs::remove_file(&temporary);
    linked.and(removed)?;
    sync_folder(folder)
}

#[cfg(unix)]
fn refuse_if_exposed(path: &Path, metadata: &fs::Metadata) -> Result<(), KeyFileError> {
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    match mode & !0o600 {
        0 => Ok(()),
        _ => Err(KeyFileError::Exposed { path: path.to_owned(), mode }),
    }
}

/// On other systems the folder's access list protects the file.
#[cfg(not(unix))]
fn refuse_if_exposed(_path: &Path, _metadata: &fs::Metadata) -> Result<(), KeyFileError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn the_key_is_the_line_that_is_not_a_comment() {
        let expected: [u8; 32] = std::array::from_fn(|n| n as u8);
        for text in [
            format!("{PREFIX}{DIGITS}"),
            format!("{EXPLANATION}{PREFIX}{DIGITS}\n"),
            format!("\r\n # mine\r\n{PREFIX}{DIGITS} \r\n\r\n"),
        ] {
            assert_eq!(parse(&text), Some(vec![Zeroizing::new(expected)]), "{text:?}");
        }
    }

    #[test]
    fn what_is_written_reads_back_in_order() {
        for count in 1..=3 {
            let keys: MasterKeys = (0..count).map(|n| Zeroizing::new([n; 32])).collect();
            assert_eq!(parse(&write(&keys)).as_ref(), Some(&keys));
        }
    }

    #[test]
    fn anything_else_is_not_a_key() {
        for text in [
            String::new(),
            EXPLANATION.to_owned(),
            DIGITS.to_owned(),
            format!("statewright-master-key-2:{DIGITS}"),
            format!("{PREFIX}{DIGITS}00"),
            format!("{PREFIX}{}", DIGITS.replace("1f", "")),
            format!("{PREFIX}{}", DIGITS.replace("1f", "1g")),
            format!("{PREFIX}{DIGITS}\n{PREFIX}{DIGITS}"),
        ] {
            assert!(parse(&text).is_none(), "{text:?}");
        }
    }
}

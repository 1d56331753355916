//! The master key in a file.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use zeroize::Zeroizing;

use super::disk::{create_private_file, sync_folder};
use crate::adapters::master_key::MasterKey;
use crate::ports::{DataKey, Ids, KeyContext, Keys, KeysError, WrappedKey};

/// What stands before the key, with the version of the format.
const PREFIX: &str = "statewright-master-key-1:";

/// What a person sees who opens the file. Lines that start with `#` mean nothing to the program.
const EXPLANATION: &str = "\
# The master key of this Statewright folder. Whoever has it and the folder can read every secret;
# without it nobody can. Keep a copy where the folder's backups are not.
";

/// Why a key file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// Others than its owner may use it.
    #[error(
        "{} can be used by others than its owner (mode {mode:03o}). Run: chmod 600 {}",
        path.display(),
        path.display()
    )]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It does not hold a key of a known format.
    #[error(
        "{} is not a master key that this program can read. Restore the file from your copy",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// It could not be read.
    #[error("{} could not be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's own error.
        #[source]
        source: io::Error,
    },
    /// It could not be made.
    #[error("{} could not be made", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's own error.
        #[source]
        source: io::Error,
    },
}

/// Data keys under a master key that lies in a file. Clones share it.
#[derive(Clone)]
pub struct FileKeys {
    master: Arc<MasterKey>,
    ids: Arc<dyn Ids>,
}

impl FileKeys {
    /// Draws a master key from `ids` and stores it at `path`, for its owner alone. A crash leaves the whole file or
    /// none.
    ///
    /// # Errors
    /// [`KeyFileError::Create`], also when there is a file already: a master key is never overwritten.
    pub fn create(path: &Path, ids: Arc<dyn Ids>) -> Result<Self, KeyFileError> {
        let mut bytes = Zeroizing::new([0; 32]);
        ids.fill(bytes.as_mut());
        let text = Zeroizing::new(format!(
            "{EXPLANATION}{PREFIX}{}\n",
            Zeroizing::new(hex::encode(bytes.as_ref())).as_str()
        ));
        create_whole_file(path, &format!(".master-key-{}", ids.uuid().simple()), text.as_bytes())
            .map_err(|source| KeyFileError::Create { path: path.to_owned(), source })?;
        Ok(Self { master: Arc::new(MasterKey::new(&bytes)), ids })
    }

    /// Reads the master key at `path`. Data keys are drawn from `ids`.
    ///
    /// # Errors
    /// See [`KeyFileError`]; a file that others could have read or changed is refused.
    pub fn open(path: &Path, ids: Arc<dyn Ids>) -> Result<Self, KeyFileError> {
        let failed = |source| KeyFileError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        refuse_if_exposed(path, &file.metadata().map_err(failed)?)?;
        let mut text = Zeroizing::new(String::new());
        // A key file has some hundred bytes; whatever else lies there is not read to its end.
        file.take(4096).read_to_string(&mut text).map_err(failed)?;
        let bytes = parse(&text).ok_or_else(|| KeyFileError::Malformed { path: path.to_owned() })?;
        Ok(Self { master: Arc::new(MasterKey::new(&bytes)), ids })
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
        self.master.generate(self.ids.as_ref(), context)
    }

    async fn unwrap(&self, wrapped: &WrappedKey, context: &KeyContext) -> Result<DataKey, KeysError> {
        self.master.unwrap(wrapped, context)
    }
}

/// The key in the text of a key file: its one line that is neither blank nor an explanation.
fn parse(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    let mut bytes = Zeroizing::new([0; 32]);
    hex::decode_to_slice(line.strip_prefix(PREFIX)?, bytes.as_mut()).ok()?;
    Some(bytes)
}

/// Makes a file that is whole from the moment it has its name, and fails when the name is taken.
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

/// Elsewhere the folder's access list guards the file.
#[cfg(not(unix))]
fn refuse_if_exposed(_path: &Path, _metadata: &fs::Metadata) -> Result<(), KeyFileError> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn the_key_is_the_one_line_that_is_no_explanation() {
        let expected: [u8; 32] = std::array::from_fn(|n| n as u8);
        for text in [
            format!("{PREFIX}{DIGITS}"),
            format!("{EXPLANATION}{PREFIX}{DIGITS}\n"),
            format!("\r\n # mine\r\n{PREFIX}{DIGITS} \r\n\r\n"),
        ] {
            assert_eq!(parse(&text).as_deref(), Some(&expected), "{text:?}");
        }
    }

    #[test]
    fn anything_else_is_no_key() {
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

//! File operations that the standard library lacks, for files that must survive the loss of power.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

use crate::ports::{BoxError, NoRoom};

/// Syncs a folder's list of names: a file that was created, renamed or deleted in it stays so.
#[cfg(unix)]
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// On other systems the file system journals names by itself, and a folder cannot be opened as a file.
#[cfg(not(unix))]
pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Converts an I/O error; a full disk becomes [`StoreFull`].
pub(super) fn why(error: io::Error) -> BoxError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => NoRoom::because(error),
        _ => error.into(),
    }
}

/// Creates a folder that only its owner may enter.
pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Creates a file that only its owner may read and write; fails if the name is taken.
pub(super) fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens a lock file, which is never deleted; creates it for its owner alone if there is none.
pub(super) fn open_lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether any user may add files to a folder or delete them.
#[cfg(unix)]
pub(super) fn is_for_all(folder: &Path) -> io::Result<bool> {
    let metadata = std::fs::metadata(folder)?;
    Ok(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o002 != 0)
}

/// Other systems do not express permissions as a mode.
#[cfg(not(unix))]
pub(super) fn is_for_all(_folder: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Whether users other than its owner may access a folder.
#[cfg(unix)]
pub(super) fn is_for_others(folder: &Path) -> io::Result<bool> {
    let metadata = std::fs::metadata(folder)?;
    Ok(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0)
}

/// Other systems do not express permissions as a mode.
#[cfg(not(unix))]
pub(super) fn is_for_others(_folder: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Restricts an existing folder to its owner.
#[cfg(unix)]
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))
}

/// Other systems do not express permissions as a mode.
#[cfg(not(unix))]
pub(super) fn make_private(_folder: &Path) -> io::Result<()> {
    Ok(())
}

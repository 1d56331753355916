//! What the standard library leaves open about files that must survive the loss of power.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

use crate::ports::{BoxError, NoRoom};

/// Writes a folder's list of names to the disk: a file that was made, renamed or removed in it stays so.
#[cfg(unix)]
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Elsewhere the file system journals its names by itself, and a folder cannot be opened as a file.
#[cfg(not(unix))]
pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// What a failure is told as: a full disk is told apart from all else.
pub(super) fn why(error: io::Error) -> BoxError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => NoRoom::because(error),
        _ => error.into(),
    }
}

/// Makes a folder that only its owner may enter.
pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Makes a file that only its owner may read and write; fails when there is one of that name.
pub(super) fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens a file that stays, to be locked; made, if there is none, for its owner alone.
pub(super) fn open_lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Whether anybody may put files into a folder, or take them out of it.
#[cfg(unix)]
pub(super) fn is_for_all(folder: &Path) -> io::Result<bool> {
    let metadata = std::fs::metadata(folder)?;
    Ok(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o002 != 0)
}

/// Elsewhere permissions are not told by a mode.
#[cfg(not(unix))]
pub(super) fn is_for_all(_folder: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Whether users other than its owner may do anything with a folder.
#[cfg(unix)]
pub(super) fn is_for_others(folder: &Path) -> io::Result<bool> {
    let metadata = std::fs::metadata(folder)?;
    Ok(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0)
}

/// Elsewhere permissions are not told by a mode.
#[cfg(not(unix))]
pub(super) fn is_for_others(_folder: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Lets only its owner into a folder that is there.
#[cfg(unix)]
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))
}

/// Elsewhere permissions are not told by a mode.
#[cfg(not(unix))]
pub(super) fn make_private(_folder: &Path) -> io::Result<()> {
    Ok(())
}

//! Files that this program writes into the folder of a configuration.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};

/// The first line of each file, except the link, which is known by its name.
pub(crate) const HEADER: &str = "# Managed by statewright";

/// The file found where this program wants to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// A file of this program, with this text.
    Ours(String),
    /// Any other file.
    Theirs,
}

/// Reads the file.
///
/// # Errors
/// If the file exists and cannot be read.
pub(crate) fn read(file: &Path) -> anyhow::Result<Found> {
    match fs::read(file) {
        Ok(text) => Ok(match String::from_utf8(text) {
            Ok(text) if text.starts_with(HEADER) => Found::Ours(text),
            _ => Found::Theirs,
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Writes a file, replacing one of this program. `force` replaces any file.
///
/// # Errors
/// If there is another file, or the folder is not writable.
pub(crate) fn write(file: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    match read(file)? {
        Found::Ours(found) if found == text => return Ok(()),
        Found::Theirs if !force => bail!(
            "{} exists and was not written by statewright: move it away, or replace it with --force",
            file.display()
        ),
        Found::Nothing | Found::Ours(_) | Found::Theirs => {}
    }
    replace(file, text)
}

/// Replaces a file atomically.
///
/// # Errors
/// If the folder is not writable.
pub(crate) fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    replace_with(file, text, 0o644)
}

/// Like [`replace`], with this mode, for files with secrets.
///
/// # Errors
/// Like [`replace`].
pub(crate) fn replace_with(file: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let write = || -> anyhow::Result<()> {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mode = fs::Permissions::from_mode(mode);
        let mut new =
            tempfile::Builder::new().prefix(".statewright-").permissions(mode).tempfile_in(folder)?;
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(file)?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_replaced_only_by_force() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("backend.tf");
        let ours = |text: &str| format!("{HEADER}: {text}\n");
        write(&file, &ours("a"), false).unwrap();
        write(&file, &ours("b"), false).unwrap();
        assert_eq!(read(&file).unwrap(), Found::Ours(ours("b")));
        fs::write(&file, "terraform {}\n").unwrap();
        let refused = write(&file, &ours("c"), false).unwrap_err().to_string();
        assert!(refused.contains("backend.tf") && refused.contains("--force"), "{refused}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "terraform {}\n");
        write(&file, &ours("c"), true).unwrap();
        assert_eq!(read(&file).unwrap(), Found::Ours(ours("c")));
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["backend.tf"]);
    }

    #[test]
    fn a_binary_file_is_another_programs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("backend.tf");
        fs::write(&file, b"\xff\xfe").unwrap();
        assert_eq!(read(&file).unwrap(), Found::Theirs);
    }
}

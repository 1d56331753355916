//! Files that this program writes into the folder of a configuration.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, bail};

/// How each of them begins, beside the link, whose name is ours.
pub(crate) const HEADER: &str = "# Managed by statewright";

/// What lies where a file of ours is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// One of ours, with this text.
    Ours(String),
    /// Somebody's.
    Theirs,
}

/// Looks at the place of a file.
///
/// # Errors
/// If what is there cannot be read.
pub(crate) fn look(file: &Path) -> anyhow::Result<Found> {
    match fs::read(file) {
        Ok(text) => Ok(match String::from_utf8(text) {
            Ok(text) if text.starts_with(HEADER) => Found::Ours(text),
            _ => Found::Theirs,
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Nothing),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Writes a file of ours, in the place of one of ours. `force` lets it take the place of any.
///
/// # Errors
/// If somebody else's is there; if the folder cannot be written to.
pub(crate) fn write(file: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    match look(file)? {
        Found::Ours(found) if found == text => return Ok(()),
        Found::Theirs if !force => bail!(
            "{} is there and was not written by statewright: move it away, or say --force to have it replaced",
            file.display()
        ),
        Found::Nothing | Found::Ours(_) | Found::Theirs => {}
    }
    replace(file, text)
}

/// Writes a file that is there whole or not at all, in the place of what was there.
///
/// # Errors
/// If the folder cannot be written to.
pub(crate) fn replace(file: &Path, text: &str) -> anyhow::Result<()> {
    replace_with(file, text, 0o644)
}

/// As [`replace`], with this mode: for what holds secrets.
///
/// # Errors
/// As there.
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
    fn a_file_of_somebody_else_stays_unless_it_is_meant() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("backend.tf");
        let ours = |text: &str| format!("{HEADER}: {text}\n");
        write(&file, &ours("a"), false).unwrap();
        write(&file, &ours("b"), false).unwrap();
        assert_eq!(look(&file).unwrap(), Found::Ours(ours("b")));
        fs::write(&file, "terraform {}\n").unwrap();
        let refused = write(&file, &ours("c"), false).unwrap_err().to_string();
        assert!(refused.contains("backend.tf") && refused.contains("--force"), "{refused}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "terraform {}\n");
        write(&file, &ours("c"), true).unwrap();
        assert_eq!(look(&file).unwrap(), Found::Ours(ours("c")));
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["backend.tf"]);
    }

    #[test]
    fn what_is_no_text_is_somebody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("backend.tf");
        fs::write(&file, b"\xff\xfe").unwrap();
        assert_eq!(look(&file).unwrap(), Found::Theirs);
    }
}

//! The cache of built tools: a folder outside the tree. Each tool's folder has the SHA-256 of everything that
//! went into it in its name.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::ToolError;
use crate::stopwatch::Stopwatch;

/// A tool that is ready to run.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The program, or for a set of programs their folder.
    pub path: PathBuf,
    /// False if it was found in the cache.
    pub built: bool,
}

/// The folder with the sources of a tool.
pub(crate) fn sources(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// Reports progress on the terminal, also from within a test, whose output cargo shows only after a failure.
fn say(what: fmt::Arguments<'_>) {
    // A closed terminal loses nothing that matters.
    let _ = writeln!(io::stderr(), "tools: {what}");
}

/// The folder in the cache for this name and key. `fill` makes it if it does not exist.
///
/// A folder in the cache is always complete: it is filled under another name and then renamed.
pub(crate) fn in_cache(
    name: &str,
    key: &str,
    fill: impl FnOnce(&Path) -> Result<(), ToolError>,
) -> Result<Ready, ToolError> {
    let cache = cache_folder()?;
    let finished = cache.join(format!("{name}-{key}"));
    if finished.is_dir() {
        return Ok(Ready { path: finished, built: false });
    }
    fs::create_dir_all(&cache).map_err(ToolError::io("cannot make", &cache))?;
    let lock_path = cache.join(format!("{name}-{key}.lock"));
    let lock = File::create(&lock_path).map_err(ToolError::io("cannot make", &lock_path))?;
    // Held until `lock` is dropped, or the process dies.
    if lock.try_lock().is_err() {
        say(format_args!("another process builds {name}: waiting for it"));
        lock.lock().map_err(ToolError::io("cannot lock", &lock_path))?;
    }
    if finished.is_dir() {
        return Ok(Ready { path: finished, built: false });
    }
    let filling = tempfile::Builder::new()
        .prefix(&format!(".{name}-"))
        .tempdir_in(&cache)
        .map_err(ToolError::io("cannot make a folder in", &cache))?;
    say(format_args!("building {name}, once"));
    let watch = Stopwatch::start();
    fill(filling.path())?;
    fs::rename(filling.path(), &finished).map_err(ToolError::io("cannot rename to", &finished))?;
    say(format_args!("{name} is built, after {:.0} s", watch.elapsed().as_secs_f64()));
    // It was renamed, so there is nothing left to remove.
    let _ = filling.keep();
    Ok(Ready { path: finished, built: true })
}

fn cache_folder() -> Result<PathBuf, ToolError> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("STATEWRIGHT_TOOLS_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("statewright-tools")))
        .or_else(|| Some(set("HOME")?.join(".cache").join("statewright-tools")))
        .ok_or(ToolError::NoCache)
        // Go runs in the folder of its sources, where a relative path would point elsewhere.
        .and_then(|folder| std::path::absolute(&folder).map_err(ToolError::io("cannot find", &folder)))
}

/// Hashes names and contents of all files of a folder, in order of name. Documentation does not count.
pub(crate) fn hash_sources(folder: &Path, key: &mut Sha256) -> Result<(), ToolError> {
    let reading = || ToolError::io("cannot read", folder);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(reading())? {
        let path = entry.map_err(reading())?.path();
        if path.extension() != Some(OsStr::new("md")) {
            files.push(path);
        }
    }
    files.sort();
    for file in files {
        feed(key, file.file_name().unwrap_or_default().as_encoded_bytes());
        feed(key, &fs::read(&file).map_err(ToolError::io("cannot read", &file))?);
    }
    Ok(())
}

/// Hashes a field after its length, so that no two sequences of fields produce the same hash.
pub(crate) fn feed(key: &mut Sha256, field: &[u8]) {
    key.update((field.len() as u64).to_be_bytes());
    key.update(field);
}

/// Half of the hash is enough to distinguish builds.
pub(crate) fn short_hex(key: Sha256) -> String {
    key.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Copies a read-only folder into a writable one.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> Result<(), ToolError> {
    fs::create_dir_all(to).map_err(ToolError::io("cannot make", to))?;
    for entry in fs::read_dir(from).map_err(ToolError::io("cannot read", from))? {
        let path = entry.map_err(ToolError::io("cannot read", from))?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_tree(&path, &target)?;
        } else {
            let text = fs::read(&path).map_err(ToolError::io("cannot read", &path))?;
            fs::write(&target, text).map_err(ToolError::io("cannot write", &target))?;
        }
    }
    Ok(())
}

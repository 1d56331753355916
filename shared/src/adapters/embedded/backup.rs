//! Backups of a data folder, made while its server may be running.
//!
//! | name | content |
//! | --- | --- |
//! | `backup.json` | says which files below belong to the last finished backup; written last |
//! | `ledger-….sqlite` | the ledger at one moment |
//! | `master-….key` | the master key, unless it was left out |
//! | `blobs/` | the blobs, each under its key |
//! | `lock` | locked by the process that makes the backup |
//!
//! The ledger is copied first and the blobs after it: a blob never changes and exists before any item names it,
//! so every blob that the copied ledger names exists, unless it was deleted meanwhile. A backup into the same
//! folder copies only new blobs, and replaces the last backup when `backup.json` is replaced. No file has a
//! name that a server looks for, so a backup is never served by mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::disk::{create_private_file, sync_folder};
use super::folder::{self, Files, is_there};
use super::{DataFolder, FileBlobs, FileKeys, FolderError, KeyFileError, OpenLedgerError, SqliteLedger};
use crate::adapters::SystemIds;
use crate::ports::{BlobKey, BoxError, Ids, Item, ItemKey, PortError, Timestamp};

/// The blobs that an item names, each with the hex SHA-256 of its bytes if the item has it.
pub type Named = fn(&Item) -> Result<Vec<(BlobKey, Option<String>)>, BoxError>;

/// The format of `backup.json`, and the newest that this program reads.
const FORMAT: u32 = 1;

/// Blobs that are copied at once. Each waits for the disk, which syncs concurrent writes together.
const BLOBS_AT_ONCE: usize = 64;

const MANIFEST: &str = "backup.json";

/// `backup.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    /// The time of the backup, in RFC 3339.
    made: String,
    ledger: String,
    ledger_sha256: String,
    key: Option<String>,
    /// Blobs that the ledger names and that were deleted before they could be copied.
    missing: Vec<String>,
}

/// The contents of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackedUp {
    /// Items in the ledger.
    pub items: u64,
    /// Blobs of the server.
    pub blobs: u64,
    /// Blobs that were copied now; the others were in the backup already.
    pub blobs_copied: u64,
    /// Bytes of the blobs that were copied now.
    pub bytes_copied: u64,
    /// Blobs that the ledger names and that are absent: deleted during the backup, or missing before.
    pub missing: Vec<BlobKey>,
    /// Blobs whose bytes do not match the hash in the ledger. They are copied as they are.
    pub damaged: Vec<BlobKey>,
    /// Items that cannot be read, so that their blobs are unknown. They are copied as they are.
    pub unreadable: Vec<ItemKey>,
    /// Whether the backup contains the master key.
    pub has_key: bool,
}

/// The result of a restore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// The time of the backup, in RFC 3339.
    pub made: String,
    /// Items in the ledger.
    pub items: u64,
    /// Blobs that were copied.
    pub blobs: u64,
    /// Blobs that the ledger names and the backup lacks.
    pub missing: Vec<BlobKey>,
    /// Blobs whose bytes do not match the hash in the ledger.
    pub damaged: Vec<BlobKey>,
    /// Items that cannot be read.
    pub unreadable: Vec<ItemKey>,
}

/// The source and the options of a restore.
#[derive(Debug, Clone, Copy)]
pub struct RestoreFrom<'a> {
    pub backup: &'a Path,
    /// The master key, if the backup has none.
    pub key: Option<&'a Path>,
    /// Whether to continue when blobs are missing or damaged.
    pub despite_damage: bool,
}

/// Why a backup or a restore failed. Each text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The folder contains something else.
    #[error("{} is not empty and contains no backup. Nothing was changed. Choose another folder", path.display())]
    NotOurs { path: PathBuf },
    /// The target is inside the folder to copy.
    #[error("{} is inside the data folder. Choose a folder elsewhere, on another disk if there is one", path.display())]
    Inside { path: PathBuf },
    /// There is no finished backup.
    #[error(
        "{} holds no finished backup. Make one there with `statewright backup`, or name another folder",
        path.display()
    )]
    NoBackup { path: PathBuf },
    /// A newer program has made it.
    #[error("{} has format {found}, and this program reads only format {FORMAT}. Use the program that made it", path.display())]
    Newer { path: PathBuf, found: u32 },
    /// A file of the backup was changed.
    #[error("{} is damaged: it has changed since the backup. Use another backup", path.display())]
    Damaged { path: PathBuf },
    /// Blobs are missing or damaged.
    #[error(
        "blobs of the backup are missing ({missing}) or damaged ({damaged}): {names}. Use another backup, or add \
         --despite-damage to restore all the rest"
    )]
    LacksBlobs {
        missing: usize,
        damaged: usize,
        /// The names of the first of them.
        names: String,
    },
    /// The backup has no key and none was named.
    #[error("the backup in {} was made without the master key. Name your copy of it with --key", path.display())]
    KeyNeeded { path: PathBuf },
    /// The target of the restore is not empty.
    #[error("{} is not empty. Nothing was changed. Restore into a new folder", path.display())]
    TargetInUse { path: PathBuf },
    /// Another command is making a backup there.
    #[error("another command is making a backup into {}. Wait until it has ended", path.display())]
    Busy { path: PathBuf },
    /// The folder could not be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The ledger could not be opened.
    #[error(transparent)]
    Ledger(#[from] OpenLedgerError),
    /// The master key could not be used.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// Reading or writing failed.
    #[error(transparent)]
    Port(#[from] PortError),
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
}

fn system(path: &Path, what: &'static str) -> impl Fn(io::Error) -> BackupError {
    move |source| BackupError::System { path: path.to_owned(), what, source }
}

/// Makes a backup of a folder, whose server may be running. Calls `progress` with the number of blobs checked
/// so far and in total.
///
/// # Errors
/// See [`BackupError`]. An interrupted backup leaves the last finished one as it was; the next backup continues
/// it.
pub async fn back_up(
    source: &DataFolder,
    to: &Path,
    with_key: bool,
    at: Timestamp,
    named: Named,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<BackedUp, BackupError> {
    folder::make(to)?;
    let real = |path: &Path| fs::canonicalize(path).map_err(system(path, "read"));
    if real(to)?.starts_with(real(source.path())?) {
        return Err(BackupError::Inside { path: to.to_owned() });
    }
    let last = read_manifest(to)?;
    if last.is_none() && !is_empty_or_begun(to)? {
        return Err(BackupError::NotOurs { path: to.to_owned() });
    }
    let _lock = folder::lock(to).map_err(|error| match error {
        FolderError::Served { path, .. } => BackupError::Busy { path },
        other => other.into(),
    })?;
    remove_leftovers(to, last.as_ref())?;
    let id = SystemIds.uuid().simple().to_string();
    let (ledger_name, key_name) = (format!("ledger-{id}.sqlite"), format!("master-{id}.key"));
    let ledger_path = to.join(&ledger_name);
    {
        // The key must match the ledger, so hold the lock that keeps it from being replaced between the two
        // copies.
        let _keys = source.lock_keys()?;
        source.ledger.copy_to(&ledger_path).await?;
        if with_key {
            copy_private(&Files::in_folder(source.path()).key, &to.join(&key_name))?;
        }
    }
    let Names { items, blobs: names, unreadable } = {
        let ledger = SqliteLedger::open_existing(&ledger_path)?;
        names_in(&ledger, named).await?
    };
    let mut done = BackedUp { items, unreadable, has_key: with_key, ..BackedUp::default() };
    let blobs = FileBlobs::open_or_create(&to.join("blobs")).map_err(system(to, "made"))?;
    let keys = source.blobs.keys().await?;
    done.blobs = keys.len() as u64;
    let (from, into) = (&source.blobs, &blobs);
    let copies = keys.iter().map(|key| async move {
        let is_there = into.length(key).await? == from.length(key).await?;
        let copied = if is_there { None } else { into.copy_from(from, key).await? };
        Ok::<_, BackupError>((key, copied))
    });
    let mut copies = stream::iter(copies).buffered(BLOBS_AT_ONCE);
    let mut number = 0;
    while let Some((key, copied)) = copies.try_next().await? {
        if let Some(copied) = copied {
            done.blobs_copied += 1;
            done.bytes_copied += copied.bytes;
            if is_other(names.get(key), &copied.sha256) {
                done.damaged.push(key.clone());
            }
        }
        number += 1;
        progress(number, done.blobs);
    }
    for key in names.keys() {
        if names.get(key).is_some_and(Option::is_some) && blobs.length(key).await?.is_none() {
            done.missing.push(key.clone());
        }
    }
    let manifest = Manifest {
        format: FORMAT,
        made: at.to_rfc3339(),
        ledger_sha256: sha256_of(&ledger_path)?,
        ledger: ledger_name,
        key: with_key.then_some(key_name),
        missing: done.missing.iter().map(ToString::to_string).collect(),
    };
    write_manifest(to, &manifest)?;
    remove_leftovers(to, Some(&manifest))?;
    Ok(done)
}

/// Restores a backup into a folder that does not exist, is empty, or has an unfinished restore.
///
/// # Errors
/// See [`BackupError`]. Until everything is copied and verified, the folder is marked as unfinished, and
/// nothing opens it.
pub async fn restore(
    from: RestoreFrom<'_>,
    to: &Path,
    named: Named,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<Restored, BackupError> {
    let backup = from.backup;
    let manifest = read_manifest(backup)?.ok_or_else(|| BackupError::NoBackup { path: backup.to_owned() })?;
    let key = match (from.key, &manifest.key) {
        (Some(key), _) => key.to_owned(),
        (None, Some(name)) => backup.join(name),
        (None, None) => return Err(BackupError::KeyNeeded { path: backup.to_owned() }),
    };
    // Check the key first: a file that others may read, or that contains no key, is refused before anything is
    // created.
    FileKeys::open(&key, Arc::new(SystemIds))?;
    let ledger_copy = backup.join(&manifest.ledger);
    if sha256_of(&ledger_copy)? != manifest.ledger_sha256 {
        return Err(BackupError::Damaged { path: ledger_copy });
    }

    let names = Files::in_folder(to);
    let begun = is_there(&names.restoring)?;
    if !begun && !has_nothing_but(to, &["lock"])? {
        return Err(BackupError::TargetInUse { path: to.to_owned() });
    }
    folder::make(to)?;
    let _lock = folder::lock(to)?;
    if begun {
        clear(to, &names)?;
    } else {
        create_private_file(&names.restoring)
            .and_then(|file| file.sync_all())
            .and_then(|()| sync_folder(to))
            .map_err(system(&names.restoring, "made"))?;
    }
    copy_private(&key, &names.key)?;
    copy_private(&ledger_copy, &names.ledger)?;
    SqliteLedger::ready_copy(&names.ledger)?;
    let blobs = FileBlobs::open_or_create(&names.blobs).map_err(system(&names.blobs, "made"))?;
    let ledger = SqliteLedger::open_existing(&names.ledger)?;
    let keys = FileKeys::open(&names.key, Arc::new(SystemIds))?;
    folder::check(&ledger, &keys, None, &names).await?;

    let Names { items, blobs: named, unreadable } = names_in(&ledger, named).await?;
    let mut done = Restored { made: manifest.made, items, unreadable, ..Restored::default() };
    let source = FileBlobs::open_existing(&backup.join("blobs"));
    let all = source.keys().await?;
    let total = all.len() as u64;
    let (from_blobs, into) = (&source, &blobs);
    let copies = all
        .iter()
        .map(|key| async move { Ok::<_, BackupError>((key, into.copy_from(from_blobs, key).await?)) });
    let mut copies = stream::iter(copies).buffered(BLOBS_AT_ONCE);
    let mut number = 0;
    while let Some((key, copied)) = copies.try_next().await? {
        if let Some(copied) = copied {
            done.blobs += 1;
            if is_other(named.get(key), &copied.sha256) {
                done.damaged.push(key.clone());
            }
        }
        number += 1;
        progress(number, total);
    }
    let (copied, known): (BTreeSet<_>, BTreeSet<_>) =
        (all.iter().collect(), manifest.missing.iter().map(String::as_str).collect());
    for (key, sha256) in &named {
        if sha256.is_some() && !copied.contains(key) {
            done.missing.push(key.clone());
        }
    }
    // Only the backup could report the blobs that were deleted during it; a restore does not count them.
    let unexpected: Vec<&BlobKey> = done.missing.iter().filter(|key| !known.contains(key.as_str())).collect();
    let is_whole = unexpected.is_empty() && done.damaged.is_empty();
    if !is_whole && !from.despite_damage {
        let first = unexpected.iter().copied().chain(&done.damaged).take(5);
        return Err(BackupError::LacksBlobs {
            missing: unexpected.len(),
            damaged: done.damaged.len(),
            names: first.map(BlobKey::as_str).collect::<Vec<_>>().join(", "),
        });
    }
    // Close the ledger before the folder is valid: closing moves its log into the database.
    drop((ledger, keys));
    fs::remove_file(&names.restoring)
        .and_then(|()| sync_folder(to))
        .map_err(system(&names.restoring, "removed"))?;
    Ok(done)
}

/// The blobs that a ledger names.
#[derive(Default)]
struct Names {
    items: u64,
    blobs: BTreeMap<BlobKey, Option<String>>,
    unreadable: Vec<ItemKey>,
}

async fn names_in(ledger: &SqliteLedger, named: Named) -> Result<Names, BackupError> {
    let (mut names, mut after) = (Names::default(), None);
    loop {
        let page = ledger.scan("", after.as_ref(), 1000).await?;
        for item in &page.items {
            names.items += 1;
            match named(item) {
                Ok(named) => {
                    for (key, sha256) in named {
                        let known = names.blobs.entry(key).or_default();
                        *known = known.take().or(sha256);
                    }
                }
                Err(_) => names.unreadable.push(item.key.clone()),
            }
        }
        after = page.items.last().map(|item| item.key.clone());
        if !page.more {
            return Ok(names);
        }
    }
}

fn is_other(expected: Option<&Option<String>>, found: &str) -> bool {
    matches!(expected, Some(Some(expected)) if expected != found)
}

fn read_manifest(backup: &Path) -> Result<Option<Manifest>, BackupError> {
    /// The part that every format has.
    #[derive(Deserialize)]
    struct Any {
        format: u32,
    }
    let path = backup.join(MANIFEST);
    let text = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(system(&path, "read"))?,
    };
    let damaged = |_| BackupError::Damaged { path: path.clone() };
    let Any { format } = serde_json::from_slice(&text).map_err(damaged)?;
    if format > FORMAT {
        return Err(BackupError::Newer { path, found: format });
    }
    let manifest: Manifest = serde_json::from_slice(&text).map_err(damaged)?;
    // Accept only names of files in this folder, no path that leads out of it.
    let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '\\']) && !name.starts_with('.');
    if ![Some(&manifest.ledger), manifest.key.as_ref()].into_iter().flatten().all(|name| is_name(name)) {
        return Err(BackupError::Damaged { path });
    }
    Ok(Some(manifest))
}

/// Replaces the manifest. From this moment the folder contains the new backup.
fn write_manifest(backup: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    let (path, temporary) = (backup.join(MANIFEST), backup.join(format!("{MANIFEST}.new")));
    let text = serde_json::to_vec_pretty(manifest).expect("a manifest holds only what JSON can express");
    create_private_file(&temporary)
        .and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()?;
            sync_folder(backup)?;
            fs::rename(&temporary, &path)?;
            sync_folder(backup)
        })
        .map_err(system(&path, "written"))
}

/// Whether a backup uses this file name.
fn is_ours(name: &str) -> bool {
    name.starts_with("ledger-")
        || name.starts_with("master-")
        || matches!(name, MANIFEST | "backup.json.new" | "blobs" | "lock")
}

fn names_of(folder: &Path) -> Result<Vec<String>, BackupError> {
    let failed = system(folder, "read");
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries
            .map_err(&failed)?
            .map(|entry| Ok(entry.map_err(&failed)?.file_name().to_string_lossy().into_owned()))
            .collect(),
    }
}

/// Whether the folder is empty, or has only what an interrupted first backup leaves.
fn is_empty_or_begun(backup: &Path) -> Result<bool, BackupError> {
    let names = names_of(backup)?;
    // Without a copy of a ledger or the lock of a backup, blobs may belong to something else.
    let has_begun = names.iter().any(|name| name == "lock");
    Ok(names.is_empty() || (has_begun && names.iter().all(|name| is_ours(name))))
}

fn has_nothing_but(folder: &Path, but: &[&str]) -> Result<bool, BackupError> {
    Ok(names_of(folder)?.iter().all(|name| but.contains(&name.as_str())))
}

/// Deletes the files of interrupted and replaced backups.
fn remove_leftovers(backup: &Path, current: Option<&Manifest>) -> Result<(), BackupError> {
    for name in names_of(backup)? {
        let is_current = current.is_some_and(|manifest| {
            manifest.ledger == name || manifest.key.as_deref() == Some(name.as_str()) || name == MANIFEST
        });
        if is_ours(&name) && !is_current && !matches!(name.as_str(), "blobs" | "lock") {
            let path = backup.join(name);
            fs::remove_file(&path).map_err(system(&path, "removed"))?;
        }
    }
    Ok(())
}

/// Deletes what an interrupted restore has made; its mark stays.
fn clear(to: &Path, names: &Files) -> Result<(), BackupError> {
    for name in names_of(to)? {
        let path = to.join(&name);
        let removed = match name.as_str() {
            "blobs" => fs::remove_dir_all(&names.blobs),
            "lock" | "restoring" => Ok(()),
            name if name == "master.key" || name.starts_with("ledger.sqlite") => fs::remove_file(&path),
            _ => return Err(BackupError::TargetInUse { path: to.to_owned() }),
        };
        removed.map_err(system(&path, "removed"))?;
    }
    sync_folder(to).map_err(system(to, "synced"))
}

/// Copies a file to one with access for its owner alone, and syncs it.
fn copy_private(from: &Path, to: &Path) -> Result<(), BackupError> {
    let mut source = File::open(from).map_err(system(from, "read"))?;
    create_private_file(to)
        .and_then(|mut file| {
            io::copy(&mut source, &mut file)?;
            file.sync_all()?;
            to.parent().map_or(Ok(()), sync_folder)
        })
        .map_err(system(to, "written"))
}

fn sha256_of(path: &Path) -> Result<String, BackupError> {
    let mut file = File::open(path).map_err(system(path, "read"))?;
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; 256 * 1024]);
    loop {
        let length = file.read(&mut chunk).map_err(system(path, "read"))?;
        match chunk.get(..length) {
            Some(read) if !read.is_empty() => hash.update(read),
            Some(_) | None => return Ok(hex::encode(hash.finalize())),
        }
    }
}

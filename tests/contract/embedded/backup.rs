//! Backups of a data folder, and restores.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use statewright_shared::adapters::SystemIds;
use statewright_shared::adapters::embedded::{
    BackedUp, BackupError, DataFolder, FolderError, RestoreFrom, Restored, back_up, restore,
};
use statewright_shared::ports::{
    BlobKey, Blobs, BoxError, Expect, Ids, Item, ItemKey, KeyContext, Keys, Ledger, Timestamp, WrappedKey,
    Write, WriteAction,
};
use tempfile::TempDir;

const AT: Timestamp = Timestamp(1_767_225_600_000_000_000);

/// In these tests an item of the partition `BLOB` names a blob: key and hash.
fn named(item: &Item) -> Result<Vec<(BlobKey, Option<String>)>, BoxError> {
    if item.key.partition != "BLOB" {
        return Ok(Vec::new());
    }
    let text = std::str::from_utf8(&item.value)?;
    let (key, sha256) = text.split_once(' ').ok_or("no hash")?;
    Ok(vec![(BlobKey::parse(key).ok_or("no key")?, Some(sha256.to_owned()))])
}

async fn put(folder: &DataFolder, key: ItemKey, value: &str) {
    let value = Bytes::copy_from_slice(value.as_bytes());
    let action = WriteAction::Put { revision: SystemIds.revision(), value, expires: None };
    folder.ledger.commit(vec![Write { key, expect: Expect::Any, action }]).await.unwrap();
}

fn blob_key(name: &str) -> BlobKey {
    BlobKey::parse(&format!("snap/stack/{name}")).unwrap()
}

fn sha256(bytes: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Stores a blob and the item that names it.
async fn add(folder: &DataFolder, name: &str, bytes: &'static str) {
    folder.blobs.put(&blob_key(name), Bytes::from(bytes)).await.unwrap();
    put(folder, ItemKey::new("BLOB", name), &format!("{} {}", blob_key(name), sha256(bytes))).await;
}

struct Folders {
    _kept: TempDir,
    data: PathBuf,
    backup: PathBuf,
    restored: PathBuf,
}

fn folders() -> Folders {
    let kept = TempDir::new().unwrap();
    let at = |name| kept.path().join(name);
    Folders { data: at("data"), backup: at("backups/backup"), restored: at("restored"), _kept: kept }
}

async fn serve(path: &Path) -> Result<DataFolder, FolderError> {
    DataFolder::open_server(path, Arc::new(SystemIds)).await
}

async fn backed_up(folder: &DataFolder, to: &Path, with_key: bool) -> Result<BackedUp, BackupError> {
    back_up(folder, to, with_key, AT, named, &|_, _| {}).await
}

async fn restored(from: &Path, to: &Path) -> Result<Restored, BackupError> {
    let from = RestoreFrom { backup: from, key: None, despite_damage: false };
    restore(from, to, named, &|_, _| {}).await
}

/// A served folder with two blobs and a data key.
async fn server(folders: &Folders) -> (DataFolder, WrappedKey) {
    let folder = serve(&folders.data).await.unwrap();
    add(&folder, "one", "the first").await;
    add(&folder, "two", "the second").await;
    let (_, wrapped) = folder.keys.generate(&context()).await.unwrap();
    (folder, wrapped)
}

fn context() -> KeyContext {
    KeyContext { name: "stack", value: "one".to_owned() }
}

async fn blob(folder: &DataFolder, name: &str) -> Option<Bytes> {
    let blob = folder.blobs.get(&blob_key(name)).await.unwrap()?;
    Some(blob.into_bytes().await.unwrap())
}

async fn item(folder: &DataFolder, name: &str) -> Option<Item> {
    folder.ledger.get(&ItemKey::new("BLOB", name)).await.unwrap()
}

/// Files with their bytes below a folder.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(contents(&entry.path())),
            false => drop(all.insert(entry.path(), fs::read(entry.path()).unwrap())),
        }
    }
    all
}

#[tokio::test]
async fn a_backup_during_writes_is_one_moment_and_restores_whole() {
    let folders = folders();
    let (server, wrapped) = server(&folders).await;
    let command = DataFolder::open_beside(&folders.data, Arc::new(SystemIds)).await.unwrap();
    let made = backed_up(&command, &folders.backup, true).await.unwrap();
    assert_eq!((made.items, made.blobs, made.blobs_copied, made.bytes_copied), (3, 2, 2, 19));
    assert_eq!((made.missing, made.damaged, made.has_key), (vec![], vec![], true));
    // Later writes are not in it.
    add(&server, "three", "the third").await;

    let done = restored(&folders.backup, &folders.restored).await.unwrap();
    assert_eq!((done.items, done.blobs, done.made.as_str()), (3, 2, "2026-01-01T00:00:00Z"));
    let folder = serve(&folders.restored).await.unwrap();
    assert_eq!(blob(&folder, "one").await.unwrap(), "the first");
    assert_eq!(blob(&folder, "two").await.unwrap(), "the second");
    assert_eq!((item(&folder, "three").await, blob(&folder, "three").await), (None, None));
    folder.keys.unwrap(&wrapped, &context()).await.unwrap();
    // The restored folder works like any other.
    add(&folder, "four", "the fourth").await;
    drop(folder);
    assert!(item(&serve(&folders.restored).await.unwrap(), "four").await.is_some());
}

#[cfg(unix)]
#[tokio::test]
async fn backups_and_restored_folders_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let folders = folders();
    let (server, _) = server(&folders).await;
    backed_up(&server, &folders.backup, true).await.unwrap();
    restored(&folders.backup, &folders.restored).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for folder in [&folders.backup, &folders.restored] {
        assert_eq!((mode(folder), mode(&folder.join("blobs"))), (0o700, 0o700));
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_file() {
                assert_eq!(mode(&entry.path()), 0o600, "{name}");
            }
        }
    }
}

#[tokio::test]
async fn a_second_backup_copies_new_blobs_and_replaces_the_first() {
    let folders = folders();
    let (server, _) = server(&folders).await;
    backed_up(&server, &folders.backup, true).await.unwrap();
    add(&server, "three", "the third").await;
    let made = backed_up(&server, &folders.backup, true).await.unwrap();
    assert_eq!((made.items, made.blobs, made.blobs_copied), (4, 3, 1));
    let ledgers = contents(&folders.backup).into_keys().filter(|path| {
        path.ends_with("x") || { path.file_name().unwrap().to_string_lossy().starts_with("ledger-") }
    });
    assert_eq!(ledgers.count(), 1);
    restored(&folders.backup, &folders.restored).await.unwrap();
    assert_eq!(blob(&serve(&folders.restored).await.unwrap(), "three").await.unwrap(), "the third");
}

#[tokio::test]
async fn a_backup_without_the_key_needs_the_key_to_be_restored() {
    let folders = folders();
    let (server, wrapped) = server(&folders).await;
    let made = backed_up(&server, &folders.backup, false).await.unwrap();
    assert!(!made.has_key);
    let key = fs::read_to_string(folders.data.join("master.key")).unwrap();
    let key = key.lines().last().unwrap().to_owned();
    let holds_key = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).contains(&key);
    assert!(!contents(&folders.backup).values().any(holds_key));
    let refused = restored(&folders.backup, &folders.restored).await;
    assert!(matches!(refused, Err(BackupError::KeyNeeded { .. })), "{refused:?}");
    assert!(!folders.restored.exists());
    let wrong = folders.data.with_file_name("wrong.key");
    statewright_shared::adapters::embedded::FileKeys::create(&wrong, Arc::new(SystemIds)).unwrap();
    let from = |key| RestoreFrom { backup: &folders.backup, key: Some(key), despite_damage: false };
    let refused = restore(from(&wrong), &folders.restored, named, &|_, _| {}).await;
    assert!(matches!(refused, Err(BackupError::Folder(FolderError::KeyWrong { .. }))), "{refused:?}");
    // That was an unfinished restore; the next one continues in its folders.
    let right = folders.data.join("master.key");
    restore(from(&right), &folders.restored, named, &|_, _| {}).await.unwrap();
    serve(&folders.restored).await.unwrap().keys.unwrap(&wrapped, &context()).await.unwrap();
}

#[tokio::test]
async fn a_backup_uses_only_a_new_folder_or_one_with_a_backup() {
    let folders = folders();
    let (server, _) = server(&folders).await;
    let other = folders.data.with_file_name("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("letter.txt"), "Dear").unwrap();
    drop(serve(&folders.restored).await.unwrap());
    for folder in [&other, &folders.restored] {
        let before = contents(folder);
        let refused = backed_up(&server, folder, true).await;
        assert!(matches!(refused, Err(BackupError::NotOurs { .. })), "{refused:?}");
        assert_eq!(contents(folder), before);
    }
    assert_eq!(fs::read_dir(&other).unwrap().count(), 1);
    let refused = backed_up(&server, &folders.data.join("blobs/backup"), true).await;
    assert!(matches!(refused, Err(BackupError::Inside { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_restore_goes_into_a_new_folder_only() {
    let folders = folders();
    let (server, _) = server(&folders).await;
    let refused = restored(&folders.backup, &folders.restored).await;
    assert!(matches!(refused, Err(BackupError::NoBackup { .. })), "{refused:?}");
    backed_up(&server, &folders.backup, true).await.unwrap();
    drop(server);
    let before = contents(&folders.data);
    let refused = restored(&folders.backup, &folders.data).await;
    assert!(matches!(refused, Err(BackupError::TargetInUse { .. })), "{refused:?}");
    assert_eq!(contents(&folders.data), before);
    // A backup is not a data folder.
    let refused = serve(&folders.backup).await;
    assert!(matches!(refused, Err(FolderError::LedgerMissing { .. })), "{refused:?}");
    restored(&folders.backup, &folders.restored).await.unwrap();
    fs::create_dir(folders.data.with_file_name("empty")).unwrap();
    restored(&folders.backup, &folders.data.with_file_name("empty")).await.unwrap();
}

/// A copy of a folder without one of its files, or with only some, as a crash leaves it.
fn copy(from: &Path, to: &Path, keep: impl Fn(&Path) -> bool + Copy) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target, keep);
        } else if keep(&entry.path()) {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn an_interrupted_backup_keeps_the_last_one_and_is_repeatable() {
    let folders = folders();
    let (server, _) = server(&folders).await;
    // The first one: nothing is finished yet.
    backed_up(&server, &folders.backup, true).await.unwrap();
    let half = folders.backup.with_file_name("half");
    copy(&folders.backup, &half, |path| !path.ends_with("backup.json"));
    let refused = restored(&half, &folders.restored).await;
    assert!(matches!(refused, Err(BackupError::NoBackup { .. })), "{refused:?}");
    assert!(!folders.restored.exists());
    backed_up(&server, &half, true).await.unwrap();
    restored(&half, &folders.restored).await.unwrap();
    // The second one: its files are next to those of the first.
    let later = folders.backup.with_file_name("later");
    copy(&folders.backup, &later, |_| true);
    fs::write(later.join("ledger-half.sqlite"), "SQLite f").unwrap();
    fs::write(later.join("master-half.key"), "# The").unwrap();
    fs::write(later.join("backup.json.new"), "{").unwrap();
    let target = folders.restored.with_file_name("from-later");
    assert_eq!(restored(&later, &target).await.unwrap().blobs, 2);
    backed_up(&server, &later, true).await.unwrap();
    let names: Vec<String> = fs::read_dir(&later)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().into_string().unwrap())
        .filter(|name| name.contains("half") || name.ends_with(".new"))
        .collect();
    assert_eq!(names, [""; 0]);
}

#[tokio::test]
async fn a_restore_that_was_broken_off_is_never_served_and_done_again() {
    let folders = folders();
    let (server, _) = server(&folders).await;
    backed_up(&server, &folders.backup, true).await.unwrap();
    let whole = folders.restored.with_file_name("whole");
    restored(&folders.backup, &whole).await.unwrap();
    // What a crash leaves after each step: its mark, and then file after file.
    let steps: [&[&str]; 5] = [
        &["lock"],
        &["lock", "restoring"],
        &["lock", "restoring", "master.key"],
        &["lock", "restoring", "master.key", "ledger.sqlite"],
        &["lock", "restoring", "master.key", "ledger.sqlite", "one", "two"],
    ];
    for (number, there) in steps.into_iter().enumerate() {
        let target = folders.restored.with_file_name(format!("broken-off-{number}"));
        copy(&whole, &target, |path| there.iter().any(|name| path.ends_with(name)));
        if there.contains(&"restoring") {
            fs::write(target.join("restoring"), "").unwrap();
            for refused in [
                serve(&target).await,
                DataFolder::open_beside(&target, Arc::new(SystemIds)).await,
                DataFolder::open_alone(&target, Arc::new(SystemIds)).await,
            ] {
                assert!(matches!(refused, Err(FolderError::Unfinished { .. })), "{refused:?}");
            }
        } else {
            fs::remove_dir_all(target.join("blobs")).unwrap();
        }
        restored(&folders.backup, &target).await.unwrap();
        let folder = serve(&target).await.unwrap();
        assert_eq!(blob(&folder, "one").await.unwrap(), "the first");
    }
}

#[tokio::test]
async fn a_damaged_backup_names_the_damage_and_needs_an_option() {
    let folders = folders();
    let (server, _) = server(&folders).await;
    fs::remove_file(folders.data.join("blobs/snap/stack/one")).unwrap();
    fs::write(folders.data.join("blobs/snap/stack/two"), "not it").unwrap();
    let made = backed_up(&server, &folders.backup, true).await.unwrap();
    assert_eq!((made.missing, made.damaged), (vec![blob_key("one")], vec![blob_key("two")]));
    let refused = restored(&folders.backup, &folders.restored).await;
    let Err(BackupError::LacksBlobs { missing: 0, damaged: 1, names }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(names, "snap/stack/two");
    let from = RestoreFrom { backup: &folders.backup, key: None, despite_damage: true };
    let done = restore(from, &folders.restored, named, &|_, _| {}).await.unwrap();
    assert_eq!((done.missing, done.damaged), (vec![blob_key("one")], vec![blob_key("two")]));
    serve(&folders.restored).await.unwrap();
}

#[tokio::test]
async fn a_backup_whose_files_changed_since_is_refused() {
    let folders = folders();
    let (server, _) = server(&folders).await;
    backed_up(&server, &folders.backup, true).await.unwrap();
    let file = |start: &str| {
        let names = fs::read_dir(&folders.backup).unwrap().flatten().map(|entry| entry.path());
        names.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with(start)).unwrap()
    };
    let ledger = file("ledger-");
    let whole = fs::read(&ledger).unwrap();
    let mut bytes = whole.clone();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&ledger, bytes).unwrap();
    let refused = restored(&folders.backup, &folders.restored).await;
    assert!(matches!(refused, Err(BackupError::Damaged { .. })), "{refused:?}");
    fs::write(&ledger, whole).unwrap();
    let manifest = fs::read_to_string(file("backup.json")).unwrap();
    fs::write(file("backup.json"), manifest.replace("\"format\": 1", "\"format\": 2")).unwrap();
    let refused = restored(&folders.backup, &folders.restored).await;
    assert!(matches!(refused, Err(BackupError::Newer { found: 2, .. })), "{refused:?}");
    assert!(!folders.restored.exists());
    fs::write(file("backup.json"), manifest.replace("ledger-", "../ledger-")).unwrap();
    let refused = restored(&folders.backup, &folders.restored).await;
    assert!(matches!(refused, Err(BackupError::Damaged { .. })), "{refused:?}");
    let refused = backed_up(&server, &folders.backup, true).await;
    assert!(matches!(refused, Err(BackupError::Damaged { .. })), "{refused:?}");
    fs::write(file("backup.json"), manifest).unwrap();
    restored(&folders.backup, &folders.restored).await.unwrap();
}

/// Commits continue while the ledger is copied: each is in the copy wholly, or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_during_writes_has_every_blob_its_ledger_names() {
    let folders = folders();
    let (server, _) = server(&folders).await;
    let server = Arc::new(server);
    let writing = tokio::spawn({
        let server = Arc::clone(&server);
        async move {
            for number in 0..150 {
                add(&server, &format!("later-{number}"), "later").await;
            }
        }
    });
    for number in 0..4 {
        let to = folders.backup.with_file_name(format!("backup-{number}"));
        let made = backed_up(&server, &to, true).await.unwrap();
        assert_eq!((made.missing, made.damaged), (vec![], vec![]));
        let target = folders.restored.with_file_name(format!("restored-{number}"));
        let done = restored(&to, &target).await.unwrap();
        assert_eq!(done.missing, []);
    }
    writing.await.unwrap();
}

#[tokio::test]
async fn a_backup_has_the_matching_key_during_a_rotation() {
    let folders = folders();
    let (server, wrapped) = server(&folders).await;
    server.keys.add_master().unwrap();
    let held = server.lock_keys().unwrap();
    let refused = backed_up(&server, &folders.backup, true).await;
    assert!(matches!(refused, Err(BackupError::Folder(FolderError::KeyLocked { .. }))), "{refused:?}");
    drop(held);
    backed_up(&server, &folders.backup, true).await.unwrap();
    restored(&folders.backup, &folders.restored).await.unwrap();
    let folder = serve(&folders.restored).await.unwrap();
    assert_eq!(folder.keys.master_count().unwrap(), 2);
    folder.keys.unwrap(&wrapped, &context()).await.unwrap();
}

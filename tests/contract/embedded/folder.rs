//! One folder that contains a whole store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use statewright_shared::adapters::SystemIds;
use statewright_shared::adapters::embedded::{
    DataFolder, FileKeys, FolderError, KeyFileError, OpenLedgerError, SqliteLedger,
};
use statewright_shared::ports::{
    BlobKey, Blobs, Expect, ItemKey, KeyContext, Keys, Ledger, Revision, WrappedKey, Write, WriteAction,
};
use tempfile::TempDir;

async fn serve(path: &Path) -> Result<DataFolder, FolderError> {
    DataFolder::open_server(path, Arc::new(SystemIds)).await
}

async fn beside(path: &Path) -> Result<DataFolder, FolderError> {
    DataFolder::open_beside(path, Arc::new(SystemIds)).await
}

/// A path for a data folder that does not exist yet.
fn new_path() -> (TempDir, PathBuf) {
    let parent = TempDir::new().unwrap();
    let path = parent.path().join("data");
    (parent, path)
}

fn context() -> KeyContext {
    KeyContext { name: "stack", value: "one".to_owned() }
}

fn blob_key() -> BlobKey {
    BlobKey::parse("snap/stack/update").unwrap()
}

/// Puts one item, one blob and one wrapped key, and closes the folder.
async fn fill(path: &Path) {
    let folder = serve(path).await.unwrap();
    folder.blobs.put(&blob_key(), Bytes::from("a blob")).await.unwrap();
    let (_, wrapped) = folder.keys.generate(&context()).await.unwrap();
    let action = WriteAction::Put { revision: Revision(1), value: Bytes::from(wrapped.0), expires: None };
    let key = ItemKey::new("KEY#one", "1");
    folder.ledger.commit(vec![Write { key, expect: Expect::Absent, action }]).await.unwrap();
}

/// Asserts that everything from [`fill`] is stored.
async fn assert_filled(folder: &DataFolder) {
    let blob = folder.blobs.get(&blob_key()).await.unwrap().unwrap();
    assert_eq!(blob.into_bytes().await.unwrap(), "a blob");
    let item = folder.ledger.get(&ItemKey::new("KEY#one", "1")).await.unwrap().unwrap();
    folder.keys.unwrap(&WrappedKey(item.value.into()), &context()).await.unwrap();
}

/// Files with their bytes, and folders.
type Folder = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// Everything below `path`.
fn bytes_of(path: &Path) -> Folder {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        if entry.is_dir() {
            found.extend(bytes_of(&entry));
            found.insert(entry, None);
        } else {
            let bytes = fs::read(&entry).unwrap();
            found.insert(entry, Some(bytes));
        }
    }
    found
}

/// Asserts that two states of a folder are equal; names the differences.
fn assert_same(before: &Folder, after: &Folder) {
    let changed = |(path, bytes): &(&PathBuf, &Option<Vec<u8>>)| before.get(*path) != Some(*bytes);
    let changed: Vec<&PathBuf> = after.iter().filter(changed).map(|(path, _)| path).collect();
    let gone: Vec<&PathBuf> = before.keys().filter(|path| !after.contains_key(*path)).collect();
    assert!(changed.is_empty() && gone.is_empty(), "changed or new: {changed:?}, gone: {gone:?}");
}

/// Both ways of opening are refused, and neither changes a byte.
async fn refusals_that_change_nothing(path: &Path) -> [FolderError; 2] {
    let before = bytes_of(path);
    let refusals = [serve(path).await.unwrap_err(), beside(path).await.unwrap_err()];
    assert_same(&before, &bytes_of(path));
    refusals
}

#[tokio::test]
async fn everything_survives_a_restart() {
    let (_kept, path) = new_path();
    fill(&path).await;
    assert_filled(&serve(&path).await.unwrap()).await;
}

#[tokio::test]
async fn everything_survives_a_crash_of_the_process() {
    let (_kept, path) = new_path();
    fill(&path).await;
    let running = serve(&path).await.unwrap();
    let key = ItemKey::new("P", "late");
    let action = WriteAction::Put { revision: Revision(2), value: Bytes::from("late"), expires: None };
    let write = Write { key: key.clone(), expect: Expect::Absent, action };
    running.ledger.commit(vec![write]).await.unwrap();

    // A process that ends without closing anything leaves the files as they are while it runs.
    let (_kept_too, copy) = new_path();
    copy_folder(&path, &copy);
    assert!(fs::metadata(copy.join("ledger.sqlite-wal")).unwrap().len() > 0);
    let recovered = serve(&copy).await.unwrap();
    assert_filled(&recovered).await;
    assert_eq!(recovered.ledger.get(&key).await.unwrap().unwrap().value, "late");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else if entry.file_name() != "ledger.sqlite-shm" {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn folder_and_key_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_kept, path) = new_path();
    fill(&path).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    assert_eq!(mode(&path.join("blobs")), 0o700);
    assert_eq!(mode(&path.join("master.key")), 0o600);
    assert_eq!(mode(&path.join("ledger.sqlite")), 0o600);
    let _running = serve(&path).await.unwrap();
    assert_eq!(mode(&path.join("ledger.sqlite-wal")), 0o600);
}

/// As `mkdir`, a container's volume or a package creates it.
#[cfg(unix)]
#[tokio::test]
async fn an_empty_folder_becomes_private() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let make = |path: &Path| {
        fs::create_dir(path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let (_kept, path) = new_path();
    make(&path);
    fs::create_dir(path.join("lost+found")).unwrap();
    let running = serve(&path).await.unwrap();
    assert_eq!(mode(&path), 0o700);
    assert!(!running.is_for_others());
    drop(running);
    // The mode of a folder in use stays as its owner chose it, and so does that of a folder with other contents.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    assert!(serve(&path).await.unwrap().is_for_others());
    assert_eq!(mode(&path), 0o750);
    let (_kept, other) = new_path();
    make(&other);
    fs::write(other.join("notes"), "of somebody").unwrap();
    assert!(serve(&other).await.unwrap().is_for_others());
    assert_eq!(mode(&other), 0o755);
}

/// Files that the test itself creates have the umask of all tests, so they are compared with the effect of that.
#[cfg(unix)]
#[tokio::test]
async fn every_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (kept, path) = new_path();
    fill(&path).await;
    let running = serve(&path).await.unwrap();
    let _keys = running.lock_keys().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let plain = kept.path().join("plain");
    fs::write(&plain, "").unwrap();
    assert_ne!(mode(&plain), 0o600, "without a mode, others can read a file");
    let mut files = 0;
    for (path, bytes) in bytes_of(&path) {
        assert_eq!(mode(&path), if bytes.is_some() { 0o600 } else { 0o700 }, "{}", path.display());
        files += usize::from(bytes.is_some());
    }
    assert!(files >= 6, "ledger, blob, key and locks: {files}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_that_everybody_may_write_into_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let (_kept, path) = new_path();
    fill(&path).await;
    for mode in [0o777, 0o1777, 0o703] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        for refusal in refusals_that_change_nothing(&path).await {
            assert!(matches!(refusal, FolderError::ForAll { .. }), "{refusal}");
            assert!(refusal.to_string().ends_with(&format!("chmod 700 {}", path.display())), "{refusal}");
        }
    }
    // The operator chooses the permissions of the group.
    for mode in [0o700, 0o770, 0o755] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        assert_filled(&serve(&path).await.unwrap()).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_key_that_others_can_use_is_refused_with_a_remedy() {
    use std::os::unix::fs::PermissionsExt;
    let (_kept, path) = new_path();
    fill(&path).await;
    let key = path.join("master.key");
    for mode in [0o640, 0o604, 0o660, 0o644, 0o700] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        for refusal in refusals_that_change_nothing(&path).await {
            assert!(matches!(refusal, FolderError::Key(KeyFileError::Exposed { .. })), "{refusal}");
            assert!(refusal.to_string().ends_with(&format!("chmod 600 {}", key.display())), "{refusal}");
        }
    }
    for mode in [0o600, 0o400] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        assert_filled(&serve(&path).await.unwrap()).await;
    }
}

#[tokio::test]
async fn a_second_server_is_refused_with_the_id_of_the_first() {
    let (_kept, path) = new_path();
    let first = serve(&path).await.unwrap();
    let refusal = serve(&path).await.unwrap_err();
    assert!(matches!(refusal, FolderError::Served { .. }));
    assert!(refusal.to_string().contains(&format!("process {}", std::process::id())), "{refusal}");
    drop(first);
    serve(&path).await.unwrap();
}

#[tokio::test]
async fn a_command_works_while_the_server_runs() {
    let (_kept, path) = new_path();
    fill(&path).await;
    let server = serve(&path).await.unwrap();
    let command = beside(&path).await.unwrap();
    assert_filled(&command).await;
    let key = ItemKey::new("P", "by the command");
    let action = WriteAction::Put { revision: Revision(1), value: Bytes::new(), expires: None };
    let write = Write { key: key.clone(), expect: Expect::Absent, action };
    command.ledger.commit(vec![write]).await.unwrap();
    assert!(server.ledger.get(&key).await.unwrap().is_some());
    drop(command);
    assert_filled(&server).await;
}

#[tokio::test]
async fn a_command_makes_no_folder() {
    let (kept, path) = new_path();
    let refusal = beside(&path).await.unwrap_err();
    assert!(matches!(refusal, FolderError::Absent { .. }), "{refusal}");
    fs::create_dir(&path).unwrap();
    let refusal = beside(&path).await.unwrap_err();
    assert!(matches!(refusal, FolderError::Absent { .. }), "{refusal}");
    assert_same(&BTreeMap::from([(path, None)]), &bytes_of(kept.path()));
}

#[tokio::test]
async fn a_missing_master_key_is_refused_and_not_recreated() {
    let (_kept, path) = new_path();
    fill(&path).await;
    fs::remove_file(path.join("master.key")).unwrap();
    for refusal in refusals_that_change_nothing(&path).await {
        assert!(matches!(refusal, FolderError::KeyMissing { .. }), "{refusal}");
    }
}

#[tokio::test]
async fn a_wrong_master_key_is_refused() {
    let (_kept, path) = new_path();
    fill(&path).await;
    let key = path.join("master.key");
    let right = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    FileKeys::create(&key, Arc::new(SystemIds)).unwrap();
    for refusal in refusals_that_change_nothing(&path).await {
        assert!(matches!(refusal, FolderError::KeyWrong { .. }), "{refusal}");
    }
    fs::write(&key, right).unwrap();
    assert_filled(&serve(&path).await.unwrap()).await;
}

#[tokio::test]
async fn a_damaged_master_key_is_refused() {
    let (_kept, path) = new_path();
    fill(&path).await;
    fs::write(path.join("master.key"), "").unwrap();
    for refusal in refusals_that_change_nothing(&path).await {
        assert!(matches!(refusal, FolderError::Key(KeyFileError::Malformed { .. })), "{refusal}");
    }
}

#[tokio::test]
async fn a_missing_ledger_next_to_blobs_is_refused() {
    let (_kept, path) = new_path();
    fill(&path).await;
    fs::remove_file(path.join("ledger.sqlite")).unwrap();
    for refusal in refusals_that_change_nothing(&path).await {
        assert!(matches!(refusal, FolderError::LedgerMissing { .. }), "{refusal}");
    }
    fs::write(path.join("ledger.sqlite"), "").unwrap();
    for refusal in refusals_that_change_nothing(&path).await {
        assert!(matches!(refusal, FolderError::LedgerMissing { .. }), "{refusal}");
    }
}

#[tokio::test]
async fn a_new_ledger_next_to_blobs_is_refused() {
    let (_kept, path) = new_path();
    fill(&path).await;
    fs::remove_file(path.join("ledger.sqlite")).unwrap();
    drop(SqliteLedger::open_or_create(&path.join("ledger.sqlite")).unwrap());
    for refusal in refusals_that_change_nothing(&path).await {
        assert!(matches!(refusal, FolderError::Unmarked { .. }), "{refusal}");
    }
}

#[tokio::test]
async fn a_ledger_with_items_but_no_check_value_is_refused() {
    let (_kept, path) = new_path();
    fill(&path).await;
    {
        let ledger = SqliteLedger::open_existing(&path.join("ledger.sqlite")).unwrap();
        let key = ItemKey::new("FOLDER", "MASTER#CHECK");
        let write = Write { key, expect: Expect::Any, action: WriteAction::Delete };
        ledger.commit(vec![write]).await.unwrap();
    }
    for refusal in refusals_that_change_nothing(&path).await {
        assert!(matches!(refusal, FolderError::Unmarked { .. }), "{refusal}");
    }
}

/// A first start that is killed at any of its steps is finished by the second.
#[tokio::test]
async fn an_interrupted_first_start_is_finished_by_the_next() {
    let (_kept, complete) = new_path();
    drop(serve(&complete).await.unwrap());
    for steps_done in 0..4 {
        let (_kept, path) = new_path();
        fs::create_dir(&path).unwrap();
        if steps_done >= 1 {
            fs::copy(complete.join("lock"), path.join("lock")).unwrap();
        }
        if steps_done >= 2 {
            FileKeys::create(&path.join("master.key"), Arc::new(SystemIds)).unwrap();
        }
        if steps_done >= 3 {
            SqliteLedger::open_or_create(&path.join("ledger.sqlite")).unwrap();
        }
        fill(&path).await;
        assert_filled(&serve(&path).await.unwrap()).await;
    }
}

#[tokio::test]
async fn a_ledger_of_a_newer_format_is_refused() {
    let (_kept, path) = new_path();
    fill(&path).await;
    // The format's number is at byte 60 of a SQLite file, big-endian (https://sqlite.org/fileformat2.html).
    let ledger = path.join("ledger.sqlite");
    let mut bytes = fs::read(&ledger).unwrap();
    bytes.splice(60..64, 3_u32.to_be_bytes());
    fs::write(&ledger, bytes).unwrap();
    for refusal in refusals_that_change_nothing(&path).await {
        let newer = matches!(refusal, FolderError::Ledger(OpenLedgerError::Newer { found: 3, .. }));
        assert!(newer, "{refusal}");
        assert!(refusal.to_string().contains("format 3"), "{refusal}");
    }
}

#[tokio::test]
async fn a_file_of_another_program_is_refused() {
    let (_kept, path) = new_path();
    fill(&path).await;
    let ledger = path.join("ledger.sqlite");
    let mut bytes = fs::read(&ledger).unwrap();
    bytes.splice(68..72, [0; 4]);
    fs::write(&ledger, bytes).unwrap();
    for refusal in refusals_that_change_nothing(&path).await {
        assert!(matches!(refusal, FolderError::Ledger(OpenLedgerError::Foreign { .. })), "{refusal}");
    }
    fs::write(&ledger, "These are not the bytes of a database, but some text of a person. ".repeat(20))
        .unwrap();
    for refusal in refusals_that_change_nothing(&path).await {
        assert!(matches!(refusal, FolderError::Ledger(OpenLedgerError::Sqlite { .. })), "{refusal}");
    }
}

#[test]
fn a_master_key_is_never_overwritten() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("master.key");
    FileKeys::create(&path, Arc::new(SystemIds)).unwrap();
    let before = bytes_of(folder.path());
    let refusal = FileKeys::create(&path, Arc::new(SystemIds)).unwrap_err();
    assert!(matches!(refusal, KeyFileError::Create { .. }));
    assert_same(&before, &bytes_of(folder.path()));
}

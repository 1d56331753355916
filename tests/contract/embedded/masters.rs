//! A key file with several master keys.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use statewright_shared::adapters::SystemIds;
use statewright_shared::adapters::embedded::{DataFolder, FileKeys, FolderError, KeyFileError};
use statewright_shared::ports::{KeyContext, Keys, KeysError};
use tempfile::TempDir;

fn context() -> KeyContext {
    KeyContext { name: "stack", value: "one".to_owned() }
}

fn key_file() -> (TempDir, PathBuf, FileKeys) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("master.key");
    let keys = FileKeys::create(&path, Arc::new(SystemIds)).unwrap();
    (folder, path, keys)
}

fn open(path: &std::path::Path) -> FileKeys {
    FileKeys::open(path, Arc::new(SystemIds)).unwrap()
}

/// The server has read the file; a command replaces it.
#[tokio::test]
async fn another_process_works_while_the_master_key_is_replaced() {
    let (_kept, path, server) = key_file();
    let (plain, old) = server.generate(&context()).await.unwrap();
    let command = open(&path);
    command.add_master().unwrap();
    assert_eq!(command.master_count().unwrap(), 2);
    let new = command.rewrap(&old, &context()).await.unwrap().expect("the old key wrapped it");
    assert_eq!(command.rewrap(&new, &context()).await.unwrap(), None);

    // It knows the old key only, and gets a data key under the new one.
    assert_eq!(server.unwrap(&new, &context()).await.unwrap().0, plain.0);
    assert_eq!(server.unwrap(&old, &context()).await.unwrap().0, plain.0);
    let (later, under_new) = server.generate(&context()).await.unwrap();
    assert_eq!(command.rewrap(&under_new, &context()).await.unwrap(), None);

    command.forget_old_masters().unwrap();
    assert_eq!(open(&path).master_count().unwrap(), 1);
    for keys in [&server, &command, &open(&path)] {
        assert_eq!(keys.unwrap(&new, &context()).await.unwrap().0, plain.0);
        assert_eq!(keys.unwrap(&under_new, &context()).await.unwrap().0, later.0);
    }
    assert!(matches!(open(&path).unwrap(&old, &context()).await, Err(KeysError::Mismatch)));
}

/// It makes a data key before it gets one under the new master key.
#[tokio::test]
async fn a_new_data_key_uses_the_current_master_key_of_the_file() {
    let (_kept, path, server) = key_file();
    open(&path).add_master().unwrap();
    let (_, wrapped) = server.generate(&context()).await.unwrap();
    open(&path).forget_old_masters().unwrap();
    open(&path).unwrap(&wrapped, &context()).await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_replaced_key_file_is_private_and_leaves_no_other_file() {
    use std::os::unix::fs::PermissionsExt;
    let (kept, path, keys) = key_file();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    keys.add_master().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    keys.forget_old_masters().unwrap();
    assert_eq!(fs::read_dir(kept.path()).unwrap().count(), 1);
}

#[test]
fn a_key_file_with_one_key_twice_is_refused() {
    let (_kept, path, _) = key_file();
    let text = fs::read_to_string(&path).unwrap();
    let line = text.lines().last().unwrap();
    fs::write(&path, format!("{text}{line}\n")).unwrap();
    let refused = FileKeys::open(&path, Arc::new(SystemIds));
    assert!(matches!(refused, Err(KeyFileError::Malformed { .. })));
}

#[tokio::test]
async fn one_at_a_time_works_with_the_master_key() {
    let parent = TempDir::new().unwrap();
    let path = parent.path().join("data");
    let server = DataFolder::open_server(&path, Arc::new(SystemIds)).await.unwrap();
    let command = DataFolder::open_beside(&path, Arc::new(SystemIds)).await.unwrap();
    let held = command.lock_keys().unwrap();
    assert!(matches!(server.lock_keys(), Err(FolderError::KeyLocked { .. })));
    drop(held);
    server.lock_keys().unwrap();
    let alone = DataFolder::open_alone(&path, Arc::new(SystemIds)).await;
    assert!(matches!(alone, Err(FolderError::Served { .. })));
    drop((server, command));
    let alone = DataFolder::open_alone(&path, Arc::new(SystemIds)).await.unwrap();
    let second = DataFolder::open_server(&path, Arc::new(SystemIds)).await;
    assert!(matches!(second, Err(FolderError::Served { .. })));
    alone.keys.add_master().unwrap();
    alone.rewrap_check().await.unwrap();
    alone.keys.forget_old_masters().unwrap();
    drop(alone);
    DataFolder::open_server(&path, Arc::new(SystemIds)).await.unwrap();
}

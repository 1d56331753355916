//! Two ledgers on one file, like a server's and an operator's command.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use statewright_shared::adapters::embedded::SqliteLedger;
use statewright_shared::ports::{CommitError, Expect, Item, ItemKey, Ledger, Revision, Write, WriteAction};
use tempfile::TempDir;

const STEPS: u64 = 20;

fn counter() -> ItemKey {
    ItemKey::new("two_handles", "counter")
}

fn count(item: Option<&Item>) -> u64 {
    item.map_or(0, |item| std::str::from_utf8(&item.value).unwrap().parse().unwrap())
}

/// Raises the counter [`STEPS`] times by reading, deciding and writing. Returns the number of refusals.
async fn raise(ledger: &dyn Ledger, writer: u64) -> u64 {
    let (mut done, mut refused) = (0, 0);
    while done < STEPS {
        let current = ledger.get(&counter()).await.unwrap();
        let expect = current.as_ref().map_or(Expect::Absent, |item| Expect::Revision(item.revision));
        let action = WriteAction::Put {
            revision: Revision((writer << 32) | (done + refused)),
            value: Bytes::from((count(current.as_ref()) + 1).to_string()),
            expires: None,
        };
        match ledger.commit(vec![Write { key: counter(), expect, action }]).await {
            Ok(()) => done += 1,
            Err(CommitError::Refused(refusal)) => {
                assert_ne!(refusal.current, current);
                refused += 1;
            }
            Err(CommitError::Port(error)) => panic!("{error}"),
        }
    }
    refused
}

async fn total(path: &Path) -> u64 {
    count(SqliteLedger::open_existing(path).unwrap().get(&counter()).await.unwrap().as_ref())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_of_two_handles_interleave_and_lose_nothing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let ledgers = [SqliteLedger::open_or_create(&path).unwrap(), SqliteLedger::open_existing(&path).unwrap()];
    let writers = (0..8_u64)
        .zip(ledgers.iter().cycle().cloned())
        .map(|(writer, ledger)| tokio::spawn(async move { raise(&ledger, writer).await }));
    for writer in futures::future::join_all(writers).await {
        writer.unwrap();
    }
    drop(ledgers);
    assert_eq!(total(&path).await, 8 * STEPS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledged_commit_is_visible_to_the_other_handle() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let (one, other) =
        (SqliteLedger::open_or_create(&path).unwrap(), SqliteLedger::open_existing(&path).unwrap());
    for revision in (0..50).map(Revision) {
        let action = WriteAction::Put { revision, value: Bytes::new(), expires: None };
        one.commit(vec![Write { key: counter(), expect: Expect::Any, action }]).await.unwrap();
        assert_eq!(other.get(&counter()).await.unwrap().map(|item| item.revision), Some(revision));
    }
}

/// The variable with the file for the other half of [`commits_of_two_processes_interleave_and_lose_nothing`].
const FILE_VARIABLE: &str = "STATEWRIGHT_TEST_LEDGER";

/// This test runs itself in a second process, which gets the file's name in its environment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_of_two_processes_interleave_and_lose_nothing() {
    if let Some(path) = std::env::var_os(FILE_VARIABLE) {
        raise(&SqliteLedger::open_existing(Path::new(&path)).unwrap(), 1).await;
        return;
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let ledger = Arc::new(SqliteLedger::open_or_create(&path).unwrap());
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "embedded::two_handles::commits_of_two_processes_interleave_and_lose_nothing"])
        .env(FILE_VARIABLE, &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    raise(ledger.as_ref(), 0).await;
    assert!(other.wait().unwrap().success());
    drop(ledger);
    assert_eq!(total(&path).await, 2 * STEPS);
}

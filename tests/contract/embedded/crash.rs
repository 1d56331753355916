//! A process that is killed between any two instructions loses nothing that it has acknowledged.

use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use statewright_shared::adapters::embedded::{FileBlobs, SqliteLedger};
use statewright_shared::ports::{
    BlobKey, Blobs, Expect, ItemKey, Ledger, Order, Query, Revision, Write, WriteAction,
};
use tempfile::TempDir;

/// The variable with the folder of the process to be killed.
const FOLDER_VARIABLE: &str = "STATEWRIGHT_TEST_CRASH_FOLDER";

/// The prefix of the number of an acknowledged slot.
const MARK: &str = "acknowledged slot ";

fn blob_key(slot: u64) -> BlobKey {
    BlobKey::parse(&format!("log/{}/{slot}", slot % 3)).unwrap()
}

fn blob(slot: u64) -> Bytes {
    Bytes::from(slot.to_string().repeat(20_000))
}

/// Appends slots until it is killed, each after its blob, and prints the acknowledged ones.
async fn append_for_ever(folder: &Path) {
    let ledger = SqliteLedger::open_or_create(&folder.join("ledger.sqlite")).unwrap();
    let blobs = FileBlobs::open_or_create(&folder.join("blobs")).unwrap();
    let mut stdout = std::io::stdout();
    for slot in 1.. {
        blobs.put(&blob_key(slot), blob(slot)).await.unwrap();
        let value = Bytes::from(vec![7; 3000]);
        let action = WriteAction::Put { revision: Revision(slot), value, expires: None };
        let key = ItemKey::new("LOG", format!("{slot:08}"));
        ledger.commit(vec![Write { key, expect: Expect::Absent, action }]).await.unwrap();
        // Fails when the reader is gone, so that a failed test does not leave this process running.
        writeln!(stdout, "\n{MARK}{slot}").unwrap();
    }
}

/// This test runs itself in a second process, which gets the folder's name in its environment, and kills that
/// process at several moments of its work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_commits_survive_a_kill() {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        return append_for_ever(Path::new(&folder)).await;
    }
    for slots_before_the_kill in [1, 10, 33] {
        let folder = TempDir::new().unwrap();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--nocapture", "--exact", "embedded::crash::acknowledged_commits_survive_a_kill"])
            .env(FOLDER_VARIABLE, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
        let acknowledged = |line: String| line.strip_prefix(MARK).map(|slot| slot.parse::<u64>().unwrap());
        assert!(lines.by_ref().filter_map(acknowledged).any(|slot| slot == slots_before_the_kill));
        process.kill().unwrap();
        process.wait().unwrap();
        let last = lines.filter_map(acknowledged).last().unwrap_or(slots_before_the_kill);

        let ledger = SqliteLedger::open_existing(&folder.path().join("ledger.sqlite")).unwrap();
        let blobs = FileBlobs::open_or_create(&folder.path().join("blobs")).unwrap();
        let (prefix, after) = (String::new(), None);
        let query =
            Query { partition: "LOG".to_owned(), prefix, after, order: Order::Ascending, limit: usize::MAX };
        let slots: Vec<u64> =
            ledger.query(&query).await.unwrap().items.iter().map(|item| item.revision.0).collect();
        assert_eq!(slots, (1..=slots.len() as u64).collect::<Vec<_>>());
        // The slot after the last acknowledged one may have been on its way.
        assert!(
            [last, last + 1].contains(&(slots.len() as u64)),
            "{last} acknowledged, {} stored",
            slots.len()
        );
        for slot in slots {
            let found = blobs.get(&blob_key(slot)).await.unwrap().unwrap();
            assert_eq!(found.into_bytes().await.unwrap(), blob(slot));
        }
    }
}

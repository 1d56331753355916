use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, oneshot};

use super::writer::{Answer, Job, LOG_KEPT_BYTES, try_checkpoint, write_group};
use super::*;
use crate::ports::{Expect, Revision, WriteAction};

fn put(sort: &str, expect: Expect, revision: u64) -> Write {
    let action =
        WriteAction::Put { revision: Revision(revision), value: Bytes::from("value"), expires: None };
    Write { key: ItemKey::new("P", sort), expect, action }
}

/// Jobs of these commits, and where their answers arrive.
fn group(commits: Vec<Vec<Write>>) -> (Vec<Job>, Vec<oneshot::Receiver<Answer>>) {
    let permits = Arc::new(Semaphore::new(commits.len()));
    commits
        .into_iter()
        .map(|writes| {
            let (answer, answered) = oneshot::channel();
            let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
            (Job { writes, answer, _permit: permit }, answered)
        })
        .unzip()
}

/// A connection like the writer's, but without a wait for locks.
fn writer(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.busy_timeout(Duration::ZERO).unwrap();
    connection
}

fn sorts(path: &Path) -> Vec<String> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare("SELECT CAST(sort AS TEXT) FROM items").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[tokio::test]
async fn a_ledger_of_the_first_format_is_upgraded_with_all_items() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(
        "PRAGMA journal_mode = WAL;
         CREATE TABLE items (
             partition BLOB NOT NULL, sort BLOB NOT NULL, revision INTEGER NOT NULL, expires INTEGER,
             value BLOB NOT NULL, PRIMARY KEY (partition, sort)
         ) WITHOUT ROWID, STRICT;
         PRAGMA application_id = 0x53545752;
         PRAGMA user_version = 1;
         INSERT INTO items VALUES (CAST('P' AS BLOB), CAST('b' AS BLOB), -1, NULL, zeroblob(5000));
         INSERT INTO items VALUES (CAST('P' AS BLOB), CAST('a' AS BLOB), 7, 1000, CAST('x' AS BLOB));",
    )
    .unwrap();
    drop(old);
    for opened in [SqliteLedger::open_existing(&path), SqliteLedger::open_or_create(&path)] {
        let items = opened.unwrap().scan("", None, 10).await.unwrap().items;
        let [a, b] = items.try_into().unwrap();
        assert_eq!((a.key, a.revision), (ItemKey::new("P", "a"), Revision(7)));
        assert_eq!((a.expires, a.value), (Some(Timestamp(1000)), Bytes::from("x")));
        assert_eq!((b.key, b.revision), (ItemKey::new("P", "b"), Revision(u64::MAX)));
        assert_eq!((b.expires, b.value), (None, Bytes::from(vec![0; 5000])));
    }
    let tables = "SELECT group_concat(name) FROM sqlite_schema WHERE type = 'table'";
    let tables: String = Connection::open(&path).unwrap().query_row(tables, [], |row| row.get(0)).unwrap();
    assert_eq!(tables, "items");
}

#[test]
fn a_refused_commit_of_a_group_does_not_affect_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    drop(SqliteLedger::open_or_create(&path).unwrap());
    let (jobs, mut answers) = group(vec![
        vec![put("a", Expect::Absent, 1)],
        vec![put("b", Expect::Any, 2), put("a", Expect::Absent, 2)],
        vec![put("a", Expect::Revision(Revision(1)), 3), put("c", Expect::Absent, 3)],
        vec![put("a", Expect::Revision(Revision(1)), 4)],
    ]);
    write_group(&writer(&path), jobs);

    let revision_in_the_way = |answer: Answer| match answer {
        Err(CommitError::Refused(refusal)) => (refusal.index, refusal.current.unwrap().revision),
        other => panic!("{other:?}"),
    };
    let [first, second, third, fourth] =
        answers.iter_mut().map(|answer| answer.try_recv().unwrap()).collect::<Vec<_>>().try_into().unwrap();
    first.unwrap();
    assert_eq!(revision_in_the_way(second), (1, Revision(1)));
    third.unwrap();
    assert_eq!(revision_in_the_way(fourth), (0, Revision(3)));
    assert_eq!(sorts(&path), ["a", "c"]);
}

#[test]
fn a_group_that_cannot_begin_is_surely_not_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    drop(SqliteLedger::open_or_create(&path).unwrap());
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let writer = writer(&path);
    let commits = || vec![vec![put("a", Expect::Absent, 1)], vec![put("a", Expect::Absent, 2)]];

    let (jobs, answers) = group(commits());
    write_group(&writer, jobs);
    for mut answer in answers {
        let answer = answer.try_recv().unwrap();
        assert!(matches!(answer, Err(CommitError::Port(PortError::NotDone { .. }))), "{answer:?}");
    }
    assert_eq!(sorts(&path), [""; 0]);

    other.execute_batch("ROLLBACK").unwrap();
    let (jobs, mut answers) = group(commits());
    write_group(&writer, jobs);
    assert!(answers.iter_mut().next().unwrap().try_recv().unwrap().is_ok());
    assert_eq!(sorts(&path), ["a"]);
}

#[test]
fn a_group_that_fails_in_the_middle_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    drop(SqliteLedger::open_or_create(&path).unwrap());
    let writer = writer(&path);
    // Simulates a full disk at the second member.
    writer
        .execute_batch(
            "CREATE TEMP TRIGGER full BEFORE INSERT ON main.items WHEN NEW.sort = CAST('b' AS BLOB)
             BEGIN SELECT RAISE(FAIL, 'full'); END",
        )
        .unwrap();
    let (jobs, answers) = group(vec![vec![put("a", Expect::Absent, 1)], vec![put("b", Expect::Absent, 2)]]);
    write_group(&writer, jobs);
    for mut answer in answers {
        let answer = answer.try_recv().unwrap();
        assert!(matches!(answer, Err(CommitError::Port(PortError::NotDone { .. }))), "{answer:?}");
    }
    assert_eq!(sorts(&path), [""; 0]);
}

#[test]
fn a_group_reports_a_full_disk_and_continues_with_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    drop(SqliteLedger::open_or_create(&path).unwrap());
    let writer = writer(&path);
    let pages = |count: u32| {
        let set = format!("PRAGMA max_page_count = {count}");
        writer.query_row(&set, [], |_| Ok(())).unwrap();
    };
    let large = || {
        let mut write = put("a", Expect::Absent, 1);
        if let WriteAction::Put { value, .. } = &mut write.action {
            *value = Bytes::from(vec![7; 100_000]);
        }
        let (jobs, mut answers) = group(vec![vec![write]]);
        write_group(&writer, jobs);
        answers.iter_mut().next().unwrap().try_recv().unwrap()
    };
    // No larger than it is.
    pages(1);
    let full = large();
    assert!(matches!(&full, Err(CommitError::Port(error)) if error.has_no_room()), "{full:?}");
    assert_eq!(sorts(&path), [""; 0]);
    pages(1_000);
    large().unwrap();
    assert_eq!(sorts(&path), ["a"]);
}

#[test]
fn a_group_whose_commit_fails_may_have_been_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    drop(SqliteLedger::open_or_create(&path).unwrap());
    let writer = writer(&path);
    // A deferred constraint is checked by COMMIT, so it simulates any failure there.
    writer
        .execute_batch(
            "PRAGMA foreign_keys = ON;
             CREATE TABLE parents (id BLOB PRIMARY KEY);
             CREATE TABLE children (id BLOB REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
             CREATE TEMP TRIGGER orphan AFTER INSERT ON main.items
             BEGIN INSERT INTO children VALUES (NEW.sort); END",
        )
        .unwrap();
    let (jobs, answers) = group(vec![vec![put("a", Expect::Absent, 1)], vec![put("a", Expect::Absent, 2)]]);
    write_group(&writer, jobs);
    for mut answer in answers {
        let answer = answer.try_recv().unwrap();
        assert!(matches!(answer, Err(CommitError::Port(PortError::Unknown { .. }))), "{answer:?}");
    }
    assert!(writer.is_autocommit(), "the next group can begin");
}

#[tokio::test]
async fn the_log_is_carried_over_and_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    let ledger = SqliteLedger::open_or_create(&path).unwrap();
    let value = Bytes::from(vec![7; 300_000]);
    for revision in 0..100 {
        let action = WriteAction::Put { revision: Revision(revision), value: value.clone(), expires: None };
        let write = Write { key: ItemKey::new("P", "a"), expect: Expect::Any, action };
        ledger.commit(vec![write]).await.unwrap();
    }
    let log = std::fs::metadata(folder.path().join("ledger.sqlite-wal")).unwrap().len();
    assert!(log < 20_000_000, "30 MB were written, and the log has {log} bytes");
}

#[test]
fn the_log_of_a_peak_becomes_short_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.sqlite");
    drop(SqliteLedger::open_or_create(&path).unwrap());
    let bytes = || std::fs::metadata(folder.path().join("ledger.sqlite-wal")).unwrap().len();
    let writer = Connection::open(&path).unwrap();
    writer.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM items").unwrap();
    writer.execute_batch("CREATE TABLE peak (value); INSERT INTO peak VALUES (zeroblob(20000000))").unwrap();
    let long = bytes();
    assert!(long > LOG_KEPT_BYTES as u64, "{long}");
    try_checkpoint(&writer).unwrap();
    assert_eq!(bytes(), long, "a reader still needs the older pages");
    reader.execute_batch("COMMIT").unwrap();
    try_checkpoint(&writer).unwrap();
    assert_eq!(bytes(), 0);
    writer.execute_batch("INSERT INTO peak VALUES (1)").unwrap();
    let short = bytes();
    try_checkpoint(&writer).unwrap();
    assert_eq!(bytes(), short, "a short one is overwritten");
}

#[tokio::test]
async fn expired_items_are_dropped_page_by_page_and_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = SqliteLedger::open_or_create(&folder.path().join("ledger.sqlite")).unwrap();
    let now = Timestamp::from_seconds(1000);
    let expiries = [None, Some(0), Some(now.0 - 1), Some(now.0), Some(now.0 + 1), Some(i64::MAX)];
    let writes: Vec<Write> = (0..250)
        .flat_map(|n| expiries.iter().enumerate().map(move |(kind, expires)| (n, kind, *expires)))
        .map(|(n, kind, expires)| {
            let key = ItemKey::new(format!("P{}", n % 7), format!("{n}#{kind}"));
            let expires = expires.map(Timestamp);
            let action = WriteAction::Put { revision: Revision(1), value: Bytes::new(), expires };
            Write { key, expect: Expect::Absent, action }
        })
        .collect();
    for chunk in writes.chunks(100) {
        ledger.commit(chunk.to_vec()).await.unwrap();
    }
    let (mut after, mut pages) = (None, 0);
    loop {
        pages += 1;
        after = ledger.drop_expired(now, after, 400).await.unwrap();
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages, 4, "1500 items in pages of 400");
    let left = sorts(&folder.path().join("ledger.sqlite"));
    assert_eq!(left.len(), 250 * 3);
    assert!(left.iter().all(|sort| ["#0", "#4", "#5"].iter().any(|kind| sort.ends_with(kind))));
}

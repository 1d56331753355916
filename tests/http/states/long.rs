//! States with long texts: pages of their resources come from rows, and say what the text would.

use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::{
    Calls, Counter, Fault, Faults, Faulty, MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds, SystemClock,
};
use statewright_shared::domain::ids::StateId;
use statewright_shared::layout::{Key, Record, RejectedState, StateHead, StateVersion, put};
use statewright_shared::ports::{BlobKey, Blobs as _, Clock as _, Expect, Ids, Ledger as _};
use statewright_shared::services::maintenance::check_states;
use statewright_shared::settings::{Retention, Settings, StateLimits};
use statewright_tests::app::{Answer, ORG, TestApp};

use crate::api::call_counts::{counted_with, describe_calls};
use crate::api::routes::STATE;

const SECRET: &str = "hunter2";

/// Resources of a state whose text is long.
const COUNT: usize = 8_000;

const DAY: u64 = 86_400;

/// The servers here have the limits of functions, so that shorter texts have rows.
const LIMITS: StateLimits = StateLimits::FUNCTION;

/// A state of this many resources, out of order, in the root and in three instances of a module.
fn text(serial: u64, count: usize, word: &str) -> String {
    let mut text = format!(
        r#"{{"version":4,"terraform_version":"1.12.6","serial":{serial},"lineage":"aaaa","outputs":{{}},"resources":["#
    );
    let more = "x".repeat(100);
    for place in 0..count {
        let number = place * 7 % count;
        let comma = if place == 0 { "" } else { "," };
        let module = match number % 4 {
            0 => String::new(),
            part => format!(r#""module":"module.m[{part}]","#),
        };
        let needs = if number % 100 == 1 { r#""terraform_data.r00000""# } else { "" };
        write!(
            text,
            r#"{comma}{{{module}"mode":"managed","type":"terraform_data","name":"r{number:05}","provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[{{"schema_version":0,"attributes":{{"id":"{word}","password":"{SECRET}","more":"{more}"}},"dependencies":[{needs}]}}]}}"#
        )
        .unwrap();
    }
    text.push_str("]}");
    text
}

fn long_text(serial: u64, word: &str) -> String {
    let text = text(serial, COUNT, word);
    assert!(text.len() > LIMITS.rows_above, "{} bytes", text.len());
    text
}

/// A state of one resource with these instances, and with more members.
fn text_of_instances(members: &str, instances: &[String]) -> String {
    let instances = instances.join(",");
    format!(
        r#"{{"version":4,"serial":1,"lineage":"aaaa","resources":[{{{members}"type":"t","name":"n","instances":[{instances}]}}]}}"#
    )
}

async fn create(app: &TestApp, id: &str, project: &str) {
    let new = json!({ "id": id, "project": project });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
}

async fn write(app: &TestApp, id: &str, text: String) -> Answer {
    app.request(Method::POST, &format!("/tfstate/{id}")).raw(text.into_bytes()).send().await
}

/// A server in memory whose store can be inspected, with the state that these tests are about.
struct Long {
    app: TestApp,
    ledger: MemoryLedger,
    blobs: MemoryBlobs,
}

impl Long {
    async fn new() -> Self {
        Self::with(Retention::DEFAULT).await
    }

    async fn with(retention: Retention) -> Self {
        Self::with_faults(retention, Faults::none()).await
    }

    /// With faults of the blobs.
    async fn with_faults(retention: Retention, faults: Faults) -> Self {
        let (ledger, blobs) = (MemoryLedger::new(), MemoryBlobs::new());
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
        let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
        let settings = Settings { retention, states: LIMITS, ..Settings::default() };
        let ports = (Arc::new(ledger.clone()), Arc::new(Faulty::new(blobs.clone(), faults)));
        let app = TestApp::memory_with_settings(ports.0, ports.1, keys, ids, settings).await;
        create(&app, STATE, "net").await;
        Self { app, ledger, blobs }
    }

    fn id() -> StateId {
        StateId::parse(STATE).unwrap()
    }

    async fn write(&self, text: String) -> Answer {
        write(&self.app, STATE, text).await
    }

    /// Writes while the server waits between its attempts.
    async fn write_patiently(&self, text: String) -> Answer {
        let mut writing = std::pin::pin!(self.write(text));
        loop {
            tokio::select! {
                biased;
                answer = &mut writing => return answer,
                () = SystemClock.sleep(Duration::from_millis(2)) => self.app.advance(Duration::from_millis(5)),
            }
        }
    }

    async fn get(&self, tail: &str) -> Answer {
        self.app.get(&format!("/api/tfstates/{STATE}{tail}")).send().await
    }

    /// The blobs of the state: those of rows, and the others.
    fn blobs(&self) -> (Vec<BlobKey>, Vec<BlobKey>) {
        let of_state = self.blobs.keys().into_iter().filter(|key| key.as_str().starts_with("tf/"));
        of_state.partition(|key| key.as_str().ends_with("-rows"))
    }

    fn counts(&self) -> (usize, usize) {
        let (rows, others) = self.blobs();
        (rows.len(), others.len())
    }

    async fn bytes(&self, key: &BlobKey) -> Vec<u8> {
        self.blobs.get(key).await.unwrap().unwrap().into_bytes().await.unwrap().to_vec()
    }

    async fn version(&self, number: u64) -> StateVersion {
        let item = self.ledger.get(&StateVersion::key(Self::id(), number)).await.unwrap().unwrap();
        StateVersion::decode(&item.value).unwrap()
    }

    async fn head(&self) -> StateHead {
        let item = self.ledger.get(&StateHead::key(Self::id())).await.unwrap().unwrap();
        StateHead::decode(&item.value).unwrap()
    }

    async fn put<T: Record>(&self, key: Key<T>, record: &T) {
        let revision = self.app.context.ids.revision();
        self.ledger.commit(vec![put(key, Expect::Any, revision, record)]).await.unwrap();
    }

    /// The head, and this version if it is wanted, as a program without rows leaves them.
    async fn without_rows(&self, version: Option<u64>) {
        let mut head = self.head().await;
        head.current.as_mut().unwrap().rows = None;
        self.put(StateHead::key(Self::id()), &head).await;
        if let Some(number) = version {
            let mut version = self.version(number).await;
            version.kept.rows = None;
            self.put(StateVersion::key(Self::id(), number), &version).await;
        }
    }

    async fn problems(&self) -> Vec<String> {
        check_states::state(&self.app.context, Self::id()).await.unwrap().problems
    }

    async fn sweep_after(&self, days: u64) {
        self.app.advance(Duration::from_secs(days * DAY));
        for _ in 0..10 {
            self.app.sweep().await;
        }
    }

    /// The first pages of a list, as texts.
    async fn pages(&self, tail: &str) -> Vec<String> {
        let (mut pages, mut token) = (Vec::new(), String::new());
        for _ in 0..3 {
            let page = self.get(&format!("/resources?{tail}{token}")).await;
            pages.push(page.text());
            match page.expect(200)["continuationToken"].as_str() {
                Some(next) => token = format!("&continuationToken={next}"),
                None => break,
            }
        }
        pages
    }

    /// What pages and details show.
    async fn shown(&self) -> Vec<String> {
        let mut shown = Vec::new();
        for tail in [
            "size=200",
            "size=1",
            "size=499",
            "size=500",
            "size=1000",
            "filter=r0123",
            "filter=M%5B2%5D%20r01",
            "filter=terraform.io&size=3",
            "filter=none",
            "version=1&size=7",
        ] {
            shown.extend(self.pages(tail).await);
        }
        for address in ["terraform_data.r00000", "module.m%5B1%5D.terraform_data.r00101", "terraform_data.no"]
        {
            shown.push(self.get(&format!("/resource?address={address}")).await.text());
        }
        shown
    }
}

fn check_same(one: &[String], other: &[String]) {
    assert_eq!(one.len(), other.len());
    for (place, (one, other)) in one.iter().zip(other).enumerate() {
        assert!(one == other, "answer {place}: {one:.300} and {other:.300}");
    }
}

#[tokio::test]
async fn pages_of_a_long_state_are_those_of_its_text() {
    let long = Long::new().await;
    long.write(long_text(1, "a")).await.expect(200);
    assert_eq!(long.counts(), (1, 1));
    let first = long.get("/resources").await.expect(200);
    assert_eq!((&first["total"], &first["resources"][0]["name"]), (&json!(COUNT), &json!("r00000")));
    let base = long.get("/resource?address=terraform_data.r00000").await.expect(200);
    assert_eq!(base["dependents"].as_array().unwrap().len(), COUNT / 100);
    let of_rows = long.shown().await;
    assert!(of_rows.iter().all(|text| !text.contains(SECRET)));
    // No part of the rows can be read without the key.
    let stored = long.bytes(&long.blobs().0[0]).await;
    assert!(!String::from_utf8_lossy(&stored).contains("terraform_data"));
    assert_eq!(long.problems().await, [""; 0]);

    // An older program drops the rows from the head with its next write of it.
    long.without_rows(None).await;
    assert_eq!(long.problems().await, [""; 0]);
    long.without_rows(Some(1)).await;
    check_same(&of_rows, &long.shown().await);
}

#[tokio::test]
async fn a_short_state_has_no_rows() {
    let long = Long::new().await;
    long.write(text(1, 100, "a")).await.expect(200);
    assert_eq!(long.counts(), (0, 1));
    assert_eq!(long.get("/resources").await.expect(200)["total"], 100);
}

#[tokio::test]
async fn changes_of_long_versions_are_known_from_their_rows() {
    let long = Long::new().await;
    long.write(long_text(1, "a")).await.expect(200);
    long.write(long_text(2, "b")).await.expect(200);
    long.write(text(3, 100, "b")).await.expect(200);
    let mut counts = Vec::new();
    for number in 1..=3 {
        let changes = long.version(number).await.changes.unwrap();
        counts.push((changes.added_count, changes.changed_count, changes.removed_count));
    }
    let count = COUNT as u64;
    assert_eq!(counts, [(count, 0, 0), (0, count, 0), (0, 0, count - 100)]);
    // The lists in the versions name only the first ones.
    let history = long.get("/resource/history?address=terraform_data.r07996").await.expect(200);
    let ops: Vec<_> = history["entries"].as_array().unwrap().iter().map(|entry| &entry["op"]).collect();
    assert_eq!(ops, ["delete", "change", "create"]);
    assert_eq!(history["unknown"], json!([]));
}

async fn of_functions() -> (TestApp, Counter) {
    counted_with(Settings { states: LIMITS, ..Settings::default() }).await
}

#[tokio::test]
async fn i10_cheap_a_page_of_rows_costs_one_read() {
    let (app, counter) = of_functions().await;
    create(&app, STATE, "net").await;
    let writes = async |serials: std::ops::RangeInclusive<u64>, count: usize| -> Calls {
        for serial in serials {
            counter.take();
            write(&app, STATE, text(serial, count, &format!("v{serial}"))).await.expect(200);
        }
        counter.take()
    };
    let short = writes(1..=2, 100).await;
    let long = writes(3..=4, COUNT).await;
    // One blob more, and one read of that of the version before.
    assert_eq!((long.blob_puts, long.blob_gets), (short.blob_puts + 1, short.blob_gets + 1));
    let commits = |calls: Calls| (calls.ledger_single_commits, calls.ledger_joint_commits, calls.ledger_gets);
    assert_eq!(commits(long), commits(short));

    let path = format!("/api/tfstates/{STATE}");
    let page = app.get(&format!("{path}/resources")).send().await.expect(200);
    let token = page["continuationToken"].as_str().unwrap();
    for (tail, calls) in [
        ("/resources".to_owned(), "1 get, 1 blob get (2)"),
        ("/resources?size=499".to_owned(), "1 get, 1 blob get (2)"),
        ("/resources?filter=r0123".to_owned(), "1 get, 1 blob get (2)"),
        ("/resources?version=4".to_owned(), "2 get, 1 blob get (3)"),
        (format!("/resources?continuationToken={token}"), "2 get, 2 blob get (4)"),
        ("/resource?address=terraform_data.r00000".to_owned(), "1 get, 3 blob get (4)"),
    ] {
        counter.take();
        app.get(&format!("{path}{tail}")).send().await.expect(200);
        assert_eq!(describe_calls(counter.take()), calls, "{tail}");
    }
}

#[tokio::test]
async fn i10_cheap_a_page_of_equal_addresses_costs_two_reads() {
    const EQUAL: usize = 12_000;
    let (app, counter) = of_functions().await;
    create(&app, STATE, "net").await;
    let text = text_of_instances("", &vec![format!(r#"{{"attributes":"{}"}}"#, "x".repeat(200)); EQUAL]);
    write(&app, STATE, text).await.expect(200);
    let path = format!("/api/tfstates/{STATE}");
    let page = app.get(&format!("{path}/resources")).send().await.expect(200);
    assert_eq!((&page["total"], page["resources"].as_array().unwrap().len()), (&json!(EQUAL), 1));
    for (tail, calls) in
        [("/resources", "1 get, 2 blob get (3)"), ("/resource?address=t.n", "1 get, 3 blob get (4)")]
    {
        counter.take();
        app.get(&format!("{path}{tail}")).send().await.expect(200);
        assert_eq!(describe_calls(counter.take()), calls, "{tail}");
    }
}

/// As on functions: the key is loaded while the rows are read, and not after a text that names it.
#[tokio::test]
async fn i10_cheap_a_first_page_of_a_cold_process_waits_less() {
    const OTHER: &str = "019b7c3a-0000-7000-8000-000000000002";
    let (app, counter) = of_functions().await;
    let mut waits = Vec::new();
    for (id, project, count) in [(STATE, "long", COUNT), (OTHER, "short", 100)] {
        create(&app, id, project).await;
        write(&app, id, text(1, count, "a")).await.expect(200);
        let cold = app.another_process(project).await;
        counter.take();
        cold.get(&format!("/api/tfstates/{id}/resources")).send().await.expect(200);
        let calls = counter.take();
        assert_eq!((calls.blob_gets, calls.keys_unwrapped), (1, 1));
        waits.push(calls.in_sequence);
    }
    assert_eq!(waits[0] + 1, waits[1]);
}

/// Memory for a page does not grow with the state.
#[tokio::test]
async fn i9_bounded_a_page_takes_the_same_memory_for_any_state() {
    const MIB: usize = 1 << 20;
    let long = Long::new().await;
    let most = async |serial: u64, count: usize| {
        let text = text(serial, count, "a");
        let bytes = text.len();
        long.write(text).await.expect(200);
        while long.app.reserved() > 0 {
            tokio::task::yield_now().await;
        }
        long.app.most_reserved();
        let mut all = Vec::new();
        for tail in [
            "/resources",
            "/resources?filter=r0123",
            "/resource?address=module.m%5B1%5D.terraform_data.r00101",
        ] {
            long.get(tail).await.expect(200);
            all.push(long.app.most_reserved());
        }
        (bytes, all)
    };
    let (_, few) = most(1, COUNT).await;
    let (bytes, many) = most(2, 50_000).await;
    assert!(bytes > 12 * MIB, "{bytes}");
    assert!(many[0] < 2 * MIB, "{many:?}");
    for (few, many) in few.iter().zip(&many) {
        assert!(*many < 12 * MIB && *many < few + 4 * MIB, "{few} and {many}");
    }
}

/// Rows repeat what a text has once.
#[tokio::test]
async fn i9_bounded_a_crafted_text_has_no_rows_longer_than_itself() {
    const MIB: usize = 1 << 20;
    let long = Long::new().await;
    let empty = || vec!["{}".to_owned(); 720_000];
    let mode = format!(r#""mode":"{}","#, "m".repeat(3_000));
    let zeros = format!(r#"{{"dependencies":[{}]}}"#, vec!["0"; 2 * MIB].join(","));
    for (place, text) in
        [text_of_instances("", &empty()), text_of_instances(&mode, &empty()), text_of_instances("", &[zeros])]
            .into_iter()
            .enumerate()
    {
        let text = text.replace(r#""serial":1"#, &format!(r#""serial":{}"#, place + 1));
        let bytes = text.len();
        assert!(bytes > LIMITS.rows_above, "{bytes}");
        long.app.most_reserved();
        long.write(text).await.expect(200);
        let most = long.app.most_reserved();
        assert!(most < 8 * bytes + 8 * MIB, "{most} of {bytes}");
        assert_eq!(long.counts().0, 0, "{place}");
    }
    assert_eq!(long.get("/resources?version=1").await.expect(200)["total"], 720_000);
    assert_eq!(long.get("/resources?version=3").await.expect(200)["total"], 1);
}

/// A write may be the only record of what its client did, and a version can do without rows.
#[tokio::test]
async fn rows_that_cannot_be_stored_or_read_stop_no_write() {
    let faults = Faults::none();
    let long = Long::with_faults(Retention::DEFAULT, faults.clone()).await;
    // The text comes first, then the rows, of which no answer arrives.
    faults.fail_from(2, 4, Fault::After);
    long.write_patiently(long_text(1, "a")).await.expect(200);
    assert_eq!((long.counts().0, long.version(1).await.kept.rows), (0, None));
    assert_eq!(long.get("/resources").await.expect(200)["total"], COUNT);

    long.write(long_text(2, "b")).await.expect(200);
    let changed = long.version(2).await.changes.unwrap().changed_count;
    assert_eq!((long.counts().0, changed), (1, COUNT as u64));
    // The text comes first, and one read of the rows of the version before breaks off.
    faults.fail_from(1, 2, Fault::Cut);
    long.write_patiently(long_text(3, "c")).await.expect(200);
    assert_eq!(long.version(3).await.changes.unwrap().changed_count, COUNT as u64);
    faults.fail_from(1, 100, Fault::Cut);
    long.write_patiently(long_text(4, "d")).await.expect(200);
    faults.heal();
    let version = long.version(4).await;
    assert_eq!((version.changes, version.kept.rows.is_some()), (None, true));
    assert_eq!(long.counts().0, 3);
    assert_eq!(long.problems().await, [""; 0]);
}

#[tokio::test]
async fn damaged_rows_are_reported_and_the_text_tells_instead() {
    let long = Long::new().await;
    long.write(long_text(1, "a")).await.expect(200);
    let shown = long.shown().await;
    let key = long.blobs().0.remove(0);
    let bytes = long.bytes(&key).await;
    let [directory, ..] = long.version(1).await.kept.rows.unwrap().bytes;
    let altered = |at: usize| {
        let mut altered = bytes.clone();
        altered[at] ^= 1;
        altered
    };
    let behind = usize::try_from(directory).unwrap();
    for damaged in [vec![0; 10_000], altered(100), altered(behind + 40), bytes[..behind].to_vec(), Vec::new()]
    {
        long.blobs.put(&key, damaged.into()).await.unwrap();
        check_same(&shown[..2], &long.pages("size=200").await[..2]);
        let one = long.get("/resource?address=terraform_data.r00000").await.expect(200);
        assert_eq!(one["dependents"].as_array().unwrap().len(), COUNT / 100);
        let problems = long.problems().await;
        assert!(problems.len() == 1 && problems[0].contains("-rows does not match its hash"), "{problems:?}");
    }
    long.blobs.delete(&key).await.unwrap();
    check_same(&shown, &long.shown().await);
    assert!(long.problems().await[0].contains("-rows is missing"));

    // The next write takes place. What it changed is not known.
    long.write(long_text(2, "b")).await.expect(200);
    assert_eq!(long.version(2).await.changes, None);
    // The rows of one version are not taken for those of another.
    let (first, second) = (long.version(1).await.kept.rows_blob(), long.version(2).await.kept.rows_blob());
    let second = long.bytes(&BlobKey::parse(&second).unwrap()).await;
    long.blobs.put(&BlobKey::parse(&first).unwrap(), second.into()).await.unwrap();
    let page = long.get("/resources?version=1").await.expect(200);
    assert_eq!((&page["version"], &page["total"]), (&json!(1), &json!(COUNT)));
    assert_eq!(long.problems().await.len(), 1);
}

#[tokio::test]
async fn every_text_that_is_kept_has_its_rows_until_it_is_erased() {
    let long = Long::new().await;
    long.write(long_text(1, "a")).await.expect(200);
    long.write(long_text(2, "b")).await.expect(200);
    long.get("/resources?version=2").await.expect(200);
    long.app
        .post(&format!("/api/tfstates/{STATE}/versions/1/restore"), &Value::Null)
        .send()
        .await
        .expect(200);
    assert_eq!(long.counts(), (3, 3));
    assert!(long.version(3).await.kept.rows.is_some());
    long.write(long_text(1, "c")).await.refused(409);
    assert_eq!(long.counts(), (4, 4));
    let refused = long.get("/rejected").await.expect(200);
    let id = refused["rejected"][0]["id"].as_str().unwrap();
    let page = long.get(&format!("/resources?version={id}")).await.expect(200);
    assert_eq!((&page["total"], &page["rejected"]), (&json!(COUNT), &json!(id)));
    let item = long.ledger.get(&RejectedState::key(Long::id(), id)).await.unwrap().unwrap();
    assert!(RejectedState::decode(&item.value).unwrap().kept.rows.is_some());
    assert_eq!(long.problems().await, [""; 0]);

    // The refused write goes first, then the state.
    long.sweep_after(31).await;
    long.sweep_after(40).await;
    assert_eq!(long.counts(), (3, 3));
    let path = format!("/api/tfstates/{STATE}?force=true");
    long.app.request(Method::DELETE, &path).send().await.expect(204);
    long.sweep_after(100).await;
    long.sweep_after(100).await;
    assert_eq!(long.counts(), (0, 0));
}

#[tokio::test]
async fn old_versions_are_erased_with_their_rows() {
    let retention = Retention { state_versions: NonZeroU64::new(1), ..Retention::DEFAULT };
    let long = Long::with(retention).await;
    for serial in 1..=3 {
        long.write(long_text(serial, &format!("v{serial}"))).await.expect(200);
    }
    assert_eq!(long.counts(), (3, 3));
    long.sweep_after(1).await;
    long.sweep_after(40).await;
    assert_eq!(long.counts(), (1, 1));
    assert_eq!(long.problems().await, [""; 0]);
}

#[tokio::test]
async fn a_write_that_is_sent_twice_at_once_leaves_no_rows_behind() {
    let long = Long::new().await;
    long.write(text(1, 10, "a")).await.expect(200);
    let same = long_text(2, "b");
    let (one, other) = futures::join!(long.write(same.clone()), long.write(same));
    one.expect(200);
    other.expect(200);
    assert_eq!(long.counts(), (1, 2));
    assert_eq!(long.head().await.version, 2);
}

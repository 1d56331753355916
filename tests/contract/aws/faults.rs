//! What AWS does and the stand-in does not: lost answers, load, conflicts of transactions. A proxy between the
//! two plays it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use statewright_shared::adapters::aws::{AwsStore, DynamoLedger, Names};
use statewright_shared::adapters::{SeededIds, SteppingClock};
use statewright_shared::ports::{
    BlobKey, Blobs, Clock, CommitError, Expect, Inventory, Item, ItemKey, KeyContext, Keys, KeysError,
    Ledger, Order, PortError, Query, Refusal, Revision, Timestamp, Write, WriteAction,
};
use statewright_tests::aws::{self, Gateway, Play, StandIn};

/// A store behind a proxy, with a clock on which sleeping takes no time.
struct World {
    gateway: Gateway,
    clock: SteppingClock,
    names: Names,
    store: AwsStore,
}

const START: Timestamp = Timestamp(1_767_225_600_000_000_000);

impl World {
    async fn new() -> Self {
        let stand_in = StandIn::of_this_process();
        let (_, names) = stand_in.fresh_store().await;
        let gateway = Gateway::before(stand_in).await;
        let clock = SteppingClock::new(START);
        let ids = Arc::new(SeededIds::new(1));
        let store = aws::store(&gateway.url, &names, Arc::new(clock.clone()), ids).await;
        Self { gateway, clock, names, store }
    }

    fn ledger(&self) -> &DynamoLedger {
        &self.store.ledger
    }

    fn waited(&self) -> Duration {
        self.clock.now().since(START)
    }
}

/// Two steps after the start of 2200, so that nothing drops it.
const EXPIRES: Timestamp = Timestamp(7_258_118_400_000_000_001);

fn key(sort: &str) -> ItemKey {
    ItemKey::new("P", sort)
}

pub(crate) fn put(sort: &str, revision: u64) -> Write {
    let action = WriteAction::Put {
        revision: Revision(revision),
        value: Bytes::from_static(b"value"),
        expires: Some(EXPIRES),
    };
    Write { key: key(sort), expect: Expect::Absent, action }
}

fn item(sort: &str, revision: u64) -> Item {
    Item {
        key: key(sort),
        revision: Revision(revision),
        value: Bytes::from_static(b"value"),
        expires: Some(EXPIRES),
    }
}

fn two(revision: u64) -> Vec<Write> {
    vec![put("a", revision), put("b", revision)]
}

fn is_not_done(outcome: &Result<(), CommitError>) -> bool {
    matches!(outcome, Err(CommitError::Port(PortError::NotDone { .. })))
}

fn is_unknown(outcome: &Result<(), CommitError>) -> bool {
    matches!(outcome, Err(CommitError::Port(PortError::Unknown { .. })))
}

/// The client must not repeat it by itself: its own put would refuse the repeat, which would look like another
/// writer's.
#[tokio::test]
async fn a_put_whose_answer_is_lost_is_unknown_and_sent_once() {
    let world = World::new().await;
    world.gateway.play("PutItem", 1, Play::LoseTheAnswer);
    let outcome = world.ledger().commit(vec![put("a", 1)]).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    assert_eq!(world.gateway.seen(), ["PutItem"]);
    assert_eq!(world.ledger().get(&key("a")).await.unwrap(), Some(item("a", 1)));

    let again = world.ledger().commit(vec![put("a", 1)]).await;
    let Err(CommitError::Refused(Refusal { index: 0, current: Some(current) })) = again else {
        panic!("{again:?}");
    };
    assert_eq!(current.revision, Revision(1), "its own revision proves that it was done");
}

#[tokio::test]
async fn a_put_that_is_lost_on_its_way_is_unknown_and_can_be_repeated() {
    let world = World::new().await;
    world.gateway.play("PutItem", 1, Play::LoseTheRequest);
    let outcome = world.ledger().commit(vec![put("a", 1)]).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    assert_eq!(world.ledger().get(&key("a")).await.unwrap(), None);
    world.ledger().commit(vec![put("a", 1)]).await.unwrap();
}

#[tokio::test]
async fn a_transaction_whose_answer_is_lost_is_unknown_and_sent_once() {
    let world = World::new().await;
    world.gateway.play("TransactWriteItems", 1, Play::LoseTheAnswer);
    let outcome = world.ledger().commit(two(1)).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    assert_eq!(world.gateway.seen(), ["TransactWriteItems"]);
    assert_eq!(world.ledger().get(&key("b")).await.unwrap(), Some(item("b", 1)));
}

/// The timeout is a real one, so this test waits for it: a tenth of a second.
#[tokio::test]
async fn an_answer_that_does_not_come_in_time_is_unknown() {
    let world = World::new().await;
    let clients = aws::clients_with_timeout(&world.gateway.url, Duration::from_millis(100)).await;
    let (clock, ids) = (Arc::new(world.clock.clone()), Arc::new(SeededIds::new(2)));
    let ledger = DynamoLedger::new(&clients, world.names.table.clone(), clock, ids);
    world.gateway.play("PutItem", 1, Play::HoldTheAnswer);
    let outcome = ledger.commit(vec![put("a", 1)]).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
}

#[tokio::test]
async fn a_failure_inside_of_the_service_is_unknown() {
    let world = World::new().await;
    for (operation, writes) in [("PutItem", vec![put("a", 1)]), ("TransactWriteItems", two(1))] {
        world.gateway.play(operation, 1, Play::json_error(500, "InternalServerError"));
        let outcome = world.ledger().commit(writes).await;
        assert!(is_unknown(&outcome), "{outcome:?}");
    }
    assert_eq!(world.gateway.seen(), ["PutItem", "TransactWriteItems"]);
}

#[tokio::test]
async fn a_cut_answer_is_unknown_for_writes_and_not_done_for_reads() {
    let world = World::new().await;
    world.gateway.play("PutItem", 1, Play::CutTheAnswer);
    let outcome = world.ledger().commit(vec![put("a", 1)]).await;
    assert!(is_unknown(&outcome), "{outcome:?}");
    world.gateway.play("GetItem", 1, Play::CutTheAnswer);
    let outcome = world.ledger().get(&key("a")).await;
    assert!(matches!(outcome, Err(PortError::NotDone { .. })), "{outcome:?}");
}

#[tokio::test]
async fn a_call_refused_as_sent_is_not_done() {
    let world = World::new().await;
    for code in ["ValidationException", "AccessDeniedException", "ResourceNotFoundException"] {
        world.gateway.play("PutItem", 1, Play::json_error(400, code));
        let outcome = world.ledger().commit(vec![put("a", 1)]).await;
        assert!(is_not_done(&outcome), "{code}: {outcome:?}");
    }
    assert_eq!(world.gateway.seen().len(), 3, "none of them is repeated");
}

#[tokio::test]
async fn a_throttled_call_is_done_when_the_load_is_over() {
    for code in ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"] {
        let world = World::new().await;
        let throttled = || Play::json_error(400, code);
        for operation in ["PutItem", "TransactWriteItems", "GetItem", "Query", "DeleteItem"] {
            world.gateway.play(operation, 2, throttled());
        }
        world.ledger().commit(vec![put("z", 1)]).await.unwrap();
        world.ledger().commit(two(1)).await.unwrap();
        assert_eq!(world.ledger().get(&key("b")).await.unwrap(), Some(item("b", 1)));
        let delete = Write { key: key("z"), expect: Expect::Any, action: WriteAction::Delete };
        world.ledger().commit(vec![delete]).await.unwrap();
        let all = Query {
            partition: "P".to_owned(),
            prefix: String::new(),
            after: None,
            order: Order::Ascending,
            limit: 9,
        };
        let page = world.ledger().query(&all).await.unwrap();
        assert_eq!(page.items, [item("a", 1), item("b", 1)]);
        assert_eq!(world.gateway.seen().len(), 5 * 3);
        assert!(world.waited() > Duration::ZERO);
    }
}

#[tokio::test]
async fn lasting_throttling_is_not_done_within_two_seconds() {
    let world = World::new().await;
    world.gateway.play("PutItem", usize::MAX, Play::json_error(400, "ThrottlingException"));
    let outcome = world.ledger().commit(vec![put("a", 1)]).await;
    assert!(is_not_done(&outcome), "{outcome:?}");
    assert_eq!(world.gateway.seen().len(), 6);
    assert!(world.waited() > Duration::from_millis(50) && world.waited() < Duration::from_secs(2));

    world.gateway.play(
        "TransactWriteItems",
        usize::MAX,
        Play::cancelled(&["None", "ProvisionedThroughputExceeded"]),
    );
    let outcome = world.ledger().commit(two(1)).await;
    assert!(is_not_done(&outcome), "{outcome:?}");
    assert_eq!(world.ledger().get(&key("a")).await.unwrap(), None);
}

#[tokio::test]
async fn two_rejected_stores_wait_for_different_times() {
    let mut waits = Vec::new();
    for seed in 0..4 {
        let world = World::new().await;
        let clients = aws::clients(&world.gateway.url).await;
        let (clock, ids) = (Arc::new(world.clock.clone()), Arc::new(SeededIds::new(seed)));
        let ledger = DynamoLedger::new(&clients, world.names.table.clone(), clock, ids);
        world.gateway.play("PutItem", 1, Play::json_error(400, "TransactionConflictException"));
        ledger.commit(vec![put("a", 1)]).await.unwrap();
        assert!(!waits.contains(&world.waited()), "{waits:?}");
        waits.push(world.waited());
    }
}

#[tokio::test]
async fn a_conflicting_transaction_is_done_in_the_end() {
    let world = World::new().await;
    let met = Play::cancelled(&["None", "TransactionConflict"]);
    world.gateway.play("TransactWriteItems", 3, met);
    world.ledger().commit(two(1)).await.unwrap();
    assert_eq!(world.gateway.seen().len(), 4);
    assert_eq!(world.ledger().get(&key("b")).await.unwrap(), Some(item("b", 1)));
}

/// The first write's condition was not checked, so it may be the first that does not hold: the next attempt tells.
#[tokio::test]
async fn a_refusal_behind_a_conflict_waits_for_the_first_refusal() {
    let world = World::new().await;
    world.ledger().commit(two(1)).await.unwrap();
    world.gateway.play(
        "TransactWriteItems",
        1,
        Play::cancelled(&["TransactionConflict", "ConditionalCheckFailed"]),
    );
    let outcome = world.ledger().commit(two(2)).await;
    let Err(CommitError::Refused(refusal)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(refusal, Refusal { index: 0, current: Some(item("a", 1)) });
}

#[tokio::test]
async fn a_transaction_that_can_never_be_done_is_not_tried_again() {
    let world = World::new().await;
    world.gateway.play("TransactWriteItems", 1, Play::cancelled(&["None", "ValidationError"]));
    let outcome = world.ledger().commit(two(1)).await;
    let Err(CommitError::Port(PortError::NotDone { source, .. })) = &outcome else { panic!("{outcome:?}") };
    assert!(source.to_string().ends_with("write 1: ValidationError"), "{source}");
    assert_eq!(world.gateway.seen(), ["TransactWriteItems"]);
}

/// The billed calls: one call for one write, one transaction for several, a read for a check, and none for a
/// no-op.
#[tokio::test]
async fn a_commit_is_one_call() {
    let world = World::new().await;
    let check = |expect| Write { key: key("a"), expect, action: WriteAction::Check };
    let delete = |sort: &str| Write { key: key(sort), expect: Expect::Any, action: WriteAction::Delete };
    for (writes, calls) in [
        (vec![put("a", 1)], vec!["PutItem"]),
        (vec![put("b", 1), put("c", 1)], vec!["TransactWriteItems"]),
        (vec![check(Expect::Revision(Revision(1)))], vec!["GetItem"]),
        (vec![check(Expect::Any)], vec![]),
        (vec![check(Expect::Any), put("d", 1)], vec!["PutItem"]),
        (vec![check(Expect::Revision(Revision(1))), delete("b")], vec!["TransactWriteItems"]),
        (vec![delete("c")], vec!["DeleteItem"]),
    ] {
        let before = world.gateway.seen().len();
        world.ledger().commit(writes).await.unwrap();
        assert_eq!(world.gateway.seen().split_off(before), calls);
    }
    let outcome = world.ledger().commit(vec![check(Expect::Any), put("d", 2)]).await;
    let Err(CommitError::Refused(Refusal { index: 1, .. })) = outcome else { panic!("{outcome:?}") };
}

fn blob() -> BlobKey {
    BlobKey::parse("snap/stack/update").unwrap()
}

#[tokio::test]
async fn a_blob_is_stored_once_s3_has_time_for_it() {
    for (status, code) in [(503, "SlowDown"), (409, "OperationAborted"), (409, "ConditionalRequestConflict")]
    {
        let world = World::new().await;
        for method in ["PUT", "GET", "DELETE"] {
            world.gateway.play(method, 2, Play::xml_error(status, code));
        }
        let blobs = &world.store.blobs;
        blobs.put(&blob(), Bytes::from_static(b"body")).await.unwrap();
        let found = blobs.get(&blob()).await.unwrap().unwrap();
        assert_eq!(found.into_bytes().await.unwrap(), "body");
        blobs.delete(&blob()).await.unwrap();
        assert_eq!(world.gateway.seen().len(), 9);
        assert!(world.waited() > Duration::ZERO);
    }
}

#[tokio::test]
async fn answers_of_s3_are_distinguished() {
    let world = World::new().await;
    let blobs = &world.store.blobs;
    let put = async || blobs.put(&blob(), Bytes::from_static(b"body")).await;
    for (status, code) in [(412, "PreconditionFailed"), (403, "AccessDenied"), (404, "NoSuchBucket")] {
        world.gateway.play("PUT", 1, Play::xml_error(status, code));
        let outcome = put().await;
        assert!(matches!(outcome, Err(PortError::NotDone { .. })), "{code}: {outcome:?}");
    }
    for play in [Play::xml_error(500, "InternalError"), Play::LoseTheAnswer, Play::LoseTheRequest] {
        world.gateway.play("PUT", 1, play);
        let outcome = put().await;
        assert!(matches!(outcome, Err(PortError::Unknown { .. })), "{outcome:?}");
    }
    world.gateway.play("PUT", usize::MAX, Play::xml_error(503, "SlowDown"));
    let outcome = put().await;
    assert!(matches!(outcome, Err(PortError::NotDone { .. })), "{outcome:?}");

    // A missing bucket does not prove that there never was a blob.
    world.gateway.play("GET", 1, Play::xml_error(404, "NoSuchBucket"));
    let outcome = blobs.get(&blob()).await.map(|found| found.is_some());
    assert!(matches!(outcome, Err(PortError::NotDone { .. })), "{outcome:?}");
    world.gateway.play("GET", 1, Play::xml_error(404, "NoSuchKey"));
    assert!(blobs.get(&blob()).await.unwrap().is_none());
    world.gateway.play("DELETE", 1, Play::xml_error(404, "NoSuchKey"));
    blobs.delete(&blob()).await.unwrap();
}

#[tokio::test]
async fn a_blob_that_is_cut_or_altered_ends_with_an_error() {
    let world = World::new().await;
    let blobs = &world.store.blobs;
    blobs.put(&blob(), Bytes::from(vec![7; 300_000])).await.unwrap();
    for play in [Play::CutTheAnswer, Play::GarbleTheAnswer] {
        world.gateway.play("GET", 1, play.clone());
        let outcome = blobs.get(&blob()).await.unwrap().unwrap().into_bytes().await;
        assert!(matches!(outcome, Err(PortError::NotDone { .. })), "{play:?}");
    }
    let whole = blobs.get(&blob()).await.unwrap().unwrap().into_bytes().await.unwrap();
    assert_eq!(whole, vec![7; 300_000]);
    // A blob in one piece is verified at its end too.
    blobs.put(&blob(), Bytes::from_static(b"small")).await.unwrap();
    world.gateway.play("GET", 1, Play::GarbleTheAnswer);
    let outcome = blobs.get(&blob()).await.unwrap().unwrap().into_bytes().await;
    assert!(matches!(outcome, Err(PortError::NotDone { .. })), "{outcome:?}");
}

#[tokio::test]
async fn a_disabled_key_is_unusable_and_a_wrong_one_a_mismatch() {
    let world = World::new().await;
    let keys = &world.store.keys;
    let context = KeyContext { name: "stack", value: "one".to_owned() };
    let (_, wrapped) = keys.generate(&context).await.unwrap();
    for code in
        ["DisabledException", "KMSInvalidStateException", "NotFoundException", "AccessDeniedException"]
    {
        for operation in ["Decrypt", "GenerateDataKey"] {
            world.gateway.play(operation, 1, Play::json_error(400, code));
        }
        let unwrapped = keys.unwrap(&wrapped, &context).await;
        assert!(matches!(unwrapped, Err(KeysError::Unusable(_))), "{code}");
        let made = keys.generate(&context).await;
        assert!(matches!(made, Err(KeysError::Unusable(_))), "{code}");
    }
    world.gateway.play("Decrypt", 1, Play::json_error(500, "KeyUnavailableException"));
    let away = keys.unwrap(&wrapped, &context).await;
    assert!(matches!(away, Err(KeysError::Port(PortError::NotDone { .. }))), "{away:?}");
    for code in ["InvalidCiphertextException", "IncorrectKeyException"] {
        world.gateway.play("Decrypt", 1, Play::json_error(400, code));
        assert!(matches!(keys.unwrap(&wrapped, &context).await, Err(KeysError::Mismatch)), "{code}");
    }
    for operation in ["Decrypt", "GenerateDataKey"] {
        world.gateway.play(operation, 2, Play::json_error(400, "ThrottlingException"));
    }
    keys.unwrap(&wrapped, &context).await.unwrap();
    keys.generate(&context).await.unwrap();
}

/// DynamoDB ends a part of a scan at 1 MB, and so does the stand-in: the suite would not notice a stand-in that
/// does not.
#[tokio::test]
async fn listing_many_megabytes_takes_many_scans() {
    let world = World::new().await;
    for n in 0..12_u8 {
        let mut write = put(&format!("{n:02}"), u64::from(n));
        write.action =
            WriteAction::Put { revision: Revision(1), value: vec![n; 300_000].into(), expires: None };
        world.ledger().commit(vec![write]).await.unwrap();
    }
    let before = world.gateway.seen().len();
    let (mut found, mut from) = (0, None);
    loop {
        let part = world.store.items("", from.as_ref()).await.unwrap();
        found += part.found.len();
        from = part.next;
        if from.is_none() {
            break;
        }
    }
    let scans = world.gateway.seen().split_off(before);
    assert_eq!((found, scans.iter().all(|call| call == "Scan")), (12, true), "{scans:?}");
    assert!(scans.len() >= 4, "{scans:?}");

    world.gateway.play("Scan", 2, Play::json_error(400, "ProvisionedThroughputExceededException"));
    assert!(world.store.items("", None).await.is_ok());
    world.gateway.play("Scan", 1, Play::json_error(400, "AccessDeniedException"));
    assert!(matches!(world.store.items("", None).await, Err(PortError::NotDone { .. })));
}

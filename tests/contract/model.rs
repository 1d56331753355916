//! Compares ledgers with the one in memory, which is simple enough to trust: the same calls get the same answers.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use statewright_shared::adapters::MemoryLedger;
use statewright_shared::ports::{
    CommitError, Expect, ItemKey, Ledger, Order, Query, Revision, Timestamp, Write, WriteAction,
};

/// A call of a ledger.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Get(ItemKey),
    Query(Query),
    Commit(Vec<Write>),
}

/// A few texts, so that calls collide: one is another's prefix, some have characters that are special elsewhere.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec!["a", "a\0", "a%", "aa", "ab", "b", "\u{e9}", "\u{10ffff}"]),
        1 => prop::sample::select(vec!["A", "_", "a ", "\u{ffff}", "10", "9"]),
    ]
    .prop_map(str::to_owned)
}

fn key() -> impl Strategy<Value = ItemKey> {
    (prop::sample::select(vec!["P", "Q"]), text()).prop_map(|(partition, sort)| ItemKey::new(partition, sort))
}

fn write() -> impl Strategy<Value = Write> {
    let expect = prop_oneof![
        3 => Just(Expect::Any),
        2 => Just(Expect::Absent),
        2 => (0..4_u64).prop_map(|revision| Expect::Revision(Revision(revision))),
    ];
    let put =
        (0..4_u64, vec(any::<u8>(), 0..40), any::<Option<i64>>()).prop_map(|(revision, value, expires)| {
            WriteAction::Put {
                revision: Revision(revision),
                value: Bytes::from(value),
                expires: expires.map(Timestamp),
            }
        });
    let action = prop_oneof![4 => put, 1 => Just(WriteAction::Delete), 1 => Just(WriteAction::Check)];
    (key(), expect, action).prop_map(|(key, expect, action)| Write { key, expect, action })
}

fn query() -> impl Strategy<Value = Query> {
    let prefix = prop_oneof![Just(String::new()), text()];
    let order = prop::sample::select(vec![Order::Ascending, Order::Descending]);
    (prefix, prop::option::of(text()), order, 1..12_usize).prop_map(|(prefix, after, order, limit)| Query {
        partition: "P".to_owned(),
        prefix,
        after,
        order,
        limit,
    })
}

/// Any call.
pub(crate) fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        1 => key().prop_map(Call::Get),
        2 => query().prop_map(Call::Query),
        // A commit that names a key twice is invalid; a few are made.
        3 => vec(write(), 1..5).prop_map(Call::Commit),
    ]
}

/// The answer as text; of a port's error only whether something may have happened.
async fn answer(ledger: &dyn Ledger, call: Call) -> String {
    match call {
        Call::Get(key) => format!("{:?}", ledger.get(&key).await.unwrap()),
        // A ledger may report that there is more where there is nothing.
        Call::Query(query) => format!("{:?}", ledger.query(&query).await.unwrap().items),
        Call::Commit(writes) => match ledger.commit(writes).await {
            Err(CommitError::Port(error)) => error.to_string(),
            answered => format!("{answered:?}"),
        },
    }
}

/// Makes these calls on an empty ledger and on the one in memory.
pub(crate) async fn compare(ledger: &dyn Ledger, calls: Vec<Call>) -> Result<(), TestCaseError> {
    let model = MemoryLedger::new();
    for call in calls {
        if let Call::Query(query) = &call {
            let more = model.query(query).await.unwrap().more;
            prop_assert!(!more || ledger.query(query).await.unwrap().more, "{query:?} ends too early");
        }
        let expected = answer(&model, call.clone()).await;
        prop_assert_eq!(answer(ledger, call).await, expected);
    }
    Ok(())
}

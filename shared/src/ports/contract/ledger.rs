//! What every [`Ledger`] promises.
//!
//! Each contract works in partitions that carry its own name, so that a suite can also run against a shared table.

use std::sync::Arc;

use bytes::Bytes;

use crate::ports::{
    CommitError, Expect, ITEM_BYTES_MAX, Item, ItemKey, Ledger, Order, Page, PortError, Query, Refusal,
    Revision, Timestamp, Write, WriteAction,
};

/// One test for each contract of [`Ledger`]; see [`crate::ports::contract`].
#[macro_export]
macro_rules! ledger_contract {
    ($make:expr) => {
        $crate::contract_tests!(
            ledger,
            $make,
            [
                what_was_put_is_found,
                an_absent_item_is_none,
                put_absent_succeeds_when_there_is_none,
                put_absent_is_refused_when_there_is_one,
                put_any_replaces_an_existing_item,
                put_at_a_revision_succeeds_on_that_revision,
                put_at_a_revision_is_refused_on_another_and_on_none,
                delete_removes_the_item,
                delete_of_an_absent_item_succeeds,
                delete_at_a_revision_is_refused_on_another,
                put_absent_succeeds_after_a_delete,
                a_check_writes_nothing,
                a_failed_check_refuses_the_commit,
                a_commit_writes_everything_or_nothing,
                the_first_refused_write_is_named,
                a_commit_over_many_partitions_is_whole,
                a_commit_of_a_hundred_writes_succeeds,
                a_commit_out_of_bounds_is_not_done,
                committing_again_after_a_lost_answer_shows_the_own_revision,
                every_revision_is_kept_exactly,
                every_expiry_is_kept_exactly,
                an_empty_value_is_a_value,
                large_values_are_kept,
                values_are_opaque_bytes,
                odd_keys_are_kept_and_distinct,
                query_orders_by_bytes,
                query_descending_is_the_reverse,
                query_keeps_to_its_partition,
                query_keeps_to_its_prefix,
                query_starts_behind_after,
                query_without_matches_is_an_empty_last_page,
                query_pages_cover_everything_once,
                query_pages_of_large_values_cover_everything_once,
                query_says_when_more_is_left,
                a_commit_is_seen_by_every_read_after_it,
                readers_never_see_half_a_commit,
                sixteen_writers_on_one_counter_lose_nothing,
                sixteen_writers_append_a_dense_log,
            ]
        );
    };
}

fn key(partition: &str, sort: &str) -> ItemKey {
    ItemKey::new(partition, sort)
}

fn write(key: &ItemKey, expect: Expect, action: WriteAction) -> Write {
    Write { key: key.clone(), expect, action }
}

fn put(key: &ItemKey, expect: Expect, revision: u64, value: impl Into<Bytes>) -> Write {
    let action = WriteAction::Put { revision: Revision(revision), value: value.into(), expires: None };
    write(key, expect, action)
}

fn item(key: &ItemKey, revision: u64, value: impl Into<Bytes>) -> Item {
    Item { key: key.clone(), revision: Revision(revision), value: value.into(), expires: None }
}

async fn commit(ledger: &Arc<dyn Ledger>, writes: impl IntoIterator<Item = Write>) {
    ledger.commit(writes.into_iter().collect()).await.expect("the commit succeeds");
}

/// The refusal of a commit that must be refused.
async fn refusal(ledger: &Arc<dyn Ledger>, writes: impl IntoIterator<Item = Write>) -> Refusal {
    match ledger.commit(writes.into_iter().collect()).await {
        Err(CommitError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

async fn get(ledger: &Arc<dyn Ledger>, key: &ItemKey) -> Option<Item> {
    ledger.get(key).await.expect("a get succeeds")
}

fn query(partition: &str) -> Query {
    Query {
        partition: partition.to_owned(),
        prefix: String::new(),
        after: None,
        order: Order::Ascending,
        limit: 1000,
    }
}

async fn page(ledger: &Arc<dyn Ledger>, query: &Query) -> Page {
    let page = ledger.query(query).await.expect("a query succeeds");
    assert!(page.items.len() <= query.limit, "no more than asked for");
    assert!(!(page.more && page.items.is_empty()), "an empty page is the last");
    page
}

/// All items of a query, page by page.
async fn all(ledger: &Arc<dyn Ledger>, mut query: Query) -> Vec<Item> {
    let mut items = Vec::new();
    loop {
        let page = page(ledger, &query).await;
        items.extend(page.items);
        if !page.more {
            return items;
        }
        query.after = items.last().map(|item: &Item| item.key.sort.clone());
    }
}

async fn sorts(ledger: &Arc<dyn Ledger>, query: Query) -> Vec<String> {
    all(ledger, query).await.into_iter().map(|item| item.key.sort).collect()
}

async fn fill(ledger: &Arc<dyn Ledger>, partition: &str, sorts: &[&str]) {
    for chunk in sorts.chunks(100) {
        let writes = chunk.iter().map(|sort| put(&key(partition, sort), Expect::Absent, 1, sort.to_string()));
        commit(ledger, writes).await;
    }
}

/// A put is visible at once, exactly as it was made.
pub async fn what_was_put_is_found(ledger: Arc<dyn Ledger>) {
    let key = key("what_was_put_is_found", "a");
    commit(&ledger, [put(&key, Expect::Any, 7, "value")]).await;
    assert_eq!(get(&ledger, &key).await, Some(item(&key, 7, "value")));
}

/// Absence is an answer, with and without neighbors.
pub async fn an_absent_item_is_none(ledger: Arc<dyn Ledger>) {
    let partition = "an_absent_item_is_none";
    assert_eq!(get(&ledger, &key(partition, "b")).await, None);
    fill(&ledger, partition, &["a", "bb", "c"]).await;
    assert_eq!(get(&ledger, &key(partition, "b")).await, None);
}

/// A put that expects absence creates the item.
pub async fn put_absent_succeeds_when_there_is_none(ledger: Arc<dyn Ledger>) {
    let key = key("put_absent_succeeds_when_there_is_none", "a");
    commit(&ledger, [put(&key, Expect::Absent, 1, "one")]).await;
    assert_eq!(get(&ledger, &key).await, Some(item(&key, 1, "one")));
}

/// The second of two creations loses and sees the first.
pub async fn put_absent_is_refused_when_there_is_one(ledger: Arc<dyn Ledger>) {
    let key = key("put_absent_is_refused_when_there_is_one", "a");
    commit(&ledger, [put(&key, Expect::Absent, 1, "one")]).await;
    let refusal = refusal(&ledger, [put(&key, Expect::Absent, 2, "two")]).await;
    assert_eq!(refusal, Refusal { index: 0, current: Some(item(&key, 1, "one")) });
    assert_eq!(get(&ledger, &key).await, Some(item(&key, 1, "one")));
}

/// A put without an expectation is never refused and leaves nothing of the old item.
pub async fn put_any_replaces_an_existing_item(ledger: Arc<dyn Ledger>) {
    let key = key("put_any_replaces_an_existing_item", "a");
    let first = WriteAction::Put {
        revision: Revision(1),
        value: Bytes::from("a longer value"),
        expires: Some(Timestamp(5)),
    };
    commit(&ledger, [write(&key, Expect::Any, first)]).await;
    commit(&ledger, [put(&key, Expect::Any, 2, "two")]).await;
    assert_eq!(get(&ledger, &key).await, Some(item(&key, 2, "two")));
}

/// Read, decide, write.
pub async fn put_at_a_revision_succeeds_on_that_revision(ledger: Arc<dyn Ledger>) {
    let key = key("put_at_a_revision_succeeds_on_that_revision", "a");
    commit(&ledger, [put(&key, Expect::Absent, 1, "one")]).await;
    commit(&ledger, [put(&key, Expect::Revision(Revision(1)), 2, "two")]).await;
    assert_eq!(get(&ledger, &key).await, Some(item(&key, 2, "two")));
}

/// A stale decision is not written, even if the item is gone or has the same value again.
pub async fn put_at_a_revision_is_refused_on_another_and_on_none(ledger: Arc<dyn Ledger>) {
    let key = key("put_at_a_revision_is_refused_on_another_and_on_none", "a");
    let late = || [put(&key, Expect::Revision(Revision(1)), 9, "late")];
    assert_eq!(refusal(&ledger, late()).await, Refusal { index: 0, current: None });
    commit(&ledger, [put(&key, Expect::Absent, 1, "same")]).await;
    commit(&ledger, [put(&key, Expect::Any, 2, "same")]).await;
    let current = Some(item(&key, 2, "same"));
    assert_eq!(refusal(&ledger, late()).await, Refusal { index: 0, current: current.clone() });
    assert_eq!(get(&ledger, &key).await, current);
}

/// A delete is visible at once, to get and to query.
pub async fn delete_removes_the_item(ledger: Arc<dyn Ledger>) {
    let partition = "delete_removes_the_item";
    fill(&ledger, partition, &["a", "b", "c"]).await;
    commit(&ledger, [write(&key(partition, "b"), Expect::Any, WriteAction::Delete)]).await;
    assert_eq!(get(&ledger, &key(partition, "b")).await, None);
    let at = Expect::Revision(Revision(1));
    commit(&ledger, [write(&key(partition, "a"), at, WriteAction::Delete)]).await;
    assert_eq!(sorts(&ledger, query(partition)).await, ["c"]);
}

/// A retried delete without an expectation succeeds; a delete may also expect absence.
pub async fn delete_of_an_absent_item_succeeds(ledger: Arc<dyn Ledger>) {
    let key = key("delete_of_an_absent_item_succeeds", "a");
    for expect in [Expect::Any, Expect::Absent, Expect::Any] {
        commit(&ledger, [write(&key, expect, WriteAction::Delete)]).await;
    }
    assert_eq!(get(&ledger, &key).await, None);
}

/// An item that has changed since it was read is not deleted. Nor is an absent one.
pub async fn delete_at_a_revision_is_refused_on_another(ledger: Arc<dyn Ledger>) {
    let key = key("delete_at_a_revision_is_refused_on_another", "a");
    let late = || [write(&key, Expect::Revision(Revision(1)), WriteAction::Delete)];
    assert_eq!(refusal(&ledger, late()).await, Refusal { index: 0, current: None });
    commit(&ledger, [put(&key, Expect::Absent, 2, "two")]).await;
    let current = Some(item(&key, 2, "two"));
    assert_eq!(refusal(&ledger, late()).await, Refusal { index: 0, current: current.clone() });
    assert_eq!(get(&ledger, &key).await, current);
}

/// A deleted item leaves nothing behind.
pub async fn put_absent_succeeds_after_a_delete(ledger: Arc<dyn Ledger>) {
    let key = key("put_absent_succeeds_after_a_delete", "a");
    commit(&ledger, [put(&key, Expect::Absent, 1, "one")]).await;
    commit(&ledger, [write(&key, Expect::Revision(Revision(1)), WriteAction::Delete)]).await;
    commit(&ledger, [put(&key, Expect::Absent, 2, "two")]).await;
    assert_eq!(get(&ledger, &key).await, Some(item(&key, 2, "two")));
}

/// A commit may consist of checks alone.
pub async fn a_check_writes_nothing(ledger: Arc<dyn Ledger>) {
    let partition = "a_check_writes_nothing";
    fill(&ledger, partition, &["a"]).await;
    let (a, b) = (key(partition, "a"), key(partition, "b"));
    commit(
        &ledger,
        [
            write(&a, Expect::Revision(Revision(1)), WriteAction::Check),
            write(&b, Expect::Absent, WriteAction::Check),
            write(&key(partition, "c"), Expect::Any, WriteAction::Check),
        ],
    )
    .await;
    assert_eq!(all(&ledger, query(partition)).await, [item(&a, 1, "a")]);
}

/// A failed check refuses the writes of its commit.
pub async fn a_failed_check_refuses_the_commit(ledger: Arc<dyn Ledger>) {
    let partition = "a_failed_check_refuses_the_commit";
    fill(&ledger, partition, &["a"]).await;
    let (a, b) = (key(partition, "a"), key(partition, "b"));
    let guarded = |check| [put(&b, Expect::Any, 2, "b"), check];
    let found = refusal(&ledger, guarded(write(&a, Expect::Absent, WriteAction::Check))).await;
    assert_eq!(found, Refusal { index: 1, current: Some(item(&a, 1, "a")) });
    let other = Expect::Revision(Revision(2));
    let found = refusal(&ledger, guarded(write(&a, other, WriteAction::Check))).await;
    assert_eq!(found, Refusal { index: 1, current: Some(item(&a, 1, "a")) });
    assert_eq!(get(&ledger, &b).await, None);
}

/// One refused write refuses the puts and deletes before and after it.
pub async fn a_commit_writes_everything_or_nothing(ledger: Arc<dyn Ledger>) {
    let partition = "a_commit_writes_everything_or_nothing";
    fill(&ledger, partition, &["a", "b"]).await;
    let before = all(&ledger, query(partition)).await;
    let (a, b, c) = (key(partition, "a"), key(partition, "b"), key(partition, "c"));
    let writes = |expect| {
        [
            put(&a, Expect::Revision(Revision(1)), 2, "new"),
            write(&b, Expect::Any, WriteAction::Delete),
            put(&c, expect, 2, "new"),
            put(&key(partition, "d"), Expect::Absent, 2, "new"),
        ]
    };
    let found = refusal(&ledger, writes(Expect::Revision(Revision(5)))).await;
    assert_eq!(found, Refusal { index: 2, current: None });
    assert_eq!(all(&ledger, query(partition)).await, before);

    commit(&ledger, writes(Expect::Absent)).await;
    let after = ["a", "c", "d"].map(|sort| item(&key(partition, sort), 2, "new"));
    assert_eq!(all(&ledger, query(partition)).await, after);
}

/// The refusal names the first of several refused writes.
pub async fn the_first_refused_write_is_named(ledger: Arc<dyn Ledger>) {
    let partition = "the_first_refused_write_is_named";
    fill(&ledger, partition, &["a", "b"]).await;
    let writes = ["x", "b", "a"].map(|sort| put(&key(partition, sort), Expect::Absent, 2, "new"));
    let found = refusal(&ledger, writes).await;
    assert_eq!(found, Refusal { index: 1, current: Some(item(&key(partition, "b"), 1, "b")) });
}

/// Items of different partitions move together: a head, a history entry and a listing.
pub async fn a_commit_over_many_partitions_is_whole(ledger: Arc<dyn Ledger>) {
    let keys: Vec<ItemKey> =
        (0..30).map(|n| key(&format!("a_commit_over_many_partitions_is_whole#{n}"), "a")).collect();
    commit(&ledger, keys.iter().map(|key| put(key, Expect::Absent, 1, "one"))).await;
    let expect_last_absent = keys.iter().enumerate().map(|(n, key)| {
        let expect = if n == 29 { Expect::Absent } else { Expect::Revision(Revision(1)) };
        put(key, expect, 2, "two")
    });
    assert_eq!(refusal(&ledger, expect_last_absent).await.index, 29);
    for key in &keys {
        assert_eq!(get(&ledger, key).await, Some(item(key, 1, "one")));
    }
}

/// The largest number of writes.
pub async fn a_commit_of_a_hundred_writes_succeeds(ledger: Arc<dyn Ledger>) {
    let partition = "a_commit_of_a_hundred_writes_succeeds";
    let writes = (0..100).map(|n| put(&key(partition, &format!("{n:03}")), Expect::Absent, n, n.to_string()));
    commit(&ledger, writes).await;
    assert_eq!(all(&ledger, query(partition)).await.len(), 100);
}

/// No writes, too many, too large, one key twice, an empty part of a key: nothing is written.
pub async fn a_commit_out_of_bounds_is_not_done(ledger: Arc<dyn Ledger>) {
    let partition = "a_commit_out_of_bounds_is_not_done";
    let a = key(partition, "a");
    let large = |sort: &str| put(&key(partition, sort), Expect::Any, 1, vec![0; 300_000]);
    for writes in [
        Vec::new(),
        (0..101).map(|n| put(&key(partition, &n.to_string()), Expect::Any, 1, "")).collect(),
        (0..14).map(|n| large(&n.to_string())).collect(),
        vec![
            put(&a, Expect::Any, 1, "one"),
            put(&key(partition, "b"), Expect::Any, 1, vec![0; ITEM_BYTES_MAX]),
        ],
        vec![put(&a, Expect::Any, 1, "one"), put(&a, Expect::Any, 2, "two")],
        vec![put(&a, Expect::Any, 1, "one"), put(&key(partition, ""), Expect::Any, 1, "")],
        vec![put(&a, Expect::Any, 1, "one"), put(&key("", "a"), Expect::Any, 1, "")],
    ] {
        let outcome = ledger.commit(writes).await;
        assert!(matches!(outcome, Err(CommitError::Port(PortError::NotDone { .. }))), "{outcome:?}");
    }
    assert_eq!(all(&ledger, query(partition)).await, []);
}

/// A writer whose answer was lost sends the same commit again: it succeeds, or the refusal shows the
/// writer's own put. Either way the put was done once.
pub async fn committing_again_after_a_lost_answer_shows_the_own_revision(ledger: Arc<dyn Ledger>) {
    let partition = "committing_again_after_a_lost_answer_shows_the_own_revision";
    let (slot, head) = (key(partition, "slot"), key(partition, "head"));
    commit(&ledger, [put(&head, Expect::Absent, 1, "old")]).await;
    let writes =
        || vec![put(&slot, Expect::Absent, 77, "slot"), put(&head, Expect::Revision(Revision(1)), 78, "new")];
    commit(&ledger, writes()).await;
    match ledger.commit(writes()).await {
        Ok(()) => {}
        Err(CommitError::Refused(refusal)) => {
            assert_eq!(refusal, Refusal { index: 0, current: Some(item(&slot, 77, "slot")) });
        }
        Err(CommitError::Port(error)) => panic!("a second delivery fails: {error}"),
    }
    assert_eq!(all(&ledger, query(partition)).await, [item(&head, 78, "new"), item(&slot, 77, "slot")]);
}

/// Revisions are random, so they take every value.
pub async fn every_revision_is_kept_exactly(ledger: Arc<dyn Ledger>) {
    let key = key("every_revision_is_kept_exactly", "a");
    let mut expect = Expect::Absent;
    for revision in [0, 1, 1 << 53, (1 << 53) + 1, i64::MAX as u64, 1 << 63, u64::MAX] {
        commit(&ledger, [put(&key, expect, revision, "value")]).await;
        assert_eq!(get(&ledger, &key).await, Some(item(&key, revision, "value")));
        expect = Expect::Revision(Revision(revision));
    }
}

/// An expiry is returned as it was given, and an item that has not expired is not dropped.
pub async fn every_expiry_is_kept_exactly(ledger: Arc<dyn Ledger>) {
    let partition = "every_expiry_is_kept_exactly";
    // 2200-01-01T00:00:00Z and later, so that no ledger may have dropped it.
    let far = Timestamp::from_seconds(7_258_118_400);
    for (n, expires) in
        [None, Some(far), Some(Timestamp(far.0 + 1)), Some(Timestamp(i64::MAX))].into_iter().enumerate()
    {
        let key = key(partition, &n.to_string());
        let expected = Item { expires, ..item(&key, 1, "value") };
        let action = WriteAction::Put { revision: Revision(1), value: Bytes::from("value"), expires };
        commit(&ledger, [write(&key, Expect::Absent, action)]).await;
        assert_eq!(get(&ledger, &key).await.as_ref(), Some(&expected));
        let refusal = refusal(&ledger, [put(&key, Expect::Absent, 2, "")]).await;
        assert_eq!(refusal.current.as_ref(), Some(&expected));
        let found = all(&ledger, Query { prefix: n.to_string(), ..query(partition) }).await;
        assert_eq!(found, [expected]);
    }
}

/// An item of zero bytes exists.
pub async fn an_empty_value_is_a_value(ledger: Arc<dyn Ledger>) {
    let key = key("an_empty_value_is_a_value", "a");
    commit(&ledger, [put(&key, Expect::Absent, 1, "")]).await;
    assert_eq!(get(&ledger, &key).await, Some(item(&key, 1, "")));
    assert_eq!(refusal(&ledger, [put(&key, Expect::Absent, 2, "")]).await.current, Some(item(&key, 1, "")));
    assert_eq!(all(&ledger, query(&key.partition)).await, [item(&key, 1, "")]);
}

/// Values around every size that a store may treat differently.
pub async fn large_values_are_kept(ledger: Arc<dyn Ledger>) {
    let partition = "large_values_are_kept";
    for size in [1, 500, 4_000, 4_096, 16_384, 65_536, 100_000, 300_000_u32] {
        let value: Bytes = (0..size).map(|at| (at.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
        let key = key(partition, &size.to_string());
        commit(&ledger, [put(&key, Expect::Absent, 1, value.clone())]).await;
        assert_eq!(get(&ledger, &key).await, Some(item(&key, 1, value)));
    }
}

/// A value may be any bytes, not only text.
pub async fn values_are_opaque_bytes(ledger: Arc<dyn Ledger>) {
    let key = key("values_are_opaque_bytes", "a");
    let value: Vec<u8> = (0..=255).chain([0, 0, 255, 254, 0xC3, 0x28]).collect();
    commit(&ledger, [put(&key, Expect::Absent, 1, value.clone())]).await;
    assert_eq!(get(&ledger, &key).await, Some(item(&key, 1, value)));
}

/// Sort keys that a store could confuse: case, composed and decomposed letters, spaces, wildcards,
/// quotes, zero bytes, numbers, the last code points. In the order of their bytes.
const ODD: [&str; 24] = [
    "\0",
    "\0\0",
    "\t",
    " ",
    "  ",
    "%",
    "'; DROP TABLE items; --",
    "*",
    "/",
    "0",
    "00",
    "10",
    "9",
    "A",
    "_",
    "a",
    "a\0",
    "a\0b",
    "a ",
    "e\u{301}",
    "\u{7f}",
    "\u{e9}",
    "\u{ffff}",
    "\u{10ffff}",
];

/// Every text is a key of its own, in both parts.
pub async fn odd_keys_are_kept_and_distinct(ledger: Arc<dyn Ledger>) {
    let partition = |odd: &str| format!("odd_keys_are_kept_and_distinct#{odd}");
    for odd in ODD {
        let key = key(&partition(odd), odd);
        commit(&ledger, [put(&key, Expect::Absent, 1, odd)]).await;
    }
    for odd in ODD {
        let key = key(&partition(odd), odd);
        assert_eq!(get(&ledger, &key).await, Some(item(&key, 1, odd)), "{odd:?}");
        assert_eq!(all(&ledger, query(&key.partition)).await, [item(&key, 1, odd)], "{odd:?}");
    }
}

/// Sorted by bytes: no locale, no case folding, no numbers. A character outside the first plane comes
/// last, as in UTF-8 and unlike in UTF-16.
pub async fn query_orders_by_bytes(ledger: Arc<dyn Ledger>) {
    let partition = "query_orders_by_bytes";
    let mut shuffled = ODD;
    shuffled.rotate_left(11);
    shuffled.reverse();
    fill(&ledger, partition, &shuffled).await;
    let mut expected = ODD;
    expected.sort_unstable_by_key(|odd| odd.as_bytes());
    assert_eq!(sorts(&ledger, query(partition)).await, expected);
}

/// The other direction shows the same items.
pub async fn query_descending_is_the_reverse(ledger: Arc<dyn Ledger>) {
    let partition = "query_descending_is_the_reverse";
    fill(&ledger, partition, &ODD).await;
    for limit in [1, 5, 1000] {
        let up = all(&ledger, Query { limit, ..query(partition) }).await;
        let mut down = all(&ledger, Query { limit, order: Order::Descending, ..query(partition) }).await;
        down.reverse();
        assert_eq!(up.len(), ODD.len());
        assert_eq!(up, down);
    }
}

/// Partitions whose names share a prefix do not mix.
pub async fn query_keeps_to_its_partition(ledger: Arc<dyn Ledger>) {
    let partitions =
        ["", "#", "#1", "#10", "#2", "\0"].map(|end| format!("query_keeps_to_its_partition{end}"));
    for partition in &partitions {
        commit(&ledger, [put(&key(partition, "a"), Expect::Absent, 1, partition.clone())]).await;
    }
    for partition in &partitions {
        let expected = [item(&key(partition, "a"), 1, partition.clone())];
        assert_eq!(all(&ledger, query(partition)).await, expected);
    }
}

/// A prefix is compared as bytes and has no special characters.
pub async fn query_keeps_to_its_prefix(ledger: Arc<dyn Ledger>) {
    let partition = "query_keeps_to_its_prefix";
    let there = ["L", "L#", "L#1", "L#2", "L$", "M#1", "l#1", "\u{10ffff}", "\u{10ffff}1", "%", "%1"];
    fill(&ledger, partition, &there).await;
    for prefix in ["", "L", "L#", "L#1", "L#11", "_", "%", "\u{10ffff}", "M", "Z"] {
        let mut expected: Vec<&str> = there.into_iter().filter(|sort| sort.starts_with(prefix)).collect();
        expected.sort_unstable();
        let request = Query { prefix: prefix.to_owned(), ..query(partition) };
        assert_eq!(sorts(&ledger, request.clone()).await, expected, "prefix {prefix:?}");
        expected.reverse();
        let request = Query { order: Order::Descending, ..request };
        assert_eq!(sorts(&ledger, request).await, expected, "prefix {prefix:?}, descending");
    }
}

/// `after` need not exist, is excluded itself, and may be outside the prefix on either side.
pub async fn query_starts_behind_after(ledger: Arc<dyn Ledger>) {
    let partition = "query_starts_behind_after";
    let there = ["a1", "b", "b\0", "b1", "b2", "b3", "c1"];
    fill(&ledger, partition, &there).await;
    for prefix in ["", "b"] {
        for after in
            ["\0", "a", "a1", "a2", "b", "b\0", "b1", "b15", "b2", "b3", "b4", "c", "c1", "d", "\u{10ffff}"]
        {
            let within = there.into_iter().filter(|sort| sort.starts_with(prefix));
            let behind: Vec<&str> = within.clone().filter(|sort| *sort > after).collect();
            let mut before: Vec<&str> = within.filter(|sort| *sort < after).collect();
            before.reverse();
            let request =
                Query { prefix: prefix.to_owned(), after: Some(after.to_owned()), ..query(partition) };
            assert_eq!(sorts(&ledger, request.clone()).await, behind, "{prefix:?} after {after:?}");
            let request = Query { order: Order::Descending, ..request };
            assert_eq!(sorts(&ledger, request).await, before, "{prefix:?} after {after:?}, descending");
        }
    }
}

/// An empty result is not an error and has no more pages.
pub async fn query_without_matches_is_an_empty_last_page(ledger: Arc<dyn Ledger>) {
    let partition = "query_without_matches_is_an_empty_last_page";
    let nothing = Page { items: Vec::new(), more: false };
    assert_eq!(page(&ledger, &query(partition)).await, nothing);
    fill(&ledger, partition, &["a", "b"]).await;
    let behind = Query { after: Some("b".to_owned()), ..query(partition) };
    assert_eq!(page(&ledger, &behind).await, nothing);
    let elsewhere = Query { prefix: "c".to_owned(), ..query(partition) };
    assert_eq!(page(&ledger, &elsewhere).await, nothing);
}

/// For every size of a page, in either direction.
pub async fn query_pages_cover_everything_once(ledger: Arc<dyn Ledger>) {
    let partition = "query_pages_cover_everything_once";
    let names: Vec<String> = (0..150).map(|n| format!("L#{n:05}")).collect();
    fill(&ledger, partition, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    for limit in [1, 7, 50, 149, 150, 151, usize::MAX] {
        assert_eq!(sorts(&ledger, Query { limit, ..query(partition) }).await, names, "limit {limit}");
    }
}

/// A ledger may cut a page of large items short, but then reports that there is more.
pub async fn query_pages_of_large_values_cover_everything_once(ledger: Arc<dyn Ledger>) {
    let partition = "query_pages_of_large_values_cover_everything_once";
    for n in 0..20_u8 {
        let key = key(partition, &format!("{n:02}"));
        commit(&ledger, [put(&key, Expect::Absent, 1, vec![n; 250_000])]).await;
    }
    for order in [Order::Ascending, Order::Descending] {
        let mut items = all(&ledger, Query { order, ..query(partition) }).await;
        if order == Order::Descending {
            items.reverse();
        }
        assert_eq!(items.len(), 20);
        for (n, item) in (0..).zip(items) {
            assert_eq!(item.key.sort, format!("{n:02}"));
            assert_eq!(item.value, vec![n; 250_000]);
        }
    }
}

/// A page that the limit has cut reports that there is more.
pub async fn query_says_when_more_is_left(ledger: Arc<dyn Ledger>) {
    let partition = "query_says_when_more_is_left";
    fill(&ledger, partition, &["a", "b", "c"]).await;
    for (limit, order) in [1, 2].into_iter().flat_map(|n| [(n, Order::Ascending), (n, Order::Descending)]) {
        assert!(page(&ledger, &Query { limit, order, ..query(partition) }).await.more, "limit {limit}");
    }
}

/// Every read that begins after an answer sees what was answered.
pub async fn a_commit_is_seen_by_every_read_after_it(ledger: Arc<dyn Ledger>) {
    let key = key("a_commit_is_seen_by_every_read_after_it", "a");
    for revision in 0..50 {
        commit(&ledger, [put(&key, Expect::Any, revision, "value")]).await;
        let readers = (0..4).map(|reader| {
            let (ledger, key) = (Arc::clone(&ledger), key.clone());
            tokio::spawn(async move {
                match reader % 2 {
                    0 => get(&ledger, &key).await.map(|item| item.revision),
                    _ => all(&ledger, query(&key.partition)).await.first().map(|item| item.revision),
                }
            })
        });
        for seen in futures::future::join_all(readers).await {
            assert_eq!(seen.expect("a reader ends well"), Some(Revision(revision)));
        }
    }
}

/// Two items of a partition always change together; a concurrent query sees them equal.
pub async fn readers_never_see_half_a_commit(ledger: Arc<dyn Ledger>) {
    let partition = "readers_never_see_half_a_commit";
    let writer = {
        let ledger = Arc::clone(&ledger);
        tokio::spawn(async move {
            for revision in 0..60 {
                let writes =
                    ["a", "b"].map(|sort| put(&key(partition, sort), Expect::Any, revision, "value"));
                commit(&ledger, writes).await;
            }
        })
    };
    let mut pages_with_items = 0;
    while !writer.is_finished() || pages_with_items == 0 {
        let revisions: Vec<Revision> =
            page(&ledger, &query(partition)).await.items.into_iter().map(|item| item.revision).collect();
        match revisions.as_slice() {
            [] => {}
            [a, b] => {
                assert_eq!(a, b);
                pages_with_items += 1;
            }
            other => panic!("half a commit: {other:?}"),
        }
        tokio::task::yield_now().await;
    }
    writer.await.expect("the writer ends well");
}

/// Steps that each of the racing writers makes.
const STEPS: u64 = 5;

/// 16 writers count by reading, deciding and writing at the revision that they read.
pub async fn sixteen_writers_on_one_counter_lose_nothing(ledger: Arc<dyn Ledger>) {
    let counter = key("sixteen_writers_on_one_counter_lose_nothing", "counter");
    let writers = (0..16_u64).map(|writer| {
        let (ledger, counter) = (Arc::clone(&ledger), counter.clone());
        tokio::spawn(async move {
            let (mut done, mut attempt) = (0, 0);
            while done < STEPS {
                let current = get(&ledger, &counter).await;
                tokio::task::yield_now().await;
                let (expect, count) = match &current {
                    None => (Expect::Absent, 0),
                    Some(item) => (Expect::Revision(item.revision), number(item)),
                };
                attempt += 1;
                let revision = (writer << 32) | attempt;
                let next = put(&counter, expect, revision, (count + 1).to_string());
                match ledger.commit(vec![next]).await {
                    Ok(()) => done += 1,
                    Err(CommitError::Refused(refusal)) => {
                        assert_ne!(refusal.current, current, "refused although nothing has changed");
                    }
                    Err(CommitError::Port(error)) => panic!("the port failed: {error}"),
                }
            }
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer.expect("a writer ends well");
    }
    let last = get(&ledger, &counter).await.expect("the counter is there");
    assert_eq!(number(&last), 16 * STEPS);
}

/// 16 writers append to one log: each takes the next free slot and moves on if another writer was faster.
pub async fn sixteen_writers_append_a_dense_log(ledger: Arc<dyn Ledger>) {
    let partition = "sixteen_writers_append_a_dense_log";
    let writers = (0..16_u64).map(|writer| {
        let ledger = Arc::clone(&ledger);
        tokio::spawn(async move {
            let (mut done, mut slot) = (0, 1);
            while done < STEPS {
                let key = key(partition, &format!("L#{slot:05}"));
                tokio::task::yield_now().await;
                let append = put(&key, Expect::Absent, (writer << 32) | done, writer.to_string());
                match ledger.commit(vec![append]).await {
                    Ok(()) => done += 1,
                    Err(CommitError::Refused(refusal)) => {
                        let taken = refusal.current.expect("a slot is refused because it is taken");
                        assert_eq!(taken.key, key);
                    }
                    Err(CommitError::Port(error)) => panic!("the port failed: {error}"),
                }
                slot += 1;
            }
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer.expect("a writer ends well");
    }
    let log = all(&ledger, Query { limit: 9, ..query(partition) }).await;
    let slots: Vec<String> = (1..=16 * STEPS).map(|slot| format!("L#{slot:05}")).collect();
    assert_eq!(log.iter().map(|item| item.key.sort.clone()).collect::<Vec<_>>(), slots);
    for writer in 0..16 {
        assert_eq!(log.iter().filter(|item| number(item) == writer).count() as u64, STEPS);
    }
}

fn number(item: &Item) -> u64 {
    std::str::from_utf8(&item.value).ok().and_then(|text| text.parse().ok()).expect("the value is a number")
}

//! What every [`Inventory`] promises.
//!
//! Each contract works in partitions and below a class of blobs that carry its own name; the store may
//! hold other items and blobs too.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};

use crate::ports::{
    BlobKey, Blobs, Expect, Inventory, Item, ItemKey, Ledger, Revision, Timestamp, Write, WriteAction,
};

/// One test for each contract of [`Inventory`]; see [`crate::ports::contract`]. The adapter is a [`Whole`].
#[macro_export]
macro_rules! inventory_contract {
    ($make:expr) => {
        $crate::contract_tests!(
            inventory,
            $make,
            [
                items_are_found_as_they_were_put,
                only_partitions_with_the_prefix_are_found,
                every_partition_is_found_without_a_prefix,
                thousands_of_items_are_found_once_each,
                items_of_many_megabytes_are_found_once_each,
                oddly_named_items_are_found_once_each,
                deleted_things_are_not_found,
                a_change_is_found_by_the_next_look,
                a_listing_continues_after_its_last_item_is_deleted,
                blobs_are_found_by_their_keys,
                more_than_a_thousand_blobs_are_found_once_each,
                a_blob_that_was_deleted_is_not_found,
            ]
        );
    };
}

/// A store with its inventory.
pub struct Whole {
    pub ledger: Arc<dyn Ledger>,
    pub blobs: Arc<dyn Blobs>,
    pub inventory: Arc<dyn Inventory>,
}

fn item(partition: &str, sort: &str, value: impl Into<Bytes>) -> Item {
    Item { key: ItemKey::new(partition, sort), revision: Revision(7), value: value.into(), expires: None }
}

async fn put(whole: &Whole, items: &[Item]) {
    // Below the limits of a commit, in number and in bytes.
    for items in items.chunks(10) {
        let writes = items.iter().cloned().map(|item| {
            let Item { key, revision, value, expires } = item;
            Write { key, expect: Expect::Any, action: WriteAction::Put { revision, value, expires } }
        });
        whole.ledger.commit(writes.collect()).await.expect("the items are put");
    }
}

async fn remove(whole: &Whole, key: &ItemKey) {
    let write = Write { key: key.clone(), expect: Expect::Any, action: WriteAction::Delete };
    whole.ledger.commit(vec![write]).await.expect("the item is removed");
}

/// All items with this prefix. Fails if one is found twice.
async fn all_items(whole: &Whole, prefix: &str) -> BTreeMap<ItemKey, Item> {
    let (mut all, mut from) = (BTreeMap::new(), None);
    loop {
        let part = whole.inventory.items(prefix, from.as_ref()).await.expect("a read succeeds");
        for item in part.found {
            let again = all.insert(item.key.clone(), item);
            assert_eq!(again, None, "it was found twice");
        }
        from = part.next;
        if from.is_none() {
            return all;
        }
    }
}

fn by_key(items: Vec<Item>) -> BTreeMap<ItemKey, Item> {
    items.into_iter().map(|item| (item.key.clone(), item)).collect()
}

/// The keys of this class. Fails if one is found twice.
async fn listed(whole: &Whole, class: &str) -> Vec<BlobKey> {
    let (mut all, mut from) = (Vec::new(), None);
    loop {
        let part = whole.inventory.blobs(from.as_ref()).await.expect("a read succeeds");
        all.extend(part.found);
        from = part.next;
        if from.is_none() {
            break;
        }
    }
    all.retain(|key| key.as_str().starts_with(&format!("{class}/")));
    all.sort();
    all
}

fn blob(text: &str) -> BlobKey {
    BlobKey::parse(text).expect("the key is one")
}

/// Key, revision, value and expiry.
pub async fn items_are_found_as_they_were_put(whole: Whole) {
    let mut full = item("AS-PUT#1", "a", vec![0, 255, 1]);
    full.revision = Revision(u64::MAX >> 1);
    // Far in the future, so that the store does not drop it.
    full.expires = Some(Timestamp(7_258_118_400_000_000_001));
    let items = vec![full, item("AS-PUT#2", "b", Bytes::new())];
    put(&whole, &items).await;
    assert_eq!(all_items(&whole, "AS-PUT#").await, by_key(items));
}

/// The prefix is compared with the partition by bytes and has no special characters.
pub async fn only_partitions_with_the_prefix_are_found(whole: Whole) {
    let near = ["PREFI", "PREFIX", "PREFIX#", "PREFIX#1", "PREFIX%", "PREFIX\u{e9}", "PREFIY", "prefix#"];
    let items: Vec<Item> = near.iter().map(|partition| item(partition, "PREFIX#", "")).collect();
    put(&whole, &items).await;
    for prefix in near {
        let expected = items.iter().filter(|item| item.key.partition.starts_with(prefix)).cloned().collect();
        assert_eq!(all_items(&whole, prefix).await, by_key(expected), "{prefix:?}");
    }
    assert_eq!(all_items(&whole, "PREFIX#2").await, BTreeMap::new());
}

/// The empty prefix matches all partitions.
pub async fn every_partition_is_found_without_a_prefix(whole: Whole) {
    let before = all_items(&whole, "").await;
    let items: Vec<Item> = (0..30).map(|n| item(&format!("ALL#{n}"), "s", format!("{n}"))).collect();
    put(&whole, &items).await;
    let mut found = all_items(&whole, "").await;
    found.retain(|key, _| !before.contains_key(key));
    assert_eq!(found, by_key(items));
}

/// More items than any store returns at once, in partitions of one item and of many.
pub async fn thousands_of_items_are_found_once_each(whole: Whole) {
    let one_each = (0..700).map(|n| item(&format!("MANY#{n}"), "s", "x"));
    let together = (0..700).map(|n| item("MANY#all", &format!("{n:05}"), "x"));
    let items: Vec<Item> = one_each.chain(together).collect();
    put(&whole, &items).await;
    assert_eq!(all_items(&whole, "MANY#").await, by_key(items));
}

/// DynamoDB ends a part at 1 MB, within a partition or between two.
pub async fn items_of_many_megabytes_are_found_once_each(whole: Whole) {
    let large = |n: u8| item(&format!("LARGE#{}", n % 3), &format!("{n:03}"), vec![n; 300_000]);
    let items: Vec<Item> = (0..20).map(large).collect();
    put(&whole, &items).await;
    // These items are read but do not match the prefix.
    put(&whole, &(0..20).map(|n| item("OTHER", &format!("{n}"), vec![n; 300_000])).collect::<Vec<_>>()).await;
    assert_eq!(all_items(&whole, "LARGE#").await, by_key(items));
}

/// Keys with any characters survive in a cursor.
pub async fn oddly_named_items_are_found_once_each(whole: Whole) {
    let odd = ["\0", "\"", "\\", "a,b", "a\0b", "[]", "%", "\u{e9}", "\u{ffff}", "\u{10ffff}"];
    let items: Vec<Item> = odd
        .iter()
        .flat_map(|partition| odd.iter().map(move |sort| item(&format!("ODD#{partition}"), sort, "x")))
        .collect();
    put(&whole, &items).await;
    assert_eq!(all_items(&whole, "ODD#").await, by_key(items));
}

/// A removal is visible at once.
pub async fn deleted_things_are_not_found(whole: Whole) {
    let items: Vec<Item> = (0..20).map(|n| item("GONE#", &format!("{n:02}"), "x")).collect();
    put(&whole, &items).await;
    remove(&whole, &items[3].key).await;
    let left = items.iter().filter(|item| item.key != items[3].key).cloned().collect();
    assert_eq!(all_items(&whole, "GONE#").await, by_key(left));
}

/// Reads are strongly consistent.
pub async fn a_change_is_found_by_the_next_look(whole: Whole) {
    for n in 0..50 {
        let mut changed = item("CHANGED#", "s", format!("{n}"));
        changed.revision = Revision(n);
        put(&whole, std::slice::from_ref(&changed)).await;
        assert_eq!(all_items(&whole, "CHANGED#").await, by_key(vec![changed]));
    }
}

/// A cursor is a position: its item need not exist any more.
pub async fn a_listing_continues_after_its_last_item_is_deleted(whole: Whole) {
    let items: Vec<Item> =
        (0..12).map(|n: u8| item("MOVING#", &format!("{n:02}"), vec![n; 300_000])).collect();
    put(&whole, &items).await;
    let mut found = BTreeMap::new();
    let mut from = None;
    loop {
        let part = whole.inventory.items("MOVING#", from.as_ref()).await.expect("a read succeeds");
        if let Some(last) = part.found.last() {
            remove(&whole, &last.key).await;
        }
        found.extend(part.found.into_iter().map(|item| (item.key.clone(), item)));
        from = part.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(found, by_key(items));
}

/// Keys of every depth are listed.
pub async fn blobs_are_found_by_their_keys(whole: Whole) {
    assert_eq!(listed(&whole, "listed").await, []);
    let keys = ["listed/a", "listed/a-1", "listed/b/c", "listed/b/d/e", "listed/b.x"].map(blob);
    for key in &keys {
        whole.blobs.put(key, Bytes::from_static(b"x")).await.expect("the blob is put");
    }
    let mut expected = keys.to_vec();
    expected.sort();
    assert_eq!(listed(&whole, "listed").await, expected);
}

/// S3 lists a thousand at once.
pub async fn more_than_a_thousand_blobs_are_found_once_each(whole: Whole) {
    let keys: Vec<BlobKey> = (0..1100).map(|n| blob(&format!("many/{}/{n:05}", n % 7))).collect();
    let puts = keys.iter().map(|key| whole.blobs.put(key, Bytes::from_static(b"x")));
    let done: Result<Vec<()>, _> = stream::iter(puts).buffer_unordered(16).try_collect().await;
    done.expect("the blobs are put");
    let mut expected = keys.clone();
    expected.sort();
    assert_eq!(listed(&whole, "many").await, expected);
}

/// A delete is visible at once.
pub async fn a_blob_that_was_deleted_is_not_found(whole: Whole) {
    let keys = ["deleted/a", "deleted/b"].map(blob);
    for key in &keys {
        whole.blobs.put(key, Bytes::from_static(b"x")).await.expect("the blob is put");
    }
    whole.blobs.delete(&keys[0]).await.expect("the blob is deleted");
    assert_eq!(listed(&whole, "deleted").await, keys[1..]);
}

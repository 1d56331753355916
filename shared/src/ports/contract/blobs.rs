//! What every [`Blobs`] promises.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;

use crate::ports::{BlobKey, Blobs};

/// One test for each contract of [`Blobs`]; see [`crate::ports::contract`].
#[macro_export]
macro_rules! blobs_contract {
    ($make:expr) => {
        $crate::contract_tests!(
            blobs,
            $make,
            [
                what_was_put_is_found,
                an_absent_blob_is_none,
                an_empty_blob_is_a_blob,
                putting_the_same_bytes_again_is_harmless,
                a_big_blob_streams_in_chunks_of_its_announced_length,
                a_range_is_exactly_those_bytes,
                a_range_is_cut_at_the_end_of_the_blob,
                a_range_of_an_absent_blob_is_none,
                a_deleted_blob_is_absent,
                deleting_an_absent_blob_succeeds,
                a_deleted_blob_can_be_put_again,
                neighbors_are_distinct,
                keys_of_every_allowed_form_are_stored,
                a_stream_that_is_abandoned_harms_nothing,
                many_writers_of_one_key_leave_it_whole,
                many_writers_in_a_new_folder_all_succeed,
            ]
        );
    };
}

fn key(text: &str) -> BlobKey {
    BlobKey::parse(text).expect("the contract's own keys are well formed")
}

async fn put(blobs: &Arc<dyn Blobs>, key: &BlobKey, body: &Bytes) {
    blobs.put(key, body.clone()).await.expect("a put succeeds");
}

async fn read(blobs: &Arc<dyn Blobs>, key: &BlobKey) -> Option<Bytes> {
    let blob = blobs.get(key).await.expect("a get succeeds")?;
    Some(blob.into_bytes().await.expect("the stream ends well"))
}

/// Bytes without a period that could match a chunk size.
fn body(length: u32, salt: u32) -> Bytes {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761).wrapping_add(salt) >> 13) as u8).collect()
}

/// A put is visible at once, with its length.
pub async fn what_was_put_is_found(blobs: Arc<dyn Blobs>) {
    let (key, body) = (key("snap/what-was-put/one"), body(1000, 1));
    put(&blobs, &key, &body).await;
    let blob = blobs.get(&key).await.expect("a get succeeds").expect("the blob is there");
    assert_eq!(blob.bytes_total, 1000);
    assert_eq!(blob.into_bytes().await.expect("the stream ends well"), body);
}

/// Absence is an answer, not an error, also in a folder that no put has made.
pub async fn an_absent_blob_is_none(blobs: Arc<dyn Blobs>) {
    assert!(read(&blobs, &key("snap/absent/one")).await.is_none());
    put(&blobs, &key("snap/absent/two"), &body(1, 1)).await;
    assert!(read(&blobs, &key("snap/absent/one")).await.is_none());
    assert!(read(&blobs, &key("snap/absent/tw")).await.is_none());
}

/// An empty blob is a blob.
pub async fn an_empty_blob_is_a_blob(blobs: Arc<dyn Blobs>) {
    let key = key("snap/empty/one");
    put(&blobs, &key, &Bytes::new()).await;
    assert_eq!(read(&blobs, &key).await, Some(Bytes::new()));
}

/// A retried put changes nothing.
pub async fn putting_the_same_bytes_again_is_harmless(blobs: Arc<dyn Blobs>) {
    let (key, body) = (key("snap/again/one"), body(300_000, 2));
    for _ in 0..3 {
        put(&blobs, &key, &body).await;
        assert_eq!(read(&blobs, &key).await.as_ref(), Some(&body));
    }
}

/// The stream comes in pieces, and the pieces are the bytes that were put.
pub async fn a_big_blob_streams_in_chunks_of_its_announced_length(blobs: Arc<dyn Blobs>) {
    let (key, body) = (key("snap/big/one"), body(5_000_000, 3));
    put(&blobs, &key, &body).await;
    let mut blob = blobs.get(&key).await.expect("a get succeeds").expect("the blob is there");
    assert_eq!(blob.bytes_total, 5_000_000);
    let mut at = 0;
    while let Some(chunk) = blob.stream.next().await {
        let chunk = chunk.expect("the stream goes on");
        assert_eq!(Some(chunk.as_ref()), body.get(at..at + chunk.len()));
        at += chunk.len();
    }
    assert_eq!(at, body.len());
}

async fn part(blobs: &Arc<dyn Blobs>, key: &BlobKey, range: Range<u64>) -> Option<Bytes> {
    let part = blobs.get_range(key, range).await.expect("a get succeeds")?;
    let announced = part.bytes_total;
    let bytes = part.into_bytes().await.expect("the stream ends well");
    assert_eq!(bytes.len() as u64, announced);
    Some(bytes)
}

/// A range has the bytes from its start up to, and without, its end; also one of several chunks.
pub async fn a_range_is_exactly_those_bytes(blobs: Arc<dyn Blobs>) {
    let (key, body) = (key("snap/range/one"), body(900_000, 11));
    put(&blobs, &key, &body).await;
    for range in [0..1, 0..900_000, 1..2, 7..600_007, 262_144..262_145, 899_999..900_000] {
        assert_eq!(part(&blobs, &key, range.start as u64..range.end as u64).await, Some(body.slice(range)));
    }
}

/// A range may be empty, end behind the blob, or begin there.
pub async fn a_range_is_cut_at_the_end_of_the_blob(blobs: Arc<dyn Blobs>) {
    let (key, empty, body) = (key("snap/cut/one"), key("snap/cut/empty"), body(1_000, 12));
    put(&blobs, &key, &body).await;
    put(&blobs, &empty, &Bytes::new()).await;
    let none = Some(Bytes::new());
    assert_eq!(part(&blobs, &key, 990..2_000).await, Some(body.slice(990..)));
    assert_eq!(part(&blobs, &key, 0..1_000_000_000_000).await.as_ref(), Some(&body));
    for range in [5..5, 0..0, 1_000..1_000, 1_000..1_001, 5_000..6_000] {
        assert_eq!(part(&blobs, &key, range.clone()).await, none, "{range:?}");
        assert_eq!(part(&blobs, &empty, range).await, none);
    }
    assert_eq!(part(&blobs, &empty, 0..1).await, none);
}

/// A range of no blob is an answer, whatever the range.
pub async fn a_range_of_an_absent_blob_is_none(blobs: Arc<dyn Blobs>) {
    let absent = key("snap/absent-range/one");
    for range in [0..0, 0..1, 10..20] {
        assert_eq!(part(&blobs, &absent, range).await, None);
    }
}

/// A delete is visible at once.
pub async fn a_deleted_blob_is_absent(blobs: Arc<dyn Blobs>) {
    let key = key("snap/deleted/one");
    put(&blobs, &key, &body(10, 4)).await;
    blobs.delete(&key).await.expect("a delete succeeds");
    assert!(read(&blobs, &key).await.is_none());
}

/// A retried delete succeeds, and so does the delete of a blob that never existed.
pub async fn deleting_an_absent_blob_succeeds(blobs: Arc<dyn Blobs>) {
    let (gone, never) = (key("snap/delete-twice/one"), key("log/never-was/one"));
    put(&blobs, &gone, &body(10, 5)).await;
    for _ in 0..2 {
        blobs.delete(&gone).await.expect("a delete succeeds, and again");
    }
    blobs.delete(&never).await.expect("a delete of nothing succeeds");
}

/// A deleted key can be put again.
pub async fn a_deleted_blob_can_be_put_again(blobs: Arc<dyn Blobs>) {
    let (key, body) = (key("snap/put-again/one"), body(10, 6));
    put(&blobs, &key, &body).await;
    blobs.delete(&key).await.expect("a delete succeeds");
    put(&blobs, &key, &body).await;
    assert_eq!(read(&blobs, &key).await, Some(body));
}

/// Keys that share a prefix are different keys.
pub async fn neighbors_are_distinct(blobs: Arc<dyn Blobs>) {
    let keys =
        ["snap/near/one", "snap/near/one-1", "snap/near/one-10", "snap/near2/one", "log/near/one"].map(key);
    for (salt, key) in (7..).zip(&keys) {
        put(&blobs, key, &body(20, salt * 1_000_003)).await;
    }
    let [first, rest @ ..] = &keys;
    blobs.delete(first).await.expect("a delete succeeds");
    assert!(read(&blobs, first).await.is_none());
    for (salt, key) in (8..).zip(rest) {
        assert_eq!(read(&blobs, key).await, Some(body(20, salt * 1_000_003)), "{key}");
    }
}

/// Every key that parses can be stored: dots inside, case, digits, punctuation, depth, a long segment.
pub async fn keys_of_every_allowed_form_are_stored(blobs: Arc<dyn Blobs>) {
    let long = format!("snap/forms/{}", "x".repeat(200));
    let forms =
        ["snap/forms/a.b..c", "snap/forms/A-Z_0-9", "snap/forms/-", "snap/forms/deep/er/still", &long];
    for (salt, form) in (20..).zip(forms) {
        put(&blobs, &key(form), &body(30, salt)).await;
    }
    for (salt, form) in (20..).zip(forms) {
        assert_eq!(read(&blobs, &key(form)).await, Some(body(30, salt)), "{form}");
    }
    for bad in ["", "/", "a/", "/a", "a//b", ".", "..", "a/../b", "a/.b", "a b", "a\\b", "ä", "a\0", "a:b"] {
        assert!(BlobKey::parse(bad).is_none(), "{bad:?} is not a key");
    }
    assert!(BlobKey::parse(&"x".repeat(512)).is_some());
    assert!(BlobKey::parse(&"x".repeat(513)).is_none());
}

/// A client that hangs up in the middle of a download.
pub async fn a_stream_that_is_abandoned_harms_nothing(blobs: Arc<dyn Blobs>) {
    let (key, body) = (key("snap/abandoned/one"), body(1_000_000, 9));
    put(&blobs, &key, &body).await;
    let mut blob = blobs.get(&key).await.expect("a get succeeds").expect("the blob is there");
    blob.stream.next().await.expect("there is a first chunk").expect("the first chunk is read");
    drop(blob);
    assert_eq!(read(&blobs, &key).await, Some(body));
}

/// 16 writers put one key's bytes at the same time, and readers in between see all of it or nothing.
pub async fn many_writers_of_one_key_leave_it_whole(blobs: Arc<dyn Blobs>) {
    let (key, body) = (key("snap/race/one"), body(400_000, 10));
    let writers = (0..16).map(|_| {
        let (blobs, key, body) = (Arc::clone(&blobs), key.clone(), body.clone());
        tokio::spawn(async move {
            if let Some(seen) = read(&blobs, &key).await {
                assert_eq!(seen, body, "half a blob was seen");
            }
            put(&blobs, &key, &body).await;
            assert_eq!(read(&blobs, &key).await, Some(body));
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer.expect("a writer ends well");
    }
}

/// 16 writers put into a folder that does not exist yet.
pub async fn many_writers_in_a_new_folder_all_succeed(blobs: Arc<dyn Blobs>) {
    let writers = (0..16).map(|writer| {
        let blobs = Arc::clone(&blobs);
        tokio::spawn(async move {
            put(&blobs, &key(&format!("snap/new-folder/{writer}")), &body(100, writer)).await;
        })
    });
    for writer in futures::future::join_all(writers).await {
        writer.expect("a writer ends well");
    }
    for writer in 0..16 {
        assert_eq!(read(&blobs, &key(&format!("snap/new-folder/{writer}"))).await, Some(body(100, writer)));
    }
}

//! Writes of records.

use bytes::Bytes;

use super::key::Key;
use super::record::Record;
use crate::ports::{Expect, ItemKey, Revision, Timestamp, Write, WriteAction};

/// A put of a record. The key accepts its own type of record only:
///
/// ```compile_fail,E0308
/// use statewright_shared::layout::{Org, User, put};
/// use statewright_shared::ports::{Expect, Revision, Timestamp};
///
/// let login = statewright_shared::domain::names::Login::parse("alice").unwrap();
/// put(User::key(&login), Expect::Absent, Revision(1), &Org { created: Timestamp(0) });
/// ```
pub fn put<T: Record>(key: Key<T>, expect: Expect, revision: Revision, record: &T) -> Write {
    put_with(key, expect, revision, record, &[])
}

/// A put of a record with a tail.
pub fn put_with<T: Record>(
    key: Key<T>,
    expect: Expect,
    revision: Revision,
    record: &T,
    tail: &[u8],
) -> Write {
    put_bytes(key, expect, revision, record.encode_with(tail))
}

/// A put of bytes that are encoded already: those of a copy, or of a damaged record in a test.
pub fn put_bytes(key: impl Into<ItemKey>, expect: Expect, revision: Revision, value: Bytes) -> Write {
    Write { key: key.into(), expect, action: WriteAction::Put { revision, value, expires: None } }
}

/// A put of an item that the store may delete after this time.
pub fn expiring(mut put: Write, at: Timestamp) -> Write {
    if let WriteAction::Put { expires, .. } = &mut put.action {
        *expires = Some(at);
    }
    put
}

pub fn delete(key: impl Into<ItemKey>, expect: Expect) -> Write {
    Write { key: key.into(), expect, action: WriteAction::Delete }
}

/// A condition without a write.
pub fn check(key: impl Into<ItemKey>, expect: Expect) -> Write {
    Write { key: key.into(), expect, action: WriteAction::Check }
}

//! Small items under (partition, sort), with conditional commits.

use std::collections::HashSet;

use async_trait::async_trait;
use bytes::Bytes;

use super::{PortError, Timestamp};

/// The key of an item. Both parts are non-empty text and compare as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey {
    /// Items of one partition can be queried in order.
    pub partition: String,
    /// The position within the partition.
    pub sort: String,
}

impl ItemKey {
    /// A key of these two parts.
    pub fn new(partition: impl Into<String>, sort: impl Into<String>) -> Self {
        Self { partition: partition.into(), sort: sort.into() }
    }
}

/// Identifies one put of one item. The writer chooses it at random (see [`super::Ids::revision`]), so a
/// writer whose answer was lost recognizes its own put when it rereads the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revision(pub u64);

/// A stored item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub key: ItemKey,
    /// The revision of the put that wrote it.
    pub revision: Revision,
    /// Its content, opaque to the ledger.
    pub value: Bytes,
    /// When the store may drop it. A ledger may drop it any time after that instant, or never: readers
    /// that care compare for themselves, and expiry is never a lock.
    pub expires: Option<Timestamp>,
}

/// What a write requires of the item under its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Any,
    /// That there is no item.
    Absent,
    /// That the item has this revision.
    Revision(Revision),
}

/// One write of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The item that is written or checked. No two writes of a commit name the same key.
    pub key: ItemKey,
    pub expect: Expect,
    /// What happens to the item.
    pub action: WriteAction,
}

/// What a write does when all expectations of its commit hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteAction {
    /// Store this value under this revision.
    Put {
        /// The new revision; random, chosen by the caller.
        revision: Revision,
        value: Bytes,
        /// See [`Item::expires`].
        expires: Option<Timestamp>,
    },
    /// Delete the item. With [`Expect::Any`] it may be absent already.
    Delete,
    /// Only check the expectation.
    Check,
}

/// The write whose expectation did not hold. If several did not, the first of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its position in the commit.
    pub index: usize,
    /// The item under the key; `None` if there is none.
    pub current: Option<Item>,
}

/// Why a commit failed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// An expectation did not hold; nothing was written.
    #[error("write {} of the commit was refused", .0.index)]
    Refused(Refusal),
    /// The port failed; see [`PortError`] for what may have happened.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// The direction of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Rising sort keys.
    Ascending,
    /// Falling sort keys.
    Descending,
}

/// A query for the items of a partition whose sort key starts with `prefix`, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub partition: String,
    /// Only sort keys that start with this; empty for all.
    pub prefix: String,
    /// Only sort keys strictly after this one in the query's order.
    pub after: Option<String>,
    pub order: Order,
    /// At most this many items; at least 1. A ledger may return fewer and still have more.
    pub limit: usize,
}

/// One page of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The items, in the query's order.
    pub items: Vec<Item>,
    /// Whether a query with `after` set to the last item's sort key may find more. Never true for an empty page.
    pub more: bool,
}

/// Small items with strongly consistent reads and conditional atomic commits.
///
/// * Every read sees every commit that was acknowledged before the read began, whichever process made it.
/// * A commit that was acknowledged survives the loss of the process and of power.
/// * A read never shows a commit that could still be lost. A query that runs during a commit may show
///   only some of its writes, since DynamoDB promises no more for a query during a transaction; once
///   the commit is acknowledged, a query shows all of them.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// The item under `key`.
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError>;

    /// One page of the items of a partition.
    async fn query(&self, query: &Query) -> Result<Page, PortError>;

    /// Does all writes or none: at least 1 and at most 100 of them, 400 KB each and 4 MB in all, as
    /// [`verify_writes`] checks.
    ///
    /// # Errors
    /// [`PortError::NotDone`] when the writes break these limits.
    ///
    /// [`CommitError::Refused`] when an expectation does not hold: nothing was written, and the error
    /// has the item that was found instead. A commit that finds its own put already done (the same
    /// revision under the same key, as after a lost answer) may return success or that refusal; callers
    /// compare revisions.
    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError>;

    /// Values up to this many bytes are cheaper here than as a blob with a pointer. Callers keep larger
    /// ones in [`super::Blobs`].
    fn inline_bytes_max(&self) -> usize;
}

/// Bytes of an item, key and value. DynamoDB takes 400 KB, including the names of the attributes and
/// the other attributes.
///
/// Source: "Service, account, and table quotas in Amazon DynamoDB".
pub const ITEM_BYTES_MAX: usize = 400_000;

/// Checks a commit against the limits of the strictest store: 1 to 100 writes, no two of one key, no
/// empty part of a key, items of at most [`ITEM_BYTES_MAX`], and at most 4,000,000 bytes in all. Every
/// adapter calls this first, so that all of them refuse the same commits.
///
/// Source: `TransactWriteItems` in the DynamoDB API reference.
///
/// # Errors
/// [`PortError::NotDone`] with the broken limit.
pub fn verify_writes(writes: &[Write]) -> Result<(), PortError> {
    let refuse = |why: &'static str| Err(PortError::not_done("committing", why));
    if writes.is_empty() || writes.len() > 100 {
        return refuse("a commit has 1 to 100 writes");
    }
    let mut keys = HashSet::with_capacity(writes.len());
    let mut bytes_total = 0;
    for Write { key, action, .. } in writes {
        if key.partition.is_empty() || key.sort.is_empty() {
            return refuse("both parts of an item's key are non-empty");
        }
        if !keys.insert(key) {
            return refuse("no two writes of a commit name the same key");
        }
        let mut bytes = key.partition.len() + key.sort.len();
        if let WriteAction::Put { value, .. } = action {
            bytes += value.len();
        }
        if bytes > ITEM_BYTES_MAX {
            return refuse("an item has at most 400,000 bytes");
        }
        bytes_total += bytes;
    }
    if bytes_total > 4_000_000 {
        return refuse("a commit has at most 4,000,000 bytes");
    }
    Ok(())
}

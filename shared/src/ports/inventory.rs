//! Lists everything that a store holds.

use async_trait::async_trait;

use super::{BlobKey, Item, PortError};

/// Where a listing continues. Only the store that gave it can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

/// One part of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<T> {
    /// What was found. May be empty although there is more.
    pub found: Vec<T>,
    /// Where to continue; `None` at the end.
    pub next: Option<Cursor>,
}

/// Lists all of a store, for an operator's commands. Its cost grows with the store, so no request and
/// no sweep uses it.
///
/// A listing begins without a cursor and continues with the cursor of the part before. What exists from
/// its beginning to its end is found exactly once. An item is shown as a commit left it that was
/// acknowledged before its part was requested, or later. What is written or deleted meanwhile may be
/// found or not. The order and the size of a part are the store's own; a part has some megabytes at
/// most.
#[async_trait]
pub trait Inventory: Send + Sync + 'static {
    /// A part of the items whose partition starts with `prefix`.
    async fn items(&self, prefix: &str, from: Option<&Cursor>) -> Result<Part<Item>, PortError>;

    /// A part of the keys of all blobs. Leaves out objects whose name is not the name of a blob.
    async fn blobs(&self, from: Option<&Cursor>) -> Result<Part<BlobKey>, PortError>;
}

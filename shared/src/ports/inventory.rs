//! Everything that a store holds.

use async_trait::async_trait;

use super::{BlobKey, Item, PortError};

/// Where a look at a store goes on. Only the store that gave it can read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

/// One part of a look at a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<T> {
    /// What was found. May be empty although there is more.
    pub found: Vec<T>,
    /// Where to go on; `None` at the end.
    pub next: Option<Cursor>,
}

/// A look at all of a store, for an operator's commands: its cost grows with the store, so no request asks for it, and
/// nothing that a sweep does.
///
/// A look begins without a cursor, and goes on with that of the part before. What was there when it began, and is there when
/// it ends, is found exactly once, and an item as some commit left it that was acknowledged before its part was asked for, or
/// later. What is written or removed meanwhile may be found or not. The order is the store's own, and so is the size of a
/// part: some megabytes at most.
#[async_trait]
pub trait Inventory: Send + Sync + 'static {
    /// A part of the items whose partition starts with `prefix`.
    async fn items(&self, prefix: &str, from: Option<&Cursor>) -> Result<Part<Item>, PortError>;

    /// A part of the keys of all blobs. What lies among them without the name of one is not found.
    async fn blobs(&self, from: Option<&Cursor>) -> Result<Part<BlobKey>, PortError>;
}

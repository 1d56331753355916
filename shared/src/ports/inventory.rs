//! Everything that a store holds.

use async_trait::async_trait;

use super::{BlobKey, ItemKey, Page, PortError};

/// A look at all of a store, for an operator's commands: its cost grows with the store, so no request asks for it, and
/// nothing that a sweep does.
#[async_trait]
pub trait Inventory: Send + Sync + 'static {
    /// One page of the items whose partition starts with `prefix`, by partition and sort key, strictly behind `after`. What
    /// is written meanwhile may be among them or not.
    async fn items(&self, prefix: &str, after: Option<&ItemKey>, limit: usize) -> Result<Page, PortError>;

    /// The keys of all blobs, in their order.
    async fn blobs(&self) -> Result<Vec<BlobKey>, PortError>;
}

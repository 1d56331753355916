//! A backup as a store that can be read.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::ports::{
    Blob, BlobKey, Blobs, BoxError, CommitError, Cursor, Inventory, Item, ItemKey, Ledger, Page, Part,
    PortError, Query, Write,
};

const READING: &str = "reading a backup";

/// Decodes the items of a part.
pub type Decode = fn(&[u8]) -> Result<Vec<Item>, BoxError>;

/// A backup as a read-only store: all items in the order of its parts, some items by their keys, and
/// its blobs. Clones share it.
#[derive(Clone)]
pub struct Kept {
    shared: Arc<Shared>,
}

struct Shared {
    shelf: Arc<dyn Blobs>,
    /// The prefix of the blobs' keys on the shelf.
    before: &'static str,
    parts: Vec<(BlobKey, String)>,
    looked_up: HashMap<ItemKey, Item>,
    decode: Decode,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept").field("parts", &self.shared.parts.len()).finish_non_exhaustive()
    }
}

impl Kept {
    /// Opens the backup in `shelf`, with this prefix of blob keys, its parts and the hex SHA-256 of
    /// each. Only the items in `looked_up` can be found by key.
    pub fn new(
        shelf: Arc<dyn Blobs>,
        before: &'static str,
        parts: Vec<(BlobKey, String)>,
        looked_up: Vec<Item>,
        decode: Decode,
    ) -> Self {
        let looked_up = looked_up.into_iter().map(|item| (item.key.clone(), item)).collect();
        Self { shared: Arc::new(Shared { shelf, before, parts, looked_up, decode }) }
    }

    fn on_shelf(&self, key: &BlobKey) -> Result<BlobKey, PortError> {
        let key = BlobKey::parse(&format!("{}{key}", self.shared.before));
        key.ok_or_else(|| PortError::not_done(READING, "the key of a blob is too long"))
    }
}

#[async_trait]
impl Inventory for Kept {
    async fn items(&self, prefix: &str, from: Option<&Cursor>) -> Result<Part<Item>, PortError> {
        let position = match from {
            None => 0,
            Some(from) => from.0.parse::<usize>().map_err(|error| PortError::not_done(READING, error))?,
        };
        let Some((key, sha256)) = self.shared.parts.get(position) else {
            return Ok(Part { found: Vec::new(), next: None });
        };
        let damaged =
            |words: &str| PortError::not_done(READING, format!("{key} {words}: use another backup"));
        let part = self.shared.shelf.get(key).await?.ok_or_else(|| damaged("is missing"))?;
        let part = part.into_bytes().await?;
        if hex::encode(Sha256::digest(&part)) != *sha256 {
            return Err(damaged("is damaged"));
        }
        let found = (self.shared.decode)(&part).map_err(|error| PortError::not_done(READING, error))?;
        let next = position + 1;
        Ok(Part {
            found: found.into_iter().filter(|item| item.key.partition.starts_with(prefix)).collect(),
            next: (next < self.shared.parts.len()).then(|| Cursor(next.to_string())),
        })
    }

    /// Fails: a copy takes the blobs that items name.
    async fn blobs(&self, _: Option<&Cursor>) -> Result<Part<BlobKey>, PortError> {
        Err(PortError::not_done(READING, "the blobs of a backup are not listed"))
    }
}

#[async_trait]
impl Blobs for Kept {
    async fn put(&self, _: &BlobKey, _: Bytes) -> Result<(), PortError> {
        Err(read_only())
    }

    async fn get(&self, key: &BlobKey) -> Result<Option<Blob>, PortError> {
        self.shared.shelf.get(&self.on_shelf(key)?).await
    }

    async fn get_range(&self, key: &BlobKey, range: Range<u64>) -> Result<Option<Blob>, PortError> {
        self.shared.shelf.get_range(&self.on_shelf(key)?, range).await
    }

    async fn delete(&self, _: &BlobKey) -> Result<(), PortError> {
        Err(read_only())
    }
}

#[async_trait]
impl Ledger for Kept {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        Ok(self.shared.looked_up.get(key).cloned())
    }

    async fn query(&self, _: &Query) -> Result<Page, PortError> {
        Err(PortError::not_done(READING, "the items of a backup have no order"))
    }

    async fn commit(&self, _: Vec<Write>) -> Result<(), CommitError> {
        Err(read_only().into())
    }

    fn inline_bytes_max(&self) -> usize {
        0
    }
}

fn read_only() -> PortError {
    PortError::not_done("writing to a backup", "it stays as it was made")
}

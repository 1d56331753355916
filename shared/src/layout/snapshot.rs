use serde::{Deserialize, Serialize};

use super::blobs::blob;
use crate::domain::ids::{StackId, UpdateId};
use crate::domain::resource_index::Places;
use crate::ports::BlobKey;

/// Where a published deployment is stored, and its size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The blob's key. It holds the gzip of the untyped deployment's JSON text.
    pub blob: String,
    /// The hex SHA-256 of the blob.
    pub sha256: String,
    /// The blob's length in bytes.
    pub bytes_gzip: u64,
    /// The text's length in bytes.
    pub bytes_text: u64,
    pub resource_count: u64,
    /// Operations that began and never ended.
    pub pending_count: u64,
    /// The address of the server that decrypts its secrets, as the deployment has it. `None` if the
    /// deployment has none, and in snapshots that were published before this field existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets_url: Option<String>,
    /// The index of its resources. `None` if an older program published it, until the operator indexes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<SnapshotIndex>,
}

/// Where the index of a snapshot's resources is stored, and where its sections are. See
/// [`resource_index`](crate::domain::resource_index).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotIndex {
    /// The blob's key.
    pub blob: String,
    /// The hex SHA-256 of the blob.
    pub sha256: String,
    /// The hex SHA-256 of the directory.
    pub directory_sha256: String,
    /// The version from which on it knows which versions changed a resource.
    pub since: u64,
    /// The number of entries in the lookup: of resources, and of deleted ones.
    pub entries: u64,
    /// The length of the lookup in bytes.
    pub lookup_bytes: u64,
    /// The length of the directory in bytes.
    pub directory_bytes: u64,
    /// The length of the first blocks of rows in bytes.
    pub first_rows_bytes: u64,
    /// The length of all rows in bytes.
    pub rows_bytes: u64,
    /// The length of the edges in bytes.
    pub edges_bytes: u64,
}

impl SnapshotIndex {
    /// The blob's key; `None` if the record is damaged.
    pub fn key(&self) -> Option<BlobKey> {
        BlobKey::parse(&self.blob)
    }

    /// Where its sections are.
    pub fn places(&self) -> Places {
        Places {
            lookup_bytes: self.lookup_bytes,
            directory_bytes: self.directory_bytes,
            first_rows_bytes: self.first_rows_bytes,
            rows_bytes: self.rows_bytes,
            edges_bytes: self.edges_bytes,
        }
    }
}

impl Snapshot {
    /// The blob's key; `None` if the record is damaged.
    pub fn key(&self) -> Option<BlobKey> {
        BlobKey::parse(&self.blob)
    }

    /// The blob of the snapshot that an update publishes.
    pub fn new_blob(stack: StackId, update: UpdateId) -> BlobKey {
        blob(format!("snap/{stack}/{update}"))
    }

    /// The blob of an index of that snapshot. The same version may be indexed again, when the version before is: so the
    /// key has a part of the hash of the bytes.
    pub fn new_index_blob(stack: StackId, update: UpdateId, sha256: &str) -> BlobKey {
        let hash = sha256.get(..16).unwrap_or(sha256);
        blob(format!("snap/{stack}/{update}-index-{hash}"))
    }

    /// All blobs of the snapshot, each with the hex SHA-256 of its bytes: its own, and that of its index.
    pub fn blobs(&self) -> impl Iterator<Item = (&str, &str)> {
        let index = self.index.iter().map(|index| (index.blob.as_str(), index.sha256.as_str()));
        std::iter::once((self.blob.as_str(), self.sha256.as_str())).chain(index)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn snapshot() -> Snapshot {
        Snapshot {
            blob: format!("snap/{}/{}", stack(), update_id(2)),
            sha256: "ab".repeat(32),
            bytes_gzip: 321,
            bytes_text: 1234,
            resource_count: 5,
            pending_count: 1,
            secrets_url: None,
            index: None,
        }
    }

    pub(crate) fn indexed() -> Snapshot {
        let index = SnapshotIndex {
            blob: format!("snap/{}/{}-index-cdcdcdcdcdcdcdcd", stack(), update_id(2)),
            sha256: "cd".repeat(32),
            directory_sha256: "ef".repeat(32),
            since: 3,
            entries: 6,
            lookup_bytes: 200,
            directory_bytes: 90,
            first_rows_bytes: 300,
            rows_bytes: 400,
            edges_bytes: 50,
        };
        Snapshot { index: Some(index), ..snapshot() }
    }

    pub(crate) fn addressed() -> Snapshot {
        Snapshot { secrets_url: Some("https://state.example.com".to_owned()), ..snapshot() }
    }
}

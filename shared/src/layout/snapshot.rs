use serde::{Deserialize, Serialize};

use super::blobs::blob;
use crate::domain::deployment::RESOURCE_BYTES;
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
    /// The index of its resources. `None` if an older program published it, or if there was no memory for an index, until
    /// the operator indexes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<SnapshotIndex>,
}

/// The index of a snapshot's resources. See [`resource_index`](crate::domain::resource_index). It is a part of the head,
/// so it is short: its blob has the key of the snapshot with `-index-` and the start of its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotIndex {
    /// The hex SHA-256 of the blob.
    pub sha256: String,
    /// The start of the hex SHA-256 of the directory: 32 digits.
    pub directory: String,
    /// The version from which on it knows which versions changed a resource.
    pub since: u64,
    /// The number of entries in the lookup: of resources, and of deleted ones.
    pub entries: u64,
    /// The lengths in bytes of the lookup, the directory, the first rows, all rows, and the edges.
    pub bytes: [u64; 5],
}

impl SnapshotIndex {
    /// The length of [`SnapshotIndex::directory`].
    pub const DIRECTORY_DIGITS: usize = 32;

    /// Where its sections are.
    pub fn places(&self) -> Places {
        let [lookup_bytes, directory_bytes, first_rows_bytes, rows_bytes, edges_bytes] = self.bytes;
        Places { lookup_bytes, directory_bytes, first_rows_bytes, rows_bytes, edges_bytes }
    }

    /// The lengths of these sections.
    pub fn lengths(places: &Places) -> [u64; 5] {
        let Places { lookup_bytes, directory_bytes, first_rows_bytes, rows_bytes, edges_bytes } = *places;
        [lookup_bytes, directory_bytes, first_rows_bytes, rows_bytes, edges_bytes]
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

    /// The key of the blob of an index with this hash. The same version may be indexed again, when the version before is:
    /// so the key has a part of the hash.
    pub fn index_blob(&self, index: &SnapshotIndex) -> String {
        format!("{}-index-{}", self.blob, index.sha256.get(..16).unwrap_or(&index.sha256))
    }

    /// The memory that its resources and pending operations take while they are read or indexed, in addition to multiples of
    /// the text, in bytes.
    pub fn table_bytes(&self) -> usize {
        let count = self.resource_count.saturating_add(self.pending_count);
        usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(RESOURCE_BYTES)
    }

    /// All blobs of the snapshot, each with the hex SHA-256 of its bytes: its own, and that of its index.
    pub fn blobs(&self) -> impl Iterator<Item = (String, &str)> {
        let index = self.index.iter().map(|index| (self.index_blob(index), index.sha256.as_str()));
        std::iter::once((self.blob.clone(), self.sha256.as_str())).chain(index)
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
            sha256: "cd".repeat(32),
            directory: "ef".repeat(16),
            since: 3,
            entries: 6,
            bytes: [200, 90, 300, 400, 50],
        };
        Snapshot { index: Some(index), ..snapshot() }
    }

    pub(crate) fn addressed() -> Snapshot {
        Snapshot { secrets_url: Some("https://state.example.com".to_owned()), ..snapshot() }
    }
}

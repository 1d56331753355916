use serde::{Deserialize, Serialize};

use super::blobs::blob;
use crate::domain::ids::{StackId, UpdateId};
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
        }
    }

    pub(crate) fn addressed() -> Snapshot {
        Snapshot { secrets_url: Some("https://state.example.com".to_owned()), ..snapshot() }
    }
}

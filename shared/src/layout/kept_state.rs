use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::blobs::blob;
use crate::domain::ids::StateId;
use crate::ports::BlobKey;

/// A stored text of a Terraform state: its gzip, encrypted with the state's data key, in a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptState {
    /// The blob's key.
    pub blob: String,
    /// The hex SHA-256 of the blob.
    pub blob_sha256: String,
    /// The blob's length in bytes.
    pub blob_bytes: u64,
    /// The hex SHA-256 of the text, exactly as its client sent it.
    pub sha256: String,
    /// The text's length in bytes.
    pub bytes: u64,
    pub serial: Option<u64>,
    pub lineage: Option<String>,
    /// The version of the client that wrote it, according to the text.
    pub terraform_version: Option<String>,
    /// Whether the client encrypted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_encrypted: bool,
    /// Resource instances; `None` for an encrypted state.
    pub resource_count: Option<u64>,
    /// `None` for an encrypted state.
    pub output_count: Option<u64>,
}

impl KeptState {
    /// The blob of the encrypted text of a write. `write` is random.
    pub fn new_blob(state: StateId, write: Uuid) -> BlobKey {
        blob(format!("tf/{state}/{write}"))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn kept() -> KeptState {
        KeptState {
            blob: format!("tf/{}/{}", state_id(), update_id(5)),
            blob_sha256: "ab".repeat(32),
            blob_bytes: 400,
            sha256: "cd".repeat(32),
            bytes: 1374,
            serial: Some(u64::MAX),
            lineage: Some("aaaaaaaa-0000-4000-8000-000000000001".to_owned()),
            terraform_version: Some("1.12.6".to_owned()),
            is_encrypted: false,
            resource_count: Some(2),
            output_count: Some(1),
        }
    }

    pub(crate) fn encrypted() -> KeptState {
        KeptState {
            serial: None,
            lineage: None,
            terraform_version: None,
            is_encrypted: true,
            resource_count: None,
            output_count: None,
            ..kept()
        }
    }
}

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::blobs::blob;
use crate::domain::ids::StateId;
use crate::ports::BlobKey;

/// The end of the key of a blob of rows.
const ROWS: &str = "-rows";

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
    /// The rows of its resource instances. Only a long text has them, and none if an older program stored it, or if they
    /// could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<KeptRows>,
}

/// The rows of a text. See [`rows`](crate::domain::tfstate::rows). They are a part of the head, so this is short: their
/// blob has the key of the text with `-rows`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRows {
    /// The hex SHA-256 of the blob.
    pub sha256: String,
    /// The number of the data key that sealed the directory, and usually the blocks. It is loaded while the blob is read.
    pub key: u32,
    /// The number of rows: of all resource instances, also of those that share an address.
    pub count: u64,
    /// The lengths in bytes of the sealed directory, of the blocks with the first rows, and of all blocks.
    pub bytes: [u64; 3],
}

impl KeptState {
    /// The blob of the encrypted text of a write. `write` is random.
    pub fn new_blob(state: StateId, write: Uuid) -> BlobKey {
        blob(format!("tf/{state}/{write}"))
    }

    /// The blob of the rows of the text in this blob.
    pub fn new_rows_blob(text: &BlobKey) -> BlobKey {
        blob(format!("{text}{ROWS}"))
    }

    /// The key of the blob of its rows, if it has any.
    pub fn rows_blob(&self) -> String {
        format!("{}{ROWS}", self.blob)
    }

    /// All blobs of the text, each with the hex SHA-256 of its bytes: its own, and that of its rows.
    pub fn blobs(&self) -> impl Iterator<Item = (String, &str)> {
        let rows = self.rows.iter().map(|rows| (self.rows_blob(), rows.sha256.as_str()));
        std::iter::once((self.blob.clone(), self.blob_sha256.as_str())).chain(rows)
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
            rows: None,
        }
    }

    pub(crate) fn with_rows() -> KeptState {
        let rows =
            KeptRows { sha256: "0a".repeat(32), key: 1, count: 50_000, bytes: [9_000, 12_000, 900_000] };
        KeptState { bytes: 40_000_000, rows: Some(rows), ..kept() }
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

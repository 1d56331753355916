use serde::{Deserialize, Serialize};

/// Where the bytes of a record are stored, which may be too long for an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// In the record's tail.
    Inline,
    Blob {
        key: String,
        /// The hex SHA-256 of the blob.
        sha256: String,
    },
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;

    pub(crate) fn in_blob(key: String) -> Payload {
        Payload::Blob { key, sha256: "ef".repeat(32) }
    }
}

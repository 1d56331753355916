use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix};
use super::record::Record;
use crate::ports::Timestamp;

const KEYRING: &str = "KEYRING";

/// The public half of a key that signs update tokens, or did. The tail is its 32 bytes. Written with the
/// [`super::Signer`], and again when another key replaces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyingKeyRecord {
    pub created: Timestamp,
    /// When another key replaced it; `None` for the key that signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<Timestamp>,
}

impl Record for VerifyingKeyRecord {
    const NAME: &'static str = "verifying key";
}

impl VerifyingKeyRecord {
    pub fn key(id: &str) -> Key<Self> {
        Key::new(KEYRING, id)
    }

    pub fn all() -> KeyPrefix<Self> {
        KeyPrefix::new(KEYRING, "")
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let verifying = VerifyingKeyRecord { created: CREATED, replaced: None };
        files.hold("verifying-key.v1", &verifying, &bytes()[..32]);
        let replaced = VerifyingKeyRecord { replaced: Some(LATER), ..verifying };
        files.hold("verifying-key-replaced.v1", &replaced, &bytes()[..32]);
    }
}

use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::ports::Timestamp;

/// The current key that signs update tokens. The tail is its wrapped seed. Written at the first start, and by
/// a rotation of the master key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signer {
    /// The id under which its public half is stored.
    pub key: String,
    pub created: Timestamp,
}

impl Record for Signer {
    const NAME: &'static str = "signer";
}

impl Signer {
    pub fn key() -> Key<Self> {
        Key::new("SIGNER", "CURRENT")
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let signer = Signer { key: "0123456789abcdef".to_owned(), created: CREATED };
        files.hold("signer.v1", &signer, &bytes()[17..33]);
    }
}

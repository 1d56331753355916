use serde::{Deserialize, Serialize};

use super::key::{Key, META};
use super::record::Record;
use crate::ports::Timestamp;

/// A proof of a principal of AWS that was accepted once. It expires by itself when the proof is no longer valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownProof {
    pub at: Timestamp,
}

impl Record for ShownProof {
    const NAME: &'static str = "shown proof";
}

impl ShownProof {
    /// The key has the hex signature of the proof.
    pub fn key(signature: &str) -> Key<Self> {
        Key::new(format!("PROOF#{signature}"), META)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("shown-proof.v1", &ShownProof { at: CREATED }, b"");
    }
}

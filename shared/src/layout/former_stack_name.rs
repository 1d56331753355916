use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::domain::ids::StackId;
use crate::domain::names::StackAddress;

/// A former name of a stack. Written by a rename. The ciphertexts of old versions are decrypted under it. A
/// stack that has the name now takes precedence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerStackName {
    /// The last stack that had the name.
    pub id: StackId,
}

impl Record for FormerStackName {
    const NAME: &'static str = "former stack name";
}

impl FormerStackName {
    pub fn key(address: &StackAddress) -> Key<Self> {
        Key::new(format!("ORG#{}", address.org), format!("ALIAS#{}/{}", address.project, address.stack))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("alias.v1", &FormerStackName { id: stack() }, b"");
    }
}

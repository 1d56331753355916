use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix};
use super::record::Record;
use crate::domain::ids::{StackId, UpdateId};
use crate::ports::Timestamp;

/// The entry of a preview in its stack's list, ordered by the version that it started from. Written when the
/// preview starts. The update's own records store what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    pub update: UpdateId,
}

impl Record for Preview {
    const NAME: &'static str = "preview";
}

impl Preview {
    pub fn key(stack: StackId, version: u64, created: Timestamp, update: UpdateId) -> Key<Self> {
        let sort = format!("P#{version:020}#{:020}#{update}", created.0.max(0));
        Key::new(format!("STACK#{stack}"), sort)
    }

    /// All previews of a stack, by the version that they started from, and then in the order of their creation.
    pub fn of_stack(stack: StackId) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("STACK#{stack}"), "P#")
    }

    /// The previews that started from a version of a stack, in the order of their creation.
    pub fn of_version(stack: StackId, version: u64) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("STACK#{stack}"), format!("P#{version:020}#"))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("preview.v1", &Preview { update: update_id(4) }, b"");
    }
}

use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix};
use super::record::Record;
use crate::domain::ids::StackId;
use crate::domain::names::StackAddress;

const PREFIX: &str = "FORMER#";

/// The entry of a former name in its stack's list. Written with the [`super::FormerStackName`], so that erasing the
/// stack finds that one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerStackNameEntry {
    pub address: StackAddress,
}

impl Record for FormerStackNameEntry {
    const NAME: &'static str = "former name entry";
}

impl FormerStackNameEntry {
    pub fn key(stack: StackId, address: &StackAddress) -> Key<Self> {
        Key::new(format!("STACK#{stack}"), format!("{PREFIX}{address}"))
    }

    pub fn of_stack(stack: StackId) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("STACK#{stack}"), PREFIX)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::stack_head::examples::head;
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("former-name.v1", &FormerStackNameEntry { address: head().address }, b"");
    }
}

use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix};
use super::record::Record;
use crate::domain::ids::StateId;
use crate::domain::names::StateAddress;

const PREFIX: &str = "FORMER#";

/// The entry of a former name in its state's list. Written with the [`super::FormerStateName`], so that erasing the
/// state finds that one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerStateNameEntry {
    pub address: StateAddress,
}

impl Record for FormerStateNameEntry {
    const NAME: &'static str = "entry of a former state name";
}

impl FormerStateNameEntry {
    pub fn key(state: StateId, address: &StateAddress) -> Key<Self> {
        Key::new(format!("TFSTATE#{state}"), format!("{PREFIX}{}/{}", address.project, address.state))
    }

    pub fn of_state(state: StateId) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("TFSTATE#{state}"), PREFIX)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::state_head::examples::new;
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("state-former-entry.v1", &FormerStateNameEntry { address: new().address }, b"");
    }
}

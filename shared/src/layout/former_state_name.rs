use serde::{Deserialize, Serialize};

use super::key::{Key, parsed, project_and_name};
use super::record::{Broken, Record};
use crate::domain::ids::StateId;
use crate::domain::names::{ProjectName, StateAddress, StateName};
use crate::ports::ItemKey;

const PREFIX: &str = "TFFORMER#";

/// A name that leads to its former state. Written by a rename, and by the deletion of a state that has
/// resources. A state that has the name now takes precedence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerStateName {
    /// The state. If it is deleted and can be undeleted, the name is reserved.
    pub id: StateId,
}

impl Record for FormerStateName {
    const NAME: &'static str = "former state name";
}

impl FormerStateName {
    pub fn key(address: &StateAddress) -> Key<Self> {
        Key::new(format!("ORG#{}", address.org), format!("{PREFIX}{}/{}", address.project, address.state))
    }

    /// The project and the state in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn name_in(key: &ItemKey) -> Result<(ProjectName, StateName), Broken> {
        let name = key.sort.strip_prefix(PREFIX);
        parsed::<Self, _>(key, name.and_then(|name| project_and_name(name, StateName::parse)))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("former-state-name.v1", &FormerStateName { id: state_id() }, b"");
    }
}

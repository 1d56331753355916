use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed, project_and_name};
use super::record::{Broken, Record};
use crate::domain::ids::StateId;
use crate::domain::names::{OrgName, ProjectName, StateAddress, StateName};
use crate::domain::tfstate::Labels;
use crate::ports::{ItemKey, Timestamp};

const PREFIX: &str = "TFSTATE#";

/// The entry of a Terraform state under its name. It leads to the state's id, and stores what lists show.
/// Written with the state's head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateEntry {
    pub id: StateId,
    /// The current version; 0 before the first.
    pub version: u64,
    /// When the current version was written.
    pub last_write: Option<Timestamp>,
    pub serial: Option<u64>,
    /// Resource instances; `None` for an encrypted state.
    pub resource_count: Option<u64>,
    /// The text's length in bytes.
    pub bytes: u64,
    /// The labels that lists are filtered by.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
}

impl Record for StateEntry {
    const NAME: &'static str = "state name";
}

impl StateEntry {
    pub fn key(address: &StateAddress) -> Key<Self> {
        Key::new(format!("ORG#{}", address.org), format!("{PREFIX}{}/{}", address.project, address.state))
    }

    /// The entries of an organization: of one project or of all.
    pub fn of_org(org: &OrgName, project: Option<&ProjectName>) -> KeyPrefix<Self> {
        let prefix = project.map_or_else(|| PREFIX.to_owned(), |project| format!("{PREFIX}{project}/"));
        KeyPrefix::new(format!("ORG#{org}"), prefix)
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

    pub(crate) fn labelled() -> StateEntry {
        StateEntry {
            id: state_id(),
            version: 3,
            last_write: Some(LATER),
            serial: Some(7),
            resource_count: Some(2),
            bytes: 1374,
            labels: labels(),
        }
    }

    pub(crate) fn read(files: &mut Files) {
        files.hold("state-entry.v1", &StateEntry { labels: Labels::new(), ..labelled() }, b"");
        files.hold("state-entry-labelled.v1", &labelled(), b"");
    }
}

use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, before_id, parsed, project_and_name};
use super::record::{Broken, Record};
use super::state_entry::StateEntry;
use crate::domain::ids::StateId;
use crate::domain::names::{OrgName, ProjectName, StateAddress, StateName};
use crate::domain::update::Requester;
use crate::ports::{ItemKey, Timestamp};

const PREFIX: &str = "TFREMOVED#";

/// A Terraform state that was deleted and can be undeleted. Written by the delete, under the name that the state had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedState {
    pub at: Timestamp,
    pub by: Requester,
    /// The state's entry as it was.
    pub entry: StateEntry,
}

impl Record for DeletedState {
    const NAME: &'static str = "deleted state";
}

impl DeletedState {
    pub fn key(address: &StateAddress, state: StateId) -> Key<Self> {
        Key::new(
            format!("ORG#{}", address.org),
            format!("{PREFIX}{}/{}#{state}", address.project, address.state),
        )
    }

    /// The deleted states of an organization: of all, of one project, or of one name.
    pub fn of_org(
        org: &OrgName,
        project: Option<&ProjectName>,
        state: Option<&StateName>,
    ) -> KeyPrefix<Self> {
        let prefix = match (project, state) {
            (None, _) => PREFIX.to_owned(),
            (Some(project), None) => format!("{PREFIX}{project}/"),
            (Some(project), Some(state)) => format!("{PREFIX}{project}/{state}#"),
        };
        KeyPrefix::new(format!("ORG#{org}"), prefix)
    }

    /// The project and the state in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn name_in(key: &ItemKey) -> Result<(ProjectName, StateName), Broken> {
        let name = key.sort.strip_prefix(PREFIX).and_then(before_id);
        parsed::<Self, _>(key, name.and_then(|name| project_and_name(name, StateName::parse)))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::state_entry::examples::labelled;
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let deleted = DeletedState { at: LATER, by: requester(), entry: labelled() };
        files.hold("removed-state.v1", &deleted, b"");
    }
}

use serde::{Deserialize, Serialize};

use super::environment_head::EnvironmentHead;
use super::key::{Key, KeyPrefix, before_id, parsed, project_and_name};
use super::record::{Broken, Record};
use crate::domain::ids::EnvironmentId;
use crate::domain::names::{EnvironmentAddress, EnvironmentName, Login, OrgName, ProjectName};
use crate::ports::{ItemKey, Timestamp};

const PREFIX: &str = "ENVREMOVED#";

/// An environment that was deleted and can be undeleted. Written by the delete, under the name that it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedEnvironment {
    pub at: Timestamp,
    pub by: Login,
    /// Its head as it was.
    pub head: EnvironmentHead,
}

impl Record for DeletedEnvironment {
    const NAME: &'static str = "deleted environment";
}

impl DeletedEnvironment {
    pub fn key(address: &EnvironmentAddress, environment: EnvironmentId) -> Key<Self> {
        let of_name = Self::of_name(address);
        Key::new(of_name.partition, format!("{}{environment}", of_name.sort))
    }

    /// The deleted environments that had one name.
    pub fn of_name(address: &EnvironmentAddress) -> KeyPrefix<Self> {
        let prefix = format!("{PREFIX}{}/{}#", address.project, address.name);
        KeyPrefix::new(format!("ORG#{}", address.org), prefix)
    }

    pub fn of_org(org: &OrgName) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("ORG#{org}"), PREFIX)
    }

    /// The project and the environment in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn name_in(key: &ItemKey) -> Result<(ProjectName, EnvironmentName), Broken> {
        let name = key.sort.strip_prefix(PREFIX).and_then(before_id);
        parsed::<Self, _>(key, name.and_then(|name| project_and_name(name, EnvironmentName::parse)))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::environment_head::examples::head;
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let deleted = DeletedEnvironment { at: LATER, by: login("alice"), head: head() };
        files.hold("removed-environment.v1", &deleted, b"");
    }
}

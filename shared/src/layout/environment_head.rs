use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed, project_and_name};
use super::record::{Broken, Record};
use crate::domain::ids::EnvironmentId;
use crate::domain::names::{
    EnvironmentAddress, EnvironmentName, EnvironmentTagName, Login, OrgName, ProjectName,
};
use crate::ports::{ItemKey, Timestamp};

const PREFIX: &str = "ENV#";

/// An environment's head, stored under its name: the one item that changes with every change of the
/// environment. Written with every revision and every change of a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentHead {
    pub id: EnvironmentId,
    pub created: Timestamp,
    pub created_by: Login,
    /// The current revision; from 1.
    pub revision: u64,
    /// When the current revision was written.
    pub modified: Timestamp,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<EnvironmentTagName, EnvironmentTag>,
    /// Names of revisions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub revision_tags: BTreeMap<EnvironmentTagName, RevisionTag>,
    /// Whether it cannot be deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_protected: bool,
    /// What the text of the current revision imports or refers to, each as `PROJECT/NAME`, with or without `@` and a
    /// number or a tag. `None` if an older program wrote the head, which drops this with its next write: then the text
    /// has to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imports: Option<BTreeSet<String>>,
}

impl Record for EnvironmentHead {
    const NAME: &'static str = "environment head";
}

impl EnvironmentHead {
    pub fn key(address: &EnvironmentAddress) -> Key<Self> {
        Key::new(format!("ORG#{}", address.org), format!("{PREFIX}{}/{}", address.project, address.name))
    }

    pub fn of_org(org: &OrgName) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("ORG#{org}"), PREFIX)
    }

    /// The project and the environment in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn name_in(key: &ItemKey) -> Result<(ProjectName, EnvironmentName), Broken> {
        let name = key.sort.strip_prefix(PREFIX);
        parsed::<Self, _>(key, name.and_then(|name| project_and_name(name, EnvironmentName::parse)))
    }
}

/// A tag of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentTag {
    pub value: String,
    pub created: Timestamp,
    pub modified: Timestamp,
    /// The user who changed it last.
    pub by: Login,
}

/// The name of a revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionTag {
    pub revision: u64,
    pub created: Timestamp,
    pub modified: Timestamp,
    /// The user who changed it last.
    pub by: Login,
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn head() -> EnvironmentHead {
        let tag = |name: &str| EnvironmentTagName::parse(name).unwrap();
        let team =
            EnvironmentTag { value: "infra".to_owned(), created: CREATED, modified: LATER, by: login("bob") };
        let stable = RevisionTag { revision: 2, created: CREATED, modified: LATER, by: login("bob") };
        EnvironmentHead {
            id: environment_id(),
            created: CREATED,
            created_by: login("alice"),
            revision: 3,
            modified: LATER,
            tags: BTreeMap::from([(tag("team"), team)]),
            revision_tags: BTreeMap::from([(tag("stable"), stable)]),
            is_protected: true,
            imports: None,
        }
    }

    pub(crate) fn read(files: &mut Files) {
        let new = EnvironmentHead {
            revision: 1,
            modified: CREATED,
            tags: BTreeMap::new(),
            revision_tags: BTreeMap::new(),
            is_protected: false,
            ..head()
        };
        files.hold("environment-new.v1", &new, b"");
        let imports = ["web/base", "web/base@stable"].map(str::to_owned);
        let importing = EnvironmentHead { imports: Some(imports.into()), ..new };
        files.hold("environment-importing.v1", &importing, b"");
        files.hold("environment.v1", &head(), b"");
    }
}

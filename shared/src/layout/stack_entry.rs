use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed, project_and_name};
use super::record::{Broken, Record};
use crate::domain::ids::StackId;
use crate::domain::names::{OrgName, ProjectName, StackAddress, StackName};
use crate::domain::update::Outcome;
use crate::ports::{ItemKey, Timestamp};

const PREFIX: &str = "STACK#";

/// The entry of a stack under its name. It leads to the stack's id, and stores what lists show. Written with
/// the stack's head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackEntry {
    pub id: StackId,
    pub tags: BTreeMap<String, String>,
    /// When the last version was published.
    pub last_update: Option<Timestamp>,
    /// Resources in the last version.
    pub resource_count: Option<u64>,
    /// Whether an update holds the stack. It changes with the head, so that a list need not read the heads. A
    /// program that does not know this field drops it, and a list then shows the last update.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_updating: bool,
    /// Whether a person holds it, as the head says, who and why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_held: bool,
    /// The names of the stacks whose outputs its last version reads, as its program has them. Empty for versions that
    /// were published before this field existed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<String>,
    /// The last version. `None` without one, or if an older program published it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<NewestVersion>,
}

/// What a list shows of the last version of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewestVersion {
    pub version: u64,
    /// How its update ended.
    pub outcome: Outcome,
    pub started: Timestamp,
    /// Bytes of the state as it is stored, compressed.
    pub bytes: u64,
}

impl Record for StackEntry {
    const NAME: &'static str = "stack name";
}

impl StackEntry {
    pub fn key(address: &StackAddress) -> Key<Self> {
        Key::new(format!("ORG#{}", address.org), format!("{PREFIX}{}/{}", address.project, address.stack))
    }

    /// The entries of an organization: of one project or of all.
    pub fn of_org(org: &OrgName, project: Option<&ProjectName>) -> KeyPrefix<Self> {
        let prefix = project.map_or_else(|| PREFIX.to_owned(), |project| format!("{PREFIX}{project}/"));
        KeyPrefix::new(format!("ORG#{org}"), prefix)
    }

    /// The project and the stack in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn name_in(key: &ItemKey) -> Result<(ProjectName, StackName), Broken> {
        let name = key.sort.strip_prefix(PREFIX);
        parsed::<Self, _>(key, name.and_then(|name| project_and_name(name, StackName::parse)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_name_reads_back_from_its_key() {
        let address = StackAddress::parse("acme", "web.site", "dev-1").unwrap();
        let key = StackEntry::key(&address);
        assert_eq!(StackEntry::name_in(&key).unwrap(), (address.project, address.stack));
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn entry() -> StackEntry {
        let tags = BTreeMap::from([("owner".to_owned(), "web team".to_owned())]);
        StackEntry {
            id: stack(),
            tags,
            last_update: Some(LATER),
            resource_count: Some(5),
            is_updating: false,
            is_held: false,
            newest: None,
            references: Vec::new(),
        }
    }

    pub(crate) fn read(files: &mut Files) {
        files.hold("name.v1", &entry(), b"");
        files.hold("name-updating.v1", &StackEntry { is_updating: true, ..entry() }, b"");
        files.hold("name-held.v1", &StackEntry { is_held: true, ..entry() }, b"");
        let newest =
            Some(NewestVersion { version: 7, outcome: Outcome::Failed, started: CREATED, bytes: 1_374 });
        files.hold("name-newest.v1", &StackEntry { newest, ..entry() }, b"");
        let references = vec!["acme/net/prod".to_owned(), "prod".to_owned()];
        files.hold("name-reading.v1", &StackEntry { references, ..entry() }, b"");
    }
}

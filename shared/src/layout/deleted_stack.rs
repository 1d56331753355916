use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, before_id, parsed, project_and_name};
use super::record::{Broken, Record};
use super::stack_entry::StackEntry;
use crate::domain::ids::StackId;
use crate::domain::names::{Login, OrgName, ProjectName, StackAddress, StackName};
use crate::ports::{ItemKey, Timestamp};

const PREFIX: &str = "REMOVED#";

/// A stack that was deleted and can be undeleted. Written by the delete, under the name that the stack had. Without
/// this item the stack is being erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedStack {
    pub at: Timestamp,
    pub by: Login,
    /// The stack's entry as it was.
    pub name: StackEntry,
}

impl Record for DeletedStack {
    const NAME: &'static str = "deleted stack";
}

impl DeletedStack {
    pub fn key(address: &StackAddress, stack: StackId) -> Key<Self> {
        Key::new(
            format!("ORG#{}", address.org),
            format!("{PREFIX}{}/{}#{stack}", address.project, address.stack),
        )
    }

    /// The deleted stacks of an organization: of one name or all.
    pub fn of_org(org: &OrgName, name: Option<(&ProjectName, &StackName)>) -> KeyPrefix<Self> {
        let prefix =
            name.map_or_else(|| PREFIX.to_owned(), |(project, stack)| format!("{PREFIX}{project}/{stack}#"));
        KeyPrefix::new(format!("ORG#{org}"), prefix)
    }

    /// The project and the stack in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn name_in(key: &ItemKey) -> Result<(ProjectName, StackName), Broken> {
        let name = key.sort.strip_prefix(PREFIX).and_then(before_id);
        parsed::<Self, _>(key, name.and_then(|name| project_and_name(name, StackName::parse)))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_deleted_stack_is_found_by_its_name_but_not_by_a_longer_one() {
        let address = StackAddress::parse("acme", "web.site", "dev").unwrap();
        let key = DeletedStack::key(&address, StackId::new(Uuid::from_u128(1)));
        let names = DeletedStack::name_in(&key).unwrap();
        assert_eq!(names, (address.project.clone(), address.stack.clone()));
        let prefix = DeletedStack::of_org(&address.org, Some((&names.0, &names.1))).sort;
        assert!(key.sort.starts_with(&prefix));
        let longer = StackAddress::parse("acme", "web.site", "dev-1").unwrap();
        assert!(!DeletedStack::key(&longer, StackId::new(Uuid::from_u128(1))).sort.starts_with(&prefix));
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::stack_entry::examples::entry;
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let deleted = DeletedStack { at: LATER, by: login("alice"), name: entry() };
        files.hold("removed.v1", &deleted, b"");
    }
}

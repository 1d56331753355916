use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed};
use super::record::{Broken, Record};
use crate::domain::names::{Login, OrgName};
use crate::ports::{ItemKey, Timestamp};

/// The partition that lists all users and organizations. Operators query it; no request does.
const DIRECTORY: &str = "DIRECTORY";
const USER: &str = "USER#";
const ORG: &str = "ORG#";

/// Marks that the user or organization named in the key exists. Written with the user or the organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEntry {
    pub created: Timestamp,
}

impl Record for DirectoryEntry {
    const NAME: &'static str = "directory entry";
}

impl DirectoryEntry {
    pub fn key_of_user(login: &Login) -> Key<Self> {
        Key::new(DIRECTORY, format!("{USER}{login}"))
    }

    pub fn users() -> KeyPrefix<Self> {
        KeyPrefix::new(DIRECTORY, USER)
    }

    /// The login in the key of a user's entry.
    ///
    /// # Errors
    /// [`Broken`] for another key.
    pub fn login_in(key: &ItemKey) -> Result<Login, Broken> {
        parsed::<Self, _>(key, key.sort.strip_prefix(USER).and_then(|login| Login::parse(login).ok()))
    }

    pub fn key_of_org(org: &OrgName) -> Key<Self> {
        Key::new(DIRECTORY, format!("{ORG}{org}"))
    }

    pub fn orgs() -> KeyPrefix<Self> {
        KeyPrefix::new(DIRECTORY, ORG)
    }

    /// The name in the key of an organization's entry.
    ///
    /// # Errors
    /// [`Broken`] for another key.
    pub fn org_in(key: &ItemKey) -> Result<OrgName, Broken> {
        parsed::<Self, _>(key, key.sort.strip_prefix(ORG).and_then(|org| OrgName::parse(org).ok()))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("directory-entry.v1", &DirectoryEntry { created: CREATED }, b"");
    }
}

use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed};
use super::record::{Broken, Record};
use crate::domain::ids::StateId;
use crate::domain::names::OrgName;
use crate::ports::{ItemKey, Timestamp};

const PREFIX: &str = "TFLOCK#";

/// The entry of a locked state in its organization's list of locks. Written and deleted with the lock, which
/// decides: older programs move the lock alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateLockEntry {
    /// When the lock was taken.
    pub since: Timestamp,
}

impl Record for StateLockEntry {
    const NAME: &'static str = "state lock entry";
}

impl StateLockEntry {
    pub fn key(org: &OrgName, state: StateId) -> Key<Self> {
        Key::new(format!("ORG#{org}"), format!("{PREFIX}{state}"))
    }

    pub fn of_org(org: &OrgName) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("ORG#{org}"), PREFIX)
    }

    /// The state in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn state_in(key: &ItemKey) -> Result<StateId, Broken> {
        parsed::<Self, _>(key, key.sort.strip_prefix(PREFIX).and_then(StateId::parse))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("state-lock-entry.v1", &StateLockEntry { since: CREATED }, b"");
    }
}

use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::domain::names::OrgName;
use crate::ports::Timestamp;

/// That each locked state of an organization has an entry in its list of locks. Written by the first list, which
/// makes the entries of locks that older programs took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateLocksListed {
    pub at: Timestamp,
}

impl Record for StateLocksListed {
    const NAME: &'static str = "mark of the list of state locks";
}

impl StateLocksListed {
    pub fn key(org: &OrgName) -> Key<Self> {
        Key::new(format!("ORG#{org}"), "TFLOCKS")
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("state-locks-listed.v1", &StateLocksListed { at: LATER }, b"");
    }
}

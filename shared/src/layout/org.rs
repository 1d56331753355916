use serde::{Deserialize, Serialize};

use super::key::{Key, META};
use super::record::Record;
use crate::domain::names::OrgName;
use crate::ports::Timestamp;

/// An organization. Written when the operator creates it, and at the first start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Org {
    pub created: Timestamp,
}

impl Record for Org {
    const NAME: &'static str = "organization";
}

impl Org {
    pub fn key(org: &OrgName) -> Key<Self> {
        Key::new(format!("ORG#{org}"), META)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("org.v1", &Org { created: CREATED }, b"");
    }
}

use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::domain::names::OrgName;
use crate::domain::tfstate::LabelPolicy;
use crate::domain::update::Requester;
use crate::ports::Timestamp;

/// An organization's rules for the labels of its states. Written by its admins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredLabelPolicy {
    /// The number of times that it was written.
    pub version: u64,
    /// When it was last written.
    pub at: Timestamp,
    pub by: Requester,
    pub policy: LabelPolicy,
}

impl Record for StoredLabelPolicy {
    const NAME: &'static str = "label policy";
}

impl StoredLabelPolicy {
    pub fn key(org: &OrgName) -> Key<Self> {
        Key::new(format!("ORG#{org}"), "TFLABELS")
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    fn policy() -> LabelPolicy {
        let keys = |keys: &[&str]| keys.iter().map(|key| label_key(key)).collect();
        let values = labels().into_values().collect();
        LabelPolicy {
            allowed_keys: Some(keys(&["env", "team"])),
            allowed_values: [(label_key("env"), values)].into(),
            reserved_prefixes: ["sys/".to_owned()].into(),
            required_keys: keys(&["env"]),
            immutable_keys: keys(&["team"]),
            max_keys: 8,
            max_value_length: 64,
        }
    }

    pub(crate) fn read(files: &mut Files) {
        let policy = StoredLabelPolicy { version: 2, at: LATER, by: requester(), policy: policy() };
        files.hold("label-policy.v1", &policy, b"");
    }
}

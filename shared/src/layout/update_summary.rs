use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::domain::ids::UpdateId;

/// The totals of an update. Written with the batch of events in which the engine sends them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateSummary {
    /// The number of resources for each operation.
    pub resource_changes: BTreeMap<String, u64>,
}

impl Record for UpdateSummary {
    const NAME: &'static str = "update summary";
}

impl UpdateSummary {
    pub fn key(update: UpdateId) -> Key<Self> {
        Key::new(format!("UPDATE#{update}"), "SUMMARY")
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn changes() -> BTreeMap<String, u64> {
        BTreeMap::from([("create".to_owned(), 2), ("same".to_owned(), 3)])
    }

    pub(crate) fn read(files: &mut Files) {
        files.hold("summary.v1", &UpdateSummary { resource_changes: changes() }, b"");
    }
}

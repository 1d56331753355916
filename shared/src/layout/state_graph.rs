use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::domain::names::OrgName;

/// The dependencies of an organization as a whole. Written with every dependency that is added or deleted, so
/// that of two concurrent changes one fails and is tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateGraph {
    pub edge_count: u64,
}

impl Record for StateGraph {
    const NAME: &'static str = "graph of states";
}

impl StateGraph {
    pub fn key(org: &OrgName) -> Key<Self> {
        Key::new(format!("ORG#{org}"), "TFGRAPH")
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("state-graph.v1", &StateGraph { edge_count: 1 }, b"");
    }
}

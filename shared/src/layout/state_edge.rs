use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed};
use super::record::{Broken, Record};
use crate::domain::ids::EdgeId;
use crate::domain::names::{Login, OrgName};
use crate::domain::tfstate::Ends;
use crate::ports::{ItemKey, Timestamp};

const PREFIX: &str = "TFEDGE#";

/// A dependency between two states of an organization. Written when a user adds it. The tail is the JSON text
/// of the value that replaces an output which does not exist; empty for none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateEdge {
    pub ends: Ends,
    pub created: Timestamp,
    pub created_by: Login,
}

impl Record for StateEdge {
    const NAME: &'static str = "edge between states";
}

impl StateEdge {
    pub fn key(org: &OrgName, edge: EdgeId) -> Key<Self> {
        Key::new(format!("ORG#{org}"), format!("{PREFIX}{edge}"))
    }

    pub fn of_org(org: &OrgName) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("ORG#{org}"), PREFIX)
    }

    /// The edge's id in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn id_in(key: &ItemKey) -> Result<EdgeId, Broken> {
        parsed::<Self, _>(key, key.sort.strip_prefix(PREFIX).and_then(EdgeId::parse))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::domain::ids::StateId;
    use crate::domain::names::{InputName, OutputName};
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let ends = Ends {
            producer: state_id(),
            output: OutputName::parse("url").unwrap(),
            consumer: StateId::parse("019b7c3a-0000-7000-8000-000000000002").unwrap(),
            input: InputName::parse("net_url").unwrap(),
        };
        let edge = StateEdge { ends, created: CREATED, created_by: login("alice") };
        files.hold("state-edge.v1", &edge, b"");
        files.hold("state-edge-mock.v1", &edge, br#"{"a":1}"#);
    }
}

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::key::Key;
use super::record::Record;
use crate::domain::ids::StateId;
use crate::domain::names::Login;
use crate::ports::Timestamp;

/// The schemas of a state's outputs. Written by users, and by writes that infer a schema. The head changes
/// with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSchemas {
    /// Whether a schema is inferred for an output that has none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub infer: bool,
    /// By the names of outputs.
    pub outputs: BTreeMap<String, OutputSchema>,
}

impl Record for StateSchemas {
    const NAME: &'static str = "output schemas";
}

impl StateSchemas {
    pub fn key(state: StateId) -> Key<Self> {
        Key::new(format!("TFSTATE#{state}"), "SCHEMAS")
    }
}

/// The schema of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// A JSON Schema.
    pub schema: Value,
    /// The version that it was inferred from; `None` for one that a user wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inferred_from: Option<u64>,
    /// When it was written.
    pub at: Timestamp,
    /// The user who wrote it, or who wrote the version that it was inferred from.
    pub by: Login,
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let schema = |text: &str, inferred_from| OutputSchema {
            schema: serde_json::from_str(text).unwrap(),
            inferred_from,
            at: LATER,
            by: login("alice"),
        };
        let set = schema(r#"{"type":"string","pattern":"^https:"}"#, None);
        let inferred = schema(r#"{"type":"number"}"#, Some(3));
        let outputs = [("count".to_owned(), inferred), ("url".to_owned(), set)].into();
        files.hold("state-schemas.v1", &StateSchemas { infer: true, outputs }, b"");
    }
}

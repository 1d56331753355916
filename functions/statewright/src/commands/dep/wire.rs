//! The parts of the server's responses that these commands read. `--json` prints them whole.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct End {
    pub(super) id: String,
    pub(super) project: Option<String>,
    pub(super) state: Option<String>,
    #[serde(default, rename = "removed")]
    pub(super) is_deleted: bool,
}

/// Shows `project/state`, and whether the state was deleted.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.project, &self.state) {
            (Some(project), Some(state)) => write!(f, "{project}/{state}")?,
            _ => f.write_str(&self.id)?,
        }
        if self.is_deleted { f.write_str(" (deleted)") } else { Ok(()) }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Edge {
    pub(super) id: String,
    pub(super) producer: End,
    pub(super) output: String,
    pub(super) consumer: End,
    pub(super) input: String,
    #[serde(default)]
    pub(super) mock: Option<serde_json::Value>,
}

/// An edge with its status.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dependency {
    pub(super) producer: End,
    pub(super) output: String,
    pub(super) input: String,
    /// Kept as written: parsing could lose digits of a number.
    #[serde(default)]
    pub(super) mock: Option<Box<RawValue>>,
    pub(super) status: String,
    pub(super) readable: bool,
    /// Whether the output existed once and no longer does.
    #[serde(default)]
    pub(super) gone: bool,
    pub(super) since: Option<String>,
    pub(super) version: Option<u64>,
}

/// A state with the status of its inputs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dependencies {
    #[serde(flatten)]
    pub(super) state: End,
    pub(super) status: String,
    pub(super) ran: Option<String>,
    pub(super) edges: Vec<Dependency>,
    #[serde(default)]
    pub(super) partial: bool,
}

/// States layer by layer.
#[derive(Debug, Deserialize)]
pub(super) struct Topology {
    pub(super) layers: Vec<Vec<End>>,
    #[serde(default)]
    pub(super) unordered: Vec<End>,
}

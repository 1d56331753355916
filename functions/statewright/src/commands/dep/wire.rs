//! What these commands read of a server's answers. Scripts get the whole of them.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A state at an end of an edge.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct End {
    pub(super) id: String,
    pub(super) project: Option<String>,
    pub(super) state: Option<String>,
    #[serde(default)]
    pub(super) removed: bool,
}

/// For people: `project/state`, and whether it is still there.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.project, &self.state) {
            (Some(project), Some(state)) => write!(f, "{project}/{state}")?,
            _ => f.write_str(&self.id)?,
        }
        if self.removed { f.write_str(" (removed)") } else { Ok(()) }
    }
}

/// An edge.
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

/// An edge with what is to be said of it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Dependency {
    pub(super) producer: End,
    pub(super) output: String,
    pub(super) input: String,
    /// As it was written: a number may be one that would lose digits.
    #[serde(default)]
    pub(super) mock: Option<Box<RawValue>>,
    pub(super) status: String,
    pub(super) readable: bool,
    /// Whether the output was there, and is not any more.
    #[serde(default)]
    pub(super) gone: bool,
    pub(super) since: Option<String>,
    pub(super) version: Option<u64>,
}

/// A state with what is to be said of it.
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

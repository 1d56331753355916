//! The shapes of edges between Terraform states, for consoles and commands.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Both;

/// A state at an end of an edge, or in an order of states.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// Its id.
    pub id: String,
    /// The project; null for a state of which nothing is left.
    pub project: Option<String>,
    /// The state: a workspace of the project.
    pub state: Option<String>,
    /// Whether it was removed. Its edges go when it is erased.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

/// An edge.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// Its id: the same for the same ends, outputs and inputs.
    pub id: String,
    /// The state that has the output.
    pub producer: End,
    /// The output.
    pub output: String,
    /// The state that reads it.
    pub consumer: End,
    /// What it is called there.
    pub input: String,
    /// What stands in for the output as long as that does not exist; absent for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mock: Option<Box<RawValue>>,
    /// When it was made, RFC 3339.
    pub created: String,
    /// Who made it.
    pub created_by: String,
}

/// A page of edges. A page may be empty and others follow.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edges {
    /// The edges, by their ids.
    pub edges: Vec<Edge>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// What adds an edge. States are named by their id, or as `project/state`, or by the project alone for its state `default`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewEdge {
    /// The state that has the output, or will have it.
    pub producer: String,
    /// The output.
    pub output: String,
    /// The state that reads it.
    pub consumer: String,
    /// What it is called there; made of the others if left out.
    #[serde(default)]
    pub input: Option<String>,
    /// What stands in for the output as long as that does not exist.
    #[serde(default)]
    pub mock: Option<Box<RawValue>>,
}

/// What changes an edge.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EdgeEdit {
    /// What stands in for the output as long as that does not exist; null for nothing.
    pub mock: Option<Box<RawValue>>,
}

/// An edge with what is to be said of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// The edge's id.
    pub id: String,
    /// The state that has the output.
    pub producer: End,
    /// The output.
    pub output: String,
    /// What it is called in the state that reads it.
    pub input: String,
    /// What stands in for the output as long as that does not exist; absent for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mock: Option<Box<RawValue>>,
    /// `pending`, `clean`, `dirty`, `clean-invalid`, `dirty-invalid`, `mock` or `missing-output`.
    pub status: &'static str,
    /// Whether the output is there and can be read, without its state, from `/tfstate/{id}/outputs`.
    pub readable: bool,
    /// The output was there, and is not any more, so that the mock value would take the place of a real one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// Since when the output has its value, RFC 3339; null where it has none, or none that can be told.
    pub since: Option<String>,
    /// The version of the producer that gave it this value.
    pub version: Option<u64>,
}

/// What is to be said of a state and of its incoming edges.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependencies {
    /// `clean`, `stale` or `potentially-stale`.
    pub status: &'static str,
    /// When the run began that wrote it last, RFC 3339; null for a state without a version.
    pub ran: Option<String>,
    /// Its incoming edges, by what it calls its inputs.
    pub edges: Vec<Dependency>,
    /// There are so many states up from this one that not all were looked at: it may be potentially stale all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// A page of the states that have incoming edges. Those that have none are clean.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Statuses {
    /// The states, by their ids.
    pub states: Vec<Both<End, Dependencies>>,
    /// Where the next page begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// States in an order in which none comes before what it depends on; or, upwards, none before what depends on it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Topology {
    /// `down` or `up`.
    pub direction: &'static str,
    /// Layer by layer: those of one layer may be run at once.
    pub layers: Vec<Vec<End>>,
    /// States that cannot be put into an order. None, as long as cycles are refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unordered: Vec<End>,
}

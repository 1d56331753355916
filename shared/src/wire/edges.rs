//! The shapes of edges between Terraform states, for consoles and commands.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Both;

/// A state at an end of an edge, or in an order of states.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    pub id: String,
    /// The project; null for an erased state.
    pub project: Option<String>,
    /// The state: a workspace of the project.
    pub state: Option<String>,
    /// Whether it is deleted. Its edges are removed when it is erased.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edge {
    /// The id, derived from the ends, the output and the input.
    pub id: String,
    /// The producer: the state that has the output.
    pub producer: End,
    pub output: String,
    /// The consumer: the state that reads the output.
    pub consumer: End,
    /// The name of the input in the consumer.
    pub input: String,
    /// The mock value, used until the output exists; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mock: Option<Box<RawValue>>,
    /// When it was created, RFC 3339.
    pub created: String,
    pub created_by: String,
}

/// A page of edges. An empty page may be followed by others.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Edges {
    /// The edges, by id.
    pub edges: Vec<Edge>,
    /// The token of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// The body that adds an edge. States are named by id, as `project/state`, or by the project alone for its state `default`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewEdge {
    /// The producer. Its output may not exist yet.
    pub producer: String,
    pub output: String,
    pub consumer: String,
    /// The name of the input in the consumer; derived from the others if absent.
    #[serde(default)]
    pub input: Option<String>,
    /// The mock value, used until the output exists.
    #[serde(default)]
    pub mock: Option<Box<RawValue>>,
}

/// The body that changes an edge.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EdgeEdit {
    /// The mock value, used until the output exists; null removes it.
    pub mock: Option<Box<RawValue>>,
}

/// An edge with its status.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    pub id: String,
    pub producer: End,
    pub output: String,
    /// The name of the input in the consumer.
    pub input: String,
    /// The mock value, used until the output exists; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mock: Option<Box<RawValue>>,
    /// `pending`, `clean`, `dirty`, `clean-invalid`, `dirty-invalid`, `mock` or `missing-output`.
    pub status: &'static str,
    /// Whether `/tfstate/{id}/outputs` shows the output, without the rest of its state.
    pub readable: bool,
    /// Whether the output existed before and is gone, so that a mock value would replace a real one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// Since when the output has its value, RFC 3339; null if it has none, or unknown.
    pub since: Option<String>,
    /// The producer's version that set the value.
    pub version: Option<u64>,
}

/// The staleness of a state and the status of its incoming edges.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Dependencies {
    /// `clean`, `stale` or `potentially-stale`.
    pub status: &'static str,
    /// When the run that last wrote it began, RFC 3339; null for a state without a version.
    pub ran: Option<String>,
    /// The incoming edges, by the names of the inputs.
    pub edges: Vec<Dependency>,
    /// Whether there are too many upstream states to check: then it may be potentially stale nevertheless.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// A page of the states that have incoming edges. A state without any is clean.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Statuses {
    /// The states, by id.
    pub states: Vec<Both<End, Dependencies>>,
    /// The token of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// States in dependency order: producers first with `down`, consumers first with `up`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Topology {
    /// `down` or `up`.
    pub direction: &'static str,
    /// In layers. The states of a layer do not depend on each other and can run in parallel.
    pub layers: Vec<Vec<End>>,
    /// States that cannot be ordered. Always empty, since cycles are refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unordered: Vec<End>,
}

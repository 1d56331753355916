//! The shapes of the map of an organization, for consoles.

use serde::{Deserialize, Serialize};

/// A stack or a state on the map.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapNode {
    /// `stack` or `tfstate`.
    pub kind: &'static str,
    pub id: String,
    pub project: String,
    pub name: String,
    /// `clean`, `stale` or `potentially-stale`; null if it was not computed.
    pub status: Option<&'static str>,
    /// When its current version was published or written, RFC 3339; null if it has none.
    pub last_change: Option<String>,
    /// Resources in the current version; null if unknown.
    pub resource_count: Option<u64>,
    /// Its place in an order to apply all, from 0; null in or after a cycle.
    pub layer: Option<usize>,
}

/// What one stack or state reads of another.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MapEdge {
    /// The one that has the outputs, by its place in `nodes`.
    pub from: usize,
    /// The one that reads them, by its place in `nodes`.
    pub to: usize,
    /// `reference` from stack to stack, `edge` from state to state.
    pub kind: &'static str,
    /// Whether the reader may have run with other values than the current ones; null if it was not computed. Of a
    /// reference: whether the other stack was updated since.
    pub stale: Option<bool>,
    /// The first outputs that it reads. Not known of references.
    pub outputs: Vec<String>,
}

/// The stacks and states that read outputs of others, as the caller may see them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct DependencyMap {
    /// In the order to apply them.
    pub nodes: Vec<MapNode>,
    pub edges: Vec<MapEdge>,
    /// The number of other stacks and states, which nothing connects.
    pub apart: usize,
    /// Whether the organization has more than one map shows.
    pub cut: bool,
}

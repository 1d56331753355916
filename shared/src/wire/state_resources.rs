//! The shapes of the resources of Terraform states, for consoles and commands.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Both;
use crate::domain::tfstate::{self, Detail, Listed, Near, Neighbors};

/// A text of a state: a version, or a refused write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfText {
    /// The version; 0 if the state has none, and null for a refused write.
    pub version: Option<u64>,
    /// The id of the refused write; absent for a version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
}

/// A resource instance, without its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// The address, as clients print it.
    pub address: String,
    /// The module instance that has it; absent for the root module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// `managed` or `data`.
    pub mode: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    /// The key of `count` or `for_each`, as in the address; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The key of a deposed object: one that is replaced, and not destroyed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// The name of the provider, with its alias.
    pub provider: String,
    /// Whether the next run replaces it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainted: bool,
    /// The number of resources that it depends on; null if its client does not report them.
    pub dependency_count: Option<u64>,
}

impl From<Listed> for Resource {
    fn from(listed: Listed) -> Self {
        Self {
            address: listed.address,
            module: listed.module,
            mode: listed.mode,
            kind: listed.kind,
            name: listed.name,
            key: listed.key,
            deposed: listed.deposed,
            provider: listed.provider,
            tainted: listed.is_tainted,
            dependency_count: listed.dependency_count,
        }
    }
}

/// A page of resource instances, by module and address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// The resource instances of the text.
    pub total: u64,
    /// How many of them the filter lets through.
    pub matched: u64,
    pub resources: Vec<Resource>,
    /// The token of the next page, which is of the same version; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// The other resource instances around one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Around {
    /// The addresses of what it depends on. A resource without instances has its own address.
    pub dependencies: Vec<String>,
    /// The number of those that are not listed.
    pub dependencies_more: u64,
    /// The addresses of what depends on it.
    pub dependents: Vec<String>,
    /// The number of those that are not listed.
    pub dependents_more: u64,
}

impl From<Detail> for Both<Resource, Around> {
    fn from(Detail { listed, dependencies, dependents }: Detail) -> Self {
        let Neighbors { addresses: dependencies, more: dependencies_more } = dependencies;
        let Neighbors { addresses: dependents, more: dependents_more } = dependents;
        let second = Around { dependencies, dependencies_more, dependents, dependents_more };
        Self { first: listed.into(), second }
    }
}

/// A resource instance near another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateNeighbour {
    /// The address, as clients print it.
    pub address: String,
    /// The module instance that has it; absent for the root module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// `managed` or `data`.
    pub mode: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    /// The key of `count` or `for_each`, as in the address; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl From<Near> for StateNeighbour {
    fn from(Near { address, module, mode, kind, name, key }: Near) -> Self {
        Self { address, module, mode, kind, name, key }
    }
}

/// A dependency between two instances, which are named by their places among the nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateDependency {
    /// The one that depends on the other.
    pub from: usize,
    pub to: usize,
}

/// The resource instances around one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateResourceNeighbours {
    /// At most 300; the first is the one in the middle. A resource without instances is not among them.
    pub nodes: Vec<StateNeighbour>,
    pub edges: Vec<StateDependency>,
    /// There are more nodes or edges.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

impl From<tfstate::Around> for StateResourceNeighbours {
    fn from(tfstate::Around { nodes, edges, is_cut }: tfstate::Around) -> Self {
        Self {
            nodes: nodes.into_iter().map(StateNeighbour::from).collect(),
            edges: edges.into_iter().map(|(from, to)| StateDependency { from, to }).collect(),
            is_cut,
        }
    }
}

/// The body that asks for the attributes of a resource instance.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AskValues {
    /// The address, as lists have it.
    #[serde(default)]
    pub address: String,
    /// The version, or the id of a refused write; the current version if absent.
    #[serde(default)]
    pub version: Option<String>,
    /// Whether to show the values that the state marks as sensitive.
    #[serde(default)]
    pub unmask: bool,
}

/// The attributes of a resource instance.
#[derive(Debug, Serialize, Deserialize)]
pub struct Values {
    pub address: String,
    /// The attributes; null if it has none. Masked values are the text `[sensitive]`.
    pub attributes: Option<Box<RawValue>>,
    /// The paths of the values that the state marks as sensitive.
    pub sensitive: Vec<String>,
    /// Whether these values are masked.
    pub masked: bool,
}

/// A version that changed a resource instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub version: u64,
    pub serial: Option<u64>,
    /// When it was written, RFC 3339.
    pub time: String,
    pub by: String,
    /// `create`, `change` or `delete`.
    pub op: String,
}

/// A part of the history of a resource instance, newest first. A part without entries may be followed by others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateResourceHistory {
    pub entries: Vec<HistoryEntry>,
    /// The versions of which it is not known whether they changed it.
    pub unknown: Vec<u64>,
    /// The token of the next part; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

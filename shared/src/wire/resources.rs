//! The resources of a stack: rows, one resource, its history and its neighbors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::pulumi::RequestedBy;
use crate::domain::resource_index::{Flag, PropertyChange, Row};

/// A resource of a list. A mark that is false is left out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRow {
    pub urn: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    /// The ID; in lists, its first 512 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The URN of the parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The number of ancestors.
    pub depth: u32,
    pub child_count: u32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub custom: bool,
    /// It was replaced and waits for its deletion.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub delete: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub external: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub protect: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pending_replacement: bool,
    /// The provider's reference, `URN::ID`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The last version that changed it.
    pub changed: u64,
    /// It does not match the filter, but a resource below it does.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_context: bool,
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

impl ResourceRow {
    /// Makes the wire form of a row.
    pub fn of(row: Row, is_context: bool) -> Self {
        Self {
            name: row.name().to_owned(),
            urn: row.urn,
            kind: row.own_type,
            id: some(row.id),
            parent: some(row.parent_urn),
            depth: row.depth,
            child_count: row.children,
            custom: row.flags.has(Flag::Custom),
            delete: row.flags.has(Flag::Delete),
            external: row.flags.has(Flag::External),
            protect: row.flags.has(Flag::Protect),
            pending_replacement: row.flags.has(Flag::PendingReplacement),
            provider: some(row.provider),
            changed: row.changed,
            is_context,
        }
    }
}

/// A page of the resources of a version, in the order of their tree.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// The version that has them; 0 before the first.
    pub version: u64,
    /// The number of resources of the version.
    pub total: u64,
    /// The number of resources that match; absent without a filter and a parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<u64>,
    /// The version from which on `changed` is known. A resource that changed in it may not have changed since an earlier one.
    pub history_from: u64,
    /// Operations that began in the version and did not end.
    #[serde(default, skip_serializing_if = "is_none")]
    pub pending_count: u64,
    pub resources: Vec<ResourceRow>,
    /// The token of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The differences between two versions of a stack. Each list has 1,000 resources at most; the counts are of all.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionDifferences {
    pub added_count: u64,
    pub removed_count: u64,
    pub changed_count: u64,
    /// Resources that only the second version has.
    pub added: Vec<DifferingResource>,
    /// Resources that only the first version has.
    pub removed: Vec<DifferingResource>,
    /// Resources of both that differ.
    pub changed: Vec<DifferingResource>,
}

/// A resource that differs between two versions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DifferingResource {
    pub urn: String,
    /// It was replaced, and waits to be deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete: bool,
    /// The first 100 changes, for a resource of both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ResourceChange>,
    /// There are more changes than are listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changes_cut: bool,
}

/// The answer to a restore of a version of a stack.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RestoredStack {
    pub version: u64,
    /// The update in the history that made it.
    #[serde(rename = "updateID")]
    pub update_id: String,
}

/// A resource that another one refers to, or that refers to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RelatedResource {
    pub urn: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub name: String,
    /// It was replaced and waits for its deletion.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delete: bool,
    /// How: `dependency`, `property`, `provider`, `deletedWith`, `replaceWith` or `viewOf`.
    pub kinds: Vec<String>,
}

/// What one resource has in addition to its row.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDetail {
    /// The version that has it.
    pub version: u64,
    /// The version from which on `changed` is known.
    pub history_from: u64,
    /// Each secret is `{"secret":true}`. Without the right to see values, each value is `"[masked]"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Box<RawValue>>,
    /// As `inputs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs: Option<Box<RawValue>>,
    /// The caller has no right to see values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub values_hidden: bool,
    /// The bytes of inputs and outputs, if they were left out because of their length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_bytes: Option<u64>,
    /// The first 300 resources that it refers to.
    pub dependencies: Vec<RelatedResource>,
    pub dependency_count: u64,
    /// The first 300 resources that refer to it.
    pub dependents: Vec<RelatedResource>,
    pub dependent_count: u64,
    /// The URNs that each input depends on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub property_dependencies: BTreeMap<String, Vec<String>>,
    /// When it was created, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// When it was changed last, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
    /// Where the program declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_position: Option<String>,
}

/// The body that asks for one secret of a resource.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AskSecret {
    /// The URN of the resource.
    #[serde(default)]
    pub urn: String,
    /// Whether it is the one that waits for its deletion.
    #[serde(default)]
    pub delete: bool,
    /// The version; the current one if absent.
    #[serde(default)]
    pub version: Option<u64>,
    /// The place as a JSON pointer (RFC 6901), such as `/outputs/password` or `/inputs/users/0/key`.
    #[serde(default)]
    pub path: String,
}

/// An opened secret of a resource.
#[derive(Debug, Serialize, Deserialize)]
pub struct OpenedSecret {
    /// The version that has it.
    pub version: u64,
    pub value: Box<RawValue>,
}

/// A property that a version changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResourceChange {
    /// The path, such as `inputs.tags.Name`.
    pub path: String,
    /// `added`, `removed` or `changed`.
    pub how: String,
    /// A value is a secret or contains one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// The old value, if it is short and the caller may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Box<RawValue>>,
    /// The new value, if it is short and the caller may see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Box<RawValue>>,
}

impl From<PropertyChange> for ResourceChange {
    fn from(PropertyChange { path, how, is_secret, old, new }: PropertyChange) -> Self {
        // Both are parts of a text that was read as JSON.
        let raw = |text: Option<String>| RawValue::from_string(text?).ok();
        Self { path, how: how.to_owned(), secret: is_secret, old: raw(old), new: raw(new) }
    }
}

/// A version that changed a resource.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceHistoryEntry {
    pub version: u64,
    #[serde(rename = "updateID")]
    pub update_id: String,
    /// The kind of the update, such as `update` or `destroy`.
    pub kind: String,
    /// `succeeded`, `failed` or `cancelled`.
    pub result: String,
    /// When the version was published, RFC 3339.
    pub time: String,
    pub requested_by: RequestedBy,
    /// The first line of the update's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `create`, `change`, `replace`, `delete`, or `seen`: the first indexed version has it.
    pub op: String,
    /// The first 100 changes, for `change` and `replace`.
    pub changes: Vec<ResourceChange>,
    /// There are more changes, or they could not be compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changes_cut: bool,
}

/// Where a history ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResourceHistoryEnd {
    /// `created`, `erased` or `unindexed`.
    pub why: String,
    /// For `created`, the version that has it first; else the newest version whose history is not known.
    pub version: u64,
}

/// A page of the versions that changed a resource, newest first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceHistory {
    pub entries: Vec<ResourceHistoryEntry>,
    /// The token of the next page; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
    /// Where the history ends; only on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<ResourceHistoryEnd>,
}

/// A reference between two resources.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResourceEdge {
    /// The position of the resource that refers, in `nodes`.
    pub from: u32,
    /// The position of the one that is referred to.
    pub to: u32,
    /// `dependency`, `property`, `provider`, `deletedWith`, `replaceWith` or `viewOf`.
    pub kind: String,
}

/// The resources around one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceNeighbours {
    /// The version that has them.
    pub version: u64,
    /// At most 300; the first is the one in the middle.
    pub nodes: Vec<ResourceRow>,
    pub edges: Vec<ResourceEdge>,
    /// There are more nodes or edges.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

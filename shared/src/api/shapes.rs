//! Schemas of bodies and answers for the OpenAPI document, where no single type has the schema.

use serde_json::{Map, Value, json};

pub(super) use crate::wire::schema::of;

use crate::wire::environments::{Diagnostics, Evaluated, FoundValue};
use crate::wire::pulumi::{
    Checkpoint, CreatedUpdate, DownloadAt, History, OfStack, ServiceHistory, StartedUpdate,
};
use crate::wire::resources::{ResourceDetail, ResourceRow};
use crate::wire::schema::{both, page};
use crate::wire::state_resources::{Around, OfText, Resource, Resources, StateResourceNeighbours, Values};
use crate::wire::tfstate::{Rejected, State, StateStanding, StateSummary, Text, Version};
use crate::wire::{Both, edges};

/// JSON that is stored and returned as sent, or made from it; also the answer that is an empty object.
pub(super) fn anything() -> Value {
    json!({})
}

/// A form with these fields.
pub(super) fn form(fields: &[&str]) -> Value {
    let text = || json!({ "type": "string" });
    let properties: Map<String, Value> = fields.iter().map(|name| ((*name).to_owned(), text())).collect();
    json!({ "type": "object", "properties": properties })
}

fn list(name: &str, item: &Value) -> Value {
    json!({ "type": "object", "properties": { name: { "type": "array", "items": item } } })
}

pub(super) fn resource() -> Value {
    Both::<ResourceRow, ResourceDetail>::schema()
}

pub(super) fn policy_packs() -> Value {
    list("policyPacks", &anything())
}

pub(super) fn policy_groups() -> Value {
    list("policyGroups", &anything())
}

pub(super) fn required_policies() -> Value {
    list("requiredPolicies", &anything())
}

pub(super) fn packages() -> Value {
    list("packages", &anything())
}

pub(super) fn templates() -> Value {
    list("templates", &anything())
}

/// The state itself, as a file. If it is longer than an answer may be, where it is.
pub(super) fn downloaded() -> Value {
    json!({ "anyOf": [of::<Checkpoint<'_>>(), of::<DownloadAt>()] })
}

/// With a page in the query, the answer has the shape of Pulumi Cloud's console.
pub(super) fn history_page() -> Value {
    json!({ "anyOf": [of::<History>(), of::<ServiceHistory>()] })
}

pub(super) fn begun() -> Value {
    let mut whole = both(Both::<CreatedUpdate, StartedUpdate>::schema(), of::<OfStack>());
    whole["properties"]["deployment"] = of::<Checkpoint<'_>>();
    whole
}

pub(super) fn checked() -> Value {
    both(of::<Evaluated>(), of::<Diagnostics>())
}

pub(super) fn opened() -> Value {
    json!({ "anyOf": [of::<Evaluated>(), of::<FoundValue>()] })
}

pub(super) fn health_status() -> Value {
    json!({ "type": "object", "properties": { "status": { "type": "string" } } })
}

pub(super) fn states_page() -> Value {
    page("states", Both::<StateSummary, Option<StateStanding>>::schema())
}

pub(super) fn state() -> Value {
    Both::<State, Option<StateStanding>>::schema()
}

pub(super) fn state_versions() -> Value {
    page("versions", Both::<Version, Text>::schema())
}

/// If the path has the id of a refused write, that write is the answer.
pub(super) fn state_version() -> Value {
    json!({ "anyOf": [Both::<Version, Text>::schema(), Both::<Rejected, Text>::schema()] })
}

pub(super) fn state_resources_page() -> Value {
    Both::<OfText, Resources>::schema()
}

pub(super) fn state_resource() -> Value {
    both(of::<OfText>(), Both::<Resource, Around>::schema())
}

pub(super) fn state_resource_neighbours() -> Value {
    Both::<OfText, StateResourceNeighbours>::schema()
}

pub(super) fn state_resource_values() -> Value {
    both(of::<OfText>(), of::<Values>())
}

pub(super) fn rejected_writes() -> Value {
    list("rejected", &Both::<Rejected, Text>::schema())
}

pub(super) fn dependencies_of_state() -> Value {
    Both::<edges::End, edges::Dependencies>::schema()
}

pub(super) fn statuses() -> Value {
    page("states", dependencies_of_state())
}

/// The members that [`journal`](crate::journal) reads. Members that are objects here are parsed later, and
/// stored as sent.
pub(super) fn journal_entries() -> Value {
    let kinds = [
        ("integer", "version kind sequenceID operationID removeOld removeNew deleteOld deleteNew"),
        ("integer", "pendingReplacementOld pendingReplacementNew"),
        ("boolean", "isRefresh requiresByteString"),
        ("string", "extensionRef"),
        ("object", "state operation secretsProvider newSnapshot extension"),
        ("array", "snippets layout states baseStatePatches newStatePatches"),
    ];
    let members = kinds.into_iter().flat_map(|(kind, names)| names.split(' ').map(move |name| (name, kind)));
    let members: Map<String, Value> = members
        .map(|(name, kind)| {
            let mut member = json!({ "type": kind, "nullable": true });
            match kind {
                "object" => member["additionalProperties"] = json!({}),
                "array" => member["items"] = json!({}),
                _ => {}
            }
            (name.to_owned(), member)
        })
        .collect();
    let entry = json!({ "type": "object", "properties": members });
    let entries = json!({ "type": "array", "nullable": true, "items": entry });
    json!({ "type": "object", "properties": { "entries": entries } })
}

//! Deployments without what may differ between equal ones.

use serde_json::{Map, Value};

/// A deployment without its manifest, its empty members, and the order of its pending operations.
pub(crate) fn canonical(deployment: &Value) -> Value {
    let mut members = deployment.as_object().cloned().unwrap_or_default();
    members.remove("manifest");
    let resources = list(members.remove("resources")).iter().map(resource).collect();
    let mut pending: Vec<Value> = list(members.remove("pending_operations"))
        .iter()
        .map(|operation| {
            serde_json::json!({ "type": operation["type"], "resource": resource(&operation["resource"]) })
        })
        .collect();
    pending.sort_by_key(Value::to_string);
    members.retain(|_, value| !is_empty(value));
    members.insert("resources".to_owned(), Value::Array(resources));
    members.insert("pending_operations".to_owned(), Value::Array(pending));
    Value::Object(members)
}

fn list(value: Option<Value>) -> Vec<Value> {
    value.and_then(|value| value.as_array().cloned()).unwrap_or_default()
}

fn resource(resource: &Value) -> Value {
    let mut members = resource.as_object().cloned().unwrap_or_default();
    if let Some(Value::Object(of_properties)) = members.get_mut("propertyDependencies") {
        of_properties.retain(|_, dependencies| !is_empty(dependencies));
    }
    members.retain(|name, value| name == "custom" || !is_empty(value));
    Value::Object(members)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => *members == Map::new(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

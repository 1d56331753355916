//! Compares real answers with the OpenAPI document.

use std::sync::OnceLock;

use serde_json::{Map, Value};
use statewright_shared::api::openapi;
use statewright_shared::api::routes::{ROUTES, Route};
use statewright_shared::wire::Reason;

/// The document.
pub fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::from_slice(&openapi()).expect("the document is JSON"))
}

/// The document's entry for a route.
pub fn operation(route: &Route) -> &'static Value {
    &document()["paths"][route.path_in_document()][route.method.as_str().to_ascii_lowercase()]
}

/// The deviations of a successful answer from the document. Empty for a request that the document lacks, such
/// as one in a spelling of a client of states.
pub fn differences(method: &str, path: &str, status: u16, body: &[u8]) -> Vec<String> {
    let Some(route) = route(method, path) else { return Vec::new() };
    let answers = &operation(route)["responses"];
    let mut say = Vec::new();
    let Some(answer) = answers.get(status.to_string()) else {
        return vec![format!("it answers {status}, which is not in the document")];
    };
    let content = answer["content"].as_object();
    match (content.and_then(|content| content.get("application/json")), content) {
        (Some(json), _) => match serde_json::from_slice(body) {
            Ok(value) => compare(&json["schema"], &value, "", &mut say),
            // A body that is stored as it came may have numbers and nesting that serde_json cannot read.
            Err(error)
                if ["number out of range", "recursion limit"]
                    .iter()
                    .any(|it| error.to_string().contains(it)) => {}
            Err(error) => say.push(format!("it is not JSON: {error}")),
        },
        (None, None) if !body.is_empty() => say.push("it has a body".to_owned()),
        (None, _) => {}
    }
    say
}

/// The differences between the body of a refusal and its description in the document. The body for a lock has members of
/// the client's protocol too.
pub fn refusal_differences(status: u16, body: &[u8]) -> Vec<String> {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return vec!["it is not JSON".to_owned()] };
    // A gateway in front of the functions refuses some requests itself, with its own texts.
    let gateways = ["Request Entity Too Large", "Internal Server Error", "Service Unavailable"];
    if gateways.iter().any(|words| body == serde_json::json!({ "message": words })) {
        return Vec::new();
    }
    let mut say = Vec::new();
    if body["code"] != status {
        say.push(format!(".code is {}, and the status {status}", body["code"]));
    }
    let reason = body["reason"].as_str().and_then(Reason::parse);
    // A lock that is refused is 423 for any reason, because the client shows no other answer.
    let is_of_lock = status == 423 && body.get("ID").is_some();
    if reason.is_none_or(|reason| reason.status() != status && !is_of_lock) {
        say.push(format!(".reason does not go with {status}"));
    }
    let schema = &document()["components"]["schemas"]["Error"];
    let Some(members) = body.as_object() else { return vec!["it is not an object".to_owned()] };
    let known = members.iter().filter(|(name, _)| ["code", "message", "reason"].contains(&name.as_str()));
    compare_members(
        schema,
        &known.map(|(name, value)| (name.clone(), value.clone())).collect(),
        "",
        &mut say,
    );
    say
}

/// The route of a path. A literal part takes precedence over a parameter.
fn route(method: &str, path: &str) -> Option<&'static Route> {
    let segments: Vec<&str> = path.split('/').collect();
    let fits = |route: &&Route| {
        let parts: Vec<&str> = route.path.split('/').collect();
        route.method.as_str() == method
            && parts.len() == segments.len()
            && parts.iter().zip(&segments).all(|(part, segment)| part.starts_with('{') || part == segment)
    };
    ROUTES.iter().filter(fits).min_by_key(|route| route.path.matches('{').count())
}

/// Adds the deviations of a value from its schema.
fn compare(schema: &Value, value: &Value, place: &str, say: &mut Vec<String>) {
    if let Some(shapes) = schema["anyOf"].as_array() {
        let tries = shapes.iter().map(|shape| {
            let mut say = Vec::new();
            compare(shape, value, place, &mut say);
            say
        });
        say.extend(tries.min_by_key(Vec::len).unwrap_or_default());
        return;
    }
    let Some(kind) = schema["type"].as_str() else { return };
    let is_it = match value {
        Value::Null => schema["nullable"] == true,
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => kind == "number" || (kind == "integer" && !number.is_f64()),
        Value::String(text) => {
            kind == "string"
                && schema["enum"].as_array().is_none_or(|words| words.iter().any(|word| word == text))
        }
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
    };
    if !is_it {
        return say.push(format!("{place} is not of type {kind}: {value}"));
    }
    match value {
        Value::Object(members) => compare_members(schema, members, place, say),
        Value::Array(items) => {
            items.iter().for_each(|item| compare(&schema["items"], item, &format!("{place}[]"), say));
        }
        _ => {}
    }
}

fn compare_members(schema: &Value, members: &Map<String, Value>, place: &str, say: &mut Vec<String>) {
    for (name, value) in members {
        let place = format!("{place}.{name}");
        match schema["properties"].get(name).or_else(|| schema.get("additionalProperties")) {
            Some(schema) => compare(schema, value, &place, say),
            None => say.push(format!("{place} is not in the document")),
        }
    }
}

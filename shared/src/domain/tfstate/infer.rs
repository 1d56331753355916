//! Infers a schema that an output matches now.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::outputs::OUTPUT_BYTES_MAX;
use crate::domain::json_schema::Schema;

/// Infers a schema that an output matches now: from the type in its configuration, or from its value if the
/// type is `dynamic`. It allows null if the value has null there. For a sensitive output it has only the
/// type.
///
/// `None` if the output is too long, or the schema would be.
pub fn infer(text: &str) -> Option<Value> {
    let output = serde_json::from_str(text).ok().filter(|_| text.len() <= OUTPUT_BYTES_MAX)?;
    infer_of(&output)
}

fn infer_of(output: &Value) -> Option<Value> {
    let value = output.get("value").unwrap_or(&Value::Null);
    let is_sensitive = output.get("sensitive") == Some(&Value::Bool(true));
    let schema = match is_sensitive {
        true => outline(value),
        false => of_type(output.get("type").unwrap_or(&Value::Null), &[value], 0),
    };
    Schema::read(&schema).is_ok().then_some(schema)
}

fn outline(value: &Value) -> Value {
    match value {
        Value::Null => Value::Object(Map::new()),
        value => typed(name_of(value), false),
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn typed(name: &str, or_null: bool) -> Value {
    let kind = if or_null { Value::from(vec![name, "null"]) } else { Value::from(name) };
    Value::Object(Map::from_iter([("type".to_owned(), kind)]))
}

/// The deepest inferred level. Below it, the schema allows everything.
const INFERRED_DEPTH_MAX: usize = 12;

/// The maximum number of values of a list or map to inspect.
const SAMPLES_MAX: usize = 100;

/// The schema of a type in the notation of states (`"string"`, `["list","string"]`, `["object",{…}]`), with
/// sample values.
fn of_type(kind: &Value, samples: &[&Value], depth: usize) -> Value {
    let anything = || Value::Object(Map::new());
    if depth > INFERRED_DEPTH_MAX {
        return anything();
    }
    let or_null = samples.iter().any(|value| value.is_null());
    let arguments = kind.as_array().map_or(&[][..], Vec::as_slice);
    let name = kind.as_str().or_else(|| arguments.first().and_then(Value::as_str)).unwrap_or_default();
    let inner = arguments.get(1).unwrap_or(&Value::Null);
    let with = |name: &str, members: Vec<(&str, Value)>| {
        let mut schema = typed(name, or_null);
        if let Value::Object(schema) = &mut schema {
            schema.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
        }
        schema
    };
    let items = || {
        let items = samples.iter().filter_map(|value| value.as_array()).flatten();
        items.take(SAMPLES_MAX).collect::<Vec<_>>()
    };
    match name {
        "string" | "number" => typed(name, or_null),
        "bool" => typed("boolean", or_null),
        "list" | "set" => with("array", vec![("items", of_type(inner, &items(), depth + 1))]),
        "map" => {
            let members = samples.iter().filter_map(|value| value.as_object()).flat_map(Map::values);
            let members: Vec<&Value> = members.take(SAMPLES_MAX).collect();
            with("object", vec![("additionalProperties", of_type(inner, &members, depth + 1))])
        }
        "object" => {
            let optional: BTreeSet<&str> = arguments
                .get(2)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let kinds = inner.as_object();
            let properties: Map<String, Value> = kinds
                .into_iter()
                .flatten()
                .map(|(name, kind)| {
                    let of_name = samples.iter().filter_map(|value| value.get(name)).collect::<Vec<_>>();
                    (name.clone(), of_type(kind, &of_name, depth + 1))
                })
                .collect();
            let required: Vec<Value> = properties
                .keys()
                .filter(|name| !optional.contains(name.as_str()))
                .map(|name| Value::from(name.as_str()))
                .collect();
            with("object", vec![("properties", properties.into()), ("required", required.into())])
        }
        "tuple" => {
            let kinds = inner.as_array().map_or(&[][..], Vec::as_slice);
            let of_items: Vec<Value> = kinds
                .iter()
                .enumerate()
                .map(|(index, kind)| {
                    let of_place = samples.iter().filter_map(|value| value.get(index)).collect::<Vec<_>>();
                    of_type(kind, &of_place, depth + 1)
                })
                .collect();
            // `[a, b]` is a tuple to the client, and a list to its author.
            match of_items.split_first() {
                None => typed("array", or_null),
                Some((first, others)) if others.iter().all(|other| other == first) => {
                    with("array", vec![("items", first.clone())])
                }
                Some(_) => with("array", vec![("prefixItems", of_items.into())]),
            }
        }
        _ => of_values(samples, depth),
    }
}

/// The schema of values without a type, if all have the same type.
fn of_values(samples: &[&Value], depth: usize) -> Value {
    let mut kinds = samples.iter().filter(|value| !value.is_null()).map(|value| kind_of(value));
    match kinds.next() {
        Some(kind) if kinds.all(|other| other == kind) => of_type(&kind, samples, depth),
        _ => Value::Object(Map::new()),
    }
}

/// The outermost type of a value, in the notation of states.
fn kind_of(value: &Value) -> Value {
    let open = || Value::from("dynamic");
    match value {
        Value::Null => open(),
        Value::Bool(_) => Value::from("bool"),
        Value::Number(_) => Value::from("number"),
        Value::String(_) => Value::from("string"),
        Value::Array(items) => {
            let items = items.iter().take(SAMPLES_MAX).map(|_| open()).collect::<Vec<_>>();
            Value::from(vec![Value::from("tuple"), Value::from(items)])
        }
        Value::Object(members) => {
            let members: Map<String, Value> = members.keys().map(|name| (name.clone(), open())).collect();
            Value::from(vec![Value::from("object"), members.into()])
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::json_schema::{Checked, Steps};

    #[test]
    fn a_schema_comes_from_the_type_and_else_from_the_value() {
        let infer = |kind: Value, value: Value| infer_of(&json!({ "type": kind, "value": value })).unwrap();
        assert_eq!(infer(json!("string"), json!("x")), json!({ "type": "string" }));
        assert_eq!(infer(json!("string"), json!(null)), json!({ "type": ["string", "null"] }));
        assert_eq!(infer(json!("bool"), json!(true)), json!({ "type": "boolean" }));
        let list = json!({ "type": "array", "items": { "type": "string" } });
        assert_eq!(infer(json!(["list", "string"]), json!([])), list);
        assert_eq!(infer(json!(["tuple", ["string", "string"]]), json!(["a", "b"])), list);
        let mixed = infer(json!(["tuple", ["string", "number"]]), json!(["a", 1]));
        assert_eq!(
            mixed,
            json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "number" }] })
        );
        let map = infer(json!(["map", "number"]), json!({ "a": 1, "b": null }));
        assert_eq!(map, json!({ "type": "object", "additionalProperties": { "type": ["number", "null"] } }));
        let object =
            infer(json!(["object", { "a": "string", "b": "number" }, ["b"]]), json!({ "a": "x", "b": null }));
        let expected = json!({
            "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": ["number", "null"] } },
            "required": ["a"],
        });
        assert_eq!(object, expected);
        let open = infer(json!("dynamic"), json!({ "a": [1, 2] }));
        let numbers = json!({ "type": "array", "items": { "type": "number" } });
        assert_eq!(open, json!({ "type": "object", "properties": { "a": numbers }, "required": ["a"] }));
        assert_eq!(infer(json!("dynamic"), json!(null)), json!({}));
        assert_eq!(infer(json!(7), json!("x")), json!({ "type": "string" }));
    }

    #[test]
    fn an_inferred_schema_fits_and_reveals_no_sensitive_value() {
        let value = json!({ "hunter2": { "deep": [1, "x", null] } });
        let secret = infer_of(&json!({ "type": "dynamic", "value": value, "sensitive": true })).unwrap();
        assert_eq!(secret, json!({ "type": "object" }));
        for value in [value, json!([[], [1], ["a"]]), json!([null, { "a": 1 }, { "b": 2 }]), json!(1e300)] {
            let schema = infer_of(&json!({ "type": "dynamic", "value": value })).unwrap();
            let checked = Schema::read(&schema).unwrap().check(&value, false, &mut Steps::default());
            assert_eq!(checked, Checked::Valid, "{schema} of {value}");
        }
    }
}

use serde_json::{Map, json};

use super::*;

fn check(schema: &Value, value: &Value) -> Checked {
    let schema = Schema::read(schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
    schema.check(value, false, &mut Steps::default())
}

#[track_caller]
fn invalid(schema: Value, value: Value, at: &str, words: &str) {
    match check(&schema, &value) {
        Checked::Invalid { message, path } => {
            assert_eq!(path, at, "{schema} of {value}: {message}");
            assert!(message.contains(words), "{schema} of {value}: {message}");
        }
        other => panic!("{schema} of {value}: {other:?}"),
    }
}

#[test]
fn each_keyword_has_a_message_and_a_place() {
    invalid(json!(false), json!(1), "$", "no value");
    invalid(json!({ "type": "string" }), json!(1), "$", "not of type string");
    invalid(json!({ "type": ["string", "null"] }), json!(1), "$", "string or null");
    invalid(json!({ "type": "integer" }), json!(1.5), "$", "integer");
    invalid(json!({ "enum": ["a", 1] }), json!("b"), "$", r#"not one of "a", 1"#);
    invalid(json!({ "const": { "a": [1] } }), json!({ "a": [2] }), "$", "it is not {");
    invalid(json!({ "multipleOf": 0.5 }), json!(0.25), "$", "multiple of 0.5");
    invalid(json!({ "minimum": 2 }), json!(1), "$", "below 2");
    invalid(json!({ "exclusiveMinimum": 2 }), json!(2), "$", "not above 2");
    invalid(json!({ "maximum": 2 }), json!(3), "$", "above 2");
    invalid(json!({ "exclusiveMaximum": 2 }), json!(2), "$", "not below 2");
    invalid(json!({ "minLength": 2 }), json!("ä"), "$", "fewer than 2 characters");
    invalid(json!({ "maxLength": 1 }), json!("äb"), "$", "more than 1 characters");
    invalid(json!({ "pattern": "^a+$" }), json!("ab"), "$", "match");
    invalid(json!({ "items": { "type": "string" } }), json!(["a", 1]), "$[1]", "string");
    invalid(json!({ "prefixItems": [true], "items": false }), json!([1, 2]), "$", "more than 1 items");
    invalid(json!({ "prefixItems": [{ "type": "null" }] }), json!([1, 2]), "$[0]", "null");
    invalid(json!({ "prefixItems": [true], "items": { "type": "null" } }), json!([1, 2]), "$", "null");
    invalid(json!({ "contains": { "const": 1 } }), json!([2]), "$", "contains");
    invalid(json!({ "contains": { "const": 1 }, "maxContains": 1 }), json!([1, 1]), "$", "contains");
    invalid(json!({ "minItems": 1 }), json!([]), "$", "fewer than 1 items");
    invalid(json!({ "maxItems": 1 }), json!([1, 2]), "$", "more than 1 items");
    invalid(json!({ "uniqueItems": true }), json!([1, 2, 1.0]), "$", "equal");
    let deep = json!({ "properties": { "a": { "properties": { "b c": { "type": "null" } } } } });
    invalid(deep, json!({ "a": { "b c": 1 } }), r#"$.a["b c"]"#, "null");
    invalid(json!({ "patternProperties": { "^x": { "type": "null" } } }), json!({ "xy": 1 }), "$.xy", "null");
    let closed = json!({ "properties": { "a": true }, "additionalProperties": false });
    invalid(closed, json!({ "a": 1, "b": 2 }), "$.b", "no value");
    invalid(json!({ "required": ["a"] }), json!({}), "$", r#""a" is missing"#);
    invalid(json!({ "propertyNames": { "maxLength": 1 } }), json!({ "ab": 1 }), "$", "propertyNames");
    invalid(json!({ "minProperties": 1 }), json!({}), "$", "fewer than 1 members");
    invalid(json!({ "maxProperties": 0 }), json!({ "a": 1 }), "$", "more than 0 members");
    invalid(json!({ "dependentRequired": { "a": ["b"] } }), json!({ "a": 1 }), "$", r#""b" is missing"#);
    invalid(json!({ "dependentSchemas": { "a": { "required": ["b"] } } }), json!({ "a": 1 }), "$", "missing");
    invalid(json!({ "allOf": [true, { "type": "null" }] }), json!(1), "$", "null");
    invalid(json!({ "anyOf": [{ "type": "null" }, false] }), json!(1), "$", "anyOf");
    invalid(json!({ "oneOf": [true, true] }), json!(1), "$", "several");
    invalid(json!({ "oneOf": [false, false] }), json!(1), "$", "none of `oneOf`");
    invalid(json!({ "not": {} }), json!(1), "$", "not");
    let branches =
        json!({ "if": { "type": "string" }, "then": { "minLength": 1 }, "else": { "minimum": 1 } });
    invalid(branches.clone(), json!(""), "$", "characters");
    invalid(branches, json!(0), "$", "below 1");
    let list = json!({ "$defs": { "list": { "properties": { "next": { "$ref": "#/$defs/list" } }, "type": "object" } },
                       "$ref": "#/$defs/list" });
    invalid(list, json!({ "next": { "next": 1 } }), "$.next.next", "object");
}

#[test]
fn a_matching_value_is_valid() {
    for (schema, value) in [
        (json!(true), json!(null)),
        (json!({}), json!([{}])),
        (json!({ "type": "integer" }), json!(2.0)),
        (json!({ "type": "number", "multipleOf": 0.25 }), json!(19.75)),
        (json!({ "enum": [1.0] }), json!(1)),
        // Keywords for another type have no effect.
        (json!({ "minLength": 5, "minimum": 5, "required": ["a"], "minItems": 4 }), json!(true)),
        (json!({ "prefixItems": [{ "type": "string" }] }), json!([])),
        (json!({ "prefixItems": [{ "type": "string" }] }), json!(["a", 1])),
        (json!({ "contains": { "const": 1 }, "minContains": 0 }), json!([])),
        (
            json!({ "format": "ipv4", "title": "t", "$schema": "https://json-schema.org/draft/2020-12/schema" }),
            json!("x"),
        ),
        (json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), json!(null)),
        (json!({ "oneOf": [{ "type": "string" }, { "type": "null" }] }), json!("a")),
        (json!({ "not": { "type": "string" } }), json!(1)),
        (json!({ "if": false, "then": false }), json!(1)),
        (
            json!({ "properties": { "a/b": { "$ref": "#/properties/c" }, "c": { "type": "null" } } }),
            json!({ "a/b": null }),
        ),
    ] {
        assert_eq!(check(&schema, &value), Checked::Valid, "{schema} of {value}");
    }
}

#[test]
fn an_invalid_schema_is_refused_with_its_place() {
    let deep = (0..40).fold(json!({}), |inner, _| json!({ "not": inner }));
    for (schema, at, words) in [
        (json!(1), "#", "an object, true or false"),
        (json!({ "type": "text" }), "#/type", "a type must be"),
        (json!({ "type": [] }), "#/type", "a type must be"),
        (json!({ "requried": ["a"] }), "#/requried", "not known"),
        (json!({ "$dynamicRef": "#a" }), "#/$dynamicRef", "not known"),
        (json!({ "properties": { "a": { "items": 1 } } }), "#/properties/a/items", "an object"),
        (json!({ "properties": [] }), "#/properties", "an object"),
        (json!({ "required": "a" }), "#/required", "a list"),
        (json!({ "required": [1] }), "#/required", "a string"),
        (json!({ "minLength": -1 }), "#/minLength", "whole number"),
        (json!({ "minimum": "1" }), "#/minimum", "a number"),
        (json!({ "multipleOf": 0 }), "#/multipleOf", "above 0"),
        (json!({ "multipleOf": 0.01 }), "#/multipleOf", "binary fraction"),
        (json!({ "pattern": "(" }), "#/pattern", "not a pattern"),
        (json!({ "pattern": "(a{100}){100}" }), "#/pattern", "not a pattern"),
        (json!({ "patternProperties": { "(": true } }), "#/patternProperties", "not a pattern"),
        (json!({ "anyOf": [] }), "#/anyOf", "one schema at least"),
        (json!({ "uniqueItems": 1 }), "#/uniqueItems", "true or false"),
        (json!({ "$ref": "https://example.com/s.json" }), "#/$ref", "of its own"),
        (json!({ "$ref": "#/$defs/none" }), "#/$ref", "no schema"),
        (json!({ "enum": ["x".repeat(40_000)] }), "#", "bytes"),
        (json!({ "const": (0..120).fold(json!(1), |inner, _| json!([inner])) }), "#", "nested deeper"),
        (deep, "#/not/not", "deeper"),
    ] {
        let error = Schema::read(&schema).unwrap_err();
        assert!(error.at.starts_with(at), "{schema}: {error}");
        assert!(error.what.contains(words), "{schema}: {error}");
    }
}

#[test]
fn every_schema_is_checked_in_bounded_time() {
    let doubling = |depth: usize| -> Value {
        let mut defs = Map::new();
        for level in 0..depth {
            let next = json!({ "$ref": format!("#/$defs/l{}", level + 1) });
            defs.insert(format!("l{level}"), json!({ "allOf": [next, next] }));
        }
        defs.insert(format!("l{depth}"), json!(true));
        json!({ "$defs": defs, "$ref": "#/$defs/l0" })
    };
    assert_eq!(check(&doubling(5), &json!(1)), Checked::Valid);
    let many = Schema::read(&doubling(60)).unwrap_err();
    assert!(many.what.contains("expand"), "{many}");
    // The value decides how often a reference back is followed.
    let member = json!({ "properties": { "a": { "$ref": "#" } } });
    let deep = (0..20).fold(json!(1), |inner, _| json!({ "a": inner }));
    let many = check(&json!({ "allOf": [member, member] }), &deep);
    assert!(matches!(&many, Checked::Error(why) if why.contains("steps")), "{many:?}");
    let endless = check(&json!({ "$ref": "#" }), &json!(1));
    assert!(matches!(&endless, Checked::Error(why) if why.contains("without end")), "{endless:?}");
    let long: Vec<_> = (0..200_000).collect();
    let unique = check(&json!({ "uniqueItems": true }), &json!(long));
    assert!(matches!(unique, Checked::Error(_)), "{unique:?}");
    let patterns = json!({ "allOf": [{ "pattern": "a" }, { "pattern": "b" }] });
    let text = check(&patterns, &json!("ab".repeat(50_000)));
    assert!(matches!(text, Checked::Error(_)), "{text:?}");
}

#[test]
fn a_message_reveals_nothing_of_a_sensitive_value() {
    let schema = json!({ "properties": { "known": { "type": "string" } }, "additionalProperties": { "type": "string" } });
    let schema = Schema::read(&schema).unwrap();
    let checked = |value: Value| format!("{:?}", schema.check(&value, true, &mut Steps::default()));
    let words = checked(json!({ "hunter2": 4711 }));
    assert!(words.contains("$.*") && !words.contains("hunter2") && !words.contains("4711"), "{words}");
    assert!(checked(json!({ "known": 4711 })).contains("$.known"));
}

/// Without our loader, the library would read files and follow `$schema` and `$id`.
#[test]
fn nothing_is_fetched_and_no_other_draft_is_read() {
    for reference in ["file:///etc/hostname", "schema.json", "https://json-schema.org/draft/2020-12/schema"] {
        let error = Schema::read(&json!({ "$ref": reference })).unwrap_err();
        assert!(error.what.contains("of its own"), "{error}");
    }
    let schema = json!({
        "$schema": "http://json-schema.org/draft-04/schema#", "$id": "file:///etc/hostname",
        "exclusiveMinimum": 2, "$defs": { "a": { "type": "null" } },
    });
    invalid(schema, json!(2), "$", "not above 2");
    let schema = json!({ "$id": "https://example.com/", "$defs": { "a b/%": { "type": "null" } }, "$ref": "#/$defs/a b~1%" });
    invalid(schema, json!(1), "$", "null");
}

#[test]
fn a_message_never_quotes_a_value() {
    let schemas = [
        json!({ "type": "null" }),
        json!({ "enum": ["a"] }),
        json!({ "const": 1 }),
        json!({ "pattern": "^a$" }),
        json!({ "maxLength": 1 }),
        json!({ "minimum": 99999 }),
        json!({ "multipleOf": 7 }),
        json!({ "not": true }),
        json!({ "anyOf": [false, false] }),
        json!({ "oneOf": [true, true] }),
        json!({ "additionalProperties": false }),
        json!({ "propertyNames": { "maxLength": 1 } }),
        json!({ "propertyNames": { "pattern": "^a$" } }),
        json!({ "maxItems": 0 }),
        json!({ "contains": false }),
        json!({ "items": false }),
        json!({ "required": ["a"] }),
        json!({ "patternProperties": { "": false } }),
        json!({ "maxProperties": 0 }),
        json!({ "uniqueItems": true }),
    ];
    let values = [json!("hunter2"), json!(4711), json!({ "hunter2": 4711 }), json!(["hunter2", "hunter2"])];
    let mut failures = 0;
    for (schema, value) in schemas.iter().flat_map(|schema| values.iter().map(move |value| (schema, value))) {
        let checked = Schema::read(schema).unwrap().check(value, true, &mut Steps::default());
        failures += usize::from(checked != Checked::Valid);
        let words = format!("{checked:?}");
        assert!(!words.contains("hunter2") && !words.contains("4711"), "{schema}: {words}");
    }
    assert!(failures > 20, "{failures}");
}

#[test]
fn a_check_of_deep_values_fits_the_stack() {
    let list = json!({ "$defs": { "list": { "properties": { "next": { "$ref": "#/$defs/list" } } } }, "$ref": "#/$defs/list" });
    let deep = (0..45).fold(json!({ "next": {} }), |inner, _| json!({ "next": inner }));
    assert_eq!(check(&list, &deep), Checked::Valid);
    let deeper = (0..30).fold(deep, |inner, _| json!({ "next": inner }));
    assert!(matches!(check(&list, &deeper), Checked::Error(why) if why.contains("too deep")));
}

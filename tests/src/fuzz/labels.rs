//! Filters over labels and schemas of outputs: any input is handled, and the results are consistent.

use fastrand::Rng;
use serde_json::{Value, json};
use statewright_shared::domain::json_schema::{Checked as SchemaChecked, Schema, Steps};
use statewright_shared::domain::tfstate::{Filter, Labels, infer};

use super::corpus::Corpus;
use super::pure::{Checked, holds, without_panic};
use super::{Blob, Case, mutate};

/// Filters that use every feature.
const FILTERS: [&str; 6] = [
    r#"env == "prod" and not (team/name in ["web", "data"] or tier > 2)"#,
    "labels.not is not empty or url matches `^https://[a-z]+$` and tier <= -1.5",
    r#""we" not in team/name and critical == true and (blank is empty)"#,
    "not not ((tier >= 2 or tier < 3)) and env != dev",
    r#"env contains "r\"\u00e4" or env not contains x and text not matches `\d{2,3}`"#,
    "a==1or b==2",
];

/// Fragments of filters.
const PARTS: [&str; 24] = [
    "(",
    ")",
    "[",
    "]",
    ",",
    "==",
    "!=",
    "<",
    "<=",
    " and ",
    " or ",
    " not ",
    " in ",
    " is empty",
    " matches ",
    " contains ",
    "\"",
    "`",
    "\\",
    "env",
    "labels.",
    "1e999",
    "true",
    "ä",
];

pub(super) fn filter(dice: &mut Rng) -> Case {
    let mut text = dice.choice(FILTERS).unwrap_or_default().as_bytes().to_vec();
    for _ in 0..dice.u8(..5) {
        let at = dice.usize(..=text.len());
        let until = dice.usize(at..=(at + 6).min(text.len()));
        let part = dice.choice(PARTS).unwrap_or_default().repeat(dice.choice([1, 1, 1, 40]).unwrap_or(1));
        text.splice(at..until, part.into_bytes());
    }
    if dice.u8(..4) == 0 {
        mutate::text(&mut text, dice);
    }
    Case::Filter(Blob(text))
}

fn labels() -> Result<Labels, String> {
    let labels = json!({
        "env": "prod", "team/name": "web", "tier": 2, "critical": true, "text": "22", "blank": "", "not": "word",
        "url": "https://a",
    });
    serde_json::from_value(labels).map_err(|error| error.to_string())
}

pub(super) fn try_filter(text: &[u8]) -> Checked {
    without_panic(|| {
        let text = String::from_utf8_lossy(text);
        let labels = labels()?;
        let filter = match Filter::parse(&text) {
            Ok(filter) => filter,
            Err(error) => {
                let characters = text.chars().count();
                return holds("an error points into the filter", (1..=characters + 1).contains(&error.at));
            }
        };
        let found = filter.finds(&labels);
        // Unless it is too long or too deep.
        if let Ok(negated) = Filter::parse(&format!("not ({text})")) {
            holds("`not` finds the others", negated.finds(&labels) != found)?;
        }
        if let Ok(both) = Filter::parse(&format!("({text}) and not ({text})")) {
            holds("no state both matches and does not match", !both.finds(&labels))?;
        }
        filter.finds(&Labels::new());
        Ok(())
    })
}

/// A schema with most of its keywords, and values for it.
fn whole() -> (Value, Value) {
    let schema = json!({
        "$defs": { "name": { "type": "string", "pattern": "^[a-z]+$", "minLength": 1, "maxLength": 5 } },
        "type": "object", "required": ["name", "ports"], "minProperties": 1, "maxProperties": 9,
        "properties": {
            "name": { "$ref": "#/$defs/name" },
            "ports": { "type": "array", "items": { "type": "integer", "minimum": 1, "exclusiveMaximum": 65536 }, "uniqueItems": true },
            "pair": { "prefixItems": [{ "const": "a" }, { "enum": [1, null] }], "items": false, "minItems": 2 },
            "tree": { "anyOf": [{ "type": "null" }, { "properties": { "tree": { "$ref": "#/properties/tree" } } }] },
            "one": { "oneOf": [{ "multipleOf": 3 }, { "multipleOf": 5 }], "not": { "const": 9 } },
            "if": { "if": { "type": "string" }, "then": { "minLength": 2 }, "else": { "maximum": 7 } },
        },
        "patternProperties": { "^x": { "contains": { "type": "string" }, "maxContains": 2 } },
        "additionalProperties": { "allOf": [true, { "type": ["string", "number"] }] },
        "propertyNames": { "maxLength": 6 }, "dependentRequired": { "pair": ["tree"] },
        "dependentSchemas": { "one": { "required": ["if"] } },
    });
    let value = json!({
        "name": "web", "ports": [80, 443], "pair": ["a", null], "tree": { "tree": { "tree": null } }, "one": 6, "if": "ab",
        "xs": ["a", 1], "other": 1.5,
    });
    (schema, value)
}

pub(super) fn schema(corpus: &Corpus, dice: &mut Rng) -> Case {
    let (mut schema, mut value) = whole();
    if dice.u8(..3) != 0 {
        mutate::value(&mut schema, dice, corpus);
    }
    if dice.u8(..3) != 0 {
        mutate::value(&mut value, dice, corpus);
    }
    Case::Schema { schema: Blob(mutate::body(&schema, dice)), value: Blob(mutate::body(&value, dice)) }
}

pub(super) fn try_schema(schema: &[u8], value: &[u8]) -> Checked {
    without_panic(|| {
        let Ok(value) = serde_json::from_slice::<Value>(value) else { return Ok(()) };
        let output = json!({ "value": value, "type": "dynamic" });
        if let Some(inferred) = infer(&output.to_string()) {
            let inferred = Schema::read(&inferred)
                .map_err(|error| format!("the inferred schema is invalid: {error}"))?;
            let fits = inferred.check(&value, false, &mut Steps::default());
            holds("the inferred schema fits", !matches!(fits, SchemaChecked::Invalid { .. }))?;
        }
        let Ok(schema) = serde_json::from_slice::<Value>(schema) else { return Ok(()) };
        let Ok(read) = Schema::read(&schema) else { return Ok(()) };
        let checked = read.check(&value, false, &mut Steps::default());
        holds(
            "a check gives the same result twice",
            read.check(&value, false, &mut Steps::default()) == checked,
        )?;
        let secretly = read.check(&value, true, &mut Steps::default());
        let is_valid = |checked: &SchemaChecked| *checked == SchemaChecked::Valid;
        holds("a mark changes no verdict", is_valid(&secretly) == is_valid(&checked))?;
        if let Ok(negated) = Schema::read(&json!({ "not": schema })) {
            let negated = negated.check(&value, false, &mut Steps::default());
            // Its references then lead elsewhere, and most are refused.
            let is_checked =
                !matches!(checked, SchemaChecked::Error(_)) && !matches!(negated, SchemaChecked::Error(_));
            let has_references = schema.to_string().contains("$ref");
            holds(
                "`not` inverts the result",
                !is_checked || has_references || is_valid(&negated) != is_valid(&checked),
            )?;
        }
        if let SchemaChecked::Invalid { message, path } = checked {
            holds("messages are short", message.chars().count() <= 200 && path.chars().count() <= 200)?;
            holds("a path begins at the value", path.starts_with('$'))?;
        }
        Ok(())
    })
}

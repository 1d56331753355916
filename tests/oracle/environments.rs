//! Our evaluator of environments gives the results of the real one.
//!
//! `cargo run -p statewright-tests --bin environments-soak` does the same with any number of random definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};
use statewright_shared::domain::environment::has_errors;
use statewright_tests::esc_definitions;
use statewright_tests::esc_oracle::{Case, Oracle, Tally, ours, values};
use statewright_tests::tools;

use crate::odd_texts::ODD_TEXTS;

/// Seeds of definitions that once gave another result.
const ONCE_DIFFERENT: [u64; 6] = [20_018_340, 20_038_406, 20_056_936, 20_072_421, 20_073_147, 30_052_121];

#[test]
fn random_definitions_evaluate_as_in_the_reference() {
    let mut oracle = Oracle::start().expect("the oracle starts");
    let mut tally = Tally::default();
    for seed in (1..=1_500).chain(1_000_000..1_000_500).chain(ONCE_DIFFERENT) {
        let case = esc_definitions::case(seed);
        tally += oracle.check(&case).unwrap_or_else(|difference| panic!("seed {seed}: {difference}"));
    }
    assert!(tally.equal > 1_000 && tally.refused > 500, "{tally}");
    assert!(tally.excused.values().sum::<usize>() < 60, "{tally}");
}

#[test]
fn unusual_texts_evaluate_as_in_the_reference() {
    let mut oracle = Oracle::start().expect("the oracle starts");
    let mut differences = Vec::new();
    let mut tally = Tally::default();
    for text in ODD_TEXTS {
        let name = "p/top".to_owned();
        let case = Case { name, text: (*text).to_owned(), envs: BTreeMap::new(), context: Value::Null };
        match oracle.check(&case) {
            Ok(found) => tally += found,
            Err(difference) => differences.push(difference),
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert!(tally.equal > 20 && tally.refused > 20, "{tally}");
}

/// Cases that open what this server lacks: rotators, and a provider with a schema.
const NOT_OURS: [&str; 3] = ["inline-reference-rotateOnly", "rotate-paths", "schema"];

/// The cases that are published with the evaluator, read from its module; each with its name and its expectation.
fn published() -> Vec<(String, Case, Value)> {
    let folder = tools::esc_module().join("go/common/esc/eval/testdata/eval");
    let mut cases = Vec::new();
    for entry in fs::read_dir(&folder).expect("the cases are published").flatten() {
        let name = entry.file_name().into_string().expect("a name");
        let read = |file: &str| fs::read_to_string(entry.path().join(file)).ok();
        // One of them only measures time.
        let Some(expected) = read("expected.json") else { continue };
        let expected: Value = serde_json::from_str(&expected).expect("JSON");
        let overrides: Value =
            read("overrides.json").map_or(Value::Null, |text| serde_json::from_str(&text).expect("JSON"));
        let envs = fs::read_dir(entry.path()).expect("a folder").flatten().filter_map(|file| {
            let name = file.file_name().into_string().ok()?.strip_suffix(".yaml")?.to_owned();
            Some((name, fs::read_to_string(file.path()).ok()?))
        });
        let case = Case {
            name: overrides["rootEnvironment"].as_str().unwrap_or(&name).to_owned(),
            text: read("env.yaml").expect("a definition"),
            envs: envs.filter(|(name, _)| name != "env").collect(),
            context: json!({ "pulumi": { "user": { "id": "USER_123" } } }),
        };
        cases.push((name, case, expected));
    }
    cases
}

#[test]
fn published_cases_evaluate_as_published() {
    let mut performed = 0;
    let mut different = BTreeMap::new();
    for (name, case, expected) in published() {
        performed += 1;
        let evaluated = ours(&case, true);
        let is_refused = has_errors(&evaluated.diagnostics);
        let is_refused_there = ["loadDiags", "evalDiags"].into_iter().any(|list| {
            expected[list].as_array().is_some_and(|list| list.iter().any(|it| it["Severity"] == 1))
        });
        let came_to = values(&evaluated).expect("values");
        let mut wrong = BTreeSet::new();
        if is_refused != is_refused_there {
            wrong
                .insert(format!("refused: {is_refused} for {is_refused_there}: {:?}", evaluated.diagnostics));
        }
        for (which, secrets) in [("evalJsonRedacted", Some("[secret]")), ("evalJSONRevealed", None)] {
            let (ours, theirs) = (shown(&came_to, secrets), &expected[which]);
            if !is_refused && ours != *theirs {
                wrong.insert(format!("{which}: {ours} for {theirs}"));
            }
        }
        if !wrong.is_empty() {
            different.insert(name, wrong);
        }
    }
    let names: Vec<&str> = different.keys().map(String::as_str).collect();
    assert_eq!(names, NOT_OURS, "{different:#?}");
    assert_eq!(performed, 55);
}

/// The parts and the beginning of an expression, which clients read to find a part of a definition. Left out is
/// what decision 26 leaves to editors: schemas, where a reference leads, and what a base is made of. Ours
/// leaves out the text of a secret.
fn outline(expr: &Value, is_base: bool) -> Value {
    let begin = |range: &Value| range["begin"]["line"].as_u64().zip(range["begin"]["column"].as_u64());
    // In a quoted text the reference does not know the place of a step.
    let accessors = |list: &Value| -> Value {
        let accessor = |it: &Value| json!([it["key"], it["index"]]);
        list.as_array().map_or(Value::Null, |list| list.iter().map(accessor).collect())
    };
    let mut outlined = json!({ "at": begin(&expr["range"]) });
    if expr["base"].is_object() {
        outlined["base"] = outline(&expr["base"], true);
    }
    if is_base {
        return outlined;
    }
    for (name, part) in expr.as_object().into_iter().flatten() {
        let part = match (name.as_str(), part) {
            ("literal", Value::Number(number)) => json!(number.as_f64()),
            ("literal", part) => part.clone(),
            ("symbol", part) => accessors(part),
            ("interpolate", Value::Array(parts)) => {
                parts.iter().map(|it| json!([it["text"], accessors(&it["value"])])).collect()
            }
            ("keyRanges", Value::Object(keys)) => {
                keys.iter().map(|(key, range)| (key.clone(), json!(begin(range)))).collect()
            }
            ("list", Value::Array(items)) => items.iter().map(|it| outline(it, false)).collect(),
            ("object", Value::Object(members)) => {
                members.iter().map(|(key, it)| (key.clone(), outline(it, false))).collect()
            }
            ("builtin", call) => {
                let mut argument = outline(&call["arg"], false);
                if call["name"] == "fn::secret" {
                    argument.as_object_mut().map(|argument| argument.remove("literal"));
                }
                // The reference leaves out where an argument of several members begins.
                if !argument["object"].is_null() {
                    argument["at"] = Value::Null;
                }
                json!([call["name"], begin(&call["nameRange"]), argument])
            }
            _ => continue,
        };
        // Theirs leaves out what is empty.
        let is_empty = part.as_array().is_some_and(Vec::is_empty)
            || part.as_object().is_some_and(serde_json::Map::is_empty);
        if !is_empty {
            outlined[name] = part;
        }
    }
    outlined
}

/// Cases in which expressions are described differently: an index below zero is not a name here, a value that
/// overrides an unknown one has another place there, and the missing state of a rotator has none.
const TOLD_APART: [&str; 3] = ["invalid-access", "merge-unknown", "rotate-state"];

#[test]
fn expressions_are_described_as_in_the_reference() {
    let mut outlined = 0;
    let mut different = BTreeMap::new();
    for (name, case, expected) in published() {
        let evaluated = ours(&case, false);
        let exprs = |value: &Value| outline(&json!({ "object": value["exprs"] }), false);
        let (ours, theirs) =
            (exprs(&serde_json::from_str(&evaluated.environment).expect("JSON")), exprs(&expected["check"]));
        // A text that cannot be parsed has no expressions there.
        if expected["loadDiags"].is_array() || theirs["object"].is_null() {
            continue;
        }
        outlined += 1;
        if ours != theirs {
            different.insert(name, format!("{ours}\nfor {theirs}"));
        }
    }
    let names: Vec<&str> = different.keys().map(String::as_str).collect();
    assert_eq!(names, TOLD_APART, "{different:#?}");
    assert_eq!(outlined, 37);
}

/// Values with secrets as a client shows them.
fn shown(value: &Value, secret: Option<&str>) -> Value {
    match value {
        Value::Object(members) => match (members.get("<secret>"), secret) {
            (Some(_), Some(words)) => words.into(),
            (Some(inner), None) => shown(inner, secret),
            (None, _) => members.iter().map(|(key, value)| (key.clone(), shown(value, secret))).collect(),
        },
        Value::Array(items) => items.iter().map(|item| shown(item, secret)).collect(),
        other => other.clone(),
    }
}

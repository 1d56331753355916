//! Our evaluator of environments answers what the real one answers.
//!
//! `cargo run -p statewright-tests --bin environments-soak` does the same with as many random definitions as one likes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};
use statewright_shared::domain::environment::has_errors;
use statewright_tests::esc_definitions;
use statewright_tests::esc_oracle::{Case, Oracle, Tally, ours, values};
use statewright_tests::tools;

#[test]
fn random_definitions_come_to_what_the_reference_says() {
    let mut oracle = Oracle::start().expect("the oracle starts");
    let mut tally = Tally::default();
    for seed in (1..=1_500).chain(1_000_000..1_000_500) {
        let case = esc_definitions::case(seed);
        tally += oracle.check(&case).unwrap_or_else(|difference| panic!("seed {seed}: {difference}"));
    }
    assert!(tally.equal > 1_000 && tally.refused > 500, "{tally}");
    assert!(tally.excused.values().sum::<usize>() < 60, "{tally}");
}

/// Cases that open what this server does not have: rotators, and a provider with a schema.
const NOT_OURS: [&str; 3] = ["inline-reference-rotateOnly", "rotate-paths", "schema"];

/// The cases that are published with the evaluator, read where they are published.
#[test]
fn published_cases_come_to_what_is_published() {
    let folder = tools::esc_module().join("go/common/esc/eval/testdata/eval");
    let mut performed = 0;
    let mut different = BTreeMap::new();
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

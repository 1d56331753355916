//! Random bodies, with the credentials that the route needs: accepted or refused, and never a server error.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use reqwest::Method;
use serde_json::{Value, json};
use statewright_tests::app::TestApp;
use tokio::runtime::Runtime;

use crate::world::Stack;

/// Random JSON made of the protocol's vocabulary.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..12).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "succeeded",
            "update",
            "import",
            "creating",
            "pkg:m:T",
            "urn:pulumi:dev::shop::pkg:m:T::a",
            "urn:pulumi:dev::shop::pulumi:pulumi:Stack::s",
            "AQAAAAE=",
            "2026-01-01T00:00:00Z",
            "\u{0}",
        ])
        .prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "entries",
        "version",
        "kind",
        "sequenceID",
        "operationID",
        "removeOld",
        "removeNew",
        "deleteOld",
        "pendingReplacementOld",
        "state",
        "operation",
        "resource",
        "urn",
        "type",
        "custom",
        "id",
        "parent",
        "dependencies",
        "newSnapshot",
        "layout",
        "states",
        "baseIndex",
        "snippets",
        "secretsProvider",
        "events",
        "sequence",
        "timestamp",
        "summaryEvent",
        "resourceChanges",
        "status",
        "updateKind",
        "program",
        "options",
        "dryRun",
        "config",
        "metadata",
        "environment",
        "tags",
        "journalVersion",
        "deployment",
        "features",
        "manifest",
        "time",
        "resources",
        "pending_operations",
        "secrets_providers",
    ]);
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..7).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

/// A body for a batch: entries with the required members, and random others.
fn entries() -> impl Strategy<Value = Value> {
    let entry =
        (0_i64..12, 0_i64..6, -1_i64..6, json_value()).prop_map(|(kind, sequence, operation, more)| {
            let mut entry = more.as_object().cloned().unwrap_or_default();
            let version = if kind == 10 { 2 } else { 1 };
            for (name, value) in
                [("version", version), ("kind", kind), ("sequenceID", sequence), ("operationID", operation)]
            {
                entry.insert(name.to_owned(), value.into());
            }
            Value::Object(entry)
        });
    prop::collection::vec(entry, 0..4).prop_map(|entries| json!({ "entries": entries }))
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..200),
        3 => json_value().prop_map(|value| value.to_string().into_bytes()),
        3 => entries().prop_map(|value| value.to_string().into_bytes()),
    ]
}

/// Sends many bodies to one route, then ends the update: the accepted entries must fold, whatever they contain.
fn check(method: Method, tail: &'static str, update_token: bool) {
    let runtime = Runtime::new().unwrap();
    let app = runtime.block_on(TestApp::memory());
    let config = Config { cases: 100, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let bodies = prop::collection::vec(body(), 1..6);
    let result = TestRunner::new_with_rng(config, rng).run(&bodies, |bodies| {
        runtime.block_on(async {
            let stack = Stack::new(&app).await;
            stack.publish(&["a", "b", "c"]).await;
            let run = if update_token { Some(stack.begin().await) } else { None };
            for body in bodies {
                let path = run.as_ref().map_or(&stack.path, |run| &run.path);
                let call = app.request(method.clone(), &format!("{path}/{tail}"));
                let call = if let Some(run) = &run { call.update_token(&run.token) } else { call };
                let answer = call.gzip(&body).send().await;
                let status = answer.status.as_u16();
                prop_assert!(status < 500, "{status} {}", answer.text());
                if status >= 400 {
                    answer.refused(status);
                }
            }
            if let Some(run) = &run {
                let completed = run.complete("succeeded").await;
                prop_assert!(matches!(completed.status.as_u16(), 204 | 403), "{}", completed.text());
                prop_assert_ne!(run.status().await, "running");
            }
            for tail in ["", "/export", "/outputs", "/updates", "/updates/latest"] {
                let read = stack.get(tail).send().await;
                prop_assert_eq!(read.status.as_u16(), 200, "{}: {}", tail, read.text());
            }
            Ok(())
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn no_journal_makes_an_append_or_its_publication_fail() {
    check(Method::PATCH, "journalentries", true);
}

#[test]
fn no_checkpoint_makes_saving_or_its_publication_fail() {
    check(Method::PATCH, "checkpoint", true);
}

#[test]
fn no_batch_of_events_fails() {
    check(Method::POST, "events/batch", true);
}

#[test]
fn no_way_to_complete_fails() {
    check(Method::POST, "complete", true);
}

#[test]
fn no_way_to_begin_fails() {
    check(Method::POST, "begin-update", false);
}

#[test]
fn no_import_fails() {
    check(Method::POST, "import", false);
}

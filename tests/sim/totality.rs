//! Goal: every acknowledged log can be published, however absurd, and the version that it makes can be exported
//! and be the base of the next update.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::Config;
use serde_json::{Value, json};
use statewright_shared::context::Context;
use statewright_shared::domain::claims::Claims;
use statewright_shared::domain::deployment::inspect;
use statewright_shared::domain::update::Outcome;
use statewright_shared::journal::parse_batch;
use statewright_shared::layout::StackVersion;
use statewright_shared::limits::SKIPPED_NAMED_MAX;
use statewright_shared::services::error::UpdateError;
use statewright_shared::services::store::compression::{gunzip, gzip};
use statewright_shared::services::updates;
use statewright_shared::services::updates::checkpoints::Kind;
use statewright_shared::services::updates::events;
use statewright_shared::services::updates::events::NewBatch;
use statewright_shared::services::updates::log;
use statewright_shared::services::{Error, stacks};

use super::scene::{Scene, Step, new_update};
use super::world::World;

fn urn() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0..5u8).prop_map(|number| format!("urn:pulumi:dev::web::t:m:T::r{number}")),
        1 => Just("urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev".to_owned()),
        1 => prop::sample::select(vec!["", "urn:pulumi:", "not a urn", "urn:pulumi:a::b::c$d::", "\u{0}\u{1F600}"])
            .prop_map(str::to_owned),
    ]
}

fn resource() -> impl Strategy<Value = Value> {
    let references =
        (prop::option::of(urn()), prop::collection::vec(urn(), 0..3), prop::option::weighted(0.2, urn()));
    let flags = (
        any::<bool>(),
        prop::option::weighted(0.2, any::<bool>()),
        prop::option::weighted(0.2, any::<bool>()),
    );
    let kind = prop::sample::select(vec!["t:m:T", "pulumi:pulumi:Stack", "pulumi:providers:t", "", "$"]);
    (urn(), kind, references, flags, prop::option::weighted(0.2, urn()), any::<i64>()).prop_map(
        |(urn, kind, (parent, dependencies, deleted_with), (custom, delete, pending), alias, number)| {
            json!({
                "urn": urn, "type": kind, "custom": custom, "delete": delete, "parent": parent,
                "dependencies": dependencies, "propertyDependencies": {"p": dependencies},
                "deletedWith": deleted_with, "pendingReplacement": pending, "provider": alias,
                "aliases": alias.map(|alias| vec![alias]), "outputs": {"n": number, "é\"": "\u{7f}"},
            })
        },
    )
}

fn operation() -> impl Strategy<Value = Value> {
    let kinds =
        prop::sample::select(vec!["creating", "updating", "deleting", "reading", "importing", "else"]);
    (resource(), kinds).prop_map(|(resource, kind)| json!({"resource": resource, "type": kind}))
}

fn bare_deployment() -> impl Strategy<Value = Value> {
    let whole = (
        prop::collection::vec(resource(), 0..5),
        prop::collection::vec(operation(), 0..2),
        prop::option::of(prop::sample::select(vec![
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:00:01Z",
            "yesterday",
            "",
        ])),
        prop::option::of(Just(json!({"type": "service", "state": {"url": "x"}}))),
        prop::option::weighted(
            0.3,
            Just(json!({"integrity_error": {"version": "1", "command": "x", "error": "y"}})),
        ),
    )
        .prop_map(|(resources, operations, time, provider, metadata)| {
            json!({
                "manifest": {"time": time, "magic": "", "version": ""}, "resources": resources,
                "pending_operations": operations, "secrets_providers": provider, "metadata": metadata,
            })
        });
    prop_oneof![
        8 => whole,
        1 => Just(json!({})),
        1 => Just(json!(null)),
        1 => Just(json!({"resources": null, "manifest": null, "metadata": null, "pending_operations": null})),
        1 => Just(json!({"resources": [], "metadata": {}, "unknown": [1, {"a": null}]})),
    ]
}

/// A whole deployment; often an invalid one.
fn whole() -> impl Strategy<Value = String> {
    let version = prop_oneof![6 => Just(3), 2 => 1..5, 1 => -1..9];
    let features = prop::option::weighted(0.2, prop::collection::vec("[a-z]{0,6}", 0..3));
    (version, features, bare_deployment()).prop_map(|(version, features, deployment)| {
        let mut text = json!({"version": version, "deployment": deployment});
        if let Some(features) = features {
            text["features"] = json!(features);
        }
        text.to_string()
    })
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..6i64, 1 => -2..0i64, 1 => Just(i64::MAX)]
}

/// An entry of any kind, with mostly unrelated members.
fn entry() -> impl Strategy<Value = Value> {
    let head =
        (prop_oneof![9 => 0..=10i64, 1 => -1..13i64], prop_oneof![9 => 1..15i64, 1 => -1..2i64], number());
    let removals = (
        prop::option::of(number()),
        prop::option::of(number()),
        prop::option::weighted(0.2, number()),
        prop::option::weighted(0.2, number()),
        prop::option::weighted(0.2, number()),
        prop::option::weighted(0.2, number()),
    );
    let bodies = (
        prop::option::weighted(0.8, resource()),
        prop::option::of(operation()),
        prop::option::weighted(0.8, bare_deployment()),
        prop::collection::vec((prop::option::of(number()), prop::option::of(number())), 0..4),
        prop::collection::vec(resource(), 0..3),
        prop::collection::vec((number(), resource()), 0..2),
        any::<bool>(),
    );
    (head, removals, bodies).prop_map(|((kind, sequence, operation_id), removals, bodies)| {
        let (remove_old, remove_new, delete_old, delete_new, pending_old, pending_new) = removals;
        let (state, operation, snapshot, layout, states, patches, flag) = bodies;
        let mut entry = json!({
            "version": if kind == 10 { 2 } else { 1 }, "kind": kind, "sequenceID": sequence,
            "operationID": operation_id, "removeOld": remove_old, "removeNew": remove_new, "isRefresh": flag,
            "requiresByteString": flag,
        });
        let mut set = |name: &str, value: Value| {
            if !value.is_null() {
                entry[name] = value;
            }
        };
        set("deleteOld", json!(delete_old));
        set("deleteNew", json!(delete_new));
        set("pendingReplacementOld", json!(pending_old));
        set("pendingReplacementNew", json!(pending_new));
        set("state", json!(state));
        set("operation", json!(operation));
        match kind {
            5 => set("newSnapshot", json!(snapshot)),
            6 => set("secretsProvider", json!({"type": "service", "state": {"n": operation_id}})),
            8 => {
                set("extensionRef", json!(format!("e{operation_id}")));
                set("extension", json!({"name": "n", "version": "v", "value": "AA=="}));
            }
            10 => {
                let places =
                    layout.iter().map(|(base, state)| json!({"baseIndex": base, "stateIndex": state}));
                set("layout", places.collect());
                set("states", json!(states));
                let patch = |name: &str| -> Value {
                    patches.iter().map(|(number, state)| json!({name: number, "state": state})).collect()
                };
                set("baseStatePatches", patch("index"));
                set("newStatePatches", patch("operationID"));
            }
            _ => {}
        }
        entry
    })
}

#[derive(Debug, Clone)]
enum Part {
    Entries(String),
    Checkpoint(String),
    /// A text under a number, whole or as the delta from the last one; the second flag makes it invalid.
    Save {
        sequence: u64,
        text: String,
        as_delta: bool,
        is_bad: bool,
    },
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Complete(Outcome),
    Cancel,
    Expiry,
}

/// Batches of entries, and whole deployments of every kind, with and without a number.
fn parts() -> (BoxedStrategy<Part>, BoxedStrategy<Part>, BoxedStrategy<Part>) {
    // Each entry of a body is tried alone first, so that a refused one does not hide the accepted ones.
    let entries = prop::collection::vec(entry(), 1..6).prop_map(|entries| {
        let is_taken =
            |entry: &Value| parse_batch(json!({"entries": [entry]}).to_string().as_bytes()).is_ok();
        let taken: Vec<Value> = entries.into_iter().filter(is_taken).collect();
        Part::Entries(json!({"entries": taken}).to_string())
    });
    let entries = entries.boxed();
    let checkpoint =
        whole().prop_filter("refused", |text| inspect(text.as_bytes()).is_ok()).prop_map(Part::Checkpoint);
    let text = whole().prop_filter("refused", |text| inspect(text.as_bytes()).is_ok());
    let save = (0..9u64, text, prop::bool::weighted(0.6), prop::bool::weighted(0.2))
        .prop_map(|(sequence, text, as_delta, is_bad)| Part::Save { sequence, text, as_delta, is_bad })
        .boxed();
    (entries, prop_oneof![1 => checkpoint, 2 => save.clone()].boxed(), save)
}

/// A log has entries or whole deployments.
fn log_of_parts() -> impl Strategy<Value = Vec<Part>> {
    let (entries, whole, save) = parts();
    let several = |part, most| prop::collection::vec(part, 0..most);
    prop_oneof![2 => several(entries, 6), 1 => several(save, 8), 1 => several(whole, 6)]
}

fn ending() -> impl Strategy<Value = Ending> {
    prop_oneof![
        Just(Ending::Complete(Outcome::Succeeded)),
        Just(Ending::Complete(Outcome::Failed)),
        Just(Ending::Cancel),
        Just(Ending::Expiry),
    ]
}

async fn publish_all(base: Option<String>, updates: Vec<(Vec<Part>, Ending)>) {
    let scene = Scene::new(World::memory());
    let process = scene.world.process("first");
    scene.act(&process, Step::CreateStack).await.unwrap();
    let mut version = 0;
    if let Some(base) = base {
        match updates::direct::import(&process, &scene.caller, &scene.address, Bytes::from(base)).await {
            Ok(_) => version += 1,
            Err(error) => assert!(matches!(error, Error::Invalid(_)), "{error:?}"),
        }
    }
    for (parts, ending) in updates {
        let journals = parts.iter().all(|part| matches!(part, Part::Entries(_)));
        let begin = if journals { Step::Begin } else { Step::BeginWhole };
        scene.act(&process, begin).await.unwrap();
        let claims = scene.claims().unwrap();
        let other = scene.world.process("other");
        // The last acknowledged text, by the rules of the protocol.
        let mut last: Option<(u64, String)> = None;
        let only_saves = parts.iter().all(|part| matches!(part, Part::Save { .. }));
        for (index, part) in parts.into_iter().enumerate() {
            match part {
                Part::Entries(text) => {
                    log::append_entries(&process, &claims, gzip(text.as_bytes())).await.unwrap();
                }
                Part::Checkpoint(text) => {
                    log::append_checkpoint(&process, &claims, text).await.unwrap();
                }
                Part::Save { sequence, text, as_delta, is_bad } => {
                    let process = [&process, &other][index % 2];
                    save(process, &claims, &mut last, Save { sequence, text, as_delta, is_bad }).await;
                }
            }
        }
        match ending {
            Ending::Complete(outcome) => updates::complete(&process, &claims, outcome).await.unwrap(),
            Ending::Cancel => scene.act(&process, Step::Cancel).await.unwrap(),
            Ending::Expiry => {
                scene.act(&process, Step::Lapse).await.unwrap();
                scene.act(&process, Step::Meet).await.unwrap();
            }
        }
        version += 1;
        let exported =
            stacks::export(&process, &scene.caller, &scene.address, Some(version)).await.unwrap().unwrap();
        let text = gunzip(&exported).unwrap();
        inspect(&text).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&text)));
        if let Some((_, last)) = last.filter(|_| only_saves) {
            assert_eq!(state(&text), state(last.as_bytes()), "the last saved text is published");
        }
        stacks::outputs(&process, &scene.caller, &scene.address).await.unwrap();
        scene.check().await;
    }
}

/// A deployment without the parts that a publish may mark, or that a repeat of the same state leaves unchanged.
fn state(text: &[u8]) -> [Value; 3] {
    let untyped: Value = serde_json::from_slice(text).unwrap();
    let list = |name: &str| match &untyped["deployment"][name] {
        Value::Null => json!([]),
        list => list.clone(),
    };
    [untyped["version"].clone(), list("resources"), list("pending_operations")]
}

#[derive(Debug)]
struct Save {
    sequence: u64,
    text: String,
    as_delta: bool,
    is_bad: bool,
}

/// Sends a save, and expects the outcome of the protocol.
async fn save(process: &Context, claims: &Claims, last: &mut Option<(u64, String)>, save: Save) {
    let Save { sequence, text, as_delta, is_bad } = save;
    let number = last.as_ref().map(|(number, _)| *number);
    if !as_delta {
        let body = format!(r#"{{"version":3,"untypedDeployment":{text},"sequenceNumber":{sequence}}}"#);
        let body = if is_bad { body.replacen("untyped", "un", 1) } else { body };
        let saved = updates::checkpoints::save(
            process,
            claims,
            Kind::Whole,
            body.clone().into(),
            gzip(body.as_bytes()),
        )
        .await;
        assert_eq!(saved.is_ok(), !is_bad, "{saved:?}");
        if !is_bad && number.is_none_or(|number| sequence >= number) {
            *last = Some((sequence, text));
        }
        return;
    }
    let base = last.as_ref().map(|(_, text)| text.as_str()).unwrap_or_default();
    let point = |offset: usize| json!({"line": 1, "column": 1, "offset": offset});
    let edit = json!({"Span": {"uri": "", "start": point(0), "end": point(base.len())}, "NewText": text});
    let hash = super::world::sha256(if is_bad { b"" } else { text.as_bytes() });
    let body =
        json!({"version": 3, "checkpointHash": hash, "sequenceNumber": sequence, "deploymentDelta": [edit]});
    let body = body.to_string();
    let saved =
        updates::checkpoints::save(process, claims, Kind::Delta, body.clone().into(), gzip(body.as_bytes()))
            .await;
    match number {
        Some(number) if sequence < number => saved.unwrap(),
        Some(number) if sequence == number && text == base && !is_bad => saved.unwrap(),
        Some(number) if sequence > number && !is_bad => {
            saved.unwrap();
            *last = Some((sequence, text));
        }
        _ => assert!(matches!(saved, Err(Error::Update(UpdateError::NoFit(_)))), "{saved:?}"),
    }
}

fn block_on(run: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(run);
}

proptest! {
    #![proptest_config(Config { cases: 200, failure_persistence: None, ..Config::default() })]

    #[test]
    fn every_log_publishes_and_its_version_is_a_base_for_the_next(
        base in prop::option::of(whole()),
        updates in prop::collection::vec((log_of_parts(), ending()), 1..4),
    ) {
        block_on(publish_all(base, updates));
    }
}

/// The history limits what it stores of an update, so that no entry can prevent a version.
#[tokio::test]
async fn a_log_with_more_faults_than_fit_the_history_publishes() {
    let scene = Scene::new(World::memory());
    let process = scene.world.process("first");
    scene.act(&process, Step::CreateStack).await.unwrap();
    scene.act(&process, Step::Begin).await.unwrap();
    let claims = scene.claims().unwrap();
    let faults_total = 60_000;
    for batch in 0..6 {
        let entries: Vec<Value> = (1..=10_000)
            .map(|number| {
                json!({"version": 1, "kind": 1, "sequenceID": batch * 10_000 + number, "operationID": 1,
                       "removeOld": 1_000_000, "removeNew": null})
            })
            .collect();
        let text = json!({"entries": entries}).to_string();
        assert!(parse_batch(text.as_bytes()).is_ok());
        log::append_entries(&process, &claims, gzip(text.as_bytes())).await.unwrap();
    }
    scene.act(&process, Step::Complete).await.unwrap();
    let version: StackVersion = scene.world.read(&StackVersion::key(claims.stack, 1)).await.unwrap();
    assert_eq!((version.skipped_count, version.skipped.len()), (faults_total, SKIPPED_NAMED_MAX));
    scene.check().await;
}

#[tokio::test]
async fn a_fault_that_quotes_a_long_name_publishes() {
    let scene = Scene::new(World::memory());
    let process = scene.world.process("first");
    scene.act(&process, Step::CreateStack).await.unwrap();
    scene.act(&process, Step::Begin).await.unwrap();
    let long = "x".repeat(5_000_000);
    let state = json!({"urn": format!("urn:pulumi:dev::web::t:m:T::{long}"), "type": "t:m:T", "custom": true,
                       "parent": format!("urn:pulumi:dev::web::t:m:T::{long}p")});
    let text = json!({"entries": [
        {"version": 1, "kind": 1, "sequenceID": 1, "operationID": 1, "removeOld": null, "removeNew": null, "state": state},
    ]})
    .to_string();
    assert!(parse_batch(text.as_bytes()).is_ok());
    log::append_entries(&process, &scene.claims().unwrap(), gzip(text.as_bytes())).await.unwrap();
    scene.act(&process, Step::Complete).await.unwrap();
    scene.check().await;
}

/// The creation data of an update is in its version too, so it is limited when it arrives.
#[tokio::test]
async fn an_update_with_too_much_detail_is_refused_at_once() {
    let scene = Scene::new(World::memory());
    let process = scene.world.process("first");
    scene.act(&process, Step::CreateStack).await.unwrap();
    let (mut taken, mut refused) = (0, 0);
    for bytes in [1_000, 500_000, 1_500_000, 3_900_000, 5_000_000] {
        let mut new = new_update();
        new.detail.message = "m".repeat(bytes);
        match updates::begin(&process, &scene.caller, &scene.address, new, None, 2).await {
            Ok(begun) => {
                taken += 1;
                let id = begun.started.update.to_string();
                updates::cancel(&process, &scene.caller, &scene.address, &id, None).await.unwrap();
            }
            Err(error) => {
                refused += 1;
                assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
            }
        }
    }
    assert!(taken > 0 && refused > 0);
    let mut new = new_update();
    new.detail.message = "m".repeat(5_000_000);
    let created = updates::create(&process, &scene.caller, &scene.address, new).await;
    assert!(matches!(created, Err(Error::TooLarge { .. })), "{created:?}");
    scene.check().await;
}

#[tokio::test]
async fn totals_too_long_for_a_version_do_not_prevent_it() {
    let scene = Scene::new(World::memory());
    let process = scene.world.process("first");
    scene.act(&process, Step::CreateStack).await.unwrap();
    scene.act(&process, Step::Begin).await.unwrap();
    let resource_changes: BTreeMap<String, u64> = (0..100_000).map(|n| (format!("{n:0>37}"), n)).collect();
    let summary = Some(statewright_shared::layout::UpdateSummary { resource_changes });
    let batch = NewBatch { first: 1, last: 1, count: 1, summary, gzip: gzip(b"{}") };
    events::append(&process, &scene.claims().unwrap(), batch).await.unwrap();
    scene.act(&process, Step::Append(1)).await.unwrap();
    scene.act(&process, Step::Complete).await.unwrap();
    scene.check().await;
}

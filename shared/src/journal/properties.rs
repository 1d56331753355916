//! Properties of every journal.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::domain::deployment::{inspect, same_state};
use crate::ports::Timestamp;

const INSTANT: Timestamp = Timestamp(1_767_323_045_000_000_006);

fn urn() -> impl Strategy<Value = String> {
    (0..6u8).prop_map(|name| format!("urn:pulumi:dev::p::t:m:T::r{name}"))
}

/// A resource with references, valid or not.
fn resource() -> impl Strategy<Value = Value> {
    let references = (prop::option::of(urn()), prop::collection::vec(urn(), 0..3), prop::option::of(urn()));
    let flags = (any::<bool>(), prop::option::weighted(0.1, any::<bool>()));
    (urn(), references, prop::option::weighted(0.1, urn()), flags, any::<i64>()).prop_map(
        |(urn, (parent, dependencies, deleted_with), alias, (custom, delete), number)| {
            json!({
                "urn": urn, "type": "t:m:T", "custom": custom, "parent": parent, "dependencies": dependencies,
                "propertyDependencies": {"p": dependencies}, "deletedWith": deleted_with, "delete": delete,
                "aliases": alias.map(|alias| vec![alias]), "outputs": {"n": number},
            })
        },
    )
}

fn base() -> impl Strategy<Value = Option<String>> {
    let operation = (resource(), prop::sample::select(vec!["creating", "updating"]))
        .prop_map(|(resource, kind)| json!({"resource": resource, "type": kind}));
    let deployment = (prop::collection::vec(resource(), 0..5), prop::collection::vec(operation, 0..2))
        .prop_map(|(resources, operations)| {
            json!({"version": 3, "deployment": {"resources": resources, "pending_operations": operations}})
                .to_string()
        });
    prop::option::weighted(0.9, deployment)
}

/// An entry of an accepted shape, without its sequence ID.
fn entry() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(vec![0, 0, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    let index = || prop::option::weighted(0.3, 0..6i64);
    let references = (index(), index(), index(), index(), index(), index());
    (kind, 0..6i64, references, prop::option::weighted(0.8, resource()), resource(), any::<(bool, bool)>())
        .prop_map(|(kind, operation_id, references, state, other, (is_refresh, has_operation))| {
            let (remove_old, remove_new, delete_old, delete_new, pending_old, pending_new) = references;
            json!({
                "version": if kind == 10 { 2 } else { 1 }, "kind": kind, "operationID": operation_id,
                "removeOld": remove_old, "removeNew": remove_new, "deleteOld": delete_old, "deleteNew": delete_new,
                "pendingReplacementOld": pending_old, "pendingReplacementNew": pending_new, "state": state,
                "isRefresh": is_refresh,
                "operation": has_operation.then(|| json!({"resource": other, "type": "creating"})),
                "secretsProvider": {"type": "service", "state": {"n": operation_id}},
                "newSnapshot": {"resources": [other]},
                "extensionRef": format!("e{operation_id}"), "extension": {"name": "e"},
                "snippets": [{"uuid": "1", "references": {"a": other["urn"]}}],
                "layout": [{"stateIndex": 0}, {"baseIndex": operation_id}], "states": [other],
            })
        })
}

fn journal() -> impl Strategy<Value = Vec<Value>> {
    prop::collection::vec(entry(), 0..12).prop_map(|mut entries| {
        for (index, entry) in entries.iter_mut().enumerate() {
            // Batches are lost, so the IDs have gaps.
            entry["sequenceID"] = json!(index * 2 + 1);
        }
        entries
    })
}

/// Replays entries in these batches.
fn replay_batches(base: Option<&str>, batches: &[&[Value]]) -> Replayed {
    let bodies: Vec<String> = batches.iter().map(|entries| json!({"entries": entries}).to_string()).collect();
    let entries = bodies.iter().flat_map(|body| parse_batch(body.as_bytes()).unwrap());
    replay(base.map(str::as_bytes), entries, INSTANT).unwrap()
}

/// Any JSON, with a preference for the member names that we know.
fn any_json() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "entries",
        "version",
        "kind",
        "sequenceID",
        "operationID",
        "removeOld",
        "state",
        "operation",
        "urn",
        "type",
        "deployment",
        "resources",
        "metadata",
        "manifest",
        "dependencies",
        "snippets",
        "newSnapshot",
        "layout",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..12i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z:\\\\\"\u{e9}]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members: BTreeMap<_, _>| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn every_log_publishes_and_the_same_log_the_same_bytes(base in base(), journal in journal()) {
        let result = replay_batches(base.as_deref(), &[&journal]);
        prop_assert_eq!(&replay_batches(base.as_deref(), &[&journal]), &result);
        let inspection = inspect(&result.text).unwrap();
        prop_assert_eq!(inspection.resource_count, result.resource_count);
        prop_assert_eq!(inspection.pending_count, result.pending_count);
        prop_assert_eq!(inspection.outputs, result.outputs.as_deref());
        let unchanged = base.is_some_and(|base| same_state(base.as_bytes(), &result.text).unwrap());
        prop_assert_eq!(unchanged, result.unchanged);
    }

    #[test]
    fn batches_order_and_repetition_do_not_matter(
        base in base(), journal in journal(), cut in 0..12usize, shuffled in any::<prop::sample::Index>(),
    ) {
        let expected = replay_batches(base.as_deref(), &[&journal]);
        let cut = cut.min(journal.len());
        let (first, second) = journal.split_at(cut);
        prop_assert_eq!(&replay_batches(base.as_deref(), &[first, second]), &expected);
        prop_assert_eq!(&replay_batches(base.as_deref(), &[second, first, second]), &expected);
        let mut turned = journal.clone();
        turned.rotate_left(if journal.is_empty() { 0 } else { shuffled.index(journal.len()) });
        turned.reverse();
        prop_assert_eq!(&replay_batches(base.as_deref(), &[&turned, &journal]), &expected);
    }

    #[test]
    fn every_prefix_replays_and_open_operations_are_pending(base in base(), journal in journal()) {
        for length in 0..=journal.len() {
            let prefix = &journal[..length];
            let result = replay_batches(base.as_deref(), &[prefix]);
            let skipped: Vec<i64> = result.skipped.iter().map(|skipped| skipped.sequence_id).collect();
            let mut open = BTreeMap::new();
            // This small model does not cover a rebuilt or written base.
            if prefix.iter().any(|entry| [5, 7].contains(&entry["kind"].as_i64().unwrap())) {
                continue;
            }
            // A success that made a resource ends its step even if its references do not exist.
            let counts = |entry: &&Value| {
                let made = entry["kind"] == json!(1) && !entry["state"].is_null();
                made || !skipped.contains(&entry["sequenceID"].as_i64().unwrap())
            };
            for entry in prefix.iter().filter(counts) {
                let operation_id = entry["operationID"].as_i64().unwrap();
                match entry["kind"].as_i64().unwrap() {
                    0 => { open.insert(operation_id, !entry["operation"].is_null()); }
                    1..=3 => { open.remove(&operation_id); }
                    _ => {}
                }
            }
            let began = open.values().filter(|has_operation| **has_operation).count();
            let base: Value = base.as_deref().map(|base| serde_json::from_str(base).unwrap()).unwrap_or_default();
            let kept = base["deployment"]["pending_operations"].as_array().map_or(0, |operations| {
                operations.iter().filter(|operation| operation["type"] == "creating").count()
            });
            prop_assert_eq!(result.pending_count, began + kept);
        }
    }

    #[test]
    fn a_state_without_news_settles_and_stays(base in base(), journal in journal()) {
        let published = replay_batches(base.as_deref(), &[&journal]);
        // The first update without entries removes pending operations and notices. The second changes nothing.
        let settled = replay(Some(&published.text), Vec::new(), INSTANT).unwrap();
        let again = replay(Some(&settled.text), Vec::new(), INSTANT).unwrap();
        prop_assert!(again.unchanged);
        prop_assert_eq!(again.text, settled.text);
    }

    #[test]
    fn arbitrary_json_is_refused_or_replayed(base in any_json(), entries in prop::collection::vec(any_json(), 0..4)) {
        let base = base.to_string();
        let body = json!({"entries": entries}).to_string();
        let _ = inspect(base.as_bytes());
        let _ = parse_batch(base.as_bytes());
        let wrapped = format!(r#"{{"version":3,"deployment":{base}}}"#);
        for base in [base.as_bytes(), wrapped.as_bytes()] {
            if let Ok(result) = replay(Some(base), read_batch(body.as_bytes()), INSTANT) {
                prop_assert!(inspect(&result.text).is_ok());
            }
        }
        if let Ok(entries) = parse_batch(body.as_bytes()) {
            prop_assert!(replay(None, entries, INSTANT).is_ok());
        }
    }

    #[test]
    fn arbitrary_bytes_are_refused_or_replayed(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = inspect(&bytes);
        let _ = replay(Some(&bytes), read_batch(&bytes), INSTANT);
        prop_assert!(replay(None, read_batch(&bytes), INSTANT).is_ok());
    }

    #[test]
    fn a_damaged_journal_is_refused_or_replayed(journal in journal(), place in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut body = json!({"entries": journal}).to_string().into_bytes();
        let place = place.index(body.len());
        body[place] = byte;
        prop_assert!(replay(None, read_batch(&body), INSTANT).is_ok());
        if let Ok(entries) = parse_batch(&body) {
            prop_assert!(replay(None, entries, INSTANT).is_ok());
        }
    }
}

#[test]
fn nesting_beyond_any_stack_is_carried_through() {
    let deep = format!("{}{}", "[".repeat(500_000), "]".repeat(500_000));
    let state = format!(r#"{{"urn":"urn:pulumi:dev::p::t::a","type":"t","inputs":{{"p":{deep}}}}}"#);
    let body = format!(
        r#"{{"entries":[{{"version":1,"kind":1,"sequenceID":1,"operationID":1,"deleteNew":1,"state":{state}}}]}}"#
    );
    let result = replay(None, parse_batch(body.as_bytes()).unwrap(), INSTANT).unwrap();
    assert!(String::from_utf8_lossy(&result.text).contains(&deep));
    let base = format!(r#"{{"version":3,"deep":{deep},"deployment":{{"deep":{deep}}}}}"#);
    assert!(replay(Some(base.as_bytes()), Vec::new(), INSTANT).is_ok());
}

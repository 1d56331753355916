use serde_json::{Value, json};

use super::*;
use crate::domain::deployment::{inspect, same_state};
use crate::ports::Timestamp;

const INSTANT: Timestamp = Timestamp(1_767_323_045_000_000_006);

fn urn(name: &str) -> String {
    format!("urn:pulumi:dev::p::t:m:T::{name}")
}

fn resource(name: &str) -> Value {
    json!({"urn": urn(name), "custom": true, "id": name, "type": "t:m:T"})
}

fn base_of(names: &[&str]) -> String {
    let resources: Vec<Value> = names.iter().map(|name| resource(name)).collect();
    json!({"version": 3, "deployment": {"resources": resources}}).to_string()
}

/// Completes entries with the members that every entry has: version 1, both removals, and sequence IDs in order.
fn journal(entries: &[Value]) -> String {
    let entries: Vec<Value> = entries
        .iter()
        .enumerate()
        .map(|(index, entry)| {
            let mut all = json!({"version": 1, "sequenceID": index + 1, "operationID": 0,
                "removeOld": null, "removeNew": null});
            let members = all.as_object_mut().unwrap();
            members.extend(entry.as_object().unwrap().clone());
            all
        })
        .collect();
    json!({"entries": entries}).to_string()
}

fn replayed(base: &str, entries: &[Value]) -> Replayed {
    let body = journal(entries);
    replay(Some(base.as_bytes()), parse_batch(body.as_bytes()).unwrap(), INSTANT).unwrap()
}

fn deployment(replayed: &Replayed) -> Value {
    serde_json::from_slice::<Value>(&replayed.text).unwrap()["deployment"].take()
}

fn names(replayed: &Replayed) -> Vec<String> {
    let deployment = deployment(replayed);
    let resources = deployment["resources"].as_array().cloned().unwrap_or_default();
    resources.iter().map(|r| r["urn"].as_str().unwrap().rsplit("::").next().unwrap().to_owned()).collect()
}

fn refusal(entry: &str) -> String {
    parse_batch(format!(r#"{{"entries":[{entry}]}}"#).as_bytes()).unwrap_err().to_string()
}

#[test]
fn resources_of_the_update_come_before_those_of_the_base() {
    let result = replayed(
        &base_of(&["a", "b", "c"]),
        &[
            json!({"kind": 1, "operationID": 1, "state": resource("b"), "removeOld": 1}),
            json!({"kind": 1, "operationID": 2, "state": resource("d")}),
            json!({"kind": 2, "operationID": 3, "state": resource("e"), "removeOld": 0}),
        ],
    );
    assert_eq!(names(&result), ["b", "d", "a", "c"]);
    assert!(result.skipped.is_empty() && !result.unchanged);
}

#[test]
fn a_removal_wins_over_a_replacement_and_that_over_a_mark() {
    let changed = json!({"urn": urn("a"), "type": "t:m:T", "inputs": {"x": 1}});
    let result = replayed(
        &base_of(&["a", "b", "c"]),
        &[
            json!({"kind": 4, "state": changed, "removeOld": 0}),
            json!({"kind": 4, "state": changed, "removeOld": 1}),
            json!({"kind": 1, "operationID": 1, "removeOld": 1}),
            json!({"kind": 1, "operationID": 2, "deleteOld": 0, "pendingReplacementOld": 0}),
            json!({"kind": 1, "operationID": 3, "deleteOld": 2}),
        ],
    );
    let mut kept = resource("c");
    kept["delete"] = json!(true);
    assert_eq!(deployment(&result)["resources"], json!([changed, kept]));
}

#[test]
fn operations_without_an_end_are_pending() {
    let operation = |kind: &str, name: &str| json!({"resource": resource(name), "type": kind});
    let base = json!({"version": 3, "deployment": {"pending_operations": [
        operation("creating", "old"), operation("updating", "gone")]}});
    let result = replayed(
        &base.to_string(),
        &[
            json!({"kind": 0, "operationID": 2, "operation": operation("updating", "b")}),
            json!({"kind": 0, "operationID": 1, "operation": operation("importing", "a")}),
            json!({"kind": 0, "operationID": 3}),
            json!({"kind": 0, "operationID": 4, "operation": operation("creating", "d")}),
            json!({"kind": 2, "operationID": 4}),
        ],
    );
    let expected =
        json!([operation("importing", "a"), operation("updating", "b"), operation("creating", "old")]);
    assert_eq!(deployment(&result)["pending_operations"], expected);
    assert_eq!(result.pending_count, 3);
}

#[test]
fn a_refresh_drops_dangling_references_and_renumbers_the_base() {
    let mut child = resource("b");
    child["parent"] = json!(urn("a"));
    child["dependencies"] = json!([urn("a")]);
    child["propertyDependencies"] = json!({"p": [urn("a")], "q": []});
    child["deletedWith"] = json!(urn("a"));
    let base = json!({"version": 3, "deployment": {"resources": [resource("a"), child, resource("c")]}});
    let result = replayed(
        &base.to_string(),
        &[
            json!({"kind": 3, "operationID": 1, "removeOld": 0, "isRefresh": true}),
            json!({"kind": 7}),
            json!({"kind": 1, "operationID": 2, "removeOld": 1}),
        ],
    );
    assert_eq!(deployment(&result)["resources"], json!([resource("b")]));
    assert_eq!(result.integrity_error, None);
}

#[test]
fn a_refresh_within_a_run_drops_only_dangling_references() {
    let mut child = resource("c");
    child["dependencies"] = json!([urn("a"), urn("b")]);
    child["parent"] = json!(urn("b"));
    let base = json!({"version": 3, "deployment": {"resources": [resource("a"), resource("b"), child]}});
    let gone = json!({"kind": 1, "operationID": 1, "removeOld": 0});
    let kept =
        json!({"kind": 1, "operationID": 2, "removeOld": 1, "state": resource("b"), "isRefresh": true});
    let result = replayed(&base.to_string(), &[gone.clone(), kept]);
    let mut left = child.clone();
    left["dependencies"] = json!([urn("b")]);
    assert_eq!(deployment(&result)["resources"], json!([resource("b"), left]));

    // Without a refresh nothing is dropped: a dangling reference is then an integrity error, and is reported.
    let result = replayed(&base.to_string(), &[gone]);
    assert_eq!(deployment(&result)["resources"], json!([resource("b"), child]));
    assert!(result.integrity_error.unwrap().contains("is missing"));
}

#[test]
fn a_provider_without_an_id_is_referred_to_as_unknown() {
    let provider = "urn:pulumi:dev::p::pulumi:providers:t::default";
    let user = |id: &str| json!({"urn": urn("a"), "type": "t:m:T", "provider": format!("{provider}::{id}")});
    let provider = json!({"urn": provider, "type": "pulumi:providers:t", "custom": true});
    let base = json!({"version": 3, "deployment": {"resources": [provider, user("")]}});
    let result = replayed(&base.to_string(), &[]);
    let expected = user("04da6b54-80e4-46f7-96ec-b56ff0331ba9");
    assert_eq!(deployment(&result)["resources"], json!([provider, expected]));
    assert_eq!(result.integrity_error, None);
}

#[test]
fn the_same_secrets_provider_keeps_its_bytes() {
    let base =
        r#"{"version":3,"deployment":{"secrets_providers":{"type":"service", "state":{"a":1},"more":2}}}"#;
    let set = |state: Value| json!({"kind": 6, "secretsProvider": {"type": "service", "state": state}});
    let same = replayed(base, &[set(json!({"a": 1}))]);
    assert!(same.unchanged);
    assert_eq!(same.secrets_providers.as_deref(), Some(r#"{"type":"service", "state":{"a":1},"more":2}"#));
    let other = replayed(base, &[set(json!({"a": 2}))]);
    assert_eq!(other.secrets_providers.as_deref(), Some(r#"{"state":{"a":2},"type":"service"}"#));
}

#[test]
fn aliases_are_resolved_in_children_and_references_and_dropped() {
    let renamed = "urn:pulumi:dev::p::t:m:C::new";
    let component = json!({"urn": renamed, "type": "t:m:C", "aliases": ["urn:pulumi:dev::p::t:m:Old::old"]});
    let child = json!({"urn": "urn:pulumi:dev::p::t:m:Old$t:m:T::child", "type": "t:m:T",
        "parent": "urn:pulumi:dev::p::t:m:Old::old"});
    let base = json!({"version": 3, "deployment": {"resources": [child]}});
    let result = replayed(&base.to_string(), &[json!({"kind": 1, "operationID": 1, "state": component})]);
    let expected = json!([
        {"urn": renamed, "type": "t:m:C"},
        {"urn": "urn:pulumi:dev::p::t:m:C$t:m:T::child", "type": "t:m:T", "parent": renamed},
    ]);
    assert_eq!(deployment(&result)["resources"], expected);
}

#[test]
fn aliases_that_conflict_stay_and_are_reported() {
    let mut one = resource("a");
    one["aliases"] = json!([urn("old")]);
    let mut two = resource("b");
    two["aliases"] = json!([urn("old")]);
    let result = replayed(
        &base_of(&[]),
        &[
            json!({"kind": 1, "operationID": 1, "state": one}),
            json!({"kind": 1, "operationID": 2, "state": two}),
        ],
    );
    assert_eq!(deployment(&result)["resources"], json!([one, two]));
    let complaint = result.integrity_error.clone().unwrap();
    assert!(complaint.contains("same alias"), "{complaint}");
    assert_eq!(deployment(&result)["metadata"]["integrity_error"]["error"], json!(complaint));
}

#[test]
fn an_inapplicable_entry_is_skipped_and_its_resource_kept() {
    let result = replayed(
        &base_of(&["a"]),
        &[
            json!({"kind": 1, "operationID": 1, "state": resource("kept"), "removeOld": 1}),
            json!({"kind": 1, "operationID": 2, "removeNew": 9}),
            json!({"kind": 10, "version": 2, "layout": [{"stateIndex": 0}, {"baseIndex": 1}], "states": [resource("x")]}),
            json!({"kind": 1, "operationID": 3, "state": resource("b")}),
        ],
    );
    assert_eq!(names(&result), ["kept", "b", "a"]);
    let skipped: Vec<i64> = result.skipped.iter().map(|skipped| skipped.sequence_id).collect();
    assert_eq!(skipped, [1, 2, 3]);
    assert_eq!(result.integrity_error, None);
    let error = &deployment(&result)["metadata"]["integrity_error"];
    let text = error["error"].as_str().unwrap();
    assert!(
        text.starts_with(
            "3 journal entries could not be applied: 1 (its resource was kept, but `removeOld` is 1"
        ),
        "{text}"
    );
    assert_eq!((&error["version"], &error["command"]), (&json!("3"), &json!("journal replay")));

    // The next update of a valid state clears the notice.
    let next = replay(Some(&result.text), Vec::new(), INSTANT).unwrap();
    assert_eq!(deployment(&next)["metadata"], json!({}));
}

#[test]
fn a_state_migration_moves_marks_or_changes_nothing() {
    let migration = |layout: Value| {
        json!({"kind": 10, "version": 2, "layout": layout, "states": [resource("new")],
            "baseStatePatches": [{"index": 1, "state": resource("patched")}]})
    };
    let marked = json!({"kind": 1, "operationID": 1, "deleteOld": 2});
    let good = migration(json!([{"baseIndex": 2}, {"stateIndex": 0}, {"baseIndex": 1}]));
    let result = replayed(&base_of(&["a", "b", "c"]), &[marked.clone(), good]);
    assert_eq!(names(&result), ["c", "new", "patched"]);
    assert_eq!(deployment(&result)["resources"][0]["delete"], json!(true));

    // A removal moves along too, and a patch is newer than what was registered before it.
    let removed = json!({"kind": 1, "operationID": 1, "removeOld": 2});
    let outputs = json!({"kind": 4, "state": resource("b"), "removeOld": 1});
    let layout = json!([{"baseIndex": 2}, {"stateIndex": 0}, {"baseIndex": 1}]);
    let result = replayed(&base_of(&["a", "b", "c"]), &[removed, outputs, migration(layout)]);
    assert_eq!(names(&result), ["new", "patched"]);

    // The patched resource is dropped, or does not exist.
    for layout in [json!([{"baseIndex": 0}, {"stateIndex": 0}]), json!([{"baseIndex": 3}, {"stateIndex": 0}])]
    {
        let result = replayed(&base_of(&["a", "b", "c"]), &[marked.clone(), migration(layout.clone())]);
        assert_eq!(names(&result), ["a", "b", "c"], "{layout}");
        assert_eq!(result.skipped.len(), 1, "{layout}");
    }
    // These are invalid for any base.
    for layout in [
        json!([{"baseIndex": 0}]),
        json!([{"baseIndex": 1}, {"baseIndex": 1}, {"stateIndex": 0}]),
        json!([{"baseIndex": 1, "stateIndex": 0}]),
        json!([{"baseIndex": 1}, {"stateIndex": 0}, {}]),
        json!([{"baseIndex": -1}, {"stateIndex": 0}]),
        json!([{"stateIndex": 1}]),
    ] {
        let body = journal(&[migration(layout.clone())]);
        assert!(parse_batch(body.as_bytes()).is_err(), "{layout}");
    }
}

#[test]
fn a_feature_in_use_makes_it_version_4() {
    let envelope = |entries: &[Value]| {
        let result = replayed(&base_of(&["a"]), entries);
        let envelope: Value = serde_json::from_slice(&result.text).unwrap();
        (envelope["version"].clone(), envelope["features"].clone())
    };
    assert_eq!(envelope(&[]), (json!(3), Value::Null));
    for (member, value, feature) in [
        ("taint", json!(true), "taint"),
        ("refreshBeforeUpdate", json!(true), "refreshBeforeUpdate"),
        ("viewOf", json!(urn("a")), "views"),
        ("resourceHooks", json!({"BeforeCreate": ["h"]}), "hooks"),
        ("replaceWith", json!([urn("a")]), "replaceWith"),
        ("extensionRef", json!("r"), "extensionParameterization"),
        ("snippetID", json!("s"), "snippets-prototype"),
    ] {
        let mut state = resource("b");
        state[member] = value;
        let made = json!({"kind": 1, "operationID": 1, "state": state});
        let gone = json!({"kind": 1, "operationID": 2, "removeNew": 1});
        let entries = [made, gone];
        assert_eq!(envelope(&entries[..1]), (json!(4), json!([feature])));
        assert_eq!(envelope(&entries), (json!(3), Value::Null));
        let begun =
            json!({"kind": 0, "operationID": 1, "operation": {"type": "creating", "resource": state}});
        assert_eq!(envelope(&[begun]), (json!(4), json!([feature])));
    }
    let bytes = json!({"kind": 2, "operationID": 1, "requiresByteString": true});
    let snippets = json!({"kind": 9, "snippets": [{"uuid": "1"}]});
    assert_eq!(
        envelope(&[bytes, json!({"kind": 7}), snippets]),
        (json!(4), json!(["byteString", "snippets-prototype"]))
    );
}

#[test]
fn a_write_replaces_the_base_and_keeps_the_marks() {
    let result = replayed(
        &base_of(&["a", "b"]),
        &[
            json!({"kind": 1, "operationID": 1, "removeOld": 1}),
            json!({"kind": 5, "newSnapshot": {"resources": [resource("c"), resource("d"), resource("e")]}}),
        ],
    );
    assert_eq!(names(&result), ["c", "e"]);
}

#[test]
fn extensions_of_the_base_win_and_snippets_are_replaced() {
    let base = json!({"version": 3, "deployment": {"extensions": {"r": {"name": "old"}}, "snippets": [{"uuid": "1"}]}});
    let result = replayed(
        &base.to_string(),
        &[
            json!({"kind": 8, "extensionRef": "r", "extension": {"name": "new"}}),
            json!({"kind": 8, "extensionRef": "s", "extension": {"name": "other"}}),
            json!({"kind": 9}),
        ],
    );
    assert_eq!(deployment(&result)["extensions"], json!({"r": {"name": "old"}, "s": {"name": "other"}}));
    assert_eq!(deployment(&result)["snippets"], Value::Null);
}

#[test]
fn unchanged_resources_keep_their_bytes_and_places() {
    let base = r#"{"later":[1e400],"version":3,"deployment":{"manifest":{"time":"2020-01-01T00:00:00Z","host":"x","plugins":[{}],"magic":"","version":""},"zone":"\u00e9","resources":[{"type":"t","x":12345678901234567890,"urn":"urn:pulumi:dev::p::t::a","inputs":{"f":1.0E+2}, "delete" : false}],"metadata":{"mine":-0}}}"#;
    let body = journal(&[json!({"kind": 1, "operationID": 1, "deleteOld": 0})]);
    let result = replay(Some(base.as_bytes()), parse_batch(body.as_bytes()).unwrap(), INSTANT).unwrap();
    let expected = base
        .replace("2020-01-01T00:00:00Z", "2026-01-02T03:04:05.000000006Z")
        .replace(r#","plugins":[{}]"#, "")
        .replace(r#", "delete" : false"#, r#","delete":true"#);
    assert_eq!(String::from_utf8_lossy(&result.text), expected);
    assert_eq!(inspect(&result.text).unwrap().manifest_time, Some(INSTANT));
}

#[test]
fn an_update_that_changes_nothing_says_so() {
    let base = base_of(&["a", "b"]);
    let same = [
        json!({"kind": 0, "operationID": 1}),
        json!({"kind": 1, "operationID": 1, "state": resource("a"), "removeOld": 0}),
        json!({"kind": 1, "operationID": 2, "state": resource("b"), "removeOld": 1}),
    ];
    let result = replayed(&base, &same);
    assert!(result.unchanged && same_state(base.as_bytes(), &result.text).unwrap());

    // Cut after the second resource, the two have changed places.
    let result =
        replayed(&base, &[json!({"kind": 1, "operationID": 2, "state": resource("b"), "removeOld": 1})]);
    assert!(!result.unchanged);
    assert!(!replay(None, Vec::new(), INSTANT).unwrap().unchanged);
}

#[test]
fn readers_get_the_outputs_and_the_secrets_provider() {
    let stack = json!({"urn": "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev", "type": "pulumi:pulumi:Stack",
        "custom": false});
    let mut with_outputs = stack.clone();
    with_outputs["outputs"] = json!({"url": "x"});
    let result = replayed(
        &base_of(&[]),
        &[
            json!({"kind": 6, "secretsProvider": {"type": "service", "state": {"a": 1}}}),
            json!({"kind": 1, "operationID": 1, "state": stack}),
            json!({"kind": 4, "operationID": 2, "state": with_outputs, "removeNew": 1}),
        ],
    );
    assert_eq!(result.outputs.as_deref(), Some(r#"{"url":"x"}"#));
    assert_eq!(result.secrets_providers.as_deref(), Some(r#"{"state":{"a":1},"type":"service"}"#));
    let inspection = inspect(&result.text).unwrap();
    assert_eq!(inspection.outputs, result.outputs.as_deref());
    assert_eq!(inspection.secrets_providers, result.secrets_providers.as_deref());
}

#[test]
fn a_state_before_version_3_lists_dependencies_of_its_inputs() {
    let base = json!({"version": 2, "deployment": {"resources": [resource("a"),
        {"urn": urn("b"), "type": "t:m:T", "inputs": {"p": 1, "q": 2}, "dependencies": [urn("a")]}]}});
    let result = replay(Some(base.to_string().as_bytes()), Vec::new(), INSTANT).unwrap();
    let expected = json!({"p": [urn("a")], "q": [urn("a")]});
    assert_eq!(deployment(&result)["resources"][1]["propertyDependencies"], expected);
}

#[test]
fn the_manifest_keeps_the_base_version_with_its_own_magic() {
    let base = r#"{"version":3,"deployment":{"manifest":{"time":"","magic":"wrong","version":"v3.274.1"}}}"#;
    let result = replay(Some(base.as_bytes()), Vec::new(), INSTANT).unwrap();
    assert_eq!(result.integrity_error, None);
    let manifest = &deployment(&result)["manifest"];
    assert_eq!(manifest["version"], "v3.274.1");
    assert_eq!(manifest["magic"], crate::domain::integrity::magic("v3.274.1"));
}

#[test]
fn a_base_that_is_not_a_deployment_is_an_error() {
    for base in ["", "null", "{}", r#"{"version":5}"#, r#"{"version":3,"deployment":{"resources":{}}}"#] {
        assert!(replay(Some(base.as_bytes()), Vec::new(), INSTANT).is_err(), "{base}");
    }
}

#[test]
fn a_batch_without_entries_is_empty() {
    for body in ["{}", r#"{"entries":[]}"#, r#"{"entries":null,"more":{}}"#] {
        assert_eq!(parse_batch(body.as_bytes()).unwrap().len(), 0, "{body}");
    }
    for body in ["", "[]", r#"{"entries":{}}"#, r#"{"entries":[]}}"#, r#"{"entries":[1e]}"#] {
        assert!(matches!(parse_batch(body.as_bytes()), Err(BatchError::Malformed(_))), "{body}");
    }
}

#[test]
fn an_invalid_entry_is_refused_with_its_place_and_reason() {
    for (entry, reason) in [
        (r#"{"kind":1,"sequenceID":1}"#, "`version` is missing"),
        (r#"{"version":0,"kind":1,"sequenceID":1}"#, "entry version 0 is not known"),
        (r#"{"version":3,"kind":1,"sequenceID":1}"#, "entry version 3 is not known"),
        (r#"{"version":1,"sequenceID":1}"#, "`kind` is missing"),
        (r#"{"version":1,"kind":11,"sequenceID":1}"#, "entry kind 11 is not known"),
        (r#"{"version":1,"kind":-1,"sequenceID":1}"#, "entry kind -1 is not known"),
        (r#"{"version":1,"kind":10,"sequenceID":1}"#, "needs entry version 2"),
        (r#"{"version":1,"kind":1,"sequenceID":0}"#, "`sequenceID` must be 1 or more"),
        (r#"{"version":1,"kind":1}"#, "`sequenceID` must be 1 or more"),
        (r#"{"version":1,"kind":1,"sequenceID":1.0}"#, "expected"),
        (r#"{"version":1,"kind":1,"sequenceID":1,"removeOld":"0"}"#, "`removeOld`: expected an integer"),
        (r#"{"version":1,"kind":1,"sequenceID":1,"removeOld":-1}"#, "`removeOld` must be 0 or more"),
        (r#"{"version":1,"kind":1,"sequenceID":1,"state":[]}"#, "`state`: expected an object"),
        (r#"{"version":1,"kind":1,"sequenceID":1,"state":{"urn":"u"}}"#, "a resource with a `type`"),
        (
            r#"{"version":1,"kind":1,"sequenceID":1,"state":{"urn":7,"type":"t"}}"#,
            "`state.urn`: expected a string",
        ),
        (
            r#"{"version":1,"kind":0,"sequenceID":1,"operation":{"type":"eating","resource":{"urn":"u","type":"t"}}}"#,
            "an operation of type creating",
        ),
        (r#"{"version":1,"kind":0,"sequenceID":1,"operation":{"type":"creating"}}"#, "with a `resource`"),
        (r#"{"version":1,"kind":5,"sequenceID":1}"#, "needs a `newSnapshot`"),
        (r#"{"version":1,"kind":6,"sequenceID":1,"secretsProvider":null}"#, "needs a `secretsProvider`"),
        (r#"{"version":1,"kind":8,"sequenceID":1,"extension":{}}"#, "needs an `extensionRef`"),
        ("7", "expected an object"),
    ] {
        let message = refusal(entry);
        assert!(message.contains(reason), "{entry}: {message}");
        assert!(
            message.contains("entry 0 of the batch") && message.contains("upgrade the server"),
            "{message}"
        );
    }
    let message = refusal(r#"{"sequenceID":17,"kind":99,"version":1}"#);
    assert!(message.contains("sequenceID 17"), "{message}");
}

#[test]
fn members_that_are_not_known_or_null_do_not_matter() {
    let entry = r#"{"version":1,"kind":1,"sequenceID":1,"operationID":1,"removeOld":null,"state":null,"layout":null,"mood":[{}]}"#;
    assert_eq!(parse_batch(format!(r#"{{"entries":[{entry}]}}"#).as_bytes()).unwrap().len(), 1);
}

#[test]
fn a_batch_has_a_limit() {
    let entry = r#"{"version":1,"kind":7,"sequenceID":1}"#;
    let body = |count: usize| format!(r#"{{"entries":[{}]}}"#, vec![entry; count].join(","));
    assert!(parse_batch(body(ENTRIES_PER_BATCH_MAX).as_bytes()).is_ok());
    let too_many = body(ENTRIES_PER_BATCH_MAX + 1);
    assert!(matches!(parse_batch(too_many.as_bytes()), Err(BatchError::TooManyEntries)));
}

#[test]
fn unreadable_batches_and_entries_of_a_log_are_skipped() {
    let body = r#"{"entries":[{"version":9,"kind":1,"sequenceID":4},{"version":1,"kind":7,"sequenceID":5}]}"#;
    let mut entries = read_batch(body.as_bytes());
    entries.extend(read_batch(b"\xff"));
    let result = replay(None, entries, INSTANT).unwrap();
    let skipped: Vec<i64> = result.skipped.iter().map(|skipped| skipped.sequence_id).collect();
    assert_eq!(skipped, [0, 4]);
}

//! Metadata of Terraform states: labels, filters, the label policy, schemas of outputs, deleted states, and
//! outputs of states and stacks together.

use std::num::NonZeroU64;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::ports::{Order, Query};
use statewright_shared::settings::{Retention, Settings};
use statewright_tests::app::{ORG, TestApp, USER};

use crate::states::lifecycle::{text, with_settings};
use crate::world::{Stack, deployment, new_project};

fn list_path(tail: &str) -> String {
    format!("/api/orgs/{ORG}/{tail}")
}

/// Creates a state with these labels, and returns its path.
async fn made(app: &TestApp, project: &str, state: &str, labels: &Value) -> String {
    let body = json!({ "project": project, "state": state, "labels": labels });
    let made = app.post(&list_path("tfstates"), &body).send().await.expect(200);
    assert_eq!(&made["labels"], labels);
    format!("/api/tfstates/{}", made["id"].as_str().unwrap())
}

/// The text after `?` in a query.
fn encoded(name: &str, value: &str) -> String {
    let escaped: String = value.bytes().map(|byte| format!("%{byte:02x}")).collect();
    format!("{name}={escaped}")
}

/// The states in a list, over all of its pages.
async fn listed(app: &TestApp, query: &str) -> Vec<String> {
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let page = app.get(&list_path(&format!("tfstates?{query}{token}"))).send().await.expect(200);
        found.extend(
            page["states"].as_array().unwrap().iter().map(|it| it["state"].as_str().unwrap().to_owned()),
        );
        match page["continuationToken"].as_str() {
            Some(next) => token = format!("&continuationToken={next}"),
            None => return found,
        }
    }
}

#[tokio::test]
async fn labels_have_types_and_are_merged() {
    let app = TestApp::memory().await;
    let project = new_project();
    let labels = json!({ "env": "dev", "team/size": 3, "ratio": -0.5, "critical": true });
    let path = made(&app, &project, "prod", &labels).await;
    let change = json!({ "labels": { "env": "prod", "ratio": null, "never": null, "text": "3" } });
    let edited = app.patch(&path, &change).send().await.expect(200);
    let expected = json!({ "env": "prod", "team/size": 3, "critical": true, "text": "3" });
    assert_eq!(edited["labels"], expected);
    // Sending the same again changes nothing, and an edit of something else keeps the labels.
    app.patch(&path, &change).send().await.expect(200);
    app.patch(&path, &json!({ "state": "stage" })).send().await.expect(200);
    app.post(&format!("/tfstate/{}", path.rsplit('/').next().unwrap()), &text(1, &["a"]))
        .send()
        .await
        .expect(200);
    for shown in [
        app.get(&path).send().await.expect(200),
        app.get(&list_path(&format!("tfstates?project={project}"))).send().await.expect(200)["states"][0]
            .clone(),
    ] {
        assert_eq!(
            (&shown["labels"], &shown["state"], &shown["version"]),
            (&expected, &"stage".into(), &1.into())
        );
    }
    let record = app.take_audit().into_iter().find(|record| record["action"] == "state.edit").unwrap();
    assert_eq!(record["detail"], "labels env never ratio text");
}

#[tokio::test]
async fn an_invalid_label_is_refused_on_every_path() {
    let app = TestApp::memory().await;
    let path = made(&app, &new_project(), "prod", &json!({})).await;
    let many: Value =
        (0..33).map(|number| (format!("k{number}"), json!(1))).collect::<serde_json::Map<_, _>>().into();
    for (labels, words) in [
        (json!({ "Env": "x" }), "\"Env\" is not a valid label key"),
        (json!({ "": "x" }), "not a valid label key"),
        (json!({ "a-b": "x" }), "not a valid label key"),
        (json!({ "env": ["x"] }), "invalid value of the label env: use a text, a number, true or false"),
        (json!({ "env": {} }), "the label env"),
        (json!({ "env": "x".repeat(257) }), "256 bytes"),
        (json!({ "env": "a\nb" }), "control characters"),
        (json!({ "env": "a\u{202e}b" }), "invalid value of the label env: it has hidden characters"),
        (json!({ "env": 9_007_199_254_740_993_i64 }), "2^53"),
        (many, "too many labels: use at most 32"),
        (json!("env=dev"), "invalid request body"),
    ] {
        let body = json!({ "project": new_project(), "labels": labels });
        let refused = app.post(&list_path("tfstates"), &body).send().await.refused(400);
        assert!(refused.contains(words), "{labels}: {refused}");
        let refused = app.patch(&path, &json!({ "labels": labels })).send().await.refused(400);
        assert!(refused.contains(words), "{labels}: {refused}");
    }
    assert_eq!(app.get(&path).send().await.expect(200)["labels"], json!({}));
}

#[tokio::test]
async fn lists_are_filtered_by_labels() {
    let app = TestApp::memory().await;
    let project = new_project();
    for (state, labels) in [
        ("a", json!({ "env": "dev", "tier": 1 })),
        ("b", json!({ "env": "prod", "tier": 2, "team/name": "web" })),
        ("c", json!({ "env": "prod", "tier": 3, "critical": true })),
        ("d", json!({})),
    ] {
        made(&app, &project, state, &labels).await;
    }
    for (filter, expected) in [
        (r#"env == "prod""#, vec!["b", "c"]),
        (r#"env != "prod""#, vec!["a", "d"]),
        ("tier > 1 and not critical == true", vec!["b"]),
        (r#"env in ["dev", "stage"] or team/name is not empty"#, vec!["a", "b"]),
        ("env is empty", vec!["d"]),
        ("env matches `^p` and tier not in [2]", vec!["c"]),
        (r#""we" in team/name"#, vec!["b"]),
        ("tier == \"1\"", vec![]),
    ] {
        let query = format!("project={project}&{}", encoded("filter", filter));
        assert_eq!(listed(&app, &query).await, expected, "{filter}");
    }
    for (query, expected) in [
        ("label=env=prod".to_owned(), vec!["b", "c"]),
        ("label=env=prod&label=tier=2".to_owned(), vec!["b"]),
        ("label=critical=true".to_owned(), vec!["c"]),
        (format!("label=env=prod&{}", encoded("filter", "tier >= 3")), vec!["c"]),
        ("label=env=".to_owned(), vec![]),
    ] {
        assert_eq!(listed(&app, &format!("project={project}&{query}")).await, expected, "{query}");
    }
    for (query, words) in [
        (encoded("filter", "env = 1"), "the filter, at character 5: write `==`"),
        (encoded("filter", ""), "at character 1"),
        (encoded("filter", &"(".repeat(5_000)), "at most 4096"),
        (encoded("filter", &"(".repeat(500)), "nested deeper"),
        (encoded("filter", "env matches `(`"), "not a pattern"),
        ("label=env".to_owned(), "key=value"),
        ("label=Env=x".to_owned(), "not a valid label key"),
        ((0..33).map(|_| "label=a=b&").collect(), "too many labels: use at most 32"),
        ("continuationToken=x".to_owned(), "invalid continuation token"),
        ("project=a%20b".to_owned(), "not a valid project name"),
    ] {
        for path in ["tfstates", "tfstate-policy/compliance"] {
            let refused = app.get(&list_path(&format!("{path}?{query}"))).send().await.refused(400);
            assert!(refused.contains(words), "{path} {query}: {refused}");
        }
    }
}

/// A page is a page of the list, whatever the filter leaves of it.
#[tokio::test]
async fn a_filtered_list_has_pages_of_bounded_work() {
    let app = TestApp::memory().await;
    let project = new_project();
    for number in 0..201 {
        let body = json!({ "project": project, "state": format!("s{number:03}") });
        app.post(&list_path("tfstates"), &body).send().await.expect(200);
    }
    made(&app, &project, "z", &json!({ "env": "prod" })).await;
    let query = format!("tfstates?project={project}&label=env=prod");
    let page = app.get(&list_path(&query)).send().await.expect(200);
    assert_eq!(page["states"], json!([]));
    assert!(page["continuationToken"].is_string());
    assert_eq!(listed(&app, &format!("project={project}&label=env=prod")).await, ["z"]);
}

fn strict(version: u64) -> Value {
    json!({
        "version": version,
        "policy": {
            "allowedKeys": ["env", "owner", "team", "tier"], "allowedValues": { "env": ["dev", "prod"], "tier": [1, 2] },
            "reservedPrefixes": ["owner"], "requiredKeys": ["env"], "immutableKeys": ["env"],
            "maxKeys": 3, "maxValueLength": 8,
        },
    })
}

async fn set_policy(app: &TestApp, body: &Value) -> statewright_tests::app::Answer {
    app.request(Method::PUT, &list_path("tfstate-policy")).json(body).send().await
}

#[tokio::test]
async fn the_label_policy_is_one_document_with_versions() {
    let app = TestApp::memory().await;
    let path = list_path("tfstate-policy");
    let none = app.get(&path).send().await.expect(200);
    assert_eq!(
        (&none["version"], &none["changed"], &none["changedBy"]),
        (&0.into(), &Value::Null, &Value::Null)
    );
    assert_eq!((&none["policy"]["maxKeys"], &none["policy"]["maxValueLength"]), (&32.into(), &256.into()));
    let set = set_policy(&app, &strict(0)).await.expect(200);
    assert_eq!((&set["version"], &set["changedBy"]), (&1.into(), &USER.into()));
    assert_eq!(set["policy"], strict(0)["policy"]);
    // Its answer was lost.
    assert_eq!(set_policy(&app, &strict(0)).await.expect(200), set);
    assert_eq!(app.get(&path).send().await.expect(200), set);
    // A second user who read the same version is refused.
    let other = json!({ "version": 0, "policy": { "maxKeys": 2 } });
    let words = set_policy(&app, &other).await.refused(409);
    assert!(words.contains("is at version 1, which alice wrote at ") && words.contains("read it"), "{words}");
    assert_eq!(set_policy(&app, &json!({ "version": 1, "policy": {} })).await.expect(200)["version"], 2);
    let bob = app.member("bob", "laptop").await;
    let again = app.request(Method::PUT, &path).token(&bob).json(&json!({ "version": 1, "policy": {} }));
    again.send().await.refused(409);
    for (body, words) in [
        (json!({ "version": 2 }), "missing field `policy`"),
        (json!({ "policy": {} }), "missing field `version`"),
        (json!({ "version": 2, "policy": { "allowedKey": [] } }), "unknown field `allowedKey`"),
        (json!({ "version": 2, "policy": { "allowedKeys": ["A"] } }), "\"A\" is not a valid label key"),
        (json!({ "version": 2, "policy": { "allowedValues": { "env": [[]] } } }), "true or false"),
        (json!({ "version": 2, "policy": { "maxKeys": 33 } }), "maxKeys is from 1 to 32"),
        (
            json!({ "version": 2, "policy": { "requiredKeys": ["a"], "allowedKeys": ["b"] } }),
            "requiredKeys names a",
        ),
    ] {
        let refused = set_policy(&app, &body).await.refused(400);
        assert!(refused.contains(words), "{body}: {refused}");
    }
    let record = app.take_audit().into_iter().find(|record| record["action"] == "policy.set").unwrap();
    assert_eq!((&record["detail"], &record["organization"]), (&"version 1".into(), &ORG.into()));
}

#[tokio::test]
async fn the_label_policy_is_enforced_on_edits_and_otherwise_reported() {
    let app = TestApp::memory().await;
    let project = new_project();
    let old = made(&app, &project, "old", &json!({ "env": "test", "color": "red" })).await;
    set_policy(&app, &strict(0)).await.expect(200);
    for (labels, words) in [
        (json!({}), "requiredKeys: the label env is missing: one of \"dev\", \"prod\""),
        (json!({ "env": "test" }), "allowedValues: the value of env is not one of \"dev\", \"prod\""),
        (
            json!({ "env": "dev", "color": 1 }),
            "allowedKeys: the key color is not one of env, owner, team, tier",
        ),
        (
            json!({ "env": "dev", "owner": "me" }),
            "reservedPrefixes: the key owner begins with owner, which is reserved",
        ),
        (json!({ "env": "dev", "team": "far-too-long" }), "maxValueLength: the value of team has 12 bytes"),
        (
            json!({ "env": "dev", "team": "a", "tier": 1, "x": 1 }),
            "maxKeys: the state has 4 labels, and at most 3 are allowed",
        ),
    ] {
        let body = json!({ "project": project, "state": "new", "labels": labels });
        let refused = app.post(&list_path("tfstates"), &body).send().await.refused(400);
        let expected = format!("the label policy of {ORG} (version 1) does not allow this: {words}");
        assert!(refused.contains(&expected), "{refused}");
    }
    let path = made(&app, &project, "new", &json!({ "env": "dev" })).await;
    for labels in [json!({ "env": "prod" }), json!({ "env": null })] {
        let refused = app.patch(&path, &json!({ "labels": labels })).send().await.refused(400);
        assert!(refused.contains("immutableKeys: the label env stays \"dev\""), "{refused}");
    }
    app.patch(&path, &json!({ "labels": { "env": "dev", "team": "web" } })).send().await.expect(200);
    // An edit that keeps the labels is not checked against the policy, and a client's first write is never
    // refused for it.
    app.patch(&old, &json!({ "policy": { "strict": true } })).send().await.expect(200);
    app.post(&format!("/tfstate/{ORG}/{project}/byclient"), &text(1, &["a"])).send().await.expect(200);

    let report =
        app.get(&list_path(&format!("tfstate-policy/compliance?project={project}"))).send().await.expect(200);
    assert_eq!((&report["policyVersion"], &report["checked"]), (&1.into(), &3.into()));
    let found: Vec<(&str, Vec<&str>)> = report["states"]
        .as_array()
        .unwrap()
        .iter()
        .map(|state| {
            let broken = state["violations"].as_array().unwrap().iter();
            (state["state"].as_str().unwrap(), broken.map(|it| it["rule"].as_str().unwrap()).collect())
        })
        .collect();
    assert_eq!(found, [("byclient", vec!["requiredKeys"]), ("old", vec!["allowedKeys", "allowedValues"])]);
    let broken = &report["states"][1]["violations"][0];
    assert_eq!(
        (&broken["key"], &report["states"][1]["labels"]),
        (&"color".into(), &json!({ "env": "test", "color": "red" }))
    );
    let only = app.get(&list_path("tfstate-policy/compliance?label=env=test")).send().await.expect(200);
    assert_eq!(only["checked"], 1);
    // Corrected in one edit.
    set_policy(&app, &json!({ "version": 1, "policy": { "requiredKeys": ["env"], "allowedKeys": ["env"] } }))
        .await
        .expect(200);
    app.patch(&old, &json!({ "labels": { "env": "dev" } })).send().await.refused(400);
    app.patch(&old, &json!({ "labels": { "env": "dev", "color": null } })).send().await.expect(200);
}

#[tokio::test]
async fn deleted_states_are_listed_until_they_are_erased() {
    let app = TestApp::memory().await;
    let project = new_project();
    let kept = made(&app, &project, "kept", &json!({})).await;
    let path = made(&app, &project, "gone", &json!({ "env": "dev" })).await;
    let id = path.rsplit('/').next().unwrap();
    app.post(&format!("/tfstate/{id}"), &text(1, &["a", "b"])).send().await.expect(200);
    app.request(Method::DELETE, &format!("{path}?force=true")).send().await.expect(204);
    app.request(Method::DELETE, &kept).send().await.expect(204);
    app.post(&format!("{kept}/undelete"), &Value::Null).send().await.expect(200);

    let removed = async || app.get(&list_path("tfstate-removed")).send().await.expect(200);
    let page = removed().await;
    let [state] = page["states"].as_array().unwrap().as_slice() else { panic!("{page}") };
    assert_eq!(
        (&state["id"], &state["project"], &state["state"]),
        (&id.into(), &project.clone().into(), &"gone".into())
    );
    assert_eq!((&state["version"], &state["resourceCount"]), (&1.into(), &2.into()));
    assert_eq!((&state["removedBy"], &state["labels"]), (&USER.into(), &json!({ "env": "dev" })));
    let day = |name: &str| state[name].as_str().unwrap()[..10].to_owned();
    assert!(day("removed") < day("until"), "{state}");
    // Its name is free, and both can be deleted under it.
    let second = made(&app, &project, "gone", &json!({})).await;
    app.request(Method::DELETE, &second).send().await.expect(204);
    assert_eq!(removed().await["states"].as_array().unwrap().len(), 2);
    for (query, count) in [
        (format!("project={project}"), 2),
        (format!("project={project}&state=gone"), 2),
        (format!("project={project}&state=gon"), 0),
        ("project=other".to_owned(), 0),
    ] {
        let page = app.get(&list_path(&format!("tfstate-removed?{query}"))).send().await.expect(200);
        assert_eq!(page["states"].as_array().unwrap().len(), count, "{query}");
    }
    app.get(&list_path("tfstate-removed?state=gone")).send().await.refused(400);
    app.post(&format!("{path}/undelete"), &Value::Null).send().await.expect(200);
    assert_eq!(app.get(&path).send().await.expect(200)["labels"], json!({ "env": "dev" }));
    let page = removed().await;
    assert_eq!(page["states"][0]["id"].as_str(), second.rsplit('/').next());

    app.advance(Duration::from_secs(31 * 86_400));
    app.sweep().await;
    assert_eq!(removed().await, json!({ "states": [] }));
    app.post(&format!("{second}/undelete"), &Value::Null).send().await.refused(404);
    app.get(&list_path("tfstate-removed?continuationToken=x")).send().await.refused(400);
}

/// A state with outputs of these values.
fn with_outputs(serial: u64, outputs: &[(&str, Value)]) -> Value {
    let mut state = text(serial, &["a"]);
    let outputs = outputs.iter().map(|(name, value)| {
        (
            (*name).to_owned(),
            json!({ "value": value, "type": "dynamic", "sensitive": name.starts_with("secret") }),
        )
    });
    state["outputs"] = Value::Object(outputs.collect());
    state
}

fn standings(outputs: &Value) -> Vec<(&str, &str)> {
    let outputs = outputs.as_array().unwrap().iter();
    outputs
        .map(|it| (it["name"].as_str().unwrap(), it["validity"]["status"].as_str().unwrap_or("none")))
        .collect()
}

#[tokio::test]
async fn each_write_has_a_verdict_on_its_outputs() {
    let app = TestApp::memory().await;
    let path = made(&app, &new_project(), "prod", &json!({})).await;
    let state = format!("/tfstate/{}", path.rsplit('/').next().unwrap());
    let schemas = format!("{path}/schemas");
    let version = async |number: u64| app.get(&format!("{path}/versions/{number}")).send().await.expect(200);
    assert_eq!(app.get(&schemas).send().await.expect(200), json!({ "infer": false, "outputs": [] }));

    let first = with_outputs(
        1,
        &[("url", json!("http://a")), ("secret", json!({ "hunter2": 1 })), ("other", json!(1))],
    );
    app.post(&state, &first).send().await.expect(200);
    assert_eq!(
        standings(&version(1).await["outputs"]),
        [("other", "none"), ("secret", "none"), ("url", "none")]
    );

    let set = json!({ "outputs": {
        "url": { "type": "string", "pattern": "^https://" },
        "secret": { "additionalProperties": { "type": "string" } },
        "gone": { "type": "null" },
    } });
    let shown = app.patch(&schemas, &set).send().await.expect(200);
    // The current version is checked at once.
    assert_eq!(standings(&shown["outputs"]), [("gone", "none"), ("secret", "invalid"), ("url", "invalid")]);
    let url = &shown["outputs"][2];
    assert_eq!((&url["changedBy"], &url["inferredFrom"]), (&USER.into(), &Value::Null));
    assert_eq!(url["schema"], set["outputs"]["url"]);
    let expected = json!({ "status": "invalid", "message": "it does not match \"^https://\"", "path": "$" });
    assert_eq!(url["validity"], expected);
    let judged = [("other", "not_validated"), ("secret", "invalid"), ("url", "invalid")];
    assert_eq!(standings(&version(1).await["outputs"]), judged);
    assert_eq!(standings(&app.get(&path).send().await.expect(200)["outputs"]), judged);

    // An invalid write is accepted; no message contains a sensitive value.
    let second = with_outputs(2, &[("url", json!("https://a")), ("secret", json!({ "hunter3": 4711 }))]);
    app.post(&state, &second).send().await.expect(200);
    let outputs = app.get(&format!("{path}/outputs")).send().await.expect(200);
    assert_eq!(outputs["validity"]["url"], json!({ "status": "valid" }));
    let secret = json!({ "status": "invalid", "message": "it is not of type string", "path": "$.*" });
    assert_eq!(outputs["validity"]["secret"], secret);
    let text = version(2).await.to_string();
    assert!(!text.contains("hunter3") && !text.contains("4711"), "{text}");
    assert_eq!(standings(&version(1).await["outputs"]), judged, "a version keeps its verdict");

    // A restored version is checked against the current schemas.
    app.patch(&schemas, &json!({ "outputs": { "url": true, "secret": null, "gone": null } }))
        .send()
        .await
        .expect(200);
    app.post(&format!("{path}/versions/1/restore"), &Value::Null).send().await.expect(200);
    let restored = [("other", "not_validated"), ("secret", "not_validated"), ("url", "valid")];
    assert_eq!(standings(&version(3).await["outputs"]), restored);
    app.patch(&schemas, &json!({ "outputs": { "url": null } })).send().await.expect(200);
    assert_eq!(app.get(&schemas).send().await.expect(200), json!({ "infer": false, "outputs": [] }));
    assert_eq!(
        standings(&version(3).await["outputs"]),
        [("other", "none"), ("secret", "none"), ("url", "none")]
    );
    assert!(app.get(&path).send().await.expect(200).get("outputs").is_none());
}

#[tokio::test]
async fn schemas_are_inferred_from_the_first_upload_on_request() {
    let app = TestApp::embedded().await;
    let path = made(&app, &new_project(), "prod", &json!({})).await;
    let state = format!("/tfstate/{}", path.rsplit('/').next().unwrap());
    let schemas = format!("{path}/schemas");
    let set = json!({ "infer": true, "outputs": { "url": { "type": "string" } } });
    app.patch(&schemas, &set).send().await.expect(200);
    let first = with_outputs(
        1,
        &[("url", json!("a")), ("ports", json!([80, 443])), ("secret", json!({ "hunter2": 1 }))],
    );
    app.post(&state, &first).send().await.expect(200);
    let shown = app.get(&schemas).send().await.expect(200);
    assert_eq!(standings(&shown["outputs"]), [("ports", "valid"), ("secret", "valid"), ("url", "valid")]);
    let (ports, secret) = (&shown["outputs"][0], &shown["outputs"][1]);
    assert_eq!(ports["schema"], json!({ "type": "array", "items": { "type": "number" } }));
    assert_eq!((&ports["inferredFrom"], &ports["changedBy"]), (&1.into(), &USER.into()));
    assert_eq!(secret["schema"], json!({ "type": "object" }));
    // Inferred schemas stay, and later writes are checked against them.
    app.post(&state, &with_outputs(2, &[("ports", json!(["http"])), ("late", json!(true))]))
        .send()
        .await
        .expect(200);
    let shown = app.get(&schemas).send().await.expect(200);
    let late = [("late", "valid"), ("ports", "invalid"), ("secret", "none"), ("url", "none")];
    assert_eq!(standings(&shown["outputs"]), late);
    assert_eq!(shown["outputs"][1]["validity"]["path"], "$[0]");
    // For a state with a version, they are inferred at once.
    let other = made(&app, &new_project(), "prod", &json!({})).await;
    app.post(&format!("/tfstate/{}", other.rsplit('/').next().unwrap()), &first).send().await.expect(200);
    let shown = app.patch(&format!("{other}/schemas"), &json!({ "infer": true })).send().await.expect(200);
    assert_eq!(standings(&shown["outputs"]), [("ports", "valid"), ("secret", "valid"), ("url", "valid")]);
    // Without inference and schemas, it is as before.
    let none = json!({ "infer": false, "outputs": { "ports": null, "secret": null, "url": null } });
    let shown = app.patch(&format!("{other}/schemas"), &none).send().await.expect(200);
    assert_eq!(shown, json!({ "infer": false, "outputs": [] }));
    for (what, data) in app.at_rest().await {
        let text = String::from_utf8_lossy(&data).into_owned();
        assert!(!text.contains("hunter2"), "{what}");
    }
}

#[tokio::test]
async fn an_invalid_schema_is_refused_with_its_place_and_no_effect() {
    let app = TestApp::memory().await;
    let path = format!("{}/schemas", made(&app, &new_project(), "prod", &json!({})).await);
    let many: serde_json::Map<_, _> = (0..101).map(|number| (format!("o{number}"), json!(true))).collect();
    let long: serde_json::Map<_, _> =
        (0..8).map(|number| (format!("o{number}"), json!({ "title": "x".repeat(30_000) }))).collect();
    for (body, status, words) in [
        (json!({ "outputs": { "url": { "typ": "string" } } }), 400, "the output url: the schema, at #/typ"),
        (json!({ "outputs": { "url": 7 } }), 400, "an object, true or false"),
        (json!({ "outputs": { "url": { "$ref": "https://example.com/" } } }), 400, "of its own"),
        (json!({ "outputs": { "url": { "pattern": "(a{100}){100}" } } }), 400, "not a pattern"),
        (json!({ "outputs": { "": true } }), 400, "use 1 to 256 bytes"),
        (json!({ "outputs": many }), 400, "too many outputs: use at most 100"),
        (json!({ "outputs": long }), 413, "all schemas of a state"),
        (json!({ "outputs": { "url": { "title": "x".repeat(40_000) } } }), 400, "at most 32768"),
        (json!({ "inferred": true }), 400, "unknown field `inferred`"),
        (json!("infer"), 400, "invalid request body"),
    ] {
        let refused = app.patch(&path, &body).send().await.refused(status);
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!(app.get(&path).send().await.expect(200), json!({ "infer": false, "outputs": [] }));
}

#[tokio::test]
async fn an_encrypted_state_has_outputs_that_cannot_be_checked() {
    let app = TestApp::memory().await;
    let path = made(&app, &new_project(), "prod", &json!({})).await;
    let encrypted = json!({ "serial": 1, "lineage": "a", "meta": {}, "encrypted_data": "AA==", "encryption_version": "v0" });
    let state = format!("/tfstate/{}", path.rsplit('/').next().unwrap());
    let set = json!({ "infer": true, "outputs": { "url": true } });
    app.patch(&format!("{path}/schemas"), &set).send().await.expect(200);
    app.post(&state, &encrypted).send().await.expect(200);
    let shown = app.patch(&format!("{path}/schemas"), &set).send().await.expect(200);
    assert_eq!(standings(&shown["outputs"]), [("url", "none")]);
}

/// Deleting a version takes nothing with it that the newest needs, and schemas are deleted with their state.
#[tokio::test]
async fn schemas_outlive_versions_and_go_with_their_state() {
    let retention = Retention { state_versions: NonZeroU64::new(1), ..Retention::DEFAULT };
    let app = with_settings(Settings { retention, ..Settings::DEFAULT }).await;
    let path = made(&app, &new_project(), "prod", &json!({})).await;
    let id = path.rsplit('/').next().unwrap();
    app.patch(&format!("{path}/schemas"), &json!({ "infer": true })).send().await.expect(200);
    for serial in 1..4 {
        app.post(&format!("/tfstate/{id}"), &text(serial, &[])).send().await.expect(200);
    }
    app.sweep().await;
    assert_eq!(
        standings(&app.get(&path).send().await.expect(200)["outputs"]),
        [("password", "valid"), ("url", "valid")]
    );
    app.request(Method::DELETE, &path).send().await.expect(204);
    app.get(&format!("{path}/schemas")).send().await.refused(404);
    app.post(&format!("{path}/undelete"), &Value::Null).send().await.expect(200);
    assert_eq!(app.get(&format!("{path}/schemas")).send().await.expect(200)["infer"], true);
    app.request(Method::DELETE, &path).send().await.expect(204);
    app.advance(Duration::from_secs(31 * 86_400));
    app.sweep().await;
    let query = Query {
        partition: format!("TFSTATE#{id}"),
        prefix: String::new(),
        after: None,
        order: Order::Ascending,
        limit: 10,
    };
    let left = app.context.ledger.query(&query).await.unwrap().items;
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn outputs_of_stacks_and_states_stand_side_by_side() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let sealed = stack.post("/encrypt", &json!({ "plaintext": "Imh1bnRlcjIi" })).send().await.expect(200);
    let secret = json!({
        "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": sealed["ciphertext"],
    });
    let root = json!({
        "urn": format!("urn:pulumi:dev::{0}::pulumi:pulumi:Stack::{0}-dev", stack.project), "custom": false,
        "type": "pulumi:pulumi:Stack",
        "outputs": { "url": "https://stack", "password": secret, "nested": [{ "a": secret }] },
    });
    stack.import(&deployment(&[root])).await;
    let project = &stack.project;
    let path = made(&app, project, "prod", &json!({})).await;
    let id = path.rsplit('/').next().unwrap();
    app.post(&format!("/tfstate/{id}"), &text(1, &[])).send().await.expect(200);
    made(&app, project, "empty", &json!({})).await;
    let encrypted = json!({ "serial": 1, "lineage": "a", "meta": {}, "encrypted_data": "AA==", "encryption_version": "v0" });
    app.post(&format!("/tfstate/{ORG}/{project}/sealed"), &encrypted).send().await.expect(200);

    let (mut sources, mut token) = (Vec::new(), String::new());
    loop {
        let page = app.get(&list_path(&format!("outputs?project={project}{token}"))).send().await.expect(200);
        sources.extend(page["sources"].as_array().unwrap().clone());
        match page["continuationToken"].as_str() {
            Some(next) => token = format!("&continuationToken={next}"),
            None => break,
        }
    }
    let names: Vec<_> = sources
        .iter()
        .map(|it| {
            let of = |name: &str| it[name].as_str().unwrap();
            (of("kind"), of("project"), of("name"), it["version"].as_u64().unwrap(), it["outputs"].clone())
        })
        .collect();
    let named = |name: &str, secret: bool| json!({ "name": name, "secret": secret });
    let of_stack = json!([named("nested", true), named("password", true), named("url", false)]);
    assert_eq!(
        names,
        [
            ("stack", project.as_str(), "dev", 1, of_stack),
            ("tfstate", project.as_str(), "empty", 0, json!([])),
            ("tfstate", project.as_str(), "prod", 1, json!([named("password", true), named("url", false)])),
            ("tfstate", project.as_str(), "sealed", 1, Value::Null),
        ]
    );
    assert_eq!(sources[2]["id"], id);

    let of_stack = app.get(&list_path(&format!("outputs/stack/{project}/dev"))).send().await.expect(200);
    let of_state = app.get(&list_path(&format!("outputs/tfstate/{project}/prod"))).send().await.expect(200);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&of_stack), keys(&of_state));
    assert_eq!(of_stack["outputs"][2], json!({ "name": "url", "secret": false, "value": "https://stack" }));
    // As from its own route: opening it is another request, which is audited.
    assert_eq!(of_stack["outputs"][1], json!({ "name": "password", "secret": true, "value": secret }));
    assert_eq!(of_state["outputs"][0], json!({ "name": "password", "secret": true, "value": "hunter2" }));
    let sealed = app.get(&list_path(&format!("outputs/tfstate/{project}/sealed"))).send().await.expect(200);
    assert_eq!(sealed["outputs"], Value::Null);
    app.get(&list_path("outputs/stack/none/dev")).send().await.refused(404);
    app.get(&list_path("outputs/tfstate/none/dev")).send().await.refused(404);
    app.get(&list_path("outputs/tfstate/a%20b/dev")).send().await.refused(400);
    app.get(&list_path("outputs/other/none/dev")).send().await.refused(404);
}

/// I8: a user who is not a member gets the answer for a missing organization.
#[tokio::test]
async fn i8_walled_labels_schemas_and_outputs_are_hidden_from_others() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let path = made(&app, &stack.project, "prod", &json!({ "env": "dev" })).await;
    let mallory = app.other_user("mallory", "evil-corp").await;
    let of_stack = format!("outputs/stack/{}/dev", stack.project);
    let of_state = format!("outputs/tfstate/{}/prod", stack.project);
    for tail in [
        "tfstates?filter=a",
        "tfstate-removed",
        "tfstate-policy",
        "tfstate-policy/compliance",
        "outputs",
        &of_stack,
        &of_state,
    ] {
        app.get(&list_path(tail)).token(&mallory).send().await.refused(404);
    }
    let policy =
        app.request(Method::PUT, &list_path("tfstate-policy")).json(&json!({ "version": 0, "policy": {} }));
    policy.token(&mallory).send().await.refused(404);
    app.get(&format!("{path}/schemas")).token(&mallory).send().await.refused(404);
    app.patch(&format!("{path}/schemas"), &json!({ "infer": true }))
        .token(&mallory)
        .send()
        .await
        .refused(404);
    app.patch(&path, &json!({ "labels": { "env": "x" } })).token(&mallory).send().await.refused(404);
    assert_eq!(app.get(&path).send().await.expect(200)["labels"], json!({ "env": "dev" }));
}

//! Compares the OpenAPI document with real answers.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use statewright_shared::api::routes::ROUTES;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::document;

use crate::world::{Stack, deployment};

/// The sources of the API.
const API: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/src/api");

/// Answers that the document describes only as JSON or as an object, with the reason.
const NOT_DESCRIBED: &[(&str, &str)] = &[
    ("CreateStack", "it is an empty object, since the client reads one"),
    ("GetDocument", "it is this document"),
    ("FetchRestSpecification", "it is this document"),
    ("ReadState", "it is the state as its client wrote it"),
    ("GetStateText", "it is the state as its client wrote it"),
    ("ReadStateOutputs", "they are the outputs as they stand in the state"),
];

/// The members of a schema without a description of their own: bare objects, and lists of them.
fn bare(schema: &Value, place: &str, say: &mut Vec<String>) {
    for shape in schema["anyOf"].as_array().into_iter().flatten() {
        bare(shape, place, say);
    }
    let below = [schema.get("additionalProperties"), schema.get("items")];
    let members = schema["properties"].as_object();
    match schema["type"].as_str() {
        Some("object") if members.is_none_or(serde_json::Map::is_empty) && below[0].is_none() => {
            say.push(format!("{place} is a bare object"));
        }
        Some("array") if below[1].is_none() => say.push(format!("{place} is a bare list")),
        _ => {}
    }
    below.into_iter().flatten().for_each(|inside| bare(inside, &format!("{place}[]"), say));
    for (name, member) in members.into_iter().flatten() {
        bare(member, &format!("{place}.{name}"), say);
    }
}

#[test]
fn the_document_has_no_bare_answer_but_for_a_few() {
    let mut bare_ones = Vec::new();
    for route in ROUTES {
        let operation = document::operation(route);
        let id = operation["operationId"].as_str().unwrap();
        let Some(json) = operation["responses"]["200"]["content"].get("application/json") else { continue };
        let mut say = Vec::new();
        bare(&json["schema"], id, &mut say);
        if json["schema"] == json!({}) {
            say.push(format!("{id} describes nothing"));
        }
        let is_known = NOT_DESCRIBED.iter().any(|(begin, _)| id.starts_with(begin));
        assert!(!is_known || !say.is_empty(), "{id} is described: take it from the list");
        if !is_known {
            bare_ones.append(&mut say);
        }
    }
    assert!(bare_ones.is_empty(), "{bare_ones:#?}");
}

#[test]
fn a_difference_from_the_document_is_found() {
    let path = format!("/api/orgs/{ORG}/tfstates");
    let found = |body: Value| document::differences("GET", &path, 200, body.to_string().as_bytes());
    let state = json!({
        "id": "x", "project": "net", "state": "dev", "version": 1, "serial": null, "bytes": 1,
        "resourceCount": 2, "lastWrite": null, "labels": {"team": "a"}, "status": "stale", "dependsOn": ["net/b"],
    });
    assert_eq!(found(json!({ "states": [state.clone()], "continuationToken": "x" })), Vec::<String>::new());
    for (member, wrong) in
        [("version", json!("1")), ("bytes", Value::Null), ("new", json!(1)), ("dependsOn", json!([1]))]
    {
        let mut state = state.clone();
        state[member] = wrong;
        assert_eq!(found(json!({ "states": [state] })).len(), 1, "{member}");
    }
    assert_eq!(document::differences("GET", &path, 204, b"").len(), 1, "another status");
    assert_eq!(document::differences("GET", "/tfstate/shop", 204, b""), Vec::<String>::new());
}

/// [`TestApp`] compares each answer of each test with the document. These are the most common ones.
#[tokio::test]
async fn the_document_has_the_members_of_real_answers() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.import(&deployment(&[stack.resource("a")])).await;
    let run = stack.begin().await;
    let of_stack = [
        "",
        "/metadata",
        "/updates",
        "/updates/latest",
        "/updates/1/summary",
        "/updates/1/timeline",
        "/outputs",
    ];
    let others = [
        "/api/capabilities",
        "/api/cli/version",
        "/api/user",
        "/api/user/organizations/default",
        "/api/user/stacks",
        "/api/esc/environments",
        "/healthz",
        "/readyz",
    ];
    let paths = of_stack.iter().map(|tail| format!("{}{tail}", stack.path));
    let members =
        [run.path.clone(), format!("/api/orgs/{ORG}/members"), format!("/api/orgs/{ORG}/templates")];
    for path in paths.chain(others.map(str::to_owned)).chain(members) {
        app.get(&path).send().await.expect(200);
    }
}

#[tokio::test]
async fn the_document_has_a_summary_of_each_route() {
    let app = TestApp::memory().await;
    let document = app.get("/api/openapi").anonymous().send().await.expect(200);
    for route in ROUTES {
        let path = route.path_in_document();
        let operation = &document["paths"][&path][route.method.as_str().to_ascii_lowercase()];
        for member in ["operationId", "summary"] {
            assert!(
                operation[member].as_str().is_some_and(|text| !text.is_empty()),
                "{route:?}: no {member}"
            );
        }
        let done = operation["responses"].as_object().unwrap();
        let is_done = ["200", "201", "204", "303"].iter().any(|status| done.contains_key(*status));
        assert!(is_done, "{route:?}: {done:?}");
        let parameters = operation["parameters"].as_array().unwrap().iter();
        let (in_path, in_query): (Vec<_>, Vec<_>) =
            parameters.partition(|parameter| parameter["in"] == "path");
        for name in in_path.iter().map(|parameter| parameter["name"].as_str().unwrap()) {
            assert!(path.contains(&format!("{{{name}}}")), "{path}: {name}");
        }
        let names: Vec<_> = in_query.iter().map(|parameter| parameter["name"].as_str().unwrap()).collect();
        assert_eq!(names, route.query.iter().map(|parameter| parameter.name).collect::<Vec<_>>(), "{path}");
        for parameter in in_query {
            let is_described = parameter["description"].as_str().is_some_and(|text| !text.is_empty());
            assert!(is_described && parameter["schema"]["type"].is_string(), "{path}: {parameter}");
        }
    }
}

/// A handler with a name in a file of handlers, up to its answer.
fn head_of(handler: &str) -> Option<(String, String)> {
    let mut parts = handler.split("::");
    let (module, name) = (parts.next()?, parts.next()?);
    let source = fs::read_to_string(format!("{API}/handlers/{module}.rs")).unwrap();
    let starts = [format!("async fn {name}("), format!("async fn {name}<")];
    let at = starts.iter().find_map(|start| source.find(start));
    let rest = source[at.unwrap_or_else(|| panic!("{handler} is not found"))..].to_owned();
    let head = rest.split(" -> ").next()?.to_owned();
    Some((head, source))
}

/// A handler gets only the parameters that its row names, so each that it reads is in the document.
#[test]
fn exactly_the_rows_that_read_a_query_name_its_parameters() {
    let parts = fs::read_dir(format!("{API}/routes")).unwrap();
    let table: String = parts.map(|part| fs::read_to_string(part.unwrap().path()).unwrap()).collect();
    let query = fs::read_to_string(format!("{API}/query.rs")).unwrap();
    let mut reading = 0;
    for route in ROUTES {
        let start = format!("    {} \"{}\" =>", route.method, route.path);
        let row = table.split(&start).nth(1).unwrap_or_else(|| panic!("{route:?} is not found"));
        let Some((head, source)) = head_of(row.split_whitespace().next().unwrap()) else {
            assert!(route.query.is_empty(), "{route:?}");
            continue;
        };
        let reads = ["Parameters", "Pairs", "Query<"].iter().any(|taken| head.contains(taken));
        assert_eq!(reads, !route.query.is_empty(), "{route:?}");
        for parameter in route.query {
            let quoted = format!("\"{}\"", parameter.name);
            assert!(source.contains(&quoted) || query.contains(&quoted), "{route:?}: {quoted} is not read");
        }
        let names: BTreeSet<_> = route.query.iter().map(|parameter| parameter.name).collect();
        assert_eq!(names.len(), route.query.len(), "{route:?}: one is named twice");
        reading += usize::from(reads);
    }
    assert!(reading > 60, "{reading}");
}

#[tokio::test]
async fn a_parameter_that_the_row_does_not_name_changes_nothing() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.import(&deployment(&[stack.resource("a")])).await;
    let all = app.get("/api/user/stacks").send().await.expect(200);
    assert_eq!(app.get("/api/user/stacks?pageSize=0&filter=x").send().await.expect(200), all);
    let none = app.get("/api/user/stacks?project=other").send().await.expect(200);
    assert_eq!(none["stacks"], json!([]));
}

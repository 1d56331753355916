//! The OpenAPI document beside real answers.

use serde_json::{Value, json};
use statewright_shared::api::routes::ROUTES;
use statewright_tests::app::{ORG, TestApp};

use crate::world::{Stack, deployment};

/// The operation of a method and a path of the document, with its place.
fn operation<'d>(document: &'d Value, id: &str) -> &'d Value {
    let methods = document["paths"].as_object().unwrap().values();
    let mut operations = methods.flat_map(|methods| methods.as_object().unwrap().values());
    operations.find(|operation| operation["operationId"] == id).unwrap_or_else(|| panic!("no {id}"))
}

/// Says which members of an answer the schema does not have.
fn missing(schema: &Value, answer: &Value, place: &str, say: &mut Vec<String>) {
    match answer {
        Value::Object(members) => {
            for (name, value) in members {
                let place = format!("{place}.{name}");
                match schema["properties"].get(name).or_else(|| schema.get("additionalProperties")) {
                    Some(schema) => missing(schema, value, &place, say),
                    None if *schema == json!({}) => {}
                    None => say.push(place),
                }
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| missing(&schema["items"], item, &format!("{place}[]"), say));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn the_document_has_the_members_of_real_answers() {
    let app = TestApp::memory().await;
    let document = app.get("/api/openapi").anonymous().send().await.expect(200);
    let stack = Stack::new(&app).await;
    stack.import(&deployment(&[stack.resource("a")])).await;
    let run = stack.begin().await;
    let of_stack = |tail: &str| format!("{}{tail}", stack.path);
    let asked = [
        ("Capabilities", "/api/capabilities".to_owned()),
        ("Version", "/api/cli/version".to_owned()),
        ("GetCurrentUser", "/api/user".to_owned()),
        ("GetDefaultOrganization", "/api/user/organizations/default".to_owned()),
        ("ListUserStacks", "/api/user/stacks".to_owned()),
        ("ListOrganizationMembers", format!("/api/orgs/{ORG}/members")),
        ("GetStack", of_stack("")),
        ("GetStackMetadata", of_stack("/metadata")),
        ("GetStackUpdates", of_stack("/updates")),
        ("GetLatestStackUpdate", of_stack("/updates/latest")),
        ("GetStackUpdateSummary", of_stack("/updates/1/summary")),
        ("GetUpdateTimeline", of_stack("/updates/1/timeline")),
        ("GetUpdateStatusForUpdate", run.path.clone()),
        ("ListEnvironments_esc", "/api/esc/environments".to_owned()),
    ];
    for (id, path) in asked {
        let answer = app.get(&path).send().await.expect(200);
        let schema = &operation(&document, id)["responses"]["200"]["content"]["application/json"]["schema"];
        assert_eq!(schema["type"], "object", "{id}");
        let mut wrong = Vec::new();
        missing(schema, &answer, "", &mut wrong);
        assert!(wrong.is_empty(), "{id}: {wrong:?} of {answer}");
    }
    let begun =
        operation(&document, "BeginUpdate")["responses"]["200"]["content"]["application/json"].clone();
    for member in ["updateID", "token", "stack", "deployment"] {
        assert!(begun["schema"]["properties"][member].is_object(), "{member}");
    }
}

#[tokio::test]
async fn the_document_says_of_each_route_what_it_is_for() {
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
        assert!(done.contains_key("200") || done.contains_key("204"), "{route:?}: {done:?}");
        let parameters = operation["parameters"].as_array().unwrap().iter();
        for name in parameters.map(|parameter| parameter["name"].as_str().unwrap()) {
            assert!(path.contains(&format!("{{{name}}}")), "{path}: {name}");
        }
    }
}

//! Describes the routes as an OpenAPI document.

use serde_json::{Map, Value, json};

use crate::api::parameters::{Parameter, ParameterForm};
use crate::api::route::{Answered, Auth, Route, Shapes};
use crate::wire::Reason;

/// The document of these routes.
pub(crate) fn document<'a>(routes: impl Iterator<Item = (&'a Route, &'a Shapes)>) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for (route, shapes) in routes {
        let path = paths.entry(route.path_in_document()).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route, shapes);
    }
    let token = |scheme: &str| json!({ "type": "apiKey", "in": "header", "name": "Authorization", "description": scheme });
    json!({
        "openapi": "3.0.3",
        "info": { "title": "Statewright", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": token("`token ` and an access token"),
                "updateToken": token("`update-token ` and the token of the update in the path"),
                "password": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "An access token as the password, or a user's login and password. Not needed with a client certificate.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "__Host-statewright",
                    "description": "A browser in which a person is signed in. Without HTTPS on the own machine, its name is `statewright`.",
                },
                "bearer": { "type": "http", "scheme": "bearer", "description": "An access token." },
            },
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["code", "message"],
                    "properties": {
                        "code": { "type": "integer" },
                        "message": { "type": "string" },
                        "reason": {
                            "type": "string",
                            "enum": Reason::ALL,
                            "description": "A word for scripts.",
                        },
                    },
                },
            },
        },
    })
}

/// A query parameter.
fn in_query(parameter: &Parameter) -> Value {
    let schema = match parameter.form {
        ParameterForm::Text => json!({ "type": "string" }),
        ParameterForm::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        ParameterForm::Number => json!({ "type": "integer" }),
        ParameterForm::Flag => json!({ "type": "boolean" }),
    };
    json!({
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.about,
        "schema": schema,
    })
}

/// The body and the answer of a route. `tests/functions/shapes.rs` checks the server against it, and compares
/// it with what the official client sends.
fn operation(route: &Route, shapes: &Shapes) -> Value {
    let in_path =
        |name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    let parameters = route.parameters_in_document().map(in_path).chain(route.query.iter().map(in_query));
    let security = match route.auth {
        Auth::Public | Auth::Exchange | Auth::Page => json!([]),
        Auth::Session => json!([{ "session": [] }]),
        Auth::Token => json!([{ "token": [] }]),
        Auth::UpdateToken => json!([{ "updateToken": [] }]),
        Auth::State | Auth::Run => json!([{ "password": [] }, { "bearer": [] }]),
    };
    let error = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } });
    let text = || json!({ "type": "string" });
    let (status, content) = match &shapes.answer {
        Answered::Json(schema) => ("200", Some(("application/json", schema()))),
        Answered::Created(schema) => ("201", Some(("application/json", schema()))),
        Answered::StateIfAny => ("200", Some(("application/json", json!({})))),
        Answered::Html => ("200", Some(("text/html", text()))),
        Answered::Text => ("200", Some(("text/plain", text()))),
        Answered::SeeOther => ("303", None),
        Answered::Yaml => ("200", Some(("application/x-yaml", text()))),
        Answered::Empty => ("200", None),
        Answered::NoContent => ("204", None),
    };
    let mut done = json!({ "description": "Done." });
    if let Some((media, schema)) = content {
        done["content"] = json!({ (media): { "schema": schema } });
    }
    let mut operation = json!({
        "operationId": route.operation,
        "summary": route.summary,
        "tags": [route.group.name()],
        "parameters": parameters.collect::<Vec<_>>(),
        "security": security,
        "responses": {
            (status): done,
            "4XX": { "description": "Refused: nothing happened.", "content": error },
            "5XX": { "description": "Failed; try again.", "content": error },
        },
    });
    if matches!(shapes.answer, Answered::StateIfAny) {
        operation["responses"]["204"] = json!({ "description": "There is none yet." });
    }
    if let Some(needs) = route.needs {
        operation["x-statewright-role"] = json!(needs.to_string());
    }
    if let Some(body) = shapes.body {
        let media =
            if route.auth.is_page() { "application/x-www-form-urlencoded" } else { "application/json" };
        operation["requestBody"] = json!({ "content": { (media): { "schema": body() } } });
    }
    operation
}

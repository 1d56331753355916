//! The routes as an OpenAPI document, made of the one table.

use serde_json::{Map, Value, json};

use super::{Answer, json};
use crate::api::routes::{Auth, ROUTES, Route};

/// The document, at the path where Pulumi's own service has its own.
pub(crate) async fn document() -> Answer {
    json(&all(ROUTES))
}

fn all(routes: &[Route]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation(route);
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
                "password": { "type": "http", "scheme": "basic", "description": "an access token as the password" },
                "bearer": { "type": "http", "scheme": "bearer", "description": "an access token" },
            },
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["code", "message"],
                    "properties": { "code": { "type": "integer" }, "message": { "type": "string" } },
                },
            },
        },
    })
}

fn operation(route: &Route) -> Value {
    let parameter =
        |name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } });
    let security = match route.auth {
        Auth::Nobody => json!([]),
        Auth::Token => json!([{ "token": [] }]),
        Auth::UpdateToken => json!([{ "updateToken": [] }]),
        Auth::State | Auth::Run => json!([{ "password": [] }, { "bearer": [] }]),
    };
    let error = json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } });
    let mut operation = json!({
        "operationId": route.id(),
        "tags": [route.group.name()],
        "parameters": route.parameters().map(parameter).collect::<Vec<_>>(),
        "security": security,
        "responses": {
            "2XX": { "description": "Done." },
            "4XX": { "description": "Refused: nothing happened.", "content": error },
            "5XX": { "description": "Failed; try again.", "content": error },
        },
    });
    if route.body_bytes_max > 0 {
        let any = json!({ "schema": {} });
        operation["requestBody"] = json!({ "content": { "application/json": any } });
    }
    operation
}

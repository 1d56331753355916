//! The routes as an OpenAPI document, made of the one table.

use std::sync::OnceLock;

use axum::http::Method;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{Answer, json_text};
use crate::api::answered::{Answered, answer};
use crate::api::operations::{self, Operation};
use crate::api::routes::{Auth, ROUTES, Route};
use crate::domain::saves;
use crate::wire::environments::{
    CloneEnvironment, Config, DecryptSecrets, EncryptSecrets, EnvironmentSettings, NamedEnvironment,
    NewRevisionTag, RestoreEnvironment, Retract, RevisionTagEdit, TagEdit, TagText,
};
use crate::wire::pulumi::{
    BatchDecrypt, BatchEncrypt, BeginUpdate, Checkpoint, Ciphertext, CompleteUpdate, CreateStack,
    CreateUpdate, EngineEvent, EventBatch, Plaintext, RenameStack, RenewLease, StackTag, StartUpdate,
    TransferStack,
};
use crate::wire::tfstate::{LockInfo, NewLabelPolicy, NewState, SchemasEdit, StateEdit, WithReason};
use crate::wire::{Members, edges, schema};

/// The document, also at the path where Pulumi's own service has its own.
pub(crate) async fn document() -> Answer {
    Ok(json_text(text()))
}

/// The document's text.
pub(crate) fn text() -> Bytes {
    // Anybody may ask, so it is made once.
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    DOCUMENT.get_or_init(|| all(ROUTES).to_string().into()).clone()
}

fn all(routes: &[Route]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let path = paths.entry(route.path_in_document()).or_insert_with(|| json!({}));
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
                "password": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "an access token as the password, or a user's own name and password; a client certificate does without",
                },
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
    let Operation { id, summary } = operations::of(route);
    let Answered { status, body: answered } = answer(route);
    let mut done = json!({ "description": "Done." });
    if let Some((media, schema)) = answered {
        done["content"] = json!({ (media): { "schema": schema } });
    }
    let mut operation = json!({
        "operationId": id,
        "summary": summary,
        "tags": [route.group.name()],
        "parameters": operations::parameters(route).map(parameter).collect::<Vec<_>>(),
        "security": security,
        "responses": {
            (status): done,
            "4XX": { "description": "Refused: nothing happened.", "content": error },
            "5XX": { "description": "Failed; try again.", "content": error },
        },
    });
    if id.starts_with("ReadState") {
        operation["responses"]["204"] = json!({ "description": "There is none yet." });
    }
    if let Some(role) = route.needs {
        operation["x-statewright-role"] = json!(role);
    }
    if route.body_bytes_max > 0 {
        let body = json!({ "schema": body(route) });
        operation["requestBody"] = json!({ "content": { "application/json": body } });
    }
    operation
}

/// What is read of a route's body: `{}` where it is kept as it comes, or nothing is made of it.
///
/// `tests/functions/shapes.rs` holds the server to it, and compares it with what the official client sends.
fn body(route: &Route) -> Value {
    let path = route.path;
    let split = |owner: &&'static str| Some((*owner, path.strip_prefix(*owner)?));
    match OWNERS.iter().find_map(split).unwrap_or((path, "")) {
        ("/api/stacks/{org}/{project}", "") => schema::of::<CreateStack<'_>>(),
        (STACK, "/config") => schema::of::<Config>(),
        (STACK, "/tags") if route.method == Method::POST => schema::of::<StackTag>(),
        (STACK, "/tags") => schema::of::<Option<Members<String>>>(),
        (STACK, "/tags/{tag}") => schema::of::<StackTag>(),
        (STACK, "/rename") => schema::of::<RenameStack>(),
        (STACK, "/transfer") => schema::of::<TransferStack>(),
        (STACK, "/encrypt") => schema::of::<Plaintext>(),
        (STACK, "/decrypt") => schema::of::<Ciphertext>(),
        (STACK, "/batch-encrypt") => schema::of::<BatchEncrypt>(),
        (STACK, "/batch-decrypt") => schema::of::<BatchDecrypt>(),
        (STACK, "/import") | (UPDATE, "/checkpoint") => schema::of::<Checkpoint<'_>>(),
        (STACK, "/update" | "/preview" | "/refresh" | "/destroy") => schema::of::<CreateUpdate>(),
        (STACK, "/begin-update") => schema::of::<BeginUpdate>(),
        (UPDATE, "") => schema::of::<StartUpdate>(),
        (UPDATE, "/renew_lease") => schema::of::<RenewLease>(),
        (UPDATE, "/complete") => schema::of::<CompleteUpdate>(),
        (UPDATE, "/journalentries") => journal_entries(),
        (UPDATE, "/checkpointverbatim") => schema::of::<saves::Whole<'_>>(),
        (UPDATE, "/checkpointdelta") => schema::of::<saves::Delta<'_>>(),
        (UPDATE, "/events") => schema::of::<EngineEvent>(),
        (UPDATE, "/events/batch") => schema::of::<EventBatch>(),
        (_, "") if path.starts_with("/tfstate/") && path.ends_with("/lock") => schema::of::<LockInfo>(),
        (ORGANIZATION, "/tfstates") => schema::of::<NewState>(),
        (ORGANIZATION, "/tfstate-policy") => schema::of::<NewLabelPolicy>(),
        (ORGANIZATION, "/tfstate-edges") => schema::of::<edges::NewEdge>(),
        (ORGANIZATION, "/tfstate-edges/{edge}") => schema::of::<edges::EdgeEdit>(),
        (ENVIRONMENTS, "") => schema::of::<NamedEnvironment>(),
        (ENVIRONMENTS, "/restore") => schema::of::<RestoreEnvironment>(),
        (ENVIRONMENT, "/clone") => schema::of::<CloneEnvironment>(),
        (ENVIRONMENT, "/settings") => schema::of::<EnvironmentSettings>(),
        (ENVIRONMENT, "/encrypt-secrets") => schema::of::<EncryptSecrets>(),
        (ENVIRONMENT, "/decrypt-secrets") => schema::of::<DecryptSecrets>(),
        (ENVIRONMENT, "/versions/tags") => schema::of::<NewRevisionTag>(),
        (ENVIRONMENT, "/versions/tags/{tag}") => schema::of::<RevisionTagEdit>(),
        (ENVIRONMENT, "/versions/{version}/retract") => schema::of::<Retract>(),
        (ENVIRONMENT, "/tags") => schema::of::<TagText>(),
        (ENVIRONMENT, "/tags/{tag}") => schema::of::<TagEdit>(),
        (STATE, "") => schema::of::<StateEdit>(),
        (STATE, "/schemas") => schema::of::<SchemasEdit>(),
        (STATE, "/lock") => schema::of::<WithReason>(),
        _ => json!({}),
    }
}

const UPDATE: &str = "/api/stacks/{org}/{project}/{stack}/{kind}/{update}";
const STACK: &str = "/api/stacks/{org}/{project}/{stack}";
const ORGANIZATION: &str = "/api/orgs/{org}";
const STATE: &str = "/api/tfstates/{guid}";
const ENVIRONMENTS: &str = "/api/esc/environments/{org}";
const ENVIRONMENT: &str = "/api/esc/environments/{org}/{project}/{environment}";

/// What routes are about; the longer ones first.
const OWNERS: [&str; 6] = [UPDATE, STACK, ORGANIZATION, STATE, ENVIRONMENT, ENVIRONMENTS];

/// Members as [`journal`](crate::journal) reads them. What is an object here is read further, and kept as it comes.
fn journal_entries() -> Value {
    let kinds = [
        ("integer", "version kind sequenceID operationID removeOld removeNew deleteOld deleteNew"),
        ("integer", "pendingReplacementOld pendingReplacementNew"),
        ("boolean", "isRefresh requiresByteString"),
        ("string", "extensionRef"),
        ("object", "state operation secretsProvider newSnapshot extension"),
        ("array", "snippets layout states baseStatePatches newStatePatches"),
    ];
    let members = kinds.into_iter().flat_map(|(kind, names)| names.split(' ').map(move |name| (name, kind)));
    let members: Map<String, Value> = members
        .map(|(name, kind)| {
            let mut member = json!({ "type": kind, "nullable": true });
            match kind {
                "object" => member["additionalProperties"] = json!({}),
                "array" => member["items"] = json!({}),
                _ => {}
            }
            (name.to_owned(), member)
        })
        .collect();
    let entry = json!({ "type": "object", "properties": members });
    let entries = json!({ "type": "array", "nullable": true, "items": entry });
    json!({ "type": "object", "properties": { "entries": entries } })
}

//! Compares the server with the official client package of Pulumi Cloud, where both have the same routes: the
//! paths and bodies of the OpenAPI document, and the JSON of real answers.
//!
//! Goal: a program that was written with that package works here. Method: a tool extracts the package's paths
//! and types (`tests/tools/cloud-shapes`). Each member that it sends must be in the document, and the server
//! must read what the document has: a value of another type is refused. The real client and a few requests of
//! our own go to a server whose answers are recorded. Each member of each answer must exist, with the type that
//! the package expects, and be known to the package.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use flate2::read::MultiGzDecoder;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use statewright_shared::api::routes::{Auth, Group, ROUTES, Route};
use statewright_shared::domain::names::Login;
use statewright_shared::domain::role::Role;
use statewright_shared::services::identity::users;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::cli::PulumiCli;
use statewright_tests::issuer::{ISSUER, Issuer};
use statewright_tests::tools;
use tokio::net::TcpListener;

use crate::support::{DESTROY, UP};

/// The requests of the official package, and the shapes of their bodies.
#[derive(Debug, Deserialize)]
struct Official {
    operations: Vec<Operation>,
    shapes: BTreeMap<String, Shape>,
}

#[derive(Debug, Deserialize)]
struct Operation {
    method: String,
    /// With `{}` for each parameter.
    path: String,
    request: Option<Shape>,
    answer: Option<Shape>,
}

/// A shape of JSON; see the tool.
#[derive(Debug, Clone, Deserialize)]
struct Shape {
    kind: Kind,
    #[serde(default)]
    nullable: bool,
    of: Option<Box<Shape>>,
    name: Option<String>,
    #[serde(default)]
    members: BTreeMap<String, Shape>,
    #[serde(default)]
    optional: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Any,
    Boolean,
    Number,
    Integer,
    String,
    Array,
    Map,
    Object,
    Named,
}

impl Official {
    fn load() -> Self {
        let output = Command::new(tools::cloud_shapes()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The package's entries for a route, of each kind of update; empty for a route that is ours alone.
    fn operations(&self, route: &Route) -> Vec<&Operation> {
        let paths = ["update", "preview", "refresh", "destroy"].map(|kind| {
            let parts = route.path.split('/').map(|part| match part {
                "{kind}" => kind,
                part if part.starts_with('{') => "{}",
                part => part,
            });
            parts.collect::<Vec<_>>().join("/")
        });
        let is_it =
            |known: &&Operation| known.method == *route.method.as_str() && paths.contains(&known.path);
        self.operations.iter().filter(is_it).collect()
    }

    /// The shape of a route's answer, if the client reads one.
    fn answer(&self, route: &Route) -> Option<&Shape> {
        let mut answers =
            self.operations(route).into_iter().filter_map(|operation| operation.answer.as_ref());
        answers.rfind(|shape| route.method != Method::HEAD && shape.kind != Kind::Any)
    }

    /// Reports the deviations of a JSON text from its shape.
    fn compare(&self, shape: &Shape, value: &Value, place: &str, say: &mut impl FnMut(String)) {
        let named = shape.name.as_ref().map(|name| &self.shapes[name]);
        let kind = named.map_or(shape.kind, |named| named.kind);
        let of = shape.of.as_deref();
        let is_of_kind = match (kind, value) {
            (Kind::Any | Kind::Named, _) => true,
            (_, Value::Null) => shape.nullable,
            (Kind::Boolean, value) => value.is_boolean(),
            (Kind::Number, value) => value.is_number(),
            (Kind::Integer, value) => value.is_i64() || value.is_u64(),
            (Kind::String, value) => value.is_string(),
            (Kind::Array, value) => value.is_array(),
            (Kind::Map | Kind::Object, value) => value.is_object(),
        };
        if !is_of_kind {
            return say(format!("{place} is not {kind:?}"));
        }
        match value {
            Value::Array(items) => {
                for (item, of) in items.iter().zip(of.into_iter().cycle()) {
                    self.compare(of, item, &format!("{place}[]"), say);
                }
            }
            Value::Object(members) if kind == Kind::Map => {
                for (member, of) in members.values().zip(of.into_iter().cycle()) {
                    self.compare(of, member, &format!("{place}{{}}"), say);
                }
            }
            Value::Object(members) if kind == Kind::Object => {
                let known = named.map_or(&shape.members, |named| &named.members);
                for (name, value) in members {
                    match known.get(name) {
                        Some(shape) => self.compare(shape, value, &format!("{place}.{name}"), say),
                        None => say(format!("{place}.{name} is not known")),
                    }
                }
                let is_missing =
                    |(name, shape): &(&String, &Shape)| !shape.optional && !members.contains_key(*name);
                known
                    .iter()
                    .filter(is_missing)
                    .for_each(|(name, _)| say(format!("{place}.{name} is missing")));
            }
            _ => {}
        }
    }
}

/// Routes that Pulumi Cloud lacks.
fn is_ours_alone(route: &Route) -> bool {
    let is_of_consents = route.path.starts_with("/api/user/oidc/");
    let is_of_member = route.path.starts_with("/api/orgs/{org}/members/{user}/tokens");
    let is_of_tokens = is_of_member || route.path.ends_with("/tokens/{token}/rotate");
    let is_of_sessions = route.path.contains("/sessions");
    let is_of_grants = ["/grants", "/access", "/rights", "/protection", "/hold", "/invitation"]
        .iter()
        .any(|tail| route.path.ends_with(tail));
    let of_versions = ["{stack}/resource", "/updates/{version}/diff/", "/updates/{version}/restore"];
    let is_of_versions =
        of_versions.iter().any(|part| route.path.contains(part)) || route.path.ends_with("{stack}/previews");
    let of_browsers =
        ["/export/{version}", "/opened/{session}", "{environment}/decrypt", "{version}/decrypt"];
    let is_of_browsers =
        route.method == Method::POST && of_browsers.iter().any(|tail| route.path.ends_with(tail));
    is_of_consents
        || is_of_versions
        || is_of_browsers
        || is_of_tokens
        || is_of_sessions
        || is_of_grants
        || route.auth.is_page()
        || [Group::Admin, Group::Tfstate].contains(&route.group)
        || ["/", "/api/openapi"].contains(&route.path)
}

/// The row that only refuses.
const REFUSES: &str = "CreateRole";

/// Bodies that the document has and the package lacks, with the reason.
const MORE_BODIES: &[(&str, &str)] = &[
    ("/api/stacks/{org}/{project}/{stack}/{kind}/{update}/cancel", "people give a reason, clients do not"),
    ("/api/esc/environments/{org}/yaml/check", YAML),
    ("/api/esc/environments/{org}/yaml/open", YAML),
    ("/api/esc/environments/{org}/{project}/{environment}", YAML),
];

const YAML: &str = "it is YAML, for which the package has no shape";

#[tokio::test]
async fn the_openapi_document_matches_the_official_client() {
    let official = Official::load();
    let app = TestApp::memory().await;
    let document = app.get("/api/openapi/pulumi-spec.json").anonymous().send().await.expect(200);
    for route in ROUTES.iter().filter(|route| !is_ours_alone(route)) {
        let known = official.operations(route);
        assert!(!known.is_empty(), "the official client has no {route:?}");
        let described =
            &document["paths"][route.path_in_document()][route.method.as_str().to_ascii_lowercase()];
        assert!(described.is_object(), "the document has no {route:?}");
        let takes_body = known.iter().any(|operation| operation.request.is_some());
        let has_more = route.body_bytes_max > 0 && MORE_BODIES.iter().any(|(path, _)| *path == route.path);
        assert_eq!(described["requestBody"].is_object(), takes_body || has_more, "{route:?}");
    }
}

impl Official {
    /// Reports the deviations of a JSON schema of the document from the shape of what the package sends.
    fn compare_request(&self, shape: &Shape, schema: &Value, place: &str, say: &mut impl FnMut(String)) {
        let named = shape.name.as_ref().map(|name| &self.shapes[name]);
        let kind = named.map_or(shape.kind, |named| named.kind);
        let described = schema["type"].as_str();
        let is_of_kind = match (kind, described) {
            // What the server stores as it comes, and the package does not describe further.
            (_, None) | (Kind::Any | Kind::Named, _) => return,
            (Kind::Boolean, Some(described)) => described == "boolean",
            (Kind::Integer, Some(described)) => described == "integer",
            (Kind::Number, Some(described)) => described == "number",
            (Kind::String, Some(described)) => described == "string",
            (Kind::Array, Some(described)) => described == "array",
            (Kind::Map | Kind::Object, Some(described)) => described == "object",
        };
        if !is_of_kind {
            return say(format!("{place} is not {kind:?}"));
        }
        if let Some(of) = shape.of.as_deref() {
            let inside = if kind == Kind::Array { &schema["items"] } else { &schema["additionalProperties"] };
            return self.compare_request(of, inside, &format!("{place}[]"), say);
        }
        let Some(described) = schema["properties"].as_object() else { return };
        let known = named.map_or(&shape.members, |named| &named.members);
        for (name, shape) in known {
            match described.get(name) {
                Some(schema) => self.compare_request(shape, schema, &format!("{place}.{name}"), say),
                None => say(format!("{place}.{name} is not read")),
            }
        }
        for name in described.keys().filter(|name| !known.contains_key(*name)) {
            say(format!("{place}.{name} is not sent"));
        }
    }
}

/// What the package sends and the server does not read, or the other way round, with the reason. A place
/// includes everything that begins with it.
const UNREAD: &[(&str, &str)] = &[
    ("PATCH /api/esc/environments/{org}/{project}/{environment}/tags/{tag}: .currentTag.name", "it is a tag"),
    ("POST /api/orgs/{org}/teams/{team}/tokens: .on", TOKENS),
    ("POST /api/orgs/{org}/tokens: .on", TOKENS),
    ("POST /api/user/tokens: .name", TOKENS),
    ("POST /api/user/tokens: .on", TOKENS),
    ("POST /api/user/tokens: .organization", TOKENS),
    ("POST /api/user/tokens: .roleID", TOKENS),
    ("PATCH /api/orgs/{org}: .", "the server has no other rule of an organization"),
    ("POST /api/orgs/{org}/members/{user}: .fgaRoleId", "the member has it when the role changes"),
    ("POST {stack}/transfer: .fromOrg", "the path has it"),
    ("POST {stack}/transfer: .projectName", "the path has it"),
    ("POST {stack}/transfer: .stackName", "the path has it"),
    ("POST {update}/renew_lease: .token", "the header has it"),
    ("POST {update}/complete: .outputs", "the state has them"),
    ("POST {update}/complete: .secretsProviders", "the state has them"),
    ("PATCH {update}/checkpoint: .isInvalid", "no client sets it"),
    ("PATCH {update}/checkpointverbatim: .version", "the text has it"),
    ("PATCH {update}/checkpointdelta: .version", "the text has it"),
    ("PATCH {update}/journalentries: .entries[].removeOlds", "the package calls it unused"),
    ("POST {update}/events: ", EVENTS_ARE_KEPT),
    ("POST {update}/events/batch: .events[]", EVENTS_ARE_KEPT),
    ("program: .coherenceWindow", CLIENTS),
    ("program: .description", PROJECTS),
    ("program: .environment", "it is for environments that belong to a stack, which do not exist here"),
    ("program: .main", PROJECTS),
    ("program: .name", PROJECTS),
    ("program: .options.", CLIENTS),
    ("program: .runtime", PROJECTS),
];

const TOKENS: &str = "a limit or a name that these tokens of Pulumi Cloud do not have";
const PROJECTS: &str = "it describes the project and is ignored: updates run with the client";
const CLIENTS: &str = "it is for the client, which runs the update";
const EVENTS_ARE_KEPT: &str = "events are stored as they come, and the server reads only totals";

/// A short name of a route for places: every route that creates an update has the same body.
fn in_short(route: &Route) -> String {
    let stack = "/api/stacks/{org}/{project}/{stack}";
    let path =
        route.path.replace(&format!("{stack}/{{kind}}/{{update}}"), "{update}").replace(stack, "{stack}");
    match path.as_str() {
        "{stack}/update" | "{stack}/preview" | "{stack}/refresh" | "{stack}/destroy" => {
            "program: ".to_owned()
        }
        path => format!("{} {path}: ", route.method),
    }
}

/// The schema of a route's body.
fn described<'a>(document: &'a Value, route: &Route) -> &'a Value {
    let operation = &document["paths"][route.path_in_document()][route.method.as_str().to_ascii_lowercase()];
    &operation["requestBody"]["content"]["application/json"]["schema"]
}

#[tokio::test]
async fn requests_of_the_official_client_match_the_document() {
    let official = Official::load();
    let app = TestApp::memory().await;
    let document = app.get("/api/openapi/pulumi-spec.json").anonymous().send().await.expect(200);
    let (mut found, mut compared) = (BTreeSet::new(), 0);
    for route in ROUTES.iter().filter(|route| !is_ours_alone(route)) {
        let sent = official.operations(route).into_iter().filter_map(|operation| operation.request.as_ref());
        for shape in sent {
            compared += 1;
            official.compare_request(shape, described(&document, route), &in_short(route), &mut |words| {
                found.insert(words.replace("POST {stack}/begin-update: .program.", "program: ."));
            });
        }
    }
    assert!(compared > 40, "{compared}");
    let begins = |words: &str| UNREAD.iter().any(|(place, _)| words.starts_with(place));
    let new: Vec<_> = found.iter().filter(|words| !begins(words)).collect();
    assert!(new.is_empty(), "requests of the official client are not fully read: {new:#?}");
    let is_gone = |place: &&str| !found.iter().any(|words| words.starts_with(*place));
    let gone: Vec<_> = UNREAD.iter().map(|(place, _)| *place).filter(is_gone).collect();
    assert!(gone.is_empty(), "these differences are gone: {gone:#?}");
}

/// For each member of a schema: a body with another type there and nothing else, and one without the member.
fn wrong_bodies(schema: &Value) -> Vec<(Value, Value)> {
    let wrong = match schema["type"].as_str() {
        None => return Vec::new(),
        Some("object" | "array") => json!("a text"),
        Some(_) => json!({}),
    };
    let mut bodies = vec![(wrong, Value::Null)];
    let mut inside = |schema: &Value, wrap: &dyn Fn(Option<Value>) -> Value| {
        for (wrong, right) in wrong_bodies(schema) {
            let right = Some(right).filter(|right| !right.is_null());
            bodies.push((wrap(Some(wrong)), wrap(right)));
        }
    };
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        inside(schema, &|value| {
            Value::Object(value.map(|value| (name.clone(), value)).into_iter().collect())
        });
    }
    inside(&schema["items"], &|value| Value::Array(value.into_iter().collect()));
    inside(&schema["additionalProperties"], &|value| {
        Value::Object(value.map(|value| ("x".to_owned(), value)).into_iter().collect())
    });
    bodies
}

/// The document is true: what it calls a text is refused if it is not one, with another message than if it is
/// missing.
#[tokio::test]
async fn each_member_that_the_document_has_is_read() {
    let app = TestApp::memory().await;
    let document = app.get("/api/openapi/pulumi-spec.json").anonymous().send().await.expect(200);
    for name in ["idle", "held"] {
        let stack = json!({ "stackName": name });
        app.post(&format!("/api/stacks/{ORG}/shapes"), &stack).send().await.expect(200);
    }
    let environment = json!({ "project": "shapes", "name": "held" });
    app.post(&format!("/api/esc/environments/{ORG}"), &environment).send().await.expect(204);
    let stack = format!("/api/stacks/{ORG}/shapes/held");
    let begin = json!({ "updateKind": "update", "program": {} });
    let begun = app.post(&format!("{stack}/begin-update"), &begin).send().await.expect(200);
    let (update, token) = (begun["updateID"].as_str().unwrap(), begun["token"].as_str().unwrap());
    let (mut members, empty) = (0, json!({}));
    // After a cancel, the update takes nothing.
    let (ends, others): (Vec<&Route>, Vec<&Route>) = ROUTES
        .iter()
        .filter(|route| !is_ours_alone(route))
        .partition(|route| route.path.ends_with("{update}/cancel"));
    for route in others.into_iter().chain(ends) {
        let path = route.path.replace("{kind}/{update}", &format!("update/{update}"));
        let stack = if route.path.contains("{update}") { "held" } else { "idle" };
        let path = path.replace("{org}/{project}", &format!("{ORG}/shapes")).replace("{stack}", stack);
        let path = path.replace("{org}", ORG).replace("{environment}", "held").replace("{version}", "1");
        let path =
            path.replace("{tag}", "stable").replace("{team}", "platform").replace("{user}", "stranger");
        for (wrong, right) in wrong_bodies(described(&document, route)) {
            let ask = async |body: &Value| {
                let call = app.request(route.method.clone(), &path);
                let call = if route.auth == Auth::UpdateToken { call.update_token(token) } else { call };
                call.json(body).send().await
            };
            let refused = ask(&wrong).await;
            assert_eq!(refused.status, 400, "{route:?} takes {wrong}: {}", refused.text());
            let otherwise = ask(if right.is_null() { &empty } else { &right }).await;
            assert_ne!(refused.text(), otherwise.text(), "{route:?} does not check {wrong}");
            members += 1;
        }
    }
    assert!(members > 100, "{members}");
}

/// The answers of a server with status 200 or 201.
struct Answer {
    method: Method,
    path: String,
    body: Bytes,
}

/// A server of its own that records all answers.
struct Watched {
    app: TestApp,
    url: String,
    issuer: Arc<Issuer>,
    answers: Arc<Mutex<Vec<Answer>>>,
}

impl Watched {
    async fn start() -> Self {
        let issuer = Issuer::new(ISSUER);
        let app = TestApp::embedded_asking(Arc::<Issuer>::clone(&issuer)).await;
        let answers = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&answers);
        let look = move |request: Request, next: Next| {
            let kept = Arc::clone(&kept);
            async move {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let (parts, body) = next.run(request).await.into_parts();
                let body = to_bytes(body, usize::MAX).await.unwrap();
                if [200, 201].contains(&parts.status.as_u16()) {
                    let answer = Answer { method, path, body: body.clone() };
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
                }
                Response::from_parts(parts, Body::from(body))
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = app.router().layer(middleware::from_fn(look));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { app, url, issuer, answers }
    }

    async fn ask(&self, method: Method, path: &str, body: &Value) -> Value {
        self.ask_as(&format!("token {}", self.app.token), method, path, body).await
    }

    async fn ask_as(&self, credentials: &str, method: Method, path: &str, body: &Value) -> Value {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.request(method.clone(), format!("{}{path}", self.url)).json(body);
        let answer = request.header("Authorization", credentials).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, &Value::Null).await
    }

    /// The routes of issuers.
    async fn ask_about_issuers(&self) {
        let issuers = format!("/api/orgs/{ORG}/oidc/issuers");
        let new = json!({ "name": "ci", "url": ISSUER, "maxExpiration": 600 });
        let id = self.ask(Method::POST, &issuers, &new).await["id"].as_str().unwrap().to_owned();
        let one = format!("{issuers}/{id}");
        self.get(&issuers).await;
        self.ask(Method::POST, &format!("{one}/regenerate-thumbprints"), &json!({})).await;
        let policy = json!({
            "decision": "allow", "tokenType": "organization", "authorizedPermissions": [], "rules": { "sub": "job" },
        });
        let policies = format!("/api/orgs/{ORG}/auth/policies");
        self.ask(Method::PATCH, &format!("{policies}/{id}"), &json!({ "policies": [policy] })).await;
        self.get(&format!("{policies}/oidcissuers/{id}")).await;
        let audience = format!("urn:pulumi:org:{ORG}");
        let now = self.app.context.now().seconds();
        let claims = json!({ "iss": ISSUER, "aud": audience, "sub": "job", "iat": now, "exp": now + 300 });
        let exchange = json!({
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "audience": audience,
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "subject_token": self.issuer.token(&claims),
            "requested_token_type": "urn:pulumi:token-type:access_token:organization",
        });
        self.ask(Method::POST, "/api/oauth/token", &exchange).await;
        // With keys, after it was used.
        let edit = json!({ "name": "ci", "jwks": self.issuer.key_set() });
        self.ask(Method::PATCH, &one, &edit).await;
        self.get(&one).await;
    }

    /// The routes of members, teams, roles, tokens and the audit trail, on a stack that exists.
    async fn ask_about_people(&self, stack: &str) {
        let org = format!("/api/orgs/{ORG}");
        users::create(&self.app.context, &Login::parse("bob").unwrap(), &[], Role::Member).await.unwrap();
        let (member, team) = (format!("{org}/members/bob"), format!("{org}/teams/platform"));
        self.ask(Method::POST, &member, &json!({ "role": "member" })).await;
        let new = json!({ "name": "platform", "displayName": "The platform", "description": "keeps it up" });
        self.ask(Method::POST, &format!("{org}/teams/pulumi"), &new).await;
        let permission = json!({ "projectName": "shapes", "stackName": "dev", "permission": 102 });
        let added = json!({ "memberAction": "add", "member": "bob", "addStackPermission": permission });
        self.ask(Method::PATCH, &team, &added).await;
        self.ask(Method::POST, &format!("{team}/roles/plan"), &Value::Null).await;
        let in_one = json!({ "description": "of one", "roleID": "member", "organization": ORG });
        self.ask(Method::POST, "/api/user/tokens", &in_one).await;
        self.ask(Method::POST, &format!("{org}/tokens"), &json!({ "name": "deploys", "admin": true })).await;
        self.ask(Method::POST, &format!("{team}/tokens"), &json!({ "name": "of-platform" })).await;
        self.ask(Method::PATCH, &org, &json!({ "setMaxAccessTokenExpiryDays": 0 })).await;
        for path in [
            org.as_str(),
            &format!("{member}/teams"),
            &format!("{org}/teams"),
            &team,
            &format!("{team}/roles"),
            &format!("{org}/roles"),
            &format!("{org}/roles/plan"),
            &format!("{org}/roles/member/users"),
            &format!("{stack}/teams"),
            &format!("{stack}/collaborators"),
            &format!("/api/console/orgs/{ORG}/members/bob/stacks/shapes/dev"),
            "/api/user/tokens",
            &format!("{org}/tokens"),
            &format!("{team}/tokens"),
            &format!("{org}/auditlogs"),
            &format!("{org}/auditlogs/v2"),
            &format!("{org}/auditlogs/export"),
            &format!("{org}/auditlogs/v2/export"),
            &format!("{org}/auditlogs/event-types"),
        ] {
            self.get(path).await;
        }
    }

    /// Requests every route with an answer at least once: by the real client, in new ways and in old ones, and
    /// by us.
    async fn live(&self) {
        let cli = PulumiCli::new().backend(&self.url).token(&self.app.token);
        cli.bench_project("shapes", &[("count", "4"), ("secretEvery", "2")]);
        cli.run(["stack", "init", "dev"]).await.assert_success();
        cli.run(["config", "set", "--secret", "password", "in-the-dark"]).await.assert_success();
        cli.run(["config", "set", "size", "4"]).await.assert_success();
        cli.run(["up", "--yes", "--message", "the first"]).await.assert_success();
        cli.run(["config", "get", "password"]).await.assert_success();
        cli.run(["stack", "output", "--show-secrets"]).await.assert_success();
        cli.run(["refresh", "--yes", "--skip-preview"]).await.assert_success();
        self.ask_about_issuers().await;
        let stack = format!("/api/stacks/{ORG}/shapes/dev");
        self.ask_about_people(&stack).await;
        let update = self.get(&stack).await["activeUpdate"].as_str().unwrap().to_owned();
        for kind in ["refresh", "destroy", "preview", "update"] {
            let id = self.ask(Method::POST, &format!("{stack}/{kind}"), &json!({})).await;
            self.get(&format!("{stack}/{kind}/{}", id["updateID"].as_str().unwrap())).await;
        }
        let id = self.ask(Method::POST, &format!("{stack}/update"), &json!({})).await;
        let id = format!("{stack}/update/{}", id["updateID"].as_str().unwrap());
        let started = self.ask(Method::POST, &id, &json!({})).await;
        let token = format!("update-token {}", started["token"].as_str().unwrap());
        let renewal = json!({ "token": started["token"], "duration": 300 });
        self.ask_as(&token, Method::POST, &format!("{id}/renew_lease"), &renewal).await;
        self.get(&stack).await;
        self.ask(Method::POST, &format!("{id}/cancel"), &json!({})).await;
        for tail in [
            "/export",
            "/export/1",
            "/outputs",
            "/metadata",
            "/policypacks",
            "/policygroups",
            "/updates",
            "/updates?output-type=service&page=1&pageSize=2",
            "/updates/latest",
            "/updates/latest/previews",
            "/updates/latest/timeline",
            "/updates/1",
            "/updates/1/summary",
            "/updates/1/previews",
            "/updates/1/timeline",
            "/previews",
            "/resources?filter=item&size=2",
        ] {
            self.get(&format!("{stack}{tail}")).await;
        }
        self.get(&format!("{stack}/updates/1/diff/1")).await;
        self.ask(Method::POST, &format!("{stack}/updates/1/restore"), &json!({})).await;
        let listed = self.get(&format!("{stack}/resources")).await;
        for row in listed["resources"].as_array().unwrap() {
            let urn = row["urn"].as_str().unwrap();
            for tail in ["resource", "resource/history", "resource/neighbours"] {
                self.get(&format!("{stack}/{tail}?urn={urn}")).await;
            }
        }
        self.get(&format!("{stack}/refresh/{update}")).await;
        self.get(&format!("{stack}/refresh/{update}/events")).await;
        let sealed =
            self.ask(Method::POST, &format!("{stack}/encrypt"), &json!({ "plaintext": "eA==" })).await;
        self.ask(Method::POST, &format!("{stack}/decrypt"), &sealed).await;
        let sealed = json!({ "ciphertexts": [sealed["ciphertext"]] });
        self.ask(Method::POST, &format!("{stack}/batch-decrypt"), &sealed).await;
        for path in [
            "/api/capabilities",
            "/api/cli/version",
            "/api/user",
            "/api/user/organizations/default",
            "/api/user/stacks",
            &format!("/api/orgs/{ORG}/members"),
            &format!("/api/orgs/{ORG}/templates"),
            &format!("/api/orgs/{ORG}/policypacks"),
            &format!("/api/orgs/{ORG}/policygroups"),
            "/api/registry/packages",
            "/api/registry/templates",
        ] {
            self.get(path).await;
        }
        self.live_with_environments(&cli).await;
        cli.run(["stack", "export", "--file", "state.json"]).await.assert_success();
        cli.run(["stack", "import", "--file", "state.json"]).await.assert_success();
        cli.run(["stack", "rename", "prod"]).await.assert_success();
        cli.clone().env("PULUMI_DISABLE_JOURNALING", "true").run(UP).await.assert_success();
        cli.run(DESTROY).await.assert_success();
        cli.run(["stack", "rm", "--yes"]).await.assert_success();
        self.get(&format!("/api/orgs/{ORG}/restore-stack")).await;
    }
}

impl Watched {
    async fn live_with_environments(&self, cli: &PulumiCli) {
        let all = format!("/api/esc/environments/{ORG}");
        let this = format!("{all}/shapes/base");
        cli.run(["env", "init", "acme/shapes/base"]).await.assert_success();
        cli.run(["env", "set", "acme/shapes/base", "pulumiConfig.a", "b", "--secret"]).await.assert_success();
        cli.run(["env", "set", "acme/shapes/base", "c", "x ${pulumiConfig.a}"]).await.assert_success();
        cli.run(["env", "get", "acme/shapes/base"]).await.assert_success();
        cli.run(["env", "version", "tag", "acme/shapes/base@stable", "@1"]).await.assert_success();
        cli.run(["env", "version", "retract", "acme/shapes/base@2"]).await.assert_success();
        let imports = json!({ "imports": ["shapes/base"] });
        let opened = self.ask(Method::POST, &format!("{all}/yaml/open"), &imports).await;
        self.get(&format!("{all}/yaml/open/{}", opened["id"].as_str().unwrap())).await;
        for tail in ["/open", "/versions/3/open"] {
            let opened = self.ask(Method::POST, &format!("{this}{tail}"), &Value::Null).await;
            self.get(&format!("{this}/open/{}", opened["id"].as_str().unwrap())).await;
        }
        cli.run(["env", "init", "acme/shapes/top"]).await.assert_success();
        self.ask(Method::PATCH, &format!("{all}/shapes/top"), &imports).await;
        let sealed = json!({ "plaintexts": ["eA=="] });
        let sealed = self.ask(Method::POST, &format!("{this}/encrypt-secrets"), &sealed).await;
        self.ask(Method::POST, &format!("{this}/decrypt-secrets"), &sealed).await;
        self.ask(Method::POST, &format!("{this}/tags"), &json!({ "name": "a", "value": "b" })).await;
        self.ask(Method::PATCH, &format!("{this}/tags/a"), &json!({ "newTag": { "value": "c" } })).await;
        for tail in [
            "",
            "/decrypt",
            "/settings",
            "/tags",
            "/tags/a",
            "/versions",
            "/versions/tags",
            "/versions/tags/stable",
            "/versions/3",
            "/versions/3/decrypt",
            "/referrers",
        ] {
            self.get(&format!("{this}{tail}")).await;
        }
        self.get("/api/esc/environments").await;
        self.get(&all).await;
        cli.run(["env", "clone", "acme/shapes/base", "shapes/gone"]).await.assert_success();
        cli.run(["env", "rm", "acme/shapes/gone", "--yes"]).await.assert_success();
        self.get(&format!("{all}/restore")).await;
        let config = format!("/api/stacks/{ORG}/shapes/dev/config");
        self.ask(Method::PUT, &config, &json!({ "environment": "shapes/base" })).await;
        self.get(&config).await;
        self.get(&format!("/api/stacks/{ORG}/shapes/dev")).await;
        self.ask(Method::DELETE, &config, &Value::Null).await;
    }
}

/// The route of a path: that with the most literal parts, as a router chooses.
fn route(method: &Method, path: &str) -> Option<&'static Route> {
    let fits = |route: &&Route| {
        let (sent, known) = (path.split('/'), route.path.split('/'));
        sent.clone().count() == known.clone().count()
            && sent.zip(known).all(|(sent, known)| sent == known || known.starts_with('{'))
    };
    ROUTES
        .iter()
        .filter(|route| route.method == *method)
        .filter(fits)
        .min_by_key(|route| route.parameters().count())
}

/// JSON as it was sent, or its gzip.
fn json_of(body: &[u8]) -> Value {
    let mut text = Vec::new();
    match body.starts_with(&[0x1f, 0x8b]) {
        true => drop(MultiGzDecoder::new(body).read_to_end(&mut text).unwrap()),
        false => text.extend_from_slice(body),
    }
    // Other texts are YAML.
    serde_json::from_slice(&text).unwrap_or_else(|_| String::from_utf8(text).unwrap().into())
}

/// The deviations of our answers from the shapes, with the reason. A `*` stands for any member.
const DIFFERENCES: &[(&str, &str)] = &[
    ("GET /api/esc/environments/{org}/restore: .environments[].links is missing", NO_CONSOLE),
    ("GET /api/esc/environments/{org}/restore: .environments[].referrerMetadata is missing", REFERRERS),
    ("GET /api/esc/environments/{org}: .environments[].links is missing", NO_CONSOLE),
    ("GET /api/esc/environments/{org}: .environments[].referrerMetadata is missing", REFERRERS),
    ("GET /api/esc/environments: .environments[].links is missing", NO_CONSOLE),
    ("GET /api/esc/environments: .environments[].referrerMetadata is missing", REFERRERS),
    ("GET /api/esc/environments/{org}/{project}/{environment}/decrypt:  is not Object", YAML),
    (
        "GET /api/esc/environments/{org}/{project}/{environment}/versions/{version}/decrypt:  is not Object",
        YAML,
    ),
    ("GET /api/esc/environments/{org}/{project}/{environment}/versions/{version}:  is not Object", YAML),
    ("GET /api/esc/environments/{org}/{project}/{environment}/referrers: .hidden is not known", MORE),
    ("GET /api/esc/environments/{org}/{project}/{environment}:  is not Object", YAML),
    ("PATCH /api/esc/environments/{org}/{project}/{environment}: .Headers is missing", YAML),
    ("PATCH /api/esc/environments/{org}/{project}/{environment}: .Response is missing", YAML),
    ("POST /api/esc/environments/{org}/yaml/check: .environmentFunctionSummary is missing", EDITORS),
    ("POST /api/esc/environments/{org}/yaml/check: .exprs{}.interpolate[].value[].value is missing", EDITORS),
    ("POST /api/esc/environments/{org}/yaml/check: .exprs{}.object{}.builtin.argSchema is missing", EDITORS),
    ("GET /api/orgs/{org}/members: .members[].created is missing", NOT_STORED),
    ("GET /api/orgs/{org}/members: .members[].fgaRole.modifiedAt is missing", FIXED_ROLES),
    ("GET /api/orgs/{org}/members: .members[].links is missing", NO_CONSOLE),
    ("POST /api/orgs/{org}/members/{user}: .created is missing", NOT_STORED),
    ("POST /api/orgs/{org}/members/{user}: .fgaRole.modifiedAt is missing", FIXED_ROLES),
    ("POST /api/orgs/{org}/members/{user}: .links is missing", NO_CONSOLE),
    ("PATCH /api/orgs/{org}: .* is missing", "they are rules and features that the server does not have"),
    ("GET /api/user/tokens: .tokens[].organization is not known", "the token works in one organization only"),
    ("GET /api/stacks/{org}/{project}/{stack}/updates/{version}/summary: .kind is not known", MORE),
    ("GET /api/stacks/{org}/{project}/{stack}/updates/{version}/summary: .message is not known", MORE),
    (
        "GET /api/stacks/{org}/{project}/{stack}/updates/{version}/summary: .resourceChanges is not known",
        MORE,
    ),
    ("GET /api/stacks/{org}/{project}/{stack}/updates/{version}/summary: .version is not known", MORE),
    (
        "GET /api/stacks/{org}/{project}/{stack}/{kind}/{update}/events: .events[].sequence is not known",
        EVENTS,
    ),
    ("GET /api/stacks/{org}/{project}/{stack}/{kind}/{update}/events: .events[].type is missing", EVENTS),
    ("GET /api/orgs/{org}/restore-stack: .deletedStacks[].deletedBy is not known", MORE),
    ("GET /api/orgs/{org}/restore-stack: .deletedStacks[].mayUndelete is not known", MORE),
    ("GET /api/orgs/{org}/restore-stack: .deletedStacks[].until is not known", MORE),
    ("GET /api/stacks/{org}/{project}/{stack}/updates*.outcome is not known", MORE),
    ("GET /api/stacks/{org}/{project}/{stack}: .currentOperation.wrote is not known", MORE),
    ("GET /api/user/stacks: .stacks[].bytes is not known", MORE),
    ("GET /api/user/stacks: .stacks[].lastUpdateResult is not known", MORE),
    ("GET /api/user/stacks: .stacks[].links is missing", NO_CONSOLE),
    ("GET /api/user/stacks: .stacks[].tags is not known", MORE),
    ("GET /api/user/stacks: .stacks[].version is not known", MORE),
    ("GET /api/user: .organizations[].role is missing", "it would take a read of each organization"),
];

const REFERRERS: &str = "the package says that it is always zero";
const EDITORS: &str = "it is for editors, and values have no schemas here";
const NOT_STORED: &str = "it is not stored";
const FIXED_ROLES: &str = "roles do not change";
const NO_CONSOLE: &str = "answers have no links to pages of the console";
const MORE: &str = "clients ignore unknown members";
const EVENTS: &str = "events are returned as the CLI sent them, without a type and with a sequence";

#[tokio::test]
async fn answers_have_the_shapes_of_the_official_client() {
    let official = Official::load();
    let server = Watched::start().await;
    server.live().await;
    let (mut found, mut sent) = (BTreeSet::new(), BTreeSet::new());
    for answer in server.answers.lock().unwrap().iter() {
        let Some(route) = route(&answer.method, &answer.path).filter(|route| !is_ours_alone(route)) else {
            continue;
        };
        let Some(shape) = official.answer(route) else { continue };
        sent.insert(route.id());
        let place = format!("{} {}: ", route.method, route.path);
        official.compare(shape, &json_of(&answer.body), &place, &mut |words| {
            found.insert(words);
        });
    }
    let has_answer = |route: &&Route| official.answer(route).is_some();
    let answers = |route: &&Route| route.operation != REFUSES;
    let expected: BTreeSet<String> =
        ROUTES.iter().filter(answers).filter(has_answer).map(Route::id).collect();
    assert_eq!(sent, expected, "each answer is checked");
    let is_it = |known: &str, words: &str| match known.split_once('*') {
        Some((start, end)) => words.starts_with(start) && words.ends_with(end),
        None => words == known,
    };
    let is_known = |words: &&String| DIFFERENCES.iter().any(|(known, _)| is_it(known, words));
    let new: Vec<_> = found.iter().filter(|words| !is_known(words)).collect();
    assert!(new.is_empty(), "answers deviate from the official client's shapes: {new:#?}");
    let is_gone = |known: &&str| !found.iter().any(|words| is_it(known, words));
    let gone: Vec<_> = DIFFERENCES.iter().map(|(known, _)| *known).filter(is_gone).collect();
    assert!(gone.is_empty(), "these differences are gone: {gone:#?}");
}

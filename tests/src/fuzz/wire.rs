//! Requests to a server in this process: none makes it fail, and afterwards the stack still works.

use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use fastrand::Rng;
use futures::FutureExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use statewright_shared::api::routes::{Auth, ROUTES, Route};
use statewright_shared::domain::deployment::inspect;
use tower::ServiceExt as _;

use super::corpus::Corpus;
use super::{Blob, Case, Target, mutate};
use crate::app::{ORG, TestApp};

/// The credentials of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Shown {
    Token,
    UpdateToken,
    Other,
    Nothing,
}

/// A request. Names in braces stand for values that are known only once the stack exists.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Call {
    method: String,
    path: String,
    shown: Shown,
    encoding: Option<String>,
    body: Blob,
}

const NAMES: [&str; 10] =
    ["..", "%2e%2e", "%00", "%ff", "a%2Fb", "%F0%9F%98%80", "1", "0", "18446744073709551616", "x"];

const QUERIES: [&str; 8] = [
    "?force=true",
    "?pageSize=1&page=1",
    "?pageSize=0&page=18446744073709551615",
    "?continuationToken=e30",
    "?continuationToken=%ff",
    "?output-type=service",
    "?type=9&urn=a",
    "?%",
];

/// The credentials that the route needs.
fn right(route: &Route) -> Shown {
    match route.auth {
        Auth::UpdateToken => Shown::UpdateToken,
        _ => Shown::Token,
    }
}

/// A short life of a stack: its update runs for all of it, or to some point, after which other requests follow.
pub(super) fn calls(corpus: &Corpus, dice: &mut Rng) -> Case {
    let mut calls: Vec<Call> = (0..dice.u8(2..14)).map(|_| call(corpus, dice)).collect();
    if dice.bool() {
        let route = ROUTES.iter().find(|route| route.path.ends_with("/complete")).expect("updates end");
        let body = Blob(br#"{"status":"succeeded"}"#.to_vec());
        let (method, path) = ("POST".to_owned(), route.path.to_owned());
        calls.insert(
            dice.usize(..calls.len()),
            Call { method, path, shown: right(route), encoding: None, body },
        );
    }
    Case::Calls(calls)
}

/// A life of events alone.
pub(super) fn events(corpus: &Corpus, dice: &mut Rng) -> Case {
    let (post, route) = ROUTES
        .iter()
        .enumerate()
        .find(|(_, route)| route.path.ends_with("/events/batch"))
        .expect("events are posted");
    let mut calls = Vec::new();
    for _ in 0..dice.u8(1..5) {
        let mut body = corpus.body(post, dice).unwrap_or_default();
        if dice.u8(..4) != 0 {
            mutate::value(&mut body, dice, corpus);
        }
        let body = Blob(mutate::sent(mutate::body(&body, dice), dice));
        let path = route.path.to_owned();
        calls.push(Call { method: "POST".to_owned(), path, shown: right(route), encoding: None, body });
        let query = dice.choice(["", "?type=9", "?urn=urn:pulumi:dev::p::t::n", "?continuationToken=1"]);
        let path = route.path.replace("/batch", query.unwrap_or_default());
        let body = Blob::default();
        calls.push(Call { method: "GET".to_owned(), path, shown: Shown::Token, encoding: None, body });
    }
    Case::Calls(calls)
}

fn call(corpus: &Corpus, dice: &mut Rng) -> Call {
    // Most requests are those by which updates save.
    let index = match dice.choice(&corpus.bodies) {
        Some((route, _)) if dice.bool() => *route,
        _ => dice.usize(..ROUTES.iter().count()),
    };
    let route = ROUTES.iter().nth(index).expect("the index is of a row");
    let mut path = route.path.to_owned();
    if dice.u8(..10) == 0
        && let Some(start) = path.rfind('{')
    {
        let end = path[start..].find('}').map_or(path.len(), |end| start + end + 1);
        path.replace_range(start..end, dice.choice(NAMES).unwrap_or_default());
    }
    if dice.u8(..6) == 0 {
        path.push_str(dice.choice(QUERIES).unwrap_or_default());
    }
    let wrong = match dice.u8(..12) {
        0 => dice.choice([Shown::Token, Shown::UpdateToken, Shown::Other, Shown::Nothing]),
        _ => None,
    };
    let mut body = corpus.body(index, dice).unwrap_or_else(|| match dice.bool() {
        true => corpus.any(dice),
        false => json!({}),
    });
    if dice.u8(..3) != 0 {
        mutate::value(&mut body, dice, corpus);
    }
    let encoding = dice.choice([None, None, Some("gzip"), Some("identity"), Some("br")]).flatten();
    Call {
        method: route.method.to_string(),
        path,
        shown: wrong.unwrap_or_else(|| right(route)),
        encoding: encoding.map(str::to_owned),
        body: Blob(mutate::sent(mutate::body(&body, dice), dice)),
    }
}

/// A server for some cases.
#[derive(Default)]
pub(super) struct Bench {
    server: Option<Server>,
    stacks: u64,
}

struct Server {
    app: TestApp,
    router: Router,
    other: String,
}

/// A stack with a running update.
struct Scene {
    stack: String,
    update: String,
    token: String,
}

/// Stacks before the server is replaced by a new one: its store is in memory.
const STACKS_MAX: u64 = 200;

impl Bench {
    pub(super) async fn try_calls(&mut self, target: Target, calls: &[Call]) -> Result<(), String> {
        if self.server.is_none() || self.stacks.is_multiple_of(STACKS_MAX) {
            let app = TestApp::memory().await;
            let other = app.other_user("mallory", "evil").await;
            self.server = Some(Server { router: app.router(), app, other });
        }
        self.stacks += 1;
        let server = self.server.as_ref().ok_or("there is a server")?;
        let scene = server.scene(self.stacks).await?;
        for call in calls {
            server.send(&scene, call).await?;
        }
        if target == Target::Events {
            server.read_events(&scene).await?;
        }
        server.lives_on(&scene).await
    }
}

impl Server {
    async fn scene(&self, number: u64) -> Result<Scene, String> {
        let project = format!("/api/stacks/{ORG}/p{number}");
        self.ask("POST", &project, &json!({ "stackName": "dev" }), 200).await?;
        let stack = format!("{project}/dev");
        let (update, token) = self.begin(&stack).await?;
        Ok(Scene { stack, update, token })
    }

    async fn begin(&self, stack: &str) -> Result<(String, String), String> {
        let program = json!({ "name": "p", "runtime": "yaml", "options": { "dryRun": false } });
        let body = json!({ "updateKind": "update", "program": program, "journalVersion": 2 });
        let begun = self.ask("POST", &format!("{stack}/begin-update"), &body, 200).await?;
        let text = |name: &str| begun[name].as_str().map(str::to_owned).ok_or(format!("no {name}: {begun}"));
        Ok((text("updateID")?, text("token")?))
    }

    /// A request of the stack's operator, which must get this status.
    async fn ask(&self, method: &str, path: &str, body: &Value, expected: u16) -> Result<Value, String> {
        let authorization = format!("token {}", self.app.token);
        let (status, answer) =
            self.exchange(method, path, &authorization, None, body.to_string().into()).await?;
        if status != expected {
            return Err(format!("{method} {path}: {status} {}", String::from_utf8_lossy(&answer)));
        }
        Ok(serde_json::from_slice(&answer).unwrap_or_default())
    }

    async fn exchange(
        &self,
        method: &str,
        path: &str,
        authorization: &str,
        encoding: Option<&str>,
        body: Vec<u8>,
    ) -> Result<(u16, Vec<u8>), String> {
        let mut request = Request::builder().method(method).uri(path);
        if !authorization.is_empty() {
            request = request.header("Authorization", authorization);
        }
        if let Some(encoding) = encoding {
            request = request.header("Content-Encoding", encoding);
        }
        // An invalid request does not reach a router.
        let Ok(request) = request.body(Body::from(body)) else { return Ok((400, Vec::new())) };
        let answer = AssertUnwindSafe(self.router.clone().oneshot(request)).catch_unwind().await;
        let answer = answer.map_err(|_| format!("{method} {path} panics"))?;
        let answer = answer.map_err(|never| never.to_string())?;
        let status = answer.status().as_u16();
        let bytes = to_bytes(answer.into_body(), usize::MAX).await.map_err(|error| error.to_string())?;
        Ok((status, bytes.to_vec()))
    }

    async fn send(&self, scene: &Scene, call: &Call) -> Result<(), String> {
        let Some((prefix, _)) = scene.stack.rsplit_once('/') else { return Err("no stack".to_owned()) };
        let path = call
            .path
            .replace("/api/stacks/{org}/{project}/{stack}", &scene.stack)
            .replace("/api/stacks/{org}/{project}", prefix)
            .replace("{org}", ORG)
            .replace("{kind}", "update")
            .replace("{update}", &scene.update)
            .replace("{version}", "1")
            .replace("{other}", "1")
            .replace("{guid}", "019b7c3a-0000-7000-8000-000000000001")
            .replace("{project}", "net")
            .replace("{state}", "default")
            .replace("{environment}", "dev")
            .replace("{session}", "00000000-0000-4000-8000-000000000001")
            .replace("{tag}", "stable");
        let authorization = match call.shown {
            Shown::Token => format!("token {}", self.app.token),
            Shown::UpdateToken => format!("update-token {}", scene.token),
            Shown::Other => format!("token {}", self.other),
            Shown::Nothing => String::new(),
        };
        let body = call.body.0.clone();
        let (status, answer) =
            self.exchange(&call.method, &path, &authorization, call.encoding.as_deref(), body).await?;
        let words = String::from_utf8_lossy(&answer);
        if status >= 500 {
            return Err(format!("{} {path}: {status} {words}", call.method));
        }
        if status >= 400 && call.method != Method::HEAD.as_str() && !answer.is_empty() {
            let code = serde_json::from_slice::<Value>(&answer).unwrap_or_default()["code"].clone();
            if code != status {
                return Err(format!("{} {path}: {status} without its code: {words}", call.method));
            }
        }
        Ok(())
    }

    async fn read_events(&self, scene: &Scene) -> Result<(), String> {
        let read = self
            .ask("GET", &format!("{}/update/{}/events", scene.stack, scene.update), &json!({}), 200)
            .await?;
        let sequences = read["events"].as_array().ok_or("events are a list")?.iter();
        let sequences: Vec<_> = sequences.map(|event| event["sequence"].as_u64()).collect();
        if sequences.is_sorted() { Ok(()) } else { Err(format!("events are out of order: {sequences:?}")) }
    }

    /// Whatever was sent, the update can be ended, and another one can run after it.
    async fn lives_on(&self, scene: &Scene) -> Result<(), String> {
        let authorization = format!("token {}", self.app.token);
        let end = format!("{}/update/{}/cancel", scene.stack, scene.update);
        let (status, words) = self.exchange("POST", &end, &authorization, None, Vec::new()).await?;
        // It may have ended, and the stack may have been deleted or renamed.
        if !matches!(status, 204 | 404 | 409) {
            return Err(format!("cancel: {status} {}", String::from_utf8_lossy(&words)));
        }
        let (status, _) = self.exchange("GET", &scene.stack, &authorization, None, Vec::new()).await?;
        if status == 404 {
            return Ok(());
        }
        // Another update may have begun meanwhile and hold the stack.
        let stack = self.ask("GET", &scene.stack, &json!({}), 200).await?;
        if stack["currentOperation"].is_object() {
            let active = stack["activeUpdate"].as_str().unwrap_or_default();
            let _ = self
                .exchange(
                    "POST",
                    &format!("{}/update/{active}/cancel", scene.stack),
                    &authorization,
                    None,
                    Vec::new(),
                )
                .await?;
            self.app.advance(std::time::Duration::from_secs(4_000));
        }
        let (update, token) = self.begin(&scene.stack).await?;
        let path = format!("{}/update/{update}", scene.stack);
        let resource = json!({ "urn": "urn:pulumi:dev::p::pkg:m:T::fuzzed", "custom": true, "id": "1", "type": "pkg:m:T" });
        let entry = json!({ "version": 1, "kind": 1, "sequenceID": 1, "operationID": 1, "state": resource });
        let update_token = format!("update-token {token}");
        for (method, tail, body) in [
            ("PATCH", "journalentries", json!({ "entries": [entry] })),
            ("POST", "complete", json!({ "status": "succeeded" })),
        ] {
            let (status, words) = self
                .exchange(method, &format!("{path}/{tail}"), &update_token, None, body.to_string().into())
                .await?;
            if status != 204 {
                return Err(format!(
                    "{tail} of the update after: {status} {}",
                    String::from_utf8_lossy(&words)
                ));
            }
        }
        let (status, export) = self
            .exchange("GET", &format!("{}/export", scene.stack), &authorization, None, Vec::new())
            .await?;
        let inspection =
            inspect(&export).map_err(|error| format!("the export is invalid: {status} {error}"))?;
        let text = String::from_utf8_lossy(&export);
        if !text.contains("::fuzzed\"") {
            return Err(format!("the export lacks what the update made: {text}"));
        }
        if inspection.integrity_error.is_some() && !text.contains("\"integrity_error\"") {
            return Err(format!(
                "the export breaks a rule and does not say so: {:?}",
                inspection.integrity_error
            ));
        }
        self.ask("GET", &format!("{}/outputs", scene.stack), &json!({}), 200).await?;
        let history = self.ask("GET", &format!("{}/updates", scene.stack), &json!({}), 200).await?;
        let versions: Vec<_> = history["updates"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|entry| entry["version"].as_u64())
            .collect();
        let expected: Vec<_> = (1..=versions.len() as u64).rev().map(Some).collect();
        if versions == expected { Ok(()) } else { Err(format!("versions are not dense: {versions:?}")) }
    }
}

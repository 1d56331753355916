//! A stack and its updates, in the vocabulary of the tests.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use statewright_tests::app::{Answer, Call, ORG, TestApp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A project name that no other test of this process has.
pub(crate) fn new_project() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("shop{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A stack named `dev` of a project of its own.
pub(crate) struct Stack<'a> {
    pub(crate) app: &'a TestApp,
    pub(crate) project: String,
    /// `/api/stacks/{org}/{project}/{stack}`.
    pub(crate) path: String,
}

impl<'a> Stack<'a> {
    pub(crate) async fn new(app: &'a TestApp) -> Self {
        Self::in_project(app, &new_project()).await
    }

    pub(crate) async fn in_project(app: &'a TestApp, project: &str) -> Self {
        app.post(&format!("/api/stacks/{ORG}/{project}"), &json!({ "stackName": "dev" }))
            .send()
            .await
            .expect(200);
        Self { app, project: project.to_owned(), path: format!("/api/stacks/{ORG}/{project}/dev") }
    }

    /// The same stack through another process.
    pub(crate) fn at<'b>(&self, app: &'b TestApp) -> Stack<'b> {
        Stack { app, project: self.project.clone(), path: self.path.clone() }
    }

    pub(crate) fn get(&self, tail: &str) -> Call<'a> {
        self.app.get(&format!("{}{tail}", self.path))
    }

    pub(crate) fn post(&self, tail: &str, body: &Value) -> Call<'a> {
        self.app.post(&format!("{}{tail}", self.path), body)
    }

    pub(crate) fn begin_call(&self, kind: &str, dry_run: bool) -> Call<'a> {
        self.post("/begin-update", &begin_body(kind, dry_run))
    }

    pub(crate) async fn begin(&self) -> Run<'a> {
        self.begin_kind("update", false).await
    }

    /// An update that saves whole deployments.
    pub(crate) async fn begin_whole(&self) -> Run<'a> {
        let mut body = begin_body("update", false);
        body["journalVersion"] = Value::Null;
        self.begun(self.post("/begin-update", &body)).await
    }

    pub(crate) async fn preview(&self) -> Run<'a> {
        self.begin_kind("update", true).await
    }

    pub(crate) async fn begin_kind(&self, kind: &str, dry_run: bool) -> Run<'a> {
        self.begun(self.begin_call(kind, dry_run)).await
    }

    pub(crate) async fn begun(&self, call: Call<'a>) -> Run<'a> {
        let begun = call.send().await.expect(200);
        Run::new(self, begun["updateID"].as_str().unwrap(), begun["token"].as_str().unwrap())
    }

    /// Creates an update without starting it.
    pub(crate) async fn created(&self) -> Run<'a> {
        self.created_by(self.post("/update", &program(false))).await
    }

    pub(crate) async fn created_by(&self, call: Call<'a>) -> Run<'a> {
        let created = call.send().await.expect(200);
        Run::new(self, created["updateID"].as_str().unwrap(), "none yet")
    }

    pub(crate) async fn export(&self) -> Value {
        self.get("/export").send().await.expect(200)
    }

    /// The names of the stack's resources.
    pub(crate) async fn resources(&self) -> Vec<String> {
        names(&self.export().await["deployment"]["resources"])
    }

    /// The names of the resources with a pending operation.
    pub(crate) async fn pending(&self) -> Vec<String> {
        let export = self.export().await;
        let pending = export["deployment"]["pending_operations"].as_array().cloned().unwrap_or_default();
        names(&pending.into_iter().map(|operation| operation["resource"].clone()).collect())
    }

    pub(crate) async fn import(&self, untyped: &Value) {
        let call = self.app.request(reqwest::Method::POST, &format!("{}/import", self.path));
        call.gzip(untyped.to_string().as_bytes()).send().await.expect(200);
    }

    /// A version with resources of these names.
    pub(crate) async fn publish(&self, names: &[&str]) {
        let resources: Vec<Value> = names.iter().map(|name| self.resource(name)).collect();
        self.import(&deployment(&resources)).await;
    }

    pub(crate) async fn version(&self) -> u64 {
        self.get("").send().await.expect(200)["version"].as_u64().unwrap()
    }

    pub(crate) async fn history(&self) -> Vec<Value> {
        self.get("/updates").send().await.expect(200)["updates"].as_array().unwrap().clone()
    }

    pub(crate) fn urn(&self, name: &str) -> String {
        format!("urn:pulumi:dev::{}::pkg:m:T::{name}", self.project)
    }

    pub(crate) fn resource(&self, name: &str) -> Value {
        json!({ "urn": self.urn(name), "custom": true, "id": format!("id-{name}"), "type": "pkg:m:T" })
    }

    /// The journal entry of a created resource.
    pub(crate) fn made(&self, sequence: i64, name: &str) -> Value {
        entry(sequence, 1, &json!({ "state": self.resource(name) }))
    }

    /// The journal entry of a resource that is being created.
    pub(crate) fn making(&self, sequence: i64, name: &str) -> Value {
        entry(sequence, 0, &json!({ "operation": { "type": "creating", "resource": self.resource(name) } }))
    }
}

/// A journal entry with the members that every entry has. Its operation has the number of its sequence.
pub(crate) fn entry(sequence: i64, kind: i64, more: &Value) -> Value {
    let mut entry = json!({
        "version": 1, "kind": kind, "sequenceID": sequence, "operationID": sequence, "removeOld": null, "removeNew": null,
    });
    for (name, value) in more.as_object().unwrap() {
        entry[name] = value.clone();
    }
    entry
}

pub(crate) fn deployment(resources: &[Value]) -> Value {
    let manifest = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
    json!({ "version": 3, "deployment": { "manifest": manifest, "resources": resources } })
}

pub(crate) fn program(dry_run: bool) -> Value {
    json!({
        "name": "shop", "runtime": "yaml", "main": "", "description": "", "config": {},
        "options": { "dryRun": dry_run, "parallel": 16 },
        "metadata": { "message": "", "environment": {} },
    })
}

pub(crate) fn begin_body(kind: &str, dry_run: bool) -> Value {
    json!({ "updateKind": kind, "program": program(dry_run), "journalVersion": 2 })
}

/// One edit from one text to another: the part between their common prefix and suffix.
pub(crate) fn delta_body(sequence: u64, before: &str, after: &str) -> Value {
    let common = |pairs: &mut dyn Iterator<Item = (char, char)>| {
        pairs.take_while(|(one, other)| one == other).map(|(one, _)| one.len_utf8()).sum::<usize>()
    };
    let start = common(&mut before.chars().zip(after.chars()));
    let end = common(&mut before[start..].chars().rev().zip(after[start..].chars().rev()));
    json!({
        "version": 3, "checkpointHash": hex(after), "sequenceNumber": sequence,
        "deploymentDelta": [edit(start, before.len() - end, &after[start..after.len() - end])],
    })
}

/// An edit as the client writes it.
pub(crate) fn edit(start: usize, end: usize, new_text: &str) -> Value {
    let point = |offset: usize| json!({ "line": 1, "column": 1, "offset": offset });
    json!({ "Span": { "uri": "", "start": point(start), "end": point(end) }, "NewText": new_text })
}

pub(crate) fn hex(text: &str) -> String {
    hex_bytes(text.as_bytes())
}

pub(crate) fn hex_bytes(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn names(resources: &Value) -> Vec<String> {
    let name = |resource: &Value| {
        let urn = resource["urn"].as_str().unwrap();
        let mark =
            |member: &str| if resource[member] == true { format!("({member})") } else { String::new() };
        format!("{}{}{}", urn.rsplit("::").next().unwrap(), mark("delete"), mark("pendingReplacement"))
    };
    resources.as_array().map(|resources| resources.iter().map(name).collect()).unwrap_or_default()
}

#[derive(Clone)]
pub(crate) struct Run<'a> {
    app: &'a TestApp,
    pub(crate) id: String,
    pub(crate) token: String,
    /// `{stack}/update/{id}`.
    pub(crate) path: String,
}

impl<'a> Run<'a> {
    fn new(stack: &Stack<'a>, id: &str, token: &str) -> Self {
        let path = format!("{}/update/{id}", stack.path);
        Self { app: stack.app, id: id.to_owned(), token: token.to_owned(), path }
    }

    pub(crate) fn of(app: &'a TestApp, id: &str, token: &str, path: &str) -> Self {
        Self { app, id: id.to_owned(), token: token.to_owned(), path: path.to_owned() }
    }

    /// The same update through another process.
    pub(crate) fn at<'b>(&self, app: &'b TestApp) -> Run<'b> {
        Run { app, id: self.id.clone(), token: self.token.clone(), path: self.path.clone() }
    }

    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { token: token.to_owned(), ..self.clone() }
    }

    pub(crate) async fn start(&self, journal_version: Option<u32>) -> Answer {
        self.app.post(&self.path, &json!({ "journalVersion": journal_version })).send().await
    }

    pub(crate) async fn append(&self, entries: &[Value]) -> Answer {
        self.append_text(json!({ "entries": entries }).to_string().as_bytes()).await
    }

    pub(crate) async fn append_text(&self, body: &[u8]) -> Answer {
        let call = self.app.request(reqwest::Method::PATCH, &format!("{}/journalentries", self.path));
        call.update_token(&self.token).gzip(body).send().await
    }

    pub(crate) async fn checkpoint(&self, untyped: &Value) -> Answer {
        self.checkpoint_text(untyped.to_string().as_bytes()).await
    }

    pub(crate) async fn checkpoint_text(&self, untyped: &[u8]) -> Answer {
        let call = self.app.request(reqwest::Method::PATCH, &format!("{}/checkpoint", self.path));
        call.update_token(&self.token).gzip(untyped).send().await
    }

    /// Saves a whole text under a number.
    pub(crate) async fn save(&self, sequence: u64, text: &str) -> Answer {
        let body = format!(r#"{{"version":3,"untypedDeployment":{text},"sequenceNumber":{sequence}}}"#);
        self.patch_gzip("checkpointverbatim", body.as_bytes()).await
    }

    /// Saves the difference between two texts under a number.
    pub(crate) async fn delta(&self, sequence: u64, before: &str, after: &str) -> Answer {
        self.delta_text(&delta_body(sequence, before, after).to_string()).await
    }

    pub(crate) async fn delta_text(&self, body: &str) -> Answer {
        self.patch_gzip("checkpointdelta", body.as_bytes()).await
    }

    async fn patch_gzip(&self, tail: &str, body: &[u8]) -> Answer {
        let call = self.app.request(reqwest::Method::PATCH, &format!("{}/{tail}", self.path));
        call.update_token(&self.token).gzip(body).send().await
    }

    pub(crate) async fn event(&self, sequence: u64) -> Answer {
        let body = json!({ "events": [{ "sequence": sequence, "timestamp": 1, "cancelEvent": {} }] });
        let call = self.app.request(reqwest::Method::POST, &format!("{}/events/batch", self.path));
        call.update_token(&self.token).gzip(body.to_string().as_bytes()).send().await
    }

    pub(crate) async fn renew(&self, seconds: i64) -> Answer {
        let body = json!({ "token": "", "duration": seconds });
        self.app.post(&format!("{}/renew_lease", self.path), &body).update_token(&self.token).send().await
    }

    pub(crate) async fn complete(&self, status: &str) -> Answer {
        let body = json!({ "status": status });
        self.app.post(&format!("{}/complete", self.path), &body).update_token(&self.token).send().await
    }

    pub(crate) async fn cancel(&self) -> Answer {
        self.app.request(reqwest::Method::POST, &format!("{}/cancel", self.path)).send().await
    }

    pub(crate) async fn status(&self) -> String {
        let status = self.app.get(&self.path).send().await.expect(200);
        status["status"].as_str().unwrap().to_owned()
    }
}

/// A request whose path and headers arrive exactly as written; HTTP clients normalize both.
pub(crate) async fn raw(
    app: &TestApp,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, Vec<u8>) {
    let mut socket = TcpStream::connect(app.url.trim_start_matches("http://")).await.unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: statewright\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    socket.write_all(head.as_bytes()).await.unwrap();
    // A server that refuses after the head closes the connection before it has the body.
    let _ = socket.write_all(body).await;
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer).await;
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("an answer has a head");
    let status = std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap();
    (status, answer.split_off(end + 4))
}

/// The message of a refusal; its body has the integer code that the CLI checks.
#[track_caller]
pub(crate) fn refusal(status: u16, body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body)
        .unwrap_or_else(|error| panic!("{status} without JSON ({error}): {}", String::from_utf8_lossy(body)));
    assert_eq!(body["code"], Value::from(status), "{body}");
    assert!(body.get("ID").is_some() || body["reason"].is_string(), "{body}");
    body["message"].as_str().unwrap_or_else(|| panic!("no message: {body}")).to_owned()
}

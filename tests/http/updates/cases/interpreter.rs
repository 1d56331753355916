//! Performs the steps of a case.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use statewright_shared::services::store::compression::gzip;
use statewright_tests::app::{Backend, ORG, TestApp};

use super::canonical;
use crate::world::{new_project, raw};

/// Performs the case with this id.
pub(super) async fn run(id: &str) {
    perform(id, &TestApp::memory().await, false).await;
}

/// Performs the case with this name on each backend of users. A gateway passes only methods of HTTP.
pub(super) async fn run_on(backend: Backend, name: &str) {
    let app = TestApp::on(backend).await;
    perform(&name.replace('_', "-"), &app, backend == Backend::Functions).await;
}

async fn perform(id: &str, app: &TestApp, is_through_gateway: bool) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("data/cases/{id}.json"));
    let case: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(case["id"], id);
    let mut run = Run { app, is_through_gateway, named: HashMap::new() };
    for (name, value) in [("org", ORG), ("project", &new_project()), ("stack", "dev")] {
        run.name(name, value.into());
    }
    for (index, step) in case["steps"].as_array().unwrap().iter().enumerate() {
        let step = run.fill(step);
        run.step(&step, &format!("step {} of {id}: {}", index + 1, case["title"])).await;
    }
}

struct Run<'a> {
    app: &'a TestApp,
    is_through_gateway: bool,
    /// The values of `${…}`.
    named: HashMap<String, Value>,
}

impl Run<'_> {
    fn name(&mut self, name: &str, value: Value) {
        self.named.insert(name.to_owned(), value);
    }

    #[track_caller]
    fn text(&self, name: &str) -> &str {
        self.named.get(name).and_then(Value::as_str).unwrap_or_else(|| panic!("no text has the name {name}"))
    }

    fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill_text(text),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(name, value)| {
                        (self.fill_text(name).as_str().unwrap().to_owned(), self.fill(value))
                    })
                    .collect(),
            ),
            other => other.clone(),
        }
    }

    /// A text that is one placeholder becomes the value itself; others become text.
    fn fill_text(&self, text: &str) -> Value {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').unwrap();
            // Steps name their results, so a step is filled only when its turn comes.
            let value = self.named.get(name).unwrap_or_else(|| panic!("no value has the name {name}"));
            if before.is_empty() && after.is_empty() && filled.is_empty() {
                return value.clone();
            }
            filled.push_str(before);
            filled.push_str(&value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            rest = after;
        }
        filled.push_str(rest);
        filled.into()
    }

    async fn step(&mut self, step: &Value, what: &str) {
        if let Some(make) = step["make"].as_str() {
            match make {
                "stack" => self.make_stack(step).await,
                "import" => self.make_import(step).await,
                "update" => self.make_update(step).await,
                "journal" => self.make_journal(step).await,
                "checkpoint" => self.make_checkpoint(step).await,
                "complete" => self.make_complete(step).await,
                other => panic!("{what}: unknown generator {other}"),
            }
        } else if let Some(seconds) = step["wait"].as_u64() {
            self.app.advance(Duration::from_secs(seconds));
        } else if let Some(stack) = step["export"].as_str() {
            self.compare_export(stack, step, what).await;
        } else if let Some(call) = step["call"].as_str() {
            self.call(call, step, what).await;
        } else {
            panic!("{what}: unknown step {step}");
        }
    }

    async fn request(
        &self,
        method: &str,
        path: &str,
        auth: &str,
        body: Vec<u8>,
        compress: bool,
        more: &Value,
    ) -> (u16, Vec<u8>) {
        let mut headers = HashMap::from([
            ("Accept".to_owned(), "application/vnd.pulumi+9".to_owned()),
            ("Content-Type".to_owned(), "application/json".to_owned()),
        ]);
        match auth {
            "none" => {}
            "basic" => {
                let encoded = STANDARD.encode(format!("anybody:{}", self.app.token));
                headers.insert("Authorization".to_owned(), format!("Basic {encoded}"));
            }
            "user" => drop(headers.insert("Authorization".to_owned(), format!("token {}", self.app.token))),
            update => {
                let token = self.text(&format!("{update}.token"));
                headers.insert("Authorization".to_owned(), format!("update-token {token}"));
            }
        }
        if compress {
            headers.insert("Content-Encoding".to_owned(), "gzip".to_owned());
        }
        for (name, value) in more.as_object().into_iter().flatten() {
            match value.as_str() {
                Some(value) => drop(headers.insert(name.clone(), value.to_owned())),
                None => drop(headers.remove(name)),
            }
        }
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let body = if compress { gzip(&body).to_vec() } else { body };
        raw(self.app, method, path, &headers, &body).await
    }

    async fn must(&self, method: &str, path: &str, auth: &str, body: &Value, compress: bool) -> Value {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let (status, answer) = self.request(method, path, auth, body, compress, &Value::Null).await;
        assert!(status < 300, "{method} {path} answered {status}: {}", String::from_utf8_lossy(&answer));
        if answer.is_empty() { Value::Null } else { serde_json::from_slice(&answer).unwrap() }
    }

    async fn make_stack(&mut self, step: &Value) {
        let stack = step["name"].as_str().unwrap_or_else(|| self.text("stack"));
        let path = format!("{}/{}", self.text("org"), self.text("project"));
        let body = json!({ "stackName": stack, "tags": step["tags"] });
        self.must("POST", &format!("/api/stacks/{path}"), "user", &body, false).await;
        self.name(&format!("{}.path", step["as"].as_str().unwrap()), format!("{path}/{stack}").into());
    }

    async fn make_import(&mut self, step: &Value) {
        let path = format!("/api/stacks/{}", self.text(&format!("{}.path", step["stack"].as_str().unwrap())));
        let mut deployment = step["deployment"].clone();
        if deployment["manifest"].is_null() {
            deployment["manifest"] = json!({ "time": "2026-01-01T00:00:00Z", "magic": "", "version": "" });
        }
        let mut body = json!({ "version": step["version"].as_u64().unwrap_or(3), "deployment": deployment });
        if !step["features"].is_null() {
            body["features"] = step["features"].clone();
        }
        let imported = self.must("POST", &format!("{path}/import"), "user", &body, true).await;
        let update = imported["updateId"].as_str().unwrap();
        let polled = self.must("GET", &format!("{path}/update/{update}"), "user", &Value::Null, false).await;
        assert_eq!(polled["status"], "succeeded");
    }

    async fn make_update(&mut self, step: &Value) {
        let name = step["as"].as_str().unwrap();
        let kind = step["kind"].as_str().unwrap_or("update");
        let stack = self.text(&format!("{}.path", step["stack"].as_str().unwrap())).to_owned();
        let program = json!({
            "name": self.text("project"), "runtime": "yaml", "main": "", "description": "", "config": {},
            "options": {
                "localPolicyPackPaths": null, "color": "raw", "dryRun": kind == "preview", "parallel": 16,
                "showConfig": false, "showReplacementSteps": false, "showNames": false, "summary": false,
                "debug": false,
            },
            "metadata": { "message": step["message"].as_str().unwrap_or(""), "environment": {} },
        });
        let created =
            self.must("POST", &format!("/api/stacks/{stack}/{kind}"), "user", &program, false).await;
        let path = format!("{stack}/{kind}/{}", created["updateID"].as_str().unwrap());
        self.name(&format!("{name}.id"), created["updateID"].clone());
        self.name(&format!("{name}.path"), path.clone().into());
        if step["start"] == false {
            return;
        }
        let body = json!({ "tags": step["tags"], "journalVersion": step["journal"].as_u64().unwrap_or(1) });
        let started = self.must("POST", &format!("/api/stacks/{path}"), "user", &body, false).await;
        self.name(&format!("{name}.token"), started["token"].clone());
        self.name(&format!("{name}.version"), started["version"].clone());
    }

    async fn to_update(&self, method: &str, tail: &str, step: &Value, body: &Value, compress: bool) {
        let update = step["update"].as_str().unwrap();
        let path = format!("/api/stacks/{}/{tail}", self.text(&format!("{update}.path")));
        self.must(method, &path, update, body, compress).await;
    }

    async fn make_journal(&mut self, step: &Value) {
        for batch in step["batches"].as_array().unwrap() {
            self.to_update("PATCH", "journalentries", step, &json!({ "entries": batch }), true).await;
        }
    }

    async fn make_checkpoint(&mut self, step: &Value) {
        let body = json!({
            "isInvalid": false, "version": step["version"].as_u64().unwrap_or(3),
            "deployment": step["deployment"], "features": step["features"],
        });
        self.to_update("PATCH", "checkpoint", step, &body, true).await;
    }

    async fn make_complete(&mut self, step: &Value) {
        let body = json!({ "status": step["status"].as_str().unwrap_or("succeeded") });
        self.to_update("POST", "complete", step, &body, false).await;
    }

    async fn compare_export(&mut self, stack: &str, step: &Value, what: &str) {
        let version = step["version"].as_u64().map(|version| format!("/{version}")).unwrap_or_default();
        let path = format!("/api/stacks/{}/export{version}", self.text(&format!("{stack}.path")));
        let (status, body) = self.request("GET", &path, "user", Vec::new(), false, &Value::Null).await;
        assert_eq!(status, 200, "{what}: {}", String::from_utf8_lossy(&body));
        let export: Value = serde_json::from_slice(&body).unwrap();
        let manifest = &export["deployment"]["manifest"];
        let magic = match manifest["version"].as_str().unwrap_or_default() {
            "" => String::new(),
            version => Sha256::digest(version).iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        assert_eq!(manifest["magic"].as_str().unwrap_or_default(), magic, "{what}: {manifest}");
        if !step["deployment"].is_null() {
            assert_eq!(canonical(&export["deployment"]), canonical(&step["deployment"]), "{what}");
        }
        check(&step["expect"], status, &body, what);
    }

    async fn call(&mut self, call: &str, step: &Value, what: &str) {
        let (method, path) = call.split_once(' ').unwrap();
        let state = format!("/tfstate/{ORG}/{path}");
        let path = if step["state"] == true { &state } else { path };
        let (method, path) =
            if self.is_through_gateway { passing(method, path) } else { (method, path.to_owned()) };
        let path = path.as_str();
        let body = if let Some(encoded) = step["raw_base64"].as_str() {
            STANDARD.decode(encoded).unwrap()
        } else if let Some(text) = step["raw"].as_str() {
            text.as_bytes().to_vec()
        } else if step["body"].is_null() {
            Vec::new()
        } else {
            step["body"].to_string().into_bytes()
        };
        let auth = step["auth"].as_str().unwrap_or("user");
        for _ in 0..step["times"].as_u64().unwrap_or(1) {
            let compress = step["gzip"] == true;
            let (status, answer) =
                self.request(method, path, auth, body.clone(), compress, &step["headers"]).await;
            check(&step["expect"], status, &answer, what);
            let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
            for (name, place) in step["save"].as_object().into_iter().flatten() {
                let value = at(&answer, place.as_str().unwrap()).clone();
                self.name(name, value);
            }
        }
    }
}

/// A request as a gateway passes it on.
fn passing<'m>(method: &'m str, path: &str) -> (&'m str, String) {
    let below = if path.ends_with("/lock") || path.ends_with("/unlock") { "" } else { "/lock" };
    match method {
        "LOCK" => ("POST", format!("{path}{below}")),
        "UNLOCK" => ("DELETE", format!("{path}{below}")),
        method => (method, path.to_owned()),
    }
}

/// The value at a path such as `updates[0].kind`; null if there is none.
fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    let parts = path.split(['.', '[', ']']).filter(|part| !part.is_empty());
    parts.fold(value, |value, part| match part.parse::<usize>() {
        Ok(index) if value.is_array() => &value[index],
        _ => &value[part],
    })
}

fn status_fits(wanted: &Value, status: u16) -> bool {
    match wanted {
        Value::Array(any) => any.iter().any(|wanted| status_fits(wanted, status)),
        // Such as "4xx".
        Value::String(class) => class.starts_with(&(status / 100).to_string()),
        exact => exact.as_u64() == Some(status.into()),
    }
}

#[track_caller]
fn check(expect: &Value, status: u16, body: &[u8], what: &str) {
    let text = String::from_utf8_lossy(body);
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let what = format!("{what}: {status} {text}");
    for (kind, wanted) in expect.as_object().into_iter().flatten() {
        let places = || wanted.as_array().unwrap().iter().map(|place| place.as_str().unwrap());
        let pairs = || wanted.as_object().unwrap().iter();
        match kind.as_str() {
            "status" => assert!(status_fits(wanted, status), "{what}"),
            "json" => pairs().for_each(|(place, value)| assert_eq!(at(&answer, place), value, "{what}")),
            "has" => places().for_each(|place| {
                let found = at(&answer, place);
                assert!(!found.is_null() && found != "", "{what}: {place} is missing");
            }),
            "lacks" => places().for_each(|place| {
                let found = at(&answer, place);
                let nothing = [json!(null), json!(""), json!([]), json!({}), json!(0), json!(false)];
                assert!(nothing.contains(found), "{what}: {place} exists");
            }),
            "count" => pairs().for_each(|(place, count)| {
                let found = at(&answer, place).as_array().map_or(0, Vec::len);
                assert_eq!(Value::from(found), *count, "{what}: {place}");
            }),
            "text_has" => places().for_each(|part| assert!(text.contains(part), "{what}: no {part:?}")),
            "text" => assert_eq!(text, wanted.as_str().unwrap(), "{what}"),
            "length_at_least" => assert!(body.len() as u64 >= wanted.as_u64().unwrap(), "{what}"),
            other => panic!("{what}: unknown expectation {other}"),
        }
    }
}

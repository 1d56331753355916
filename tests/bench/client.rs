//! Requests to a measured server, each with the time from its first byte to the last of its answer.

use std::io;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::services::store::compression::{gunzip, gzip};
use statewright_tests::stopwatch::Stopwatch;

use crate::process::{ORGANIZATION, Server};

/// The one user of a server.
pub(crate) struct Client<'a> {
    http: reqwest::Client,
    url: &'a str,
    token: &'a str,
    organization: &'a str,
}

/// An answer of 2xx.
pub(crate) struct Answer {
    pub(crate) milliseconds: f64,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> io::Result<Value> {
        if self.body.starts_with(&[0x1f, 0x8b]) {
            return Ok(serde_json::from_slice(&gunzip(&self.body).map_err(io::Error::other)?)?);
        }
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl<'a> Client<'a> {
    pub(crate) fn of(server: &'a Server) -> Self {
        Self::to(&server.url, &server.token, ORGANIZATION)
    }

    /// A client of the server at this address.
    pub(crate) fn to(url: &'a str, token: &'a str, organization: &'a str) -> Self {
        Self { http: reqwest::Client::new(), url, token, organization }
    }

    /// A request with the user's token, or with an update's.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        update_token: Option<&str>,
        body: Option<Vec<u8>>,
    ) -> io::Result<Answer> {
        let authorization = match update_token {
            Some(token) => format!("update-token {token}"),
            None => format!("token {}", self.token),
        };
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.url))
            .header("Authorization", authorization)
            .header("Accept-Encoding", "gzip");
        if let Some(body) = body {
            let compressed = body.starts_with(&[0x1f, 0x8b]);
            request = request.header("Content-Type", "application/json").body(body);
            if compressed {
                request = request.header("Content-Encoding", "gzip");
            }
        }
        let watch = Stopwatch::start();
        let response = request.send().await.map_err(io::Error::other)?;
        let status = response.status();
        let body = response.bytes().await.map_err(io::Error::other)?.to_vec();
        let milliseconds = watch.elapsed().as_secs_f64() * 1000.0;
        if !status.is_success() {
            return Err(io::Error::other(format!("{path}: {status} {}", String::from_utf8_lossy(&body))));
        }
        Ok(Answer { milliseconds, body })
    }

    pub(crate) async fn get(&self, path: &str) -> io::Result<Answer> {
        self.send(Method::GET, path, None, None).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> io::Result<Answer> {
        self.send(Method::POST, path, None, Some(body.to_string().into_bytes())).await
    }

    /// Makes a stack, and returns its path.
    pub(crate) async fn stack(&self, project: &str, name: &str) -> io::Result<String> {
        let project = format!("/api/stacks/{}/{project}", self.organization);
        self.post(&project, &json!({ "stackName": name })).await?;
        Ok(format!("{project}/{name}"))
    }

    pub(crate) async fn import(&self, stack: &str, state: &[u8]) -> io::Result<Answer> {
        self.send(Method::POST, &format!("{stack}/import"), None, Some(gzip(state).to_vec())).await
    }

    /// Begins an update, and returns its path and its token.
    pub(crate) async fn begin(&self, stack: &str, journals: bool) -> io::Result<(String, String)> {
        let program = json!({
            "name": "bench", "runtime": "yaml", "main": "", "description": "", "config": {},
            "options": { "parallel": 16 }, "metadata": { "message": "", "environment": {} },
        });
        let version = if journals { json!(2) } else { Value::Null };
        let body = json!({ "updateKind": "update", "program": program, "journalVersion": version });
        let begun = self.post(&format!("{stack}/begin-update"), &body).await?.json()?;
        let word = |name: &str| begun[name].as_str().unwrap_or_default().to_owned();
        Ok((format!("{stack}/update/{}", word("updateID")), word("token")))
    }

    pub(crate) async fn complete(&self, update: &str, token: &str) -> io::Result<Answer> {
        let body = json!({ "status": "succeeded" }).to_string().into_bytes();
        self.send(Method::POST, &format!("{update}/complete"), Some(token), Some(body)).await
    }
}

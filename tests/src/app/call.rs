//! A request to a server of a test, and its answer, which is compared with the document.

use reqwest::{Method, Response, StatusCode};
use serde_json::Value;

use crate::document;

/// A request that is being built.
#[must_use]
pub struct Call<'a> {
    /// The server, for messages.
    pub(super) url: &'a str,
    pub(super) request: reqwest::RequestBuilder,
    pub(super) authorization: Option<String>,
}

impl Call<'_> {
    pub fn token(mut self, token: &str) -> Self {
        self.authorization = Some(format!("token {token}"));
        self
    }

    pub fn update_token(mut self, token: &str) -> Self {
        self.authorization = Some(format!("update-token {token}"));
        self
    }

    pub fn anonymous(mut self) -> Self {
        self.authorization = None;
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.request = self.request.header(name, value);
        self
    }

    pub fn json(mut self, body: &Value) -> Self {
        self.request = self.request.json(body);
        self
    }

    /// With a JSON body, compressed as the CLI does.
    pub fn gzip(self, body: &[u8]) -> Self {
        self.header("Content-Encoding", "gzip")
            .raw(statewright_shared::services::store::compression::gzip(body).to_vec())
    }

    pub fn raw(mut self, body: Vec<u8>) -> Self {
        self.request = self.request.body(body);
        self
    }

    /// Sends it.
    pub async fn send(self) -> Answer {
        let mut request = self.request;
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        let (client, request) = request.build_split();
        let request = request.expect("the request is one");
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let response = client.execute(request).await.expect("the server answers");
        let answer = Answer::read(response, self.url).await;
        if answer.status.is_success() && !answer.headers.contains_key("Content-Encoding") {
            let status = answer.status.as_u16();
            let wrong = document::differences(method.as_str(), &path, status, &answer.bytes);
            assert!(wrong.is_empty(), "{method} {path}: {wrong:#?} in {}", answer.text());
        }
        if answer.status.as_u16() >= 400 && method != Method::HEAD {
            let wrong = document::refusal_differences(answer.status.as_u16(), &answer.bytes);
            assert!(wrong.is_empty(), "{method} {path}: {wrong:#?} of {}", answer.text());
        }
        answer
    }
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: reqwest::header::HeaderMap,
    /// The body as it came.
    pub bytes: Vec<u8>,
    url: String,
}

impl Answer {
    async fn read(response: Response, url: &str) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.bytes().await.expect("the answer is whole").to_vec();
        Self { status, headers, bytes, url: url.to_owned() }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// # Panics
    /// When it is none.
    #[track_caller]
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("{} did not answer JSON ({error}): {}", self.url, self.text()))
    }

    /// The body as JSON. Expects this status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        if self.bytes.is_empty() { Value::Null } else { self.value() }
    }

    /// The message of a refusal. Expects this status, and a body that the CLI understands.
    #[track_caller]
    pub fn refused(&self, status: u16) -> String {
        let body = self.expect(status);
        assert_eq!(body["code"], Value::from(status), "the CLI checks the body's code: {body}");
        body["message"].as_str().unwrap_or_else(|| panic!("no message: {body}")).to_owned()
    }
}

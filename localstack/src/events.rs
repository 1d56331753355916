//! The events that gateways make of requests, and the answers they make of functions' results.
//!
//! Sources: Amazon API Gateway, "AWS Lambda proxy integrations for HTTP APIs", payload format 2.0; AWS Lambda, "Function URLs";
//! Elastic Load Balancing, "Lambda functions as targets".

use axum::body::{Body, Bytes};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, COOKIE, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// The kind of gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayKind {
    /// API Gateway's HTTP API, payload format 2.0.
    HttpApi,
    /// A function URL: the same events, with a host of the function's own.
    FunctionUrl,
    /// An application load balancer.
    Balancer,
}

/// The maximum of an event and of an answer, in bytes. Source: AWS Lambda quotas.
const EVENT_BYTES_MAX: usize = 6 * 1024 * 1024;

/// The same for a load balancer.
const BALANCER_BYTES_MAX: usize = 1024 * 1024;

impl GatewayKind {
    /// The longest event or answer.
    pub(crate) fn bytes_max(self) -> usize {
        match self {
            Self::HttpApi | Self::FunctionUrl => EVENT_BYTES_MAX,
            Self::Balancer => BALANCER_BYTES_MAX,
        }
    }

    /// The event of a request.
    pub(crate) fn event(self, parts: &Parts, stage: Option<&str>, route: &str, body: &Bytes) -> Value {
        let (body, is_base64) = encoded(&parts.headers, body);
        let host = parts.headers.get("host").and_then(|host| host.to_str().ok()).unwrap_or_default();
        let path = parts.uri.path();
        match self {
            Self::HttpApi | Self::FunctionUrl => json!({
                "version": "2.0",
                "routeKey": if self == Self::HttpApi { route } else { "$default" },
                "rawPath": path,
                "rawQueryString": parts.uri.query().unwrap_or_default(),
                "headers": without_cookies(&parts.headers),
                "cookies": cookies(&parts.headers),
                "requestContext": {
                    "accountId": "123456789012",
                    "apiId": "gateway",
                    "domainName": host,
                    "domainPrefix": host.split('.').next(),
                    "http": {
                        "method": parts.method.as_str(),
                        "path": path,
                        "protocol": "HTTP/1.1",
                        "sourceIp": "127.0.0.1",
                        "userAgent": parts.headers.get("user-agent").and_then(|agent| agent.to_str().ok()),
                    },
                    "requestId": "gateway",
                    "routeKey": if self == Self::HttpApi { route } else { "$default" },
                    "stage": stage.unwrap_or("$default"),
                    "time": "01/Jan/2026:00:00:00 +0000",
                    "timeEpoch": 1_767_225_600_000_u64,
                },
                "body": body,
                "isBase64Encoded": is_base64,
            }),
            Self::Balancer => {
                let mut headers = joined(&parts.headers);
                headers.insert("x-forwarded-for".to_owned(), "127.0.0.1".into());
                let query: Map<String, Value> = parts
                    .uri
                    .query()
                    .unwrap_or_default()
                    .split('&')
                    .filter(|pair| !pair.is_empty())
                    .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                    .map(|(name, value)| (name.to_owned(), value.into()))
                    .collect();
                json!({
                    "requestContext": { "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:gateway" } },
                    "httpMethod": parts.method.as_str(),
                    "path": path,
                    "queryStringParameters": query,
                    "headers": headers,
                    "body": body.unwrap_or_default(),
                    "isBase64Encoded": is_base64,
                })
            }
        }
    }

    /// The answer for the client, made of the function's result.
    pub(crate) fn answer(self, answer: &[u8]) -> Response {
        if answer.len() > self.bytes_max() {
            return self.failed();
        }
        serde_json::from_slice(answer)
            .ok()
            .and_then(|answer| decoded(&answer))
            .unwrap_or_else(|| self.failed())
    }

    /// The client's answer for a request that is longer than an event may be. Clients do not understand this text.
    pub(crate) fn too_long(self) -> Response {
        let words = match self {
            Self::HttpApi | Self::FunctionUrl => r#"{"message":"Request Entity Too Large"}"#,
            Self::Balancer => "<html><body>413 Request Entity Too Large</body></html>",
        };
        (StatusCode::PAYLOAD_TOO_LARGE, words).into_response()
    }

    /// The client's answer when a function failed.
    pub(crate) fn failed(self) -> Response {
        let (status, words) = match self {
            Self::HttpApi => (StatusCode::INTERNAL_SERVER_ERROR, r#"{"message":"Internal Server Error"}"#),
            Self::FunctionUrl => (StatusCode::BAD_GATEWAY, "Internal Server Error"),
            Self::Balancer => (StatusCode::BAD_GATEWAY, "<html><body>502 Bad Gateway</body></html>"),
        };
        (status, words).into_response()
    }

    /// The client's answer when a function does not answer in time.
    pub(crate) fn timed_out(self) -> Response {
        let (status, words) = match self {
            Self::HttpApi => (StatusCode::SERVICE_UNAVAILABLE, r#"{"message":"Service Unavailable"}"#),
            Self::FunctionUrl | Self::Balancer => (StatusCode::GATEWAY_TIMEOUT, "Gateway Timeout"),
        };
        (status, words).into_response()
    }
}

/// The body for an event: text as it is, anything else in base64.
fn encoded(headers: &HeaderMap, body: &Bytes) -> (Option<String>, bool) {
    if body.is_empty() {
        return (None, false);
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let says_text = !headers.contains_key(CONTENT_ENCODING)
        && ["text/", "application/json", "application/javascript", "application/xml"]
            .iter()
            .any(|kind| content_type.starts_with(kind));
    match std::str::from_utf8(body) {
        Ok(text) if says_text => (Some(text.to_owned()), false),
        Ok(_) | Err(_) => (Some(STANDARD.encode(body)), true),
    }
}

/// Headers as one text each; names are in lower case already.
fn joined(headers: &HeaderMap) -> Map<String, Value> {
    let value = |name: &HeaderName| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.collect::<Vec<_>>().join(",")
    };
    headers.keys().map(|name| (name.as_str().to_owned(), value(name).into())).collect()
}

/// The headers of an event in the payload format 2.0, which has cookies apart.
fn without_cookies(headers: &HeaderMap) -> Map<String, Value> {
    let mut headers = joined(headers);
    headers.remove(COOKIE.as_str());
    headers
}

/// The cookies of an event in the payload format 2.0.
fn cookies(headers: &HeaderMap) -> Vec<&str> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(';')).map(str::trim).filter(|cookie| !cookie.is_empty()).collect()
}

fn decoded(answer: &Value) -> Option<Response> {
    let status = StatusCode::from_u16(answer["statusCode"].as_u64()?.try_into().ok()?).ok()?;
    let text = answer["body"].as_str().unwrap_or_default();
    let body = match answer["isBase64Encoded"].as_bool() {
        Some(true) => STANDARD.decode(text).ok()?,
        Some(false) | None => text.as_bytes().to_vec(),
    };
    let mut response = Response::builder().status(status).body(Body::from(body)).ok()?;
    let headers = response.headers_mut();
    for (name, value) in answer["headers"].as_object().into_iter().flatten() {
        let (name, value) = (HeaderName::try_from(name).ok()?, HeaderValue::try_from(value.as_str()?).ok()?);
        headers.insert(name, value);
    }
    // In the payload format 2.0, each cookie becomes a header of its own.
    for cookie in answer["cookies"].as_array().into_iter().flatten() {
        headers.append(SET_COOKIE, HeaderValue::try_from(cookie.as_str()?).ok()?);
    }
    headers.remove("content-length");
    Some(response)
}

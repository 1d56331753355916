//! Converts events of gateways to requests. Records the kind of gateway and the client's address, and removes
//! the path prefix that the gateway added.

use std::mem;
use std::net::{IpAddr, SocketAddr};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::HOST;
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lambda_http::RequestExt as _;
use lambda_http::aws_lambda_events::apigw::ApiGatewayV2httpRequestContext;
use lambda_http::aws_lambda_events::query_map::QueryMap;
use lambda_http::request::{LambdaRequest, RequestContext};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use statewright_shared::api::{ClientCertificate, Gateway, Peer, RequestId};
use statewright_shared::wire::Reason;

/// The size limit of a URL, in bytes. Source: the crate `http`, which counts them in 16 bits, less a reserve
/// for what precedes the path.
const URL_BYTES_MAX: usize = u16::MAX as usize - 256;

/// The bytes that one escaped byte of a path or query takes.
const ESCAPED_BYTES: usize = 3;

/// An event from Lambda.
pub(crate) enum Event {
    /// A request.
    Request(Box<LambdaRequest>, Apart),
    /// A scheduled event that only keeps a process running: `{"warmup": true}`.
    WarmUp,
    /// Anything else, including invalid requests.
    Odd,
}

/// Parts of an event that are kept out of the conversion to a request, which fails on
/// values that it cannot read.
#[derive(Debug, Default)]
pub(crate) struct Apart {
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

impl<'de> Deserialize<'de> for Event {
    /// Accepts any JSON: an error here would be an error of the function for its gateway.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        match serde_json::from_str(text.get()) {
            Ok(WarmUp { warmup: true }) => Ok(Self::WarmUp),
            Ok(WarmUp { warmup: false }) | Err(_) => Ok(read(text.get()).unwrap_or(Self::Odd)),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WarmUp {
    warmup: bool,
}

fn read(text: &str) -> Option<Event> {
    let mut request = serde_json::from_str(text).ok().or_else(|| {
        let mut event = serde_json::from_str(text).ok()?;
        drop_unreadable_headers(&mut event);
        serde_json::from_str(&event.to_string()).ok()
    })?;
    let (headers, body, is_base64) = match &mut request {
        LambdaRequest::ApiGatewayV2(event) => {
            let query = event.raw_query_string.as_deref().unwrap_or_default();
            let is_query = query.is_empty() || PathAndQuery::try_from(format!("/?{query}")).is_ok();
            // The stage may be a prefix of the path.
            let stage_bytes =
                event.request_context.stage.as_ref().map_or(0, |stage| stage.len() * ESCAPED_BYTES);
            if !is_query || !fits(event.raw_path.as_deref(), query.len() + stage_bytes) {
                return None;
            }
            event.request_context.domain_name = None;
            (vec![&mut event.headers], event.body.take(), event.is_base64_encoded)
        }
        LambdaRequest::Alb(event) => {
            let queries = [&event.query_string_parameters, &event.multi_value_query_string_parameters];
            if !fits(event.path.as_deref(), queries.into_iter().map(query_bytes).sum()) {
                return None;
            }
            let headers = vec![&mut event.multi_value_headers, &mut event.headers];
            (headers, event.body.take(), event.is_base64_encoded)
        }
        _ => return None,
    };
    let body = match body.unwrap_or_default() {
        body if is_base64 => STANDARD.decode(body).ok()?.into(),
        body => body.into(),
    };
    let mut apart = Apart { headers: Vec::new(), body };
    for map in headers {
        for name in [HOST, HeaderName::from_static("x-forwarded-proto")] {
            let value = map.remove(&name);
            apart.headers.extend(value.map(|value| (name, value)));
        }
    }
    Some(Event::Request(Box::new(request), apart))
}

/// Whether this path is valid in a URL and, with this many other bytes, not too long.
fn fits(path: Option<&str>, other_bytes: usize) -> bool {
    let path = path.unwrap_or_default();
    (path.is_empty() || path.starts_with('/')) && path.len() * ESCAPED_BYTES + other_bytes <= URL_BYTES_MAX
}

fn query_bytes(query: &QueryMap) -> usize {
    query.iter().map(|(name, value)| (name.len() + value.len()) * ESCAPED_BYTES + 2).sum()
}

/// Removes headers with non-ASCII characters. They are not needed, and no reason to refuse the request.
fn drop_unreadable_headers(event: &mut Value) {
    let is_readable = |value: &Value| value.as_str().is_none_or(|text| HeaderValue::from_str(text).is_ok());
    for member in ["headers", "multiValueHeaders"] {
        let Some(headers) = event.get_mut(member).and_then(Value::as_object_mut) else { continue };
        headers.retain(|name, value| {
            HeaderName::from_bytes(name.as_bytes()).is_ok()
                && value.as_array().map_or(is_readable(value), |values| values.iter().all(is_readable))
        });
    }
}

/// The response to an invalid request, in the form of every gateway.
pub(crate) fn refusal() -> Value {
    let body = json!({ "code": 400, "message": "Bad Request: this request cannot be read", "reason": Reason::InvalidRequest });
    json!({
        "statusCode": 400,
        "headers": { "content-type": "application/json" },
        "multiValueHeaders": { "content-type": ["application/json"] },
        "body": body.to_string(),
        "isBase64Encoded": false,
    })
}

/// The request of an event, with extensions for its gateway and client.
pub(crate) fn enter(event: lambda_http::Request, apart: &mut Apart) -> Request {
    let Apart { headers, body } = mem::take(apart);
    let request_id = event.lambda_context_ref().map(|context| RequestId(context.request_id.clone()));
    let (gateway, peer, certificate, stage) = match event.request_context_ref() {
        // Load balancers pass certificates in headers, which a client that reaches the function in another
        // way can forge.
        Some(RequestContext::Alb(_)) => (Gateway::BALANCER, forwarded_for(event.headers()), None, None),
        Some(RequestContext::ApiGatewayV2(context)) => {
            let peer = address(context.http.source_ip.as_deref());
            (Gateway::FUNCTION, peer, client_certificate(context), context.stage.clone())
        }
        Some(_) | None => (Gateway::FUNCTION, None, None, None),
    };
    let (mut parts, _) = event.into_parts();
    parts.headers.extend(headers);
    if let Some(uri) = stage.and_then(|stage| without_stage(&parts.uri, &stage)) {
        parts.uri = uri;
    }
    parts.extensions.insert(gateway);
    request_id.map(|id| parts.extensions.insert(id));
    certificate.map(|certificate| parts.extensions.insert(certificate));
    peer.map(|address| parts.extensions.insert(Peer(SocketAddr::new(address, 0))));
    Request::from_parts(parts, Body::from(body))
}

/// The certificate that a gateway with mutual TLS has verified.
fn client_certificate(context: &ApiGatewayV2httpRequestContext) -> Option<ClientCertificate> {
    let pem = context.authentication.as_ref()?.client_cert.as_ref()?.client_cert_pem.as_ref()?;
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
    Some(ClientCertificate(Bytes::copy_from_slice(&der)))
}

fn address(text: Option<&str>) -> Option<IpAddr> {
    text?.trim().parse().ok()
}

/// The client's address as seen by the load balancer, which appends it to whatever the client sent.
fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    address(headers.get("X-Forwarded-For")?.to_str().ok()?.rsplit(',').next())
}

/// A named stage is the first segment of the path, and not part of the API's.
fn without_stage(uri: &Uri, stage: &str) -> Option<Uri> {
    let rest = uri.path().strip_prefix('/')?.strip_prefix(stage)?;
    let path = match rest.as_bytes().first() {
        Some(b'/') => rest,
        None => "/",
        Some(_) => return None,
    };
    let path = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests;

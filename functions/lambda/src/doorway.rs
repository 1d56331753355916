//! Events of gateways as requests: which door each came through, from where, and without what the gateway put before its path.

use std::net::{IpAddr, SocketAddr};

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::http::uri::{PathAndQuery, Uri};
use lambda_http::RequestExt as _;
use lambda_http::request::RequestContext;
use statewright_shared::api::{Door, Peer, RequestId};

/// The request that an event carries, marked with what is known of its way.
pub(crate) fn enter(event: lambda_http::Request) -> Request {
    let request_id = event.lambda_context_ref().map(|context| RequestId(context.request_id.clone()));
    let (door, peer, stage) = match event.request_context_ref() {
        Some(RequestContext::Alb(_)) => (Door::BALANCER, forwarded_for(event.headers()), None),
        Some(RequestContext::ApiGatewayV2(context)) => {
            (Door::FUNCTION, address(context.http.source_ip.as_deref()), context.stage.clone())
        }
        Some(_) | None => (Door::FUNCTION, None, None),
    };
    let (mut parts, body) = event.into_parts();
    if let Some(uri) = stage.and_then(|stage| without_stage(&parts.uri, &stage)) {
        parts.uri = uri;
    }
    parts.extensions.insert(door);
    request_id.map(|id| parts.extensions.insert(id));
    peer.map(|address| parts.extensions.insert(Peer(SocketAddr::new(address, 0))));
    let body = match body {
        lambda_http::Body::Text(text) => Body::from(text),
        lambda_http::Body::Binary(bytes) => Body::from(bytes),
        _ => Body::empty(),
    };
    Request::from_parts(parts, body)
}

fn address(text: Option<&str>) -> Option<IpAddr> {
    text?.trim().parse().ok()
}

/// The address that the balancer saw: it adds that behind whatever the client wrote.
fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    address(headers.get("X-Forwarded-For")?.to_str().ok()?.rsplit(',').next())
}

/// A stage with a name is the first part of the path, and none of ours.
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

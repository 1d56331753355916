//! The methods and paths that clients of Terraform states can be configured with. The route table has one for
//! each operation, which gateways let through. This module rewrites the others to it, so that the table stays
//! short.
//!
//! | path | methods | in the table |
//! |---|---|---|
//! | `…` | `GET`, `HEAD` | `GET …` |
//! | `…` | `POST`, `PUT`, `PATCH` | `POST …` |
//! | `…` | `DELETE`, which most states refuse | `DELETE …` |
//! | `…` | `LOCK`; `UNLOCK` | `POST …/lock`; `DELETE …/lock` |
//! | `…/lock` | `LOCK`, `POST`, `PUT`; `UNLOCK`, `DELETE` | `POST …/lock`; `DELETE …/lock` |
//! | `…/unlock` | `UNLOCK`, `POST`, `PUT`, `DELETE` | `DELETE …/lock` |
//! | `…/outputs` | `GET`, `HEAD` | `GET …/outputs` |
//!
//! A trailing slash is ignored: a redirect would turn a write into a read.

use axum::extract::Request;
use axum::http::header::ALLOW;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::Response;

use super::error::refusal;
use super::route::STATES_ROOT;
use crate::wire::Reason;

/// Returns the request with the method and path of the route table, or a refusal if the path has no such
/// method.
pub(super) fn normalize(mut request: Request) -> Result<Request, Box<Response>> {
    match read(request.method(), request.uri().path()) {
        Normalized::NotAState => {}
        Normalized::As(method, path) => {
            let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
            let mut parts = request.uri().clone().into_parts();
            // A valid path stays valid without its end.
            if let Ok(path) = PathAndQuery::try_from(format!("{path}{query}")) {
                parts.path_and_query = Some(path);
                if let Ok(uri) = Uri::from_parts(parts) {
                    *request.uri_mut() = uri;
                    *request.method_mut() = method;
                }
            }
        }
        Normalized::NotAllowed(allowed) => return Err(Box::new(not_allowed(request.method(), allowed))),
    }
    Ok(request)
}

/// The methods that every state supports.
pub(super) const OF_STATES: &str = "GET, HEAD, POST, PUT, PATCH, LOCK, UNLOCK";

/// The refusal that lists the supported methods.
pub(super) fn not_allowed(method: &Method, allowed: &'static str) -> Response {
    not_allowed_unless(method, allowed, "")
}

/// The same refusal, with what would allow the method.
pub(super) fn not_allowed_unless(method: &Method, allowed: &'static str, unless: &str) -> Response {
    let message = format!("Method Not Allowed: {method} is not one of {allowed}{unless}");
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, message, Reason::MethodNotAllowed);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

#[derive(Debug, PartialEq, Eq)]
enum Normalized {
    /// The path is not that of a state.
    NotAState,
    /// The method and path of the table.
    As(Method, String),
    /// The methods that the path supports.
    NotAllowed(&'static str),
}

fn read(method: &Method, path: &str) -> Normalized {
    let Some(rest) = path.strip_prefix(STATES_ROOT).map(|rest| rest.trim_end_matches('/')) else {
        return Normalized::NotAState;
    };
    let (state, word) = match rest.rsplit_once('/') {
        Some((state, word @ ("lock" | "unlock" | "outputs"))) => (state, word),
        _ => (rest, ""),
    };
    if !(1..=3).contains(&state.split('/').count()) || state.split('/').any(str::is_empty) {
        return Normalized::NotAState;
    }
    let locks = || format!("{STATES_ROOT}{state}/lock");
    let itself = || format!("{STATES_ROOT}{rest}");
    match (word, method.as_str()) {
        ("", "GET" | "HEAD" | "DELETE") | ("outputs", "GET" | "HEAD") => {
            Normalized::As(method.clone(), itself())
        }
        ("", "POST" | "PUT" | "PATCH") => Normalized::As(Method::POST, itself()),
        ("", "LOCK") | ("lock", "LOCK" | "POST" | "PUT") => Normalized::As(Method::POST, locks()),
        ("", "UNLOCK") | ("lock", "UNLOCK" | "DELETE") => Normalized::As(Method::DELETE, locks()),
        ("unlock", "UNLOCK" | "POST" | "PUT" | "DELETE") => Normalized::As(Method::DELETE, locks()),
        ("", _) => Normalized::NotAllowed(OF_STATES),
        ("lock", _) => Normalized::NotAllowed("LOCK, POST, PUT, UNLOCK, DELETE"),
        ("unlock", _) => Normalized::NotAllowed("UNLOCK, POST, PUT, DELETE"),
        (_, _) => Normalized::NotAllowed("GET, HEAD"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_of(method: &str, path: &str) -> String {
        match read(&Method::from_bytes(method.as_bytes()).unwrap(), path) {
            Normalized::NotAState => "-".to_owned(),
            Normalized::As(method, path) => format!("{method} {path}"),
            Normalized::NotAllowed(allowed) => format!("not {allowed}"),
        }
    }

    #[test]
    fn each_method_is_rewritten_to_the_one_of_the_table() {
        for (method, path, expected) in [
            ("GET", "/tfstate/acme/net/", "GET /tfstate/acme/net"),
            ("HEAD", "/tfstate/acme/net/prod", "HEAD /tfstate/acme/net/prod"),
            ("PUT", "/tfstate/id", "POST /tfstate/id"),
            ("PATCH", "/tfstate/id", "POST /tfstate/id"),
            ("LOCK", "/tfstate/id", "POST /tfstate/id/lock"),
            ("UNLOCK", "/tfstate/id", "DELETE /tfstate/id/lock"),
            ("LOCK", "/tfstate/id/lock", "POST /tfstate/id/lock"),
            ("PUT", "/tfstate/acme/net/prod/lock", "POST /tfstate/acme/net/prod/lock"),
            ("DELETE", "/tfstate/acme/net/lock", "DELETE /tfstate/acme/net/lock"),
            ("UNLOCK", "/tfstate/acme/net/lock/", "DELETE /tfstate/acme/net/lock"),
            ("PUT", "/tfstate/id/unlock", "DELETE /tfstate/id/lock"),
            ("DELETE", "/tfstate/id/", "DELETE /tfstate/id"),
            ("OPTIONS", "/tfstate/id", "not GET, HEAD, POST, PUT, PATCH, LOCK, UNLOCK"),
            ("GET", "/tfstate/id/lock", "not LOCK, POST, PUT, UNLOCK, DELETE"),
            ("LOCK", "/tfstate/id/unlock", "not UNLOCK, POST, PUT, DELETE"),
            ("POST", "/tfstate/id/outputs", "not GET, HEAD"),
            ("LOCK", "/api/user", "-"),
            ("GET", "/tfstate/", "-"),
            ("GET", "/tfstate/a//b", "-"),
            ("GET", "/tfstate/a/b/c/d", "-"),
        ] {
            assert_eq!(row_of(method, path), expected, "{method} {path}");
        }
    }
}

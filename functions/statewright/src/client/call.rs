//! Requests to a server.

use axum::http::Method;
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// The unreserved characters of a path or query (RFC 3986, section 2.3) are not escaped.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A request without server and credentials, which the client adds.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(super) method: Method,
    /// The path and query, relative to the server's address.
    pub(super) target: String,
    pub(super) body: Bytes,
    repeatable: bool,
}

impl Call {
    /// `GET` of the path with these segments. Repeatable.
    pub(crate) fn get<'a>(path: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(Method::GET, path).repeatable()
    }

    /// `POST` to the path with these segments.
    pub(crate) fn post<'a>(path: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(Method::POST, path)
    }

    /// `PATCH` of the path with these segments. Repeatable.
    pub(crate) fn patch<'a>(path: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(Method::PATCH, path).repeatable()
    }

    /// `PUT` to the path with these segments. Repeatable.
    pub(crate) fn put<'a>(path: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(Method::PUT, path).repeatable()
    }

    /// `DELETE` of the path with these segments.
    pub(crate) fn delete<'a>(path: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(Method::DELETE, path)
    }

    /// A call that needs no credentials.
    pub(super) fn anonymous<'a>(method: Method, path: impl IntoIterator<Item = &'a str>) -> Self {
        Self::new(method, path)
    }

    fn new<'a>(method: Method, path: impl IntoIterator<Item = &'a str>) -> Self {
        let parts = path.into_iter().map(|part| format!("/{}", utf8_percent_encode(part, ESCAPED)));
        Self { method, target: parts.collect(), body: Bytes::new(), repeatable: false }
    }

    /// Adds a query parameter.
    #[must_use]
    pub(crate) fn query(mut self, name: &str, value: &str) -> Self {
        let before = if self.target.contains('?') { '&' } else { '?' };
        let (name, value) = (utf8_percent_encode(name, ESCAPED), utf8_percent_encode(value, ESCAPED));
        self.target.push_str(&format!("{before}{name}={value}"));
        self
    }

    /// Sets a JSON body.
    #[must_use]
    pub(crate) fn json(self, body: &Value) -> Self {
        self.text(body.to_string())
    }

    /// Sets a body that is already JSON text.
    #[must_use]
    pub(crate) fn text(mut self, text: impl Into<Bytes>) -> Self {
        self.body = text.into();
        self
    }

    /// Marks the call as safe to send again: a second delivery changes nothing.
    #[must_use]
    pub(crate) fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    /// Marks the call as one to send once: after the first delivery, a second one would be refused, or would answer that
    /// nothing changed.
    #[must_use]
    pub(crate) fn once(mut self) -> Self {
        self.repeatable = false;
        self
    }

    pub(super) fn is_repeatable(&self) -> bool {
        self.repeatable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_and_parameters_are_escaped() {
        let call =
            Call::get(["api", "orgs", "a/../b?c"]).query("filter", "env == \"dev\" && x=1#").query("a", "b");
        let expected = "/api/orgs/a%2F..%2Fb%3Fc?filter=env%20%3D%3D%20%22dev%22%20%26%26%20x%3D1%23&a=b";
        assert_eq!(call.target, expected);
        assert!(Call::put(["x"]).is_repeatable() && !Call::post(["x"]).is_repeatable());
        assert!(!Call::put(["x"]).once().is_repeatable() && Call::post(["x"]).repeatable().is_repeatable());
    }
}

//! What a browser sends with a request for a page: cookies, and where the request comes from.

use std::net::IpAddr;

use axum::http::header::{ACCEPT, COOKIE, ORIGIN, USER_AGENT};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Uri};

use super::error::Failure;
use super::extensions::Peer;
use super::extract::{FromHead, from_head};
use super::host::AskedHost;
use crate::domain::server_url::comparable_host;
use crate::services::Error;
use crate::services::error::SignInError;

/// The length of a path to open after a sign-in, in bytes, at most. The address of a resource has its URN. While a provider
/// signs a person in, the path is in a cookie, encrypted and in Base64, and browsers keep cookies of 4,096 bytes at most.
const NEXT_BYTES_MAX: usize = 2048;

/// A cookie of this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cookie {
    /// The session of a signed-in person.
    Session,
    /// A sign-in that has begun.
    Attempt,
}

impl Cookie {
    fn name(self, is_secure: bool) -> &'static str {
        match (self, is_secure) {
            (Self::Session, true) => "__Host-statewright",
            (Self::Session, false) => "statewright",
            (Self::Attempt, true) => "__Host-statewright-sign-in",
            (Self::Attempt, false) => "statewright-sign-in",
        }
    }
}

/// The browser that sent a request.
#[derive(Debug, Clone)]
pub(super) struct Browser {
    host: String,
    /// Whether this machine is addressed, by every name in the request.
    is_local: bool,
    cookies: Vec<String>,
    site: Option<String>,
    origin: Option<String>,
    /// The address that the request comes from.
    pub(super) from: Option<IpAddr>,
    /// Its name for itself.
    pub(super) agent: String,
    /// Whether it wants HTML. Other clients get errors as JSON.
    pub(super) wants_html: bool,
    /// The path and the query of the request.
    pub(super) target: String,
}

impl Browser {
    pub(super) fn of(headers: &HeaderMap, uri: &Uri) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let accepts = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.contains("text/html"));
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        Self {
            host: AskedHost::of(headers, uri).into_text(),
            is_local: AskedHost::are_all(headers, uri, is_loopback),
            cookies: cookies.flat_map(|value| value.split(';')).map(|pair| pair.trim().to_owned()).collect(),
            site: text("sec-fetch-site"),
            origin: text(ORIGIN.as_str()),
            from: None,
            agent: text(USER_AGENT.as_str()).unwrap_or_default(),
            wants_html: headers.get_all(ACCEPT).iter().any(accepts),
            target: uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
        }
    }

    /// The host that the browser addressed, in a form that can be compared.
    pub(super) fn host(&self) -> String {
        comparable_host(&self.host)
    }

    /// Whether cookies are for HTTPS only. Browsers treat this machine's own addresses as safe without it.
    fn is_secure(&self) -> bool {
        !self.is_local
    }

    /// The value of a cookie.
    pub(super) fn cookie(&self, cookie: Cookie) -> Option<&str> {
        let name = cookie.name(self.is_secure());
        self.cookies.iter().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    /// The header that sets a cookie until the browser closes, or removes it.
    pub(super) fn set_cookie(&self, cookie: Cookie, value: Option<&str>) -> Result<HeaderValue, Failure> {
        let is_secure = self.is_secure();
        let secure = if is_secure { "; Secure" } else { "" };
        let age = if value.is_some() { "" } else { "; Max-Age=0" };
        let text = format!(
            "{}={}; Path=/; HttpOnly; SameSite=Lax{secure}{age}",
            cookie.name(is_secure),
            value.unwrap_or_default()
        );
        HeaderValue::try_from(text).map_err(|_| Error::Broken("a cookie cannot be sent".to_owned()).into())
    }

    /// Refuses a request that a page of this server did not make. Browsers say so in headers that pages cannot set.
    ///
    /// # Errors
    /// [`SignInError::OtherSite`], [`SignInError::NotSecure`].
    pub(super) fn check_same_origin(&self) -> Result<(), SignInError> {
        let Some(site) = &self.site else {
            // Browsers send it to addresses that they take for safe only.
            return Err(if self.is_secure() { SignInError::NotSecure } else { SignInError::OtherSite });
        };
        // Our pages send no referrer, so their forms have the origin `null`.
        let is_foreign = self.origin.as_ref().is_some_and(|origin| {
            let host = origin.split_once("://").map_or("", |(_, host)| host);
            origin != "null" && comparable_host(host) != self.host()
        });
        if site == "same-origin" && !is_foreign { Ok(()) } else { Err(SignInError::OtherSite) }
    }
}

impl FromHead for Browser {
    #[inline(never)]
    fn read(parts: &mut Parts) -> Result<Self, Failure> {
        let from = Peer::address(&parts.extensions);
        Ok(Self { from, ..Self::of(&parts.headers, &parts.uri) })
    }
}

from_head!(Browser);

/// Whether a host is this machine, for its browsers.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.to_ascii_lowercase();
    name == "localhost" || name == "[::1]" || is_loopback_v4(&name)
}

fn is_loopback_v4(name: &str) -> bool {
    name.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

/// A path of this server to open after a sign-in; `None` for anything else, which could lead to another site. One that is
/// too long loses its query, which has what was chosen on a page.
pub(super) fn path_of_ours(next: &str) -> Option<&str> {
    let next = if next.len() <= NEXT_BYTES_MAX { next } else { next.split('?').next().unwrap_or_default() };
    let is_plain =
        next.len() <= NEXT_BYTES_MAX && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    (is_plain && next.starts_with('/') && !next.starts_with("//")).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn browser(headers: &[(&'static str, &str)]) -> Browser {
        let headers = headers.iter().map(|(name, value)| {
            (axum::http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        Browser::of(&headers.collect(), &Uri::from_static("/signin?next=/a"))
    }

    #[test]
    fn cookies_are_bound_to_the_host_and_to_https() {
        let secure =
            browser(&[("host", "state.example.com"), ("cookie", "a=b; __Host-statewright=x; statewright=y")]);
        assert_eq!(secure.cookie(Cookie::Session), Some("x"));
        let set = secure.set_cookie(Cookie::Session, Some("v")).unwrap();
        assert_eq!(set, "__Host-statewright=v; Path=/; HttpOnly; SameSite=Lax; Secure");
        for host in ["localhost:8080", "127.0.0.1:3000", "[::1]:8080", "LOCALHOST"] {
            let local = browser(&[("host", host), ("cookie", "statewright=y; __Host-statewright=x")]);
            assert_eq!(local.cookie(Cookie::Session), Some("y"), "{host}");
            let removed = local.set_cookie(Cookie::Attempt, None).unwrap();
            assert_eq!(removed, "statewright-sign-in=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0");
        }
        for host in ["localhost.example.com", "127.0.0.1.example.com", "::1", ""] {
            let elsewhere = browser(&[("host", host), ("cookie", "statewright=y")]);
            assert_eq!(elsewhere.cookie(Cookie::Session), None, "{host}");
        }
        assert!(secure.set_cookie(Cookie::Session, Some("a\r\nb")).is_err());
    }

    /// A proxy on this machine reports the host of its client. A client can report any host.
    #[test]
    fn a_reported_host_never_makes_cookies_weaker() {
        let both = [("cookie", "statewright=weak; __Host-statewright=strong")];
        let found = |host: &str, reported: &str| {
            let headers = [&both[..], &[("host", host), ("x-forwarded-host", reported)]].concat();
            browser(&headers).cookie(Cookie::Session).map(str::to_owned)
        };
        assert_eq!(found("127.0.0.1:8080", "state.example.com").as_deref(), Some("strong"));
        assert_eq!(found("state.example.com", "localhost:8080").as_deref(), Some("strong"));
        assert_eq!(found("evil.example:8080", "127.0.0.1:8080, proxy").as_deref(), Some("strong"));
        assert_eq!(found("127.0.0.1:8080", "").as_deref(), Some("strong"));
        assert_eq!(found("127.0.0.1:8080", "localhost:8080").as_deref(), Some("weak"));
    }

    #[test]
    fn only_pages_of_this_server_may_send_forms() {
        let sent = |site: Option<&str>, origin: Option<&str>, host: &str| {
            let mut headers = vec![("host", host)];
            headers.extend(site.map(|site| ("sec-fetch-site", site)));
            headers.extend(origin.map(|origin| ("origin", origin)));
            browser(&headers).check_same_origin().map_err(|error| error.to_string())
        };
        let host = "state.example.com";
        for origin in
            [None, Some("null"), Some("https://state.example.com"), Some("https://State.example.com:443")]
        {
            assert_eq!(sent(Some("same-origin"), origin, host), Ok(()), "{origin:?}");
        }
        for (site, origin) in [
            (Some("cross-site"), None),
            (Some("same-site"), Some("null")),
            (Some("none"), None),
            (Some("same-origin"), Some("https://evil.example")),
        ] {
            assert_eq!(
                sent(site, origin, host),
                Err(SignInError::OtherSite.to_string()),
                "{site:?} {origin:?}"
            );
        }
        assert_eq!(sent(None, None, host), Err(SignInError::NotSecure.to_string()));
        assert_eq!(sent(None, None, "localhost:8080"), Err(SignInError::OtherSite.to_string()));
    }

    #[test]
    fn a_path_to_open_stays_on_this_server() {
        for ours in ["/", "/cli-login?cliSessionPort=1&b=%20", "/user/settings/tokens"] {
            assert_eq!(path_of_ours(ours), Some(ours));
        }
        let long = format!("/{}", "x".repeat(NEXT_BYTES_MAX));
        for other in
            ["", "//evil.example", "/\\evil.example", "https://evil.example", "a", "/a b", "/a\nb", &long]
        {
            assert_eq!(path_of_ours(other), None, "{other}");
        }
        let urn = |bytes: usize| format!("/main/web/dev/resources?urn={}", "x".repeat(bytes));
        let fits = urn(2_000);
        assert_eq!(path_of_ours(&fits), Some(fits.as_str()));
        assert_eq!(path_of_ours(&urn(NEXT_BYTES_MAX)), Some("/main/web/dev/resources"));
    }
}

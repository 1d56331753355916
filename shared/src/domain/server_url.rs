//! Addresses of a server.

use std::fmt;

use super::names::InvalidName;

/// The address of a server as the CLI writes it into states: `http://` or `https://`, a host, optionally a port and a path,
/// without a trailing slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl(String);

/// The longest accepted address, in bytes.
const BYTES_MAX: usize = 2048;

impl ServerUrl {
    /// Parses an address.
    ///
    /// # Errors
    /// [`InvalidName`] with the rule for addresses.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let refused = || InvalidName {
            what: "server address",
            found: text.chars().take(60).collect(),
            rule: "use http:// or https://, a host, and a port where there is one, such as https://state.example.com",
        };
        let trimmed = text.trim_end_matches('/');
        let rest = trimmed.strip_prefix("http://").or_else(|| trimmed.strip_prefix("https://"));
        let authority = rest.and_then(|rest| rest.split('/').next()).ok_or_else(refused)?;
        let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '?' | '#' | '@');
        if authority.is_empty() || trimmed.len() > BYTES_MAX || !trimmed.chars().all(is_plain) {
            return Err(refused());
        }
        Ok(Self(trimmed.to_owned()))
    }

    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether an address in a state is this one.
    pub fn is(&self, written: &str) -> bool {
        written.trim_end_matches('/') == self.0
    }

    /// Whether both addresses lead to the same server: they have the same scheme, host, port and path.
    pub fn leads_to_same(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }

    /// The scheme, the host, the port unless it is that of the scheme, and the path.
    fn parts(&self) -> (&str, String, &str) {
        let (scheme, rest) = self.0.split_once("://").unwrap_or_default();
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let port = if scheme == "https" { ":443" } else { ":80" };
        (scheme, authority.strip_suffix(port).unwrap_or(authority).to_ascii_lowercase(), path)
    }

    /// Whether the server is at the root of its host.
    pub fn is_at_root(&self) -> bool {
        self.parts().2.is_empty()
    }

    /// The host, with the port unless it is the default one; comparable with a `Host` header.
    pub fn host(&self) -> String {
        let authority = self.0.split("://").nth(1).and_then(|rest| rest.split('/').next());
        comparable_host(authority.unwrap_or_default())
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A host, optionally with a port, in a form that can be compared. A proxy may use TLS where the server does not, so the
/// default port of either scheme is left out.
pub fn comparable_host(host: &str) -> String {
    let host = host.trim();
    let host = host.strip_suffix(":443").or_else(|| host.strip_suffix(":80")).unwrap_or(host);
    host.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host_and_no_slash_at_its_end() {
        let url = ServerUrl::parse("https://State.example.com:443/base//").unwrap();
        assert_eq!(
            (url.as_str(), url.host().as_str()),
            ("https://State.example.com:443/base", "state.example.com")
        );
        assert!(url.is("https://State.example.com:443/base/") && !url.is("https://State.example.com:443"));
        assert!(!url.is_at_root() && ServerUrl::parse("https://a/").unwrap().is_at_root());
        assert_eq!(ServerUrl::parse("http://[::1]:8080").unwrap().host(), "[::1]:8080");
        for bad in [
            "",
            "localhost:8080",
            "http://",
            "https:///path",
            "ftp://x",
            "http://a b",
            "http://a\"b",
            "http://u@a",
        ] {
            assert!(ServerUrl::parse(bad).is_err(), "{bad:?} was taken as an address");
        }
        assert!(ServerUrl::parse(&format!("http://{}", "x".repeat(BYTES_MAX))).is_err());
    }

    #[test]
    fn addresses_of_one_server_are_known() {
        let same = |one: &str, other: &str| {
            ServerUrl::parse(one).unwrap().leads_to_same(&ServerUrl::parse(other).unwrap())
        };
        for (one, other) in [
            ("https://a.example", "https://A.Example:443/"),
            ("http://a.example:80/base/", "http://a.example/base"),
            ("http://[::1]:8080", "http://[::1]:8080"),
        ] {
            assert!(same(one, other), "{one} {other}");
        }
        for other in [
            "http://a.example",
            "https://a.example:80",
            "https://a.example:8443",
            "https://a.example/base",
            "https://a.example.evil.example",
            "https://b.example",
        ] {
            assert!(!same("https://a.example", other), "{other}");
        }
        assert!(!same("https://a.example/base", "https://a.example/Base"));
    }

    #[test]
    fn hosts_compare_without_case_and_without_the_usual_port() {
        for (one, other) in [("a.example", "A.Example:443"), ("a.example:80", "a.example"), ("::1", " ::1 ")]
        {
            assert_eq!(comparable_host(one), comparable_host(other));
        }
        assert_ne!(comparable_host("a.example:8080"), comparable_host("a.example"));
    }
}

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
    fn hosts_compare_without_case_and_without_the_usual_port() {
        for (one, other) in [("a.example", "A.Example:443"), ("a.example:80", "a.example"), ("::1", " ::1 ")]
        {
            assert_eq!(comparable_host(one), comparable_host(other));
        }
        assert_ne!(comparable_host("a.example:8080"), comparable_host("a.example"));
    }
}

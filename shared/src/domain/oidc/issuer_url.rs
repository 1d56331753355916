//! Addresses of issuers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The address of an issuer, exactly as its tokens have it in `iss`: `https://`, a host, optionally a port and a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IssuerUrl(String);

/// The length of an address in bytes, at most.
const BYTES_MAX: usize = 512;

/// An address that breaks the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not the address of an issuer: use https://, a host and what the tokens have in `iss`, without a user, a \
     query or a fragment"
)]
pub struct InvalidIssuerUrl(String);

impl IssuerUrl {
    /// Parses an address.
    ///
    /// # Errors
    /// [`InvalidIssuerUrl`].
    pub fn parse(text: &str) -> Result<Self, InvalidIssuerUrl> {
        let is_plain =
            |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '?' | '#' | '@' | '<' | '>');
        let host = text.strip_prefix("https://").and_then(|rest| rest.split('/').next());
        let has_host = host.is_some_and(|host| !host.is_empty() && !host.starts_with(':'));
        match has_host && text.len() <= BYTES_MAX && text.chars().all(is_plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidIssuerUrl(text.chars().take(60).collect())),
        }
    }

    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The address of its configuration (OpenID Connect Discovery 1.0, section 4.1).
    pub fn configuration(&self) -> String {
        format!("{}/.well-known/openid-configuration", self.0.trim_end_matches('/'))
    }
}

impl TryFrom<String> for IssuerUrl {
    type Error = InvalidIssuerUrl;

    fn try_from(text: String) -> Result<Self, InvalidIssuerUrl> {
        Self::parse(&text)
    }
}

impl From<IssuerUrl> for String {
    fn from(url: IssuerUrl) -> Self {
        url.0
    }
}

impl fmt::Display for IssuerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_has_https_and_a_host_and_nothing_else() {
        for good in
            ["https://token.actions.githubusercontent.com", "https://a:8443/base/", "https://[2001:db8::1]/x"]
        {
            assert_eq!(IssuerUrl::parse(good).unwrap().as_str(), good);
        }
        for bad in [
            "http://a",
            "https://",
            "https:///x",
            "https://:443",
            "https://user@host",
            "https://a?x=1",
            "https://a#b",
            "https://a b",
            "https://a\n",
            "HTTPS://a",
            &format!("https://{}", "a".repeat(BYTES_MAX)),
        ] {
            assert!(IssuerUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_configuration_is_below_the_address() {
        for url in ["https://a/b", "https://a/b/"] {
            let configuration = IssuerUrl::parse(url).unwrap().configuration();
            assert_eq!(configuration, "https://a/b/.well-known/openid-configuration");
        }
    }
}

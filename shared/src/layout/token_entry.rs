use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix};
use super::record::Record;
use super::token::Token;
use crate::domain::names::{Login, TokenName};

const PREFIX: &str = "TOKEN#";

/// The entry of a token in its owner's list. Written with the [`Token`]. The entry allows nothing, so an
/// older version may list and delete a token that it does not accept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenEntry {
    /// The hex SHA-256 in the key of the token's item.
    pub hash: String,
    /// The fingerprint of a client certificate: the hex SHA-256 of its DER form. `None` for an access token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    pub token: Token,
}

impl Record for TokenEntry {
    const NAME: &'static str = "token entry";
}

impl TokenEntry {
    pub fn key(login: &Login, name: &TokenName) -> Key<Self> {
        Key::new(format!("USER#{login}"), format!("{PREFIX}{name}"))
    }

    pub fn of_user(login: &Login) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("USER#{login}"), PREFIX)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::token::examples::{scoped, token};
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let entry = TokenEntry { hash: "cd".repeat(32), certificate: None, token: scoped() };
        files.hold("token-entry-scoped.v1", &entry, b"");
        let entry = TokenEntry { hash: "cd".repeat(32), certificate: None, token: token(None) };
        files.hold("token-entry.v1", &entry, b"");
        let entry = TokenEntry { certificate: Some("ef".repeat(32)), ..entry };
        files.hold("token-entry-certificate.v1", &entry, b"");
    }
}

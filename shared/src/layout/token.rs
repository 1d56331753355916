use serde::{Deserialize, Serialize};

use super::key::{Key, META};
use super::record::Record;
use crate::domain::names::{Login, TokenName};
use crate::domain::role::Role;
use crate::ports::Timestamp;

/// An access token, or a client certificate that serves as one. Written when the operator creates it. The
/// token itself is not stored; its SHA-256 is in the item's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// A name that is unique among the tokens of its owner.
    pub name: TokenName,
    /// The user that the token identifies.
    pub login: Login,
    pub created: Timestamp,
    pub expires: Option<Timestamp>,
    /// The highest role that the token allows; `None` for its owner's role. Since format 2: a program that
    /// knows only format 1 would allow the owner's role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<Role>,
}

impl Record for Token {
    const NAME: &'static str = "access token";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        if self.may.is_none() { 1 } else { 2 }
    }
}

impl Token {
    /// The key has the hex SHA-256 of the token or of the certificate.
    pub fn key(hash: &str) -> Key<Self> {
        Key::new(format!("TOKEN#{hash}"), META)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn token(expires: Option<Timestamp>) -> Token {
        Token {
            name: TokenName::parse("laptop").unwrap(),
            login: login("alice"),
            created: CREATED,
            expires,
            may: None,
        }
    }

    pub(crate) fn scoped() -> Token {
        Token { may: Some(Role::Plan), ..token(None) }
    }

    pub(crate) fn read(files: &mut Files) {
        files.hold("token.v1", &token(Some(LATER)), b"");
        files.hold("token-scoped.v2", &scoped(), b"");
    }
}

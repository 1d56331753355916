use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix};
use super::record::Record;
use super::token::Token;
use crate::domain::names::{Login, OrgName, TokenName};
use crate::domain::principal::Principal;
use crate::domain::role::Role;
use crate::ports::Timestamp;

const PREFIX: &str = "TOKEN#";

/// The entry of a token in its owner's list: the user's, or that of the machine's organization. Written with
/// the [`Token`]. The entry allows nothing, so an older version may list and delete a token that it does not
/// accept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenEntry {
    /// The hex SHA-256 in the key of the token's item.
    pub hash: String,
    /// The fingerprint of a client certificate: the hex SHA-256 of its DER form. `None` for an access token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    pub token: Token,
    /// When the token was revoked. Entries of machine tokens stay, because their names are used only once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Timestamp>,
    /// The secret before the last rotation, while it still works. Since format 2: a program that knows only format
    /// 1 would leave it when it revokes the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<FormerSecret>,
}

/// The secret that a token had before its last rotation. The item under its hash has the same end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerSecret {
    /// The hex SHA-256 in the key of the token's item.
    pub hash: String,
    pub until: Timestamp,
}

impl Record for TokenEntry {
    const NAME: &'static str = "token entry";
    const FORMAT: u8 = 3;

    fn format(&self) -> u8 {
        match self {
            // An older program does not know the role.
            Self { token: Token { may: Some(Role::Auditor), .. }, .. } => 3,
            Self { former: Some(_), .. } => 2,
            _ => 1,
        }
    }
}

/// Digits of a token's ID.
const ID_DIGITS: usize = 32;

impl TokenEntry {
    /// The entry of a user's token.
    pub fn key(login: &Login, name: &TokenName) -> Key<Self> {
        Self::key_of(&Principal::User, login, name)
    }

    /// The entry of a token of this principal. The tokens of an organization and of its teams share one list.
    pub fn key_of(of: &Principal, login: &Login, name: &TokenName) -> Key<Self> {
        Key::new(Self::list_of(of, login), format!("{PREFIX}{name}"))
    }

    pub fn of_user(login: &Login) -> KeyPrefix<Self> {
        KeyPrefix::new(Self::list_of(&Principal::User, login), PREFIX)
    }

    pub fn of_org(org: &OrgName) -> KeyPrefix<Self> {
        KeyPrefix::new(Self::list_of(&Principal::Organization, &org.into()), PREFIX)
    }

    /// The entries in the list of this principal. The tokens of an organization and of its teams share one list.
    pub fn list(of: &Principal, login: &Login) -> KeyPrefix<Self> {
        KeyPrefix::new(Self::list_of(of, login), PREFIX)
    }

    /// The partition of the list of this principal.
    pub(super) fn list_of(of: &Principal, login: &Login) -> String {
        match of {
            Principal::User => format!("USER#{login}"),
            Principal::Organization | Principal::Team(_) => format!("ORG#{login}"),
        }
    }

    /// The ID of the token in the API: the start of its hash, which does not reveal the token.
    pub fn id(&self) -> &str {
        Self::id_in(&self.hash)
    }

    /// The ID in the hex SHA-256 of a token.
    pub fn id_in(hash: &str) -> &str {
        hash.get(..ID_DIGITS).unwrap_or(hash)
    }

    /// The hashes of all secrets that the token has.
    pub fn hashes(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.hash).chain(self.former.as_ref().map(|former| &former.hash))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::super::token::examples::{of_team, scoped, token};
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let of = |token| TokenEntry {
            hash: "cd".repeat(32),
            certificate: None,
            token,
            revoked: None,
            former: None,
        };
        files.hold("token-entry-scoped.v1", &of(scoped()), b"");
        let auditor = Token { may: Some(Role::Auditor), ..scoped() };
        files.hold("token-entry-auditor.v3", &of(auditor), b"");
        files.hold("token-entry.v1", &of(token(None)), b"");
        let certificate = TokenEntry { certificate: Some("ef".repeat(32)), ..of(token(None)) };
        files.hold("token-entry-certificate.v1", &certificate, b"");
        files.hold("token-entry-revoked.v1", &TokenEntry { revoked: Some(LATER), ..of(of_team()) }, b"");
        let former = Some(FormerSecret { hash: "ab".repeat(32), until: LATER });
        files.hold("token-entry-rotated.v2", &TokenEntry { former, ..of(token(None)) }, b"");
    }
}

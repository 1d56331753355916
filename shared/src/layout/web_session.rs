use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix};
use super::record::Record;
use crate::domain::names::{Login, ProviderName};
use crate::ports::Timestamp;

const PREFIX: &str = "SESSION#";

/// A browser in which a user is signed in. The secret of its cookie is not stored; its SHA-256 is in the item's key.
/// Written at a sign-in. The store may delete it when it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSession {
    /// When the user was created: a later user may have the same login.
    pub user_made: Timestamp,
    pub signed_in: Timestamp,
    pub until: Timestamp,
    pub by: SignedInBy,
    /// The browser, as it names itself, shortened.
    pub browser: String,
}

/// The way in which a user signed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignedInBy {
    Provider(ProviderName),
    Password,
    Invitation,
}

impl SignedInBy {
    /// The word in answers.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Provider(_) => "provider",
            Self::Password => "password",
            Self::Invitation => "invitation",
        }
    }

    pub fn provider(&self) -> Option<&ProviderName> {
        match self {
            Self::Provider(provider) => Some(provider),
            Self::Password | Self::Invitation => None,
        }
    }
}

impl Record for WebSession {
    const NAME: &'static str = "session";
}

impl WebSession {
    /// Characters of the hash in a session's ID.
    pub const ID_CHARACTERS: usize = 16;

    /// The key has the hex SHA-256 of the secret.
    pub fn key(login: &Login, hash: &str) -> Key<Self> {
        Key::new(format!("USER#{login}"), format!("{PREFIX}{hash}"))
    }

    pub fn of_user(login: &Login) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("USER#{login}"), PREFIX)
    }

    /// The sessions with this ID, the start of the hash. It proves nothing.
    pub fn with_id(login: &Login, id: &str) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("USER#{login}"), format!("{PREFIX}{id}"))
    }

    /// The hash in a sort key.
    pub fn hash_in(sort: &str) -> Option<&str> {
        sort.strip_prefix(PREFIX)
    }

    /// The ID in a sort key.
    pub fn id_in(sort: &str) -> Option<&str> {
        Self::hash_in(sort)?.get(..Self::ID_CHARACTERS)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let session = WebSession {
            user_made: CREATED,
            signed_in: CREATED,
            until: LATER,
            by: SignedInBy::Provider(ProviderName::parse("corp").unwrap()),
            browser: "Firefox/140.0".to_owned(),
        };
        files.hold("session.v1", &session, b"");
        let by_password = WebSession { by: SignedInBy::Password, ..session.clone() };
        files.hold("session-by-password.v1", &by_password, b"");
        files.hold("session-by-invitation.v1", &WebSession { by: SignedInBy::Invitation, ..session }, b"");
    }
}

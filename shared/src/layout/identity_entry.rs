use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix};
use super::record::Record;
use crate::domain::names::{Login, ProviderName};
use crate::ports::Timestamp;

const PREFIX: &str = "IDENTITY#";

/// The entry of an [`Identity`](super::Identity) in its user's list. Written with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityEntry {
    /// The hash in the key of the identity.
    pub hash: String,
    pub provider: ProviderName,
    pub issuer: String,
    pub subject: String,
    pub linked: Timestamp,
}

impl Record for IdentityEntry {
    const NAME: &'static str = "identity entry";
}

impl IdentityEntry {
    pub fn key(login: &Login, hash: &str) -> Key<Self> {
        Key::new(format!("USER#{login}"), format!("{PREFIX}{hash}"))
    }

    pub fn of_user(login: &Login) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("USER#{login}"), PREFIX)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let entry = IdentityEntry {
            hash: "cd".repeat(32),
            provider: ProviderName::parse("corp").unwrap(),
            issuer: "https://id.example.com".to_owned(),
            subject: "00u1a2b3".to_owned(),
            linked: CREATED,
        };
        files.hold("identity-entry.v1", &entry, b"");
    }
}

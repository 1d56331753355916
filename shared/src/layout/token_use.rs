use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed};
use super::record::{Broken, Record};
use super::token_entry::TokenEntry;
use crate::domain::names::{Login, TokenName};
use crate::domain::principal::Principal;
use crate::ports::{ItemKey, Timestamp};

/// The last use of an access token or a client certificate. Written by any process that authenticates with it, at
/// most once an hour. It has a partition of its own: a process may then write it that may not write tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUse {
    /// When the token was created: a later token may have the same name.
    pub made: Timestamp,
    pub used: Timestamp,
}

impl Record for TokenUse {
    const NAME: &'static str = "token use";
}

impl TokenUse {
    pub fn key(of: &Principal, login: &Login, name: &TokenName) -> Key<Self> {
        Key::new(Self::partition(of, login), name.as_str())
    }

    /// The last uses of the tokens in the list of this principal: see [`TokenEntry::list`].
    pub fn list(of: &Principal, login: &Login) -> KeyPrefix<Self> {
        KeyPrefix::new(Self::partition(of, login), "")
    }

    fn partition(of: &Principal, login: &Login) -> String {
        format!("USED#{}", TokenEntry::list_of(of, login))
    }

    /// The name of the token in a key.
    ///
    /// # Errors
    /// [`Broken`] if it is not the key of one.
    pub fn name_in(key: &ItemKey) -> Result<TokenName, Broken> {
        parsed::<Self, _>(key, TokenName::parse(&key.sort).ok())
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("token-use.v1", &TokenUse { made: CREATED, used: LATER }, b"");
    }
}

use serde::{Deserialize, Serialize};

use super::key::{Key, META};
use super::record::Record;
use crate::domain::names::Login;
use crate::ports::Timestamp;

/// A user's password. Written when the operator sets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Password {
    /// The Argon2id hash in PHC form, which includes its parameters.
    pub hash: String,
    pub set: Timestamp,
}

impl Record for Password {
    const NAME: &'static str = "password";
}

impl Password {
    /// In a partition separate from users, which more programs may read.
    pub fn key(login: &Login) -> Key<Self> {
        Key::new(format!("PASSWORD#{login}"), META)
    }

    /// The key in earlier versions.
    pub fn old_key(login: &Login) -> Key<Self> {
        Key::new(format!("USER#{login}"), "PASSWORD")
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let hash = "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        files.hold("password.v1", &Password { hash: hash.to_owned(), set: CREATED }, b"");
    }
}

use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix};
use super::record::Record;
use crate::domain::names::Login;
use crate::ports::Timestamp;

const PREFIX: &str = "LOGIN-CODE#";

/// A code that gives `statewright login` a token, once. Written when its user allows the login in a browser;
/// deleted when it is used. The store may delete it when it is too old.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginCode {
    /// When the user was created: a later user may have the same login.
    pub user_made: Timestamp,
    /// The base64url SHA-256 of the verifier that the program has (RFC 7636).
    pub challenge: String,
    /// The description of the token.
    pub description: String,
    /// The time for which the token lasts.
    pub seconds: u64,
    pub until: Timestamp,
}

impl Record for LoginCode {
    const NAME: &'static str = "login code";
}

impl LoginCode {
    /// The key has the hex SHA-256 of the code's secret.
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
        let code = LoginCode {
            user_made: CREATED,
            challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM".to_owned(),
            description: "statewright login on laptop".to_owned(),
            seconds: 2_592_000,
            until: LATER,
        };
        files.hold("login-code.v1", &code, b"");
    }
}

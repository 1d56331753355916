//! What an update token says of its bearer.

use serde::{Deserialize, Serialize};

use super::ids::{StackId, UpdateId};
use super::names::{Login, TokenName};
use super::update::Requester;
use crate::ports::Timestamp;

/// What an update token says. Its JSON is what is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// The update.
    #[serde(rename = "u")]
    pub update: UpdateId,
    /// Its stack.
    #[serde(rename = "s")]
    pub stack: StackId,
    /// The SHA-256 of the stack's address, so that a token opens no other path. Lower-case hex.
    #[serde(rename = "a")]
    pub address: String,
    /// Whether the update is a dry run: then it may not write to the log.
    #[serde(rename = "d")]
    pub dry_run: bool,
    /// Whether the client saves journal entries, and else whole deployments: agreed on when the update started. A log
    /// holds one or the other, since entries are counted onto the base and a deployment stands for itself.
    #[serde(rename = "j")]
    pub journals: bool,
    /// When the lease that it was issued with ends.
    #[serde(rename = "e")]
    pub expires: Timestamp,
    /// Who got it; `None` in one of an older program, which said nothing of that.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub bearer: Option<Bearer>,
    /// The secret that it is renewed by, of which the update's record has the hash: a copy of the key that signs does not
    /// tell it. `None` in one of an older program.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub renewal: Option<String>,
    /// Whether a key signed it that does not sign any more.
    #[serde(skip)]
    pub is_of_former_key: bool,
}

/// Who got an update token: a user, with the access token that the user showed for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bearer {
    /// The owner of the access token.
    #[serde(rename = "l")]
    pub login: Login,
    /// The access token's name.
    #[serde(rename = "t")]
    pub token: TokenName,
    /// When the access token was made: one that was made since may have the same name.
    #[serde(rename = "m")]
    pub made: Timestamp,
}

impl Bearer {
    /// The bearer in the words of records.
    pub fn requester(&self) -> Requester {
        Requester { login: self.login.clone(), token: self.token.clone() }
    }
}

//! The claims of an update token.

use serde::{Deserialize, Serialize};

use super::ids::{StackId, UpdateId};
use super::names::{Login, TokenName};
use super::principal::Principal;
use super::update::Requester;
use crate::ports::Timestamp;

/// The claims of an update token. Their JSON is signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    #[serde(rename = "u")]
    pub update: UpdateId,
    #[serde(rename = "s")]
    pub stack: StackId,
    /// The SHA-256 of the stack's address in lower-case hex. It limits the token to the paths of that stack.
    #[serde(rename = "a")]
    pub address: String,
    /// Whether the update is a dry run, which may not write to the log.
    #[serde(rename = "d")]
    pub dry_run: bool,
    /// Whether the client saves journal entries rather than whole deployments, as negotiated at the start of the update. A log
    /// has only one of the two, since entries apply to the base and a deployment replaces it.
    #[serde(rename = "j")]
    pub journals: bool,
    /// When the lease ends that the token was issued with.
    #[serde(rename = "e")]
    pub expires: Timestamp,
    /// Who got the token; `None` if an older program issued it.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub bearer: Option<Bearer>,
    /// The secret that renews the token. The update's record has its hash, so a copy of the signing key is not enough to renew.
    /// `None` if an older program issued the token.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub renewal: Option<String>,
    /// Whether a retired key signed the token.
    #[serde(skip)]
    pub is_of_former_key: bool,
}

/// Who got an update token: a user or a machine, with the access token that it presented.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bearer {
    /// The login of the user.
    #[serde(rename = "l")]
    pub login: Login,
    /// The access token's name.
    #[serde(rename = "t")]
    pub token: TokenName,
    /// When the access token was created: a later one may have the same name.
    #[serde(rename = "m")]
    pub made: Timestamp,
    /// The kind of principal.
    #[serde(rename = "o", default, skip_serializing_if = "Principal::is_user")]
    pub of: Principal,
}

impl Bearer {
    /// The bearer in the form that records have.
    pub fn requester(&self) -> Requester {
        Requester { login: self.login.clone(), token: self.token.clone(), of: self.of.clone() }
    }
}

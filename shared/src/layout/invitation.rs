use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::domain::names::Login;
use crate::ports::Timestamp;

/// A link with which a user signs in once. Written when the operator invites the user, who has one at a time;
/// deleted when it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The hex SHA-256 of the secret in the link.
    pub hash: String,
    /// When the user was created: a later user may have the same login.
    pub user_made: Timestamp,
    pub until: Timestamp,
}

impl Record for Invitation {
    const NAME: &'static str = "invitation";
}

impl Invitation {
    pub fn key(login: &Login) -> Key<Self> {
        Key::new(format!("USER#{login}"), "INVITATION")
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let invitation = Invitation { hash: "cd".repeat(32), user_made: CREATED, until: LATER };
        files.hold("invitation.v1", &invitation, b"");
    }
}

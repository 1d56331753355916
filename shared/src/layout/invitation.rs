use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::domain::names::{Login, OrgName};
use crate::ports::Timestamp;

/// A link with which a user signs in once. Written when the operator or an admin of an organization invites the user, who
/// has one at a time; deleted when it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The hex SHA-256 of the secret in the link.
    pub hash: String,
    /// When the user was created: a later user may have the same login.
    pub user_made: Timestamp,
    pub until: Timestamp,
    /// The organization whose admin made it: it works only as long as the user has no rights elsewhere. `None` if the
    /// operator did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<OrgName>,
    /// That admin. `None` also if an older program wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Login>,
}

impl Record for Invitation {
    const NAME: &'static str = "invitation";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        // An older program would not check the user's rights elsewhere.
        if self.org.is_some() { 2 } else { 1 }
    }
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
        let hash = "cd".repeat(32);
        let invitation = Invitation { hash, user_made: CREATED, until: LATER, org: None, by: None };
        files.hold("invitation.v1", &invitation, b"");
        let of_org = Invitation { org: OrgName::parse("acme").ok(), ..invitation };
        files.hold("invitation-of-org.v2", &of_org, b"");
        let of_admin = Invitation { by: Some(login("alice")), ..of_org };
        files.hold("invitation-of-admin.v2", &of_admin, b"");
    }
}

use serde::{Deserialize, Serialize};

use super::key::{Key, KeyPrefix, parsed};
use super::record::{Broken, Record};
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::ports::ItemKey;

const PREFIX: &str = "MEMBER#";

/// A membership on the organization's side, which lists its members. Written in the commit that writes the
/// role into the [`super::User`]. Format 1 had the roles `member` and `admin` only, format 2 neither `none` nor
/// `view`, and format 3 no `auditor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub role: Role,
}

impl Record for Member {
    const NAME: &'static str = "member";
    const FORMAT: u8 = 4;

    fn format(&self) -> u8 {
        Self::format_of(self.role)
    }
}

impl Member {
    /// The oldest format that has this role.
    pub(super) fn format_of(role: Role) -> u8 {
        match role {
            Role::Member | Role::Admin => 1,
            Role::Outputs | Role::Plan | Role::Apply => 2,
            Role::None | Role::View => 3,
            Role::Auditor => 4,
        }
    }

    pub fn key(org: &OrgName, login: &Login) -> Key<Self> {
        Key::new(format!("ORG#{org}"), format!("{PREFIX}{login}"))
    }

    pub fn of_org(org: &OrgName) -> KeyPrefix<Self> {
        KeyPrefix::new(format!("ORG#{org}"), PREFIX)
    }

    /// The login in a key.
    ///
    /// # Errors
    /// [`Broken`] for the key of another record.
    pub fn login_in(key: &ItemKey) -> Result<Login, Broken> {
        parsed::<Self, _>(key, key.sort.strip_prefix(PREFIX).and_then(|login| Login::parse(login).ok()))
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("member.v1", &Member { role: Role::Admin }, b"");
        files.hold("member-plain.v1", &Member { role: Role::Member }, b"");
        for (role, file) in [
            (Role::Outputs, "member-outputs.v2"),
            (Role::Plan, "member-plan.v2"),
            (Role::Apply, "member-apply.v2"),
            (Role::None, "member-none.v3"),
            (Role::View, "member-view.v3"),
            (Role::Auditor, "member-auditor.v4"),
        ] {
            files.hold(file, &Member { role }, b"");
        }
    }
}

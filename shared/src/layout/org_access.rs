use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

use super::key::Key;
use super::record::Record;
use crate::domain::access::Access;
use crate::domain::names::OrgName;
use crate::domain::role::Role;

/// The teams and grants of an organization. One item, so that a decision costs one read. Written by each change; a
/// process remembers it for a minute. Format 1 had no role `auditor`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrgAccess(pub Access);

impl Record for OrgAccess {
    const NAME: &'static str = "access of an organization";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        let is_new = self.grants.iter().any(|grant| grant.role.0 == Role::Auditor);
        if is_new { 2 } else { 1 }
    }
}

impl Deref for OrgAccess {
    type Target = Access;
    fn deref(&self) -> &Access {
        &self.0
    }
}

impl DerefMut for OrgAccess {
    fn deref_mut(&mut self) -> &mut Access {
        &mut self.0
    }
}

impl OrgAccess {
    pub fn key(org: &OrgName) -> Key<Self> {
        Key::new(format!("ORG#{org}"), "ACCESS")
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::domain::access::{Grant, GrantedRole, Grantee, Scope, Team, TeamRole};
    use crate::domain::names::TeamName;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        files.hold("org-access.v1", &OrgAccess::default(), b"");
        let team = Team {
            created: CREATED,
            display_name: "The platform".to_owned(),
            description: "runs it".to_owned(),
            members: [(login("alice"), TeamRole::Admin), (login("bob"), TeamRole::Member)].into(),
        };
        let grant = |to, on, role| Grant {
            to: Grantee::parse(to).unwrap(),
            on: Scope::parse(on).unwrap(),
            role: GrantedRole(role),
        };
        let access = Access {
            teams: [(TeamName::parse("platform").unwrap(), team)].into(),
            grants: [
                grant("everybody", "*", Role::View),
                grant("team:platform", "web/*", Role::Apply),
                grant("user:bob", "tag:env=dev", Role::Member),
                grant("token:ci", "*/prod", Role::Plan),
            ]
            .into(),
            token_days_max: Some(90),
        };
        files.hold("org-access-full.v1", &OrgAccess(access), b"");
        let grants = [grant("user:bob", "*", Role::Auditor)].into();
        let audited = Access { grants, ..Access::default() };
        files.hold("org-access-auditor.v2", &OrgAccess(audited), b"");
    }
}

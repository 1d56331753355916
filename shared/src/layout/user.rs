use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::{Key, META};
use super::record::Record;
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::ports::Timestamp;

/// A user. Written by the commands that manage users and members. Memberships are stored here too, so that
/// one read returns all that a caller may see and do. Format 1 had no roles: a program that knows only format
/// 1 would let the user do everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub login: Login,
    pub created: Timestamp,
    /// The user's organizations, the default one first.
    pub orgs: Vec<OrgName>,
    /// The roles in the organizations where the role is not `member`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<OrgName, Role>,
}

impl Record for User {
    const NAME: &'static str = "user";
    const FORMAT: u8 = 2;

    fn format(&self) -> u8 {
        if self.roles.values().all(|role| *role > Role::Member) { 1 } else { 2 }
    }
}

impl User {
    pub fn key(login: &Login) -> Key<Self> {
        Key::new(format!("USER#{login}"), META)
    }

    /// The role in an organization; `None` if the user is not a member.
    pub fn role_in(&self, org: &OrgName) -> Option<Role> {
        self.orgs.contains(org).then(|| self.roles.get(org).copied().unwrap_or(Role::Member))
    }

    /// The user as a member with this role: a new member, or one with another role so far.
    #[must_use]
    pub fn as_member(mut self, org: &OrgName, role: Role) -> Self {
        if !self.orgs.contains(org) {
            self.orgs.push(org.clone());
        }
        match role {
            Role::Member => drop(self.roles.remove(org)),
            role => drop(self.roles.insert(org.clone(), role)),
        }
        self
    }

    /// The user without this membership.
    #[must_use]
    pub fn without(mut self, org: &OrgName) -> Self {
        self.orgs.retain(|other| other != org);
        self.roles.remove(org);
        self
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::layout::formats::*;

    pub(crate) fn read(files: &mut Files) {
        let orgs = ["acme", "beta"].map(|org| OrgName::parse(org).unwrap()).to_vec();
        let user = User { login: login("alice"), created: CREATED, orgs, roles: BTreeMap::new() };
        files.hold("user.v1", &user, b"");
        let [acme, beta] = [&user.orgs[0], &user.orgs[1]];
        files.hold("user-admin.v1", &user.clone().as_member(acme, Role::Admin), b"");
        let with_roles = user.clone().as_member(acme, Role::Admin).as_member(beta, Role::Plan);
        files.hold("user-with-roles.v2", &with_roles, b"");
    }
}

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::{Key, META};
use super::member::Member;
use super::record::Record;
use crate::domain::names::{Login, OrgName};
use crate::domain::role::Role;
use crate::ports::Timestamp;

/// A user. Written by the commands that manage users and members. Memberships are stored here too, so that
/// one read returns all that a caller may see and do. Format 1 had no roles, and formats 2 to 4 not all of them: a
/// program that knows only format 1 would let the user do everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    pub login: Login,
    pub created: Timestamp,
    /// The user's organizations, the default one first.
    pub orgs: Vec<OrgName>,
    /// The roles in the organizations where the role is not `member`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<OrgName, Role>,
    /// Until when the provider has confirmed the user, at the last sign-in: then the user's tokens stop. `None` for a
    /// user of no provider. Since format 4: a program that knows only an older format would let them live on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_until: Option<Timestamp>,
    /// The organization whose admin reset how the user signs in: the user, who could sign in already, used a link of that
    /// admin. All ways to sign in end when the user gets rights elsewhere. Since format 6: a program that knows only an
    /// older format would let them live on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_by: Option<OrgName>,
}

impl Record for User {
    const NAME: &'static str = "user";
    const FORMAT: u8 = 6;

    fn format(&self) -> u8 {
        if self.reset_by.is_some() {
            return 6;
        }
        let roles = self.roles.values().copied().map(Member::format_of).max().unwrap_or(1);
        match (roles, self.confirmed_until) {
            // Format 4 was the one of `confirmed_until` before there was the role `auditor`.
            (4.., _) => 5,
            (_, Some(_)) => 4,
            (roles, None) => roles,
        }
    }
}

impl User {
    /// A new user, who is a member of nothing.
    pub fn new(login: Login, created: Timestamp) -> Self {
        let (orgs, roles) = (Vec::new(), BTreeMap::new());
        Self { login, created, orgs, roles, confirmed_until: None, reset_by: None }
    }

    pub fn key(login: &Login) -> Key<Self> {
        Key::new(format!("USER#{login}"), META)
    }

    /// The role in an organization; `None` if the user is not a member.
    pub fn role_in(&self, org: &OrgName) -> Option<Role> {
        self.orgs.contains(org).then(|| self.roles.get(org).copied().unwrap_or(Role::Member))
    }

    /// Whether all ways to sign in end once the user is a member of this organization.
    pub fn loses_sign_in_for(&self, org: &OrgName) -> bool {
        self.reset_by.as_ref().is_some_and(|by| by != org)
    }

    /// The user as a member with this role: a new member, or one with another role so far.
    #[must_use]
    pub fn as_member(mut self, org: &OrgName, role: Role) -> Self {
        if self.loses_sign_in_for(org) {
            // Its accounts end, too, so none confirms the user.
            (self.reset_by, self.confirmed_until) = (None, None);
        }
        if !self.orgs.contains(org) {
            self.orgs.push(org.clone());
        }
        match role {
            Role::Member => drop(self.roles.remove(org)),
            role => drop(self.roles.insert(org.clone(), role)),
        }
        self
    }

    /// The user as seen by a token that works in one organization.
    #[must_use]
    pub fn only_in(mut self, org: &OrgName) -> Self {
        self.orgs.retain(|other| other == org);
        self.roles.retain(|other, _| other == org);
        self
    }

    /// When a token or a session of the user with this expiry stops: earlier if the user's provider has to confirm
    /// the user before.
    pub fn stops(&self, expires: Option<Timestamp>) -> Option<Timestamp> {
        [expires, self.confirmed_until].into_iter().flatten().min()
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
        let user = User { orgs, ..User::new(login("alice"), CREATED) };
        files.hold("user.v1", &user, b"");
        let [acme, beta] = [&user.orgs[0], &user.orgs[1]];
        files.hold("user-admin.v1", &user.clone().as_member(acme, Role::Admin), b"");
        let with_roles = user.clone().as_member(acme, Role::Admin).as_member(beta, Role::Plan);
        files.hold("user-with-roles.v2", &with_roles, b"");
        let confirmed = User { confirmed_until: Some(LATER), ..user.clone() };
        files.hold("user-confirmed.v4", &confirmed, b"");
        let viewer = with_roles.as_member(beta, Role::View);
        files.hold("user-viewer.v3", &viewer, b"");
        let auditor = viewer.as_member(beta, Role::Auditor);
        files.hold("user-auditor.v5", &auditor, b"");
        let reset = User { reset_by: Some(acme.clone()), ..user.clone().without(beta) };
        files.hold("user-reset.v6", &reset, b"");
    }
}

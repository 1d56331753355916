//! Changes of the teams and grants of an organization.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::grant::{Access, Grant, GrantedRole, Grantee, Team, TeamRole};
use super::scope::Scope;
use crate::domain::names::{Login, TeamName};
use crate::domain::role::Role;

/// The access after the grants on exactly one name count at another name too. Unless they are `kept`, they count there
/// alone.
pub fn renamed(access: &Access, from: &Scope, to: &Scope, kept: bool) -> Access {
    let mut next = access.clone();
    if !kept {
        next.grants.retain(|grant| grant.on != *from);
    }
    let here = access.grants.iter().filter(|grant| grant.on == *from);
    next.grants.extend(here.map(|grant| Grant { on: to.clone(), ..grant.clone() }));
    next
}

/// The role that somebody has on exactly this scope: of several, the highest.
pub fn role_on(access: &Access, to: &Grantee, on: &Scope) -> Option<Role> {
    let here = access.grants.iter().filter(|grant| grant.to == *to && grant.on == *on);
    here.map(|grant| grant.role).max().map(|role| role.0)
}

/// Replaces the roles that somebody has on exactly this scope by one, or by none.
pub fn set_role_on(access: &mut Access, to: &Grantee, on: &Scope, role: Option<Role>) {
    access.grants.retain(|grant| grant.to != *to || grant.on != *on);
    access.grants.extend(role.map(|role| Grant { to: to.clone(), on: on.clone(), role: GrantedRole(role) }));
}

/// The access after a user left the organization: without the user's places in teams and without the grants to the
/// user. A later member of the same name has none of them. `None` if there were none.
pub fn without_member(access: &Access, login: &Login) -> Option<Access> {
    let of = Grantee::User(login.clone());
    let is_named = access.grants.iter().any(|grant| grant.to == of)
        || access.teams.values().any(|team| team.members.contains_key(login));
    is_named.then(|| {
        let mut next = access.clone();
        next.grants.retain(|grant| grant.to != of);
        for team in next.teams.values_mut() {
            team.members.remove(login);
        }
        next
    })
}

/// A team in the document of an organization's access.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TeamDocument {
    /// The name for people.
    pub display_name: String,
    /// What it is for.
    pub description: String,
    pub members: BTreeMap<Login, TeamRole>,
}

/// The teams and grants of an organization as one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub teams: BTreeMap<TeamName, TeamDocument>,
    pub grants: BTreeSet<Grant>,
}

/// What a change of the teams and grants of an organization changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// New teams.
    pub teams_added: Vec<TeamName>,
    /// Teams with other members or texts.
    pub teams_changed: Vec<TeamName>,
    /// Teams that are deleted, with their tokens.
    pub teams_removed: Vec<TeamName>,
    /// New grants.
    pub grants_added: Vec<Grant>,
    /// Grants that are removed.
    pub grants_removed: Vec<Grant>,
}

impl Difference {
    /// The difference from one state to the next.
    pub fn between(old: &Access, new: &Access) -> Self {
        let only = |here: &Access, there: &Access| -> Vec<TeamName> {
            here.teams.keys().filter(|name| !there.teams.contains_key(*name)).cloned().collect()
        };
        let is_changed =
            |(name, team): &(&TeamName, &Team)| new.teams.get(*name).is_some_and(|it| it != *team);
        Self {
            teams_added: only(new, old),
            teams_changed: old.teams.iter().filter(is_changed).map(|(name, _)| name.clone()).collect(),
            teams_removed: only(old, new),
            grants_added: new.grants.difference(&old.grants).cloned().collect(),
            grants_removed: old.grants.difference(&new.grants).cloned().collect(),
        }
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

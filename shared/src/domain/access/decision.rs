//! The decision: what an actor may do, and why.

use super::grant::{Access, Grant, Grantee, TeamRole};
use super::scope::{NameRange, Scope, Unit};
use crate::domain::names::{Login, TeamName, TokenName};
use crate::domain::principal::Principal;
use crate::domain::role::{Right, Rights, Role};

/// Ranges of names that a list reads for one caller, at most: it reads everything if grants name more.
pub const RANGES_MAX: usize = 8;

/// The principal of a request in one organization.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// The kind of principal.
    pub of: &'a Principal,
    /// The user's login.
    pub login: &'a Login,
    /// The name of the access token.
    pub token: &'a TokenName,
    /// The role of the member, or of the machine.
    pub role: Role,
    /// The only part of the organization in which the token works; `None` for all of it.
    pub within: Option<&'a Scope>,
}

impl Actor<'_> {
    /// Whether the token works with this unit, or with the organization itself. `None` if tags decide that are not known
    /// yet.
    pub fn works_with(&self, unit: Option<&Unit<'_>>) -> Option<bool> {
        match (self.within, unit) {
            (None, _) => Some(true),
            (Some(within), Some(unit)) => within.reaches(unit),
            (Some(within), None) => Some(*within == Scope::Organization),
        }
    }

    fn is(&self, grantee: &Grantee, access: &Access) -> bool {
        match (grantee, self.of) {
            (Grantee::Everybody, of) => of.is_user(),
            (Grantee::User(login), of) => of.is_user() && login == self.login,
            (Grantee::Team(team), Principal::User) => {
                access.teams.get(team).is_some_and(|team| team.members.contains_key(self.login))
            }
            (Grantee::Team(team), Principal::Team(own)) => team == own,
            (Grantee::Token(token), of) => !of.is_user() && token == self.token,
            (Grantee::Team(_), Principal::Organization) => false,
        }
    }
}

/// What an actor may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// The rights that are certain.
    pub rights: Rights,
    /// The rights that there are at most, if the tags that are not known yet reach it.
    pub rights_max: Rights,
}

/// The decision: what an actor may do with a unit, or with the organization itself.
pub fn held(access: &Access, actor: &Actor<'_>, unit: Option<&Unit<'_>>) -> Held {
    let works = actor.works_with(unit);
    if works == Some(false) {
        return Held { rights: Rights::NONE, rights_max: Rights::NONE };
    }
    let mut rights = actor.role.rights();
    let mut rights_max = rights;
    for grant in &access.grants {
        if !actor.is(&grant.to, access) {
            continue;
        }
        let reaches = match unit {
            Some(unit) => grant.on.reaches(unit),
            None => Some(grant.on == Scope::Organization),
        };
        let given = grant.role.0.rights();
        if reaches != Some(false) {
            rights_max = rights_max.or(given);
        }
        if reaches == Some(true) {
            rights = rights.or(given);
        }
    }
    match works {
        Some(_) => Held { rights, rights_max },
        None => Held { rights: Rights::NONE, rights_max },
    }
}

/// The most that an actor may do with anything in the organization.
pub fn most(access: &Access, actor: &Actor<'_>) -> Rights {
    grants_of(access, actor).fold(actor.role.rights(), |rights, grant| rights.or(grant.role.0.rights()))
}

/// The grants that an actor has.
pub fn grants_of<'a>(access: &'a Access, actor: &'a Actor<'_>) -> impl Iterator<Item = &'a Grant> {
    access.grants.iter().filter(|grant| actor.is(&grant.to, access))
}

/// The teams that an actor is in, with the role there. The token of a team is in it, without a role.
pub fn teams_of<'a>(
    access: &'a Access,
    actor: &'a Actor<'_>,
) -> impl Iterator<Item = (&'a TeamName, Option<TeamRole>)> {
    access.teams.iter().filter_map(|(name, team)| match actor.of {
        Principal::User => team.members.get(actor.login).map(|role| (name, Some(*role))),
        Principal::Team(own) => (own == name).then_some((name, None)),
        Principal::Organization => None,
    })
}

/// The names of everything with which an actor may have this right, in order and none of them twice. Tags narrow it
/// further.
pub fn ranges(access: &Access, actor: &Actor<'_>, right: Right) -> Vec<NameRange> {
    let limit = actor.within.map(Scope::names).unwrap_or_default();
    if actor.role.gives(right) {
        return vec![limit];
    }
    let grants =
        access.grants.iter().filter(|grant| grant.role.0.gives(right) && actor.is(&grant.to, access));
    let mut found: Vec<NameRange> = grants.filter_map(|grant| grant.on.names().and(&limit)).collect();
    found.sort();
    let mut ranges: Vec<NameRange> = Vec::new();
    for range in found {
        if !ranges.last().is_some_and(|last| last.contains(&range)) {
            ranges.push(range);
        }
    }
    match ranges.len() <= RANGES_MAX {
        true => ranges,
        false => vec![limit],
    }
}

/// Why an actor has a right: the member's own role, or a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// The role of the member or of the machine.
    OwnRole(Role),
    Grant(Grant),
}

/// All reasons for which an actor has a right on a unit, or in the organization itself.
pub fn reasons(access: &Access, actor: &Actor<'_>, unit: Option<&Unit<'_>>, right: Right) -> Vec<Reason> {
    if actor.works_with(unit) != Some(true) {
        return Vec::new();
    }
    let own = actor.role.gives(right).then_some(Reason::OwnRole(actor.role));
    let grants = access.grants.iter().filter(|grant| {
        let reaches = match unit {
            Some(unit) => grant.on.reaches(unit) == Some(true),
            None => grant.on == Scope::Organization,
        };
        reaches && grant.role.0.gives(right) && actor.is(&grant.to, access)
    });
    own.into_iter().chain(grants.cloned().map(Reason::Grant)).collect()
}

/// All rights that grants by name or by tag give to anybody on a unit.
pub fn reach(access: &Access, unit: &Unit<'_>) -> Rights {
    let here = |grant: &&Grant| grant.on != Scope::Organization && grant.on.reaches(unit) == Some(true);
    access.grants.iter().filter(here).fold(Rights::NONE, |rights, grant| rights.or(grant.role.0.rights()))
}

/// Whether an actor may give roles on a scope, and take them: as an admin of the organization, or of a part of it that
/// contains the scope. An admin holds every right there, so no caller gives more than they hold.
pub fn may_grant(access: &Access, actor: &Actor<'_>, on: &Scope) -> bool {
    if actor.within.is_some_and(|within| !within.covers(on)) {
        return false;
    }
    let makes_admin = |grant: &Grant| {
        grant.role.0.gives(Right::Admin) && grant.on.covers(on) && actor.is(&grant.to, access)
    };
    actor.role.gives(Right::Admin) || access.grants.iter().any(makes_admin)
}

/// What a team may do with a unit. Grants to everybody do not count: they are not the team's.
pub fn held_by_team(access: &Access, team: &TeamName, unit: &Unit<'_>) -> Rights {
    let here = grants_of_team(access, team).filter(|grant| grant.on.reaches(unit) == Some(true));
    here.fold(Rights::NONE, |rights, grant| rights.or(grant.role.0.rights()))
}

/// The most that a team may do with anything.
pub fn most_of_team(access: &Access, team: &TeamName) -> Rights {
    grants_of_team(access, team).fold(Rights::NONE, |rights, grant| rights.or(grant.role.0.rights()))
}

/// The grants to a team.
pub fn grants_of_team<'a>(access: &'a Access, team: &'a TeamName) -> impl Iterator<Item = &'a Grant> {
    access.grants.iter().filter(move |grant| matches!(&grant.to, Grantee::Team(to) if to == team))
}

/// Whether a tag of this name decides what somebody may do.
pub fn is_tag_granted(access: &Access, tag: &str) -> bool {
    access.grants.iter().any(|grant| matches!(&grant.on, Scope::Tag { name, .. } if name == tag))
}

//! Who may do what in an organization: grants, teams, and the one decision.
//!
//! A grant gives a role to somebody on a part of the organization. What a caller may do with a stack, a state or an
//! environment is the union of the member's own role and of all grants that reach it. Nothing takes a right away.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::hidden::has_hidden;
use super::names::{
    EnvironmentAddress, Login, OrgName, ProjectName, StackAddress, StateAddress, TeamName, TokenName,
};
use super::principal::Principal;
use super::role::{Right, Rights, Role};
use super::tfstate::{LabelValue, Labels};
use crate::ports::Timestamp;

/// Grants of an organization, at most. They are stored in one item.
pub const GRANTS_MAX: usize = 1_000;

/// Teams of an organization, at most.
pub const TEAMS_MAX: usize = 200;

/// Members of all teams of an organization together, at most.
pub const TEAM_MEMBERS_MAX: usize = 4_000;

/// Ranges of names that a list reads for one caller, at most: it reads everything if grants name more.
pub const RANGES_MAX: usize = 8;

/// The JSON of the teams and grants of an organization, in bytes, at most: an item of DynamoDB holds 400 KB.
pub const ACCESS_BYTES_MAX: usize = 350_000;

/// The teams and grants of an organization, and its rules for tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub teams: BTreeMap<TeamName, Team>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub grants: BTreeSet<Grant>,
    /// The most days that a token may have left. `None` for no limit: then tokens without an expiry work too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_days_max: Option<u32>,
}

/// A team of an organization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Team {
    /// When it was created: a later team may have the same name.
    pub created: Timestamp,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<Login, TeamRole>,
}

/// What a member may do with the team itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TeamRole {
    /// Have the rights of the team.
    #[default]
    Member,
    /// Also change the members of the team.
    Admin,
}

impl TeamRole {
    /// The name in records, commands and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }
}

/// A change of one member of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TeamAction {
    /// Make a member of the organization a member of the team.
    Add,
    /// End the membership in the team.
    Remove,
    /// Make a member an admin of the team.
    Promote,
    /// Make an admin of the team a member again.
    Demote,
}

impl TeamAction {
    /// The name in requests and in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Remove => "remove",
            Self::Promote => "promote",
            Self::Demote => "demote",
        }
    }
}

/// A role for somebody on a part of the organization.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Grant {
    pub to: Grantee,
    pub on: Scope,
    #[serde(with = "role_by_name")]
    pub role: GrantedRole,
}

/// A [`Role`] with an order, so that grants are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedRole(pub Role);

impl PartialOrd for GrantedRole {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for GrantedRole {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0 as u8).cmp(&(other.0 as u8))
    }
}

mod role_by_name {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{GrantedRole, Role};

    pub(super) fn serialize<S: Serializer>(role: &GrantedRole, to: S) -> Result<S::Ok, S::Error> {
        role.0.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<GrantedRole, D::Error> {
        Role::deserialize(from).map(GrantedRole)
    }
}

/// A text that is not a grantee or not a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not {what}: {rule}")]
pub struct InvalidGrant {
    /// The kind of text.
    pub what: &'static str,
    /// The given text, shortened.
    pub found: String,
    pub rule: &'static str,
}

macro_rules! text_form {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = InvalidGrant;
            fn try_from(text: String) -> Result<Self, InvalidGrant> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(from: $name) -> Self {
                from.to_string()
            }
        }
    };
}

/// Who gets a role. The text form is `everybody`, `user:LOGIN`, `team:NAME` or `token:NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Grantee {
    /// Every member of the organization. Machines are not members.
    Everybody,
    User(Login),
    /// The members and the tokens of a team.
    Team(TeamName),
    /// A token of the organization.
    Token(TokenName),
}

text_form!(Grantee);

impl Grantee {
    /// Parses the text form.
    ///
    /// # Errors
    /// [`InvalidGrant`].
    pub fn parse(text: &str) -> Result<Self, InvalidGrant> {
        let invalid = || InvalidGrant {
            what: "a grantee",
            found: text.chars().take(60).collect(),
            rule: "use `everybody`, `user:LOGIN`, `team:NAME` or `token:NAME`",
        };
        let found = match text.split_once(':') {
            None if text == "everybody" => Some(Self::Everybody),
            Some(("user", login)) => Login::parse(login).ok().map(Self::User),
            Some(("team", team)) => TeamName::parse(team).ok().map(Self::Team),
            Some(("token", token)) => TokenName::parse(token).ok().map(Self::Token),
            _ => None,
        };
        found.ok_or_else(invalid)
    }
}

impl fmt::Display for Grantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everybody => f.write_str("everybody"),
            Self::User(login) => write!(f, "user:{login}"),
            Self::Team(team) => write!(f, "team:{team}"),
            Self::Token(token) => write!(f, "token:{token}"),
        }
    }
}

/// The part of an organization that a grant reaches. The text form is `*` for all of it, `PROJECT/NAME` with `*` for
/// any run of characters in either part, or `tag:NAME=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Scope {
    /// The organization itself, with everything in it.
    Organization,
    /// Stacks, states and environments by their names. The parts may have `*`.
    Names {
        /// The pattern of the project.
        project: String,
        /// The pattern of the name within the project.
        name: String,
    },
    /// Stacks by a tag, and states by a label, with this value.
    Tag {
        /// The name of the tag, or the key of the label.
        name: String,
        /// Its value, as text.
        value: String,
    },
}

text_form!(Scope);

/// The longest pattern, name of a tag or value of a tag in a scope, in bytes.
const PART_BYTES_MAX: usize = 256;

impl Scope {
    /// Parses the text form.
    ///
    /// # Errors
    /// [`InvalidGrant`].
    pub fn parse(text: &str) -> Result<Self, InvalidGrant> {
        let invalid = || InvalidGrant {
            what: "a scope",
            found: text.chars().take(60).collect(),
            rule: "use `*` for the organization, `PROJECT/NAME` with `*` for any characters, or `tag:NAME=VALUE`",
        };
        let found = match text.strip_prefix("tag:") {
            _ if text == "*" => Some(Self::Organization),
            Some(tag) => tag
                .split_once('=')
                .filter(|(name, value)| is_tag(name, value))
                .map(|(name, value)| Self::Tag { name: name.to_owned(), value: value.to_owned() }),
            None => text
                .split_once('/')
                .filter(|(project, name)| is_pattern(project) && is_pattern(name))
                .map(|(project, name)| Self::Names { project: project.to_owned(), name: name.to_owned() }),
        };
        found.ok_or_else(invalid)
    }

    /// Refuses a value of a tag with hidden characters, which only stored scopes of before may have.
    ///
    /// # Errors
    /// [`InvalidGrant`].
    pub fn check_new(&self) -> Result<(), InvalidGrant> {
        match self {
            Self::Tag { value, .. } if has_hidden(value) => Err(InvalidGrant {
                what: "a scope",
                found: self.to_string().chars().take(60).collect(),
                rule: "its value has hidden characters, so write it without them",
            }),
            Self::Organization | Self::Names { .. } | Self::Tag { .. } => Ok(()),
        }
    }

    /// The scope of one name.
    pub fn exactly(project: &ProjectName, name: &str) -> Self {
        Self::Names { project: project.to_string(), name: name.to_owned() }
    }

    /// The project and the name, if it reaches one name only.
    pub fn exact(&self) -> Option<(&str, &str)> {
        match self {
            Self::Names { project, name } if !project.contains('*') && !name.contains('*') => {
                Some((project, name))
            }
            Self::Organization | Self::Names { .. } | Self::Tag { .. } => None,
        }
    }

    /// Whether it reaches everything that the other scope reaches, now and later.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Organization, _) => true,
            // Only a `*` matches a `*`, so the text of the other pattern stands for all that it matches.
            (Self::Names { project, name }, Self::Names { project: other_project, name: other_name }) => {
                matches(project, other_project) && matches(name, other_name)
            }
            (Self::Tag { .. }, _) => self == other,
            (Self::Names { .. }, Self::Organization | Self::Tag { .. }) => false,
        }
    }

    /// The names that it can reach: all of them for a tag.
    fn names(&self) -> NameRange {
        let range = |start: String, is_whole| NameRange { start, is_whole };
        match self {
            Self::Organization | Self::Tag { .. } => NameRange::default(),
            Self::Names { project, name } => match (project.split_once('*'), name.split_once('*')) {
                (Some((start, _)), _) => range(start.to_owned(), false),
                (None, Some((start, _))) => range(format!("{project}/{start}"), false),
                (None, None) => range(format!("{project}/{name}"), true),
            },
        }
    }

    /// Whether it reaches this unit. `None` if its tags decide, and they are not known yet.
    fn reaches(&self, unit: &Unit<'_>) -> Option<bool> {
        match self {
            Self::Organization => Some(true),
            Self::Names { project, name } => {
                Some(matches(project, unit.project.as_str()) && matches(name, unit.name))
            }
            Self::Tag { name, value } => unit.tags.has(name, value),
        }
    }
}

fn is_tag(name: &str, value: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ':' | '/');
    (1..=PART_BYTES_MAX).contains(&name.len())
        && name.chars().all(is_name)
        && value.len() <= PART_BYTES_MAX
        && !value.chars().any(char::is_control)
}

fn is_pattern(part: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '*');
    (1..=PART_BYTES_MAX).contains(&part.len()) && part.chars().all(is_part)
}

/// Whether a pattern matches a whole name. `*` matches any run of characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Organization => f.write_str("*"),
            Self::Names { project, name } => write!(f, "{project}/{name}"),
            Self::Tag { name, value } => write!(f, "tag:{name}={value}"),
        }
    }
}

/// The tags of a stack or the labels of a state, as far as they are known.
#[derive(Debug, Clone, Copy)]
pub enum Tags<'a> {
    /// Not read yet.
    Unknown,
    /// There are none, and there cannot be any.
    None,
    /// The tags of a stack or of an environment.
    Tags(&'a BTreeMap<String, String>),
    /// The labels of a state.
    Labels(&'a Labels),
}

impl Tags<'_> {
    fn has(self, name: &str, value: &str) -> Option<bool> {
        match self {
            Self::Unknown => None,
            Self::None => Some(false),
            Self::Tags(tags) => Some(tags.get(name).is_some_and(|found| found == value)),
            Self::Labels(labels) => {
                let found = labels.iter().find(|(key, _)| key.as_str() == name);
                Some(found.is_some_and(|(_, found)| text_of(found) == value))
            }
        }
    }
}

/// A label's value as the text of a scope has it.
fn text_of(value: &LabelValue) -> String {
    match value {
        LabelValue::Text(text) => text.clone(),
        LabelValue::Bool(bool) => bool.to_string(),
        LabelValue::Number(number) => number.get().to_string(),
    }
}

/// A stack, a state or an environment, for a decision.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    pub project: &'a ProjectName,
    pub name: &'a str,
    pub tags: Tags<'a>,
}

impl<'a> Unit<'a> {
    /// A stack.
    pub fn stack(address: &'a StackAddress, tags: Tags<'a>) -> Self {
        Self { project: &address.project, name: address.stack.as_str(), tags }
    }

    /// A Terraform state.
    pub fn state(address: &'a StateAddress, tags: Tags<'a>) -> Self {
        Self { project: &address.project, name: address.state.as_str(), tags }
    }

    /// An environment.
    pub fn environment(address: &'a EnvironmentAddress, tags: Tags<'a>) -> Self {
        Self { project: &address.project, name: address.name.as_str(), tags }
    }

    /// Its address in this organization.
    pub fn address(&self, org: &OrgName) -> String {
        format!("{org}/{}/{}", self.project, self.name)
    }
}

/// Names next to each other in a list: those that start with a text, or one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NameRange {
    /// The start of `PROJECT/NAME`; empty for all names.
    pub start: String,
    /// Whether the start is the whole of one name.
    pub is_whole: bool,
}

impl NameRange {
    fn contains(&self, other: &Self) -> bool {
        match self.is_whole {
            true => self == other,
            false => other.start.starts_with(&self.start),
        }
    }

    /// The names in both. One contains the other, or they have none in common.
    fn and(self, other: &Self) -> Option<Self> {
        match (self.contains(other), other.contains(&self)) {
            (true, _) => Some(other.clone()),
            (false, true) => Some(self),
            (false, false) => None,
        }
    }
}

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

/// Whether a tag of this name decides what somebody may do.
pub fn is_tag_granted(access: &Access, tag: &str) -> bool {
    access.grants.iter().any(|grant| matches!(&grant.on, Scope::Tag { name, .. } if name == tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn team(members: &[&str]) -> Team {
        let member = |login: &&str| (Login::parse(login).unwrap(), TeamRole::Member);
        Team {
            created: Timestamp(0),
            display_name: String::new(),
            description: String::new(),
            members: members.iter().map(member).collect(),
        }
    }

    fn access(grants: &[(&str, &str, Role)]) -> Access {
        let grant = |(to, on, role): &(&str, &str, Role)| Grant {
            to: Grantee::parse(to).unwrap(),
            on: Scope::parse(on).unwrap(),
            role: GrantedRole(*role),
        };
        Access {
            teams: [(TeamName::parse("ops").unwrap(), team(&["bob"]))].into(),
            grants: grants.iter().map(grant).collect(),
            token_days_max: None,
        }
    }

    fn rights(access: &Access, of: &Principal, login: &str, unit: Option<(&str, &str, Tags<'_>)>) -> Held {
        let (login, token) = (Login::parse(login).unwrap(), TokenName::parse("ci").unwrap());
        let actor = Actor { of, login: &login, token: &token, role: Role::None, within: None };
        let project = unit.map(|(project, ..)| ProjectName::parse(project).unwrap());
        let unit = unit.zip(project.as_ref()).map(|((_, name, tags), project)| Unit { project, name, tags });
        held(access, &actor, unit.as_ref())
    }

    #[test]
    fn texts_of_grants_read_back() {
        for text in ["everybody", "user:bob", "team:ops", "token:ci"] {
            assert_eq!(Grantee::parse(text).unwrap().to_string(), text);
        }
        for text in ["*", "web/*", "*/prod", "we*b/x", "tag:env=prod", "tag:a:b=", "tag:team/size=3"] {
            assert_eq!(Scope::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "everyone", "user:", "team:a/b", "bob", "user:b b"] {
            assert!(Grantee::parse(text).is_err(), "{text}");
        }
        for text in ["", "web", "web/", "/x", "a/b/c", "tag:", "tag:env", "tag:=x", "a b/*", "tag:a=\u{7}"] {
            assert!(Scope::parse(text).is_err(), "{text}");
        }
        // Stored ones are read, and new ones are refused.
        let turning = Scope::parse("tag:team=a\u{202e}b").unwrap();
        assert!(turning.check_new().unwrap_err().to_string().contains("hidden characters"));
        Scope::parse("tag:team=a b").unwrap().check_new().unwrap();
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, expected) in [
            ("*", "web", true),
            ("web", "web", true),
            ("web", "web2", false),
            ("web*", "web2", true),
            ("*prod", "eu-prod", true),
            ("*prod", "prod-eu", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "abc", true),
            ("a*a", "a", false),
            ("a**b", "ab", true),
            ("*a*", "b", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_grant_reaches_its_grantee_on_its_scope_only() {
        let all = access(&[
            ("user:bob", "web/*", Role::Apply),
            ("team:ops", "*/prod", Role::Plan),
            ("everybody", "*", Role::View),
            ("token:ci", "net/*", Role::Member),
        ]);
        let user = Principal::User;
        let on = |login, project, name| rights(&all, &user, login, Some((project, name, Tags::None))).rights;
        assert_eq!(on("bob", "web", "dev"), Role::Apply.rights());
        assert_eq!(on("bob", "net", "prod"), Role::Plan.rights());
        assert_eq!(on("ann", "net", "prod"), Role::View.rights());
        let machine = Principal::Organization;
        let on = |project| rights(&all, &machine, "acme", Some((project, "dev", Tags::None))).rights;
        assert_eq!(on("net"), Role::Member.rights());
        assert_eq!(on("web"), Rights::NONE, "a machine is not everybody");
        let ops = Principal::Team(TeamName::parse("ops").unwrap());
        let prod = Some(("net", "prod", Tags::None));
        assert_eq!(
            rights(&all, &ops, "acme", prod).rights,
            Role::Member.rights(),
            "as a team, and as a token"
        );
        assert_eq!(
            rights(&all, &user, "bob", None).rights,
            Role::View.rights(),
            "in the organization itself"
        );
    }

    #[test]
    fn tags_that_are_not_known_yet_leave_it_open() {
        let all = access(&[("user:bob", "tag:env=dev", Role::Apply), ("user:bob", "web/*", Role::View)]);
        let on = |tags| rights(&all, &Principal::User, "bob", Some(("web", "x", tags)));
        let (view, apply) = (Role::View.rights(), Role::Apply.rights());
        assert_eq!(on(Tags::Unknown), Held { rights: view, rights_max: apply });
        assert_eq!(on(Tags::None), Held { rights: view, rights_max: view });
        let tags = BTreeMap::from([("env".to_owned(), "dev".to_owned())]);
        assert_eq!(on(Tags::Tags(&tags)).rights, apply);
        let tags = BTreeMap::from([("env".to_owned(), "prod".to_owned())]);
        assert_eq!(on(Tags::Tags(&tags)), Held { rights: view, rights_max: view });
        assert!(is_tag_granted(&all, "env") && !is_tag_granted(&all, "owner"));
    }

    #[test]
    fn a_right_has_all_its_reasons() {
        let all = access(&[("team:ops", "*/prod", Role::Plan), ("user:bob", "web/*", Role::View)]);
        let (login, token) = (Login::parse("bob").unwrap(), TokenName::parse("ci").unwrap());
        let role = Role::Outputs;
        let actor = Actor { of: &Principal::User, login: &login, token: &token, role, within: None };
        let web = ProjectName::parse("web").unwrap();
        let unit = Unit { project: &web, name: "prod", tags: Tags::None };
        let why = |right| reasons(&all, &actor, Some(&unit), right).len();
        assert_eq!((why(Right::View), why(Right::Outputs), why(Right::Apply)), (2, 2, 0));
        assert_eq!(most(&all, &actor), Role::Plan.rights());
    }

    #[test]
    fn a_token_with_a_scope_works_there_alone() {
        let all = access(&[("user:bob", "net/*", Role::Apply), ("user:bob", "web/*", Role::Plan)]);
        let (login, token) = (Login::parse("bob").unwrap(), TokenName::parse("ci").unwrap());
        let (web, net) = (ProjectName::parse("web").unwrap(), ProjectName::parse("net").unwrap());
        let tags = BTreeMap::from([("env".to_owned(), "dev".to_owned())]);
        let scope = |text: &str| Scope::parse(text).unwrap();
        let (in_web, tagged, everything) = (scope("web/*"), scope("tag:env=dev"), scope("*"));
        let of = Principal::User;
        let actor =
            |role, within| Actor { of: &of, login: &login, token: &token, role, within: Some(within) };
        let on = |actor: &Actor<'_>, project: &ProjectName, tags: Tags<'_>| {
            held(&all, actor, Some(&Unit { project, name: "dev", tags }))
        };

        let admin = actor(Role::Admin, &in_web);
        assert_eq!(on(&admin, &web, Tags::Unknown).rights, Role::Admin.rights());
        assert_eq!(on(&admin, &net, Tags::Unknown).rights_max, Rights::NONE);
        assert_eq!(held(&all, &admin, None).rights, Rights::NONE, "the organization itself");
        let outside = Unit { project: &net, name: "dev", tags: Tags::None };
        assert!(reasons(&all, &admin, Some(&outside), Right::See).is_empty());
        let may = |on: &str| may_grant(&all, &admin, &scope(on));
        assert_eq!((may("web/dev"), may("net/dev"), may("*")), (true, false, false));

        let without_role = actor(Role::None, &in_web);
        assert_eq!(on(&without_role, &web, Tags::None).rights, Role::Plan.rights(), "it adds nothing");
        assert_eq!(on(&without_role, &net, Tags::None).rights, Rights::NONE);

        let (member, rights) = (actor(Role::Member, &tagged), Role::Member.rights());
        assert_eq!(on(&member, &web, Tags::Unknown), Held { rights: Rights::NONE, rights_max: rights });
        assert_eq!(on(&member, &web, Tags::None).rights_max, Rights::NONE);
        assert_eq!(on(&member, &web, Tags::Tags(&tags)).rights, rights);

        assert_eq!(held(&all, &actor(Role::Admin, &everything), None).rights, Role::Admin.rights());
    }

    #[test]
    fn a_list_reads_the_names_that_grants_reach() {
        let (login, token) = (Login::parse("bob").unwrap(), TokenName::parse("ci").unwrap());
        let read = |grants: &[&str], role, within: Option<&str>| {
            let grants: Vec<_> = grants.iter().map(|on| ("user:bob", *on, Role::Plan)).collect();
            let within = within.map(|within| Scope::parse(within).unwrap());
            let (of, within) = (&Principal::User, within.as_ref());
            let actor = Actor { of, login: &login, token: &token, role, within };
            let all = ranges(&access(&grants), &actor, Right::Plan);
            all.into_iter().map(|range| (range.start, range.is_whole)).collect::<Vec<_>>()
        };
        let range = |start: &str, is_whole| (start.to_owned(), is_whole);
        assert_eq!(read(&["web/*"], Role::Plan, None), [range("", false)], "the role reaches everything");
        assert_eq!(
            read(&["web/*", "net/dev"], Role::View, None),
            [range("net/dev", true), range("web/", false)]
        );
        assert_eq!(read(&["web/d*", "web/dev", "we*/x"], Role::None, None), [range("we", false)]);
        assert_eq!(
            read(&["web/dev", "web/dev-2", "web/dev*x"], Role::None, None),
            [range("web/dev", false)],
            "a range contains the names in it"
        );
        for everything in ["*", "*/prod", "tag:env=dev"] {
            assert_eq!(read(&["web/*", everything], Role::None, None), [range("", false)], "{everything}");
        }
        let many: Vec<String> = (0..=RANGES_MAX).map(|at| format!("web/{at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(read(&many[1..], Role::None, None).len(), RANGES_MAX);
        assert_eq!(read(&many, Role::None, None), [range("", false)]);
        assert_eq!(read(&[], Role::Admin, Some("web/*")), [range("web/", false)]);
        assert_eq!(read(&["*", "net/*"], Role::None, Some("web/d*")), [range("web/d", false)]);
        assert_eq!(read(&["web/dev", "net/*"], Role::None, Some("web/*")), [range("web/dev", true)]);
        assert!(read(&["net/*"], Role::None, Some("web/*")).is_empty());
    }

    #[test]
    fn a_scope_covers_what_it_always_contains() {
        let scope = |text: &str| Scope::parse(text).unwrap();
        for (outer, inner, expected) in [
            ("*", "web/*", true),
            ("*", "tag:env=dev", true),
            ("web/*", "web/dev", true),
            ("web/*", "web/*", true),
            ("web/*", "web*/dev", false),
            ("web*/*", "web-*/dev", true),
            ("web/d*", "web/*", false),
            ("web/a*a", "web/a*", false),
            ("*/*", "*", false),
            ("*/*", "tag:env=dev", false),
            ("tag:env=dev", "tag:env=dev", true),
            ("tag:env=dev", "tag:env=prod", false),
        ] {
            assert_eq!(scope(outer).covers(&scope(inner)), expected, "{outer} covers {inner}");
        }
        assert_eq!(scope("web/dev").exact(), Some(("web", "dev")));
        assert_eq!((scope("web/*").exact(), scope("*").exact()), (None, None));
    }

    #[test]
    fn an_admin_of_a_part_gives_roles_in_that_part() {
        let all = access(&[("team:ops", "web/*", Role::Admin), ("user:bob", "net/*", Role::Member)]);
        let token = TokenName::parse("ci").unwrap();
        let may = |login: &str, role, on: &str| {
            let login = Login::parse(login).unwrap();
            let actor = Actor { of: &Principal::User, login: &login, token: &token, role, within: None };
            may_grant(&all, &actor, &Scope::parse(on).unwrap())
        };
        assert!(may("bob", Role::None, "web/dev") && may("bob", Role::None, "web/d*"));
        for on in ["*", "net/dev", "*/dev", "tag:env=dev"] {
            assert!(!may("bob", Role::Member, on), "{on}");
            assert!(may("ann", Role::Admin, on), "{on}");
        }
        assert!(!may("ann", Role::Member, "web/dev"), "not in the team");
    }

    #[test]
    fn a_rename_moves_the_grants_on_one_name_or_copies_them() {
        let (from, to) = (Scope::parse("web/dev").unwrap(), Scope::parse("net/prod").unwrap());
        let all = access(&[("user:bob", "web/dev", Role::Apply), ("team:ops", "web/*", Role::View)]);
        let moved = access(&[("user:bob", "net/prod", Role::Apply), ("team:ops", "web/*", Role::View)]);
        assert_eq!(renamed(&all, &from, &to, false), moved);
        let both = Access { grants: all.grants.union(&moved.grants).cloned().collect(), ..all.clone() };
        assert_eq!(renamed(&all, &from, &to, true), both);
        assert_eq!(renamed(&moved, &from, &to, false), moved);
    }

    #[test]
    fn a_user_who_left_leaves_no_right_behind() {
        let all = access(&[("user:bob", "web/*", Role::Apply), ("team:ops", "*", Role::View)]);
        let (bob, ann) = (Login::parse("bob").unwrap(), Login::parse("ann").unwrap());
        let next = without_member(&all, &bob).unwrap();
        assert_eq!(next.grants.len(), 1);
        assert!(next.teams.values().all(|team| team.members.is_empty()));
        assert_eq!((without_member(&next, &bob), without_member(&all, &ann)), (None, None));
        let difference = Difference::between(&all, &next);
        assert_eq!((difference.teams_changed.len(), difference.grants_removed.len()), (1, 1));
        assert!(difference.teams_added.is_empty() && !difference.is_empty());
        assert!(Difference::between(&all, &all).is_empty());
    }

    #[test]
    fn a_role_on_one_scope_replaces_the_others_there() {
        let mut all = access(&[("team:ops", "web/dev", Role::Plan), ("team:ops", "web/dev", Role::View)]);
        let (ops, on) = (Grantee::parse("team:ops").unwrap(), Scope::parse("web/dev").unwrap());
        assert_eq!(role_on(&all, &ops, &on), Some(Role::Plan));
        set_role_on(&mut all, &ops, &on, Some(Role::Apply));
        assert_eq!((all.grants.len(), role_on(&all, &ops, &on)), (1, Some(Role::Apply)));
        let web = ProjectName::parse("web").unwrap();
        let unit = Unit { project: &web, name: "dev", tags: Tags::None };
        let team = TeamName::parse("ops").unwrap();
        assert_eq!(held_by_team(&all, &team, &unit), Role::Apply.rights());
        assert_eq!(most_of_team(&all, &team), Role::Apply.rights());
        set_role_on(&mut all, &ops, &on, None);
        assert_eq!((all.grants.len(), most_of_team(&all, &team)), (0, Rights::NONE));
    }
}

//! The teams and grants of an organization, as they are stored.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::scope::{InvalidGrant, Scope, text_form};
use crate::domain::names::{Login, TeamName, TokenName};
use crate::domain::role::Role;
use crate::ports::Timestamp;

/// Grants of an organization, at most. They are stored in one item.
pub const GRANTS_MAX: usize = 1_000;

/// Teams of an organization, at most.
pub const TEAMS_MAX: usize = 200;

/// Members of all teams of an organization together, at most.
pub const TEAM_MEMBERS_MAX: usize = 4_000;

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

//! Who an access token identifies.

use serde::{Deserialize, Serialize};

use super::names::TeamName;

/// The kind of principal that an access token identifies. The login next to it is the user's, or the name of the
/// organization that the machine belongs to. A user and an organization may have the same name, so a login alone does
/// not identify anyone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Principal {
    /// A person, with a personal token, a client certificate or a password.
    #[default]
    User,
    /// The machines of an organization, with tokens of the organization.
    Organization,
    /// The machines of a team, with tokens of the team.
    Team(TeamName),
}

impl Principal {
    /// Whether this is a person.
    pub fn is_user(&self) -> bool {
        *self == Self::User
    }

    /// The team, if it is one.
    pub fn team(&self) -> Option<&TeamName> {
        match self {
            Self::Team(team) => Some(team),
            Self::User | Self::Organization => None,
        }
    }

    /// The word in records, commands and messages.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::User => "personal",
            Self::Organization => "organization",
            Self::Team(_) => "team",
        }
    }
}

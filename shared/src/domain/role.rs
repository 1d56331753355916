//! Roles in an organization.

use serde::{Deserialize, Serialize};

/// The most that a member of an organization, or an access token, may do. Each role includes the ones before it.
///
/// A request needs a role too, so one comparison decides whether it is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// List stacks and states, and read their outputs.
    Outputs,
    /// Read states and history, open secrets, preview, and lock for a plan.
    Plan,
    /// Write: update stacks, apply states, and create new ones.
    Apply,
    /// Everything with stacks and states: also destroy, set policies, and end the work of others.
    Member,
    /// Everything, including other members and their tokens.
    Admin,
}

impl Role {
    /// All roles, lowest first.
    pub const ALL: [Self; 5] = [Self::Outputs, Self::Plan, Self::Apply, Self::Member, Self::Admin];

    /// The name in records, commands and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Outputs => "outputs",
            Self::Plan => "plan",
            Self::Apply => "apply",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }

    /// The role with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_parse_from_their_names_and_are_ordered() {
        for role in Role::ALL {
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert!(Role::ALL.is_sorted());
        assert_eq!(Role::parse("owner"), None);
    }
}

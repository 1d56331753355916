//! What somebody may do in an organization.

use serde::{Deserialize, Serialize};

/// What a member of an organization, or an access token, may do at most. Each role may do what those before it may.
///
/// It is also what a request needs, so that whether it may be done is one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// See which stacks and states there are, and their outputs.
    Outputs,
    /// Read states and their history, open secrets, preview; lock for a plan.
    Plan,
    /// Write: update stacks, apply states, and make new ones.
    Apply,
    /// Everything with stacks and states: also what destroys, what sets rules, and what ends the work of others.
    Member,
    /// Everything, including other members and their tokens.
    Admin,
}

impl Role {
    /// All of them, the least first.
    pub const ALL: [Self; 5] = [Self::Outputs, Self::Plan, Self::Apply, Self::Member, Self::Admin];

    /// Its name, as records, commands and messages have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Outputs => "outputs",
            Self::Plan => "plan",
            Self::Apply => "apply",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }

    /// The role of this name.
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
    fn a_role_is_written_as_it_is_called_and_each_is_more_than_the_one_before() {
        for role in Role::ALL {
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert!(Role::ALL.is_sorted());
        assert_eq!(Role::parse("owner"), None);
    }
}

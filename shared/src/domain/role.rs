//! Roles in an organization, and the rights that they give.

use serde::{Deserialize, Serialize};

/// A kind of action that a request needs a right for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// See that a stack, a state or an environment exists, with its tags and its lock.
    See,
    /// See everything but secrets and values: resources, history, differences.
    View,
    /// Read outputs.
    Outputs,
    /// Read everything, open secrets, preview, and lock for a plan.
    Plan,
    /// Write: update stacks, apply states, and create new ones.
    Apply,
    /// Everything with stacks and states: also destroy, set policies, and end the work of others.
    Member,
    /// Read the audit trail of the organization.
    Audit,
    /// Administer the organization: members, teams, tokens, issuers, and who may do what.
    Admin,
}

impl Right {
    /// All rights.
    pub const ALL: [Self; 8] = [
        Self::See,
        Self::View,
        Self::Outputs,
        Self::Plan,
        Self::Apply,
        Self::Member,
        Self::Audit,
        Self::Admin,
    ];

    /// The lowest role with this right, for messages. [`Right::See`] is in every role but `none`.
    pub fn role(self) -> Role {
        match self {
            Self::See | Self::View => Role::View,
            Self::Outputs => Role::Outputs,
            Self::Plan => Role::Plan,
            Self::Apply => Role::Apply,
            Self::Member => Role::Member,
            Self::Audit => Role::Auditor,
            Self::Admin => Role::Admin,
        }
    }

    /// The name in commands and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::See => "see",
            Self::Audit => "audit",
            other => other.role().as_str(),
        }
    }

    /// The right with this name, or the one that an everyday command with this name needs.
    pub fn of_action(word: &str) -> Option<Self> {
        Some(match word {
            "see" | "list" => Self::See,
            "view" | "history" => Self::View,
            "outputs" => Self::Outputs,
            "plan" | "preview" | "export" | "decrypt" | "open" => Self::Plan,
            "apply" | "create" | "update" | "up" | "refresh" | "destroy" => Self::Apply,
            "member" | "delete" | "rename" | "transfer" | "restore" => Self::Member,
            "audit" | "auditor" => Self::Audit,
            "admin" | "grant" => Self::Admin,
            _ => return None,
        })
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::See => f.write_str("view or outputs"),
            other => other.role().fmt(f),
        }
    }
}

/// A set of rights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Rights(u8);

impl Rights {
    /// No right.
    pub const NONE: Self = Self(0);

    /// All rights.
    pub const ALL: Self = Self::of(&Right::ALL);

    const fn of(mut rights: &[Right]) -> Self {
        let mut bits = 0;
        while let [first, rest @ ..] = rights {
            bits |= first.bit();
            rights = rest;
        }
        Self(bits)
    }

    /// Whether it contains this right.
    pub fn has(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    /// Whether it contains all of these.
    pub fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// The rights of either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The rights of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The highest role whose rights are all in the set. `outputs` and `view` contain nothing of each other: of both
    /// together, the answer is `outputs`.
    pub fn highest_role(self) -> Role {
        let fits = |role: &&Role| self.contains(role.rights());
        Role::ALL.iter().rev().find(fits).copied().unwrap_or(Role::None)
    }
}

/// The most that a member of an organization, a grant or an access token gives: a named set of rights.
///
/// From `plan` on, each role includes the ones before it, except `auditor`: the right to read the audit trail is in
/// `auditor` and in `admin` alone. And `outputs` does not include `view`: it reads values, and `view` everything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Nothing: what a member may do comes from grants alone.
    None,
    /// See everything but secrets and values.
    View,
    /// See what `view` sees, and read the audit trail.
    Auditor,
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
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::View,
        Self::Auditor,
        Self::Outputs,
        Self::Plan,
        Self::Apply,
        Self::Member,
        Self::Admin,
    ];

    /// The rights that it gives.
    pub const fn rights(self) -> Rights {
        use Right::{Admin, Apply, Audit, Member, Outputs, Plan, See, View};
        match self {
            Self::None => Rights::NONE,
            Self::View => Rights::of(&[See, View]),
            Self::Auditor => Rights::of(&[See, View, Audit]),
            Self::Outputs => Rights::of(&[See, Outputs]),
            Self::Plan => Rights::of(&[See, View, Outputs, Plan]),
            Self::Apply => Rights::of(&[See, View, Outputs, Plan, Apply]),
            Self::Member => Rights::of(&[See, View, Outputs, Plan, Apply, Member]),
            Self::Admin => Rights::of(&[See, View, Outputs, Plan, Apply, Member, Audit, Admin]),
        }
    }

    /// Whether it gives this right.
    pub fn gives(self, right: Right) -> bool {
        self.rights().has(right)
    }

    /// The name in records, commands and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::View => "view",
            Self::Auditor => "auditor",
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
    fn roles_parse_from_their_names() {
        for role in Role::ALL {
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert_eq!(Role::parse("owner"), None);
    }

    #[test]
    fn rights_are_found_by_their_names() {
        for right in Right::ALL {
            assert_eq!(Right::of_action(right.as_str()), Some(right));
        }
        assert_eq!((Right::of_action("up"), Right::of_action("fly")), (Some(Right::Apply), None));
        assert_eq!(Right::of_action("auditor"), Some(Right::Audit));
        // A message names the role, and a list the right.
        assert_eq!((Right::Audit.to_string(), Right::Audit.as_str()), ("auditor".to_owned(), "audit"));
    }

    #[test]
    fn each_role_adds_a_right_and_view_reads_no_values() {
        for right in Right::ALL {
            assert!(right.role().gives(right), "{right:?}");
        }
        let plan = Role::Plan.rights();
        assert!(plan.contains(Role::View.rights()) && plan.contains(Role::Outputs.rights()));
        assert!(!Role::Outputs.gives(Right::View) && !Role::View.gives(Right::Outputs));
        let upward = [Role::Plan, Role::Apply, Role::Member, Role::Admin];
        for pair in upward.windows(2) {
            assert!(pair[1].rights().contains(pair[0].rights()) && pair[0] != pair[1], "{pair:?}");
        }
        let auditor = Role::Auditor.rights();
        assert!(auditor.contains(Role::View.rights()) && !Role::Auditor.gives(Right::Outputs));
        assert!(!Role::Member.rights().contains(auditor) && !auditor.contains(Role::Outputs.rights()));
        assert_eq!(Role::Admin.rights(), Rights::ALL);
        assert_eq!(Role::None.rights(), Rights::NONE);
    }

    #[test]
    fn the_highest_role_of_a_set_gives_no_more_than_the_set() {
        for role in Role::ALL {
            assert_eq!(role.rights().highest_role(), role);
        }
        let both = Role::View.rights().or(Role::Outputs.rights());
        assert_eq!(both.highest_role(), Role::Outputs);
        let audits = |role: Role| role.rights().or(Role::Auditor.rights()).highest_role();
        assert_eq!(
            [Role::None, Role::View, Role::Plan, Role::Member, Role::Admin].map(audits),
            [Role::Auditor, Role::Auditor, Role::Plan, Role::Member, Role::Admin]
        );
        assert_eq!(Role::Member.rights().and(Role::View.rights()).highest_role(), Role::View);
    }
}

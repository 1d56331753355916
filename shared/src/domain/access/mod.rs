//! Who may do what in an organization: grants, teams, and the one decision.
//!
//! A grant gives a role to somebody on a part of the organization. What a caller may do with a stack, a state or an
//! environment is the union of the member's own role and of all grants that reach it. Nothing takes a right away.

mod change;
mod decision;
mod grant;
mod scope;
#[cfg(test)]
mod tests;

pub use change::{Difference, Document, TeamDocument, renamed, role_on, set_role_on, without_member};
pub use decision::{
    Actor, Held, RANGES_MAX, Reason, grants_of, grants_of_team, held, held_by_team, is_tag_granted,
    may_grant, most, most_of_team, ranges, reach, reasons, teams_of,
};
pub use grant::{
    ACCESS_BYTES_MAX, Access, GRANTS_MAX, Grant, GrantedRole, Grantee, TEAM_MEMBERS_MAX, TEAMS_MAX, Team,
    TeamAction, TeamRole,
};
pub use scope::{InvalidGrant, NameRange, Scope, Tags, Unit};

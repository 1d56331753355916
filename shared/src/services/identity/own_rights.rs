//! What the caller may do in an organization, so that a client offers only what the server allows.

use crate::context::Context;
use crate::domain::access::{self, Scope, TeamRole};
use crate::domain::names::{OrgName, TeamName};
use crate::domain::role::{Rights, Role};
use crate::services::caller::Caller;
use crate::services::{Error, store};

/// What the caller may do in an organization. The rights are those that the token leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnRights {
    /// The role of the member or of the machine.
    pub role: Role,
    /// The rights in the organization itself, and so on everything in it.
    pub rights: Rights,
    /// The rights that the caller has somewhere in it.
    pub somewhere: Rights,
    /// The teams, with the role in each. The token of a team is in it without a role.
    pub teams: Vec<(TeamName, Option<TeamRole>)>,
    /// What grants add on parts.
    pub grants: Vec<Granted>,
    /// The only part in which the token works.
    pub within: Option<Scope>,
    /// Whether the caller administers the server.
    pub is_server_admin: bool,
}

/// What a grant adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Granted {
    /// The part.
    pub on: Scope,
    /// The role that it gives.
    pub role: Role,
    /// The rights that the token leaves of it.
    pub rights: Rights,
}

/// Tells what the caller may do in an organization. One read, cached for a minute.
///
/// # Errors
/// `AccessError::NoOrg`; `AccessError::NotAllowed` for a member who may do nothing.
pub async fn of(ctx: &Context, caller: &Caller, org: &OrgName) -> Result<OwnRights, Error> {
    let sight = caller.lists(ctx, org).await?;
    let access = store::access::of(ctx, org).await?;
    let role = caller.member(org)?;
    let (actor, limit) = (caller.actor(role), caller.limit());
    let granted = access::grants_of(&access, &actor).map(|grant| Granted {
        on: grant.on.clone(),
        role: grant.role.0,
        rights: grant.role.0.rights().and(limit),
    });
    let teams = access::teams_of(&access, &actor).map(|(team, role)| (team.clone(), role));
    Ok(OwnRights {
        role,
        rights: sight.in_org().rights(),
        somewhere: sight.anywhere().rights(),
        teams: teams.collect(),
        grants: granted.collect(),
        within: caller.token.within.clone(),
        is_server_admin: caller.is_server_admin(ctx),
    })
}

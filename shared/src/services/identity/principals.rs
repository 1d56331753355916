//! Finds the principal of an access token: a user, or a machine of an organization or of a team.

use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::domain::principal::Principal;
use crate::domain::role::Role;
use crate::layout::{Org, Token, User};
use crate::ports::Timestamp;
use crate::services::{Error, store};

/// The user of this login. For a machine, a user record that stands for its organization or its team, and that has no
/// role: [`with_role_of`] adds the role of its token. One read.
///
/// # Errors
/// Errors of the ports.
pub(crate) async fn find(ctx: &Context, of: &Principal, login: &Login) -> Result<Option<User>, Error> {
    let org = OrgName::from(login);
    let created = match of {
        Principal::User => return Ok(store::read(ctx, &User::key(login)).await?.map(|user| user.value)),
        Principal::Organization => store::read(ctx, &Org::key(&org)).await?.map(|org| org.value.created),
        Principal::Team(team) => {
            let access = store::access::stored(ctx, &org).await?;
            access.and_then(|access| access.value.teams.get(team).map(|team| team.created))
        }
    };
    Ok(created.map(|created| machine(&org, created)))
}

fn machine(org: &OrgName, created: Timestamp) -> User {
    User::new(org.into(), created).as_member(org, Role::None)
}

/// The principal with the role of this token. A user keeps the roles of the user's record. `None` for a token that is
/// older than its team: the team was deleted and created again.
pub(crate) fn with_role_of(token: &Token, principal: User) -> Option<User> {
    match &token.of {
        Principal::User => Some(principal),
        Principal::Organization => {
            Some(principal.as_member(&OrgName::from(&token.login), token.may.unwrap_or(Role::None)))
        }
        Principal::Team(_) => (token.created >= principal.created).then_some(principal),
    }
}

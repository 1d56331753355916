//! The teams of an organization. An admin of the organization changes them. An admin of a team changes its members:
//! such a member holds what the team gives, and gives no more.

use std::collections::{BTreeMap, BTreeSet};

use crate::context::Context;
use crate::domain::access::{self, Access, Grantee, Scope, Tags, Team, TeamAction, TeamRole, Unit};
use crate::domain::hidden::has_hidden;
use crate::domain::names::{Login, OrgName, StackAddress, TeamName};
use crate::domain::role::{Right, Rights, Role};
use crate::layout::OrgAccess;
use crate::ports::{Expect, Write};
use crate::services::caller::Caller;
use crate::services::error::IdentityError;
use crate::services::store::stack_lookup;
use crate::services::{Error, store};

/// The longest display name of a team, in characters, as Pulumi Cloud has it.
const DISPLAY_NAME_MAX: usize = 100;

/// The longest description of a team, in characters.
const DESCRIPTION_MAX: usize = 1_000;

/// Words that follow `teams` in paths.
const RESERVED: [&str; 2] = ["pulumi", "github"];

/// The role that a new stack gives to the teams that its creator names: they read and update it.
const ROLE_AT_CREATION: Role = Role::Apply;

/// A team as its organization's members see it.
#[derive(Debug, Clone)]
pub struct ShownTeam {
    /// Its name.
    pub name: TeamName,
    /// What is stored of it.
    pub team: Team,
    /// The roles that it has, by scope.
    pub grants: Vec<(Scope, Role)>,
    /// The caller's role in it.
    pub own: Option<TeamRole>,
}

fn shown(access: &Access, caller: &Caller, name: &TeamName, team: &Team) -> ShownTeam {
    let grants = access::grants_of_team(access, name).map(|grant| (grant.on.clone(), grant.role.0)).collect();
    let own = team.members.get(&caller.user.login).copied().filter(|_| caller.token.of.is_user());
    ShownTeam { name: name.clone(), team: team.clone(), grants, own }
}

/// The teams and grants as they are stored at this moment: a client that has just changed them reads them here.
async fn stored(ctx: &Context, org: &OrgName) -> Result<Access, Error> {
    Ok(store::access::stored(ctx, org).await?.map(|stored| stored.value.0).unwrap_or_default())
}

/// Whether the caller sees this team: its own team, or every team for a caller who views the organization.
fn is_seen(sees_all: bool, caller: &Caller, name: &TeamName, team: &Team) -> bool {
    let is_member = caller.token.of.is_user() && team.members.contains_key(&caller.user.login);
    sees_all || is_member || caller.token.of.team() == Some(name)
}

fn no_team(org: &OrgName, team: &TeamName) -> Error {
    IdentityError::NoTeam { org: org.clone(), team: team.clone() }.into()
}

/// The teams that the caller sees, by name. One read.
///
/// # Errors
/// `AccessError::NoOrg`, `AccessError::NotAllowed`.
pub async fn list(ctx: &Context, caller: &Caller, org: &OrgName) -> Result<Vec<ShownTeam>, Error> {
    caller.lists(ctx, org).await?;
    let sees_all = caller.in_org(ctx, org).await?.has(Right::View);
    let access = stored(ctx, org).await?;
    let seen = access.teams.iter().filter(|(name, team)| is_seen(sees_all, caller, name, team));
    Ok(seen.map(|(name, team)| shown(&access, caller, name, team)).collect())
}

/// One team. One read.
///
/// # Errors
/// As [`list`]; [`IdentityError::NoTeam`], also for a team that the caller does not see.
pub async fn get(ctx: &Context, caller: &Caller, org: &OrgName, name: &TeamName) -> Result<ShownTeam, Error> {
    let teams = list(ctx, caller, org).await?;
    teams.into_iter().find(|team| team.name == *name).ok_or_else(|| no_team(org, name))
}

/// The display names of the teams of a member, as far as the caller sees them.
///
/// # Errors
/// As [`list`].
pub async fn of_member(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    login: &Login,
) -> Result<Vec<String>, Error> {
    let teams = list(ctx, caller, org).await?;
    let has = |team: &ShownTeam| team.team.members.contains_key(login);
    Ok(teams.iter().filter(|team| has(team)).map(display_name).collect())
}

/// The name of a team for people.
pub fn display_name(team: &ShownTeam) -> String {
    match team.team.display_name.as_str() {
        "" => team.name.to_string(),
        display_name => display_name.to_owned(),
    }
}

pub(super) fn check_texts(display_name: &str, description: &str) -> Result<(), Error> {
    for (what, text, characters_max) in
        [("display name", display_name, DISPLAY_NAME_MAX), ("description", description, DESCRIPTION_MAX)]
    {
        if text.chars().count() > characters_max {
            return Err(IdentityError::TeamTextTooLong { what, characters_max }.into());
        }
        if text.lines().any(has_hidden) {
            return Err(IdentityError::HiddenCharacters { what }.into());
        }
    }
    Ok(())
}

/// Refuses a name that the API's paths use.
///
/// # Errors
/// [`IdentityError::ReservedTeamName`].
pub(super) fn check_name(name: &TeamName) -> Result<(), Error> {
    match RESERVED.contains(&name.as_str()) {
        true => Err(IdentityError::ReservedTeamName(name.clone()).into()),
        false => Ok(()),
    }
}

/// Creates a team without members.
///
/// # Errors
/// `AccessError::NotAllowed`; [`IdentityError::TeamExists`], [`IdentityError::ReservedTeamName`],
/// [`IdentityError::TeamTextTooLong`], [`IdentityError::AccessTooLarge`].
pub async fn create(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    name: &TeamName,
    (display_name, description): (String, String),
) -> Result<ShownTeam, Error> {
    caller.check_org(ctx, org).await?;
    check_name(name)?;
    check_texts(&display_name, &description)?;
    let team = Team { created: ctx.now(), display_name, description, members: BTreeMap::new() };
    store::access::change(ctx, org, None, |access, _| {
        if access.teams.contains_key(name) {
            return Err(IdentityError::TeamExists { org: org.clone(), team: name.clone() }.into());
        }
        let mut next = access.clone();
        next.teams.insert(name.clone(), team.clone());
        let shown = shown(&next, caller, name, &team);
        Ok((Some(next), shown))
    })
    .await
}

/// Deletes a team with the grants to it. Its tokens identify nothing from then on, even if a team of this name is created
/// again.
///
/// # Errors
/// `AccessError::NotAllowed`; [`IdentityError::NoTeam`].
pub async fn delete(ctx: &Context, caller: &Caller, org: &OrgName, name: &TeamName) -> Result<(), Error> {
    caller.check_org(ctx, org).await?;
    let of_team = Grantee::Team(name.clone());
    store::access::change(ctx, org, None, |access, _| {
        let mut next = access.clone();
        next.teams.remove(name).ok_or_else(|| no_team(org, name))?;
        next.grants.retain(|grant| grant.to != of_team);
        Ok((Some(next), ()))
    })
    .await
}

/// A change of a team. Everything in it happens, or nothing.
#[derive(Debug, Clone, Default)]
pub struct TeamEdit {
    /// A new display name.
    pub display_name: Option<String>,
    /// A new description.
    pub description: Option<String>,
    /// Changes of members, in order. At most one user is added.
    pub members: Vec<(TeamAction, Login)>,
    /// The roles that the team has from now on, on exactly these scopes; `None` takes them.
    pub grants: Vec<(Scope, Option<Role>)>,
}

impl TeamEdit {
    /// The change that gives the team a role here, or takes the one that it has.
    pub fn of_role(on: Scope, role: Option<Role>) -> Self {
        Self { grants: vec![(on, role)], ..Self::default() }
    }
}

/// Changes a team.
///
/// # Errors
/// `AccessError::NotAllowed`; [`IdentityError::NoTeam`], [`IdentityError::InTeam`], [`IdentityError::NotInTeam`],
/// [`IdentityError::Outsider`], [`IdentityError::TeamTextTooLong`], [`IdentityError::AccessTooLarge`].
pub async fn edit(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    name: &TeamName,
    edit: TeamEdit,
) -> Result<(), Error> {
    caller.lists(ctx, org).await?;
    let standing = caller.in_org(ctx, org).await?;
    let sees_all = standing.has(Right::View);
    check_texts(
        edit.display_name.as_deref().unwrap_or_default(),
        edit.description.as_deref().unwrap_or_default(),
    )?;
    let added = edit.members.iter().find(|(action, _)| *action == TeamAction::Add).map(|(_, login)| login);
    let refused = |what| standing.refusal(Right::Admin, what, true);
    store::access::change(ctx, org, added, |access, _| {
        let seen = access.teams.get(name).filter(|team| is_seen(sees_all, caller, name, team));
        let team = seen.ok_or_else(|| no_team(org, name))?;
        let is_admin = caller.may_grant(access, org, &Scope::Organization);
        let mut next = access.clone();
        let mut changed = team.clone();
        if edit.display_name.is_some() || edit.description.is_some() {
            if !is_admin {
                return Err(refused("changing a team"));
            }
            changed.display_name = edit.display_name.clone().unwrap_or(changed.display_name);
            changed.description = edit.description.clone().unwrap_or(changed.description);
        }
        for (action, login) in &edit.members {
            if !is_admin && !is_admin_of_team(access, caller, name, team) {
                return Err(refused("changing the members of a team"));
            }
            change_member(&mut changed, name, *action, login)?;
        }
        next.teams.insert(name.clone(), changed);
        for (on, role) in &edit.grants {
            if !caller.may_grant(access, org, on) {
                return Err(refused("giving a team a role here"));
            }
            access::set_role_on(&mut next, &Grantee::Team(name.clone()), on, *role);
        }
        Ok((Some(next).filter(|next| next != access), ()))
    })
    .await
}

/// Whether the caller is an admin of the team, with a token that does not limit what the team gives.
fn is_admin_of_team(access: &Access, caller: &Caller, name: &TeamName, team: &Team) -> bool {
    let own = team.members.get(&caller.user.login).filter(|_| caller.token.of.is_user());
    own == Some(&TeamRole::Admin) && caller.may_pass_on(access::most_of_team(access, name))
}

fn change_member(team: &mut Team, name: &TeamName, action: TeamAction, login: &Login) -> Result<(), Error> {
    let (login, team_name) = (login.clone(), name.clone());
    let has = team.members.contains_key(&login);
    match (action, has) {
        (TeamAction::Add, true) => return Err(IdentityError::InTeam { login, team: team_name }.into()),
        (TeamAction::Add, false) | (TeamAction::Demote, true) => {
            team.members.insert(login, TeamRole::Member);
        }
        (TeamAction::Promote, true) => {
            team.members.insert(login, TeamRole::Admin);
        }
        (TeamAction::Remove, true) => {
            team.members.remove(&login);
        }
        (TeamAction::Remove | TeamAction::Promote | TeamAction::Demote, false) => {
            return Err(IdentityError::NotInTeam { login, team: team_name }.into());
        }
    }
    Ok(())
}

/// The teams that have rights on a stack, with these rights.
///
/// # Errors
/// `StackError::NotFound`, `AccessError::NotAllowed`.
pub async fn of_stack(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
) -> Result<Vec<(ShownTeam, Rights)>, Error> {
    stack_lookup::locate(ctx, caller, address).await?;
    let access = stored(ctx, &address.org).await?;
    let tags = store::access::tags_of_stack(ctx, address).await?;
    let unit = Unit::stack(address, Tags::Tags(&tags));
    let with_rights = access
        .teams
        .iter()
        .map(|(name, team)| (shown(&access, caller, name, team), access::held_by_team(&access, name, &unit)));
    Ok(with_rights.filter(|(_, rights)| *rights != Rights::NONE).collect())
}

/// The write that gives the teams that the creator of a stack names a role on it, if there are any.
///
/// # Errors
/// [`IdentityError::UnknownTeam`]; `AccessError::NotAllowed` for a caller who may not give roles there.
pub(crate) async fn of_new_stack(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    names: &[String],
) -> Result<Option<Write>, Error> {
    if names.is_empty() {
        return Ok(None);
    }
    let org = &address.org;
    let found = store::access::stored(ctx, org).await?;
    let (expect, access) = match found {
        Some(found) => (found.unchanged(), found.value.0),
        None => (Expect::Absent, Access::default()),
    };
    let on = Scope::exactly(&address.project, address.stack.as_str());
    if !caller.may_grant(&access, org, &on) {
        let standing = caller.on_new_stack(ctx, address).await?;
        return Err(standing.refusal(Right::Admin, "giving teams a role on a stack", true));
    }
    let mut next = access.clone();
    for name in names.iter().collect::<BTreeSet<_>>() {
        let known = TeamName::parse(name).ok().filter(|team| access.teams.contains_key(team));
        let unknown =
            || IdentityError::UnknownTeam { org: org.clone(), team: name.chars().take(60).collect() };
        let to = Grantee::Team(known.ok_or_else(unknown)?);
        access::set_role_on(&mut next, &to, &on, Some(ROLE_AT_CREATION));
    }
    store::access::check_size(org, &next)?;
    ctx.memory.access.forget(org);
    Ok(Some(store::put(ctx, OrgAccess::key(org), expect, &OrgAccess(next))))
}

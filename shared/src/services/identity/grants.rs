//! Grants in an organization: who has which role where, why, and the document of them all.
//!
//! An admin of the organization gives roles everywhere. A caller whose role `admin` comes from a grant gives roles within
//! the scope of that grant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{membership, teams};
use crate::context::Context;
use crate::domain::access::{
    self, Access, Actor, Difference, Document, Grant, Grantee, Reason, Scope, Tags, Team, TeamDocument, Unit,
};
use crate::domain::names::{Login, OrgName, StackAddress, StateAddress, TeamName, TokenName};
use crate::domain::principal::Principal;
use crate::domain::role::{Right, Rights, Role};
use crate::domain::tfstate::Labels;
use crate::layout::{Record, StackEntry, StateEntry, TokenEntry, User};
use crate::ports::Revision;
use crate::services::caller::Caller;
use crate::services::error::{AccessError, IdentityError, InvalidInput};
use crate::services::{Error, store};

/// The grants that the caller may give and take. One read.
///
/// # Errors
/// `AccessError::NoOrg`, `AccessError::NotAllowed`.
pub async fn list(ctx: &Context, caller: &Caller, org: &OrgName) -> Result<Vec<Grant>, Error> {
    caller.lists(ctx, org).await?;
    let access = store::access::stored(ctx, org).await?.map(|stored| stored.value.0).unwrap_or_default();
    let is_own = |grant: &&Grant| caller.may_grant(&access, org, &grant.on);
    Ok(access.grants.iter().filter(is_own).cloned().collect())
}

/// Gives a role; false if the grant exists already.
///
/// # Errors
/// `AccessError::NotAllowed`; [`IdentityError::EmptyGrant`], [`IdentityError::AuditorOnPart`],
/// [`IdentityError::Outsider`], [`IdentityError::NoTeam`], [`IdentityError::NoMachineToken`],
/// [`IdentityError::AccessTooLarge`]; [`InvalidInput::Grant`].
pub async fn add(ctx: &Context, caller: &Caller, org: &OrgName, grant: &Grant) -> Result<bool, Error> {
    caller.lists(ctx, org).await?;
    check_new(grant)?;
    let standing = caller.in_org(ctx, org).await?;
    let names = match &grant.to {
        Grantee::User(login) => Some(login),
        Grantee::Token(name) => {
            check_token(ctx, org, name).await?;
            None
        }
        Grantee::Everybody | Grantee::Team(_) => None,
    };
    store::access::change(ctx, org, names, |access, _| {
        if !caller.may_grant(access, org, &grant.on) {
            return Err(standing.refusal(Right::Admin, "giving a role here", true));
        }
        if let Grantee::Team(team) = &grant.to
            && !access.teams.contains_key(team)
        {
            return Err(IdentityError::NoTeam { org: org.clone(), team: team.clone() }.into());
        }
        if access.grants.contains(grant) {
            return Ok((None, false));
        }
        let mut next = access.clone();
        next.grants.insert(grant.clone());
        Ok((Some(next), true))
    })
    .await
}

/// Refuses a grant of a role that cannot be held there, or on a tag that does not look as it is.
fn check_new(grant: &Grant) -> Result<(), Error> {
    grant.on.check_new().map_err(InvalidInput::from)?;
    match grant.role.0 {
        Role::None => Err(IdentityError::EmptyGrant.into()),
        Role::Auditor if grant.on != Scope::Organization => Err(IdentityError::AuditorOnPart.into()),
        _ => Ok(()),
    }
}

async fn check_token(ctx: &Context, org: &OrgName, name: &TokenName) -> Result<(), Error> {
    let entry = store::read(ctx, &TokenEntry::key_of(&Principal::Organization, &org.into(), name)).await?;
    match entry.is_some_and(|entry| entry.value.revoked.is_none()) {
        true => Ok(()),
        false => Err(IdentityError::NoMachineToken { org: org.clone(), name: name.clone() }.into()),
    }
}

/// Takes a role.
///
/// # Errors
/// `AccessError::NotAllowed`; [`IdentityError::NoGrant`].
pub async fn remove(ctx: &Context, caller: &Caller, org: &OrgName, grant: &Grant) -> Result<(), Error> {
    caller.lists(ctx, org).await?;
    let standing = caller.in_org(ctx, org).await?;
    store::access::change(ctx, org, None, |access, _| {
        if !caller.may_grant(access, org, &grant.on) {
            return Err(standing.refusal(Right::Admin, "taking a role here", true));
        }
        let mut next = access.clone();
        if !next.grants.remove(grant) {
            return Err(IdentityError::NoGrant { org: org.clone() }.into());
        }
        Ok((Some(next), ()))
    })
    .await
}

/// The version of teams and grants that are stored under this revision.
fn version_of(revision: Option<Revision>) -> String {
    revision.map_or_else(|| "0".to_owned(), |revision| format!("{:x}", revision.0))
}

/// The teams and grants as a document, with their version.
///
/// # Errors
/// `AccessError::NotAllowed`.
pub async fn export(ctx: &Context, caller: &Caller, org: &OrgName) -> Result<(Document, String), Error> {
    caller.check_org(ctx, org).await?;
    let stored = store::access::stored(ctx, org).await?;
    let version = version_of(stored.as_ref().map(|stored| stored.revision));
    let Access { teams, grants, .. } = stored.map(|stored| stored.value.0).unwrap_or_default();
    let teams = teams.into_iter().map(|(name, Team { display_name, description, members, .. })| {
        (name, TeamDocument { display_name, description, members })
    });
    Ok((Document { teams: teams.collect(), grants }, version))
}

/// Replaces the teams and grants by those of a document, and returns the difference. `version` is the one that the
/// document was made of, if known. A dry run only returns the difference. A team that stays keeps its tokens.
///
/// # Errors
/// `AccessError::NotAllowed`; [`IdentityError::AccessMoved`], [`IdentityError::Outsider`], [`IdentityError::NoTeam`],
/// [`IdentityError::NoMachineToken`], [`IdentityError::EmptyGrant`], [`IdentityError::AuditorOnPart`],
/// [`IdentityError::AccessTooLarge`]; [`InvalidInput::Grant`].
pub async fn apply(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    document: &Document,
    version: Option<&str>,
    dry_run: bool,
) -> Result<Difference, Error> {
    caller.check_org(ctx, org).await?;
    check_document(ctx, org, document).await?;
    let now = ctx.now();
    store::access::change(ctx, org, None, |access, revision| {
        if let Some(version) = version.filter(|version| **version != *version_of(revision)) {
            let version = version.chars().take(40).collect();
            return Err(IdentityError::AccessMoved { org: org.clone(), version }.into());
        }
        let team = |(name, team): (&TeamName, &TeamDocument)| {
            let created = access.teams.get(name).map_or(now, |old| old.created);
            let TeamDocument { display_name, description, members } = team.clone();
            (name.clone(), Team { created, display_name, description, members })
        };
        let next = Access {
            teams: document.teams.iter().map(team).collect(),
            grants: document.grants.clone(),
            ..access.clone()
        };
        store::access::check_size(org, &next)?;
        let difference = Difference::between(access, &next);
        let is_written = !dry_run && !difference.is_empty();
        Ok((is_written.then_some(next), difference))
    })
    .await
}

/// Refuses a document that names what does not exist.
async fn check_document(ctx: &Context, org: &OrgName, document: &Document) -> Result<(), Error> {
    let members = membership::read_members(ctx, org).await?;
    let members: BTreeSet<&Login> = members.iter().map(|(login, _)| login).collect();
    let check_member = |login: &Login| match members.contains(login) {
        true => Ok(()),
        false => Err(Error::from(IdentityError::Outsider { login: login.clone(), org: org.clone() })),
    };
    for (name, team) in &document.teams {
        teams::check_name(name)?;
        teams::check_texts(&team.display_name, &team.description)?;
        team.members.keys().try_for_each(check_member)?;
    }
    let tokens = machine_tokens(ctx, org, document).await?;
    for grant in &document.grants {
        check_new(grant)?;
        match &grant.to {
            Grantee::Everybody => {}
            Grantee::User(login) => check_member(login)?,
            Grantee::Team(team) if document.teams.contains_key(team) => {}
            Grantee::Team(team) => {
                return Err(IdentityError::NoTeam { org: org.clone(), team: team.clone() }.into());
            }
            Grantee::Token(name) if tokens.contains(name) => {}
            Grantee::Token(name) => {
                return Err(IdentityError::NoMachineToken { org: org.clone(), name: name.clone() }.into());
            }
        }
    }
    Ok(())
}

/// The names of the organization's tokens, if the document names any.
async fn machine_tokens(
    ctx: &Context,
    org: &OrgName,
    document: &Document,
) -> Result<BTreeSet<TokenName>, Error> {
    if !document.grants.iter().any(|grant| matches!(grant.to, Grantee::Token(_))) {
        return Ok(BTreeSet::new());
    }
    let mut names = BTreeSet::new();
    for item in store::query_all(ctx, TokenEntry::of_org(org), usize::MAX).await? {
        let entry = TokenEntry::decode(&item.value)?;
        if entry.revoked.is_none() {
            names.insert(entry.token.name);
        }
    }
    Ok(names)
}

/// What a name is of. A stack, a state and an environment may have the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A stack of Pulumi.
    Stack,
    /// A state of Terraform or OpenTofu.
    State,
    /// An environment. Grants reach it by its name only.
    Environment,
}

impl Kind {
    /// Parses the word of [`Kind::as_str`].
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Stack, Self::State, Self::Environment].into_iter().find(|kind| kind.as_str() == word)
    }

    /// The word in requests and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::State => "tfstate",
            Self::Environment => "environment",
        }
    }
}

/// What has a name, with what grants reach it by.
enum Named {
    Stack(Arc<BTreeMap<String, String>>),
    State(StateAddress, Labels),
    Environment,
    Nothing,
}

impl Named {
    /// What has this name. Of several, without a kind: the stack, then the state.
    async fn find(ctx: &Context, address: &StackAddress, kind: Option<Kind>) -> Result<Self, Error> {
        match kind {
            Some(Kind::Stack) => Ok(Self::Stack(store::access::tags_of_stack(ctx, address).await?)),
            Some(Kind::State) => Self::state(ctx, address).await,
            Some(Kind::Environment) => Ok(Self::Environment),
            None => match store::read(ctx, &StackEntry::key(address)).await? {
                Some(entry) => Ok(Self::Stack(Arc::new(entry.value.tags))),
                None => Self::state(ctx, address).await,
            },
        }
    }

    async fn state(ctx: &Context, address: &StackAddress) -> Result<Self, Error> {
        let StackAddress { org, project, stack } = address;
        // Not every name of a stack is one of a state.
        let Ok(state) = StateAddress::parse(org.as_str(), project.as_str(), Some(stack.as_str())) else {
            return Ok(Self::Nothing);
        };
        let entry = store::read(ctx, &StateEntry::key(&state)).await?;
        Ok(entry.map_or(Self::Nothing, |entry| Self::State(state, entry.value.labels)))
    }

    fn kind(&self) -> Option<Kind> {
        match self {
            Self::Stack(_) => Some(Kind::Stack),
            Self::State(..) => Some(Kind::State),
            Self::Environment => Some(Kind::Environment),
            Self::Nothing => None,
        }
    }

    fn tags(&self) -> Tags<'_> {
        match self {
            Self::Stack(tags) => Tags::Tags(tags),
            Self::State(_, labels) => Tags::Labels(labels),
            Self::Environment | Self::Nothing => Tags::None,
        }
    }
}

/// What a user or a machine may do with a stack, a state or an environment, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The login.
    pub login: Login,
    /// The role in the organization.
    pub role: Role,
    /// The highest role whose rights are all held here.
    pub role_here: Role,
    /// The rights, each with everything that gives it.
    pub rights: Vec<(Right, Vec<Reason>)>,
    /// What has the name, by whose tags or labels this was decided. `None` if nothing has it that the caller may see.
    pub kind: Option<Kind>,
}

/// The same as [`explain_as`], for what has the name: a stack, or else a state.
///
/// # Errors
/// As [`explain_as`].
pub async fn explain(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    of_user: Option<&Login>,
) -> Result<Explained, Error> {
    explain_as(ctx, caller, address, of_user, None).await
}

/// Explains what somebody may do with what has this name: a member, or the caller itself. What exists is not checked. Of the
/// limits of a token, only its scope is counted.
///
/// # Errors
/// `AccessError::NotAllowed` for a caller who asks about others without being an admin there; [`AccessError::NoUser`] for
/// a user who is not a member.
pub async fn explain_as(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    of_user: Option<&Login>,
    kind: Option<Kind>,
) -> Result<Explained, Error> {
    let org = &address.org;
    // First of all, so that only a member makes the server read more.
    let standing = caller.on_stack(ctx, address).await?;
    // A stack that the caller does not see decides nothing: the answer would show that it exists.
    let sought = kind.or_else(|| (!standing.has(Right::See)).then_some(Kind::State));
    let named = Named::find(ctx, address, sought).await?;
    let standing = match &named {
        Named::Stack(_) => standing,
        Named::State(state, labels) => caller.on_state(ctx, state, labels).await?,
        Named::Environment | Named::Nothing => caller.on_new_stack(ctx, address).await?,
    };
    let access = store::access::of(ctx, org).await?;
    let unit = Unit::stack(address, named.tags());
    let explained = |actor: &Actor<'_>| {
        let reasons = |right| (right, access::reasons(&access, actor, Some(&unit), right));
        let rights: Vec<_> =
            Right::ALL.into_iter().map(reasons).filter(|(_, reasons)| !reasons.is_empty()).collect();
        let role_here = access::held(&access, actor, Some(&unit)).rights.highest_role();
        // A caller who may not see it does not learn that it exists.
        let found = named.kind().filter(|_| standing.has(Right::Admin) || !rights.is_empty());
        let kind = kind.or(found);
        Explained { login: actor.login.clone(), role: actor.role, role_here, rights, kind }
    };
    let Some(login) = of_user.filter(|login| !caller.is_user(login)) else {
        return Ok(explained(&caller.actor(caller.user.role_in(org).unwrap_or(Role::None))));
    };
    standing.check(Right::Admin, "what another user may do")?;
    let user = store::read(ctx, &User::key(login)).await?;
    let role = user.and_then(|user| user.value.role_in(org));
    let role = role.ok_or_else(|| AccessError::NoUser(login.clone()))?;
    let (of, token) = (&Principal::User, &caller.token.name);
    Ok(explained(&Actor { of, login, token, role, within: None }))
}

/// The members who may do something with a stack, with their rights there.
///
/// # Errors
/// `AccessError::NotAllowed`.
pub async fn members_on(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
) -> Result<Vec<(Login, Rights)>, Error> {
    let access = store::access::of(ctx, &address.org).await?;
    let tags = store::access::tags_of_stack(ctx, address).await?;
    let unit = Unit::stack(address, Tags::Tags(&tags));
    let members = membership::read_members(ctx, &address.org).await?;
    let held = members.into_iter().map(|(login, role)| {
        let (of, token) = (&Principal::User, &caller.token.name);
        let actor = Actor { of, login: &login, token, role, within: None };
        let rights = access::held(&access, &actor, Some(&unit)).rights;
        (login, rights)
    });
    Ok(held.filter(|(_, rights)| *rights != Rights::NONE).collect())
}

/// What a member has on a stack without the member's teams.
#[derive(Debug, Clone, Copy)]
pub struct Sources {
    /// The member's role in the organization.
    pub role: Role,
    /// The role of a grant to the member on exactly this stack.
    pub explicit: Option<Role>,
}

/// What a member has on a stack without the member's teams.
///
/// # Errors
/// [`AccessError::NoUser`] for a user who is not a member.
pub async fn sources(ctx: &Context, address: &StackAddress, login: &Login) -> Result<Sources, Error> {
    let org = &address.org;
    let user = store::read(ctx, &User::key(login)).await?;
    let role = user.and_then(|user| user.value.role_in(org));
    let role = role.ok_or_else(|| AccessError::NoUser(login.clone()))?;
    let access = store::access::of(ctx, org).await?;
    let on = Scope::exactly(&address.project, address.stack.as_str());
    let explicit = access::role_on(&access, &Grantee::User(login.clone()), &on);
    Ok(Sources { role, explicit })
}

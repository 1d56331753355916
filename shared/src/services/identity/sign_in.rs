//! Who a person is whom a provider vouches for: a known user, a new one, or a stranger.
//!
//! A person is known by issuer and subject, never by login or email, which a provider may give to another person.
//! At each sign-in, the provider's rules decide again which roles the person has by their groups.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::code_flow::Person;
use super::orgs::{self, LastAdmin};
use super::tokens::end_tokens;
use super::{directory, membership, resets};
use crate::context::Context;
use crate::domain::access::TeamRole;
use crate::domain::names::{Login, OrgName, ProviderName};
use crate::domain::role::Role;
use crate::domain::sign_in::{self, Teams};
use crate::layout::{
    AuditResult, Identity, IdentityEntry, Member, Org, OrgAccess, Stored, User, check, delete,
};
use crate::ports::{Expect, Timestamp, Write};
use crate::services::audit::About;
use crate::services::error::{IdentityError, SignInError};
use crate::services::store::retry::Attempts;
use crate::services::store::sha256_hex;
use crate::services::{Error, audit, store};

/// Memberships that one sign-in changes, at most.
const CHANGES_MAX: usize = 40;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The user of a person, with the roles that the provider's rules give now. Makes the user at the first sign-in, if
/// a rule lets the person in. With `link`, the account becomes one of that signed-in user.
///
/// # Errors
/// [`SignInError::NoRule`], [`SignInError::LoginTaken`], [`SignInError::LoginOfServerAdmin`],
/// [`SignInError::LinkedWithOther`], and [`SignInError::Claims`] for claims that cannot be used.
pub async fn admit(
    ctx: &Context,
    person: &Person,
    link: Option<&(Login, Timestamp)>,
) -> Result<Login, Error> {
    let Person { provider, subject, claims } = person;
    let groups = sign_in::groups(claims, &provider.groups_claim)?;
    let (roles, teams) = (sign_in::roles(&provider.rules, &groups), sign_in::teams(&provider.rules, &groups));
    let hash = hash_of(&provider.issuer, subject);
    let mut attempts = Attempts::at("the user");
    loop {
        attempts.begin()?;
        let known = store::read(ctx, &Identity::key(&hash)).await?;
        let user = match &known {
            Some(known) => user_of(ctx, &known.value.login, known.value.user_made).await?,
            None => None,
        };
        let user = match (user, link) {
            (Some(user), Some((login, _))) if user.value.login != *login => {
                return Err(SignInError::LinkedWithOther(user.value.login).into());
            }
            (Some(user), _) => Some(user),
            // The session that linked it may be of a user who was removed meanwhile.
            (None, Some((login, made))) => {
                Some(user_of(ctx, login, *made).await?.ok_or(SignInError::NoSession)?)
            }
            (None, None) => None,
        };
        let same = known
            .as_ref()
            .filter(|known| user.as_ref().is_some_and(|user| user.value.login == known.value.login));
        let before = same.map(|known| known.value.roles.clone()).unwrap_or_default();
        let teams_before = same.map(|known| known.value.teams.clone()).unwrap_or_default();
        let (next, mut writes, kept) = match &user {
            Some(user) => changed(ctx, user, &before, &roles).await?,
            None => {
                let (next, writes) = made(ctx, person, &roles).await?;
                (next, writes, Vec::new())
            }
        };
        writes.extend(in_teams(ctx, &next.login, &teams_before, &teams).await?);
        let is_reset =
            user.as_ref().is_some_and(|user| user.value.reset_by.is_some()) && next.reset_by.is_none();
        if is_reset {
            // Boxed because its future is large, and few sign-ins need it.
            writes.extend(Box::pin(resets::end(ctx, &next.login, Some(hash.as_str()))).await?);
        }
        let now = ctx.now();
        // No rule lets the person in any more, and no operator made them a member.
        let is_known = !next.orgs.is_empty() || link.is_some();
        let until = now.plus(DAY * provider.days);
        let next = User {
            confirmed_until: match is_known {
                true => Some(next.confirmed_until.map_or(until, |until_now| until_now.max(until))),
                false => next.confirmed_until,
            },
            ..next
        };
        let expect = user.as_ref().map_or(Expect::Absent, Stored::unchanged);
        writes.push(store::put(ctx, User::key(&next.login), expect, &next));
        let linked = match (&known, &user) {
            (Some(known), Some(_)) => known.value.linked,
            _ => now,
        };
        let mut given = roles.clone();
        // So that a later sign-in takes the role, once there is another admin.
        given.extend(kept.iter().map(|org| (org.clone(), Role::Admin)));
        let identity = Identity {
            issuer: provider.issuer.clone(),
            subject: subject.clone(),
            login: next.login.clone(),
            user_made: next.created,
            provider: provider.name.clone(),
            linked,
            signed_in: now,
            roles: given,
            teams: teams.clone(),
        };
        let entry = IdentityEntry {
            hash: hash.clone(),
            provider: provider.name.clone(),
            issuer: provider.issuer.clone(),
            subject: subject.clone(),
            linked,
        };
        let expect = known.as_ref().map_or(Expect::Absent, Stored::unchanged);
        writes.push(store::put(ctx, Identity::key(&hash), expect, &identity));
        writes.push(store::put(ctx, IdentityEntry::key(&next.login, &hash), Expect::Any, &entry));
        if store::commit(ctx, writes).await?.is_err() {
            continue;
        }
        if is_reset {
            Box::pin(resets::end_sessions_and_tokens(ctx, &next.login)).await?;
        }
        for org in &kept {
            // Boxed because its future is large, and few sign-ins need it.
            Box::pin(note_last_admin(ctx, org, &next.login, &provider.name)).await?;
        }
        if !is_known {
            return Err(SignInError::NoRule(provider.name.clone()).into());
        }
        return Ok(next.login);
    }
}

/// The user with this login that was created at `made`. A later user of the same name is another one.
async fn user_of(ctx: &Context, login: &Login, made: Timestamp) -> Result<Option<Stored<User>>, Error> {
    let user = store::read(ctx, &User::key(login)).await?;
    Ok(user.filter(|user| user.value.created == made))
}

/// A new user, and the writes for it besides its own.
async fn made(
    ctx: &Context,
    person: &Person,
    roles: &BTreeMap<OrgName, Role>,
) -> Result<(User, Vec<Write>), Error> {
    let provider = &person.provider;
    if roles.is_empty() {
        return Err(SignInError::NoRule(provider.name.clone()).into());
    }
    let login = sign_in::login(&person.claims, &provider.login_claim)?;
    directory::check_name(&login)?;
    if store::read(ctx, &User::key(&login)).await?.is_some() {
        return Err(SignInError::LoginTaken(login).into());
    }
    // A person may choose the claim, and would administer the server.
    if ctx.server_admins.contains(&login) {
        return Err(SignInError::LoginOfServerAdmin(login).into());
    }
    // Left over from a user of that name whose deletion did not finish.
    end_tokens(ctx, &login).await?;
    let created = ctx.now();
    let mut user = User::new(login, created);
    let mut writes = vec![directory::user_write(ctx, &user.login, created)];
    for (org, role) in roles {
        let Some(record) = store::read(ctx, &Org::key(org)).await? else {
            warn_of_no_org(org);
            continue;
        };
        writes.push(check(Org::key(org), record.unchanged()));
        writes.push(membership::member_write(ctx, org, &user.login, *role));
        user = user.as_member(org, *role);
    }
    check_count(roles.len())?;
    if user.orgs.is_empty() {
        return Err(SignInError::NoRule(provider.name.clone()).into());
    }
    Ok((user, writes))
}

/// A user with the roles that the rules give now instead of those that they gave before, the writes for that besides
/// the user's own, and the organizations whose last admin the user stays.
async fn changed(
    ctx: &Context,
    user: &Stored<User>,
    before: &BTreeMap<OrgName, Role>,
    roles: &BTreeMap<OrgName, Role>,
) -> Result<(User, Vec<Write>, Vec<OrgName>), Error> {
    let mut next = user.value.clone();
    let login = next.login.clone();
    let (mut writes, mut kept, mut changes) = (Vec::new(), Vec::new(), 0);
    for org in before.keys().chain(roles.keys()).collect::<BTreeSet<_>>() {
        let has = next.role_in(org);
        let gets = sign_in::settled(has, before.get(org).copied(), roles.get(org).copied());
        if has == gets {
            continue;
        }
        let of_org = match store::read(ctx, &Org::key(org)).await? {
            Some(record) if has == Some(Role::Admin) => {
                match orgs::admin_leaves(ctx, org, &record, &login, LastAdmin::Stays).await {
                    // Somebody has to stay who can repair a wrong rule.
                    Err(Error::Identity(IdentityError::LastAdmin { .. })) => {
                        kept.push(org.clone());
                        continue;
                    }
                    write => Some(write?),
                }
            }
            Some(record) => Some(check(Org::key(org), record.unchanged())),
            None => None,
        };
        // An organization that is gone gets no members.
        if gets.is_some() && of_org.is_none() {
            warn_of_no_org(org);
            continue;
        }
        changes += 1;
        writes.extend(of_org);
        match gets {
            Some(role) => {
                writes.push(membership::member_write(ctx, org, &login, role));
                next = next.as_member(org, role);
            }
            None => {
                writes.push(delete(Member::key(org, &login), Expect::Any));
                next = next.without(org);
            }
        }
    }
    check_count(changes)?;
    Ok((next, writes, kept))
}

/// Tells the operator that a rule cannot apply.
fn warn_of_no_org(org: &OrgName) {
    tracing::warn!(org = org.as_str(), "a rule of a provider names an organization that does not exist");
}

/// Tells the operator and the other admins that the rules would have taken the role of the last admin.
async fn note_last_admin(
    ctx: &Context,
    org: &OrgName,
    login: &Login,
    provider: &ProviderName,
) -> Result<(), Error> {
    tracing::warn!(
        org = org.as_str(),
        user = login.as_str(),
        provider = provider.as_str(),
        "the last admin stays, although no rule says so"
    );
    let message =
        format!("{login} stays the last admin, although no rule of the provider {provider} says so");
    let mut entry = audit::entry(ctx, "member.role", &About::Org(org)).saying(message);
    entry.record.user = Some(login.clone());
    entry.record.result = AuditResult::Refused;
    audit::keep(ctx, entry).await
}

/// The writes that make a user a member of the teams that the rules give now, instead of those that they gave before.
/// Admins of a team stay, because no rule makes one. A team that does not exist is left out.
async fn in_teams(ctx: &Context, login: &Login, before: &Teams, teams: &Teams) -> Result<Vec<Write>, Error> {
    let orgs: BTreeSet<&OrgName> = before.iter().chain(teams).map(|(org, _)| org).collect();
    check_count(orgs.len())?;
    let mut writes = Vec::new();
    for org in orgs {
        let Some(stored) = store::access::stored(ctx, org).await? else { continue };
        let mut next = stored.value.clone();
        for (name, team) in &mut next.teams {
            let pair = (org.clone(), name.clone());
            if teams.contains(&pair) {
                team.members.entry(login.clone()).or_insert(TeamRole::Member);
            } else if before.contains(&pair) && team.members.get(login) == Some(&TeamRole::Member) {
                team.members.remove(login);
            }
        }
        if next != stored.value {
            ctx.memory.access.forget(org);
            writes.push(store::put(ctx, OrgAccess::key(org), stored.unchanged(), &next));
        }
    }
    Ok(writes)
}

fn check_count(changes: usize) -> Result<(), Error> {
    match changes > CHANGES_MAX {
        true => Err(IdentityError::TooManyMemberships { max: CHANGES_MAX }.into()),
        false => Ok(()),
    }
}

/// The hex SHA-256 of issuer and subject. No address contains the separator.
fn hash_of(issuer: &str, subject: &str) -> String {
    sha256_hex(&[issuer.as_bytes(), b"\0", subject.as_bytes()].concat())
}

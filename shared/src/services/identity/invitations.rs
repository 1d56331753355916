//! Invitations: links with which a user signs in once, without a provider or a password.

use std::time::Duration;

use super::tokens::{self, Owner, Shows};
use super::{accounts, membership, passwords, resets, sessions};
use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::layout::{Invitation, Stored, User, check, delete, put};
use crate::ports::{Expect, Timestamp, Write};
use crate::services::error::{AccessError, IdentityError, OperatorsAlone, SignInError};
use crate::services::store::retry::Attempts;
use crate::services::store::sha256_hex;
use crate::services::{Error, store};

/// The time in which an invitation can be used, unless the operator chooses.
pub const INVITATION_VALID: Duration = Duration::from_secs(3 * 24 * 3600);

/// A new invitation.
#[derive(Debug)]
pub struct Invited {
    /// The code for the link. It is shown only this once.
    pub code: String,
    /// When it stops.
    pub until: Timestamp,
}

impl Invited {
    /// What the link has after the server's address.
    pub fn path(&self) -> String {
        format!("/invite?code={}", self.code)
    }
}

/// Invites a user. An earlier invitation of the user stops.
///
/// # Errors
/// [`AccessError::NoUser`].
pub async fn invite(ctx: &Context, login: &Login, valid: Duration) -> Result<Invited, Error> {
    make(ctx, login, valid, None).await
}

/// Invites a member for this admin of this organization. The link stops once the user leaves it, or gets rights elsewhere.
///
/// # Errors
/// [`AccessError::NoUser`]; [`IdentityError::InvitedByOperator`] while a link of the operator works.
pub(super) async fn invite_to(
    ctx: &Context,
    login: &Login,
    org: &OrgName,
    by: &Login,
) -> Result<Invited, Error> {
    make(ctx, login, INVITATION_VALID, Some((org, by))).await
}

async fn make(
    ctx: &Context,
    login: &Login,
    valid: Duration,
    by: Option<(&OrgName, &Login)>,
) -> Result<Invited, Error> {
    let secret = new_secret(ctx);
    let mut attempts = Attempts::at("the user");
    loop {
        attempts.begin()?;
        let user = membership::user(ctx, login).await?;
        let expect = match by {
            Some(_) => replaceable(ctx, &user.value).await?,
            None => Expect::Any,
        };
        let (invited, invitation) = new(ctx, &user.value, &secret, valid, by);
        let writes = vec![
            store::put(ctx, Invitation::key(login), expect, &invitation),
            check(User::key(login), user.unchanged()),
        ];
        if store::commit(ctx, writes).await?.is_ok() {
            return Ok(invited);
        }
    }
}

/// The write that invites a user who is created by the same commit, and the invitation.
pub(super) fn first(ctx: &Context, user: &User) -> (Invited, Write) {
    let (invited, invitation) = new(ctx, user, &new_secret(ctx), INVITATION_VALID, None);
    (invited, store::put(ctx, Invitation::key(&user.login), Expect::Absent, &invitation))
}

fn new_secret(ctx: &Context) -> String {
    let mut random = [0; 32];
    ctx.ids.fill(&mut random);
    hex::encode(random)
}

fn new(
    ctx: &Context,
    user: &User,
    secret: &str,
    valid: Duration,
    by: Option<(&OrgName, &Login)>,
) -> (Invited, Invitation) {
    let until = ctx.now().plus(valid);
    let invitation = Invitation {
        hash: sha256_hex(secret.as_bytes()),
        user_made: user.created,
        until,
        org: by.map(|(org, _)| org.clone()),
        by: by.map(|(_, by)| by.clone()),
    };
    (Invited { code: format!("{}.{secret}", user.login), until }, invitation)
}

/// The condition for an invitation by an admin, which does not replace one of the operator.
async fn replaceable(ctx: &Context, user: &User) -> Result<Expect, Error> {
    let login = &user.login;
    let Some(found) = store::read(ctx, &Invitation::key(login)).await? else { return Ok(Expect::Absent) };
    let Invitation { org, until, user_made, .. } = &found.value;
    if org.is_none() && *until > ctx.now() && *user_made == user.created {
        let why = OperatorsAlone::Link;
        return Err(IdentityError::InvitedByOperator { login: login.clone(), why }.into());
    }
    Ok(found.unchanged())
}

/// Whether the user can sign in, or has what a sign-in gave: a password, an account, a session, or a token of any age.
pub(super) async fn signs_in(ctx: &Context, user: &User) -> Result<bool, Error> {
    let login = &user.login;
    if passwords::is_set(ctx, login).await? || !accounts::list(ctx, login).await?.is_empty() {
        return Ok(true);
    }
    let tokens = tokens::list(ctx, &Owner::User(login.clone()), Shows::All, None, 1).await?;
    Ok(!tokens.tokens.is_empty() || !sessions::list(ctx, user, None).await?.is_empty())
}

/// The user whom a code invites, without using it.
///
/// # Errors
/// [`SignInError::NoInvitation`].
pub async fn invited(ctx: &Context, code: &str) -> Result<Login, Error> {
    find(ctx, code).await.map(|(user, _)| user.value.login)
}

/// A used invitation.
#[derive(Debug)]
pub struct Redeemed {
    /// The user, as they were when the code was used: [`begin_of`](super::sessions::begin_of) begins no session of one who
    /// changed since then.
    pub user: Stored<User>,
    /// Who made the link, for the audit record.
    pub made_by: String,
}

/// Uses a code, and returns its user. It works once.
///
/// # Errors
/// [`SignInError::NoInvitation`].
pub async fn redeem(ctx: &Context, code: &str) -> Result<Redeemed, Error> {
    let mut attempts = Attempts::at("the user");
    loop {
        attempts.begin()?;
        let (user, invitation) = find(ctx, code).await?;
        let login = user.value.login.clone();
        let Invitation { org, by, .. } = &invitation.value;
        // Of a user who could sign in already, the admin resets that.
        let is_reset = org.is_some() && Box::pin(signs_in(ctx, &user.value)).await?;
        // The operator's link is for the person alone: what a reset gave before ends.
        let clears = org.is_none() && user.value.reset_by.is_some();
        let reset_by = match (is_reset, clears) {
            (true, _) => org.clone(),
            (false, true) => None,
            (false, false) => user.value.reset_by.clone(),
        };
        let made_by = match (org, by) {
            (None, _) => "the operator".to_owned(),
            (Some(org), None) => format!("an admin of {org}"),
            (Some(org), Some(by)) => format!("{by}, an admin of {org}"),
        };
        // Written in any case, so that a user who joins an organization meanwhile gets no session here.
        let next = User { reset_by, ..user.value.clone() };
        let revision = ctx.ids.revision();
        let mut writes = vec![
            delete(Invitation::key(&login), invitation.unchanged()),
            put(User::key(&login), user.unchanged(), revision, &next),
        ];
        if clears {
            writes.extend(Box::pin(resets::end(ctx, &login, None)).await?);
        }
        match store::commit(ctx, writes).await? {
            Ok(()) => {
                let tail = if is_reset { ", who reset how the user signs in" } else { "" };
                let user = Stored { value: next, revision };
                return Ok(Redeemed { user, made_by: format!("{made_by}{tail}") });
            }
            // Another request used it first, or another one was made.
            Err(refusal) if refusal.index == 0 => return Err(SignInError::NoInvitation.into()),
            // The user changed, which may stop the link.
            Err(_) => {}
        }
    }
}

async fn find(ctx: &Context, code: &str) -> Result<(Stored<User>, Stored<Invitation>), Error> {
    let none = || Error::from(SignInError::NoInvitation);
    let (login, secret) = code.split_once('.').ok_or_else(none)?;
    let login = Login::parse(login).map_err(|_| none())?;
    let found = store::read(ctx, &Invitation::key(&login)).await?.ok_or_else(none)?;
    let is_it = found.value.hash == sha256_hex(secret.as_bytes()) && found.value.until > ctx.now();
    let user = match membership::user(ctx, &login).await {
        Ok(user) => user,
        Err(Error::Access(AccessError::NoUser(_))) => return Err(none()),
        Err(error) => return Err(error),
    };
    if !is_it || user.value.created != found.value.user_made {
        return Err(none());
    }
    if let Some(org) = &found.value.org
        && (!user.value.orgs.contains(org)
            || Box::pin(rights_elsewhere(ctx, &user.value, org)).await?.is_some())
    {
        return Err(none());
    }
    Ok((user, found))
}

/// Refuses a user whom an admin of this organization must not invite.
///
/// # Errors
/// [`IdentityError::InvitedByOperator`].
pub(super) async fn check_of_org(ctx: &Context, user: &User, org: &OrgName) -> Result<(), Error> {
    match rights_elsewhere(ctx, user, org).await? {
        Some(why) => Err(IdentityError::InvitedByOperator { login: user.login.clone(), why }.into()),
        // Before the user becomes a member.
        None => replaceable(ctx, user).await.map(drop),
    }
}

/// Why the user may have rights outside of this organization, which the holder of a link gets too.
async fn rights_elsewhere(
    ctx: &Context,
    user: &User,
    org: &OrgName,
) -> Result<Option<OperatorsAlone>, Error> {
    if ctx.server_admins.contains(&user.login) {
        return Ok(Some(OperatorsAlone::ServerAdmin));
    }
    if user.orgs.iter().any(|other| other != org) {
        return Ok(Some(OperatorsAlone::OtherOrg));
    }
    let accounts = accounts::list(ctx, &user.login).await?;
    Ok((!accounts.is_empty()).then_some(OperatorsAlone::Account))
}

//! Consents of users: without one, no policy of an issuer gives a job a personal token of that user.

use uuid::Uuid;

use super::issuers;
use crate::context::Context;
use crate::domain::names::{Login, OrgName};
use crate::domain::oidc::IssuerUrl;
use crate::layout::{Issuer, IssuerConsent, Record as _, User, delete};
use crate::ports::Expect;
use crate::services::caller::Caller;
use crate::services::error::{AccessError, OidcError};
use crate::services::{Error, store};

/// Consents of a user, at most.
const CONSENTS_MAX: usize = 100;

/// The consents of the caller. One query.
///
/// # Errors
/// [`OidcError::NotInPerson`].
pub async fn list(ctx: &Context, caller: &Caller) -> Result<Vec<IssuerConsent>, Error> {
    check_in_person(caller)?;
    read_all(ctx, caller).await
}

async fn read_all(ctx: &Context, caller: &Caller) -> Result<Vec<IssuerConsent>, Error> {
    let login = &caller.user.login;
    let items = store::query_all(ctx, IssuerConsent::of_user(login), usize::MAX).await?;
    let mut consents = Vec::with_capacity(items.len());
    for item in &items {
        let consent = IssuerConsent::decode(&item.value)?;
        // Others were given by a former user with this login.
        if consent.user_made == caller.user.created {
            consents.push(consent);
        }
    }
    Ok(consents)
}

/// Records that the caller consents to personal tokens for the jobs of an issuer, given by its address or its ID.
///
/// # Errors
/// `AccessError::NoOrg` unless the caller is a member; [`OidcError::NoIssuer`], [`OidcError::NotInPerson`],
/// [`OidcError::TooManyConsents`].
pub async fn give(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    issuer: &str,
) -> Result<IssuerConsent, Error> {
    check_in_person(caller)?;
    check_member(caller, org)?;
    let id = id_of(org, issuer);
    let (id, found) = issuers::find(ctx, org, &id).await?;
    let consent = consent(&found.value, org, id, &caller.user, ctx);
    let login = &caller.user.login;
    if read_all(ctx, caller).await?.len() >= CONSENTS_MAX {
        return Err(OidcError::TooManyConsents { login: login.clone(), max: CONSENTS_MAX }.into());
    }
    let write = store::put(ctx, IssuerConsent::key(login, &id), Expect::Any, &consent);
    match store::commit(ctx, vec![write]).await? {
        Ok(()) => Ok(consent),
        Err(_) => Err(Error::Contended("the consent")),
    }
}

/// Withdraws a consent. Tokens that it allowed live until they expire.
///
/// # Errors
/// [`OidcError::NoConsent`], [`OidcError::NotInPerson`].
pub async fn withdraw(ctx: &Context, caller: &Caller, issuer: &str) -> Result<IssuerConsent, Error> {
    check_in_person(caller)?;
    let login = &caller.user.login;
    let missing = || Error::from(OidcError::NoConsent(login.clone()));
    let id = Uuid::parse_str(issuer).map_err(|_| missing())?;
    let key = IssuerConsent::key(login, &id);
    let found = store::read(ctx, &key).await?.ok_or_else(missing)?;
    match store::commit(ctx, vec![delete(key, found.unchanged())]).await? {
        Ok(()) => Ok(found.value),
        Err(_) => Err(Error::Contended("the consent")),
    }
}

/// Deletes all consents of a login whose user was deleted.
pub(in crate::services::identity) async fn end(ctx: &Context, login: &Login) -> Result<(), Error> {
    let items = store::query_all(ctx, IssuerConsent::of_user(login), usize::MAX).await?;
    // Within the limits of a commit.
    for chunk in items.chunks(100) {
        let writes = chunk.iter().map(|item| delete(item.key.clone(), Expect::Any)).collect();
        if store::commit(ctx, writes).await?.is_err() {
            return Err(Error::Contended("the user's consents"));
        }
    }
    Ok(())
}

/// Whether a user consents to personal tokens for the jobs of this issuer, as it is registered now.
pub(super) async fn is_given(ctx: &Context, user: &User, id: &Uuid, issuer: &Issuer) -> Result<bool, Error> {
    let found = store::read(ctx, &IssuerConsent::key(&user.login, id)).await?;
    Ok(found.is_some_and(|found| {
        found.value.user_made == user.created && found.value.issuer_made == issuer.created
    }))
}

fn consent(issuer: &Issuer, org: &OrgName, id: Uuid, user: &User, ctx: &Context) -> IssuerConsent {
    IssuerConsent {
        org: org.clone(),
        issuer: id,
        url: issuer.url.clone(),
        issuer_made: issuer.created,
        user_made: user.created,
        at: ctx.now(),
    }
}

/// The ID of an issuer that is given by its address or its ID.
fn id_of(org: &OrgName, issuer: &str) -> String {
    IssuerUrl::parse(issuer).map_or_else(|_| issuer.to_owned(), |url| issuers::id_of(org, &url).to_string())
}

/// A token with a limit must not lift it: not one that a job got by an earlier consent either.
fn check_in_person(caller: &Caller) -> Result<(), Error> {
    let token = &caller.token;
    let is_limited = token.org.is_some() || token.within.is_some() || token.may.is_some();
    match token.of.is_user() && !is_limited {
        true => Ok(()),
        false => Err(OidcError::NotInPerson.into()),
    }
}

fn check_member(caller: &Caller, org: &OrgName) -> Result<(), Error> {
    match caller.is_member(org) {
        true => Ok(()),
        false => Err(AccessError::NoOrg(org.clone()).into()),
    }
}

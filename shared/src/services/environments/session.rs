//! Opened environments.
//!
//! A caller that opens one gets the id of a session. A session stores no values. It records which revisions were
//! opened, and each read evaluates these again. So no secret is stored that was not sealed before.

use std::collections::BTreeMap;
use std::time::Duration;

use super::evaluation::{Evaluated, EvaluationOptions, Root, check_length, run};
use super::imports::{Imports, Revisions, text_of};
use super::lookup;
use super::lookup::{RevisionRef, locate};
use crate::context::Context;
use crate::domain::environment::access::Step;
use crate::domain::environment::evaluate::Evaluation;
use crate::domain::environment::value::Value;
use crate::domain::ids::{EnvironmentId, KeyOwner, SessionId};
use crate::domain::names::{EnvironmentAddress, OrgName};
use crate::domain::update::Requester;
use crate::layout::{EnvironmentSession, OpenedRevision, Record, expiring};
use crate::ports::Expect;
use crate::services::caller::Caller;
use crate::services::error::EnvironmentError;
use crate::services::keys::data_keys;
use crate::services::{Error, store};

/// The longest duration of a session.
const SESSION_MAX: Duration = Duration::from_secs(24 * 3600);

/// The name, within a session, of the environment that the caller opened.
const ROOT: &str = "";

/// Opens an environment for `lasts`.
///
/// # Errors
/// [`EnvironmentError::NotFound`], [`EnvironmentError::NoRevision`], [`EnvironmentError::Definition`];
/// [`EnvironmentError::Lasts`] for a duration that is zero or too long.
pub async fn open(
    ctx: &Context,
    caller: &Caller,
    address: &EnvironmentAddress,
    which: &RevisionRef,
    lasts: Duration,
) -> Result<SessionId, Error> {
    let head = locate(ctx, caller, address).await?.value;
    let (revision, text) = lookup::text(ctx, address, &head, which).await?;
    let name = address.within_org();
    let root = Root { name: name.clone(), text, owner: Some(head.id) };
    let from = Imports::Current { overrides: &BTreeMap::new() };
    let evaluated = run(ctx, caller, &address.org, root, from, EvaluationOptions::OPENED, |_| ()).await?;
    let Evaluated { mut revisions, .. } = evaluated.usable()?;
    revisions.insert(ROOT.to_owned(), OpenedRevision { name: name.clone(), id: head.id, revision });
    keep(ctx, caller, &address.org, Some(name), revisions, lasts, Vec::new()).await
}

/// Opens a text as if it were an environment, for `lasts`. `overrides` replaces names of its imports.
///
/// # Errors
/// `AccessError::NoOrg`, [`EnvironmentError::Definition`]; [`EnvironmentError::Lasts`] for a duration that is zero or
/// too long.
pub async fn open_text(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    text: &str,
    overrides: &BTreeMap<String, String>,
    lasts: Duration,
) -> Result<SessionId, Error> {
    caller.lists(ctx, org).await?;
    check_length(text)?;
    let root = Root::anonymous(text.to_owned());
    let from = Imports::Current { overrides };
    let Evaluated { revisions, .. } =
        run(ctx, caller, org, root, from, EvaluationOptions::OPENED, |_| ()).await?.usable()?;
    // Sealed, because the text may contain plaintext secrets.
    let owner = KeyOwner::Environment(EnvironmentId::anonymous(org));
    let sealed = data_keys::seal(ctx, owner, text.as_bytes().to_vec()).await?;
    keep(ctx, caller, org, None, revisions, lasts, sealed).await
}

async fn keep(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    opened: Option<String>,
    revisions: Revisions,
    lasts: Duration,
    tail: Vec<u8>,
) -> Result<SessionId, Error> {
    if lasts.is_zero() || lasts > SESSION_MAX {
        return Err(EnvironmentError::Lasts.into());
    }
    let id = SessionId::new(ctx.ids.uuid());
    let until = ctx.now().plus(lasts);
    let Requester { login: by, of, .. } = caller.requester();
    let user_made = Some(caller.user.created);
    let session = EnvironmentSession { org: org.clone(), opened, revisions, by, of, user_made, until };
    let write = store::put_with(ctx, EnvironmentSession::key(id), Expect::Absent, &session, &tail);
    store::commit(ctx, vec![expiring(write, until)]).await?.map_err(|_| Error::Contended("the session"))?;
    Ok(id)
}

/// Evaluates an opened environment again, and returns the result of `make`.
///
/// # Errors
/// [`EnvironmentError::NoSession`]; [`EnvironmentError::Definition`] if it can no longer be evaluated.
pub async fn read<T: Send + 'static>(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    opened: Option<&EnvironmentAddress>,
    session: &str,
    make: fn(&Evaluation<'_>) -> T,
) -> Result<T, Error> {
    read_with(ctx, caller, org, opened, session, None, make).await
}

/// As [`read`], for one value of the environment.
///
/// # Errors
/// As [`read`]; [`EnvironmentError::NoValue`] if the path does not lead to a value.
pub async fn read_value<T: Send + 'static>(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    opened: Option<&EnvironmentAddress>,
    session: &str,
    path: Vec<Step>,
    make: fn(&Value) -> T,
) -> Result<T, Error> {
    let make = move |evaluation: &Evaluation<'_>| evaluation.found.as_deref().map(make);
    let found = read_with(ctx, caller, org, opened, session, Some(path), make).await?;
    found.ok_or_else(|| EnvironmentError::NoValue.into())
}

async fn read_with<T: Send + 'static>(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    opened: Option<&EnvironmentAddress>,
    session: &str,
    path: Option<Vec<Step>>,
    make: impl Fn(&Evaluation<'_>) -> T + Clone + Send + 'static,
) -> Result<T, Error> {
    caller.lists(ctx, org).await?;
    let missing = || Error::Environment(EnvironmentError::NoSession(session.chars().take(60).collect()));
    let id = SessionId::parse(session).ok_or_else(missing)?;
    let item = store::get(ctx, &EnvironmentSession::key(id)).await?.ok_or_else(missing)?;
    let (session, tail) = EnvironmentSession::decode_with(&item.value)?;
    let is_it = session.org == *org
        && caller.is(&session.of, &session.by, session.user_made)
        && session.opened == opened.map(EnvironmentAddress::within_org)
        && ctx.now() < session.until;
    if !is_it {
        return Err(missing());
    }
    if let Some(address) = opened {
        caller.admit(caller.on_environment(ctx, address).await, missing)?;
    }
    let root = match session.revisions.get(ROOT) {
        Some(root) => {
            let text = text_of(ctx, root).await?;
            Root { name: root.name.clone(), text, owner: Some(root.id) }
        }
        None => {
            let owner = KeyOwner::Environment(EnvironmentId::anonymous(org));
            let text = data_keys::open(ctx, owner, tail.to_vec()).await?;
            let text = String::from_utf8(text)
                .map_err(|_| Error::Broken("an opened text is not valid UTF-8".to_owned()))?;
            Root::anonymous(text)
        }
    };
    let from = Imports::Opened(&session.revisions);
    let wanted = EvaluationOptions { path, ..EvaluationOptions::OPENED };
    Ok(run(ctx, caller, org, root, from, wanted, make).await?.usable()?.made)
}

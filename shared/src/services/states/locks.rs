//! The locks of Terraform states. A lock is one item; taking it and giving it back are one conditional write each.
//!
//! A client may send either twice, when it did not see the answer: the lock's ID tells. The item stays when a lock ends, with
//! the IDs that ended, so that a repeated unlock is told from the unlock of somebody else's lock.

use futures::StreamExt;

use super::{ListFilter, Listed, StateRef, WithLock};
use crate::context::Context;
use crate::domain::names::{OrgName, StateAddress};
use crate::domain::role::Role;
use crate::domain::tfstate::LockInfo;
use crate::layout::{StateHead, StateHolder, StateLock, Stored};
use crate::ports::{Expect, Timestamp};
use crate::services::caller::{Caller, Taken, What};
use crate::services::error::{AccessError, InvalidInput, StateError};
use crate::services::states;
use crate::services::store::retry::Attempts;
use crate::services::{Error, store};
use crate::settings::StateLimits;

/// IDs of locks that ended which are remembered.
const ENDED_MAX: usize = 8;

/// Locks that are read at once for a list.
const READ_AT_ONCE: usize = 16;

/// Takes the lock of a state, which is made if it is not there, and which may be as long as these limits say. Two reads at once and one conditional write; a refusal costs
/// no more.
///
/// # Errors
/// [`StateError::Locked`] with the holder, unless the caller holds it under this very ID; [`StateError::NearLimit`];
/// [`StateError::LockOfDeleted`] for a name that is reserved; [`StateError::LockNotAllowed`] where the caller may not do what the lock is for.
pub async fn lock(
    ctx: &Context,
    caller: &Caller,
    place: &StateRef,
    info: &LockInfo,
    limits: &StateLimits,
) -> Result<StateAddress, Error> {
    let found = states::find_or_create(ctx, caller, place).await.map_err(|error| match error {
        Error::Access(AccessError::NotAllowed(why)) if why.needs > caller.needs() => {
            StateError::LockNotAllowed(why).into()
        }
        Error::State(StateError::Deleted(why)) => Error::State(StateError::LockOfDeleted(why)),
        error => error,
    })?;
    let allowed =
        caller.check_more(&found.head.value.address.org, needs(info), "a lock for a run that may write");
    allowed.map_err(|error| match error {
        Error::Access(AccessError::NotAllowed(why)) => StateError::LockNotAllowed(why).into(),
        error => error,
    })?;
    check_room(limits, &found.head.value)?;
    let holder = holder(ctx, caller, info.clone(), false);
    take(ctx, caller, &found, &holder).await?;
    Ok(found.head.value.address)
}

/// Takes the lock by hand, to keep everybody out.
///
/// # Errors
/// [`StateError::NotFound`], [`StateError::Locked`].
pub async fn lock_by_hand(
    ctx: &Context,
    caller: &Caller,
    place: &StateRef,
    reason: &str,
) -> Result<(StateAddress, StateHolder), Error> {
    let found = states::locate_with_lock(ctx, caller, place).await?;
    let login = caller.user.login.to_string();
    let info = LockInfo {
        id: ctx.ids.uuid().to_string(),
        operation: "manual".to_owned(),
        info: reason.to_owned(),
        who: login,
        created: ctx.now().to_rfc3339(),
        ..LockInfo::default()
    };
    info.check().map_err(InvalidInput::from)?;
    let holder = holder(ctx, caller, info, true);
    take(ctx, caller, &found, &holder).await?;
    Ok((found.head.value.address, holder))
}

/// What clients call their operations that save nothing under their lock. A console, and an import, which saves, send the same
/// word; an import changes nothing but the state, so that nothing is lost when it is refused to save that.
///
/// Source: opentofu v1.12.6 and terraform v1.5.7, `internal/backend/operation_type.go` and the calls of `clistate.NewLocker`.
const READERS: [&str; 3] = ["OperationTypePlan", "OperationTypeInvalid", "migration source state"];

/// The role that a lock takes by what its client says that it is for.
fn needs(info: &LockInfo) -> Role {
    if READERS.contains(&info.operation.as_str()) { Role::Plan } else { Role::Apply }
}

/// The caller as who holds a lock from now on.
fn holder(ctx: &Context, caller: &Caller, info: LockInfo, by_hand: bool) -> StateHolder {
    let (by, user_made) = (caller.requester(), Some(caller.user.created));
    StateHolder { info, by, user_made, since: ctx.now(), by_hand }
}

/// A lock as something that somebody took.
pub(super) fn taken(holder: &StateHolder) -> Taken<'_> {
    let needs = if holder.by_hand { Role::Member } else { needs(&holder.info) };
    Taken { by: &holder.by, user_made: holder.user_made, at: holder.since, needs }
}

/// A state whose next version would not fit into a request is not locked: its writer would learn it too late.
fn check_room(limits: &StateLimits, head: &StateHead) -> Result<(), Error> {
    let bytes = head.current.as_ref().map_or(0, |kept| kept.bytes);
    match limits.no_lock_from {
        Some(from) if bytes >= from as u64 => {
            Err(StateError::NearLimit { bytes, bytes_max: limits.bytes_max }.into())
        }
        Some(_) | None => Ok(()),
    }
}

async fn take(ctx: &Context, caller: &Caller, found: &WithLock, holder: &StateHolder) -> Result<(), Error> {
    let key = StateLock::key(found.id);
    let mut lock = found.lock.clone();
    let mut attempts = Attempts::at("the state's lock");
    loop {
        attempts.begin()?;
        let (mut next, expect) = match &lock {
            Some(lock) => (lock.value.clone(), lock.unchanged()),
            None => (StateLock::default(), Expect::Absent),
        };
        if let Some(other) = &next.holder {
            let is_repeat = other.info.id == holder.info.id;
            if is_repeat && caller.has_taken(&found.head.value.address.org, &taken(other)) {
                return Ok(());
            }
            if !has_expired(&found.head.value, other, ctx.now()) {
                return Err(StateError::Locked(Box::new(other.clone())).into());
            }
            let ended = other.info.id.clone();
            end(&mut next, ended);
        }
        next.holder = Some(holder.clone());
        let write = store::put(ctx, key.clone(), expect, &next);
        match store::commit(ctx, vec![write]).await? {
            Ok(()) => return Ok(()),
            // Somebody was first, and what lies there now says who.
            Err(refusal) => lock = refusal.current.as_ref().map(Stored::read).transpose()?,
        }
    }
}

/// Whether somebody else may take this lock, by the state's policy. Each write of its holder counts as a sign of life.
pub fn has_expired(head: &StateHead, holder: &StateHolder, now: Timestamp) -> bool {
    let is_for_plan = needs(&holder.info) == Role::Plan;
    let Some(seconds) = head.policy.lock_expires_after(is_for_plan).filter(|_| !holder.by_hand) else {
        return false;
    };
    let wrote = head.under.as_ref().is_some_and(|under| under.lock == holder.info.id);
    let alive = head.last_write.filter(|_| wrote).map_or(holder.since, |at| at.max(holder.since));
    now.since(alive).as_secs() >= seconds
}

fn end(lock: &mut StateLock, id: String) {
    lock.holder = None;
    lock.ended.retain(|ended| *ended != id);
    lock.ended.push(id);
    let surplus = lock.ended.len().saturating_sub(ENDED_MAX);
    lock.ended.drain(..surplus);
}

/// How a lock was given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unlocked {
    /// Nobody held it, or this one was given back before.
    Already,
    /// By the ID that held it.
    ByItsId(Box<StateHolder>),
    /// By somebody who did not say, or could not know, which lock it is.
    Forced(Box<StateHolder>),
}

/// Gives back a lock. Without an ID, whatever lock there is: Terraform's `force-unlock` sends none. Whoever took it always
/// may. Two reads at once and one conditional write. Says which state it is, where there is one.
///
/// # Errors
/// [`StateError::NotHolder`] with the holder, for the ID of another lock; [`AccessError::NotAllowed`] for the lock of somebody else.
pub async fn unlock(
    ctx: &Context,
    caller: &Caller,
    place: &StateRef,
    id: Option<&str>,
) -> Result<(Option<StateAddress>, Unlocked), Error> {
    let mut attempts = Attempts::at("the state's lock");
    loop {
        attempts.begin()?;
        let Some(WithLock { id: state, head, lock }) = states::find_with_lock(ctx, caller, place).await?
        else {
            return Ok((None, Unlocked::Already));
        };
        let org = head.value.address.org.clone();
        let address = Some(head.value.address);
        let Some(lock) = lock else { return Ok((address, Unlocked::Already)) };
        let Some(holder) = lock.value.holder.clone().map(Box::new) else {
            return Ok((address, Unlocked::Already));
        };
        let unlocked = match id {
            None => Unlocked::Forced(holder.clone()),
            Some(id) if id == holder.info.id => Unlocked::ByItsId(holder.clone()),
            Some(id) if lock.value.ended.iter().any(|ended| ended == id) => {
                return Ok((address, Unlocked::Already));
            }
            Some(_) => return Err(StateError::NotHolder(holder).into()),
        };
        let what = What { own: "giving back your lock", others: "breaking the lock of somebody else" };
        caller.check_may_end(&org, &taken(&holder), what)?;
        let mut next = lock.value.clone();
        end(&mut next, holder.info.id.clone());
        let key = StateLock::key(state);
        let write = store::put(ctx, key, lock.unchanged(), &next);
        if store::commit(ctx, vec![write]).await?.is_ok() {
            return Ok((address, unlocked));
        }
    }
}

/// A lock that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The state.
    pub state: Listed,
    /// Who holds it.
    pub holder: StateHolder,
    /// Whether the state's policy lets somebody else take it.
    pub has_expired: bool,
}

/// The locks of one page of an organization's states, with where the next page begins. One query, and two reads for each
/// state of the page, some at once.
///
/// # Errors
/// [`AccessError::NoOrg`].
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    after: Option<String>,
) -> Result<(Vec<Held>, Option<String>), Error> {
    let (listed, next) = states::list(ctx, caller, org, &ListFilter::default(), after).await?;
    let read = |state: Listed| async move {
        let place = StateRef::Id(state.entry.id);
        // One that was removed meanwhile holds nothing.
        let found = match states::find_with_lock(ctx, caller, &place).await {
            Err(Error::State(StateError::NotFound(_))) => None,
            found => found?,
        };
        let Some(WithLock { head, lock: Some(lock), .. }) = found else { return Ok(None) };
        let held = lock.value.holder.map(|holder| {
            let has_expired = has_expired(&head.value, &holder, ctx.now());
            Held { state, holder, has_expired }
        });
        Ok::<_, Error>(held)
    };
    let mut reads = futures::stream::iter(listed.into_iter().map(read)).buffered(READ_AT_ONCE);
    let mut held = Vec::new();
    while let Some(one) = reads.next().await {
        held.extend(one?);
    }
    Ok((held, next))
}

//! The locks of Terraform states. A lock is one item; locking and unlocking are one conditional write each.
//!
//! A client that did not see the answer may send either twice. The lock's ID identifies the repetition. The item
//! stays after the lock ends, with the IDs of ended locks, so that a repeated unlock differs from an attempt to
//! unlock the lock of another user.
//!
//! The commit that takes or ends a lock also writes or deletes an entry in the organization's list of locks, so that a
//! list reads the states that are locked and no others. The lock decides, not the entry.

use futures::StreamExt;

use super::{LIST_PAGE, Listed, StateRef, WithLock};
use crate::context::Context;
use crate::domain::access::{Tags, Unit};
use crate::domain::ids::StateId;
use crate::domain::names::{OrgName, StateAddress};
use crate::domain::role::Right;
use crate::domain::tfstate::LockInfo;
use crate::layout::{
    self, StateHead, StateHolder, StateLock, StateLockEntry, StateLocksListed, Stored, check,
};
use crate::ports::{Expect, Item, Timestamp, Write};
use crate::services::audit::About;
use crate::services::caller::{Caller, Taken, What};
use crate::services::error::{AccessError, InvalidInput, StateError};
use crate::services::states;
use crate::services::store::page;
use crate::services::store::retry::Attempts;
use crate::services::{Error, audit, store};
use crate::settings::StateLimits;

/// Ended locks of a state whose IDs are kept.
const ENDED_MAX: usize = 8;

/// States whose locks are read at the same time for a list.
const READ_AT_ONCE: usize = 16;

/// Locks a state, and creates it if it does not exist. `limits` bound the size of a state that can be locked. Two
/// reads at the same time and one conditional write; a refusal costs no more.
///
/// # Errors
/// [`StateError::Locked`] with the holder, unless the caller holds the lock under the same ID;
/// [`StateError::NearLimit`]; [`StateError::LockOfDeleted`] for a reserved name; [`StateError::LockNotAllowed`] if
/// the caller's role is too low for the operation that the lock is for.
pub async fn lock(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    info: &LockInfo,
    limits: &StateLimits,
) -> Result<StateAddress, Error> {
    let found = states::find_or_create(ctx, caller, state).await.map_err(|error| match error {
        Error::Access(AccessError::NotAllowed(why)) if why.needs > caller.needs() => {
            StateError::LockNotAllowed(why).into()
        }
        Error::State(StateError::Deleted(why)) => Error::State(StateError::LockOfDeleted(why)),
        error => error,
    })?;
    let head = &found.head.value;
    let standing = caller.on_state(ctx, &head.address, &head.labels).await?;
    standing.check(needs(info), "a lock for a run that may write").map_err(|error| match error {
        Error::Access(AccessError::NotAllowed(why)) => StateError::LockNotAllowed(why).into(),
        error => error,
    })?;
    check_room(limits, &found.head.value)?;
    let holder = holder(ctx, caller, info.clone(), false);
    take(ctx, caller, &found, &holder).await?;
    Ok(found.head.value.address)
}

/// Locks a state by hand, to keep every client out.
///
/// # Errors
/// [`StateError::NotFound`], [`StateError::Locked`].
pub async fn lock_by_hand(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    reason: &str,
) -> Result<(StateAddress, StateHolder), Error> {
    let found = states::locate_with_lock(ctx, caller, state).await?;
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

/// The operations, as clients call them, that save nothing under their lock. A console and an import send the same
/// word. An import does save; but it changes nothing except the state, so nothing is lost if its write is refused.
///
/// Source: opentofu v1.12.6 and terraform v1.5.7, `internal/backend/operation_type.go` and the calls of
/// `clistate.NewLocker`.
const READERS: [&str; 3] = ["OperationTypePlan", "OperationTypeInvalid", "migration source state"];

/// The right that a lock needs, by the operation that its client names.
fn needs(info: &LockInfo) -> Right {
    if READERS.contains(&info.operation.as_str()) { Right::Plan } else { Right::Apply }
}

/// The caller as the holder of a new lock.
fn holder(ctx: &Context, caller: &Caller, info: LockInfo, by_hand: bool) -> StateHolder {
    let (by, user_made) = (caller.requester(), Some(caller.user.created));
    StateHolder { info, by, user_made, since: ctx.now(), by_hand }
}

pub(super) fn taken(holder: &StateHolder) -> Taken<'_> {
    let needs = if holder.by_hand { Right::Member } else { needs(&holder.info) };
    Taken { by: &holder.by, user_made: holder.user_made, at: holder.since, needs }
}

/// Refuses to lock a state whose next version would not fit into a request: its writer would learn that too late.
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
            let head = &found.head.value;
            if is_repeat && caller.on_state(ctx, &head.address, &head.labels).await?.has_taken(&taken(other))
            {
                return Ok(());
            }
            if !has_expired(&found.head.value, other, ctx.now()) {
                return Err(StateError::Locked(Box::new(other.clone())).into());
            }
            let ended = other.info.id.clone();
            end(&mut next, ended);
        }
        next.holder = Some(holder.clone());
        let writes = vec![
            store::put(ctx, key.clone(), expect, &next),
            entry_write(ctx, &found.head.value.address.org, found.id, holder),
        ];
        let entry = audit::entry(ctx, "state.lock", &About::State(&found.head.value.address));
        let entry = entry.saying(match holder.by_hand {
            true => format!("by hand: {}", holder.info.info),
            false => format!("lock {}", short(&holder.info.id)),
        });
        match audit::commit_by_writer(ctx, writes, entry).await? {
            Ok(()) => return Ok(()),
            // Another caller was first. The refusal has the lock as it is now.
            Err(refusal) => lock = refusal.current.as_ref().map(Stored::read).transpose()?,
        }
    }
}

/// Whether the state's policy lets another caller take this lock. Each write of the holder extends it.
pub fn has_expired(head: &StateHead, holder: &StateHolder, now: Timestamp) -> bool {
    let is_for_plan = needs(&holder.info) == Right::Plan;
    let Some(seconds) = head.policy.lock_expires_after(is_for_plan).filter(|_| !holder.by_hand) else {
        return false;
    };
    let wrote = has_written(head, holder);
    let alive = head.last_write.filter(|_| wrote).map_or(holder.since, |at| at.max(holder.since));
    now.since(alive).as_secs() >= seconds
}

/// Whether the current version of the state was written under this lock.
pub fn has_written(head: &StateHead, holder: &StateHolder) -> bool {
    head.under.as_ref().is_some_and(|under| under.lock == holder.info.id)
}

/// The write of a lock's entry in the list, which goes with the write of the lock.
fn entry_write(ctx: &Context, org: &OrgName, state: StateId, holder: &StateHolder) -> Write {
    let entry = StateLockEntry { since: holder.since };
    store::put(ctx, StateLockEntry::key(org, state), Expect::Any, &entry)
}

fn end(lock: &mut StateLock, id: String) {
    lock.holder = None;
    lock.ended.retain(|ended| *ended != id);
    lock.ended.push(id);
    let surplus = lock.ended.len().saturating_sub(ENDED_MAX);
    lock.ended.drain(..surplus);
}

/// The result of an unlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unlocked {
    /// The state was not locked, or this lock was released before.
    Already,
    /// Released by the ID of the lock.
    ByItsId(Box<StateHolder>),
    /// Released without an ID.
    Forced(Box<StateHolder>),
}

impl Unlocked {
    /// How a state was unlocked, for the audit log.
    pub fn describe(&self, caller: &Caller) -> String {
        match self {
            Self::Already => "it was not held".to_owned(),
            Self::ByItsId(holder) if caller.is(&holder.by.of, &holder.by.login, holder.user_made) => {
                format!("lock {}", short(&holder.info.id))
            }
            Self::ByItsId(holder) => format!("lock {} of {}", short(&holder.info.id), holder.by.login),
            Self::Forced(holder) => format!("forced: lock {} of {}", short(&holder.info.id), holder.by.login),
        }
    }
}

/// A lock's ID, shortened for a log: clients may send any text.
pub fn short(id: &str) -> String {
    id.chars().filter(char::is_ascii_graphic).take(40).collect()
}

/// Unlocks a state. Without an ID, it releases any lock: Terraform's `force-unlock` sends none. The user who took the
/// lock may always release it. Two reads at the same time and one conditional write. Returns the address of the state
/// if it exists.
///
/// # Errors
/// [`StateError::NotHolder`] with the holder, for the ID of another lock; [`AccessError::NotAllowed`] for the lock of
/// another user.
pub async fn unlock(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    id: Option<&str>,
) -> Result<(Option<StateAddress>, Unlocked), Error> {
    let mut attempts = Attempts::at("the state's lock");
    loop {
        attempts.begin()?;
        let Some(WithLock { id: state_id, head, lock }) = states::find_with_lock(ctx, caller, state).await?
        else {
            return Ok((None, Unlocked::Already));
        };
        let standing = caller.on_state(ctx, &head.value.address, &head.value.labels).await?;
        let of = head.value.address;
        let address = Some(of.clone());
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
        let what = What { own: "releasing your lock", others: "breaking the lock of another user" };
        standing.check_may_end(&taken(&holder), what)?;
        let mut next = lock.value.clone();
        end(&mut next, holder.info.id.clone());
        let writes = vec![
            store::put(ctx, StateLock::key(state_id), lock.unchanged(), &next),
            layout::delete(StateLockEntry::key(&of.org, state_id), Expect::Any),
        ];
        let entry = audit::entry(ctx, "state.unlock", &About::State(&of));
        let how = unlocked.describe(caller);
        // The request knows the reason that a person gave.
        let detail = match &entry.record.detail {
            Some(reason) => format!("{how}; {reason}"),
            None => how,
        };
        let entry = entry.saying(detail);
        if audit::commit_by_writer(ctx, writes, entry).await?.is_ok() {
            return Ok((address, unlocked));
        }
    }
}

/// A held lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The locked state.
    pub state: Listed,
    pub holder: StateHolder,
    /// Whether the state's policy lets another caller take it.
    pub has_expired: bool,
    /// Whether its holder has written the current version of the state.
    pub has_written: bool,
}

/// One page of the held locks of an organization that the caller may see, with the start of the next page. A query and
/// a read, and two reads for each lock, some at the same time.
///
/// The first list of an organization also reads the lock of each of its states, since older programs made no entries.
///
/// # Errors
/// [`AccessError::NoOrg`].
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    after: Option<String>,
) -> Result<(Vec<Held>, Option<String>), Error> {
    let sight = caller.lists(ctx, org).await?;
    // A position is valid only within the prefix.
    let after = after.filter(|after| after.starts_with(&StateLockEntry::of_org(org).sort));
    let entries = || page::read(ctx, StateLockEntry::of_org(org), after.clone(), LIST_PAGE);
    let listed_key = StateLocksListed::key(org);
    let (listed, found) = futures::try_join!(store::read(ctx, &listed_key), entries())?;
    let (entries, next) = match listed {
        Some(_) => found,
        None => {
            enter_all(ctx, org).await?;
            entries().await?
        }
    };
    let read = |item: Item| async move {
        let id = StateLockEntry::state_in(&item.key)?;
        // An older program may have unlocked or erased the state.
        let Some(WithLock { head, lock: Some(lock), .. }) = super::read_state(ctx, id, true).await? else {
            return Ok(None);
        };
        let head = head.value;
        let Some(holder) = lock.value.holder.filter(|_| head.deleted.is_none()) else { return Ok(None) };
        let has_expired = has_expired(&head, &holder, ctx.now());
        let has_written = has_written(&head, &holder);
        let state = Listed { entry: states::entry_of(id, &head), address: head.address };
        Ok::<_, Error>(Some(Held { state, holder, has_expired, has_written }))
    };
    let mut reads = futures::stream::iter(entries.into_iter().map(read)).buffered(READ_AT_ONCE);
    let mut held = Vec::new();
    while let Some(one) = reads.next().await {
        held.extend(one?);
    }
    held.retain(|one: &Held| {
        sight.shows(&Unit::state(&one.state.address, Tags::Labels(&one.state.entry.labels)))
    });
    held.sort_by(|one, other| one.state.address.cmp(&other.state.address));
    Ok((held, next))
}

/// Makes the entries of all locks of an organization, those of older programs too.
async fn enter_all(ctx: &Context, org: &OrgName) -> Result<(), Error> {
    let enter = |state: Listed| async move {
        let id = state.entry.id;
        let Some(lock) = store::read(ctx, &StateLock::key(id)).await? else { return Ok(()) };
        let Some(holder) = &lock.value.holder else { return Ok(()) };
        let writes = vec![check(StateLock::key(id), lock.unchanged()), entry_write(ctx, org, id, holder)];
        // A refusal means that the lock has moved, and its entry with it.
        let _ = store::commit(ctx, writes).await?;
        Ok::<_, Error>(())
    };
    let all = super::all(ctx, org).await?;
    let mut entered = futures::stream::iter(all.into_iter().map(enter)).buffer_unordered(READ_AT_ONCE);
    while let Some(done) = entered.next().await {
        done?;
    }
    let listed = StateLocksListed { at: ctx.now() };
    let write = store::put(ctx, StateLocksListed::key(org), Expect::Any, &listed);
    // It has no condition, so it cannot be refused.
    let _ = store::commit(ctx, vec![write]).await?;
    Ok(())
}

//! Updates that are over: whoever meets a stack that one still holds brings it to what that update saved.

use super::log;
use super::publish::{publish, seal};
use crate::context::Context;
use crate::domain::ids::UpdateId;
use crate::domain::names::StackAddress;
use crate::domain::update::{Command, Outcome, SealedBy, Status, Update};
use crate::layout::{StackHead, Stored};
use crate::ports::Timestamp;
use crate::services::caller::Caller;
use crate::services::error::{StackError, UpdateError};
use crate::services::store::retry::Attempts;
use crate::services::store::stack_lookup::{Located, locate};
use crate::services::{Error, Holder, store};

/// Refuses while an update holds the stack, saying who.
///
/// # Errors
/// [`UpdateError::Held`].
pub(crate) async fn check_free(ctx: &Context, head: &StackHead) -> Result<(), Error> {
    match holder(ctx, head).await? {
        Some(holder) => Err(UpdateError::Held(Box::new(holder)).into()),
        None => Ok(()),
    }
}

/// Who holds the stack.
pub(super) async fn holder(ctx: &Context, head: &StackHead) -> Result<Option<Holder>, Error> {
    let Some(id) = head.running else { return Ok(None) };
    let Some(update) = store::read(ctx, &Update::key(id)).await? else {
        return Err(Error::Broken(format!("the update {id} that holds {} has no record", head.address)));
    };
    let until = match update.value.status {
        Status::Running { until, .. } => Some(until),
        Status::NotStarted | Status::Sealed { .. } => None,
        // The head moved with it, so what the caller is about to commit on the old one is refused and tried again.
        Status::Ended { .. } => return Ok(None),
    };
    let last_write = log::last_slot(ctx, id).await?.map(|last| last.slot.at);
    let now = ctx.now();
    Ok(Some(Holder {
        address: head.address.clone(),
        update: id,
        kind: update.value.kind,
        since: update.value.started().unwrap_or(now),
        requester: update.value.requester,
        until,
        last_write,
        now,
    }))
}

/// Brings a stack whose update is over, but not published, to what that update saved: whoever meets the stack does it.
/// A stack that nobody holds, or whose holder's lease goes on, stays as it is; so does each in a process that may not publish,
/// where an export shows what the update saved, as it does while one runs.
///
/// # Errors
/// Those of the ports.
pub(super) async fn take_over_if_expired(ctx: &Context, mut located: Located) -> Result<Located, Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let Some(id) = located.head.value.running.filter(|_| ctx.rights.publish) else { return Ok(located) };
        let Some(record) = store::read(ctx, &Update::key(id)).await? else {
            return Err(Error::Broken(format!("the running update {id} has no record")));
        };
        match &record.value.status {
            Status::Running { until, .. } if ctx.now() <= *until => return Ok(located),
            Status::Running { .. } | Status::Sealed { .. } => {
                expire_and_publish(ctx, id, record).await?;
            }
            // The head moves with the update, so it has moved since it was read.
            Status::NotStarted | Status::Ended { .. } => {}
        }
        let head = store::read(ctx, &StackHead::key(located.id)).await?;
        located.head = head.ok_or_else(|| Error::Broken(format!("stack {} lost its head", located.id)))?;
        if located.head.value.deleted.is_some() {
            return Err(StackError::NotFound(located.head.value.address).into());
        }
    }
}

/// When an update should be over for everybody, if it is not yet: at the end of its lease, or when its log was sealed.
pub(crate) fn overdue_from(update: &Update) -> Option<Timestamp> {
    match &update.status {
        Status::Running { until, .. } => Some(*until),
        Status::Sealed { seal, .. } => Some(seal.at),
        Status::NotStarted | Status::Ended { .. } => None,
    }
}

/// Ends an update whose lease is over with what it saved, and publishes one that is sealed. False when it changed since
/// `record` was read: the caller reads and decides again.
///
/// # Errors
/// [`UpdateError::NotNow`] for an update that goes on.
pub(crate) async fn expire_and_publish(
    ctx: &Context,
    id: UpdateId,
    record: Stored<Update>,
) -> Result<bool, Error> {
    let sealed = match record.value.status {
        Status::Sealed { .. } => record,
        Status::NotStarted | Status::Running { .. } | Status::Ended { .. } => {
            tracing::info!(update = %id, "the lease is over; ending the update with what it saved");
            let (outcome, by) = (Outcome::Failed, SealedBy::Expiry);
            match seal(ctx, id, &record, None, outcome, by, Command::Expire).await? {
                Some(sealed) => {
                    if let Some(on_lapse) = ctx.on_lapse.get() {
                        on_lapse(id, &sealed.value);
                    }
                    sealed
                }
                None => return Ok(false),
            }
        }
    };
    publish(ctx, id, sealed).await.map(|()| true)
}

/// A stack that no update holds.
pub(crate) async fn locate_free(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
) -> Result<Located, Error> {
    let located = locate_settled(ctx, caller, address).await?;
    check_free(ctx, &located.head.value).await?;
    Ok(located)
}

/// As [`locate`], and a stack whose running update is over is first brought to what that update saved.
///
/// # Errors
/// As [`locate`], and those of publishing.
pub async fn locate_settled(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
) -> Result<Located, Error> {
    let located = locate(ctx, caller, address).await?;
    take_over_if_expired(ctx, located).await
}

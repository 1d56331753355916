//! Takeover: a request for a stack whose holding update is over first publishes what that update saved.

use super::log;
use super::publish::{End, publish, seal};
use crate::context::Context;
use crate::domain::ids::UpdateId;
use crate::domain::names::StackAddress;
use crate::domain::update::{Command, Outcome, SealedBy, Status, Update};
use crate::layout::{StackHead, Stored};
use crate::ports::Timestamp;
use crate::services::caller::Caller;
use crate::services::error::{OnHold, StackError, UpdateError};
use crate::services::store::retry::Attempts;
use crate::services::store::stack_lookup::{Located, locate};
use crate::services::{Error, Holder, store};

/// Refuses while an update or a person holds the stack, and names the holder.
///
/// # Errors
/// [`UpdateError::Held`], [`UpdateError::OnHold`].
pub(crate) async fn check_free(ctx: &Context, head: &StackHead) -> Result<(), Error> {
    check_no_update(ctx, head).await?;
    match &head.hold {
        Some(hold) => Err(UpdateError::OnHold(OnHold::of(&head.address, hold)).into()),
        None => Ok(()),
    }
}

/// Refuses while an update holds the stack, and names the holder.
///
/// # Errors
/// [`UpdateError::Held`].
pub(crate) async fn check_no_update(ctx: &Context, head: &StackHead) -> Result<(), Error> {
    match holder(ctx, head).await? {
        Some(holder) => Err(UpdateError::Held(Box::new(holder)).into()),
        None => Ok(()),
    }
}

/// The holder of a stack.
pub(super) async fn holder(ctx: &Context, head: &StackHead) -> Result<Option<Holder>, Error> {
    let Some(id) = head.running else { return Ok(None) };
    let Some(update) = store::read(ctx, &Update::key(id)).await? else {
        return Err(Error::Broken(format!("the update {id} that holds {} has no record", head.address)));
    };
    let until = match update.value.status {
        Status::Running { until, .. } => Some(until),
        Status::NotStarted | Status::Sealed { .. } => None,
        // The head moved with the update, so the caller's commit on the old head will be refused and retried.
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

/// Publishes what an update saved, if it is over but still holds the stack; the next request for the stack does this. A
/// stack without a holder, or whose holder's lease is valid, stays unchanged. So does every stack in a process without
/// the right to publish: there, an export shows what the update saved, as it does while one runs.
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
            // The head moves with the update, so it has moved after it was read.
            Status::NotStarted | Status::Ended { .. } => {}
        }
        let head = store::read(ctx, &StackHead::key(located.id)).await?;
        located.head = head.ok_or_else(|| Error::Broken(format!("stack {} lost its head", located.id)))?;
        if located.head.value.deleted.is_some() {
            return Err(StackError::NotFound(located.head.value.address).into());
        }
    }
}

/// When an update that has not ended should end: when its lease expires, or when its log was sealed.
pub(crate) fn overdue_from(update: &Update) -> Option<Timestamp> {
    match &update.status {
        Status::Running { until, .. } => Some(*until),
        Status::Sealed { seal, .. } => Some(seal.at),
        Status::NotStarted | Status::Ended { .. } => None,
    }
}

/// Ends an update whose lease expired and publishes what it saved; publishes a sealed one. False if it changed after
/// `record` was read: the caller reads and decides again.
///
/// # Errors
/// [`UpdateError::NotNow`] for an update that still runs.
pub(crate) async fn expire_and_publish(
    ctx: &Context,
    id: UpdateId,
    record: Stored<Update>,
) -> Result<bool, Error> {
    let sealed = match record.value.status {
        Status::Sealed { .. } => record,
        Status::NotStarted | Status::Running { .. } | Status::Ended { .. } => {
            tracing::info!(update = %id, "the lease expired; ending the update with what it saved");
            let end = End::new(Outcome::Failed, SealedBy::Expiry);
            match seal(ctx, id, &record, None, end, Command::Expire).await? {
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

/// Locates a stack that no update holds.
pub(crate) async fn locate_free(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
) -> Result<Located, Error> {
    let located = locate_settled(ctx, caller, address).await?;
    check_free(ctx, &located.head.value).await?;
    Ok(located)
}

/// Like [`locate`], but first publishes what the stack's update saved, if that is over.
///
/// # Errors
/// Those of [`locate`], and those of publishing.
pub async fn locate_settled(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
) -> Result<Located, Error> {
    let located = locate(ctx, caller, address).await?;
    take_over_if_expired(ctx, located).await
}

//! Holds a stack by hand, so that nothing updates it, and releases it. Both need the right of a member there. The hold is
//! a field of the stack's head, which each beginning of an update moves, so of a hold and an update that begin at the same
//! time one is first. An update that runs goes on to its end. Previews change nothing, so they are not refused.

use crate::context::Context;
use crate::domain::names::StackAddress;
use crate::domain::protection::{Hold, REASON_CHARS_MAX};
use crate::layout::{StackEntry, StackHead};
use crate::services::audit::About;
use crate::services::caller::Caller;
use crate::services::error::{InvalidInput, OnHold, UpdateError};
use crate::services::store::retry::Attempts;
use crate::services::store::stack_lookup::{Located, locate, read_name};
use crate::services::{Error, audit, store};

/// Holds a stack. Another reason of the same user replaces the one before; a repeat changes nothing.
///
/// # Errors
/// Those of [`locate`]; [`UpdateError::OnHold`] while another user holds it; [`InvalidInput::HoldReason`].
pub async fn hold(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    reason: &str,
) -> Result<Hold, Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let located = locate(ctx, caller, address).await?;
        let new = Hold::new(caller.requester(), ctx.now(), reason)
            .ok_or(InvalidInput::HoldReason { characters_max: REASON_CHARS_MAX })?;
        match &located.head.value.hold {
            Some(old) if old.is_repeated_by(&new) => return Ok(old.clone()),
            Some(old) if (&old.by.login, &old.by.of) != (&new.by.login, &new.by.of) => {
                return Err(UpdateError::OnHold(OnHold::of(address, old)).into());
            }
            Some(_) | None => {}
        }
        if set(ctx, address, &located, Some(new.clone()), "stack.hold", new.reason.clone()).await? {
            return Ok(new);
        }
    }
}

/// Releases a stack, if somebody holds it.
///
/// # Errors
/// Those of [`locate`].
pub async fn release(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<(), Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let located = locate(ctx, caller, address).await?;
        let Some(Hold { by, at, reason }) = &located.head.value.hold else { return Ok(()) };
        let detail = format!("of {} since {}: {reason}", by.login, at.to_rfc3339());
        if set(ctx, address, &located, None, "stack.release", detail).await? {
            return Ok(());
        }
    }
}

/// Moves the head and the list entry. False if one of them changed meanwhile.
async fn set(
    ctx: &Context,
    address: &StackAddress,
    located: &Located,
    hold: Option<Hold>,
    action: &str,
    detail: String,
) -> Result<bool, Error> {
    let Located { id, head } = located;
    let name = read_name(ctx, address).await?;
    let entry = audit::entry(ctx, action, &About::Stack(address)).saying(detail);
    let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
    let next_name = StackEntry { is_held: hold.is_some(), ..name.value.clone() };
    let next = StackHead { hold, trail: rider.mark(), ..head.value.clone() };
    let writes = vec![
        store::put(ctx, StackHead::key(*id), head.unchanged(), &next),
        store::put(ctx, StackEntry::key(address), name.unchanged(), &next_name),
    ];
    Ok(audit::commit(ctx, writes, rider).await?.is_ok())
}

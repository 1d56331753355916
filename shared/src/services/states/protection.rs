//! Protects a Terraform state from deletion, and from writes that leave it without resources, and lifts that. Both need
//! the right of an admin there. The protection is stored in the state's head, so it follows a rename.

use super::{Located, StateRef, locate};
use crate::context::Context;
use crate::domain::names::StateAddress;
use crate::domain::protection::{Protection, REASON_CHARS_MAX};
use crate::layout::StateHead;
use crate::services::audit::About;
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
use crate::services::store::retry::Attempts;
use crate::services::{Error, audit, store};

/// Protects a state. Another reason replaces the one before; a repeat changes nothing.
///
/// # Errors
/// Those of [`locate`]; [`InvalidInput::ProtectionReason`].
pub async fn protect(
    ctx: &Context,
    caller: &Caller,
    state: &StateRef,
    reason: &str,
) -> Result<(StateAddress, Protection), Error> {
    let mut attempts = Attempts::at("the state");
    loop {
        attempts.begin()?;
        let Located { id, head } = locate(ctx, caller, state).await?;
        let new = Protection::new(caller.requester(), ctx.now(), reason)
            .ok_or(InvalidInput::ProtectionReason { characters_max: REASON_CHARS_MAX })?;
        if let Some(old) = head.value.protection.as_ref().filter(|old| old.is_repeated_by(&new)) {
            return Ok((head.value.address.clone(), old.clone()));
        }
        let about = About::State(&head.value.address);
        let entry = audit::entry(ctx, "state.protect", &about).saying(new.reason.as_str());
        let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
        let (protection, trail) = (Some(new.clone()), rider.mark());
        let next = StateHead { protection, trail, ..head.value.clone() };
        let write = store::put(ctx, StateHead::key(id), head.unchanged(), &next);
        if audit::commit(ctx, vec![write], rider).await?.is_ok() {
            return Ok((next.address, new));
        }
    }
}

/// Lifts the protection of a state, if it has one.
///
/// # Errors
/// Those of [`locate`].
pub async fn lift(ctx: &Context, caller: &Caller, state: &StateRef) -> Result<StateAddress, Error> {
    let mut attempts = Attempts::at("the state");
    loop {
        attempts.begin()?;
        let Located { id, head } = locate(ctx, caller, state).await?;
        let Some(Protection { by, at, reason }) = &head.value.protection else {
            return Ok(head.value.address);
        };
        let detail = format!("of {} since {}: {reason}", by.login, at.to_rfc3339());
        let entry = audit::entry(ctx, "state.unprotect", &About::State(&head.value.address)).saying(detail);
        let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
        let next = StateHead { protection: None, trail: rider.mark(), ..head.value.clone() };
        let write = store::put(ctx, StateHead::key(id), head.unchanged(), &next);
        if audit::commit(ctx, vec![write], rider).await?.is_ok() {
            return Ok(next.address);
        }
    }
}

//! Protects a stack from deletion and destruction, and lifts that. Both need the right of an admin there. The protection
//! is stored in the stack's head, so it follows a rename, and of a destroy and a protection at the same time one is
//! first.

use crate::context::Context;
use crate::domain::names::StackAddress;
use crate::domain::protection::{Protection, REASON_CHARS_MAX};
use crate::layout::StackHead;
use crate::services::audit::About;
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
use crate::services::store::retry::Attempts;
use crate::services::store::stack_lookup::{Located, locate};
use crate::services::{Error, audit, store};

/// Protects a stack. Another reason replaces the one before; a repeat changes nothing.
///
/// # Errors
/// Those of [`locate`]; [`InvalidInput::ProtectionReason`].
pub async fn protect(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    reason: &str,
) -> Result<Protection, Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let Located { id, head } = locate(ctx, caller, address).await?;
        let new = Protection::new(caller.requester(), ctx.now(), reason)
            .ok_or(InvalidInput::ProtectionReason { characters_max: REASON_CHARS_MAX })?;
        if let Some(old) = head.value.protection.as_ref().filter(|old| old.is_repeated_by(&new)) {
            return Ok(old.clone());
        }
        let entry = audit::entry(ctx, "stack.protect", &About::Stack(address)).saying(new.reason.as_str());
        let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
        let (protection, trail) = (Some(new.clone()), rider.mark());
        let next = StackHead { protection, trail, ..head.value.clone() };
        let write = store::put(ctx, StackHead::key(id), head.unchanged(), &next);
        if audit::commit(ctx, vec![write], rider).await?.is_ok() {
            return Ok(new);
        }
    }
}

/// Lifts the protection of a stack, if it has one.
///
/// # Errors
/// Those of [`locate`].
pub async fn lift(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<(), Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let Located { id, head } = locate(ctx, caller, address).await?;
        let Some(Protection { by, at, reason }) = &head.value.protection else { return Ok(()) };
        let detail = format!("of {} since {}: {reason}", by.login, at.to_rfc3339());
        let entry = audit::entry(ctx, "stack.unprotect", &About::Stack(address)).saying(detail);
        let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
        let next = StackHead { protection: None, trail: rider.mark(), ..head.value.clone() };
        let write = store::put(ctx, StackHead::key(id), head.unchanged(), &next);
        if audit::commit(ctx, vec![write], rider).await?.is_ok() {
            return Ok(());
        }
    }
}

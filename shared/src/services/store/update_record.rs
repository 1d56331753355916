//! The record of an update: reads it for a bearer of its token, and writes it.

use super::due::due_write;
use crate::context::Context;
use crate::domain::claims::Claims;
use crate::domain::ids::UpdateId;
use crate::domain::update::{NotNow, Update};
use crate::layout::{Due, Stored, UpdateEntry};
use crate::ports::{Expect, Timestamp, Write};
use crate::services::error::Fenced;
use crate::services::{Error, store};

/// A put of an update's record.
pub(crate) fn update_write(ctx: &Context, id: UpdateId, expect: Expect, update: &Update) -> Write {
    store::put(ctx, Update::key(id), expect, update)
}

/// The writes that accompany the first put of an update's record. The first one lists the update under its stack, for
/// erasing it with the stack; the second one has a sweep handle it from `due` on.
pub(crate) fn entry_writes(ctx: &Context, id: UpdateId, update: &Update, due: Timestamp) -> [Write; 2] {
    let entry = UpdateEntry { created: update.created };
    let key = UpdateEntry::key(update.stack, id);
    [store::put(ctx, key, Expect::Any, &entry), due_write(ctx, &Due::Update(id), due)]
}

/// Reads the record of the update that a token belongs to.
///
/// # Errors
/// `UpdateError::Fenced` when the record is gone.
pub(crate) async fn read_own(ctx: &Context, claims: &Claims) -> Result<Stored<Update>, Error> {
    store::read(ctx, &Update::key(claims.update)).await?.ok_or_else(|| Fenced::Gone.into())
}

/// The error for a client whose update is over.
pub(crate) fn fenced(why: NotNow) -> Error {
    Fenced::NotRunning(why).into()
}

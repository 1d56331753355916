//! The record of an update: reading it for whoever shows its token, and writing it.

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

/// The writes that go with the first put of an update's record: whoever erases its stack finds it by the one, and a sweep
/// by the other, from `due` on.
pub(crate) fn entry_writes(ctx: &Context, id: UpdateId, update: &Update, due: Timestamp) -> [Write; 2] {
    let entry = UpdateEntry { created: update.created };
    let key = UpdateEntry::key(update.stack, id);
    [store::put(ctx, key, Expect::Any, &entry), due_write(ctx, &Due::Update(id), due)]
}

/// The record of the update that a token is of.
///
/// # Errors
/// `UpdateError::Fenced` when it is gone.
pub(crate) async fn read_own(ctx: &Context, claims: &Claims) -> Result<Stored<Update>, Error> {
    store::read(ctx, &Update::key(claims.update)).await?.ok_or_else(|| Fenced::Gone.into())
}

/// What a client whose update is over reads.
pub(crate) fn fenced(why: NotNow) -> Error {
    Fenced::NotRunning(why).into()
}

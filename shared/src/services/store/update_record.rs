//! The record of an update: reading it for whoever shows its token, and writing it.

use super::due::due_write;
use crate::context::Context;
use crate::domain::claims::Claims;
use crate::domain::ids::UpdateId;
use crate::domain::update::{NotNow, Update};
use crate::layout::ItemKeys;
use crate::layout::record::{Record, Stored, put};
use crate::layout::records::{Due, UpdateEntry};
use crate::ports::{Expect, Timestamp, Write};
use crate::services::{Error, store};

/// A put of an update's record.
pub(crate) fn update_write(ctx: &Context, id: UpdateId, expect: Expect, update: &Update) -> Write {
    put(ItemKeys::update(id), expect, ctx.ids.revision(), update.encode())
}

/// The writes that go with the first put of an update's record: whoever erases its stack finds it by the one, and a sweep
/// by the other, from `due` on.
pub(crate) fn entry_writes(ctx: &Context, id: UpdateId, update: &Update, due: Timestamp) -> [Write; 2] {
    let entry = UpdateEntry { created: update.created }.encode();
    let key = ItemKeys::update_entry(update.stack, id);
    [put(key, Expect::Any, ctx.ids.revision(), entry), due_write(ctx, &Due::Update(id), due)]
}

/// The record of the update that a token is of.
///
/// # Errors
/// [`Error::Fenced`] when it is gone.
pub(crate) async fn read_own(ctx: &Context, claims: &Claims) -> Result<Stored<Update>, Error> {
    store::read::<Update>(ctx, &ItemKeys::update(claims.update))
        .await?
        .ok_or_else(|| Error::Fenced("the update no longer exists; run the command again".to_owned()))
}

/// What a client whose update is over reads.
pub(crate) fn fenced(why: NotNow) -> Error {
    Error::Fenced(format!(
        "{why}. Nothing that is sent for it now is kept; run the command again, and `pulumi refresh` first if \
         resources were being changed"
    ))
}

//! The record of an update: reading it for whoever shows its token, and writing it.

use std::time::Duration;

use super::{Error, store};
use crate::context::Context;
use crate::domain::claims::Claims;
use crate::domain::ids::UpdateId;
use crate::domain::update::{NotNow, Status, Update};
use crate::layout::ItemKeys;
use crate::layout::record::{Record, Stored, put, put_until};
use crate::ports::{Expect, Write};

/// The record of a dry run, and of an update that was never started, may go after so long.
pub(crate) const SCRAP_KEPT_FOR: Duration = Duration::from_secs(90 * 24 * 3600);

/// A put of an update's record. Those that never move a head may go by themselves after a while.
pub(crate) fn update_write(ctx: &Context, id: UpdateId, expect: Expect, update: &Update) -> Write {
    let (key, revision) = (ItemKeys::update(id), ctx.ids.revision());
    if update.dry_run || update.status == Status::NotStarted {
        put_until(key, expect, revision, update.encode(), ctx.now().plus(SCRAP_KEPT_FOR))
    } else {
        put(key, expect, revision, update.encode())
    }
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

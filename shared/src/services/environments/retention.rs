//! How environments go that were removed: by sweeps, when they could be brought back for long enough.

use super::lookup;
use crate::context::Context;
use crate::domain::ids::EnvironmentId;
use crate::domain::names::EnvironmentAddress;
use crate::layout::{DeletedEnvironment, EnvironmentRevision, WrappedDataKey, delete};
use crate::services::store::due::{Next, Pages, Swept};
use crate::services::updates::retention;
use crate::services::{Error, store};

/// Looks at an environment that was removed, and erases it when its time has come: what opens its secrets first.
pub(crate) async fn sweep_removed(
    ctx: &Context,
    id: EnvironmentId,
    address: &EnvironmentAddress,
    swept: &mut Swept,
) -> Result<Next, Error> {
    let key = DeletedEnvironment::key(address, id);
    if let Some(removed) = store::read(ctx, &key).await? {
        let until = removed.value.at.plus(ctx.settings.retention.removed_stacks);
        if ctx.now() < until {
            return Ok(Next::At(until));
        }
        // From here on nobody can bring it back, so nothing has to be whole any more.
        if store::commit(ctx, vec![delete(key, removed.unchanged())]).await?.is_err() {
            return Ok(Next::AsItIs);
        }
    } else if lookup::head_of(ctx, address).await?.is_some_and(|head| head.value.id == id) {
        // It was brought back.
        return Ok(Next::Done);
    }
    let pages = &mut Pages::default();
    let nothing = |_: &_| Ok(Vec::new());
    let now = ctx.now();
    let is_gone = retention::erase_items(ctx, WrappedDataKey::of_owner(id), nothing, now, pages).await?
        && retention::erase_items(ctx, EnvironmentRevision::of_environment(id), nothing, now, pages).await?;
    if !is_gone {
        return Ok(Next::MoreOfIt);
    }
    swept.erased += 1;
    Ok(Next::Done)
}

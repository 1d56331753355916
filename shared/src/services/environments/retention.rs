//! How sweeps erase deleted environments, once the time for undeleting them is over.

use super::lookup;
use crate::context::Context;
use crate::domain::ids::EnvironmentId;
use crate::domain::names::EnvironmentAddress;
use crate::layout::{DeletedEnvironment, EnvironmentRevision, WrappedDataKey, delete};
use crate::services::store::deletion::commit_to_erase;
use crate::services::store::due::{Next, Pages, Swept};
use crate::services::updates::retention;
use crate::services::{Error, store};

/// Erases a deleted environment when it is due: first the keys that open its secrets.
pub(crate) async fn erase_when_due(
    ctx: &Context,
    id: EnvironmentId,
    address: &EnvironmentAddress,
    swept: &mut Swept,
) -> Result<Next, Error> {
    let key = DeletedEnvironment::key(address, id);
    if let Some(deleted) = store::read(ctx, &key).await? {
        let no_way_back = vec![delete(key, deleted.unchanged())];
        if let Some(next) = commit_to_erase(ctx, deleted.value.at, no_way_back).await? {
            return Ok(next);
        }
    } else if lookup::head_of(ctx, address).await?.is_some_and(|head| head.value.id == id) {
        // It was undeleted.
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

//! How what is kept of Terraform states goes: by sweeps, a page at a time, items before blobs. See [`crate::services::updates::retention`].

use super::dependencies;
use crate::context::Context;
use crate::domain::ids::{KeyOwner, StateId};
use crate::layout::ItemKeys;
use crate::layout::record::{Broken, Record, check, delete, put};
use crate::layout::records::{
    Due, FormerStateName, KeptState, RejectedState, StateFormerEntry, StateHead, StateVersion,
};
use crate::ports::{Expect, Item, Order, Query};
use crate::services::store::due::{BLOB_OUTLIVES, Next, Pages, Swept, due_write};
use crate::services::updates::retention;
use crate::services::updates::retention::only_blob;
use crate::services::{Error, store};

/// Versions that one commit removes: each with its item and the due items of its two blobs.
const VERSIONS_PER_COMMIT: usize = 30;

/// A blob is named by one item in all its life: a restored version has a text of its own.
fn due_of(kept: &KeptState) -> Due {
    Due::Blob { key: kept.blob.clone(), stack: None }
}

fn blobs_of_version(item: &Item) -> Result<Vec<Due>, Broken> {
    let version = StateVersion::decode(&item.value)?;
    let index = version.index.as_ref().and_then(only_blob);
    Ok([due_of(&version.kept)].into_iter().chain(index).collect())
}

/// Removes the versions of a state that are more than are kept, the oldest first. The current one stays.
pub(crate) async fn prune(ctx: &Context, state: StateId, swept: &mut Swept) -> Result<Next, Error> {
    let Some(kept) = ctx.settings.retention.state_versions else { return Ok(Next::Done) };
    let head_key = ItemKeys::state_head(state);
    let Some(head) = store::read::<StateHead>(ctx, &head_key).await? else { return Ok(Next::Done) };
    let prunable = head.value.version.saturating_sub(kept.get());
    // A removed state goes as a whole, or comes back as it was.
    if prunable == 0 || head.value.deleted.is_some() {
        return Ok(Next::Done);
    }
    let mut pages = Pages::default();
    loop {
        let (partition, prefix) = ItemKeys::state_versions(state);
        let query =
            Query { partition, prefix, after: None, order: Order::Ascending, limit: VERSIONS_PER_COMMIT };
        let page = store::query(ctx, &query).await?;
        let is_old = |item: &&Item| {
            ItemKeys::parse_version_sort(&item.key.sort).is_some_and(|version| version <= prunable)
        };
        let old: Vec<&Item> = page.items.iter().take_while(is_old).collect();
        if old.is_empty() {
            return Ok(Next::Done);
        }
        if !pages.take() {
            return Ok(Next::MoreOfIt);
        }
        let later = ctx.now().plus(BLOB_OUTLIVES);
        let mut writes = vec![check(head_key.clone(), head.unchanged())];
        for item in &old {
            writes.extend(blobs_of_version(item)?.iter().map(|due| due_write(ctx, due, later)));
            writes.push(delete(item.key.clone(), Expect::Any));
        }
        if store::commit(ctx, writes).await?.is_err() {
            // The state goes on; the next sweep looks again.
            return Ok(Next::AsItIs);
        }
        swept.pruned += old.len();
    }
}

/// Looks at a refused write, which goes when it was kept for long enough.
pub(crate) async fn sweep_rejected(ctx: &Context, state: StateId, id: &str) -> Result<Next, Error> {
    let key = ItemKeys::rejected_state(state, id);
    let Some(rejected) = store::read::<RejectedState>(ctx, &key).await? else { return Ok(Next::Done) };
    let until = rejected.value.at.plus(ctx.settings.retention.rejected_states);
    if ctx.now() < until {
        return Ok(Next::At(until));
    }
    let blob = due_write(ctx, &due_of(&rejected.value.kept), ctx.now().plus(BLOB_OUTLIVES));
    // Refused: another sweep was here.
    let _ = store::commit(ctx, vec![delete(key, rejected.unchanged()), blob]).await?;
    Ok(Next::Done)
}

/// Frees the names that lead to a state which is erased, or are reserved by it. Says whether it freed all.
async fn erase_names(ctx: &Context, state: StateId, pages: &mut Pages) -> Result<bool, Error> {
    /// Entries of one page, each with the name's item.
    const NAMES_AT_ONCE: usize = 45;
    loop {
        let (partition, prefix) = ItemKeys::state_former_entries(state);
        let query = Query { partition, prefix, after: None, order: Order::Ascending, limit: NAMES_AT_ONCE };
        let page = store::query(ctx, &query).await?;
        if page.items.is_empty() {
            return Ok(true);
        }
        if !pages.take() {
            return Ok(false);
        }
        for item in &page.items {
            let key = ItemKeys::former_state_name(&StateFormerEntry::decode(&item.value)?.address);
            let mut writes = vec![delete(item.key.clone(), Expect::Any)];
            // Another state may have left or taken that name since.
            if let Some(former) = store::read::<FormerStateName>(ctx, &key).await?
                && former.value.id == state
            {
                writes.push(delete(key, former.unchanged()));
            }
            // Refused: another state leaves that name right now. The next look sees it.
            let _ = store::commit(ctx, writes).await?;
        }
    }
}

/// Looks at a state that was removed, and erases it when its time has come: what opens its texts first, its head last.
pub(crate) async fn sweep_removed(ctx: &Context, state: StateId, swept: &mut Swept) -> Result<Next, Error> {
    let head_key = ItemKeys::state_head(state);
    let Some(head) = store::read::<StateHead>(ctx, &head_key).await? else { return Ok(Next::Done) };
    let Some(removed_at) = head.value.deleted else { return Ok(Next::Done) };
    let until = removed_at.plus(ctx.settings.retention.removed_stacks);
    if !head.value.erasing {
        if ctx.now() < until {
            return Ok(Next::At(until));
        }
        // From here on nobody can bring it back, so nothing has to be whole any more.
        let erasing = StateHead { erasing: true, ..head.value.clone() };
        let writes = vec![
            put(head_key.clone(), head.unchanged(), ctx.ids.revision(), erasing.encode()),
            delete(ItemKeys::removed_state(&head.value.address, state), Expect::Any),
        ];
        if store::commit(ctx, writes).await?.is_err() {
            return Ok(Next::AsItIs);
        }
    }
    let blobs_at = removed_at.plus(ctx.settings.retention.removed_stacks).plus(BLOB_OUTLIVES);
    let mut pages = Pages::default();
    let nothing = |_: &Item| Ok(Vec::new());
    let rejected = |item: &Item| Ok(vec![due_of(&RejectedState::decode(&item.value)?.kept)]);
    if let Some(next) = dependencies::erase_of(ctx, &head.value.address.org, state, &mut pages).await? {
        return Ok(next);
    }
    if !erase_names(ctx, state, &mut pages).await? {
        return Ok(Next::MoreOfIt);
    }
    let keys = ItemKeys::data_keys(KeyOwner::State(state));
    let is_gone = retention::erase_items(ctx, keys, nothing, blobs_at, &mut pages).await?
        && retention::erase_items(ctx, ItemKeys::rejected_states(state), rejected, blobs_at, &mut pages)
            .await?
        && retention::erase_items(
            ctx,
            ItemKeys::state_versions(state),
            blobs_of_version,
            blobs_at,
            &mut pages,
        )
        .await?;
    if !is_gone {
        return Ok(Next::MoreOfIt);
    }
    let writes = vec![
        delete(ItemKeys::state_lock(state), Expect::Any),
        delete(ItemKeys::state_schemas(state), Expect::Any),
        delete(head_key, Expect::Any),
    ];
    // Nothing is expected, so nothing can be refused.
    let _ = store::commit(ctx, writes).await?;
    swept.erased += 1;
    Ok(Next::Done)
}

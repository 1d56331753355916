//! How sweeps erase what is stored of Terraform states: a page at a time, items before blobs. See
//! [`crate::services::updates::retention`].

use super::dependencies;
use crate::context::Context;
use crate::domain::ids::{KeyOwner, StateId};
use crate::layout::{
    Broken, DeletedState, Due, FormerStateName, FormerStateNameEntry, KeptState, Record, RejectedState,
    StateHead, StateLock, StateLockEntry, StateSchemas, StateVersion, WrappedDataKey, check, delete,
};
use crate::ports::{Expect, Item, Order};
use crate::services::store::deletion::{commit_to_erase, erase_former_names, undeletable_until};
use crate::services::store::due::{BLOB_OUTLIVES, Next, Pages, Swept, due_write};
use crate::services::updates::retention;
use crate::services::updates::retention::only_blob;
use crate::services::{Error, store};

/// Versions that one commit deletes: each has its item and the due items of its two blobs, the text and its rows or index.
const VERSIONS_PER_COMMIT: usize = 30;

/// The blobs of a text. Only one item ever names a blob: a restored version has its own text.
fn dues_of(kept: &KeptState) -> Vec<Due> {
    kept.blobs().map(|(key, _)| Due::Blob { key, stack: None }).collect()
}

fn blobs_of_version(item: &Item) -> Result<Vec<Due>, Broken> {
    let version = StateVersion::decode(&item.value)?;
    let index = version.index.as_ref().and_then(only_blob);
    Ok(dues_of(&version.kept).into_iter().chain(index).collect())
}

/// Deletes the versions of a state above the number to keep, oldest first. The current one stays.
pub(crate) async fn prune(ctx: &Context, state: StateId, swept: &mut Swept) -> Result<Next, Error> {
    let Some(kept) = ctx.settings.retention.state_versions else { return Ok(Next::Done) };
    let head_key = StateHead::key(state);
    let Some(head) = store::read(ctx, &head_key).await? else { return Ok(Next::Done) };
    let prunable = head.value.version.saturating_sub(kept.get());
    // A deleted state is erased as a whole, or undeleted as it was.
    if prunable == 0 || head.value.deleted.is_some() {
        return Ok(Next::Done);
    }
    let mut pages = Pages::default();
    loop {
        let query = StateVersion::of_state(state).query(None, Order::Ascending, VERSIONS_PER_COMMIT);
        let page = store::query(ctx, &query).await?;
        let is_old =
            |item: &&Item| StateVersion::number_in(&item.key).is_ok_and(|version| version <= prunable);
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
            // A write moved the state. The next sweep tries again.
            return Ok(Next::AsItIs);
        }
        swept.pruned += old.len();
    }
}

/// Deletes a refused write once its retention is over.
pub(crate) async fn sweep_rejected(ctx: &Context, state: StateId, id: &str) -> Result<Next, Error> {
    let key = RejectedState::key(state, id);
    let Some(rejected) = store::read(ctx, &key).await? else { return Ok(Next::Done) };
    let until = rejected.value.at.plus(ctx.settings.retention.rejected_states);
    if ctx.now() < until {
        return Ok(Next::At(until));
    }
    let later = ctx.now().plus(BLOB_OUTLIVES);
    let mut writes = vec![delete(key, rejected.unchanged())];
    writes.extend(dues_of(&rejected.value.kept).iter().map(|due| due_write(ctx, due, later)));
    // A refusal means that another sweep did it.
    let _ = store::commit(ctx, writes).await?;
    Ok(Next::Done)
}

/// Erases a deleted state when it is due: first the keys that open its texts, its head last.
pub(crate) async fn erase_when_due(ctx: &Context, state: StateId, swept: &mut Swept) -> Result<Next, Error> {
    let head_key = StateHead::key(state);
    let Some(head) = store::read(ctx, &head_key).await? else { return Ok(Next::Done) };
    let Some(deleted_at) = head.value.deleted else { return Ok(Next::Done) };
    if !head.value.erasing {
        let erasing = StateHead { erasing: true, ..head.value.clone() };
        let no_way_back = vec![
            store::put(ctx, head_key.clone(), head.unchanged(), &erasing),
            delete(DeletedState::key(&head.value.address, state), Expect::Any),
        ];
        if let Some(next) = commit_to_erase(ctx, deleted_at, no_way_back).await? {
            return Ok(next);
        }
    }
    let blobs_at = undeletable_until(ctx, deleted_at).plus(BLOB_OUTLIVES);
    let mut pages = Pages::default();
    let nothing = |_: &Item| Ok(Vec::new());
    let rejected = |item: &Item| Ok(dues_of(&RejectedState::decode(&item.value)?.kept));
    if let Some(next) = dependencies::erase_of(ctx, &head.value.address.org, state, &mut pages).await? {
        return Ok(next);
    }
    let former_names = FormerStateNameEntry::of_state(state);
    let name_of = |entry: &FormerStateNameEntry| FormerStateName::key(&entry.address);
    let is_its = |former: &FormerStateName| former.id == state;
    if !erase_former_names(ctx, former_names, name_of, is_its, &mut pages).await? {
        return Ok(Next::MoreOfIt);
    }
    let keys = WrappedDataKey::of_owner(KeyOwner::State(state));
    let is_gone = retention::erase_items(ctx, keys, nothing, blobs_at, &mut pages).await?
        && retention::erase_items(ctx, RejectedState::of_state(state), rejected, blobs_at, &mut pages)
            .await?
        && retention::erase_items(ctx, StateVersion::of_state(state), blobs_of_version, blobs_at, &mut pages)
            .await?;
    if !is_gone {
        return Ok(Next::MoreOfIt);
    }
    let writes = vec![
        delete(StateLock::key(state), Expect::Any),
        delete(StateLockEntry::key(&head.value.address.org, state), Expect::Any),
        delete(StateSchemas::key(state), Expect::Any),
        delete(head_key, Expect::Any),
    ];
    // The writes have no conditions, so they cannot be refused.
    let _ = store::commit(ctx, writes).await?;
    swept.erased += 1;
    Ok(Next::Done)
}

//! The life cycle that stacks, states and environments share: deleted, undeleted or erased.
//!
//! A delete frees the name and stores a record of the deletion, which lists show. An undelete removes that record. When
//! the deletion is due, a sweep first commits to the erasure, and then erases everything that belongs to the item. So an
//! item is either undeleted whole or erased whole.

use super::due::{Next, Pages, due_write};
use crate::context::Context;
use crate::layout::{
    DeletedEnvironment, DeletedStack, DeletedState, Due, Key, KeyPrefix, Record, Stored, delete,
};
use crate::ports::{Expect, ItemKey, Order, Timestamp, Write};
use crate::services::{Error, store};

/// The record of a deletion.
pub(crate) trait Deletion: Record {
    /// When the item was deleted.
    fn at(&self) -> Timestamp;
}

impl Deletion for DeletedStack {
    fn at(&self) -> Timestamp {
        self.at
    }
}

impl Deletion for DeletedState {
    fn at(&self) -> Timestamp {
        self.at
    }
}

impl Deletion for DeletedEnvironment {
    fn at(&self) -> Timestamp {
        self.at
    }
}

/// Until when an item that was deleted at `deleted_at` can be undeleted.
pub(crate) fn undeletable_until(ctx: &Context, deleted_at: Timestamp) -> Timestamp {
    deleted_at.plus(ctx.settings.retention.deleted)
}

/// The writes that store a deletion and schedule the erasure.
pub(crate) fn deletion<D: Deletion>(ctx: &Context, key: Key<D>, deleted: &D, due: &Due) -> [Write; 2] {
    let due = due_write(ctx, due, undeletable_until(ctx, deleted.at()));
    [store::put(ctx, key, Expect::Any, deleted), due]
}

/// The deletions under a key prefix.
pub(crate) async fn deletions<D: Deletion>(
    ctx: &Context,
    prefix: KeyPrefix<D>,
) -> Result<Vec<(ItemKey, Stored<D>)>, Error> {
    let items = store::query_all(ctx, prefix, usize::MAX).await?;
    items.into_iter().map(|item| Ok((item.key.clone(), Stored::read(&item)?))).collect()
}

/// Commits to an erasure when it is due. After `no_way_back`, the item no longer has to be complete. Returns what the
/// sweep does instead of erasing, if it is too early or another process was faster.
pub(crate) async fn commit_to_erase(
    ctx: &Context,
    deleted_at: Timestamp,
    no_way_back: Vec<Write>,
) -> Result<Option<Next>, Error> {
    let until = undeletable_until(ctx, deleted_at);
    if ctx.now() < until {
        return Ok(Some(Next::At(until)));
    }
    let committed = store::commit(ctx, no_way_back).await?.is_ok();
    Ok((!committed).then_some(Next::AsItIs))
}

/// Erases the former names of an erased item, which `entries` lists. Returns whether all are erased.
pub(crate) async fn erase_former_names<E: Record, N: Record>(
    ctx: &Context,
    entries: KeyPrefix<E>,
    name_of: impl Fn(&E) -> Key<N>,
    is_its: impl Fn(&N) -> bool,
    pages: &mut Pages,
) -> Result<bool, Error> {
    /// The maximum number of entries in one page. Each is deleted together with the item of its name.
    const NAMES_AT_ONCE: usize = 45;
    let query = entries.query(None, Order::Ascending, NAMES_AT_ONCE);
    loop {
        let page = store::query(ctx, &query).await?;
        if page.items.is_empty() {
            return Ok(true);
        }
        if !pages.take() {
            return Ok(false);
        }
        for item in page.items {
            let key = name_of(&E::decode(&item.value)?);
            let mut writes = vec![delete(item.key, Expect::Any)];
            // Another item may have left or taken that name since.
            if let Some(former) = store::read(ctx, &key).await?
                && is_its(&former.value)
            {
                writes.push(delete(key, former.unchanged()));
            }
            // Refused: another item is leaving that name right now. The next sweep sees it.
            let _ = store::commit(ctx, writes).await?;
        }
    }
}

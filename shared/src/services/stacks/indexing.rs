//! Indexes the resources of versions that have no index: an older program published them, or there was no memory for it. An
//! index that is damaged or missing is made again.
//!
//! Versions are indexed from the oldest that is kept, since each index tells what changed since the one before. An index
//! that was made without an index of the version before is made again. A stack may be updated meanwhile: an index is
//! attached only to the version as it was read, and a version that is published meanwhile comes last.

use crate::context::Context;
use crate::domain::ids::StackId;
use crate::domain::names::StackAddress;
use crate::domain::resource_index::TEXT_FACTOR;
use crate::layout::{Due, Record, Snapshot, SnapshotIndex, StackHead, StackVersion, check};
use crate::ports::Order;
use crate::services::store::due::{BLOB_OUTLIVES, due_write};
use crate::services::store::resource_index::{Deployment, is_whole, make};
use crate::services::store::retry::Attempts;
use crate::services::store::stack_lookup::fetch_snapshot;
use crate::services::{Error, store};

/// Versions that are listed at a time.
const LISTED_AT_ONCE: usize = 50;

/// What was indexed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Indexed {
    /// The stack; `None` if it has no head.
    pub address: Option<StackAddress>,
    /// The versions of the stack.
    pub versions: u64,
    /// Of these, those that got an index, a better one, or a damaged one again.
    pub indexed: u64,
}

/// Indexes all versions of a stack that need it. May be repeated, and continues after a crash.
///
/// # Errors
/// [`Error::Broken`] for a version that cannot be read; those of the ports.
pub async fn index(ctx: &Context, stack: StackId, mut each: impl FnMut(u64)) -> Result<Indexed, Error> {
    let head = store::read(ctx, &StackHead::key(stack)).await?;
    let mut done = Indexed { address: head.map(|head| head.value.address), ..Indexed::default() };
    let mut before: Option<Snapshot> = None;
    let mut query = StackVersion::of_stack(stack).query(None, Order::Ascending, LISTED_AT_ONCE);
    loop {
        let page = store::query(ctx, &query).await?;
        // Versions that were published meanwhile come too: the last page is empty.
        let Some(last) = page.items.last() else { return Ok(done) };
        query.after = Some(last.key.sort.clone());
        for item in &page.items {
            let version = StackVersion::decode(&item.value)?;
            let number = version.version;
            let mut snapshot = version.snapshot.clone();
            let (wanted, is_made) = Box::pin(wanted(ctx, stack, &version, before.as_ref())).await?;
            // Also attached if it is as before: then the blob was repaired, perhaps while its version was erased.
            let is_new = is_made || snapshot.index != wanted;
            if is_new && attach(ctx, stack, &version, wanted.clone()).await? {
                done.indexed += 1;
            }
            snapshot.index = wanted;
            before = Some(snapshot);
            done.versions += 1;
            each(number);
        }
    }
}

/// The index that a version should have, and whether its blob was written now.
async fn wanted(
    ctx: &Context,
    stack: StackId,
    version: &StackVersion,
    before: Option<&Snapshot>,
) -> Result<(Option<SnapshotIndex>, bool), Error> {
    let snapshot = &version.snapshot;
    if let Some(before) = before.filter(|before| before.blob == snapshot.blob) {
        return Ok((before.index.clone(), false));
    }
    let since = before.and_then(|before| before.index.as_ref()).map_or(version.version, |index| index.since);
    if let Some(index) = snapshot.index.clone().filter(|index| index.since <= since)
        && is_whole(ctx, snapshot, &index).await?
    {
        return Ok((Some(index), false));
    }
    let gzip = fetch_snapshot(ctx, snapshot, TEXT_FACTOR).await?;
    let of = (version.version, snapshot);
    match make(ctx, stack, of, before, Deployment::Gzip(gzip)).await? {
        Some(index) => Ok((Some(index), true)),
        None => Err(Error::Broken(format!("the blob {} is not a deployment", snapshot.blob))),
    }
}

/// Attaches an index to a version, and to the head if it is the current one. False if the version was erased meanwhile.
async fn attach(
    ctx: &Context,
    stack: StackId,
    version: &StackVersion,
    index: Option<SnapshotIndex>,
) -> Result<bool, Error> {
    let (key, head_key) = (StackVersion::key(stack, version.version), StackHead::key(stack));
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let (Some(stored), Some(head)) =
            futures::try_join!(store::read(ctx, &key), store::read(ctx, &head_key))?
        else {
            // Nothing names the new blob. If it was due under the same key, that may have been before it was written.
            if let Some(index) = &index {
                let due = Due::Blob { key: version.snapshot.index_blob(index), stack: Some(stack) };
                let _ = store::commit(ctx, vec![due_write(ctx, &due, ctx.now().plus(BLOB_OUTLIVES))]).await?;
            }
            return Ok(false);
        };
        let mut next = stored.value.clone();
        let former = std::mem::replace(&mut next.snapshot.index, index.clone());
        let mut writes = vec![store::put(ctx, key.clone(), stored.unchanged(), &next)];
        let mut new_head = head.value.clone();
        match &mut new_head.snapshot {
            Some(current) if current.blob == next.snapshot.blob => {
                current.index.clone_from(&index);
                writes.push(store::put(ctx, head_key.clone(), head.unchanged(), &new_head));
            }
            Some(_) | None => writes.push(check(head_key.clone(), head.unchanged())),
        }
        if let Some(former) = former.filter(|former| index.as_ref() != Some(former)) {
            // Kept as long as another version names it.
            let due = Due::Blob { key: next.snapshot.index_blob(&former), stack: Some(stack) };
            writes.push(due_write(ctx, &due, ctx.now().plus(BLOB_OUTLIVES)));
        }
        if store::commit(ctx, writes).await?.is_ok() {
            return Ok(true);
        }
    }
}

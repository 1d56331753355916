//! How long logs, events, versions and blobs are kept, and how they are erased.
//!
//! Sweeps do all of this, one page at a time. Every step may be repeated, may run in several processes at once, and
//! continues after a crash where it stopped: erased items are not found again, and the rest is still due. Items are erased
//! first. Each page commits together with due items for the blobs that it named, so every blob is always either named or
//! due.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use futures::future::ready;
use futures::{StreamExt, TryStreamExt, stream};

use super::previews;
use crate::context::Context;
use crate::domain::ids::{StackId, UpdateId};
use crate::domain::update::Update;
use crate::layout::{
    Broken, Due, EventBatch, KeyPrefix, Payload, Record, Slot, StackHead, StackOutputs, StackVersion,
    UpdateDetail, UpdateEntry, UpdateSummary, check, delete,
};
use crate::ports::{BlobKey, Expect, Item, ItemKey, Order, Revision, Timestamp, Write};
use crate::services::store::due::{BLOB_OUTLIVES, Next, Pages, Swept, due_write};
use crate::services::{Error, store};

/// The minimum time that a log and events are kept, whatever the settings. A late request must find the log's seal, or
/// else an expired token, and a token is valid for minutes.
const KEPT_FOR_MIN: Duration = Duration::from_secs(3600);

/// The maximum time that the records of a preview, or of an update that never started, are kept.
const SCRAP_KEPT_FOR_MAX: Duration = Duration::from_secs(90 * 24 * 3600);

/// The maximum number of items that one commit erases.
const PAGE: usize = 45;

/// The writes of a commit, at most. Each item may add due items of its blobs.
const WRITES_MAX: usize = 100;

/// The maximum number of single-item deletes in parallel.
const DELETES_AT_ONCE: usize = 16;

/// The time from the end of an update until the first of its records is erased.
pub(crate) fn kept_at_least(ctx: &Context) -> Duration {
    let kept = &ctx.settings.retention;
    kept.logs.min(kept.events).max(KEPT_FOR_MIN)
}

/// Sweeps an update that is over: erases its log and its events when they are due, and after both its record.
pub(crate) async fn sweep_update(
    ctx: &Context,
    id: UpdateId,
    update: &Update,
    over: Timestamp,
    swept: &mut Swept,
) -> Result<Next, Error> {
    let kept = &ctx.settings.retention;
    let (mut logs, mut events) = (kept.logs.max(KEPT_FOR_MIN), kept.events.max(KEPT_FOR_MIN));
    if update.is_scrap() {
        events = events.min(SCRAP_KEPT_FOR_MAX);
        logs = events;
    }
    let now = ctx.now();
    let mut pages = Pages::default();
    let mut later = Vec::new();
    let mut log_stays = false;
    if now < over.plus(logs) {
        later.push(over.plus(logs));
    } else if skipped_entries(ctx, id, update).await? {
        // The log is erased with the version: erasing the version makes the update due.
        log_stays = true;
    } else if !erase_log(ctx, id, now.plus(BLOB_OUTLIVES), &mut pages).await? {
        return Ok(Next::MoreOfIt);
    }
    if now < over.plus(events) {
        later.push(over.plus(events));
    } else if !erase_events(ctx, id, now.plus(BLOB_OUTLIVES), &mut pages).await? {
        return Ok(Next::MoreOfIt);
    }
    if let Some(at) = later.into_iter().min() {
        swept.over += 1;
        return Ok(Next::At(at));
    }
    if !log_stays {
        erase_record(ctx, id, update.stack).await?;
        swept.erased += 1;
    }
    Ok(Next::Done)
}

/// Whether the version that an update published lacks entries of its log. The log is then their only copy.
async fn skipped_entries(ctx: &Context, id: UpdateId, update: &Update) -> Result<bool, Error> {
    let key = StackVersion::key(update.stack, update.base_version.saturating_add(1));
    let version = store::read(ctx, &key).await?;
    Ok(version.is_some_and(|version| version.value.update == id && version.value.skipped_count > 0))
}

/// Erases all records of an update. False if more remains than one sweep erases.
pub(crate) async fn erase_update(
    ctx: &Context,
    id: UpdateId,
    stack: StackId,
    blobs_at: Timestamp,
    pages: &mut Pages,
) -> Result<bool, Error> {
    if !erase_log(ctx, id, blobs_at, pages).await? || !erase_events(ctx, id, blobs_at, pages).await? {
        return Ok(false);
    }
    erase_record(ctx, id, stack).await?;
    Ok(true)
}

async fn erase_log(
    ctx: &Context,
    id: UpdateId,
    blobs_at: Timestamp,
    pages: &mut Pages,
) -> Result<bool, Error> {
    let blobs = |item: &Item| {
        let slot = Slot::decode(&item.value)?;
        Ok(slot.content.payload().and_then(only_blob).into_iter().collect())
    };
    erase_items(ctx, Slot::of_update(id), blobs, blobs_at, pages).await
}

async fn erase_events(
    ctx: &Context,
    id: UpdateId,
    blobs_at: Timestamp,
    pages: &mut Pages,
) -> Result<bool, Error> {
    let blobs = |item: &Item| Ok(only_blob(&EventBatch::decode(&item.value)?.payload).into_iter().collect());
    erase_items(ctx, EventBatch::of_update(id), blobs, blobs_at, pages).await
}

/// Erases the record, last: without it, nothing of the update can be found.
async fn erase_record(ctx: &Context, id: UpdateId, stack: StackId) -> Result<(), Error> {
    let mut keys: Vec<ItemKey> = vec![
        Update::key(id).into(),
        UpdateDetail::key(id).into(),
        UpdateSummary::key(id).into(),
        UpdateEntry::key(stack, id).into(),
    ];
    let record = store::read(ctx, &Update::key(id)).await?;
    let preview = record.filter(|record| record.value.dry_run);
    keys.extend(preview.map(|record| previews::entry_key(id, &record.value).into()));
    // The writes have no condition, so they cannot be refused.
    let _ = store::commit(ctx, keys.into_iter().map(|key| delete(key, Expect::Any)).collect()).await?;
    Ok(())
}

/// The due item for a payload's blob, which only one item ever names.
pub(crate) fn only_blob(payload: &Payload) -> Option<Due> {
    match payload {
        Payload::Inline => None,
        Payload::Blob { key, .. } => Some(Due::Blob { key: key.clone(), stack: None }),
    }
}

/// Erases all items of a key range, oldest first, and writes due items for the blobs that they name. False if more
/// remains than one sweep erases.
pub(crate) async fn erase_items<T>(
    ctx: &Context,
    prefix: KeyPrefix<T>,
    named: impl Fn(&Item) -> Result<Vec<Due>, Broken>,
    blobs_at: Timestamp,
    pages: &mut Pages,
) -> Result<bool, Error> {
    let query = prefix.query(None, Order::Ascending, PAGE);
    loop {
        let page = store::query(ctx, &query).await?;
        if page.items.is_empty() {
            return Ok(true);
        }
        if !pages.take() {
            return Ok(false);
        }
        let (mut writes, mut alone) = (Vec::new(), Vec::new());
        for item in &page.items {
            let gone = delete(item.key.clone(), Expect::Any);
            match named(item) {
                Ok(named) if named.is_empty() => alone.push(gone),
                Ok(named) => {
                    if writes.len() + 1 + named.len() > WRITES_MAX {
                        let _ = store::commit(ctx, std::mem::take(&mut writes)).await?;
                    }
                    writes.push(gone);
                    writes.extend(named.iter().map(|due| due_write(ctx, due, blobs_at)));
                }
                // A damaged item is erased as well. Its blob, if it has one, is left without an item that names it.
                Err(error) => {
                    let (partition, sort) = (&item.key.partition, &item.key.sort);
                    tracing::warn!(partition, sort, error = &error as &dyn std::error::Error, "damaged");
                    alone.push(gone);
                }
            }
        }
        // The writes have no condition, so they cannot be refused.
        if !writes.is_empty() {
            let _ = store::commit(ctx, writes).await?;
        }
        // An item without a blob is deleted by itself, which costs half where commits are billed.
        let commits = alone.into_iter().map(|gone| store::commit(ctx, vec![gone]));
        stream::iter(commits).buffered(DELETES_AT_ONCE).try_for_each(|_| ready(Ok(()))).await?;
        if !page.more {
            return Ok(true);
        }
    }
}

/// The fields of a version that pruning needs.
struct Listed {
    key: ItemKey,
    revision: Revision,
    number: u64,
    update: UpdateId,
    /// Those of its snapshot.
    blobs: Vec<String>,
}

async fn list_versions(ctx: &Context, stack: StackId) -> Result<Vec<Listed>, Error> {
    let mut query = StackVersion::of_stack(stack).query(None, Order::Ascending, 500);
    let mut listed = Vec::new();
    loop {
        let page = store::query(ctx, &query).await?;
        query.after = page.items.last().map(|item| item.key.sort.clone());
        for item in page.items {
            let StackVersion { version: number, update, snapshot, .. } = StackVersion::decode(&item.value)?;
            let blobs = snapshot.blobs().map(|(key, _)| key).collect();
            listed.push(Listed { key: item.key, revision: item.revision, number, update, blobs });
        }
        if !page.more {
            return Ok(listed);
        }
    }
}

/// The maximum number of versions that one commit erases. Each takes four writes: its item, a due item for its update,
/// and one for each of its two blobs.
const VERSIONS_PER_COMMIT: usize = 24;

/// Erases the oldest versions of a stack that exceed the retention setting. The head's version stays; it is also the
/// base of a running update.
///
/// A blob is erased with the last version that names it, wherever that version is: an unchanged version names the
/// previous one's blob, and a restored version an old blob. So all versions are listed, and each commit checks the head,
/// which a concurrent publish moves.
pub(crate) async fn prune(ctx: &Context, stack: StackId, swept: &mut Swept) -> Result<Next, Error> {
    let Some(kept) = ctx.settings.retention.versions else { return Ok(Next::Done) };
    let head_key = StackHead::key(stack);
    let Some(head) = store::read(ctx, &head_key).await? else { return Ok(Next::Done) };
    let prunable = head.value.version.saturating_sub(kept.get());
    // A deleted stack is erased as a whole, or undeleted unchanged.
    if prunable == 0 || head.value.deleted.is_some() {
        return Ok(Next::Done);
    }
    let versions = list_versions(ctx, stack).await?;
    let last_to_name: HashMap<&str, u64> = versions
        .iter()
        .flat_map(|version| version.blobs.iter().map(|blob| (blob.as_str(), version.number)))
        .collect();
    let old = versions.partition_point(|version| version.number <= prunable);
    let mut pages = Pages::default();
    for some in versions.get(..old).unwrap_or_default().chunks(VERSIONS_PER_COMMIT) {
        if !pages.take() {
            return Ok(Next::MoreOfIt);
        }
        let now = ctx.now();
        let mut writes = vec![check(head_key.clone(), head.unchanged())];
        for version in some {
            // If it was indexed since, it names another blob.
            writes.push(delete(version.key.clone(), Expect::Revision(version.revision)));
            // A log that was kept because of this version can be erased now.
            writes.push(due_write(ctx, &Due::Update(version.update), now));
            let is_last_named = |blob: &&String| last_to_name.get(blob.as_str()) == Some(&version.number);
            for blob in version.blobs.iter().filter(is_last_named) {
                let due = Due::Blob { key: blob.clone(), stack: Some(stack) };
                writes.push(due_write(ctx, &due, now.plus(BLOB_OUTLIVES)));
            }
        }
        if store::commit(ctx, writes).await?.is_err() {
            // The stack has moved on; the next sweep tries again.
            return Ok(Next::AsItIs);
        }
        swept.pruned += some.len();
    }
    Ok(Next::Done)
}

/// Sweeps the outputs of a version: current ones are checked again later; former ones are erased after the time that a
/// blob outlives its last reference.
pub(crate) async fn sweep_outputs(ctx: &Context, stack: StackId, key: &str) -> Result<Next, Error> {
    let later = ctx.now().plus(BLOB_OUTLIVES);
    let current = store::read(ctx, &StackOutputs::key(stack)).await?;
    Ok(match current.map(|current| current.value.payload) {
        Some(Payload::Blob { key: current, .. }) if current == key => Next::At(later),
        Some(_) | None => Next::Becomes(Due::Blob { key: key.to_owned(), stack: None }, later),
    })
}

/// Erases a blob, unless a version names it again: erasing that version writes another due item.
pub(crate) async fn sweep_blob(
    ctx: &Context,
    key: &str,
    stack: Option<StackId>,
    swept: &mut Swept,
) -> Result<Next, Error> {
    if let Some(stack) = stack
        && list_versions(ctx, stack).await?.iter().any(|version| version.blobs.iter().any(|blob| blob == key))
    {
        return Ok(Next::Done);
    }
    let key = BlobKey::parse(key).ok_or_else(|| Error::Broken(format!("{key:?} is not a blob key")))?;
    store::delete_blob(ctx, &key).await?;
    swept.blobs += 1;
    Ok(Next::Done)
}

/// The writes that erase versions of a stack that is erased as a whole, and the due items for their blobs. They are
/// refused if a version was indexed since it was read: then it names another blob.
pub(crate) fn erase_versions(
    ctx: &Context,
    stack: StackId,
    items: &[Item],
    blobs_at: Timestamp,
) -> Vec<Write> {
    let mut blobs = BTreeSet::new();
    let mut writes = Vec::new();
    for item in items {
        match StackVersion::decode(&item.value) {
            Ok(version) => {
                blobs.extend(version.snapshot.blobs().map(|(key, _)| key));
                // The outputs, if they were too long for an item. Their own due item may be later than this one.
                blobs.insert(StackOutputs::new_blob(stack, version.update).to_string());
            }
            Err(error) => {
                let sort = &item.key.sort;
                tracing::warn!(%stack, sort, error = &error as &dyn std::error::Error, "damaged");
            }
        }
        writes.push(delete(item.key.clone(), Expect::Revision(item.revision)));
    }
    let due = |key| due_write(ctx, &Due::Blob { key, stack: Some(stack) }, blobs_at);
    writes.extend(blobs.into_iter().map(due));
    writes
}

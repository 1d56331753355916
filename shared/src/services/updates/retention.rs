//! What is kept for how long, and how it goes: logs, events, versions, blobs.
//!
//! Everything here is done by sweeps, a page at a time, may be done twice and by several at once, and goes on after a
//! crash where it was: what is gone is not found again, and what is left is still due. Items go first, each page with
//! the due items of the blobs that it named, in one commit; so a blob that was named once is always named or due.

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
use crate::ports::{BlobKey, Expect, Item, ItemKey, Order, Timestamp, Write};
use crate::services::store::due::{BLOB_OUTLIVES, Next, Pages, Swept, due_write};
use crate::services::{Error, store};

/// A log and events are kept for at least so long, whatever was chosen. What is sent late has to find the log's seal, or
/// else that its token is no longer good, and a token is good for minutes.
const KEPT_FOR_MIN: Duration = Duration::from_secs(3600);

/// What came of an update that holds nothing, a preview or one that was never started, is kept for at most so long.
const SCRAP_KEPT_FOR_MAX: Duration = Duration::from_secs(90 * 24 * 3600);

/// Items that one commit removes; each may leave a due item, and a commit has 100 writes.
const PAGE: usize = 45;

/// Items that are removed on their own beside each other.
const DELETES_AT_ONCE: usize = 16;

/// How long after the end of an update the first of its things goes.
pub(crate) fn kept_at_least(ctx: &Context) -> Duration {
    let kept = &ctx.settings.retention;
    kept.logs.min(kept.events).max(KEPT_FOR_MIN)
}

/// Looks at an update that is over: removes its log and its events when their time has come, and then its record.
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
        // It goes with the version: whoever removes that makes the update due.
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

/// Whether the version that an update published lacks entries of its log, which is then the only place where they are.
async fn skipped_entries(ctx: &Context, id: UpdateId, update: &Update) -> Result<bool, Error> {
    let key = StackVersion::key(update.stack, update.base_version.saturating_add(1));
    let version = store::read(ctx, &key).await?;
    Ok(version.is_some_and(|version| version.value.update == id && version.value.skipped_count > 0))
}

/// Removes everything of an update. False when there is more than a sweep does at once.
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

/// The record goes last: without it nothing of the update is found any more.
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
    // Nothing is expected, so nothing can be refused.
    let _ = store::commit(ctx, keys.into_iter().map(|key| delete(key, Expect::Any)).collect()).await?;
    Ok(())
}

/// The due item of a payload's blob, which no other item ever names.
pub(crate) fn only_blob(payload: &Payload) -> Option<Due> {
    match payload {
        Payload::Inline => None,
        Payload::Blob { key, .. } => Some(Due::Blob { key: key.clone(), stack: None }),
    }
}

/// Removes all items of a key range, oldest first, with due items for what they name. False when there is more than a
/// sweep does at once.
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
                    writes.push(gone);
                    writes.extend(named.iter().map(|due| due_write(ctx, due, blobs_at)));
                }
                // What cannot be read cannot be kept from going; its blob, if it has one, is left without a name.
                Err(error) => {
                    let (partition, sort) = (&item.key.partition, &item.key.sort);
                    tracing::warn!(partition, sort, error = &error as &dyn std::error::Error, "damaged");
                    alone.push(gone);
                }
            }
        }
        // Nothing is expected, so nothing can be refused.
        if !writes.is_empty() {
            let _ = store::commit(ctx, writes).await?;
        }
        // What leaves nothing behind goes on its own, which costs half where commits are paid for.
        let commits = alone.into_iter().map(|gone| store::commit(ctx, vec![gone]));
        stream::iter(commits).buffered(DELETES_AT_ONCE).try_for_each(|_| ready(Ok(()))).await?;
        if !page.more {
            return Ok(true);
        }
    }
}

/// A version as far as pruning asks.
struct Listed {
    key: ItemKey,
    number: u64,
    update: UpdateId,
    blob: String,
}

async fn list_versions(ctx: &Context, stack: StackId) -> Result<Vec<Listed>, Error> {
    let mut query = StackVersion::of_stack(stack).query(None, Order::Ascending, 500);
    let mut listed = Vec::new();
    loop {
        let page = store::query(ctx, &query).await?;
        query.after = page.items.last().map(|item| item.key.sort.clone());
        for item in page.items {
            let StackVersion { version: number, update, snapshot, .. } = StackVersion::decode(&item.value)?;
            listed.push(Listed { key: item.key, number, update, blob: snapshot.blob });
        }
        if !page.more {
            return Ok(listed);
        }
    }
}

/// Versions that one commit removes: each with its item, a due item for its update, and one for its blob.
const VERSIONS_PER_COMMIT: usize = 30;

/// Removes the versions of a stack that are more than are kept, the oldest first. The head's version stays, and so does
/// what a running update is based on, which is the same one.
///
/// A blob goes when the last version that names it has gone, wherever that stands: a version without a change names the
/// blob of the one before, and a restored one an old blob. So all versions are listed, and the head is checked with each
/// commit: a version that is published meanwhile moves it.
pub(crate) async fn prune(ctx: &Context, stack: StackId, swept: &mut Swept) -> Result<Next, Error> {
    let Some(kept) = ctx.settings.retention.versions else { return Ok(Next::Done) };
    let head_key = StackHead::key(stack);
    let Some(head) = store::read(ctx, &head_key).await? else { return Ok(Next::Done) };
    let prunable = head.value.version.saturating_sub(kept.get());
    // A removed stack goes as a whole, or comes back as it was.
    if prunable == 0 || head.value.deleted.is_some() {
        return Ok(Next::Done);
    }
    let versions = list_versions(ctx, stack).await?;
    let last_to_name: HashMap<&str, u64> =
        versions.iter().map(|version| (version.blob.as_str(), version.number)).collect();
    let old = versions.partition_point(|version| version.number <= prunable);
    let mut pages = Pages::default();
    for some in versions.get(..old).unwrap_or_default().chunks(VERSIONS_PER_COMMIT) {
        if !pages.take() {
            return Ok(Next::MoreOfIt);
        }
        let now = ctx.now();
        let mut writes = vec![check(head_key.clone(), head.unchanged())];
        for version in some {
            writes.push(delete(version.key.clone(), Expect::Any));
            // A log that was kept for the version's sake may go now.
            writes.push(due_write(ctx, &Due::Update(version.update), now));
            if last_to_name.get(version.blob.as_str()) == Some(&version.number) {
                let due = Due::Blob { key: version.blob.clone(), stack: Some(stack) };
                writes.push(due_write(ctx, &due, now.plus(BLOB_OUTLIVES)));
            }
        }
        if store::commit(ctx, writes).await?.is_err() {
            // The stack goes on; the next sweep looks again.
            return Ok(Next::AsItIs);
        }
        swept.pruned += some.len();
    }
    Ok(Next::Done)
}

/// Looks at the outputs of a version: while they are the current ones they are looked at again, and else they go when
/// a blob's time is over.
pub(crate) async fn sweep_outputs(ctx: &Context, stack: StackId, key: &str) -> Result<Next, Error> {
    let later = ctx.now().plus(BLOB_OUTLIVES);
    let current = store::read(ctx, &StackOutputs::key(stack)).await?;
    Ok(match current.map(|current| current.value.payload) {
        Some(Payload::Blob { key: current, .. }) if current == key => Next::At(later),
        Some(_) | None => Next::Becomes(Due::Blob { key: key.to_owned(), stack: None }, later),
    })
}

/// Removes a blob, unless a version names it again: then whoever removes that version leaves another due item.
pub(crate) async fn sweep_blob(
    ctx: &Context,
    key: &str,
    stack: Option<StackId>,
    swept: &mut Swept,
) -> Result<Next, Error> {
    if let Some(stack) = stack
        && list_versions(ctx, stack).await?.iter().any(|version| version.blob == key)
    {
        return Ok(Next::Done);
    }
    let key = BlobKey::parse(key).ok_or_else(|| Error::Broken(format!("{key:?} is not a blob key")))?;
    store::delete_blob(ctx, &key).await?;
    swept.blobs += 1;
    Ok(Next::Done)
}

/// The writes that remove versions of a stack that goes as a whole, with the due items of their blobs.
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
                blobs.insert(version.snapshot.blob);
                // Where they were too long for an item. Its due item may come later than this one.
                blobs.insert(StackOutputs::new_blob(stack, version.update).to_string());
            }
            Err(error) => {
                let sort = &item.key.sort;
                tracing::warn!(%stack, sort, error = &error as &dyn std::error::Error, "damaged");
            }
        }
        writes.push(delete(item.key.clone(), Expect::Any));
    }
    let due = |key| due_write(ctx, &Due::Blob { key, stack: Some(stack) }, blobs_at);
    writes.extend(blobs.into_iter().map(due));
    writes
}

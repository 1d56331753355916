//! Sealing an update's log and publishing what it holds: how a stack gets its next version.
//!
//! Everything here may be done twice, by anybody, after a crash at any line: sealing takes a slot that only one can
//! take, publishing makes the same bytes again and moves the head on the condition that it has not moved.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::accounts::Caller;
use super::retention::BLOB_OUTLIVES;
use super::stacks::{self, Located};
use super::sweep::due_write;
use super::update_record::{entry_writes, update_write};
use super::{Error, Holder, RACES_MAX, log, saves, store};
use crate::context::Context;
use crate::domain::ids::{StackId, UpdateId};
use crate::domain::names::StackAddress;
use crate::domain::saves::last_chain;
use crate::domain::server_url::ServerUrl;
use crate::domain::update::{
    Command, Outcome, PUBLISHER_HEAD_START, Requester, Seal, SealedBy, Status, Update, UpdateKind,
};
use crate::layout::ItemKeys;
use crate::layout::keys::{outputs_blob, snapshot_blob};
use crate::layout::record::{Record, Stored, put};
use crate::layout::records::{Detail, Due, Head, Name, Outputs, Payload, Snapshot, Summary, Version};
use crate::layout::slot::{Content, Slot};
use crate::limits::SKIPPED_NAMED_MAX;
use crate::ports::{Expect, Timestamp, Write};

mod fold;
mod from_log;

pub(super) use fold::differences;
pub use fold::{Folded, gunzip, gzip, refuse_plaintext};
pub use from_log::{FromLog, SlotView, from_log, slots};

/// Between two looks at whether another process has published.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Refuses while an update holds the stack, saying who.
///
/// # Errors
/// [`Error::Held`].
pub(crate) async fn check_free(ctx: &Context, head: &Head) -> Result<(), Error> {
    match holder(ctx, head).await? {
        Some(holder) => Err(Error::Held(Box::new(holder))),
        None => Ok(()),
    }
}

/// Who holds the stack.
pub(super) async fn holder(ctx: &Context, head: &Head) -> Result<Option<Holder>, Error> {
    let Some(id) = head.running else { return Ok(None) };
    let Some(update) = store::read::<Update>(ctx, &ItemKeys::update(id)).await? else {
        return Err(Error::Broken(format!("the update {id} that holds {} has no record", head.address)));
    };
    let until = match update.value.status {
        Status::Running { until, .. } => Some(until),
        Status::NotStarted | Status::Sealed { .. } => None,
        // The head moved with it, so what the caller is about to commit on the old one is refused and tried again.
        Status::Ended { .. } => return Ok(None),
    };
    let last_write = log::last_slot(ctx, id).await?.map(|last| last.slot.at);
    let now = ctx.now();
    Ok(Some(Holder {
        address: head.address.clone(),
        update: id,
        kind: update.value.kind,
        since: update.value.started().unwrap_or(now),
        requester: update.value.requester,
        until,
        last_write,
        now,
    }))
}

/// Brings a stack whose update is over, but not published, to what that update saved: whoever meets the stack does it.
/// A stack that nobody holds, or whose holder's lease goes on, stays as it is.
///
/// # Errors
/// Those of the ports.
pub(crate) async fn settle(ctx: &Context, mut located: Located) -> Result<Located, Error> {
    for _ in 0..RACES_MAX {
        let Some(id) = located.head.value.running else { return Ok(located) };
        let Some(record) = store::read::<Update>(ctx, &ItemKeys::update(id)).await? else {
            return Err(Error::Broken(format!("the running update {id} has no record")));
        };
        match &record.value.status {
            Status::Running { until, .. } if ctx.now() <= *until => return Ok(located),
            Status::Running { .. } | Status::Sealed { .. } => {
                finish(ctx, id, record).await?;
            }
            // The head moves with the update, so it has moved since it was read.
            Status::NotStarted | Status::Ended { .. } => {}
        }
        let head = store::read::<Head>(ctx, &ItemKeys::head(located.id)).await?;
        located.head = head.ok_or_else(|| Error::Broken(format!("stack {} lost its head", located.id)))?;
        if located.head.value.deleted.is_some() {
            return Err(Error::NoStack(located.head.value.address));
        }
    }
    Err(Error::Contended("the stack"))
}

/// When an update should be over for everybody, if it is not yet: at the end of its lease, or when its log was sealed.
pub(crate) fn overdue_from(update: &Update) -> Option<Timestamp> {
    match &update.status {
        Status::Running { until, .. } => Some(*until),
        Status::Sealed { seal, .. } => Some(seal.at),
        Status::NotStarted | Status::Ended { .. } => None,
    }
}

/// Ends an update whose lease is over with what it saved, and publishes one that is sealed. False when it changed since
/// `record` was read: the caller reads and decides again.
///
/// # Errors
/// [`Error::NotNow`] for an update that goes on.
pub(crate) async fn finish(ctx: &Context, id: UpdateId, record: Stored<Update>) -> Result<bool, Error> {
    let sealed = match record.value.status {
        Status::Sealed { .. } => record,
        Status::NotStarted | Status::Running { .. } | Status::Ended { .. } => {
            tracing::info!(update = %id, "the lease is over; ending the update with what it saved");
            let (outcome, by) = (Outcome::Failed, SealedBy::Expiry);
            match seal(ctx, id, &record, outcome, by, Command::Expire).await? {
                Some(sealed) => sealed,
                None => return Ok(false),
            }
        }
    };
    publish(ctx, id, sealed).await.map(|()| true)
}

/// Seals an update's log, and returns the sealed update. `None` when it changed since `record` was read: the caller reads
/// and decides again. Where this process appended a moment ago, the seal's slot is known without a question.
///
/// # Errors
/// [`Error::NotNow`] when the update cannot be sealed.
pub(crate) async fn seal(
    ctx: &Context,
    id: UpdateId,
    record: &Stored<Update>,
    outcome: Outcome,
    by: SealedBy,
    command: impl Fn(Seal) -> Command,
) -> Result<Option<Stored<Update>>, Error> {
    for _ in 0..RACES_MAX {
        let slot = log::tail(ctx, id).await? + 1;
        let at = ctx.now();
        let seal = Seal { slot, outcome, by: by.clone(), at, publisher: ctx.publisher.clone() };
        let next = record.value.decide(command(seal.clone()), at).map_err(Error::NotNow)?;
        let content = Slot { at, content: Content::Seal(seal) };
        let revision = ctx.ids.revision();
        let writes = vec![
            put(ItemKeys::slot(id, slot), Expect::Absent, ctx.ids.revision(), content.encode()),
            put(ItemKeys::update(id), record.unchanged(), revision, next.encode()),
        ];
        ctx.memory.tails.forget(&id);
        drop(ctx.memory.texts.take(id));
        match store::commit(ctx, writes).await? {
            Ok(()) => return Ok(Some(Stored { value: next, revision })),
            // An append took the slot: the seal takes the next one.
            Err(refusal) if refusal.index == 0 => {}
            Err(_) => return Ok(None),
        }
    }
    Err(Error::Contended("the update's log"))
}

/// Publishes an update that was sealed when it was read. Whoever comes second waits for the first, in this process or another, and finds it done.
///
/// # Errors
/// [`Error::Broken`] when the log or the base does not read back.
pub(crate) async fn publish(ctx: &Context, id: UpdateId, sealed: Stored<Update>) -> Result<(), Error> {
    let turn = {
        let mut publishing = ctx.memory.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(publishing.entry(id).or_default())
    };
    let result = {
        let mut known = Some(sealed);
        let _turn = match turn.try_lock() {
            Ok(turn) => turn,
            // Somebody else has it, so what was read is old by the time that they are done.
            Err(_) => {
                known = None;
                turn.lock().await
            }
        };
        publish_alone(ctx, id, known).await
    };
    // Whoever waits holds the turn itself; whoever comes later finds the update ended.
    ctx.memory.publishing.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    result
}

async fn publish_alone(ctx: &Context, id: UpdateId, mut known: Option<Stored<Update>>) -> Result<(), Error> {
    for _ in 0..RACES_MAX {
        let (record, seal) = loop {
            let record = match known.take() {
                Some(record) => record,
                None => store::read::<Update>(ctx, &ItemKeys::update(id))
                    .await?
                    .ok_or_else(|| Error::Broken(format!("the update {id} has no record")))?,
            };
            let seal = match &record.value.status {
                Status::Ended { .. } => return Ok(()),
                Status::Sealed { seal, .. } => seal.clone(),
                Status::NotStarted | Status::Running { .. } => {
                    return Err(Error::NotNow(crate::domain::update::NotNow::NotSealed));
                }
            };
            if seal.publisher == ctx.publisher || ctx.now() > seal.at.plus(PUBLISHER_HEAD_START) {
                break (record, seal);
            }
            ctx.clock.sleep(LOOK_AGAIN_AFTER).await;
        };
        if publish_once(ctx, id, &record, &seal, None).await? {
            return Ok(());
        }
    }
    Err(Error::Contended("the stack"))
}

/// One attempt, with the whole log or without its end; false when something changed meanwhile.
async fn publish_once(
    ctx: &Context,
    id: UpdateId,
    record: &Stored<Update>,
    seal: &Seal,
    left_out: Option<LeftOut>,
) -> Result<bool, Error> {
    let update = &record.value;
    let stack = update.stack;
    let (head_key, summary_key, detail_key) =
        (ItemKeys::head(stack), ItemKeys::update_summary(id), ItemKeys::update_detail(id));
    let (head, log, summary, detail) = futures::try_join!(
        store::read::<Head>(ctx, &head_key),
        read_log(ctx, id, left_out.as_ref().map(|left_out| left_out.from)),
        store::read::<Summary>(ctx, &summary_key),
        store::read::<Detail>(ctx, &detail_key),
    )?;
    let head = head.ok_or_else(|| Error::Broken(format!("stack {stack} has no head")))?;
    if head.value.running != Some(id) {
        // It was published since the record was read; the next look at the record says so.
        return Ok(false);
    }
    let base = match &head.value.snapshot {
        Some(snapshot) => Some(stacks::fetch_snapshot(ctx, snapshot).await?),
        None => None,
    };
    if left_out.is_none() && log.seal.as_ref() != Some(seal) {
        return Err(Error::Broken(format!("the log of update {id} does not end with its seal")));
    }
    let at = seal.at;
    let folded = in_background(move || fold::fold(base.as_ref(), &log.parts, at)).await?;

    let version = NewVersion {
        update: id,
        kind: update.kind,
        outcome: seal.outcome,
        requester: update.requester.clone(),
        started: update.started().unwrap_or(seal.at),
        ended: seal.at,
        resource_changes: summary.map(|summary| summary.value.resource_changes),
        detail: detail.map(|detail| detail.value).unwrap_or_default(),
        left_out,
    };
    let (next, name) = futures::try_join!(
        store_version(ctx, stack, &head.value, version, folded),
        stacks::read_name(ctx, &head.value.address),
    )?;
    let (mut new_head, mut new_name) = (head.value.clone(), name.value.clone());
    advance(&mut new_head, &mut new_name, &next);
    let ended = update.decide(Command::Publish, seal.at).map_err(Error::NotNow)?;
    // The head moves last of all that is written: a crash before this commit leaves blobs that nothing points to.
    let mut writes = next.writes;
    writes.push(put(ItemKeys::head(stack), head.unchanged(), ctx.ids.revision(), new_head.encode()));
    writes.push(update_write(ctx, id, record.unchanged(), &ended));
    writes.push(put(
        ItemKeys::name(&head.value.address),
        name.unchanged(),
        ctx.ids.revision(),
        new_name.encode(),
    ));
    Ok(store::commit(ctx, writes).await?.is_ok())
}

/// A log as it was read: its contents, and what follows them.
struct Log {
    parts: Vec<fold::LogPart>,
    /// When the last slot was taken.
    last: Option<Timestamp>,
    seal: Option<Seal>,
}

/// The contents of a log up to its seal, to the slot before `end`, or to its last slot by now. Slots must be dense.
async fn read_log(ctx: &Context, id: UpdateId, end: Option<u64>) -> Result<Log, Error> {
    let (partition, prefix) = ItemKeys::slots(id);
    let items = store::query_all(ctx, partition, prefix, usize::MAX).await?;
    let mut log = Log { parts: Vec::with_capacity(items.len()), last: None, seal: None };
    let mut slots = Vec::with_capacity(items.len());
    for (expected, item) in (1..).zip(&items) {
        if Some(expected) == end {
            break;
        }
        if log::slot_number(item)? != expected {
            return Err(Error::Broken(format!("the log of update {id} lacks slot {expected}")));
        }
        let (slot, tail) = Slot::decode_with(&item.value)?;
        log.last = Some(slot.at);
        if let Content::Seal(seal) = slot.content {
            log.seal = Some(seal);
            break;
        }
        slots.push((slot.content, tail));
    }
    // Of texts that were saved one over the other, only those are fetched that the last one is made of.
    let chain = last_chain(slots.iter().map(|(content, _)| content.save()));
    for (index, (content, tail)) in slots.into_iter().enumerate() {
        if content.save().is_some() && !chain.contains(&index) {
            continue;
        }
        let Some(payload) = content.payload() else { continue };
        let gzip = store::fetch(ctx, payload, tail).await?;
        log.parts.push(match content {
            Content::Checkpoint(_) => fold::LogPart::Checkpoint(gzip),
            Content::Verbatim(_) => fold::LogPart::Save(saves::Kind::Whole, gzip),
            Content::Delta(_) => fold::LogPart::Save(saves::Kind::Delta, gzip),
            Content::Entries(_) | Content::Seal(_) => fold::LogPart::Entries(gzip),
        });
    }
    Ok(log)
}

/// What the deployment of a stack is by now, while an update runs: the gzip of its text; `None` if the update has not
/// changed it. Nothing is stored.
pub(crate) async fn progress(
    ctx: &Context,
    id: UpdateId,
    base: Option<&Snapshot>,
) -> Result<Option<Bytes>, Error> {
    let log = read_log(ctx, id, None).await?;
    let Some(at) = log.last.filter(|_| !log.parts.is_empty()) else { return Ok(None) };
    let base = match base {
        Some(snapshot) => Some(stacks::fetch_snapshot(ctx, snapshot).await?),
        None => None,
    };
    match in_background(move || fold::fold(base.as_ref(), &log.parts, at)).await? {
        Folded::Unchanged => Ok(None),
        Folded::New(new) => Ok(Some(new.gzip)),
    }
}

/// Folding is arithmetic over what may be many megabytes: it must not hold up the requests of others.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Broken(format!("folding was interrupted: {error}")))?
}

/// A version to be, but for its deployment.
struct NewVersion {
    update: UpdateId,
    kind: UpdateKind,
    outcome: Outcome,
    requester: Requester,
    started: Timestamp,
    ended: Timestamp,
    resource_changes: Option<BTreeMap<String, u64>>,
    detail: Detail,
    /// What of the log is not in it.
    left_out: Option<LeftOut>,
}

/// The end of a log that an operator leaves out of a version, since it does not read back.
struct LeftOut {
    /// The first slot that is left out.
    from: u64,
    /// How many there are.
    count: u64,
    /// What is wrong with the log.
    why: String,
}

/// A version whose blobs are stored, with the writes that make it one.
pub(crate) struct StoredVersion {
    pub(crate) writes: Vec<Write>,
    pub(crate) update: UpdateId,
    version: u64,
    snapshot: Snapshot,
    ended: Timestamp,
}

/// Stores the blobs of a version, and prepares the writes of its history entry and outputs.
async fn store_version(
    ctx: &Context,
    stack: StackId,
    head: &Head,
    new: NewVersion,
    folded: Folded,
) -> Result<StoredVersion, Error> {
    let version = head.version + 1;
    let update = new.update;
    let mut writes = Vec::new();
    let (snapshot, mut skipped_count, mut skipped, integrity_error) = match (folded, &head.snapshot) {
        (Folded::Unchanged, Some(base)) => (base.clone(), 0, Vec::new(), None),
        (Folded::Unchanged, None) => {
            return Err(Error::Broken(format!("stack {stack} has no deployment to stay unchanged")));
        }
        (Folded::New(folded), _) => {
            let key = snapshot_blob(stack, update);
            let snapshot = Snapshot {
                blob: key.to_string(),
                sha256: store::sha256_hex(&folded.gzip),
                bytes_gzip: folded.gzip.len() as u64,
                bytes_text: folded.bytes_text,
                resource_count: folded.resource_count,
                pending_count: folded.pending_count,
                secrets_url: folded.secrets_url,
            };
            store::put_blob(ctx, &key, folded.gzip).await?;
            let (payload, tail) = store::keep(ctx, || outputs_blob(stack, update), folded.outputs).await?;
            if let Payload::Blob { key, .. } = &payload {
                let due = Due::Outputs { stack, key: key.clone() };
                writes.push(due_write(ctx, &due, new.ended.plus(BLOB_OUTLIVES)));
            }
            let outputs = Outputs { version, payload }.encode_with(&tail);
            writes.push(put(ItemKeys::outputs(stack), Expect::Any, ctx.ids.revision(), outputs));
            (snapshot, folded.skipped_count, folded.skipped, folded.integrity_error)
        }
    };
    if let Some(LeftOut { from, count, why }) = new.left_out.filter(|left_out| left_out.count > 0) {
        skipped_count += count;
        skipped.truncate(SKIPPED_NAMED_MAX - 1);
        let reason = format!("an operator left out {count} slots of the log, from slot {from} on: {why}");
        skipped.insert(0, (0, reason));
    }
    let record = Version {
        version,
        update,
        kind: new.kind,
        outcome: new.outcome,
        requester: new.requester,
        started: new.started,
        ended: new.ended,
        snapshot: snapshot.clone(),
        resource_changes: new.resource_changes,
        skipped_count,
        skipped,
        integrity_error,
        detail: new.detail,
    };
    writes.push(put(ItemKeys::version(stack, version), Expect::Absent, ctx.ids.revision(), record.encode()));
    if ctx.settings.retention.versions.is_some_and(|kept| version > kept.get()) {
        writes.push(due_write(ctx, &Due::Versions(stack), new.ended));
    }
    Ok(StoredVersion { writes, update, version, snapshot, ended: new.ended })
}

/// Moves a head and a name to a version.
pub(crate) fn advance(head: &mut Head, name: &mut Name, next: &StoredVersion) {
    head.version = next.version;
    head.running = None;
    head.last = Some(next.update);
    name.last_update = Some(next.ended);
    name.resource_count = Some(next.snapshot.resource_count);
    head.snapshot = Some(next.snapshot.clone());
}

/// Checks a whole deployment and stores it as the version after `head`.
pub(crate) async fn prepare_import(
    ctx: &Context,
    caller: &Caller,
    stack: StackId,
    head: &Head,
    text: Bytes,
) -> Result<StoredVersion, Error> {
    let base = match &head.snapshot {
        Some(snapshot) => Some(stacks::fetch_snapshot(ctx, snapshot).await?),
        None => None,
    };
    let folded = in_background(move || fold::fold_import(base.as_ref(), &text)).await?;
    store_at_once(ctx, caller, stack, head, UpdateKind::Import, Detail::default(), folded).await
}

/// Stores the current deployment as that of another address of the stack, as the version after `head`; `None` for a
/// stack without one.
pub(crate) async fn prepare_rename(
    ctx: &Context,
    caller: &Caller,
    stack: StackId,
    head: &Head,
    to: &StackAddress,
) -> Result<Option<StoredVersion>, Error> {
    let Some(snapshot) = &head.snapshot else { return Ok(None) };
    let (base, last) = futures::try_join!(
        stacks::fetch_snapshot(ctx, snapshot),
        stacks::read_version(ctx, stack, &head.address, head.version),
    )?;
    let addresses = (head.address.clone(), to.clone());
    let folded = in_background(move || fold::fold_rename(&base, &addresses.0, &addresses.1)).await?;
    let detail = Detail {
        message: format!("Rename {} to {to}", head.address),
        environment: BTreeMap::new(),
        // `pulumi config refresh` takes the configuration from the newest entry of the history.
        config: last.detail.config,
    };
    store_at_once(ctx, caller, stack, head, UpdateKind::Rename, detail, folded).await.map(Some)
}

/// Stores a version that is made by one request, without a log.
async fn store_at_once(
    ctx: &Context,
    caller: &Caller,
    stack: StackId,
    head: &Head,
    kind: UpdateKind,
    detail: Detail,
    folded: Folded,
) -> Result<StoredVersion, Error> {
    let id = UpdateId::new(ctx.ids.uuid());
    let now = ctx.now();
    let version = NewVersion {
        update: id,
        kind,
        outcome: Outcome::Succeeded,
        requester: caller.requester(),
        started: now,
        ended: now,
        resource_changes: None,
        detail,
        left_out: None,
    };
    let mut stored = store_version(ctx, stack, head, version, folded).await?;
    let update = Update {
        stack,
        kind,
        dry_run: false,
        requester: caller.requester(),
        created: now,
        base_version: head.version,
        journal_version: 0,
        status: Status::Ended { since: now, at: now, outcome: Outcome::Succeeded, by: SealedBy::Client },
    };
    stored.writes.push(update_write(ctx, id, Expect::Absent, &update));
    // Its record goes when an update's events do.
    stored.writes.extend(entry_writes(ctx, id, &update, now.plus(ctx.settings.retention.events)));
    Ok(stored)
}

/// A version that one request made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The update that made it.
    pub update: UpdateId,
    /// Its number.
    pub version: u64,
    /// The address of the server that opens its secrets, as far as it says.
    pub secrets_url: Option<String>,
}

/// Makes a whole deployment the stack's next version.
///
/// # Errors
/// [`Error::Held`] while an update runs; [`Error::Invalid`] for what is not a deployment.
pub async fn import(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    text: Bytes,
) -> Result<Made, Error> {
    for _ in 0..RACES_MAX {
        let located = locate_free(ctx, caller, address).await?;
        let next = prepare_import(ctx, caller, located.id, &located.head.value, text.clone()).await?;
        if let Some(made) = take_head(ctx, located, next).await? {
            return Ok(made);
        }
    }
    Err(Error::Contended("the stack"))
}

/// A stack that no update holds.
pub(super) async fn locate_free(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
) -> Result<Located, Error> {
    let located = stacks::locate_settled(ctx, caller, address).await?;
    check_free(ctx, &located.head.value).await?;
    Ok(located)
}

/// Makes a stored version that of a stack, unless the head has moved since it was located: then `None`.
pub(super) async fn take_head(
    ctx: &Context,
    located: Located,
    next: StoredVersion,
) -> Result<Option<Made>, Error> {
    let Located { id, head } = located;
    let address = &head.value.address;
    let name = stacks::read_name(ctx, address).await?;
    let (mut new_head, mut new_name) = (head.value.clone(), name.value.clone());
    advance(&mut new_head, &mut new_name, &next);
    let made = Made { update: next.update, version: next.version, secrets_url: next.snapshot.secrets_url };
    let mut writes = next.writes;
    writes.push(put(ItemKeys::head(id), head.unchanged(), ctx.ids.revision(), new_head.encode()));
    writes.push(put(ItemKeys::name(address), name.unchanged(), ctx.ids.revision(), new_name.encode()));
    Ok(store::commit(ctx, writes).await?.is_ok().then_some(made))
}

/// The address of the server that opens the secrets of a snapshot, as it is written in it.
pub(super) async fn secrets_url(ctx: &Context, snapshot: &Snapshot) -> Result<Option<String>, Error> {
    let gzip = stacks::fetch_snapshot(ctx, snapshot).await?;
    in_background(move || fold::secrets_url(&gzip)).await
}

/// Stores the current deployment as one whose secrets are opened at another address, as the version after `head`; `None`
/// if they are opened elsewhere than at `from`.
pub(super) async fn prepare_rehome(
    ctx: &Context,
    caller: &Caller,
    located: &Located,
    from: &ServerUrl,
    to: &ServerUrl,
) -> Result<Option<StoredVersion>, Error> {
    let head = &located.head.value;
    let Some(snapshot) = &head.snapshot else { return Ok(None) };
    let (base, last) = futures::try_join!(
        stacks::fetch_snapshot(ctx, snapshot),
        stacks::read_version(ctx, located.id, &head.address, head.version),
    )?;
    let urls = (from.clone(), to.clone());
    let Some(folded) = in_background(move || fold::fold_rehome(&base, &urls.0, &urls.1)).await? else {
        return Ok(None);
    };
    let detail = Detail {
        message: format!("Rehome from {from} to {to}"),
        environment: BTreeMap::new(),
        // As after a rename.
        config: last.detail.config,
    };
    store_at_once(ctx, caller, located.id, head, UpdateKind::Rename, detail, folded).await.map(Some)
}

/// Stores the deployment of an old version, under the name that the stack has now, as the version after `head`.
pub(super) async fn prepare_restore(
    ctx: &Context,
    caller: &Caller,
    located: &Located,
    version: u64,
) -> Result<StoredVersion, Error> {
    let head = &located.head.value;
    let old = stacks::read_version(ctx, located.id, &head.address, version).await?;
    let gzip = stacks::fetch_snapshot(ctx, &old.snapshot).await?;
    let address = head.address.clone();
    let folded = in_background(move || fold::fold_restore(&gzip, &address)).await?;
    let detail = Detail {
        message: format!("Restore version {version}"),
        environment: BTreeMap::new(),
        // The configuration that the state was made with.
        config: old.detail.config,
    };
    store_at_once(ctx, caller, located.id, head, UpdateKind::Import, detail, folded).await
}

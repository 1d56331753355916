//! Seals an update's log and publishes its content as the stack's next version.
//!
//! Any process may repeat any step here, after a crash at any line. Sealing takes a slot that only one writer can take.
//! Publishing produces the same bytes again, and moves the head on the condition that it has not moved.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};

use super::fold;
use super::fold::Folded;
use super::next_version::{LeftOut, NewVersion, advance, store_version};
use super::{checkpoints, log};
use crate::account;
use crate::context::Context;
use crate::domain::ids::UpdateId;
use crate::domain::principal::Principal;
use crate::domain::saves::last_chain;
use crate::domain::update::{
    Command, Outcome, PUBLISHER_HEAD_START, Requester, Seal, SealedBy, Status, Update,
};
use crate::layout::{
    AuditEntry, Content, Record, Slot, Snapshot, StackEntry, StackHead, Stored, UpdateDetail, UpdateSummary,
    put,
};
use crate::ports::{Expect, Timestamp};
use crate::services::audit::{About, Act};
use crate::services::error::UpdateError;
use crate::services::store::retry::Attempts;
use crate::services::store::stack_lookup;
use crate::services::store::update_record::update_write;
use crate::services::{Error, audit, store, work};

/// The maximum number of blobs of a log that are fetched in parallel. The fetched bytes stay in memory anyway.
const FETCHES_AT_ONCE: usize = 16;

/// The time between two checks whether another process has published.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// How an update ends, and who ends it.
#[derive(Debug, Clone)]
pub(super) struct End {
    pub(super) outcome: Outcome,
    pub(super) by: SealedBy,
    /// Why a person cancels it, if that was said.
    pub(super) reason: Option<String>,
    /// Who cancels it, and with which token.
    pub(super) requester: Option<Box<Requester>>,
}

impl End {
    pub(super) fn new(outcome: Outcome, by: SealedBy) -> Self {
        Self { outcome, by, reason: None, requester: None }
    }
}

/// Seals an update's log and returns the sealed update. `None` if it changed after `record` was read: the caller reads
/// and decides again. `tail` is the number of the last slot, if the caller knows it; if this process appended a moment
/// ago, it is known without a read.
///
/// # Errors
/// [`UpdateError::NotNow`] when the update cannot be sealed.
pub(super) async fn seal(
    ctx: &Context,
    id: UpdateId,
    record: &Stored<Update>,
    mut tail: Option<u64>,
    end: End,
    command: impl Fn(Seal) -> Command,
) -> Result<Option<Stored<Update>>, Error> {
    let mut attempts = Attempts::at("the update's log");
    loop {
        attempts.begin()?;
        let tail = match tail.take() {
            Some(tail) => tail,
            None => log::tail(ctx, id).await?,
        };
        let slot = tail + 1;
        let at = ctx.now();
        let End { outcome, by, reason, requester } = end.clone();
        let seal = Seal { slot, outcome, by, at, publisher: ctx.publisher.clone(), reason, requester };
        let next = record.value.decide(command(seal.clone()), at).map_err(UpdateError::NotNow)?;
        let content = Slot { at, content: Content::Seal(seal), made: None };
        let revision = ctx.ids.revision();
        let writes = vec![
            store::put(ctx, Slot::key(id, slot), Expect::Absent, &content),
            put(Update::key(id), record.unchanged(), revision, &next),
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
}

/// Publishes an update that was sealed when it was read. A second caller, in this or another process, waits for the first
/// and then finds the update published.
///
/// # Errors
/// [`Error::Broken`] when the log or the base does not read back.
pub(super) async fn publish(ctx: &Context, id: UpdateId, sealed: Stored<Update>) -> Result<(), Error> {
    let turn = {
        let mut publishing = ctx.memory.publishing.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(publishing.entry(id).or_default())
    };
    let result = {
        let mut known = Some(sealed);
        let _turn = match turn.try_lock() {
            Ok(turn) => turn,
            // Another request is publishing, so the record will be outdated when it finishes.
            Err(_) => {
                known = None;
                account::give_turn_away();
                turn.lock().await
            }
        };
        publish_exclusively(ctx, id, known).await
    };
    if result.is_ok() {
        ctx.memory.forget_update(id);
    }
    // A waiter holds its own reference to the turn; a later caller finds the update ended.
    ctx.memory.publishing.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    result
}

async fn publish_exclusively(
    ctx: &Context,
    id: UpdateId,
    mut known: Option<Stored<Update>>,
) -> Result<(), Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let (record, seal) = loop {
            let record = match known.take() {
                Some(record) => record,
                None => store::read(ctx, &Update::key(id))
                    .await?
                    .ok_or_else(|| Error::Broken(format!("the update {id} has no record")))?,
            };
            let seal = match &record.value.status {
                Status::Ended { .. } => return Ok(()),
                Status::Sealed { seal, .. } => seal.clone(),
                Status::NotStarted | Status::Running { .. } => {
                    return Err(UpdateError::NotNow(crate::domain::update::NotNow::NotSealed).into());
                }
            };
            if seal.publisher == ctx.publisher || ctx.now() > seal.at.plus(PUBLISHER_HEAD_START) {
                break (record, seal);
            }
            account::give_turn_away();
            ctx.clock.sleep(LOOK_AGAIN_AFTER).await;
        };
        if try_publish(ctx, id, &record, &seal, None).await? {
            return Ok(());
        }
    }
}

/// Tries once to publish, with the whole log or without its end. False if something changed meanwhile.
pub(super) async fn try_publish(
    ctx: &Context,
    id: UpdateId,
    record: &Stored<Update>,
    seal: &Seal,
    left_out: Option<LeftOut>,
) -> Result<bool, Error> {
    let update = &record.value;
    let stack = update.stack;
    let (head_key, summary_key, detail_key) =
        (StackHead::key(stack), UpdateSummary::key(id), UpdateDetail::key(id));
    let head_and_base = async {
        let head = store::read(ctx, &head_key).await?;
        let head = head.ok_or_else(|| Error::Broken(format!("stack {stack} has no head")))?;
        let base = match head.value.snapshot.as_ref().filter(|_| head.value.running == Some(id)) {
            Some(snapshot) => Some(stack_lookup::fetch_snapshot(ctx, snapshot, fold::FACTOR).await?),
            None => None,
        };
        Ok::<_, Error>((head, base))
    };
    let ((head, base), log, summary, detail) = futures::try_join!(
        head_and_base,
        read_log(ctx, id, left_out.as_ref().map(|left_out| left_out.from)),
        store::read(ctx, &summary_key),
        store::read(ctx, &detail_key),
    )?;
    if head.value.running != Some(id) {
        // It was published after the record was read. The next read of the record shows that.
        return Ok(false);
    }
    if left_out.is_none() && log.seal.as_ref() != Some(seal) {
        return Err(Error::Broken(format!("the log of update {id} does not end with its seal")));
    }
    let at = seal.at;
    let folded = fold_log(base, log.parts, at).await?;

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
        stack_lookup::read_name(ctx, &head.value.address),
    )?;
    let (mut new_head, mut new_name) = (head.value.clone(), name.value.clone());
    advance(&mut new_head, &mut new_name, &next);
    let entry = ended_entry(ctx, &head.value, id, update, seal);
    let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
    new_head.trail = rider.mark();
    let ended = update.decide(Command::Publish, seal.at).map_err(UpdateError::NotNow)?;
    // The head moves last of all that is written: a crash before this commit leaves blobs that nothing points to.
    let mut writes = next.writes;
    writes.push(store::put(ctx, StackHead::key(stack), head.unchanged(), &new_head));
    writes.push(update_write(ctx, id, record.unchanged(), &ended));
    writes.push(store::put(ctx, StackEntry::key(&head.value.address), name.unchanged(), &new_name));
    Ok(audit::commit(ctx, writes, rider).await?.is_ok())
}

/// Folds a log onto its base, in memory that is reserved for the texts and for what they have. The tables of the base were
/// reserved when it was fetched.
async fn fold_log(base: Option<Bytes>, parts: Vec<fold::LogPart>, at: Timestamp) -> Result<Folded, Error> {
    let bytes = fold::weight(base.as_ref(), &parts);
    let count = move || fold::counted(&parts).map(|(counted, saved)| (parts, counted, saved));
    let (parts, counted, saved) = work::with(bytes, fold::FACTOR, count).await?;
    account::take_ahead(counted.bytes()).await?;
    work::on(bytes, move || fold::fold(base.as_ref(), &parts, saved, at)).await
}

/// The audit entry for the end of an update. A request that only finishes what another began, and the sweep, leave no
/// name of their own in it.
fn ended_entry(ctx: &Context, head: &StackHead, id: UpdateId, update: &Update, seal: &Seal) -> AuditEntry {
    let action = match &seal.by {
        SealedBy::Cancel(_) => "update.cancel",
        SealedBy::Client | SealedBy::Expiry => "update.end",
    };
    let mut entry = audit::entry(ctx, action, &About::Update(&head.address, id));
    let by = &update.requester;
    let is_own = match &seal.by {
        SealedBy::Client => Act::is_now(action),
        // Somebody else, or another token, may have cancelled it before.
        SealedBy::Cancel(_) => {
            Act::is_now(action) && entry.record.caller().as_ref() == seal.requester.as_deref()
        }
        SealedBy::Expiry => false,
    };
    if !is_own {
        let record = &mut entry.record;
        (record.from, record.request) = (None, None);
        (record.user, record.of, record.token) = (None, Principal::default(), None);
        match (&seal.by, &seal.requester) {
            (SealedBy::Client, _) => record.set_caller(by.clone()),
            (SealedBy::Cancel(_), Some(canceler)) => record.set_caller(Requester::clone(canceler)),
            (SealedBy::Cancel(login), None) => record.user = Some(login.clone()),
            (SealedBy::Expiry, _) => {}
        }
    }
    let detail = match &seal.by {
        SealedBy::Client => seal.outcome.as_str().to_owned(),
        SealedBy::Cancel(_) => {
            let begun = format!("begun by {} ({})", by.login, by.token);
            match &seal.reason {
                Some(reason) => format!("{begun}; {reason}"),
                None => begun,
            }
        }
        SealedBy::Expiry => {
            format!("failed, because its lease ran out; begun by {} ({})", by.login, by.token)
        }
    };
    entry.saying(detail)
}

/// The content of a log, up to where it was read.
struct Log {
    parts: Vec<fold::LogPart>,
    /// The time of the last slot.
    last: Option<Timestamp>,
    seal: Option<Seal>,
}

/// Reads a log up to its seal, to the slot before `end`, or to its current last slot. Slots must be consecutive.
async fn read_log(ctx: &Context, id: UpdateId, end: Option<u64>) -> Result<Log, Error> {
    let items = store::query_all(ctx, Slot::of_update(id), usize::MAX).await?;
    let mut log = Log { parts: Vec::new(), last: None, seal: None };
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
        slots.push((slot, tail));
    }
    // Of the saved texts, only those are fetched that the last one is built from; of the whole deployments, only the one
    // with the latest manifest time. A log may contain hundreds, and each may be large.
    let chain = last_chain(slots.iter().map(|(slot, _)| slot.content.save()));
    let made = slots.iter().enumerate().filter_map(|(index, (slot, _))| Some((slot.made?, index)));
    let last_made = made.max().map(|(_, index)| index);
    let needed = slots.into_iter().enumerate().filter_map(|(index, (slot, tail))| {
        let (made, content) = (slot.made, slot.content);
        let is_old_text = content.save().is_some() && !chain.contains(&index);
        (!is_old_text && (made.is_none() || last_made == Some(index))).then_some((content, tail))
    });
    let fetches = needed.map(|(content, tail)| fetch_part(ctx, content, tail));
    let parts: Vec<_> = stream::iter(fetches).buffered(FETCHES_AT_ONCE).try_collect().await?;
    log.parts = parts.into_iter().flatten().collect();
    Ok(log)
}

/// The part of a fold that a slot contains, from the item or from its blob.
async fn fetch_part(ctx: &Context, content: Content, tail: Bytes) -> Result<Option<fold::LogPart>, Error> {
    let Some(payload) = content.payload() else { return Ok(None) };
    let gzip = store::fetch(ctx, payload, tail).await?;
    Ok(Some(match content {
        Content::Checkpoint(_) => fold::LogPart::Checkpoint(gzip),
        Content::Verbatim(_) => fold::LogPart::Save(checkpoints::Kind::Whole, gzip),
        Content::Delta(_) => fold::LogPart::Save(checkpoints::Kind::Delta, gzip),
        Content::Entries(_) | Content::Seal(_) => fold::LogPart::Entries(gzip),
    }))
}

/// The gzip of the deployment's current text while an update runs; `None` if the update has not changed it. Nothing is
/// stored.
pub(crate) async fn preview_of_log(
    ctx: &Context,
    id: UpdateId,
    base: Option<&Snapshot>,
) -> Result<Option<Bytes>, Error> {
    let log = read_log(ctx, id, None).await?;
    let Some(at) = log.last.filter(|_| !log.parts.is_empty()) else { return Ok(None) };
    let base = match base {
        Some(snapshot) => Some(stack_lookup::fetch_snapshot(ctx, snapshot, fold::FACTOR).await?),
        None => None,
    };
    match fold_log(base, log.parts, at).await? {
        Folded::Unchanged => Ok(None),
        Folded::New(new) => Ok(Some(new.gzip)),
    }
}

//! Recovery for an update that is over but cannot be published because its log is unreadable: an operator inspects the
//! slots and chooses the last good one.

use super::log;
use super::next_version::LeftOut;
use super::publish::{publish, try_publish};
use super::takeover::{check_no_update, expire_and_publish};
use crate::context::Context;
use crate::domain::ids::UpdateId;
use crate::domain::names::StackAddress;
use crate::domain::update::{Status, Update};
use crate::journal;
use crate::layout::{Content, Record, Slot, StackHead, Stored};
use crate::ports::{Item, Timestamp};
use crate::services::caller::Caller;
use crate::services::error::{StackError, UpdateError};
use crate::services::store::compression::gunzip;
use crate::services::store::retry::Attempts;
use crate::services::store::stack_lookup;
use crate::services::store::stack_lookup::Located;
use crate::services::{Error, store};

/// A slot of a log, as an inspection finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotView {
    /// The number of the slot, from 1.
    pub number: u64,
    /// When it was written, if it is readable.
    pub at: Option<Timestamp>,
    /// `entries`, `checkpoint`, `verbatim`, `delta` or `seal`, if it is readable.
    pub kind: Option<&'static str>,
    /// The number of journal entries in it.
    pub entries: Option<usize>,
    /// The size of its content in bytes, inflated.
    pub bytes: Option<usize>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

/// Lists the log slots of an update of this stack, by default of the one that held the stack last. Reads the whole log.
///
/// # Errors
/// [`UpdateError::NotFound`], [`StackError::NeverUpdated`]. An unreadable slot is listed, not an error.
pub async fn slots(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    update: Option<&str>,
) -> Result<(UpdateId, Vec<SlotView>), Error> {
    let id = match update {
        Some(update) => stack_lookup::update(ctx, caller, address, update).await?.1,
        None => {
            let head = stack_lookup::locate(ctx, caller, address).await?.head.value;
            head.running.or(head.last).ok_or_else(|| StackError::NeverUpdated(address.clone()))?
        }
    };
    let mut views: Vec<SlotView> = Vec::new();
    for item in store::query_all(ctx, Slot::of_update(id), usize::MAX).await? {
        let number = log::slot_number(&item)?;
        let expected = views.last().map_or(1, |view| view.number + 1);
        if number > expected {
            let missing = if number - expected == 1 {
                "it is missing".to_owned()
            } else {
                format!("it is missing, with those up to {}", number - 1)
            };
            views.push(SlotView { problem: Some(missing), ..unread(expected) });
        }
        let mut view = unread(number);
        match inspect(ctx, &item, &mut view).await {
            Ok(()) => {}
            Err(Error::Broken(why)) => view.problem = Some(why),
            Err(error) => return Err(error),
        }
        views.push(view);
    }
    Ok((id, views))
}

fn unread(number: u64) -> SlotView {
    SlotView { number, at: None, kind: None, entries: None, bytes: None, problem: None }
}

async fn inspect(ctx: &Context, item: &Item, view: &mut SlotView) -> Result<(), Error> {
    let (slot, tail) = Slot::decode_with(&item.value)?;
    view.at = Some(slot.at);
    view.kind = Some(match &slot.content {
        Content::Entries(_) => "entries",
        Content::Checkpoint(_) => "checkpoint",
        Content::Verbatim(_) => "verbatim",
        Content::Delta(_) => "delta",
        Content::Seal(_) => "seal",
    });
    let Some(payload) = slot.content.payload() else { return Ok(()) };
    let text = gunzip(&store::fetch(ctx, payload, tail).await?)?;
    view.bytes = Some(text.len());
    if let Content::Entries(_) = slot.content {
        view.entries = Some(journal::read_batch(&text).len());
    }
    Ok(())
}

/// The result of publishing from a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromLog {
    /// The ID of the published update.
    pub update: UpdateId,
    /// The version of the stack that it published.
    pub version: u64,
    /// The number of slots left out; 0 if the whole log could be published after all.
    pub left_out: u64,
}

/// Publishes the ended update that still holds a stack, with only the slots of its log up to `last`. A readable log is
/// published whole, so that no acknowledged write is lost without need. The version names what is left out, although
/// the update's client received an acknowledgment for it.
///
/// # Errors
/// [`UpdateError::Held`] while the update runs; [`UpdateError::NoneHolds`], [`UpdateError::OtherHolds`], [`UpdateError::NoSlot`];
/// [`Error::Broken`] when the slots up to `last`, or the base, are unreadable too.
pub async fn from_log(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    update: Option<&str>,
    last: u64,
) -> Result<FromLog, Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let Located { id: stack, head } = stack_lookup::locate(ctx, caller, address).await?;
        let Some(id) = head.value.running else {
            return Err(UpdateError::NoneHolds(address.clone()).into());
        };
        if update.is_some_and(|update| UpdateId::parse(update) != Some(id)) {
            return Err(UpdateError::OtherHolds { address: address.clone(), id }.into());
        }
        let Some(record) = store::read(ctx, &Update::key(id)).await? else {
            return Err(Error::Broken(format!("the update {id} that holds {address} has no record")));
        };
        let version = head.value.version + 1;
        let why = match publish_whole(ctx, id, record, &head.value).await {
            Ok(true) => return Ok(FromLog { update: id, version, left_out: 0 }),
            // It changed after it was read.
            Ok(false) => continue,
            Err(Error::Broken(why)) => why,
            Err(error) => return Err(error),
        };
        let Some(record) = store::read(ctx, &Update::key(id)).await? else { continue };
        let Status::Sealed { seal, .. } = record.value.status.clone() else { continue };
        let slots = seal.slot.saturating_sub(1);
        if last > slots {
            return Err(UpdateError::NoSlot { update: id, slots, slot: last }.into());
        }
        let left_out = LeftOut { from: last + 1, count: slots - last, why };
        tracing::warn!(update = %id, %stack, from = left_out.from, count = left_out.count, "publishing without the end of a log");
        match try_publish(ctx, id, &record, &seal, Some(left_out)).await {
            Ok(true) => return Ok(FromLog { update: id, version, left_out: slots - last }),
            Ok(false) => {}
            Err(Error::Broken(why)) => {
                return Err(Error::Broken(format!(
                    "even the log up to slot {last} cannot be published: {why}"
                )));
            }
            Err(error) => return Err(error),
        }
    }
}

/// Publishes an update with its whole log. False if it changed meanwhile.
async fn publish_whole(
    ctx: &Context,
    id: UpdateId,
    record: Stored<Update>,
    head: &StackHead,
) -> Result<bool, Error> {
    match &record.value.status {
        Status::Sealed { .. } => publish(ctx, id, record).await.map(|()| true),
        Status::Running { until, .. } if ctx.now() > *until => expire_and_publish(ctx, id, record).await,
        Status::Running { .. } => check_no_update(ctx, head).await.map(|()| false),
        Status::NotStarted | Status::Ended { .. } => Ok(false),
    }
}

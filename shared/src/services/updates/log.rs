//! The log of an update: everything a running update sends that must survive.
//!
//! Slots are numbered from 1, and each is written on the condition that it is absent. The seal takes the next slot too,
//! so after it no append can succeed: that is what fences a client out, and no clock is needed for it.

use std::time::Duration;

use bytes::Bytes;

use super::room;
use crate::cache::TAIL_REMEMBERED_FOR;
use crate::context::Context;
use crate::domain::claims::Claims;
use crate::domain::ids::UpdateId;
use crate::domain::update::{NotNow, Status};
use crate::layout::{Content, Payload, Record, Slot};
use crate::ports::{Expect, Item, Order, Refusal, Timestamp};
use crate::services::error::{Fenced, UpdateError};
use crate::services::store::compression::{gzip, refuse_plaintext};
use crate::services::store::retry::Attempts;
use crate::services::store::update_record::{fenced, read_own};
use crate::services::{Error, store, work};

/// Appends a batch of journal entries; `gzip` is the compressed JSON body. Takes one write if this process appended to
/// the log within the last second. A repeated batch takes another slot, and a replay counts its entries once.
///
/// # Errors
/// [`UpdateError::Fenced`] when the update accepts no more.
pub async fn append_entries(ctx: &Context, claims: &Claims, gzip: Bytes) -> Result<(), Error> {
    check_may_append(ctx, claims, SaveProtocol::Journal).await?;
    append(ctx, claims, gzip, None, Content::Entries).await
}

/// Appends a whole deployment, given as its untyped text.
///
/// # Errors
/// Those of [`append_entries`], and [`Error::Invalid`] for a text that is not a deployment or has a plaintext secret.
pub async fn append_checkpoint(ctx: &Context, claims: &Claims, text: String) -> Result<(), Error> {
    check_may_append(ctx, claims, SaveProtocol::Whole).await?;
    let text = Bytes::from(text);
    let (bytes, sent) = (text.len(), text.clone());
    work::on(bytes, move || refuse_plaintext(&sent)).await?;
    let made = room::inspect(text.clone()).await?;
    let gzip = work::on(bytes, move || Ok(gzip(&text))).await?;
    append(ctx, claims, gzip, made, Content::Checkpoint).await
}

async fn append(
    ctx: &Context,
    claims: &Claims,
    gzip: Bytes,
    made: Option<Timestamp>,
    content: impl Fn(Payload) -> Content,
) -> Result<(), Error> {
    let id = claims.update;
    let part = ctx.ids.revision().0;
    let (payload, tail_bytes) = store::keep(ctx, || Slot::new_blob(id, part), gzip).await?;
    let slot = Slot { at: ctx.now(), content: content(payload), made };

    let fresh = ctx.memory.tails.get(&id, slot.at, TAIL_REMEMBERED_FOR);
    let mut tail = fresh.or_else(|| ctx.memory.tails.get(&id, slot.at, Duration::MAX)).unwrap_or(0);
    let mut reads_tail = fresh.is_none();
    let mut attempts = Attempts::at("the update's log");
    loop {
        attempts.begin()?;
        let number = tail + 1;
        let write = store::put_with(ctx, Slot::key(id, number), Expect::Absent, &slot, &tail_bytes);
        let append = store::commit(ctx, vec![write]);
        // The guess may be stale: the tail is read in parallel, so that a wrong guess costs no third call.
        let (appended, newest) = if reads_tail {
            let (appended, newest) = futures::join!(append, last_slot(ctx, id));
            (appended?, newest?)
        } else {
            (append.await?, None)
        };
        match appended {
            Ok(()) => {
                ctx.memory.tails.put(id, ctx.now(), number);
                return Ok(());
            }
            Err(Refusal { current, .. }) => {
                ctx.memory.tails.forget(&id);
                if let Some(item) = &current {
                    refuse_sealed(&Slot::decode(&item.value)?)?;
                }
                // The slot after a seal is free as well, so the last slot is checked before the next attempt.
                if let Some(last) = &newest {
                    refuse_sealed(&last.slot)?;
                }
                tail = number.max(newest.map_or(0, |last| last.number));
                // After a read, the next attempt trusts what it found.
                reads_tail = !reads_tail || tail == number;
            }
        }
    }
}

/// How a client saves its progress. A log accepts only one way: entries are applied to the base, and a deployment
/// replaces it, so the later of the two would hide the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SaveProtocol {
    /// Journal entries.
    Journal,
    /// Whole deployments, and deltas between them.
    Whole,
}

/// Refuses what can be refused without reading the log.
pub(super) async fn check_may_append(
    ctx: &Context,
    claims: &Claims,
    protocol: SaveProtocol,
) -> Result<(), Error> {
    if claims.dry_run {
        return Err(Fenced::Preview.into());
    }
    let journals = claims.journals;
    if journals != (protocol == SaveProtocol::Journal) {
        // A client whose update is over gets that answer, whatever it sends.
        check_open(ctx, claims).await?;
        return Err(UpdateError::OtherSaves { journals }.into());
    }
    check_lease(ctx, claims).await
}

pub(super) fn refuse_sealed(slot: &Slot) -> Result<(), Error> {
    match &slot.content {
        Content::Seal(seal) => {
            Err(fenced(NotNow::Over { outcome: seal.outcome, by: seal.by.clone(), at: seal.at }))
        }
        Content::Entries(_) | Content::Checkpoint(_) | Content::Verbatim(_) | Content::Delta(_) => Ok(()),
    }
}

/// After the token has expired, the record decides: a renewal whose answer was lost must not end an update.
async fn check_lease(ctx: &Context, claims: &Claims) -> Result<(), Error> {
    if ctx.now() <= claims.expires { Ok(()) } else { check_open(ctx, claims).await }
}

/// Refuses unless the update's record accepts writes.
///
/// # Errors
/// [`UpdateError::Fenced`] with the reason.
pub(crate) async fn check_open(ctx: &Context, claims: &Claims) -> Result<(), Error> {
    let now = ctx.now();
    match read_own(ctx, claims).await?.value.status {
        Status::Running { until, .. } if now <= until => Ok(()),
        Status::Running { until, .. } => Err(fenced(NotNow::LeaseOver { until })),
        Status::NotStarted => Err(fenced(NotNow::NotStarted)),
        Status::Sealed { seal, .. } => {
            Err(fenced(NotNow::Over { outcome: seal.outcome, by: seal.by, at: seal.at }))
        }
        Status::Ended { at, outcome, by, .. } => Err(fenced(NotNow::Over { outcome, by, at })),
    }
}

/// The number of the last slot; 0 for an empty log. It comes from this process's memory of the last second, or from a
/// read. Either is only a guess: the condition on the next slot decides. The result of a read may be the seal, and is not
/// remembered: an append trusts the remembered number, and the slot after a seal is free.
pub(super) async fn tail(ctx: &Context, id: UpdateId) -> Result<u64, Error> {
    match ctx.memory.tails.get(&id, ctx.now(), TAIL_REMEMBERED_FOR) {
        Some(tail) => Ok(tail),
        // Reads only the number: a log can be sealed even if its last slot does not decode.
        None => Ok(last_item(ctx, id).await?.as_ref().map(slot_number).transpose()?.unwrap_or(0)),
    }
}

/// The last slot of a log.
pub(super) struct LastSlot {
    pub(crate) number: u64,
    pub(crate) slot: Slot,
}

/// The last slot; `None` for an empty log.
pub(super) async fn last_slot(ctx: &Context, id: UpdateId) -> Result<Option<LastSlot>, Error> {
    last_item(ctx, id)
        .await?
        .map(|item| Ok(LastSlot { number: slot_number(&item)?, slot: Slot::decode(&item.value)? }))
        .transpose()
}

/// What a running update has saved so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Saved {
    /// Whether it has saved anything.
    pub is_any: bool,
    /// When it last saved something, if that is known: a slot that cannot be read must not keep its stack from being
    /// shown, and from being unlocked.
    pub last: Option<Timestamp>,
}

/// What is in the log of an update. One query. The seal of an empty log is nothing.
pub(crate) async fn saved(ctx: &Context, id: UpdateId) -> Result<Saved, Error> {
    let Some(item) = last_item(ctx, id).await? else { return Ok(Saved::default()) };
    let slot = Slot::decode(&item.value).ok();
    let is_seal = slot.as_ref().is_some_and(|slot| matches!(slot.content, Content::Seal(_)));
    match is_seal && slot_number(&item)? == 1 {
        true => Ok(Saved::default()),
        false => Ok(Saved { is_any: true, last: slot.map(|slot| slot.at) }),
    }
}

async fn last_item(ctx: &Context, id: UpdateId) -> Result<Option<Item>, Error> {
    let query = Slot::of_update(id).query(None, Order::Descending, 1);
    Ok(store::query(ctx, &query).await?.items.pop())
}

pub(super) fn slot_number(item: &Item) -> Result<u64, Error> {
    Ok(Slot::number_in(&item.key)?)
}

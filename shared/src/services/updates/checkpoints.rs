//! Checkpoints: texts that a running update saves one after the other, whole or as a delta to the previous one.
//!
//! A delta is applied, and its result checked, before it is acknowledged. So it must be appended to exactly the log that
//! it was applied to: into the slot after the last one read. If that slot is taken, it is checked again. Any process can
//! then replay the log.

use bytes::Bytes;

use super::{log, room};
use crate::cache::LastText;
use crate::context::Context;
use crate::domain::claims::Claims;
use crate::domain::ids::UpdateId;
use crate::domain::saves::{self, Delta, DeltaError, Outcome, Saved, Whole};
use crate::layout::{Content, Numbered, Record, Slot};
use crate::limits::DEPLOYMENT_BYTES_MAX;
use crate::ports::{Expect, Refusal};
use crate::services::error::InvalidInput;
use crate::services::store::compression::{declared_length, gunzip, refuse_plaintext};
use crate::services::store::retry::Attempts;
use crate::services::{Error, store, work};

/// Memory for a replay, as a multiple of the text: it holds each body and the text that results from it.
const REPLAY_FACTOR: usize = 2;

/// The format of a saved body.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// [`Whole`].
    Whole,
    /// [`Delta`].
    Delta,
}

/// Saves the text of a request. `body` is its JSON; `gzip` is the same, as the client compressed it. Takes one write if
/// this process wrote the previous checkpoint; otherwise it reads the log first. A repeat, or a checkpoint older than the
/// last one, is acknowledged without effect.
///
/// # Errors
/// `UpdateError::NoFit` for a delta to something other than the last checkpoint; [`Error::Invalid`] for a text that is
/// not a deployment; `UpdateError::Fenced` when the update accepts no more. Nothing is stored then.
pub async fn save(ctx: &Context, claims: &Claims, kind: Kind, body: Bytes, gzip: Bytes) -> Result<(), Error> {
    log::check_may_append(ctx, claims, log::SaveProtocol::Whole).await?;
    let id = claims.update;
    let (mut stored, mut has_room) = (None, false);
    let mut attempts = Attempts::at("the update's log");
    loop {
        attempts.begin()?;
        let remembered = ctx.memory.texts.take(id);
        let is_fresh = remembered.is_none();
        let last = match remembered {
            Some(last) => last,
            None => read_last(ctx, id).await?,
        };
        let (text, base) = (body.clone(), last.saved.clone());
        let bytes = text.len() + base.as_ref().map_or(0, |base| base.text.len());
        let judged = match work::on(bytes, move || judge(kind, &text, base.as_ref())).await {
            Ok(Outcome::Next(next)) => {
                let inspected = match has_room {
                    true => room::time_of(next.text.clone()).await,
                    false => room::inspect(next.text.clone()).await,
                };
                inspected.map(|_| Outcome::Next(next))
            }
            judged => judged,
        };
        has_room |= matches!(judged, Ok(Outcome::Next(_)));
        // The remembered text may be older than the log. An append detects that; any other outcome must read the log.
        if !is_fresh && !matches!(judged, Ok(Outcome::Next(_))) {
            continue;
        }
        let next = match judged {
            Ok(Outcome::Next(next)) => next,
            Ok(Outcome::Old) => {
                ctx.memory.texts.put(id, last);
                return Ok(());
            }
            Err(refused) => {
                ctx.memory.texts.put(id, last);
                return Err(refused);
            }
        };
        if stored.is_none() {
            let part = ctx.ids.revision().0;
            stored = Some(store::keep(ctx, || Slot::new_blob(id, part), gzip.clone()).await?);
        }
        let Some((payload, tail)) = stored.clone() else { continue };
        let numbered = Numbered { sequence: next.sequence, payload };
        let content = match kind {
            Kind::Whole => Content::Verbatim(numbered),
            Kind::Delta => Content::Delta(numbered),
        };
        let (at, number) = (ctx.now(), last.slot + 1);
        let slot = Slot { at, content, made: None };
        let write = store::put_with(ctx, Slot::key(id, number), Expect::Absent, &slot, &tail);
        match store::commit(ctx, vec![write]).await? {
            Ok(()) => {
                ctx.memory.tails.put(id, ctx.now(), number);
                ctx.memory.texts.put(id, LastText { slot: number, saved: Some(next) });
                return Ok(());
            }
            Err(Refusal { current, .. }) => {
                ctx.memory.tails.forget(&id);
                if let Some(item) = &current {
                    log::refuse_sealed(&Slot::decode(&item.value)?)?;
                }
            }
        }
    }
}

/// Decides about a request, given the last checkpoint. Whether the text is a deployment is left to the caller. Pure, but
/// slow for long texts.
fn judge(kind: Kind, body: &[u8], last: Option<&Saved>) -> Result<Outcome, Error> {
    let outcome = match kind {
        Kind::Whole => parse::<Whole<'_>>(body)?.onto(last),
        Kind::Delta => parse::<Delta<'_>>(body)?.onto(last, DEPLOYMENT_BYTES_MAX)?,
    };
    if let Outcome::Next(next) = &outcome {
        refuse_plaintext(&next.text)?;
    }
    Ok(outcome)
}

fn parse<'a, T: serde::Deserialize<'a>>(body: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| Error::Invalid(InvalidInput::BodyShape(error)))
}

/// Reads the last text of a log. One query, and the blobs of the text and its deltas.
///
/// # Errors
/// `UpdateError::Fenced` when the log is sealed.
async fn read_last(ctx: &Context, id: UpdateId) -> Result<LastText, Error> {
    let items = store::query_all(ctx, Slot::of_update(id), usize::MAX).await?;
    let slot = items.last().map(log::slot_number).transpose()?.unwrap_or(0);
    let mut slots = Vec::with_capacity(items.len());
    for item in &items {
        let (slot, tail) = Slot::decode_with(&item.value)?;
        log::refuse_sealed(&slot)?;
        slots.push((slot.content, tail));
    }
    let mut chain = Vec::new();
    for index in saves::last_chain(slots.iter().map(|(content, _)| content.save())) {
        let Some((content, tail)) = slots.get(index) else { continue };
        let Some(payload) = content.payload() else { continue };
        let kind = if matches!(content, Content::Delta(_)) { Kind::Delta } else { Kind::Whole };
        chain.push((kind, store::fetch(ctx, payload, tail.clone()).await?));
    }
    let bytes = chain.iter().map(|(_, gzip)| declared_length(gzip)).sum();
    let replay = move || replay(chain.iter().map(|(kind, gzip)| (*kind, gzip)));
    let saved = work::with(bytes, REPLAY_FACTOR, replay).await?;
    Ok(LastText { slot, saved })
}

/// Rebuilds the text from a whole one and the deltas after it. Each was checked when it was accepted, so the hash of the
/// last one is enough to verify all of them.
///
/// # Errors
/// [`Error::Broken`] when they do not fit: the stored log is damaged.
pub(super) fn replay<'a>(chain: impl IntoIterator<Item = (Kind, &'a Bytes)>) -> Result<Option<Saved>, Error> {
    let broken = |error: DeltaError| Error::Broken(format!("a delta in an update's log: {error}"));
    let mut last: Option<Saved> = None;
    let mut hash = None;
    for (kind, gzip) in chain {
        let body = gunzip(gzip)?;
        match kind {
            Kind::Whole => {
                last = Some(stored::<Whole<'_>>(&body)?.saved());
                hash = None;
            }
            Kind::Delta => {
                let delta = stored::<Delta<'_>>(&body)?;
                let base = last.ok_or_else(|| broken(DeltaError::NoBase))?;
                last = Some(delta.unchecked(&base, DEPLOYMENT_BYTES_MAX).map_err(broken)?);
                hash = Some(delta.checkpoint_hash.into_owned());
            }
        }
    }
    match (&last, hash) {
        (Some(saved), Some(hash)) if !saved.has_hash(&hash) => Err(broken(DeltaError::Hash)),
        _ => Ok(last),
    }
}

fn stored<'a, T: serde::Deserialize<'a>>(body: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(body)
        .map_err(|error| Error::Broken(format!("a checkpoint in an update's log: {error}")))
}

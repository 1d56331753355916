//! The previews of a stack. A preview takes no lock and makes no version; what is kept of it goes after a while.

use futures::future::try_join_all;

use super::takeover;
use crate::context::Context;
use crate::domain::ids::UpdateId;
use crate::domain::names::StackAddress;
use crate::domain::update::Update;
use crate::layout::{Key, Preview, Record, UpdateDetail, UpdateSummary};
use crate::ports::{Expect, Write};
use crate::services::caller::Caller;
use crate::services::store::page::PageOf;
use crate::services::store::stack_lookup::Located;
use crate::services::{Error, store};

/// Of the previews that started from one version only so many are looked at, the first ones.
const PREVIEWS_MAX: usize = 1_000;

/// Previews on one page, at most: each costs three reads, which go side by side.
pub const PAGE_MAX: u64 = 100;

/// Where the entry of a preview lies. It goes when the preview's record does.
pub(super) fn entry_key(id: UpdateId, update: &Update) -> Key<Preview> {
    Preview::key(update.stack, update.base_version, update.created, id)
}

/// The entry of a preview that starts, in its stack's list.
pub(super) fn entry_write(ctx: &Context, id: UpdateId, update: &Update) -> Write {
    store::put(ctx, entry_key(id, update), Expect::Any, &Preview { update: id })
}

/// What is known of a preview.
#[derive(Debug)]
pub struct Previewed {
    /// Its id.
    pub id: UpdateId,
    /// Its record.
    pub update: Update,
    /// What it was started with.
    pub detail: UpdateDetail,
    /// What would be done, once its engine said so.
    pub summary: Option<UpdateSummary>,
}

/// Some previews.
#[derive(Debug)]
pub struct Previews {
    /// Those on the page.
    pub page: Vec<Previewed>,
    /// How many there are in all.
    pub total: u64,
    /// The stack's version.
    pub newest: u64,
}

/// A page of the previews that started from a version of the stack; from the current one where none is named.
///
/// # Errors
/// As [`takeover::locate_settled`].
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    version: Option<u64>,
    page: PageOf,
    oldest_first: bool,
) -> Result<Previews, Error> {
    let Located { id, head } = takeover::locate_settled(ctx, caller, address).await?;
    let newest = head.value.version;
    let mut entries =
        store::query_all(ctx, Preview::of_version(id, version.unwrap_or(newest)), PREVIEWS_MAX).await?;
    if !oldest_first {
        entries.reverse();
    }
    let size = page.size.clamp(1, PAGE_MAX);
    let skip = size.saturating_mul(page.page.saturating_sub(1));
    let shown = entries
        .iter()
        .skip(usize::try_from(skip).unwrap_or(usize::MAX))
        .take(usize::try_from(size).unwrap_or(usize::MAX));
    let shown = try_join_all(shown.map(|entry| async {
        let id = Preview::decode(&entry.value)?.update;
        let (update, detail, summary) = (Update::key(id), UpdateDetail::key(id), UpdateSummary::key(id));
        let (update, detail, summary) = futures::try_join!(
            store::read(ctx, &update),
            store::read(ctx, &detail),
            store::read(ctx, &summary),
        )?;
        // It has just gone.
        let Some(update) = update else { return Ok::<_, Error>(None) };
        let detail = detail.map(|detail| detail.value).unwrap_or_default();
        Ok(Some(Previewed {
            id,
            update: update.value,
            detail,
            summary: summary.map(|summary| summary.value),
        }))
    }));
    Ok(Previews { page: shown.await?.into_iter().flatten().collect(), total: entries.len() as u64, newest })
}

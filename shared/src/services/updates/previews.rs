//! The previews of a stack. A preview takes no lock and creates no version; its records are erased after a while.

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

/// The maximum number of previews read for one base version. Later ones are not listed.
const PREVIEWS_MAX: usize = 1_000;

/// The maximum number of previews on one page. Each costs three reads, which run in parallel.
pub const PAGE_MAX: u64 = 100;

/// The key of a preview's list entry. The entry is erased together with the preview's record.
pub(super) fn entry_key(id: UpdateId, update: &Update) -> Key<Preview> {
    Preview::key(update.stack, update.base_version, update.created, id)
}

/// The write that lists a starting preview under its stack.
pub(super) fn entry_write(ctx: &Context, id: UpdateId, update: &Update) -> Write {
    store::put(ctx, entry_key(id, update), Expect::Any, &Preview { update: id })
}

/// The stored records of a preview.
#[derive(Debug)]
pub struct Previewed {
    /// The update ID of the preview.
    pub id: UpdateId,
    /// The update record of the preview.
    pub update: Update,
    /// The message, environment and configuration that the client sent with it.
    pub detail: UpdateDetail,
    /// The planned changes, once the engine has sent them.
    pub summary: Option<UpdateSummary>,
}

/// A page of previews.
#[derive(Debug)]
pub struct Previews {
    /// The previews on the page.
    pub page: Vec<Previewed>,
    /// The number of previews in total.
    pub total: u64,
    /// The current version of the stack.
    pub newest: u64,
}

/// Lists the previews that started from a version of the stack, by default the current one.
///
/// # Errors
/// Those of [`takeover::locate_settled`].
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
    let sees_values = caller.sees_values(ctx, &head.value.address).await?;
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
        // The preview was erased after the list was read.
        let Some(update) = update else { return Ok::<_, Error>(None) };
        let detail = detail.map(|detail| detail.value).unwrap_or_default();
        Ok(Some(Previewed {
            id,
            update: update.value,
            detail: if sees_values { detail } else { detail.without_values() },
            summary: summary.map(|summary| summary.value),
        }))
    }));
    Ok(Previews { page: shown.await?.into_iter().flatten().collect(), total: entries.len() as u64, newest })
}

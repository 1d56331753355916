//! The previews of a stack. A preview takes no lock and creates no version; its records are erased after a while.

use futures::future::try_join_all;

use super::takeover;
use crate::context::Context;
use crate::domain::ids::UpdateId;
use crate::domain::names::StackAddress;
use crate::domain::update::Update;
use crate::layout::{Key, Preview, Record, UpdateDetail, UpdateSummary};
use crate::ports::{Expect, Item, Order, Write};
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
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

/// The stored records of a preview, or of another update without an entry in the history.
#[derive(Debug)]
pub struct Previewed {
    pub id: UpdateId,
    /// Its update record.
    pub update: Update,
    /// The message, environment and configuration that the client sent with it.
    pub detail: UpdateDetail,
    /// The changes, once the engine has sent them.
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
    let ids = shown.map(listed).collect::<Result<Vec<_>, _>>()?;
    let total = entries.len() as u64;
    Ok(Previews { page: read_all(ctx, ids, sees_values).await?, total, newest })
}

/// A page of the previews of all versions.
#[derive(Debug)]
pub struct AllPreviews {
    /// The previews on the page.
    pub page: Vec<Previewed>,
    /// The position of the next page; `None` on the last.
    pub next: Option<String>,
    /// The current version of the stack.
    pub newest: u64,
}

/// Lists the previews of a stack: those of the newest version first, and of each version the newest first. `size` is
/// at most [`PAGE_MAX`]. A page is a key range, so its cost does not depend on its position.
///
/// # Errors
/// Those of [`takeover::locate_settled`]; [`InvalidInput::ContinuationToken`] for a position that no page had.
pub async fn list_all(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    after: Option<String>,
    size: u64,
) -> Result<AllPreviews, Error> {
    let Located { id, head } = takeover::locate_settled(ctx, caller, address).await?;
    let prefix = Preview::of_stack(id);
    // A position is valid only within the prefix.
    if after.as_ref().is_some_and(|after| !after.starts_with(&prefix.sort)) {
        return Err(InvalidInput::ContinuationToken.into());
    }
    let sees_values = caller.sees_values(ctx, &head.value.address).await?;
    let limit = usize::try_from(size.clamp(1, PAGE_MAX)).unwrap_or(1);
    let found = store::query(ctx, &prefix.query(after, Order::Descending, limit)).await?;
    let last = found.items.last().map(|item| item.key.sort.clone());
    let ids = found.items.iter().map(listed).collect::<Result<Vec<_>, _>>()?;
    Ok(AllPreviews {
        page: read_all(ctx, ids, sees_values).await?,
        next: last.filter(|_| found.more),
        newest: head.value.version,
    })
}

/// The preview that an entry of the list names.
fn listed(entry: &Item) -> Result<UpdateId, Error> {
    Ok(Preview::decode(&entry.value)?.update)
}

/// The records of these previews, without those that were erased after the list was read.
async fn read_all(ctx: &Context, ids: Vec<UpdateId>, sees_values: bool) -> Result<Vec<Previewed>, Error> {
    let records = ids.into_iter().map(|id| async move {
        let (key, rest) = (Update::key(id), read_rest(ctx, id, sees_values));
        let (update, (detail, summary)) = futures::try_join!(store::read(ctx, &key), rest)?;
        let update = update.map(|update| update.value);
        Ok::<_, Error>(update.map(|update| Previewed { id, update, detail, summary }))
    });
    Ok(try_join_all(records).await?.into_iter().flatten().collect())
}

/// What is stored of an update besides its record: two reads in parallel.
pub(in crate::services) async fn read_rest(
    ctx: &Context,
    id: UpdateId,
    sees_values: bool,
) -> Result<(UpdateDetail, Option<UpdateSummary>), Error> {
    let (detail, summary) = (UpdateDetail::key(id), UpdateSummary::key(id));
    let (detail, summary) = futures::try_join!(store::read(ctx, &detail), store::read(ctx, &summary))?;
    let detail = detail.map(|detail| detail.value).unwrap_or_default();
    let detail = if sees_values { detail } else { detail.without_values() };
    Ok((detail, summary.map(|summary| summary.value)))
}

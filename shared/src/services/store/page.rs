//! Pages of lists: which one a caller requests, and where the next one starts.

use super::super::Error;
use super::query;
use crate::context::Context;
use crate::layout::KeyPrefix;
use crate::ports::{Item, Order};

/// The page of a list that a caller requests.
#[derive(Debug, Clone, Copy)]
pub struct PageOf {
    /// The number of entries on a page; at least 1.
    pub size: u64,
    /// The number of the page, from 1.
    pub page: u64,
}

/// Reads one page of the items with this prefix, by key. Returns the position to pass as `after` for the next page,
/// which is the last sort key; `None` on the last page. One query.
pub(in crate::services) async fn read<T>(
    ctx: &Context,
    prefix: KeyPrefix<T>,
    after: Option<String>,
    limit: usize,
) -> Result<(Vec<Item>, Option<String>), Error> {
    let page = query(ctx, &prefix.query(after, Order::Ascending, limit)).await?;
    let last = page.items.last().map(|item| item.key.sort.clone());
    Ok((page.items, last.filter(|_| page.more)))
}

/// As [`read`], with positions that leave out the prefix.
pub(in crate::services) async fn read_without_prefix<T>(
    ctx: &Context,
    prefix: KeyPrefix<T>,
    after: Option<String>,
    limit: usize,
) -> Result<(Vec<Item>, Option<String>), Error> {
    let start = prefix.sort.clone();
    let after = after.map(|after| format!("{start}{after}"));
    let (items, next) = read(ctx, prefix, after, limit).await?;
    Ok((items, next.and_then(|next| next.strip_prefix(&start).map(str::to_owned))))
}

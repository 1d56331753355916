//! Pages of lists: which one a caller requests, and where the next one starts.

use super::super::Error;
use super::{get, query};
use crate::context::Context;
use crate::domain::access::NameRange;
use crate::layout::KeyPrefix;
use crate::ports::{Item, ItemKey, Order};

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

/// The keys of a list whose items have `PROJECT/NAME` in their keys.
pub(in crate::services) struct Named<'a, T> {
    /// The keys of all names.
    pub(in crate::services) all: KeyPrefix<T>,
    /// The keys that the list is about, which are all or a part of them.
    pub(in crate::services) listed: KeyPrefix<T>,
    /// What follows the name in a key; empty if the key ends with it.
    pub(in crate::services) end: &'static str,
    /// The names that the caller may see, in order.
    pub(in crate::services) names: &'a [NameRange],
}

/// Keys next to each other: those with a prefix, or one.
#[derive(Debug, PartialEq, Eq)]
struct Keys {
    sort: String,
    is_one: bool,
}

impl Keys {
    /// Whether all of them come before what follows this position.
    fn are_over(&self, after: &str) -> bool {
        match self.is_one {
            true => *self.sort <= *after,
            false => *self.sort < *after && !after.starts_with(&self.sort),
        }
    }
}

impl<T> Named<'_, T> {
    /// The keys to read, in order.
    fn keys(&self) -> Vec<Keys> {
        let listed = &self.listed.sort;
        let keys = self.names.iter().filter_map(|range| {
            let end = if range.is_whole { self.end } else { "" };
            let sort = format!("{}{}{end}", self.all.sort, range.start);
            let is_one = range.is_whole && self.end.is_empty();
            if sort.starts_with(listed) {
                return Some(Keys { sort, is_one });
            }
            (!is_one && listed.starts_with(&sort)).then(|| Keys { sort: listed.clone(), is_one: false })
        });
        keys.collect()
    }
}

/// Reads one page as [`read`] does, but only the names that the caller may see: one query or read for each range, until
/// the page is full.
pub(in crate::services) async fn read_named<T>(
    ctx: &Context,
    named: &Named<'_, T>,
    after: Option<String>,
    limit: usize,
) -> Result<(Vec<Item>, Option<String>), Error> {
    let mut items: Vec<Item> = Vec::new();
    let keys = named.keys();
    let mut left = keys.into_iter().filter(|keys| !after.as_deref().is_some_and(|at| keys.are_over(at)));
    while let Some(Keys { sort, is_one }) = left.next() {
        let more = match is_one {
            true => {
                items.extend(get(ctx, &ItemKey::new(named.listed.partition.clone(), sort)).await?);
                false
            }
            false => {
                // A position is valid only within the prefix.
                let after = after.clone().filter(|after| after.starts_with(&sort));
                let prefix = named.listed.within(sort);
                let page = query(ctx, &prefix.query(after, Order::Ascending, limit - items.len())).await?;
                items.extend(page.items);
                page.more
            }
        };
        if more || (items.len() >= limit && left.next().is_some()) {
            let next = items.last().map(|item| item.key.sort.clone());
            return Ok((items, next));
        }
    }
    Ok((items, None))
}

/// As [`read_named`], with positions that leave out the prefix of all names.
pub(in crate::services) async fn read_named_without_prefix<T>(
    ctx: &Context,
    named: &Named<'_, T>,
    after: Option<String>,
    limit: usize,
) -> Result<(Vec<Item>, Option<String>), Error> {
    let start = &named.all.sort;
    let after = after.map(|after| format!("{start}{after}"));
    let (items, next) = read_named(ctx, named, after, limit).await?;
    Ok((items, next.and_then(|next| next.strip_prefix(start).map(str::to_owned))))
}

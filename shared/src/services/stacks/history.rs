//! The history of a stack, newest first. Each published version is one entry; previews are not included. An update or a
//! preview can also be found by its ID, as long as its record is kept.

use crate::context::Context;
use crate::domain::names::StackAddress;
use crate::domain::update::Status;
use crate::layout::{Record, StackVersion};
use crate::ports::Order;
use crate::services::caller::Caller;
use crate::services::error::StackError;
use crate::services::store::page::PageOf;
use crate::services::store::stack_lookup;
use crate::services::store::stack_lookup::Located;
use crate::services::updates::previews::{Previewed, read_rest};
use crate::services::updates::takeover;
use crate::services::{Error, store};

/// A page of a history.
#[derive(Debug)]
pub struct History {
    /// The entries, newest first.
    pub versions: Vec<StackVersion>,
    /// The current version of the stack, which is also the total number of entries.
    pub newest: u64,
}

/// Lists a page of the history, or all of it. A page is a key range, so its cost does not depend on its position.
///
/// # Errors
/// Those of [`takeover::locate_settled`].
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    page: Option<PageOf>,
) -> Result<History, Error> {
    let Located { id, head } = takeover::locate_settled(ctx, caller, address).await?;
    let mut history = History { versions: Vec::new(), newest: head.value.version };
    let (skip, mut wanted) = match page {
        Some(PageOf { size, page }) => (size.saturating_mul(page.saturating_sub(1)), size),
        None => (0, u64::MAX),
    };
    let sees_values = caller.sees_values(ctx, &head.value.address).await?;
    let Some(newest) = head.value.version.checked_sub(skip).filter(|newest| *newest > 0) else {
        return Ok(history);
    };
    let mut after = Some(StackVersion::key(id, newest.saturating_add(1)).sort.clone());
    loop {
        let limit = usize::try_from(wanted.min(500)).unwrap_or(500);
        let query = StackVersion::of_stack(id).query(after.take(), Order::Descending, limit);
        let page = store::query(ctx, &query).await?;
        for item in &page.items {
            history.versions.push(shown(StackVersion::decode(&item.value)?, sees_values));
        }
        wanted = wanted.saturating_sub(page.items.len() as u64);
        after = page.items.last().map(|item| item.key.sort.clone());
        if !page.more || wanted == 0 {
            return Ok(history);
        }
    }
}

/// Returns one entry, by default the newest, and the current version of the stack.
///
/// # Errors
/// [`StackError::NeverUpdated`] for a stack without a version, [`StackError::NoVersion`] for a version that does not exist.
pub async fn entry(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    version: Option<u64>,
) -> Result<(StackVersion, u64), Error> {
    let Located { id, head } = takeover::locate_settled(ctx, caller, address).await?;
    let newest = head.value.version;
    let version = match (version, newest) {
        (Some(version), _) => version,
        (None, 0) => return Err(StackError::NeverUpdated(address.clone()).into()),
        (None, newest) => newest,
    };
    let sees_values = caller.sees_values(ctx, &head.value.address).await?;
    let version = stack_lookup::read_version(ctx, id, address, version).await?;
    Ok((shown(version, sees_values), newest))
}

/// What an ID of an update leads to.
#[derive(Debug)]
pub enum Found {
    /// The entry of the version that it made.
    Entry(Box<StackVersion>),
    /// The records of a preview, or of an update that has made no version yet.
    Records(Box<Previewed>),
}

/// Finds an update or a preview by its ID, and returns it with the current version of the stack. Takes the head, the
/// record, and then the version or two more reads in parallel.
///
/// # Errors
/// Those of [`stack_lookup::update`]. An update whose record was erased is not found.
pub async fn of_update(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    update: &str,
) -> Result<(Found, u64), Error> {
    let (Located { id: stack, head }, id, record) =
        stack_lookup::update(ctx, caller, address, update).await?;
    let (head, update) = (head.value, record.value);
    let sees_values = caller.sees_values(ctx, &head.address).await?;
    if !update.dry_run && matches!(update.status, Status::Ended { .. }) {
        let key = StackVersion::key(stack, update.base_version.saturating_add(1));
        let version = store::read(ctx, &key).await?.map(|version| version.value);
        if let Some(version) = version.filter(|version| version.update == id) {
            return Ok((Found::Entry(Box::new(shown(version, sees_values))), head.version));
        }
    }
    let (detail, summary) = read_rest(ctx, id, sees_values).await?;
    Ok((Found::Records(Box::new(Previewed { id, update, detail, summary })), head.version))
}

/// A version as a caller sees it.
fn shown(version: StackVersion, sees_values: bool) -> StackVersion {
    match sees_values {
        true => version,
        false => StackVersion { detail: version.detail.without_values(), ..version },
    }
}

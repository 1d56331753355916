//! Finds stacks, their versions and their updates. Only reads.

use bytes::Bytes;

pub use super::located::Located;
use crate::account;
use crate::cache::REMEMBERED_FOR;
use crate::context::Context;
use crate::domain::ids::{StackId, UpdateId};
use crate::domain::names::{OrgName, ProjectName, StackAddress, StackName};
use crate::domain::update::Update;
use crate::layout::{FormerStackName, Snapshot, StackEntry, StackHead, StackVersion, Stored};
use crate::ports::Order;
use crate::services::caller::Caller;
use crate::services::error::{StackError, UpdateError};
use crate::services::{Error, store};

/// Finds a stack for a caller. Takes one read of the head if the name is cached, otherwise two reads in sequence. A request
/// may have begun them before its caller was known.
///
/// # Errors
/// [`StackError::NotFound`] when it does not exist, and also when the caller may not see its organization;
/// `AccessError::NotAllowed`.
pub async fn locate(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<Located, Error> {
    let missing = || Error::Stack(StackError::NotFound(address.clone()));
    // Checked before anything is read, so that the response time does not reveal what exists.
    caller.check_stack(ctx, address, missing).await?;
    let found = match caller.search(address) {
        Some(search) => search.found().await?,
        None => find(ctx, address).await?,
    };
    found.ok_or_else(missing)
}

/// Finds the stack whose data keys a request uses. Like [`locate`]; if no stack has that name, finds the one that had it
/// last. Old versions of a renamed stack contain its old name, and the client sends the name that it finds there.
///
/// # Errors
/// Those of [`locate`].
pub async fn locate_keys(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<StackId, Error> {
    match locate(ctx, caller, address).await {
        Err(Error::Stack(StackError::NotFound(address))) => {
            let renamed = find_renamed(ctx, caller, &address).await?;
            renamed.map(|located| located.id).ok_or(Error::Stack(StackError::NotFound(address)))
        }
        found => found.map(|located| located.id),
    }
}

/// Finds the stack that had this name last, for a caller with the needed role under both names.
pub(crate) async fn find_renamed(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
) -> Result<Option<Located>, Error> {
    let missing = || Error::Stack(StackError::NotFound(address.clone()));
    match caller.check_stack(ctx, address, missing).await {
        Err(Error::Stack(StackError::NotFound(_))) => return Ok(None),
        checked => drop(checked?),
    }
    let Some(alias) = store::read(ctx, &FormerStackName::key(address)).await? else { return Ok(None) };
    let id = alias.value.id;
    let head = store::read(ctx, &StackHead::key(id)).await?;
    let Some(head) = head.filter(|head| head.value.deleted.is_none()) else { return Ok(None) };
    match caller.check_stack(ctx, &head.value.address, missing).await {
        Err(Error::Stack(StackError::NotFound(_))) => Ok(None),
        checked => checked.map(|_| Some(Located { id, head })),
    }
}

/// Finds a stack by its address, without checking a caller.
pub(crate) async fn find(ctx: &Context, address: &StackAddress) -> Result<Option<Located>, Error> {
    find_after(ctx, address, async {}).await
}

/// The same. If its name is not cached, reads no more than that until `known` ends.
pub(crate) async fn find_after(
    ctx: &Context,
    address: &StackAddress,
    known: impl Future<Output = ()>,
) -> Result<Option<Located>, Error> {
    if let Some(id) = ctx.memory.names.get(address, ctx.now(), REMEMBERED_FOR) {
        if let Some(located) = with_head(ctx, address, id).await? {
            return Ok(Some(located));
        }
        ctx.memory.names.forget(address);
    }
    let name = store::read(ctx, &StackEntry::key(address)).await;
    known.await;
    let Some(name) = name? else { return Ok(None) };
    let located = with_head(ctx, address, name.value.id).await?;
    if let Some(Located { id, .. }) = &located {
        ctx.memory.names.put(address.clone(), ctx.now(), *id);
    }
    Ok(located)
}

/// The stack with this ID and its head, if it has this address.
async fn with_head(ctx: &Context, address: &StackAddress, id: StackId) -> Result<Option<Located>, Error> {
    let head = store::read(ctx, &StackHead::key(id)).await?;
    let head = head.filter(|head| head.value.address == *address && head.value.deleted.is_none());
    Ok(head.map(|head| Located { id, head }))
}

/// Whether neither the name of a stack nor the rights in its organization are cached.
pub(crate) fn is_news(ctx: &Context, address: &StackAddress) -> bool {
    let (memory, now) = (&ctx.memory, ctx.now());
    memory.names.get(address, now, REMEMBERED_FOR).is_none()
        && memory.access.get(&address.org, now, REMEMBERED_FOR).is_none()
}

pub(crate) async fn read_name(ctx: &Context, address: &StackAddress) -> Result<Stored<StackEntry>, Error> {
    store::read(ctx, &StackEntry::key(address))
        .await?
        .ok_or_else(|| Error::Stack(StackError::NotFound(address.clone())))
}

/// Fetches the gzip of a snapshot. Also reserves the memory for work that holds the inflated text `factor` times, with the
/// tables of its resources: a request that holds the gzip while it waits for the rest would block others.
pub(crate) async fn fetch_snapshot(
    ctx: &Context,
    snapshot: &Snapshot,
    factor: usize,
) -> Result<Bytes, Error> {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let (gzip, text) = (bytes(snapshot.bytes_gzip), bytes(snapshot.bytes_text));
    let tables = if factor > 0 { snapshot.table_bytes() } else { 0 };
    account::take_ahead(gzip.saturating_add(text.saturating_mul(factor)).saturating_add(tables)).await?;
    store::fetch_blob(ctx, &snapshot.blob, &snapshot.sha256).await
}

pub(crate) async fn read_version(
    ctx: &Context,
    id: StackId,
    address: &StackAddress,
    version: u64,
) -> Result<StackVersion, Error> {
    if let Some(found) = store::read(ctx, &StackVersion::key(id, version)).await? {
        return Ok(found.value);
    }
    // Versions are erased oldest first, so a version below the oldest one existed once.
    let query = StackVersion::of_stack(id).query(None, Order::Ascending, 1);
    let page = store::query(ctx, &query).await?;
    let oldest = page.items.first().and_then(|item| StackVersion::number_in(&item.key).ok());
    let address = address.clone();
    Err(match oldest {
        Some(oldest) if (1..oldest).contains(&version) => {
            Error::Stack(StackError::Pruned { address, version, oldest })
        }
        Some(_) | None => Error::Stack(StackError::NoVersion { address, version }),
    })
}

/// Finds an update of a stack by its ID.
///
/// # Errors
/// [`UpdateError::NotFound`] when the stack has no update of this ID.
pub async fn update(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    update: &str,
) -> Result<(Located, UpdateId, Stored<Update>), Error> {
    let located = locate(ctx, caller, address).await?;
    let missing = || {
        Error::Update(UpdateError::NotFound {
            address: address.clone(),
            update: update.chars().take(60).collect(),
        })
    };
    let id = UpdateId::parse(update).ok_or_else(missing)?;
    let record = store::read(ctx, &Update::key(id)).await?.ok_or_else(missing)?;
    if record.value.stack != located.id {
        return Err(missing());
    }
    Ok((located, id, record))
}

/// Parses the address of a stack from the parts of a path.
///
/// # Errors
/// [`Error::InvalidName`] for a part that breaks its rule.
pub fn address(org: &str, project: &str, stack: &str) -> Result<StackAddress, Error> {
    Ok(StackAddress {
        org: OrgName::parse(org)?,
        project: ProjectName::parse(project)?,
        stack: StackName::parse(stack)?,
    })
}

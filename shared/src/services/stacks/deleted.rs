//! Deleted stacks: hidden, open to undelete for a while, and then erased with everything that belongs to them.

use super::LIST_PAGE;
use crate::context::Context;
use crate::domain::access::{Tags, Unit};
use crate::domain::ids::StackId;
use crate::domain::names::{Login, OrgName, StackAddress};
use crate::domain::role::Right;
use crate::domain::update::Update;
use crate::layout::{
    DeletedStack, FormerStackName, FormerStackNameEntry, KeyPrefix, NewestVersion, Record, StackEntry,
    StackHead, StackOutputs, StackVersion, Stored, UpdateEntry, WrappedDataKey, check, delete,
};
use crate::ports::{Expect, ItemKey, Order, Page, Timestamp};
use crate::services::audit::About;
use crate::services::caller::Caller;
use crate::services::error::StackError;
use crate::services::store::deletion::{commit_to_erase, deletions, erase_former_names, undeletable_until};
use crate::services::store::due::{BLOB_OUTLIVES, Next, Pages, Swept, due_write};
use crate::services::store::page::{Named, read_named};
use crate::services::store::retry::Attempts;
use crate::services::updates::retention;
use crate::services::{Error, audit, store};

/// A stack that was deleted and can be undeleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// The address of the stack when it was deleted.
    pub address: StackAddress,
    /// The ID, which distinguishes stacks that had the same address.
    pub id: StackId,
    /// When it was deleted.
    pub at: Timestamp,
    /// The user who deleted it.
    pub by: Login,
    /// Until when it can be undeleted.
    pub until: Timestamp,
    /// The last version; 0 for a stack without one.
    pub version: u64,
    /// When the last version was published.
    pub last_update: Option<Timestamp>,
    /// The number of resources in the last version.
    pub resource_count: Option<u64>,
    /// The last version; `None` for a stack without one.
    pub newest: Option<NewestVersion>,
}

/// Lists the deleted stacks of an organization that can be undeleted, by project and name, for the operator. Takes one
/// query, and two reads for each stack whose last version an older program published.
///
/// # Errors
/// Those of the ports.
pub async fn list(ctx: &Context, org: &OrgName) -> Result<Vec<Deleted>, Error> {
    let found = deletions(ctx, DeletedStack::of_org(org, None)).await?;
    let mut stacks = Vec::with_capacity(found.len());
    for (key, deleted) in found {
        let (project, stack) = DeletedStack::name_in(&key)?;
        let address = StackAddress { org: org.clone(), project, stack };
        stacks.extend(view(ctx, address, deleted.value).await?);
    }
    Ok(stacks)
}

/// Lists one page of the deleted stacks that the caller may see, by project and name, each with whether the caller may
/// undelete it, and the start of the next page. Queries as the list of stacks does.
///
/// # Errors
/// `AccessError::NoOrg`, `AccessError::NotAllowed`.
pub async fn list_page(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    after: Option<String>,
) -> Result<(Vec<(Deleted, bool)>, Option<String>), Error> {
    let sight = caller.lists(ctx, org).await?;
    let names = &sight.names();
    let (all, listed) = (DeletedStack::of_org(org, None), DeletedStack::of_org(org, None));
    let named = Named { all, listed, end: "#", names };
    let (items, next) = read_named(ctx, &named, after, LIST_PAGE).await?;
    let mut stacks = Vec::with_capacity(items.len());
    for item in &items {
        let (project, stack) = DeletedStack::name_in(&item.key)?;
        let address = StackAddress { org: org.clone(), project, stack };
        let deleted = DeletedStack::decode(&item.value)?;
        let unit = Unit::stack(&address, Tags::Tags(&deleted.name.tags));
        if !sight.shows(&unit) {
            continue;
        }
        let may_undelete = sight.on(&unit).0.has(Right::Admin);
        stacks.extend(view(ctx, address, deleted).await?.map(|deleted| (deleted, may_undelete)));
    }
    Ok((stacks, next))
}

/// `None` for a stack that is being erased at this moment.
async fn view(ctx: &Context, address: StackAddress, deleted: DeletedStack) -> Result<Option<Deleted>, Error> {
    let DeletedStack { at, by, name } = deleted;
    let newest = match (name.newest, name.last_update) {
        (None, Some(_)) => {
            let Some(head) = store::read(ctx, &StackHead::key(name.id)).await? else { return Ok(None) };
            newest(ctx, name.id, head.value.version).await?
        }
        (newest, _) => newest,
    };
    Ok(Some(Deleted {
        address,
        id: name.id,
        at,
        by,
        until: undeletable_until(ctx, at),
        version: newest.as_ref().map_or(0, |newest| newest.version),
        last_update: name.last_update,
        resource_count: name.resource_count,
        newest,
    }))
}

/// What an entry of today's programs says of a version.
async fn newest(ctx: &Context, id: StackId, version: u64) -> Result<Option<NewestVersion>, Error> {
    let record = store::read(ctx, &StackVersion::key(id, version)).await?.map(|record| record.value);
    Ok(record.map(|StackVersion { outcome, started, snapshot, .. }| NewestVersion {
        version,
        outcome,
        started,
        bytes: snapshot.bytes_gzip,
    }))
}

/// Undeletes a stack under its old address, with its versions, secrets and tags, for the operator. If several stacks of
/// that address were deleted, `id` selects one.
///
/// # Errors
/// [`StackError::NoneDeleted`]; [`StackError::SeveralDeleted`] without an ID; [`StackError::Exists`] when the name is
/// taken.
pub async fn undelete(ctx: &Context, address: &StackAddress, id: Option<StackId>) -> Result<StackId, Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let named = DeletedStack::of_org(&address.org, Some((&address.project, &address.stack)));
        let mut found = deletions(ctx, named).await?;
        found.retain(|(_, deleted)| id.is_none_or(|id| id == deleted.value.name.id));
        let [(_, deleted)] = found.as_slice() else {
            return Err(which(address, &found).into());
        };
        let id = deleted.value.name.id;
        let head = store::read(ctx, &StackHead::key(id)).await?;
        let head = head.ok_or_else(|| Error::Broken(format!("the deleted stack {id} has no head")))?;
        if put_back(ctx, &head, deleted).await? {
            return Ok(id);
        }
    }
}

/// Undeletes a stack, for a caller with the needed right on it, and returns its address. `stack` is the name that the
/// client expects it to have, if it sent one.
///
/// # Errors
/// [`StackError::NotDeleted`], also for a stack that the caller may not see; `AccessError::NotAllowed`;
/// [`StackError::Exists`] when the name is taken.
pub async fn undelete_by_id(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    id: &str,
    stack: Option<&str>,
) -> Result<StackAddress, Error> {
    let sight = caller.lists(ctx, org).await?;
    let missing =
        || Error::from(StackError::NotDeleted { org: org.clone(), id: id.chars().take(60).collect() });
    let id = StackId::parse(id).ok_or_else(missing)?;
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let head = store::read(ctx, &StackHead::key(id)).await?.ok_or_else(missing)?;
        let address = &head.value.address;
        if address.org != *org || stack.is_some_and(|stack| stack != address.stack.as_str()) {
            return Err(missing());
        }
        let deleted = store::read(ctx, &DeletedStack::key(address, id)).await?.ok_or_else(missing)?;
        let unit = Unit::stack(address, Tags::Tags(&deleted.value.name.tags));
        caller.admit(Ok(sight.on(&unit).0), missing)?;
        if put_back(ctx, &head, &deleted).await? {
            return Ok(head.value.address);
        }
    }
}

/// Commits an undelete; false if something changed meanwhile.
async fn put_back(
    ctx: &Context,
    head: &Stored<StackHead>,
    deleted: &Stored<DeletedStack>,
) -> Result<bool, Error> {
    let (address, name) = (&head.value.address, &deleted.value.name);
    let entry = audit::entry(ctx, "stack.undelete", &About::Stack(address));
    let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
    let back = StackHead { deleted: None, trail: rider.mark(), ..head.value.clone() };
    let writes = vec![
        store::put(ctx, StackEntry::key(address), Expect::Absent, name),
        store::put(ctx, StackHead::key(name.id), head.unchanged(), &back),
        delete(DeletedStack::key(address, name.id), deleted.unchanged()),
    ];
    match audit::commit(ctx, writes, rider).await? {
        Ok(()) => Ok(true),
        Err(refusal) if refusal.index == 0 => Err(StackError::Exists(address.clone()).into()),
        Err(_) => Ok(false),
    }
}

fn which(address: &StackAddress, found: &[(ItemKey, Stored<DeletedStack>)]) -> StackError {
    let address = address.clone();
    if found.is_empty() {
        return StackError::NoneDeleted(address);
    }
    let found = found.iter().map(|(_, deleted)| (deleted.value.name.id, deleted.value.at)).collect();
    StackError::SeveralDeleted { address, found }
}

/// Erases a deleted stack when it is due: first the data keys of its secrets, then what its updates left, its versions
/// and its former names, and last its head. Blobs follow once they have outlived the delete.
pub(crate) async fn erase_when_due(ctx: &Context, stack: StackId, swept: &mut Swept) -> Result<Next, Error> {
    let head_key = StackHead::key(stack);
    let Some(head) = store::read(ctx, &head_key).await? else { return Ok(Next::Done) };
    let Some(deleted_at) = head.value.deleted else { return Ok(Next::Done) };
    let deleted = store::get(ctx, &DeletedStack::key(&head.value.address, stack)).await?;
    if let Some(deleted) = deleted {
        let expect = Expect::Revision(deleted.revision);
        let no_way_back = vec![delete(deleted.key, expect), check(head_key.clone(), head.unchanged())];
        if let Some(next) = commit_to_erase(ctx, deleted_at, no_way_back).await? {
            return Ok(next);
        }
    }
    let pages = &mut Pages::default();
    let blobs_at = deleted_at.plus(BLOB_OUTLIVES).max(ctx.now());
    let former_names = FormerStackNameEntry::of_stack(stack);
    let name_of = |entry: &FormerStackNameEntry| FormerStackName::key(&entry.address);
    let is_its = |former: &FormerStackName| former.id == stack;
    let is_gone =
        retention::erase_items(ctx, WrappedDataKey::of_owner(stack), |_| Ok(Vec::new()), blobs_at, pages)
            .await?
            && erase_updates(ctx, stack, blobs_at, pages).await?
            && erase_versions(ctx, stack, blobs_at, pages).await?
            && erase_former_names(ctx, former_names, name_of, is_its, pages).await?;
    if !is_gone {
        return Ok(Next::MoreOfIt);
    }
    let mut writes = vec![delete(head_key, Expect::Any)];
    let outputs_key = StackOutputs::key(stack);
    if let Some(outputs) = store::read(ctx, &outputs_key).await? {
        writes.push(delete(outputs_key, Expect::Any));
        let due = retention::only_blob(&outputs.value.payload);
        writes.extend(due.map(|due| due_write(ctx, &due, blobs_at)));
    }
    // The writes have no condition, so they cannot be refused.
    let _ = store::commit(ctx, writes).await?;
    swept.erased += 1;
    Ok(Next::Done)
}

async fn page<T>(ctx: &Context, prefix: KeyPrefix<T>, limit: usize) -> Result<Page, Error> {
    store::query(ctx, &prefix.query(None, Order::Ascending, limit)).await
}

async fn erase_updates(
    ctx: &Context,
    stack: StackId,
    blobs_at: Timestamp,
    pages: &mut Pages,
) -> Result<bool, Error> {
    loop {
        let page = page(ctx, UpdateEntry::of_stack(stack), 100).await?;
        if page.items.is_empty() {
            return Ok(true);
        }
        for item in &page.items {
            let update = UpdateEntry::update_in(&item.key)?;
            if !pages.take() || !retention::erase_update(ctx, update, stack, blobs_at, pages).await? {
                return Ok(false);
            }
        }
    }
}

/// The maximum number of versions that one commit erases. Each takes up to four writes: its item, and due items for its
/// snapshot, the index of that, and its outputs.
const VERSIONS_PER_COMMIT: usize = 24;

async fn erase_versions(
    ctx: &Context,
    stack: StackId,
    blobs_at: Timestamp,
    pages: &mut Pages,
) -> Result<bool, Error> {
    loop {
        let page = page(ctx, StackVersion::of_stack(stack), VERSIONS_PER_COMMIT).await?;
        if page.items.is_empty() {
            return Ok(true);
        }
        if !pages.take() {
            return Ok(false);
        }
        // Older programs wrote no entries for updates, so those are found through the versions.
        for update in page.items.iter().filter_map(|item| StackVersion::decode(&item.value).ok()) {
            let update = update.update;
            if store::read(ctx, &Update::key(update)).await?.is_some()
                && !retention::erase_update(ctx, update, stack, blobs_at, pages).await?
            {
                return Ok(false);
            }
        }
        // If they are refused, the same versions are read again.
        let _ = store::commit(ctx, retention::erase_versions(ctx, stack, &page.items, blobs_at)).await?;
    }
}

//! Stacks that were removed: they are hidden, can be brought back for a while, and then go with all that is theirs.

use crate::context::Context;
use crate::domain::ids::StackId;
use crate::domain::names::{Login, OrgName, StackAddress};
use crate::domain::update::Update;
use crate::layout::{
    DeletedStack, FormerStackName, FormerStackNameEntry, KeyPrefix, Record, StackEntry, StackHead,
    StackOutputs, StackVersion, Stored, UpdateEntry, WrappedDataKey, check, delete,
};
use crate::ports::{Expect, Item, Order, Page, Timestamp};
use crate::services::store::due::{BLOB_OUTLIVES, Next, Pages, Swept, due_write};
use crate::services::store::retry::Attempts;
use crate::services::updates::retention;
use crate::services::{Error, store};

/// A stack that was removed and can be brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemovedStack {
    /// The name that it had.
    pub address: StackAddress,
    /// Its id, which tells apart stacks that had the same name.
    pub id: StackId,
    /// When it was removed.
    pub at: Timestamp,
    /// Who removed it.
    pub by: Login,
    /// Its last version; 0 where it has none.
    pub version: u64,
    /// When that was published.
    pub last_update: Option<Timestamp>,
    /// Resources in it.
    pub resource_count: Option<u64>,
}

/// The removed stacks of an organization that can be brought back, by project and name. One query, and a read for each.
///
/// # Errors
/// Those of the ports.
pub async fn list(ctx: &Context, org: &OrgName) -> Result<Vec<RemovedStack>, Error> {
    let items = store::query_all(ctx, DeletedStack::of_org(org, None), usize::MAX).await?;
    let mut stacks = Vec::with_capacity(items.len());
    for item in &items {
        let view = view(org, item)?;
        // One without a head is being erased at this moment.
        let head = store::read(ctx, &StackHead::key(view.id)).await?;
        stacks.extend(head.map(|head| RemovedStack { version: head.value.version, ..view }));
    }
    Ok(stacks)
}

fn view(org: &OrgName, item: &Item) -> Result<RemovedStack, Error> {
    let (project, stack) = DeletedStack::name_in(&item.key)?;
    let DeletedStack { at, by, name } = DeletedStack::decode(&item.value)?;
    Ok(RemovedStack {
        address: StackAddress { org: org.clone(), project, stack },
        id: name.id,
        at,
        by,
        version: 0,
        last_update: name.last_update,
        resource_count: name.resource_count,
    })
}

/// Brings back a stack that was removed, under the name that it had, with its versions, secrets and tags. Where several
/// of that name were removed, `id` says which.
///
/// # Errors
/// [`Error::Invalid`] where there is none, or several and no id; [`Error::StackExists`] where the name is taken.
pub async fn restore(ctx: &Context, address: &StackAddress, id: Option<StackId>) -> Result<StackId, Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let named = DeletedStack::of_org(&address.org, Some((&address.project, &address.stack)));
        let items = store::query_all(ctx, named, usize::MAX).await?;
        let found = items
            .iter()
            .map(|item| Ok((item, view(&address.org, item)?)))
            .collect::<Result<Vec<_>, Error>>()?;
        let found: Vec<_> =
            found.into_iter().filter(|(_, removed)| id.is_none_or(|id| id == removed.id)).collect();
        let [(item, removed)] = found.as_slice() else {
            return Err(Error::Invalid(which(address, found.iter().map(|(_, removed)| removed))));
        };
        let (removed_item, name) =
            (Stored::<DeletedStack>::read(item)?, DeletedStack::decode(&item.value)?.name);
        let head = store::read(ctx, &StackHead::key(removed.id)).await?;
        let head =
            head.ok_or_else(|| Error::Broken(format!("the removed stack {} has no head", removed.id)))?;
        let back = StackHead { deleted: None, ..head.value.clone() };
        let writes = vec![
            store::put(ctx, StackEntry::key(address), Expect::Absent, &name),
            store::put(ctx, StackHead::key(removed.id), head.unchanged(), &back),
            delete(item.key.clone(), removed_item.unchanged()),
        ];
        match store::commit(ctx, writes).await? {
            Ok(()) => return Ok(removed.id),
            Err(refusal) if refusal.index == 0 => return Err(Error::StackExists(address.clone())),
            Err(_) => {}
        }
    }
}

fn which<'a>(address: &StackAddress, found: impl Iterator<Item = &'a RemovedStack>) -> String {
    let lines: Vec<String> =
        found.map(|removed| format!("{} (removed at {})", removed.id, removed.at.to_rfc3339())).collect();
    if lines.is_empty() {
        return format!("no removed stack {address} can be brought back");
    }
    format!("several stacks {address} were removed; say which one by its id: {}", lines.join(", "))
}

/// Looks at a stack that was removed, and erases it when its time has come: what opens its secrets first, then what its
/// updates left, its versions, its former names, and its head last. Blobs go when they have outlived the removal.
pub(crate) async fn sweep_one(ctx: &Context, stack: StackId, swept: &mut Swept) -> Result<Next, Error> {
    let head_key = StackHead::key(stack);
    let Some(head) = store::read(ctx, &head_key).await? else { return Ok(Next::Done) };
    let Some(removed_at) = head.value.deleted else { return Ok(Next::Done) };
    let removed = store::get(ctx, &DeletedStack::key(&head.value.address, stack)).await?;
    if let Some(removed) = removed {
        let until = removed_at.plus(ctx.settings.retention.removed_stacks);
        if ctx.now() < until {
            return Ok(Next::At(until));
        }
        // From here on nobody can bring it back, so nothing has to be whole any more.
        let expect = Expect::Revision(removed.revision);
        let writes = vec![delete(removed.key, expect), check(head_key.clone(), head.unchanged())];
        if store::commit(ctx, writes).await?.is_err() {
            return Ok(Next::AsItIs);
        }
    }
    let pages = &mut Pages::default();
    let blobs_at = removed_at.plus(BLOB_OUTLIVES).max(ctx.now());
    let is_gone =
        retention::erase_items(ctx, WrappedDataKey::of_owner(stack), |_| Ok(Vec::new()), blobs_at, pages)
            .await?
            && erase_updates(ctx, stack, blobs_at, pages).await?
            && erase_versions(ctx, stack, blobs_at, pages).await?
            && erase_names(ctx, stack, pages).await?;
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
    // Nothing is expected, so nothing can be refused.
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

async fn erase_versions(
    ctx: &Context,
    stack: StackId,
    blobs_at: Timestamp,
    pages: &mut Pages,
) -> Result<bool, Error> {
    loop {
        let page = page(ctx, StackVersion::of_stack(stack), 30).await?;
        if page.items.is_empty() {
            return Ok(true);
        }
        if !pages.take() {
            return Ok(false);
        }
        // Updates of before there were entries of them.
        for update in page.items.iter().filter_map(|item| StackVersion::decode(&item.value).ok()) {
            let update = update.update;
            if store::read(ctx, &Update::key(update)).await?.is_some()
                && !retention::erase_update(ctx, update, stack, blobs_at, pages).await?
            {
                return Ok(false);
            }
        }
        // Nothing is expected, so nothing can be refused.
        let _ = store::commit(ctx, retention::erase_versions(ctx, stack, &page.items, blobs_at)).await?;
    }
}

async fn erase_names(ctx: &Context, stack: StackId, pages: &mut Pages) -> Result<bool, Error> {
    loop {
        let page = page(ctx, FormerStackNameEntry::of_stack(stack), 45).await?;
        if page.items.is_empty() {
            return Ok(true);
        }
        if !pages.take() {
            return Ok(false);
        }
        for item in &page.items {
            let key = FormerStackName::key(&FormerStackNameEntry::decode(&item.value)?.address);
            let mut writes = vec![delete(item.key.clone(), Expect::Any)];
            // Another stack may have had that name since.
            if let Some(alias) = store::read(ctx, &key).await?
                && alias.value.id == stack
            {
                writes.push(delete(key, alias.unchanged()));
            }
            // Refused: another stack leaves that name right now. The next look sees it.
            let _ = store::commit(ctx, writes).await?;
        }
    }
}

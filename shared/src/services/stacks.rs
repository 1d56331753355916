//! Stacks: making, finding, listing, tagging, removing; reading their deployments and outputs.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::accounts::Caller;
use super::sweep::due_write;
use super::{Error, RACES_MAX, publish, store};
use crate::context::{Context, REMEMBERED_FOR};
use crate::domain::ids::{StackId, UpdateId};
use crate::domain::names::{OrgName, ProjectName, StackAddress, StackName, TagName};
use crate::domain::update::Update;
use crate::layout::ItemKeys;
use crate::layout::record::{Record, Stored, delete, put};
use crate::layout::records::{Alias, Due, Head, Name, Outputs, Removed, Snapshot, Version};
use crate::ports::{Expect, Order, Query};

/// A tag's value is at most this long, in bytes (the CLI's own limit).
pub const TAG_VALUE_BYTES_MAX: usize = 256;

/// A stack has at most this many tags.
pub const TAGS_MAX: usize = 200;

/// Stacks on one page of a list.
pub const LIST_PAGE: usize = 500;

/// A stack that was found: its id and its head.
#[derive(Debug, Clone)]
pub struct Located {
    /// The id.
    pub id: StackId,
    /// The head as it was read.
    pub head: Stored<Head>,
}

/// Finds a stack for a caller. One read of the head where the name is remembered, two in sequence where it is not.
///
/// # Errors
/// [`Error::NoStack`] when it does not exist, and just so when the caller may not see its organization.
pub async fn locate(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<Located, Error> {
    let missing = || Error::NoStack(address.clone());
    // Judged before anything is read, so that how long it takes tells nothing of what exists.
    if !caller.may_see(&address.org) {
        return Err(missing());
    }
    find(ctx, address).await?.ok_or_else(missing)
}

/// As [`locate`], and a stack whose running update is over is first brought to what that update saved.
///
/// # Errors
/// As [`locate`], and those of publishing.
pub async fn locate_settled(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
) -> Result<Located, Error> {
    let located = locate(ctx, caller, address).await?;
    publish::settle(ctx, located).await
}

/// Finds a stack whose secrets are meant: as [`locate`], and where no stack has that name, the one that had it last.
/// Old versions of a stack that was renamed name it so, and the client asks whom they name.
///
/// # Errors
/// As [`locate`].
pub async fn locate_keys(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<StackId, Error> {
    match locate(ctx, caller, address).await {
        Err(Error::NoStack(address)) => {
            let renamed = find_renamed(ctx, caller, &address).await?;
            renamed.map(|located| located.id).ok_or(Error::NoStack(address))
        }
        found => found.map(|located| located.id),
    }
}

/// The stack that had this name last, for who may see it under both names.
pub(crate) async fn find_renamed(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
) -> Result<Option<Located>, Error> {
    if !caller.may_see(&address.org) {
        return Ok(None);
    }
    let Some(alias) = store::read::<Alias>(ctx, &ItemKeys::alias(address)).await? else { return Ok(None) };
    let id = alias.value.id;
    let head = store::read::<Head>(ctx, &ItemKeys::head(id)).await?;
    let may_see =
        |head: &Stored<Head>| head.value.deleted.is_none() && caller.may_see(&head.value.address.org);
    Ok(head.filter(may_see).map(|head| Located { id, head }))
}

/// Finds a stack by its address, whoever asks.
pub(crate) async fn find(ctx: &Context, address: &StackAddress) -> Result<Option<Located>, Error> {
    let is_it = |head: &Stored<Head>| head.value.address == *address && head.value.deleted.is_none();
    if let Some(id) = ctx.memory.names.get(address, ctx.now(), REMEMBERED_FOR) {
        if let Some(head) = store::read::<Head>(ctx, &ItemKeys::head(id)).await?
            && is_it(&head)
        {
            return Ok(Some(Located { id, head }));
        }
        ctx.memory.names.forget(address);
    }
    let Some(name) = store::read::<Name>(ctx, &ItemKeys::name(address)).await? else { return Ok(None) };
    let id = name.value.id;
    let Some(head) = store::read::<Head>(ctx, &ItemKeys::head(id)).await? else { return Ok(None) };
    if !is_it(&head) {
        return Ok(None);
    }
    ctx.memory.names.put(address.clone(), ctx.now(), id);
    Ok(Some(Located { id, head }))
}

/// What `pulumi stack` shows.
#[derive(Debug)]
pub struct StackView {
    /// The id.
    pub id: StackId,
    /// The head.
    pub head: Head,
    /// The tags.
    pub tags: BTreeMap<String, String>,
    /// The update that holds the stack now.
    pub running: Option<Update>,
}

/// A stack with its tags and the update that holds it.
///
/// # Errors
/// As [`locate_settled`].
pub async fn get(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<StackView, Error> {
    let Located { id, head } = locate_settled(ctx, caller, address).await?;
    let name = read_name(ctx, address).await?;
    let running = match head.value.running {
        Some(update) => {
            store::read::<Update>(ctx, &ItemKeys::update(update)).await?.map(|update| update.value)
        }
        None => None,
    };
    let running = running.filter(|update| update.is_live(ctx.now()));
    Ok(StackView { id, head: head.value, tags: name.value.tags, running })
}

pub(crate) async fn read_name(ctx: &Context, address: &StackAddress) -> Result<Stored<Name>, Error> {
    store::read::<Name>(ctx, &ItemKeys::name(address)).await?.ok_or_else(|| Error::NoStack(address.clone()))
}

/// Makes a stack, with a first deployment if one is given (as `pulumi stack migrate` does).
///
/// # Errors
/// [`Error::StackExists`], [`Error::NoOrg`], and [`Error::Invalid`] for tags or a deployment that cannot be taken.
pub async fn create(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    tags: BTreeMap<String, String>,
    state: Option<Bytes>,
) -> Result<StackId, Error> {
    caller.check_org(&address.org)?;
    check_tags(&tags)?;
    let now = ctx.now();
    let id = StackId::new(ctx.ids.uuid());
    let mut head = Head {
        address: address.clone(),
        created: now,
        version: 0,
        snapshot: None,
        running: None,
        last: None,
        deleted: None,
    };
    let mut name = Name { id, tags, last_update: None, resource_count: None };
    let mut writes = Vec::new();
    if let Some(state) = state {
        let import = publish::prepare_import(ctx, caller, id, &head, state).await?;
        publish::advance(&mut head, &mut name, &import);
        writes.extend(import.writes);
    }
    writes.insert(0, put(ItemKeys::name(address), Expect::Absent, ctx.ids.revision(), name.encode()));
    writes.push(put(ItemKeys::head(id), Expect::Absent, ctx.ids.revision(), head.encode()));
    match store::commit(ctx, writes).await? {
        Ok(()) => Ok(id),
        Err(_) => Err(Error::StackExists(address.clone())),
    }
}

/// A line of a list.
#[derive(Debug)]
pub struct Listed {
    /// The stack's address.
    pub address: StackAddress,
    /// What lists show.
    pub name: Name,
}

/// What is told of a stack beside its name.
#[derive(Debug)]
pub struct Overview {
    /// The head.
    pub head: Head,
    /// The update that holds the stack. Its lease may be over: then whoever meets the stack ends it.
    pub running: Option<(UpdateId, Update)>,
}

/// The head of a stack of a list, and the update that holds it. `None` for one that is gone by now.
///
/// # Errors
/// Those of the ports.
pub async fn overview(ctx: &Context, listed: &Listed) -> Result<Option<Overview>, Error> {
    let Some(head) = store::read::<Head>(ctx, &ItemKeys::head(listed.name.id)).await? else {
        return Ok(None);
    };
    let head = head.value;
    if head.deleted.is_some() || head.address != listed.address {
        return Ok(None);
    }
    let running = match head.running {
        Some(id) => store::read::<Update>(ctx, &ItemKeys::update(id)).await?.map(|update| (id, update.value)),
        None => None,
    };
    Ok(Some(Overview { head, running }))
}

/// What a list is narrowed to.
#[derive(Debug, Default)]
pub struct ListFilter {
    /// One organization only.
    pub org: Option<String>,
    /// One project only.
    pub project: Option<String>,
    /// Stacks with this tag only.
    pub tag_name: Option<String>,
    /// Stacks whose tag has this value only.
    pub tag_value: Option<String>,
}

/// Where the next page of a list begins: the organization, and the last sort key that was seen.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ListPosition {
    org: OrgName,
    after: Option<String>,
}

/// One page of the stacks that the caller may see, by organization, project and name. One query a page.
///
/// # Errors
/// Those of the ports. An organization that the caller may not see has no stacks.
pub async fn list(
    ctx: &Context,
    caller: &Caller,
    filter: &ListFilter,
    from: Option<ListPosition>,
) -> Result<(Vec<Listed>, Option<ListPosition>), Error> {
    let mut orgs: Vec<&OrgName> = caller
        .user
        .orgs
        .iter()
        .filter(|org| filter.org.as_deref().is_none_or(|only| only == org.as_str()))
        .collect();
    orgs.sort();
    let project = match filter.project.as_deref().filter(|project| !project.is_empty()) {
        // A project that cannot exist has no stacks.
        Some(project) => match ProjectName::parse(project) {
            Ok(project) => Some(project),
            Err(_) => return Ok((Vec::new(), None)),
        },
        None => None,
    };
    let mut after = from.as_ref().and_then(|position| position.after.clone());
    let start = from.map_or(0, |position| orgs.partition_point(|org| **org < position.org));
    if orgs.get(start).is_none() {
        return Ok((Vec::new(), None));
    }
    let mut listed = Vec::new();
    for (index, org) in orgs.iter().enumerate().skip(start) {
        let (partition, prefix) = ItemKeys::names(org, project.as_ref());
        let query = Query {
            partition,
            prefix,
            after: after.take(),
            order: Order::Ascending,
            limit: LIST_PAGE - listed.len(),
        };
        let page = store::query(ctx, &query).await?;
        let last = page.items.last().map(|item| item.key.sort.clone());
        for item in &page.items {
            let (project, stack) = ItemKeys::parse_name_sort(&item.key.sort).ok_or_else(|| {
                Error::Broken(format!("{:?} is not the key of a stack name", item.key.sort))
            })?;
            let name = Name::decode(&item.value)?;
            if matches_tag(&name, filter) {
                listed.push(Listed { address: StackAddress { org: (*org).clone(), project, stack }, name });
            }
        }
        if page.more {
            return Ok((listed, Some(ListPosition { org: (*org).clone(), after: last })));
        }
        if page.items.len() == query.limit {
            let next = orgs.get(index + 1).map(|org| ListPosition { org: (*org).clone(), after: None });
            return Ok((listed, next));
        }
    }
    Ok((listed, None))
}

fn matches_tag(name: &Name, filter: &ListFilter) -> bool {
    let Some(wanted) = filter.tag_name.as_deref().filter(|tag| !tag.is_empty()) else { return true };
    name.tags
        .get(wanted)
        .is_some_and(|value| filter.tag_value.as_deref().is_none_or(|wanted| wanted == value))
}

/// Whether any stack of the project exists.
///
/// # Errors
/// Those of the ports.
pub async fn project_exists(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    project: &ProjectName,
) -> Result<bool, Error> {
    if !caller.may_see(org) {
        return Ok(false);
    }
    let (partition, prefix) = ItemKeys::names(org, Some(project));
    let query = Query { partition, prefix, after: None, order: Order::Ascending, limit: 1 };
    Ok(!store::query(ctx, &query).await?.items.is_empty())
}

/// Removes a stack: hides it, and frees its name at once. Until a sweep erases it, it can be brought back: see
/// [`super::removed`].
///
/// # Errors
/// [`Error::StackHasResources`] unless forced, [`Error::Held`] while an update runs.
pub async fn remove(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    force: bool,
) -> Result<(), Error> {
    for _ in 0..RACES_MAX {
        let Located { id, head } = locate_settled(ctx, caller, address).await?;
        publish::check_free(ctx, &head.value).await?;
        if !force && head.value.snapshot.as_ref().is_some_and(|snapshot| snapshot.resource_count > 0) {
            return Err(Error::StackHasResources);
        }
        let name = read_name(ctx, address).await?;
        let at = ctx.now();
        let deleted = Head { deleted: Some(at), ..head.value.clone() };
        let removed = Removed { at, by: caller.user.login.clone(), name: name.value.clone() };
        let revision = || ctx.ids.revision();
        let writes = vec![
            delete(ItemKeys::name(address), name.unchanged()),
            put(ItemKeys::head(id), head.unchanged(), revision(), deleted.encode()),
            put(ItemKeys::removed(address, id), Expect::Any, revision(), removed.encode()),
            due_write(ctx, &Due::Stack(id), at.plus(ctx.settings.retention.removed_stacks)),
        ];
        if store::commit(ctx, writes).await?.is_ok() {
            ctx.memory.names.forget(address);
            return Ok(());
        }
    }
    Err(Error::Contended("the stack"))
}

/// Replaces a stack's tags.
///
/// # Errors
/// [`Error::Invalid`] with the limit that they break.
pub async fn set_tags(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    tags: BTreeMap<String, String>,
) -> Result<(), Error> {
    check_tags(&tags)?;
    locate(ctx, caller, address).await?;
    for _ in 0..RACES_MAX {
        let name = read_name(ctx, address).await?;
        let next = Name { tags: tags.clone(), ..name.value.clone() };
        let write = put(ItemKeys::name(address), name.unchanged(), ctx.ids.revision(), next.encode());
        if store::commit(ctx, vec![write]).await?.is_ok() {
            return Ok(());
        }
    }
    Err(Error::Contended("the stack's tags"))
}

pub(crate) fn check_tags(tags: &BTreeMap<String, String>) -> Result<(), Error> {
    if tags.len() > TAGS_MAX {
        return Err(Error::Invalid(format!(
            "a stack can have {TAGS_MAX} tags, and {} were given",
            tags.len()
        )));
    }
    for (name, value) in tags {
        TagName::parse(name)?;
        if value.len() > TAG_VALUE_BYTES_MAX {
            return Err(Error::Invalid(format!(
                "the value of the tag {name:?} is {} bytes long; at most {TAG_VALUE_BYTES_MAX} are possible",
                value.len()
            )));
        }
    }
    Ok(())
}

/// The gzip of a version's deployment text, as it was published; `None` for a stack without a version. While an update
/// runs, the current deployment is what that update has saved so far.
///
/// # Errors
/// [`Error::NoVersion`] for a version that does not exist, [`Error::Pruned`] for one that is not kept any more; [`Error::Broken`] for a blob that is missing or altered.
pub async fn export(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    version: Option<u64>,
) -> Result<Option<Bytes>, Error> {
    let Located { id, head } = locate_settled(ctx, caller, address).await?;
    let snapshot = match (version, head.value.running) {
        (Some(version), _) => Some(read_version(ctx, id, address, version).await?.snapshot),
        (None, None) => head.value.snapshot,
        (None, Some(update)) => {
            let progress = publish::progress(ctx, update, head.value.snapshot.as_ref()).await?;
            if progress.is_some() {
                return Ok(progress);
            }
            head.value.snapshot
        }
    };
    match snapshot {
        Some(snapshot) => Ok(Some(fetch_snapshot(ctx, &snapshot).await?)),
        None => Ok(None),
    }
}

pub(crate) async fn fetch_snapshot(ctx: &Context, snapshot: &Snapshot) -> Result<Bytes, Error> {
    store::fetch_blob(ctx, &snapshot.blob, &snapshot.sha256).await
}

pub(crate) async fn read_version(
    ctx: &Context,
    id: StackId,
    address: &StackAddress,
    version: u64,
) -> Result<Version, Error> {
    if let Some(found) = store::read::<Version>(ctx, &ItemKeys::version(id, version)).await? {
        return Ok(found.value);
    }
    // Versions go from the oldest on, so what is older than the oldest was there once.
    let (partition, prefix) = ItemKeys::versions(id);
    let query = Query { partition, prefix, after: None, order: Order::Ascending, limit: 1 };
    let page = store::query(ctx, &query).await?;
    let oldest = page.items.first().and_then(|item| ItemKeys::parse_version_sort(&item.key.sort));
    let address = address.clone();
    Err(match oldest {
        Some(oldest) if (1..oldest).contains(&version) => Error::Pruned { address, version, oldest },
        Some(_) | None => Error::NoVersion { address, version },
    })
}

/// The JSON text of the current outputs; `None` for a stack without a version.
///
/// # Errors
/// As [`locate_settled`].
pub async fn outputs(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<Option<Bytes>, Error> {
    let Located { id, .. } = locate_settled(ctx, caller, address).await?;
    let Some(item) = store::get(ctx, &ItemKeys::outputs(id)).await? else { return Ok(None) };
    let (outputs, tail) = Outputs::decode_with(&item.value)?;
    store::fetch(ctx, &outputs.payload, tail).await.map(Some)
}

/// The update of a stack by its id.
///
/// # Errors
/// [`Error::NoUpdate`] when the stack has none of this id.
pub async fn update(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    update: &str,
) -> Result<(Located, UpdateId, Stored<Update>), Error> {
    let located = locate(ctx, caller, address).await?;
    let missing = || Error::NoUpdate { address: address.clone(), update: update.chars().take(60).collect() };
    let id = UpdateId::parse(update).ok_or_else(missing)?;
    let record = store::read::<Update>(ctx, &ItemKeys::update(id)).await?.ok_or_else(missing)?;
    if record.value.stack != located.id {
        return Err(missing());
    }
    Ok((located, id, record))
}

/// A stack's address from the parts of a path.
///
/// # Errors
/// [`Error::InvalidName`] for the part that breaks its rule.
pub fn address(org: &str, project: &str, stack: &str) -> Result<StackAddress, Error> {
    Ok(StackAddress {
        org: OrgName::parse(org)?,
        project: ProjectName::parse(project)?,
        stack: StackName::parse(stack)?,
    })
}

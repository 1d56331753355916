//! Stacks: create, find, list, tag, delete; read their deployments and outputs.

pub mod config;
pub mod deleted;
pub mod history;
pub mod holds;
pub mod indexing;
pub mod protection;
pub mod rehome;
pub mod rename;
pub mod resources;
pub mod versions;

use std::collections::BTreeMap;

use bytes::Bytes;

use super::audit::About;
use super::caller::Caller;
use super::identity::teams;
use super::store::deletion::deletion;
use super::store::page::{self, Named};
use super::store::stack_lookup::{Located, fetch_snapshot, locate, read_name, read_version};
use super::store::stack_tags::check_tags;
use super::updates::log::{self, Saved};
use super::updates::takeover;
use super::updates::takeover::locate_settled;
use super::updates::{next_version, publish};
use super::{Error, audit, store, updates};
use crate::context::Context;
use crate::domain::access::{NameRange, Tags, Unit};
use crate::domain::file_name::FileName;
use crate::domain::ids::{StackId, UpdateId};
use crate::domain::names::{OrgName, ProjectName, StackAddress};
use crate::domain::update::{Outcome, Update};
use crate::layout::{self, DeletedStack, Due, Record, StackConfig, StackEntry, StackHead, StackOutputs};
use crate::ports::{Expect, SignedUrl};
use crate::services::error::{AccessError, StackError};
use crate::services::store::retry::Attempts;

/// The maximum number of stacks on one page of a list.
pub const LIST_PAGE: usize = 500;

/// The data that `pulumi stack` shows.
#[derive(Debug)]
pub struct StackView {
    /// The ID of the stack.
    pub id: StackId,
    /// The head of the stack.
    pub head: StackHead,
    /// The tags of the stack.
    pub tags: BTreeMap<String, String>,
    /// The running update that holds the stack.
    pub running: Option<Update>,
    /// What that update has saved.
    pub saved: Saved,
}

/// Returns a stack with its tags and the update that holds it. While one runs, its record and the end of its log are
/// read at the same time.
///
/// # Errors
/// Those of [`locate_settled`].
pub async fn get(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<StackView, Error> {
    let Located { id, head } = locate_settled(ctx, caller, address).await?;
    let name = read_name(ctx, address).await?;
    let (running, saved) = match head.value.running {
        Some(update) => {
            let key = Update::key(update);
            let (record, saved) = futures::try_join!(store::read(ctx, &key), log::saved(ctx, update))?;
            (record.map(|record| record.value), saved)
        }
        None => (None, Saved::default()),
    };
    let running = running.filter(|update| update.is_live(ctx.now()));
    Ok(StackView { id, head: head.value, tags: name.value.tags, running, saved })
}

/// The initial content of a stack.
#[derive(Debug, Default)]
pub struct NewStack {
    pub tags: BTreeMap<String, String>,
    /// The first deployment, as `pulumi stack migrate` sends one.
    pub state: Option<Bytes>,
    /// Where the configuration is stored; `None` if it is in a file of the project.
    pub config: Option<StackConfig>,
    /// The teams that read and update the stack, as the client names them.
    pub teams: Vec<String>,
}

/// Creates a stack.
///
/// # Errors
/// [`StackError::Exists`], [`AccessError::NoOrg`], `EnvironmentError::NoRevision` for configuration that does not exist,
/// `IdentityError::UnknownTeam`, and [`Error::Invalid`] for tags or a deployment that break a rule.
pub async fn create(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    new: NewStack,
) -> Result<StackId, Error> {
    let NewStack { tags, state, config, teams: named } = new;
    check_may_create(ctx, caller, address, &tags).await?;
    check_tags(&tags)?;
    let grants = teams::of_new_stack(ctx, caller, address, &named).await?;
    let environment = match &config {
        // Boxed because its future is large, and few stacks need it.
        Some(config) => Box::pin(config::prepare(ctx, caller, &address.org, config)).await?,
        None => Vec::new(),
    };
    let now = ctx.now();
    let id = StackId::new(ctx.ids.uuid());
    let mut head = StackHead {
        address: address.clone(),
        created: now,
        created_by: Some(caller.user.login.clone()),
        version: 0,
        snapshot: None,
        running: None,
        last: None,
        deleted: None,
        config,
        protection: None,
        hold: None,
        trail: None,
    };
    let mut name = StackEntry {
        id,
        tags,
        last_update: None,
        resource_count: None,
        is_updating: false,
        is_held: false,
        newest: None,
        references: Vec::new(),
    };
    let mut writes = Vec::new();
    if let Some(state) = state {
        let import = updates::direct::prepare_import(ctx, caller, id, &head, state).await?;
        next_version::advance(&mut head, &mut name, &import);
        writes.extend(import.writes);
    }
    writes.insert(0, store::put(ctx, StackEntry::key(address), Expect::Absent, &name));
    let rider = audit::ride(ctx, audit::entry(ctx, "stack.create", &About::Stack(address)), None);
    head.trail = rider.mark();
    writes.push(store::put(ctx, StackHead::key(id), Expect::Absent, &head));
    writes.extend(environment);
    writes.extend(grants);
    match audit::commit(ctx, writes, rider).await? {
        Ok(()) => Ok(id),
        Err(refusal) if refusal.index == 0 => Err(StackError::Exists(address.clone()).into()),
        // Another request created an environment of that name, or changed the teams, at this moment.
        Err(_) => Err(Error::Contended("the stack's environment or the teams")),
    }
}

/// Refuses a caller who may not create a stack of this name with these tags. A tag gives no right to create: else every
/// caller could choose one that does.
///
/// # Errors
/// [`AccessError::NoOrg`], [`AccessError::NotAllowed`].
async fn check_may_create(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    tags: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let standing = caller.on_new_stack(ctx, address).await?;
    standing.check(caller.needs(), "this")?;
    standing.check_tags(ctx, tags.keys().map(String::as_str)).await
}

/// An entry of a stack list.
#[derive(Debug)]
pub struct Listed {
    /// The address of the stack.
    pub address: StackAddress,
    /// The stored list entry.
    pub name: StackEntry,
}

/// The details of a listed stack.
#[derive(Debug)]
pub struct Overview {
    /// The head of the stack.
    pub head: StackHead,
    /// The update that holds the stack. If its lease has expired, the next request for the stack ends it.
    pub running: Option<(UpdateId, Update)>,
}

/// Returns the head of a listed stack and the update that holds it; `None` for a stack that no longer exists.
///
/// # Errors
/// Those of the ports.
pub async fn overview(ctx: &Context, listed: &Listed) -> Result<Option<Overview>, Error> {
    let Some(head) = store::read(ctx, &StackHead::key(listed.name.id)).await? else { return Ok(None) };
    let head = head.value;
    if head.deleted.is_some() || head.address != listed.address {
        return Ok(None);
    }
    let running = match head.running {
        Some(id) => store::read(ctx, &Update::key(id)).await?.map(|update| (id, update.value)),
        None => None,
    };
    Ok(Some(Overview { head, running }))
}

/// The filter of a list.
#[derive(Debug, Default)]
pub struct ListFilter {
    /// Only this organization.
    pub org: Option<String>,
    /// Only this project.
    pub project: Option<String>,
    /// Only stacks with this tag.
    pub tag_name: Option<String>,
    /// Only stacks whose tag `tag_name` has this value.
    pub tag_value: Option<String>,
    /// Only stacks whose last update ended so.
    pub outcome: Option<Outcome>,
}

/// The position of a list's next page: the organization, and the last sort key of the previous page.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ListPosition {
    org: OrgName,
    after: Option<String>,
}

/// Lists one page of the stacks that the caller may see, by organization, project and name. One query for each
/// organization on the page, or one for each range of names if grants name a few.
///
/// # Errors
/// [`AccessError::NotAllowed`] if no organization allows it. An organization that the caller may not see has no stacks.
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
    let (mut listed, mut refused, mut shown) = (Vec::new(), None, false);
    for (index, org) in orgs.iter().enumerate().skip(start) {
        let sight = match caller.lists(ctx, org).await {
            Ok(sight) => sight,
            // What one organization refuses does not hide the stacks of others.
            Err(
                error @ Error::Access(AccessError::TokenLivesTooLong { .. } | AccessError::NotAllowed(_)),
            ) => {
                (refused, after) = (Some(error), None);
                continue;
            }
            Err(error) => return Err(error),
        };
        shown = true;
        let limit = LIST_PAGE - listed.len();
        let (items, next) =
            page::read_named(ctx, &entries(org, project.as_ref(), &sight.names()), after.take(), limit)
                .await?;
        for item in &items {
            let (project, stack) = StackEntry::name_in(&item.key)?;
            let name = StackEntry::decode(&item.value)?;
            let address = StackAddress { org: (*org).clone(), project, stack };
            if matches(&name, filter) && sight.shows(&Unit::stack(&address, Tags::Tags(&name.tags))) {
                listed.push(Listed { address, name });
            }
        }
        if next.is_some() {
            return Ok((listed, Some(ListPosition { org: (*org).clone(), after: next })));
        }
        if items.len() == limit {
            let next = orgs.get(index + 1).map(|org| ListPosition { org: (*org).clone(), after: None });
            return Ok((listed, next));
        }
    }
    match refused.filter(|_| !shown && start == 0) {
        Some(error) => Err(error),
        None => Ok((listed, None)),
    }
}

/// The entries of an organization's stacks, in one project or in all, with these names.
fn entries<'a>(
    org: &OrgName,
    project: Option<&ProjectName>,
    names: &'a [NameRange],
) -> Named<'a, StackEntry> {
    let (all, listed) = (StackEntry::of_org(org, None), StackEntry::of_org(org, project));
    Named { all, listed, end: "", names }
}

fn matches(name: &StackEntry, filter: &ListFilter) -> bool {
    let ended = name.newest.as_ref().map(|newest| newest.outcome);
    if filter.outcome.is_some_and(|wanted| ended != Some(wanted) || name.is_updating) {
        return false;
    }
    let Some(wanted) = filter.tag_name.as_deref().filter(|tag| !tag.is_empty()) else { return true };
    name.tags
        .get(wanted)
        .is_some_and(|value| filter.tag_value.as_deref().is_none_or(|wanted| wanted == value))
}

/// Whether a stack of the project exists.
///
/// # Errors
/// [`AccessError::NotAllowed`].
pub async fn project_exists(
    ctx: &Context,
    caller: &Caller,
    org: &OrgName,
    project: &ProjectName,
) -> Result<bool, Error> {
    let sight = match caller.lists(ctx, org).await {
        Err(Error::Access(AccessError::NoOrg(_))) => return Ok(false),
        sight => sight?,
    };
    let names = sight.names();
    let entries = entries(org, Some(project), &names);
    let (mut after, mut limit) = (None, 1);
    loop {
        let (items, next) = page::read_named(ctx, &entries, after, limit).await?;
        for item in &items {
            let (project, stack) = StackEntry::name_in(&item.key)?;
            let name = StackEntry::decode(&item.value)?;
            let address = StackAddress { org: org.clone(), project, stack };
            if sight.shows(&Unit::stack(&address, Tags::Tags(&name.tags))) {
                return Ok(true);
            }
        }
        if next.is_none() {
            return Ok(false);
        }
        (after, limit) = (next, LIST_PAGE);
    }
}

/// Deletes a stack: hides it, and frees its name at once. It can be undeleted until a sweep erases it: see
/// [`super::stacks::deleted`].
///
/// # Errors
/// [`StackError::Protected`] also if forced, [`StackError::HasResources`] unless forced, `UpdateError::Held` while an
/// update runs.
pub async fn delete(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    force: bool,
) -> Result<(), Error> {
    let mut attempts = Attempts::at("the stack");
    loop {
        attempts.begin()?;
        let Located { id, head } = locate_settled(ctx, caller, address).await?;
        store::protection::check_stack(&head.value)?;
        takeover::check_free(ctx, &head.value).await?;
        if let Some(snapshot) = head.value.snapshot.as_ref().filter(|_| !force)
            && updates::emptying::has_resources(ctx, snapshot).await?
        {
            return Err(StackError::HasResources.into());
        }
        let name = read_name(ctx, address).await?;
        let at = ctx.now();
        let entry = audit::entry(ctx, "stack.delete", &About::Stack(address));
        let rider = audit::ride(ctx, entry, head.value.trail.as_ref());
        let hidden = StackHead { deleted: Some(at), trail: rider.mark(), ..head.value.clone() };
        let deleted = DeletedStack { at, by: caller.user.login.clone(), name: name.value.clone() };
        let mut writes = vec![
            layout::delete(StackEntry::key(address), name.unchanged()),
            store::put(ctx, StackHead::key(id), head.unchanged(), &hidden),
        ];
        writes.extend(deletion(ctx, DeletedStack::key(address, id), &deleted, &Due::Stack(id)));
        if audit::commit(ctx, writes, rider).await?.is_ok() {
            ctx.memory.names.forget(address);
            return Ok(());
        }
    }
}

/// Replaces a stack's tags.
///
/// # Errors
/// [`StackError::TooManyTags`], [`StackError::TagTooLong`].
pub async fn set_tags(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    tags: BTreeMap<String, String>,
) -> Result<(), Error> {
    check_tags(&tags)?;
    change_tags(ctx, caller, address, |_| Ok(tags.clone())).await
}

/// Adds a tag to a stack. Succeeds if the stack already has the tag with this value, as after a lost answer.
///
/// # Errors
/// [`StackError::TagTooLong`], [`StackError::TagExists`].
pub async fn add_tag(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    (tag, value): (String, String),
) -> Result<(), Error> {
    change_tags(ctx, caller, address, |mut tags| {
        if let Some(old) = tags.insert(tag.clone(), value.clone()).filter(|old| *old != value) {
            return Err(StackError::TagExists { tag: tag.clone(), value: old.clone() }.into());
        }
        check_tags(&tags).map(|()| tags)
    })
    .await
}

/// Changes the value of an existing tag.
///
/// # Errors
/// [`StackError::NoTag`], [`StackError::TagTooLong`].
pub async fn edit_tag(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    (tag, value): (String, String),
) -> Result<(), Error> {
    change_tags(ctx, caller, address, |mut tags| {
        if tags.insert(tag.clone(), value.clone()).is_none() {
            return Err(StackError::NoTag { address: address.clone(), tag: tag.clone() }.into());
        }
        check_tags(&tags).map(|()| tags)
    })
    .await
}

/// Removes a tag from a stack.
///
/// # Errors
/// [`StackError::NoTag`].
pub async fn remove_tag(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    tag: String,
) -> Result<(), Error> {
    change_tags(ctx, caller, address, |mut tags| match tags.remove(&tag) {
        Some(_) => Ok(tags),
        None => Err(StackError::NoTag { address: address.clone(), tag: tag.clone() }.into()),
    })
    .await
}

async fn change_tags(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    change: impl Fn(BTreeMap<String, String>) -> Result<BTreeMap<String, String>, Error>,
) -> Result<(), Error> {
    locate(ctx, caller, address).await?;
    let standing = caller.on_stack(ctx, address).await?;
    let mut attempts = Attempts::at("the stack's tags");
    loop {
        attempts.begin()?;
        let name = read_name(ctx, address).await?;
        let next = StackEntry { tags: change(name.value.tags.clone())?, ..name.value.clone() };
        standing.check_changed_tags(ctx, &name.value.tags, &next.tags).await?;
        let write = store::put(ctx, StackEntry::key(address), name.unchanged(), &next);
        let entry = audit::entry(ctx, "stack.tag", &About::Stack(address));
        if audit::commit_by_writer(ctx, vec![write], entry).await?.is_ok() {
            ctx.memory.tags.forget(address);
            return Ok(());
        }
    }
}

/// An exported deployment.
#[derive(Debug)]
pub enum Exported {
    /// The gzip of its text.
    Gzip(Bytes),
    /// A URL at which the store itself serves the gzip.
    At(SignedUrl),
}

/// Returns the gzip of a version's deployment text, as it was published; `None` for a stack without a version. While an
/// update runs, the current deployment is what that update has saved so far.
///
/// # Errors
/// [`StackError::NoVersion`] for a version that does not exist, [`StackError::Pruned`] for one that is no longer kept;
/// [`Error::Broken`] for a blob that is missing or altered.
pub async fn export(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    version: Option<u64>,
) -> Result<Option<Bytes>, Error> {
    match export_within(ctx, caller, address, version, u64::MAX).await? {
        Some(Exported::Gzip(gzip)) => Ok(Some(gzip)),
        // No gzip exceeds the maximum of `u64`.
        Some(Exported::At(_)) | None => Ok(None),
    }
}

/// Like [`export`], but returns a URL for a published version whose gzip exceeds `bytes_max` bytes, if the store serves
/// URLs.
///
/// # Errors
/// Those of [`export`].
pub async fn export_within(
    ctx: &Context,
    caller: &Caller,
    address: &StackAddress,
    version: Option<u64>,
    bytes_max: u64,
) -> Result<Option<Exported>, Error> {
    let Located { id, head } = locate_settled(ctx, caller, address).await?;
    let snapshot = match (version, head.value.running) {
        (Some(version), _) => Some(read_version(ctx, id, address, version).await?.snapshot),
        (None, None) => head.value.snapshot,
        (None, Some(update)) => {
            let preview = publish::preview_of_log(ctx, update, head.value.snapshot.as_ref()).await?;
            if preview.is_some() {
                return Ok(preview.map(Exported::Gzip));
            }
            head.value.snapshot
        }
    };
    let Some(snapshot) = snapshot else { return Ok(None) };
    let file = FileName::of_stack(address, version);
    if snapshot.bytes_gzip > bytes_max
        && let Some(url) = store::signed_url(ctx, &snapshot.blob, &file).await?
    {
        return Ok(Some(Exported::At(url)));
    }
    Ok(Some(Exported::Gzip(fetch_snapshot(ctx, &snapshot, 0).await?)))
}

/// Returns the JSON text of the current outputs; `None` for a stack without a version.
///
/// # Errors
/// Those of [`locate_settled`].
pub async fn outputs(ctx: &Context, caller: &Caller, address: &StackAddress) -> Result<Option<Bytes>, Error> {
    let Located { id, .. } = locate_settled(ctx, caller, address).await?;
    let Some(item) = store::get(ctx, &StackOutputs::key(id)).await? else { return Ok(None) };
    let (outputs, tail) = StackOutputs::decode_with(&item.value)?;
    store::fetch(ctx, &outputs.payload, tail).await.map(Some)
}

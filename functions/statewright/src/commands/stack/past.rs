//! `statewright stack versions`, `diff` and `restore`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::json;
use statewright_shared::context::Context;
use statewright_shared::domain::deployment::{Change, How, Named as Resource};
use statewright_shared::domain::ids::StackId;
use statewright_shared::domain::names::StackAddress;
use statewright_shared::domain::role::Role;
use statewright_shared::layout;
use statewright_shared::ports::Timestamp;
use statewright_shared::services::Error;
use statewright_shared::services::error::StackError;
use statewright_shared::services::identity::directory;
use statewright_shared::services::stacks;
use statewright_shared::services::stacks::history;
use statewright_shared::services::stacks::versions as versions_service;
use statewright_shared::services::store::page::PageOf;
use statewright_shared::services::store::stack_lookup;
use statewright_shared::wire::pulumi::{DeletedStack, RequestedBy};
use statewright_shared::wire::resources::{
    DifferingResource, ResourceChange, RestoredStack, VersionDifferences,
};

use super::super::place::{Ask, Place};
use super::super::state::of_command;
use super::{Chosen, Named, Who, server};
use crate::args;
use crate::client::{Call, Client};
use crate::output::{self, Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(super) struct Versions {
    #[command(flatten)]
    pub(super) ask: Ask,
    #[command(flatten)]
    stack: Chosen,
    /// Show only the newest N versions [default: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    last: Option<u64>,
}

#[derive(Serialize)]
struct ListedVersions {
    stack: String,
    newest: u64,
    versions: Vec<Line>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    version: u64,
    update: String,
    kind: String,
    result: String,
    #[serde(flatten)]
    who: Who,
    started: Rfc3339,
    ended: Rfc3339,
    message: String,
    resources: u64,
    /// `None` at a server, as `skipped`.
    pending_operations: Option<u64>,
    changes: Option<BTreeMap<String, u64>>,
    skipped: Option<u64>,
    integrity_error: Option<String>,
}

impl From<layout::StackVersion> for Line {
    fn from(version: layout::StackVersion) -> Self {
        Self {
            version: version.version,
            update: version.update.to_string(),
            kind: version.kind.as_str().to_owned(),
            result: version.outcome.as_str().to_owned(),
            who: Who::from(&version.requester),
            started: Rfc3339(version.started),
            ended: Rfc3339(version.ended),
            message: version.detail.message,
            resources: version.snapshot.resource_count,
            pending_operations: Some(version.snapshot.pending_count),
            changes: version.resource_changes,
            skipped: Some(version.skipped_count),
            integrity_error: version.integrity_error,
        }
    }
}

/// A page of the history, as a server gives it.
#[derive(Deserialize)]
struct Page {
    updates: Vec<Entry>,
    /// The newest version.
    total: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    info: Info,
    #[serde(rename = "updateID")]
    update_id: String,
    requested_by: RequestedBy,
}

/// Times are in Unix seconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    version: u64,
    kind: String,
    result: String,
    /// How it ended, in more words than the result. Absent in responses of older servers.
    outcome: Option<String>,
    start_time: i64,
    end_time: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    resource_changes: Option<BTreeMap<String, u64>>,
    resource_count: u64,
}

impl From<Entry> for Line {
    fn from(Entry { info, update_id, requested_by }: Entry) -> Self {
        let time = |seconds| Rfc3339(Timestamp::from_seconds(seconds));
        Self {
            version: info.version,
            update: update_id,
            kind: info.kind,
            result: info.outcome.unwrap_or(info.result),
            who: Who { user: requested_by.github_login, token: None },
            started: time(info.start_time),
            ended: time(info.end_time),
            message: info.message,
            resources: info.resource_count,
            pending_operations: None,
            changes: info.resource_changes,
            skipped: None,
            integrity_error: None,
        }
    }
}

impl Line {
    fn row(&self) -> Vec<String> {
        let mut counts = self.resources.to_string();
        for (count, what) in [(self.pending_operations, "pending"), (self.skipped, "skipped")] {
            if let Some(count) = count.filter(|count| *count > 0) {
                let _ = write!(counts, ", {count} {what}");
            }
        }
        if self.integrity_error.is_some() {
            counts.push_str(", broken");
        }
        let changes = self.changes.iter().flatten().map(|(what, count)| format!("{what} {count}"));
        vec![
            self.version.to_string(),
            self.kind.clone(),
            self.result.clone(),
            self.ended.to_string(),
            self.who.to_string(),
            counts,
            changes.collect::<Vec<_>>().join(", "),
            // Only the first line: a table has one line for each version.
            self.message.lines().next().unwrap_or_default().to_owned(),
        ]
    }
}

pub(super) async fn versions(place: &Place, versions: Versions, out: Output) -> anyhow::Result<()> {
    let Versions { stack, last, .. } = versions;
    let stack = stack.at(place).await?;
    let listed = match place {
        Place::Store(store) => {
            let operator = stack.operator(&store.ctx).await?;
            let page = last.map(|size| PageOf { size, page: 1 });
            let history = history::list(&store.ctx, &operator, &stack.address, page).await?;
            ListedVersions {
                stack: stack.address.to_string(),
                newest: history.newest,
                versions: history.versions.into_iter().map(Line::from).collect(),
            }
        }
        Place::Server(client) => {
            let listed = versions_at(client, &stack.address, last).await;
            listed.map_err(|error| of_command(error, Role::View))?
        }
    };
    out.answer(&listed, |listed| {
        let headings = ["VERSION", "KIND", "RESULT", "ENDED", "BY", "RESOURCES", "CHANGES", "MESSAGE"];
        table(&headings, listed.versions.iter().map(Line::row))
    })
}

/// Versions on a page that a server is asked for, at most.
const PAGE_MAX: u64 = 100;

async fn versions_at(
    client: &Client,
    address: &StackAddress,
    last: Option<u64>,
) -> anyhow::Result<ListedVersions> {
    let size = last.unwrap_or(PAGE_MAX).min(PAGE_MAX);
    let call = Call::get(server::path(address, &["updates"]));
    let call = call.query("output-type", "service").query("pageSize", &size.to_string());
    let mut listed = ListedVersions { stack: address.to_string(), newest: 0, versions: Vec::new() };
    let mut page = 1_u64;
    loop {
        let found: Page = client.json(call.clone().query("page", &page.to_string())).await?;
        if page == 1 {
            listed.newest = found.total;
        }
        // A version that is published meanwhile moves the later ones to the next page.
        let is_last = found.updates.is_empty();
        let oldest = listed.versions.last().map_or(u64::MAX, |line| line.version);
        let new = found.updates.into_iter().filter(|entry| entry.info.version < oldest);
        listed.versions.extend(new.map(Line::from));
        let is_enough = last.is_some_and(|last| listed.versions.len() as u64 >= last);
        // The total counts versions that are kept no longer.
        if is_enough || is_last || page.saturating_mul(size) >= found.total {
            break;
        }
        page += 1;
    }
    listed.versions.truncate(last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(usize::MAX)));
    Ok(listed)
}

#[derive(Debug, clap::Args)]
pub(super) struct Diff {
    #[command(flatten)]
    pub(super) ask: Ask,
    #[command(flatten)]
    stack: Chosen,
    /// The version to start from.
    #[arg(value_name = "A")]
    from: u64,
    /// The version to compare it with.
    #[arg(value_name = "B")]
    to: u64,
}

#[derive(Serialize)]
struct Differences {
    stack: String,
    from: u64,
    to: u64,
    added: Vec<ResourceLine>,
    removed: Vec<ResourceLine>,
    changed: Vec<ChangedResource>,
    /// `None` at a server, which compares resources alone.
    deployment: Option<Vec<Property>>,
    /// Properties that differ and are not listed; `None` if a server left out some and does not count them.
    more: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceLine {
    urn: String,
    /// It was replaced and is still to be deleted.
    pending_deletion: bool,
}

#[derive(Serialize)]
struct ChangedResource {
    #[serde(flatten)]
    resource: ResourceLine,
    properties: Vec<Property>,
}

#[derive(Serialize)]
struct Property {
    path: String,
    change: String,
    /// It is a secret in both versions; at a server, also if a part of it is one, or in one version alone.
    secret: bool,
}

impl From<Resource> for ResourceLine {
    fn from(resource: Resource) -> Self {
        Self { urn: resource.urn, pending_deletion: resource.delete }
    }
}

impl From<Change> for Property {
    fn from(Change { path, how }: Change) -> Self {
        let (change, secret) = match how {
            How::Added => ("added", false),
            How::Removed => ("removed", false),
            How::Changed => ("changed", false),
            How::Sealed(..) => ("changed", true),
        };
        Self { path, change: change.to_owned(), secret }
    }
}

impl From<DifferingResource> for ResourceLine {
    fn from(resource: DifferingResource) -> Self {
        Self { urn: resource.urn, pending_deletion: resource.delete }
    }
}

impl From<ResourceChange> for Property {
    fn from(ResourceChange { path, how, secret, .. }: ResourceChange) -> Self {
        Self { path, change: how, secret }
    }
}

impl std::fmt::Display for ResourceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.urn)?;
        if self.pending_deletion { f.write_str(" (pending deletion)") } else { Ok(()) }
    }
}

impl std::fmt::Display for Property {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = match self.change.as_str() {
            "added" => '+',
            "removed" => '-',
            _ => '~',
        };
        write!(f, "{sign} {}", self.path)?;
        if self.secret { f.write_str(" (secret)") } else { Ok(()) }
    }
}

impl Differences {
    fn for_people(&self) -> String {
        let mut lines = Vec::new();
        lines.extend(self.removed.iter().map(|resource| format!("- {resource}")));
        lines.extend(self.added.iter().map(|resource| format!("+ {resource}")));
        for ChangedResource { resource, properties } in &self.changed {
            lines.push(format!("~ {resource}"));
            lines.extend(properties.iter().map(|property| format!("    {property}")));
        }
        lines.extend(self.deployment.iter().flatten().map(ToString::to_string));
        match self.more {
            Some(0) => {}
            Some(more) => lines.push(format!("and {more} more")),
            None => lines.push("and more".to_owned()),
        }
        if lines.is_empty() {
            let what = if self.deployment.is_none() { "the resources of versions" } else { "versions" };
            return format!("{what} {} and {} do not differ", self.from, self.to);
        }
        output::lines(&lines)
    }
}

pub(super) async fn diff(place: &Place, diff: Diff, out: Output) -> anyhow::Result<()> {
    let Diff { stack, from, to, .. } = diff;
    let stack = stack.at(place).await?;
    let differences = match place {
        Place::Store(store) => compare(&store.ctx, &stack, from, to).await?,
        Place::Server(client) => {
            let compared = compare_at(client, &stack.address, from, to).await;
            compared.map_err(|error| of_command(error, Role::View))?
        }
    };
    out.answer(&differences, Differences::for_people)
}

async fn compare(ctx: &Context, stack: &Named, from: u64, to: u64) -> anyhow::Result<Differences> {
    let operator = stack.operator(ctx).await?;
    let found = versions_service::compare(ctx, &operator, &stack.address, from, to).await?;
    let changed = found.changed.into_iter().map(|(resource, changes)| ChangedResource {
        resource: resource.into(),
        properties: changes.into_iter().map(Property::from).collect(),
    });
    Ok(Differences {
        stack: stack.address.to_string(),
        from,
        to,
        added: found.added.into_iter().map(ResourceLine::from).collect(),
        removed: found.removed.into_iter().map(ResourceLine::from).collect(),
        changed: changed.collect(),
        deployment: Some(found.deployment.into_iter().map(Property::from).collect()),
        more: Some(found.more),
    })
}

async fn compare_at(
    client: &Client,
    address: &StackAddress,
    from: u64,
    to: u64,
) -> anyhow::Result<Differences> {
    let (one, other) = (from.to_string(), to.to_string());
    let path = server::path(address, &["updates", &one, "diff", &other]);
    let found: VersionDifferences = client.json(Call::get(path)).await?;
    let listed = [found.added.len(), found.removed.len(), found.changed.len()];
    let counts = [found.added_count, found.removed_count, found.changed_count];
    let is_cut = counts.iter().zip(listed).any(|(count, listed)| *count > listed as u64)
        || found.changed.iter().any(|resource| resource.changes_cut);
    let changed = found.changed.into_iter().map(|mut resource| ChangedResource {
        properties: std::mem::take(&mut resource.changes).into_iter().map(Property::from).collect(),
        resource: resource.into(),
    });
    Ok(Differences {
        stack: address.to_string(),
        from,
        to,
        added: found.added.into_iter().map(ResourceLine::from).collect(),
        removed: found.removed.into_iter().map(ResourceLine::from).collect(),
        changed: changed.collect(),
        deployment: None,
        more: (!is_cut).then_some(0),
    })
}

#[derive(Debug, clap::Args)]
pub(super) struct Restore {
    #[command(flatten)]
    pub(super) ask: Ask,
    #[command(flatten)]
    stack: Chosen,
    /// The version to restore.
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// Undelete a deleted stack: the default without --version.
    #[arg(long, conflicts_with = "version")]
    deleted: bool,
    /// The id of the deleted stack, if several have this name: see `stack list --deleted`.
    #[arg(long, value_name = "ID", value_parser = args::stack_id, conflicts_with = "version")]
    id: Option<StackId>,
}

#[derive(Serialize)]
struct Restored {
    stack: String,
    id: String,
    /// The version that was published again; `None` if the stack was undeleted.
    restored: Option<u64>,
    version: u64,
    update: Option<String>,
}

pub(super) async fn restore(place: &Place, restore: Restore, out: Output) -> anyhow::Result<()> {
    let Restore { ask: _, stack, version, deleted: _, id } = restore;
    let stack = stack.at(place).await?;
    let Some(version) = version else { return undelete(place, &stack.address, id, out).await };
    let restored = match place {
        Place::Store(store) => publish_again(&store.ctx, &stack, version).await?,
        Place::Server(client) => {
            let made = publish_again_at(client, &stack.address, version).await;
            made.map_err(|error| of_command(error, Role::Apply))?
        }
    };
    out.answer(&restored, |restored| {
        format!(
            "published version {} of {} again, as version {}; run `pulumi refresh` to compare it with the \
             cloud",
            version, restored.stack, restored.version
        )
    })
}

async fn publish_again(ctx: &Context, stack: &Named, version: u64) -> anyhow::Result<Restored> {
    let operator = stack.operator(ctx).await?;
    let made = versions_service::restore(ctx, &operator, &stack.address, version).await?;
    Ok(Restored {
        stack: stack.address.to_string(),
        id: stack_lookup::locate(ctx, &operator, &stack.address).await?.id.to_string(),
        restored: Some(version),
        version: made.version,
        update: Some(made.update.to_string()),
    })
}

async fn publish_again_at(client: &Client, address: &StackAddress, version: u64) -> anyhow::Result<Restored> {
    let id = server::Stack::get(client, address).await?.id;
    let number = version.to_string();
    let path = server::path(address, &["updates", &number, "restore"]);
    let made: RestoredStack = client.json(Call::post(path)).await?;
    Ok(Restored {
        stack: address.to_string(),
        id,
        restored: Some(version),
        version: made.version,
        update: Some(made.update_id),
    })
}

async fn undelete(
    place: &Place,
    address: &StackAddress,
    id: Option<StackId>,
    out: Output,
) -> anyhow::Result<()> {
    let (id, version) = match place {
        Place::Store(store) => {
            let ctx = &store.ctx;
            let id = stacks::deleted::undelete(ctx, address, id).await?;
            let operator = directory::operator(ctx, Some(&address.org)).await?;
            let version = stack_lookup::locate(ctx, &operator, address).await?.head.value.version;
            (id.to_string(), version)
        }
        Place::Server(client) => {
            let back = undelete_at(client, address, id).await;
            back.map_err(|error| of_command(error, Role::Admin))?
        }
    };
    let back = Restored { stack: address.to_string(), id, restored: None, version, update: None };
    out.answer(&back, |back| format!("{} is undeleted, with its versions, secrets and tags", back.stack))
}

/// Undeletes a stack at a server, which wants its ID. Returns the ID and the last version.
async fn undelete_at(
    client: &Client,
    address: &StackAddress,
    id: Option<StackId>,
) -> anyhow::Result<(String, u64)> {
    let id = id.map(|id| id.to_string());
    let mut found = server::deleted(client, &address.org).await?;
    found.retain(|stack| {
        stack.project_name == address.project.as_str()
            && stack.stack_name == address.stack.as_str()
            && id.as_ref().is_none_or(|id| *id == stack.id)
    });
    let [deleted] = found.as_slice() else { return Err(Error::from(which(address, &found)).into()) };
    let DeletedStack { id, program_id, stack_name, version, .. } = deleted;
    let path = ["api", "orgs", address.org.as_str(), "restore-stack", program_id.as_str()];
    client.send(Call::post(path).json(&json!({ "stackName": stack_name }))).await?;
    Ok((id.clone(), *version))
}

/// Why no stack or no single one is meant.
fn which(address: &StackAddress, found: &[DeletedStack]) -> StackError {
    let address = address.clone();
    if found.is_empty() {
        return StackError::NoneDeleted(address);
    }
    let known =
        |stack: &DeletedStack| Some((StackId::parse(&stack.id)?, Timestamp::from_seconds(stack.deleted_at)));
    StackError::SeveralDeleted { address, found: found.iter().filter_map(known).collect() }
}

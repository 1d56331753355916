//! `statewright stack versions`, `diff` and `restore`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use statewright_shared::context::Context;
use statewright_shared::domain::deployment::{Change, How, Named as Resource};
use statewright_shared::domain::ids::StackId;
use statewright_shared::domain::names::StackAddress;
use statewright_shared::layout;
use statewright_shared::services::identity::directory;
use statewright_shared::services::stacks;
use statewright_shared::services::stacks::history;
use statewright_shared::services::stacks::versions as versions_service;
use statewright_shared::services::store::page::PageOf;
use statewright_shared::services::store::stack_lookup;

use super::{Named, Who};
use crate::args;
use crate::output::{self, Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(super) struct Versions {
    #[command(flatten)]
    stack: Named,
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
    kind: &'static str,
    result: &'static str,
    #[serde(flatten)]
    who: Who,
    started: Rfc3339,
    ended: Rfc3339,
    message: String,
    resources: u64,
    pending_operations: u64,
    changes: Option<BTreeMap<String, u64>>,
    skipped: u64,
    integrity_error: Option<String>,
}

impl From<layout::StackVersion> for Line {
    fn from(version: layout::StackVersion) -> Self {
        Self {
            version: version.version,
            update: version.update.to_string(),
            kind: version.kind.as_str(),
            result: version.outcome.as_str(),
            who: Who::from(&version.requester),
            started: Rfc3339(version.started),
            ended: Rfc3339(version.ended),
            message: version.detail.message,
            resources: version.snapshot.resource_count,
            pending_operations: version.snapshot.pending_count,
            changes: version.resource_changes,
            skipped: version.skipped_count,
            integrity_error: version.integrity_error,
        }
    }
}

impl Line {
    fn row(&self) -> Vec<String> {
        let mut counts = self.resources.to_string();
        for (count, what) in [(self.pending_operations, "pending"), (self.skipped, "skipped")] {
            if count > 0 {
                let _ = write!(counts, ", {count} {what}");
            }
        }
        if self.integrity_error.is_some() {
            counts.push_str(", broken");
        }
        let changes = self.changes.iter().flatten().map(|(what, count)| format!("{what} {count}"));
        vec![
            self.version.to_string(),
            self.kind.to_owned(),
            self.result.to_owned(),
            self.ended.to_string(),
            self.who.to_string(),
            counts,
            changes.collect::<Vec<_>>().join(", "),
            // Only the first line: a table has one line for each version.
            self.message.lines().next().unwrap_or_default().to_owned(),
        ]
    }
}

pub(super) async fn versions(ctx: &Context, versions: Versions, out: Output) -> anyhow::Result<()> {
    let Versions { stack, last } = versions;
    let operator = stack.operator(ctx).await?;
    let page = last.map(|size| PageOf { size, page: 1 });
    let history = history::list(ctx, &operator, &stack.address, page).await?;
    let listed = ListedVersions {
        stack: stack.address.to_string(),
        newest: history.newest,
        versions: history.versions.into_iter().map(Line::from).collect(),
    };
    out.answer(&listed, |listed| {
        let headings = ["VERSION", "KIND", "RESULT", "ENDED", "BY", "RESOURCES", "CHANGES", "MESSAGE"];
        table(&headings, listed.versions.iter().map(Line::row))
    })
}

#[derive(Debug, clap::Args)]
pub(super) struct Diff {
    #[command(flatten)]
    stack: Named,
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
    deployment: Vec<Property>,
    /// Properties that differ and are not listed.
    more: u64,
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
    change: &'static str,
    /// It is a secret in both versions.
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
        Self { path, change, secret }
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
        let sign = match self.change {
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
        lines.extend(self.deployment.iter().map(ToString::to_string));
        lines.extend((self.more > 0).then(|| format!("and {} more", self.more)));
        if lines.is_empty() {
            return format!("versions {} and {} do not differ", self.from, self.to);
        }
        output::lines(&lines)
    }
}

pub(super) async fn diff(ctx: &Context, diff: Diff, out: Output) -> anyhow::Result<()> {
    let Diff { stack, from, to } = diff;
    let operator = stack.operator(ctx).await?;
    let found = versions_service::compare(ctx, &operator, &stack.address, from, to).await?;
    let changed = found.changed.into_iter().map(|(resource, changes)| ChangedResource {
        resource: resource.into(),
        properties: changes.into_iter().map(Property::from).collect(),
    });
    let differences = Differences {
        stack: stack.address.to_string(),
        from,
        to,
        added: found.added.into_iter().map(ResourceLine::from).collect(),
        removed: found.removed.into_iter().map(ResourceLine::from).collect(),
        changed: changed.collect(),
        deployment: found.deployment.into_iter().map(Property::from).collect(),
        more: found.more,
    };
    out.answer(&differences, Differences::for_people)
}

#[derive(Debug, clap::Args)]
pub(super) struct Restore {
    #[command(flatten)]
    stack: Named,
    /// The version to publish again.
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// Undelete a deleted stack: the default without --version.
    #[arg(long, conflicts_with = "version")]
    deleted: bool,
    /// The id of the deleted stack, if several have this name: see `stack list --deleted`.
    #[arg(long, value_name = "ID", value_parser = args::stack_id, conflicts_with = "version")]
    id: Option<StackId>,
}

async fn undelete(
    ctx: &Context,
    address: &StackAddress,
    id: Option<StackId>,
    out: Output,
) -> anyhow::Result<()> {
    let id = stacks::deleted::undelete(ctx, address, id).await?;
    let operator = directory::operator(ctx, Some(&address.org)).await?;
    let version = stack_lookup::locate(ctx, &operator, address).await?.head.value.version;
    let back =
        Restored { stack: address.to_string(), id: id.to_string(), restored: None, version, update: None };
    out.answer(&back, |back| format!("{} is undeleted, with its versions, secrets and tags", back.stack))
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

pub(super) async fn restore(ctx: &Context, restore: Restore, out: Output) -> anyhow::Result<()> {
    let Restore { stack, version, deleted: _, id } = restore;
    let Some(version) = version else { return undelete(ctx, &stack.address, id, out).await };
    let operator = stack.operator(ctx).await?;
    let made = versions_service::restore(ctx, &operator, &stack.address, version).await?;
    let restored = Restored {
        stack: stack.address.to_string(),
        id: stack_lookup::locate(ctx, &operator, &stack.address).await?.id.to_string(),
        restored: Some(version),
        version: made.version,
        update: Some(made.update.to_string()),
    };
    out.answer(&restored, |restored| {
        format!(
            "published version {} of {} again, as version {}; run `pulumi refresh` to compare it with the \
             cloud",
            version, restored.stack, restored.version
        )
    })
}

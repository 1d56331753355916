//! `statewright stack list`.

use serde::Serialize;
use statewright_shared::context::Context;
use statewright_shared::domain::ids::UpdateId;
use statewright_shared::domain::names::{OrgName, ProjectName};
use statewright_shared::domain::update::{Status, Update};
use statewright_shared::services::identity::directory;
use statewright_shared::services::stacks::{self, ListFilter, Listed, Overview};

use super::Who;
use crate::args;
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// List this organization only.
    #[arg(long, value_name = "NAME", value_parser = args::organization)]
    org: Option<OrgName>,
    /// List this project only.
    #[arg(long, value_name = "NAME", value_parser = args::project)]
    project: Option<ProjectName>,
    /// List deleted stacks that can be undeleted.
    #[arg(long)]
    deleted: bool,
}

async fn deleted(ctx: &Context, list: &List, out: Output) -> anyhow::Result<()> {
    let orgs = match &list.org {
        Some(org) => vec![org.clone()],
        None => directory::orgs(ctx).await?.into_iter().map(|(org, _)| org).collect(),
    };
    let mut stacks = Vec::new();
    for org in orgs {
        let found = stacks::deleted::list(ctx, &org).await?.into_iter();
        let is_meant = |stack: &stacks::deleted::Deleted| {
            list.project.as_ref().is_none_or(|project| *project == stack.address.project)
        };
        stacks.extend(found.filter(is_meant).map(Line::deleted));
    }
    out.answer(&Answer { stacks }, |answer| {
        let headings = ["STACK", "ID", "VERSION", "RESOURCES", "DELETED"];
        table(&headings, answer.stacks.iter().map(Line::deleted_row))
    })
}

#[derive(Serialize)]
struct Answer {
    stacks: Vec<Line>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stack: String,
    id: String,
    version: u64,
    last_update: Option<Rfc3339>,
    resources: Option<u64>,
    running: Option<Running>,
    deleted: Option<Deleted>,
}

#[derive(Serialize)]
struct Deleted {
    at: Rfc3339,
    user: String,
}

#[derive(Serialize)]
struct Running {
    update: String,
    kind: &'static str,
    #[serde(flatten)]
    who: Who,
    since: Option<Rfc3339>,
    /// When the lease expires. The next request to the stack after that ends the update.
    until: Option<Rfc3339>,
}

impl Running {
    fn new((id, update): (UpdateId, Update)) -> Self {
        Self {
            update: id.to_string(),
            kind: update.kind.as_str(),
            who: Who::from(&update.requester),
            since: update.started().map(Rfc3339),
            until: match update.status {
                Status::Running { until, .. } => Some(Rfc3339(until)),
                Status::NotStarted | Status::Sealed { .. } | Status::Ended { .. } => None,
            },
        }
    }
}

impl Line {
    fn new(listed: &Listed, overview: Overview) -> Self {
        Self {
            stack: listed.address.to_string(),
            id: listed.name.id.to_string(),
            version: overview.head.version,
            last_update: listed.name.last_update.map(Rfc3339),
            resources: listed.name.resource_count,
            running: overview.running.map(Running::new),
            deleted: None,
        }
    }

    fn deleted(stack: stacks::deleted::Deleted) -> Self {
        Self {
            stack: stack.address.to_string(),
            id: stack.id.to_string(),
            version: stack.version,
            last_update: stack.last_update.map(Rfc3339),
            resources: stack.resource_count,
            running: None,
            deleted: Some(Deleted { at: Rfc3339(stack.at), user: stack.by.to_string() }),
        }
    }

    fn deleted_row(&self) -> Vec<String> {
        let never = || "-".to_owned();
        vec![
            self.stack.clone(),
            self.id.clone(),
            self.version.to_string(),
            self.resources.map_or_else(never, |count| count.to_string()),
            self.deleted.as_ref().map_or_else(never, |deleted| format!("{} by {}", deleted.at, deleted.user)),
        ]
    }

    fn row(&self) -> Vec<String> {
        let never = || "-".to_owned();
        let running = self.running.as_ref().map_or_else(never, |running| {
            let since = running.since.map_or_else(String::new, |since| format!(" since {since}"));
            format!("{} by {}{since}", running.kind, running.who)
        });
        vec![
            self.stack.clone(),
            self.version.to_string(),
            self.last_update.map_or_else(never, |at| at.to_string()),
            self.resources.map_or_else(never, |count| count.to_string()),
            running,
        ]
    }
}

pub(super) async fn run(ctx: &Context, list: List, out: Output) -> anyhow::Result<()> {
    if list.deleted {
        return deleted(ctx, &list, out).await;
    }
    let operator = directory::operator(ctx, list.org.as_ref()).await?;
    if let Some(org) = &list.org {
        operator.check_org(ctx, org).await?;
    }
    let filter = ListFilter {
        org: list.org.map(Into::into),
        project: list.project.map(Into::into),
        ..ListFilter::default()
    };
    let progress = out.progress("stacks", None);
    let (mut stacks, mut from) = (Vec::new(), None);
    loop {
        let (page, next) = stacks::list(ctx, &operator, &filter, from).await?;
        for listed in page {
            if let Some(overview) = stacks::overview(ctx, &listed).await? {
                stacks.push(Line::new(&listed, overview));
            }
            progress.inc(1);
        }
        from = next;
        if from.is_none() {
            break;
        }
    }
    progress.finish_and_clear();
    out.answer(&Answer { stacks }, |answer| {
        let headings = ["STACK", "VERSION", "LAST UPDATE", "RESOURCES", "RUNNING"];
        table(&headings, answer.stacks.iter().map(Line::row))
    })
}

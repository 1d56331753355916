//! `statewright stack list`.

use serde::Serialize;
use statewright_shared::context::Context;
use statewright_shared::domain::ids::UpdateId;
use statewright_shared::domain::names::{OrgName, ProjectName};
use statewright_shared::domain::update::Update;
use statewright_shared::services::directory;
use statewright_shared::services::stacks::{self, ListFilter, Listed, Overview};

use super::Who;
use crate::args;
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Of this organization only.
    #[arg(long, value_name = "NAME", value_parser = args::organization)]
    org: Option<OrgName>,
    /// Of this project only.
    #[arg(long, value_name = "NAME", value_parser = args::project)]
    project: Option<ProjectName>,
}

#[derive(Serialize)]
struct Answer {
    stacks: Vec<Line>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    stack: String,
    version: u64,
    last_update: Option<Rfc3339>,
    resources: Option<u64>,
    running: Option<Running>,
}

#[derive(Serialize)]
struct Running {
    update: String,
    kind: &'static str,
    #[serde(flatten)]
    who: Who,
    since: Option<Rfc3339>,
}

impl Running {
    fn new((id, update): (UpdateId, Update)) -> Self {
        Self {
            update: id.to_string(),
            kind: update.kind.as_str(),
            who: Who::from(&update.requester),
            since: update.started().map(Rfc3339),
        }
    }
}

impl Line {
    fn new(listed: &Listed, overview: Overview) -> Self {
        Self {
            stack: listed.address.to_string(),
            version: overview.head.version,
            last_update: listed.name.last_update.map(Rfc3339),
            resources: listed.name.resource_count,
            running: overview.running.map(Running::new),
        }
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
    let operator = directory::operator(ctx, list.org.as_ref()).await?;
    if let Some(org) = &list.org {
        operator.check_org(org)?;
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

//! `statewright stack list`.

use anyhow::Context as _;
use serde::Serialize;
use statewright_shared::context::Context;
use statewright_shared::domain::ids::UpdateId;
use statewright_shared::domain::names::{OrgName, ProjectName, StackAddress};
use statewright_shared::domain::role::Role;
use statewright_shared::domain::update::{Status, Update};
use statewright_shared::services::identity::directory;
use statewright_shared::services::stacks::{self, ListFilter, Listed, Overview};
use statewright_shared::wire::Reason;
use statewright_shared::wire::pulumi::{DeletedStack, StackSummary, User};

use super::super::place::{Ask, Place};
use super::super::state::of_command;
use super::{Who, server};
use crate::args;
use crate::client::{Call, Client, Failure};
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(super) struct List {
    #[command(flatten)]
    pub(super) ask: Ask,
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

impl List {
    fn has_project(&self, project: &str) -> bool {
        self.project.as_ref().is_none_or(|only| only.as_str() == project)
    }
}

async fn deleted(ctx: &Context, list: &List) -> anyhow::Result<Vec<Line>> {
    let orgs = match &list.org {
        Some(org) => vec![org.clone()],
        None => directory::orgs(ctx).await?.into_iter().map(|(org, _)| org).collect(),
    };
    let mut lines = Vec::new();
    for org in orgs {
        let found = stacks::deleted::list(ctx, &org).await?.into_iter();
        let is_meant = |stack: &stacks::deleted::Deleted| list.has_project(stack.address.project.as_str());
        lines.extend(found.filter(is_meant).map(Line::deleted));
    }
    Ok(lines)
}

/// The same at a server, in the organizations of the user.
async fn deleted_at(client: &Client, list: &List) -> anyhow::Result<Vec<Line>> {
    let orgs = match &list.org {
        Some(org) => vec![org.clone()],
        None => own_orgs(client).await?,
    };
    let (mut lines, mut refused, mut is_shown) = (Vec::new(), None, false);
    for org in &orgs {
        match server::deleted(client, org).await {
            Ok(found) => {
                is_shown = true;
                let meant = found.into_iter().filter(|stack| list.has_project(&stack.project_name));
                lines.extend(meant.map(|stack| Line::deleted_at(org, stack)));
            }
            // What one organization refuses does not hide the stacks of others.
            Err(error) if orgs.len() > 1 && is_of_rights(&error) => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    match refused.filter(|_| !is_shown) {
        Some(error) => Err(error),
        None => Ok(lines),
    }
}

/// The organizations of the user, by name.
async fn own_orgs(client: &Client) -> anyhow::Result<Vec<OrgName>> {
    let user: User = client.json(Call::get(["api", "user"])).await?;
    let names = user.organizations.iter().map(|org| OrgName::parse(&org.github_login));
    let mut orgs =
        names.collect::<Result<Vec<_>, _>>().context("the server's response has no valid organization")?;
    orgs.sort();
    Ok(orgs)
}

fn is_of_rights(error: &anyhow::Error) -> bool {
    let reason = error.downcast_ref::<Failure>().and_then(Failure::reason);
    matches!(reason, Some(Reason::RoleTooLow | Reason::TokenLivesTooLong))
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
    kind: String,
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
            kind: update.kind.as_str().to_owned(),
            who: Who::from(&update.requester),
            since: update.started().map(Rfc3339),
            until: match update.status {
                Status::Running { until, .. } => Some(Rfc3339(until)),
                Status::NotStarted | Status::Sealed { .. } | Status::Ended { .. } => None,
            },
        }
    }
}

impl From<server::Holder> for Running {
    /// A server does not say when the lease expires.
    fn from(holder: server::Holder) -> Self {
        let server::Holder { update, kind, who, since, .. } = holder;
        Self { update, kind, who, since: Some(since), until: None }
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

    fn deleted_at(org: &OrgName, stack: DeletedStack) -> Self {
        let DeletedStack { id, project_name, stack_name, version, deleted_at, deleted_by, .. } = stack;
        let last = stack.last_update;
        Self {
            stack: format!("{org}/{project_name}/{stack_name}"),
            id,
            version,
            last_update: server::time(last.end_time),
            resources: (version > 0).then_some(last.resource_count),
            running: None,
            deleted: server::time(deleted_at).map(|at| Deleted { at, user: deleted_by }),
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

pub(super) async fn run(place: &Place, list: List, out: Output) -> anyhow::Result<()> {
    let for_view = |error| of_command(error, Role::View);
    if list.deleted {
        let stacks = match place {
            Place::Store(store) => deleted(&store.ctx, &list).await?,
            Place::Server(client) => deleted_at(client, &list).await.map_err(for_view)?,
        };
        return out.answer(&Answer { stacks }, |answer| {
            let headings = ["STACK", "ID", "VERSION", "RESOURCES", "DELETED"];
            table(&headings, answer.stacks.iter().map(Line::deleted_row))
        });
    }
    let stacks = match place {
        Place::Store(store) => listed(&store.ctx, list, out).await?,
        Place::Server(client) => listed_at(client, &list, out).await?,
    };
    out.answer(&Answer { stacks }, |answer| {
        let headings = ["STACK", "VERSION", "LAST UPDATE", "RESOURCES", "RUNNING"];
        table(&headings, answer.stacks.iter().map(Line::row))
    })
}

async fn listed(ctx: &Context, list: List, out: Output) -> anyhow::Result<Vec<Line>> {
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
    let (mut lines, mut from) = (Vec::new(), None);
    loop {
        let (page, next) = stacks::list(ctx, &operator, &filter, from).await?;
        for listed in page {
            if let Some(overview) = stacks::overview(ctx, &listed).await? {
                lines.push(Line::new(&listed, overview));
            }
            progress.inc(1);
        }
        from = next;
        if from.is_none() {
            break;
        }
    }
    progress.finish_and_clear();
    Ok(lines)
}

/// The stacks that the user of a server may see.
async fn listed_at(client: &Client, list: &List, out: Output) -> anyhow::Result<Vec<Line>> {
    let mut call = Call::get(["api", "user", "stacks"]);
    if let Some(org) = &list.org {
        // To the list, an organization that the user does not know is one without stacks.
        client.send(Call::get(["api", "orgs", org.as_str(), "rights"])).await?;
        call = call.query("organization", org.as_str());
    }
    if let Some(project) = &list.project {
        call = call.query("project", project.as_str());
    }
    let progress = out.progress("stacks", None);
    let listed = client.pages::<StackSummary>(call, "stacks", None).await?;
    let mut lines = Vec::new();
    for stack in listed.read {
        lines.extend(line_at(client, stack).await?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(lines)
}

/// Asks for the stack itself where the list does not say all of it; `None` for one that no longer exists.
async fn line_at(client: &Client, stack: StackSummary) -> anyhow::Result<Option<Line>> {
    let address = StackAddress::parse(&stack.org_name, &stack.project_name, &stack.stack_name)
        .context("the server's response has no valid stack")?;
    // While an update holds the stack, the time of the last one is 0.
    let (version, running) = match (stack.version, stack.last_update) {
        (None, None) => (0, None),
        (Some(version), Some(last)) if last != 0 => (version, None),
        _ => match server::Stack::get(client, &address).await {
            Ok(found) => (found.version, found.holder().map(Running::from)),
            Err(failure) if failure.is_not_there() => return Ok(None),
            Err(failure) => return Err(failure.into()),
        },
    };
    Ok(Some(Line {
        stack: address.to_string(),
        id: stack.id,
        version,
        last_update: stack.last_update.and_then(server::time),
        resources: stack.resource_count,
        running,
        deleted: None,
    }))
}

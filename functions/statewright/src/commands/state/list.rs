//! `statewright state list`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use statewright_shared::domain::names::ProjectName;

use super::{Session, labels};
use crate::args;
use crate::client::Call;
use crate::output::{size, table, to_the_second};

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// List this project only.
    #[arg(long, value_name = "NAME", value_parser = args::project)]
    project: Option<ProjectName>,
    /// List the states whose labels match an expression, such as 'env == "prod" and tier > 1'.
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,
    /// List the states with this label; may be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// List deleted states that can be undeleted.
    #[arg(long, conflicts_with_all = ["project", "filter", "labels"])]
    deleted: bool,
    /// List at most N states.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    id: String,
    project: String,
    state: String,
    version: u64,
    serial: Option<u64>,
    bytes: u64,
    resource_count: Option<u64>,
    last_write: Option<String>,
    #[serde(default)]
    labels: BTreeMap<String, Value>,
    /// `None` if the server does not report it.
    status: Option<String>,
    #[serde(default)]
    depends_on: Vec<String>,
}

/// Names of producers shown per row; the rest is a count.
const NAMES_SHOWN_MAX: usize = 3;

impl Line {
    fn row(&self) -> Vec<String> {
        let or_none = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        vec![
            format!("{}/{}", self.project, self.state),
            self.id.clone(),
            self.version.to_string(),
            or_none(self.serial),
            or_none(self.resource_count),
            size(self.bytes),
            self.last_write.as_deref().map_or_else(|| "-".to_owned(), to_the_second),
            self.status.clone().unwrap_or_else(|| "-".to_owned()),
            self.depends_on(),
            labels::describe(&self.labels),
        ]
    }

    fn depends_on(&self) -> String {
        let names = self.depends_on.iter().take(NAMES_SHOWN_MAX).cloned().collect::<Vec<_>>().join(" ");
        match self.depends_on.len().saturating_sub(NAMES_SHOWN_MAX) {
            0 if names.is_empty() => "-".to_owned(),
            0 => names,
            more => format!("{names} and {more} more"),
        }
    }
}

pub(super) async fn run(session: &Session, list: List) -> anyhow::Result<()> {
    let org = session.client.organization().await?;
    if list.deleted {
        return run_deleted(session, org.as_str(), list.limit).await;
    }
    let mut call = Call::get(["api", "orgs", org.as_str(), "tfstates"]).query("status", "true");
    if let Some(project) = &list.project {
        call = call.query("project", project.as_str());
    }
    if let Some(filter) = &list.filter {
        call = call.query("filter", filter);
    }
    for label in &list.labels {
        call = call.query("label", label);
    }
    // One more than shown, to know whether there are more.
    let more = list.limit.map(|limit| limit.saturating_add(1));
    let mut listed = session.client.pages::<Line>(call, "states", more).await?;
    if let Some(limit) = list.limit.filter(|limit| listed.read.len() > *limit) {
        listed.read.truncate(limit);
        if let Some(states) = listed.whole.get_mut("states").and_then(Value::as_array_mut) {
            states.truncate(limit);
        }
        if !session.out.is_json() {
            session.out.note(format_args!("note: only the first {limit} are listed"));
        }
    }
    session.out.answer(&listed.whole, |_| {
        let headings = [
            "STATE",
            "ID",
            "VERSION",
            "SERIAL",
            "RESOURCES",
            "SIZE",
            "LAST WRITE",
            "STATUS",
            "DEPENDS ON",
            "LABELS",
        ];
        table(&headings, listed.read.iter().map(Line::row))
    })
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Deleted {
    id: String,
    project: String,
    state: String,
    version: u64,
    resource_count: Option<u64>,
    removed: String,
    removed_by: String,
    until: String,
}

impl Deleted {
    fn row(&self) -> Vec<String> {
        vec![
            format!("{}/{}", self.project, self.state),
            self.id.clone(),
            self.version.to_string(),
            self.resource_count.map_or_else(|| "-".to_owned(), |count| count.to_string()),
            to_the_second(&self.removed),
            self.removed_by.clone(),
            to_the_second(&self.until),
        ]
    }
}

async fn run_deleted(session: &Session, org: &str, limit: Option<usize>) -> anyhow::Result<()> {
    let call = Call::get(["api", "orgs", org, "tfstate-removed"]);
    let listed = session.client.pages::<Deleted>(call, "states", limit).await?;
    session.out.answer(&listed.whole, |_| {
        let headings = ["STATE", "ID", "VERSION", "RESOURCES", "DELETED", "BY", "KEPT UNTIL"];
        table(&headings, listed.read.iter().map(Deleted::row))
    })
}

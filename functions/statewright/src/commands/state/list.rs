//! `statewright state list`.

use serde::Deserialize;
use statewright_shared::domain::names::ProjectName;

use super::Session;
use crate::args;
use crate::client::Call;
use crate::output::{size, table, to_the_second};

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Of this project only.
    #[arg(long, value_name = "NAME", value_parser = args::project)]
    project: Option<ProjectName>,
    /// No more than so many.
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
}

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
        ]
    }
}

pub(super) async fn run(session: &Session, list: List) -> anyhow::Result<()> {
    let org = session.client.organization().await?;
    let mut call = Call::get(["api", "orgs", org.as_str(), "tfstates"]);
    if let Some(project) = &list.project {
        call = call.query("project", project.as_str());
    }
    let listed = session.client.pages::<Line>(call, "states", list.limit).await?;
    session.out.answer(&listed.whole, |_| {
        let headings = ["STATE", "ID", "VERSION", "SERIAL", "RESOURCES", "SIZE", "LAST WRITE"];
        table(&headings, listed.read.iter().map(Line::row))
    })
}

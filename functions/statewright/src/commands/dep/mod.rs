//! `statewright dep`: dependencies between the outputs and inputs of states, at a server.

mod edges;
mod order;
mod status;
mod sync;
mod wire;

use anyhow::Context as _;
use clap::Subcommand;
use serde::Deserialize;
use statewright_shared::domain::names::OrgName;

use crate::client::{At, Client, StateRef, WhichState};
use crate::output::Output;

pub(super) use sync::{FILE as DEPENDENCIES_FILE, mocked_inputs};

#[derive(Debug, clap::Args)]
pub(crate) struct Dep {
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    which: WhichState,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a dependency: a state reads an output of another state. A cycle is refused.
    Add(edges::Add),
    /// Remove a dependency.
    Remove(edges::Remove),
    /// List the outputs that a state reads, or the states that read its outputs.
    List(edges::List),
    /// List the states that read an output of this name, in the whole organization.
    Search(edges::Search),
    /// Show for each input of a state whether its last run used the current value.
    Status(status::Status),
    /// Show the states in the order to apply them, layer by layer.
    Topo(order::Topo),
    /// Write the inputs of a state to a file of its configuration, as data sources and local values.
    Sync(sync::Sync),
}

struct Session {
    client: Client,
    /// The state named with `-s`.
    state: Option<StateRef>,
    out: Output,
}

/// The state whose inputs a command is about.
#[derive(Debug, Deserialize)]
struct Consumer {
    id: String,
    organization: String,
    project: String,
    state: String,
}

impl Consumer {
    fn name(&self) -> String {
        format!("{}/{}/{}", self.organization, self.project, self.state)
    }
}

impl Session {
    async fn consumer(&self) -> anyhow::Result<Consumer> {
        Ok(self.client.state::<Consumer>(self.state.as_ref()).await?.read)
    }

    /// Whether `-s` names a state or the folder is linked to one.
    fn has_state(&self) -> bool {
        self.state.is_some() || self.client.has_state()
    }
}

/// The name of a state in the edge routes of its organization.
fn within(named: &StateRef, organization: &str) -> anyhow::Result<String> {
    match named {
        StateRef::Id(id) => Ok(id.to_string()),
        StateRef::Name { org: Some(org), .. } if org.as_str() != organization => {
            anyhow::bail!("a state can only read states of its own organization: {org} is not {organization}")
        }
        StateRef::Name { project, state, .. } => Ok(match state {
            Some(state) => format!("{project}/{state}"),
            None => project.clone(),
        }),
    }
}

fn organization(name: &str) -> anyhow::Result<OrgName> {
    OrgName::parse(name).context("the server's response has no valid organization name")
}

pub(crate) async fn run(dep: Dep, out: Output) -> anyhow::Result<()> {
    let session = Session { client: Client::open(&dep.at)?, state: dep.which.state, out };
    match dep.command {
        Command::Add(add) => edges::add(&session, &add).await,
        Command::Remove(remove) => edges::remove(&session, &remove).await,
        Command::List(list) => edges::list(&session, &list).await,
        Command::Search(search) => edges::search(&session, &search).await,
        Command::Status(status) => status::run(&session, &status).await,
        Command::Topo(topo) => order::run(&session, &topo).await,
        Command::Sync(sync) => sync::run(&session, &sync).await,
    }
}

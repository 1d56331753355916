//! `statewright dep`: which state reads which output of which other, at a server.

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
    /// Say that a state reads an output of another one. What would make a cycle is refused.
    Add(edges::Add),
    /// Say that it does so no more.
    Remove(edges::Remove),
    /// List what a state reads of others, or what others read of it.
    List(edges::List),
    /// List who reads outputs of a name, in the whole organization.
    Search(edges::Search),
    /// Show whether a state has run with what there is now, input by input.
    Status(status::Status),
    /// Show states in the order in which they can be applied, layer by layer.
    Topo(order::Topo),
    /// Write what a state reads of others into a file of its configuration, as data sources and local values.
    Sync(sync::Sync),
}

/// What all of these commands work with.
struct Session {
    client: Client,
    /// What `-s` says.
    state: Option<StateRef>,
    out: Output,
}

/// A state that commands are about.
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
    /// The state that reads: the one that is named, or that of the folder.
    async fn consumer(&self) -> anyhow::Result<Consumer> {
        Ok(self.client.state::<Consumer>(self.state.as_ref()).await?.read)
    }

    /// Whether a state is named, or the folder has one.
    fn has_state(&self) -> bool {
        self.state.is_some() || self.client.has_state()
    }
}

/// A state of this organization as its server's routes of edges name it.
fn within(named: &StateRef, organization: &str) -> anyhow::Result<String> {
    match named {
        StateRef::Id(id) => Ok(id.to_string()),
        StateRef::Name { org: Some(org), .. } if org.as_str() != organization => {
            anyhow::bail!("edges are between states of one organization, and {org} is not {organization}")
        }
        StateRef::Name { project, state, .. } => Ok(match state {
            Some(state) => format!("{project}/{state}"),
            None => project.clone(),
        }),
    }
}

/// The organization of a server's answer.
fn organization(name: &str) -> anyhow::Result<OrgName> {
    OrgName::parse(name).context("the server's answer has no organization")
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

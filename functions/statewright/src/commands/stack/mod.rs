//! `statewright stack`. Some of its commands open the store, some call a server, and some do either.

mod hold;
mod index;
mod list;
mod past;
mod rescue;
mod resources;
mod server;

use anyhow::bail;
use clap::Subcommand;
use serde::Serialize;
use statewright_shared::context::Context;
use statewright_shared::domain::names::{OrgName, ProjectName, StackAddress, StackName};
use statewright_shared::domain::update::Requester;
use statewright_shared::services::Error;
use statewright_shared::services::caller::Caller;
use statewright_shared::services::identity::directory;

use super::place::{Ask, Place};
use crate::args::{self, Data, misused};
use crate::data;
use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct Stack {
    #[command(flatten)]
    data: Data,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    OfEither(OfEither),
    #[command(flatten)]
    OfStore(OfStore),
    /// Index the resources of versions that an older version of this program published, so that users see them
    /// and their history. Versions with an index stay as they are.
    Index(index::Index),
    #[command(flatten)]
    OfServer(OfServer),
}

/// Those that ask a server if they have `--server`.
#[derive(Debug, Subcommand)]
enum OfEither {
    /// List stacks, their versions and the updates that lock them.
    List(list::List),
    /// List the versions of a stack, newest first.
    Versions(past::Versions),
    /// Show the differences between two versions of a stack: resources by URN, properties by path. No values
    /// are shown.
    Diff(past::Diff),
    /// Undelete a stack; or, with --version, publish an old version as the next one. Nothing in the cloud
    /// changes: run `pulumi refresh` afterwards.
    Restore(past::Restore),
    /// End the update that locks a stack, like `pulumi cancel`: its client can save nothing more, and what it
    /// saved becomes the next version.
    Unlock(rescue::Unlock),
}

impl OfEither {
    fn ask(&self) -> &Ask {
        match self {
            Self::List(list) => &list.ask,
            Self::Versions(versions) => &versions.ask,
            Self::Diff(diff) => &diff.ask,
            Self::Restore(restore) => &restore.ask,
            Self::Unlock(unlock) => &unlock.ask,
        }
    }
}

#[derive(Debug, Subcommand)]
enum OfStore {
    /// Publish an update that has ended and cannot be published because part of its log cannot be read.
    Publish(rescue::Publish),
    /// Show the slots of an update's log, and which of them cannot be read.
    ShowLog(rescue::ShowLog),
}

#[derive(Debug, Subcommand)]
enum OfServer {
    /// List the resources of a stack, at a server, as a tree. No values are shown.
    Resources(resources::Resources),
    /// Show one resource of a stack, at a server, without its secrets.
    Show(resources::Show),
    /// Show the versions that changed a resource of a stack, at a server, newest first.
    History(resources::History),
    /// Hold a stack, at a server: no update starts until somebody releases it. Previews do.
    Hold(hold::Hold),
    /// Release a stack that somebody holds, at a server.
    Release(hold::Release),
}

impl Stack {
    /// Whether the command opens the store itself.
    pub(crate) fn is_the_operators(&self) -> bool {
        match &self.command {
            Command::OfEither(command) => !command.ask().is_given(),
            Command::OfStore(_) | Command::Index(_) => true,
            Command::OfServer(_) => false,
        }
    }
}

#[derive(Debug, clap::Args)]
struct Named {
    /// The stack, as ORGANIZATION/PROJECT/STACK.
    #[arg(value_name = "STACK", value_parser = args::stack_address)]
    address: StackAddress,
}

impl Named {
    /// The operator, with rights on this stack.
    async fn operator(&self, ctx: &Context) -> Result<Caller, Error> {
        directory::operator(ctx, Some(&self.address.org)).await
    }
}

/// The name of a stack, which may leave out the organization.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StackRef {
    org: Option<OrgName>,
    project: ProjectName,
    stack: StackName,
}

impl StackRef {
    fn parse(text: &str) -> anyhow::Result<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let (org, project, stack) = match parts[..] {
            [project, stack] => (None, project, stack),
            [org, project, stack] => (Some(OrgName::parse(org)?), project, stack),
            _ => bail!("write a stack as PROJECT/STACK or ORGANIZATION/PROJECT/STACK"),
        };
        Ok(Self { org, project: ProjectName::parse(project)?, stack: StackName::parse(stack)? })
    }
}

/// A stack of the store or of a server.
#[derive(Debug, clap::Args)]
struct Chosen {
    /// The stack, as ORGANIZATION/PROJECT/STACK; with --server also as PROJECT/STACK, for the organization of
    /// STATEWRIGHT_ORG, else your default one.
    #[arg(value_name = "STACK", value_parser = StackRef::parse)]
    stack: StackRef,
}

impl Chosen {
    /// The stack with its organization, which a server is asked for if it is left out.
    async fn at(self, place: &Place) -> anyhow::Result<Named> {
        let StackRef { org, project, stack } = self.stack;
        let org = match (org, place) {
            (Some(org), _) => org,
            (None, Place::Server(client)) => client.organization().await?,
            (None, Place::Store(_)) => {
                return Err(misused("write a stack of the store as ORGANIZATION/PROJECT/STACK"));
            }
        };
        Ok(Named { address: StackAddress { org, project, stack } })
    }
}

#[derive(Debug, Serialize)]
struct Who {
    user: String,
    /// `None` at a server, which does not say it.
    token: Option<String>,
}

impl From<&Requester> for Who {
    fn from(requester: &Requester) -> Self {
        Self { user: requester.login.to_string(), token: Some(requester.token.to_string()) }
    }
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.token {
            Some(token) => write!(f, "{} ({token})", self.user),
            None => f.write_str(&self.user),
        }
    }
}

pub(crate) async fn run(stack: Stack, out: Output) -> anyhow::Result<()> {
    match stack.command {
        Command::OfEither(command) => {
            let place = command.ask().open(&stack.data).await?;
            Box::pin(of_either(&place, command, out)).await
        }
        Command::OfStore(command) => {
            let (_folder, ctx) = data::open_beside(&stack.data).await?;
            of_store(&ctx, command, out).await
        }
        Command::Index(index) => Box::pin(index::run(&stack.data, index, out)).await,
        Command::OfServer(command) => Box::pin(of_server(command, out)).await,
    }
}

async fn of_either(place: &Place, command: OfEither, out: Output) -> anyhow::Result<()> {
    match command {
        OfEither::List(list) => list::run(place, list, out).await,
        OfEither::Versions(versions) => past::versions(place, versions, out).await,
        OfEither::Diff(diff) => past::diff(place, diff, out).await,
        OfEither::Restore(restore) => past::restore(place, restore, out).await,
        OfEither::Unlock(unlock) => rescue::unlock(place, unlock, out).await,
    }
}

async fn of_store(ctx: &Context, command: OfStore, out: Output) -> anyhow::Result<()> {
    match command {
        OfStore::Publish(publish) => rescue::publish(ctx, publish, out).await,
        OfStore::ShowLog(show_log) => rescue::show_log(ctx, show_log, out).await,
    }
}

async fn of_server(command: OfServer, out: Output) -> anyhow::Result<()> {
    match command {
        OfServer::Resources(resources) => resources::resources(resources, out).await,
        OfServer::Show(show) => resources::show(show, out).await,
        OfServer::History(history) => resources::history(history, out).await,
        OfServer::Hold(hold) => hold::hold(hold, out).await,
        OfServer::Release(release) => hold::release(release, out).await,
    }
}

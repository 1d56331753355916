//! `statewright stack`.

mod list;
mod past;
mod rescue;

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::context::Context;
use statewright_shared::domain::names::StackAddress;
use statewright_shared::domain::update::Requester;
use statewright_shared::services::Error;
use statewright_shared::services::caller::Caller;
use statewright_shared::services::identity::directory;

use crate::args::{self, Data};
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
    /// List stacks, with their versions and the updates that hold them.
    List(list::List),
    /// List the versions of a stack, newest first.
    Versions(past::Versions),
    /// Show what differs between two versions of a stack: resources by their URNs, properties by their paths. No value is
    /// shown.
    Diff(past::Diff),
    /// Bring back a stack that was deleted; or, with --version, publish an old version of one as its next one. Nothing in
    /// the cloud changes; run `pulumi refresh` after it.
    Restore(past::Restore),
    /// End the update that holds a stack, as `pulumi cancel` does: its client can save nothing more, and what it saved
    /// becomes the next version.
    Unlock(rescue::Unlock),
    /// Publish an update that is over and cannot be published, since its log does not read back.
    Publish(rescue::Publish),
    /// Show the slots of an update's log, and which of them do not read back.
    ShowLog(rescue::ShowLog),
}

/// The stack that a command is about.
#[derive(Debug, clap::Args)]
struct Named {
    /// The stack, as ORGANIZATION/PROJECT/STACK.
    #[arg(value_name = "STACK", value_parser = args::stack_address)]
    address: StackAddress,
}

impl Named {
    /// Whoever works at the store, for this stack.
    async fn operator(&self, ctx: &Context) -> Result<Caller, Error> {
        directory::operator(ctx, Some(&self.address.org)).await
    }
}

/// Who asked for an update.
#[derive(Debug, Serialize)]
struct Who {
    user: String,
    token: String,
}

impl From<&Requester> for Who {
    fn from(requester: &Requester) -> Self {
        Self { user: requester.login.to_string(), token: requester.token.to_string() }
    }
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.user, self.token)
    }
}

pub(crate) async fn run(stack: Stack, out: Output) -> anyhow::Result<()> {
    let (_folder, ctx) = data::open_beside(&stack.data).await?;
    match stack.command {
        Command::List(list) => list::run(&ctx, list, out).await,
        Command::Versions(versions) => past::versions(&ctx, versions, out).await,
        Command::Diff(diff) => past::diff(&ctx, diff, out).await,
        Command::Restore(restore) => past::restore(&ctx, restore, out).await,
        Command::Unlock(unlock) => rescue::unlock(&ctx, unlock, out).await,
        Command::Publish(publish) => rescue::publish(&ctx, publish, out).await,
        Command::ShowLog(show_log) => rescue::show_log(&ctx, show_log, out).await,
    }
}

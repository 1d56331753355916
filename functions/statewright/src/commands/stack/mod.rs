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
    /// Publish an update that has ended and cannot be published because part of its log cannot be read.
    Publish(rescue::Publish),
    /// Show the slots of an update's log, and which of them cannot be read.
    ShowLog(rescue::ShowLog),
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

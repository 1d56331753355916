//! The operator's commands, a file for each noun: its arguments, its use cases, what it answers.

mod completions;
mod org;
mod token;
mod user;

use clap::error::ErrorKind;
use clap::{CommandFactory, Subcommand};
use statewright_shared::services::Error;

use crate::args::Args;
use crate::output::Output;
use crate::serve::{self, Serve};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the `pulumi` CLI, with all data in one folder.
    Serve(Serve),
    /// Make, list and revoke access tokens. Works beside a running server.
    Token(token::Token),
    /// Make, list and remove users. Works beside a running server.
    User(user::User),
    /// Make and list organizations, and their members. Works beside a running server.
    Org(org::Org),
    /// Print the completions of these commands for a shell.
    Completions(completions::Completions),
}

/// Does what was asked, and says what came of it.
pub(crate) async fn run(command: Command, out: Output) -> anyhow::Result<()> {
    match command {
        Command::Serve(_) | Command::Completions(_) if out.is_json() => Err(misused(
            "--json is for commands that answer; the server's log lines have `serve --log-format json`",
        )),
        Command::Serve(args) => serve::run(args).await,
        Command::Token(token) => token::run(token, out).await,
        Command::User(user) => user::run(user, out).await,
        Command::Org(org) => org::run(org, out).await,
        Command::Completions(completions) => completions::run(&completions, out),
    }
}

/// An error of usage: the process ends with 2, as after any other.
pub(crate) fn misused(why: impl std::fmt::Display) -> anyhow::Error {
    Args::command().error(ErrorKind::ArgumentConflict, why).into()
}

/// What to do about an error whose words do not say it.
pub(crate) fn next_step(error: &anyhow::Error) -> Option<&'static str> {
    match error.downcast_ref::<Error>()? {
        Error::Port(_) | Error::Contended(_) => Some("nothing is half done: run the command again"),
        _ => None,
    }
}

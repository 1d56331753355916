//! `statewright state`: states of OpenTofu and Terraform, at a server.

mod list;
mod show;
mod wire;

use clap::Subcommand;

use crate::client::{At, Client, StateRef, WhichState};
use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct State {
    #[command(flatten)]
    at: At,
    #[command(flatten)]
    which: WhichState,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List states.
    List(list::List),
    /// Show a state: its current version, its lock, its policy.
    Get(show::Get),
}

/// The state that a command is about, behind it: the same as `-s`.
#[derive(Debug, clap::Args)]
struct About {
    /// The state: PROJECT[/STATE], ORGANIZATION/PROJECT/STATE, or its id [default: that of the folder's .statewright.json].
    #[arg(value_name = "STATE", value_parser = StateRef::parse, conflicts_with = "state")]
    named: Option<StateRef>,
}

/// What all of these commands work with.
struct Session {
    client: Client,
    /// What `-s` says.
    state: Option<StateRef>,
    out: Output,
}

impl Session {
    /// What was named behind the command, or by `-s`.
    fn or<'a>(&'a self, about: &'a About) -> Option<&'a StateRef> {
        about.named.as_ref().or(self.state.as_ref())
    }
}

pub(crate) async fn run(state: State, out: Output) -> anyhow::Result<()> {
    let session = Session { client: Client::open(&state.at)?, state: state.which.state, out };
    match state.command {
        Command::List(list) => list::run(&session, list).await,
        Command::Get(get) => show::get(&session, &get).await,
    }
}

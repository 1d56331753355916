//! `statewright state`: OpenTofu and Terraform states, at a server.

mod edit;
mod import;
mod labels;
mod list;
mod locks;
mod make;
mod outputs;
mod past;
mod policy;
mod resources;
mod schemas;
mod show;
pub(super) mod wire;

use clap::Subcommand;
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::role::Role;

use crate::client::{At, Client, Failure, Named, StateRef, WhichState};
use crate::output::Output;

pub(super) use schemas::read_json;

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
    /// Create a state and link this folder to it, so that commands in it need no name.
    Create(make::Create),
    /// Make this folder's configuration use a state: link the folder to it and write backend.tf.
    Init(make::Init),
    /// List states.
    List(list::List),
    /// Show a state: its current version, lock and policy.
    Get(show::Get),
    /// List the versions of a state, newest first.
    Versions(past::Versions),
    /// List the resources of a state: addresses, types, providers. No values are shown.
    Resources(resources::Resources),
    /// Show one resource of a state: what it depends on, what depends on it, and its attributes on request.
    Show(resources::Show),
    /// List the versions of a state that changed one resource, newest first.
    History(resources::History),
    /// Show the differences between two versions of a state: addresses, properties, outputs. No values are
    /// shown.
    Diff(past::Diff),
    /// Make an old version, or a refused write, the current one. Nothing in the cloud changes.
    Restore(past::Restore),
    /// Print a state as its client wrote it.
    Pull(past::Pull),
    /// List the refused writes, the reasons and what to do. The server keeps them.
    #[command(visible_alias = "why")]
    Rejected(past::RejectedWrites),
    /// Show the outputs of a state.
    Outputs(outputs::Outputs),
    /// Set and remove labels of a state.
    Set(labels::Set),
    /// Show and change the write policy of a state: locks, rising serials, lock expiry.
    Policy(policy::Policy),
    /// Set a JSON Schema for an output. The server checks every write against it, but rejects none.
    SetSchema(schemas::SetSchema),
    /// Show the schemas of a state's outputs, and whether the outputs match them.
    GetSchema(schemas::GetSchema),
    /// Infer schemas for outputs without one, now and for outputs added later.
    Infer(schemas::Infer),
    /// Upload a state file with its serial and lineage, which clients do not keep.
    Import(import::Import),
    /// Lock a state by hand, for example for maintenance: no client can lock it until it is unlocked.
    Lock(locks::Lock),
    /// Unlock a state, whichever client or user locked it.
    Unlock(locks::Unlock),
    /// List the locks in an organization: holder, time and reason.
    Locks,
    /// Rename a state. Its id stays, and existing backends keep working.
    Rename(edit::Rename),
    Delete(edit::Delete),
    /// Undelete a state.
    Undelete(edit::Undelete),
}

/// The state given as an argument instead of with `-s`.
#[derive(Debug, clap::Args)]
struct About {
    /// The state: PROJECT[/STATE], ORGANIZATION/PROJECT/STATE, or its id [default: that of the folder's
    /// .statewright.json].
    #[arg(value_name = "STATE", value_parser = StateRef::parse, conflicts_with = "state")]
    named: Option<StateRef>,
}

struct Session {
    client: Client,
    /// The state named with `-s`.
    state: Option<StateRef>,
    out: Output,
}

impl Session {
    /// The state given as an argument, or with `-s`.
    fn or<'a>(&'a self, about: &'a About) -> Option<&'a StateRef> {
        about.named.as_ref().or(self.state.as_ref())
    }

    /// The id of the state for paths, and its name.
    async fn id(&self, named: Option<&StateRef>) -> anyhow::Result<(StateId, String)> {
        let Named { id, name } = self.client.named(named).await?;
        Ok((id, name))
    }
}

impl Command {
    /// The role that a command needs. Reading the state first needs [`Role::View`].
    fn needs(&self) -> Role {
        match self {
            Self::List(_)
            | Self::Get(_)
            | Self::Versions(_)
            | Self::Resources(_)
            | Self::History(_)
            | Self::Diff(_)
            | Self::Rejected(_)
            | Self::Locks
            | Self::GetSchema(_) => Role::View,
            Self::Show(show) if !show.reads_values() => Role::View,
            Self::Show(_) | Self::Pull(_) | Self::Unlock(_) => Role::Plan,
            Self::Outputs(_) => Role::Outputs,
            Self::Create(_) | Self::Init(_) | Self::Set(_) | Self::Import(_) => Role::Apply,
            Self::Policy(policy) => {
                if policy.changes_any() {
                    Role::Member
                } else {
                    Role::View
                }
            }
            Self::Restore(_)
            | Self::SetSchema(_)
            | Self::Infer(_)
            | Self::Lock(_)
            | Self::Rename(_)
            | Self::Delete(_)
            | Self::Undelete(_) => Role::Member,
        }
    }
}

/// Names the role that the whole command needs in a refusal of one of its requests.
pub(super) fn of_command(error: anyhow::Error, role: Role) -> anyhow::Error {
    match error.downcast::<Failure>() {
        Ok(failure) => failure.of_command(role).into(),
        Err(other) => other,
    }
}

pub(crate) async fn run(state: State, out: Output) -> anyhow::Result<()> {
    let session = Session { client: Client::open(&state.at)?, state: state.which.state, out };
    let role = state.command.needs();
    done(&session, state.command).await.map_err(|error| of_command(error, role))
}

async fn done(session: &Session, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Create(create) => make::create(session, create).await,
        Command::Init(init) => make::init(session, &init).await,
        Command::List(list) => list::run(session, list).await,
        Command::Get(get) => show::get(session, &get).await,
        Command::Versions(versions) => past::versions(session, &versions).await,
        Command::Resources(resources) => resources::run(session, &resources).await,
        Command::Show(show) => resources::show(session, &show).await,
        Command::History(history) => resources::history(session, &history).await,
        Command::Diff(diff) => past::diff(session, &diff).await,
        Command::Restore(restore) => past::restore(session, &restore).await,
        Command::Pull(pull) => past::pull(session, &pull).await,
        Command::Rejected(rejected) => past::rejected(session, &rejected).await,
        Command::Outputs(outputs) => outputs::run(session, &outputs).await,
        Command::Set(set) => labels::set(session, set).await,
        Command::Policy(policy) => policy::run(session, &policy).await,
        Command::SetSchema(set) => schemas::set(session, &set).await,
        Command::GetSchema(get) => schemas::get(session, &get).await,
        Command::Infer(infer) => schemas::infer(session, &infer).await,
        Command::Import(import) => import::run(session, &import).await,
        Command::Lock(lock) => locks::lock(session, &lock).await,
        Command::Unlock(unlock) => locks::unlock(session, &unlock).await,
        Command::Locks => locks::list(session).await,
        Command::Rename(rename) => edit::rename(session, &rename).await,
        Command::Delete(delete) => edit::delete(session, &delete).await,
        Command::Undelete(undelete) => edit::undelete(session, &undelete).await,
    }
}

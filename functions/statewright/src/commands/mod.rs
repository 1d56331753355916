//! The command line, and the commands, a file for each noun: its arguments, its use cases, what it answers. Those of the
//! operator work at the store; those of users (`state`, `tf`) ask a server through [`crate::client`].

mod aws;
mod backup;
#[cfg(feature = "aws")]
mod backup_on_aws;
mod check;
mod completions;
mod copy;
mod dep;
pub(crate) mod doctor;
pub(crate) mod key;
mod login;
mod org;
mod outputs;
mod policy;
mod rehome;
mod restore_on_aws;
mod running;
mod stack;
mod state;
mod tf;
mod token;
mod user;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches as _, Parser, Subcommand};
use statewright_shared::services::Error;

use crate::args::misused;
use crate::audit::AuditFile;
use crate::client::Failure;
use crate::output::Output;
use crate::serve::{self, Serve};

/// The place where a team keeps its infrastructure state.
#[derive(Debug, Parser)]
#[command(name = "statewright", version)]
pub(crate) struct Args {
    /// Answer with one JSON document on stdout, for scripts. What goes wrong is said on stderr, as without it.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Append who did what to which stack to this file, a JSON object a line: what the server is asked, and these commands.
    /// Opened again on SIGHUP.
    #[arg(long, value_name = "FILE", global = true, env = "STATEWRIGHT_AUDIT_LOG")]
    pub(crate) audit_log: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the `pulumi` CLI, with all data in one folder, or on AWS.
    Serve(Box<Serve>),
    /// Make, list and revoke access tokens. Works beside a running server.
    Token(token::Token),
    /// Make, list and remove users. Works beside a running server.
    User(user::User),
    /// Make and list organizations, and their members. Works beside a running server.
    Org(org::Org),
    /// Look at stacks, bring back their versions, and end what holds them. Works beside a running server.
    Stack(stack::Stack),
    /// Store an access token for a server: it is asked for on a terminal without being shown, and else read from STATEWRIGHT_TOKEN or
    /// from the first line of stdin.
    Login(login::Login),
    /// Forget the access token for a server.
    Logout(login::Logout),
    /// Say whom the server takes you for.
    Whoami(login::Whoami),
    /// Make, look at and change states of OpenTofu and Terraform, at a server.
    State(state::State),
    /// Say which state reads which output of which other, at a server; and show what is stale.
    Dep(dep::Dep),
    /// Show and set what an organization demands of the labels of its states, at a server.
    Policy(policy::Policy),
    /// Show the outputs of stacks and states side by side, at a server.
    Outputs(outputs::Outputs),
    /// Run `tofu` or `terraform` on a state of a server, with the token in its environment.
    Tf(tf::Tf),
    /// Make states name another address of the server. Works beside a running server.
    Rehome(rehome::Rehome),
    /// Copy everything to another folder, while the server runs.
    Backup(backup::Backup),
    /// Make a data folder of a backup.
    Restore(backup::Restore),
    /// Copy everything to another kind of store: from a folder to AWS, or back.
    Copy(copy::Copy),
    /// Read everything, and say what is not as it should be. Works beside a running server.
    Check(check::Check),
    /// Look whether what the store consists of is there, as it should be, and allowed; and say what to do.
    Doctor(doctor::Doctor),
    /// Replace the keys that secrets are under. Works beside a running server.
    Key(key::Key),
    /// Make what the store on AWS consists of.
    Aws(aws::Aws),
    /// Print the completions of these commands for a shell.
    Completions(completions::Completions),
}

impl Command {
    /// Whether it works at the store, where no server keeps a record of it.
    pub(crate) fn is_the_operators(&self) -> bool {
        match self {
            Self::Serve(_)
            | Self::Completions(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Whoami(_)
            | Self::State(_)
            | Self::Dep(_)
            | Self::Tf(_)
            | Self::Policy(_)
            | Self::Outputs(_) => false,
            Self::Token(_)
            | Self::User(_)
            | Self::Org(_)
            | Self::Stack(_)
            | Self::Rehome(_)
            | Self::Backup(_)
            | Self::Restore(_)
            | Self::Copy(_)
            | Self::Check(_)
            | Self::Doctor(_)
            | Self::Key(_)
            | Self::Aws(_) => true,
        }
    }
}

/// The commands that keep no audit log themselves: a server does, or there is nothing to keep.
const WITHOUT_AUDIT_LOG: [&str; 9] =
    ["login", "logout", "whoami", "state", "dep", "policy", "outputs", "tf", "completions"];

/// The command line. The option of the audit log is taken everywhere, and shown where it has an effect.
pub(crate) fn command_line() -> clap::Command {
    let command = Args::command();
    let option = command.get_arguments().find(|option| option.get_id() == "audit_log").cloned();
    WITHOUT_AUDIT_LOG.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |below| below.args(option.clone().map(|option| option.hide(true))))
    })
}

/// The arguments of this process.
///
/// # Errors
/// What is wrong with them; or that help or the version was asked for.
pub(crate) fn arguments() -> Result<Args, clap::Error> {
    Args::from_arg_matches(&command_line().try_get_matches()?)
}

/// Does what was asked, and says what came of it.
pub(crate) async fn run(command: Command, audit: Option<Arc<AuditFile>>, out: Output) -> anyhow::Result<()> {
    match command {
        Command::Tf(_) if out.is_json() => {
            Err(misused("--json is for commands that answer; the client has its own: `tf -- plan -json`"))
        }
        Command::Serve(_) | Command::Completions(_) if out.is_json() => Err(misused(
            "--json is for commands that answer; the server's log lines have `serve --log-format json`",
        )),
        // These hold much at once, which would be taken from every other command's stack.
        Command::Serve(args) => Box::pin(serve::run(*args, audit)).await,
        Command::Token(token) => token::run(token, out).await,
        Command::User(user) => user::run(user, out).await,
        Command::Org(org) => org::run(org, out).await,
        Command::Stack(stack) => stack::run(stack, out).await,
        Command::Login(login) => Box::pin(login::login(login, out)).await,
        Command::Logout(logout) => login::logout(logout, out).await,
        Command::Whoami(whoami) => Box::pin(login::whoami(whoami, out)).await,
        Command::State(state) => Box::pin(state::run(state, out)).await,
        Command::Dep(dep) => Box::pin(dep::run(dep, out)).await,
        Command::Policy(policy) => Box::pin(policy::run(policy, out)).await,
        Command::Outputs(outputs) => Box::pin(outputs::run(outputs, out)).await,
        Command::Tf(tf) => Box::pin(tf::run(tf, out)).await,
        Command::Rehome(rehome) => rehome::run(rehome, out).await,
        Command::Backup(backup) => backup::backup(backup, out).await,
        Command::Restore(restore) => backup::restore(restore, out).await,
        Command::Copy(copy) => Box::pin(copy::run(copy, out)).await,
        Command::Check(check) => check::run(check, out).await,
        Command::Doctor(doctor) => Box::pin(doctor::run(doctor, out)).await,
        Command::Key(key) => key::run(key, out).await,
        Command::Aws(aws) => aws::run(aws, out).await,
        Command::Completions(completions) => completions::run(&completions, out),
    }
}

/// The end of a command that ends as another program did, which has said why.
#[derive(Debug, thiserror::Error)]
#[error("the program that was run ended with {0}")]
pub(crate) struct EndsWith(pub(crate) u8);

/// What to do about an error whose words do not say it.
pub(crate) fn next_step(error: &anyhow::Error) -> Option<Cow<'static, str>> {
    match error.downcast_ref::<Failure>() {
        Some(failure) => failure.next_step().map(Cow::Owned),
        None => next_step_of_operator(error.downcast_ref()?).map(Cow::Borrowed),
    }
}

fn next_step_of_operator(error: &Error) -> Option<&'static str> {
    match error {
        Error::NoStack(_) => Some("`statewright stack list` shows which there are"),
        Error::NoVersion { .. } | Error::Pruned { .. } => {
            Some("`statewright stack versions STACK` shows which there are")
        }
        Error::NoOrg(_) => Some("`statewright org list` shows which there are"),
        Error::NoUser(_) => Some("`statewright user list` shows which there are"),
        Error::Held(_) => Some("`statewright stack unlock STACK` ends it as `pulumi cancel` does"),
        Error::Broken(_) => Some(
            "if that is the log of an update: `statewright stack show-log STACK` shows which slots do read, and \
             `statewright stack publish STACK --from-log --slot N` goes on without those after slot N",
        ),
        Error::MasterKey(_) => Some("`statewright doctor` says what is wrong with it"),
        Error::Port(_) | Error::Contended(_) => Some("nothing is half done: run the command again"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANUAL: &str = include_str!("../../COMMANDS.md");

    /// The commands that do something, by their words, each with its own options.
    fn leaves(command: &clap::Command, words: &str, found: &mut Vec<(String, Vec<String>)>) {
        let below: Vec<_> = command.get_subcommands().filter(|below| below.get_name() != "help").collect();
        for below in &below {
            leaves(below, &format!("{words} {}", below.get_name()), found);
        }
        if below.is_empty() {
            let own = command.get_arguments().filter(|argument| !argument.is_global_set());
            let options = own.filter_map(clap::Arg::get_long).filter(|long| *long != "help");
            found.push((words.to_owned(), options.map(|long| format!("--{long}")).collect()));
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        command_line().debug_assert();
    }

    #[test]
    fn the_audit_log_is_offered_where_it_is_kept() {
        let offers = |words: &[&str]| {
            let help =
                command_line().try_get_matches_from([&["statewright"][..], words, &["--help"]].concat());
            help.unwrap_err().to_string().contains("--audit-log")
        };
        for words in [&["serve"][..], &["token", "create"], &["copy"], &["user", "remove"]] {
            assert!(offers(words), "{words:?}");
        }
        for words in [&["state", "list"][..], &["dep"], &["tf"], &["policy", "set"], &["outputs"], &["login"]]
        {
            assert!(!offers(words), "{words:?}");
        }
        let taken = command_line().try_get_matches_from(["statewright", "state", "--audit-log", "f", "list"]);
        let args = Args::from_arg_matches(&taken.unwrap()).unwrap();
        assert_eq!(args.audit_log, Some("f".into()));
    }

    #[test]
    fn the_manual_has_every_command_with_its_options() {
        let mut found = Vec::new();
        leaves(&Args::command(), "statewright", &mut found);
        assert!(found.len() > 15, "the commands are not found any more: {found:?}");
        let headings: Vec<&str> = MANUAL.lines().filter_map(|line| line.strip_prefix("## `")).collect();
        assert_eq!(headings.len(), found.len());
        for (words, options) in found {
            let heading = headings.iter().find(|heading| {
                heading.strip_prefix(&words).is_some_and(|rest| rest.starts_with([' ', '`']))
            });
            let heading = heading.unwrap_or_else(|| panic!("the manual lacks {words}"));
            // Those of the server are told elsewhere.
            if words != "statewright serve" {
                for option in options {
                    assert!(heading.contains(&option), "the manual lacks {option} of {words}");
                }
            }
        }
    }
}

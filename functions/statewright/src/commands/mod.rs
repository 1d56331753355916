//! The command line and its commands, one file for each noun. The operator's commands open the store; those
//! of users (`state`, `tf`) call a server through [`crate::client`]. Some do either, as [`place`] says.

mod access;
mod audit;
mod aws;
mod backup;
#[cfg(feature = "aws")]
mod backup_on_aws;
mod check;
mod completions;
mod copied;
mod copy;
pub(crate) mod credential_helper;
mod dep;
mod doctor;
mod issuer;
mod key;
mod login;
mod org;
mod outputs;
mod place;
mod policy;
mod protect;
mod rehome;
mod restore_on_aws;
mod running;
mod session;
mod sso;
mod stack;
mod state;
mod team;
mod tf;
mod token;
mod user;
mod why;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches as _, Parser, Subcommand};
use statewright_shared::services::Error;
use statewright_shared::services::error::{AccessError, StackError, UpdateError};

use crate::args::misused;
use crate::audit::AuditFile;
use crate::client::Failure;
use crate::output::Output;
use crate::serve::{self, Serve};

pub(crate) use self::tf::EndsWith;

/// Self-hosted state backend for Pulumi, OpenTofu and Terraform.
#[derive(Debug, Parser)]
#[command(name = "statewright", version)]
pub(crate) struct Args {
    /// Print the answer as one JSON document on stdout, for scripts. Errors still go to stderr.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Append an audit log to this file: requests to the server and these commands, as one JSON object per
    /// line. SIGHUP reopens it.
    #[arg(long, value_name = "FILE", global = true, env = "STATEWRIGHT_AUDIT_LOG")]
    pub(crate) audit_log: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server, with all data in one folder or on AWS.
    Serve(Box<Serve>),
    /// Create, list and revoke access tokens. Works while the server runs.
    Token(token::Token),
    /// List the browsers in which a user is signed in, and sign a user out. Works while the server runs.
    Session(session::Session),
    /// Create, list and remove users. Works while the server runs.
    User(user::User),
    /// Manage the providers that people sign in with, in a browser. Works while the server runs.
    Sso(sso::Sso),
    /// Create and list organizations and manage their members and grants. Works while the server runs.
    Org(org::Org),
    /// Create, list and delete teams and manage their members. Works while the server runs.
    Team(team::Team),
    /// Show which role or grants let a user do something with a stack, a state or an environment.
    Why(why::Why),
    /// Inspect stacks and their resources, restore their versions and end the updates that lock them. Works while
    /// the server runs.
    Stack(stack::Stack),
    /// Log in to a server and store an access token for it. At a terminal, you allow the login in a browser.
    /// Otherwise, the token is read from STATEWRIGHT_TOKEN or the first line of stdin.
    Login(login::Login),
    /// Forget the access token for a server, and revoke it if the login made it.
    Logout(login::Logout),
    /// Show the user that you are logged in as.
    Whoami(login::Whoami),
    /// Let `pulumi` use the tokens of `login`, so that it needs no login of its own.
    CredentialHelper(credential_helper::CredentialHelper),
    /// Create, inspect and change OpenTofu and Terraform states, at a server.
    State(state::State),
    /// Manage dependencies between states, at a server, and show stale inputs.
    Dep(dep::Dep),
    /// Show and set the label policy of an organization, at a server.
    Policy(policy::Policy),
    /// Protect a stack or a state, at a server, from deletion and destruction until an admin lifts that.
    Protect(protect::Protect),
    /// Lift the protection of a stack or a state, at a server.
    Unprotect(protect::Unprotect),
    /// Let the jobs of a CI sign in without a secret: manage their issuers and policies, at a server.
    Issuer(issuer::Issuer),
    /// Consent to personal tokens for the jobs of an issuer, at a server.
    Consent(issuer::Consent),
    /// Show the outputs of stacks and states side by side, at a server.
    Outputs(outputs::Outputs),
    /// Run `tofu` or `terraform` on a state of a server, with the token in its environment.
    Tf(tf::Tf),
    /// Change the server address that stacks name. Works while the server runs.
    Rehome(rehome::Rehome),
    /// Back up all data, while the server runs.
    Backup(backup::Backup),
    /// Restore a backup.
    Restore(backup::Restore),
    /// Copy all data to another kind of store: from a folder to AWS, or back.
    Copy(copy::Copy),
    /// Read all data and report problems. Works while the server runs.
    Check(check::Check),
    /// Read the audit trails in the store. Works while the server runs.
    Audit(audit::Audit),
    /// Check that the store exists, is configured correctly and is accessible, and suggest fixes.
    Doctor(doctor::Doctor),
    /// Replace the keys that encrypt secrets. Works while the server runs.
    Key(key::Key),
    /// Create the resources of a store on AWS.
    Aws(aws::Aws),
    /// Print the completion script for a shell.
    Completions(completions::Completions),
}

impl Command {
    /// Whether the command opens the store itself, so that no server audits it.
    pub(crate) fn is_the_operators(&self) -> bool {
        match self {
            Self::Serve(_)
            | Self::Completions(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Whoami(_)
            | Self::CredentialHelper(_)
            | Self::State(_)
            | Self::Dep(_)
            | Self::Tf(_)
            | Self::Policy(_)
            | Self::Protect(_)
            | Self::Unprotect(_)
            | Self::Issuer(_)
            | Self::Consent(_)
            | Self::Outputs(_) => false,
            Self::Stack(stack) => stack.is_the_operators(),
            Self::Token(token) => token.is_the_operators(),
            Self::Session(session) => session.is_the_operators(),
            Self::User(user) => user.is_the_operators(),
            Self::Org(org) => org.is_the_operators(),
            Self::Team(team) => team.is_the_operators(),
            Self::Why(why) => why.is_the_operators(),
            Self::Audit(audit) => audit.is_the_operators(),
            Self::Sso(_)
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

    /// Whether the command is one of the operator's that was told to ask a server.
    fn asks_instead(&self) -> bool {
        let may_ask = matches!(
            self,
            Self::Token(_)
                | Self::Session(_)
                | Self::User(_)
                | Self::Org(_)
                | Self::Team(_)
                | Self::Why(_)
                | Self::Audit(_)
                | Self::Stack(_)
        );
        may_ask && !self.is_the_operators()
    }
}

/// The commands without an audit log of their own: a server keeps it, or there is nothing to audit.
const WITHOUT_AUDIT_LOG: [&str; 14] = [
    "login",
    "logout",
    "whoami",
    "credential-helper",
    "state",
    "dep",
    "policy",
    "protect",
    "unprotect",
    "issuer",
    "consent",
    "outputs",
    "tf",
    "completions",
];

/// The command line. Every command accepts the option of the audit log; help shows it only where it has an
/// effect.
pub(crate) fn command_line() -> clap::Command {
    let command = Args::command();
    let option = command.get_arguments().find(|option| option.get_id() == "audit_log").cloned();
    WITHOUT_AUDIT_LOG.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |below| below.args(option.clone().map(|option| option.hide(true))))
    })
}

/// The options that name a store.
const OF_STORE: [&str; 7] =
    ["folder", "store", "table", "bucket", "kms_key", "s3_path_style", "attempt_timeout"];

/// Whether the command line itself has an option that names a store. A variable may be set for other
/// commands.
fn names_store(matches: &ArgMatches) -> bool {
    let is_of_store = |id: &clap::Id| {
        OF_STORE.contains(&id.as_str()) && matches.value_source(id.as_str()) == Some(ValueSource::CommandLine)
    };
    match matches.subcommand() {
        Some((_, below)) => names_store(below),
        None => matches.ids().any(is_of_store),
    }
}

/// The parsed command line, of which the first word is the name of the program.
///
/// # Errors
/// A usage error, or clap's request to print help or the version.
pub(crate) fn arguments(words: impl IntoIterator<Item = OsString>) -> Result<Args, clap::Error> {
    let mut command = command_line();
    let matches = command.try_get_matches_from_mut(words)?;
    let args = Args::from_arg_matches(&matches)?;
    if args.command.asks_instead() && names_store(&matches) {
        let why = "a command that asks a server opens no store: leave out the options of one of both";
        return Err(command.error(ErrorKind::ArgumentConflict, why));
    }
    Ok(args)
}

pub(crate) async fn run(command: Command, audit: Option<Arc<AuditFile>>, out: Output) -> anyhow::Result<()> {
    match command {
        Command::Tf(_) if out.is_json() => {
            Err(misused("`tf` does not support --json; use the client's own option: `tf -- plan -json`"))
        }
        Command::Serve(_) | Command::Completions(_) if out.is_json() => Err(misused(
            "--json applies to commands that print an answer; for JSON log lines use `serve --log-format \
             json`",
        )),
        // Boxed: these futures are large, and would grow the future of every command.
        Command::Serve(args) => Box::pin(serve::run(*args, audit)).await,
        Command::Token(token) => Box::pin(token::run(token, out)).await,
        Command::Session(session) => Box::pin(session::run(session, out)).await,
        Command::User(user) => Box::pin(user::run(user, out)).await,
        Command::Sso(sso) => sso::run(sso, out).await,
        Command::Org(org) => Box::pin(org::run(org, out)).await,
        Command::Team(team) => Box::pin(team::run(team, out)).await,
        Command::Why(why) => Box::pin(why::run(why, out)).await,
        Command::Stack(stack) => Box::pin(stack::run(stack, out)).await,
        Command::Login(login) => Box::pin(login::login(login, out)).await,
        Command::Logout(logout) => Box::pin(login::logout(logout, out)).await,
        Command::Whoami(whoami) => Box::pin(login::whoami(whoami, out)).await,
        Command::CredentialHelper(helper) => Box::pin(credential_helper::run(helper, out)).await,
        Command::State(state) => Box::pin(state::run(state, out)).await,
        Command::Dep(dep) => Box::pin(dep::run(dep, out)).await,
        Command::Policy(policy) => Box::pin(policy::run(policy, out)).await,
        Command::Protect(protect) => Box::pin(protect::protect(protect, out)).await,
        Command::Unprotect(unprotect) => Box::pin(protect::unprotect(unprotect, out)).await,
        Command::Issuer(issuer) => Box::pin(issuer::run(issuer, out)).await,
        Command::Consent(consent) => Box::pin(issuer::consent(consent, out)).await,
        Command::Outputs(outputs) => Box::pin(outputs::run(outputs, out)).await,
        Command::Tf(tf) => Box::pin(tf::run(tf, out)).await,
        Command::Rehome(rehome) => rehome::run(rehome, out).await,
        Command::Backup(backup) => backup::backup(backup, out).await,
        Command::Restore(restore) => backup::restore(restore, out).await,
        Command::Copy(copy) => Box::pin(copy::run(copy, out)).await,
        Command::Check(check) => check::run(check, out).await,
        Command::Audit(audit) => Box::pin(audit::run(audit, out)).await,
        Command::Doctor(doctor) => Box::pin(doctor::run(doctor, out)).await,
        Command::Key(key) => key::run(key, out).await,
        Command::Aws(aws) => aws::run(aws, out).await,
        Command::Completions(completions) => completions::run(&completions, command_line(), out),
    }
}

/// The next step for an error whose message has none.
pub(crate) fn next_step(error: &anyhow::Error) -> Option<Cow<'static, str>> {
    match error.downcast_ref::<Failure>() {
        Some(failure) => failure.next_step().map(Cow::Owned),
        None => next_step_of_operator(error.downcast_ref()?).map(Cow::Borrowed),
    }
}

fn next_step_of_operator(error: &Error) -> Option<&'static str> {
    match error {
        Error::Stack(StackError::NotFound(_)) => Some("`statewright stack list` lists the stacks"),
        Error::Stack(StackError::NoVersion { .. } | StackError::Pruned { .. }) => {
            Some("`statewright stack versions STACK` lists the versions")
        }
        Error::Access(AccessError::NoOrg(_)) => Some("`statewright org list` lists the organizations"),
        Error::Access(AccessError::NoUser(_)) => Some("`statewright user list` lists the users"),
        Error::Update(UpdateError::Held(_)) => {
            Some("`statewright stack unlock STACK` ends the update, like `pulumi cancel`")
        }
        Error::Broken(_) => Some(
            "if this is the log of an update: `statewright stack show-log STACK` shows which slots are \
             readable, and `statewright stack publish STACK --from-log --slot N` publishes the log up to \
             slot N",
        ),
        Error::Internal(_) => Some("report it, with this text and the version of `statewright --version`"),
        Error::MasterKey(_) => Some("`statewright doctor` reports what is wrong with it"),
        Error::Port(_) | Error::Contended(_) => Some("no change was left half done: run the command again"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANUAL: &str = include_str!("../../COMMANDS.md");

    /// The commands without subcommands, with their full names and own options.
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

    fn parsed(words: &[&str]) -> Result<Args, clap::Error> {
        arguments(["statewright"].iter().chain(words).map(OsString::from))
    }

    #[test]
    fn a_command_works_on_the_store_or_at_a_server() {
        for words in [
            &["why", "bob", "plan", "acme/web/dev"][..],
            &["audit", "tail", "acme"],
            &["org", "access", "export", "acme"],
            &["org", "grant", "list", "acme"],
            &["org", "member", "list", "acme"],
            &["org", "set", "acme", "--max-token-days", "none"],
            &["team", "list", "acme"],
            &["team", "member", "role", "acme", "ops", "bob", "admin"],
            &["token", "list"],
            &["session", "list"],
            &["stack", "list"],
            &["stack", "versions", "acme/web/dev"],
            &["stack", "diff", "acme/web/dev", "1", "2"],
            &["stack", "restore", "acme/web/dev", "--version", "1"],
            &["stack", "restore", "acme/web/dev", "--deleted"],
            &["stack", "unlock", "acme/web/dev"],
        ] {
            let with = |more: &[&str]| parsed(&[words, more].concat());
            assert!(with(&[]).unwrap().command.is_the_operators(), "{words:?}");
            assert!(with(&["--data", "folder"]).unwrap().command.is_the_operators(), "{words:?}");
            for server in ["--server", "--server=https://state.example.com"] {
                assert!(!with(&[server]).unwrap().command.is_the_operators(), "{words:?}");
                for of_store in [&["--data", "folder"][..], &["--store", "aws"], &["--table", "t"]] {
                    let both = with(&[&[server][..], of_store].concat()).unwrap_err();
                    assert_eq!(both.kind(), ErrorKind::ArgumentConflict, "{words:?} {of_store:?}");
                }
            }
        }
        // These have no other place than a server.
        for words in [&["stack", "resources", "web/dev"][..], &["stack", "history", "web/dev", "urn"]] {
            assert!(!parsed(words).unwrap().command.is_the_operators(), "{words:?}");
            parsed(&[words, &["--data", "folder"]].concat()).unwrap_err();
        }
        // Also if one is before the last word of the command, and the other behind.
        let both = parsed(&["team", "--data", "folder", "list", "acme", "--server"]).unwrap_err();
        assert_eq!(both.kind(), ErrorKind::ArgumentConflict);
        let invite = ["user", "invite", "bob", "--org", "acme", "--role", "view"];
        assert!(!parsed(&invite).unwrap().command.is_the_operators());
        parsed(&[&invite[..], &["--data", "folder"]].concat()).unwrap_err();
        parsed(&[&invite[..], &["--expires-in", "1d"]].concat()).unwrap_err();
        parsed(&[&invite[..], &["--allow-http"]].concat()).unwrap();
        parsed(&["user", "invite", "bob", "--allow-http"]).unwrap_err();
        for bad in ["-1", "1.5", "x", ""] {
            parsed(&["org", "set", "acme", "--max-token-days", bad]).unwrap_err();
        }
        assert!(parsed(&["user", "invite", "bob"]).unwrap().command.is_the_operators());
    }

    #[test]
    fn what_a_server_cannot_do_offers_no_server() {
        for words in [
            &["org", "create", "acme"][..],
            &["org", "list"],
            &["user", "list"],
            &["user", "create", "bob"],
            &["sso", "list"],
            &["check"],
            &["stack", "show-log", "acme/web/dev"],
            &["stack", "publish", "acme/web/dev", "--from-log", "--slot", "1"],
            &["stack", "index", "--all"],
        ] {
            assert!(parsed(words).unwrap().command.is_the_operators(), "{words:?}");
            let refused = parsed(&[words, &["--server"]].concat()).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::UnknownArgument, "{words:?}");
        }
    }

    #[cfg(not(feature = "aws"))]
    #[tokio::test]
    async fn without_aws_a_command_names_the_build_command() {
        let parts = ["--table", "t", "--bucket", "b", "--kms-key", "alias/k"];
        for words in [
            &["doctor", "--store", "aws"][..],
            &["stack", "list", "--store", "aws"],
            &["backup", "--store", "aws", "--to", "folder"],
            &["copy", "--from", "aws", "--to", "folder"],
            &["aws", "setup"],
        ] {
            let args = parsed(&[words, &parts[..]].concat()).unwrap();
            let refused = Box::pin(run(args.command, None, Output::new(false))).await.unwrap_err();
            assert!(refused.is::<crate::args::Misused>(), "{words:?}: {refused:#}");
            assert!(refused.to_string().contains("--features dist"), "{words:?}: {refused:#}");
        }
    }

    #[test]
    fn the_manual_has_every_command_with_its_options() {
        let mut found = Vec::new();
        leaves(&Args::command(), "statewright", &mut found);
        assert!(found.len() > 15, "too few commands found: {found:?}");
        let headings: Vec<&str> = MANUAL.lines().filter_map(|line| line.strip_prefix("## `")).collect();
        assert_eq!(headings.len(), found.len());
        for (words, options) in found {
            let heading = headings.iter().find(|heading| {
                heading.strip_prefix(&words).is_some_and(|rest| rest.starts_with([' ', '`']))
            });
            let heading = heading.unwrap_or_else(|| panic!("the manual lacks {words}"));
            // The pages of the server document its options.
            if words != "statewright serve" {
                for option in options {
                    assert!(heading.contains(&option), "the manual lacks {option} of {words}");
                }
            }
        }
    }
}

//! The command line.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Parser;
use statewright_shared::context::Retention;
use statewright_shared::domain::ids::StackId;
use statewright_shared::domain::names::{Login, OrgName, ProjectName, StackAddress, TokenName};
use statewright_shared::domain::server_url::ServerUrl;

use crate::commands::Command;

/// The place where a team keeps its infrastructure state.
#[derive(Debug, Parser)]
#[command(name = "statewright", version)]
pub(crate) struct Args {
    /// Answer with one JSON document on stdout, for scripts. What goes wrong is said on stderr, as without it.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A state of 1 MiB is some 100 KiB when compressed, which takes no longer to send than an answer takes to come. Only
/// above that does it pay to compare two texts on one side and to put them together on the other.
const DELTA_CUTOFF_BYTES: &str = "1048576";

/// Where the data lie.
#[derive(Debug, clap::Args)]
pub(crate) struct Data {
    /// The folder with all data, which `serve` makes when there is none [default: this platform's data folder].
    #[arg(long = "data", value_name = "FOLDER", env = "STATEWRIGHT_DATA", global = true)]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", env = "STATEWRIGHT_LISTEN", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// The user that the first start makes.
    #[arg(long, value_name = "NAME", default_value = "admin", value_parser = login)]
    pub(crate) user: Login,
    /// The organization that the first start makes; it owns stacks that are named without one.
    #[arg(long, value_name = "NAME", default_value = "main", value_parser = organization)]
    pub(crate) organization: OrgName,
    /// Offer clients without a journal to send deltas between states of at least so many bytes [1 MiB if no number is
    /// given; default: no offer]. They send less then, and leave pending operations out of what they save.
    #[arg(
        long,
        value_name = "BYTES",
        env = "STATEWRIGHT_OFFER_DELTA_CHECKPOINTS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = DELTA_CUTOFF_BYTES
    )]
    pub(crate) offer_delta_checkpoints: Option<u64>,
    #[command(flatten)]
    pub(crate) keep: Keep,
    /// How log lines are written, to stderr.
    #[arg(long, value_enum, env = "STATEWRIGHT_LOG_FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
}

/// What is kept, and for how long. A server judges by these when something is due, so they may be changed at any start.
#[derive(Debug, clap::Args)]
pub(crate) struct Keep {
    /// The newest versions of each stack that are kept [default: all].
    #[arg(long = "keep-versions", value_name = "NUMBER", env = "STATEWRIGHT_KEEP_VERSIONS")]
    versions: Option<NonZeroU64>,
    /// How long after its end an update's events are kept, at least an hour.
    #[arg(
        long = "keep-events",
        value_name = "DURATION",
        env = "STATEWRIGHT_KEEP_EVENTS",
        default_value = "365d",
        value_parser = duration
    )]
    events: Duration,
    /// How long after its end an update's log is kept, at least an hour: what its client saved, step by step.
    #[arg(
        long = "keep-logs",
        value_name = "DURATION",
        env = "STATEWRIGHT_KEEP_LOGS",
        default_value = "90d",
        value_parser = duration
    )]
    logs: Duration,
    /// How long a removed stack can be brought back, before all of it is erased.
    #[arg(
        long = "keep-removed-stacks",
        value_name = "DURATION",
        env = "STATEWRIGHT_KEEP_REMOVED_STACKS",
        default_value = "30d",
        value_parser = duration
    )]
    removed_stacks: Duration,
}

impl Keep {
    /// As the sweeper reads it.
    pub(crate) fn retention(&self) -> Retention {
        let &Self { versions, events, logs, removed_stacks } = self;
        Retention { versions, logs, events, removed_stacks }
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

pub(crate) fn login(text: &str) -> anyhow::Result<Login> {
    Ok(Login::parse(text)?)
}

pub(crate) fn organization(text: &str) -> anyhow::Result<OrgName> {
    Ok(OrgName::parse(text)?)
}

pub(crate) fn token_name(text: &str) -> anyhow::Result<TokenName> {
    Ok(TokenName::parse(text)?)
}

pub(crate) fn stack_address(text: &str) -> anyhow::Result<StackAddress> {
    let parts: Vec<&str> = text.split('/').collect();
    let [org, project, stack] = parts[..] else { bail!("a stack is named as ORGANIZATION/PROJECT/STACK") };
    Ok(StackAddress::parse(org, project, stack)?)
}

pub(crate) fn project(text: &str) -> anyhow::Result<ProjectName> {
    Ok(ProjectName::parse(text)?)
}

pub(crate) fn server_url(text: &str) -> anyhow::Result<ServerUrl> {
    Ok(ServerUrl::parse(text)?)
}

pub(crate) fn stack_id(text: &str) -> anyhow::Result<StackId> {
    StackId::parse(text).ok_or_else(|| anyhow!("an id has the form 01234567-89ab-4cde-8f01-23456789abcd"))
}

pub(crate) fn duration(text: &str) -> anyhow::Result<Duration> {
    let rule = || anyhow!("a duration is a whole number with m, h or d behind it, such as 30m, 12h or 90d");
    let seconds_per_unit = match text.chars().last() {
        Some('m') => 60,
        Some('h') => 3600,
        Some('d') => 24 * 3600,
        _ => return Err(rule()),
    };
    let number: u64 = text.get(..text.len() - 1).and_then(|number| number.parse().ok()).ok_or_else(rule)?;
    number
        .checked_mul(seconds_per_unit)
        .filter(|seconds| *seconds > 0)
        .map(Duration::from_secs)
        .ok_or_else(rule)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn deltas_are_offered_on_request_only_and_above_a_cutoff() {
        let cutoff = |arguments: &[&str]| match Args::try_parse_from(arguments).unwrap().command {
            Command::Serve(serve) => serve.offer_delta_checkpoints,
            _ => panic!("that was no serve"),
        };
        assert_eq!(cutoff(&["statewright", "serve"]), None);
        assert_eq!(cutoff(&["statewright", "serve", "--offer-delta-checkpoints"]), Some(1 << 20));
        assert_eq!(cutoff(&["statewright", "serve", "--offer-delta-checkpoints=500"]), Some(500));
        let negative = ["statewright", "serve", "--offer-delta-checkpoints=-1"];
        assert!(Args::try_parse_from(negative).is_err());
    }

    #[test]
    fn what_is_kept_is_what_the_use_cases_keep_unless_the_operator_says_otherwise() {
        let retention = |arguments: &[&str]| match Args::try_parse_from(arguments).unwrap().command {
            Command::Serve(serve) => serve.keep.retention(),
            _ => panic!("that was no serve"),
        };
        assert_eq!(retention(&["statewright", "serve"]), Retention::DEFAULT);
        let chosen = ["statewright", "serve", "--keep-versions=10", "--keep-logs=7d", "--keep-events=1h"];
        let day = Duration::from_secs(86_400);
        let expected = Retention {
            versions: NonZeroU64::new(10),
            logs: 7 * day,
            events: day / 24,
            ..Retention::DEFAULT
        };
        assert_eq!(retention(&chosen), expected);
        assert!(Args::try_parse_from(["statewright", "serve", "--keep-versions=0"]).is_err());
    }

    #[test]
    fn a_stack_has_three_parts() {
        assert_eq!(stack_address("acme/web/dev").unwrap().to_string(), "acme/web/dev");
        for bad in ["", "dev", "web/dev", "acme/web/dev/", "acme//dev", "a/b/c"] {
            assert!(stack_address(bad).is_err(), "{bad:?} was taken as a stack");
        }
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("90d").unwrap(), Duration::from_secs(90 * 86_400));
        for bad in ["", "d", "0h", "5", "1.5h", "-1d", "5é", "99999999999999999999d"] {
            assert!(duration(bad).is_err(), "{bad:?} was taken as a duration");
        }
    }
}

//! Arguments that several commands share, and the parsers of their values.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use statewright_shared::domain::access::{Grantee, Scope};
use statewright_shared::domain::durations;
use statewright_shared::domain::ids::StackId;
use statewright_shared::domain::names::{
    Login, OrgName, ProjectName, ProviderName, StackAddress, TeamName, TokenName,
};
use statewright_shared::domain::oidc::addresses::Allowed;
use statewright_shared::domain::role::{Right, Role};
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::domain::sign_in::SignInRule;
use statewright_shared::services::identity::grants::Kind;

/// The user that commands on the store are about if they name none.
pub(crate) const OPERATOR: &str = "admin";

/// Options that do not fit together. The process ends with 2, as after any other error of usage.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misused(pub(crate) String);

pub(crate) fn misused(why: impl fmt::Display) -> anyhow::Error {
    Misused(why.to_string()).into()
}

#[derive(Debug, clap::Args)]
pub(crate) struct Data {
    /// The data folder. `serve` creates it if it does not exist [default: this platform's data folder].
    #[arg(long = "data", value_name = "FOLDER", env = "STATEWRIGHT_DATA", global = true)]
    pub(crate) folder: Option<PathBuf>,
    /// Where the data is stored: in a folder on this machine, for one server, or on AWS, for any number of
    /// servers.
    #[arg(long, value_enum, env = "STATEWRIGHT_STORE", default_value = "folder", global = true)]
    pub(crate) store: Store,
    #[command(flatten)]
    pub(crate) aws: AwsStore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Store {
    Folder,
    Aws,
}

/// The parts of the store on AWS, which `statewright aws setup` creates. Region, credentials and endpoint
/// URLs come from the standard AWS settings (`AWS_REGION`, `AWS_PROFILE`, `AWS_ENDPOINT_URL`,
/// `AWS_ENDPOINT_URL_S3`, ...).
#[derive(Debug, clap::Args)]
pub(crate) struct AwsStore {
    /// The DynamoDB table of the store on AWS.
    #[arg(long, value_name = "NAME", env = "STATEWRIGHT_TABLE", global = true)]
    pub(crate) table: Option<String>,
    /// The S3 bucket of the store on AWS.
    #[arg(long, value_name = "NAME", env = "STATEWRIGHT_BUCKET", global = true)]
    pub(crate) bucket: Option<String>,
    /// The KMS key of the store on AWS: an alias (alias/NAME), an identifier or an ARN.
    #[arg(long, value_name = "KEY", env = "STATEWRIGHT_KMS_KEY", global = true)]
    pub(crate) kms_key: Option<String>,
    /// Put the bucket's name into the path of S3 URLs, as AWS emulators require.
    #[arg(long, env = "STATEWRIGHT_S3_PATH_STYLE", global = true)]
    pub(crate) s3_path_style: bool,
    /// How long one attempt of an AWS call may take before it is retried, if that is safe. Storing a blob
    /// gets more time, by its size.
    #[arg(
        long = "aws-attempt-timeout",
        value_name = "DURATION",
        env = "STATEWRIGHT_AWS_ATTEMPT_TIMEOUT",
        default_value = "1s",
        value_parser = short_duration,
        global = true
    )]
    pub(crate) attempt_timeout: Duration,
}

/// Where to keep a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shelf {
    Folder(PathBuf),
    /// The name of an S3 bucket.
    Bucket(String),
}

impl fmt::Display for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Bucket(name) => write!(f, "{BUCKET}{name}"),
        }
    }
}

const BUCKET: &str = "s3://";

pub(crate) fn shelf(text: &str) -> anyhow::Result<Shelf> {
    match text.strip_prefix(BUCKET).map(|bucket| bucket.trim_end_matches('/')) {
        Some(bucket) if bucket.is_empty() || bucket.contains('/') => {
            bail!("write a bucket as s3://BUCKET; it must be dedicated to the backup")
        }
        Some(bucket) => Ok(Shelf::Bucket(bucket.to_owned())),
        None if text.is_empty() => bail!("write a folder, or a bucket as s3://BUCKET"),
        None => Ok(Shelf::Folder(PathBuf::from(text))),
    }
}

/// How to reach and open a backup on AWS, where it differs from the store.
#[derive(Debug, clap::Args)]
pub(crate) struct Kept {
    /// The region of the backup's bucket, if it differs from the store's.
    #[arg(long, value_name = "REGION")]
    pub(crate) backup_region: Option<String>,
    /// The profile with credentials for the backup's bucket and key, if they are in another account.
    #[arg(long, value_name = "PROFILE")]
    pub(crate) backup_profile: Option<String>,
    /// The KMS key that wraps the data keys in the backup, instead of the store's key.
    #[arg(long, value_name = "KEY")]
    pub(crate) backup_kms_key: Option<String>,
}

/// A store as the source or target of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    /// The store that --table, --bucket and --kms-key name.
    Aws,
    Folder(PathBuf),
}

pub(crate) fn store_location(text: &str) -> anyhow::Result<StoreLocation> {
    match text {
        "" => bail!("write `aws`, or the path of a folder"),
        "aws" => Ok(StoreLocation::Aws),
        path => Ok(StoreLocation::Folder(PathBuf::from(path))),
    }
}

pub(crate) fn login(text: &str) -> anyhow::Result<Login> {
    Ok(Login::parse(text)?)
}

/// Logins with commas between them.
pub(crate) fn logins(text: &str) -> anyhow::Result<Arc<[Login]>> {
    Ok(Login::parse_list(text)?.into())
}

pub(crate) fn networks(text: &str) -> anyhow::Result<Allowed> {
    Ok(Allowed::parse(text)?)
}

pub(crate) fn provider(text: &str) -> anyhow::Result<ProviderName> {
    Ok(ProviderName::parse(text)?)
}

pub(crate) fn sign_in_rule(text: &str) -> anyhow::Result<SignInRule> {
    Ok(text.parse()?)
}

pub(crate) fn organization(text: &str) -> anyhow::Result<OrgName> {
    Ok(OrgName::parse(text)?)
}

pub(crate) fn token_name(text: &str) -> anyhow::Result<TokenName> {
    Ok(TokenName::parse(text)?)
}

pub(crate) fn team_name(text: &str) -> anyhow::Result<TeamName> {
    Ok(TeamName::parse(text)?)
}

pub(crate) fn role(text: &str) -> anyhow::Result<Role> {
    Role::parse(text)
        .ok_or_else(|| anyhow!("use one of the roles {}", Role::ALL.map(Role::as_str).join(", ")))
}

pub(crate) fn team(text: &str) -> anyhow::Result<TeamName> {
    Ok(TeamName::parse(text)?)
}

pub(crate) fn grantee(text: &str) -> anyhow::Result<Grantee> {
    Ok(Grantee::parse(text)?)
}

pub(crate) fn scope(text: &str) -> anyhow::Result<Scope> {
    Ok(Scope::parse(text)?)
}

/// A right, by its name or by the name of a command that needs it.
pub(crate) fn action(text: &str) -> anyhow::Result<Right> {
    let names = || Right::ALL.map(Right::as_str).join(", ");
    Right::of_action(text)
        .ok_or_else(|| anyhow!("use one of {}, or a command such as preview, up or delete", names()))
}

/// What a name is of.
pub(crate) fn kind(text: &str) -> anyhow::Result<Kind> {
    Kind::parse(text).ok_or_else(|| anyhow!("use stack, tfstate or environment"))
}

pub(crate) fn stack_address(text: &str) -> anyhow::Result<StackAddress> {
    let parts: Vec<&str> = text.split('/').collect();
    let [org, project, stack] = parts[..] else { bail!("write a stack as ORGANIZATION/PROJECT/STACK") };
    Ok(StackAddress::parse(org, project, stack)?)
}

pub(crate) fn project(text: &str) -> anyhow::Result<ProjectName> {
    Ok(ProjectName::parse(text)?)
}

pub(crate) fn server_url(text: &str) -> anyhow::Result<ServerUrl> {
    Ok(ServerUrl::parse(text)?)
}

pub(crate) fn stack_id(text: &str) -> anyhow::Result<StackId> {
    StackId::parse(text).ok_or_else(|| anyhow!("write an id like 01234567-89ab-4cde-8f01-23456789abcd"))
}

/// The timeout of an attempt, from 100 ms to 60 s.
pub(crate) fn short_duration(text: &str) -> anyhow::Result<Duration> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, Duration::from_millis(1)),
        (None, Some(number)) => (number, Duration::from_secs(1)),
        (None, None) => ("", Duration::ZERO),
    };
    let duration = number.parse::<u16>().ok().and_then(|number| unit.checked_mul(number.into()));
    duration
        .filter(|duration| (Duration::from_millis(100)..=Duration::from_secs(60)).contains(duration))
        .ok_or_else(|| anyhow!("write a whole number followed by ms or s, from 100ms to 60s"))
}

pub(crate) fn duration(text: &str) -> anyhow::Result<Duration> {
    durations::parse(text)
        .ok_or_else(|| anyhow!("write a whole number followed by m, h or d, such as 30m, 12h or 90d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_three_parts() {
        assert_eq!(stack_address("acme/web/dev").unwrap().to_string(), "acme/web/dev");
        for bad in ["", "dev", "web/dev", "acme/web/dev/", "acme//dev", "a/b/c"] {
            assert!(stack_address(bad).is_err(), "{bad:?} was accepted as a stack");
        }
    }

    #[test]
    fn a_bucket_is_written_with_its_scheme() {
        assert_eq!(shelf("s3://acme-backup").unwrap(), Shelf::Bucket("acme-backup".to_owned()));
        assert_eq!(shelf("s3://acme-backup/").unwrap().to_string(), "s3://acme-backup");
        assert_eq!(shelf("acme-backup").unwrap(), Shelf::Folder(PathBuf::from("acme-backup")));
        for bad in ["", "s3://", "s3:///", "s3://a/b"] {
            assert!(shelf(bad).is_err(), "{bad:?} was accepted as a place for a backup");
        }
    }

    #[test]
    fn attempt_timeouts_are_from_100_ms_to_a_minute() {
        assert_eq!(short_duration("1s").unwrap(), Duration::from_secs(1));
        assert_eq!(short_duration("1500ms").unwrap(), Duration::from_millis(1500));
        assert_eq!(short_duration("100ms").unwrap(), Duration::from_millis(100));
        for bad in ["", "s", "ms", "99ms", "61s", "1", "1m", "0s", "-1s", "1.5s", "70000s"] {
            assert!(short_duration(bad).is_err(), "{bad:?} was accepted as a duration");
        }
    }
}

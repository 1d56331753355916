//! What a function is told by its environment.

use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use statewright_shared::adapters::aws::ATTEMPT_TIMEOUT;
use statewright_shared::domain::durations;
use statewright_shared::settings::{Retention, Settings, StateLimits};

/// The table.
const TABLE: &str = "STATEWRIGHT_TABLE";
/// The bucket. Empty for a function without blobs.
const BUCKET: &str = "STATEWRIGHT_BUCKET";
/// The KMS key. Empty for a function without keys.
const KMS_KEY: &str = "STATEWRIGHT_KMS_KEY";
/// `true` puts the bucket's name into the path of S3's URL, as stand-ins for AWS need it.
const S3_PATH_STYLE: &str = "STATEWRIGHT_S3_PATH_STYLE";
/// How long an attempt at a service may take, in milliseconds.
const ATTEMPT_MS: &str = "STATEWRIGHT_ATTEMPT_MS";
/// As of `statewright serve`: clients without a journal are offered to send deltas between texts of so many bytes.
const OFFER_DELTA_CHECKPOINTS: &str = "STATEWRIGHT_OFFER_DELTA_CHECKPOINTS";
/// As of `statewright serve`: the newest versions of each stack that are kept; all where it is empty.
const KEEP_VERSIONS: &str = "STATEWRIGHT_KEEP_VERSIONS";
/// As of `statewright serve`: how long an update's events are kept.
const KEEP_EVENTS: &str = "STATEWRIGHT_KEEP_EVENTS";
/// As of `statewright serve`: how long an update's log is kept.
const KEEP_LOGS: &str = "STATEWRIGHT_KEEP_LOGS";
/// As of `statewright serve`: how long a removed stack can be brought back.
const KEEP_REMOVED_STACKS: &str = "STATEWRIGHT_KEEP_REMOVED_STACKS";
/// As of `statewright serve`: the newest versions of each Terraform state that are kept; all where it is empty.
const KEEP_STATE_VERSIONS: &str = "STATEWRIGHT_KEEP_STATE_VERSIONS";
/// As of `statewright serve`: how long a refused write of a Terraform state is kept.
const KEEP_REJECTED_STATES: &str = "STATEWRIGHT_KEEP_REJECTED_STATES";
/// What deployment the function belongs to, which is a dimension of its metrics.
const DEPLOYMENT: &str = "STATEWRIGHT_DEPLOYMENT";
/// Whether a sweep adds to metrics, which cost by the month; it does unless this is `DISABLED`.
const METRICS: &str = "STATEWRIGHT_METRICS";
/// As of OpenTelemetry: where a collector of traces listens. Without it nothing is traced.
const COLLECTOR: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Environment {
    pub(crate) collector: Option<String>,
    pub(crate) deployment: Option<String>,
    pub(crate) metrics: bool,
    pub(crate) table: String,
    pub(crate) bucket: String,
    pub(crate) kms_key: String,
    pub(crate) s3_path_style: bool,
    pub(crate) attempt_timeout: Duration,
    pub(crate) settings: Settings,
}

/// A variable that is missing or cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the variable {0} {1}")]
pub(crate) struct Wrong(&'static str, &'static str);

impl Environment {
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Wrong> {
        // A template writes an empty text where nothing was chosen.
        let said = |name| variable(name).filter(|value| !value.is_empty());
        let duration = |name, otherwise| match said(name) {
            Some(text) => durations::parse(&text)
                .ok_or(Wrong(name, "is no duration: a whole number with m, h or d behind it, such as 90d")),
            None => Ok(otherwise),
        };
        let Retention { versions: _, logs, events, removed_stacks, state_versions: _, rejected_states } =
            Retention::DEFAULT;
        Ok(Self {
            collector: said(COLLECTOR),
            deployment: said(DEPLOYMENT),
            metrics: said(METRICS).is_none_or(|value| value != "DISABLED"),
            table: said(TABLE).ok_or(Wrong(TABLE, "names no table"))?,
            bucket: said(BUCKET).unwrap_or_default(),
            kms_key: said(KMS_KEY).unwrap_or_default(),
            s3_path_style: said(S3_PATH_STYLE).is_some_and(|value| value == "true"),
            attempt_timeout: number(ATTEMPT_MS, said(ATTEMPT_MS))?
                .map_or(ATTEMPT_TIMEOUT, |ms: NonZeroU64| Duration::from_millis(ms.get())),
            settings: Settings {
                delta_cutoff_bytes: number(OFFER_DELTA_CHECKPOINTS, said(OFFER_DELTA_CHECKPOINTS))?,
                retention: Retention {
                    versions: number(KEEP_VERSIONS, said(KEEP_VERSIONS))?,
                    logs: duration(KEEP_LOGS, logs)?,
                    events: duration(KEEP_EVENTS, events)?,
                    removed_stacks: duration(KEEP_REMOVED_STACKS, removed_stacks)?,
                    state_versions: number(KEEP_STATE_VERSIONS, said(KEEP_STATE_VERSIONS))?,
                    rejected_states: duration(KEEP_REJECTED_STATES, rejected_states)?,
                },
                // A request knows its door, which is narrower.
                states: StateLimits::SERVER,
            },
        })
    }
}

fn number<N: FromStr>(name: &'static str, said: Option<String>) -> Result<Option<N>, Wrong> {
    said.map(|text| text.parse().map_err(|_| Wrong(name, "is no number that is possible here"))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, Wrong> {
        let found = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Environment::read(|name| found(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn what_is_not_said_is_as_of_the_server() {
        let environment = read(&[(TABLE, "t"), (KEEP_VERSIONS, ""), (BUCKET, "")]).unwrap();
        assert_eq!(environment.settings, Settings::DEFAULT);
        assert_eq!(environment.attempt_timeout, ATTEMPT_TIMEOUT);
        assert_eq!((environment.table.as_str(), environment.bucket.as_str()), ("t", ""));
    }

    #[test]
    fn what_is_said_is_read_or_named_as_wrong() {
        let said =
            read(&[(TABLE, "t"), (KEEP_VERSIONS, "10"), (KEEP_LOGS, "7d"), (ATTEMPT_MS, "250")]).unwrap();
        assert_eq!(said.settings.retention.versions, NonZeroU64::new(10));
        assert_eq!(said.settings.retention.logs, Duration::from_secs(7 * 86_400));
        assert_eq!(said.attempt_timeout, Duration::from_millis(250));
        for (name, value) in [(KEEP_VERSIONS, "0"), (KEEP_LOGS, "week"), (ATTEMPT_MS, "-1"), (TABLE, "")] {
            let variables =
                if name == TABLE { vec![(TABLE, value)] } else { vec![(TABLE, "t"), (name, value)] };
            assert_eq!(read(&variables).unwrap_err().0, name);
        }
    }
}

//! The settings of a function, from environment variables.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::time::Duration;

use statewright_shared::adapters::StsEndpoint;
use statewright_shared::adapters::aws::ATTEMPT_TIMEOUT;
use statewright_shared::context::GivenProvider;
use statewright_shared::domain::durations;
use statewright_shared::domain::names::Login;
use statewright_shared::domain::oidc::addresses::Allowed;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::services::identity::given_providers;
use statewright_shared::settings::{Retention, Settings, StateLimits};

/// The table.
const TABLE: &str = "STATEWRIGHT_TABLE";
/// The bucket. Empty for a function without blobs.
const BUCKET: &str = "STATEWRIGHT_BUCKET";
/// The KMS key. Empty for a function without keys.
const KMS_KEY: &str = "STATEWRIGHT_KMS_KEY";
/// `true` puts the bucket's name into the path of S3 URLs, as AWS emulators require.
const S3_PATH_STYLE: &str = "STATEWRIGHT_S3_PATH_STYLE";
/// Timeout of an attempt of an AWS call, in milliseconds.
const ATTEMPT_MS: &str = "STATEWRIGHT_ATTEMPT_MS";
/// As for `statewright serve`: let clients without journaling send deltas for states of at least this many
/// bytes.
const OFFER_DELTA_CHECKPOINTS: &str = "STATEWRIGHT_OFFER_DELTA_CHECKPOINTS";
/// As for `statewright serve`: how many of the newest versions of each stack to keep; all if empty.
const KEEP_VERSIONS: &str = "STATEWRIGHT_KEEP_VERSIONS";
/// As for `statewright serve`: how long to keep an update's events.
const KEEP_EVENTS: &str = "STATEWRIGHT_KEEP_EVENTS";
/// As for `statewright serve`: how long to keep an update's log.
const KEEP_LOGS: &str = "STATEWRIGHT_KEEP_LOGS";
/// As for `statewright serve`: how long a deleted stack can be undeleted.
const KEEP_DELETED: &str = "STATEWRIGHT_KEEP_REMOVED_STACKS";
/// As for `statewright serve`: how many of the newest versions of each Terraform state to keep; all if empty.
const KEEP_STATE_VERSIONS: &str = "STATEWRIGHT_KEEP_STATE_VERSIONS";
/// As for `statewright serve`: how long to keep a refused write of a Terraform state.
const KEEP_REJECTED_STATES: &str = "STATEWRIGHT_KEEP_REJECTED_STATES";
/// As for `statewright serve`: the address of this server, which principals of AWS sign.
const ADDRESS: &str = "STATEWRIGHT_ADDRESS";
/// The name of the server in its address, for a deployment that does not name the address itself.
const DOMAIN: &str = "STATEWRIGHT_DOMAIN";
/// As for `statewright serve`: providers of sign-ins, as JSON.
const PROVIDERS: &str = given_providers::VARIABLE;
/// As for `statewright serve`: ranges of addresses inside networks that issuers of tokens
/// and providers of sign-ins may have.
const ISSUER_NETWORKS: &str = "STATEWRIGHT_ISSUER_NETWORKS";
/// As for `statewright serve`: where AWS STS is reached; at the addresses of its hosts if empty.
const STS_ENDPOINT: &str = "STATEWRIGHT_STS_ENDPOINT";
/// As for `statewright serve`: the users who administer the server.
const SERVER_ADMINS: &str = "STATEWRIGHT_SERVER_ADMINS";
/// As for `statewright serve`: how long to keep audit records.
const KEEP_AUDIT: &str = "STATEWRIGHT_KEEP_AUDIT";
/// The name of the deployment, which is the dimension of its metrics.
const DEPLOYMENT: &str = "STATEWRIGHT_DEPLOYMENT";
/// `DISABLED` turns off the metrics of sweeps, which AWS charges monthly.
const METRICS: &str = "STATEWRIGHT_METRICS";
/// As defined by OpenTelemetry: the address of a trace collector. Without it nothing is traced.
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
    pub(crate) issuer_networks: Allowed,
    pub(crate) sts_endpoint: Option<StsEndpoint>,
    pub(crate) address: Option<ServerUrl>,
    pub(crate) providers: Vec<GivenProvider>,
    pub(crate) server_admins: Vec<Login>,
}

/// A variable that is missing or invalid.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the variable {0} {1}")]
pub(crate) struct Wrong(&'static str, Cow<'static, str>);

const fn wrong(name: &'static str, why: &'static str) -> Wrong {
    Wrong(name, Cow::Borrowed(why))
}

/// The address of the collector of traces, if there is one.
pub(crate) fn collector(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    // Templates set an empty string for a default.
    variable(COLLECTOR).filter(|value| !value.is_empty())
}

impl Environment {
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Wrong> {
        // Templates set an empty string for a default.
        let value_of = |name: &str| variable(name).filter(|value| !value.is_empty());
        let duration = |name, otherwise| match value_of(name) {
            Some(text) => durations::parse(&text)
                .ok_or(wrong(name, "must be a whole number followed by m, h or d, such as 90d")),
            None => Ok(otherwise),
        };
        let Retention { versions: _, logs, events, deleted, state_versions: _, rejected_states, audit } =
            Retention::DEFAULT;
        let address = value_of(ADDRESS).or_else(|| Some(format!("https://{}", value_of(DOMAIN)?)));
        let address = address
            .map(|text| ServerUrl::parse(&text))
            .transpose()
            .map_err(|_| wrong(ADDRESS, "must be an address, such as https://state.example.com"))?;
        let providers = match value_of(PROVIDERS) {
            Some(text) => given_providers::parse(&text, address.as_ref(), value_of)
                .map_err(|error| Wrong(PROVIDERS, error.to_string().into()))?,
            None => Vec::new(),
        };
        Ok(Self {
            collector: collector(&variable),
            deployment: value_of(DEPLOYMENT),
            metrics: value_of(METRICS).is_none_or(|value| value != "DISABLED"),
            table: value_of(TABLE).ok_or(wrong(TABLE, "is not set: set it to the name of the table"))?,
            bucket: value_of(BUCKET).unwrap_or_default(),
            kms_key: value_of(KMS_KEY).unwrap_or_default(),
            s3_path_style: value_of(S3_PATH_STYLE).is_some_and(|value| value == "true"),
            address,
            providers,
            server_admins: Login::parse_list(&value_of(SERVER_ADMINS).unwrap_or_default())
                .map_err(|_| wrong(SERVER_ADMINS, "must be logins with commas between them"))?,
            issuer_networks: Allowed::parse(&value_of(ISSUER_NETWORKS).unwrap_or_default())
                .map_err(|_| wrong(ISSUER_NETWORKS, "must be ranges of addresses, such as 10.1.0.0/16"))?,
            sts_endpoint: value_of(STS_ENDPOINT)
                .map(|text| text.parse::<StsEndpoint>())
                .transpose()
                .map_err(|_| wrong(STS_ENDPOINT, "must be a host, such as sts.internal.example.com"))?,
            attempt_timeout: number(ATTEMPT_MS, value_of(ATTEMPT_MS))?
                .map_or(ATTEMPT_TIMEOUT, |ms: NonZeroU64| Duration::from_millis(ms.get())),
            settings: Settings {
                delta_cutoff_bytes: number(OFFER_DELTA_CHECKPOINTS, value_of(OFFER_DELTA_CHECKPOINTS))?,
                retention: Retention {
                    versions: number(KEEP_VERSIONS, value_of(KEEP_VERSIONS))?,
                    logs: duration(KEEP_LOGS, logs)?,
                    events: duration(KEEP_EVENTS, events)?,
                    deleted: duration(KEEP_DELETED, deleted)?,
                    state_versions: number(KEEP_STATE_VERSIONS, value_of(KEEP_STATE_VERSIONS))?,
                    rejected_states: duration(KEEP_REJECTED_STATES, rejected_states)?,
                    audit: duration(KEEP_AUDIT, audit)?,
                },
                // The limit of the gateway, which is lower, applies to each request.
                states: StateLimits::FUNCTION,
            },
        })
    }
}

fn number<N: FromStr>(name: &'static str, value: Option<String>) -> Result<Option<N>, Wrong> {
    value.map(|text| text.parse().map_err(|_| wrong(name, "is not a valid number"))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, Wrong> {
        let found = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Environment::read(|name| found(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn defaults_are_those_of_the_server() {
        let environment = read(&[(TABLE, "t"), (KEEP_VERSIONS, ""), (BUCKET, "")]).unwrap();
        let expected = Settings { states: StateLimits::FUNCTION, ..Settings::DEFAULT };
        assert_eq!(environment.settings, expected);
        assert_eq!(environment.attempt_timeout, ATTEMPT_TIMEOUT);
        assert_eq!((environment.table.as_str(), environment.bucket.as_str()), ("t", ""));
    }

    #[test]
    fn invalid_values_are_reported_with_their_variable() {
        let environment =
            read(&[(TABLE, "t"), (KEEP_VERSIONS, "10"), (KEEP_LOGS, "7d"), (ATTEMPT_MS, "250")]).unwrap();
        assert_eq!(environment.settings.retention.versions, NonZeroU64::new(10));
        assert_eq!(environment.settings.retention.logs, Duration::from_secs(7 * 86_400));
        assert_eq!(environment.attempt_timeout, Duration::from_millis(250));
        for (name, value) in [
            (KEEP_VERSIONS, "0"),
            (KEEP_LOGS, "week"),
            (ATTEMPT_MS, "-1"),
            (ISSUER_NETWORKS, "inside"),
            (STS_ENDPOINT, "https://sts.internal.example.com"),
            (ADDRESS, "state"),
            (PROVIDERS, "corp"),
            (SERVER_ADMINS, "alice,a b"),
            (TABLE, ""),
        ] {
            let variables =
                if name == TABLE { vec![(TABLE, value)] } else { vec![(TABLE, "t"), (name, value)] };
            assert_eq!(read(&variables).unwrap_err().0, name);
        }
    }

    #[test]
    fn an_address_is_named_by_its_domain_too() {
        let address = |variables: &[(&str, &str)]| {
            let variables: Vec<_> = variables.iter().copied().chain([(TABLE, "t")]).collect();
            read(&variables).unwrap().address.map(|address| address.to_string())
        };
        assert_eq!(address(&[(DOMAIN, "")]), None);
        assert_eq!(address(&[(DOMAIN, "a.example.com")]).as_deref(), Some("https://a.example.com"));
        let both = [(ADDRESS, "https://b.example.com/x"), (DOMAIN, "a.example.com")];
        assert_eq!(address(&both).as_deref(), Some("https://b.example.com/x"));
    }

    #[test]
    fn providers_take_their_secrets_from_variables() {
        const TEXT: &str = r#"[{ "name": "corp", "issuer": "https://id.example.com", "clientId": "x",
            "clientSecretVariable": "SECRET" }]"#;
        let all = [(TABLE, "t"), (DOMAIN, "a.example.com"), (PROVIDERS, TEXT), ("SECRET", "hunter2")];
        let providers = read(&all).unwrap().providers;
        assert_eq!(providers[0].secret.as_deref(), Some("hunter2"));
        assert_eq!(providers[0].provider.server, "https://a.example.com");
        let message = read(&all[..3]).unwrap_err().to_string();
        assert!(message.starts_with("the variable STATEWRIGHT_SIGN_IN_PROVIDERS describes"), "{message}");
        assert!(message.contains("\"SECRET\" with its client secret is empty"), "{message}");
    }
}

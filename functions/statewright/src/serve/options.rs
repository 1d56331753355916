//! Options of `statewright serve`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use statewright_shared::adapters::StsEndpoint;
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::domain::oidc::addresses::Allowed;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::services::identity::given_providers::VARIABLE;
use statewright_shared::settings::{Retention, StateLimits};
use tracing_subscriber::filter::Targets;

use crate::args::{Data, duration, login, logins, networks, organization, server_url};

/// The size of a state, in bytes, above which deltas pay off. A smaller one compresses to some 100 KiB, which
/// takes no longer to send than the response takes; so comparing texts on one side and patching on the other
/// gains nothing.
const DELTA_CUTOFF_BYTES: &str = "1048576";

/// The port of a server on this machine for which the CLI knows where the console is.
const KNOWN_PORT: u16 = 8080;

/// The port where the CLI then looks for the console. Source: pulumi/pulumi v3.274.1,
/// `pkg/backend/httpstate/client/console.go`.
const CONSOLE_PORT: u16 = 3000;

/// More connections than a client opens for one command, and than the clients behind one address open at
/// once.
const CONNECTIONS_PER_ADDRESS: usize = 256;

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", env = "STATEWRIGHT_LISTEN", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Another address to listen on, for links to the console: `pulumi` looks for that of localhost:8080 at
    /// localhost:3000. `none` for no other address [default: port 3000, if --listen is port 8080 of this machine].
    #[arg(long, value_name = "ADDRESS", env = "STATEWRIGHT_CONSOLE_LISTEN")]
    pub(crate) console_listen: Option<ConsoleListen>,
    /// Serve HTTPS with the certificates in this PEM file, the server's own first. Read again on SIGHUP.
    #[arg(long, value_name = "FILE", env = "STATEWRIGHT_TLS_CERT", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, a PEM file.
    #[arg(long, value_name = "FILE", env = "STATEWRIGHT_TLS_KEY", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// On AWS: create the first user if there is none, and print an access token that never expires. With a
    /// folder, the first start does this by default.
    #[arg(long)]
    pub(crate) first_user: bool,
    /// The user that the first start creates.
    #[arg(long, value_name = "NAME", default_value = "admin", value_parser = login)]
    pub(crate) user: Login,
    /// The organization that the first start creates. It owns stacks that are named without one.
    #[arg(long, value_name = "NAME", default_value = "main", value_parser = organization)]
    pub(crate) organization: OrgName,
    /// Let clients without journaling send only the changes, for states of at least this many bytes [1 MiB if
    /// no number is given; default: off]. Such clients do not save pending operations.
    #[arg(
        long,
        value_name = "BYTES",
        env = "STATEWRIGHT_OFFER_DELTA_CHECKPOINTS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = DELTA_CUTOFF_BYTES
    )]
    pub(crate) offer_delta_checkpoints: Option<u64>,
    /// The address of this server, as clients write it. Principals of AWS sign it when they sign in.
    #[arg(long, value_name = "URL", env = "STATEWRIGHT_ADDRESS", value_parser = server_url)]
    pub(crate) address: Option<ServerUrl>,
    #[command(flatten)]
    pub(crate) keep: Keep,
    /// Private addresses that issuers of tokens and sign-in providers may have, as ranges such as
    /// 10.1.0.0/16,127.0.0.1 [default: public addresses only].
    #[arg(long, value_name = "RANGES", env = "STATEWRIGHT_ISSUER_NETWORKS", value_parser = networks)]
    pub(crate) issuer_networks: Option<Allowed>,
    /// The host, or HOST:PORT, at which AWS STS is reached from a private network. It needs the certificate of AWS
    /// STS all the same, and so serves the principals of its own region [default: by the name of AWS STS].
    #[arg(long, value_name = "HOST", env = "STATEWRIGHT_STS_ENDPOINT")]
    pub(crate) sts_endpoint: Option<StsEndpoint>,
    /// Users who may see how the server is doing and what each organization stores, such as
    /// alice,bob [default: none].
    #[arg(long, value_name = "LOGINS", env = "STATEWRIGHT_SERVER_ADMINS", value_parser = logins)]
    pub(crate) server_admins: Option<Arc<[Login]>>,
    /// Providers that people sign in with, as JSON, in addition to those of `statewright sso`. A provider
    /// replaces a stored one of the same name.
    #[arg(long, value_name = "JSON", env = VARIABLE)]
    pub(crate) sign_in_providers: Option<String>,
    /// The log level (`error`, `warn`, `info`, `debug`, `trace` or `off`), optionally with levels for single
    /// targets: `info,access=off`.
    #[arg(long, value_name = "FILTER", env = "STATEWRIGHT_LOG", default_value = "info")]
    pub(crate) log: Targets,
    /// The format of log lines on stderr.
    #[arg(long, value_enum, env = "STATEWRIGHT_LOG_FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// Serve Prometheus metrics on this address, at /metrics, without authentication [default: not served].
    #[arg(long, value_name = "ADDRESS", env = "STATEWRIGHT_METRICS_LISTEN")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Send traces to the collector at this URL, by OTLP over HTTP: a span for each request and each of its
    /// storage calls [default: no traces].
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub(crate) otlp_endpoint: Option<String>,
    /// The limit on concurrent requests for one access token or update; requests beyond it get 429, and
    /// clients retry.
    #[arg(
        long,
        value_name = "NUMBER",
        env = "STATEWRIGHT_REQUESTS_PER_TOKEN",
        default_value_t = statewright_shared::limits::REQUESTS_PER_TOKEN_MAX,
    )]
    pub(crate) requests_per_token: usize,
    /// The memory for all concurrent requests, in MiB: for request bodies, data being processed, and responses
    /// not sent yet. Requests beyond it wait; after 20 seconds their clients are asked to retry.
    #[arg(
        long,
        value_name = "MIB",
        env = "STATEWRIGHT_BODY_MEMORY",
        default_value_t = statewright_shared::limits::MEMORY_BYTES_MAX >> 20,
    )]
    pub(crate) body_memory: usize,
    /// The limit on connections without a valid token from one address; others are closed. 0 means no limit:
    /// use it behind a proxy, where all clients have the proxy's address.
    #[arg(
        long,
        value_name = "NUMBER",
        env = "STATEWRIGHT_CONNECTIONS_PER_ADDRESS",
        default_value_t = CONNECTIONS_PER_ADDRESS,
    )]
    pub(crate) connections_per_address: usize,
    /// The size limit of a Terraform state, in MiB, up to 512. A client whose state is too large has already
    /// changed the infrastructure when it is refused, so keep this high.
    #[arg(
        long,
        value_name = "MIB",
        env = "STATEWRIGHT_STATE_SIZE",
        default_value_t = StateLimits::SERVER.bytes_max >> 20,
    )]
    pub(crate) state_size: usize,
}

/// Where else a server listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsoleListen {
    /// Nowhere.
    Never,
    /// At this address.
    At(SocketAddr),
}

impl FromStr for ConsoleListen {
    type Err = std::net::AddrParseError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::Never),
            address => address.parse().map(Self::At),
        }
    }
}

/// Whether `localhost` leads to this address. It leads to no other loopback address, such as 127.0.0.2.
fn is_localhost(ip: IpAddr) -> bool {
    ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST
}

/// The name of an address that this machine alone reaches, if the CLI knows it by name. States then have this name.
pub(super) fn known_name(address: SocketAddr) -> Option<String> {
    let is_known = is_localhost(address.ip()) && [KNOWN_PORT, CONSOLE_PORT].contains(&address.port());
    is_known.then(|| format!("localhost:{}", address.port()))
}

/// The other address that the name of [`known_name`] may lead to.
pub(super) fn twin(address: SocketAddr) -> Option<SocketAddr> {
    known_name(address)?;
    let other: IpAddr =
        if address.is_ipv4() { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() };
    Some(SocketAddr::new(other, address.port()))
}

impl Serve {
    /// The address where the CLI looks for the console, if it does.
    pub(crate) fn expected_console(&self) -> Option<SocketAddr> {
        let is_expected = is_localhost(self.listen.ip()) && self.listen.port() == KNOWN_PORT;
        is_expected.then(|| SocketAddr::new(self.listen.ip(), CONSOLE_PORT))
    }

    pub(crate) fn state_limits(&self) -> StateLimits {
        StateLimits { bytes_max: self.state_size.saturating_mul(1 << 20), ..StateLimits::SERVER }
    }
}

/// How long data is kept. The limits apply when the sweeper checks an item, so they can change at any start.
#[derive(Debug, clap::Args)]
pub(crate) struct Keep {
    /// How many of the newest versions of each stack to keep [default: all].
    #[arg(long = "keep-versions", value_name = "NUMBER", env = "STATEWRIGHT_KEEP_VERSIONS")]
    versions: Option<NonZeroU64>,
    /// How long to keep an update's events after its end; at least an hour.
    #[arg(
        long = "keep-events",
        value_name = "DURATION",
        env = "STATEWRIGHT_KEEP_EVENTS",
        default_value = "365d",
        value_parser = duration
    )]
    events: Duration,
    /// How long to keep an update's log (each step that its client saved) after its end; at least an hour.
    #[arg(
        long = "keep-logs",
        value_name = "DURATION",
        env = "STATEWRIGHT_KEEP_LOGS",
        default_value = "90d",
        value_parser = duration
    )]
    logs: Duration,
    /// How long a deleted stack, state or environment can be undeleted before it is erased.
    #[arg(
        long = "keep-removed-stacks",
        value_name = "DURATION",
        env = "STATEWRIGHT_KEEP_REMOVED_STACKS",
        default_value = "30d",
        value_parser = duration
    )]
    deleted: Duration,
    /// How many of the newest versions of each Terraform state to keep [default: all].
    #[arg(long = "keep-state-versions", value_name = "NUMBER", env = "STATEWRIGHT_KEEP_STATE_VERSIONS")]
    state_versions: Option<NonZeroU64>,
    /// How long to keep a refused write of a Terraform state, so that it can be inspected and restored.
    #[arg(
        long = "keep-rejected-states",
        value_name = "DURATION",
        env = "STATEWRIGHT_KEEP_REJECTED_STATES",
        default_value = "30d",
        value_parser = duration
    )]
    rejected_states: Duration,
    /// How long to keep the records of the audit trail after their day.
    #[arg(
        long = "keep-audit",
        value_name = "DURATION",
        env = "STATEWRIGHT_KEEP_AUDIT",
        default_value = "400d",
        value_parser = duration
    )]
    audit: Duration,
}

impl Keep {
    pub(crate) fn retention(&self) -> Retention {
        let &Self { versions, events, logs, deleted, state_versions, rejected_states, audit } = self;
        Retention { versions, logs, events, deleted, state_versions, rejected_states, audit }
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::commands::{Args, Command};

    #[test]
    fn deltas_are_offered_on_request_only_and_above_a_cutoff() {
        let cutoff = |arguments: &[&str]| match Args::try_parse_from(arguments).unwrap().command {
            Command::Serve(serve) => serve.offer_delta_checkpoints,
            _ => panic!("expected the command serve"),
        };
        assert_eq!(cutoff(&["statewright", "serve"]), None);
        assert_eq!(cutoff(&["statewright", "serve", "--offer-delta-checkpoints"]), Some(1 << 20));
        assert_eq!(cutoff(&["statewright", "serve", "--offer-delta-checkpoints=500"]), Some(500));
        let negative = ["statewright", "serve", "--offer-delta-checkpoints=-1"];
        assert!(Args::try_parse_from(negative).is_err());
    }

    #[test]
    fn the_console_is_where_the_cli_looks_for_it() {
        let serve = |arguments: &[&str]| {
            let arguments = [&["statewright", "serve"], arguments].concat();
            match Args::try_parse_from(arguments).unwrap().command {
                Command::Serve(serve) => (serve.console_listen, serve.expected_console()),
                _ => panic!("expected the command serve"),
            }
        };
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(serve(&[]), (None, Some(address("127.0.0.1:3000"))));
        assert_eq!(serve(&["--listen=[::1]:8080"]), (None, Some(address("[::1]:3000"))));
        for other in ["127.0.0.1:8081", "127.0.0.2:8080", "0.0.0.0:8080", "10.0.0.1:8080"] {
            assert_eq!(serve(&["--listen", other]), (None, None), "{other}");
        }
        assert_eq!(serve(&["--console-listen=none"]).0, Some(ConsoleListen::Never));
        let chosen = serve(&["--console-listen=127.0.0.1:4000"]).0;
        assert_eq!(chosen, Some(ConsoleListen::At(address("127.0.0.1:4000"))));
        assert!(Args::try_parse_from(["statewright", "serve", "--console-listen=no"]).is_err());

        assert_eq!(known_name(address("127.0.0.1:8080")).as_deref(), Some("localhost:8080"));
        assert_eq!(known_name(address("[::1]:3000")).as_deref(), Some("localhost:3000"));
        assert_eq!(twin(address("127.0.0.1:8080")), Some(address("[::1]:8080")));
        assert_eq!(twin(address("[::1]:3000")), Some(address("127.0.0.1:3000")));
        for other in ["127.0.0.1:8081", "127.0.0.2:8080", "0.0.0.0:8080", "10.0.0.1:3000"] {
            assert_eq!((known_name(address(other)), twin(address(other))), (None, None), "{other}");
        }
    }

    #[test]
    fn retention_defaults_apply_unless_options_are_set() {
        let retention = |arguments: &[&str]| match Args::try_parse_from(arguments).unwrap().command {
            Command::Serve(serve) => serve.keep.retention(),
            _ => panic!("expected the command serve"),
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
}

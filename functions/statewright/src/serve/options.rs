//! What `statewright serve` is told.

use std::net::SocketAddr;
use std::path::PathBuf;

use statewright_shared::domain::names::{Login, OrgName};

use crate::args::{Data, login, organization};

/// A state of 1 MiB is some 100 KiB when compressed, which takes no longer to send than an answer takes to come. Only
/// above that does it pay to compare two texts on one side and to put them together on the other.
const DELTA_CUTOFF_BYTES: &str = "1048576";

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) data: Data,
    /// The address to listen on.
    #[arg(long, value_name = "ADDRESS", env = "STATEWRIGHT_LISTEN", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,
    /// Serve HTTPS with the certificates in this PEM file, the server's own first. Read again on SIGHUP.
    #[arg(long, value_name = "FILE", env = "STATEWRIGHT_TLS_CERT", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, a PEM file.
    #[arg(long, value_name = "FILE", env = "STATEWRIGHT_TLS_KEY", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
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
    /// How log lines are written, to stderr.
    #[arg(long, value_enum, env = "STATEWRIGHT_LOG_FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// Serve metrics for Prometheus on this address, at /metrics, to whoever asks [default: not served].
    #[arg(long, value_name = "ADDRESS", env = "STATEWRIGHT_METRICS_LISTEN")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Send traces to the collector at this URL, by OTLP over HTTP: a span for each request, with its calls of the store
    /// [default: none are made].
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub(crate) otlp_endpoint: Option<String>,
    /// Requests of one access token, or of one update, that may be under way at once.
    #[arg(
        long,
        value_name = "NUMBER",
        env = "STATEWRIGHT_REQUESTS_PER_TOKEN",
        default_value_t = statewright_shared::limits::REQUESTS_PER_TOKEN_MAX,
    )]
    pub(crate) requests_per_token: usize,
    /// The memory, in MiB, for the bodies of all requests that are received and parsed at once. Others wait; one request
    /// may go over it.
    #[arg(
        long,
        value_name = "MIB",
        env = "STATEWRIGHT_BODY_MEMORY",
        default_value_t = statewright_shared::limits::BODIES_BYTES_MAX >> 20,
    )]
    pub(crate) body_memory: usize,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

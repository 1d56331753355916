//! The limits on input, with the unit and the reason of each.

use std::time::Duration;

/// The body of a small request, such as tags, a new name, or a time. In bytes, as sent and inflated, like all
/// limits here. 200 tags of the longest names and values are 60 KB.
pub const SMALL_BYTES_MAX: usize = 1 << 20;

/// The form of a page, as sent. A password has at most 1,024 bytes, each of which takes three in a form.
pub const FORM_BYTES_MAX: usize = 16 << 10;

/// The body that creates an update, with the stack's configuration and the environment: of these,
/// [`UPDATE_DETAIL_BYTES_MAX`] are stored.
pub const CREATION_BYTES_MAX: usize = 4 << 20;

/// The body that ends an update. A client may send the outputs of a preview, which are not stored.
pub const COMPLETION_BYTES_MAX: usize = 16 << 20;

/// Items of a list and members of a map in a body, unless a narrower limit applies: a parsed value takes more
/// memory than its few bytes of JSON.
pub const ITEMS_MAX: usize = 10_000;

/// The body of a request for secrets: at most 1,000 values in a batch (the CLI's own limit), of any length that
/// fits.
pub const SECRETS_BYTES_MAX: usize = 64 << 20;

/// A batch of journal entries or events, inflated. The client halves a larger batch of entries by itself.
pub const BATCH_BYTES_MAX: usize = 64 << 20;

/// A whole deployment, inflated.
pub const DEPLOYMENT_BYTES_MAX: usize = 512 << 20;

/// Resources, pending operations and snippets of a deployment, and journal entries of a batch. Each takes up to 1 KiB of
/// memory while it is read, so that this many take half of [`MEMORY_BYTES_MAX`].
pub const RESOURCES_MAX: usize = 500_000;

/// Elements of the lists of a deployment's resources, such as the URNs that they depend on, and members of objects that
/// are read as lists. Each takes 128 bytes while it is read.
pub const RESOURCE_PARTS_MAX: usize = 4_000_000;

/// A Terraform state, read to its end. The operator sets the accepted size, but a longer state is read too:
/// if its upload breaks off, a client sends it twice more.
pub const STATE_BYTES_MAX: usize = 512 << 20;

/// The text of an environment.
pub const ENVIRONMENT_BYTES_MAX: usize = 256 << 10;

/// The body of a lock or an unlock.
pub const LOCK_BYTES_MAX: usize = 64 << 10;

/// The gzip of a base deployment in the answer to a begin. A longer one is left out, and the client exports
/// it.
pub const BEGIN_DEPLOYMENT_BYTES_MAX: u64 = 256 << 10;

/// Values in one batch of secrets.
pub const SECRETS_PER_BATCH_MAX: usize = 1_000;

/// What the history shows of an update's creation: message, environment and configuration, in stored bytes.
/// The version that the update publishes contains all of it and more, in one item of the ledger, which holds
/// 400 KB.
pub const UPDATE_DETAIL_BYTES_MAX: usize = 256 << 10;

/// The totals of an update, in stored bytes. The engine knows some ten kinds of operation.
pub const SUMMARY_BYTES_MAX: usize = 16 << 10;

/// Skipped journal entries that a version lists. The others are only counted.
pub const SKIPPED_NAMED_MAX: usize = 100;

/// A request for the exchange of a token: the token has at most 16 KiB, and three times as many bytes in a form.
pub const EXCHANGE_BYTES_MAX: usize = 64 << 10;

/// A registration of an issuer with its keys, or its policies.
pub const ISSUER_BYTES_MAX: usize = 256 << 10;

/// The time in which a client has to send [`BODY_PROGRESS_BYTES_MIN`] bytes of a body.
pub const BODY_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Bytes, as sent, that a client has to send within [`BODY_PAUSE_MAX`].
pub const BODY_PROGRESS_BYTES_MIN: usize = 64 << 10;

/// The time for a body while other requests wait for memory that only the end of its request releases.
pub const BODY_TURN_MAX: Duration = Duration::from_secs(5);

/// The time for a whole body. A very large state, 20 MiB as sent, takes this long at some 300 kbit/s.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(600);

/// Concurrent requests of one token, unless the operator sets another limit. The CLI has about two for each
/// resource that it works on, of which there are `--parallel`, and one each for the journal and for events.
pub const REQUESTS_PER_TOKEN_MAX: usize = 256;

/// Bytes that all requests hold at the same time, unless the operator sets another limit: what clients sent,
/// what was fetched, what is made of both, and answers that are not sent yet. See
/// [`account`](crate::account).
pub const MEMORY_BYTES_MAX: usize = 1 << 30;

/// The body of a request to a function or of its answer, through an HTTP API or a function URL, in bytes as
/// sent. An event has at most 6 MB, of which base64 costs a binary body a third; the rest is for headers.
/// Source: AWS Lambda quotas, invocation payload (synchronous).
pub const FUNCTION_BYTES_MAX: usize = 4 << 20;

/// The same behind a load balancer, whose events have at most 1 MB. Source: Elastic Load Balancing, Lambda
/// functions as targets, limits.
pub const BALANCER_BYTES_MAX: usize = 700 << 10;

/// The lifetime of a URL to a stored state. Clients follow it at once.
pub const SIGNED_URL_VALID: Duration = Duration::from_secs(60);

//! Every limit on what is taken, with its unit and its reason.

use std::time::Duration;

/// A request that says little: tags, a new name, an instant. Bytes, inflated or not, as everywhere here. 200 tags of the
/// longest names and values are 60 KB.
pub const SMALL_BYTES_MAX: usize = 1 << 20;

/// The creation of an update, which carries the stack's configuration and the environment: of these
/// [`UPDATE_DETAIL_BYTES_MAX`] are kept.
pub const CREATION_BYTES_MAX: usize = 4 << 20;

/// The end of an update. A client may tell the outputs of a preview, which are not kept.
pub const COMPLETION_BYTES_MAX: usize = 16 << 20;

/// Items of one list, and members of one map, that a client sends and that become values of ours, where no narrower limit is
/// said: a value takes more memory than the few bytes that it may be written with.
pub const ITEMS_MAX: usize = 10_000;

/// Secrets: 1,000 values a batch at most (the CLI's own limit), of any length that fits.
pub const SECRETS_BYTES_MAX: usize = 64 << 20;

/// A batch of journal entries or events, inflated. Over it the client halves a batch of entries by itself.
pub const BATCH_BYTES_MAX: usize = 64 << 20;

/// A whole deployment, inflated.
pub const DEPLOYMENT_BYTES_MAX: usize = 512 << 20;

/// A Terraform state that is read to its end. What is taken is for the operator to say; what is longer than that is read all
/// the same, since a client whose upload is broken off tries it twice more.
pub const STATE_BYTES_MAX: usize = 512 << 20;

/// The text of an environment.
pub const ENVIRONMENT_BYTES_MAX: usize = 256 << 10;

/// Who takes a lock, or gives one back.
pub const LOCK_BYTES_MAX: usize = 64 << 10;

/// A base deployment whose gzip is longer is left out of the answer to a begin; the client then exports it.
pub const BEGIN_DEPLOYMENT_BYTES_MAX: u64 = 256 << 10;

/// Values in one batch of secrets.
pub const SECRETS_PER_BATCH_MAX: usize = 1_000;

/// What an update is created with and what its history entry shows: the message, the environment and the configuration,
/// in bytes as they are kept. All of it is in the version that the update makes, with more, and that has to fit an item
/// of the ledger, which takes 400 KB.
pub const UPDATE_DETAIL_BYTES_MAX: usize = 256 << 10;

/// The totals of an update, in bytes as they are kept. The engine knows some ten kinds of operation.
pub const SUMMARY_BYTES_MAX: usize = 16 << 10;

/// Journal entries that could not be applied which a version names; the others are counted.
pub const SKIPPED_NAMED_MAX: usize = 100;

/// A client that sends less than [`BODY_PROGRESS_BYTES_MIN`] of a body in this time is not waited for.
pub const BODY_PAUSE_MAX: Duration = Duration::from_secs(30);

/// See [`BODY_PAUSE_MAX`]. In bytes as sent.
pub const BODY_PROGRESS_BYTES_MIN: usize = 64 << 10;

/// A client is not waited for longer than this while other requests wait for room that only the end of its request gives back.
pub const BODY_TURN_MAX: Duration = Duration::from_secs(5);

/// A body has to be there after so long, however it comes: 20 MiB, a very large state as it is sent, take that long at some
/// 300 kbit/s.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(600);

/// Requests of one token that are under way at once, unless the operator says otherwise. The CLI has some two for each
/// resource that it works on, `--parallel` of them, and one more for the journal and one for events.
pub const REQUESTS_PER_TOKEN_MAX: usize = 256;

/// Bytes that all requests hold at once, unless the operator says otherwise: what clients sent, what was fetched, what is made of
/// both, and answers that are not sent yet. See [`account`](crate::account).
pub const MEMORY_BYTES_MAX: usize = 1 << 30;

/// What a function takes and answers through an HTTP API or a function URL, in bytes as sent. An event has 6 MB at most, and
/// a body that is no text is a third longer in it; what is left is for headers.
/// Source: AWS Lambda quotas, invocation payload (synchronous).
pub const FUNCTION_BYTES_MAX: usize = 4 << 20;

/// The same behind a load balancer, whose events have 1 MB at most.
/// Source: Elastic Load Balancing, Lambda functions as targets, limits.
pub const BALANCER_BYTES_MAX: usize = 700 << 10;

/// A URL that leads to a stored state is good for so long: a client follows it at once.
pub const SIGNED_URL_VALID: Duration = Duration::from_secs(60);

//! Every limit on what is taken, with its unit and its reason.

/// A plain request: creating, starting and ending things, tags. Bytes, inflated or not. The largest is the creation of
/// an update, which carries the stack's configuration and the environment.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;

/// Secrets: 1,000 values a batch at most (the CLI's own limit), of any length that fits.
pub const SECRETS_BYTES_MAX: usize = 64 << 20;

/// A batch of journal entries or events, inflated. Over it the client halves a batch of entries by itself.
pub const BATCH_BYTES_MAX: usize = 64 << 20;

/// A whole deployment, inflated.
pub const DEPLOYMENT_BYTES_MAX: usize = 512 << 20;

/// A base deployment whose gzip is longer is left out of the answer to a begin; the client then exports it.
pub const BEGIN_DEPLOYMENT_BYTES_MAX: u64 = 256 << 10;

/// Values in one batch of secrets.
pub const SECRETS_PER_BATCH_MAX: usize = 1_000;

/// What an update is created with and what its history entry shows: the message, the environment and the configuration,
/// in bytes as they are kept. All of it is in the version that the update makes, which has to fit the ledger.
pub const UPDATE_DETAIL_BYTES_MAX: usize = 1 << 20;

/// The totals of an update, in bytes as they are kept. The engine knows some ten kinds of operation.
pub const SUMMARY_BYTES_MAX: usize = 16 << 10;

/// Journal entries that could not be applied which a version names; the others are counted.
pub const SKIPPED_NAMED_MAX: usize = 100;

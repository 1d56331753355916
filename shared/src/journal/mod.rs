//! The journal of an update, and what it makes of the deployment that the update started from.
//!
//! A journaling CLI sends small entries instead of whole states. [`parse_batch`] judges each entry alone, when it is
//! appended; [`replay`] makes the new deployment, when the update is published. The fold is total: an entry that cannot
//! be applied is skipped and named, so that every log that was acknowledged can be published.
//!
//! Source: the meaning of entries is that of `JournalReplayer` in `pkg/backend/journal.go` of pulumi/pulumi at v3.274.1;
//! where that answers with a deployment, so does this, with the same.

mod aliases;
mod batch;
mod entry;
mod migration;
mod refresh;
mod replayer;

pub use self::batch::{BatchError, ENTRIES_PER_BATCH_MAX, parse_batch, read_batch};
pub use self::entry::Entry;
pub use self::replayer::{BaseError, Replayed, Skipped, replay};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

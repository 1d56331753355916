//! The journal of an update, and the deployment that it produces from the update's base.
//!
//! A journaling CLI sends small entries instead of whole states. [`parse_batch`] validates each entry by itself when it is
//! appended; [`replay`] produces the new deployment when the update is published. Replaying never fails on an entry: one
//! that cannot be applied is skipped and reported, so that every acknowledged log can be published.
//!
//! Source: entries mean what they mean to `JournalReplayer` in `pkg/backend/journal.go` of pulumi/pulumi at v3.274.1.
//! Where that returns a deployment, this returns the same one.

mod aliases;
mod batch;
mod entry;
mod migration;
mod refresh;
mod replayer;

pub use self::batch::{BatchError, ENTRIES_PER_BATCH_MAX, count_batch, parse_batch, read_batch};
pub use self::entry::Entry;
pub use self::replayer::{BaseError, Replayed, Skipped, replay};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

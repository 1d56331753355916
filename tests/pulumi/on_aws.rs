//! The journeys of `main.rs`, on two processes that share nothing but a table, a bucket and a key on AWS; requests go to each
//! in turn.
//!
//! Left out by their kind, and nothing else is:
//! * what an operator does with a folder, or sees of the program on one (`keeping`, `operator`, `server`, `watch`): a table
//!   is no folder;
//! * `aws`, which starts the program itself on AWS: it needs no switch.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

use statewright_tests::app::Backend;

mod backends;
mod both;
mod conflicts;
mod crashes;
mod environments;
mod failures;
mod history;
mod inspection;
mod interruptions;
#[cfg(feature = "extended")]
mod large;
mod login;
mod main_job;
#[cfg(feature = "extended")]
mod older;
mod options;
mod protocol;
mod references;
mod renames;
mod roles;
mod secrets;
mod stacks;
mod state_edits;
mod support;
mod targets;
mod unsupported;
mod updates;
mod values;

/// What the journeys of this target run on.
const BACKEND: Backend = Backend::Aws;

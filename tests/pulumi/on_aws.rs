//! The tests of `main.rs`, on two processes that share only a table, a bucket and a key on AWS; requests go to
//! each in turn.
//!
//! Only these are left out:
//! * what an operator does with a folder, or sees of the program on one (`keeping`, `operator`, `server`,
//!   `watch`): a table is not a folder;
//! * `aws`, which starts the program itself on AWS anyway.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use statewright_tests::app::Backend;

mod audit_log;
mod backends;
mod both;
mod browser;
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

/// The backend of this target's tests.
const BACKEND: Backend = Backend::Aws;

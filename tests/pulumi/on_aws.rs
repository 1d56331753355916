//! The tests of `main.rs`, on two processes that share only a table, a bucket and a key on AWS; requests go to
//! each in turn.
//!
//! What depends on the client and the API alone runs here only with the feature `extended`: the contract suites
//! compare the ports of AWS with the embedded ones. These are left out:
//! * what an operator does with a folder, or sees of the program on one (`keeping`, `operator`, `server`,
//!   `watch`): a table is not a folder;
//! * `aws`, which starts the program itself on AWS anyway;
//! * `credential_helper`, whose tokens are revoked at one process, while the other one knows them for a minute.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use statewright_tests::app::Backend;

mod audit_log;
#[cfg(feature = "extended")]
mod backends;
#[cfg(feature = "extended")]
mod both;
mod browser;
mod conflicts;
mod crashes;
mod environments;
mod failures;
mod history;
#[cfg(feature = "extended")]
mod inspection;
mod interruptions;
#[cfg(feature = "extended")]
mod large;
mod login;
mod main_job;
#[cfg(feature = "extended")]
mod older;
#[cfg(feature = "extended")]
mod options;
#[cfg(feature = "extended")]
mod protection;
#[cfg(feature = "extended")]
mod protocol;
#[cfg(feature = "extended")]
mod references;
#[cfg(feature = "extended")]
mod renames;
mod roles;
mod secrets;
mod stacks;
mod state_edits;
mod support;
#[cfg(feature = "extended")]
mod targets;
#[cfg(feature = "extended")]
mod tokens;
#[cfg(feature = "extended")]
mod unsupported;
mod updates;
#[cfg(feature = "extended")]
mod values;

/// The backend of this target's tests.
const BACKEND: Backend = Backend::Aws;

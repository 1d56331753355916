//! The tests of `main.rs`, through functions behind an HTTP API: some of them in every run, and all that
//! `on_aws.rs` has with the feature `extended`, except for a state that is too large for functions (see
//! `functions/limits.rs`). After each test, the functions' calls of AWS are compared with their policies.
//! `console_cold.rs` has a cold function for every request.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use statewright_tests::app::Backend;

mod audit_log;
#[cfg(feature = "extended")]
mod backends;
#[cfg(feature = "extended")]
mod both;
mod browser;
#[cfg(feature = "extended")]
mod conflicts;
mod console;
mod console_cold;
mod console_journeys;
#[cfg(feature = "extended")]
mod crashes;
mod environments;
#[cfg(feature = "extended")]
mod failures;
#[cfg(feature = "extended")]
mod history;
#[cfg(feature = "extended")]
mod inspection;
mod interruptions;
#[cfg(feature = "extended")]
mod login;
mod main_job;
#[cfg(feature = "extended")]
mod older;
#[cfg(feature = "extended")]
mod options;
mod protection;
#[cfg(feature = "extended")]
mod protocol;
#[cfg(feature = "extended")]
mod references;
#[cfg(feature = "extended")]
mod renames;
#[cfg(feature = "extended")]
mod roles;
mod secrets;
#[cfg(feature = "extended")]
mod stacks;
mod state_edits;
mod support;
#[cfg(feature = "extended")]
mod targets;
mod tokens;
#[cfg(feature = "extended")]
mod unsupported;
#[cfg(feature = "extended")]
mod updates;
#[cfg(feature = "extended")]
mod values;

/// The backend of this target's tests.
const BACKEND: Backend = Backend::Functions;

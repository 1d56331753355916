//! The tests of `on_functions.rs` with a cold function for every request, without the older client, for which
//! that makes no difference.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use statewright_tests::app::Backend;

mod audit_log;
mod backends;
mod both;
mod browser;
mod conflicts;
mod console;
mod crashes;
mod environments;
mod failures;
mod history;
mod inspection;
mod interruptions;
mod login;
mod main_job;
mod options;
mod protection;
mod protocol;
mod references;
mod renames;
mod roles;
mod secrets;
mod stacks;
mod state_edits;
mod support;
mod targets;
mod tokens;
mod unsupported;
mod updates;
mod values;

/// The backend of this target's tests.
const BACKEND: Backend = Backend::ColdFunctions;

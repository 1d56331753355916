//! The journeys of `on_functions.rs` when every request meets a cold function; the older client, which has nothing to do with
//! that, is left out.

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
mod login;
mod main_job;
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
const BACKEND: Backend = Backend::ColdFunctions;

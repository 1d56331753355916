//! What users do with the real `pulumi` client: one file for each subject. `on_aws.rs` runs the tests again.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

use statewright_tests::app::Backend;

mod audit_log;
mod aws;
mod backends;
mod both;
mod browser;
mod conflicts;
mod console;
mod console_bad_days;
mod console_downloads;
mod console_hostile;
mod console_journeys;
mod console_kept;
mod console_keyboard;
mod console_links;
mod console_pages;
mod console_requests;
mod console_states;
mod console_views;
mod crashes;
mod credential_helper;
mod environments;
mod failures;
mod history;
mod inspection;
mod interruptions;
mod keeping;
#[cfg(feature = "extended")]
mod large;
mod login;
mod main_job;
#[cfg(target_os = "linux")]
mod memory;
mod moving;
mod observability;
mod oidc;
#[cfg(feature = "extended")]
mod older;
mod operator;
mod options;
mod pages;
mod protection;
mod protocol;
mod references;
mod renames;
mod roles;
mod secrets;
mod server;
mod stacks;
mod state_edits;
mod support;
mod targets;
mod tokens;
mod unsupported;
mod updates;
mod values;

/// The backend of this target's tests.
const BACKEND: Backend = Backend::Embedded;

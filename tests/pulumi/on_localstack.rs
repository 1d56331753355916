//! The tests of `on_aws.rs` with LocalStack for S3 and KMS, which forwards requests for DynamoDB. Built only
//! with the feature `extended`.
//!
//! Left out is what `on_aws.rs` leaves out, and also the older client and large states, for which the stand-in
//! makes no difference.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

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

/// The backend of this target's tests.
const BACKEND: Backend = Backend::LocalStack;

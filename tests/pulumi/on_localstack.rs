//! The journeys of `on_aws.rs`, where LocalStack stands in for S3 and KMS, and passes on what is for DynamoDB. Built with the
//! feature `extended` alone.
//!
//! Left out is what `on_aws.rs` leaves out, and the older client and large states, which have nothing to do with what stands in.

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
const BACKEND: Backend = Backend::LocalStack;

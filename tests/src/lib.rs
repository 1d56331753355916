//! Shared machinery of the tests.
//!
//! [`tools`] builds the real clients, [`cli`] runs them in a fresh home, [`filters`] takes out of their output what
//! differs from run to run. [`oracle`] puts our journal replayer beside the real one. [`aws`] is the stand-in for AWS.

pub mod app;
pub mod aws;
pub mod cli;
pub mod filters;
pub mod oracle;
pub mod stopwatch;
pub mod tools;

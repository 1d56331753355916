//! The contract suites, run against every adapter with the same names.

#![expect(clippy::unwrap_used, reason = "a test without its preconditions stops there")]

mod aws;
mod embedded;
mod memory;
mod model;

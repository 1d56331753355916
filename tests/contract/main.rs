//! The contract suites, run against every adapter with the same names.

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing stops there")]

mod aws;
mod embedded;
mod memory;
mod model;

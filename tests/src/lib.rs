//! Shared machinery of the tests.
//!
//! [`tools`] builds the real clients, [`cli`] runs them in a fresh home, [`filters`] takes out of their output what
//! differs from run to run.

pub mod cli;
pub mod filters;
pub mod stopwatch;
pub mod tools;

//! The contract suites, run against every adapter with the same names.

mod embedded;
mod memory;

//! Shared machinery of the tests.
//!
//! [`tools`] builds the real clients, [`cli`] runs them in a fresh home, [`filters`] takes out of their output what
//! differs from run to run. [`terraform`] runs the clients of states. [`commands`] runs the operator's. [`document`] holds answers to the OpenAPI document. [`oracle`] puts our journal replayer next to the real
//! one, [`esc_oracle`] our evaluator of environments, [`esc_scripts`] runs the scripts of the `esc` CLI, and [`fuzz`] changes what real clients sent. [`aws`] is the stand-in for AWS, [`functions`] are ours over it, and
//! [`meter`] tells what calls of it would cost.

pub mod app;
pub mod aws;
pub mod cli;
pub mod commands;
pub mod document;
pub mod esc_definitions;
pub mod esc_oracle;
pub mod esc_scripts;
pub mod filters;
pub mod functions;
pub mod fuzz;
pub mod meter;
pub mod oracle;
pub mod policies;
mod running;
pub mod terraform;
pub mod tools;

pub use statewright_tools::stopwatch;

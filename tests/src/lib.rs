//! Shared code of the tests.
//!
//! [`tools`] builds the real clients, [`cli`] runs them in a fresh home, [`filters`] removes from their output
//! what differs from run to run. [`terraform`] runs the clients of states, [`commands`] the operator's
//! commands, and [`server`] the server as a program. [`document`] checks answers against the OpenAPI document.
//! [`oracle`] compares our journal replayer with the real one, and [`esc_oracle`] our evaluator of environments,
//! by [`questions`] to programs. [`esc_scripts`] runs the scripts of the `esc` CLI, and [`fuzz`] mutates what
//! real clients sent. [`aws`] is the stand-in for AWS, [`functions`] runs our functions on it, and [`meter`]
//! computes what calls of AWS would cost. [`issuer`] makes tokens as the jobs of a CI have them, and
//! [`sts`] answers for AWS about its principals, both also over HTTPS by an [`https_server`]. [`browser`] is a real
//! browser, and a real provider to sign in with, and [`console`] signs people in with it; [`fake_provider`] is one
//! whose answers are wrong, for a [`visitor`] without a screen and for [`sign_ins`]. [`rows`] finds the route of a
//! request.

#![expect(missing_docs, reason = "unpublished: a doc comment is for what the name does not say")]

pub mod app;
pub mod aws;
pub mod browser;
pub mod cli;
pub mod commands;
pub mod console;
pub mod document;
pub mod esc_definitions;
pub mod esc_oracle;
pub mod esc_scripts;
pub mod fake_provider;
pub mod filters;
pub mod functions;
pub mod fuzz;
mod home;
pub mod https_server;
pub mod issuer;
pub mod meter;
mod names;
pub mod oracle;
pub mod policies;
pub mod questions;
pub mod rows;
pub mod running;
pub mod server;
pub mod sign_ins;
pub mod sts;
pub mod terraform;
pub mod tools;
pub mod visitor;

pub use statewright_tools::stopwatch;

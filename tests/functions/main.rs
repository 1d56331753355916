//! The functions behind a local gateway, on the stand-in for AWS: what differs from a server.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod account;
mod console;
mod crashes;
mod deployment;
mod deployments;
mod journeys;
mod limits;
mod permissions;
mod shapes;
mod states;
mod support;
mod templates;
mod traces;
mod trail;

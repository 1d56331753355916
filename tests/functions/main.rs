//! The functions behind a local gateway, over the stand-in for AWS: what is theirs beside what a server does.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

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

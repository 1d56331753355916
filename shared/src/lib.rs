//! The one crate behind every Statewright function and the single binary.
//!
//! In reading order:
//!
//! * [`domain`] names things and decides about them, purely: names, updates, deployments.
//! * [`journal`] replays what an engine did onto the deployment before it, purely.
//! * [`ports`] say what is asked of the outside world; [`adapters`] answer.
//! * [`layout`] is how everything lies in the ledger and among the blobs.
//! * [`services`] are the use cases. Each gets a [`context::Context`].
//! * [`wire`] are the shapes that clients send; [`api`] is the route table and the handlers.
//! * [`limits`] are the limits on what is taken; [`account`] is the one for memory, counted.

pub mod account;
pub mod adapters;
pub mod api;
#[cfg(test)]
mod arrows;
pub mod cache;
pub mod context;
pub mod domain;
pub mod journal;
pub mod layout;
pub mod limits;
pub mod ports;
pub mod services;
pub mod settings;
pub mod wire;

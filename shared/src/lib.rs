//! The crate behind every Statewright function and the single binary.
//!
//! In reading order:
//!
//! * [`domain`] has names and decisions, as pure code: names, updates, deployments.
//! * [`journal`] applies the engine's journal entries to the previous deployment, as pure code.
//! * [`ports`] are the interfaces to the outside world; [`adapters`] implement them.
//! * [`layout`] defines the keys and records of the ledger and the blobs.
//! * [`services`] are the use cases. Each gets a [`context::Context`] with the ports, the [`settings`] and the
//!   [`cache`].
//! * [`wire`] has the shapes that clients send and read; [`api`] is the route table and the handlers.
//! * [`limits`] bounds input; [`account`] bounds memory.

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
#[cfg(test)]
mod phrases;
pub mod ports;
pub mod services;
pub mod settings;
pub mod wire;

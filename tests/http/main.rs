//! The server over HTTP: valid and invalid requests of clients, and the answers.

#![expect(clippy::unwrap_used, reason = "a test without its preconditions stops there")]

mod api;
mod audit;
mod environments;
mod identity;
mod maintenance;
mod stacks;
mod states;
mod store;
mod updates;
mod world;

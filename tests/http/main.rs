//! The server over HTTP: valid and invalid requests of clients, and the answers.

#![expect(clippy::unwrap_used, reason = "a test without its preconditions stops there")]

mod answers;
mod audit;
mod authority;
mod aws;
mod bad_input;
mod busy;
mod call_counts;
mod cases;
mod check;
mod checkpoints;
mod credentials;
mod dependencies;
mod document;
mod environments;
mod full_disk;
mod home;
mod labels;
mod limits;
mod literals;
mod memory;
mod observability;
mod operator;
mod page;
mod previews;
mod properties;
mod recorded;
mod rename;
mod reported;
mod retention;
mod roles;
mod routes;
mod secrets;
mod stacks;
mod states;
mod sweep;
mod unsupported;
mod updates;
mod users;
mod world;

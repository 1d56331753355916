//! The server over HTTP: what clients send, rightly and wrongly, and what they get.

#![expect(clippy::unwrap_used, reason = "a test whose ground is missing stops there")]

mod answers;
mod audit;
mod authority;
mod aws;
mod bad_input;
mod beyond;
mod busy;
mod calls;
mod cases;
mod checking;
mod credentials;
mod document;
mod edges;
mod environments;
mod full_disk;
mod home;
mod keeping;
mod labels;
mod life;
mod limits;
mod literals;
mod memory;
mod operator;
mod people;
mod previews;
mod properties;
mod recorded;
mod rename;
mod repros;
mod roles;
mod saves;
mod secrets;
mod stacks;
mod states;
mod sweep;
mod table;
mod watch;
mod world;

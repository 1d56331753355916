//! The operator's commands, while a server runs in this process.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod admins;
mod aws_profiles;
mod backups;
mod credentials;
mod doctor;
mod documents;
mod first_user;
mod keys;
mod month;
mod people;
mod principals;
mod stacks;
mod stacks_at_a_server;
mod support;
mod trail;
mod two_addresses;
mod usage;
mod users;
mod words;

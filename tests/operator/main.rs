//! The operator's commands, beside a server in this process.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

mod aws_profiles;
mod backups;
mod credentials;
mod doctor;
mod documents;
mod first_user;
mod keys;
mod people;
mod stacks;
mod support;
mod usage;
mod users;
mod words;

//! What an operator or a timer runs on a whole store: checks, backups, copies, the sweep, and health checks.

pub mod backup;
pub mod check;
pub(crate) mod check_dependencies;
pub(crate) mod check_environments;
pub mod check_states;
pub mod copy;
pub mod health;
pub mod sweep;

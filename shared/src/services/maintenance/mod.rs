//! What an operator or a clock starts on a whole store: checks, copies, the sweep, health.

pub mod backup;
pub mod check;
pub(crate) mod check_dependencies;
pub(crate) mod check_environments;
pub mod check_states;
pub mod copy;
pub mod health;
pub mod sweep;

//! What an operator or a timer runs on a whole store: checks, backups, copies, the sweep, and health checks.

mod audit_days;
pub mod backup;
pub mod check;
mod check_audit;
mod check_dependencies;
mod check_environments;
pub mod check_states;
pub mod copy;
pub mod health;
pub mod overview;
pub mod sweep;
mod walk;

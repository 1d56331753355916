//! The audit log and the audit trail.

pub(crate) mod log;
pub(crate) mod trail;

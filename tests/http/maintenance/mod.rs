//! The operator's use cases: checks, retention and the sweep.

pub(crate) mod check;
pub(crate) mod operator;
pub(crate) mod retention;
pub(crate) mod sweep;

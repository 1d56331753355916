//! Environments (Pulumi ESC).

pub(crate) mod lifecycle;

//! Updates: begin, append, seal and publish; previews.

pub(crate) mod cases;
pub(crate) mod checkpoints;
pub(crate) mod lifecycle;
pub(crate) mod previews;
pub(crate) mod recorded;

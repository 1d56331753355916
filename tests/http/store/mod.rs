//! What the store costs and how it fails.

pub(crate) mod aws;
pub(crate) mod busy;
pub(crate) mod full_disk;
pub(crate) mod memory;

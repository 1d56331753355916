//! Stacks: their life, resources, secrets and dependencies.

pub(crate) mod dependencies;
pub(crate) mod lifecycle;
pub(crate) mod protection;
pub(crate) mod rename;
pub(crate) mod resources;
pub(crate) mod secrets;

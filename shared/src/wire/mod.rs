//! The shapes that clients send and read, exactly as each client writes them.

pub mod edges;
pub mod environments;
mod few;
pub mod pulumi;
pub(crate) mod schema;
pub mod tfstate;

pub use few::Members;

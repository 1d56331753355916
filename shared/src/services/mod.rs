//! Use cases: one function each, one folder for each resource. A use case loads records, decides with a pure
//! function, writes under a condition and returns the answer. This room uses the ports and the layout, but no
//! adapter and no HTTP.

#![expect(missing_docs, reason = "unpublished: a doc comment is for what the name does not say")]

pub(crate) mod ahead;
pub mod audit;
pub mod caller;
pub mod environments;
pub mod error;
pub mod identity;
pub mod keys;
pub mod maintenance;
pub mod stacks;
pub mod standing;
pub mod states;
pub mod store;
pub mod updates;
pub(crate) mod work;

pub use error::{Error, Holder};

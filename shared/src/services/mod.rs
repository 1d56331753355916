//! Use cases: one function each, one file per noun. A service loads, decides with a pure function, writes under a
//! condition and answers. Services know the ports and the layout; they know no adapter and no HTTP.

pub mod caller;
pub mod environments;
pub mod error;
pub mod identity;
pub mod keys;
pub mod maintenance;
pub mod stacks;
pub mod states;
pub mod store;
pub mod updates;
pub(crate) mod work;

pub use error::{Error, Holder};

//! The shapes that clients send and read, exactly as each client writes them.

mod bounded;
pub mod edges;
pub mod environments;
pub mod esc;
pub mod pulumi;
pub(crate) mod schema;
pub mod tfstate;

pub use bounded::Members;

use serde::{Deserialize, Serialize};

/// Two shapes as one object, which has the members of both.
#[derive(Debug, Clone, Serialize)]
pub struct Both<A, B> {
    /// Its first members.
    #[serde(flatten)]
    pub first: A,
    /// The others.
    #[serde(flatten)]
    pub second: B,
}

impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Both<A, B> {
    /// The schema of the object.
    pub(crate) fn schema() -> serde_json::Value {
        schema::both(schema::of::<A>(), schema::of::<B>())
    }
}

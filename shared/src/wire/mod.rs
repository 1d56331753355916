//! The JSON shapes that clients send and read, exactly as each client writes them.

#![expect(
    missing_docs,
    reason = "the name of a member says what it is; a comment adds what the name does not"
)]

pub mod access;
pub mod audit;
mod bounded;
pub mod edges;
pub mod environments;
pub mod esc;
pub mod map;
pub mod oidc;
pub mod protection;
pub mod pulumi;
mod reason;
pub mod resources;
pub(crate) mod schema;
pub mod server;
pub mod sessions;
pub mod state_resources;
pub mod tfstate;
pub mod tokens;

pub use bounded::Members;
pub use reason::Reason;

use serde::{Deserialize, Serialize};

/// Two shapes serialized as one object with the members of both.
#[derive(Debug, Clone, Serialize)]
pub struct Both<A, B> {
    #[serde(flatten)]
    pub first: A,
    #[serde(flatten)]
    pub second: B,
}

impl<'de, A: Deserialize<'de>, B: Deserialize<'de>> Both<A, B> {
    /// The JSON Schema of the object.
    pub(crate) fn schema() -> serde_json::Value {
        schema::both(schema::of::<A>(), schema::of::<B>())
    }
}

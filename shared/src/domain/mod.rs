//! Names, identifiers, the life of an update, and what Statewright knows of Pulumi's own things: URNs, deployments and
//! the rules that a deployment keeps.
//!
//! Nothing here does I/O, waits, reads a clock or knows HTTP.

#![expect(
    missing_docs,
    reason = "the name of a member says what it is; a comment adds what the name does not"
)]

pub mod access;
pub mod claims;
pub mod deployment;
pub mod durations;
pub mod environment;
pub(crate) mod events;
pub mod file_name;
pub mod hidden;
pub mod ids;
pub mod integrity;
pub(crate) mod json;
pub mod json_schema;
pub mod names;
pub mod neighbours;
pub mod oidc;
pub mod pkce;
pub mod plural;
pub mod principal;
pub mod protection;
pub(crate) mod resource;
pub mod resource_index;
pub mod role;
pub mod saves;
pub mod secret;
pub mod server_url;
pub mod sign_in;
pub mod tfstate;
pub mod update;
pub mod urn;

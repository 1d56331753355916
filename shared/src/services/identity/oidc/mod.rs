//! Tokens of other issuers: the issuers that an organization accepts, their policies, the consents of users, and the
//! exchange of such a token for one of this server.

mod aws;
pub mod consents;
pub mod exchange;
pub mod issuers;
mod jwt;
mod keys;
pub mod policies;
mod signatures;

pub use jwt::JWT_BYTES_MAX;
pub use keys::{FETCH_PAUSE, KEYS_REMEMBERED_FOR};

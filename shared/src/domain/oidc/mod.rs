//! Tokens of other issuers, such as those that a CI gives to its jobs: which of them are accepted, and for what.
//!
//! An organization registers an issuer. The issuer's policies allow or deny by the claims of a token.

pub mod addresses;
pub mod aws;
mod issuer_url;
pub mod jwk;
pub mod lifetime;
mod pattern;
pub mod policy;
mod selector;

pub use issuer_url::{InvalidIssuerUrl, IssuerUrl};
pub use pattern::Pattern;
pub use selector::{ClaimPath, texts};

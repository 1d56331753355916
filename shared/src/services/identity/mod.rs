//! Users, organizations, memberships, access tokens and passwords.

pub mod bootstrap;
pub mod directory;
pub(crate) mod membership;
pub mod orgs;
pub mod passwords;
pub mod tokens;
pub mod users;

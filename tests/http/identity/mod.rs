//! Users, teams, tokens, grants, issuers and sign-in.

pub(crate) mod account_calls;
pub(crate) mod credentials;
pub(crate) mod grants;
pub(crate) mod last_use;
pub(crate) mod login_codes;
pub(crate) mod oidc;
pub(crate) mod roles;
pub(crate) mod service_provider;
pub(crate) mod sessions;
pub(crate) mod sign_in;
pub(crate) mod teams;
pub(crate) mod tokens;
pub(crate) mod users;

//! Users, organizations, memberships, access tokens and passwords; providers, sessions, invitations
//! and logins of the command line.

pub mod accounts;
pub mod bootstrap;
pub mod code_flow;
pub mod directory;
pub mod given_providers;
pub mod grants;
mod guesses;
pub mod invitations;
pub mod last_use;
pub mod login_codes;
pub mod members;
pub(super) mod membership;
pub mod oidc;
pub mod orgs;
pub mod own_rights;
pub mod passwords;
pub(super) mod principals;
pub mod providers;
pub(super) mod renames;
mod resets;
pub(super) mod sealing;
pub mod session_requests;
pub mod sessions;
pub mod sign_in;
pub mod teams;
pub mod token_requests;
pub mod tokens;
pub mod users;

//! Why the operator's change of users, organizations, tokens or passwords is refused.

use crate::domain::names::{Login, OrgName, TokenName};
use crate::domain::role::Role;
use crate::ports::Timestamp;

/// Why a change of who may do what is refused.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A user of this name exists.
    #[error("user {0} already exists: choose another name")]
    UserExists(Login),
    /// An organization of this name exists.
    #[error("organization {0} already exists: choose another name")]
    OrgExists(OrgName),
    /// The name stands for the operator in the history.
    #[error("the name {0} stands for the operator in the history: choose another name")]
    ReservedLogin(&'static str),
    /// The name stands for password logins in the history.
    #[error("the name {0} stands for logins with a password in the history: choose another name")]
    ReservedTokenName(TokenName),
    /// The user has a token of this name.
    #[error("user {login} already has a token named {name}: choose another name, or revoke that token first")]
    TokenExists {
        /// The user.
        login: Login,
        /// The name.
        name: TokenName,
    },
    /// The user has no token of this name.
    #[error(
        "user {login} has no token named {name}: check the name with `statewright token list --user {login}`"
    )]
    NoToken {
        /// The user.
        login: Login,
        /// The name.
        name: TokenName,
    },
    /// The certificate has expired.
    #[error("this certificate expired at {}: make a new one", .0.to_rfc3339())]
    CertificateExpired(Timestamp),
    /// The certificate belongs to a token already.
    #[error("this certificate already belongs to another token: use that token, or revoke it first")]
    CertificateInUse,
    /// The user is not a member.
    #[error(
        "{login} is not a member of {org}: add the user with `statewright org member add {org} {login} --role {role}`"
    )]
    NotAMember {
        /// The user.
        login: Login,
        /// The organization.
        org: OrgName,
        /// The role that the user was to get.
        role: Role,
    },
    /// The password is too short.
    #[error("the password is too short: use at least {characters_min} characters")]
    PasswordTooShort {
        /// The fewest characters.
        characters_min: usize,
    },
    /// The password is too long.
    #[error("the password is too long: use at most {bytes_max} bytes")]
    PasswordTooLong {
        /// The most bytes.
        bytes_max: usize,
    },
    /// A client of states sends an access token in the password's place.
    #[error(
        "a password that begins with {prefix} would be taken for an access token: choose another password"
    )]
    PasswordLooksLikeToken {
        /// What access tokens begin with.
        prefix: &'static str,
    },
    /// A new user has too many organizations.
    #[error(
        "a new user has too many organizations: name at most {max}, and add the user to the others afterwards"
    )]
    TooManyMemberships {
        /// The most.
        max: usize,
    },
    /// A new organization has too many members.
    #[error("a new organization has too many members: name at most {max}, and add the others afterwards")]
    TooManyMembers {
        /// The most.
        max: usize,
    },
}

//! Errors about the operator's changes to users, organizations, tokens and passwords.

use crate::domain::names::{Login, OrgName, TokenName};
use crate::domain::role::Role;
use crate::ports::Timestamp;

/// Why a change to users, organizations, tokens or passwords is refused.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A user of this name exists.
    #[error("user {0} already exists: choose another name")]
    UserExists(Login),
    /// An organization of this name exists.
    #[error("organization {0} already exists: choose another name")]
    OrgExists(OrgName),
    /// The history uses this login for the operator.
    #[error("the name {0} is reserved for the operator in the history: choose another name")]
    ReservedLogin(&'static str),
    /// The history uses this token name for password logins.
    #[error("the name {0} is reserved for password logins in the history: choose another name")]
    ReservedTokenName(TokenName),
    /// The user already has a token of this name.
    #[error("user {login} already has a token named {name}: choose another name, or revoke that token first")]
    TokenExists {
        /// The owner of the token.
        login: Login,
        /// The name of the existing token.
        name: TokenName,
    },
    /// The user has no token of this name.
    #[error(
        "user {login} has no token named {name}: check the name with `statewright token list --user {login}`"
    )]
    NoToken {
        /// The user that the command names.
        login: Login,
        /// The token that the command names.
        name: TokenName,
    },
    /// The certificate expired at this time.
    #[error("this certificate expired at {}: make a new one", .0.to_rfc3339())]
    CertificateExpired(Timestamp),
    /// The certificate is already registered for another token.
    #[error("this certificate already belongs to another token: use that token, or revoke it first")]
    CertificateInUse,
    /// The user is not a member.
    #[error(
        "{login} is not a member of {org}: add the user with `statewright org member add {org} {login} --role {role}`"
    )]
    NotAMember {
        /// The user that the command names.
        login: Login,
        /// The organization that the command names.
        org: OrgName,
        /// The role that the command assigns.
        role: Role,
    },
    /// The password is too short.
    #[error("the password is too short: use at least {characters_min} characters")]
    PasswordTooShort {
        /// The minimum length in characters.
        characters_min: usize,
    },
    /// The password is too long.
    #[error("the password is too long: use at most {bytes_max} bytes")]
    PasswordTooLong {
        /// The maximum length in bytes.
        bytes_max: usize,
    },
    /// The password has the form of an access token. Terraform and OpenTofu clients send tokens in the password
    /// field, so it would be ambiguous.
    #[error(
        "a password that begins with {prefix} would be taken for an access token: choose another password"
    )]
    PasswordLooksLikeToken {
        /// The prefix of access tokens.
        prefix: &'static str,
    },
    /// A new user has too many organizations.
    #[error(
        "a new user has too many organizations: name at most {max}, and add the user to the others afterwards"
    )]
    TooManyMemberships {
        /// The maximum number of organizations that one command adds.
        max: usize,
    },
    /// A new organization has too many members.
    #[error("a new organization has too many members: name at most {max}, and add the others afterwards")]
    TooManyMembers {
        /// The maximum number of members that one command adds.
        max: usize,
    },
}

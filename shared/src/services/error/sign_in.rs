//! Errors about signing in with a browser: providers, sessions and invitations.

use crate::domain::names::{Login, OrgName, ProviderName};
use crate::domain::sign_in::BadClaims;

/// Why a person is not signed in, or a page is not shown.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The request has no cookie of a session, or the session is over.
    #[error("you are not signed in: sign in, and try again")]
    NoSession,
    /// The session is valid, but the person signed in too long ago for this.
    #[error("you signed in too long ago for this: sign in again")]
    SessionTooOld,
    /// Another site made the browser send this request.
    #[error("the request does not come from a page of this server: open the page again, and use its button")]
    OtherSite,
    /// A browser asked with GET for what contains secrets.
    #[error("a browser gets secrets by POST alone: send the request with POST, or with an access token")]
    RevealedByPost,
    /// The page was opened at an address over plain HTTP that is not this machine.
    #[error("signing in needs HTTPS: open this server at its https:// address")]
    NotSecure,
    /// There is no such provider.
    #[error("there is no provider {0}: choose one on the sign-in page")]
    NoProvider(ProviderName),
    /// A provider of this name exists.
    #[error("provider {0} already exists: choose another name, or remove that one first")]
    ProviderExists(ProviderName),
    /// The issuer or the server of a provider is not an address that can be used.
    #[error("{0:?} is not an address for a provider: use https://, a host, and a path where there is one")]
    BadAddress(String),
    /// A provider has too many rules.
    #[error("a provider has too many rules: use at most {max}")]
    TooManyRules {
        /// The maximum number of rules.
        max: usize,
    },
    /// A text of a provider is empty or too long.
    #[error("the {what} of a provider has the wrong length: use 1 to {bytes_max} bytes")]
    BadText {
        /// The text, as the error names it.
        what: &'static str,
        /// The maximum length in bytes.
        bytes_max: usize,
    },
    /// A rule names an organization that does not exist.
    #[error(
        "a rule names the organization {0}, which does not exist: create it first with `statewright org create {0}`"
    )]
    RuleOfNoOrg(OrgName),
    /// The provider did not answer, or not as a provider.
    #[error("the provider {0} does not answer: try again, or ask its administrator")]
    ProviderDown(ProviderName),
    /// The process cannot send requests to providers.
    #[error("this server cannot call providers: the operator has to start one that can")]
    NoWeb,
    /// The provider refused the person, with this error code.
    #[error("the provider {provider} refused the sign-in ({code}): try again, or ask its administrator")]
    ProviderRefused {
        provider: ProviderName,
        /// The error code that it sent, shortened.
        code: String,
    },
    /// The cookie of the sign-in is missing or too old, or belongs to another provider.
    #[error("this sign-in was begun in another browser, or too long ago: begin again")]
    NotBegun,
    /// The provider's answer belongs to another sign-in.
    #[error("the answer of the provider belongs to another sign-in: begin again")]
    OtherAnswer,
    /// The ID token is not one of this provider for this sign-in.
    #[error("the ID token of the provider {provider} is refused: {why}; try again, or ask its administrator")]
    BadToken { provider: ProviderName, why: BadToken },
    /// The claims of the person cannot be used.
    #[error(transparent)]
    Claims(#[from] BadClaims),
    /// No rule of the provider lets the person in.
    #[error(
        "no rule of the provider {0} lets you in: ask the operator for a rule, or for an invitation to link your account"
    )]
    NoRule(ProviderName),
    /// Another user has the login that the claims name.
    #[error(
        "the user {0} exists and is not linked with your account: if it is yours, sign in with its password or an \
         invitation and link your account; otherwise ask the operator"
    )]
    LoginTaken(Login),
    /// The claims name an admin of the server who is not a user yet.
    #[error(
        "the login {0} is that of an admin of this server: the operator creates and invites this user, who then links \
         the account"
    )]
    LoginOfServerAdmin(Login),
    /// The account belongs to another user.
    #[error(
        "this account is already linked with the user {0}: sign in with it, or ask the operator to unlink it"
    )]
    LinkedWithOther(Login),
    /// The account of the provider is not linked with any user.
    #[error(
        "the user {login} has no linked account of the provider {provider}: `statewright sso accounts` lists them"
    )]
    NotLinked {
        /// The user that the command names.
        login: Login,
        /// The provider that the command names.
        provider: ProviderName,
    },
    /// The invitation is wrong, used or too old.
    #[error(
        "this invitation is not valid, was used already, or is too old: ask an admin of your organization or the operator \
         for another one"
    )]
    NoInvitation,
    /// A user has no session of this ID.
    #[error("this session does not exist, or is over: list the sessions again")]
    NoSuchSession,
    /// An admin of one organization does not manage the sessions of a member of several.
    #[error(
        "{0} is also in another organization: only the operator sees and ends these sessions, with `statewright session \
         revoke --user {0}`"
    )]
    SessionsOfSeveralOrgs(Login),
    /// The token of a request is limited, and a session is not.
    #[error("your token has limits, and a session has none: use a token without limits")]
    SessionExceedsToken,
    /// A page for a command line was opened with a wrong port, or without another part of a login.
    #[error("the {what} in the address of this page is missing or wrong: run `{command}` again")]
    NotACliLogin {
        command: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// A form lacks a field, or has a wrong value in it.
    #[error("the field {0:?} of the form is missing or wrong: open the page again")]
    BadField(&'static str),
}

/// What is wrong with the ID token of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadToken {
    #[error("it cannot be read")]
    Unreadable,
    #[error("the provider sent none")]
    Missing,
    #[error("it is too long")]
    TooLong,
    #[error("it is not valid at this time (check the clocks of both servers)")]
    Expired,
    #[error("it is for another application")]
    Audience,
    #[error("another issuer made it")]
    Issuer,
    #[error("it belongs to another sign-in")]
    Nonce,
    #[error("its signature is not valid")]
    Signature,
    #[error("its claims are not valid")]
    Claims,
}

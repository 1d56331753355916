//! Errors about issuers, their policies, and the exchange of their tokens.

use std::time::Duration;

use crate::domain::names::{InvalidName, Login, OrgName, TeamName};
use crate::domain::oidc::jwk::InvalidKeys;
use crate::domain::oidc::policy::InvalidPolicies;
use crate::domain::oidc::{InvalidIssuerUrl, IssuerUrl};

/// Why a request about issuers, policies or consents is refused.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// No issuer has this ID, which the caller sent.
    #[error("issuer {0:?} not found: list the issuers of the organization and check the ID")]
    NoIssuer(String),
    /// The organization has an issuer with this address.
    #[error("issuer {0} is already registered: change that registration, or delete it first")]
    IssuerExists(IssuerUrl),
    /// The organization has too many issuers.
    #[error("the organization has {max} issuers, the maximum: delete one that is not used")]
    TooManyIssuers { max: usize },
    /// The address is invalid.
    #[error(transparent)]
    Url(#[from] InvalidIssuerUrl),
    /// The text is that of Pulumi Cloud.
    #[error("the issuer name is required: send `name`")]
    NoName,
    /// The name is too long.
    #[error("the issuer's name is too long: use at most {max} characters")]
    NameTooLong {
        /// The maximum in characters.
        max: usize,
    },
    /// The name has characters that are not seen, or that turn what is around them.
    #[error("the issuer's name has hidden characters: write it without them")]
    NameHidden,
    /// A thumbprint is not one.
    #[error(
        "{found:?} is not a thumbprint: use the SHA-256 of a certificate as 64 hex digits, for at most {max} certificates"
    )]
    Thumbprint {
        /// The text, shortened.
        found: String,
        /// The thumbprints of an issuer, at most.
        max: usize,
    },
    /// The lifetime is not one.
    #[error("maxExpiration is not a lifetime: use 1 to {max} seconds")]
    Lifetime {
        /// The maximum in seconds.
        max: u64,
    },
    /// The registered keys are invalid.
    #[error(transparent)]
    Keys(#[from] InvalidKeys),
    /// The registered keys are too long.
    #[error("the keys are too long: use at most {max} bytes of JSON")]
    KeysTooLong {
        /// The maximum in bytes.
        max: usize,
    },
    /// Principals of AWS prove who they are to a server with a known address.
    #[error(
        "this server does not know its own address, which principals of AWS sign: the operator sets it with \
         `serve --address URL` or STATEWRIGHT_ADDRESS"
    )]
    NoAddress,
    /// AWS has no keys to register.
    #[error("principals of AWS are verified by AWS itself: leave out `jwks`")]
    AwsHasNoKeys,
    /// The keys of the issuer cannot be fetched. The text is for the admin who chose the address.
    #[error(
        "the keys of {url} cannot be fetched: {why}. If this server cannot reach the issuer, register its keys as `jwks`"
    )]
    Unreachable {
        url: IssuerUrl,
        /// What went wrong.
        why: String,
    },
    /// The text is that of Pulumi Cloud.
    #[error(
        "issuer jwks are statically configured, can't regenerate thumbprints: change the keys with `jwks`"
    )]
    KeysAreRegistered,
    /// The policies are invalid.
    #[error(transparent)]
    Policies(#[from] InvalidPolicies),
    /// The policies are too long.
    #[error(
        "the policies are too long: use at most {max} bytes of JSON, with shorter patterns or fewer policies"
    )]
    PoliciesTooLong {
        /// The maximum in bytes.
        max: usize,
    },
    /// The caller's token is limited, or is not a person's.
    #[error(
        "a consent needs a personal token without limits: log in with one that has no role and no organization of its \
         own"
    )]
    NotInPerson,
    /// The user has not consented to this.
    #[error("{0} has no consent for this issuer: list the consents and check the ID")]
    NoConsent(Login),
    /// The user has too many consents.
    #[error("{login} has {max} consents, the maximum: withdraw one that is not used")]
    TooManyConsents { login: Login, max: usize },
    /// A request for a token is refused.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
}

/// Why a token of another issuer is not exchanged. The answer has the form of RFC 6749, section 5.2.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// A parameter is missing or invalid.
    #[error(transparent)]
    Parameter(#[from] BadParameter),
    /// The grant type is another one.
    #[error(
        "grant_type must be urn:ietf:params:oauth:grant-type:token-exchange, authorization_code or refresh_token: send \
         one of these"
    )]
    GrantType,
    /// The code of a login of the command line is not accepted. The text is the same for every reason.
    #[error(
        "the code is not valid, was used already, is older than five minutes, or belongs to another login: run \
         `statewright login` again"
    )]
    Code,
    /// The audience does not name an organization.
    #[error("the audience is not an organization: use urn:pulumi:org:ORGANIZATION")]
    Audience,
    /// The token is not accepted. The text is the same for every reason, so that it reveals neither organizations nor
    /// their issuers. The audit log has the reason.
    #[error(
        "the organization does not accept this token: its issuer must be registered, its audience must be \
         urn:pulumi:org:ORGANIZATION, it must be valid now, and a policy of the issuer must allow the requested \
         token; the operator sees in the server's audit log which of these failed"
    )]
    NotAccepted,
    /// A policy allows a personal token of this user, who has not consented.
    #[error(
        "{login} has not consented to personal tokens for the jobs of {url}: run `statewright consent add {url} --org {org}`"
    )]
    NoConsent {
        login: Login,
        /// The organization of the issuer.
        org: OrgName,
        url: IssuerUrl,
    },
    /// A policy allows a token of this team, which does not exist.
    #[error(
        "team {team} of {org} not found: ask an admin to create it, or to change the policy of the issuer"
    )]
    NoTeam { team: TeamName, org: OrgName },
    /// The keys of the issuer are not known and cannot be fetched now.
    #[error(
        "the keys of the token's issuer cannot be fetched now: try again in a minute; the operator sees why in the server's \
         audit log"
    )]
    KeysUnavailable,
    /// Proofs that were not accepted came from this address, or with this access key. None is checked until the wait is
    /// over.
    #[error(
        "too many refused proofs came from your address or with your access key: try again in {} s",
        .0.as_secs()
    )]
    TooManyProofs(Duration),
    /// The server is already asking AWS about the maximum number of proofs.
    #[error("the server is asking AWS about too many proofs: try again")]
    TooManyQuestions,
}

/// What is wrong with a parameter of an exchange.
#[derive(Debug, thiserror::Error)]
pub enum BadParameter {
    /// A parameter that the kind of grant needs is missing or empty.
    #[error("the parameter {0} is missing: send it")]
    Missing(&'static str),
    /// The body is neither a form nor JSON.
    #[error("the form does not parse ({0}): send the parameters as a form or as JSON")]
    Form(#[from] serde_urlencoded::de::Error),
    #[error("expiration is not a number of seconds greater than 0: send one, or leave it out")]
    Expiration,
    #[error("subject_token is longer than {bytes_max} bytes: send the ID token of the job alone")]
    TokenTooLong { bytes_max: usize },
    #[error("subject_token is not a signed JWT: send the ID token of the job as its issuer made it")]
    NotJwt,
    #[error("subject_token is not a proof of a principal of AWS: send what `statewright login --aws` makes")]
    NotProof,
    #[error("subject_token_type is missing or unknown: use {jwt} or {proof}")]
    TokenType { jwt: &'static str, proof: &'static str },
    /// The requested kind of token; `prefix` begins each.
    #[error(
        "requested_token_type is missing or unknown: use {prefix}organization, {prefix}team or {prefix}personal"
    )]
    RequestedType { prefix: &'static str },
    #[error("the scope is not one of a token of the organization: leave it empty, or use admin")]
    OrgScope,
    #[error("the scope is not one of a team's token: use team:NAME")]
    TeamScope,
    #[error("the scope is not one of a personal token: use user:LOGIN")]
    PersonalScope,
    /// The scope has an invalid name of a team or user.
    #[error("the scope names no team or user: {0}")]
    ScopeName(#[from] InvalidName),
}

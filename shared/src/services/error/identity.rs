//! Errors about the operator's changes to users, organizations, tokens and passwords.

use crate::domain::access::Scope;
use crate::domain::names::{Login, OrgName, TeamName, TokenName};
use crate::domain::plural;
use crate::domain::role::Role;
use crate::ports::Timestamp;

/// Why a change to users, organizations, tokens or passwords is refused.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// A user of this name exists.
    #[error("user {0} already exists: choose another name, or add this user to an organization as a member")]
    UserExists(Login),
    /// An organization of this name exists.
    #[error("organization {0} already exists: choose another name")]
    OrgExists(OrgName),
    /// The history uses this login for the operator.
    #[error("the user name {0} is reserved for the operator: choose another name")]
    ReservedLogin(&'static str),
    /// The history uses this token name for password logins or for browsers.
    #[error("the token name {0} is reserved for sign-ins with a password or a browser: choose another name")]
    ReservedTokenName(TokenName),
    /// The user already has a token of this name.
    #[error("user {login} already has a token named {name}: choose another name, or revoke that token first")]
    TokenExists {
        /// The owner of the token.
        login: Login,
        /// The name of the existing token.
        name: TokenName,
    },
    /// A token of the organization or of one of its teams has or had this name.
    #[error(
        "{org} already used the name {name} for a token, and a name is used only once: choose another name"
    )]
    TokenNameUsed { org: OrgName, name: TokenName },
    /// The organization has no team of this name.
    #[error("{org} has no team named {team}: check the name")]
    NoTeam { org: OrgName, team: TeamName },
    /// Teams that a new stack names do not exist.
    #[error("{org} has no team named {team:?}: name teams that exist, with one `--teams` for each")]
    UnknownTeam {
        org: OrgName,
        /// The name as it was sent, shortened.
        team: String,
    },
    /// The organization has a team of this name.
    #[error("{org} already has a team named {team}: choose another name")]
    TeamExists { org: OrgName, team: TeamName },
    /// Paths of the API use this word in the place of a team.
    #[error("the team name {0} is reserved for paths of the API: choose another name")]
    ReservedTeamName(TeamName),
    /// A text of a team is too long.
    #[error("the {what} is too long: use at most {characters_max} characters")]
    TeamTextTooLong {
        what: &'static str,
        /// The maximum length in characters.
        characters_max: usize,
    },
    /// A text has characters that are not seen, or that turn what is around them.
    #[error("the {what} has hidden characters: write it without them")]
    HiddenCharacters {
        /// The kind of text.
        what: &'static str,
    },
    /// The user is in the team already.
    #[error("{login} is already in the team {team}: no change is needed")]
    InTeam { login: Login, team: TeamName },
    /// The user is not in the team.
    #[error("{login} is not in the team {team}: add the user to it first")]
    NotInTeam { login: Login, team: TeamName },
    /// A team or a grant names a user who is not a member.
    #[error("{login} is not a member of {org}: add the user to the organization first")]
    Outsider { login: Login, org: OrgName },
    /// Neither the organization nor one of its teams has a token of this name.
    #[error(
        "{org} has no token of its own named {name}: check the name with `statewright token list --org {org}`"
    )]
    NoMachineToken { org: OrgName, name: TokenName },
    /// A grant of the role `none`.
    #[error("the role none gives nothing, so it cannot be granted: remove grants to take rights away")]
    EmptyGrant,
    /// A grant of the role `auditor` on a part of the organization.
    #[error(
        "the audit trail is of the whole organization, so the role auditor is granted on `*` only: use `*`, or grant \
         view"
    )]
    AuditorOnPart,
    /// The organization has no such grant.
    #[error("{org} has no such grant: list them with `statewright org grant list {org}`")]
    NoGrant { org: OrgName },
    /// The item of an organization's teams and grants would be too large.
    #[error("{org} would have {count} {what}: an organization can have at most {max}")]
    AccessTooLarge {
        org: OrgName,
        /// What there is too much of.
        what: &'static str,
        count: usize,
        max: usize,
    },
    /// The teams and grants are not at the version that a change is made for.
    #[error("the teams and grants of {org} have changed since version {version:?}: export them again")]
    AccessMoved {
        org: OrgName,
        /// The version that was sent, shortened.
        version: String,
    },
    /// The user is a member already.
    #[error("{login} is already a member of {org}: change the role of the member instead")]
    AlreadyMember { login: Login, org: OrgName },
    /// The organization would have no admin.
    #[error("{login} is the last admin of {org}: make another member an admin first")]
    LastAdmin { login: Login, org: OrgName },
    /// An admin removes the own membership.
    #[error("you cannot remove yourself from the organization {0}: ask another admin")]
    RemovesSelf(OrgName),
    /// An admin invites the own login.
    #[error("you cannot invite yourself: ask another admin")]
    InvitesSelf,
    /// An admin invites a user of no organization who can sign in without a link.
    #[error(
        "{login} can sign in already and needs no link: add the user with `statewright org member add {org} {login} \
         --server` or `POST /api/orgs/{org}/members/{login}`. A person who cannot sign in asks the operator"
    )]
    SignsInAlready { login: Login, org: OrgName },
    /// An admin adds a user whose sign-in an admin of another organization reset: it would end.
    #[error(
        "an admin of another organization reset the sign-in of {login}, so only the operator adds this user: with \
         `statewright org member add {org} {login}`, which ends that sign-in, and then `statewright user invite {login}` \
         for a new one"
    )]
    AddedByOperator { login: Login, org: OrgName },
    /// The holder of an invitation signs in as the user, who may have rights in more than the organization.
    #[error(
        "{login} cannot be invited here: {why}. The operator makes a link with `statewright user invite {login}`"
    )]
    InvitedByOperator { login: Login, why: OperatorsAlone },
    /// This server has no such role.
    #[error("role {0:?} not found: use one of none, view, auditor, outputs, plan, apply, member and admin")]
    NoRole(String),
    /// This server has fixed roles.
    #[error("this server has no custom roles: grant one of its roles on a part of the organization instead")]
    CustomRole,
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
    /// The list of tokens has none with this ID.
    #[error("there is no token with this id: list the tokens, and use the id of one")]
    NoTokenWithId,
    /// The token belongs to another kind of principal than the path. The beginning is Pulumi Cloud's text.
    #[error("the requested token is not {kind} token: use the path of its own kind")]
    TokenOfOtherKind {
        /// The kind that the path is for, with its article.
        kind: &'static str,
    },
    /// A machine has no tokens of its own.
    #[error("this is the token of a machine, and a machine has no personal tokens: use a personal token")]
    TokensOfMachine,
    /// A new machine token needs a name.
    #[error("the new token has no name: send a `name`")]
    NoTokenName,
    /// The name of a machine token is too long.
    #[error("the name of the token is too long: use at most {characters_max} characters")]
    TokenNameTooLong {
        /// The maximum length in characters.
        characters_max: usize,
    },
    /// The description of a token is too long.
    #[error("the description of the token is too long: use at most {characters_max} characters")]
    TokenDescriptionTooLong {
        /// The maximum length in characters.
        characters_max: usize,
    },
    /// A token would end in the past.
    #[error("the expiry of the token is in the past: use a later one")]
    TokenExpiryPast,
    /// A token would end too late.
    #[error("the expiry of the token is too late: use a time within {days_max} days from now")]
    TokenExpiryTooLate {
        /// The maximum lifetime in days.
        days_max: u64,
    },
    /// A rotated token's old secret would work for too long.
    #[error("the time for the old secret is too long: use 0 to {seconds_max} for `graceSeconds`")]
    TokenGraceTooLong {
        /// The maximum time in seconds.
        seconds_max: u64,
    },
    /// A request for a token names two roles.
    #[error("`admin` and `roleID` name different roles: send only one of them")]
    TwoRoles,
    /// A token would allow more than the token of the request.
    #[error(
        "your token allows at most {0}, so it cannot create or change a token that allows more: choose a lower role, or \
         use another token"
    )]
    ExceedsOwnRole(Role),
    /// A token would work in more organizations than the token of the request.
    #[error(
        "your token works only in {0}, so it can change only tokens that are limited to {0} too: use another token"
    )]
    ExceedsOwnOrg(OrgName),
    /// A token would work in more of an organization than the token of the request.
    #[error(
        "your token works only in {0}, so it can change only tokens that are limited to that or less: ask for a part of \
         it, or use another token"
    )]
    ExceedsOwnScope(Scope),
    /// A token would outlive the token of the request.
    #[error(
        "your token expires at {}, so it cannot create a token that expires later: choose an earlier expiry, or use \
         another token", .0.to_rfc3339()
    )]
    OutlivesOwn(Timestamp),
    /// A certificate has no secret that the server could replace.
    #[error(
        "this is a client certificate, which has no secret to rotate: register a new certificate instead"
    )]
    NoSecretToRotate,
    /// The limit on the days that tokens of an organization have left is too large.
    #[error("the limit for access tokens is too large: use at most {days_max} days, or 0 for no limit")]
    TokenDaysTooMany {
        /// The maximum in days.
        days_max: u32,
    },
    /// An organization would no longer accept the token that sets its limit.
    #[error(
        "your own token has more than {} left, or no end, so {org} would refuse it from now on: create a token that \
         expires earlier, and set the limit with that one or in the console", plural::count(*days_max, "day")
    )]
    OwnTokenLivesTooLong {
        org: OrgName,
        /// The limit in days.
        days_max: u32,
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

/// Why only the operator makes a link for a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OperatorsAlone {
    #[error("this is the login of an admin of the server")]
    ServerAdmin,
    #[error("this user is in another organization")]
    OtherOrg,
    /// The rules of a provider may give rights at the next sign-in.
    #[error("this user has an account of a provider")]
    Account,
    #[error("a link that the operator made for this user still works")]
    Link,
}

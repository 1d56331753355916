//! Errors about access: who the caller is, and what the caller may do.

use std::time::Duration;

use crate::domain::access::Scope;
use crate::domain::names::{Login, OrgName, TokenName};
use crate::domain::principal::Principal;
use crate::domain::role::{Right, Role};

/// Why a caller is not authenticated, or may not do what the request needs.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// An API request has no access token.
    #[error("no access token was sent: log in with `pulumi login` and a token of this server")]
    NoToken,
    /// A request of a Terraform or OpenTofu client has no credentials.
    #[error("no access token was sent: send a token of this server as the password, with any username")]
    NoStateToken,
    /// A request of an update has no update token.
    #[error("no update token was sent: only a running update may send this request")]
    NoUpdateToken,
    /// A browser attaches a username and a password to requests that any web page makes, so they prove nothing.
    #[error(
        "a web page sent this request with a username and a password: send the token as a bearer token instead"
    )]
    FromWebPage,
    /// The access token is unknown or was revoked.
    #[error("the access token is not valid: log in again with `pulumi login` and a token of this server")]
    UnknownToken,
    /// The access token has expired.
    #[error("the access token has expired: create a new one and log in with it")]
    TokenExpired,
    /// The user's provider has not confirmed the user for too long. With an organization of the user, if there is one: the
    /// CLI makes the address of a page of it.
    #[error(
        "the user's last sign-in with the provider is too old, so the user's tokens have stopped: sign in at /signin with a \
         browser, and repeat the request"
    )]
    SignInNeeded(Option<OrgName>),
    /// The access token has expired, and its user holds no lock that was taken before.
    #[error(
        "the access token has expired, and you hold no lock that was taken before: create a new token and use that"
    )]
    TokenExpiredWithoutLock,
    /// The client certificate is not registered for any token.
    #[error(
        "the client certificate is not registered: register it with `statewright token create NAME --certificate FILE`"
    )]
    UnknownCertificate,
    /// The client certificate has expired.
    #[error("the client certificate has expired: register a new one and use that")]
    CertificateExpired,
    /// The error does not reveal which of the two is wrong.
    #[error("the user or the password is wrong: check both")]
    WrongPassword,
    /// Wrong passwords were sent for this user, or from this address for several. No password is checked until the wait is
    /// over.
    #[error("too many wrong passwords for this user or from this address: try again in {} s", .0.as_secs())]
    TooManyFailures(Duration),
    /// The server is already checking the maximum number of passwords.
    #[error("the server is checking too many passwords: try again")]
    TooManyPasswords,
    /// The caller is a member without the needed role.
    #[error(transparent)]
    NotAllowed(Box<NotAllowed>),
    /// The access token has more time left than the organization allows, or no end. The text is that of Pulumi Cloud.
    #[error(
        "the `{org}` organization enforces a max access token expiry of `{days_max}` days that your current token does not \
         meet. Please generate a new token with a TTL meeting your org's threshold to perform this request."
    )]
    TokenLivesTooLong { org: OrgName, days_max: u32 },
    /// The request is for admins of the server.
    #[error(
        "only admins of the server may do this, and {0} is not one, or the token is limited: the operator names them with `statewright \
         serve --server-admins`"
    )]
    NotServerAdmin(Login),
    /// The organization does not exist, or the caller is not a member of it.
    #[error("organization {0} not found: check its name, and that your user is a member")]
    NoOrg(OrgName),
    /// No user has this login.
    #[error("user {0} not found: check the name")]
    NoUser(Login),
}

/// The role that a caller lacks, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAllowed {
    /// The refused action, as the error names it.
    pub(crate) what: &'static str,
    /// The right that the action needs.
    pub(crate) needs: Right,
    /// The caller's role in the organization, or the highest role in any.
    pub(crate) role: Role,
    /// Whether the user or the machine has the right, so that only the token lacks it.
    pub(crate) is_held: bool,
    /// The maximum role of the token, if it has one.
    pub(crate) may: Option<Role>,
    /// The organization; `None` if the request was refused before it was known.
    pub(crate) org: Option<OrgName>,
    /// The address of the stack, state or environment; `None` for the organization itself.
    pub(crate) on: Option<String>,
    /// The kind of the caller.
    pub(crate) of: Principal,
    pub(crate) login: Login,
    pub(crate) token: TokenName,
    /// The part of the organization in which the token works, if this is not in it.
    pub(crate) within: Option<Scope>,
    /// Some admins of the organization, once they are known.
    pub(crate) admins: Vec<Login>,
}

/// How the operator uses the same command.
const WITHOUT_SERVER: &str = "the operator with the same command without --server";

impl NotAllowed {
    /// The organization whose admins can give what is missing; `None` if they cannot: the caller needs another token.
    pub(crate) fn lifted_in(&self) -> Option<&OrgName> {
        let is_theirs = match self.of.is_user() {
            true => !self.is_held,
            false => !self.is_team_token_limited(),
        };
        self.org.as_ref().filter(|_| self.within.is_none() && is_theirs)
    }

    /// Whether this is the token of a team, with a maximum role that no grant raises.
    fn is_team_token_limited(&self) -> bool {
        matches!(self.of, Principal::Team(_)) && self.may.is_some_and(|may| !may.gives(self.needs))
    }

    /// The stack, state or environment as grants name it: `PROJECT/NAME`.
    fn unit(&self) -> Option<&str> {
        self.on.as_deref().and_then(|on| on.split_once('/')).map(|(_, unit)| unit)
    }

    fn name_admins(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let admins: Vec<&str> = self.admins.iter().map(Login::as_str).collect();
        match admins.is_empty() {
            true => Ok(()),
            false => write!(f, "; ask an admin: {}", admins.join(", ")),
        }
    }
}

impl std::error::Error for NotAllowed {}

impl std::fmt::Display for NotAllowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, needs, role, is_held, may, org, on, of, login, token, within, .. } = self;
        write!(f, "{what} needs the role {needs}")?;
        if let Some(place) = on.as_deref().or(org.as_ref().map(OrgName::as_str)) {
            write!(f, " in {place}")?;
        }
        if let Some(within) = within {
            return write!(
                f,
                ", and the token {:?} of {login} works only in {within}: use another token",
                token.as_str()
            );
        }
        if !of.is_user() {
            write!(f, ", and the {} token {:?} ", of.as_str(), token.as_str())?;
            let may = may.unwrap_or(*role);
            if self.is_team_token_limited() {
                return write!(f, "allows at most {may}: use another token");
            }
            write!(f, "has {may}: use another token, or have an admin of {login} grant more to it")?;
            if let Some(unit) = self.unit() {
                let role = needs.role();
                write!(
                    f,
                    " with `statewright org grant add {login} token:{token} {unit} {role} --server` or in the console"
                )?;
                write!(f, ", or {WITHOUT_SERVER}")?;
            }
            return self.name_admins(f);
        }
        if let Some(may) = may.filter(|may| !may.gives(*needs)) {
            write!(
                f,
                ", and the token {:?} of {login} allows at most {may}: use another token; {login} makes one in the console, \
                 and the operator with `statewright token create NAME --user {login} --may {}`",
                token.as_str(),
                needs.role()
            )?;
            if *is_held {
                return Ok(());
            }
            write!(f, ". The user needs it too")?;
        }
        let (org, role_needed) = (org.as_ref().map_or("ORGANIZATION", OrgName::as_str), needs.role());
        write!(
            f,
            ", and {login} has {role}: an admin of {org} gives it in the console or with `statewright org "
        )?;
        match self.unit() {
            Some(unit) => write!(f, "grant add {org} user:{login} {unit} {role_needed}")?,
            None if role_needed.rights().contains(role.rights()) => {
                write!(f, "member role {org} {login} {role_needed}")?;
            }
            // The role would take rights that the member has. A grant only adds.
            None => write!(f, "grant add {org} user:{login} '*' {role_needed}")?,
        }
        write!(f, " --server`, and {WITHOUT_SERVER}")?;
        self.name_admins(f)
    }
}

use serde::{Deserialize, Serialize};

use super::key::{Key, META};
use super::member::Member;
use super::record::Record;
use crate::domain::access::Scope;
use crate::domain::names::{Login, OrgName, TokenName};
use crate::domain::principal::Principal;
use crate::domain::role::Role;
use crate::ports::Timestamp;

/// An access token, or a client certificate that serves as one. Written when somebody creates it. The
/// token itself is not stored; its SHA-256 is in the item's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// A name that is unique among the tokens of its owner.
    pub name: TokenName,
    /// The user that the token identifies, or the organization of the machine.
    pub login: Login,
    pub created: Timestamp,
    pub expires: Option<Timestamp>,
    /// The highest role that the token allows; `None` for its owner's role. Since format 2: a program that
    /// knows only format 1 would allow the owner's role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<Role>,
    /// The kind of principal. A machine has the role `may`. Since format 3: a program that knows only format 2
    /// would take a machine for a user with the name of its organization.
    #[serde(default, skip_serializing_if = "Principal::is_user")]
    pub of: Principal,
    /// The only organization in which the token works; `None` for all of its owner's. Since format 3: a
    /// program that knows only format 2 would not limit the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<OrgName>,
    /// The only part of each organization in which the token works, and so never with the organization itself;
    /// `None` for all of it. Since format 4: a program that knows only format 3 would not limit the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Scope>,
    /// Who created it; `None` if the operator or an older program did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Login>,
    /// What it is for, as its creator wrote.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl Record for Token {
    const NAME: &'static str = "access token";
    const FORMAT: u8 = 5;

    fn format(&self) -> u8 {
        match self {
            // An older program does not know the role.
            Self { may: Some(Role::Auditor), .. } => 5,
            Self { within: Some(_), .. } => 4,
            Self { of, org, .. } if !of.is_user() || org.is_some() => 3,
            Self { may: Some(may), .. } => Member::format_of(*may).max(2),
            _ => 1,
        }
    }
}

impl Token {
    /// A token of a user, without any limit.
    pub fn personal(login: Login, name: TokenName, created: Timestamp) -> Self {
        Self {
            name,
            login,
            created,
            expires: None,
            may: None,
            of: Principal::User,
            org: None,
            within: None,
            created_by: None,
            description: String::new(),
        }
    }

    /// The key has the hex SHA-256 of the token or of the certificate.
    pub fn key(hash: &str) -> Key<Self> {
        Key::new(format!("TOKEN#{hash}"), META)
    }
}

#[cfg(test)]
pub(super) mod examples {
    use super::*;
    use crate::domain::names::TeamName;
    use crate::layout::formats::*;

    pub(crate) fn token(expires: Option<Timestamp>) -> Token {
        Token { expires, ..Token::personal(login("alice"), TokenName::parse("laptop").unwrap(), CREATED) }
    }

    pub(crate) fn scoped() -> Token {
        Token { may: Some(Role::Plan), ..token(None) }
    }

    pub(crate) fn of_team() -> Token {
        Token {
            login: login("acme"),
            may: Some(Role::Apply),
            of: Principal::Team(TeamName::parse("platform").unwrap()),
            org: OrgName::parse("acme").ok(),
            created_by: Some(login("alice")),
            description: "deploys \"web\"".to_owned(),
            ..token(Some(LATER))
        }
    }

    pub(crate) fn read(files: &mut Files) {
        files.hold("token.v1", &token(Some(LATER)), b"");
        files.hold("token-scoped.v2", &scoped(), b"");
        files.hold("token-of-team.v3", &of_team(), b"");
        let of_organization = Token { of: Principal::Organization, description: String::new(), ..of_team() };
        files.hold("token-of-organization.v3", &of_organization, b"");
        let within = Scope::parse("web/*").ok();
        files.hold("token-within.v4", &Token { within, ..scoped() }, b"");
        files.hold("token-auditor.v5", &Token { may: Some(Role::Auditor), ..scoped() }, b"");
        files.hold("token-in-organization.v3", &Token { org: OrgName::parse("acme").ok(), ..scoped() }, b"");
    }
}

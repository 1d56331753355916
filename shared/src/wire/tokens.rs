//! Access tokens, and the rules of an organization for them, in the shapes of Pulumi Cloud.
//!
//! Sources: pulumi/pulumi-pulumiservice dc76a018, `provider/pkg/cloud/spec.json` and `provider/pkg/pulumiapi`. The
//! rotation is of this server alone, and so are some members of a new token.

use serde::{Deserialize, Serialize};

use crate::domain::access::Scope;
use crate::domain::principal::Principal;
use crate::domain::role::Role;
use crate::layout::TokenEntry;
use crate::ports::Timestamp;

/// `POST /api/user/tokens`. The members after `expires` are of this server alone. An unknown member is refused, because it
/// may be meant as a limit of the token.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewPersonalToken {
    pub description: Option<String>,
    /// Seconds since the epoch; 0 for never.
    pub expires: Option<i64>,
    /// The token gets a name if this is absent.
    pub name: Option<String>,
    /// The highest role that the token allows.
    #[serde(rename = "roleID")]
    pub role_id: Option<String>,
    /// The only organization in which the token works.
    pub organization: Option<String>,
    /// The only part of each organization in which the token works, as the scope of a grant.
    pub on: Option<String>,
}

/// `POST /api/orgs/{org}/tokens`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewOrgToken {
    pub name: Option<String>,
    pub description: Option<String>,
    /// Seconds since the epoch; 0 for never.
    pub expires: Option<i64>,
    /// The same as the role `admin`.
    pub admin: Option<bool>,
    /// The name of a role; `member` if both this and `admin` are absent.
    #[serde(rename = "roleID")]
    pub role_id: Option<String>,
    /// The only part of the organization in which the token works. It is of this server alone.
    pub on: Option<String>,
}

/// `POST /api/orgs/{org}/teams/{team}/tokens`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewTeamToken {
    pub name: Option<String>,
    pub description: Option<String>,
    /// Seconds since the epoch; 0 for never.
    pub expires: Option<i64>,
    /// The only part of the organization in which the token works. It is of this server alone.
    pub on: Option<String>,
}

/// The answer with a new token.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreatedToken {
    pub id: String,
    /// The token itself, which is shown only this once.
    pub token_value: String,
}

/// `POST …/tokens/{token}/rotate`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RotateToken {
    /// The time for which the old secret still works; 0 if it is absent.
    pub grace_seconds: Option<i64>,
    /// Seconds since the epoch; absent or 0 for the same expiry as before.
    pub expires: Option<i64>,
}

/// The answer with the new secret of a token.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RotatedToken {
    /// The ID belongs to the secret, so it is another one than before.
    pub id: String,
    /// The new secret, which is shown only this once.
    pub token_value: String,
    /// When the old secret ends, in seconds since the epoch; 0 if it has ended.
    pub previous_expires: i64,
}

impl RotatedToken {
    pub fn of(secret: String, entry: &TokenEntry) -> Self {
        let previous_expires = entry.former.as_ref().map_or(0, |former| former.until.seconds());
        Self { id: entry.id().to_owned(), token_value: secret, previous_expires }
    }
}

/// A page of tokens.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    pub tokens: Vec<Token>,
    /// The token of the next page; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continuation_token: Option<String>,
}

/// An access token without its secret.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    pub id: String,
    pub name: String,
    pub description: String,
    /// RFC 3339.
    pub created: String,
    /// Seconds since the epoch, to the hour; 0 for never.
    pub last_used: i64,
    /// Seconds since the epoch; 0 for never.
    pub expires: i64,
    pub admin: bool,
    /// The login of the creator; `null` if the operator created it.
    pub created_by: Option<String>,
    /// The highest role that the token allows; absent for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleOfToken>,
    /// `personal`, `organization` or `team`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The only organization in which a personal token works. It is of this server alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub organization: Option<String>,
    /// The only part of each organization in which it works. It is of this server alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Scope>,
}

/// The role of a token.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleOfToken {
    /// The name, which is the ID too.
    pub id: Role,
    pub name: Role,
    /// The role in the words of Pulumi Cloud; empty if it has none for it.
    pub default_identifier: String,
}

impl Token {
    pub fn of(entry: TokenEntry, used: Option<Timestamp>) -> Self {
        let id = entry.id().to_owned();
        let token = entry.token;
        let role = |role: Role| RoleOfToken {
            id: role,
            name: role,
            default_identifier: match role {
                Role::Admin | Role::Member => role.as_str().to_owned(),
                Role::None | Role::View | Role::Auditor | Role::Outputs | Role::Plan | Role::Apply => {
                    String::new()
                }
            },
        };
        Self {
            id,
            name: token.name.into(),
            description: token.description,
            created: token.created.to_rfc3339(),
            last_used: used.map_or(0, Timestamp::seconds),
            expires: token.expires.map_or(0, Timestamp::seconds),
            admin: token.may == Some(Role::Admin) && token.of == Principal::Organization,
            created_by: token.created_by.map(String::from),
            role: token.may.map(role),
            kind: token.of.as_str().to_owned(),
            organization: token.org.filter(|_| token.of.is_user()).map(String::from),
            on: token.within,
        }
    }
}

/// `PATCH /api/orgs/{org}`. A setting that this server does not have is refused.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OrganizationSettings {
    /// The days that access tokens have left at most; 0 for no limit.
    pub set_max_access_token_expiry_days: Option<i64>,
}

/// The rules of an organization.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrganizationRules {
    /// The days that access tokens have left at most; 0 for no limit.
    pub max_access_token_expiry_days: i64,
}

//! The server, its users and their organizations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::role::Role;

/// `GET /api/user`. For a machine, the user is its organization.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// The login: users have no other id.
    pub id: String,
    /// The login; the CLI requires it.
    pub github_login: String,
    /// Shown by consoles.
    pub name: String,
    /// Not stored; always empty.
    pub email: String,
    /// Not stored; always empty.
    pub avatar_url: String,
    pub organizations: Vec<Organization>,
    /// Always empty: there are no external identities.
    pub identities: Vec<String>,
    /// Always false: users have one factor, a password or a provider.
    #[serde(rename = "hasMFA")]
    pub has_mfa: bool,
    /// Always false: no other system manages users.
    pub is_org_managed: bool,
    /// Always false.
    pub is_managed_by_multi_org: bool,
    /// The token of a machine. The CLI takes a token for a personal one only if this is absent (pulumi v3.274.1,
    /// `pkg/cmd/pulumi/whoami/whoami.go`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_info: Option<TokenInfo>,
}

/// The token of a machine.
#[derive(Debug, Serialize, Deserialize)]
pub struct TokenInfo {
    pub name: String,
    pub organization: String,
    /// `null` for a token of the organization.
    pub team: Option<String>,
}

/// An organization that the user belongs to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Organization {
    /// The organization's name; the CLI requires it.
    pub github_login: String,
    pub name: String,
    /// Not stored; always empty.
    pub avatar_url: String,
}

/// `GET /api/orgs/{org}/members`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Members {
    pub members: Vec<Member>,
}

/// A member of an organization.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// `admin` or `member`: clients know no other role.
    pub role: Role,
    pub user: RequestedBy,
    /// Always true: every member has an account.
    pub known_to_pulumi: bool,
    /// Always false: no other system makes admins.
    pub virtual_admin: bool,
    /// The same role in the form that newer clients read.
    pub fga_role: NamedRole,
}

/// A role as an object with a name.
#[derive(Debug, Serialize, Deserialize)]
pub struct NamedRole {
    pub id: Role,
    pub name: Role,
}

/// `GET /api/user/organizations/default`. Only this answer has PascalCase members; the CLI accepts any case.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct DefaultOrganization {
    /// The organization of stacks whose name has no organization.
    #[serde(rename = "GitHubLogin")]
    pub github_login: String,
    /// Always empty.
    pub messages: Vec<String>,
}

/// `GET /api/capabilities`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
pub struct Capabilities {
    pub capabilities: Vec<Capability>,
}

/// A feature that the server offers. If one has a missing or wrong configuration, the CLI ignores all of them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Capability {
    pub capability: &'static str,
    /// The CLI accepts exactly one version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<Value>,
}

/// `GET /api/cli/version`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Versions {
    /// The newest CLI version that this server knows.
    pub latest_version: &'static str,
    /// The CLI warns if it is older.
    pub oldest_without_warning: &'static str,
    /// Always empty.
    pub latest_dev_version: &'static str,
}

/// `GET /api/orgs/{org}/templates`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Templates {
    /// Always empty.
    pub templates: BTreeMap<String, Value>,
    /// Whether the organization has templates.
    pub org_has_templates: bool,
    /// Whether the caller had no right to read some templates.
    pub has_access_error: bool,
    /// Whether the source of some templates could not be read.
    pub has_upstream_error: bool,
}

/// A user, such as the one who started an update.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedBy {
    pub name: String,
    pub github_login: String,
    /// Not stored; always empty.
    pub avatar_url: String,
}

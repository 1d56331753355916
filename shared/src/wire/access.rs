//! Members, teams, roles and grants of an organization. Those that Pulumi Cloud has too follow pulumi/pulumi-pulumiservice
//! dc76a018, `provider/pkg/cloud/spec.json`; a few are our own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::bounded;
use crate::domain::access::{Document, Grant, Reason, TeamAction, TeamDocument};
use crate::domain::names::{InvalidName, Login, TeamName};
use crate::domain::role::{Right, Rights, Role};

/// `GET /api/orgs/{org}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OrganizationDetails {
    /// The organization's name.
    pub github_login: String,
    pub name: String,
    /// Not stored; always empty.
    pub avatar_url: String,
    /// Always empty: the server knows no repositories.
    pub repos: Vec<Value>,
}

/// `POST`, `PATCH /api/orgs/{org}/members/{user}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberEdit {
    /// The name of a role.
    #[serde(default)]
    pub role: Option<String>,
    /// The ID of a role, which is its name. It counts more than `role`.
    #[serde(default)]
    pub fga_role_id: Option<String>,
}

/// `POST /api/orgs/{org}/members/{user}/invitation`, which is of this server alone.
#[derive(Debug, Serialize, Deserialize)]
pub struct InvitationLink {
    pub user: String,
    /// The role that the user has.
    pub role: Role,
    /// The path and the query of the link, which is shown only this once. It follows the address of the server.
    pub path: String,
    /// When the link stops, in RFC 3339.
    pub expires: String,
}

/// `GET /api/orgs/{org}/members/{user}/teams`.
#[derive(Debug, Serialize, Deserialize)]
pub struct TeamsOfMember {
    /// The names for people.
    pub teams: Vec<String>,
}

/// `GET /api/orgs/{org}/teams`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Teams {
    pub teams: Vec<Team>,
}

/// A team. Members and permissions are only in the answer to a request for one team.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Team {
    /// Always `pulumi`: no other system manages teams.
    pub kind: String,
    pub name: String,
    pub display_name: String,
    pub description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<TeamMember>>,
    /// The roles on single names, which reach stacks, states and environments alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<Vec<StackPermission>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environments: Option<Vec<EnvironmentPermission>>,
    /// The caller's role in the team: none, member or admin.
    pub user_role: String,
    /// The role on the whole organization, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_ids: Option<Vec<String>>,
}

/// A member of a team.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamMember {
    pub name: String,
    pub github_login: String,
    /// Not stored; always empty.
    pub avatar_url: String,
    /// Member or admin.
    pub role: String,
}

/// A team's permission on a stack.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StackPermission {
    pub project_name: String,
    pub stack_name: String,
    /// 0 for none, 101 to read, 102 to write, 103 and 104 for everything.
    pub permission: u32,
    /// The role, which says more than the number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_set_name: Option<String>,
}

/// A team's permission on an environment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentPermission {
    pub project_name: String,
    pub env_name: String,
    /// One of none, read, open, write and admin.
    pub permission: String,
    /// Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_open_duration: Option<String>,
    /// The role, which says more than the permission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_set_name: Option<String>,
}

/// `POST /api/orgs/{org}/teams/pulumi`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewTeam {
    pub name: String,
    #[serde(default)]
    pub display_name: Option<String>,
    #[serde(default)]
    pub description: Option<String>,
}

/// `PATCH /api/orgs/{org}/teams/{team}`. Clients send one of these, and may send several.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamEdit {
    #[serde(default)]
    pub new_display_name: Option<String>,
    #[serde(default)]
    pub new_description: Option<String>,
    #[serde(default)]
    pub member_action: Option<TeamAction>,
    #[serde(default)]
    pub member: Option<String>,
    #[serde(default)]
    pub add_stack_permission: Option<StackPermission>,
    #[serde(default)]
    pub edit_stack_permission: Option<StackPermission>,
    #[serde(default)]
    pub remove_stack: Option<NamedStack>,
    #[serde(default)]
    pub add_environment_permission: Option<EnvironmentPermission>,
    #[serde(default)]
    pub edit_environment_permission: Option<EnvironmentPermission>,
    #[serde(default)]
    pub remove_environment: Option<NamedEnvironment>,
}

/// A stack of a team.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedStack {
    pub project_name: String,
    pub stack_name: String,
}

/// An environment of a team.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedEnvironment {
    pub project_name: String,
    pub env_name: String,
}

/// `GET {stack}/teams`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamsOfStack {
    pub project_name: String,
    pub teams: Vec<TeamOfStack>,
}

/// A team with its permission on a stack.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamOfStack {
    pub name: String,
    pub display_name: String,
    pub description: String,
    /// Whether the caller is in it.
    pub is_member: bool,
    /// As in [`StackPermission`].
    pub permission: u32,
}

/// `PATCH /api/console/stacks/{org}/{project}/{stack}/teams/{team}`.
#[derive(Debug, Deserialize)]
pub struct NewStackPermission {
    /// As in [`StackPermission`].
    pub permissions: u32,
}

/// `GET {stack}/collaborators`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Collaborators {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack_creator_user_name: Option<String>,
    pub users: Vec<Collaborator>,
}

/// A member who may do something with a stack.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Collaborator {
    /// As in [`StackPermission`].
    pub permission: u32,
    pub user: Person,
}

/// A user, without anything else.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Person {
    pub name: String,
    pub github_login: String,
    /// Not stored; always empty.
    pub avatar_url: String,
}

impl From<&Login> for Person {
    fn from(login: &Login) -> Self {
        let login = login.to_string();
        Self { name: login.clone(), github_login: login, avatar_url: String::new() }
    }
}

/// `GET /api/console/orgs/{org}/members/{user}/stacks/{project}/{stack}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsOfMember {
    /// Of a grant to the member on this stack alone. As in [`StackPermission`].
    pub explicit_permission: u32,
    /// Of the member's role in the organization.
    pub organization_default: u32,
    /// Member or admin: clients know no other role.
    pub organization_role: String,
    pub team_permissions: Vec<TeamPermission>,
    pub user_info: Person,
}

/// A team of a member, with what it gives on a stack.
#[derive(Debug, Serialize, Deserialize)]
pub struct TeamPermission {
    pub team: Team,
    /// As in [`StackPermission`].
    pub permission: u32,
}

/// `GET /api/orgs/{org}/roles`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Roles {
    pub roles: Vec<RoleDetails>,
}

/// A role of this server. Roles are fixed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoleDetails {
    pub id: String,
    /// The organization's name.
    pub org_id: String,
    pub name: String,
    pub description: String,
    /// Always `global`.
    pub resource_type: String,
    /// Always `role`.
    pub ux_purpose: String,
    /// Pulumi Cloud's name for it, if it has the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_identifier: Option<String>,
    pub details: Permissions,
    /// Always 1.
    pub version: u32,
    /// Whether new members have it.
    pub is_org_default: bool,
    /// Always 1970: roles come with the server.
    pub created: String,
    pub modified: String,
}

/// What a role allows, by Pulumi Cloud's nearest names.
#[derive(Debug, Serialize, Deserialize)]
pub struct Permissions {
    #[serde(rename = "__type")]
    pub kind: String,
    pub permissions: Vec<String>,
}

/// `GET /api/orgs/{org}/roles/{role}/users`.
#[derive(Debug, Serialize, Deserialize)]
pub struct UsersWithRole {
    pub users: Vec<Person>,
}

/// `GET /api/orgs/{org}/grants`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Grants {
    pub grants: Vec<Grant>,
}

/// `GET`, `PUT /api/orgs/{org}/access`: who may do what, as one document. It has no members and no tokens.
#[derive(Debug, Serialize, Deserialize)]
pub struct AccessDocument {
    /// The version that the document shows or changes. A write without it replaces any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(deserialize_with = "bounded::members")]
    pub teams: Option<BTreeMap<String, TeamDocument>>,
    #[serde(deserialize_with = "bounded::items")]
    pub grants: Option<Vec<Grant>>,
}

impl AccessDocument {
    pub fn new(Document { teams, grants }: Document, version: String) -> Self {
        Self {
            version: Some(version),
            teams: Some(teams.into_iter().map(|(name, team)| (name.to_string(), team)).collect()),
            grants: Some(grants.into_iter().collect()),
        }
    }

    /// The teams and grants, and the version that they are made for.
    ///
    /// # Errors
    /// [`InvalidName`] for the name of a team.
    pub fn read(self) -> Result<(Document, Option<String>), InvalidName> {
        let teams = self.teams.unwrap_or_default().into_iter();
        let named = teams.map(|(name, team)| TeamName::parse(&name).map(|name| (name, team)));
        let teams = named.collect::<Result<_, InvalidName>>()?;
        let grants = self.grants.unwrap_or_default().into_iter().collect();
        Ok((Document { teams, grants }, self.version))
    }
}

/// `GET {stack}/access`: what somebody may do with a stack, and why.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedAccess {
    pub login: String,
    /// The role in the organization.
    pub role: Role,
    /// The highest role whose rights are all held on the stack.
    pub role_here: Role,
    pub rights: Vec<ExplainedRight>,
    /// What has the name, by whose tags or labels this was decided: `stack`, `tfstate` or `environment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// `GET /api/orgs/{org}/rights`: what the caller may do, so far as the token leaves it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnRights {
    pub login: String,
    /// The role in the organization.
    pub role: Role,
    /// Whether the caller administers the organization.
    pub admin: bool,
    /// The rights in the organization itself, and so on everything in it.
    pub rights: Vec<String>,
    /// The rights that the caller has on some part at least.
    pub somewhere: Vec<String>,
    pub teams: Vec<OwnTeam>,
    /// What grants add on parts.
    pub grants: Vec<OwnGrant>,
    /// The only part in which the token works, written as that of a grant; null for all of it.
    pub within: Option<String>,
    /// Whether the caller administers the server.
    pub server_admin: bool,
}

/// A team of the caller.
#[derive(Debug, Serialize, Deserialize)]
pub struct OwnTeam {
    pub name: String,
    /// Member or admin; null for the token of a team.
    pub role: Option<String>,
}

/// What a grant gives to the caller.
#[derive(Debug, Serialize, Deserialize)]
pub struct OwnGrant {
    pub on: String,
    pub role: Role,
    pub rights: Vec<String>,
}

/// The names of the rights in a set.
pub fn names_of(rights: Rights) -> Vec<String> {
    let held = Right::ALL.into_iter().filter(|right| rights.has(*right));
    held.map(|right| right.as_str().to_owned()).collect()
}

/// A right, with everything that gives it.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExplainedRight {
    pub right: String,
    pub because: Vec<Because>,
}

/// What gives a right: the role in the organization, or a grant.
#[derive(Debug, Serialize, Deserialize)]
pub struct Because {
    pub role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
}

impl ExplainedRight {
    pub fn new((right, reasons): (Right, Vec<Reason>)) -> Self {
        let because = |reason| match reason {
            Reason::OwnRole(role) => Because { role, grant: None },
            Reason::Grant(grant) => Because { role: grant.role.0, grant: Some(grant) },
        };
        Self { right: right.as_str().to_owned(), because: reasons.into_iter().map(because).collect() }
    }
}

//! The rows of who may do what: members, teams, roles, grants.

use crate::api::handlers::{grants, members, roles, teams};
use crate::api::parameters as query;
use crate::api::route::Answered::{Created, Json, NoContent};
use crate::api::shapes::{anything, of};
use crate::domain::access::{Difference as AccessDifference, Grant};
use crate::wire::access::{
    AccessDocument, Collaborators, ExplainedAccess, Grants, InvitationLink, MemberEdit, NewStackPermission,
    NewTeam, OrganizationDetails, OwnRights, PermissionsOfMember, RoleDetails, Roles, Team, TeamEdit, Teams,
    TeamsOfMember, TeamsOfStack, UsersWithRole,
};
use crate::wire::pulumi::Member as OrgMember;

rows! {
    Rows

    /// Get an organization
    GET "/api/orgs/{org}" => members::organization {
        auth: Token, needs: See, group: Account,
        answer: Json(of::<OrganizationDetails>), id: GetOrganization,
    }
    /// Make a user a member of an organization
    POST "/api/orgs/{org}/members/{user}" => members::add {
        auth: Token, needs: Admin, group: Account, audit: "member.add",
        body: of::<MemberEdit>,
        answer: Json(of::<OrgMember>), id: AddOrganizationMember,
    }
    /// Change the role of a member
    PATCH "/api/orgs/{org}/members/{user}" => members::edit {
        auth: Token, needs: Admin, group: Account, audit: "member.role",
        body: of::<MemberEdit>,
        answer: NoContent, id: UpdateOrganizationMember,
    }
    /// Remove a member from an organization
    DELETE "/api/orgs/{org}/members/{user}" => members::remove {
        auth: Token, needs: Admin, group: Account, audit: "member.remove",
        answer: NoContent, id: DeleteOrganizationMember,
    }
    /// Make a link with which a member signs in once; a login that no user has becomes a user and a member
    POST "/api/orgs/{org}/members/{user}/invitation" => members::invite {
        auth: Token, needs: Admin, group: Account, audit: "user.invite",
        body: of::<MemberEdit>,
        answer: Json(of::<InvitationLink>), id: InviteOrganizationMember,
    }
    /// List the teams of a member
    GET "/api/orgs/{org}/members/{user}/teams" => members::teams_of {
        auth: Token, needs: See, group: Account,
        answer: Json(of::<TeamsOfMember>), id: GetOrganizationMemberTeams,
    }
    /// List the teams of an organization
    GET "/api/orgs/{org}/teams" => teams::list {
        auth: Token, needs: See, group: Account,
        answer: Json(of::<Teams>), id: ListTeams,
    }
    /// Create a team
    POST "/api/orgs/{org}/teams/pulumi" => teams::create {
        auth: Token, needs: Admin, group: Account, audit: "team.create",
        body: of::<NewTeam>,
        answer: Created(of::<Team>), id: CreatePulumiTeam,
    }
    /// Get a team, with its members and its roles
    GET "/api/orgs/{org}/teams/{team}" => teams::get {
        auth: Token, needs: See, group: Account,
        answer: Json(of::<Team>), id: GetTeam,
    }
    /// Change a team, its members or its roles
    PATCH "/api/orgs/{org}/teams/{team}" => teams::edit {
        auth: Token, needs: See, group: Account, audit: "team.edit",
        body: of::<TeamEdit>,
        answer: NoContent, id: UpdateTeam,
    }
    /// Delete a team, with its tokens and its grants
    DELETE "/api/orgs/{org}/teams/{team}" => teams::delete {
        auth: Token, needs: Admin, group: Account, audit: "team.delete",
        answer: NoContent, id: DeleteTeam,
    }
    /// List the roles of a team on the whole organization
    GET "/api/orgs/{org}/teams/{team}/roles" => roles::of_team {
        auth: Token, needs: See, group: Account,
        answer: Json(of::<Roles>), id: ListTeamRoles,
    }
    /// Give a team a role on the whole organization
    POST "/api/orgs/{org}/teams/{team}/roles/{role}" => roles::give_team {
        auth: Token, needs: Admin, group: Account, audit: "team.role",
        answer: NoContent, id: UpdateTeamRoles,
    }
    /// Remove a team's role on the whole organization
    DELETE "/api/orgs/{org}/teams/{team}/roles/{role}" => roles::take_from_team {
        auth: Token, needs: Admin, group: Account, audit: "team.role",
        answer: NoContent, id: DeleteTeamRole,
    }
    /// List the roles of this server
    GET "/api/orgs/{org}/roles" => roles::list {
        auth: Token, needs: See, group: Account,
        query: [query::PURPOSE],
        answer: Json(of::<Roles>), id: ListRolesByOrgIDAndUXPurpose,
    }
    /// Refuse a custom role: the server's roles are fixed
    POST "/api/orgs/{org}/roles" => roles::create {
        auth: Token, needs: Admin, group: Account,
        body: anything,
        answer: Json(of::<RoleDetails>), id: CreateRole,
    }
    /// Get a role of this server
    GET "/api/orgs/{org}/roles/{role}" => roles::get {
        auth: Token, needs: See, group: Account,
        answer: Json(of::<RoleDetails>), id: GetRole,
    }
    /// List the members with a role
    GET "/api/orgs/{org}/roles/{role}/users" => roles::users {
        auth: Token, needs: View, group: Account,
        answer: Json(of::<UsersWithRole>), id: ListUsersWithRole,
    }
    /// List the grants that the caller may give and take
    GET "/api/orgs/{org}/grants" => grants::list {
        auth: Token, needs: Admin, group: Account,
        answer: Json(of::<Grants>), id: ListGrants,
    }
    /// Grant a role on a part of an organization
    POST "/api/orgs/{org}/grants" => grants::add {
        auth: Token, needs: Admin, group: Account, audit: "grant.add",
        body: of::<Grant>,
        answer: Json(of::<Grant>), id: AddGrant,
    }
    /// Remove a grant of a role on a part of an organization
    DELETE "/api/orgs/{org}/grants" => grants::remove {
        auth: Token, needs: Admin, group: Account, audit: "grant.remove",
        query: [query::GRANT_TO, query::GRANT_ON, query::GRANT_ROLE],
        answer: NoContent, id: RemoveGrant,
    }
    /// Get the teams and grants of an organization as one document
    GET "/api/orgs/{org}/access" => grants::export {
        auth: Token, needs: Admin, group: Account,
        answer: Json(of::<AccessDocument>), id: ExportAccess,
    }
    /// Replace the teams and grants of an organization with those of a document
    PUT "/api/orgs/{org}/access" => grants::apply {
        auth: Token, needs: Admin, group: Account, audit: "access.apply",
        query: [query::DRY_RUN],
        body: of::<AccessDocument>,
        answer: Json(of::<AccessDifference>), id: ApplyAccess,
    }
    /// Get what the caller may do in an organization
    GET "/api/orgs/{org}/rights" => grants::own {
        auth: Token, needs: See, group: Account,
        answer: Json(of::<OwnRights>), id: GetOwnRights,
    }
    /// Get what a user may do with a stack, and why
    GET "/api/stacks/{org}/{project}/{stack}/access" => grants::explain {
        auth: Token, needs: See, group: Account,
        query: [query::ACCESS_OF, query::ACCESS_KIND],
        answer: Json(of::<ExplainedAccess>), id: ExplainStackAccess,
    }
    /// List the teams that may do something with a stack
    GET "/api/stacks/{org}/{project}/{stack}/teams" => teams::list_of_stack {
        auth: Token, needs: View, group: Account,
        answer: Json(of::<TeamsOfStack>), id: ListStackTeams,
    }
    /// List the members who may do something with a stack
    GET "/api/stacks/{org}/{project}/{stack}/collaborators" => teams::collaborators {
        auth: Token, needs: View, group: Account,
        answer: Json(of::<Collaborators>), id: ListStackPermissions,
    }
    /// Set the permission of a team on a stack
    PATCH "/api/console/stacks/{org}/{project}/{stack}/teams/{team}" => teams::set_on_stack {
        auth: Token, needs: Admin, group: Account, audit: "team.permission",
        body: of::<NewStackPermission>,
        answer: NoContent, id: UpdateTeamStackPermissions,
    }
    /// Get what a member has on a stack, by its sources
    GET "/api/console/orgs/{org}/members/{user}/stacks/{project}/{stack}" => teams::of_member_on_stack {
        auth: Token, needs: View, group: Account,
        answer: Json(of::<PermissionsOfMember>), id: ListMemberStackPermissions,
    }
}

//! The route table, and the routers made of it.

use std::pin::Pin;
use std::sync::OnceLock;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use bytes::Bytes;
use serde_json::Value;

use super::app::App;
use super::error::Failure;
use super::handlers::{
    audit, authorize, checkpoints, cli_login, dependencies, empty, environments, events, grants, health,
    history, home, map, members, oidc, openapi, resources, roles, secrets, server, service, sessions,
    settings, sign_in, stacks, state_resources, states, teams, tfstate, tokens, updates, user,
};
use super::parameters as query;
use super::path::OrgPath;
use super::response::{self, json_text};
use super::route::Answered::{Created, Empty, Html, Json, NoContent, SeeOther, StateIfAny, Text, Yaml};
use super::route::Shapes;
use super::shapes::{
    anything, begun, checked, dependencies_of_state, downloaded, form, health_status, history_page,
    journal_entries, of, opened, packages, policy_groups, policy_packs, rejected_writes, required_policies,
    resource, state, state_resource, state_resource_neighbours, state_resource_values, state_resources_page,
    state_version, state_versions, states_page, statuses, templates,
};
use super::unsupported::unsupported;
use super::{access_log, auth};
use crate::domain::access::{Difference as AccessDifference, Grant};
use crate::domain::role::Right;
use crate::domain::saves;
use crate::limits::{
    BATCH_BYTES_MAX, COMPLETION_BYTES_MAX, CREATION_BYTES_MAX, DEPLOYMENT_BYTES_MAX, ENVIRONMENT_BYTES_MAX,
    EXCHANGE_BYTES_MAX, FORM_BYTES_MAX, ISSUER_BYTES_MAX, LOCK_BYTES_MAX, SECRETS_BYTES_MAX, SMALL_BYTES_MAX,
    STATE_BYTES_MAX,
};
use crate::services::caller::Caller;
use crate::wire::access::{
    AccessDocument, Collaborators, ExplainedAccess, Grants, InvitationLink, MemberEdit, NewStackPermission,
    NewTeam, OrganizationDetails, OwnRights, PermissionsOfMember, RoleDetails, Roles, Team, TeamEdit, Teams,
    TeamsOfMember, TeamsOfStack, UsersWithRole,
};
use crate::wire::audit::{AuditLogEvents, EventTypes};
use crate::wire::environments::{
    CloneEnvironment, DecryptSecrets, DecryptedSecrets, Diagnostics, EncryptSecrets, EncryptedSecrets,
    EnvironmentSettings, Environments as EnvironmentList, NamedEnvironment, NewRevisionTag, Opened,
    Referrers, RestoreEnvironment, Retract, Revision, RevisionTag, RevisionTagEdit, RevisionTags, Tag,
    TagEdit, TagText, Tags,
};
use crate::wire::map::DependencyMap;
use crate::wire::oidc::{
    Consent, Consents, EditIssuer, Issuer, Issuers, NewConsent, NewIssuer, NewPolicies, Policies,
    TokenAnswer, TokenRequest,
};
use crate::wire::protection::{NewHold, NewProtection, Protection};
use crate::wire::pulumi::{
    BatchDecrypt, BatchDecrypted, BatchEncrypt, BatchEncrypted, BeginUpdate, CancelUpdate, Capabilities,
    Checkpoint, Ciphertext, CompleteUpdate, Config, CreateStack, CreateUpdate, CreatedUpdate,
    DefaultOrganization, DeletedStacks, EngineEvent, EventBatch, Events, Imported, Member as OrgMember,
    Members as OrgMembers, Plaintext, RenameStack, Renamed, RenewLease, RenewedLease, RestoreDeletedStack,
    ServiceHistory, ServiceUpdate, Stack, StackMetadata, StackOutputs, StackPreviews, StackTag, Stacks,
    StartUpdate, StartedUpdate, Templates, Timeline, TransferStack, UpdateStatus, UpdateSummary, User,
    Versions,
};
use crate::wire::resources::{
    AskSecret, OpenedSecret, ResourceHistory, ResourceNeighbours, Resources, RestoredStack,
    VersionDifferences,
};
use crate::wire::server::{ServerStatus, Storage};
use crate::wire::sessions::{EndedSessions, Sessions};
use crate::wire::state_resources::{AskValues, StateResourceHistory};
use crate::wire::tfstate::{
    AllOutputs, Compliance, DeletedStates, Difference, Lock, LockInfo, Locks, NewLabelPolicy, NewState,
    Outputs, OutputsOf, Restored, Schemas, SchemasEdit, ShownLabelPolicy, State as OneState, StateEdit,
    ValuedOutput, WithReason,
};
use crate::wire::tokens::{
    CreatedToken, NewOrgToken, NewPersonalToken, NewTeamToken, OrganizationRules, OrganizationSettings,
    RotateToken, RotatedToken, Tokens,
};
use crate::wire::{Members, edges};

pub use super::parameters::{Parameter, ParameterForm};
pub use super::route::{
    Account, Admin, Auth, Console, Environments, Everything, Group, Head, Log, Read, Route, Secrets, Serves,
    Tfstate,
};

/// A handler with its type erased. The code that turns a handler into a service is long, so it exists only
/// once.
#[derive(Clone, Copy)]
struct Erased(fn(Request, App) -> Answering);

type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

impl Handler<(), App> for Erased {
    type Future = Answering;
    fn call(self, request: Request, app: App) -> Answering {
        (self.0)(request, app)
    }
}

macro_rules! needs {
    (Nothing) => {
        None
    };
    ($right:ident) => {
        Some(Right::$right)
    };
}

/// The length of a body, at most.
macro_rules! bytes_max {
    ($body:expr) => {
        SMALL_BYTES_MAX
    };
    ($body:expr, $max:ident) => {
        $max
    };
}

macro_rules! routes {
    ($(#[$about:meta])* $name:ident $(
        #[doc = $summary:literal]
        $method:ident $path:literal => $handler:path {
            auth: $auth:ident, needs: $needs:ident, group: $group:ident, $(audit: $action:literal,)?
            $(query: [$($parameter:expr),* $(,)?],)?
            $(body: $body:expr, $(max: $max:ident,)? $(copies: $copies:literal,)?)?
            answer: $answer:expr, id: $id:ident,
        }
    )*) => {
        $(#[$about])*
        pub static $name: &[Route] = &[$(Route {
            method: Method::$method,
            path: $path,
            auth: Auth::$auth,
            needs: needs!($needs),
            body_bytes_max: last(&[0, $(bytes_max!($body $(, $max)?))?]),
            body_copies: last(&[BODY_COPIES, $($($copies)?)?]),
            group: Group::$group,
            action: first(&[$($action)?]),
            query: &[$($($parameter),*)?],
            operation: stringify!($id),
            summary: $summary.trim_ascii(),
        }),*];

        /// The shapes of each row.
        static SHAPES: &[Shapes] = &[$(Shapes {
            body: first(&[$($body as fn() -> Value)?]),
            answer: $answer,
        }),*];

        /// The handler of each row that the program serves. Rows do not name handlers, so a program contains
        /// only these.
        const fn handlers<S: Serves>() -> [Option<Erased>; $name.len()] {
            [$(if has(S::GROUPS, Group::$group) {
                Some(Erased(|request, app| Handler::call($handler, request, app)))
            } else {
                None
            }),*]
        }
    };
}

/// The usual number of copies of a body that a request holds.
const BODY_COPIES: usize = 3;

const fn has(groups: &[Group], group: Group) -> bool {
    match groups {
        [first, rest @ ..] => *first as u8 == group as u8 || has(rest, group),
        [] => false,
    }
}

const fn first<T: Copy>(all: &[T]) -> Option<T> {
    match all {
        [first, ..] => Some(*first),
        [] => None,
    }
}

const fn last(all: &[usize]) -> usize {
    match all {
        [.., last] => *last,
        [] => 0,
    }
}

routes! {
    /// All routes. The columns of a row:
    ///
    /// - its purpose, its method, its path, and its handler;
    /// - `auth`: the credentials that it requires. `needs`: the right on what it is about. `group`: the
    ///   function that serves it. `audit`: the action in the audit log;
    /// - `query`: the query parameters that the handler reads. It gets no others;
    /// - `body`: the shape of the body; `of::<T>` is what the type `T` reads. `max`: the length of the body
    ///   in bytes, at most, if that is not `SMALL_BYTES_MAX`. `copies`: the copies of the body that a request
    ///   holds, if not the usual number;
    /// - `answer`: the answer to a successful request. `id`: its name in the OpenAPI document.
    ///
    /// Some requests need more than their row demands, because of the body or of what is stored: an update
    /// that is not a preview, or the lock of another user. The code that learns the fact checks it.
    ///
    /// Routes below `/tfstate` have one method each; `tfstate_methods` has the others that clients use. Paths
    /// follow pulumi v3.274.1, `pkg/backend/httpstate/client/api_endpoints.go`.
    ROUTES

    /// List the capabilities of the server beyond the oldest protocol
    GET "/api/capabilities" => service::capabilities {
        auth: Public, needs: Nothing, group: Read,
        answer: Json(of::<Capabilities>), id: Capabilities,
    }
    /// Get the versions of the CLI that the server knows
    GET "/api/cli/version" => service::cli_version {
        auth: Public, needs: Nothing, group: Read,
        answer: Json(of::<Versions>), id: Version,
    }
    /// Get the current user, with their organizations
    GET "/api/user" => user::user {
        auth: Token, needs: Nothing, group: Read, audit: "user.sign_in",
        answer: Json(of::<User>), id: GetCurrentUser,
    }
    /// Get the organization of stacks that are named without one
    GET "/api/user/organizations/default" => user::default_organization {
        auth: Token, needs: Nothing, group: Read,
        answer: Json(of::<DefaultOrganization>), id: GetDefaultOrganization,
    }
    /// Exchange the token of another issuer, such as a CI's, or the code of a login, for an access token
    POST "/api/oauth/token" => oidc::exchange {
        auth: Exchange, needs: Nothing, group: Account, audit: "token.exchange",
        body: of::<TokenRequest>, max: EXCHANGE_BYTES_MAX,
        answer: Json(of::<TokenAnswer>), id: Token,
    }
    /// List the issuers whose tokens an organization accepts
    GET "/api/orgs/{org}/oidc/issuers" => oidc::issuers {
        auth: Token, needs: Admin, group: Account,
        answer: Json(of::<Issuers>), id: List_orgs_oidc_issuers,
    }
    /// Register an issuer
    POST "/api/orgs/{org}/oidc/issuers" => oidc::register {
        auth: Token, needs: Admin, group: Account, audit: "issuer.create",
        body: of::<NewIssuer>, max: ISSUER_BYTES_MAX,
        answer: Json(of::<Issuer>), id: RegisterOidcIssuer,
    }
    /// Get an issuer
    GET "/api/orgs/{org}/oidc/issuers/{issuer}" => oidc::issuer {
        auth: Token, needs: Admin, group: Account,
        answer: Json(of::<Issuer>), id: GetOidcIssuer,
    }
    /// Change the registration of an issuer
    PATCH "/api/orgs/{org}/oidc/issuers/{issuer}" => oidc::edit {
        auth: Token, needs: Admin, group: Account, audit: "issuer.edit",
        body: of::<EditIssuer>, max: ISSUER_BYTES_MAX,
        answer: Json(of::<Issuer>), id: UpdateOidcIssuer,
    }
    /// Delete an issuer with its policies
    DELETE "/api/orgs/{org}/oidc/issuers/{issuer}" => oidc::remove {
        auth: Token, needs: Admin, group: Account, audit: "issuer.delete",
        answer: NoContent, id: DeleteOidcIssuer,
    }
    /// Store the thumbprint of the certificate that an issuer has now
    POST "/api/orgs/{org}/oidc/issuers/{issuer}/regenerate-thumbprints" => oidc::renew_thumbprints {
        auth: Token, needs: Admin, group: Account, audit: "issuer.edit",
        answer: Json(of::<Issuer>), id: RegenerateThumbprints,
    }
    /// Get the policies of an issuer
    GET "/api/orgs/{org}/auth/policies/oidcissuers/{issuer}" => oidc::policies {
        auth: Token, needs: Admin, group: Account,
        answer: Json(of::<Policies>), id: GetAuthPolicy,
    }
    /// Replace the policies of an issuer
    PATCH "/api/orgs/{org}/auth/policies/{policy}" => oidc::replace_policies {
        auth: Token, needs: Admin, group: Account, audit: "issuer.policies",
        body: of::<NewPolicies>, max: ISSUER_BYTES_MAX,
        answer: Json(of::<Policies>), id: UpdateAuthPolicy,
    }
    /// List the issuers whose jobs may get personal tokens of the user
    GET "/api/user/oidc/consents" => oidc::consents {
        auth: Token, needs: Nothing, group: Account,
        answer: Json(of::<Consents>), id: ListOidcConsents,
    }
    /// Consent to personal tokens for the jobs of an issuer
    POST "/api/user/oidc/consents" => oidc::consent {
        auth: Token, needs: Nothing, group: Account, audit: "consent.give",
        body: of::<NewConsent>,
        answer: Json(of::<Consent>), id: GiveOidcConsent,
    }
    /// Withdraw a consent
    DELETE "/api/user/oidc/consents/{issuer}" => oidc::withdraw {
        auth: Token, needs: Nothing, group: Account, audit: "consent.withdraw",
        answer: NoContent, id: WithdrawOidcConsent,
    }
    /// List the access tokens of the user
    GET "/api/user/tokens" => tokens::list {
        auth: Token, needs: Nothing, group: Account,
        query: [query::CONTINUATION, query::MAX_RESULTS, query::TOKENS_SHOWN],
        answer: Json(of::<Tokens>), id: ListPersonalTokens,
    }
    /// Create an access token of the user
    POST "/api/user/tokens" => tokens::create::<NewPersonalToken> {
        auth: Token, needs: Nothing, group: Account, audit: "token.create",
        query: [query::REASON],
        body: of::<NewPersonalToken>,
        answer: Json(of::<CreatedToken>), id: CreatePersonalToken,
    }
    /// End an access token of the user
    DELETE "/api/user/tokens/{token}" => tokens::end {
        auth: Token, needs: Nothing, group: Account, audit: "token.delete",
        query: [query::REASON],
        answer: NoContent, id: DeletePersonalToken,
    }
    /// Replace the secret of an access token of the user
    POST "/api/user/tokens/{token}/rotate" => tokens::rotate {
        auth: Token, needs: Nothing, group: Account, audit: "token.rotate",
        query: [query::REASON],
        body: of::<RotateToken>,
        answer: Json(of::<RotatedToken>), id: RotatePersonalToken,
    }
    /// List the access tokens of an organization
    GET "/api/orgs/{org}/tokens" => tokens::list {
        auth: Token, needs: Admin, group: Account,
        query: [query::CONTINUATION, query::MAX_RESULTS, query::TOKENS_SHOWN],
        answer: Json(of::<Tokens>), id: ListOrgTokens,
    }
    /// Create an access token of an organization
    POST "/api/orgs/{org}/tokens" => tokens::create::<NewOrgToken> {
        auth: Token, needs: Admin, group: Account, audit: "token.create",
        query: [query::REASON],
        body: of::<NewOrgToken>,
        answer: Json(of::<CreatedToken>), id: CreateOrgToken,
    }
    /// End an access token of an organization
    DELETE "/api/orgs/{org}/tokens/{token}" => tokens::end {
        auth: Token, needs: Admin, group: Account, audit: "token.delete",
        query: [query::REASON],
        answer: NoContent, id: DeleteOrgToken,
    }
    /// Replace the secret of an access token of an organization
    POST "/api/orgs/{org}/tokens/{token}/rotate" => tokens::rotate {
        auth: Token, needs: Admin, group: Account, audit: "token.rotate",
        query: [query::REASON],
        body: of::<RotateToken>,
        answer: Json(of::<RotatedToken>), id: RotateOrgToken,
    }
    /// List the access tokens of a team
    GET "/api/orgs/{org}/teams/{team}/tokens" => tokens::list {
        auth: Token, needs: Nothing, group: Account,
        query: [query::CONTINUATION, query::MAX_RESULTS, query::TOKENS_SHOWN],
        answer: Json(of::<Tokens>), id: ListTeamTokens,
    }
    /// Create an access token of a team
    POST "/api/orgs/{org}/teams/{team}/tokens" => tokens::create::<NewTeamToken> {
        auth: Token, needs: Nothing, group: Account, audit: "token.create",
        query: [query::REASON],
        body: of::<NewTeamToken>,
        answer: Json(of::<CreatedToken>), id: CreateTeamToken,
    }
    /// End an access token of a team
    DELETE "/api/orgs/{org}/teams/{team}/tokens/{token}" => tokens::end {
        auth: Token, needs: Nothing, group: Account, audit: "token.delete",
        query: [query::REASON],
        answer: NoContent, id: DeleteTeamToken,
    }
    /// Replace the secret of an access token of a team
    POST "/api/orgs/{org}/teams/{team}/tokens/{token}/rotate" => tokens::rotate {
        auth: Token, needs: Nothing, group: Account, audit: "token.rotate",
        query: [query::REASON],
        body: of::<RotateToken>,
        answer: Json(of::<RotatedToken>), id: RotateTeamToken,
    }
    /// List the access tokens of a member that work in the organization alone
    GET "/api/orgs/{org}/members/{user}/tokens" => tokens::list_of_member {
        auth: Token, needs: Admin, group: Account,
        query: [query::CONTINUATION, query::MAX_RESULTS, query::TOKENS_SHOWN],
        answer: Json(of::<Tokens>), id: ListMemberTokens,
    }
    /// End an access token of a member that works in the organization alone
    DELETE "/api/orgs/{org}/members/{user}/tokens/{token}" => tokens::end_of_member {
        auth: Token, needs: Admin, group: Account, audit: "token.delete",
        query: [query::REASON],
        answer: NoContent, id: DeleteMemberToken,
    }
    /// List the browsers in which the user is signed in
    GET "/api/user/sessions" => sessions::list {
        auth: Token, needs: Nothing, group: Account,
        answer: Json(of::<Sessions>), id: ListSessions,
    }
    /// Sign the user out in a browser
    DELETE "/api/user/sessions/{browser}" => sessions::end {
        auth: Token, needs: Nothing, group: Account, audit: "session.end",
        answer: NoContent, id: EndSession,
    }
    /// List the browsers in which a member of no other organization is signed in
    GET "/api/orgs/{org}/members/{user}/sessions" => sessions::list_of_member {
        auth: Token, needs: Admin, group: Account,
        answer: Json(of::<Sessions>), id: ListMemberSessions,
    }
    /// Sign a member of no other organization out in all browsers
    DELETE "/api/orgs/{org}/members/{user}/sessions" => sessions::end_all_of_member {
        auth: Token, needs: Admin, group: Account, audit: "session.end",
        answer: Json(of::<EndedSessions>), id: EndMemberSessions,
    }
    /// Sign a member of no other organization out in a browser
    DELETE "/api/orgs/{org}/members/{user}/sessions/{browser}" => sessions::end_of_member {
        auth: Token, needs: Admin, group: Account, audit: "session.end",
        answer: NoContent, id: EndMemberSession,
    }
    /// Change the rules of an organization
    PATCH "/api/orgs/{org}" => tokens::set_rules {
        auth: Token, needs: Admin, group: Account, audit: "organization.edit",
        body: of::<OrganizationSettings>,
        answer: Json(of::<OrganizationRules>), id: UpdateOrganizationSettings,
    }
    /// List the stacks that the user may see
    GET "/api/user/stacks" => stacks::list_stacks {
        auth: Token, needs: See, group: Read,
        query: [
            query::CONTINUATION, query::ORGANIZATION, query::PROJECT, query::TAG_NAME, query::TAG_VALUE,
            query::LAST_RESULT,
        ],
        answer: Json(of::<Stacks>), id: ListUserStacks,
    }
    /// List the members of an organization, with their roles
    GET "/api/orgs/{org}/members" => user::members {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<OrgMembers>), id: ListOrganizationMembers,
    }
    /// List the audit records of an organization, newest first; `startTime` is the latest time
    GET "/api/orgs/{org}/auditlogs" => audit::list_v1 {
        auth: Token, needs: Audit, group: Account, audit: "audit.read",
        query: [
            query::CONTINUATION, query::LATEST, query::OF_USER, query::OF_USER_SHORT, query::OF_EVENT,
            query::OF_EVENT_TYPE, query::OF_STACK, query::OF_STATE,
        ],
        answer: Json(of::<AuditLogEvents>), id: ListAuditLogEventsHandlerV1,
    }
    /// List the audit records of an organization, newest first
    GET "/api/orgs/{org}/auditlogs/v2" => audit::list {
        auth: Token, needs: Audit, group: Account, audit: "audit.read",
        query: [
            query::CONTINUATION, query::START, query::END, query::OF_USER, query::OF_USER_SHORT,
            query::OF_EVENT, query::OF_EVENT_TYPE, query::OF_STACK, query::OF_STATE, query::ORDER,
            query::WHOLE,
        ],
        answer: Json(of::<AuditLogEvents>), id: ListAuditLogEventsHandlerV2,
    }
    /// Export audit records as compressed CSV or CEF; `startTime` is the latest time
    GET "/api/orgs/{org}/auditlogs/export" => audit::export_v1 {
        auth: Token, needs: Audit, group: Account, audit: "audit.export",
        query: [
            query::CONTINUATION, query::LATEST, query::OF_USER, query::OF_USER_SHORT, query::OF_EVENT,
            query::OF_EVENT_TYPE, query::OF_STACK, query::OF_STATE, query::TEXT_FORM,
        ],
        answer: Text, id: ExportAuditLogEventsHandlerV1,
    }
    /// Export audit records as CSV or CEF
    GET "/api/orgs/{org}/auditlogs/v2/export" => audit::export {
        auth: Token, needs: Audit, group: Account, audit: "audit.export",
        query: [
            query::CONTINUATION, query::START, query::END, query::OF_USER, query::OF_USER_SHORT,
            query::OF_EVENT, query::OF_EVENT_TYPE, query::OF_STACK, query::OF_STATE, query::TEXT_FORM,
        ],
        answer: Text, id: ExportAuditLogEventsHandlerV2,
    }
    /// List the actions of audit records
    GET "/api/orgs/{org}/auditlogs/event-types" => event_types {
        auth: Token, needs: Audit, group: Account,
        answer: Json(of::<EventTypes>), id: ListAuditLogEventTypes,
    }
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
    /// List the templates of an organization: none
    GET "/api/orgs/{org}/templates" => empty::templates {
        auth: Token, needs: See, group: Read,
        answer: Json(of::<Templates>), id: GetOrgTemplates,
    }
    /// List the policy packs of an organization: none
    GET "/api/orgs/{org}/policypacks" => empty::policy_packs {
        auth: Token, needs: See, group: Read,
        answer: Json(policy_packs), id: ListPolicyPacks_orgs,
    }
    /// List the policy groups of an organization: none
    GET "/api/orgs/{org}/policygroups" => empty::policy_groups {
        auth: Token, needs: See, group: Read,
        answer: Json(policy_groups), id: ListPolicyGroups,
    }
    /// List the packages of the registry: none
    GET "/api/registry/packages" => empty::packages {
        auth: Token, needs: Nothing, group: Read,
        answer: Json(packages), id: ListPackages,
    }
    /// List the templates of the registry: none
    GET "/api/registry/templates" => empty::registry_templates {
        auth: Token, needs: Nothing, group: Read,
        answer: Json(templates), id: ListTemplates,
    }
    /// Check whether a project exists
    HEAD "/api/stacks/{org}/{project}" => stacks::project_exists {
        auth: Token, needs: See, group: Read,
        answer: Empty, id: ProjectExists,
    }
    /// Create a stack
    POST "/api/stacks/{org}/{project}" => stacks::create_stack {
        auth: Token, needs: Apply, group: Head, audit: "stack.create",
        body: of::<CreateStack<'_>>, max: DEPLOYMENT_BYTES_MAX,
        answer: Json(anything), id: CreateStack,
    }
    /// Get a stack, with its tags and its running update
    GET "/api/stacks/{org}/{project}/{stack}" => stacks::get_stack {
        auth: Token, needs: See, group: Read,
        answer: Json(of::<Stack>), id: GetStack,
    }
    /// Delete a stack
    DELETE "/api/stacks/{org}/{project}/{stack}" => stacks::delete_stack {
        auth: Token, needs: Member, group: Head, audit: "stack.delete",
        query: [query::FORCE, query::FORCE_DESTROY],
        answer: NoContent, id: DeleteStack,
    }
    /// List the deleted stacks that can be undeleted
    GET "/api/orgs/{org}/restore-stack" => stacks::list_deleted {
        auth: Token, needs: View, group: Read,
        query: [query::CONTINUATION],
        answer: Json(of::<DeletedStacks>), id: ListDeletedStacks,
    }
    /// Undelete a stack
    POST "/api/orgs/{org}/restore-stack/{program}" => stacks::undelete {
        auth: Token, needs: Admin, group: Head, audit: "stack.undelete",
        body: of::<RestoreDeletedStack>,
        answer: NoContent, id: RestoreDeletedStack,
    }
    /// Get the environment that stores the configuration of a stack
    GET "/api/stacks/{org}/{project}/{stack}/config" => stacks::config {
        auth: Token, needs: Plan, group: Read, audit: "stack.show_config",
        answer: Json(of::<Config>), id: GetStackConfig,
    }
    /// Set the environment that stores the configuration of a stack
    PUT "/api/stacks/{org}/{project}/{stack}/config" => stacks::set_config {
        auth: Token, needs: Apply, group: Head, audit: "stack.config",
        body: of::<Config>,
        answer: Json(of::<Config>), id: UpdateStackConfig,
    }
    /// Return the configuration of a stack to its project
    DELETE "/api/stacks/{org}/{project}/{stack}/config" => stacks::remove_config {
        auth: Token, needs: Apply, group: Head, audit: "stack.config",
        answer: NoContent, id: DeleteStackConfig,
    }
    /// Get the owner of a stack
    GET "/api/stacks/{org}/{project}/{stack}/metadata" => stacks::metadata {
        auth: Token, needs: See, group: Read,
        answer: Json(of::<StackMetadata>), id: GetStackMetadata,
    }
    /// Replace the tags of a stack
    PATCH "/api/stacks/{org}/{project}/{stack}/tags" => stacks::set_tags {
        auth: Token, needs: Apply, group: Head, audit: "stack.tag",
        body: of::<Option<Members<String>>>,
        answer: NoContent, id: UpdateStackTags,
    }
    /// Add a tag to a stack
    POST "/api/stacks/{org}/{project}/{stack}/tags" => stacks::add_tag {
        auth: Token, needs: Apply, group: Head, audit: "stack.tag",
        body: of::<StackTag>,
        answer: NoContent, id: AddStackTag,
    }
    /// Change a tag of a stack
    PATCH "/api/stacks/{org}/{project}/{stack}/tags/{tag}" => stacks::edit_tag {
        auth: Token, needs: Apply, group: Head, audit: "stack.tag",
        body: of::<StackTag>,
        answer: NoContent, id: UpdateStackTag,
    }
    /// Delete a tag of a stack
    DELETE "/api/stacks/{org}/{project}/{stack}/tags/{tag}" => stacks::remove_tag {
        auth: Token, needs: Apply, group: Head, audit: "stack.tag",
        answer: NoContent, id: DeleteStackTag,
    }
    /// Protect a stack: it cannot be deleted or destroyed until an admin lifts the protection
    PUT "/api/stacks/{org}/{project}/{stack}/protection" => stacks::protect {
        auth: Token, needs: Admin, group: Head, audit: "stack.protect",
        body: of::<NewProtection>, max: SMALL_BYTES_MAX,
        answer: Json(of::<Protection>), id: ProtectStack,
    }
    /// Lift the protection of a stack
    DELETE "/api/stacks/{org}/{project}/{stack}/protection" => stacks::lift_protection {
        auth: Token, needs: Admin, group: Head, audit: "stack.unprotect",
        answer: NoContent, id: LiftStackProtection,
    }
    /// Hold a stack by hand: no update starts until somebody releases it
    PUT "/api/stacks/{org}/{project}/{stack}/hold" => stacks::hold {
        auth: Token, needs: Member, group: Head, audit: "stack.hold",
        body: of::<NewHold>, max: SMALL_BYTES_MAX,
        answer: Json(of::<Protection>), id: HoldStack,
    }
    /// Release a stack that is held by hand
    DELETE "/api/stacks/{org}/{project}/{stack}/hold" => stacks::release {
        auth: Token, needs: Member, group: Head, audit: "stack.release",
        answer: NoContent, id: ReleaseStack,
    }
    /// Rename a stack
    POST "/api/stacks/{org}/{project}/{stack}/rename" => stacks::rename {
        auth: Token, needs: Member, group: Head, audit: "stack.rename",
        body: of::<RenameStack>,
        answer: Json(of::<Renamed>), id: RenameStack,
    }
    /// Transfer a stack to another organization
    POST "/api/stacks/{org}/{project}/{stack}/transfer" => stacks::transfer {
        auth: Token, needs: Member, group: Head, audit: "stack.transfer",
        body: of::<TransferStack>,
        answer: Json(of::<Renamed>), id: TransferStack,
    }
    /// Encrypt a secret of a stack
    POST "/api/stacks/{org}/{project}/{stack}/encrypt" => secrets::encrypt {
        auth: Token, needs: Plan, group: Secrets,
        body: of::<Plaintext>, max: SECRETS_BYTES_MAX,
        answer: Json(of::<Ciphertext>), id: EncryptValue,
    }
    /// Decrypt a secret of a stack
    POST "/api/stacks/{org}/{project}/{stack}/decrypt" => secrets::decrypt {
        auth: Token, needs: Plan, group: Secrets, audit: "secrets.open",
        body: of::<Ciphertext>, max: SECRETS_BYTES_MAX,
        answer: Json(of::<Plaintext>), id: DecryptValue,
    }
    /// Encrypt secrets of a stack
    POST "/api/stacks/{org}/{project}/{stack}/batch-encrypt" => secrets::batch_encrypt {
        auth: Token, needs: Plan, group: Secrets,
        body: of::<BatchEncrypt>, max: SECRETS_BYTES_MAX,
        answer: Json(of::<BatchEncrypted>), id: BatchEncryptValue,
    }
    /// Decrypt secrets of a stack
    POST "/api/stacks/{org}/{project}/{stack}/batch-decrypt" => secrets::batch_decrypt {
        auth: Token, needs: Plan, group: Secrets, audit: "secrets.open",
        body: of::<BatchDecrypt>, max: SECRETS_BYTES_MAX,
        answer: Json(of::<BatchDecrypted>), id: BatchDecryptValue,
    }
    /// Record that a secret was shown
    POST "/api/stacks/{org}/{project}/{stack}/decrypt/log-decryption" => secrets::log_decryption {
        auth: Token, needs: Plan, group: Secrets, audit: "secrets.show",
        body: anything,
        answer: NoContent, id: LogOnlyDecryptValue,
    }
    /// Record that secrets were shown
    POST "/api/stacks/{org}/{project}/{stack}/decrypt/log-batch-decryption" => secrets::log_decryption {
        auth: Token, needs: Plan, group: Secrets, audit: "secrets.show",
        body: anything,
        answer: NoContent, id: LogOnlyBatchDecryptValue,
    }
    /// Export the state of a stack
    GET "/api/stacks/{org}/{project}/{stack}/export" => stacks::export {
        auth: Token, needs: Plan, group: Head, audit: "stack.export",
        answer: Json(of::<Checkpoint<'_>>), id: ExportStack,
    }
    /// Export the state of a stack at a version
    GET "/api/stacks/{org}/{project}/{stack}/export/{version}" => stacks::export {
        auth: Token, needs: Plan, group: Head, audit: "stack.export",
        answer: Json(of::<Checkpoint<'_>>), id: ExportStackAtVersion,
    }
    /// Download the state of a stack at a version, or get the URL of one that is longer than an answer
    POST "/api/stacks/{org}/{project}/{stack}/export/{version}" => stacks::download {
        auth: Token, needs: Plan, group: Head, audit: "stack.export",
        answer: Json(downloaded), id: ExportStackAtVersionByPost,
    }
    /// Import a state as the next version of a stack
    POST "/api/stacks/{org}/{project}/{stack}/import" => stacks::import {
        auth: Token, needs: Apply, group: Head, audit: "stack.import",
        body: of::<Checkpoint<'_>>, max: DEPLOYMENT_BYTES_MAX,
        answer: Json(of::<Imported>), id: ImportStack,
    }
    /// Get the outputs of a stack
    GET "/api/stacks/{org}/{project}/{stack}/outputs" => stacks::outputs {
        auth: Token, needs: Outputs, group: Head, audit: "stack.outputs",
        answer: Json(of::<StackOutputs>), id: GetStackOutputs,
    }
    /// List the policy packs that a stack must pass: none
    GET "/api/stacks/{org}/{project}/{stack}/policypacks" => empty::required_policies {
        auth: Token, needs: See, group: Read,
        answer: Json(required_policies), id: GetStackPolicyPacks,
    }
    /// List the policy groups of a stack: none
    GET "/api/stacks/{org}/{project}/{stack}/policygroups" => empty::stack_policy_groups {
        auth: Token, needs: See, group: Read,
        answer: Json(policy_groups), id: GetStackPolicyGroups,
    }
    /// List the history of a stack, newest first
    GET "/api/stacks/{org}/{project}/{stack}/updates" => history::history {
        auth: Token, needs: View, group: Read,
        query: [query::PAGE, query::PAGE_SIZE, query::OUTPUT_TYPE],
        answer: Json(history_page), id: GetStackUpdates,
    }
    /// Get the newest entry of the history
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest" => history::update {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<ServiceUpdate>), id: GetLatestStackUpdate,
    }
    /// List the previews of the newest version
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest/previews" => history::previews {
        auth: Token, needs: View, group: Read,
        query: [query::PAGE, query::PAGE_SIZE, query::OLDEST_FIRST],
        answer: Json(of::<ServiceHistory>), id: GetLatestStackPreviews,
    }
    /// Get the newest version, and the previews before it
    GET "/api/stacks/{org}/{project}/{stack}/updates/latest/timeline" => history::timeline {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<Timeline>), id: GetLatestUpdateTimeline,
    }
    /// Get an entry of the history, or an update or a preview by its ID
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}" => history::update {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<ServiceUpdate>), id: GetStackUpdate,
    }
    /// Get a summary of an entry of the history
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/summary" => history::summary {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<UpdateSummary>), id: GetStackUpdateSummary,
    }
    /// List the previews of a version
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/previews" => history::previews {
        auth: Token, needs: View, group: Read,
        query: [query::PAGE, query::PAGE_SIZE, query::OLDEST_FIRST],
        answer: Json(of::<ServiceHistory>), id: GetStackPreviews,
    }
    /// Get a version, and the previews before it
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/timeline" => history::timeline {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<Timeline>), id: GetUpdateTimeline,
    }
    /// Compare two versions of a stack, without their secrets
    GET "/api/stacks/{org}/{project}/{stack}/updates/{version}/diff/{other}" => resources::differences {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<VersionDifferences>), id: CompareStackVersions,
    }
    /// Make an old version of a stack the next one
    POST "/api/stacks/{org}/{project}/{stack}/updates/{version}/restore" => stacks::restore {
        auth: Token, needs: Apply, group: Head, audit: "stack.restore",
        answer: Json(of::<RestoredStack>), id: RestoreStackVersion,
    }
    /// List the previews of a stack, by the version that they started from
    GET "/api/stacks/{org}/{project}/{stack}/previews" => history::all_previews {
        auth: Token, needs: View, group: Read,
        query: [query::CONTINUATION, query::PAGE_SIZE],
        answer: Json(of::<StackPreviews>), id: ListStackPreviewRows,
    }
    /// List the resources of a stack
    GET "/api/stacks/{org}/{project}/{stack}/resources" => resources::resources {
        auth: Token, needs: View, group: Read,
        query: [query::CONTINUATION, query::SIZE, query::VERSION, query::FILTER, query::PARENT],
        answer: Json(of::<Resources>), id: ListStackResourceRows,
    }
    /// Get one resource of a stack, without its secrets
    GET "/api/stacks/{org}/{project}/{stack}/resource" => resources::resource {
        auth: Token, needs: View, group: Read,
        query: [query::URN, query::VERSION, query::DELETE, query::SHORT],
        answer: Json(resource), id: GetStackResourceRow,
    }
    /// List the versions that changed a resource of a stack
    GET "/api/stacks/{org}/{project}/{stack}/resource/history" => resources::history {
        auth: Token, needs: View, group: Read,
        query: [query::CONTINUATION, query::URN, query::VERSION],
        answer: Json(of::<ResourceHistory>), id: GetStackResourceHistory,
    }
    /// Get the resources around one of a stack
    GET "/api/stacks/{org}/{project}/{stack}/resource/neighbours" => resources::neighbours {
        auth: Token, needs: View, group: Read,
        query: [query::URN, query::VERSION, query::DELETE, query::HOPS],
        answer: Json(of::<ResourceNeighbours>), id: GetStackResourceNeighbours,
    }
    /// Open one secret of a resource of a stack
    POST "/api/stacks/{org}/{project}/{stack}/resource/secret" => resources::secret {
        auth: Token, needs: Plan, group: Secrets, audit: "secrets.reveal",
        body: of::<AskSecret>,
        answer: Json(of::<OpenedSecret>), id: OpenStackResourceSecret,
    }
    /// Create an update
    POST "/api/stacks/{org}/{project}/{stack}/update" => updates::create_update {
        auth: Token, needs: Plan, group: Head, audit: "update.create",
        body: of::<CreateUpdate>, max: CREATION_BYTES_MAX,
        answer: Json(of::<CreatedUpdate>), id: CreateUpdateForUpdate,
    }
    /// Create a preview
    POST "/api/stacks/{org}/{project}/{stack}/preview" => updates::create_preview {
        auth: Token, needs: Plan, group: Head, audit: "update.create",
        body: of::<CreateUpdate>, max: CREATION_BYTES_MAX,
        answer: Json(of::<CreatedUpdate>), id: CreateUpdateForPreview,
    }
    /// Create a refresh
    POST "/api/stacks/{org}/{project}/{stack}/refresh" => updates::create_refresh {
        auth: Token, needs: Plan, group: Head, audit: "update.create",
        body: of::<CreateUpdate>, max: CREATION_BYTES_MAX,
        answer: Json(of::<CreatedUpdate>), id: CreateUpdateForRefresh,
    }
    /// Create a destroy
    POST "/api/stacks/{org}/{project}/{stack}/destroy" => updates::create_destroy {
        auth: Token, needs: Plan, group: Head, audit: "update.create",
        body: of::<CreateUpdate>, max: CREATION_BYTES_MAX,
        answer: Json(of::<CreatedUpdate>), id: CreateUpdateForDestroy,
    }
    /// Create and start an update
    POST "/api/stacks/{org}/{project}/{stack}/begin-update" => updates::begin_update {
        auth: Token, needs: Plan, group: Head, audit: "update.begin",
        body: of::<BeginUpdate>, max: CREATION_BYTES_MAX,
        answer: Json(begun), id: BeginUpdate,
    }
    /// Start an update
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}" => updates::start_update {
        auth: Token, needs: Plan, group: Head, audit: "update.start",
        body: of::<StartUpdate>,
        answer: Json(of::<StartedUpdate>), id: StartUpdateForUpdate,
    }
    /// Get the status of an update
    GET "/api/stacks/{org}/{project}/{stack}/{kind}/{update}" => updates::update_status {
        auth: Token, needs: View, group: Read,
        answer: Json(of::<UpdateStatus>), id: GetUpdateStatusForUpdate,
    }
    /// Cancel an update and keep what it saved
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/cancel" => updates::cancel {
        auth: Token, needs: Plan, group: Head, audit: "update.cancel",
        body: of::<CancelUpdate>, max: LOCK_BYTES_MAX,
        answer: NoContent, id: CancelUpdate_update,
    }
    /// Renew the lease of an update
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/renew_lease" => updates::renew_lease {
        auth: UpdateToken, needs: Nothing, group: Head,
        body: of::<RenewLease>,
        answer: Json(of::<RenewedLease>), id: RenewUpdateLease_update,
    }
    /// End an update
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/complete" => updates::complete {
        auth: UpdateToken, needs: Nothing, group: Head, audit: "update.end",
        body: of::<CompleteUpdate>, max: COMPLETION_BYTES_MAX,
        answer: NoContent, id: CompleteUpdate_update,
    }
    /// Append entries to the journal of an update
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/journalentries" => updates::journal_entries {
        auth: UpdateToken, needs: Nothing, group: Log,
        body: journal_entries, max: BATCH_BYTES_MAX,
        answer: NoContent, id: CreateJournalEntries_update,
    }
    /// Save the state of an update
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpoint" => checkpoints::checkpoint {
        auth: UpdateToken, needs: Nothing, group: Log,
        body: of::<Checkpoint<'_>>, max: DEPLOYMENT_BYTES_MAX, copies: 4,
        answer: NoContent, id: PatchUpdateCheckpoint_update,
    }
    /// Save the state of an update as text
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpointverbatim" =>
    checkpoints::checkpoint_verbatim {
        auth: UpdateToken, needs: Nothing, group: Log,
        body: of::<saves::Whole<'_>>, max: DEPLOYMENT_BYTES_MAX, copies: 4,
        answer: NoContent, id: PatchUpdateVerbatimCheckpoint_update,
    }
    /// Save the changes in the state of an update
    PATCH "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/checkpointdelta" =>
    checkpoints::checkpoint_delta {
        auth: UpdateToken, needs: Nothing, group: Log,
        body: of::<saves::Delta<'_>>, max: BATCH_BYTES_MAX, copies: 4,
        answer: NoContent, id: PatchUpdateCheckpointDelta_update,
    }
    /// Record an event of an update
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events" => events::append {
        auth: UpdateToken, needs: Nothing, group: Log,
        body: of::<EngineEvent>, max: BATCH_BYTES_MAX,
        answer: NoContent, id: RecordEngineEvent_update,
    }
    /// Record events of an update
    POST "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events/batch" => events::append_batch {
        auth: UpdateToken, needs: Nothing, group: Log,
        body: of::<EventBatch>, max: BATCH_BYTES_MAX,
        answer: NoContent, id: RecordEngineEventBatch_update,
    }
    /// List the events of an update
    GET "/api/stacks/{org}/{project}/{stack}/{kind}/{update}/events" => events::list {
        auth: Token, needs: View, group: Read,
        query: [query::CONTINUATION, query::EVENT_TYPE, query::EVENT_URNS],
        answer: Json(of::<Events<'_>>), id: GetEngineEvents_update,
    }
    /// List the environments that the user may see
    GET "/api/esc/environments" => environments::list_all {
        auth: Token, needs: See, group: Environments,
        query: [query::CONTINUATION],
        answer: Json(of::<EnvironmentList>), id: ListEnvironments_esc,
    }
    /// List the environments of an organization
    GET "/api/esc/environments/{org}" => environments::list {
        auth: Token, needs: See, group: Environments,
        query: [query::CONTINUATION],
        answer: Json(of::<EnvironmentList>), id: ListOrgEnvironments_esc,
    }
    /// Create an environment
    POST "/api/esc/environments/{org}" => environments::create {
        auth: Token, needs: Apply, group: Environments, audit: "environment.create",
        body: of::<NamedEnvironment>,
        answer: NoContent, id: CreateEnvironment_esc_environments,
    }
    /// List the deleted environments
    GET "/api/esc/environments/{org}/restore" => environments::list_deleted {
        auth: Token, needs: View, group: Environments,
        query: [query::CONTINUATION],
        answer: Json(of::<EnvironmentList>), id: ListDeletedEnvironments,
    }
    /// Undelete an environment
    PUT "/api/esc/environments/{org}/restore" => environments::undelete {
        auth: Token, needs: Member, group: Environments, audit: "environment.restore",
        body: of::<RestoreEnvironment>,
        answer: NoContent, id: RestoreEnvironment,
    }
    /// Check a definition
    POST "/api/esc/environments/{org}/yaml/check" => environments::check {
        auth: Token, needs: Plan, group: Environments, audit: "environment.check",
        query: [query::SHOW_SECRETS],
        body: anything, max: ENVIRONMENT_BYTES_MAX,
        answer: Json(checked), id: CheckYAML_esc,
    }
    /// Open a definition that is not stored
    POST "/api/esc/environments/{org}/yaml/open" => environments::open_text {
        auth: Token, needs: Plan, group: Environments, audit: "environment.open",
        query: [query::DURATION, query::OVERRIDES],
        body: anything, max: ENVIRONMENT_BYTES_MAX,
        answer: Json(of::<Opened>), id: OpenYAML_esc,
    }
    /// Get the values of an opened definition
    GET "/api/esc/environments/{org}/yaml/open/{session}" => environments::opened_values {
        auth: Token, needs: Plan, group: Environments, audit: "environment.look",
        query: [query::PROPERTY],
        answer: Json(opened), id: ReadAnonymousOpenEnvironment_esc,
    }
    /// Get the definition of an environment
    GET "/api/esc/environments/{org}/{project}/{environment}" => environments::get {
        auth: Token, needs: View, group: Environments,
        answer: Yaml, id: ReadEnvironment_esc_environments,
    }
    /// Change the definition of an environment
    PATCH "/api/esc/environments/{org}/{project}/{environment}" => environments::update {
        auth: Token, needs: Apply, group: Environments, audit: "environment.edit",
        body: anything, max: ENVIRONMENT_BYTES_MAX,
        answer: Json(of::<Diagnostics>), id: UpdateEnvironment_esc_environments,
    }
    /// Delete an environment
    DELETE "/api/esc/environments/{org}/{project}/{environment}" => environments::delete {
        auth: Token, needs: Member, group: Environments, audit: "environment.delete",
        answer: NoContent, id: DeleteEnvironment_esc_environments,
    }
    /// Get the definition of an environment, with its secrets
    GET "/api/esc/environments/{org}/{project}/{environment}/decrypt" => environments::decrypt {
        auth: Token, needs: Plan, group: Environments, audit: "environment.decrypt",
        answer: Yaml, id: DecryptEnvironment_esc_environments,
    }
    /// Get the definition of an environment, with its secrets, as a browser asks for it
    POST "/api/esc/environments/{org}/{project}/{environment}/decrypt" => environments::decrypt {
        auth: Token, needs: Plan, group: Environments, audit: "environment.decrypt",
        answer: Yaml, id: DecryptEnvironmentByPost,
    }
    /// Open an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/open" => environments::open {
        auth: Token, needs: Plan, group: Environments, audit: "environment.open",
        query: [query::DURATION],
        answer: Json(of::<Opened>), id: OpenEnvironment_esc_environments,
    }
    /// Get the values of an opened environment
    GET "/api/esc/environments/{org}/{project}/{environment}/open/{session}" => environments::opened_values {
        auth: Token, needs: Plan, group: Environments, audit: "environment.look",
        query: [query::PROPERTY],
        answer: Json(opened), id: ReadOpenEnvironment_esc_environments,
    }
    /// Get the values of an opened environment, as a browser asks for them
    POST "/api/esc/environments/{org}/{project}/{environment}/opened/{session}" => environments::opened_values {
        auth: Token, needs: Plan, group: Environments, audit: "environment.look",
        query: [query::PROPERTY],
        answer: Json(opened), id: ReadOpenEnvironmentByPost,
    }
    /// Clone an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/clone" => environments::clone {
        auth: Token, needs: Apply, group: Environments, audit: "environment.clone",
        body: of::<CloneEnvironment>,
        answer: NoContent, id: CloneEnvironment,
    }
    /// Get the settings of an environment
    GET "/api/esc/environments/{org}/{project}/{environment}/settings" => environments::settings {
        auth: Token, needs: View, group: Environments,
        answer: Json(of::<EnvironmentSettings>), id: GetEnvironmentSettings,
    }
    /// Change the settings of an environment
    PATCH "/api/esc/environments/{org}/{project}/{environment}/settings" => environments::set_settings {
        auth: Token, needs: Member, group: Environments, audit: "environment.protect",
        body: of::<EnvironmentSettings>,
        answer: NoContent, id: PatchEnvironmentSettings,
    }
    /// Encrypt secrets of an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/encrypt-secrets" =>
    environments::encrypt_secrets {
        auth: Token, needs: Plan, group: Environments,
        body: of::<EncryptSecrets>, max: SECRETS_BYTES_MAX,
        answer: Json(of::<EncryptedSecrets>), id: EncryptEnvironmentSecrets,
    }
    /// Decrypt secrets of an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/decrypt-secrets" =>
    environments::decrypt_secrets {
        auth: Token, needs: Plan, group: Environments, audit: "environment.decrypt",
        body: of::<DecryptSecrets>, max: SECRETS_BYTES_MAX,
        answer: Json(of::<DecryptedSecrets>), id: DecryptEnvironmentSecrets,
    }
    /// List the revisions of an environment
    GET "/api/esc/environments/{org}/{project}/{environment}/versions" => environments::revisions {
        auth: Token, needs: View, group: Environments,
        query: [query::BEFORE, query::COUNT],
        answer: Json(of::<Vec<Revision>>), id: ListEnvironmentRevisions_esc_environments,
    }
    /// List the names of revisions of an environment
    GET "/api/esc/environments/{org}/{project}/{environment}/versions/tags" => environments::revision_tags {
        auth: Token, needs: View, group: Environments,
        query: [query::AFTER, query::COUNT],
        answer: Json(of::<RevisionTags>), id: ListRevisionTags_esc_environments_versions,
    }
    /// Name a revision of an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/versions/tags" =>
    environments::add_revision_tag {
        auth: Token, needs: Apply, group: Environments, audit: "environment.tag",
        body: of::<NewRevisionTag>,
        answer: NoContent, id: CreateRevisionTag_esc_environments_versions_tags,
    }
    /// Get a name of a revision
    GET "/api/esc/environments/{org}/{project}/{environment}/versions/tags/{tag}" =>
    environments::get_revision_tag {
        auth: Token, needs: Plan, group: Environments,
        answer: Json(of::<RevisionTag>), id: ReadRevisionTag_esc_environments,
    }
    /// Move the name of a revision to another one
    PATCH "/api/esc/environments/{org}/{project}/{environment}/versions/tags/{tag}" =>
    environments::move_revision_tag {
        auth: Token, needs: Apply, group: Environments, audit: "environment.tag",
        body: of::<RevisionTagEdit>,
        answer: NoContent, id: UpdateRevisionTag_esc_environments,
    }
    /// Delete the name of a revision
    DELETE "/api/esc/environments/{org}/{project}/{environment}/versions/tags/{tag}" =>
    environments::remove_revision_tag {
        auth: Token, needs: Apply, group: Environments, audit: "environment.tag",
        answer: NoContent, id: DeleteRevisionTag_esc_environments,
    }
    /// Get the definition of a revision
    GET "/api/esc/environments/{org}/{project}/{environment}/versions/{version}" => environments::get {
        auth: Token, needs: View, group: Environments,
        answer: Yaml, id: ReadEnvironment_esc_environments_versions,
    }
    /// Get the definition of a revision, with its secrets
    GET "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/decrypt" =>
    environments::decrypt {
        auth: Token, needs: Plan, group: Environments, audit: "environment.decrypt",
        answer: Yaml, id: DecryptEnvironment_esc_environments_versions,
    }
    /// Get the definition of a revision, with its secrets, as a browser asks for it
    POST "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/decrypt" =>
    environments::decrypt {
        auth: Token, needs: Plan, group: Environments, audit: "environment.decrypt",
        answer: Yaml, id: DecryptEnvironmentRevisionByPost,
    }
    /// Open a revision of an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/open" => environments::open {
        auth: Token, needs: Plan, group: Environments, audit: "environment.open",
        query: [query::DURATION],
        answer: Json(of::<Opened>), id: OpenEnvironment_esc_environments_versions,
    }
    /// Retract a revision of an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/versions/{version}/retract" =>
    environments::retract {
        auth: Token, needs: Member, group: Environments, audit: "environment.retract",
        body: of::<Retract>,
        answer: NoContent, id: RetractEnvironmentRevision_esc_environments,
    }
    /// List what imports an environment
    GET "/api/esc/environments/{org}/{project}/{environment}/referrers" => environments::referrers {
        auth: Token, needs: View, group: Environments,
        query: [query::CONTINUATION, query::COUNT, query::ALL_REVISIONS],
        answer: Json(of::<Referrers>), id: ListEnvironmentReferrers_esc_environments,
    }
    /// List the tags of an environment
    GET "/api/esc/environments/{org}/{project}/{environment}/tags" => environments::list_tags {
        auth: Token, needs: View, group: Environments,
        query: [query::AFTER, query::COUNT],
        answer: Json(of::<Tags>), id: ListEnvironmentTags_esc_environments,
    }
    /// Add a tag to an environment
    POST "/api/esc/environments/{org}/{project}/{environment}/tags" => environments::add_tag {
        auth: Token, needs: Apply, group: Environments, audit: "environment.tag",
        body: of::<TagText>,
        answer: Json(of::<Tag>), id: CreateEnvironmentTag_esc_environments,
    }
    /// Get a tag of an environment
    GET "/api/esc/environments/{org}/{project}/{environment}/tags/{tag}" => environments::get_tag {
        auth: Token, needs: View, group: Environments,
        answer: Json(of::<Tag>), id: GetEnvironmentTag_esc_environments,
    }
    /// Change a tag of an environment
    PATCH "/api/esc/environments/{org}/{project}/{environment}/tags/{tag}" => environments::edit_tag {
        auth: Token, needs: Apply, group: Environments, audit: "environment.tag",
        body: of::<TagEdit>,
        answer: Json(of::<Tag>), id: UpdateEnvironmentTag_esc_environments,
    }
    /// Delete a tag of an environment
    DELETE "/api/esc/environments/{org}/{project}/{environment}/tags/{tag}" => environments::remove_tag {
        auth: Token, needs: Apply, group: Environments, audit: "environment.tag",
        answer: NoContent, id: DeleteEnvironmentTag_esc_environments,
    }
    /// Get this API as an OpenAPI document
    GET "/api/openapi" => document {
        auth: Public, needs: Nothing, group: Read,
        answer: Json(anything), id: GetDocument,
    }
    /// Get the same document, at the path of Pulumi Cloud
    GET "/api/openapi/pulumi-spec.json" => document {
        auth: Public, needs: Nothing, group: Read,
        answer: Json(anything), id: FetchRestSpecification,
    }
    /// Read a Terraform state, by its ID
    GET "/tfstate/{guid}" => tfstate::get {
        auth: Run, needs: Plan, group: Tfstate, audit: "state.read",
        answer: StateIfAny, id: ReadStateById,
    }
    /// Write a Terraform state, by its ID
    POST "/tfstate/{guid}" => tfstate::write {
        auth: Run, needs: Apply, group: Tfstate, audit: "state.write",
        query: [query::LOCK_ID],
        body: anything, max: STATE_BYTES_MAX, copies: 2,
        answer: Empty, id: WriteStateById,
    }
    /// Delete a Terraform state, by its ID
    DELETE "/tfstate/{guid}" => tfstate::delete {
        auth: State, needs: Member, group: Tfstate, audit: "state.delete",
        answer: Empty, id: RemoveStateById,
    }
    /// Lock a Terraform state, by its ID
    POST "/tfstate/{guid}/lock" => tfstate::lock {
        auth: State, needs: Plan, group: Tfstate, audit: "state.lock",
        body: of::<LockInfo>, max: LOCK_BYTES_MAX, copies: 2,
        answer: Json(of::<LockInfo>), id: LockStateById,
    }
    /// Unlock a Terraform state, by its ID
    DELETE "/tfstate/{guid}/lock" => tfstate::unlock {
        auth: Run, needs: Plan, group: Tfstate, audit: "state.unlock",
        query: [query::LOCK_ID],
        body: of::<LockInfo>, max: LOCK_BYTES_MAX, copies: 2,
        answer: Empty, id: UnlockStateById,
    }
    /// Read the outputs of a Terraform state, by its ID
    GET "/tfstate/{guid}/outputs" => tfstate::outputs {
        auth: State, needs: Outputs, group: Tfstate, audit: "state.outputs",
        answer: StateIfAny, id: ReadStateOutputsById,
    }
    /// Read a Terraform state, by its project
    GET "/tfstate/{org}/{project}" => tfstate::get {
        auth: Run, needs: Plan, group: Tfstate, audit: "state.read",
        answer: StateIfAny, id: ReadStateOfProject,
    }
    /// Write a Terraform state, by its project
    POST "/tfstate/{org}/{project}" => tfstate::write {
        auth: Run, needs: Apply, group: Tfstate, audit: "state.write",
        query: [query::LOCK_ID],
        body: anything, max: STATE_BYTES_MAX, copies: 2,
        answer: Empty, id: WriteStateOfProject,
    }
    /// Delete a Terraform state, by its project
    DELETE "/tfstate/{org}/{project}" => tfstate::delete {
        auth: State, needs: Member, group: Tfstate, audit: "state.delete",
        answer: Empty, id: RemoveStateOfProject,
    }
    /// Lock a Terraform state, by its project
    POST "/tfstate/{org}/{project}/lock" => tfstate::lock {
        auth: State, needs: Plan, group: Tfstate, audit: "state.lock",
        body: of::<LockInfo>, max: LOCK_BYTES_MAX, copies: 2,
        answer: Json(of::<LockInfo>), id: LockStateOfProject,
    }
    /// Unlock a Terraform state, by its project
    DELETE "/tfstate/{org}/{project}/lock" => tfstate::unlock {
        auth: Run, needs: Plan, group: Tfstate, audit: "state.unlock",
        query: [query::LOCK_ID],
        body: of::<LockInfo>, max: LOCK_BYTES_MAX, copies: 2,
        answer: Empty, id: UnlockStateOfProject,
    }
    /// Read the outputs of a Terraform state, by its project
    GET "/tfstate/{org}/{project}/outputs" => tfstate::outputs {
        auth: State, needs: Outputs, group: Tfstate, audit: "state.outputs",
        answer: StateIfAny, id: ReadStateOutputsOfProject,
    }
    /// Read a Terraform state, by its name
    GET "/tfstate/{org}/{project}/{state}" => tfstate::get {
        auth: Run, needs: Plan, group: Tfstate, audit: "state.read",
        answer: StateIfAny, id: ReadStateByName,
    }
    /// Write a Terraform state, by its name
    POST "/tfstate/{org}/{project}/{state}" => tfstate::write {
        auth: Run, needs: Apply, group: Tfstate, audit: "state.write",
        query: [query::LOCK_ID],
        body: anything, max: STATE_BYTES_MAX, copies: 2,
        answer: Empty, id: WriteStateByName,
    }
    /// Delete a Terraform state, by its name
    DELETE "/tfstate/{org}/{project}/{state}" => tfstate::delete {
        auth: State, needs: Member, group: Tfstate, audit: "state.delete",
        answer: Empty, id: RemoveStateByName,
    }
    /// Lock a Terraform state, by its name
    POST "/tfstate/{org}/{project}/{state}/lock" => tfstate::lock {
        auth: State, needs: Plan, group: Tfstate, audit: "state.lock",
        body: of::<LockInfo>, max: LOCK_BYTES_MAX, copies: 2,
        answer: Json(of::<LockInfo>), id: LockStateByName,
    }
    /// Unlock a Terraform state, by its name
    DELETE "/tfstate/{org}/{project}/{state}/lock" => tfstate::unlock {
        auth: Run, needs: Plan, group: Tfstate, audit: "state.unlock",
        query: [query::LOCK_ID],
        body: of::<LockInfo>, max: LOCK_BYTES_MAX, copies: 2,
        answer: Empty, id: UnlockStateByName,
    }
    /// Read the outputs of a Terraform state, by its name
    GET "/tfstate/{org}/{project}/{state}/outputs" => tfstate::outputs {
        auth: State, needs: Outputs, group: Tfstate, audit: "state.outputs",
        answer: StateIfAny, id: ReadStateOutputsByName,
    }
    /// List the Terraform states of an organization
    GET "/api/orgs/{org}/tfstates" => states::list {
        auth: Token, needs: See, group: Tfstate,
        query: [query::CONTINUATION, query::PROJECT, query::LABEL_FILTER, query::LABELS, query::STATUS],
        answer: Json(states_page), id: ListStates,
    }
    /// Create a Terraform state
    POST "/api/orgs/{org}/tfstates" => states::create {
        auth: Token, needs: Apply, group: Tfstate, audit: "state.create",
        body: of::<NewState>,
        answer: Json(of::<OneState>), id: CreateState,
    }
    /// Get a Terraform state, by its name
    GET "/api/orgs/{org}/tfstates/{project}/{state}" => states::get {
        auth: Token, needs: View, group: Tfstate,
        query: [query::STATUS],
        answer: Json(state), id: GetStateByName,
    }
    /// List the locks of Terraform states
    GET "/api/orgs/{org}/tfstate-locks" => states::locks {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION],
        answer: Json(of::<Locks>), id: ListStateLocks,
    }
    /// List the deleted Terraform states
    GET "/api/orgs/{org}/tfstate-removed" => states::list_deleted {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION, query::PROJECT, query::STATE],
        answer: Json(of::<DeletedStates>), id: ListRemovedStates,
    }
    /// Get the label policy of an organization
    GET "/api/orgs/{org}/tfstate-policy" => states::label_policy {
        auth: Token, needs: View, group: Tfstate,
        answer: Json(of::<ShownLabelPolicy>), id: GetLabelPolicy,
    }
    /// Replace the label policy of an organization
    PUT "/api/orgs/{org}/tfstate-policy" => states::set_label_policy {
        auth: Token, needs: Member, group: Tfstate, audit: "policy.set",
        body: of::<NewLabelPolicy>,
        answer: Json(of::<ShownLabelPolicy>), id: SetLabelPolicy,
    }
    /// List the Terraform states that break the label policy
    GET "/api/orgs/{org}/tfstate-policy/compliance" => states::compliance {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION, query::PROJECT, query::LABEL_FILTER, query::LABELS],
        answer: Json(of::<Compliance>), id: GetLabelCompliance,
    }
    /// List the outputs of an organization, without values
    GET "/api/orgs/{org}/outputs" => states::all_outputs {
        auth: Token, needs: Outputs, group: Tfstate,
        query: [query::CONTINUATION, query::PROJECT],
        answer: Json(of::<AllOutputs>), id: ListOutputs,
    }
    /// Get the outputs of a stack, with their values
    GET "/api/orgs/{org}/outputs/stack/{project}/{stack}" => states::stack_outputs {
        auth: Token, needs: Outputs, group: Tfstate, audit: "stack.outputs",
        answer: Json(of::<OutputsOf<ValuedOutput>>), id: GetOutputsOfStack,
    }
    /// Get the outputs of a Terraform state, with their values
    GET "/api/orgs/{org}/outputs/tfstate/{project}/{state}" => states::state_outputs {
        auth: Token, needs: Outputs, group: Tfstate, audit: "state.outputs",
        answer: Json(of::<OutputsOf<ValuedOutput>>), id: GetOutputsOfState,
    }
    /// Get a Terraform state
    GET "/api/tfstates/{guid}" => states::get {
        auth: Token, needs: View, group: Tfstate,
        query: [query::STATUS],
        answer: Json(state), id: GetState,
    }
    /// Change the name, the policy or the labels of a Terraform state
    PATCH "/api/tfstates/{guid}" => states::edit {
        auth: Token, needs: Apply, group: Tfstate, audit: "state.edit",
        body: of::<StateEdit>,
        answer: Json(of::<OneState>), id: EditState,
    }
    /// Delete a Terraform state
    DELETE "/api/tfstates/{guid}" => states::delete {
        auth: Token, needs: Member, group: Tfstate, audit: "state.delete",
        query: [query::FORCE],
        answer: NoContent, id: DeleteState,
    }
    /// Protect a Terraform state: it cannot be deleted or emptied until an admin lifts the protection
    PUT "/api/tfstates/{guid}/protection" => states::protect {
        auth: Token, needs: Admin, group: Tfstate, audit: "state.protect",
        body: of::<NewProtection>, max: SMALL_BYTES_MAX,
        answer: Json(of::<Protection>), id: ProtectState,
    }
    /// Lift the protection of a Terraform state
    DELETE "/api/tfstates/{guid}/protection" => states::lift_protection {
        auth: Token, needs: Admin, group: Tfstate, audit: "state.unprotect",
        answer: NoContent, id: LiftStateProtection,
    }
    /// Undelete a Terraform state
    POST "/api/tfstates/{guid}/undelete" => states::undelete {
        auth: Token, needs: Member, group: Tfstate, audit: "state.undelete",
        answer: Json(of::<OneState>), id: RestoreRemovedState,
    }
    /// Get the outputs of a Terraform state, with their values
    GET "/api/tfstates/{guid}/outputs" => states::outputs {
        auth: Token, needs: Outputs, group: Tfstate, audit: "state.outputs",
        answer: Json(of::<Outputs>), id: GetStateOutputs,
    }
    /// Get the outputs of a Terraform state, with their values, as a browser asks for them
    POST "/api/tfstates/{guid}/outputs" => states::outputs {
        auth: Token, needs: Outputs, group: Tfstate, audit: "state.outputs",
        answer: Json(of::<Outputs>), id: GetStateOutputsByPost,
    }
    /// Get the schemas of the outputs of a Terraform state
    GET "/api/tfstates/{guid}/schemas" => states::schemas {
        auth: Token, needs: View, group: Tfstate,
        answer: Json(of::<Schemas>), id: GetOutputSchemas,
    }
    /// Change the schemas of the outputs of a Terraform state
    PATCH "/api/tfstates/{guid}/schemas" => states::set_schemas {
        auth: Token, needs: Member, group: Tfstate, audit: "state.schema",
        body: of::<SchemasEdit>,
        answer: Json(of::<Schemas>), id: EditOutputSchemas,
    }
    /// Get the holder of the lock of a Terraform state
    GET "/api/tfstates/{guid}/lock" => states::lock {
        auth: Token, needs: View, group: Tfstate,
        answer: Json(of::<Option<Lock>>), id: GetStateLock,
    }
    /// Lock a Terraform state by hand
    POST "/api/tfstates/{guid}/lock" => states::lock_by_hand {
        auth: Token, needs: Member, group: Tfstate, audit: "state.lock",
        body: of::<WithReason>, max: LOCK_BYTES_MAX,
        answer: Json(of::<Lock>), id: HoldStateLock,
    }
    /// Unlock a Terraform state by hand
    DELETE "/api/tfstates/{guid}/lock" => states::unlock {
        auth: Token, needs: Plan, group: Tfstate, audit: "state.unlock",
        body: of::<WithReason>, max: LOCK_BYTES_MAX,
        answer: NoContent, id: BreakStateLock,
    }
    /// List the refused writes of a Terraform state
    GET "/api/tfstates/{guid}/rejected" => states::rejected {
        auth: Token, needs: View, group: Tfstate,
        answer: Json(rejected_writes), id: ListRejectedWrites,
    }
    /// List the versions of a Terraform state
    GET "/api/tfstates/{guid}/versions" => states::versions {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION],
        answer: Json(state_versions), id: ListStateVersions,
    }
    /// Get a version of a Terraform state
    GET "/api/tfstates/{guid}/versions/{version}" => states::version {
        auth: Token, needs: View, group: Tfstate,
        answer: Json(state_version), id: GetStateVersion,
    }
    /// Get the text of a version of a Terraform state
    GET "/api/tfstates/{guid}/versions/{version}/text" => states::text {
        auth: Token, needs: Plan, group: Tfstate, audit: "state.download",
        answer: Json(anything), id: GetStateText,
    }
    /// Download the text of a version of a Terraform state, as a browser asks for it
    POST "/api/tfstates/{guid}/versions/{version}/text" => states::text {
        auth: Token, needs: Plan, group: Tfstate, audit: "state.download",
        answer: Json(anything), id: GetStateTextByPost,
    }
    /// Compare two versions of a Terraform state
    GET "/api/tfstates/{guid}/versions/{version}/diff/{other}" => states::diff {
        auth: Token, needs: View, group: Tfstate,
        query: [query::ONE_ADDRESS],
        answer: Json(of::<Difference>), id: CompareStateVersions,
    }
    /// Make an old version of a Terraform state the next one
    POST "/api/tfstates/{guid}/versions/{version}/restore" => states::restore {
        auth: Token, needs: Member, group: Tfstate, audit: "state.restore",
        answer: Json(of::<Restored>), id: RestoreStateVersion,
    }
    /// List the resources of a Terraform state, without values
    GET "/api/tfstates/{guid}/resources" => state_resources::list {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION, query::SIZE, query::VERSION, query::ADDRESS_FILTER],
        answer: Json(state_resources_page), id: ListStateResources,
    }
    /// Get a resource of a Terraform state, without its values
    GET "/api/tfstates/{guid}/resource" => state_resources::get {
        auth: Token, needs: View, group: Tfstate,
        query: [query::ADDRESS, query::VERSION],
        answer: Json(state_resource), id: GetStateResource,
    }
    /// Get the resources around one of a Terraform state
    GET "/api/tfstates/{guid}/resource/neighbours" => state_resources::neighbours {
        auth: Token, needs: View, group: Tfstate,
        query: [query::ADDRESS, query::VERSION, query::HOPS],
        answer: Json(state_resource_neighbours), id: GetStateResourceNeighbours,
    }
    /// Get the attributes of a resource of a Terraform state
    POST "/api/tfstates/{guid}/resource/values" => state_resources::values {
        auth: Token, needs: Plan, group: Tfstate, audit: "state.values",
        body: of::<AskValues>,
        answer: Json(state_resource_values), id: GetStateResourceValues,
    }
    /// List the versions of a Terraform state that changed a resource
    GET "/api/tfstates/{guid}/resource/history" => state_resources::history {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION, query::ADDRESS],
        answer: Json(of::<StateResourceHistory>), id: GetStateResourceHistory,
    }
    /// Get the dependencies of a Terraform state
    GET "/api/tfstates/{guid}/dependencies" => dependencies::dependencies {
        auth: Token, needs: Plan, group: Tfstate,
        answer: Json(dependencies_of_state), id: GetDependencies,
    }
    /// List the dependencies between Terraform states
    GET "/api/orgs/{org}/tfstate-edges" => dependencies::list {
        auth: Token, needs: Plan, group: Tfstate,
        query: [query::CONTINUATION, query::PRODUCER, query::CONSUMER, query::OUTPUT],
        answer: Json(of::<edges::Edges>), id: ListEdges,
    }
    /// Add a dependency between Terraform states
    POST "/api/orgs/{org}/tfstate-edges" => dependencies::add {
        auth: Token, needs: Member, group: Tfstate, audit: "edge.add",
        body: of::<edges::NewEdge>,
        answer: Json(of::<edges::Edge>), id: AddEdge,
    }
    /// Get a dependency between Terraform states
    GET "/api/orgs/{org}/tfstate-edges/{edge}" => dependencies::get {
        auth: Token, needs: Plan, group: Tfstate,
        answer: Json(of::<edges::Edge>), id: GetEdge,
    }
    /// Change a dependency between Terraform states
    PATCH "/api/orgs/{org}/tfstate-edges/{edge}" => dependencies::edit {
        auth: Token, needs: Member, group: Tfstate, audit: "edge.edit",
        body: of::<edges::EdgeEdit>,
        answer: Json(of::<edges::Edge>), id: EditEdge,
    }
    /// Delete a dependency between Terraform states
    DELETE "/api/orgs/{org}/tfstate-edges/{edge}" => dependencies::delete {
        auth: Token, needs: Member, group: Tfstate, audit: "edge.remove",
        answer: NoContent, id: RemoveEdge,
    }
    /// List the Terraform states with dependencies, and which are stale
    GET "/api/orgs/{org}/tfstate-statuses" => dependencies::statuses {
        auth: Token, needs: View, group: Tfstate,
        query: [query::CONTINUATION],
        answer: Json(statuses), id: ListStatuses,
    }
    /// Get an order in which Terraform states can be run
    GET "/api/orgs/{org}/tfstate-topology" => dependencies::topology {
        auth: Token, needs: View, group: Tfstate,
        query: [query::FROM_STATE, query::DIRECTION],
        answer: Json(of::<edges::Topology>), id: GetTopology,
    }
    /// Get the map of the stacks and states that read outputs of others
    GET "/api/orgs/{org}/dependency-map" => map::of_org {
        auth: Token, needs: View, group: Tfstate,
        answer: Json(of::<DependencyMap>), id: GetDependencyMap,
    }
    /// Offer the ways to sign in with a browser
    GET "/signin" => sign_in::page {
        auth: Page, needs: Nothing, group: Account,
        query: [query::NEXT],
        answer: Html, id: SignInPage,
    }
    /// Sign in with a password
    POST "/signin" => sign_in::with_password {
        auth: Page, needs: Nothing, group: Account, audit: "session.begin",
        body: || form(&["login", "password", "next"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: SignInWithPassword,
    }
    /// Lead to the page of a provider
    GET "/signin/{provider}" => sign_in::to_provider {
        auth: Page, needs: Nothing, group: Account,
        query: [query::NEXT, query::LED],
        answer: SeeOther, id: SignInAtProvider,
    }
    /// Finish a sign-in with a provider
    GET "/signin/{provider}/callback" => sign_in::from_provider {
        auth: Page, needs: Nothing, group: Account, audit: "session.begin",
        query: [query::CODE, query::ANSWER_STATE, query::ISSUER, query::ANSWER_ERROR],
        answer: SeeOther, id: SignInWithProvider,
    }
    /// Lead to the page of sign-ins, for the address that the CLI prints
    GET "/signin/sso/{org}/reauth" => sign_in::again {
        auth: Page, needs: Nothing, group: Account,
        answer: SeeOther, id: SignInAgain,
    }
    /// Ask before signing out
    GET "/signout" => sign_in::sign_out_page {
        auth: Session, needs: Nothing, group: Account,
        answer: Html, id: SignOutPage,
    }
    /// Sign out
    POST "/signout" => sign_in::sign_out {
        auth: Page, needs: Nothing, group: Account, audit: "session.end",
        answer: SeeOther, id: SignOut,
    }
    /// Show an invitation
    GET "/invite" => sign_in::invitation {
        auth: Page, needs: Nothing, group: Account,
        query: [query::INVITATION],
        answer: Html, id: InvitationPage,
    }
    /// Sign in with an invitation
    POST "/invite" => sign_in::use_invitation {
        auth: Page, needs: Nothing, group: Account, audit: "session.begin",
        body: || form(&["code"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: SignInWithInvitation,
    }
    /// Ask whether the command line gets a token
    GET "/cli-login" => cli_login::page {
        auth: Session, needs: Nothing, group: Account,
        query: [query::PORT, query::NONCE, query::DESCRIPTION, query::COMMAND],
        answer: Html, id: CliLoginPage,
    }
    /// Give the command line a token
    POST "/cli-login" => cli_login::give {
        auth: Session, needs: Nothing, group: Account, audit: "token.create",
        body: || form(&["cliSessionPort", "cliSessionNonce", "cliSessionDescription", "days"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: CliLogin,
    }
    /// Ask whether statewright login may log in
    GET "/cli-login/authorize" => authorize::page {
        auth: Session, needs: Nothing, group: Account,
        query: [
            query::CHALLENGE, query::CHALLENGE_METHOD, query::OWN_DESCRIPTION, query::OWN_PORT,
            query::OWN_STATE,
        ],
        answer: Html, id: AuthorizePage,
    }
    /// Allow a statewright login that listens on the person's machine
    POST "/cli-login/authorize" => authorize::lead {
        auth: Session, needs: Nothing, group: Account, audit: "login.allow",
        body: || form(&["port", "state", "code_challenge", "description", "days"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: AuthorizeLogin,
    }
    /// Show the code for statewright login
    POST "/cli-login/code" => authorize::show {
        auth: Session, needs: Nothing, group: Account, audit: "login.allow",
        body: || form(&["code_challenge", "description", "days"]), max: FORM_BYTES_MAX,
        answer: Html, id: ShowLoginCode,
    }
    /// Say that the command line is logged in
    GET "/welcome/cli" => cli_login::welcome {
        auth: Page, needs: Nothing, group: Account,
        answer: Html, id: CliWelcomePage,
    }
    /// List the user's own tokens
    GET "/user/settings/tokens" => settings::tokens_page {
        auth: Session, needs: Nothing, group: Account,
        answer: Html, id: TokensPage,
    }
    /// Create a token of the user, and show it once
    POST "/user/settings/tokens" => settings::make_token {
        auth: Session, needs: Nothing, group: Account, audit: "token.create",
        body: || form(&["name", "description", "days"]), max: FORM_BYTES_MAX,
        answer: Html, id: MakeOwnToken,
    }
    /// Revoke a token of the user
    POST "/user/settings/tokens/revoke" => settings::revoke_token {
        auth: Session, needs: Nothing, group: Account, audit: "token.revoke",
        body: || form(&["name"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: RevokeOwnToken,
    }
    /// List where the user is signed in, and with what
    GET "/user/settings/account" => settings::account_page {
        auth: Session, needs: Nothing, group: Account,
        answer: Html, id: AccountPage,
    }
    /// End a session of the user
    POST "/user/settings/sessions/end" => settings::end_session {
        auth: Session, needs: Nothing, group: Account, audit: "session.end",
        body: || form(&["id"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: EndOwnSession,
    }
    /// Set the user's password
    POST "/user/settings/password" => settings::set_password {
        auth: Session, needs: Nothing, group: Account, audit: "password.set",
        body: || form(&["password", "again"]), max: FORM_BYTES_MAX,
        answer: SeeOther, id: SetOwnPassword,
    }
    /// Link an account of a provider with the user
    GET "/user/settings/link/{provider}" => settings::link {
        auth: Session, needs: Nothing, group: Account, audit: "account.link",
        answer: SeeOther, id: LinkAccount,
    }
    /// Get a page that names this server and explains how to log in
    GET "/" => home::home {
        auth: Public, needs: Nothing, group: Console,
        answer: Html, id: GetHome,
    }
    /// Check whether the process serves requests
    GET "/healthz" => health::health {
        auth: Public, needs: Nothing, group: Admin,
        answer: Json(health_status), id: GetHealth,
    }
    /// Check whether the server can do its work
    GET "/readyz" => health::ready {
        auth: Public, needs: Nothing, group: Admin,
        answer: Json(health_status), id: GetReadiness,
    }
    /// Get what works, what waits for a sweep, and how old the key is
    GET "/api/admin/status" => server::status {
        auth: Token, needs: Nothing, group: Admin,
        answer: Json(of::<ServerStatus>), id: GetServerStatus,
    }
    /// Count what each organization stores
    GET "/api/admin/storage" => server::storage {
        auth: Token, needs: Nothing, group: Admin,
        query: [query::CONTINUATION],
        answer: Json(of::<Storage>), id: GetServerStorage,
    }
}

/// The OpenAPI document, as JSON text.
pub fn openapi() -> Bytes {
    // Anyone may request it, so it is made once.
    static DOCUMENT: OnceLock<Bytes> = OnceLock::new();
    DOCUMENT.get_or_init(|| openapi::document(ROUTES.iter().zip(SHAPES)).to_string().into()).clone()
}

/// Answers with the document, also at the path of Pulumi Cloud's own.
async fn document() -> response::Answer {
    Ok(json_text(openapi()))
}

/// Answers with the actions of the audit trail, described by the rows that have them.
async fn event_types(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> response::Answer {
    audit::event_types(&app, &caller, &org, ROUTES).await
}

/// A router of all routes that a program serves.
pub fn router<S: Serves>(app: impl Into<App>) -> Router {
    let app = app.into();
    let mut router = Router::new();
    for (route, handler) in ROUTES.iter().zip(const { handlers::<S>() }) {
        let Some(handler) = handler else { continue };
        let filter = MethodFilter::try_from(route.method.clone())
            .expect("the table holds only methods that a router can tell apart");
        let guard = middleware::from_fn_with_state((app.clone(), route), auth::guard);
        router = router.route(route.path, on(filter, handler).layer(guard));
    }
    let table =
        router.fallback(not_supported).method_not_allowed_fallback(not_supported).with_state(app.clone());
    // Around the table: this layer rewrites the method and path before the table sees them.
    Router::new().fallback_service(table).layer(middleware::from_fn_with_state(app, access_log::observe))
}

/// Whether the first part of a path is that of a route. Names of organizations, which other paths begin with, are
/// of the console.
pub fn has_path_like(path: &str) -> bool {
    let Some(asked) = first_part(path) else { return false };
    ROUTES.iter().any(|route| first_part(route.path) == Some(asked))
}

fn first_part(path: &str) -> Option<&str> {
    path.split('/').find(|part| !part.is_empty())
}

/// Answers a request that the table does not have. Without the integer code in the body, the CLI does not
/// recognize a 404.
async fn not_supported(request: Request) -> Failure {
    unsupported(request.method(), request.uri().path())
}

/// A router with the metrics only. Serve it on a separate address, since metrics reveal what the server is
/// used for.
pub fn metrics_router(app: App) -> Router {
    Router::new().route("/metrics", get(metrics)).with_state(app)
}

async fn metrics(State(app): State<App>) -> Result<Response, Failure> {
    const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    let running = crate::services::maintenance::health::updates_running(&app).await?;
    Ok(([(CONTENT_TYPE, TEXT)], app.metrics().text(running)).into_response())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::domain::names::check_new_owner;
    use crate::services::audit::actions::ACTIONS;

    fn held<S: Serves>() -> Vec<String> {
        let rows = ROUTES.iter().zip(const { handlers::<S>() });
        rows.filter_map(|(route, handler)| handler.map(|_| route.id())).collect()
    }

    #[test]
    fn each_route_has_a_unique_name_and_path_in_the_document() {
        let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
        for route in ROUTES {
            assert!(!route.summary.is_empty(), "{route:?} has no summary");
            assert!(names.insert(route.operation), "{} twice", route.operation);
            assert!(paths.insert((route.method.as_str(), route.path_in_document())), "{route:?} twice");
        }
    }

    #[test]
    fn no_new_organization_has_the_name_of_a_path() {
        for first in ROUTES.iter().filter_map(|route| first_part(route.path)) {
            assert!(check_new_owner(first).is_err(), "{first}");
        }
    }

    #[test]
    fn the_first_part_of_a_path_tells_routes_from_pages() {
        for path in
            ["/api/user", "/api", "/tfstate/x", "/signin", "/user/settings/none", "/healthz", "//api/user"]
        {
            assert!(has_path_like(path), "{path}");
        }
        for path in ["/", "", "/main", "/main/api/dev", "/apis", "/main/-/locks"] {
            assert!(!has_path_like(path), "{path}");
        }
    }

    #[test]
    fn each_action_is_on_the_list_of_actions() {
        for route in ROUTES.iter().filter(|route| route.group.keeps_trail()) {
            if let Some(action) = route.action {
                assert!(ACTIONS.contains(&action), "{route:?}: {action}");
            }
        }
    }

    #[test]
    fn a_program_contains_only_the_handlers_of_its_groups() {
        let of = |group| ROUTES.iter().filter(|row| row.group == group).map(Route::id).collect::<Vec<_>>();
        assert_eq!(held::<Read>(), of(Group::Read));
        assert_eq!(held::<Secrets>(), of(Group::Secrets));
        assert_eq!(held::<Head>(), of(Group::Head));
        assert_eq!(held::<Log>(), of(Group::Log));
        assert_eq!(held::<Admin>(), of(Group::Admin));
        assert_eq!(held::<Account>(), of(Group::Account));
        assert_eq!(held::<Tfstate>(), of(Group::Tfstate));
        assert_eq!(held::<Environments>(), of(Group::Environments));
        assert_eq!(held::<Console>(), of(Group::Console));
        assert_eq!(held::<Everything>(), ROUTES.iter().map(Route::id).collect::<Vec<_>>());
    }
}

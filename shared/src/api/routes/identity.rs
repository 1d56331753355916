//! The rows of the server's capabilities, of users, and of what they sign in with: issuers, tokens, sessions.

use crate::api::handlers::{oidc, service, sessions, stacks, tokens, user};
use crate::api::parameters as query;
use crate::api::route::Answered::{Json, NoContent};
use crate::api::shapes::of;
use crate::limits::{EXCHANGE_BYTES_MAX, ISSUER_BYTES_MAX};
use crate::wire::oidc::{
    Consent, Consents, EditIssuer, Issuer, Issuers, NewConsent, NewIssuer, NewPolicies, Policies,
    TokenAnswer, TokenRequest,
};
use crate::wire::pulumi::{Capabilities, DefaultOrganization, Members as OrgMembers, Stacks, User, Versions};
use crate::wire::sessions::{EndedSessions, Sessions};
use crate::wire::tokens::{
    CreatedToken, NewOrgToken, NewPersonalToken, NewTeamToken, OrganizationRules, OrganizationSettings,
    RotateToken, RotatedToken, Tokens,
};

rows! {
    Rows

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
}

//! The current user, and the members of an organization.

use axum::extract::State;

use crate::api::app::App;
use crate::api::path::OrgPath;
use crate::api::response::{Answer, json, json_list, user_named};
use crate::domain::names::Login;
use crate::domain::role::Role;
use crate::services::caller::Caller;
use crate::services::identity::bootstrap;
use crate::wire::pulumi::{DefaultOrganization, Member, Members, NamedRole, Organization, TokenInfo, User};

/// The current user, for `pulumi login`, which makes only this call.
pub(crate) async fn user(caller: Caller) -> Answer {
    let login = caller.user.login.to_string();
    let organization = |org: &crate::domain::names::OrgName| Organization {
        github_login: org.to_string(),
        name: org.to_string(),
        avatar_url: String::new(),
    };
    let of = &caller.token.of;
    let token_info = (!of.is_user()).then(|| TokenInfo {
        name: caller.token.name.to_string(),
        organization: login.clone(),
        team: of.team().map(ToString::to_string),
    });
    json_list(User {
        id: login.clone(),
        github_login: login.clone(),
        name: login,
        email: String::new(),
        avatar_url: String::new(),
        organizations: caller.user.orgs.iter().map(organization).collect(),
        identities: Vec::new(),
        has_mfa: false,
        is_org_managed: false,
        is_managed_by_multi_org: false,
        token_info,
    })
    .await
}

/// The organization of stacks that are named without one.
pub(crate) async fn default_organization(caller: Caller) -> Answer {
    let org = caller.user.orgs.first().map(ToString::to_string).unwrap_or_default();
    json(&DefaultOrganization { github_login: org, messages: Vec::new() })
}

/// The members of an organization.
pub(crate) async fn members(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    let members = bootstrap::members(&app, &caller, &org).await?;
    json_list(Members { members: members.into_iter().map(shown_member).collect() }).await
}

/// A member, as Pulumi Cloud shows one.
pub(super) fn shown_member((login, role): (Login, Role)) -> Member {
    Member {
        role: if role == Role::Admin { role } else { Role::Member },
        user: user_named(&login),
        known_to_pulumi: true,
        virtual_admin: false,
        fga_role: NamedRole { id: role, name: role },
    }
}

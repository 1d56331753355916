//! Teams, and their roles on stacks and environments, with Pulumi Cloud's permissions.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use crate::api::app::App;
use crate::api::body::JsonBody;
use crate::api::path::{MemberPath, OrgPath, StackPath, TeamPath};
use crate::api::request_context::RequestContext;
use crate::api::response::{Answer, json, json_list, no_content};
use crate::domain::access::{Scope, TeamRole};
use crate::domain::names::{EnvironmentName, Login, ProjectName, StackName, TeamName};
use crate::domain::role::{Rights, Role};
use crate::services::Error;
use crate::services::caller::Caller;
use crate::services::error::InvalidInput;
use crate::services::identity::grants::{self, Sources};
use crate::services::identity::teams::{self, ShownTeam, TeamEdit as Edit};
use crate::services::store::stack_lookup;
use crate::wire::access::{
    Collaborator, Collaborators, EnvironmentPermission, NamedEnvironment, NamedStack, NewStackPermission,
    NewTeam, PermissionsOfMember, Person, StackPermission, Team, TeamEdit, TeamMember, TeamOfStack,
    TeamPermission, Teams, TeamsOfStack,
};

/// Pulumi Cloud's number for a role on a stack. It has none for the roles that do not open secrets.
fn number(role: Role) -> u32 {
    match role {
        Role::None | Role::View | Role::Auditor | Role::Outputs => 0,
        Role::Plan => 101,
        Role::Apply => 102,
        Role::Member | Role::Admin => 103,
    }
}

/// The role that a number of Pulumi Cloud gives on a stack; `None` takes it.
fn role_of(number: u32) -> Result<Option<Role>, Error> {
    Ok(match number {
        0 => None,
        101 => Some(Role::Plan),
        102 => Some(Role::Apply),
        // The last is the creator's.
        103 | 104 => Some(Role::Member),
        _ => {
            let known = "0, 101, 102, 103 or 104";
            return Err(InvalidInput::Permission { what: "stack", known }.into());
        }
    })
}

/// Pulumi Cloud's word for a role on an environment.
fn word(role: Role) -> &'static str {
    match role {
        Role::None | Role::Outputs => "none",
        Role::View | Role::Auditor => "read",
        Role::Plan => "open",
        Role::Apply => "write",
        Role::Member | Role::Admin => "admin",
    }
}

/// The role that a word of Pulumi Cloud gives on an environment; `None` takes it.
fn role_of_word(word: &str) -> Result<Option<Role>, Error> {
    Ok(match word {
        "none" => None,
        "read" => Some(Role::View),
        "open" => Some(Role::Plan),
        "write" => Some(Role::Apply),
        "admin" => Some(Role::Member),
        _ => {
            let known = "none, read, open, write or admin";
            return Err(InvalidInput::Permission { what: "environment", known }.into());
        }
    })
}

/// A team in a list.
fn brief(team: &ShownTeam) -> Team {
    Team {
        kind: "pulumi".to_owned(),
        name: team.name.to_string(),
        display_name: teams::display_name(team),
        description: team.team.description.clone(),
        members: None,
        stacks: None,
        environments: None,
        user_role: team.own.map_or("none", TeamRole::as_str).to_owned(),
        role_ids: None,
    }
}

/// A team with its members and its roles. A grant on a name reaches a stack, a state and an environment of this
/// name, so it is in both lists.
fn whole(team: &ShownTeam) -> Team {
    let member = |(login, role): (&Login, &TeamRole)| TeamMember {
        name: login.to_string(),
        github_login: login.to_string(),
        avatar_url: String::new(),
        role: role.as_str().to_owned(),
    };
    let exact = || team.grants.iter().filter_map(|(on, role)| Some((on.exact()?, *role)));
    let stack = |((project, name), role): ((&str, &str), Role)| StackPermission {
        project_name: project.to_owned(),
        stack_name: name.to_owned(),
        permission: number(role),
        permission_set_name: Some(role.to_string()),
    };
    let environment = |((project, name), role): ((&str, &str), Role)| EnvironmentPermission {
        project_name: project.to_owned(),
        env_name: name.to_owned(),
        permission: word(role).to_owned(),
        max_open_duration: None,
        permission_set_name: Some(role.to_string()),
    };
    let everywhere = team.grants.iter().filter(|(on, _)| *on == Scope::Organization);
    Team {
        members: Some(team.team.members.iter().map(member).collect()),
        stacks: Some(exact().map(stack).collect()),
        environments: Some(exact().map(environment).collect()),
        role_ids: Some(everywhere.map(|(_, role)| role.to_string()).collect()),
        ..brief(team)
    }
}

/// The teams of an organization that the caller sees.
pub(crate) async fn list(State(app): State<App>, caller: Caller, OrgPath(org): OrgPath) -> Answer {
    let teams = teams::list(&app, &caller, &org).await?;
    json_list(Teams { teams: teams.iter().map(brief).collect() }).await
}

/// A team.
pub(crate) async fn get(State(app): State<App>, caller: Caller, TeamPath(org, team): TeamPath) -> Answer {
    json_list(whole(&teams::get(&app, &caller, &org, &team).await?)).await
}

/// Creates a team. Its creator is not in it.
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    OrgPath(org): OrgPath,
    JsonBody(NewTeam { name, display_name, description }): JsonBody<NewTeam>,
) -> Answer {
    let name = TeamName::parse(&name)?;
    context.detail(name.as_str());
    let texts = (display_name.unwrap_or_default(), description.unwrap_or_default());
    let team = teams::create(&app, &caller, &org, &name, texts).await?;
    Ok((StatusCode::CREATED, json(&whole(&team))?).into_response())
}

/// Deletes a team, with its tokens and its grants.
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    TeamPath(org, team): TeamPath,
) -> Answer {
    context.detail(team.as_str());
    teams::delete(&app, &caller, &org, &team).await?;
    no_content()
}

fn on_stack(project: &str, stack: &str) -> Result<Scope, Error> {
    Ok(Scope::exactly(&ProjectName::parse(project)?, StackName::parse(stack)?.as_str()))
}

fn on_environment(project: &str, name: &str) -> Result<Scope, Error> {
    Ok(Scope::exactly(&ProjectName::parse(project)?, EnvironmentName::parse(name)?.as_str()))
}

/// The change that a body describes.
fn edit_of(body: TeamEdit) -> Result<Edit, Error> {
    let members = match (body.member_action, body.member) {
        (Some(action), Some(login)) => vec![(action, Login::parse(&login)?)],
        (None, None) => Vec::new(),
        _ => return Err(InvalidInput::TeamMember.into()),
    };
    let mut grants = Vec::new();
    for stack in [body.add_stack_permission, body.edit_stack_permission].into_iter().flatten() {
        grants.push((on_stack(&stack.project_name, &stack.stack_name)?, role_of(stack.permission)?));
    }
    if let Some(NamedStack { project_name, stack_name }) = body.remove_stack {
        grants.push((on_stack(&project_name, &stack_name)?, None));
    }
    let environments = [body.add_environment_permission, body.edit_environment_permission];
    for EnvironmentPermission { project_name, env_name, permission, max_open_duration, .. } in
        environments.into_iter().flatten()
    {
        if max_open_duration.is_some_and(|duration| !duration.is_empty()) {
            return Err(InvalidInput::MaxOpenDuration.into());
        }
        grants.push((on_environment(&project_name, &env_name)?, role_of_word(&permission)?));
    }
    if let Some(NamedEnvironment { project_name, env_name }) = body.remove_environment {
        grants.push((on_environment(&project_name, &env_name)?, None));
    }
    Ok(Edit { display_name: body.new_display_name, description: body.new_description, members, grants })
}

/// Changes a team: its texts, one member, or its roles.
pub(crate) async fn edit(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    TeamPath(org, team): TeamPath,
    JsonBody(body): JsonBody<TeamEdit>,
) -> Answer {
    let edit = edit_of(body)?;
    context.detail(match edit.members.first() {
        Some((action, login)) => format!("{team}: {} {login}", action.as_str()),
        None => team.to_string(),
    });
    teams::edit(&app, &caller, &org, &team, edit).await?;
    no_content()
}

fn of_stack((team, rights): &(ShownTeam, Rights)) -> TeamOfStack {
    TeamOfStack {
        name: team.name.to_string(),
        display_name: teams::display_name(team),
        description: team.team.description.clone(),
        is_member: team.own.is_some(),
        permission: number(rights.highest_role()),
    }
}

/// The teams that have rights on a stack.
pub(crate) async fn list_of_stack(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
) -> Answer {
    let teams = teams::of_stack(&app, &caller, &address).await?;
    json_list(TeamsOfStack {
        project_name: address.project.into(),
        teams: teams.iter().map(of_stack).collect(),
    })
    .await
}

/// Sets the permission of a team on a stack.
pub(crate) async fn set_on_stack(
    State(app): State<App>,
    caller: Caller,
    context: RequestContext,
    (StackPath(address), TeamPath(org, team)): (StackPath, TeamPath),
    JsonBody(NewStackPermission { permissions }): JsonBody<NewStackPermission>,
) -> Answer {
    stack_lookup::locate(&app, &caller, &address).await?;
    let role = role_of(permissions)?;
    let on = Scope::exactly(&address.project, address.stack.as_str());
    context.detail(format!("{team}: {}", role.unwrap_or(Role::None)));
    teams::edit(&app, &caller, &org, &team, Edit::of_role(on, role)).await?;
    no_content()
}

/// The members who may do something with a stack.
pub(crate) async fn collaborators(
    State(app): State<App>,
    caller: Caller,
    StackPath(address): StackPath,
) -> Answer {
    let located = stack_lookup::locate(&app, &caller, &address).await?;
    let members = grants::members_on(&app, &caller, &address).await?;
    let collaborator = |(login, rights): &(Login, Rights)| Collaborator {
        permission: number(rights.highest_role()),
        user: Person::from(login),
    };
    json_list(Collaborators {
        stack_creator_user_name: located.head.value.created_by.as_ref().map(ToString::to_string),
        users: members.iter().map(collaborator).collect(),
    })
    .await
}

/// What a member has on a stack, by its sources.
pub(crate) async fn of_member_on_stack(
    State(app): State<App>,
    caller: Caller,
    (MemberPath(_, login), StackPath(address)): (MemberPath, StackPath),
) -> Answer {
    let teams = teams::of_stack(&app, &caller, &address).await?;
    let Sources { role, explicit } = grants::sources(&app, &address, &login).await?;
    let own = teams.iter().filter(|(team, _)| team.team.members.contains_key(&login));
    let permission = |(team, rights): &(ShownTeam, Rights)| TeamPermission {
        team: brief(team),
        permission: number(rights.highest_role()),
    };
    json_list(PermissionsOfMember {
        explicit_permission: explicit.map_or(0, number),
        organization_default: number(role),
        organization_role: if role == Role::Admin { "admin" } else { "member" }.to_owned(),
        team_permissions: own.map(permission).collect(),
        user_info: Person::from(&login),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_of_pulumi_cloud_read_back() {
        for number_sent in [0, 101, 102, 103] {
            let role = role_of(number_sent).unwrap();
            assert_eq!(role.map_or(0, number), number_sent);
        }
        assert_eq!(role_of(104).unwrap(), Some(Role::Member));
        assert!(role_of(1).is_err() && role_of(105).is_err());
        for word_sent in ["none", "read", "open", "write", "admin"] {
            let role = role_of_word(word_sent).unwrap();
            assert_eq!(role.map_or("none", word), word_sent);
        }
        // The trail is not a part of a stack or an environment.
        assert_eq!((number(Role::Auditor), word(Role::Auditor)), (number(Role::View), word(Role::View)));
        assert!(role_of_word("owner").is_err());
    }

    #[test]
    fn a_change_of_a_team_is_read_from_its_body() {
        let read = |text: &str| edit_of(serde_json::from_str(text).unwrap());
        let added = read(r#"{"memberAction":"add","member":"bob"}"#).unwrap();
        assert!(added.members.len() == 1 && added.grants.is_empty());
        assert!(read(r#"{"memberAction":"add"}"#).is_err() && read(r#"{"member":"bob"}"#).is_err());
        let permission = r#"{"projectName":"web","stackName":"dev","permission":102}"#;
        let given = read(&format!(r#"{{"addStackPermission":{permission}}}"#)).unwrap();
        assert_eq!(given.grants, [(Scope::parse("web/dev").unwrap(), Some(Role::Apply))]);
        let taken = read(r#"{"removeStack":{"projectName":"web","stackName":"dev"}}"#).unwrap();
        assert_eq!(taken.grants, [(Scope::parse("web/dev").unwrap(), None)]);
        let lasting =
            r#"{"projectName":"web","envName":"dev","permission":"open","maxOpenDuration":"1h0m0s"}"#;
        assert!(read(&format!(r#"{{"addEnvironmentPermission":{lasting}}}"#)).is_err());
    }
}

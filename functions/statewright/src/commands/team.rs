//! `statewright team`.

use anyhow::{Context as _, anyhow};
use clap::Subcommand;
use serde::Serialize;
use serde_json::json;
use statewright_shared::domain::access::{TeamAction, TeamRole};
use statewright_shared::domain::names::{Login, OrgName, TeamName};
use statewright_shared::services::identity::directory;
use statewright_shared::services::identity::teams::{self, ShownTeam, TeamEdit};
use statewright_shared::wire::access as wire;

use super::place::{Ask, Place};
use crate::args::{self, Data};
use crate::client::{Call, Client};
use crate::output::{Output, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Team {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    ask: Ask,
    #[command(subcommand)]
    command: Command,
}

impl Team {
    /// Whether the command opens the store itself.
    pub(crate) fn is_the_operators(&self) -> bool {
        !self.ask.is_given()
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a team without members.
    Create {
        #[command(flatten)]
        team: Named,
        /// The name that people see [default: the name of the team].
        #[arg(long, value_name = "TEXT")]
        display_name: Option<String>,
        /// What the team is for.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// List the teams of an organization with their members.
    List {
        /// The organization.
        #[arg(value_parser = args::organization)]
        org: OrgName,
    },
    /// Delete a team, with its tokens and the grants to it.
    Remove(Named),
    /// Manage the members of a team.
    #[command(subcommand)]
    Member(MemberCommand),
}

#[derive(Debug, Subcommand)]
enum MemberCommand {
    /// Add a member of the organization to a team. With --admin, the member administers the team, also if the member
    /// was in it already.
    Add {
        #[command(flatten)]
        member: Member,
        /// Make the member an admin of the team, who can change its members.
        #[arg(long)]
        admin: bool,
    },
    /// Change the role of a member in a team: an admin of the team can change its members.
    Role {
        #[command(flatten)]
        member: Member,
        /// The new role in the team: member or admin.
        #[arg(value_name = "ROLE", value_parser = team_role)]
        role: TeamRole,
    },
    /// Remove a member from a team.
    Remove(Member),
}

#[derive(Debug, clap::Args)]
struct Named {
    /// The organization.
    #[arg(value_parser = args::organization)]
    org: OrgName,
    /// The team.
    #[arg(value_parser = args::team)]
    team: TeamName,
}

#[derive(Debug, clap::Args)]
struct Member {
    #[command(flatten)]
    team: Named,
    /// The user.
    #[arg(value_parser = args::login)]
    login: Login,
}

#[derive(Serialize)]
struct Done {
    organization: OrgName,
    team: TeamName,
}

fn team_role(text: &str) -> anyhow::Result<TeamRole> {
    let found = [TeamRole::Member, TeamRole::Admin].into_iter().find(|role| role.as_str() == text);
    found.ok_or_else(|| anyhow!("use member or admin"))
}

#[derive(Serialize)]
struct WithRole {
    organization: OrgName,
    team: TeamName,
    user: Login,
    role: TeamRole,
    changed: bool,
}

impl WithRole {
    /// For people.
    fn describe(&self) -> String {
        let Self { organization, team, user, role, changed } = self;
        let is = if *changed { "is" } else { "was already" };
        match role {
            TeamRole::Member => format!("{user} {is} in the team {team} of {organization}"),
            TeamRole::Admin => format!("{user} {is} an admin of the team {team} of {organization}"),
        }
    }
}

#[derive(Serialize)]
struct Removed {
    organization: OrgName,
    team: TeamName,
    user: Login,
}

#[derive(Serialize)]
struct Listed {
    organization: OrgName,
    teams: Vec<Line>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    team: TeamName,
    display_name: String,
    description: String,
    members: Vec<Login>,
    admins: Vec<Login>,
}

impl From<ShownTeam> for Line {
    fn from(team: ShownTeam) -> Self {
        let with = |wanted: TeamRole| {
            let members = team.team.members.iter().filter(|(_, role)| **role == wanted);
            members.map(|(login, _)| login.clone()).collect()
        };
        Self {
            display_name: teams::display_name(&team),
            description: team.team.description.clone(),
            members: with(TeamRole::Member),
            admins: with(TeamRole::Admin),
            team: team.name,
        }
    }
}

impl TryFrom<wire::Team> for Line {
    type Error = anyhow::Error;

    fn try_from(team: wire::Team) -> anyhow::Result<Self> {
        let with = |wanted: TeamRole| {
            let members = team.members.iter().flatten().filter(|member| member.role == wanted.as_str());
            let login = |member: &wire::TeamMember| {
                Login::parse(&member.github_login).context("the server's response has no valid login")
            };
            members.map(login).collect::<anyhow::Result<Vec<_>>>()
        };
        Ok(Self {
            members: with(TeamRole::Member)?,
            admins: with(TeamRole::Admin)?,
            team: TeamName::parse(&team.name).context("the server's response has no valid team")?,
            display_name: team.display_name,
            description: team.description,
        })
    }
}

/// The path of a team in the API.
fn path<'a>(org: &'a OrgName, team: &'a str) -> [&'a str; 5] {
    ["api", "orgs", org.as_str(), "teams", team]
}

async fn create(
    place: &Place,
    org: &OrgName,
    team: &TeamName,
    (display_name, description): (String, String),
) -> anyhow::Result<()> {
    match place {
        Place::Store(store) => {
            let operator = directory::operator(&store.ctx, Some(org)).await?;
            teams::create(&store.ctx, &operator, org, team, (display_name, description)).await?;
        }
        Place::Server(client) => {
            let body = json!({ "name": team, "displayName": display_name, "description": description });
            client.send(Call::post(path(org, "pulumi")).json(&body)).await?;
        }
    }
    Ok(())
}

async fn list(place: &Place, org: &OrgName) -> anyhow::Result<Vec<Line>> {
    match place {
        Place::Store(store) => {
            let operator = directory::operator(&store.ctx, Some(org)).await?;
            Ok(teams::list(&store.ctx, &operator, org).await?.into_iter().map(Line::from).collect())
        }
        Place::Server(client) => {
            let listed: wire::Teams = client.json(Call::get(["api", "orgs", org.as_str(), "teams"])).await?;
            let mut lines = Vec::new();
            // A list has no members.
            for team in listed.teams {
                let whole: wire::Team = client.json(Call::get(path(org, &team.name))).await?;
                lines.push(Line::try_from(whole)?);
            }
            Ok(lines)
        }
    }
}

async fn remove(place: &Place, org: &OrgName, team: &TeamName) -> anyhow::Result<()> {
    match place {
        Place::Store(store) => {
            let operator = directory::operator(&store.ctx, Some(org)).await?;
            teams::delete(&store.ctx, &operator, org, team).await?;
        }
        Place::Server(client) => {
            client.send(Call::delete(path(org, team.as_str()))).await?;
        }
    }
    Ok(())
}

/// The role of a user in a team; `None` for a user who is not in it.
async fn role_in(
    place: &Place,
    Named { org, team }: &Named,
    login: &Login,
) -> anyhow::Result<Option<TeamRole>> {
    match place {
        Place::Store(store) => {
            let operator = directory::operator(&store.ctx, Some(org)).await?;
            let found = teams::get(&store.ctx, &operator, org, team).await?;
            Ok(found.team.members.get(login).copied())
        }
        Place::Server(client) => {
            let found: wire::Team = client.json(Call::get(path(org, team.as_str()))).await?;
            let mut members = found.members.into_iter().flatten();
            let member = members.find(|member| member.github_login == login.as_str());
            let role = member.map(|member| team_role(&member.role)).transpose();
            role.context("the server's response has no valid role")
        }
    }
}

/// Makes a user a member of a team with at least this role, or gives a member exactly this one. Returns the role, and
/// whether it is new.
async fn set_role(
    place: &Place,
    named: &Named,
    login: &Login,
    wanted: TeamRole,
    adds: bool,
) -> anyhow::Result<(TeamRole, bool)> {
    let before = role_in(place, named, login).await?;
    let actions: &[TeamAction] = match (before, wanted) {
        (None, TeamRole::Member) if adds => &[TeamAction::Add],
        (None, TeamRole::Admin) if adds => &[TeamAction::Add, TeamAction::Promote],
        (Some(TeamRole::Admin), TeamRole::Member) if adds => return Ok((TeamRole::Admin, false)),
        (Some(before), wanted) if before == wanted => return Ok((wanted, false)),
        // Of a user who is not in the team, this is refused.
        (_, TeamRole::Member) => &[TeamAction::Demote],
        (_, TeamRole::Admin) => &[TeamAction::Promote],
    };
    edit(place, named, login, actions).await?;
    Ok((wanted, true))
}

/// Changes the place of a user in a team, step by step.
async fn edit(
    place: &Place,
    Named { org, team }: &Named,
    login: &Login,
    actions: &[TeamAction],
) -> anyhow::Result<()> {
    match place {
        Place::Store(store) => {
            let operator = directory::operator(&store.ctx, Some(org)).await?;
            let members = actions.iter().map(|action| (*action, login.clone())).collect();
            let edit = TeamEdit { members, ..TeamEdit::default() };
            teams::edit(&store.ctx, &operator, org, team, edit).await?;
        }
        Place::Server(client) => edit_at(client, org, team, login, actions).await?,
    }
    Ok(())
}

/// A request makes one change.
async fn edit_at(
    client: &Client,
    org: &OrgName,
    team: &TeamName,
    login: &Login,
    actions: &[TeamAction],
) -> anyhow::Result<()> {
    for action in actions {
        let body = json!({ "memberAction": action, "member": login });
        let call = Call::patch(path(org, team.as_str())).json(&body);
        let call = match action {
            TeamAction::Add | TeamAction::Remove => call.once(),
            TeamAction::Promote | TeamAction::Demote => call,
        };
        client.send(call).await?;
    }
    Ok(())
}

pub(crate) async fn run(team: Team, out: Output) -> anyhow::Result<()> {
    let place = team.ask.open(&team.data).await?;
    let server = team.ask.words();
    match team.command {
        Command::Create { team: Named { org, team }, display_name, description } => {
            let texts = (display_name.unwrap_or_default(), description.unwrap_or_default());
            create(&place, &org, &team, texts).await?;
            out.answer(&Done { organization: org, team }, |done| {
                let Done { organization, team } = done;
                let add = format!("statewright team member add {organization} {team} LOGIN{server}");
                format!("created the team {team} of {organization}; `{add}` adds a member")
            })
        }
        Command::List { org } => {
            let teams = list(&place, &org).await?;
            out.answer(&Listed { organization: org, teams }, |listed| {
                let names =
                    |logins: &[Login]| logins.iter().map(Login::as_str).collect::<Vec<_>>().join(", ");
                let row =
                    |line: &Line| vec![line.team.to_string(), names(&line.members), names(&line.admins)];
                table(&["TEAM", "MEMBERS", "ADMINS"], listed.teams.iter().map(row))
            })
        }
        Command::Remove(Named { org, team }) => {
            remove(&place, &org, &team).await?;
            out.answer(&Done { organization: org, team }, |done| {
                format!("deleted the team {} of {}, with its tokens and grants", done.team, done.organization)
            })
        }
        Command::Member(MemberCommand::Add { member: Member { team: named, login }, admin }) => {
            let wanted = if admin { TeamRole::Admin } else { TeamRole::Member };
            let (role, changed) = Box::pin(set_role(&place, &named, &login, wanted, true)).await?;
            let Named { org, team } = named;
            let added = WithRole { organization: org, team, user: login, role, changed };
            out.answer(&added, |added| {
                let WithRole { organization, team, user, .. } = added;
                let text = added.describe();
                match role == wanted {
                    true => text,
                    false => format!(
                        "{text}; `statewright team member role {organization} {team} {user} member{server}` makes the \
                         admin a member"
                    ),
                }
            })
        }
        Command::Member(MemberCommand::Role { member: Member { team: named, login }, role }) => {
            let (role, changed) = Box::pin(set_role(&place, &named, &login, role, false)).await?;
            let Named { org, team } = named;
            let set = WithRole { organization: org, team, user: login, role, changed };
            out.answer(&set, |set| {
                let WithRole { organization, team, user, role, changed } = set;
                let had = if *changed { "has" } else { "already had" };
                format!("{user} {had} the role {} in the team {team} of {organization}", role.as_str())
            })
        }
        Command::Member(MemberCommand::Remove(Member { team: named, login })) => {
            edit(&place, &named, &login, &[TeamAction::Remove]).await?;
            let Named { org, team } = named;
            out.answer(&Removed { organization: org, team, user: login }, |removed| {
                let Removed { organization, team, user } = removed;
                format!("removed {user} from the team {team} of {organization}")
            })
        }
    }
}

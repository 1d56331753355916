//! `statewright team`.

use anyhow::Context as _;
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
    /// Add a member of the organization to a team.
    Add {
        #[command(flatten)]
        member: Member,
        /// Make the member an admin of the team, who can change its members.
        #[arg(long)]
        admin: bool,
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

#[derive(Serialize)]
struct Changed {
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
        client.send(Call::patch(path(org, team.as_str())).json(&body)).await?;
    }
    Ok(())
}

pub(crate) async fn run(team: Team, out: Output) -> anyhow::Result<()> {
    let place = team.ask.open(&team.data).await?;
    match team.command {
        Command::Create { team: Named { org, team }, display_name, description } => {
            let texts = (display_name.unwrap_or_default(), description.unwrap_or_default());
            create(&place, &org, &team, texts).await?;
            out.answer(&Done { organization: org, team }, |done| {
                format!(
                    "created the team {1} of {0}; `statewright team member add {0} {1} LOGIN` adds a member",
                    done.organization, done.team
                )
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
            let promoted = admin.then_some(TeamAction::Promote);
            let actions: Vec<_> = std::iter::once(TeamAction::Add).chain(promoted).collect();
            edit(&place, &named, &login, &actions).await?;
            let Named { org, team } = named;
            out.answer(&Changed { organization: org, team, user: login }, |changed| {
                let Changed { organization, team, user } = changed;
                format!("{user} is in the team {team} of {organization}")
            })
        }
        Command::Member(MemberCommand::Remove(Member { team: named, login })) => {
            edit(&place, &named, &login, &[TeamAction::Remove]).await?;
            let Named { org, team } = named;
            out.answer(&Changed { organization: org, team, user: login }, |changed| {
                let Changed { organization, team, user } = changed;
                format!("removed {user} from the team {team} of {organization}")
            })
        }
    }
}

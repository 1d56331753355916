//! `statewright team`.

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::domain::access::{TeamAction, TeamRole};
use statewright_shared::domain::names::{Login, OrgName, TeamName};
use statewright_shared::services::identity::directory;
use statewright_shared::services::identity::teams::{self, ShownTeam, TeamEdit};

use crate::args::{self, Data};
use crate::data;
use crate::output::{Output, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Team {
    #[command(flatten)]
    data: Data,
    #[command(subcommand)]
    command: Command,
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

pub(crate) async fn run(team: Team, out: Output) -> anyhow::Result<()> {
    let (_folder, ctx) = data::open_beside(&team.data).await?;
    match team.command {
        Command::Create { team: Named { org, team }, display_name, description } => {
            let operator = directory::operator(&ctx, Some(&org)).await?;
            let texts = (display_name.unwrap_or_default(), description.unwrap_or_default());
            teams::create(&ctx, &operator, &org, &team, texts).await?;
            out.answer(&Done { organization: org, team }, |done| {
                format!(
                    "created the team {1} of {0}; `statewright team member add {0} {1} LOGIN` adds a member",
                    done.organization, done.team
                )
            })
        }
        Command::List { org } => {
            let operator = directory::operator(&ctx, Some(&org)).await?;
            let teams = teams::list(&ctx, &operator, &org).await?.into_iter().map(Line::from).collect();
            out.answer(&Listed { organization: org, teams }, |listed| {
                let names =
                    |logins: &[Login]| logins.iter().map(Login::as_str).collect::<Vec<_>>().join(", ");
                let row =
                    |line: &Line| vec![line.team.to_string(), names(&line.members), names(&line.admins)];
                table(&["TEAM", "MEMBERS", "ADMINS"], listed.teams.iter().map(row))
            })
        }
        Command::Remove(Named { org, team }) => {
            let operator = directory::operator(&ctx, Some(&org)).await?;
            teams::delete(&ctx, &operator, &org, &team).await?;
            out.answer(&Done { organization: org, team }, |done| {
                format!("deleted the team {} of {}, with its tokens and grants", done.team, done.organization)
            })
        }
        Command::Member(MemberCommand::Add {
            member: Member { team: Named { org, team }, login },
            admin,
        }) => {
            let operator = directory::operator(&ctx, Some(&org)).await?;
            let promoted = admin.then(|| (TeamAction::Promote, login.clone()));
            let members = std::iter::once((TeamAction::Add, login.clone())).chain(promoted).collect();
            let edit = TeamEdit { members, ..TeamEdit::default() };
            teams::edit(&ctx, &operator, &org, &team, edit).await?;
            out.answer(&Changed { organization: org, team, user: login }, |changed| {
                let Changed { organization, team, user } = changed;
                format!("{user} is in the team {team} of {organization}")
            })
        }
        Command::Member(MemberCommand::Remove(Member { team: Named { org, team }, login })) => {
            let operator = directory::operator(&ctx, Some(&org)).await?;
            let members = vec![(TeamAction::Remove, login.clone())];
            let edit = TeamEdit { members, ..TeamEdit::default() };
            teams::edit(&ctx, &operator, &org, &team, edit).await?;
            out.answer(&Changed { organization: org, team, user: login }, |changed| {
                let Changed { organization, team, user } = changed;
                format!("removed {user} from the team {team} of {organization}")
            })
        }
    }
}

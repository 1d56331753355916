//! `statewright org`.

use anyhow::{Context as _, anyhow};
use clap::Subcommand;
use serde::Serialize;
use serde_json::json;
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::domain::plural::count;
use statewright_shared::domain::principal::Principal;
use statewright_shared::domain::role::Role;
use statewright_shared::services::identity::{directory, orgs, token_requests};
use statewright_shared::services::updates::running::Begun;
use statewright_shared::wire::{Reason, pulumi};

use super::access::{self, OfAccess, OfGrants};
use super::place::{Ask, Place};
use super::running::{self, Running};
use crate::args::{self, Data};
use crate::client::{Call, Client};
use crate::data;
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Org {
    #[command(flatten)]
    data: Data,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create an organization, which owns stacks and states.
    Create {
        /// The name of the organization.
        #[arg(value_parser = args::organization)]
        org: OrgName,
        /// A user to add, with the role member; may be repeated.
        #[arg(long = "member", value_name = "LOGIN", value_parser = args::login)]
        members: Vec<Login>,
    },
    /// List the organizations.
    List,
    /// Change the rules of an organization. A running server applies them within a minute.
    Set(OfRules),
    /// Manage the members of an organization and their roles.
    Member(OfMembers),
    /// Manage the grants of roles on parts of an organization.
    Grant(OfGrants),
    /// Export or apply the teams and grants of an organization as one document.
    Access(OfAccess),
}

#[derive(Debug, clap::Args)]
struct OfRules {
    #[command(flatten)]
    ask: Ask,
    /// The organization.
    #[arg(value_parser = args::organization)]
    org: OrgName,
    /// The days that access tokens have left at most, 1 to 730, or `none` for no limit. The organization refuses a
    /// token that has more left, or no end.
    #[arg(long, value_name = "DAYS", value_parser = days)]
    max_token_days: Days,
}

/// A number of days; `None` for no limit.
#[derive(Debug, Clone, Copy)]
struct Days(Option<u32>);

fn days(text: &str) -> anyhow::Result<Days> {
    match text {
        "none" | "0" => Ok(Days(None)),
        text => {
            let days = text.parse::<u32>().ok().filter(|days| *days > 0);
            days.map(|days| Days(Some(days))).ok_or_else(|| anyhow!("write a whole number of days, or none"))
        }
    }
}

#[derive(Debug, clap::Args)]
struct OfMembers {
    #[command(flatten)]
    ask: Ask,
    #[command(subcommand)]
    command: MemberCommand,
}

impl Org {
    /// Whether the command opens the store itself.
    pub(crate) fn is_the_operators(&self) -> bool {
        match &self.command {
            Command::Create { .. } | Command::List => true,
            Command::Set(rules) => !rules.ask.is_given(),
            Command::Member(members) => !members.ask.is_given(),
            Command::Grant(grants) => !grants.ask.is_given(),
            Command::Access(access) => !access.ask.is_given(),
        }
    }
}

#[derive(Debug, Subcommand)]
enum MemberCommand {
    /// Add a user to an organization. A running server applies it within a minute. A user who is already a
    /// member keeps their role.
    Add {
        #[command(flatten)]
        membership: Membership,
        /// The role: none, view, auditor, outputs, plan, apply, member or admin. From plan on, each role includes
        /// those before it, except auditor.
        #[arg(long, value_name = "ROLE", default_value = "member", value_parser = args::role)]
        role: Role,
    },
    /// Change the role of a member. A running server applies it within a minute. Updates that need more than
    /// the new role end within five minutes; those still running are listed.
    Role {
        #[command(flatten)]
        membership: Membership,
        /// The new role: none, view, auditor, outputs, plan, apply, member or admin.
        #[arg(value_parser = args::role)]
        role: Role,
    },
    /// Remove a member. A running server applies it within a minute; the user and their tokens stay. The
    /// user's updates there end within five minutes; those still running are listed.
    Remove(Membership),
    /// List the members and their roles.
    List {
        /// The organization.
        #[arg(value_parser = args::organization)]
        org: OrgName,
    },
}

#[derive(Debug, clap::Args)]
struct Membership {
    /// The organization.
    #[arg(value_parser = args::organization)]
    org: OrgName,
    /// The user.
    #[arg(value_parser = args::login)]
    login: Login,
}

#[derive(Serialize)]
struct Created {
    organization: OrgName,
    created: Rfc3339,
    members: Vec<Login>,
}

#[derive(Serialize)]
struct Listed {
    organizations: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    organization: OrgName,
    created: Rfc3339,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rules {
    organization: OrgName,
    /// `None` for no limit.
    max_token_days: Option<u32>,
}

#[derive(Serialize)]
struct Members {
    organization: OrgName,
    members: Vec<Member>,
}

#[derive(Serialize)]
struct Member {
    user: Login,
    role: Role,
}

#[derive(Serialize)]
struct WithRole {
    organization: OrgName,
    user: Login,
    role: Role,
    changed: bool,
    /// Updates that need more than the new role; `None` if a server was asked.
    running: Option<Vec<Running>>,
}

#[derive(Serialize)]
struct Changed {
    organization: OrgName,
    user: Login,
    changed: bool,
    /// `None` if a server was asked.
    running: Option<Vec<Running>>,
}

pub(crate) async fn run(org: Org, out: Output) -> anyhow::Result<()> {
    let Org { data, command } = org;
    match command {
        Command::Create { org, members } => {
            let (_folder, ctx) = data::open_beside(&data).await?;
            let created = orgs::create(&ctx, &org, &members).await?;
            let created = Created { organization: org, created: Rfc3339(created), members };
            out.answer(&created, |created| {
                let members: Vec<&str> = created.members.iter().map(Login::as_str).collect();
                let who = match members.is_empty() {
                    true => String::new(),
                    false => format!(
                        ", with member {}; a running server applies it within a minute",
                        members.join(", ")
                    ),
                };
                format!(
                    "created {}{who}; `statewright org member add {0} LOGIN` adds a member",
                    created.organization
                )
            })
        }
        Command::List => {
            let (_folder, ctx) = data::open_beside(&data).await?;
            let line = |(organization, created)| Line { organization, created: Rfc3339(created) };
            let organizations = directory::orgs(&ctx).await?.into_iter().map(line).collect();
            out.answer(&Listed { organizations }, |listed| {
                let rows = listed
                    .organizations
                    .iter()
                    .map(|line| vec![line.organization.to_string(), line.created.to_string()]);
                table(&["ORGANIZATION", "CREATED"], rows)
            })
        }
        Command::Set(OfRules { ask, org, max_token_days: Days(max_token_days) }) => {
            let place = ask.open(&data).await?;
            set_token_days(&place, &org, max_token_days).await?;
            out.answer(&Rules { organization: org, max_token_days }, |rules| {
                let Rules { organization, max_token_days } = rules;
                match max_token_days {
                    Some(days) => {
                        format!(
                            "{organization} accepts access tokens that have at most {} left",
                            count(*days, "day")
                        )
                    }
                    None => format!("{organization} accepts access tokens without a limit of days"),
                }
            })
        }
        Command::Grant(grants) => access::grant(&data, grants, out).await,
        Command::Access(access) => access::access(&data, access, out).await,
        Command::Member(members) => {
            let place = members.ask.open(&data).await?;
            member(&place, members.command, out).await
        }
    }
}

async fn set_token_days(place: &Place, org: &OrgName, days_max: Option<u32>) -> anyhow::Result<()> {
    // The API has 0 for no limit.
    let days = i64::from(days_max.unwrap_or(0));
    match place {
        Place::Store(store) => {
            let operator = directory::operator(&store.ctx, Some(org)).await?;
            token_requests::set_days_left_max(&store.ctx, &operator, org, days).await?;
        }
        Place::Server(client) => {
            let body = json!({ "setMaxAccessTokenExpiryDays": days });
            let call = Call::patch(["api", "orgs", org.as_str()]).json(&body);
            client.send(call).await?;
        }
    }
    Ok(())
}

async fn member(place: &Place, command: MemberCommand, out: Output) -> anyhow::Result<()> {
    match command {
        MemberCommand::Add { membership: Membership { org, login }, role } => {
            let orgs::Membership { role, changed } = add(place, &org, &login, role).await?;
            let added = WithRole { organization: org, user: login, role, changed, running: Some(Vec::new()) };
            out.answer(&added, |membership| {
                let WithRole { organization, user, role, changed, .. } = membership;
                let was = if *changed { "is" } else { "was already" };
                format!("{user} {was} a member of {organization} with the role {role}")
            })
        }
        MemberCommand::Role { membership: Membership { org, login }, role } => {
            let (orgs::Membership { role, changed }, running) = set_role(place, &org, &login, role).await?;
            out.answer(&WithRole { organization: org, user: login, role, changed, running }, |membership| {
                let WithRole { organization, user, role, changed, running } = membership;
                let had = if *changed { "has" } else { "already had" };
                let message = format!("{user} {had} the role {role} in {organization}");
                running::after(message, running.as_deref().unwrap_or_default())
            })
        }
        MemberCommand::Remove(Membership { org, login }) => {
            let (changed, running) = remove(place, &org, &login).await?;
            out.answer(&Changed { organization: org, user: login, changed, running }, |membership| {
                let Changed { organization, user, changed, running } = membership;
                let was = if *changed { "is no longer" } else { "was not" };
                let message = format!("{user} {was} a member of {organization}");
                running::after(message, running.as_deref().unwrap_or_default())
            })
        }
        MemberCommand::List { org } => {
            let member = |(user, role)| Member { user, role };
            let members = match place {
                Place::Store(store) => orgs::members(&store.ctx, &org).await?,
                Place::Server(client) => members_at(client, &org).await?,
            };
            let members = members.into_iter().map(member).collect();
            out.answer(&Members { organization: org, members }, |members| {
                let row = |member: &Member| vec![member.user.to_string(), member.role.to_string()];
                table(&["USER", "ROLE"], members.members.iter().map(row))
            })
        }
    }
}

/// The path of a member in the API.
fn path<'a>(org: &'a OrgName, login: &'a Login) -> [&'a str; 5] {
    ["api", "orgs", org.as_str(), "members", login.as_str()]
}

async fn members_at(client: &Client, org: &OrgName) -> anyhow::Result<Vec<(Login, Role)>> {
    let listed: pulumi::Members = client.json(Call::get(["api", "orgs", org.as_str(), "members"])).await?;
    let member = |it: pulumi::Member| {
        let login = Login::parse(&it.user.github_login);
        Ok((login.context("the server's response has no valid login")?, it.fga_role.id))
    };
    listed.members.into_iter().map(member).collect()
}

/// The role of a member, from the server; `None` for a user who is not a member.
async fn role_at(client: &Client, org: &OrgName, login: &Login) -> anyhow::Result<Option<Role>> {
    let members = members_at(client, org).await?;
    Ok(members.into_iter().find(|(member, _)| member == login).map(|(_, role)| role))
}

async fn add(place: &Place, org: &OrgName, login: &Login, role: Role) -> anyhow::Result<orgs::Membership> {
    let client = match place {
        Place::Store(store) => return Ok(orgs::add_member(&store.ctx, org, login, role).await?),
        Place::Server(client) => client,
    };
    match client.send(Call::post(path(org, login)).json(&json!({ "role": role }))).await {
        Ok(_) => Ok(orgs::Membership { role, changed: true }),
        Err(failure) if failure.reason() == Some(Reason::MemberExists) => {
            let role = role_at(client, org, login).await?;
            let role = role.with_context(|| format!("{login} left {org} meanwhile: run this again"))?;
            Ok(orgs::Membership { role, changed: false })
        }
        Err(failure) => Err(failure.into()),
    }
}

/// Gives a member another role, and returns what still runs with the one before, if the store says that.
async fn set_role(
    place: &Place,
    org: &OrgName,
    login: &Login,
    role: Role,
) -> anyhow::Result<(orgs::Membership, Option<Vec<Running>>)> {
    match place {
        Place::Store(store) => {
            let membership = orgs::set_role(&store.ctx, org, login, role).await?;
            let (of, above) = (&Principal::User, Some(membership.role));
            let begun = Begun { login, of, token: None, org: Some(org), above };
            Ok((membership, Some(running::find(&store.ctx, &begun).await?)))
        }
        Place::Server(client) => {
            let before = role_at(client, org, login).await?;
            client.send(Call::patch(path(org, login)).json(&json!({ "role": role }))).await?;
            Ok((orgs::Membership { role, changed: before != Some(role) }, None))
        }
    }
}

/// Ends a membership, and returns whether there was one, and what still runs, if the store says that.
async fn remove(place: &Place, org: &OrgName, login: &Login) -> anyhow::Result<(bool, Option<Vec<Running>>)> {
    match place {
        Place::Store(store) => {
            let changed = orgs::remove_member(&store.ctx, org, login).await?;
            let begun = Begun { login, of: &Principal::User, token: None, org: Some(org), above: None };
            Ok((changed, Some(running::find(&store.ctx, &begun).await?)))
        }
        Place::Server(client) => match client.send(Call::delete(path(org, login))).await {
            Ok(_) => Ok((true, None)),
            Err(failure) if failure.reason() == Some(Reason::UserNotFound) => Ok((false, None)),
            Err(failure) => Err(failure.into()),
        },
    }
}

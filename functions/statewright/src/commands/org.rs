//! `statewright org`.

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::domain::role::Role;
use statewright_shared::services::identity::{directory, orgs};
use statewright_shared::services::updates::running::Begun;

use super::running::{self, Running};
use crate::args::{self, Data};
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
    /// Make an organization, which owns stacks.
    Create {
        /// Its name.
        #[arg(value_parser = args::organization)]
        org: OrgName,
        /// A user to be a member, with the role member; may be repeated.
        #[arg(long = "member", value_name = "LOGIN", value_parser = args::login)]
        members: Vec<Login>,
    },
    /// List the organizations.
    List,
    /// The members of an organization, and what they may do.
    #[command(subcommand)]
    Member(MemberCommand),
}

#[derive(Debug, Subcommand)]
enum MemberCommand {
    /// Make a user a member. A running server knows it within a minute. Whoever is a member already keeps their role.
    Add {
        #[command(flatten)]
        membership: Membership,
        /// What the user may do there: outputs, plan, apply, member or admin, each of which may do what those before it may.
        #[arg(long, value_name = "ROLE", default_value = "member", value_parser = args::role)]
        role: Role,
    },
    /// Give a member another role. A running server knows it within a minute. An update that needs more than the new role ends
    /// within five; those that still run are listed.
    Role {
        #[command(flatten)]
        membership: Membership,
        /// What the user may do there from now on: outputs, plan, apply, member or admin.
        #[arg(value_parser = args::role)]
        role: Role,
    },
    /// End a membership. A running server knows it within a minute; the user and the user's tokens stay. The user's updates there
    /// end within five; those that still run are listed.
    Remove(Membership),
    /// List the members with their roles.
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
    /// Whether it was not so before.
    changed: bool,
    /// Updates that need more than the role.
    running: Vec<Running>,
}

#[derive(Serialize)]
struct Changed {
    organization: OrgName,
    user: Login,
    /// Whether it was not so before.
    changed: bool,
    running: Vec<Running>,
}

pub(crate) async fn run(org: Org, out: Output) -> anyhow::Result<()> {
    let (_folder, ctx) = data::open_beside(&org.data).await?;
    match org.command {
        Command::Create { org, members } => {
            let created = orgs::create(&ctx, &org, &members).await?;
            let created = Created { organization: org, created: Rfc3339(created), members };
            out.answer(&created, |created| {
                let members: Vec<&str> = created.members.iter().map(Login::as_str).collect();
                let who = match members.is_empty() {
                    true => String::new(),
                    false => format!(
                        " with {}, for whom a running server knows it within a minute",
                        members.join(", ")
                    ),
                };
                format!(
                    "{} is made{who}; `statewright org member add {0} LOGIN` makes another member",
                    created.organization
                )
            })
        }
        Command::List => {
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
        Command::Member(MemberCommand::Add { membership: Membership { org, login }, role }) => {
            let orgs::Membership { role, changed } = orgs::add_member(&ctx, &org, &login, role).await?;
            let added = WithRole { organization: org, user: login, role, changed, running: Vec::new() };
            out.answer(&added, |membership| {
                let WithRole { organization, user, role, changed, .. } = membership;
                let was = if *changed { "is" } else { "was already" };
                format!("{user} {was} a member of {organization}, with the role {role}")
            })
        }
        Command::Member(MemberCommand::Role { membership: Membership { org, login }, role }) => {
            let orgs::Membership { role, changed } = orgs::set_role(&ctx, &org, &login, role).await?;
            let begun = Begun { login: &login, token: None, org: Some(&org), above: Some(role) };
            let running = running::find(&ctx, &begun).await?;
            out.answer(&WithRole { organization: org, user: login, role, changed, running }, |membership| {
                let WithRole { organization, user, role, changed, running } = membership;
                let had = if *changed { "has" } else { "had already" };
                running::after(format!("{user} {had} the role {role} in {organization}"), running)
            })
        }
        Command::Member(MemberCommand::Remove(Membership { org, login })) => {
            let changed = orgs::remove_member(&ctx, &org, &login).await?;
            let begun = Begun { login: &login, token: None, org: Some(&org), above: None };
            let running = running::find(&ctx, &begun).await?;
            out.answer(&Changed { organization: org, user: login, changed, running }, |membership| {
                let Changed { organization, user, changed, running } = membership;
                let was = if *changed { "is no longer" } else { "was not" };
                running::after(format!("{user} {was} a member of {organization}"), running)
            })
        }
        Command::Member(MemberCommand::List { org }) => {
            let member = |(user, role)| Member { user, role };
            let members = orgs::members(&ctx, &org).await?.into_iter().map(member).collect();
            out.answer(&Members { organization: org, members }, |members| {
                let row = |member: &Member| vec![member.user.to_string(), member.role.to_string()];
                table(&["USER", "ROLE"], members.members.iter().map(row))
            })
        }
    }
}

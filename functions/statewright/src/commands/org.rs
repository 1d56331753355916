//! `statewright org`.

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::domain::principal::Principal;
use statewright_shared::domain::role::Role;
use statewright_shared::services::identity::{directory, orgs};
use statewright_shared::services::updates::running::Begun;

use super::access::{self, AccessCommand, GrantCommand};
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
    /// Manage the members of an organization and their roles.
    #[command(subcommand)]
    Member(MemberCommand),
    /// Manage the grants of roles on parts of an organization.
    #[command(subcommand)]
    Grant(GrantCommand),
    /// Export or apply the teams and grants of an organization as one document.
    #[command(subcommand)]
    Access(AccessCommand),
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
    /// Updates that need more than the new role.
    running: Vec<Running>,
}

#[derive(Serialize)]
struct Changed {
    organization: OrgName,
    user: Login,
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
        Command::Grant(command) => access::grant(&ctx, command, out).await,
        Command::Access(command) => access::access(&ctx, command, out).await,
        Command::Member(MemberCommand::Add { membership: Membership { org, login }, role }) => {
            let orgs::Membership { role, changed } = orgs::add_member(&ctx, &org, &login, role).await?;
            let added = WithRole { organization: org, user: login, role, changed, running: Vec::new() };
            out.answer(&added, |membership| {
                let WithRole { organization, user, role, changed, .. } = membership;
                let was = if *changed { "is" } else { "was already" };
                format!("{user} {was} a member of {organization} with the role {role}")
            })
        }
        Command::Member(MemberCommand::Role { membership: Membership { org, login }, role }) => {
            let orgs::Membership { role, changed } = orgs::set_role(&ctx, &org, &login, role).await?;
            let begun = Begun {
                login: &login,
                of: &Principal::User,
                token: None,
                org: Some(&org),
                above: Some(role),
            };
            let running = running::find(&ctx, &begun).await?;
            out.answer(&WithRole { organization: org, user: login, role, changed, running }, |membership| {
                let WithRole { organization, user, role, changed, running } = membership;
                let had = if *changed { "has" } else { "already had" };
                running::after(format!("{user} {had} the role {role} in {organization}"), running)
            })
        }
        Command::Member(MemberCommand::Remove(Membership { org, login })) => {
            let changed = orgs::remove_member(&ctx, &org, &login).await?;
            let begun =
                Begun { login: &login, of: &Principal::User, token: None, org: Some(&org), above: None };
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

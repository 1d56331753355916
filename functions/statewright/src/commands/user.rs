//! `statewright user`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use clap::Subcommand;
use serde::Serialize;
use serde_json::json;
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::domain::plural::count;
use statewright_shared::domain::principal::Principal;
use statewright_shared::domain::role::Role;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::layout;
use statewright_shared::services::identity::{invitations, passwords, users};
use statewright_shared::services::updates::running::Begun;
use statewright_shared::wire::access::InvitationLink;
use statewright_shared::wire::audit::parse_time;

use super::running::{self, Running};
use crate::args::{self, Data};
use crate::client::{At, Call, Client};
use crate::data;
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(crate) struct User {
    #[command(flatten)]
    data: Data,
    #[command(subcommand)]
    command: Command,
}

/// The address at which people open a server of one machine.
const HERE: &str = "http://localhost:8080";

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a user. To log in, the user needs an access token: `statewright token create NAME --user
    /// LOGIN`.
    Create {
        /// The name of the user.
        #[arg(value_parser = args::login)]
        login: Login,
        /// An organization to join; may be repeated. The first one owns the stacks that the user names
        /// without an organization.
        #[arg(long = "org", value_name = "NAME", value_parser = args::organization)]
        orgs: Vec<OrgName>,
        /// The role in them: none, view, auditor, outputs, plan, apply, member or admin. From plan on, each role
        /// includes those before it, except auditor. `statewright org member role` changes it.
        #[arg(long, value_name = "ROLE", default_value = "member", value_parser = args::role)]
        role: Role,
    },
    /// List the users.
    List,
    /// Print a link with which a user signs in once, in a browser. It replaces an earlier link of the user.
    Invite {
        /// The name of the user.
        #[arg(value_parser = args::login)]
        login: Login,
        /// The address in the link, at which people open the server [default: http://localhost:8080; with --org that of
        /// your login, which is also the server to ask].
        #[arg(long, value_name = "URL", value_parser = args::server_url)]
        server: Option<ServerUrl>,
        /// When the link expires, from now, such as 12h or 3d.
        #[arg(long, value_name = "DURATION", default_value = "3d", value_parser = args::duration)]
        expires_in: Duration,
        /// Ask the server, as an admin of this organization, instead of opening the store. A login that no user
        /// has becomes a user and a member.
        #[arg(long, value_name = "NAME", value_parser = args::organization, conflicts_with = "expires_in")]
        org: Option<OrgName>,
        /// With --org: the role of a new member, as in `org member add` [default: member].
        #[arg(long, value_name = "ROLE", value_parser = args::role, requires = "org")]
        role: Option<Role>,
        /// With --org: connect to a server on another machine without TLS, although the network can then read the
        /// token [env: STATEWRIGHT_ALLOW_HTTP=true].
        #[arg(long, requires = "org")]
        allow_http: bool,
    },
    /// Set a user's password, for `tofu`, `terraform` and signing in with a browser. Asks for it at a terminal,
    /// and otherwise reads the first line of stdin. New users have no password.
    Password {
        /// The name of the user.
        #[arg(value_parser = args::login)]
        login: Login,
        /// Remove the password. Running servers apply this within a minute.
        #[arg(long)]
        remove: bool,
    },
    /// Remove a user and all their access tokens. Running servers apply this within a minute, and the user's
    /// updates end within five minutes; those still running are listed.
    Remove {
        /// The name of the user.
        #[arg(value_parser = args::login)]
        login: Login,
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    user: Login,
    created: Rfc3339,
    organizations: Vec<OrgName>,
    /// The roles other than `member`, by organization.
    roles: BTreeMap<OrgName, Role>,
    has_password: bool,
}

impl Line {
    fn new(user: layout::User, has_password: bool) -> Self {
        let layout::User { login, created, orgs, roles, .. } = user;
        Self { user: login, created: Rfc3339(created), organizations: orgs, roles, has_password }
    }

    /// The organizations, with the role where it is not `member`.
    fn memberships(&self) -> String {
        let shown = |org: &OrgName| match self.roles.get(org) {
            Some(role) => format!("{org} ({role})"),
            None => org.to_string(),
        };
        self.organizations.iter().map(shown).collect::<Vec<_>>().join(", ")
    }
}

#[derive(Serialize)]
struct Invitation {
    user: Login,
    link: String,
    until: Rfc3339,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WithPassword {
    user: Login,
    has_password: bool,
}

#[derive(Serialize)]
struct Listed {
    users: Vec<Line>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Removed {
    user: Login,
    tokens_ended: usize,
    organizations: Vec<OrgName>,
    running: Vec<Running>,
}

impl User {
    /// Whether the command opens the store itself.
    pub(crate) fn is_the_operators(&self) -> bool {
        !matches!(self.command, Command::Invite { org: Some(_), .. })
    }
}

/// Invites a person to an organization, at a server.
async fn invite_at(at: &At, org: &OrgName, login: Login, role: Role) -> anyhow::Result<Invitation> {
    let client = Client::of_user(at)?;
    let path = ["api", "orgs", org.as_str(), "members", login.as_str(), "invitation"];
    let invited: InvitationLink = client.json(Call::post(path).json(&json!({ "role": role }))).await?;
    let until = parse_time(&invited.expires).context("the server's response has no valid time")?;
    let link = format!("{}{}", client.server(), invited.path);
    Ok(Invitation { user: login, link, until: Rfc3339(until) })
}

pub(crate) async fn run(user: User, out: Output) -> anyhow::Result<()> {
    match user.command {
        Command::Invite { login, server, org: Some(org), role, expires_in: _, allow_http } => {
            let at = At { server, allow_http, ..At::default() };
            let invitation = invite_at(&at, &org, login, role.unwrap_or(Role::Member)).await?;
            out.answer(&invitation, |invitation| invitation.link.clone())
        }
        command => of_store(&user.data, command, out).await,
    }
}

async fn of_store(data: &Data, command: Command, out: Output) -> anyhow::Result<()> {
    let (_folder, ctx) = data::open_beside(data).await?;
    match command {
        Command::Create { login, orgs, role } => {
            let made = users::create(&ctx, &login, &orgs, role).await?;
            out.answer(&Line::new(made, false), |user| {
                let made = format!(
                    "created {}; `statewright token create NAME --user {0}` creates an access token to log \
                     in with",
                    user.user
                );
                match user.organizations.is_empty() {
                    true => format!(
                        "{made}\n{0} is not in an organization yet and has no rights: run `statewright org \
                         member add ORGANIZATION {0}`",
                        user.user
                    ),
                    false => made,
                }
            })
        }
        Command::List => {
            let mut users = Vec::new();
            for user in users::list(&ctx).await? {
                let has_password = passwords::is_set(&ctx, &user.login).await?;
                users.push(Line::new(user, has_password));
            }
            out.answer(&Listed { users }, |listed| {
                let rows = listed.users.iter().map(|user| {
                    let password = if user.has_password { "yes" } else { "no" }.to_owned();
                    vec![user.user.to_string(), user.created.to_string(), password, user.memberships()]
                });
                table(&["USER", "CREATED", "PASSWORD", "ORGANIZATIONS"], rows)
            })
        }
        Command::Invite { login, server, expires_in, .. } => {
            let invited = invitations::invite(&ctx, &login, expires_in).await?;
            let link = format!("{}{}", server.as_ref().map_or(HERE, ServerUrl::as_str), invited.path());
            out.answer(&Invitation { user: login, link, until: Rfc3339(invited.until) }, |invitation| {
                invitation.link.clone()
            })
        }
        Command::Password { login, remove } => {
            if remove {
                passwords::remove(&ctx, &login).await?;
            } else {
                let password = out.ask_for_password(&format!("Password of {login}"))?;
                passwords::set(&ctx, &login, &password).await?;
            }
            out.answer(&WithPassword { user: login, has_password: !remove }, |set| match set.has_password {
                true => format!(
                    "the password of {} is set; running servers reject an earlier one within a minute",
                    set.user
                ),
                false => {
                    format!(
                        "the password of {} is removed; running servers apply this within a minute",
                        set.user
                    )
                }
            })
        }
        Command::Remove { login, yes } => {
            out.confirm(&format!("Remove the user {login} and all their access tokens?"), yes)?;
            let removed = users::remove(&ctx, &login).await?;
            let begun = Begun { login: &login, of: &Principal::User, token: None, org: None, above: None };
            let running = running::find(&ctx, &begun).await?;
            let users::DeletedUser { tokens: tokens_ended, orgs: organizations } = removed;
            out.answer(&Removed { user: login, tokens_ended, organizations, running }, |removed| {
                let message = format!(
                    "removed {} and {}; running servers apply this within a minute",
                    removed.user,
                    count(removed.tokens_ended, "access token")
                );
                running::after(message, &removed.running)
            })
        }
    }
}

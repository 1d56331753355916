//! `statewright user`.

use std::collections::BTreeMap;

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::domain::role::Role;
use statewright_shared::layout::records;
use statewright_shared::services::users;

use crate::args::{self, Data};
use crate::data;
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(crate) struct User {
    #[command(flatten)]
    data: Data,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a user. The user logs in with an access token: `statewright token create NAME --user LOGIN`.
    Create {
        /// The user's name.
        #[arg(value_parser = args::login)]
        login: Login,
        /// An organization to be a member of; may be repeated. The first one owns the stacks that the user names without
        /// one.
        #[arg(long = "org", value_name = "NAME", value_parser = args::organization)]
        orgs: Vec<OrgName>,
        /// What the user may do in them: outputs, plan, apply, member or admin, each of which may do what those before it
        /// may. `statewright org member role` changes it.
        #[arg(long, value_name = "ROLE", default_value = "member", value_parser = args::role)]
        role: Role,
    },
    /// List the users.
    List,
    /// Remove a user, and end all access tokens of the user. Running servers forget these within a minute; an update
    /// that runs ends as it would have.
    Remove {
        /// The user's name.
        #[arg(value_parser = args::login)]
        login: Login,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Serialize)]
struct Line {
    user: Login,
    created: Rfc3339,
    organizations: Vec<OrgName>,
    /// The roles in those where it is another one than `member`.
    roles: BTreeMap<OrgName, Role>,
}

impl From<records::User> for Line {
    fn from(user: records::User) -> Self {
        let records::User { login, created, orgs, roles } = user;
        Self { user: login, created: Rfc3339(created), organizations: orgs, roles }
    }
}

impl Line {
    /// The organizations, each with the role where that is not `member`.
    fn memberships(&self) -> String {
        let shown = |org: &OrgName| match self.roles.get(org) {
            Some(role) => format!("{org} ({role})"),
            None => org.to_string(),
        };
        self.organizations.iter().map(shown).collect::<Vec<_>>().join(", ")
    }
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
}

pub(crate) async fn run(user: User, out: Output) -> anyhow::Result<()> {
    let (_folder, ctx) = data::open_beside(&user.data).await?;
    match user.command {
        Command::Create { login, orgs, role } => {
            let made = users::create(&ctx, &login, &orgs, role).await?;
            out.answer(&Line::from(made), |user| {
                format!(
                    "{} is made; `statewright token create NAME --user {0}` makes an access token to log in with",
                    user.user
                )
            })
        }
        Command::List => {
            let users = users::list(&ctx).await?.into_iter().map(Line::from).collect();
            out.answer(&Listed { users }, |listed| {
                let rows = listed
                    .users
                    .iter()
                    .map(|user| vec![user.user.to_string(), user.created.to_string(), user.memberships()]);
                table(&["USER", "CREATED", "ORGANIZATIONS"], rows)
            })
        }
        Command::Remove { login, yes } => {
            out.confirm(&format!("Remove the user {login} and all access tokens of the user?"), yes)?;
            let removed = users::remove(&ctx, &login).await?;
            let removed = Removed { user: login, tokens_ended: removed.tokens, organizations: removed.orgs };
            out.answer(&removed, |removed| {
                format!(
                    "{} is removed, with {} access tokens; a running server forgets them within a minute",
                    removed.user, removed.tokens_ended
                )
            })
        }
    }
}

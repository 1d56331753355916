//! `statewright user`.

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::domain::names::{Login, OrgName};
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
    /// Make a user. There are no roles: a member may do everything with an organization's stacks. The user logs in with
    /// an access token: `statewright token create NAME --user LOGIN`.
    Create {
        /// The user's name.
        #[arg(value_parser = args::login)]
        login: Login,
        /// An organization to be a member of; may be repeated. The first one owns the stacks that the user names without
        /// one.
        #[arg(long = "org", value_name = "NAME", value_parser = args::organization)]
        orgs: Vec<OrgName>,
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
}

impl From<records::User> for Line {
    fn from(user: records::User) -> Self {
        Self { user: user.login, created: Rfc3339(user.created), organizations: user.orgs }
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
        Command::Create { login, orgs } => {
            let made = users::create(&ctx, &login, &orgs).await?;
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
                let rows = listed.users.iter().map(|user| {
                    let orgs: Vec<&str> = user.organizations.iter().map(OrgName::as_str).collect();
                    vec![user.user.to_string(), user.created.to_string(), orgs.join(", ")]
                });
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

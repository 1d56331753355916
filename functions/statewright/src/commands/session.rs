//! `statewright session`.

use clap::Subcommand;
use serde::Serialize;
use statewright_shared::domain::names::{Login, ProviderName};
use statewright_shared::domain::plural::count;
use statewright_shared::services::identity::sessions;

use crate::args::{self, Data};
use crate::data;
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Session {
    #[command(flatten)]
    data: Data,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the browsers in which a user is signed in.
    List {
        /// The user.
        #[arg(long, value_name = "NAME", default_value = "admin", value_parser = args::login)]
        user: Login,
    },
    /// Sign a user out in a browser, or in all of them. Running servers apply this within a minute.
    Revoke {
        /// The ID of the session, as `session list` shows it.
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// The user.
        #[arg(long, value_name = "NAME", default_value = "admin", value_parser = args::login)]
        user: Login,
        /// All sessions of the user.
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
}

#[derive(Serialize)]
struct Listed {
    sessions: Vec<Line>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    id: String,
    signed_in: Rfc3339,
    until: Rfc3339,
    /// The way in which the user signed in.
    by: &'static str,
    /// The provider; `None` for the other ways.
    provider: Option<ProviderName>,
    browser: String,
}

#[derive(Serialize)]
struct Revoked {
    user: Login,
    ended: usize,
}

pub(crate) async fn run(session: Session, out: Output) -> anyhow::Result<()> {
    let (_folder, ctx) = data::open_beside(&session.data).await?;
    match session.command {
        Command::List { user } => {
            let line = |listed: sessions::Listed| Line {
                id: listed.id,
                signed_in: Rfc3339(listed.record.signed_in),
                until: Rfc3339(listed.record.until),
                by: listed.record.by.as_str(),
                provider: listed.record.by.provider().cloned(),
                browser: listed.record.browser,
            };
            let sessions = sessions::list_of(&ctx, &user).await?.into_iter().map(line).collect();
            out.answer(&Listed { sessions }, |listed| {
                let rows = listed.sessions.iter().map(|one| {
                    let by = one.provider.as_ref().map_or_else(|| one.by.to_owned(), ToString::to_string);
                    let (signed_in, until) = (one.signed_in.to_string(), one.until.to_string());
                    vec![one.id.clone(), signed_in, until, by, one.browser.clone()]
                });
                table(&["ID", "SIGNED IN", "UNTIL", "WITH", "BROWSER"], rows)
            })
        }
        Command::Revoke { id, user, all: _ } => {
            let ended = match &id {
                Some(id) => sessions::end_by_id(&ctx, &user, id).await.map(|()| 1)?,
                None => {
                    // Refuses a user who does not exist.
                    sessions::list_of(&ctx, &user).await?;
                    sessions::end_all(&ctx, &user).await?
                }
            };
            out.answer(&Revoked { user, ended }, |revoked| {
                format!(
                    "ended {} of {}; running servers apply this within a minute",
                    count(revoked.ended, "session"),
                    revoked.user
                )
            })
        }
    }
}

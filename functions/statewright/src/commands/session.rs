//! `statewright session`.

use anyhow::Context as _;
use clap::Subcommand;
use serde::Serialize;
use statewright_shared::domain::names::{Login, OrgName, ProviderName};
use statewright_shared::domain::plural::count;
use statewright_shared::services::identity::sessions;
use statewright_shared::wire::Reason;
use statewright_shared::wire::audit::parse_time;
use statewright_shared::wire::sessions::{self as wire, EndedSessions};

use super::place::{Ask, Place};
use crate::args::{self, Data, OPERATOR, misused};
use crate::client::{Call, Client, Failure};
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Session {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    ask: Ask,
    #[command(subcommand)]
    command: Command,
}

impl Session {
    /// Whether the command opens the store itself.
    pub(crate) fn is_the_operators(&self) -> bool {
        !self.ask.is_given()
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the browsers in which a user is signed in.
    List {
        #[command(flatten)]
        whose: Whose,
    },
    /// Sign a user out in a browser, or in all of them. Running servers apply this within a minute.
    Revoke {
        /// The ID of the session, as `session list` shows it.
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        #[command(flatten)]
        whose: Whose,
        /// All sessions of the user.
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
}

#[derive(Debug, clap::Args)]
struct Whose {
    /// The user [default: admin; with --server yourself].
    #[arg(long, value_name = "NAME", value_parser = args::login)]
    user: Option<Login>,
    /// With --server and --user: the organization that you administer, in which the user is.
    #[arg(long, value_name = "NAME", value_parser = args::organization, requires = "user")]
    org: Option<OrgName>,
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
    by: String,
    /// The provider; `None` for the other ways.
    provider: Option<ProviderName>,
    browser: String,
}

#[derive(Serialize)]
struct Revoked {
    user: Login,
    ended: usize,
}

impl From<sessions::Listed> for Line {
    fn from(listed: sessions::Listed) -> Self {
        Self {
            id: listed.id,
            signed_in: Rfc3339(listed.record.signed_in),
            until: Rfc3339(listed.record.until),
            by: listed.record.by.as_str().to_owned(),
            provider: listed.record.by.provider().cloned(),
            browser: listed.record.browser,
        }
    }
}

impl TryFrom<wire::Session> for Line {
    type Error = anyhow::Error;

    fn try_from(session: wire::Session) -> anyhow::Result<Self> {
        let wire::Session { id, signed_in, until, by, provider, browser } = session;
        let time = |text: &str| {
            parse_time(text).map(Rfc3339).context("the server's response has no valid time of a session")
        };
        let provider = provider.map(|provider| ProviderName::parse(&provider)).transpose();
        Ok(Self {
            id,
            signed_in: time(&signed_in)?,
            until: time(&until)?,
            by,
            provider: provider.context("the server's response has no valid name of a provider")?,
            browser,
        })
    }
}

/// Whose sessions a server shows and ends.
enum Asked {
    /// The caller's.
    Own,
    /// Those of a member of an organization.
    OfMember(OrgName, Login),
}

impl Whose {
    fn asked(self) -> anyhow::Result<Asked> {
        match (self.org, self.user) {
            (Some(org), Some(user)) => Ok(Asked::OfMember(org, user)),
            (_, None) => Ok(Asked::Own),
            (None, Some(_)) => Err(misused(
                "with --server, name the organization of the user: --org NAME. Without --user, the sessions \
                 are yours",
            )),
        }
    }

    /// The user whose sessions the operator means.
    fn of_store(self) -> anyhow::Result<Login> {
        if self.org.is_some() {
            return Err(misused("--org is only for --server"));
        }
        self.user.map_or_else(|| args::login(OPERATOR), Ok)
    }
}

impl Asked {
    /// The path of the sessions in the API.
    fn path(&self) -> Vec<&str> {
        match self {
            Self::Own => vec!["api", "user", "sessions"],
            Self::OfMember(org, user) => {
                vec!["api", "orgs", org.as_str(), "members", user.as_str(), "sessions"]
            }
        }
    }

    async fn list(&self, client: &Client) -> anyhow::Result<Vec<Line>> {
        let listed: wire::Sessions = client.json(Call::get(self.path())).await?;
        listed.sessions.into_iter().map(Line::try_from).collect()
    }

    async fn end(&self, client: &Client, id: &str) -> Result<(), Failure> {
        let path = self.path().into_iter().chain([id]);
        client.send(Call::delete(path)).await.map(drop)
    }

    /// Ends a session, or without an ID all of them, and returns whose and how many.
    async fn revoke(self, client: &Client, id: Option<&str>) -> anyhow::Result<Revoked> {
        let ended = match (id, &self) {
            (Some(id), _) => {
                self.end(client, id).await?;
                1
            }
            (None, Self::OfMember(..)) => {
                let ended: EndedSessions = client.json(Call::delete(self.path())).await?;
                ended.ended
            }
            (None, Self::Own) => {
                let mut ended = 0;
                for session in self.list(client).await? {
                    match self.end(client, &session.id).await {
                        Ok(()) => ended += 1,
                        // It has ended since it was listed.
                        Err(failure) if failure.reason() == Some(Reason::SessionNotFound) => {}
                        Err(failure) => return Err(failure.into()),
                    }
                }
                ended
            }
        };
        let user = match self {
            Self::Own => client.own_login().await?,
            Self::OfMember(_, user) => user,
        };
        Ok(Revoked { user, ended })
    }
}

pub(crate) async fn run(session: Session, out: Output) -> anyhow::Result<()> {
    let Session { data, ask, command } = session;
    match command {
        Command::List { whose } => {
            let sessions: Vec<Line> = match ask.open(&data).await? {
                Place::Store(store) => {
                    let listed = sessions::list_of(&store.ctx, &whose.of_store()?).await?;
                    listed.into_iter().map(Line::from).collect()
                }
                Place::Server(client) => whose.asked()?.list(&client).await?,
            };
            out.answer(&Listed { sessions }, |listed| {
                let rows = listed.sessions.iter().map(|one| {
                    let by = one.provider.as_ref().map_or_else(|| one.by.clone(), ToString::to_string);
                    let (signed_in, until) = (one.signed_in.to_string(), one.until.to_string());
                    vec![one.id.clone(), signed_in, until, by, one.browser.clone()]
                });
                table(&["ID", "SIGNED IN", "UNTIL", "WITH", "BROWSER"], rows)
            })
        }
        Command::Revoke { id, whose, all: _ } => {
            let revoked = match ask.open(&data).await? {
                Place::Store(store) => {
                    let user = whose.of_store()?;
                    let ended = match &id {
                        Some(id) => sessions::end_by_id(&store.ctx, &user, id).await.map(|()| 1)?,
                        None => {
                            // Refuses a user who does not exist.
                            sessions::list_of(&store.ctx, &user).await?;
                            sessions::end_all(&store.ctx, &user).await?
                        }
                    };
                    Revoked { user, ended }
                }
                Place::Server(client) => whose.asked()?.revoke(&client, id.as_deref()).await?,
            };
            out.answer(&revoked, |revoked| {
                format!(
                    "ended {} of {}; running servers apply this within a minute",
                    count(revoked.ended, "session"),
                    revoked.user
                )
            })
        }
    }
}

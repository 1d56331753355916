//! `statewright token`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Subcommand;
use serde::Serialize;
use serde_json::json;
use statewright_shared::adapters::SystemClock;
use statewright_shared::context::Context;
use statewright_shared::domain::access::Scope;
use statewright_shared::domain::names::{Login, OrgName, TeamName, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::layout::TokenEntry;
use statewright_shared::ports::{Clock as _, Timestamp};
use statewright_shared::services::identity::last_use::UsedToken;
use statewright_shared::services::identity::tokens::{self, Issued, NewToken};
use statewright_shared::services::updates::running::Begun;
use statewright_shared::wire::audit::parse_time;
use statewright_shared::wire::tokens::{self as wire, CreatedToken, RotatedToken};

use super::place::{Ask, Place, Store};
use super::running::{self, Running};
use crate::args::{self, Data, OPERATOR, misused};
use crate::certificate;
use crate::client::{Call, Client};
use crate::output::{Output, Rfc3339, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Token {
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    ask: Ask,
    #[command(subcommand)]
    command: Command,
}

impl Token {
    /// Whether the command opens the store itself.
    pub(crate) fn is_the_operators(&self) -> bool {
        !self.ask.is_given()
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a token, which is printed only once: the server stores only its hash. Or register a client
    /// certificate, which replaces a token for `tofu` and `terraform`.
    Create {
        /// The name of the token, as shown in histories.
        #[arg(value_parser = args::token_name)]
        name: TokenName,
        #[command(flatten)]
        owner: Owner,
        /// When the token expires, from now, such as 12h or 90d [default: never, or with its certificate].
        #[arg(long, value_name = "DURATION", value_parser = args::duration)]
        expires_in: Option<Duration>,
        /// Register this client certificate instead, a PEM file from any issuer. The private key is not
        /// needed.
        #[arg(long, value_name = "FILE", conflicts_with_all = ["org", "description"])]
        certificate: Option<PathBuf>,
        /// The highest role of requests with this token: view, auditor, outputs, plan, apply, member or admin
        /// [default: no limit beyond the owner's role; member for an organization's token, which has this role].
        #[arg(long, value_name = "ROLE", value_parser = args::role)]
        may: Option<Role>,
        /// The only part of an organization in which the token works, such as `web/*`, web/dev or `tag:env=dev`
        /// [default: all of it].
        #[arg(long, value_name = "SCOPE", value_parser = args::scope, conflicts_with = "certificate")]
        on: Option<Scope>,
        /// What the token is for, as lists show it.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
    /// List the tokens of a user with client certificates, of an organization, or of a team. Shows fingerprints,
    /// not the tokens themselves.
    List {
        #[command(flatten)]
        owner: Owner,
    },
    /// Replace the secret of a token, and print the new one, which is shown only once. The token keeps its name,
    /// and its running updates continue.
    Rotate {
        /// The name of the token.
        #[arg(value_parser = args::token_name)]
        name: TokenName,
        #[command(flatten)]
        owner: Owner,
        /// How long the old secret still works, such as 1h [default: it ends within a minute].
        #[arg(long, value_name = "DURATION", value_parser = args::duration)]
        grace: Option<Duration>,
        /// When the token expires, from now, such as 12h or 90d [default: as before].
        #[arg(long, value_name = "DURATION", value_parser = args::duration)]
        expires_in: Option<Duration>,
    },
    /// Revoke a token. Running servers apply it within a minute, and updates begun with it end within five
    /// minutes; those still running are listed.
    Revoke {
        /// The name of the token.
        #[arg(value_parser = args::token_name)]
        name: TokenName,
        #[command(flatten)]
        owner: Owner,
    },
}

#[derive(Debug, clap::Args)]
struct Owner {
    /// The owner of the token [default: admin; with --server yourself].
    #[arg(long, value_name = "NAME", value_parser = args::login)]
    user: Option<Login>,
    /// The organization that owns the token, instead of a user: for machines. With --server and --user: the
    /// organization that you administer, in which the user is. You list and revoke tokens that work there alone.
    #[arg(long, value_name = "NAME", value_parser = args::organization)]
    org: Option<OrgName>,
    /// The team of the organization that owns the token.
    #[arg(
        long,
        value_name = "NAME",
        value_parser = args::team_name,
        requires = "org",
        conflicts_with = "user"
    )]
    team: Option<TeamName>,
}

impl Owner {
    /// The owner that the operator means.
    fn of_store(self) -> anyhow::Result<tokens::Owner> {
        if self.user.is_some() && self.org.is_some() {
            return Err(misused("--user and --org together are only for --server: leave out one of them"));
        }
        Ok(match (self.org, self.team) {
            (Some(org), Some(team)) => tokens::Owner::Team(org, team),
            (Some(org), None) => tokens::Owner::Organization(org),
            (None, _) => tokens::Owner::User(self.user.map_or_else(|| args::login(OPERATOR), Ok)?),
        })
    }

    /// The tokens that a server's user means.
    async fn at_server(self, client: &Client) -> anyhow::Result<Asked> {
        let owner = match (self.user, self.org, self.team) {
            (Some(user), Some(org), _) => {
                return Ok(Asked { owner: tokens::Owner::User(user), member_of: Some(org) });
            }
            (Some(_), None, _) => {
                return Err(misused(
                    "with --server, name the organization of the user: --org NAME. Without --user, the tokens are \
                     yours",
                ));
            }
            (None, Some(org), Some(team)) => tokens::Owner::Team(org, team),
            (None, Some(org), None) => tokens::Owner::Organization(org),
            (None, None, _) => tokens::Owner::User(client.own_login().await?),
        };
        Ok(Asked { owner, member_of: None })
    }
}

/// Whose tokens a server is asked about.
struct Asked {
    owner: tokens::Owner,
    /// The organization whose admin asks about a member's tokens; `None` for tokens that the caller manages.
    member_of: Option<OrgName>,
}

impl Asked {
    /// Refuses what an admin does not do with the tokens of a member.
    fn managed(self) -> anyhow::Result<Self> {
        match self.member_of {
            None => Ok(self),
            Some(_) => Err(misused(
                "at a server, an admin lists and revokes the tokens of a member, and members make their own: leave out \
                 --user",
            )),
        }
    }

    /// The command that lists the tokens, without the server.
    fn list_command(&self) -> String {
        let list = "statewright token list";
        match (&self.owner, &self.member_of) {
            (tokens::Owner::User(user), Some(org)) => format!("{list} --user {user} --org {org}"),
            (tokens::Owner::User(_), None) => list.to_owned(),
            (tokens::Owner::Organization(org), _) => format!("{list} --org {org}"),
            (tokens::Owner::Team(org, team), _) => format!("{list} --org {org} --team {team}"),
        }
    }
}

/// The owner of a token, in answers.
#[derive(Debug, Clone, Serialize)]
struct Owned {
    /// `None` for a machine.
    user: Option<Login>,
    /// The organization of a machine.
    organization: Option<OrgName>,
    /// The team of a machine.
    team: Option<TeamName>,
}

impl From<&tokens::Owner> for Owned {
    fn from(owner: &tokens::Owner) -> Self {
        let (user, organization, team) = match owner.clone() {
            tokens::Owner::User(user) => (Some(user), None, None),
            tokens::Owner::Organization(org) => (None, Some(org), None),
            tokens::Owner::Team(org, team) => (None, Some(org), Some(team)),
        };
        Self { user, organization, team }
    }
}

impl Owned {
    /// For people.
    fn describe(&self) -> String {
        match (&self.user, &self.organization, &self.team) {
            (Some(user), ..) => user.to_string(),
            (None, Some(org), Some(team)) => format!("the team {team} of {org}"),
            (None, Some(org), None) => org.to_string(),
            (None, None, _) => String::new(),
        }
    }
}

/// A new token, or a newly registered client certificate.
#[derive(Serialize)]
struct Created {
    name: TokenName,
    #[serde(flatten)]
    owner: Owned,
    token: Option<String>,
    /// The certificate's fingerprint: the SHA-256 of its DER form, in hex.
    certificate: Option<String>,
}

#[derive(Serialize)]
struct Listed {
    tokens: Vec<Line>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    name: TokenName,
    created: Rfc3339,
    expires: Option<Rfc3339>,
    /// When it was last used, to the hour; `None` for never.
    last_used: Option<Rfc3339>,
    certificate: Option<String>,
    /// The highest role; `None` for no limit beyond the owner's role.
    may: Option<Role>,
    /// The only part of each organization in which it works; `None` for all of it.
    on: Option<Scope>,
    description: String,
    /// The login of the creator; `None` for the operator.
    created_by: Option<Login>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rotated {
    name: TokenName,
    #[serde(flatten)]
    owner: Owned,
    token: String,
    expires: Option<Rfc3339>,
    /// When the old secret ends; `None` if it has ended.
    previous_expires: Option<Rfc3339>,
}

#[derive(Serialize)]
struct Revoked {
    name: TokenName,
    #[serde(flatten)]
    owner: Owned,
    /// `None` if a server was asked.
    running: Option<Vec<Running>>,
}

impl From<UsedToken> for Line {
    fn from(UsedToken { entry: TokenEntry { token, certificate, .. }, used }: UsedToken) -> Self {
        Self {
            name: token.name,
            created: Rfc3339(token.created),
            expires: token.expires.map(Rfc3339),
            last_used: used.map(Rfc3339),
            certificate,
            may: token.may,
            on: token.within,
            description: token.description,
            created_by: token.created_by,
        }
    }
}

/// A time of a server, in seconds since the epoch; 0 for none.
fn at(seconds: i64) -> Option<Rfc3339> {
    (seconds != 0).then(|| Rfc3339(Timestamp::from_seconds(seconds)))
}

impl TryFrom<wire::Token> for Line {
    type Error = anyhow::Error;

    fn try_from(token: wire::Token) -> anyhow::Result<Self> {
        let created = parse_time(&token.created).context("the server's response has no valid time")?;
        let created_by = token.created_by.map(|login| Login::parse(&login)).transpose();
        Ok(Self {
            name: TokenName::parse(&token.name).context("the server's response has no valid name")?,
            created: Rfc3339(created),
            expires: at(token.expires),
            last_used: at(token.last_used),
            certificate: None,
            may: token.role.map(|role| role.id),
            on: token.on,
            description: token.description,
            created_by: created_by.context("the server's response has no valid login")?,
        })
    }
}

/// What a new token shall be.
struct New {
    name: TokenName,
    expires_in: Option<Duration>,
    may: Option<Role>,
    on: Option<Scope>,
    description: String,
}

/// What changes in a rotation.
struct Rotation {
    grace: Option<Duration>,
    expires_in: Option<Duration>,
}

/// Tokens at a server.
struct AtServer<'a> {
    client: &'a Client,
    asked: &'a Asked,
    /// The option that names the server, for another command line.
    server: &'a str,
}

impl AtServer<'_> {
    /// The path of the tokens in the API, with these segments appended.
    fn path<'b>(&'b self, more: &[&'b str]) -> Vec<&'b str> {
        let path = match (&self.asked.owner, &self.asked.member_of) {
            (tokens::Owner::User(user), Some(org)) => {
                vec!["api", "orgs", org.as_str(), "members", user.as_str(), "tokens"]
            }
            (tokens::Owner::User(_), None) => vec!["api", "user", "tokens"],
            (tokens::Owner::Organization(org), _) => vec!["api", "orgs", org.as_str(), "tokens"],
            (tokens::Owner::Team(org, team), _) => {
                vec!["api", "orgs", org.as_str(), "teams", team.as_str(), "tokens"]
            }
        };
        [path.as_slice(), more].concat()
    }

    async fn list(&self) -> anyhow::Result<Vec<wire::Token>> {
        let call = Call::get(self.path(&[])).query("filter", "all");
        Ok(self.client.pages(call, "tokens", None).await?.read)
    }

    /// The token with this name. The API knows it by its ID.
    async fn find(&self, name: &TokenName) -> anyhow::Result<wire::Token> {
        let found = self.list().await?.into_iter().find(|token| token.name == name.as_str());
        found.with_context(|| {
            let (owner, list) = (Owned::from(&self.asked.owner).describe(), self.asked.list_command());
            let only = self.asked.member_of.as_ref().map(|org| format!(" that works in {org} alone"));
            let (only, server) = (only.unwrap_or_default(), self.server);
            format!("{owner} has no token {name}{only}: `{list}{server}` lists the tokens")
        })
    }

    async fn create(&self, new: New) -> anyhow::Result<String> {
        let New { name, expires_in, may, on, description } = new;
        let expires = expires_in.map(|duration| SystemClock.now().plus(duration).seconds());
        let mut body = json!({ "name": name, "description": description, "expires": expires, "on": on });
        if let Some(may) = may {
            if matches!(self.asked.owner, tokens::Owner::Team(..)) {
                return Err(misused(
                    "at a server, a team's token has the rights of the team: leave out --may",
                ));
            }
            body["roleID"] = json!(may);
        }
        let created: CreatedToken = self.client.json(Call::post(self.path(&[])).json(&body)).await?;
        Ok(created.token_value)
    }

    async fn rotate(&self, name: TokenName, how: &Rotation) -> anyhow::Result<Rotated> {
        let found = self.find(&name).await?;
        let grace = how.grace.map(|grace| grace.as_secs());
        let expires = how.expires_in.map(|duration| SystemClock.now().plus(duration).seconds());
        let body = json!({ "graceSeconds": grace, "expires": expires });
        let call = Call::post(self.path(&[found.id.as_str(), "rotate"])).json(&body);
        let rotated: RotatedToken = self.client.json(call).await?;
        Ok(Rotated {
            name,
            owner: Owned::from(&self.asked.owner),
            token: rotated.token_value,
            expires: at(expires.unwrap_or(found.expires)),
            previous_expires: at(rotated.previous_expires),
        })
    }

    async fn revoke(&self, name: &TokenName) -> anyhow::Result<()> {
        let found = self.find(name).await?;
        self.client.send(Call::delete(self.path(&[found.id.as_str()]))).await?;
        Ok(())
    }
}

async fn create_in(store: &Store, owner: tokens::Owner, new: New) -> anyhow::Result<String> {
    let New { name, expires_in, may, on, description } = new;
    let may = match owner {
        tokens::Owner::Organization(_) => may.or(Some(Role::Member)),
        tokens::Owner::User(_) | tokens::Owner::Team(..) => may,
    };
    let new = NewToken {
        may,
        within: on,
        expires: expires_in.map(|duration| store.ctx.now().plus(duration)),
        description,
        ..NewToken::new(owner, name)
    };
    Ok(tokens::issue(&store.ctx, new).await?.secret)
}

async fn rotate_in(
    store: &Store,
    owner: &tokens::Owner,
    name: TokenName,
    how: &Rotation,
) -> anyhow::Result<Rotated> {
    let expires = how.expires_in.map(|duration| store.ctx.now().plus(duration));
    let rotated = tokens::rotate(&store.ctx, owner, &name, how.grace.unwrap_or_default(), expires).await?;
    let Issued { secret, entry } = rotated;
    Ok(Rotated {
        name,
        owner: Owned::from(owner),
        token: secret,
        expires: entry.token.expires.map(Rfc3339),
        previous_expires: entry.former.map(|former| Rfc3339(former.until)),
    })
}

/// Ends a token, and returns what still runs with it.
async fn revoke_in(store: &Store, owner: &tokens::Owner, name: &TokenName) -> anyhow::Result<Vec<Running>> {
    tokens::revoke(&store.ctx, owner, name).await?;
    let (login, of) = (owner.login(), owner.principal());
    let begun = Begun { login: &login, of: &of, token: Some(name), org: None, above: None };
    Ok(running::find(&store.ctx, &begun).await?)
}

pub(crate) async fn run(token: Token, out: Output) -> anyhow::Result<()> {
    let Token { data, ask, command } = token;
    let place = ask.open(&data).await?;
    let server = ask.words();
    match command {
        Command::Create { name, owner, expires_in, may, certificate: None, on, description } => {
            let description = description.unwrap_or_default();
            let new = New { name: name.clone(), expires_in, may, on, description };
            let (owner, secret) = match &place {
                Place::Store(store) => {
                    let owner = owner.of_store()?;
                    let owned = Owned::from(&owner);
                    (owned, create_in(store, owner, new).await?)
                }
                Place::Server(client) => {
                    let asked = owner.at_server(client).await?.managed()?;
                    let secret = AtServer { client, asked: &asked, server: &server }.create(new).await?;
                    (Owned::from(&asked.owner), secret)
                }
            };
            let created = Created { name, owner, token: Some(secret.clone()), certificate: None };
            out.answer(&created, |_| secret)
        }
        Command::Create { name, owner, expires_in, may, certificate: Some(file), on: _, description: _ } => {
            let Place::Store(store) = &place else {
                return Err(misused("only the operator registers certificates: leave out --server"));
            };
            register(&store.ctx, owner.user, name, &file, may, expires_in, out).await
        }
        Command::List { owner } => list(&place, owner, &server, out).await,
        Command::Rotate { name, owner, grace, expires_in } => {
            let how = Rotation { grace, expires_in };
            let rotated = match &place {
                Place::Store(store) => rotate_in(store, &owner.of_store()?, name, &how).await?,
                Place::Server(client) => {
                    let asked = owner.at_server(client).await?.managed()?;
                    AtServer { client, asked: &asked, server: &server }.rotate(name, &how).await?
                }
            };
            out.answer(&rotated, |rotated| rotated.token.clone())
        }
        Command::Revoke { name, owner } => {
            let (owner, running) = match &place {
                Place::Store(store) => {
                    let owner = owner.of_store()?;
                    let running = revoke_in(store, &owner, &name).await?;
                    (owner, Some(running))
                }
                Place::Server(client) => {
                    let asked = owner.at_server(client).await?;
                    AtServer { client, asked: &asked, server: &server }.revoke(&name).await?;
                    (asked.owner, None)
                }
            };
            out.answer(&Revoked { name, owner: Owned::from(&owner), running }, |revoked| {
                let message = format!(
                    "{} of {} is revoked; running servers apply this within a minute",
                    revoked.name,
                    revoked.owner.describe()
                );
                running::after(message, revoked.running.as_deref().unwrap_or_default())
            })
        }
    }
}

/// Registers a client certificate instead of a token.
async fn register(
    ctx: &Context,
    user: Option<Login>,
    name: TokenName,
    file: &Path,
    may: Option<Role>,
    expires_in: Option<Duration>,
    out: Output,
) -> anyhow::Result<()> {
    let user = user.map_or_else(|| args::login(OPERATOR), Ok)?;
    let owner = Owned::from(&tokens::Owner::User(user.clone()));
    let read = certificate::read(file)?;
    let entry = tokens::create_certificate(ctx, &user, &name, &read, may, expires_in).await?;
    let expires = shown(entry.token.expires);
    out.answer(&Created { name, owner, token: None, certificate: entry.certificate }, |created| {
        format!(
            "registered the certificate in {2} as {0} of {1}, until {expires}",
            created.name,
            user,
            file.display()
        )
    })
}

async fn list(place: &Place, owner: Owner, server: &str, out: Output) -> anyhow::Result<()> {
    let tokens: Vec<Line> = match place {
        Place::Store(store) => {
            let tokens = tokens::list_all(&store.ctx, &owner.of_store()?).await?;
            tokens.into_iter().map(Line::from).collect()
        }
        Place::Server(client) => {
            let asked = owner.at_server(client).await?;
            let tokens = AtServer { client, asked: &asked, server }.list().await?;
            tokens.into_iter().map(Line::try_from).collect::<anyhow::Result<_>>()?
        }
    };
    out.answer(&Listed { tokens }, describe)
}

fn describe(listed: &Listed) -> String {
    let rows = listed.tokens.iter().map(|token| {
        let certificate = token.certificate.clone().unwrap_or_default();
        let at = |time: Option<Rfc3339>| shown(time.map(|at| at.0));
        let may = token.may.map_or_else(|| "as its owner".to_owned(), |may| may.to_string());
        vec![
            token.name.to_string(),
            token.created.to_string(),
            at(token.expires),
            at(token.last_used),
            may,
            token.on.as_ref().map_or_else(|| "*".to_owned(), Scope::to_string),
            certificate,
            token.description.clone(),
        ]
    });
    let head = ["NAME", "CREATED", "EXPIRES", "LAST USED", "ROLE", "ON", "CERTIFICATE", "DESCRIPTION"];
    table(&head, rows)
}

fn shown(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "never".to_owned(), |at| Rfc3339(at).to_string())
}

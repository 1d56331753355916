//! `statewright login`, `logout`, `whoami`.

use anyhow::{Context as _, ensure};
use serde::Serialize;
use serde_json::Value;
use statewright_shared::domain::server_url::ServerUrl;

use crate::args;
use crate::client::{At, Call, Client, Logins, Oidc};
use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct Login {
    #[command(flatten)]
    at: At,
    /// The server, such as https://state.example.com [default: STATEWRIGHT_URL, else the server of the last
    /// login].
    #[arg(value_name = "URL", value_parser = args::server_url, conflicts_with = "server")]
    url: Option<ServerUrl>,
    #[command(flatten)]
    oidc: Oidc,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Logout {
    #[command(flatten)]
    at: At,
    /// The server [default: STATEWRIGHT_URL, else the server of the last login].
    #[arg(value_name = "URL", value_parser = args::server_url, conflicts_with = "server")]
    url: Option<ServerUrl>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Whoami {
    #[command(flatten)]
    at: At,
}

/// The user that a token belongs to, at a server.
#[derive(Serialize)]
struct Who {
    user: String,
    server: String,
    organizations: Vec<String>,
    /// Where the token was found.
    token: &'static str,
}

async fn who(client: &Client) -> anyhow::Result<Who> {
    let user: Value = client.json(Call::get(["api", "user"])).await?;
    let login = |of: &Value| Some(of.get("githubLogin")?.as_str()?.to_owned());
    let organizations = user.get("organizations").and_then(Value::as_array).into_iter().flatten();
    Ok(Who {
        user: login(&user).context("the server's response does not name the owner of the token")?,
        server: client.server().to_string(),
        organizations: organizations.filter_map(login).collect(),
        token: client.token_from(),
    })
}

impl Who {
    fn describe(&self) -> String {
        let of = match &self.organizations[..] {
            [] => {
                "not in an organization yet: ask the operator to run `statewright org member add`".to_owned()
            }
            some => format!("member of {}", some.join(", ")),
        };
        format!("{} at {}, {of}", self.user, self.server)
    }
}

/// Stores a token for one server, after the server accepted it.
pub(crate) async fn login(login: Login, out: Output) -> anyhow::Result<()> {
    let at = At { server: login.url.or(login.at.server), ..login.at };
    let server = Client::server_of_user(&at)?;
    let of_variable = std::env::var("STATEWRIGHT_TOKEN").ok().filter(|token| !token.is_empty());
    let token = match (login.oidc.exchange(&at).await?, of_variable) {
        (Some((_, token)), _) => token.as_str().to_owned(),
        (None, Some(token)) => token,
        (None, None) => out.ask_for_secret(&format!("Access token for {server}"))?,
    };
    let token = token.trim();
    ensure!(!token.is_empty(), "no token given: type it, pass it on stdin, or set STATEWRIGHT_TOKEN");
    let client = Client::with_token(&server, token)?;
    let who = who(&client).await?;
    let mut logins = Logins::read()?;
    logins.add(&server, token);
    let file = logins.write()?;
    out.answer(&who, |who| {
        format!("logged in as {}; the token is stored in {}", who.describe(), file.display())
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LoggedOut {
    server: String,
    was_logged_in: bool,
}

pub(crate) async fn logout(logout: Logout, out: Output) -> anyhow::Result<()> {
    let at = At { server: logout.url.or(logout.at.server), ..logout.at };
    let server = Client::server_of_user(&at)?;
    let mut logins = Logins::read()?;
    let was_logged_in = logins.remove(&server);
    if was_logged_in {
        logins.write()?;
    }
    out.answer(&LoggedOut { server: server.to_string(), was_logged_in }, |it| match it.was_logged_in {
        true => format!(
            "logged out of {}; the token itself stays valid until `statewright token revoke`",
            it.server
        ),
        false => format!("you were not logged in to {}", it.server),
    })
}

pub(crate) async fn whoami(whoami: Whoami, out: Output) -> anyhow::Result<()> {
    let who = who(&Client::open(&whoami.at)?).await?;
    out.answer(&who, |who| format!("{}, with the token from {}", who.describe(), who.token))
}

//! `statewright login`, `logout`, `whoami`.

use std::env;
use std::process::Stdio;

use anyhow::{Context as _, ensure};
use serde::Serialize;
use serde_json::Value;
use statewright_shared::adapters::SystemClock;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::ports::Clock as _;
use statewright_shared::services::identity::tokens::{TOKEN_PREFIX, id_of};
use tokio::process::Command;

use crate::args;
use crate::client::{At, Call, Client, CodeLogin, Login as Stored, Logins, Oidc, ShortLived};
use crate::output::{Output, Rfc3339};

#[derive(Debug, clap::Args)]
pub(crate) struct Login {
    #[command(flatten)]
    at: At,
    /// The server, such as https://state.example.com [default: STATEWRIGHT_URL, else the server of the last
    /// login].
    #[arg(value_name = "URL", value_parser = args::server_url, conflicts_with = "server")]
    url: Option<ServerUrl>,
    /// Print the address of the login page, and ask for the code that it shows. For a machine without a
    /// browser: open the page on another one.
    #[arg(long, conflicts_with = "shown")]
    no_browser: bool,
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
            [] => "not in an organization yet: ask an admin of one to add you".to_owned(),
            some => format!("member of {}", some.join(", ")),
        };
        format!("{} at {}, {of}", self.user, self.server)
    }
}

/// Stores a token for one server, after the server accepted it.
pub(crate) async fn login(login: Login, out: Output) -> anyhow::Result<()> {
    let at = At { server: login.url.or(login.at.server), ..login.at };
    let server = Client::server_of_user(&at)?;
    let of_variable = env::var("STATEWRIGHT_TOKEN").ok().filter(|token| !token.is_empty());
    let stored = match (login.oidc.exchange(&at).await?, of_variable) {
        (Some((_, given)), _) => Stored::until(&given.access_token, given.expires(SystemClock.now())),
        (None, Some(token)) => Stored::with(token.trim()),
        (None, None) if out.can_ask() => in_person(&server, login.no_browser, out).await?,
        (None, None) => Stored::with(out.ask_for_secret("Access token")?.trim()),
    };
    let token = stored.token();
    ensure!(!token.is_empty(), "no token given: type it, pass it on stdin, or set STATEWRIGHT_TOKEN");
    let client = Client::with_token(&server, token)?;
    let who = who(&client).await?;
    let ends =
        stored.expires().map(|expires| format!(", and expires at {}", Rfc3339(expires))).unwrap_or_default();
    let mut logins = Logins::read()?;
    logins.add(&server, stored);
    let file = logins.write()?;
    out.answer(&who, |who| {
        format!("logged in as {}; the token is stored in {}{ends}", who.describe(), file.display())
    })
}

/// Lets the person at this terminal allow the login in a browser, on this machine or on another one.
async fn in_person(server: &ServerUrl, no_browser: bool, out: Output) -> anyhow::Result<Stored> {
    let login = CodeLogin::begin(server)?;
    let given = if no_browser || !has_browser() {
        out.note(format_args!("Open this page in a browser, on any machine:\n\n  {}\n", login.page()));
        let code = out.ask_for_secret("The code that the page shows, or an access token")?;
        let code = code.trim();
        if code.is_empty() || code.starts_with(TOKEN_PREFIX) {
            return Ok(Stored::with(code));
        }
        login.redeem(code).await?
    } else {
        let listening = login.listen().await?;
        open_browser(&listening.page);
        out.note(format_args!(
            "Allow the login on this page. If your browser does not open it, open it yourself on this machine:\n\n  \
             {}\n\nNo browser on this machine? Stop this with Ctrl-C, and add --no-browser.",
            listening.page
        ));
        listening.finish().await?
    };
    Ok(Stored::given(&given.access_token, given.expires(SystemClock.now())))
}

/// Whether a browser can be opened that reaches this machine.
fn has_browser() -> bool {
    let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let has_screen = cfg!(target_os = "macos") || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    is_set("BROWSER") || (has_screen && !is_set("SSH_CONNECTION"))
}

/// Opens a page with the program that BROWSER names, or with that of the system. The page is printed too, so
/// a failure is not reported.
fn open_browser(page: &str) {
    let named = env::var("BROWSER").ok();
    let named = named.as_deref().and_then(|programs| programs.split(':').find(|program| !program.is_empty()));
    let of_system = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(named.unwrap_or(of_system));
    let _ = command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LoggedOut {
    server: String,
    was_logged_in: bool,
    /// Whether the token was ended at the server too.
    revoked: bool,
}

pub(crate) async fn logout(logout: Logout, out: Output) -> anyhow::Result<()> {
    let at = At { server: logout.url.or(logout.at.server), ..logout.at };
    let server = Client::server_of_user(&at)?;
    let mut logins = Logins::read()?;
    let login = logins.remove(&server);
    if login.is_some() {
        logins.write()?;
    }
    let short_lived = ShortLived::forget(&server).map(|short_lived| short_lived.token);
    let revoked = match &login {
        Some(login) => revoke(&server, login, short_lived, out).await,
        None => false,
    };
    let answer = LoggedOut { server: server.to_string(), was_logged_in: login.is_some(), revoked };
    out.answer(&answer, |it| match (it.was_logged_in, it.revoked) {
        (true, true) => format!("logged out of {}; the token no longer works", it.server),
        (true, false) => format!(
            "logged out of {}; the token stays valid until it expires, or until you revoke it at \
             /user/settings/tokens",
            it.server
        ),
        (false, _) => format!("you were not logged in to {}", it.server),
    })
}

/// Ends the tokens of a login at the server: those that others gave may be used elsewhere too. Returns
/// whether the login's own token ended.
async fn revoke(server: &ServerUrl, login: &Stored, short_lived: Option<String>, out: Output) -> bool {
    let Ok(client) = Client::with_token(server, login.token()) else { return false };
    let end = async |token: &str| {
        let id = id_of(token);
        client.send(Call::delete(["api", "user", "tokens", id.as_str()]).repeatable()).await
    };
    if let Some(short_lived) = short_lived.filter(|token| token != login.token()) {
        // It ends within the hour.
        let _ = end(&short_lived).await;
    }
    if !login.was_made() {
        return false;
    }
    match end(login.token()).await {
        Ok(_) => true,
        // It ended before.
        Err(failure) if failure.status().is_some_and(|status| status.as_u16() == 401) => true,
        Err(failure) => {
            out.note(format_args!("the token could not be revoked: {failure}"));
            false
        }
    }
}

pub(crate) async fn whoami(whoami: Whoami, out: Output) -> anyhow::Result<()> {
    let who = who(&Client::open(&whoami.at)?).await?;
    out.answer(&who, |who| format!("{}, with the token from {}", who.describe(), who.token))
}

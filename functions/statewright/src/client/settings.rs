use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use directories::BaseDirs;
use serde::Deserialize;
use statewright_shared::domain::names::OrgName;
use statewright_shared::domain::server_url::ServerUrl;

use super::logins::Logins;
use crate::args;

/// The server and organization. Environment variables are read separately, so that an empty one counts as
/// unset.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct At {
    /// The server [env: STATEWRIGHT_URL] [default: that of the folder's .statewright.json, else
    /// PULUMI_BACKEND_URL, else that of `statewright login`, else that of `pulumi login`].
    #[arg(long, value_name = "URL", value_parser = args::server_url, global = true, help_heading = "Server")]
    pub(crate) server: Option<ServerUrl>,
    /// The organization [env: STATEWRIGHT_ORG] [default: that of the folder's .statewright.json, else your own].
    #[arg(long, value_name = "NAME", value_parser = args::organization, global = true, help_heading = "Server")]
    pub(crate) org: Option<OrgName>,
    /// Connect to a server on another machine without TLS, although the network can then read the token and
    /// the states [env: STATEWRIGHT_ALLOW_HTTP=true].
    #[arg(long, global = true, help_heading = "Server")]
    pub(crate) allow_http: bool,
    /// A token that was exchanged for this run, with its server.
    #[arg(skip)]
    pub(crate) exchanged: Option<(ServerUrl, Token)>,
}

/// An access token, hidden from debug output.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    pub(super) fn new(text: String) -> Self {
        Self(text)
    }

    /// The text to send.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) server: ServerUrl,
    pub(super) token: Token,
    /// Where the token was found.
    pub(super) token_from: &'static str,
    /// The organization, if one was named.
    pub(super) org: Option<OrgName>,
}

/// Settings from the environment and from logins.
#[derive(Debug, Clone, Default)]
pub(super) struct Environment {
    variables: BTreeMap<&'static str, String>,
    /// The logins of `statewright login`.
    logins: Logins,
    /// The logins of `pulumi login`.
    credentials: Credentials,
}

/// The file in which Pulumi's CLI stores its logins (pulumi v3.274.1, `sdk/go/common/workspace/creds.go`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Credentials {
    current: String,
    access_tokens: BTreeMap<String, String>,
}

const URL: &str = "STATEWRIGHT_URL";
const ORG: &str = "STATEWRIGHT_ORG";
const ALLOW_HTTP: &str = "STATEWRIGHT_ALLOW_HTTP";
const TOKEN: &str = "STATEWRIGHT_TOKEN";
const PULUMI_URL: &str = "PULUMI_BACKEND_URL";
const PULUMI_TOKEN: &str = "PULUMI_ACCESS_TOKEN";
const PULUMI_LOGIN: &str = "`pulumi login`";
pub(super) const LOGIN: &str = "`statewright login`";
const EXCHANGED: &str = "--oidc-token";

impl Environment {
    pub(super) fn of_this_process() -> Self {
        let variable = |name| Some((name, std::env::var(name).ok().filter(|value| !value.is_empty())?));
        let variables = [URL, ORG, ALLOW_HTTP, TOKEN, PULUMI_URL, PULUMI_TOKEN]
            .into_iter()
            .filter_map(variable)
            .collect();
        // An unreadable file counts as no logins: `statewright login` reports the error.
        let logins = Logins::read().unwrap_or_default();
        Self { variables, logins, credentials: credentials().unwrap_or_default() }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
}

/// A missing or unreadable file counts as no logins, so the user is asked to log in.
fn credentials() -> Option<Credentials> {
    let folder = |name| std::env::var_os(name).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = folder("PULUMI_CREDENTIALS_PATH")
        .or_else(|| folder("PULUMI_HOME"))
        .or_else(|| Some(BaseDirs::new()?.home_dir().join(".pulumi")))?;
    match fs::read(folder.join("credentials.json")) {
        Ok(text) => serde_json::from_slice(&text).ok(),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(_) => None,
    }
}

pub(super) fn resolve(at: &At, of_folder: Option<&ServerUrl>, env: &Environment) -> anyhow::Result<Settings> {
    let of_pulumi = |url: &str| {
        // Pulumi may be logged in to a bucket or a folder, which is not a server.
        (url.starts_with("http://") || url.starts_with("https://"))
            .then(|| ServerUrl::parse(url))
            .and_then(Result::ok)
    };
    let of_us = env.get(URL).map(ServerUrl::parse).transpose().context(URL)?;
    let named = at.server.clone().or(of_us).or_else(|| Some(at.exchanged.as_ref()?.0.clone()));
    // The server that the user chose, not a file that may have come with a repository.
    let of_user = (named.clone())
        .or_else(|| of_pulumi(env.get(PULUMI_URL)?))
        .or_else(|| env.logins.current().cloned())
        .or_else(|| of_pulumi(&env.credentials.current));
    let server = named.or_else(|| of_folder.cloned()).or_else(|| of_user.clone()).context(
        "no server is known: name one with --server or STATEWRIGHT_URL, such as http://localhost:8080, or \
         log in with `statewright login`",
    )?;
    check_private(&server, at, env)?;
    let is_of_user = of_user.as_ref() == Some(&server);
    let exchanged = at.exchanged.as_ref().filter(|(of, _)| *of == server);
    let exchanged = exchanged.map(|(_, token)| (token.as_str().to_owned(), EXCHANGED));
    let (token, token_from) = exchanged
        .or_else(|| token(&server, is_of_user, env))
        .with_context(|| without_token(&server, is_of_user, env))?;
    let token = Token(token.trim().to_owned());
    let org = match &at.org {
        Some(org) => Some(org.clone()),
        None => env.get(ORG).map(OrgName::parse).transpose().context(ORG)?,
    };
    Ok(Settings { server, token, token_from, org })
}

/// The server of a login, which need not have a token yet.
pub(super) fn server_of_user(at: &At, env: &Environment) -> anyhow::Result<ServerUrl> {
    let of_us = env.get(URL).map(ServerUrl::parse).transpose().context(URL)?;
    let server = at
        .server
        .clone()
        .or(of_us)
        .or_else(|| env.logins.current().cloned())
        .context("name the server, such as http://localhost:8080")?;
    check_private(&server, at, env)?;
    Ok(server)
}

/// The settings for checking a token at login.
pub(super) fn with_token(server: &ServerUrl, token: &str) -> Settings {
    Settings { server: server.clone(), token: Token(token.to_owned()), token_from: LOGIN, org: None }
}

fn check_private(server: &ServerUrl, at: &At, env: &Environment) -> anyhow::Result<()> {
    let is_allowed = at.allow_http || env.get(ALLOW_HTTP).is_some_and(|value| matches!(value, "true" | "1"));
    if !is_allowed && !is_private(server) {
        bail!(
            "{server} is on another machine and has no TLS, so the network could read the token and the \
             states: use https://, or add --allow-http if you trust that network"
        );
    }
    Ok(())
}

/// The token for a server. Tokens in the environment do not name their server, so they are sent only to a
/// server that the user chose.
fn token(server: &ServerUrl, is_of_user: bool, env: &Environment) -> Option<(String, &'static str)> {
    if let Some(token) = env.get(TOKEN).filter(|_| is_of_user) {
        return Some((token.to_owned(), TOKEN));
    }
    if let Some(token) = env.logins.token(server) {
        return Some((token.to_owned(), LOGIN));
    }
    let is_of_pulumi = env.get(PULUMI_URL).is_none_or(|url| server.is(url));
    if let Some(token) = env.get(PULUMI_TOKEN).filter(|_| is_of_user && is_of_pulumi) {
        return Some((token.to_owned(), PULUMI_TOKEN));
    }
    // With a credential helper, Pulumi stores an empty one.
    let of_it = env.credentials.access_tokens.iter().find(|(url, token)| server.is(url) && !token.is_empty());
    of_it.map(|(_, token)| (token.clone(), PULUMI_LOGIN))
}

/// Explains why there is no token for a server.
fn without_token(server: &ServerUrl, is_of_user: bool, env: &Environment) -> String {
    match [TOKEN, PULUMI_TOKEN].into_iter().find(|name| !is_of_user && env.get(name).is_some()) {
        Some(token) => format!(
            "{token} is not sent to {server}, since only a file in this folder names that server: if the \
             token belongs to it, set STATEWRIGHT_URL={server} or add --server {server}; else run \
             `statewright login {server}`"
        ),
        None => format!(
            "no access token for {server} is known: log in with `statewright login {server}`, or set \
             STATEWRIGHT_TOKEN or PULUMI_ACCESS_TOKEN; the operator creates tokens with `statewright token \
             create`"
        ),
    }
}

/// Whether the connection uses TLS or stays on this machine.
fn is_private(server: &ServerUrl) -> bool {
    let Some(rest) = server.as_str().strip_prefix("http://") else { return true };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    };
    let is_loopback = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::super::logins::Login;
    use super::*;

    const HERE: &str = "http://127.0.0.1:8080";

    fn url(text: &str) -> ServerUrl {
        ServerUrl::parse(text).unwrap()
    }

    fn env(variables: &[(&'static str, &str)]) -> Environment {
        let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let credentials = format!(
            r#"{{"current":"{HERE}","accessTokens":{{"{HERE}":"stored","https://b":"of-b","https://e":""}}}}"#
        );
        let logins = Logins::default();
        Environment { variables, logins, credentials: serde_json::from_str(&credentials).unwrap() }
    }

    fn at(server: Option<&str>) -> At {
        At { server: server.map(url), ..At::default() }
    }

    fn found(at: &At, env: &Environment) -> (String, String, &'static str) {
        let settings = resolve(at, None, env).unwrap();
        (settings.server.to_string(), settings.token.as_str().to_owned(), settings.token_from)
    }

    #[test]
    fn the_login_of_pulumi_is_enough() {
        let stored = (HERE.to_owned(), "stored".to_owned(), PULUMI_LOGIN);
        assert_eq!(found(&at(None), &env(&[])), stored);
        assert_eq!(found(&at(Some("https://b")), &env(&[])).1, "of-b");
        assert_eq!(found(&at(None), &env(&[(PULUMI_URL, "s3://bucket")])), stored);
    }

    #[test]
    fn our_login_is_for_its_server_only() {
        let mut logins = Logins::default();
        logins.add(&url("https://b"), Login::with("ours-b"));
        logins.add(&url("https://a"), Login::with("ours-a"));
        let with = |variables: &[_]| Environment { logins: logins.clone(), ..env(variables) };
        assert_eq!(found(&at(None), &with(&[])), ("https://a".to_owned(), "ours-a".to_owned(), LOGIN));
        assert_eq!(found(&at(Some("https://b")), &with(&[])).1, "ours-b");
        // STATEWRIGHT_TOKEN takes precedence over a login; PULUMI_ACCESS_TOKEN does not.
        assert_eq!(found(&at(None), &with(&[(TOKEN, "own"), (PULUMI_TOKEN, "pulumis")])).1, "own");
        assert_eq!(found(&at(None), &with(&[(PULUMI_TOKEN, "pulumis")])).1, "ours-a");
        assert_eq!(found(&at(Some(HERE)), &with(&[])).2, PULUMI_LOGIN);
        // A link uses the stored token of its server.
        let linked = resolve(&at(None), Some(&url("https://b")), &with(&[(TOKEN, "own")])).unwrap();
        assert_eq!(linked.token.as_str(), "ours-b");
    }

    #[test]
    fn the_more_specific_setting_wins() {
        let both = env(&[(TOKEN, "own"), (PULUMI_TOKEN, "pulumis"), (PULUMI_URL, "https://c")]);
        assert_eq!(found(&at(None), &both), ("https://c".to_owned(), "own".to_owned(), TOKEN));
        let pulumis = env(&[(PULUMI_TOKEN, "pulumis"), (PULUMI_URL, "https://c/")]);
        assert_eq!(found(&at(None), &pulumis), ("https://c".to_owned(), "pulumis".to_owned(), PULUMI_TOKEN));
        let ours = env(&[(TOKEN, "own"), (URL, "https://d"), (PULUMI_URL, "https://c")]);
        assert_eq!(found(&at(None), &ours).0, "https://d");
        assert_eq!(found(&at(Some("https://e")), &ours).0, "https://e");
        let wrong = format!("{:#}", resolve(&at(None), None, &env(&[(URL, "here")])).unwrap_err());
        assert!(wrong.starts_with("STATEWRIGHT_URL: "), "{wrong}");
    }

    #[test]
    fn the_token_of_one_server_is_not_sent_to_another() {
        let pulumis = env(&[(PULUMI_TOKEN, "pulumis"), (PULUMI_URL, "https://c")]);
        let refused = resolve(&at(Some("https://d")), None, &pulumis).unwrap_err().to_string();
        assert!(refused.starts_with("no access token for https://d is known"), "{refused}");
        let helped = resolve(&at(Some("https://e")), None, &env(&[])).unwrap_err().to_string();
        assert!(helped.starts_with("no access token for https://e is known"), "{helped}");
        assert_eq!(found(&at(Some("https://b")), &pulumis).1, "of-b");
    }

    #[test]
    fn a_link_gets_no_token_of_the_environment() {
        let link = url("https://link");
        let resolve = |variables: &[_]| resolve(&at(None), Some(&link), &env(variables));
        let by_us = ["https://link/", "https://link"].map(|url| [(TOKEN, "own"), (URL, url)]);
        let by_pulumi = [(PULUMI_TOKEN, "pulumis"), (PULUMI_URL, "https://link")];
        for (named, token) in [(&by_us[0], "own"), (&by_us[1], "own"), (&by_pulumi, "pulumis")] {
            assert_eq!(resolve(named).unwrap().token.as_str(), token, "{named:?}");
        }
        for variables in [
            &[(TOKEN, "own")][..],
            &[(TOKEN, "own"), (PULUMI_URL, "https://c")],
            &[(PULUMI_TOKEN, "pulumis")],
            &[(PULUMI_TOKEN, "pulumis"), (PULUMI_URL, "https://c")],
        ] {
            let refused = resolve(variables).unwrap_err().to_string();
            let beginning = format!("{} is not sent to https://link, ", variables[0].0);
            assert!(
                refused.starts_with(&beginning) && refused.contains("STATEWRIGHT_URL=https://link"),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_link_uses_only_the_stored_token_of_its_server() {
        let both = [(TOKEN, "own"), (PULUMI_TOKEN, "pulumis")];
        let to = |link: &str| {
            let settings = resolve(&at(None), Some(&url(link)), &env(&both)).unwrap();
            (settings.token.as_str().to_owned(), settings.token_from)
        };
        assert_eq!(to("https://b"), ("of-b".to_owned(), PULUMI_LOGIN));
        assert_eq!(to(HERE), ("own".to_owned(), TOKEN), "`pulumi login` is at that server");
    }

    #[test]
    fn plain_http_to_other_machines_must_be_allowed() {
        for private in ["https://a", HERE, "http://[::1]:80", "http://localhost", "http://a.localhost:1/base"]
        {
            assert!(is_private(&url(private)), "{private}");
        }
        for open in
            ["http://a", "http://10.0.0.1:8080", "http://localhost.example.com", "http://[2001:db8::1]:80"]
        {
            assert!(!is_private(&url(open)), "{open}");
        }
        let by_variable = env(&[(TOKEN, "t"), (URL, "http://a"), (ALLOW_HTTP, "true")]);
        assert_eq!(found(&at(None), &by_variable).0, "http://a");
        let allowed = At { allow_http: true, ..at(Some("http://a")) };
        assert_eq!(found(&allowed, &env(&[(TOKEN, "t")])).0, "http://a");
        assert!(resolve(&at(Some("http://a")), None, &env(&[(TOKEN, "t")])).is_err());
    }

    #[test]
    fn a_token_is_not_shown() {
        assert_eq!(format!("{:?}", Token("swt_secret".to_owned())), "Token");
    }
}

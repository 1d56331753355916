//! The client of users' commands: it calls a server over HTTP with an access token, as `pulumi` and `tofu`
//! do. No command here opens a store.
//!
//! A group of commands has [`At`] among its arguments and opens a [`Client`] with it. The client knows the
//! server, the token, the organization and the folder's link. It sends [`Call`]s and returns the response or
//! a [`Failure`], whose message and next step `main` prints. A [`Document`] has a response twice: complete
//! for `--json`, so that scripts get members that a newer server adds, and parsed for people.

mod call;
mod code_login;
mod configured;
mod exchange;
mod failure;
mod http;
mod link;
mod logins;
mod settings;
mod short_lived;
mod state;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use statewright_shared::adapters::SystemClock;
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::{self, OrgName};
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::ports::Clock as _;

pub(crate) use call::Call;
pub(crate) use code_login::CodeLogin;
pub(crate) use configured::{Configured, server_of, state_of};
pub(crate) use exchange::Oidc;
pub(crate) use failure::Failure;
pub(crate) use link::{FILE as LINK_FILE, Link, Linked};
pub(crate) use logins::{Login, Logins};
pub(crate) use settings::{At, Token};
pub(crate) use short_lived::ShortLived;
pub(crate) use state::{Named, StateRef, WhichState};

use http::Http;
pub(crate) use http::reach;
use settings::{Environment, Settings};

/// A response of the server, unchanged for scripts and parsed for people.
#[derive(Debug, Clone)]
pub(crate) struct Document<T> {
    pub(crate) whole: Value,
    /// The members that this program knows.
    pub(crate) read: T,
}

impl<T: DeserializeOwned> Document<T> {
    /// Parses a response.
    ///
    /// # Errors
    /// If members that this program needs are missing.
    pub(crate) fn of(whole: Value) -> anyhow::Result<Self> {
        let read = T::deserialize(&whole).context("the server's response cannot be read")?;
        Ok(Self { whole, read })
    }
}

/// The state that a folder names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfFolder {
    pub(crate) state: StateRef,
    /// Its name, if the folder has it.
    pub(crate) name: Option<String>,
    /// The file with the name.
    pub(crate) file: PathBuf,
}

/// A client for one server, with the user's credentials.
#[derive(Debug)]
pub(crate) struct Client {
    settings: Settings,
    linked: Option<Linked>,
    /// A link to a state of another server, which is ignored.
    linked_elsewhere: Option<Linked>,
    /// The state named by the backend in the folder of the link, or in the current folder.
    configured: Option<Configured>,
    http: Http,
}

impl Client {
    pub(crate) fn open(at: &At) -> anyhow::Result<Self> {
        let here = std::env::current_dir().context("the current folder no longer exists")?;
        Self::open_in(at, &here)
    }

    /// Like [`Client::open`], for another current folder.
    ///
    /// # Errors
    /// Like [`Client::open`].
    pub(crate) fn open_in(at: &At, folder: &Path) -> anyhow::Result<Self> {
        Self::open_at(at, None, folder)
    }

    /// Like [`Client::open_in`], with the server that the folder's configuration names, which counts like a
    /// link.
    ///
    /// # Errors
    /// Like [`Client::open`].
    pub(crate) fn open_at(at: &At, configured: Option<&ServerUrl>, folder: &Path) -> anyhow::Result<Self> {
        let linked = Linked::find(folder)?;
        let backend = Configured::of(linked.as_ref().map_or(folder, |linked| &linked.folder))?;
        let of_backend = backend.as_ref().filter(|_| linked.is_none()).map(|backend| &backend.server);
        let of_folder = configured.or(of_backend).or(linked.as_ref().map(|linked| &linked.link.server));
        let settings = settings::resolve(at, of_folder, &Environment::of_this_process())?;
        let http = Http::to(&settings.server)?;
        let (linked, linked_elsewhere) = match linked {
            Some(linked) if linked.link.server == settings.server => (Some(linked), None),
            other => (None, other),
        };
        Ok(Self { settings, linked, linked_elsewhere, configured: backend, http })
    }

    /// A client for the server that the user chose, whatever the folder names.
    ///
    /// # Errors
    /// If no server or no token for it is known, or the connection would be unencrypted.
    pub(crate) fn of_user(at: &At) -> anyhow::Result<Self> {
        let settings = settings::resolve(at, None, &Environment::of_this_process())?;
        let http = Http::to(&settings.server)?;
        Ok(Self { settings, linked: None, linked_elsewhere: None, configured: None, http })
    }

    /// A client with this token instead of a stored one, to check whether the server accepts it.
    ///
    /// # Errors
    /// If the platform has no root certificates.
    pub(crate) fn with_token(server: &ServerUrl, token: &str) -> anyhow::Result<Self> {
        let (settings, http) = (settings::with_token(server, token), Http::to(server)?);
        Ok(Self { settings, linked: None, linked_elsewhere: None, configured: None, http })
    }

    /// The server to log in to or out of: the named one, or that of the last login.
    ///
    /// # Errors
    /// If none is known, or the connection would be unencrypted.
    pub(crate) fn server_of_user(at: &At) -> anyhow::Result<ServerUrl> {
        settings::server_of_user(at, &Environment::of_this_process())
    }

    /// Where the token was found.
    pub(crate) fn token_from(&self) -> &'static str {
        self.settings.token_from
    }

    pub(crate) fn server(&self) -> &ServerUrl {
        &self.settings.server
    }

    /// The token, only for the environment of a Terraform client.
    pub(crate) fn token(&self) -> &Token {
        &self.settings.token
    }

    /// The link of the current folder or a parent, if it names this server.
    pub(crate) fn linked(&self) -> Option<&Linked> {
        self.linked.as_ref()
    }

    /// Whether the folder names a state.
    pub(crate) fn has_state(&self) -> bool {
        self.linked.is_some() || (self.linked_elsewhere.is_none() && self.configured.is_some())
    }

    /// The link in this folder itself, for any server.
    pub(crate) fn link_in(&self, folder: &Path) -> Option<&Link> {
        let mut both = self.linked.iter().chain(&self.linked_elsewhere);
        both.find(|linked| linked.folder == folder).map(|linked| &linked.link)
    }

    /// The state of the folder: that of its link or of its backend, which must agree.
    ///
    /// # Errors
    /// If there is none, or two that differ; [`Failure`] if the server cannot resolve the name in a backend.
    pub(crate) async fn of_folder(&self) -> anyhow::Result<OfFolder> {
        let Some(linked) = &self.linked else {
            return match (&self.linked_elsewhere, &self.configured) {
                (Some(other), _) => anyhow::bail!(
                    "{} links to a state of {}, but this command uses {}: name the state with -s \
                     PROJECT/STATE, or the server with --server",
                    other.folder.join(LINK_FILE).display(),
                    other.link.server,
                    self.server()
                ),
                (None, Some(configured)) if configured.server == *self.server() => Ok(OfFolder {
                    state: configured.state.clone(),
                    name: None,
                    file: configured.file.clone(),
                }),
                (None, _) => anyhow::bail!(
                    "no state is named, and this folder is not linked to one: name the state with -s \
                     PROJECT/STATE, or link the folder with `statewright state init STATE`"
                ),
            };
        };
        let (link, file) = (&linked.link, linked.folder.join(LINK_FILE));
        if let Some(configured) = &self.configured
            && !self.is_of(configured, link).await?
        {
            anyhow::bail!(
                "{} links this folder to {}, but {} stores the state in {}: name the right one with -s, or \
                 change the link with `statewright state get STATE --link --force`",
                file.display(),
                link.address,
                configured.file_name(),
                configured.describe()
            );
        }
        Ok(OfFolder { state: StateRef::Id(link.id), name: Some(link.address.to_string()), file })
    }

    /// Whether a backend names the linked state. Asks the server only about a name that differs from the
    /// link's.
    async fn is_of(&self, configured: &Configured, link: &Link) -> anyhow::Result<bool> {
        #[derive(serde::Deserialize)]
        struct State {
            id: StateId,
        }
        if configured.server != link.server {
            return Ok(false);
        }
        let StateRef::Name { .. } = &configured.state else {
            return Ok(configured.state == StateRef::Id(link.id));
        };
        let address = self.address(&configured.state).await?;
        if address == link.address {
            return Ok(true);
        }
        let (org, project, state) = (address.org.as_str(), address.project.as_str(), address.state.as_str());
        match self.json::<State>(Call::get(["api", "orgs", org, "tfstates", project, state])).await {
            Ok(found) => Ok(found.id == link.id),
            // A name that does not exist is not the linked state.
            Err(failure) if failure.is_not_there() => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }

    /// The named organization, else that of the link, else the default organization of the token's owner,
    /// from the server.
    ///
    /// # Errors
    /// [`Failure`]; or if the owner has no organization.
    pub(crate) async fn organization(&self) -> anyhow::Result<OrgName> {
        #[derive(serde::Deserialize)]
        struct Default {
            #[serde(rename = "GitHubLogin", alias = "gitHubLogin")]
            login: String,
        }
        if let Some(org) = &self.settings.org {
            return Ok(org.clone());
        }
        if let Some(linked) = &self.linked {
            return Ok(linked.link.address.org.clone());
        }
        let default: Default = self.json(Call::get(["api", "user", "organizations", "default"])).await?;
        OrgName::parse(&default.login)
            .context("the owner of this token has no default organization: name one with STATEWRIGHT_ORG")
    }

    /// The login of the token's owner, from the server: of a user, or the name of an organization.
    ///
    /// # Errors
    /// [`Failure`]; or if the name is not valid.
    pub(crate) async fn own_login(&self) -> anyhow::Result<names::Login> {
        #[derive(serde::Deserialize)]
        struct User {
            #[serde(rename = "githubLogin")]
            login: String,
        }
        let user: User = self.json(Call::get(["api", "user"])).await?;
        names::Login::parse(&user.login).context("the server's response has no valid login")
    }

    /// Sends a call. A repeatable one is tried three times if the server cannot be reached or is busy; others
    /// only if the server cannot have acted on them.
    ///
    /// # Errors
    /// [`Failure`] for everything but success.
    pub(crate) async fn send(&self, call: Call) -> Result<Bytes, Failure> {
        let mut attempt = 1;
        loop {
            let failure = match self.http.send(&call, &self.settings).await {
                Ok(body) => return Ok(body),
                Err(failure) => failure,
            };
            let Some(pause) = failure.retry_after(attempt, call.is_repeatable()) else { return Err(failure) };
            SystemClock.sleep(pause).await;
            attempt += 1;
        }
    }

    /// Sends a call and parses the JSON response.
    ///
    /// # Errors
    /// [`Failure`].
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: Call) -> Result<T, Failure> {
        let body = self.send(call).await?;
        serde_json::from_slice(&body).map_err(|error| Failure::strange(self.server(), error))
    }

    /// Sends a call and returns the response for printing.
    ///
    /// # Errors
    /// [`Failure`]; or if members that this program needs are missing.
    pub(crate) async fn document<T: DeserializeOwned>(&self, call: Call) -> anyhow::Result<Document<T>> {
        Document::of(self.json(call).await?)
    }

    /// Reads a list page by page, to the end or up to a number of entries, and joins the pages into one
    /// document with all entries in `member`. A page may be empty even if others follow.
    ///
    /// # Errors
    /// Like [`Client::document`].
    pub(crate) async fn pages<T: DeserializeOwned>(
        &self,
        call: Call,
        member: &str,
        max: Option<usize>,
    ) -> anyhow::Result<Document<Vec<T>>> {
        const NEXT: &str = "continuationToken";
        let (mut entries, mut next): (Vec<Value>, Option<String>) = (Vec::new(), None);
        loop {
            let page = match &next {
                Some(next) => call.clone().query(NEXT, next),
                None => call.clone(),
            };
            let mut page: Value = self.json(page).await?;
            if let Some(Value::Array(found)) = page.get_mut(member) {
                entries.append(found);
            }
            let before = next;
            next = page.get(NEXT).and_then(Value::as_str).map(str::to_owned);
            let is_enough = max.is_some_and(|max| entries.len() >= max);
            if is_enough || next.is_none() || next == before {
                break;
            }
        }
        entries.truncate(max.unwrap_or(usize::MAX));
        let entries = Value::Array(entries);
        let read = Document::of(entries.clone())?.read;
        Ok(Document { whole: serde_json::json!({ member: entries }), read })
    }
}

//! A server as its users' commands see it: over HTTP, with an access token, as `pulumi` and `tofu` do. No command here opens
//! a store.
//!
//! A group of commands takes an [`At`] among its arguments and opens a [`Client`] of it. The client knows the server, the
//! token, the organization and the folder's link, sends [`Call`]s, and answers what the server said or a [`Failure`], whose
//! words and next step `main` prints. A [`Document`] is an answer twice: whole for `--json`, so that a script gets what a
//! newer server adds, and parsed for people.

mod call;
mod configured;
mod failure;
mod http;
mod link;
mod logins;
mod settings;
mod state;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use statewright_shared::adapters::SystemClock;
use statewright_shared::domain::ids::StateId;
use statewright_shared::domain::names::OrgName;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::ports::Clock as _;

pub(crate) use call::Call;
pub(crate) use configured::{Configured, place, server_of};
pub(crate) use failure::Failure;
pub(crate) use link::{FILE as LINK_FILE, Link, Linked};
pub(crate) use logins::Logins;
pub(crate) use settings::{At, Token};
pub(crate) use state::{Named, StateRef, WhichState};

use http::Http;
pub(crate) use http::reach;
use settings::{Environment, Settings};

/// An answer of the server: as it came, for scripts, and what people are told of it.
#[derive(Debug, Clone)]
pub(crate) struct Document<T> {
    /// As it came.
    pub(crate) whole: Value,
    /// What this program knows of it.
    pub(crate) read: T,
}

impl<T: DeserializeOwned> Document<T> {
    /// A document of an answer's JSON.
    ///
    /// # Errors
    /// If the members that this program needs are missing.
    pub(crate) fn of(whole: Value) -> anyhow::Result<Self> {
        let read = T::deserialize(&whole).context("the server's answer lacks what this program looks for")?;
        Ok(Self { whole, read })
    }
}

/// The state that a folder says by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfFolder {
    /// Which it is.
    pub(crate) state: StateRef,
    /// Its name, if the folder has it.
    pub(crate) name: Option<String>,
    /// The file that says so.
    pub(crate) file: PathBuf,
}

/// A server, asked as somebody.
#[derive(Debug)]
pub(crate) struct Client {
    settings: Settings,
    linked: Option<Linked>,
    /// A link to a state of another server, which says nothing here.
    linked_elsewhere: Option<Linked>,
    /// The state that the backend names of the folder that has the link, or of the folder that this runs in.
    configured: Option<Configured>,
    http: Http,
}

impl Client {
    /// Finds out which server to ask, as whom, and for which state. Nothing is sent.
    ///
    /// # Errors
    /// If no server or no token is known, with where one is looked for; if it must not be talked to in the clear; if the
    /// folder's link cannot be read.
    pub(crate) fn open(at: &At) -> anyhow::Result<Self> {
        let here = std::env::current_dir().context("the folder that this runs in is gone")?;
        Self::open_in(at, &here)
    }

    /// As [`Client::open`], as if it ran in this folder.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn open_in(at: &At, folder: &Path) -> anyhow::Result<Self> {
        Self::open_at(at, None, folder)
    }

    /// As [`Client::open_in`], where the folder's configuration names a server by itself: it counts as its link does.
    ///
    /// # Errors
    /// As there.
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

    /// A client with this token, whatever is stored or set: to find out whether the server takes it.
    ///
    /// # Errors
    /// If the platform has no certificates to trust.
    pub(crate) fn with_token(server: &ServerUrl, token: &str) -> anyhow::Result<Self> {
        let (settings, http) = (settings::with_token(server, token), Http::to(server)?);
        Ok(Self { settings, linked: None, linked_elsewhere: None, configured: None, http })
    }

    /// The server to log in to or out of: one that is said, or that of the last login.
    ///
    /// # Errors
    /// If none is known; if it must not be talked to in the clear.
    pub(crate) fn server_of_user(at: &At) -> anyhow::Result<ServerUrl> {
        settings::server_of_user(at, &Environment::of_this_process())
    }

    /// Where the token was found.
    pub(crate) fn token_from(&self) -> &'static str {
        self.settings.token_from
    }

    /// The server's address.
    pub(crate) fn server(&self) -> &ServerUrl {
        &self.settings.server
    }

    /// The token that is sent. For the environment of a client of states, and for nothing else.
    pub(crate) fn token(&self) -> &Token {
        &self.settings.token
    }

    /// The link of the folder that this runs in, or of one above it, if it is to a state of this server.
    pub(crate) fn linked(&self) -> Option<&Linked> {
        self.linked.as_ref()
    }

    /// Whether the folder says a state by itself.
    pub(crate) fn has_state(&self) -> bool {
        self.linked.is_some() || (self.linked_elsewhere.is_none() && self.configured.is_some())
    }

    /// The link that lies in this very folder, whichever server it is of.
    pub(crate) fn link_in(&self, folder: &Path) -> Option<&Link> {
        let mut both = self.linked.iter().chain(&self.linked_elsewhere);
        both.find(|linked| linked.folder == folder).map(|linked| &linked.link)
    }

    /// The state of the folder, where a command needs one: that of its link, or of its backend. Where it has both, they agree.
    ///
    /// # Errors
    /// If it has none, or two, with what to do; [`Failure`] where the server has to say which state a backend's name leads to.
    pub(crate) async fn of_folder(&self) -> anyhow::Result<OfFolder> {
        let Some(linked) = &self.linked else {
            return match (&self.linked_elsewhere, &self.configured) {
                (Some(other), _) => anyhow::bail!(
                    "{} is to a state of {}, and this is about {}: name the state with -s PROJECT/STATE, or the server with \
                     --server",
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
                    "no state is named, and this folder has none: name one with -s PROJECT/STATE, or link the folder to it \
                     with `statewright state init STATE`"
                ),
            };
        };
        let (link, file) = (&linked.link, linked.folder.join(LINK_FILE));
        if let Some(configured) = &self.configured
            && !self.is_of(configured, link).await?
        {
            anyhow::bail!(
                "{} links this folder to {}, and its {} keeps the state in {}: name the one that you mean with -s, or make them \
                 agree: `statewright state get STATE --link --force` changes the link",
                file.display(),
                link.address,
                configured.file_name(),
                configured.describe()
            );
        }
        Ok(OfFolder { state: StateRef::Id(link.id), name: Some(link.address.to_string()), file })
    }

    /// Whether a backend is of the state that a link is to. The server is asked only for a name that is not the link's.
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
            // A name that leads nowhere leads somewhere else than the link.
            Err(failure) if failure.is_not_there() => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }

    /// The organization that was named, else that of the link, else the token's owner's own, which the server is asked for.
    ///
    /// # Errors
    /// [`Failure`]; or if the owner has none.
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
            .context("the owner of this token has no organization of their own; name one with --org")
    }

    /// Sends a call until it is answered or not to be tried again: one that may be repeated is tried three times where the
    /// server cannot be reached, or is busy; others only where nothing can have been done.
    ///
    /// # Errors
    /// [`Failure`] for whatever is no success.
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

    /// Sends a call whose answer is JSON.
    ///
    /// # Errors
    /// [`Failure`].
    pub(crate) async fn json<T: DeserializeOwned>(&self, call: Call) -> Result<T, Failure> {
        let body = self.send(call).await?;
        serde_json::from_slice(&body).map_err(|error| Failure::strange(self.server(), error))
    }

    /// Sends a call whose answer is shown.
    ///
    /// # Errors
    /// [`Failure`]; or if the answer lacks what this program looks for.
    pub(crate) async fn document<T: DeserializeOwned>(&self, call: Call) -> anyhow::Result<Document<T>> {
        Document::of(self.json(call).await?)
    }

    /// Reads a list to its end, page by page, or to so many entries: the answer is one document with all of them as
    /// `member`. A page may be empty though others follow.
    ///
    /// # Errors
    /// As [`Client::document`].
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

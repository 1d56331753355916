//! A server as its users' commands see it: over HTTP, with an access token, as `pulumi` and `tofu` do. No command here opens
//! a store.
//!
//! A group of commands takes an [`At`] among its arguments and opens a [`Client`] of it. The client knows the server, the
//! token, the organization and the folder's link, sends [`Call`]s, and answers what the server said or a [`Failure`], whose
//! words and next step `main` prints. A [`Document`] is an answer twice: whole for `--json`, so that a script gets what a
//! newer server adds, and parsed for people.

mod call;
mod failure;
mod http;
mod link;
mod settings;
mod state;

use std::path::Path;

use anyhow::Context as _;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use statewright_shared::adapters::SystemClock;
use statewright_shared::domain::names::OrgName;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::ports::Clock as _;

pub(crate) use call::Call;
pub(crate) use failure::Failure;
pub(crate) use link::{FILE as LINK_FILE, Link, Linked};
pub(crate) use settings::{At, Token};
pub(crate) use state::{Named, StateRef, WhichState};

use http::Http;
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

/// A server, asked as somebody.
#[derive(Debug)]
pub(crate) struct Client {
    settings: Settings,
    linked: Option<Linked>,
    /// A link to a state of another server, which says nothing here.
    linked_elsewhere: Option<Linked>,
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
        let of_folder = configured.or(linked.as_ref().map(|linked| &linked.link.server));
        let settings = settings::resolve(at, of_folder, &Environment::of_this_process())?;
        let http = Http::to(&settings.server)?;
        let (linked, linked_elsewhere) = match linked {
            Some(linked) if linked.link.server == settings.server => (Some(linked), None),
            other => (None, other),
        };
        Ok(Self { settings, linked, linked_elsewhere, http })
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

    /// The link that lies in this very folder, whichever server it is of.
    pub(crate) fn link_in(&self, folder: &Path) -> Option<&Link> {
        let mut both = self.linked.iter().chain(&self.linked_elsewhere);
        both.find(|linked| linked.folder == folder).map(|linked| &linked.link)
    }

    /// That link, where a command needs a state.
    ///
    /// # Errors
    /// If there is none, with what to do.
    pub(crate) fn linked_or_refuse(&self) -> anyhow::Result<&Linked> {
        match (&self.linked, &self.linked_elsewhere) {
            (Some(linked), _) => Ok(linked),
            (None, Some(other)) => anyhow::bail!(
                "{} is to a state of {}, and this is about {}: name the state with -s PROJECT/STATE, or the server with \
                 --server",
                other.folder.join(LINK_FILE).display(),
                other.link.server,
                self.server()
            ),
            (None, None) => anyhow::bail!(
                "no state is named, and this folder has none: name one with -s PROJECT/STATE, or link the folder to it with \
                 `statewright state init STATE`"
            ),
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

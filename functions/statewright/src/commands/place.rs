//! Where a command works: on the store, as the operator, or with `--server` at a server, as its user.

use anyhow::anyhow;
use statewright_shared::adapters::embedded::{DataFolder, FolderError};
use statewright_shared::context::Context;
use statewright_shared::domain::server_url::ServerUrl;

use crate::args::Data;
use crate::client::{At, Client, Logins};
use crate::data;

/// Stands for a URL if the option has none.
const LOGIN: &str = "login";

/// Asking a server instead of opening the store.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct Ask {
    /// Ask a server, as the user that you are logged in as, instead of opening the store. Write `=` before a
    /// URL. Without one, the server is STATEWRIGHT_URL, else PULUMI_BACKEND_URL, else that of `statewright login`.
    #[arg(
        long,
        value_name = "URL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = LOGIN,
        value_parser = asked,
        global = true,
        help_heading = "Server"
    )]
    server: Option<Asked>,
    /// With --server: connect to a server on another machine without TLS, although the network can then read
    /// the token [env: STATEWRIGHT_ALLOW_HTTP=true].
    #[arg(long, global = true, help_heading = "Server")]
    allow_http: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Asked {
    /// The one that the user chose elsewhere.
    OfUser,
    Named(ServerUrl),
}

fn asked(text: &str) -> anyhow::Result<Asked> {
    Ok(match text {
        LOGIN => Asked::OfUser,
        url => Asked::Named(ServerUrl::parse(url)?),
    })
}

/// The store, or a server.
pub(super) enum Place {
    Store(Box<Store>),
    Server(Box<Client>),
}

/// An open store.
pub(super) struct Store {
    pub(super) ctx: Context,
    /// Locked for as long as the command works.
    _folder: Option<DataFolder>,
}

impl Ask {
    /// Whether a server is asked.
    pub(super) fn is_given(&self) -> bool {
        self.server.is_some()
    }

    /// The option as another command line needs it, with a space before it; empty for the store.
    pub(super) fn words(&self) -> String {
        match &self.server {
            None => String::new(),
            Some(Asked::OfUser) => " --server".to_owned(),
            Some(Asked::Named(url)) => format!(" --server={url}"),
        }
    }

    /// Opens the store, or prepares to call the server.
    ///
    /// # Errors
    /// There is no store; or the server, or the token for it, is not known.
    pub(super) async fn open(&self, data: &Data) -> anyhow::Result<Place> {
        let server = match &self.server {
            None => {
                let opened = data::open_beside(data).await;
                let (folder, ctx) = opened.map_err(|error| or_ask(error, data))?;
                return Ok(Place::Store(Box::new(Store { ctx, _folder: folder })));
            }
            Some(Asked::OfUser) => None,
            Some(Asked::Named(url)) => Some(url.clone()),
        };
        let at = At { server, allow_http: self.allow_http, ..At::default() };
        Ok(Place::Server(Box::new(Client::of_user(&at)?)))
    }
}

/// Adds that a server can be asked, for a user who has a login, and no store at the default place.
fn or_ask(error: anyhow::Error, data: &Data) -> anyhow::Error {
    let is_absent = matches!(error.downcast_ref(), Some(FolderError::Absent { .. }));
    if !is_absent || data.folder.is_some() {
        return error;
    }
    let logins = Logins::read().unwrap_or_default();
    match logins.current() {
        Some(server) => anyhow!("{error:#}\n  to ask {server}, where you are logged in, add --server"),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Alone {
        #[command(flatten)]
        ask: Ask,
        word: Option<String>,
    }

    fn parse(words: &[&str]) -> Result<Alone, clap::Error> {
        let words = ["alone"].into_iter().chain(words.iter().copied());
        Alone::from_arg_matches(&Alone::command().try_get_matches_from(words)?)
    }

    #[test]
    fn the_option_takes_a_url_only_after_an_equals_sign() {
        let alone = parse(&["--server", "word"]).unwrap();
        assert_eq!((alone.ask.server, alone.word.as_deref()), (Some(Asked::OfUser), Some("word")));
        let named = parse(&["--server=https://state.example.com"]).unwrap();
        let url = ServerUrl::parse("https://state.example.com").unwrap();
        assert_eq!(named.ask.server, Some(Asked::Named(url)));
        assert_eq!(named.ask.words(), " --server=https://state.example.com");
        assert_eq!(parse(&["--server"]).unwrap().ask.words(), " --server");
        let store = parse(&["word"]).unwrap().ask;
        assert_eq!((store.is_given(), store.words()), (false, String::new()));
        for bad in ["--server=", "--server=here"] {
            parse(&[bad]).unwrap_err();
        }
    }
}

//! The state that the backend of a folder's configuration names.

use std::path::{Path, PathBuf};

use statewright_shared::domain::server_url::ServerUrl;

use super::StateRef;
use crate::hcl::{self, TEMPORARY_FILE};
use crate::managed::{self, Found};

/// A backend that leads to a state of a Statewright server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Configured {
    /// The file with the backend.
    pub(crate) file: PathBuf,
    pub(crate) server: ServerUrl,
    pub(crate) state: StateRef,
}

impl Configured {
    /// The backend of this folder; `None` if it has none or one of another kind.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(crate) fn of(folder: &Path) -> anyhow::Result<Option<Self>> {
        let temporary = folder.join(TEMPORARY_FILE);
        let is_temporary = matches!(managed::read(&temporary)?, Found::Ours(_));
        let mut backends = hcl::backends(folder)?.into_iter();
        let Some(backend) = backends.find(|backend| !(is_temporary && backend.file == temporary)) else {
            return Ok(None);
        };
        let mut addresses = backend.addresses.iter().filter(|_| backend.kind == "http");
        let address = addresses.find(|it| it.setting == "address");
        let found = address.and_then(|address| state_of(address.text.as_deref()?));
        Ok(found.map(|(server, state)| Self { file: backend.file, server, state }))
    }

    pub(crate) fn describe(&self) -> String {
        match &self.state {
            StateRef::Id(id) => format!("the state {id} of {}", self.server),
            StateRef::Name { org, project, state } => {
                let org = org.as_ref().map(|org| format!("{org}/")).unwrap_or_default();
                format!("{org}{project}/{} of {}", state.as_deref().unwrap_or("default"), self.server)
            }
        }
    }

    pub(crate) fn file_name(&self) -> std::path::Display<'_> {
        self.file.file_name().map_or(self.file.as_path(), Path::new).display()
    }
}

/// The server of an address.
pub(crate) fn server_of(address: &str) -> Option<ServerUrl> {
    let (server, _) = address.split_once("/tfstate/")?;
    ServerUrl::parse(server).ok()
}

/// The server and the state of a backend's address.
pub(crate) fn state_of(address: &str) -> Option<(ServerUrl, StateRef)> {
    let (_, state) = address.split_once("/tfstate/")?;
    let parts: Vec<&str> = state.trim_end_matches('/').split('/').collect();
    let state = match parts[..] {
        [id] => StateRef::parse(id).ok().filter(|state| matches!(state, StateRef::Id(_)))?,
        [org, project] => StateRef::parse(&format!("{org}/{project}/default")).ok()?,
        [org, project, state] => StateRef::parse(&format!("{org}/{project}/{state}")).ok()?,
        _ => return None,
    };
    Some((server_of(address)?, state))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_address_names_the_server_and_the_state() {
        let id = "019b7c3a-0000-7000-8000-000000000001";
        let found = |address: &str| state_of(address).map(|(server, state)| (server.to_string(), state));
        let here = "https://a/base".to_owned();
        let named = |name: &str| StateRef::parse(name).unwrap();
        assert_eq!(found(&format!("https://a/base/tfstate/{id}")), Some((here.clone(), named(id))));
        assert_eq!(
            found("https://a/base/tfstate/acme/net/"),
            Some((here.clone(), named("acme/net/default")))
        );
        assert_eq!(found("https://a/base/tfstate/acme/net/prod"), Some((here, named("acme/net/prod"))));
        for other in
            ["https://a/state/x", "https://a/tfstate/x", "https://a/tfstate/", "ftp://a/tfstate/acme/net"]
        {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn only_statewright_backends_name_a_state() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Configured::of(folder.path()).unwrap(), None);
        let file = folder.path().join("main.tf");
        for (kind, address, is_ours) in [
            ("http", "https://a/tfstate/acme/net", true),
            ("http", "https://gitlab.example.com/api/v4/projects/1/terraform/state/net", false),
            ("s3", "https://a/tfstate/acme/net", false),
        ] {
            let text =
                format!("terraform {{\n  backend \"{kind}\" {{\n    address = \"{address}\"\n  }}\n}}\n");
            fs::write(&file, text).unwrap();
            assert_eq!(Configured::of(folder.path()).unwrap().is_some(), is_ours, "{kind} {address}");
        }
    }
}

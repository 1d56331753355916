//! The backend that a folder's client was initialised with, which it asks before it moves a state to another one, and which it
//! uses as long as the configuration has not changed (opentofu v1.12.6, `internal/command/meta_backend.go`).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::hcl::ADDRESSES;

/// A backend over HTTP, as a client has kept it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// Where it leads: its address, and those of its locks.
    pub(crate) addresses: Vec<String>,
    /// Whether a password was kept with it, so that it takes none from the environment.
    pub(crate) has_password: bool,
}

impl Recorded {
    /// That of a folder; `None` where there is none over HTTP, or none that a client could read either.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let data = std::env::var_os("TF_DATA_DIR").filter(|data| !data.is_empty()).map(PathBuf::from);
        let file = folder.join(data.unwrap_or_else(|| PathBuf::from(".terraform"))).join("terraform.tfstate");
        Self::parse(&fs::read(file).ok()?)
    }

    /// Where the state is.
    pub(crate) fn address(&self) -> Option<&str> {
        self.addresses.first().map(String::as_str)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let document: Value = serde_json::from_slice(text).ok()?;
        let backend =
            document.get("backend").filter(|it| it.get("type").is_some_and(|kind| kind == "http"))?;
        let config = backend.get("config")?;
        let text = |name: &str| Some(config.get(name)?.as_str()?.to_owned());
        Some(Self {
            addresses: ADDRESSES.iter().filter_map(|name| text(name)).collect(),
            has_password: text("password").is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_over_http_is_read_as_its_client_left_it() {
        let recorded = |config: &str| {
            let text = format!(
                r#"{{"version":3,"terraform_version":"1.12.6","backend":{{"type":"http","config":{config},"hash":1}}}}"#
            );
            Recorded::parse(text.as_bytes())
        };
        let addresses = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            recorded(
                r#"{"address":"http://a","lock_address":"http://b","unlock_address":null,"password":null}"#
            ),
            Some(Recorded { addresses: addresses(&["http://a", "http://b"]), has_password: false })
        );
        assert_eq!(
            recorded(r#"{"address":"http://a","password":"x"}"#),
            Some(Recorded { addresses: addresses(&["http://a"]), has_password: true })
        );
    }

    #[test]
    fn what_is_no_backend_over_http_is_none() {
        for text in
            ["", "{}", "[", r#"{"backend":null}"#, r#"{"backend":{"type":"local","config":{"path":"x"}}}"#]
        {
            assert_eq!(Recorded::parse(text.as_bytes()), None, "{text}");
        }
    }
}

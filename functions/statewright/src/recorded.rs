//! The backend that a client recorded in a folder at `init`. The client uses it until the configuration
//! changes, and reads it before it moves a state to another backend (opentofu v1.12.6,
//! `internal/command/meta_backend.go`).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::hcl::ADDRESSES;

/// A recorded HTTP backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// The addresses of the state and of its lock.
    pub(crate) addresses: Vec<String>,
    /// Whether a password is recorded, so that the client takes none from the environment.
    pub(crate) has_password: bool,
}

impl Recorded {
    /// The backend recorded in a folder; `None` if it is not an HTTP backend or cannot be read.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let data = std::env::var_os("TF_DATA_DIR").filter(|data| !data.is_empty()).map(PathBuf::from);
        let file = folder.join(data.unwrap_or_else(|| PathBuf::from(".terraform"))).join("terraform.tfstate");
        Self::parse(&fs::read(file).ok()?)
    }

    /// The address of the state.
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
    fn a_recorded_http_backend_is_read() {
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
    fn other_recorded_backends_are_ignored() {
        for text in
            ["", "{}", "[", r#"{"backend":null}"#, r#"{"backend":{"type":"local","config":{"path":"x"}}}"#]
        {
            assert_eq!(Recorded::parse(text.as_bytes()), None, "{text}");
        }
    }
}

//! The file of `statewright login`: a token for each server, readable only by its owner.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use directories::BaseDirs;
use serde::{Deserialize, Serialize};
use statewright_shared::domain::server_url::ServerUrl;

use crate::managed;

/// The format version that this program writes. It reads all versions up to it.
const FORMAT: u32 = 1;

/// The servers that this user is logged in to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Logins {
    current: Option<ServerUrl>,
    tokens: BTreeMap<String, Secret>,
}

/// A token, hidden from debug output.
#[derive(Clone, Serialize, Deserialize)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct Text {
    format: u32,
    /// The server of the last login.
    current: Option<String>,
    tokens: BTreeMap<String, Secret>,
}

fn file() -> anyhow::Result<PathBuf> {
    let folders = BaseDirs::new().context("this user has no home folder to store the login in")?;
    Ok(folders.config_dir().join("statewright").join("credentials.json"))
}

impl Logins {
    /// Reads the file; empty before the first login.
    ///
    /// # Errors
    /// If the file cannot be read, or belongs to another user.
    pub(crate) fn read() -> anyhow::Result<Self> {
        Self::read_from(&file()?)
    }

    fn read_from(file: &Path) -> anyhow::Result<Self> {
        let wrong = || format!("cannot use {}: move it away and log in again", file.display());
        let text = match fs::read(file) {
            Ok(text) => text,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Self::default());
            }
            Err(error) => return Err(error).with_context(wrong),
        };
        let owner = fs::metadata(file).with_context(wrong)?.uid();
        if owner != rustix::process::geteuid().as_raw() && owner != 0 {
            return Err(anyhow::anyhow!("it belongs to another user").context(wrong()));
        }
        let Text { format, current, tokens } = serde_json::from_slice(&text).with_context(wrong)?;
        ensure!(format <= FORMAT, "{} is from a newer version: upgrade statewright", file.display());
        let current = current.as_deref().map(ServerUrl::parse).transpose().with_context(wrong)?;
        Ok(Self { current, tokens })
    }

    /// Writes the file, readable only by its owner. Returns its path.
    ///
    /// # Errors
    /// If the folder cannot be created or is not writable.
    pub(crate) fn write(&self) -> anyhow::Result<PathBuf> {
        let file = file()?;
        self.write_to(&file)?;
        Ok(file)
    }

    fn write_to(&self, file: &Path) -> anyhow::Result<()> {
        let Some(folder) = file.parent() else { bail!("{} has no parent folder", file.display()) };
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("cannot create {}", folder.display()))?;
        let current = self.current.as_ref().map(ToString::to_string);
        let text = Text { format: FORMAT, current, tokens: self.tokens.clone() };
        let text = serde_json::to_string_pretty(&text).context("cannot serialize the logins")?;
        managed::replace_with(file, &(text + "\n"), 0o600)
    }

    pub(super) fn current(&self) -> Option<&ServerUrl> {
        self.current.as_ref()
    }

    /// The token for exactly this server.
    pub(super) fn token(&self, server: &ServerUrl) -> Option<&str> {
        self.tokens.get(server.as_str()).map(|token| token.0.as_str())
    }

    /// Stores a token and makes its server the current one.
    pub(crate) fn add(&mut self, server: &ServerUrl, token: &str) {
        self.tokens.insert(server.to_string(), Secret(token.to_owned()));
        self.current = Some(server.clone());
    }

    /// Removes the token for a server. Returns whether there was one.
    pub(crate) fn remove(&mut self, server: &ServerUrl) -> bool {
        if self.current.as_ref() == Some(server) {
            self.current = None;
        }
        self.tokens.remove(server.as_str()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_login_is_private_and_for_its_server_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/credentials.json");
        let [one, other] = ["https://a/base", "https://b"].map(|url| ServerUrl::parse(url).unwrap());
        let mut logins = Logins::read_from(&file).unwrap();
        assert_eq!((logins.current(), logins.token(&one)), (None, None));
        logins.add(&other, "swt_other");
        logins.add(&one, "swt_one");
        logins.write_to(&file).unwrap();
        assert!(!format!("{logins:?}").contains("swt_"), "no token is shown");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        let mut logins = Logins::read_from(&file).unwrap();
        assert_eq!((logins.current(), logins.token(&one)), (Some(&one), Some("swt_one")));
        assert_eq!(logins.token(&ServerUrl::parse("https://a").unwrap()), None);
        assert!(logins.remove(&one) && !logins.remove(&one));
        assert_eq!((logins.current(), logins.token(&other)), (None, Some("swt_other")));
        fs::write(&file, r#"{"format":2,"tokens":{}}"#).unwrap();
        assert!(Logins::read_from(&file).unwrap_err().to_string().contains("newer"));
        fs::write(&file, "{").unwrap();
        assert!(Logins::read_from(&file).unwrap_err().to_string().contains("log in again"));
    }
}

//! The file of `statewright login`: a token for each server, readable only by its owner.
//!
//! Format 2 has what is known of each token; format 1 had the tokens alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use directories::BaseDirs;
use serde::{Deserialize, Serialize};
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::ports::Timestamp;

use crate::managed;

/// The format version that this program writes. It reads all versions up to it.
const FORMAT: u32 = 2;

/// The servers that this user is logged in to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Logins {
    current: Option<ServerUrl>,
    is_default_of_pulumi: bool,
    tokens: BTreeMap<String, Login>,
}

/// A token for a server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Login {
    token: Secret,
    /// When it ends, if that is known. In nanoseconds since the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<Timestamp>,
    /// Whether the login made the token, so that the logout ends it. Other tokens may be used elsewhere too.
    #[serde(default)]
    made: bool,
}

impl Login {
    /// A token that the user already had.
    pub(crate) fn with(token: &str) -> Self {
        Self { token: Secret(token.to_owned()), expires: None, made: false }
    }

    /// A token that ends at this time.
    pub(crate) fn until(token: &str, expires: Timestamp) -> Self {
        Self { expires: Some(expires), ..Self::with(token) }
    }

    /// A token that the server made for this login.
    pub(crate) fn given(token: &str, expires: Timestamp) -> Self {
        Self { made: true, ..Self::until(token, expires) }
    }

    pub(crate) fn token(&self) -> &str {
        &self.token.0
    }

    pub(crate) fn expires(&self) -> Option<Timestamp> {
        self.expires
    }

    pub(crate) fn was_made(&self) -> bool {
        self.made
    }
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
    /// Whether the credential helper offers it to `pulumi` if that has selected no backend.
    #[serde(default)]
    default_of_pulumi: bool,
    tokens: BTreeMap<String, Known>,
}

/// A login in either format.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Known {
    Token(Secret),
    Login(Login),
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
        let Some(text) = read_private(file).with_context(wrong)? else { return Ok(Self::default()) };
        let Text { format, current, default_of_pulumi, tokens } =
            serde_json::from_slice(&text).with_context(wrong)?;
        ensure!(format <= FORMAT, "{} is from a newer version: upgrade statewright", file.display());
        let current = current.as_deref().map(ServerUrl::parse).transpose().with_context(wrong)?;
        let tokens = tokens.into_iter().map(|(server, known)| match known {
            Known::Token(token) => (server, Login::with(&token.0)),
            Known::Login(login) => (server, login),
        });
        Ok(Self { current, is_default_of_pulumi: default_of_pulumi, tokens: tokens.collect() })
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
        let current = self.current.as_ref().map(ToString::to_string);
        let tokens = self.tokens.iter().map(|(server, login)| (server.clone(), Known::Login(login.clone())));
        let text = Text {
            format: FORMAT,
            current,
            default_of_pulumi: self.is_default_of_pulumi,
            tokens: tokens.collect(),
        };
        let text = serde_json::to_string_pretty(&text).context("cannot serialize the logins")?;
        write_private(file, &(text + "\n"))
    }

    pub(crate) fn current(&self) -> Option<&ServerUrl> {
        self.current.as_ref()
    }

    /// The login at exactly this server.
    pub(super) fn token(&self, server: &ServerUrl) -> Option<&str> {
        self.tokens.get(server.as_str()).map(Login::token)
    }

    /// The login at the server to which this address leads, with the server.
    pub(crate) fn find(&self, selected: &ServerUrl) -> Option<(ServerUrl, &Login)> {
        self.tokens.iter().find_map(|(server, login)| {
            let server = ServerUrl::parse(server).ok()?;
            server.leads_to_same(selected).then_some((server, login))
        })
    }

    /// The last login, if `pulumi` should use its server without having selected a backend.
    pub(crate) fn default_of_pulumi(&self) -> Option<(ServerUrl, &Login)> {
        let current = self.current.as_ref().filter(|_| self.is_default_of_pulumi)?;
        Some((current.clone(), self.tokens.get(current.as_str())?))
    }

    pub(crate) fn set_default_of_pulumi(&mut self, is_default: bool) {
        self.is_default_of_pulumi = is_default;
    }

    /// Stores a login and makes its server the current one.
    pub(crate) fn add(&mut self, server: &ServerUrl, login: Login) {
        self.tokens.insert(server.to_string(), login);
        self.current = Some(server.clone());
    }

    /// Removes the login at a server, and returns it.
    pub(crate) fn remove(&mut self, server: &ServerUrl) -> Option<Login> {
        if self.current.as_ref() == Some(server) {
            self.current = None;
        }
        self.tokens.remove(server.as_str())
    }
}

/// Reads a file that only this user may have written; `None` if it does not exist.
///
/// # Errors
/// If it cannot be read, or belongs to another user.
pub(super) fn read_private(file: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    let text = match fs::read(file) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    let owner = fs::metadata(file)?.uid();
    if owner != rustix::process::geteuid().as_raw() && owner != 0 {
        bail!("it belongs to another user");
    }
    Ok(Some(text))
}

/// Writes a file that only this user can read, with its folder.
///
/// # Errors
/// If the folder cannot be created or is not writable.
pub(super) fn write_private(file: &Path, text: &str) -> anyhow::Result<()> {
    let Some(folder) = file.parent() else { bail!("{} has no parent folder", file.display()) };
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("cannot create {}", folder.display()))?;
    managed::replace_with(file, text, 0o600)
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
        logins.add(&other, Login::with("swt_other"));
        logins.add(&one, Login::given("swt_one", Timestamp(7)));
        logins.write_to(&file).unwrap();
        assert!(!format!("{logins:?}").contains("swt_"), "no token is shown");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        let mut logins = Logins::read_from(&file).unwrap();
        assert_eq!((logins.current(), logins.token(&one)), (Some(&one), Some("swt_one")));
        assert_eq!(logins.token(&ServerUrl::parse("https://a").unwrap()), None);
        let given = logins.find(&ServerUrl::parse("https://A:443/base/").unwrap()).unwrap();
        assert_eq!((&given.0, given.1.expires(), given.1.was_made()), (&one, Some(Timestamp(7)), true));
        assert!(logins.default_of_pulumi().is_none());
        logins.set_default_of_pulumi(true);
        assert_eq!(logins.default_of_pulumi().map(|(server, _)| server), Some(one.clone()));
        assert!(logins.remove(&one).is_some() && logins.remove(&one).is_none());
        assert_eq!((logins.current(), logins.token(&other)), (None, Some("swt_other")));
        fs::write(&file, r#"{"format":1,"current":"https://b","tokens":{"https://b":"swt_old"}}"#).unwrap();
        let old = Logins::read_from(&file).unwrap();
        assert_eq!((old.current(), old.token(&other)), (Some(&other), Some("swt_old")));
        fs::write(&file, r#"{"format":3,"tokens":{}}"#).unwrap();
        assert!(Logins::read_from(&file).unwrap_err().to_string().contains("newer"));
        fs::write(&file, "{").unwrap();
        assert!(Logins::read_from(&file).unwrap_err().to_string().contains("log in again"));
    }
}

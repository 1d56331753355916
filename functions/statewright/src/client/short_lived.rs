//! Short-lived tokens of a login, for other programs: the server makes one of the stored token, and it is
//! used again until shortly before it ends. They are in a file of their own, so that no other program that
//! asks for one overwrites a login of the same moment.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use directories::BaseDirs;
use serde::{Deserialize, Serialize};
use statewright_shared::adapters::SystemClock;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::ports::{Clock as _, Timestamp};
use statewright_shared::services::identity::tokens::id_of;

use super::code_login::exchange;
use super::failure::Failure;
use super::logins::{Login, read_private, write_private};

/// The format version that this program reads and writes. A file of another one counts as empty.
const FORMAT: u32 = 1;

/// A token that ends sooner is not used again: what gets it may run for a while.
const LEFT_MIN: Duration = Duration::from_secs(15 * 60);

/// A token that another program may have.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ShortLived {
    pub(crate) token: String,
    /// When it ends, if that is known.
    pub(crate) expires: Option<Timestamp>,
    /// The ID of the login's token, of which it was made.
    of: String,
}

impl std::fmt::Debug for ShortLived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShortLived")
    }
}

/// The content of the file.
#[derive(Default, Serialize, Deserialize)]
struct Text {
    format: u32,
    tokens: BTreeMap<String, ShortLived>,
}

fn file() -> anyhow::Result<PathBuf> {
    let folders = BaseDirs::new().context("this user has no home folder to store tokens in")?;
    Ok(folders.cache_dir().join("statewright").join("tokens.json"))
}

/// The file; empty if it is unreadable, because all that it has can be made again.
fn read() -> Text {
    let text = file().and_then(|file| read_private(&file)).ok().flatten();
    let text: Option<Text> = text.and_then(|text| serde_json::from_slice(&text).ok());
    text.filter(|text| text.format == FORMAT).unwrap_or_default()
}

fn write(tokens: BTreeMap<String, ShortLived>) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(&Text { format: FORMAT, tokens });
    write_private(&file()?, &(text.context("cannot serialize the tokens")? + "\n"))
}

impl ShortLived {
    /// A token of this login, which is made again if `rejected` or if there is none. If the server makes none
    /// of it, such as of an organization's token, it is the token of the login itself.
    ///
    /// # Errors
    /// [`Failure`] if the login has ended, or without an answer.
    pub(crate) async fn of(server: &ServerUrl, login: &Login, rejected: bool) -> anyhow::Result<Self> {
        let (now, of) = (SystemClock.now(), id_of(login.token()));
        let mut tokens = read().tokens;
        let known = tokens.get(server.as_str()).filter(|known| known.of == of && !rejected);
        if let Some(known) = known.filter(|known| known.is_fresh(login, now)) {
            return Ok(known.clone());
        }
        let form = [("grant_type", "refresh_token"), ("refresh_token", login.token())];
        let made = match exchange(server, &form).await {
            Ok(given) => Self { expires: Some(given.expires(now)), token: given.access_token, of },
            // A server of before, or a token of which none is made.
            Err(Failure::Refused { status, .. }) if status.is_client_error() && status.as_u16() != 401 => {
                return Ok(Self { token: login.token().to_owned(), expires: login.expires(), of });
            }
            Err(failure) => return Err(failure.into()),
        };
        tokens.insert(server.to_string(), made.clone());
        // Without the file, each request makes a token of its own.
        let _ = write(tokens);
        Ok(made)
    }

    /// Whether it has time left, as far as the login itself has.
    fn is_fresh(&self, login: &Login, now: Timestamp) -> bool {
        let Some(expires) = self.expires else { return false };
        expires > now.plus(LEFT_MIN) || (login.expires().is_some_and(|end| end <= expires) && expires > now)
    }

    /// Forgets the token of a server, and returns it.
    pub(crate) fn forget(server: &ServerUrl) -> Option<Self> {
        let mut tokens = read().tokens;
        let known = tokens.remove(server.as_str())?;
        let _ = write(tokens);
        Some(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_used_again_while_it_has_time_left() {
        let now = Timestamp(0);
        let after = |minutes: u64| now.plus(Duration::from_secs(60 * minutes));
        let token = |minutes: u64| ShortLived {
            token: "swt_short".to_owned(),
            expires: Some(after(minutes)),
            of: String::new(),
        };
        let lasting = Login::given("swt_long", after(10_000));
        assert!(token(60).is_fresh(&lasting, now) && token(16).is_fresh(&lasting, now));
        assert!(!token(15).is_fresh(&lasting, now) && !token(0).is_fresh(&lasting, now));
        // The login ends with it, so another one would last no longer.
        assert!(token(10).is_fresh(&Login::given("swt_long", after(10)), now));
        assert!(!token(0).is_fresh(&Login::given("swt_long", after(0)), now));
        assert!(!format!("{:?}", token(1)).contains("swt_"));
    }
}

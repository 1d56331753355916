//! `statewright state import`.
//!
//! Clients push a file into an empty state with a new serial and lineage. This sends the file unchanged,
//! under a lock, after checking that it follows the current version.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;
use statewright_shared::adapters::{SystemClock, SystemIds};
use statewright_shared::ports::{Clock as _, Ids as _};

use super::Session;
use super::wire::{State, Text};
use crate::client::{Call, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Import {
    /// The file, such as terraform.tfstate or errored.tfstate; `-` reads stdin.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Import the file even if it does not follow the current version, which stays available as a version.
    #[arg(long)]
    force: bool,
}

/// The fields that decide whether a file follows the current version.
#[derive(Debug, Deserialize)]
struct Sent {
    serial: Option<u64>,
    lineage: Option<String>,
    /// The state format's version. Other JSON files have a string here.
    version: Option<u64>,
    encryption_version: Option<String>,
}

impl Sent {
    /// A state has a serial and a format version, or says that its client encrypted it.
    fn is_state(&self) -> bool {
        self.encryption_version.is_some() || (self.version.is_some() && self.serial.is_some())
    }
}

#[derive(Serialize)]
struct Imported {
    state: String,
    version: u64,
    serial: Option<u64>,
    lineage: Option<String>,
    changed: bool,
}

pub(super) async fn run(session: &Session, import: &Import) -> anyhow::Result<()> {
    let text = read(&import.file)?;
    let sent: Sent = serde_json::from_slice(&text)
        .ok()
        .filter(|sent: &Sent| sent.is_state())
        .with_context(|| format!("{} is not a Terraform or OpenTofu state", import.file.display()))?;
    let state = session.client.state::<State>(session.state.as_ref()).await?.read;
    let lock = SystemIds.uuid().to_string();
    take_lock(session, &state.id, &lock).await?;
    let done = send(session, &state.id, &lock, text, &sent, import.force).await;
    // Unlock also after a failure: no other process would.
    let unlock = Call::delete(["tfstate", &state.id, "lock"]).json(&json!({ "ID": lock })).repeatable();
    let unlocked = session.client.send(unlock).await;
    let changed = done?;
    unlocked.with_context(|| {
        format!("the file was imported, but the lock {lock} was not released: run `statewright state unlock`")
    })?;
    let State { version, current, .. } =
        session.client.document::<State>(Call::get(["api", "tfstates", &state.id])).await?.read;
    let (serial, lineage) = current.map_or((None, None), |text| (text.serial, text.lineage));
    let imported = Imported { state: state.name(), version, serial, lineage, changed };
    session.out.answer(&imported, |imported| {
        let serial = imported.serial.map_or_else(String::new, |serial| format!(", serial {serial}"));
        match imported.changed {
            true => format!("{} is at version {}{serial}", imported.state, imported.version),
            false => {
                format!(
                    "{} already has this content, as version {}{serial}",
                    imported.state, imported.version
                )
            }
        }
    })
}

fn read(file: &Path) -> anyhow::Result<Bytes> {
    if file == Path::new("-") {
        let mut text = Vec::new();
        std::io::stdin().lock().read_to_end(&mut text).context("cannot read stdin")?;
        return Ok(text.into());
    }
    fs::read(file).map(Bytes::from).with_context(|| format!("cannot read {}", file.display()))
}

async fn take_lock(session: &Session, state: &str, lock: &str) -> Result<(), Failure> {
    let info = json!({
        "ID": lock, "Operation": "state-import", "Info": "", "Who": std::env::var("USER").unwrap_or_default(),
        "Version": env!("CARGO_PKG_VERSION"), "Created": SystemClock.now().to_rfc3339(), "Path": "",
    });
    // Repeatable: the same lock id is the same lock.
    session.client.send(Call::post(["tfstate", state, "lock"]).json(&info).repeatable()).await?;
    Ok(())
}

/// Sends the text under a lock, unless it is the current version. Returns whether it was sent.
async fn send(
    session: &Session,
    state: &str,
    lock: &str,
    text: Bytes,
    sent: &Sent,
    force: bool,
) -> anyhow::Result<bool> {
    // Read under the lock, so that no other write can come between.
    let current = session.client.document::<State>(Call::get(["api", "tfstates", state])).await?.read;
    if let Some(there) = &current.current {
        let is_same_length = usize::try_from(there.bytes).is_ok_and(|bytes| bytes == text.len());
        if is_same_length && session.client.send(Call::get(["tfstate", state])).await? == text {
            return Ok(false);
        }
        if let (false, Some(why)) = (force, why_not(there, sent)) {
            bail!("{why}. To send it anyway, add --force: the current content stays available as a version");
        }
    }
    session.client.send(Call::post(["tfstate", state]).query("ID", lock).text(text).repeatable()).await?;
    Ok(true)
}

/// Why a file does not follow the current version.
fn why_not(there: &Text, sent: &Sent) -> Option<String> {
    let (old, new) = (there.lineage.as_deref().unwrap_or(""), sent.lineage.as_deref().unwrap_or(""));
    if old != new {
        return Some(format!("this is a different state: its lineage is {old:?}, and the file has {new:?}"));
    }
    match (there.serial, sent.serial) {
        (Some(old), Some(new)) if new > old => None,
        (Some(old), Some(new)) => {
            Some(format!("the state is newer: it has serial {old}, and the file has {new}"))
        }
        (None, _) | (_, None) => {
            Some("a serial is missing, so it is unknown which of the two is newer".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_json_files_are_not_states() {
        let is_state = |text: &str| serde_json::from_str::<Sent>(text).is_ok_and(|sent| sent.is_state());
        assert!(is_state(r#"{"version":4,"serial":1,"lineage":"a","resources":[]}"#));
        assert!(is_state(r#"{"serial":1,"lineage":"a","encrypted_data":"","encryption_version":"v0"}"#));
        for other in [r#"{"name":"x","version":"1.0.0"}"#, "[]", "{}", "7", r#"{"version":4}"#] {
            assert!(!is_state(other), "{other}");
        }
    }

    fn there(serial: u64, lineage: &str) -> Text {
        serde_json::from_value(
            json!({ "serial": serial, "lineage": lineage, "bytes": 1, "encrypted": false }),
        )
        .unwrap()
    }

    #[test]
    fn a_text_follows_one_of_its_lineage_and_a_lower_serial() {
        let sent = |serial, lineage: &str| Sent {
            serial,
            lineage: Some(lineage.to_owned()),
            version: Some(4),
            encryption_version: None,
        };
        assert_eq!(why_not(&there(3, "a"), &sent(Some(4), "a")), None);
        for (serial, lineage, why) in [
            (Some(3), "a", "is newer"),
            (Some(2), "a", "is newer"),
            (Some(9), "b", "lineage"),
            (None, "a", "missing"),
        ] {
            let found = why_not(&there(3, "a"), &sent(serial, lineage)).unwrap();
            assert!(found.contains(why), "{found}");
        }
    }
}

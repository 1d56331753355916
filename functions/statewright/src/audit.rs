//! The audit log as a file: requests to the server, and commands of the operator.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use statewright_shared::adapters::SystemClock;
use statewright_shared::api::audit::{AuditLog, Record, Result as Outcome};
use statewright_shared::ports::Clock as _;
use statewright_shared::services::Error;

use crate::output::in_json;

#[derive(Debug)]
pub(crate) struct AuditFile {
    path: PathBuf,
    file: Mutex<File>,
}

impl AuditFile {
    /// Opens the file. A new file gets mode 0600.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        Ok(Self { path: path.to_owned(), file: Mutex::new(open(path)?) })
    }

    /// Continues in a new file of the same name, after log rotation has moved the old one away.
    pub(crate) fn reopen(&self) {
        match open(&self.path) {
            Ok(file) => *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file,
            Err(error) => tracing::error!("{error:#}; still writing to the file that was open"),
        }
    }
}

fn open(path: &Path) -> anyhow::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot open the audit log {}", path.display()))
}

/// Characters of a command line that a record keeps.
const WORDS_MAX: usize = 500;

/// The record of a command of the operator.
pub(crate) fn of_command(words: impl Iterator<Item = String>, result: &anyhow::Result<()>) -> Record {
    let words: Vec<String> = words.collect();
    let result = match result.as_ref().err().map(|error| error.downcast_ref::<Error>()) {
        None => Outcome::Done,
        Some(Some(Error::Port(_) | Error::Contended(_) | Error::Broken(_) | Error::Internal(_))) => {
            Outcome::Unknown
        }
        Some(_) => Outcome::Refused,
    };
    Record {
        time: SystemClock.now(),
        action: "command",
        result,
        status: None,
        user: None,
        tried: None,
        token: None,
        organization: None,
        project: None,
        stack: None,
        update: None,
        state: None,
        environment: None,
        detail: Some(words.join(" ").chars().take(WORDS_MAX).collect()),
        from: None,
        request_id: None,
    }
}

impl AuditLog for AuditFile {
    fn keep(&self, record: &Record) {
        let written = serde_json::to_string(record).map_err(std::io::Error::from).and_then(|line| {
            // People read these lines at terminals too.
            let line = in_json(&line).into_owned() + "\n";
            // One write for each line, so that lines of several writers do not mix.
            self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes())
        });
        if let Err(error) = written {
            let request_id = record.request_id.as_deref();
            tracing::error!(%error, action = record.action, request_id, "cannot write to the audit log");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use statewright_shared::ports::Timestamp;

    use super::*;

    fn record(action: &'static str) -> Record {
        Record {
            time: Timestamp::from_seconds(0),
            action,
            result: Outcome::Done,
            status: Some(200),
            user: Some("alice".to_owned()),
            tried: None,
            token: None,
            organization: None,
            project: None,
            stack: None,
            update: None,
            state: None,
            environment: None,
            detail: None,
            from: None,
            request_id: None,
        }
    }

    #[test]
    fn invisible_characters_are_escaped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let detail = "a\u{202e}b\u{2028}c\u{e0041}".to_owned();
        AuditFile::open(&path)
            .unwrap()
            .keep(&Record { detail: Some(detail.clone()), ..record("state.lock") });
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(r#""detail":"a\u202eb\u2028c\udb40\udc41""#), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["detail"], detail);
    }

    #[test]
    fn records_go_to_a_private_file_that_can_be_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let log = AuditFile::open(&path).unwrap();
        log.keep(&record("stack.create"));
        log.keep(&record("stack.tag"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let old = folder.path().join("audit.log.1");
        std::fs::rename(&path, &old).unwrap();
        log.keep(&record("stack.rename"));
        log.reopen();
        log.keep(&record("stack.delete"));
        let actions = |path: &Path| -> Vec<String> {
            let text = std::fs::read_to_string(path).unwrap();
            let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
            text.lines().map(|text| line(text)["action"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(actions(&old), ["stack.create", "stack.tag", "stack.rename"]);
        assert_eq!(actions(&path), ["stack.delete"]);
        let line = r#"{"time":"1970-01-01T00:00:00Z","action":"stack.delete","result":"done","status":200,"user":"alice"}"#;
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{line}\n"));
    }
}

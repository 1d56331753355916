//! Checks that a store is there, works and is allowed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use statewright_shared::adapters::embedded::{DataFolder, FileKeys};
use statewright_shared::adapters::{Finding, State, SystemClock, SystemIds};
use statewright_shared::context::Context;
use statewright_shared::ports::{Clock as _, Ids as _};
use statewright_shared::services::maintenance::{copy, health};

use crate::args::{Data, Misused, Store};
use crate::data;

/// Explains why a server cannot start on its store: the problems found, or else the error itself.
pub(crate) async fn why(data: &Data, error: anyhow::Error) -> anyhow::Error {
    if data.store != Store::Aws || error.is::<Misused>() {
        return error;
    }
    let findings = inspect_store(data).await.unwrap_or_default();
    let wrong: Vec<String> = findings
        .into_iter()
        .filter(|finding| finding.state == State::Wrong)
        .map(|Finding { of, what, found, remedy, .. }| {
            let remedy = remedy.map(|remedy| format!(". {remedy}")).unwrap_or_default();
            format!("{of} ({what}): {found}{remedy}")
        })
        .collect();
    if wrong.is_empty() {
        error
    } else {
        anyhow!("the store on AWS cannot be used\n  {}", wrong.join("\n  "))
    }
}

/// The findings about the parts of a store, and about what it contains.
pub(crate) async fn inspect_store(data: &Data) -> anyhow::Result<Vec<Finding>> {
    match data.store {
        Store::Aws => {
            let mut findings = data::on_aws::examine(&data.aws).await?;
            if findings.iter().all(|finding| finding.state != State::Wrong) {
                findings.extend(inspect_content(&data::open_unchecked(data).await?).await);
            }
            Ok(findings)
        }
        Store::Folder => {
            let path = data::path(data)?;
            let mut findings = inspect_folder(&path);
            match DataFolder::open_beside(&path, Arc::new(SystemIds)).await {
                Ok(_) => findings.extend(inspect_content(&data::open_unchecked(data).await?).await),
                // The errors of the folder say what to do.
                Err(error) => {
                    findings.push(finding("data", State::Wrong, format!("{:#}", anyhow!(error)), None))
                }
            }
            Ok(findings)
        }
    }
}

fn finding(what: &'static str, state: State, found: impl Into<String>, remedy: Option<String>) -> Finding {
    Finding { of: "the store".to_owned(), what, state, found: found.into(), remedy }
}

/// Checks that need the stored data.
async fn inspect_content(ctx: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(error) = copy::refuse_unfinished(ctx).await {
        findings.push(finding("copy", State::Wrong, error.to_string(), None));
    }
    findings.push(match health::signer_opens(ctx).await {
        Ok(true) => finding("master key", State::Good, "it opens the stored keys", None),
        Ok(false) => finding("master key", State::Good, "not used yet: no server has run here", None),
        Err(error) => {
            let remedy = "Name the master key that the data was written with; a copy of a table or folder \
                          needs the key of the original";
            finding("master key", State::Wrong, format!("{:#}", anyhow!(error)), Some(remedy.to_owned()))
        }
    });
    findings
}

/// Free bytes below which writes are about to fail.
const FREE_BYTES_MIN: u64 = 256 << 20;

/// Free bytes below which the operator should look for more room.
const FREE_BYTES_GOOD: u64 = 1 << 30;

/// Syncs per measurement.
const SYNCS: u32 = 20;

/// Syncs per second below which updates are too slow: an update waits for two syncs for each resource.
const SYNCS_PER_SECOND_MIN: f64 = 10.0;

/// Syncs per second below which a user notices the disk.
const SYNCS_PER_SECOND_GOOD: f64 = 50.0;

/// Syncs per second that no disk with power loss protection reaches.
const SYNCS_PER_SECOND_MAX: f64 = 100_000.0;

fn inspect_folder(path: &Path) -> Vec<Finding> {
    let of = format!("the folder {}", path.display());
    let finding = |what, state, found: String, remedy: Option<String>| Finding {
        of: of.clone(),
        what,
        state,
        found,
        remedy,
    };
    let metadata = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => metadata,
        // `DataFolder::open_beside` reports that.
        _ => return Vec::new(),
    };
    let mut findings = Vec::new();
    let mode = metadata.permissions().mode() & 0o777;
    findings.push(match mode & 0o077 {
        0 => finding("rights", State::Good, format!("only its owner has access (mode {mode:03o})"), None),
        _ => {
            let remedy = format!("Run `chmod 700 {}`", path.display());
            finding(
                "rights",
                State::Wrong,
                format!("other users have access (mode {mode:03o})"),
                Some(remedy),
            )
        }
    });
    let key = path.join("master.key");
    if key.exists() {
        findings.push(match FileKeys::open(&key, Arc::new(SystemIds)) {
            Ok(_) => {
                finding("master.key", State::Good, "valid, and only its owner has access".to_owned(), None)
            }
            Err(error) => finding("master.key", State::Wrong, format!("{:#}", anyhow!(error)), None),
        });
    }
    findings.push(match rustix::fs::statvfs(path) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let words = format!("{} MiB", free >> 20);
            let remedy = || Some("Make room, or move the folder to a larger disk".to_owned());
            match free {
                0..FREE_BYTES_MIN => finding("free space", State::Wrong, words, remedy()),
                FREE_BYTES_MIN..FREE_BYTES_GOOD => finding("free space", State::Advice, words, remedy()),
                _ => finding("free space", State::Good, words, None),
            }
        }
        Err(error) => finding("free space", State::Unknown, error.to_string(), None),
    });
    findings.push(match syncs_per_second(path) {
        Ok(rate) => {
            let words = format!("{rate:.0} synced writes per second");
            if rate < SYNCS_PER_SECOND_MIN {
                let remedy = "Use a faster disk: every step of an update waits for it";
                finding("disk", State::Wrong, words, Some(remedy.to_owned()))
            } else if rate < SYNCS_PER_SECOND_GOOD {
                let remedy = "A faster disk makes updates faster: every step waits for it";
                finding("disk", State::Advice, words, Some(remedy.to_owned()))
            } else if rate > SYNCS_PER_SECOND_MAX {
                let remedy = "Check whether the folder is in memory, or whether the disk's write cache \
                              survives a power cut";
                let words = format!("{words}: it seems to confirm writes before they are stored");
                finding("disk", State::Advice, words, Some(remedy.to_owned()))
            } else {
                finding("disk", State::Good, words, None)
            }
        }
        Err(error) => {
            let remedy = "Let the user that runs the server write to it".to_owned();
            finding("disk", State::Wrong, format!("it cannot be written: {error}"), Some(remedy))
        }
    });
    findings
}

/// Measures small synced writes per second, one after another.
fn syncs_per_second(folder: &Path) -> io::Result<f64> {
    let path = folder.join(format!(".doctor-{}", SystemIds.uuid().simple()));
    let mut file = File::create_new(&path)?;
    let measured = (|| {
        let start = SystemClock.now();
        for _ in 0..SYNCS {
            file.write_all(&[0; 4096])?;
            file.sync_data()?;
        }
        Ok(SystemClock.now().since(start))
    })();
    fs::remove_file(&path)?;
    measured.map(|took: Duration| f64::from(SYNCS) / took.as_secs_f64().max(1e-6))
}

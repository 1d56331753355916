//! `statewright doctor`.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{anyhow, bail};
use serde::Serialize;
use statewright_shared::adapters::embedded::{DataFolder, FileKeys};
use statewright_shared::adapters::{Finding, State, SystemClock, SystemIds};
use statewright_shared::context::Context;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::ports::{Clock as _, Ids as _};
use statewright_shared::services::maintenance::{copy, health};

use crate::args::{self, Data, Misused, Store};
use crate::client;
use crate::data;
use crate::output::{Output, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    data: Data,
    /// The address that clients have of the server, to be asked whether it answers: https://state.example.com.
    #[arg(long, value_name = "URL", value_parser = args::server_url)]
    url: Option<ServerUrl>,
}

#[derive(Serialize)]
struct Report {
    findings: Vec<Line>,
    /// How many of them are wrong.
    wrong: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    of: String,
    what: &'static str,
    state: &'static str,
    found: String,
    remedy: Option<String>,
}

pub(crate) async fn run(doctor: Doctor, out: Output) -> anyhow::Result<()> {
    let Doctor { data, url } = doctor;
    let mut findings = check_store(&data).await?;
    findings.push(check_address(url.as_ref()).await);
    let wrong = findings.iter().filter(|finding| finding.state == State::Wrong).count();
    let findings = findings
        .into_iter()
        .map(|Finding { of, what, state, found, remedy }| Line {
            of,
            what,
            state: state.as_str(),
            found,
            remedy,
        })
        .collect();
    out.answer(&Report { findings, wrong }, |report| {
        let rows = report.findings.iter().map(|line| {
            vec![line.state.to_owned(), format!("{}: {}", line.of, line.what), line.found.clone()]
        });
        let mut text = table(&["STATE", "WHAT", "FOUND"], rows);
        for line in &report.findings {
            if let Some(remedy) = &line.remedy {
                text.push_str(&format!("\n{}: {}: {remedy}", line.of, line.what));
            }
        }
        text
    })?;
    match wrong {
        0 => Ok(()),
        1 => bail!("something is wrong: see above"),
        count => bail!("{count} things are wrong: see above"),
    }
}

/// Why a server could not start on its store: what is wrong with it, if anything is found to be, or else the error.
pub(crate) async fn why(data: &Data, error: anyhow::Error) -> anyhow::Error {
    if data.store != Store::Aws || error.is::<Misused>() {
        return error;
    }
    let findings = check_store(data).await.unwrap_or_default();
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

async fn check_store(data: &Data) -> anyhow::Result<Vec<Finding>> {
    match data.store {
        Store::Aws => {
            let mut findings = data::on_aws::examine(&data.aws).await?;
            if findings.iter().all(|finding| finding.state != State::Wrong) {
                findings.extend(check_content(&data::look(data).await?).await);
            }
            Ok(findings)
        }
        Store::Folder => {
            let path = data::path(data)?;
            let mut findings = check_folder(&path);
            match DataFolder::open_beside(&path, Arc::new(SystemIds)).await {
                Ok(_) => findings.extend(check_content(&data::look(data).await?).await),
                // Each of these says what to do.
                Err(error) => {
                    findings.push(says("data", State::Wrong, format!("{:#}", anyhow!(error)), None))
                }
            }
            Ok(findings)
        }
    }
}

fn says(what: &'static str, state: State, found: impl Into<String>, remedy: Option<String>) -> Finding {
    Finding { of: "the store".to_owned(), what, state, found: found.into(), remedy }
}

/// What only shows in what is stored.
async fn check_content(ctx: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(error) = copy::refuse_unfinished(ctx).await {
        findings.push(says("copy", State::Wrong, error.to_string(), None));
    }
    findings.push(match health::signer_opens(ctx).await {
        Ok(true) => says("master key", State::Good, "it opens what it should", None),
        Ok(false) => says("master key", State::Good, "nothing is under it yet: no server has run here", None),
        Err(error) => {
            let remedy = "Name the master key that the data were written under; a copy of the table or the folder needs \
                          its own";
            says("master key", State::Wrong, format!("{:#}", anyhow!(error)), Some(remedy.to_owned()))
        }
    });
    findings
}

/// Below this, what goes on is in danger.
const FREE_BYTES_MIN: u64 = 256 << 20;

/// Below this, it is time to look for more.
const FREE_BYTES_GOOD: u64 = 1 << 30;

/// What the disk is asked to keep, so often.
const SYNCS: u32 = 20;

/// An update waits for two of these for each resource.
const SYNCS_PER_SECOND_MIN: f64 = 10.0;

/// A client notices the disk below this.
const SYNCS_PER_SECOND_GOOD: f64 = 50.0;

/// No disk that survives the loss of power is faster.
const SYNCS_PER_SECOND_MAX: f64 = 100_000.0;

fn check_folder(path: &Path) -> Vec<Finding> {
    let of = format!("the folder {}", path.display());
    let says = |what, state, found: String, remedy: Option<String>| Finding {
        of: of.clone(),
        what,
        state,
        found,
        remedy,
    };
    let metadata = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => metadata,
        // It is told with its data.
        _ => return Vec::new(),
    };
    let mut findings = Vec::new();
    let mode = metadata.permissions().mode() & 0o777;
    findings.push(match mode & 0o077 {
        0 => says("rights", State::Good, format!("for its owner alone (mode {mode:03o})"), None),
        _ => {
            let remedy = format!("Run: chmod 700 {}", path.display());
            says("rights", State::Wrong, format!("others may enter it (mode {mode:03o})"), Some(remedy))
        }
    });
    let key = path.join("master.key");
    if key.exists() {
        findings.push(match FileKeys::open(&key, Arc::new(SystemIds)) {
            Ok(_) => says("master.key", State::Good, "a key, for its owner alone".to_owned(), None),
            Err(error) => says("master.key", State::Wrong, format!("{:#}", anyhow!(error)), None),
        });
    }
    findings.push(match rustix::fs::statvfs(path) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let words = format!("{} MiB", free >> 20);
            let remedy = || Some("Make room, or move the folder to a larger disk".to_owned());
            match free {
                0..FREE_BYTES_MIN => says("free space", State::Wrong, words, remedy()),
                FREE_BYTES_MIN..FREE_BYTES_GOOD => says("free space", State::Advice, words, remedy()),
                _ => says("free space", State::Good, words, None),
            }
        }
        Err(error) => says("free space", State::Unknown, error.to_string(), None),
    });
    findings.push(match syncs_per_second(path) {
        Ok(rate) => {
            let words = format!("{rate:.0} writes a second reach it");
            if rate < SYNCS_PER_SECOND_MIN {
                let remedy = "Use a faster disk: every step of an update waits for it";
                says("disk", State::Wrong, words, Some(remedy.to_owned()))
            } else if rate < SYNCS_PER_SECOND_GOOD {
                let remedy = "A faster disk makes updates faster: every step waits for it";
                says("disk", State::Advice, words, Some(remedy.to_owned()))
            } else if rate > SYNCS_PER_SECOND_MAX {
                let remedy = "See whether the folder is in memory, or the disk's write cache is not kept over a power cut";
                let words = format!("{words}: it seems not to wait for them");
                says("disk", State::Advice, words, Some(remedy.to_owned()))
            } else {
                says("disk", State::Good, words, None)
            }
        }
        Err(error) => {
            let remedy = "Let whoever runs the server write there".to_owned();
            says("disk", State::Wrong, format!("it cannot be written: {error}"), Some(remedy))
        }
    });
    findings
}

/// How many small writes a second are on disk, one after another.
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

/// How long a server may take to answer.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(10);

async fn check_address(url: Option<&ServerUrl>) -> Finding {
    let says = |of: String, state, found: String, remedy: Option<&str>| Finding {
        of,
        what: "address",
        state,
        found,
        remedy: remedy.map(str::to_owned),
    };
    let Some(url) = url else {
        let remedy = "Name the address that clients have with --url";
        return says("the server".to_owned(), State::Unknown, "it was not asked".to_owned(), Some(remedy));
    };
    let of = format!("the server {url}");
    let remedy = "See whether the server runs, whether the address leads to it, and whether this machine trusts its \
                  certificate";
    match client::reach(url, "/healthz", ANSWER_WAIT_MAX).await {
        Ok(200) => says(of, State::Good, "it answers".to_owned(), None),
        Ok(status) => says(of, State::Wrong, format!("it answers {status} to /healthz"), Some(remedy)),
        Err(error) => says(of, State::Wrong, format!("{:#}", anyhow!(error)), Some(remedy)),
    }
}

//! `statewright doctor`.

use std::time::Duration;

use anyhow::{anyhow, bail};
use serde::Serialize;
use statewright_shared::adapters::{Finding, State};
use statewright_shared::domain::plural::count;
use statewright_shared::domain::server_url::ServerUrl;

use crate::args::{self, Data};
use crate::client;
use crate::data::inspect::inspect_store;
use crate::output::{Output, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    data: Data,
    /// The address at which clients reach the server, to check whether it responds:
    /// https://state.example.com.
    #[arg(long, value_name = "URL", value_parser = args::server_url)]
    url: Option<ServerUrl>,
}

#[derive(Serialize)]
struct Report {
    findings: Vec<Line>,
    /// How many findings are problems.
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
    let mut findings = inspect_store(&data).await?;
    findings.push(inspect_address(url.as_ref()).await);
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
        found => bail!("{} found: see above", count(found, "problem")),
    }
}

/// How long the server may take to respond.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(10);

async fn inspect_address(url: Option<&ServerUrl>) -> Finding {
    let finding = |of: String, state, found: String, remedy: Option<&str>| Finding {
        of,
        what: "address",
        state,
        found,
        remedy: remedy.map(str::to_owned),
    };
    let Some(url) = url else {
        let remedy = "Name the address that clients use with --url";
        return finding("the server".to_owned(), State::Unknown, "not checked".to_owned(), Some(remedy));
    };
    let of = format!("the server {url}");
    let remedy = "Check that the server runs, that the address leads to it, and that this machine trusts its \
                  certificate";
    match client::reach(url, "/healthz", ANSWER_WAIT_MAX).await {
        Ok(200) => finding(of, State::Good, "it responds".to_owned(), None),
        Ok(status) => {
            finding(of, State::Wrong, format!("it responds with {status} to /healthz"), Some(remedy))
        }
        Err(error) => finding(of, State::Wrong, format!("{:#}", anyhow!(error)), Some(remedy)),
    }
}

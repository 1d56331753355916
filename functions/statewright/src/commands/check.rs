//! `statewright check`.

use anyhow::bail;
use serde::Serialize;
use statewright_shared::domain::ids::{StackId, StateId};
use statewright_shared::domain::plural::count;
use statewright_shared::services::maintenance::check as check_service;
use statewright_shared::services::maintenance::check::{Orphans, StackReport};
use statewright_shared::services::maintenance::check_states;
use statewright_shared::services::maintenance::check_states::StateReport;

use crate::args::Data;
use crate::data;
use crate::output::{Output, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    #[command(flatten)]
    data: Data,
    /// Also list the blobs that no item refers to, such as those of failed requests. Nothing is deleted.
    #[arg(long)]
    orphans: bool,
}

#[derive(Serialize)]
struct Report {
    stacks: Vec<Line>,
    states: Vec<StateLine>,
    /// Problems that belong to neither a stack nor a state.
    store: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    orphans: Option<Vec<String>>,
    /// The number of problems. Unreferenced blobs are not problems.
    problems: usize,
}

#[derive(Serialize)]
struct Line {
    stack: Option<String>,
    id: String,
    deleted: bool,
    versions: u64,
    problems: Vec<String>,
}

impl Line {
    fn new(id: StackId, report: StackReport) -> Self {
        Self {
            stack: report.address.map(|address| address.to_string()),
            id: id.to_string(),
            deleted: report.is_deleted,
            versions: report.versions,
            problems: report.problems,
        }
    }

    fn name(&self) -> String {
        self.stack.clone().unwrap_or_else(|| self.id.clone())
    }
}

#[derive(Serialize)]
struct StateLine {
    state: Option<String>,
    id: String,
    deleted: bool,
    versions: u64,
    problems: Vec<String>,
}

impl StateLine {
    fn new(id: StateId, report: StateReport) -> Self {
        Self {
            state: report.address.map(|address| address.to_string()),
            id: id.to_string(),
            deleted: report.is_deleted,
            versions: report.versions,
            problems: report.problems,
        }
    }

    fn name(&self) -> String {
        self.state.clone().unwrap_or_else(|| self.id.clone())
    }
}

fn health(problems: usize, deleted: bool) -> String {
    match (problems, deleted) {
        (0, false) => "good".to_owned(),
        (0, true) => "good (deleted)".to_owned(),
        (count, _) => format!("{count} wrong"),
    }
}

impl Report {
    fn for_people(&self) -> String {
        let rows = self.stacks.iter().map(|line| {
            vec![line.name(), line.versions.to_string(), health(line.problems.len(), line.deleted)]
        });
        let mut text = table(&["STACK", "VERSIONS", "STATE"], rows);
        if !self.states.is_empty() {
            let rows = self.states.iter().map(|line| {
                vec![line.name(), line.versions.to_string(), health(line.problems.len(), line.deleted)]
            });
            text.push_str("\n\n");
            text.push_str(&table(&["TERRAFORM STATE", "VERSIONS", "STATE"], rows));
        }
        let of_stacks = self.stacks.iter().map(|line| (line.name(), &line.problems));
        let of_states = self.states.iter().map(|line| (line.name(), &line.problems));
        for (name, problems) in of_stacks.chain(of_states) {
            for problem in problems {
                text.push_str(&format!("\n{name}: {problem}"));
            }
        }
        for problem in &self.store {
            text.push_str(&format!("\n{problem}"));
        }
        if let Some(orphans) = &self.orphans {
            text.push_str(&format!("\n{}", count(orphans.len(), "unreferenced blob")));
            for orphan in orphans {
                text.push_str(&format!("\n{orphan}"));
            }
        }
        text
    }
}

pub(crate) async fn run(check: Check, out: Output) -> anyhow::Result<()> {
    let (inventory, ctx) = data::open_whole(&check.data).await?;
    let ids = check_service::stacks(&ctx, &*inventory).await?;
    let bar = out.progress("stacks", Some(ids.len() as u64));
    let mut stacks = Vec::with_capacity(ids.len());
    for id in ids {
        stacks.push(Line::new(id, check_service::stack(&ctx, id).await?));
        bar.inc(1);
    }
    bar.finish_and_clear();
    stacks.sort_by_key(Line::name);
    let ids = check_states::states(&ctx, &*inventory).await?;
    let bar = out.progress("states", Some(ids.len() as u64));
    let mut states = Vec::with_capacity(ids.len());
    for id in ids {
        states.push(StateLine::new(id, check_states::state(&ctx, id).await?));
        bar.inc(1);
    }
    bar.finish_and_clear();
    states.sort_by_key(StateLine::name);
    let mut store = check_service::store(&ctx, &*inventory).await?;
    let orphans = match check.orphans {
        true => {
            let Orphans { blobs, problems } = check_service::orphans(&ctx, &*inventory).await?;
            let new = problems.into_iter().filter(|problem| !store.contains(problem)).collect::<Vec<_>>();
            store.extend(new);
            Some(blobs.iter().map(ToString::to_string).collect())
        }
        false => None,
    };
    let of_stacks = stacks.iter().map(|line| line.problems.len());
    let of_states = states.iter().map(|line| line.problems.len());
    let problems = store.len() + of_stacks.chain(of_states).sum::<usize>();
    let report = Report { stacks, states, store, orphans, problems };
    out.answer(&report, Report::for_people)?;
    match problems {
        0 => Ok(()),
        found => bail!("{} found: see above", count(found, "problem")),
    }
}

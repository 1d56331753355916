//! `statewright rehome`.

use anyhow::bail;
use serde::Serialize;
use statewright_shared::domain::names::StackAddress;
use statewright_shared::domain::plural::count;
use statewright_shared::domain::server_url::ServerUrl;
use statewright_shared::services::Error;
use statewright_shared::services::error::UpdateError;
use statewright_shared::services::identity::directory;
use statewright_shared::services::stacks::rehome;
use statewright_shared::services::stacks::rehome::{Plan, Rehomed};

use crate::args::{self, Data, misused};
use crate::data;
use crate::output::{Output, table};

/// Replace the server address in stacks: publish a version of each stack that names the old address, with the
/// new one. Users then log in to the new address. Stacks locked by an update are skipped, and the command exits
/// with 1: run it again later; stacks that are done stay as they are. Old versions are not changed.
#[derive(Debug, clap::Args)]
pub(crate) struct Rehome {
    #[command(flatten)]
    data: Data,
    /// The old address, as users logged in to it.
    #[arg(long, value_name = "URL", value_parser = args::server_url)]
    from: ServerUrl,
    /// The new address.
    #[arg(long, value_name = "URL", value_parser = args::server_url)]
    to: ServerUrl,
    /// Change nothing, and list the stacks that would change.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    from: String,
    to: String,
    dry_run: bool,
    /// Stacks that were checked.
    seen: u64,
    /// Stacks that name the old address.
    stacks: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    stack: String,
    outcome: Outcome,
    /// The version that names the new address.
    version: Option<u64>,
    /// Why the stack was skipped.
    reason: Option<String>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Due,
    Done,
    Held,
    Failed,
}

impl Line {
    /// `None` for a stack that does not name the old address.
    fn new(address: &StackAddress, rehomed: Result<Rehomed, Error>) -> Option<Self> {
        let (outcome, version, reason) = match rehomed {
            Ok(Rehomed::Elsewhere) => return None,
            Ok(Rehomed::Due) => (Outcome::Due, None, None),
            Ok(Rehomed::Done(version)) => (Outcome::Done, Some(version), None),
            Err(held @ Error::Update(UpdateError::Held(_))) => (Outcome::Held, None, Some(held.to_string())),
            Err(error) => (Outcome::Failed, None, Some(format!("{:#}", anyhow::Error::from(error)))),
        };
        Some(Self { stack: address.to_string(), outcome, version, reason })
    }

    fn row(&self) -> Vec<String> {
        let outcome = match self.outcome {
            Outcome::Due => "due",
            Outcome::Done => "done",
            Outcome::Held => "held",
            Outcome::Failed => "failed",
        };
        let version = self.version.map_or_else(|| "-".to_owned(), |version| version.to_string());
        vec![self.stack.clone(), outcome.to_owned(), version, self.reason.clone().unwrap_or_default()]
    }
}

pub(crate) async fn run(rehome: Rehome, out: Output) -> anyhow::Result<()> {
    let Rehome { data, from, to, dry_run } = rehome;
    if from == to {
        return Err(misused("--from and --to are the same address"));
    }
    let (_folder, ctx) = data::open_beside(&data).await?;
    let operator = directory::operator(&ctx, None).await?;
    let mut answer =
        Answer { from: from.to_string(), to: to.to_string(), dry_run, seen: 0, stacks: Vec::new() };
    let plan = Plan { from, to, dry_run };
    let progress = out.progress("stacks", None);
    let mut position = None;
    loop {
        let (page, next) = rehome::page(&ctx, &operator, &plan, position).await?;
        for (address, rehomed) in page {
            answer.seen += 1;
            answer.stacks.extend(Line::new(&address, rehomed));
        }
        progress.set_position(answer.seen);
        position = next;
        if position.is_none() {
            break;
        }
    }
    progress.finish_and_clear();
    let left = answer.stacks.iter().filter(|line| matches!(line.outcome, Outcome::Held | Outcome::Failed));
    let left = left.count();
    out.answer(&answer, |answer| {
        let seen = count(answer.seen, "stack");
        if answer.stacks.is_empty() {
            return format!("{seen} checked; none of them names {}", answer.from);
        }
        let seen = format!("{seen} checked, {} of them listed", answer.stacks.len());
        let headings = ["STACK", "OUTCOME", "VERSION", "REASON"];
        format!("{}\n{seen}", table(&headings, answer.stacks.iter().map(Line::row)))
    })?;
    if left > 0 {
        bail!(
            "skipped {}: fix the errors above or wait for running updates to finish, then run this again",
            count(left, "stack")
        );
    }
    Ok(())
}

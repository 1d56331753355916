//! `statewright stack index`.

use anyhow::bail;
use serde::Serialize;
use statewright_shared::domain::ids::StackId;
use statewright_shared::domain::names::StackAddress;
use statewright_shared::domain::plural::count;
use statewright_shared::services::identity::directory;
use statewright_shared::services::maintenance::check;
use statewright_shared::services::stacks::indexing;
use statewright_shared::services::stacks::indexing::Indexed;
use statewright_shared::services::store::stack_lookup;

use crate::args::{self, Data};
use crate::data;
use crate::output::{Output, table};

#[derive(Debug, clap::Args)]
pub(super) struct Index {
    /// The stack, as ORGANIZATION/PROJECT/STACK.
    #[arg(value_name = "STACK", value_parser = args::stack_address, required_unless_present = "all", conflicts_with = "all")]
    address: Option<StackAddress>,
    /// Index all stacks, also deleted ones.
    #[arg(long)]
    all: bool,
}

#[derive(Serialize)]
struct Answer {
    stacks: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    /// The name; the id if the stack has no head.
    stack: String,
    versions: u64,
    indexed: u64,
    /// Why the stack could not be indexed to its end.
    problem: Option<String>,
}

pub(super) async fn run(data: &Data, index: Index, out: Output) -> anyhow::Result<()> {
    let (inventory, ctx) = data::open_whole(data).await?;
    let stacks: Vec<StackId> = match &index.address {
        Some(address) => {
            let operator = directory::operator(&ctx, Some(&address.org)).await?;
            vec![stack_lookup::locate(&ctx, &operator, address).await?.id]
        }
        None => check::stacks(&ctx, &*inventory).await?.into_iter().collect(),
    };
    let progress = out.progress("versions", None);
    let mut answer = Answer { stacks: Vec::new() };
    for id in stacks {
        let indexed = indexing::index(&ctx, id, |_| progress.inc(1)).await;
        let (Indexed { address, versions, indexed }, problem) = match indexed {
            Ok(indexed) => (indexed, None),
            // Other stacks may be fine.
            Err(error) if index.all => {
                (Indexed::default(), Some(format!("{:#}", anyhow::Error::from(error))))
            }
            Err(error) => return Err(error.into()),
        };
        let stack = address.map_or_else(|| id.to_string(), |address| address.to_string());
        answer.stacks.push(Line { stack, versions, indexed, problem });
    }
    progress.finish_and_clear();
    let failed = answer.stacks.iter().filter(|line| line.problem.is_some()).count();
    out.answer(&answer, |answer| {
        let row = |line: &Line| {
            let (versions, indexed) = (line.versions.to_string(), line.indexed.to_string());
            vec![line.stack.clone(), versions, indexed, line.problem.clone().unwrap_or_default()]
        };
        table(&["STACK", "VERSIONS", "INDEXED", "PROBLEM"], answer.stacks.iter().map(row))
    })?;
    if failed > 0 {
        bail!("{} could not be indexed: see above", count(failed, "stack"));
    }
    Ok(())
}

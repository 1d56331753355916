//! `statewright aws`.

use clap::Subcommand;
use serde::Serialize;

use crate::args;
use crate::data::on_aws;
use crate::output::{Output, table};

#[derive(Debug, clap::Args)]
pub(crate) struct Aws {
    #[command(flatten)]
    aws: args::AwsStore,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create the table (on demand, with point-in-time recovery for 35 days), the private bucket and the key
    /// (rotated yearly) that --table, --bucket and --kms-key name. Keeps what already exists, so it can be
    /// repeated.
    Setup,
}

#[derive(Serialize)]
struct SetUp {
    done: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    what: &'static str,
    name: String,
    outcome: &'static str,
}

pub(crate) async fn run(aws: Aws, out: Output) -> anyhow::Result<()> {
    let Command::Setup = aws.command;
    let done = on_aws::set_up(&aws.aws).await?;
    let done = done.into_iter().map(|(what, name, outcome)| Line { what, name, outcome }).collect();
    out.answer(&SetUp { done }, |set_up| {
        let rows = set_up
            .done
            .iter()
            .map(|line| vec![line.what.to_owned(), line.name.clone(), line.outcome.to_owned()]);
        table(&["WHAT", "OF", "OUTCOME"], rows)
    })
}

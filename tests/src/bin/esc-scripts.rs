//! Runs the scripts that are published with the `esc` CLI against a server of ours, and says which of them end as they are published.
#![expect(clippy::print_stdout, reason = "printing what it found is what it is for")]

use std::process::ExitCode;

use clap::Parser;
use statewright_tests::esc_scripts::{self, Report};

/// Run the published scripts of the `esc` CLI against a server of this tree.
#[derive(Debug, Parser)]
struct Args {
    /// Only this script, such as env-set.
    #[arg(long)]
    only: Option<String>,
    /// Show what the scripts printed, beside what they should have.
    #[arg(long)]
    show: bool,
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let args = Args::parse();
    let Report { same, different, text } = esc_scripts::run(args.only.as_deref()).await?;
    if args.show {
        println!("{text}");
    }
    for name in &different {
        println!("differs: {name}");
    }
    println!("{} of {} scripts end as they are published", same.len(), same.len() + different.len());
    Ok(if different.is_empty() && !same.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

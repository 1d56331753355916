//! Runs the scripts that are published with the `esc` CLI against our server, and reports which of them end as
//! published.
#![expect(clippy::print_stdout, reason = "its purpose is to print its results")]

use std::process::ExitCode;

use clap::Parser;
use statewright_tests::esc_scripts::{self, Report};

/// Run the published scripts of the `esc` CLI against this tree's server.
#[derive(Debug, Parser)]
struct Args {
    /// Only this script, such as env-set.
    #[arg(long)]
    only: Option<String>,
    /// Show the output of the scripts next to the expected one.
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
    println!("{} of {} scripts end as published", same.len(), same.len() + different.len());
    Ok(if different.is_empty() && !same.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

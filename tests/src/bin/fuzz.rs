//! Mutates what real clients sent and checks that the server keeps its promises, for any length of time.
#![expect(clippy::print_stdout, reason = "its purpose is to print its results")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use statewright_tests::fuzz::{Bound, Finding, Target, run};

/// Try mutated requests, journals, deltas, events and texts.
#[derive(Debug, Parser)]
struct Args {
    /// The target to try.
    #[arg(long, value_enum, required_unless_present = "replay")]
    target: Option<Target>,
    /// The time to run.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The seed. The same seed gives the same cases.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder for cases that break a promise.
    #[arg(long, value_name = "FOLDER", default_value = "target/fuzz")]
    keep: PathBuf,
    /// Try only the case of this file again.
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    replay: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let args = Args::parse();
    if let Some(path) = args.replay {
        return Ok(match Finding::replay(&path).await {
            Ok(()) => {
                println!("it holds now");
                ExitCode::SUCCESS
            }
            Err(broken) => {
                println!("{broken}");
                ExitCode::FAILURE
            }
        });
    }
    let Some(target) = args.target else { return Ok(ExitCode::FAILURE) };
    Ok(match run(target, args.seed, Bound::Time(Duration::from_secs(args.seconds))).await {
        Ok(cases) => {
            println!("{cases} cases, and every promise was kept");
            ExitCode::SUCCESS
        }
        Err(finding) => {
            println!("{finding}");
            println!("try it again with --replay {}", finding.keep(&args.keep)?.display());
            ExitCode::FAILURE
        }
    })
}

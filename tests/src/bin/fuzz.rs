//! Changes what real clients sent and looks whether the server keeps its promises, for as long as one likes.
#![expect(clippy::print_stdout, reason = "printing what it found is what it is for")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use statewright_tests::fuzz::{Bound, Finding, Target, run};

/// Try changed requests, journals, deltas, events and texts.
#[derive(Debug, Parser)]
struct Args {
    /// What to try.
    #[arg(long, value_enum, required_unless_present = "replay")]
    target: Option<Target>,
    /// For how long.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The same seed makes the same cases.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where a case that breaks a promise is kept.
    #[arg(long, value_name = "FOLDER", default_value = "target/fuzz")]
    keep: PathBuf,
    /// Try the case of this file again, and nothing else.
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

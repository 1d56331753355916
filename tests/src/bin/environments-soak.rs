//! Gives random definitions of environments to our evaluator and the real one, and prints the differences.
#![expect(clippy::print_stdout, reason = "its purpose is to print its results")]

use std::process::ExitCode;

use clap::Parser;
use statewright_tests::esc_definitions;
use statewright_tests::esc_oracle::{Oracle, Tally};

/// Compare our evaluator of environments with the real one on random definitions.
#[derive(Debug, Parser)]
struct Args {
    /// The number of definitions.
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// The first seed; each definition uses the next.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after this many differences.
    #[arg(long, default_value_t = 5)]
    differences: usize,
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let args = Args::parse();
    let mut oracle = Oracle::start()?;
    let mut differences = 0;
    let mut tally = Tally::default();
    for seed in args.seed..args.seed + args.count {
        match oracle.check(&esc_definitions::case(seed)) {
            Ok(found) => tally += found,
            Err(difference) => {
                differences += 1;
                println!("seed {seed}: {difference}\n");
            }
        }
        if differences == args.differences {
            break;
        }
    }
    println!("{tally}\n{differences} differences");
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

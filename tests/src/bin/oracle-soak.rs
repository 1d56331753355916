//! Gives random journals to our replayer and the real one, up to the requested number, and prints the differences.
#![expect(clippy::print_stdout, reason = "its purpose is to print its results")]

use std::process::ExitCode;

use clap::Parser;
use statewright_tests::oracle::{Oracle, Source, Tally, generate};

/// Compare our replayer with the real one on random journals.
#[derive(Debug, Parser)]
struct Args {
    /// The number of cases for each of the three sources.
    #[arg(long, default_value_t = 1_000)]
    count: usize,
    /// The first seed; each batch of cases uses the next.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after this many differences.
    #[arg(long, default_value_t = 5)]
    differences: usize,
    /// Only this source.
    #[arg(long)]
    only: Option<String>,
}

/// Cases that are generated at a time.
const BATCH: usize = 500;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let args = Args::parse();
    let mut oracle = Oracle::start()?;
    let mut differences = 0;
    for (name, command, source) in [
        ("engine", &["engine"][..], Source::Engine),
        ("model", &["gen", "-profile", "engine"][..], Source::Model),
        ("wild", &["gen", "-profile", "wild"][..], Source::Wild),
    ] {
        if args.only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let mut tally = Tally::default();
        let mut cases = 0;
        let mut seed = args.seed;
        while cases < args.count && differences < args.differences {
            // The engine counts its seeds up from the given one; the model has one seed for all its cases.
            let batch = generate(command, seed, BATCH.min(args.count - cases))?;
            seed += if source == Source::Engine { BATCH as u64 } else { 1 };
            for case in &batch {
                match oracle.check(case, source) {
                    Ok(found) => tally += found,
                    Err(difference) => {
                        differences += 1;
                        println!("{difference}\n");
                    }
                }
            }
            cases += batch.len();
            println!("{name}: {cases} journals so far; of their prefixes {tally}");
        }
        println!("{name}: {cases} journals; of their prefixes {tally}");
    }
    println!("{differences} differences");
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

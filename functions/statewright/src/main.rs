//! Statewright as one binary: `serve` mounts every group of routes on the embedded store, and the operator's commands
//! work on the same data beside it.

mod args;
mod commands;
mod data;
mod output;
mod serve;

use std::num::NonZero;
use std::process::ExitCode;
use std::thread::available_parallelism;

use clap::Parser;
use tokio::runtime::Builder;

use crate::args::Args;
use crate::output::Output;

/// A commit holds its thread for as long as the disk syncs, so of two threads for each core one can go on.
const THREADS_PER_CORE: usize = 2;

/// 0: done. 1: refused, or failed. 2: asked for in a way that cannot be meant, as the parser has it too.
fn main() -> ExitCode {
    let args = Args::parse();
    let out = Output::new(args.json);
    let cores = available_parallelism().map_or(1, NonZero::get);
    let runtime = Builder::new_multi_thread().worker_threads(THREADS_PER_CORE * cores).enable_all().build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(commands::run(args.command, out)),
        Err(error) => Err(anyhow::Error::new(error).context("this process may not start threads")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(usage) = error.downcast_ref::<clap::Error>() {
                usage.exit();
            }
            out.complain(&error, commands::next_step(&error));
            ExitCode::FAILURE
        }
    }
}

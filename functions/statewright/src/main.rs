//! Statewright as one binary: `serve` mounts every group of routes on the embedded store, and the operator's commands
//! work on the same data beside it.

mod args;
mod commands;
mod data;
mod output;
mod serve;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;
use crate::output::Output;

/// 0: done. 1: refused, or failed. 2: asked for in a way that cannot be meant, as the parser has it too.
#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let out = Output::new(args.json);
    match commands::run(args.command, out).await {
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

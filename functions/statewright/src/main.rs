//! Statewright as one binary: `serve` mounts every group of routes on the embedded store, and the operator's commands
//! work on the same data beside it.

mod args;
mod data;
mod serve;
mod token;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let result = match args.command {
        Command::Serve(serve) => serve::run(serve).await,
        Command::Token(command) => token::run(command).await,
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a command's refusal belongs on stderr")]
fn complain(error: &anyhow::Error) {
    // The whole chain: each layer says only what it knows.
    eprintln!("error: {error:#}");
}

//! Measures Statewright with the real client; `README.md` beside this file says how and why.

mod process;
mod stub;
mod up;
mod watch;

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures Statewright with the real client.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compares a whole `pulumi up` against Statewright with one against the stub, pair by pair
    Up(up::Arguments),
    /// Measures what the log, the metrics and the limits cost each request, in this process
    Watch,
    /// Serves a backend that answers every call at once and stores nothing
    Stub {
        /// Where to listen; port 0 takes a free one
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
}

#[expect(clippy::print_stderr, reason = "a command's output")]
#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Up(arguments) => up::run(arguments).await,
        Command::Watch => watch::run().await,
        Command::Stub { listen } => stub::serve(listen).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

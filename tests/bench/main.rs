//! Measures Statewright with the real client; `README.md` beside this file says how and why.

mod bill;
mod client;
mod fold;
mod functions;
mod hostile;
mod idle;
mod large;
mod lists;
mod month;
mod process;
mod replay;
mod serving;
mod states;
mod stub;
mod table;
mod tour;
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
    /// Plays a recorded `up` on fresh stacks, as fast as the server answers
    Replay(replay::Arguments),
    /// Folds a large base and a long journal, beside the replayer that Pulumi publishes
    Fold(fold::Arguments),
    /// Moves large states in and out, and saves into their updates
    Large(large::Arguments),
    /// Lists many stacks and a long history, page by page
    Lists(lists::Arguments),
    /// Writes and reads a large Terraform state beside the store alone, and plans beside a local file
    States(states::Arguments),
    /// The program's size, its start, and its memory when nobody asks
    Idle(idle::Arguments),
    /// What work costs in DynamoDB, S3 and KMS at public list prices, on a stand-in that counts
    Bill(bill::Arguments),
    /// The functions' sizes and starts, and their answers cold and warm, behind the local gateway
    Functions(functions::Arguments),
    /// Asks for as much as one token may, and without any, beside another user's `up`
    Hostile(hostile::Arguments),
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
        Command::Replay(arguments) => replay::run(arguments).await,
        Command::Fold(arguments) => fold::run(&arguments),
        Command::Large(arguments) => large::run(arguments).await,
        Command::Lists(arguments) => lists::run(arguments).await,
        Command::States(arguments) => states::run(arguments).await,
        Command::Idle(arguments) => idle::run(arguments).await,
        Command::Bill(arguments) => bill::run(arguments).await,
        Command::Functions(arguments) => Box::pin(functions::run(arguments)).await,
        Command::Hostile(arguments) => Box::pin(hostile::run(arguments)).await,
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

//! Measures Statewright with the real client; `README.md` next to this file says how and why.

mod bill;
mod chart;
mod client;
mod console;
mod fold;
mod functions;
mod hostile;
mod idle;
mod large;
mod lists;
mod month;
mod person;
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

/// Measure Statewright with the real client.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare a whole `pulumi up` against Statewright with one against the stub, pair by pair
    Up(up::Arguments),
    /// Draws the figures that `up --save` wrote
    Chart(chart::Arguments),
    /// Play a recorded `up` on fresh stacks, as fast as the server answers
    Replay(replay::Arguments),
    /// Fold a large base and a long journal, next to the replayer that Pulumi publishes
    Fold(fold::Arguments),
    /// Move large states in and out, and save into their updates
    Large(large::Arguments),
    /// List many stacks and a long history, page by page
    Lists(lists::Arguments),
    /// Open the resources of a small and of a large stack in a browser
    Console(console::Arguments),
    /// Write and read a large Terraform state next to the store alone, and plan next to a local file
    States(states::Arguments),
    /// Show the program's size, its start, and its memory when idle
    Idle(idle::Arguments),
    /// Show what work costs in DynamoDB, S3 and KMS at public list prices, on a stand-in that counts
    Bill(bill::Arguments),
    /// Measure the functions' sizes and starts, and their answers cold and warm, behind the local gateway
    Functions(functions::Arguments),
    /// Request as much as one token may, and without any, during another user's `up`
    Hostile(hostile::Arguments),
    /// Measure what the log, the metrics and the limits cost each request, in this process
    Watch,
    /// Serve a backend that answers every call at once and stores nothing
    Stub {
        /// The address to listen on; port 0 takes a free one
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
    },
}

#[expect(clippy::print_stderr, reason = "a command's output")]
#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Up(arguments) => up::run(arguments).await,
        Command::Chart(arguments) => chart::run(&arguments),
        Command::Replay(arguments) => replay::run(arguments).await,
        Command::Fold(arguments) => fold::run(&arguments),
        Command::Large(arguments) => large::run(arguments).await,
        Command::Lists(arguments) => lists::run(arguments).await,
        Command::Console(arguments) => Box::pin(console::run(arguments)).await,
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

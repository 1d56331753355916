//! `bench idle`: the program's size, how soon it answers, and its memory when idle.

use std::fs;
use std::io;
use std::path::PathBuf;

use statewright_tests::stopwatch::Stopwatch;
use statewright_tests::tools;

use crate::process::Server;
use crate::table::median;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A `statewright` to measure instead of the one in the profile `dist`
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    #[arg(long, default_value_t = 9)]
    rounds: usize,
}

/// Starts it on new folders, and again on an existing one.
#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) async fn run(arguments: Arguments) -> io::Result<()> {
    let program = arguments.server.unwrap_or_else(|| tools::statewright_dist().to_owned());
    println!("program: {:.1} MB", fs::metadata(&program)?.len() as f64 / 1e6);
    let (mut first, mut again, mut resident) = (Vec::new(), Vec::new(), 0.0);
    for _ in 0..arguments.rounds {
        let folder = tempfile::tempdir()?;
        for starts in [&mut first, &mut again] {
            let watch = Stopwatch::start();
            let server = Server::on_folder(&program, &folder.path().join("data")).await?;
            starts.push(watch.elapsed().as_secs_f64() * 1000.0);
            resident = server.usage().resident_mib;
            server.stop().await?;
        }
    }
    println!(
        "from its start to a connection: {:.0} ms on a new folder, {:.0} ms on one that is there; then {resident:.1} MiB",
        median(first),
        median(again)
    );
    Ok(())
}

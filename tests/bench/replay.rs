//! `bench replay`: a recorded `pulumi up`, sent again as fast as the server answers.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use statewright_tests::stopwatch::Stopwatch;
use statewright_tests::tools;

use crate::process::Server;
use crate::table::median;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The number of concurrent clients and of sessions of each; may be given several times
    #[arg(long = "clients", value_name = "CLIENTS:SESSIONS", default_values = ["1:20", "16:5"])]
    clients: Vec<String>,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// A `statewright` to measure instead of the one in the profile `dist`
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Where to make the server's data folder: on the disk to measure. Next to this program if not given
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
}

const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/recordings/up-200-journal-v1.jsonl.gz");

/// Plays it, on a new server for each number of clients.
#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) async fn run(arguments: Arguments) -> io::Result<()> {
    let program = arguments.server.unwrap_or_else(|| tools::statewright_dist().to_owned());
    let beside = std::env::current_exe()?;
    let data_in = arguments.data.as_deref().or(beside.parent()).unwrap_or(Path::new("."));
    for clients in &arguments.clients {
        let (clients, sessions) =
            clients.split_once(':').ok_or_else(|| io::Error::other("CLIENTS:SESSIONS"))?;
        for _ in 0..arguments.rounds {
            println!("\na 4 KB write and its sync take {:.2} ms here", sync_milliseconds(data_in)?);
            let server = Server::statewright(&program, data_in).await?;
            let before = server.usage();
            let output = Command::new(tools::bench_tools())
                .args(["replay", "-target", &server.url, "-token", &server.token, "-in", RECORDING])
                .args(["-clients", clients, "-rounds", sessions])
                .output()?;
            let printed = String::from_utf8_lossy(&output.stdout);
            if !output.status.success() || printed.contains("UNEXPECTED") {
                let errors = String::from_utf8_lossy(&output.stderr);
                return Err(io::Error::other(format!("the server answered otherwise\n{printed}{errors}")));
            }
            let shown = |line: &&str| line.starts_with("clients") || line.contains("journalentries");
            printed.lines().filter(shown).for_each(|line| println!("{line}"));
            let after = server.usage();
            println!(
                "server: {:.2} s of processor time, {:.0} MiB at most",
                after.cpu_seconds - before.cpu_seconds,
                after.resident_peak_mib
            );
        }
    }
    Ok(())
}

/// The median time of a small synced write, in milliseconds: no acknowledged write can be faster.
fn sync_milliseconds(folder: &Path) -> io::Result<f64> {
    let mut file: File = tempfile::tempfile_in(folder)?;
    let mut took = Vec::new();
    for _ in 0..200 {
        let watch = Stopwatch::start();
        file.write_all(&[b'x'; 4096])?;
        file.sync_data()?;
        took.push(watch.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(median(took))
}

//! `bench up`: the time that Statewright adds to a whole `pulumi up`.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use statewright_tests::cli::PulumiCli;
use statewright_tests::stopwatch::Stopwatch;
use statewright_tests::tools;

use crate::chart;
use crate::chart::Figure;
use crate::process::{Server, Usage};
use crate::table::median;

/// How long one command may take.
const PATIENCE: Duration = Duration::from_secs(1800);

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The number of resources and of rounds; may be given several times
    #[arg(long = "size", value_name = "RESOURCES:ROUNDS", default_values = ["200:9", "1000:5"])]
    sizes: Vec<Size>,
    /// Bytes of output that each resource carries in the state
    #[arg(long, default_value_t = 1024)]
    payload_bytes: u32,
    /// What is measured against the stub; the stub itself shows the resolution of the measurement
    #[arg(long, value_enum, default_value = "statewright")]
    subject: Subject,
    /// A `statewright` to measure instead of the one in the profile `dist`
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Where to make the server's data folder: on the disk to measure. Next to this program if not given
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// The number of resources that the client works on at once; its own default if not given
    #[arg(long)]
    parallel: Option<u32>,
    /// The time for which the client collects journal entries before it sends them, in milliseconds; its own
    /// default, 50, if not given
    #[arg(long)]
    batch_period: Option<u32>,
    /// Writes the medians into this file too, for `bench chart`
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Subject {
    /// The build in the profile `dist`, on a fresh data folder
    Statewright,
    /// The stub once more
    Stub,
    /// No server: a folder of the client's own (DIY), where it writes the whole state after each step
    Folder,
}

/// `200:9`: resources and rounds.
#[derive(Clone, Copy, Debug)]
struct Size {
    resources: usize,
    rounds: usize,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (resources, rounds) = text.split_once(':').ok_or("expected RESOURCES:ROUNDS")?;
        let number = |part: &str| part.parse().ok().filter(|n| *n > 0).ok_or("expected positive numbers");
        Ok(Self { resources: number(resources)?, rounds: number(rounds)? })
    }
}

/// A server and the only client that uses it.
struct Lane {
    /// None where the client has a folder.
    server: Option<Server>,
    cli: PulumiCli,
    /// Whether the server keeps a state that can be checked.
    keeps: bool,
}

/// One `up`.
#[derive(Clone, Copy, Debug)]
struct Sample {
    wall_seconds: f64,
    server: Usage,
}

/// Runs all sizes and prints a table for each.
#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) async fn run(arguments: Arguments) -> io::Result<()> {
    let subject = match arguments.subject {
        Subject::Stub => Lane::new(Server::stub().await?, false, &arguments),
        Subject::Folder => {
            let cli = PulumiCli::new().diy("bench").patience(PATIENCE);
            Lane { server: None, cli, keeps: true }
        }
        Subject::Statewright => {
            let program = arguments.server.clone().unwrap_or_else(|| tools::statewright_dist().to_owned());
            let here = std::env::current_exe()?;
            let folder = here.parent().ok_or_else(|| io::Error::other("this program has no folder"))?;
            let data_in = arguments.data.as_deref().unwrap_or(folder);
            Lane::new(Server::statewright(&program, data_in).await?, true, &arguments)
        }
    };
    let lanes = [
        subject,
        Lane::new(Server::stub().await?, false, &arguments),
        Lane::new(Server::stub().await?, false, &arguments),
    ];

    // The first command of a home asks for its user, and the first of a machine reads the programs from the disk.
    for lane in &lanes {
        lane.up("warm-up", 10, &arguments).await?;
    }
    let mut figures = Vec::new();
    for size in &arguments.sizes {
        println!(
            "\n{} resources, payload {} bytes, {} rounds; seconds of a whole `pulumi up --yes --skip-preview`",
            size.resources, arguments.payload_bytes, size.rounds
        );
        println!(
            "{:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>11} {:>9}",
            "round", "subject", "stub", "stub 2", "ratio", "noise", "server CPU", "stub CPU"
        );
        let mut rounds = Vec::new();
        for round in 0..size.rounds {
            let mut samples = [None; 3];
            // Each lane is first, second and last equally often, so that a machine that warms up or slows down
            // affects all equally.
            for place in 0..lanes.len() {
                let index = (round + place) % lanes.len();
                samples[index] = Some(
                    lanes[index]
                        .up(&format!("n{}-r{round}", size.resources), size.resources, &arguments)
                        .await?,
                );
            }
            let [Some(subject), Some(stub), Some(again)] = samples else { continue };
            rounds.push([subject, stub, again]);
            println!("{:>6} {}", round + 1, row(|pick| pick(&[subject, stub, again])));
        }
        println!("{:>6} {}", "median", row(|pick| median(rounds.iter().map(pick).collect())));
        let middle = |pick: fn(&[Sample; 3]) -> f64| median(rounds.iter().map(pick).collect());
        figures.push(Figure {
            subject: arguments
                .subject
                .to_possible_value()
                .map_or(String::new(), |it| it.get_name().to_owned()),
            resources: size.resources,
            rounds: size.rounds,
            seconds: middle(|[subject, _, _]| subject.wall_seconds),
            stub_seconds: middle(|[_, stub, _]| stub.wall_seconds),
            ratio: middle(|[subject, stub, _]| subject.wall_seconds / stub.wall_seconds),
            noise: middle(|[_, stub, again]| again.wall_seconds / stub.wall_seconds),
        });
        let usage = lanes[0].usage();
        println!(
            "server memory: {:.1} MiB now, {:.1} MiB at most",
            usage.resident_mib, usage.resident_peak_mib
        );
    }
    match &arguments.save {
        Some(file) => chart::save(file, figures),
        None => Ok(()),
    }
}

/// One line of the table: each column is a number of a round, or of all rounds.
fn row(of: impl Fn(fn(&[Sample; 3]) -> f64) -> f64) -> String {
    format!(
        "{:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>9.3} {:>11.3} {:>9.3}",
        of(|[subject, _, _]| subject.wall_seconds),
        of(|[_, stub, _]| stub.wall_seconds),
        of(|[_, _, again]| again.wall_seconds),
        of(|[subject, stub, _]| subject.wall_seconds / stub.wall_seconds),
        of(|[_, stub, again]| again.wall_seconds / stub.wall_seconds),
        of(|[subject, _, _]| subject.server.cpu_seconds),
        of(|[_, stub, _]| stub.server.cpu_seconds),
    )
}

impl Lane {
    fn new(server: Server, keeps: bool, arguments: &Arguments) -> Self {
        let mut cli = PulumiCli::new().backend(&server.url).token(&server.token).patience(PATIENCE);
        if let Some(period) = arguments.batch_period {
            cli = cli.env("PULUMI_JOURNALING_BATCH_PERIOD", period.to_string());
        }
        Self { server: Some(server), cli, keeps }
    }

    fn usage(&self) -> Usage {
        self.server.as_ref().map(Server::usage).unwrap_or_default()
    }

    /// Makes a stack and measures its first `up`; checks afterwards that all of it arrived.
    async fn up(&self, stack: &str, resources: usize, arguments: &Arguments) -> io::Result<Sample> {
        let (count, bytes) = (resources.to_string(), arguments.payload_bytes.to_string());
        self.cli.bench_project("bench", &[("count", &count), ("payloadBytes", &bytes)]);
        self.cli.run(["stack", "init", stack]).await.assert_success();

        let mut command: Vec<String> =
            ["up", "--yes", "--skip-preview", "--stack", stack].map(str::to_owned).into();
        command.extend(arguments.parallel.map(|parallel| format!("--parallel={parallel}")));
        let before = self.usage();
        let watch = Stopwatch::start();
        let up = self.cli.run(&command).await;
        let wall_seconds = watch.elapsed().as_secs_f64();
        let after = self.usage();
        up.assert_success();

        if self.keeps {
            let export = self.cli.run(["stack", "export", "--stack", stack]).await.assert_success().json();
            let kept = export["deployment"]["resources"].as_array().map_or(0, Vec::len);
            // The stack and the provider are resources too.
            if kept != resources + 2 {
                return Err(io::Error::other(format!(
                    "{kept} resources in the state of {stack}, not {}",
                    resources + 2
                )));
            }
        }
        Ok(Sample {
            wall_seconds,
            server: Usage { cpu_seconds: after.cpu_seconds - before.cpu_seconds, ..after },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_two_positive_numbers() {
        let size: Size = "200:9".parse().unwrap();
        assert_eq!((size.resources, size.rounds), (200, 9));
        for wrong in ["200", "0:9", "200:0", "a:b", "200:9:1"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}

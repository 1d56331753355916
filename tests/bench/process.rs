//! Servers as processes of their own: started, asked what they have used, ended.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// What the stub prints in front of its address.
pub(crate) const LISTENING: &str = "listening on ";

/// What Statewright prints in front of the first token, on the first start on a data folder.
const TOKEN: &str = "export PULUMI_ACCESS_TOKEN=";

/// How long a server may take to be there.
const START: Duration = Duration::from_secs(30);

/// A server in the background. Dropping it ends it and removes its data.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    pub(crate) token: String,
    _data: TempDir,
}

/// What a process has used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Seconds of processor time, in user and in system mode, since its start.
    pub(crate) cpu_seconds: f64,
    /// Memory in use now, in MiB.
    pub(crate) resident_mib: f64,
    /// The most memory in use at any time, in MiB.
    pub(crate) resident_peak_mib: f64,
}

impl Server {
    /// Starts this program as the stub.
    pub(crate) async fn stub() -> io::Result<Self> {
        let data = tempfile::tempdir()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("stub");
        let (child, address) = start(&mut command, data.path(), LISTENING).await?;
        Ok(Self { child, url: format!("http://{address}"), token: "stub".to_owned(), _data: data })
    }

    /// Starts this `statewright` on a new data folder, made in `data_in`.
    pub(crate) async fn statewright(program: &Path, data_in: &Path) -> io::Result<Self> {
        let data = tempfile::Builder::new().prefix("bench-data-").tempdir_in(data_in)?;
        let address = free_address()?;
        let mut command = Command::new(program);
        command
            .arg("serve")
            .arg("--data")
            .arg(data.path().join("data"))
            .args(["--listen", &address.to_string()]);
        let (child, token) = start(&mut command, data.path(), TOKEN).await?;
        // The token may be told before the door is open.
        let reached = tokio::time::timeout(START, async {
            let mut tries = tokio::time::interval(Duration::from_millis(20));
            while TcpStream::connect(address).await.is_err() {
                tries.tick().await;
            }
        });
        reached
            .await
            .map_err(|_| io::Error::other(format!("{} does not listen on {address}", program.display())))?;
        Ok(Self { child, url: format!("http://{address}"), token, _data: data })
    }

    /// What it has used until now; zero where there is no `/proc`.
    pub(crate) fn usage(&self) -> Usage {
        let read = |name: &str| {
            let pid = self.child.id().unwrap_or(0);
            fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default()
        };
        let (stat, status) = (read("stat"), read("status"));
        // The second field is the program's name, which may hold anything but ends with the last parenthesis: what
        // follows it starts with the third field. Fields 14 and 15 are the ticks in user and in system mode.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks: f64 =
            fields.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<f64>().ok()).sum();
        let mib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
            line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
        };
        Usage {
            cpu_seconds: ticks / rustix::param::clock_ticks_per_second() as f64,
            resident_mib: mib("VmRSS:"),
            resident_peak_mib: mib("VmHWM:"),
        }
    }
}

/// Starts a server and waits for the word after `mark` on its stdout. Its stderr goes to a file.
async fn start(command: &mut Command, data: &Path, mark: &str) -> io::Result<(Child, String)> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let log = data.join("stderr.log");
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&log)?)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| io::Error::other(format!("cannot start {program}: {error}")))?;
    let stdout = child.stdout.take().expect("its stdout was asked to be a pipe");
    let mut lines = BufReader::new(stdout).lines();
    let found = tokio::time::timeout(START, async {
        while let Some(line) = lines.next_line().await? {
            if let Some((_, rest)) = line.split_once(mark) {
                let word = rest.split_whitespace().next().unwrap_or_default();
                return io::Result::Ok(Some(word.trim_matches(['"', '\'']).to_owned()));
            }
        }
        Ok(None)
    });
    let Ok(Ok(Some(word))) = found.await else {
        let said = fs::read_to_string(&log).unwrap_or_default();
        return Err(io::Error::other(format!("{program} did not print {mark:?}\n{said}")));
    };
    // A server must never wait for us to read.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok((child, word))
}

/// An address of this machine that nobody listens on just now.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

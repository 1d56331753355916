//! Servers as separate processes: started, measured, ended.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The text that the stub prints before its address.
pub(crate) const LISTENING: &str = "listening on ";

/// The text that Statewright prints before its address.
const LISTENS: &str = "Statewright listens on ";

/// The organization that the first start creates.
pub(crate) const ORGANIZATION: &str = "organization";

/// The text that Statewright prints before the first token, on the first start on a data folder.
const TOKEN: &str = "export PULUMI_ACCESS_TOKEN=";

/// The timeout of a server's start.
const START: Duration = Duration::from_secs(30);

/// A server in the background. Dropping it ends it and deletes its data.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    pub(crate) token: String,
    /// Deleted with it.
    data: Option<TempDir>,
}

/// The resources that a process has used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Seconds of processor time, in user and in system mode, since its start.
    pub(crate) cpu_seconds: f64,
    /// Memory in use now, in MiB.
    pub(crate) resident_mib: f64,
    /// The peak of memory in use, in MiB.
    pub(crate) resident_peak_mib: f64,
}

impl Server {
    /// Starts this program as the stub.
    pub(crate) async fn stub() -> io::Result<Self> {
        let data = tempfile::tempdir()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("stub");
        let (child, words) = start(&mut command, data.path(), &[LISTENING]).await?;
        Ok(Self { child, url: format!("http://{}", words.concat()), token: "stub".to_owned(), data: None })
    }

    /// Starts this `statewright` on a new data folder, made in `data_in`.
    pub(crate) async fn statewright(program: &Path, data_in: &Path) -> io::Result<Self> {
        let data = tempfile::Builder::new().prefix("bench-data-").tempdir_in(data_in)?;
        let mut server = Self::on_folder(program, &data.path().join("data")).await?;
        server.data = Some(data);
        Ok(server)
    }

    /// Starts this `statewright` on a data folder, which it creates if there is none. Only then it prints a token.
    pub(crate) async fn on_folder(program: &Path, folder: &Path) -> io::Result<Self> {
        let logs = tempfile::tempdir()?;
        let mut command = Command::new(program);
        command.arg("serve").arg("--data").arg(folder).args(["--listen", "127.0.0.1:0"]);
        // The organization of the recorded sessions.
        command.args(["--organization", ORGANIZATION]).env("STATEWRIGHT_LOG", "warn");
        let marks: &[&str] = if folder.exists() { &[LISTENS] } else { &[LISTENS, TOKEN] };
        let (child, words) = start(&mut command, logs.path(), marks).await?;
        let mut words = words.into_iter();
        let url = words.next().unwrap_or_default().trim_end_matches(',').to_owned();
        Ok(Self { child, url, token: words.next().unwrap_or_default(), data: None })
    }

    /// Asks it to end, and waits for that.
    pub(crate) async fn stop(mut self) -> io::Result<()> {
        if let Some(id) = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
            rustix::process::kill_process(id, Signal::TERM)?;
        }
        self.child.wait().await.map(drop)
    }

    /// Its usage until now; zero without `/proc`.
    pub(crate) fn usage(&self) -> Usage {
        let read = |name: &str| {
            let pid = self.child.id().unwrap_or(0);
            fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default()
        };
        let (stat, status) = (read("stat"), read("status"));
        // The second field is the program's name, which may contain anything but ends with the last
        // parenthesis: the third field follows it. Fields 14 and 15 are the ticks in user and in system mode.
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let ticks: f64 =
            fields.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<f64>().ok()).sum();
        Usage {
            cpu_seconds: ticks / rustix::param::clock_ticks_per_second() as f64,
            resident_mib: mib(&status, "VmRSS:"),
            resident_peak_mib: mib(&status, "VmHWM:"),
        }
    }
}

/// The peak of this process's memory in use, in MiB; zero without `/proc`.
pub(crate) fn own_peak_mib() -> f64 {
    mib(&fs::read_to_string("/proc/self/status").unwrap_or_default(), "VmHWM:")
}

/// The memory that this process has in use now, in MiB; zero without `/proc`.
pub(crate) fn resident_mib(pid: u32) -> f64 {
    mib(&fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default(), "VmRSS:")
}

fn mib(status: &str, name: &str) -> f64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// Starts a server and waits for the texts after these marks on its stdout, one after another. Its stderr goes
/// to a file.
async fn start(command: &mut Command, logs: &Path, marks: &[&str]) -> io::Result<(Child, Vec<String>)> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let log = logs.join("stderr.log");
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
        let mut words = Vec::new();
        while let Some(mark) = marks.get(words.len()) {
            let Some(line) = lines.next_line().await? else { break };
            if let Some((_, rest)) = line.split_once(mark) {
                words.push(rest.split_whitespace().next().unwrap_or_default().to_owned());
            }
        }
        io::Result::Ok(words)
    });
    let words = match found.await {
        Ok(Ok(words)) if words.len() == marks.len() => words,
        _ => {
            let log_text = fs::read_to_string(&log).unwrap_or_default();
            return Err(io::Error::other(format!("{program} did not print {marks:?}\n{log_text}")));
        }
    };
    // Keep reading, so that a server never waits for us.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok((child, words))
}

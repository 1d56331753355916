//! A started command and its output.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::home::Home;

/// A command in this folder, with this environment alone, and its text.
pub(crate) fn command<A: AsRef<OsStr>>(
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
    folder: &Path,
    environment: &[(OsString, OsString)],
) -> (Command, String) {
    let arguments: Vec<OsString> =
        arguments.into_iter().map(|argument| argument.as_ref().to_owned()).collect();
    let mut shown = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for argument in &arguments {
        shown.push(' ');
        shown.push_str(&argument.to_string_lossy());
    }
    let mut command = Command::new(program);
    command
        .args(&arguments)
        .current_dir(folder)
        .env_clear()
        .envs(environment.iter().cloned())
        // Give it a process group, as a shell would, so that a signal for it reaches no process of ours.
        .process_group(0)
        .kill_on_drop(true);
    (command, shown)
}

/// A command that runs in the background. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    command: String,
    child: Child,
    group: Pid,
    stdout: Capture,
    stderr: Capture,
    /// The keyboard of its terminal, if it has one.
    keys: Option<fs::File>,
    patience: Duration,
    /// Keeps the folders in which it works.
    _home: Arc<Home>,
}

impl Running {
    /// Starts a command without an input.
    pub(crate) fn start(mut command: Command, shown: String, patience: Duration, home: Arc<Home>) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
        let stdout = Capture::of(child.stdout.take().expect("its stdout was asked to be a pipe"));
        let stderr = Capture::of(child.stderr.take().expect("its stderr was asked to be a pipe"));
        Self {
            command: shown,
            group: group(&child),
            child,
            stdout,
            stderr,
            keys: None,
            patience,
            _home: home,
        }
    }

    /// Starts a command on a terminal.
    pub(crate) fn start_at_terminal(
        command: Command,
        shown: String,
        patience: Duration,
        home: Arc<Home>,
    ) -> Self {
        Self::start_at_terminal_of(UNKNOWN_SIZE, command, shown, patience, home)
    }

    /// Starts a command on a terminal of this many rows and columns.
    pub(crate) fn start_at_terminal_of(
        size: (u16, u16),
        mut command: Command,
        shown: String,
        patience: Duration,
        home: Arc<Home>,
    ) -> Self {
        let (ours, theirs) = open_terminal(size).unwrap_or_else(|error| panic!("no terminal: {error}"));
        let end = |end: &fs::File| {
            end.try_clone().unwrap_or_else(|error| panic!("no end of the terminal: {error}"))
        };
        command.env("TERM", "xterm").stdin(end(&theirs)).stdout(end(&theirs)).stderr(theirs);
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
        let keys = Some(end(&ours));
        let stdout = Capture::of(tokio::fs::File::from_std(ours));
        let stderr = Capture::of(tokio::io::empty());
        Self { command: shown, group: group(&child), child, stdout, stderr, keys, patience, _home: home }
    }

    /// Waits until the command has printed this on stdout.
    pub async fn says(&self, text: &str) {
        let mut printed = self.stdout.text.clone();
        let found = printed.wait_for(|bytes| String::from_utf8_lossy(bytes).contains(text));
        let outcome = match tokio::time::timeout(self.patience, found).await {
            Ok(Ok(_)) => return,
            Ok(Err(_)) => "ended",
            Err(_) => "ran on",
        };
        panic!("{} {outcome} without saying {text:?}\n{}", self.command, self.printed(None));
    }

    /// What it has printed on stdout.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout.text.borrow()).into_owned()
    }

    /// Types this on its terminal: `"\x1b[A"` is an arrow up, `"\r"` is Enter.
    pub fn types(&self, keys: &str) {
        let mut terminal = self.keys.as_ref().expect("the command was started at a terminal");
        terminal.write_all(keys.as_bytes()).unwrap_or_else(|error| panic!("cannot type: {error}"));
    }

    /// SIGINT, as Ctrl-C sends it: the client winds down. A second one stops it at once.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// SIGSTOP: it stops running, but its connections stay open, like those of a sleeping machine.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT: continues after [`Running::pause`].
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// `kill -9`: what it had begun stays begun, and it notifies no server.
    pub async fn kill(self) -> Output {
        self.signal(Signal::KILL);
        self.wait().await
    }

    /// Waits for the end.
    pub async fn wait(mut self) -> Output {
        match tokio::time::timeout(self.patience, self.child.wait()).await {
            Ok(ended) => {
                let status =
                    ended.unwrap_or_else(|error| panic!("cannot wait for {}: {error}", self.command));
                self.stdout.drain().await;
                self.stderr.drain().await;
                self.printed(Some(status))
            }
            Err(_) => {
                self.signal(Signal::KILL);
                panic!("{} did not end within {:?}\n{}", self.command, self.patience, self.printed(None));
            }
        }
    }

    /// The child is not waited for before `wait` takes the whole value, so its id is still its own.
    fn signal(&self, signal: Signal) {
        kill_process_group(self.group, signal)
            .unwrap_or_else(|error| panic!("cannot send {signal:?} to {}: {error}", self.command));
    }

    fn printed(&self, status: Option<ExitStatus>) -> Output {
        Output {
            command: self.command.clone(),
            code: status.and_then(|status| status.code()),
            stdout: self.stdout.so_far(),
            stderr: self.stderr.so_far(),
        }
    }
}

/// The process group of a child that was not waited for.
fn group(child: &Child) -> Pid {
    child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw)
        .expect("a child that was not waited for has an id")
}

/// The rows and columns of a terminal that does not tell them. Programs ask on it, and draw nothing.
const UNKNOWN_SIZE: (u16, u16) = (0, 0);

/// A pseudo-terminal: the end of the user, and the end of the program.
fn open_terminal((rows, columns): (u16, u16)) -> io::Result<(fs::File, fs::File)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size)?;
    let name = ptsname(&ours, Vec::new())?;
    let theirs = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OpenptFlags::NOCTTY.bits().cast_signed())
        .open(OsStr::from_bytes(name.as_bytes()))?;
    Ok((ours.into(), theirs))
}

/// What came out of a pipe so far.
#[derive(Debug)]
struct Capture {
    text: watch::Receiver<Vec<u8>>,
    reader: JoinHandle<()>,
}

impl Capture {
    fn of(mut pipe: impl AsyncRead + Unpin + Send + 'static) -> Self {
        let (grow, text) = watch::channel(Vec::new());
        let reader = tokio::spawn(async move {
            let mut chunk = vec![0; 16 * 1024];
            // An error on a pipe ends it too.
            while let Ok(length @ 1..) = pipe.read(&mut chunk).await {
                grow.send_modify(|text| text.extend_from_slice(&chunk[..length]));
            }
        });
        Self { text, reader }
    }

    /// Reads the rest after the command has ended. A plugin that outlives it may hold the pipe open, hence the
    /// timeout.
    async fn drain(&mut self) {
        let _ = tokio::time::timeout(Duration::from_secs(2), &mut self.reader).await;
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.borrow()).into_owned()
    }
}

/// How a command ended and what it printed.
///
/// Snapshots contain its `Display`, which shows all of it.
#[derive(Clone, Debug)]
pub struct Output {
    /// The command line.
    pub command: String,
    /// The exit code; `None` if a signal ended it, or if it has not ended.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// This output, if the command succeeded.
    #[track_caller]
    pub fn assert_success(self) -> Self {
        assert!(self.code == Some(0), "should have succeeded:\n{self}");
        self
    }

    /// This output, if the command ended by itself and reported a failure.
    #[track_caller]
    pub fn assert_failure(self) -> Self {
        assert!(self.code.is_some_and(|code| code != 0), "should have failed by itself:\n{self}");
        self
    }

    /// Standard output as JSON, for commands with `--json` and exports.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not JSON ({error}):\n{self}"))
    }
}

impl fmt::Display for Output {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { command, code, stdout, stderr } = self;
        writeln!(out, "$ {command}")?;
        match code {
            Some(code) => writeln!(out, "exit code: {code}")?,
            None => writeln!(out, "exit code: none")?,
        }
        writeln!(out, "----- stdout -----\n{}", stdout.trim_end())?;
        write!(out, "----- stderr -----\n{}", stderr.trim_end())
    }
}

//! The server as a program of its own, as users have it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::commands::statewright;

/// The timeout of a server for a start, a line and an end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server. Killed when dropped.
pub struct Server {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    pub url: String,
    /// The access token, if this was the first start.
    pub token: Option<String>,
}

impl Server {
    /// Starts it on a data folder, and waits until it listens.
    pub async fn start(folder: &Path, listen: &str) -> Self {
        Self::start_with(folder, listen, &[], &[]).await
    }

    /// The same with more arguments and variables.
    pub async fn start_with(
        folder: &Path,
        listen: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        Self::start_logging(folder, listen, arguments, environment, Stdio::null()).await
    }

    /// The same, and captures its log.
    pub async fn start_logging(
        folder: &Path,
        listen: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
        log: Stdio,
    ) -> Self {
        let is_first = !folder.join("ledger.sqlite").exists();
        let mut command = statewright(folder, &["serve", "--listen", listen]);
        command.args(arguments).envs(environment.iter().copied()).stderr(log);
        Self::start_command(command, is_first).await
    }

    /// Starts this command and waits until it listens.
    pub async fn start_command(mut command: Command, is_first: bool) -> Self {
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("the server starts");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let mut server = Self { child, stdout, url: String::new(), token: None };
        server.url = server
            .says("Statewright listens on ")
            .await
            .split(',')
            .next()
            .expect("there is a first part")
            .to_owned();
        if is_first {
            server.token = Some(server.says("    export PULUMI_ACCESS_TOKEN=").await);
            assert_eq!(server.says("    pulumi login ").await, server.url);
        }
        server
    }

    /// Waits for a line with this beginning, and returns the rest of it.
    pub async fn says(&mut self, beginning: &str) -> String {
        let reading = async {
            while let Some(line) = self.stdout.next_line().await.expect("it prints text") {
                if let Some(rest) = line.strip_prefix(beginning) {
                    return rest.to_owned();
                }
            }
            panic!("the server ended without printing {beginning:?}");
        };
        tokio::time::timeout(PATIENCE, reading).await.expect("the server prints it in time")
    }

    /// Its address, for another server to take over.
    pub fn address(&self) -> String {
        self.url.trim_start_matches("http://").to_owned()
    }

    pub fn pid(&self) -> Pid {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok());
        id.and_then(Pid::from_raw).expect("it was not waited for")
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    /// Its exit code, and the rest of its output.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it ends in time");
        let code = ended.expect("it can be waited for").code();
        let mut rest = String::new();
        while let Some(line) = self.stdout.next_line().await.expect("it prints text") {
            rest.push_str(&line);
            rest.push('\n');
        }
        (code, rest)
    }
}

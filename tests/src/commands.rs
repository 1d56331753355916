//! Runs the commands as a person or a script does.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

use crate::app::TestApp;
use crate::tools;

/// The timeout of a command.
const PATIENCE: Duration = Duration::from_secs(60);

/// A command on this data folder, without the caller's environment.
pub fn statewright(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(tools::statewright());
    command.args(arguments).env_clear().env("STATEWRIGHT_DATA", folder).stdin(Stdio::null());
    command.kill_on_drop(true);
    command
}

/// A command of a user of this server. This folder is the working directory and the home; the caller's
/// environment is absent.
pub fn of_user(app: &TestApp, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(tools::statewright());
    command.args(arguments).env_clear().current_dir(folder).stdin(Stdio::null()).kill_on_drop(true);
    command.env("HOME", folder).env("STATEWRIGHT_URL", &app.url).env("STATEWRIGHT_TOKEN", &app.token);
    command
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct Output {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a command to its end.
pub async fn run(folder: &Path, arguments: &[&str]) -> Output {
    output(&mut statewright(folder, arguments)).await
}

/// Runs a command to its end.
pub async fn output(command: &mut Command) -> Output {
    let output = tokio::time::timeout(PATIENCE, command.output()).await;
    let output = output.expect("the command ends in time").expect("the command runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the command prints UTF-8");
    Output { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The stdout of a command that succeeds and prints nothing else.
pub async fn stdout_of(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    output.stdout
}

/// Runs a command with this stdin to its end.
pub async fn run_with(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let (mut reader, mut writer) = std::io::pipe().expect("there is a pipe");
    writer.write_all(input.as_bytes()).expect("the input fits into a pipe");
    drop(writer);
    let output = output(statewright(folder, arguments).stdin(reader.try_clone().expect("it is open"))).await;
    // The rest that the command did not read.
    std::io::copy(&mut reader, &mut std::io::sink()).expect("the pipe can be read");
    output
}

/// The one JSON document that a command prints for a script.
pub async fn document(folder: &Path, arguments: &[&str]) -> Value {
    let text = stdout_of(folder, &[arguments, &["--json"]].concat()).await;
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
}

/// The stderr of a command that exits with this code and prints nothing to stdout.
pub async fn refused(folder: &Path, code: i32, arguments: &[&str]) -> String {
    let output = run(folder, arguments).await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", output.stderr);
    output.stderr
}

//! A store moves from a folder to AWS and back. Its clients notice only the downtime.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use statewright_shared::adapters::SystemClock;
use statewright_shared::adapters::aws::{Names, set_up};
use statewright_tests::aws::{Gateway, Play, StandIn, clients};
use statewright_tests::cli::PulumiCli;
use statewright_tests::tools;
use tokio::process::Command;

use crate::server::{Server, folder as new_folder};
use crate::support::{SECRET_PROGRAM, UP, assert_says, export, export_version, history, outputs, sorted};

const PATIENCE: Duration = Duration::from_secs(60);

/// A store on the stand-in, behind a proxy.
struct OnAws {
    gateway: Gateway,
    names: Names,
}

impl OnAws {
    async fn set_up() -> Self {
        let stand_in = StandIn::of_this_process();
        let names = StandIn::fresh_names();
        set_up(&clients(&stand_in.url).await, &names, &SystemClock).await.unwrap();
        Self { gateway: Gateway::before(stand_in).await, names }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(tools::statewright());
        command.args(arguments).env_clear().stdin(Stdio::null()).kill_on_drop(true);
        command.envs(self.gateway.environment(&self.names)).env_remove("STATEWRIGHT_STORE");
        // Long enough for a busy machine; a delayed attempt waits until the process is killed.
        command.env("STATEWRIGHT_AWS_ATTEMPT_TIMEOUT", "60s");
        command
    }

    async fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let ended = tokio::time::timeout(PATIENCE, self.command(arguments).output()).await;
        let output = ended.unwrap_or_else(|_| panic!("{arguments:?} does not end")).unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    async fn json_of(&self, arguments: &[&str]) -> Value {
        let (code, printed, message) = self.run(&[arguments, &["--json"]].concat()).await;
        assert_eq!(code, Some(0), "{arguments:?}: {message}");
        serde_json::from_str(&printed).unwrap()
    }

    async fn refused(&self, arguments: &[&str], words: &str) {
        let (code, printed, message) = self.run(arguments).await;
        assert_eq!((code, printed.as_str()), (Some(1), ""), "{arguments:?}: {message}");
        assert!(message.contains(words), "{arguments:?}: {message}");
    }

    /// Kills a copy, like a power cut, at its `nth` request to AWS.
    async fn killed_at(&self, nth: usize, arguments: &[&str]) {
        let before = self.gateway.seen().len();
        self.gateway.play_at(nth, Play::HoldTheAnswer);
        let mut copy = self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let met = async {
            while self.gateway.seen().len() < before + nth {
                assert_eq!(copy.try_wait().unwrap(), None, "it ended before request {nth}");
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, met).await.expect("it comes so far in time");
        copy.kill().await.unwrap();
    }

    async fn serve(&self, listen: &str) -> Server {
        let mut command = self.command(&["serve", "--store", "aws", "--listen", listen]);
        command.stderr(Stdio::null());
        Server::start_command(command, false).await
    }
}

async fn stop(server: Server) {
    server.signal(Signal::TERM);
    assert_eq!(server.ended().await.0, Some(0));
}

/// Everything that a client sees of the stack: its state, its history, and its secret.
async fn seen(cli: &PulumiCli, versions: u64) -> (Value, Vec<Value>, Vec<String>, Value) {
    let mut all = Vec::new();
    for version in 1..=versions {
        all.push(export_version(cli, version).await);
    }
    (export(cli).await, all, history(cli).await, outputs(cli).await)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn a_store_moves_to_aws_and_back_with_history_and_secrets() {
    let (parent, folder) = new_folder();
    let aws = OnAws::set_up().await;
    let server = Server::start(&folder, "127.0.0.1:0").await;
    let (address, token) = (server.address(), server.token.clone().unwrap());
    let cli = PulumiCli::new().backend(&server.url).token(&token);
    cli.yaml_project("moving", SECRET_PROGRAM);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    cli.run(UP).await.assert_success();
    let longer = format!("{SECRET_PROGRAM}  more: ${{first.value}}\n");
    cli.yaml_project("moving", &longer);
    cli.run(UP).await.assert_success();
    let before = seen(&cli, 2).await;
    assert_eq!(before.3["hidden"], "hunter2");

    let there = ["copy", "--from", text(&folder), "--to", "aws"];
    aws.refused(&there, "another server (process ").await;
    stop(server).await;
    // When it marks the target, when it writes the items, among the blobs: it continues from anywhere.
    for nth in [4, 6, 6] {
        aws.killed_at(nth, &there).await;
        aws.refused(&["serve", "--store", "aws", "--listen", "127.0.0.1:0"], "is not finished").await;
        aws.refused(&["stack", "list", "--store", "aws"], "is not finished").await;
    }
    let copied = aws.json_of(&there).await;
    assert_eq!((&copied["resumed"], &copied["finished"]), (&true.into(), &true.into()), "{copied}");
    assert!(copied["items"].as_u64() > copied["itemsWritten"].as_u64(), "some existed already: {copied}");
    aws.refused(&there, "the target is not empty. Nothing was changed").await;

    let server = aws.serve(&address).await;
    assert_eq!(seen(&cli, 2).await, before);
    let check = aws.json_of(&["check", "--orphans", "--store", "aws"]).await;
    assert_eq!((&check["problems"], &check["orphans"]), (&0.into(), &serde_json::json!([])), "{check}");
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["2 unchanged"]);
    let more = "  second:\n    type: bench:index:Item\n    properties:\n      secretValue: ${password}\n";
    let program = longer.replace("outputs:\n", &format!("{more}outputs:\n"));
    cli.yaml_project("moving", &program);
    cli.run(UP).await.assert_success();
    assert_eq!(sorted(&export(&cli).await), ["default", "first", "moving-dev", "second"]);
    let after = seen(&cli, 4).await;
    stop(server).await;

    let back = parent.path().join("back");
    let home = ["copy", "--from", "aws", "--to", text(&back)];
    // After it has checked twice for running updates.
    aws.killed_at(31, &home).await;
    let unfinished = ["serve", "--data", text(&back), "--listen", "127.0.0.1:0"];
    aws.refused(&unfinished, "is not finished").await;
    let copied = aws.json_of(&home).await;
    assert_eq!((&copied["resumed"], &copied["finished"]), (&true.into(), &true.into()), "{copied}");
    // The target must not be the source of an earlier copy, or contain other files.
    aws.refused(&["copy", "--from", "aws", "--to", text(&folder)], "the target is not empty").await;
    let foreign = parent.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter.txt"), "dear").unwrap();
    aws.refused(&["copy", "--from", "aws", "--to", text(&foreign)], "contains other files").await;
    assert_eq!(std::fs::read_dir(&foreign).unwrap().count(), 1);

    let _server = Server::start(&back, &address).await;
    assert_eq!(seen(&cli, 4).await, after);
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["3 unchanged"]);
    let check = aws.json_of(&["check", "--orphans", "--data", text(&back)]).await;
    assert_eq!((&check["problems"], &check["orphans"]), (&0.into(), &serde_json::json!([])), "{check}");
}

//! Two servers over one table, one bucket and one key on AWS.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use statewright_tests::aws::StandIn;
use statewright_tests::cli::PulumiCli;
use statewright_tests::tools;
use tokio::process::Command;

use crate::server::Server;
use crate::support::{SECRET_PROGRAM, UP, assert_says, export, names, outputs, pending};

/// A store of its own on the stand-in, for as many servers as one likes.
struct Store(Vec<(&'static str, String)>);

impl Store {
    async fn set_up() -> Self {
        let names = StandIn::fresh_names();
        let store = Self(vec![
            ("STATEWRIGHT_STORE", "aws".to_owned()),
            ("STATEWRIGHT_TABLE", names.table),
            ("STATEWRIGHT_BUCKET", names.bucket),
            ("STATEWRIGHT_KEY", names.key),
            ("STATEWRIGHT_S3_PATH_STYLE", "true".to_owned()),
            ("AWS_ENDPOINT_URL", StandIn::of_this_process().url.clone()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "stand-in".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "stand-in".to_owned()),
        ]);
        // The second time finds what the first has made, and breaks nothing.
        for outcome in ["made", "found"] {
            let done = store.told(&["aws", "setup", "--json"]).await;
            assert_eq!(done["done"][0], json!({ "what": "table", "name": store.0[1].1, "outcome": outcome }));
        }
        store
    }

    fn statewright(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(tools::statewright());
        command.args(arguments).env_clear().stdin(Stdio::null()).kill_on_drop(true);
        command.envs(self.0.iter().map(|(name, value)| (*name, value)));
        command
    }

    /// What a command of the operator answers.
    async fn told(&self, arguments: &[&str]) -> Value {
        let output = self.statewright(arguments).output().await.unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    async fn serve(&self, is_first: bool) -> Server {
        Server::start_command(self.statewright(&["serve", "--listen", "127.0.0.1:0"]), is_first).await
    }
}

/// A client of one of the servers, on the stack `dev` of a project that it may find there.
fn client(server: &Server, token: &str, project: &str, program: &str) -> PulumiCli {
    let cli = PulumiCli::new().backend(&server.url).token(token);
    cli.yaml_project(project, program);
    cli
}

#[tokio::test]
async fn what_goes_through_one_server_is_there_on_the_other() {
    let store = Store::set_up().await;
    let (one, other) = (store.serve(true).await, store.serve(false).await);
    let token = one.token.clone().unwrap();
    let here = client(&one, &token, "shared", SECRET_PROGRAM);
    here.run(["stack", "init", "dev"]).await.assert_success();
    here.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    here.run(UP).await.assert_success();
    let expected = json!({ "open": "in-the-open", "hidden": "hunter2" });
    assert_eq!(outputs(&here).await, expected);

    let there = client(&other, &token, "shared", SECRET_PROGRAM);
    there.run(["stack", "select", "dev"]).await.assert_success();
    assert_eq!(export(&there).await, export(&here).await);
    assert_eq!(outputs(&there).await, expected);
    let listed = store.told(&["stack", "list", "--json"]).await;
    assert_eq!(listed["stacks"][0]["stack"], "main/shared/dev", "{listed}");
}

#[tokio::test]
async fn a_server_that_dies_in_the_middle_of_an_update_leaves_it_to_the_other() {
    let program = |delay_ms: u32| {
        format!(
            "resources:
  first:
    type: bench:index:Item
  slow:
    type: bench:index:Item
    properties:
      delayMs: {delay_ms}
    options:
      dependsOn:
        - ${{first}}
"
        )
    };
    let store = Store::set_up().await;
    let (one, other) = (store.serve(true).await, store.serve(false).await);
    let token = one.token.clone().unwrap();
    let here = client(&one, &token, "left", &program(600_000));
    here.run(["stack", "init", "dev"]).await.assert_success();
    let up = here.spawn(UP);
    up.says("slow creating").await;

    let there = client(&other, &token, "left", &program(0));
    there.run(["stack", "select", "dev"]).await.assert_success();
    // The client shows what it begins before it has saved that.
    while pending(&export(&there).await) != ["creating slow"] {}
    one.signal(Signal::KILL);
    up.kill().await;
    let held = there.run(UP).await.assert_failure();
    assert_says(&held, &["Another update is currently in progress: admin"]);
    there.run(["cancel", "--yes"]).await.assert_success();
    let state = export(&there).await;
    assert!(names(&state).contains(&"first".to_owned()), "{state}");
    assert_eq!(pending(&state), ["creating slow"]);
    assert_says(&there.run(UP).await.assert_success(), &["+ 1 created"]);
}

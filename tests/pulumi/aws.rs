//! Two servers on one table, one bucket and one key on AWS.

use std::process::Stdio;

use rustix::process::Signal;
use serde_json::{Value, json};
use statewright_tests::aws::StandIn;
use statewright_tests::cli::PulumiCli;
use statewright_tests::tools;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinHandle;

use crate::server::Server;
use crate::support::{SECRET_PROGRAM, UP, assert_says, export, outputs, sorted};

/// A store of its own on the stand-in, for any number of servers.
struct Store(Vec<(&'static str, String)>);

impl Store {
    async fn set_up() -> Self {
        let names = StandIn::fresh_names();
        let store = Self(StandIn::of_this_process().environment(&names));
        // A second setup finds what the first has created, and breaks nothing.
        for outcome in ["made", "found"] {
            let done = store.json_of(&["aws", "setup", "--json"]).await;
            assert_eq!(done["done"][0], json!({ "what": "table", "name": names.table, "outcome": outcome }));
        }
        store
    }

    fn statewright(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(tools::statewright());
        command.args(arguments).env_clear().stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        command.envs(self.0.iter().map(|(name, value)| (*name, value)));
        command
    }

    /// The stdout of an operator's command.
    async fn json_of(&self, arguments: &[&str]) -> Value {
        let output = self.statewright(arguments).stderr(Stdio::piped()).output().await.unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    async fn serve(&self, is_first: bool) -> Server {
        let mut command = self.statewright(&["serve", "--listen", "127.0.0.1:0"]);
        command.args(is_first.then_some("--first-user"));
        Server::start_command(command, is_first).await
    }
}

/// One address for several servers, like a load balancer's: a state names the address of its server, which the
/// client then insists on. Connections go to each in turn, but to none that does not answer.
struct Balancer {
    url: String,
    running: JoinHandle<()>,
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Balancer {
    async fn before(servers: &[&Server]) -> Self {
        let addresses: Vec<String> =
            servers.iter().map(|server| server.url.trim_start_matches("http://").to_owned()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let running = tokio::spawn(async move {
            for turn in 0.. {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut order = addresses.clone();
                order.rotate_left(turn % addresses.len());
                tokio::spawn(async move {
                    for address in order {
                        if let Ok(mut server) = TcpStream::connect(address).await {
                            let _ = copy_bidirectional(&mut client, &mut server).await;
                            return;
                        }
                    }
                });
            }
        });
        Self { url, running }
    }
}

/// A client of the server at this URL, with a project's program.
fn client(url: &str, token: &str, project: &str, program: &str) -> PulumiCli {
    let cli = PulumiCli::new().backend(url).token(token);
    cli.yaml_project(project, program);
    cli
}

#[tokio::test]
async fn servers_that_share_a_store_are_as_one() {
    let store = Store::set_up().await;
    let (one, other) = (store.serve(true).await, store.serve(false).await);
    let both = Balancer::before(&[&one, &other]).await;
    let token = one.token.clone().unwrap();
    let cli = client(&both.url, &token, "shared", SECRET_PROGRAM);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    cli.run(UP).await.assert_success();
    assert_eq!(outputs(&cli).await, json!({ "open": "in-the-open", "hidden": "hunter2" }));

    let state = export(&cli).await;
    assert!(!state.to_string().contains("hunter2"), "{state}");
    for server in [&one, &other] {
        let alone = client(&server.url, &token, "shared", SECRET_PROGRAM);
        alone.run(["stack", "select", "dev"]).await.assert_success();
        assert_eq!(export(&alone).await, state);
    }
    let listed = store.json_of(&["stack", "list", "--json"]).await;
    assert_eq!(listed["stacks"][0]["stack"], "main/shared/dev", "{listed}");
}

#[tokio::test]
async fn an_update_continues_at_the_other_server_when_its_own_dies() {
    let program = "resources:
  first:
    type: bench:index:Item
  slow:
    type: bench:index:Item
    properties:
      delayMs: 3000
    options:
      dependsOn:
        - ${first}
";
    let store = Store::set_up().await;
    let (one, other) = (store.serve(true).await, store.serve(false).await);
    let both = Balancer::before(&[&one, &other]).await;
    let cli = client(&both.url, &one.token.clone().unwrap(), "left", program);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    let up = cli.spawn(UP);
    up.says("slow creating").await;
    one.signal(Signal::KILL);
    let up = up.wait().await.assert_success();
    assert_says(&up, &["+ 3 created"]);
    assert_eq!(sorted(&export(&cli).await), ["default", "first", "left-dev", "slow"]);
}

//! Compares a client of a server with one of a folder, where the client itself assembles its state: the results
//! must be the same.

use serde_json::{Value, json};
use statewright_tests::app::TestApp;
use statewright_tests::cli::{Output, PulumiCli};

use crate::support::{UP, client, export, write_program};

/// One client of a server and one of a folder, with the same stack.
pub(crate) struct Both {
    project: &'static str,
    server: PulumiCli,
    folder: PulumiCli,
}

impl Both {
    pub(crate) async fn new(app: &TestApp, project: &'static str) -> Self {
        let both = Self { project, server: client(app), folder: PulumiCli::new().diy("of the folder") };
        both.write(&json!([]));
        for cli in [&both.server, &both.folder] {
            cli.run(["stack", "init", "dev"]).await.assert_success();
        }
        both
    }

    /// Makes the program register these resources.
    pub(crate) fn write(&self, program: &Value) {
        for cli in [&self.server, &self.folder] {
            write_program(cli, self.project, program);
        }
    }

    /// Deploys these resources. Returns the client's output, and the state, which is the same for both.
    pub(crate) async fn up(&self, program: &Value) -> (Output, Value) {
        self.write(program);
        self.run(&UP).await
    }

    /// Runs a command that succeeds.
    pub(crate) async fn run(&self, command: &[&str]) -> (Output, Value) {
        let (output, state) = self.any(command).await;
        (output.assert_success(), state)
    }

    /// Runs a command with any outcome, which is the same for both.
    pub(crate) async fn any(&self, command: &[&str]) -> (Output, Value) {
        let output = self.server.run(command).await;
        let same = self.folder.run(command).await;
        assert_eq!(output.code, same.code, "{output}\n{same}");
        let state = export(&self.server).await;
        assert_eq!(comparable(&state), comparable(&export(&self.folder).await));
        (output, state)
    }
}

/// A state without what differs from run to run: times, ids of providers, ciphertexts.
fn comparable(state: &Value) -> Value {
    let mut list = state["deployment"]["resources"].clone();
    strip(&mut list);
    // Views end at any time, concurrently with what follows their resource.
    if let Some(list) = list.as_array_mut().filter(|list| list.iter().any(|it| it.get("viewOf").is_some())) {
        list.sort_by_key(|resource| resource["urn"].to_string());
    }
    json!([state["version"], state["features"], list, state["deployment"]["pending_operations"]])
}

fn strip(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(strip),
        Value::Object(members) => {
            let is_provider = members.get("type").and_then(Value::as_str).is_some_and(is_of_provider);
            members.retain(|name, _| match name.as_str() {
                "created" | "modified" | "ciphertext" => false,
                "id" => !is_provider,
                _ => true,
            });
            members.values_mut().for_each(strip);
        }
        // A provider is named by its URN and its id.
        Value::String(text) if text.contains("::pulumi:providers:") => {
            let id = text.rfind("::").filter(|at| text.len() - at == 38);
            text.truncate(id.unwrap_or(text.len()));
        }
        _ => {}
    }
}

fn is_of_provider(kind: &str) -> bool {
    kind.starts_with("pulumi:providers:")
}

//! Shared helpers: a client of a server, and the contents of a state.

use serde_json::Value;
use statewright_tests::app::{ORG, TestApp};
use statewright_tests::cli::{Output, PulumiCli};

/// A YAML program that passes a secret of its configuration through a resource into an output.
pub(crate) const SECRET_PROGRAM: &str = "config:
  password:
    type: string
    secret: true
resources:
  first:
    type: bench:index:Item
    properties:
      secretValue: ${password}
      value: in-the-open
outputs:
  open: ${first.value}
  hidden: ${first.secretValue}
";

/// An `up` without a preview and without a question.
pub(crate) const UP: [&str; 3] = ["up", "--yes", "--skip-preview"];

/// A `destroy` without a preview and without a question.
pub(crate) const DESTROY: [&str; 3] = ["destroy", "--yes", "--skip-preview"];

/// A `refresh` without a preview and without a question.
pub(crate) const REFRESH: [&str; 3] = ["refresh", "--yes", "--skip-preview"];

/// A client in a fresh home that has the server and a token in its environment, as in CI.
pub(crate) fn client(app: &TestApp) -> PulumiCli {
    PulumiCli::new().backend(&app.url).token(&app.token)
}

/// A client with a bench program of this name and a stack `dev`.
pub(crate) async fn bench(app: &TestApp, project: &str, settings: &[(&str, &str)]) -> PulumiCli {
    let cli = client(app);
    cli.bench_project(project, settings);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli
}

/// A client with a YAML program of this name and a stack `dev`.
pub(crate) async fn yaml(app: &TestApp, project: &str, program: &str) -> PulumiCli {
    let cli = client(app);
    cli.yaml_project(project, program);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli
}

/// Makes the project a program that registers these resources; `tests/tools/bench-provider/README.md` has their
/// format.
pub(crate) fn write_program(cli: &PulumiCli, project: &str, resources: &Value) {
    cli.bench_project(project, &[("program", "program.json")]);
    cli.write("program.json", &serde_json::json!({ "resources": resources }).to_string());
}

/// A value that only the stack's key opens, as programs write it.
pub(crate) fn secret(plaintext: &str) -> Value {
    serde_json::json!({ "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "value": plaintext })
}

/// The output of `stack export`.
pub(crate) async fn export(cli: &PulumiCli) -> Value {
    cli.run(["stack", "export"]).await.assert_success().json()
}

/// The output of `stack export --version`.
pub(crate) async fn export_version(cli: &PulumiCli, version: u64) -> Value {
    cli.run(["stack", "export", "--version", &version.to_string()]).await.assert_success().json()
}

/// The server's current state of the stack, without starting a client.
pub(crate) async fn state(app: &TestApp, project: &str) -> Value {
    app.get(&format!("/api/stacks/{ORG}/{project}/dev/export")).send().await.expect(200)
}

/// The URN of an item at the top of the stack `dev`.
pub(crate) fn urn(project: &str, item: &str) -> String {
    format!("urn:pulumi:dev::{project}::bench:index:Item::{item}")
}

/// The kind and result of each version in `stack history`, newest first: `update succeeded`.
pub(crate) async fn history(cli: &PulumiCli) -> Vec<String> {
    let history = cli.run(["stack", "history", "--json"]).await.assert_success().json();
    let word = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let entries = history.as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| format!("{} {}", word(entry, "kind"), word(entry, "result"))).collect()
}

/// The stack's outputs, with secrets in plain text.
pub(crate) async fn outputs(cli: &PulumiCli) -> Value {
    cli.run(["stack", "output", "--json", "--show-secrets"]).await.assert_success().json()
}

/// The item of this name in a state.
#[track_caller]
pub(crate) fn item(state: &Value, wanted: &str) -> Value {
    let found = resources(state).into_iter().find(|resource| name(resource) == wanted);
    found.unwrap_or_else(|| panic!("no {wanted} in {state}"))
}

/// The server's record of the stack `dev`.
pub(crate) async fn stack(app: &TestApp, project: &str) -> Value {
    app.get(&format!("/api/stacks/{ORG}/{project}/dev")).send().await.expect(200)
}

/// The resources of a state.
pub(crate) fn resources(state: &Value) -> Vec<Value> {
    state["deployment"]["resources"].as_array().cloned().unwrap_or_default()
}

/// The names of a state's resources, in its order; those that wait for their deletion are marked.
pub(crate) fn names(state: &Value) -> Vec<String> {
    resources(state)
        .iter()
        .map(|resource| {
            let mark = if resource["delete"] == true { " (delete)" } else { "" };
            format!("{}{mark}", name(resource))
        })
        .collect()
}

/// The names of a state in alphabetical order: in YAML programs stack and provider come in any order.
pub(crate) fn sorted(state: &Value) -> Vec<String> {
    let mut names = names(state);
    names.sort();
    names
}

/// The pending operations of a state: `creating item-00001`.
pub(crate) fn pending(state: &Value) -> Vec<String> {
    let operations = state["deployment"]["pending_operations"].as_array().cloned().unwrap_or_default();
    operations
        .iter()
        .map(|operation| {
            format!("{} {}", operation["type"].as_str().unwrap_or_default(), name(&operation["resource"]))
        })
        .collect()
}

fn name(resource: &Value) -> &str {
    resource["urn"].as_str().and_then(|urn| urn.rsplit("::").next()).unwrap_or_default()
}

/// Fails unless the client printed all of this, to stdout or stderr.
#[track_caller]
pub(crate) fn assert_says(output: &Output, words: &[&str]) {
    for word in words {
        assert!(
            output.stdout.contains(word) || output.stderr.contains(word),
            "{word:?} is not in:\n{output}"
        );
    }
}

/// Polls the server until the state of `dev` is as wanted: a client's output may be ahead of what it has saved.
pub(crate) async fn state_once(app: &TestApp, project: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let asking = async {
        loop {
            let state = state(app, project).await;
            if wanted(&state) {
                return state;
            }
            tokio::task::yield_now().await;
        }
    };
    match tokio::time::timeout(std::time::Duration::from_secs(60), asking).await {
        Ok(state) => state,
        Err(_) => panic!("the state did not become as wanted: {}", state(app, project).await),
    }
}

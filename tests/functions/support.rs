//! Shared helpers: clients of the functions.

use serde_json::Value;
use statewright_tests::cli::PulumiCli;
use statewright_tests::functions::Functions;

/// An `up` without a preview and without a question.
pub(crate) const UP: [&str; 3] = ["up", "--yes", "--skip-preview"];

/// A `destroy` without a preview and without a question.
pub(crate) const DESTROY: [&str; 3] = ["destroy", "--yes", "--skip-preview"];

/// The real client in a fresh home, with a bench program of this name and a stack `dev`.
pub(crate) async fn bench(functions: &Functions, project: &str, settings: &[(&str, &str)]) -> PulumiCli {
    let cli = PulumiCli::new().backend(&functions.url).token(&functions.token);
    cli.bench_project(project, settings);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli
}

/// The output of `stack export`.
pub(crate) async fn export(cli: &PulumiCli) -> Value {
    cli.run(["stack", "export"]).await.assert_success().json()
}

/// The resources of a state.
pub(crate) fn resources(state: &Value) -> Vec<Value> {
    state["deployment"]["resources"].as_array().cloned().unwrap_or_default()
}

//! Shared helpers.

use serde_json::Value;
use statewright_tests::app::{Answer, ORG, TestApp};
pub(crate) use statewright_tests::terraform::{Client, TerraformCli};
pub(crate) use statewright_tests::terraform::{Output, Running};

/// One resource and one output.
pub(crate) const ONE: &str = "resource \"terraform_data\" \"a\" {\n  input = \"naïve 🦀\"\n}\n\
                              output \"o\" {\n  value = terraform_data.a.output\n}\n";

pub(crate) const APPLY: [&str; 2] = ["apply", "-auto-approve"];
pub(crate) const DESTROY: [&str; 2] = ["destroy", "-auto-approve"];

/// A server, and a client with this configuration whose backend is initialized.
pub(crate) async fn start(client: Client, configuration: &str) -> (TestApp, TerraformCli) {
    let app = TestApp::embedded().await;
    let cli = client_of(&app, client, "net", configuration).await;
    (app, cli)
}

/// Another client of a server, for a state of [`ORG`].
pub(crate) async fn client_of(
    app: &TestApp,
    client: Client,
    state: &str,
    configuration: &str,
) -> TerraformCli {
    let cli = TerraformCli::new(client, &app.token);
    cli.backend(app, &format!("{ORG}/{state}"));
    cli.write("main.tf", configuration);
    cli.run(["init"]).await.assert_success();
    cli
}

/// The state `net/default` as the API shows it.
pub(crate) async fn shown(app: &TestApp) -> Value {
    app.get(&format!("/api/orgs/{ORG}/tfstates/net/default")).send().await.expect(200)
}

/// The API's path of the state `net/default`.
pub(crate) async fn api(app: &TestApp) -> String {
    format!("/api/tfstates/{}", shown(app).await["id"].as_str().unwrap())
}

/// The versions of the state `net/default`, the newest first.
pub(crate) async fn versions(app: &TestApp) -> Vec<Value> {
    let answer = app.get(&format!("{}/versions", api(app).await)).send().await.expect(200);
    answer["versions"].as_array().unwrap().clone()
}

/// The current text of a state, as the protocol returns it.
pub(crate) async fn text(app: &TestApp, state: &str) -> Answer {
    app.get(&format!("/tfstate/{ORG}/{state}")).send().await
}

/// A resource whose creation lasts until there is a file `go`.
pub(crate) const SLOW: &str = "resource \"terraform_data\" \"slow\" {\n  input = \"made\"\n  \
                               provisioner \"local-exec\" {\n    \
                               command = \"echo begun; until [ -e go ]; do sleep 0.05; done\"\n  }\n}\n";

/// What a client prints once the command of [`SLOW`] runs. An interrupt of the whole group that comes while a
/// Go program is about to start a command reaches it twice, the second time by a child that still shares its
/// memory.
pub(crate) const WORKS: &str = "(local-exec): begun";

/// Starts an apply of [`SLOW`] and returns when it holds the lock and works.
pub(crate) async fn apply_slowly(cli: &TerraformCli) -> Running {
    let apply = cli.spawn(APPLY);
    apply.says(WORKS).await;
    apply
}

/// Ends the work of [`SLOW`].
pub(crate) fn go(cli: &TerraformCli) {
    cli.write("go", "");
}

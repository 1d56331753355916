//! Moving stacks: from a local folder to the server and back, and from one secrets provider to another.

use serde_json::json;
use statewright_tests::app::TestApp;
use statewright_tests::cli::PulumiCli;

use crate::BACKEND;
use crate::support::{SECRET_PROGRAM, UP, assert_says, client, export};

/// Asserts that the user can see the stack's secrets, and that an update would change nothing.
async fn assert_same(cli: &PulumiCli) {
    let outputs = cli.run(["stack", "output", "--json", "--show-secrets"]).await.assert_success().json();
    assert_eq!(outputs, json!({ "open": "in-the-open", "hidden": "hunter2" }));
    let got = cli.run(["config", "get", "password"]).await.assert_success();
    assert_eq!(got.stdout.trim(), "hunter2");
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["2 unchanged"]);
}

#[tokio::test]
async fn secrets_go_from_the_server_to_a_passphrase_and_back() {
    let app = TestApp::on(BACKEND).await;
    // The client asks for the new passphrase on its standard input, which is empty, and takes it from here later.
    let cli = client(&app).env("PULUMI_CONFIG_PASSPHRASE", "");
    cli.yaml_project("shop", SECRET_PROGRAM);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    cli.run(UP).await.assert_success();
    for (provider, kind) in [("passphrase", "passphrase"), ("default", "service")] {
        cli.run(["stack", "change-secrets-provider", provider]).await.assert_success();
        let state = export(&cli).await;
        assert_eq!(state["deployment"]["secrets_providers"]["type"], kind);
        assert!(!state.to_string().contains("hunter2"), "{state}");
        assert_same(&cli).await;
    }
}

#[tokio::test]
async fn a_stack_moves_from_a_local_folder_and_back_with_its_secrets() {
    let app = TestApp::on(BACKEND).await;
    let local = PulumiCli::new().diy("of the folder");
    local.yaml_project("shop", SECRET_PROGRAM);
    local.run(["stack", "init", "dev"]).await.assert_success();
    local.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    local.run(UP).await.assert_success();

    let folder = format!("file://{}", local.home_dir().join("state").display());
    let cli = local.clone().backend(&app.url).token(&app.token);
    let migrate = ["stack", "migrate", &folder, "dev", "--target", "acme/shop/dev", "--yes"];
    cli.run(migrate).await.assert_success();
    cli.run(["stack", "select", "acme/shop/dev"]).await.assert_success();
    let state = export(&cli).await;
    assert_eq!(state["deployment"]["secrets_providers"]["type"], "service");
    assert!(!state.to_string().contains("hunter2"), "{state}");
    assert_same(&cli).await;

    let file = cli.home_dir().join("export.json");
    let file = file.to_str().unwrap();
    cli.run(["stack", "export", "--show-secrets", "--file", file]).await.assert_success();
    let back = PulumiCli::new().diy("of another folder");
    back.yaml_project("shop", SECRET_PROGRAM);
    back.run(["stack", "init", "dev"]).await.assert_success();
    back.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    // The import needs the secrets provider, although the secrets are in plain text.
    back.clone().backend(&app.url).token(&app.token).run(["login"]).await.assert_success();
    back.run(["stack", "import", "--file", file]).await.assert_success();
    assert_same(&back).await;
}

/// Like `pulumi stack export | pulumi stack import`, for a client whose source is encrypted under a passphrase.
#[tokio::test]
async fn an_export_of_a_local_folder_is_imported() {
    let app = TestApp::on(BACKEND).await;
    let local = PulumiCli::new().diy("of the folder");
    local.yaml_project("shop", SECRET_PROGRAM);
    local.run(["stack", "init", "dev"]).await.assert_success();
    local.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    local.run(UP).await.assert_success();
    let file = local.home_dir().join("export.json");
    let file = file.to_str().unwrap();
    local.run(["stack", "export", "--show-secrets", "--file", file]).await.assert_success();

    // The import needs the secrets provider, although the secrets are in plain text.
    let cli = client(&app).env("PULUMI_CONFIG_PASSPHRASE", "of the folder");
    cli.yaml_project("shop", SECRET_PROGRAM);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    cli.run(["stack", "import", "--file", file]).await.assert_success();
    let state = export(&cli).await;
    assert!(!state.to_string().contains("hunter2"), "{state}");
    assert_same(&cli).await;
}

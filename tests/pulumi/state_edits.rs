//! `pulumi state`: a state edited by hand, piece by piece.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use statewright_tests::app::TestApp;
use statewright_tests::cli::PulumiCli;

use crate::BACKEND;
use crate::support::{
    DESTROY, UP, assert_says, export, history, item, outputs, resources, sorted, stack, state, urn, yaml,
};

/// A child under its parent, and one that depends on the child.
const FAMILY: &str = "resources:
  base:
    type: bench:index:Item
    properties:
      value: open
      secretValue:
        fn::secret: hunter2
  child:
    type: bench:index:Item
    options:
      parent: ${base}
  leaf:
    type: bench:index:Item
    options:
      dependsOn: [\"${child}\"]
outputs:
  open: ${base.value}
  hidden: ${base.secretValue}
";

/// A client with [`FAMILY`] as its first version.
async fn family(app: &TestApp, project: &str) -> PulumiCli {
    let cli = yaml(app, project, FAMILY).await;
    cli.run(UP).await.assert_success();
    cli
}

#[tokio::test]
async fn unneeded_unprotected_resources_are_deleted_from_a_state() {
    let app = TestApp::on(BACKEND).await;
    let cli = family(&app, "deletion").await;
    let base = urn("deletion", "base");
    let child = "urn:pulumi:dev::deletion::bench:index:Item$bench:index:Item::child";

    let refused = cli.run(["state", "delete", "--yes", child]).await.assert_failure();
    assert_says(&refused, &["can't be safely deleted", "\"leaf\""]);
    cli.run(["state", "protect", "--yes", &base]).await.assert_success();
    assert_eq!(item(&export(&cli).await, "base")["protect"], true);
    let refused = cli.run(["state", "delete", "--yes", "--target-dependents", &base]).await.assert_failure();
    assert_says(&refused, &["because it is protected"]);
    cli.run(["state", "delete", "--yes", "--target-dependents", child]).await.assert_success();
    assert_eq!(sorted(&export(&cli).await), ["base", "default", "deletion-dev"]);
    let refused = cli.run(DESTROY).await.assert_failure();
    assert_says(&refused, &["cannot be deleted", "protected"]);
    let past = ["destroy failed", "import succeeded", "import succeeded", "update succeeded"];
    assert_eq!(history(&cli).await, past);
    assert_eq!(sorted(&export(&cli).await), ["base", "default", "deletion-dev"]);
    cli.run(["state", "unprotect", "--yes", "--all"]).await.assert_success();
    assert!(item(&export(&cli).await, "base").get("protect").is_none());
    cli.run(["state", "protect", "--yes", &base]).await.assert_success();
    cli.run(["state", "delete", "--yes", "--force", &base]).await.assert_success();
    assert_eq!(sorted(&export(&cli).await), ["default", "deletion-dev"]);
    assert_eq!(stack(&app, "deletion").await["version"], 7);

    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["+ 3 created"]);
}

#[tokio::test]
async fn a_renamed_resource_stays_and_a_tainted_one_is_replaced() {
    let app = TestApp::on(BACKEND).await;
    let cli = family(&app, "edited").await;
    cli.run(["state", "rename", "--yes", &urn("edited", "base"), "root"]).await.assert_success();
    let state = export(&cli).await;
    assert_eq!(sorted(&state), ["child", "default", "edited-dev", "leaf", "root"]);
    assert_eq!(item(&state, "child")["parent"], urn("edited", "root"));
    cli.yaml_project("edited", &FAMILY.replace("base", "root"));
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["4 unchanged"]);

    cli.run(["state", "taint", "--yes", &urn("edited", "leaf"), &urn("edited", "root")])
        .await
        .assert_success();
    cli.run(["state", "untaint", "--yes", &urn("edited", "root")]).await.assert_success();
    let state = export(&cli).await;
    let tainted = resources(&state).into_iter().filter(|resource| resource["taint"] == true);
    assert_eq!(tainted.map(|resource| resource["urn"].clone()).collect::<Vec<_>>(), [urn("edited", "leaf")]);
    assert_eq!((&state["version"], &state["features"]), (&json!(4), &json!(["taint"])));
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["+-1 replaced", "3 unchanged"]);
    let state = export(&cli).await;
    assert_eq!((&state["version"], state.get("features")), (&json!(3), None));
    assert_eq!(sorted(&state), ["child", "default", "edited-dev", "leaf", "root"]);
    assert_eq!(outputs(&cli).await, json!({ "open": "open", "hidden": "hunter2" }));
}

/// A secret that moves is encrypted again: the other stack has a key of its own.
#[tokio::test]
async fn resources_move_to_another_stack_with_their_secrets() {
    let app = TestApp::on(BACKEND).await;
    let cli = family(&app, "moving").await;
    cli.run(["stack", "init", "next"]).await.assert_success();
    let before = export_of(&cli, "dev").await;
    let mv = ["state", "move", "--source", "acme/moving/dev", "--dest", "acme/moving/next", "--yes"];
    cli.run(mv.into_iter().chain([&*urn("moving", "base")])).await.assert_success();

    let (left, moved) = (export_of(&cli, "dev").await, export_of(&cli, "next").await);
    assert_eq!(sorted(&left), ["default", "leaf", "moving-dev"]);
    assert_eq!(sorted(&moved), ["base", "child", "default", "moving-next"]);
    assert_eq!(moved["deployment"]["secrets_providers"]["state"]["stack"], "next");
    let secret = |state: &Value| item(state, "base")["inputs"]["secretValue"]["ciphertext"].clone();
    assert!(secret(&moved).is_string() && secret(&moved) != secret(&before), "{moved}");
    let decrypt = async |stack: &str| {
        let path = format!("/api/stacks/acme/moving/{stack}/decrypt");
        app.post(&path, &json!({ "ciphertext": secret(&moved) })).send().await
    };
    decrypt("next").await.expect(200);
    decrypt("dev").await.refused(400);

    cli.yaml_project("moving", FAMILY.split("  leaf:").next().unwrap());
    let up = cli.run(UP.into_iter().chain(["--stack", "next"])).await.assert_success();
    assert_says(&up, &["3 unchanged"]);
    let shown = cli.run(["stack", "export", "--stack", "next", "--show-secrets"]).await.assert_success();
    assert!(shown.stdout.contains("hunter2"), "{shown}");
}

async fn export_of(cli: &PulumiCli, stack: &str) -> Value {
    cli.run(["stack", "export", "--stack", stack]).await.assert_success().json()
}

#[tokio::test]
async fn a_broken_state_is_repaired() {
    let app = TestApp::on(BACKEND).await;
    let cli = family(&app, "broken").await;
    let mut broken = export(&cli).await;
    let list = broken["deployment"]["resources"].as_array_mut().unwrap();
    list.reverse();
    list.retain(|resource| resource["urn"] != urn("broken", "base"));
    cli.write("broken.json", &broken.to_string());
    cli.run(["stack", "import", "--force", "--file", "broken.json"]).await.assert_success();
    let marked = state(&app, "broken").await;
    assert!(marked["deployment"]["metadata"]["integrity_error"].is_object(), "{marked}");
    cli.run(["preview"]).await.assert_failure();

    let repaired = cli.run(["state", "repair", "--yes"]).await.assert_success();
    assert_says(&repaired, &["State repaired successfully"]);
    let state = export(&cli).await;
    assert_eq!(sorted(&state), ["broken-dev", "child", "default", "leaf"]);
    assert!(state["deployment"]["metadata"].get("integrity_error").is_none(), "{state}");
    assert_eq!(history(&cli).await, ["import succeeded", "import succeeded", "update succeeded"]);
    let again = cli.run(["state", "repair", "--yes"]).await.assert_success();
    assert_says(&again, &["already valid"]);
    assert_eq!(stack(&app, "broken").await["version"], 3);
    cli.run(DESTROY).await.assert_success();
}

/// The only edit that needs a terminal.
#[tokio::test]
async fn a_state_is_edited_in_an_editor() {
    let app = TestApp::on(BACKEND).await;
    let cli = family(&app, "typed").await;
    let editor = cli.project_dir().join("editor");
    cli.write("editor", "#!/bin/sh\nexec /bin/sed -i 's/\"value\": \"open\"/\"value\": \"typed\"/' \"$1\"\n");
    std::fs::set_permissions(&editor, PermissionsExt::from_mode(0o755)).unwrap();

    let edit = cli.clone().env("EDITOR", editor).spawn_at_terminal(["state", "edit"]);
    edit.says("  cancel").await;
    // From "edit", where the cursor is, to "accept".
    edit.types("\x1b[A\r");
    edit.wait().await.assert_success();
    let state = export(&cli).await;
    assert_eq!(item(&state, "base")["inputs"]["value"], "typed");
    assert_eq!(history(&cli).await, ["import succeeded", "update succeeded"]);
    assert_eq!(outputs(&cli).await, json!({ "open": "open", "hidden": "hunter2" }));
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["~ 1 updated"]);
}

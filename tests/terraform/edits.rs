//! Edits of a state without an apply, and moving it from one place to another.

use serde_json::{Value, json};
use statewright_tests::app::{ORG, TestApp};

use crate::support::{APPLY, Client, ONE, TerraformCli, api, client_of, shown, start, text, versions};

journeys! {
    each_command_that_edits_a_state_is_a_version
    a_push_is_accepted_as_its_client_sends_it
    a_console_shows_that_it_holds_the_lock
    a_state_moves_from_a_file_to_servers_and_back
    outputs_are_read_by_other_configurations
    a_version_is_restored_and_the_next_apply_starts_from_it
    a_state_addressed_by_id_works_with_the_clients_methods
}

async fn operations(app: &TestApp) -> Vec<String> {
    let word = |version: &Value| version["lock"]["operation"].as_str().unwrap_or("-").to_owned();
    versions(app).await.iter().rev().map(word).collect()
}

async fn each_command_that_edits_a_state_is_a_version(client: Client) {
    let (app, cli) = start(client, &format!("{ONE}resource \"terraform_data\" \"b\" {{}}\n")).await;
    cli.run(["import", "terraform_data.b", "some-id"]).await.assert_success();
    cli.run(APPLY).await.assert_success();
    cli.run(["refresh"]).await.assert_success();
    cli.run(["taint", "terraform_data.a"]).await.assert_success();
    let plan = cli.run(["plan"]).await.assert_success();
    assert!(plan.stdout.contains("1 to add, 0 to change, 1 to destroy"), "{plan}");
    cli.run(["untaint", "terraform_data.a"]).await.assert_success();
    cli.run(["state", "mv", "terraform_data.b", "terraform_data.c"]).await.assert_success();
    let listed = cli.run(["state", "list"]).await.assert_success();
    assert_eq!(listed.stdout.trim(), "terraform_data.a\nterraform_data.c");
    assert_eq!(versions(&app).await[0]["changes"]["added"], json!(["terraform_data.c"]));
    cli.run(["state", "rm", "terraform_data.c"]).await.assert_success();
    cli.run(["show"]).await.assert_success();
    let expected = ["OperationTypeInvalid", "OperationTypeApply", "taint", "untaint", "state-mv", "state-rm"];
    assert_eq!(operations(&app).await, expected);
    let serials: Vec<u64> = versions(&app).await.iter().map(|it| it["serial"].as_u64().unwrap()).collect();
    assert!(serials.is_sorted_by(|newer, older| newer > older), "{serials:?}");
    assert_eq!(shown(&app).await["lock"], Value::Null);
}

async fn a_push_is_accepted_as_its_client_sends_it(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.run(APPLY).await.assert_success();
    let pulled = cli.run(["state", "pull"]).await.assert_success();
    cli.write("push.tfstate", &pulled.stdout);
    cli.run(["state", "push", "push.tfstate"]).await.assert_success();
    let pulled = pulled.json();
    let with = |serial: u64, lineage: &str| {
        let mut text = pulled.clone();
        text["serial"] = serial.into();
        text["lineage"] = lineage.into();
        cli.write("push.tfstate", &text.to_string());
    };
    let (serial, lineage) = (pulled["serial"].as_u64().unwrap(), pulled["lineage"].as_str().unwrap());
    let count = versions(&app).await.len();
    assert_eq!(count, 1, "the same text is not sent");
    with(serial + 1, "another");
    cli.run(["state", "push", "push.tfstate"]).await.assert_failure();
    assert_eq!(versions(&app).await.len(), count, "it was not sent");
    with(50, lineage);
    cli.run(["state", "push", "push.tfstate"]).await.assert_success();
    with(3, "another");
    cli.run(["state", "push", "-force", "push.tfstate"]).await.assert_success();
    let newest = &versions(&app).await[0];
    assert_eq!((&newest["serialFell"], &newest["lineageChanged"]), (&json!(true), &json!(true)));
    assert_eq!((&newest["lineage"], &newest["lock"]["operation"]), (&json!("another"), &json!("state-push")));
}

async fn a_console_shows_that_it_holds_the_lock(client: Client) {
    let (app, cli) = start(client, ONE).await;
    let console = cli.spawn_at_terminal(["console"]);
    console.says("> ").await;
    let lock = shown(&app).await["lock"].clone();
    assert_eq!((&lock["operation"], &lock["principal"]), (&json!("OperationTypeInvalid"), &json!("alice")));
    console.types("6 * 7\r");
    console.says("42").await;
    console.types("exit\r");
    console.wait().await.assert_success();
    assert_eq!(shown(&app).await["lock"], Value::Null);
}

async fn a_state_moves_from_a_file_to_servers_and_back(client: Client) {
    const MOVE: [&str; 3] = ["init", "-migrate-state", "-force-copy"];
    let app = TestApp::embedded().await;
    let cli = TerraformCli::new(client, &app.token);
    cli.write("main.tf", ONE);
    cli.run(["init"]).await.assert_success();
    cli.run(APPLY).await.assert_success();
    let unmoved = async |what: &str| {
        let plan = cli.run(["plan", "-detailed-exitcode"]).await.assert_success();
        assert!(plan.stdout.contains("No changes"), "{what}: {plan}");
    };
    cli.backend(&app, &format!("{ORG}/net"));
    cli.run(MOVE).await.assert_success();
    unmoved("to the server").await;
    cli.backend(&app, &format!("{ORG}/net/prod"));
    cli.run(MOVE).await.assert_success();
    unmoved("to another state").await;
    // Onto an existing one.
    cli.backend(&app, &format!("{ORG}/net"));
    cli.run(MOVE).await.assert_success();
    unmoved("back over the first").await;
    let version = versions(&app).await[0].clone();
    assert_eq!(version["lock"]["operation"], "migration destination state");
    std::fs::remove_file(cli.project_dir().join("backend.tf")).unwrap();
    cli.run(MOVE).await.assert_success();
    unmoved("to a file").await;
    assert_eq!(shown(&app).await["lock"], Value::Null);
    text(&app, "net").await.expect(200);
}

async fn outputs_are_read_by_other_configurations(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.run(APPLY).await.assert_success();
    for tail in ["", "/outputs"] {
        let reader = client_of(
            &app,
            client,
            "reader",
            &format!(
                "data \"terraform_remote_state\" \"net\" {{\n  backend = \"http\"\n  config = {{\n    \
                 address = \"{}/tfstate/{ORG}/net{tail}\"\n    username = \"x\"\n    password = \"{}\"\n  }}\n}}\n\
                 output \"seen\" {{\n  value = data.terraform_remote_state.net.outputs.o\n}}\n",
                app.url, app.token
            ),
        )
        .await;
        reader.run(APPLY).await.assert_success();
        let seen = reader.run(["output", "-raw", "seen"]).await.assert_success();
        assert_eq!(seen.stdout, "naïve 🦀", "{tail:?}");
    }
}

async fn a_version_is_restored_and_the_next_apply_starts_from_it(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.run(APPLY).await.assert_success();
    cli.write("main.tf", &format!("{ONE}resource \"terraform_data\" \"b\" {{}}\n"));
    cli.run(APPLY).await.assert_success();
    let api = api(&app).await;
    app.post(&format!("{api}/versions/1/restore"), &Value::Null).send().await.expect(200);
    let listed = cli.run(["state", "list"]).await.assert_success();
    assert_eq!(listed.stdout.trim(), "terraform_data.a");
    let applied = cli.run(APPLY).await.assert_success();
    assert!(applied.stdout.contains("1 added"), "{applied}");
    let diff = app.get(&format!("{api}/versions/3/diff/4")).send().await.expect(200);
    assert_eq!(diff["resources"]["added"], json!(["terraform_data.b"]));
    let fell = versions(&app).await.iter().any(|version| version["serialFell"] == true);
    assert!(!fell);
}

async fn a_state_addressed_by_id_works_with_the_clients_methods(client: Client) {
    let app = TestApp::embedded().await;
    let id = "019b7c3a-0000-7000-8000-000000000001";
    let new = json!({ "id": id, "project": "net" });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).send().await.expect(200);
    let cli = TerraformCli::new(client, &app.token);
    let url = format!("{}/tfstate/{id}", app.url);
    cli.write(
        "main.tf",
        &format!(
            "terraform {{\n  backend \"http\" {{\n    address = \"{url}\"\n    lock_address = \"{url}\"\n    \
             unlock_address = \"{url}\"\n    update_method = \"PUT\"\n  }}\n}}\n{ONE}"
        ),
    );
    cli.run(["init"]).await.assert_success();
    app.take_requests();
    cli.run(APPLY).await.assert_success();
    let requests = app.take_requests();
    for method in ["LOCK", "PUT", "UNLOCK"] {
        assert!(requests.contains(&format!("{method} /tfstate/{id}")), "{requests:?}");
    }
    cli.run(["plan", "-detailed-exitcode"]).await.assert_success();
    // A missing one is not an empty state.
    let elsewhere = TerraformCli::new(client, &app.token);
    elsewhere.backend(&app, "019b7c3a-0000-7000-8000-000000000002");
    elsewhere.write("main.tf", ONE);
    let refused = elsewhere.run(["init"]).await.assert_failure();
    assert!(refused.stderr.contains("invalid auth"), "{refused}");
}

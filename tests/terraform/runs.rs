//! Runs with failures, and unusual states.

use std::time::Duration;

use serde_json::{Value, json};
use statewright_shared::domain::names::{Login, TokenName};
use statewright_shared::services::identity::tokens;
use statewright_tests::app::{ORG, TestApp, USER};

use crate::support::{
    APPLY, Client, DESTROY, SLOW, TerraformCli, api, apply_slowly, client_of, go, shown, start, text,
    versions,
};

journeys! {
    a_run_whose_lock_was_broken_loses_nothing
    a_token_that_expires_during_an_apply_loses_nothing
    an_interrupted_apply_saves_its_work_and_unlocks
    a_state_of_16_mb_is_written_and_read
}

async fn a_run_whose_lock_was_broken_loses_nothing(client: Client) {
    let (app, cli) = start(client, SLOW).await;
    let apply = apply_slowly(&cli).await;
    let lock = format!("{}/lock", api(&app).await);
    app.request(reqwest::Method::DELETE, &lock).send().await.expect(204);
    go(&cli);
    let failed = apply.wait().await.assert_failure();
    assert!(failed.stderr.contains("409"), "{failed}");
    let rejected = app.get(&format!("{}/rejected", api(&app).await)).send().await.expect(200);
    assert_eq!(rejected["rejected"][0]["why"], "displaced");
    // The client has it too, and can push it; or a person promotes the copy that the server kept.
    assert!(cli.read("errored.tfstate").contains("\"made\""));
    let id = rejected["rejected"][0]["id"].as_str().unwrap();
    let promote = format!("{}/versions/{id}/restore", api(&app).await);
    app.post(&promote, &Value::Null).send().await.expect(200);
    let plan = cli.run(["plan", "-detailed-exitcode"]).await.assert_success();
    assert!(plan.stdout.contains("No changes"), "{plan}");
    cli.run(["state", "push", "-force", "errored.tfstate"]).await.assert_success();
    cli.run(["plan", "-detailed-exitcode"]).await.assert_success();
}

async fn a_token_that_expires_during_an_apply_loses_nothing(client: Client) {
    let app = TestApp::embedded_on_manual_clock().await;
    let (login, name) = (Login::parse(USER).unwrap(), TokenName::parse("ci").unwrap());
    let hour = Duration::from_secs(3_600);
    let token = tokens::create_token(&app.context, &login, &name, Some(hour)).await.unwrap();
    let cli = TerraformCli::new(client, &token);
    cli.backend(&app, &format!("{ORG}/net"));
    cli.write("main.tf", SLOW);
    cli.run(["init"]).await.assert_success();
    let apply = apply_slowly(&cli).await;
    app.advance(2 * hour);
    go(&cli);
    apply.wait().await.assert_success();
    let state = shown(&app).await;
    assert_eq!((&state["version"], &state["lock"]), (&json!(1), &Value::Null));
    // It is not valid for anything else.
    let refused = cli.run(["plan"]).await.assert_failure();
    assert!(refused.stderr.contains("requires auth"), "{refused}");
}

async fn an_interrupted_apply_saves_its_work_and_unlocks(client: Client) {
    let first = "resource \"terraform_data\" \"first\" {}\n";
    let slow = SLOW.replace("input =", "depends_on = [terraform_data.first]\n  input =");
    let (app, cli) = start(client, &format!("{first}{slow}")).await;
    let apply = apply_slowly(&cli).await;
    apply.interrupt();
    apply.says("Interrupt received").await;
    go(&cli);
    apply.wait().await;
    let state = shown(&app).await;
    assert_eq!(state["lock"], Value::Null);
    let text = text(&app, "net").await.expect(200).to_string();
    assert!(text.contains("\"first\""), "{text}");
    let all = versions(&app).await;
    assert!(all.iter().all(|version| version["lock"]["id"] == all[0]["lock"]["id"]));
    cli.run(APPLY).await.assert_success();
}

async fn a_state_of_16_mb_is_written_and_read(client: Client) {
    let app = TestApp::embedded().await;
    let cli = client_of(&app, client, "net", "").await;
    // It is in the state as the input and as the output.
    let large: String =
        (0..900_000_u32).map(|number| format!("{:08x} ", number.wrapping_mul(2_654_435_761))).collect();
    cli.write("large.txt", &large);
    cli.write("main.tf", "resource \"terraform_data\" \"large\" {\n  input = file(\"large.txt\")\n}\n");
    cli.run(APPLY).await.assert_success();
    let version = versions(&app).await[0].clone();
    assert!(version["bytes"].as_u64().unwrap() > 16_000_000, "{version}");
    let plan = cli.run(["plan", "-detailed-exitcode"]).await.assert_success();
    assert!(plan.stdout.contains("No changes"), "{plan}");
    cli.run(DESTROY).await.assert_success();
    assert_eq!(shown(&app).await["current"]["resourceCount"], 0);
}

/// Terraform has no way to send one.
#[tokio::test]
async fn opentofu_may_send_the_token_as_a_header() {
    let app = TestApp::embedded().await;
    let cli = TerraformCli::with_commands(Client::Tofu, &app.url, &app.token);
    let url = format!("{}/tfstate/{ORG}/net", app.url);
    let backend = |token: &str| {
        cli.write(
            "main.tf",
            &format!(
                "terraform {{\n  backend \"http\" {{\n    address = \"{url}\"\n    lock_address = \"{url}\"\n    \
                 unlock_address = \"{url}\"\n    headers = {{\n      Authorization = \"Bearer {token}\"\n    }}\n  }}\n}}\n\
                 resource \"terraform_data\" \"a\" {{}}\n"
            ),
        );
    };
    backend(&app.token);
    cli.run(["init"]).await.assert_success();
    cli.run(APPLY).await.assert_success();
    assert_eq!(versions(&app).await[0]["by"], "alice");
    backend("swt_wrong");
    let refused = cli.run(["init", "-reconfigure"]).await.assert_failure();
    assert!(refused.stderr.contains("auth"), "{refused}");
}

#[tokio::test]
async fn an_encrypted_state_is_stored_and_shows_nothing() {
    let app = TestApp::embedded().await;
    let cli = TerraformCli::new(Client::Tofu, &app.token);
    cli.backend(&app, &format!("{ORG}/net"));
    cli.write(
        "main.tf",
        "terraform {\n  encryption {\n    key_provider \"pbkdf2\" \"k\" {\n      \
         passphrase = \"correct horse battery staple\"\n    }\n    method \"aes_gcm\" \"m\" {\n      \
         keys = key_provider.pbkdf2.k\n    }\n    state {\n      method = method.aes_gcm.m\n    }\n  }\n}\n\
         resource \"terraform_data\" \"a\" {\n  input = \"hunter2\"\n}\n\
         output \"o\" {\n  value = terraform_data.a.output\n}\n",
    );
    cli.run(["init"]).await.assert_success();
    cli.run(APPLY).await.assert_success();
    assert_eq!(cli.run(["output", "-raw", "o"]).await.assert_success().stdout, "hunter2");
    let raw = text(&app, "net").await;
    assert!(raw.text().contains("encryption_version") && !raw.text().contains("hunter2"));
    let state = shown(&app).await;
    assert_eq!(
        (&state["current"]["encrypted"], &state["current"]["resourceCount"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(state["current"]["serial"], 1);
    let outputs = app.get(&format!("{}/outputs", api(&app).await)).send().await.expect(200);
    assert_eq!(outputs, json!({ "version": 1, "encrypted": true, "outputs": null }));
    cli.run(DESTROY).await.assert_success();
    assert_eq!(versions(&app).await.len(), 2);
    // Back to the version before, which the client cannot do by itself; it continues from there.
    let restore = format!("{}/versions/1/restore", api(&app).await);
    app.post(&restore, &json!(null)).send().await.expect(200);
    assert_eq!(cli.run(["output", "-raw", "o"]).await.assert_success().stdout, "hunter2");
    cli.run(["apply", "-auto-approve", "-replace=terraform_data.a"]).await.assert_success();
    assert_eq!(versions(&app).await[1]["serialFell"], true);
}

//! Clients with a token of a low role: what works, and what they show their users otherwise.

use serde_json::{Value, json};
use statewright_shared::domain::role::Role;
use statewright_tests::app::{ORG, TestApp};

use crate::support::{
    APPLY, Client, ONE, Output, SLOW, TerraformCli, apply_slowly, client_of, go, shown, start, versions,
};

journeys! {
    a_token_that_may_plan_plans_and_does_not_apply
    a_plan_token_can_read_and_cannot_write
    a_state_that_is_not_there_is_not_made_by_a_plan
    outputs_are_read_with_a_token_that_may_see_no_more
    only_a_member_breaks_another_users_lock
    a_machine_applies_with_a_token_of_its_organization
    a_grant_on_one_side_is_not_one_on_the_other
}

/// Another client of the state `net`, with this token.
async fn with_token(app: &TestApp, client: Client, token: &str, configuration: &str) -> TerraformCli {
    let cli = TerraformCli::new(client, token);
    cli.backend(app, &format!("{ORG}/net"));
    cli.write("main.tf", configuration);
    cli.run(["init"]).await.assert_success();
    cli
}

/// A client's message on one line: they wrap theirs, and OpenTofu draws a bar before each line.
fn printed(output: &Output) -> String {
    output.stderr.replace(['│', '╷', '╵'], " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn a_token_that_may_plan_plans_and_does_not_apply(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.run(APPLY).await.assert_success();
    let more = format!("{ONE}resource \"terraform_data\" \"b\" {{}}\n");
    let plan = app.scoped_token(Role::Plan).await;
    let ci = with_token(&app, client, &plan, &more).await;
    app.take_requests();
    let planned = ci.run(["plan", "-out", "plan.bin"]).await.assert_success();
    assert!(planned.stdout.contains("1 to add"), "{planned}");
    let requests = app.take_requests();
    let lock = "/tfstate/acme/net/lock";
    assert_eq!(requests, [format!("POST {lock}"), "GET /tfstate/acme/net".into(), format!("DELETE {lock}")]);

    for arguments in [&APPLY[..], &["apply", "plan.bin"], &["destroy", "-auto-approve"]] {
        app.take_requests();
        let refused = ci.run(arguments).await.assert_failure();
        let words = printed(&refused);
        for expected in [
            "a lock for a run that may write needs the role apply in acme",
            "the token \"plan\" of alice allows at most plan",
            "statewright token create NAME --user alice --may apply",
        ] {
            assert!(words.contains(expected), "{expected:?} is not in {refused}");
        }
        // At the lock, before any resource is created.
        assert_eq!(app.take_requests(), [format!("POST {lock}")]);
        assert!(!refused.stdout.contains("Creating"), "{refused}");
    }
    assert_eq!(versions(&app).await.len(), 1);
    assert_eq!(shown(&app).await["lock"], Value::Null);
    // The plan is applied with another token.
    let apply = app.scoped_token(Role::Apply).await;
    let job = ci.env("TF_HTTP_PASSWORD", apply);
    job.run(["apply", "plan.bin"]).await.assert_success();
    assert_eq!(versions(&app).await.len(), 2);
}

async fn a_plan_token_can_read_and_cannot_write(client: Client) {
    let (app, cli) = start(client, &format!("{ONE}resource \"terraform_data\" \"b\" {{}}\n")).await;
    cli.run(APPLY).await.assert_success();
    let plan = app.scoped_token(Role::Plan).await;
    let ci = with_token(&app, client, &plan, &cli.read("main.tf")).await;
    for arguments in
        [&["plan", "-refresh-only"][..], &["plan", "-destroy"], &["output"], &["show"], &["state", "list"]]
    {
        ci.run(arguments).await.assert_success();
    }
    let console = ci.spawn_at_terminal(["console"]);
    console.says("> ").await;
    console.types("6 * 7\r");
    console.says("42").await;
    console.types("exit\r");
    console.wait().await.assert_success();

    let pulled = cli.run(["state", "pull"]).await.assert_success();
    let serial = |serial: u64| {
        let mut text = pulled.json();
        text["serial"] = serial.into();
        text.to_string()
    };
    ci.write("push.tfstate", &serial(50));
    for arguments in [
        &["refresh"][..],
        &["taint", "terraform_data.a"],
        &["untaint", "terraform_data.a"],
        &["state", "mv", "terraform_data.b", "terraform_data.c"],
        &["state", "rm", "terraform_data.b"],
        &["state", "push", "push.tfstate"],
        &["apply", "-auto-approve", "-refresh-only"],
    ] {
        let refused = ci.run(arguments).await.assert_failure();
        assert!(printed(&refused).contains("needs the role apply in acme"), "{refused}");
    }
    // An import describes its lock like a console, and is refused when it saves; only the state would change.
    let removed = cli.run(["state", "rm", "terraform_data.b"]).await.assert_success();
    assert!(removed.stdout.contains("terraform_data.b"), "{removed}");
    let refused = ci.run(["import", "terraform_data.b", "some-id"]).await.assert_failure();
    assert!(refused.stderr.contains("403"), "{refused}");
    let forced = ["apply", "-auto-approve", "-lock=false"];
    let refused = ci.run(forced).await.assert_failure();
    assert!(refused.stderr.contains("403"), "without a lock there is no earlier refusal: {refused}");

    // Moving the state away only reads it.
    std::fs::remove_file(ci.project_dir().join("backend.tf")).unwrap();
    ci.run(["init", "-migrate-state", "-force-copy"]).await.assert_success();
    assert_eq!(versions(&app).await.len(), 2);
    assert_eq!(shown(&app).await["lock"], Value::Null);
    let rejected = app.get(&format!("{}/rejected", crate::support::api(&app).await)).send().await.expect(200);
    assert_eq!(rejected["rejected"], json!([]));
}

async fn a_state_that_is_not_there_is_not_made_by_a_plan(client: Client) {
    let app = TestApp::embedded().await;
    let plan = app.scoped_token(Role::Plan).await;
    let ci = with_token(&app, client, &plan, ONE).await;
    let refused = ci.run(["plan"]).await.assert_failure();
    assert!(printed(&refused).contains("creating a state needs the role apply"), "{refused}");
    let listed = app.get(&format!("/api/orgs/{ORG}/tfstates")).send().await.expect(200);
    assert_eq!(listed["states"], json!([]));
}

async fn outputs_are_read_with_a_token_that_may_see_no_more(client: Client) {
    let producer = format!("{ONE}output \"s\" {{\n  value = \"hush\"\n  sensitive = true\n}}\n");
    let (app, cli) = start(client, &producer).await;
    cli.run(APPLY).await.assert_success();
    let outputs = app.member_with_role(Role::Outputs, "olga", "ci").await;
    let reader = |tail: &str| {
        format!(
            "data \"terraform_remote_state\" \"net\" {{\n  backend = \"http\"\n  config = {{\n    \
             address = \"{}/tfstate/{ORG}/net{tail}\"\n    username = \"x\"\n    password = \"{outputs}\"\n  }}\n}}\n\
             output \"seen\" {{\n  value = data.terraform_remote_state.net.outputs.o\n}}\n\
             output \"secret\" {{\n  value = data.terraform_remote_state.net.outputs.s\n  sensitive = true\n}}\n",
            app.url
        )
    };
    let web = client_of(&app, client, "web", &reader("/outputs")).await;
    web.run(APPLY).await.assert_success();
    assert_eq!(web.run(["output", "-raw", "seen"]).await.assert_success().stdout, "naïve 🦀");
    assert_eq!(web.run(["output", "-raw", "secret"]).await.assert_success().stdout, "hush");
    // The state itself is refused, and does not look empty.
    web.write("main.tf", &reader(""));
    let refused = web.run(["plan"]).await.assert_failure();
    assert!(refused.stderr.contains("invalid auth"), "{refused}");
    let cli = TerraformCli::new(client, &outputs);
    cli.backend(&app, &format!("{ORG}/net"));
    cli.write("main.tf", ONE);
    let refused = cli.run(["init"]).await.assert_failure();
    assert!(refused.stderr.contains("invalid auth"), "{refused}");
}

async fn only_a_member_breaks_another_users_lock(client: Client) {
    let (app, cli) = start(client, SLOW).await;
    apply_slowly(&cli).await.kill().await;
    go(&cli);
    let id = shown(&app).await["lock"]["ID"].as_str().unwrap().to_owned();
    let unlock = ["force-unlock", "-force", &id];
    for (role, login) in [(Role::Plan, "pat"), (Role::Apply, "abe")] {
        let token = app.member_with_role(role, login, "ci").await;
        let refused = with_token(&app, client, &token, SLOW).await.run(unlock).await.assert_failure();
        assert!(refused.stderr.contains("403"), "{refused}");
        assert_eq!(shown(&app).await["lock"]["ID"], id.as_str());
    }
    let member = app.member("mia", "laptop").await;
    app.take_audit();
    with_token(&app, client, &member, SLOW).await.run(unlock).await.assert_success();
    assert_eq!(shown(&app).await["lock"], Value::Null);
    let details: Vec<Value> = app.take_audit().iter().map(|record| record["detail"].clone()).collect();
    assert!(
        details.iter().any(|detail| detail.as_str().is_some_and(|it| it.contains("of alice"))),
        "{details:?}"
    );
    // The user who took a lock can break it, whatever their role: a killed job is run again.
    let apply = app.member_with_role(Role::Apply, "ann", "ci").await;
    let job = with_token(&app, client, &apply, &SLOW.replace("\"slow\"", "\"slower\"")).await;
    apply_slowly(&job).await.kill().await;
    let id = shown(&app).await["lock"]["ID"].as_str().unwrap().to_owned();
    job.run(["force-unlock", "-force", &id]).await.assert_success();
    assert_eq!(shown(&app).await["lock"], Value::Null);
}

async fn a_machine_applies_with_a_token_of_its_organization(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.run(APPLY).await.assert_success();
    let tokens = format!("/api/orgs/{ORG}/tokens");
    let new = json!({ "name": "ci", "roleID": "apply" });
    let made = app.post(&tokens, &new).send().await.expect(200);
    let more = format!("{ONE}resource \"terraform_data\" \"b\" {{}}\n");
    let ci = with_token(&app, client, made["tokenValue"].as_str().unwrap(), &more).await;
    ci.run(APPLY).await.assert_success();
    assert_eq!(versions(&app).await.len(), 2);
    let path = format!("{tokens}/{}/rotate", made["id"].as_str().unwrap());
    let rotated = app.post(&path, &json!({})).send().await.expect(200);
    ci.run(["plan"]).await.assert_failure();
    let ci = ci.env("TF_HTTP_PASSWORD", rotated["tokenValue"].as_str().unwrap());
    ci.run(["plan"]).await.assert_success();
}

async fn a_grant_on_one_side_is_not_one_on_the_other(client: Client) {
    let (app, cli) = start(client, ONE).await;
    cli.run(APPLY).await.assert_success();
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    let give = async |on: &str, role: &str| {
        let grant = json!({ "to": "user:bob", "on": on, "role": role });
        app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    };
    let reader = format!(
        "data \"terraform_remote_state\" \"net\" {{\n  backend = \"http\"\n  config = {{\n    \
         address = \"{}/tfstate/{ORG}/net/outputs\"\n    username = \"x\"\n    password = \"{bob}\"\n  }}\n}}\n\
         output \"seen\" {{\n  value = data.terraform_remote_state.net.outputs.o\n}}\n",
        app.url
    );
    give("web/*", "apply").await;
    let web = TerraformCli::new(client, &bob);
    web.backend(&app, &format!("{ORG}/web"));
    web.write("main.tf", &reader);
    web.run(["init"]).await.assert_success();
    let refused = web.run(APPLY).await.assert_failure();
    assert!(refused.stderr.contains("invalid auth"), "{refused}");
    give("net/*", "outputs").await;
    web.run(APPLY).await.assert_success();
    assert_eq!(web.run(["output", "-raw", "seen"]).await.assert_success().stdout, "naïve 🦀");
    // The grant gives the outputs and not the state.
    let net = TerraformCli::new(client, &bob);
    net.backend(&app, &format!("{ORG}/net"));
    net.write("main.tf", ONE);
    let refused = net.run(["init"]).await.assert_failure();
    assert!(refused.stderr.contains("invalid auth"), "{refused}");
}

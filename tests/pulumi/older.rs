//! A client from before journaling was the default and an update could begin in one call.

use serde_json::json;
use statewright_tests::app::TestApp;
use statewright_tests::cli::PulumiCli;
use statewright_tests::tools;

use crate::BACKEND;
use crate::support::{
    DESTROY, REFRESH, SECRET_PROGRAM, UP, assert_says, export, history, names, outputs, stack,
};

#[tokio::test]
async fn an_older_client_runs_from_login_to_destroy() {
    goes_all_the_way(PulumiCli::older(), "/checkpoint").await;
}

#[tokio::test]
async fn an_older_client_can_journal_a_whole_update() {
    goes_all_the_way(PulumiCli::older().env("PULUMI_ENABLE_JOURNALING", "true"), "/journalentries").await;
}

/// From login to the deletion of the stack, with this way of saving.
async fn goes_all_the_way(cli: PulumiCli, saves: &str) {
    let app = TestApp::on(BACKEND).await;
    let version = cli.run(["version"]).await.assert_success();
    assert_eq!(version.stdout.trim(), format!("v{}", tools::OLDER_PULUMI_VERSION));
    cli.clone().token(&app.token).run(["login", &app.url]).await.assert_success();
    let whoami = cli.run(["whoami"]).await.assert_success();
    assert_eq!(whoami.stdout.trim(), "alice");

    cli.yaml_project("older", SECRET_PROGRAM);
    cli.run(["stack", "init", "acme/older/dev"]).await.assert_success();
    cli.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    let got = cli.run(["config", "get", "password"]).await.assert_success();
    assert_eq!(got.stdout.trim(), "hunter2");
    let preview = cli.run(["preview"]).await.assert_success();
    assert_says(&preview, &["+ 2 to create"]);
    assert_eq!(stack(&app, "older").await["version"], 0);
    app.take_requests();
    let up = cli.run(["up", "--yes"]).await.assert_success();
    let requests = app.take_requests();
    let patches: Vec<_> = requests.iter().filter(|request| request.starts_with("PATCH")).collect();
    assert!(!patches.is_empty() && patches.iter().all(|patch| patch.ends_with(saves)), "{patches:?}");
    assert!(!requests.iter().any(|request| request.ends_with("/begin-update")), "{requests:?}");
    assert_says(&up, &["+ 2 created", "[secret]"]);
    assert_eq!(outputs(&cli).await, json!({ "open": "in-the-open", "hidden": "hunter2" }));
    let refresh = cli.run(REFRESH).await.assert_success();
    assert_says(&refresh, &["2 unchanged"]);
    assert_eq!(history(&cli).await, ["refresh succeeded", "update succeeded"]);

    let state = export(&cli).await;
    assert!(!state.to_string().contains("hunter2"), "{state}");
    cli.write("state.json", &state.to_string());
    cli.run(["stack", "import", "--file", "state.json"]).await.assert_success();
    // An import encrypts every secret again.
    assert_eq!(names(&export(&cli).await), names(&state));
    cli.run(["stack", "rename", "prod"]).await.assert_success();
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["2 unchanged"]);
    assert_eq!(outputs(&cli).await, json!({ "open": "in-the-open", "hidden": "hunter2" }));

    // The newer client continues where the older one ended, and the older one after that.
    let newer = PulumiCli::new().backend(&app.url).token(&app.token);
    newer.yaml_project("older", &SECRET_PROGRAM.replace("in-the-open", "newer"));
    std::fs::copy(cli.project_dir().join("Pulumi.prod.yaml"), newer.project_dir().join("Pulumi.prod.yaml"))
        .unwrap();
    newer.run(["stack", "select", "acme/older/prod"]).await.assert_success();
    let up = newer.run(UP).await.assert_success();
    assert_says(&up, &["~ 1 updated"]);
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["~ 1 updated"]);
    let destroyed = cli.run(DESTROY).await.assert_success();
    assert_says(&destroyed, &["- 2 deleted"]);
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());
    cli.run(["stack", "rm", "prod", "--yes"]).await.assert_success();
    app.get("/api/stacks/acme/older/prod").send().await.refused(404);
}

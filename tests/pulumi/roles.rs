//! Clients with a token of a low role: what works, and what they show their users otherwise.

use serde_json::json;
use statewright_shared::domain::role::Role;
use statewright_tests::app::TestApp;
use statewright_tests::cli::PulumiCli;

use crate::BACKEND;
use crate::support::{SECRET_PROGRAM, UP, assert_says, export, names, stack, urn, yaml};

/// The configuration of [`SECRET_PROGRAM`], and its first version.
async fn started(app: &TestApp, project: &str) -> PulumiCli {
    let cli = yaml(app, project, SECRET_PROGRAM).await;
    cli.run(["config", "set", "--secret", "password", "hunter2"]).await.assert_success();
    cli.run(UP).await.assert_success();
    cli
}

#[tokio::test]
async fn a_token_that_may_plan_previews_and_does_not_update() {
    let app = TestApp::on(BACKEND).await;
    let cli = started(&app, "planned").await;
    let program = SECRET_PROGRAM.replace("outputs:", "  second:\n    type: bench:index:Item\noutputs:");
    cli.yaml_project("planned", &program);
    let before = export(&cli).await;
    let ci = cli.clone().token(app.scoped_token(Role::Plan).await);
    let preview = ci.run(["preview"]).await.assert_success();
    assert_says(&preview, &["+ 1 to create"]);
    ci.run(["preview", "--refresh"]).await.assert_success();
    ci.run(["stack", "export"]).await.assert_success();
    ci.run(["stack", "history"]).await.assert_success();
    ci.run(["config", "set", "--secret", "other", "value"]).await.assert_success();
    let shown = ci.run(["config", "get", "password"]).await.assert_success();
    assert_eq!(shown.stdout, "hunter2\n");

    let needs = "an update other than a preview needs the role apply in acme";
    let way = "statewright token create NAME --user alice --may apply";
    for arguments in [
        &["up", "--yes"][..],
        &["up", "--yes", "--skip-preview"],
        &["refresh", "--yes", "--skip-preview"],
        &["destroy", "--yes", "--skip-preview"],
    ] {
        let refused = ci.run(arguments).await.assert_failure();
        assert_says(&refused, &["[403] Forbidden: ", needs, way]);
    }
    let older = ci.clone().env("PULUMI_DISABLE_BEGIN_UPDATE", "true");
    older.run(["preview"]).await.assert_success();
    assert_says(&older.run(UP).await.assert_failure(), &["[403] Forbidden: ", needs, way]);
    for (arguments, role) in [
        (&["stack", "tag", "set", "a", "b"][..], "apply"),
        (&["stack", "init", "other"], "apply"),
        (&["state", "delete", "--yes", &urn("planned", "first")], "apply"),
        (&["stack", "rename", "other"], "member"),
        (&["stack", "rm", "--yes", "--force"], "member"),
    ] {
        let refused = ci.run(arguments).await.assert_failure();
        assert_says(&refused, &[&format!("needs the role {role} in acme")]);
    }
    assert_eq!(export(&cli).await, before);
    assert_eq!(stack(&app, "planned").await["version"], 1);
}

#[tokio::test]
async fn apply_allows_the_daily_work_and_no_destroy() {
    let app = TestApp::on(BACKEND).await;
    let cli = started(&app, "applied").await;
    let ci = cli.clone().token(app.member_with_role(Role::Apply, "ann", "ci").await);
    ci.run(["stack", "select", "acme/dev"]).await.assert_success();
    ci.run(UP).await.assert_success();
    ci.run(["refresh", "--yes"]).await.assert_success();
    ci.run(["stack", "tag", "set", "team", "web"]).await.assert_success();
    ci.write("state.json", &ci.run(["stack", "export"]).await.assert_success().stdout);
    ci.run(["stack", "import", "--file", "state.json"]).await.assert_success();
    ci.run(["state", "rename", &urn("applied", "first"), "renamed", "--yes"]).await.assert_success();
    assert!(names(&export(&ci).await).contains(&"renamed".to_owned()));
    ci.run(["stack", "init", "acme/staging"]).await.assert_success();
    let refused = ci.run(["stack", "rm", "acme/staging", "--yes"]).await.assert_failure();
    let way = "statewright org grant add acme user:ann applied/staging member";
    assert_says(&refused, &["needs the role member in acme/applied/staging, and ann has apply", way]);
    ci.run(["destroy", "--yes", "--skip-preview", "--stack", "acme/dev"]).await.assert_success();
}

#[tokio::test]
async fn the_role_outputs_sees_outputs_alone() {
    let app = TestApp::on(BACKEND).await;
    let cli = started(&app, "shown-outputs").await;
    let reader = cli.clone().token(app.member_with_role(Role::Outputs, "olga", "ci").await);
    let outputs = reader.run(["stack", "output", "--json"]).await.assert_success().json();
    assert_eq!(outputs, json!({ "open": "in-the-open", "hidden": "[secret]" }));
    let listed = reader.run(["stack", "ls", "--json"]).await.assert_success().json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    // Users who may read the state may open a secret.
    let refused = reader.run(["stack", "output", "--json", "--show-secrets"]).await.assert_failure();
    assert_says(&refused, &["needs the role plan in acme"]);
    assert_says(&reader.run(["stack", "export"]).await.assert_failure(), &["needs the role plan in acme"]);
    assert_says(&reader.run(["preview"]).await.assert_failure(), &["needs the role plan in acme"]);
}

#[tokio::test]
async fn an_admin_manages_members_with_the_cli() {
    let app = TestApp::on(BACKEND).await;
    let cli = started(&app, "managed").await;
    app.member_with_role(Role::Plan, "ann", "ci").await;
    let listed = cli.run(["org", "member", "list"]).await.assert_success();
    assert_says(&listed, &["alice", "ann", "2 member(s)"]);
    let edit = ["org", "member", "edit", "ann", "--role", "admin"];
    cli.run(edit).await.assert_success();
    let listed = cli.run(["api", "ListOrganizationMembers"]).await.assert_success().json();
    assert_eq!(listed["members"][1]["role"], "admin", "{listed}");
    cli.run(["org", "member", "remove", "ann", "--yes"]).await.assert_success();
    let listed = cli.run(["org", "member", "list"]).await.assert_success();
    assert_says(&listed, &["1 member(s)"]);
    let last = cli.run(["org", "member", "edit", "alice", "--role", "member"]).await.assert_failure();
    assert_says(&last, &["is the last admin of acme"]);
}

#[tokio::test]
async fn a_grant_on_one_project_shows_that_project() {
    let app = TestApp::on(BACKEND).await;
    // Before another server reads the grants: it would remember for a minute that there are none.
    let token = app.member_with_role(Role::None, "bob", "ci").await;
    let grant = json!({ "to": "user:bob", "on": "granted/d*", "role": "plan" });
    app.post("/api/orgs/acme/grants", &grant).send().await.expect(200);
    let cli = started(&app, "granted").await;
    cli.run(["stack", "init", "acme/other"]).await.assert_success();
    let bob = cli.clone().token(token);
    let stacks = bob.run(["stack", "ls", "--all", "--json"]).await.assert_success().json();
    let names: Vec<&str> =
        stacks.as_array().unwrap().iter().map(|stack| stack["name"].as_str().unwrap()).collect();
    assert!(names.len() == 1 && names[0].ends_with("dev"), "{stacks}");
    bob.run(["preview", "--stack", "acme/dev"]).await.assert_success();
    let refused = bob.run(["up", "--yes", "--skip-preview", "--stack", "acme/dev"]).await.assert_failure();
    assert_says(&refused, &["statewright org grant add acme user:bob granted/dev apply"]);
    bob.run(["stack", "export", "--stack", "acme/other"]).await.assert_failure();
}

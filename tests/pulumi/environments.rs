//! Environments: `pulumi env`, stacks that import them, and stacks whose configuration the service stores.

use serde_json::json;
use statewright_shared::domain::role::Role;
use statewright_tests::app::TestApp;
use statewright_tests::cli::{Output, PulumiCli};

use crate::BACKEND;
use crate::support::{DESTROY, SECRET_PROGRAM, UP, assert_says, client, outputs, yaml};

/// Runs a command that succeeds.
async fn run(cli: &PulumiCli, command: &str) -> Output {
    cli.run(command.split(' ')).await.assert_success()
}

/// Makes an environment with this text, or replaces its text.
async fn write(cli: &PulumiCli, environment: &str, text: &str) {
    cli.write("environment.yaml", text);
    let init = format!("env init {environment} --file environment.yaml");
    if cli.run(init.split(' ')).await.code != Some(0) {
        run(cli, &format!("env edit {environment} --file environment.yaml")).await;
    }
}

#[tokio::test]
async fn an_environment_is_created_changed_opened_and_deleted() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app);
    assert_says(&run(&cli, "env init acme/web/base").await, &["Environment created: acme/web/base"]);
    run(&cli, "env set acme/web/base pulumiConfig.region eu-1").await;
    run(&cli, "env set acme/web/base pulumiConfig.password hunter2 --secret").await;
    run(&cli, "env set acme/web/base environmentVariables.REGION ${pulumiConfig.region}").await;
    run(&cli, "env set acme/web/base files.KEY ${pulumiConfig.password}").await;
    assert_says(&run(&cli, "env ls").await, &["acme/web/base"]);

    let shown = run(&cli, "env get acme/web/base").await;
    assert_says(&shown, &["\"password\": \"[secret]\"", "\"REGION\": \"eu-1\"", "ciphertext: "]);
    assert!(!shown.stdout.contains("hunter2"), "{shown}");
    assert_says(&run(&cli, "env get acme/web/base --show-secrets").await, &["fn::secret: hunter2"]);
    let found = run(&cli, "env get acme/web/base pulumiConfig.region").await;
    assert_says(&found, &["eu-1", "# Defined at\n- base:3:17\n"]);
    let opened = run(&cli, "env open acme/web/base").await.json();
    assert_eq!(opened["pulumiConfig"], json!({ "region": "eu-1", "password": "hunter2" }));
    let one = run(&cli, "env open acme/web/base pulumiConfig.password --format string").await;
    assert_eq!(one.stdout, "hunter2\n");
    let command =
        ["env", "run", "acme/web/base", "--", "/bin/sh", "-c", "echo $REGION; read key < $KEY; echo $key"];
    let ran = cli.run(command).await.assert_success();
    assert!(ran.stdout.starts_with("eu-1\n[secret]"), "{ran}");

    // A mistake is reported with its place, and changes nothing.
    assert_says(
        &cli.run(["env", "set", "acme/web/base", "bad", "${nope}"]).await,
        &["unknown property \"nope\""],
    );
    assert_says(&run(&cli, "env get acme/web/base --definition").await, &["files:"]);
    assert!(!run(&cli, "env get acme/web/base --definition").await.stdout.contains("nope"));
    let twice = cli.run(["env", "init", "acme/web/base"]).await.assert_failure();
    assert_says(&twice, &["environment acme/web/base already exists"]);

    run(&cli, "env settings set acme/web/base deletion-protected true").await;
    let kept = cli.run(["env", "rm", "acme/web/base", "--yes"]).await.assert_failure();
    assert_says(&kept, &["deletion protection is enabled"]);
    run(&cli, "env settings set acme/web/base deletion-protected false").await;
    run(&cli, "env rm acme/web/base files").await;
    run(&cli, "env rm acme/web/base --yes").await;
    let gone = cli.run(["env", "get", "acme/web/base"]).await.assert_failure();
    assert_says(&gone, &["environment acme/web/base not found"]);
    let named = json!({ "project": "web", "name": "base" });
    app.request(axum::http::Method::PUT, "/api/esc/environments/acme/restore")
        .json(&named)
        .send()
        .await
        .expect(204);
    let opened = run(&cli, "env open acme/web/base").await.json();
    assert_eq!(opened["pulumiConfig"]["password"], "hunter2");
}

/// The client shows a warning with its place, and the definition is saved.
#[tokio::test]
async fn a_secret_in_a_comment_is_warned_of_and_saved() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app);
    write(&cli, "acme/web/base", "values: {n: 1}\n").await;
    cli.write("environment.yaml", "values:\n  # old: {fn::secret: hunter2}\n  new: {fn::secret: hunter3}\n");
    let edited = run(&cli, "env edit acme/web/base --file environment.yaml").await;
    let printed =
        ["Environment updated.", "Warning: a secret in a comment is stored as text", "on web/base line 2:"];
    assert_says(&edited, &printed);
    let kept = run(&cli, "env get acme/web/base --definition").await;
    assert!(kept.stdout.contains("# old: {fn::secret: hunter2}"), "{kept}");
    assert!(!kept.stdout.contains("hunter3"), "{kept}");
    // And the one after it, which has no secret in a comment.
    cli.write("environment.yaml", "values:\n  new: {fn::secret: hunter3}\n");
    let edited = run(&cli, "env edit acme/web/base --file environment.yaml").await;
    assert!(!format!("{edited}").contains("stored as text"), "{edited}");
}

#[tokio::test]
async fn an_environment_with_a_deleted_import_is_shown() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app);
    write(&cli, "acme/web/base", "values: {region: eu-1}\n").await;
    write(&cli, "acme/web/app", "imports: [web/base]\nvalues: {size: 3, where: \"${region}\"}\n").await;
    assert_says(&run(&cli, "env referrer list acme/web/base").await, &["latest", "environment", "web/app@2"]);
    run(&cli, "env rm acme/web/base --yes").await;
    assert_says(&run(&cli, "env get acme/web/app").await, &["\"size\": 3", "imports: [web/base]"]);
    assert_says(&run(&cli, "env get acme/web/app size").await, &["3", "# Defined at\n- app:2:16\n"]);
    let opened = cli.run(["env", "open", "acme/web/app"]).await.assert_failure();
    assert_says(&opened, &["environment acme/web/base not found"]);
}

#[tokio::test]
async fn revisions_have_a_history_tags_and_a_rollback() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app);
    write(&cli, "acme/web/base", "values: {n: 1}\n").await;
    for n in 2..=3 {
        run(&cli, &format!("env set acme/web/base n {n}")).await;
    }
    // The first one is empty.
    run(&cli, "env version tag acme/web/base@stable @3").await;
    let history = run(&cli, "env version history acme/web/base --pager cat").await;
    assert_says(&history, &["revision 4 (tag: latest)", "revision 3 (tag: stable)", "Author: alice <alice>"]);
    let value = async |version: &str| run(&cli, &format!("env open acme/web/base@{version} n")).await.stdout;
    assert_eq!(
        (value("stable").await, value("latest").await, value("2").await),
        ("2\n".into(), "3\n".into(), "1\n".into())
    );
    assert_says(
        &run(&cli, "env diff acme/web/base@2 acme/web/base@4").await,
        &["-  \"n\": 1", "+  \"n\": 3"],
    );

    run(&cli, "env version rollback acme/web/base@2").await;
    assert_eq!(value("latest").await, "1\n");
    let retracted = ["env", "version", "retract", "acme/web/base@stable", "--reason", "wrong"];
    cli.run(retracted).await.assert_success();
    assert_eq!(value("3").await, "1\n", "its replacement is opened");
    let history = run(&cli, "env version history acme/web/base --pager cat").await;
    assert_says(&history, &["Retracted by alice <alice>", "replaced with revision 5", "wrong"]);
    let refused = cli.run(["env", "version", "retract", "acme/web/base@5"]).await.assert_failure();
    assert_says(&refused, &["cannot be retracted"]);
    run(&cli, "env version tag rm acme/web/base@stable").await;
    let gone = cli.run(["env", "open", "acme/web/base@stable"]).await.assert_failure();
    assert_says(&gone, &["environment acme/web/base has no revision tag stable"]);

    run(&cli, "env tag acme/web/base team infra").await;
    run(&cli, "env tag mv acme/web/base team squad").await;
    assert_says(&run(&cli, "env tag ls acme/web/base --pager cat").await, &["Name: squad", "Value: infra"]);
    run(&cli, "env clone acme/web/base web/copy").await;
    run(&cli, "env clone acme/web/base other/all --preserve-history --preserve-env-tags").await;
    let history = run(&cli, "env version history acme/other/all --pager cat").await;
    assert_says(&history, &["revision 5 (tag: latest)", "revision 1"]);
    assert_says(&run(&cli, "env tag get acme/other/all squad").await, &["infra"]);
    run(&cli, "env tag rm acme/web/base squad").await;
    let listed = run(&cli, "env ls").await;
    assert_says(&listed, &["acme/other/all", "acme/web/base", "acme/web/copy"]);
}

#[tokio::test]
async fn environments_import_each_other_and_secrets_stay_secret() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app);
    write(
        &cli,
        "acme/shared/base",
        "values:\n  db: {host: a.example, password: {fn::secret: hunter2}}\n  n: 1\n",
    )
    .await;
    write(
        &cli,
        "acme/shared/top",
        "imports: [shared/base@latest, {shared/base: {merge: false}}]\nvalues:\n  # of the team\n  db: {user: app}\n  \
         url: https://${db.user}:${db.password}@${db.host}\n  list: {fn::fromJSON: \"[${n}]\"}\n  \
         where: ${context.rootEnvironment.name} ${context.pulumi.user.login}\n",
    )
    .await;
    let opened = run(&cli, "env open acme/shared/top").await.json();
    assert_eq!(
        opened,
        json!({
            "db": { "host": "a.example", "password": "hunter2", "user": "app" },
            "n": 1, "list": [1], "url": "https://app:hunter2@a.example", "where": "shared/top alice",
        })
    );
    let shown = run(&cli, "env get acme/shared/top --value json").await;
    assert!(!shown.stdout.contains("hunter2"), "{shown}");
    assert_says(&run(&cli, "env get acme/shared/top --definition").await, &["# of the team"]);
    let found = run(&cli, "env get acme/shared/top db.host").await;
    assert_says(&found, &["# Defined at\n- shared/base@latest:2:14\n"]);
    for (text, words) in [
        ("imports: [shared/none]\n", "environment acme/shared/none not found"),
        ("imports: [shared/base@9]\n", "environment acme/shared/base has no revision 9"),
        ("imports: [shared/top]\n", "lead back to it"),
        ("values: {a: {fn::secret: 'x ${b}'}, b: 1}\n", "fn::secret takes a string without references"),
        (
            "values: {a: {fn::secret: {ciphertext: AQAA}}}\n",
            "not encrypted by this server for this environment",
        ),
        ("values: [\n", "the YAML cannot be read"),
    ] {
        cli.write("environment.yaml", text);
        let refused = cli.run(["env", "edit", "acme/shared/top", "--file", "environment.yaml"]).await;
        assert_says(&refused, &[words]);
    }
    assert_eq!(run(&cli, "env open acme/shared/top").await.json(), opened);
}

#[tokio::test]
async fn a_stack_imports_environments_with_its_file() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "imports", SECRET_PROGRAM).await;
    write(&cli, "acme/imports/base", "values:\n  pulumiConfig:\n    password: {fn::secret: hunter2}\n").await;
    run(&cli, "config env add imports/base --yes").await;
    assert_says(&run(&cli, "config env ls").await, &["imports/base"]);
    let shown = run(&cli, "config").await;
    assert_says(&shown, &["password", "[secret]"]);
    cli.run(UP).await.assert_success();
    assert_eq!(outputs(&cli).await["hidden"], "hunter2");
    assert_says(&run(&cli, "stack history").await, &["stack.environments: [{\"id\":\"imports/base\"}]"]);

    // Another environment in its place, for one run.
    write(&cli, "acme/imports/other", "values:\n  pulumiConfig:\n    password: {fn::secret: s3cret}\n").await;
    cli.run(["up", "--yes", "--skip-preview", "--override-env", "imports/base=imports/other"])
        .await
        .assert_success();
    assert_eq!(outputs(&cli).await["hidden"], "s3cret");
    // The stack's file takes precedence over what it imports.
    run(&cli, "config set --secret password mine").await;
    cli.run(UP).await.assert_success();
    assert_eq!(outputs(&cli).await["hidden"], "mine");

    run(&cli, "env rm acme/imports/base --yes").await;
    let refused = cli.run(UP).await.assert_failure();
    assert_says(&refused, &["environment acme/imports/base not found"]);
}

#[tokio::test]
async fn a_stacks_configuration_moves_into_an_environment_and_back() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "moves", SECRET_PROGRAM).await;
    run(&cli, "config set --secret password hunter2").await;
    run(&cli, "config set --path list[0].x 1").await;
    run(&cli, "config env init --yes").await;
    let file = std::fs::read_to_string(cli.project_dir().join("Pulumi.dev.yaml")).unwrap();
    assert_eq!(file, "environment:\n  - moves/dev\n");
    assert_says(&run(&cli, "config").await, &["password", "[secret]", "[{\"x\":1}]"]);
    cli.run(UP).await.assert_success();
    assert_eq!(outputs(&cli).await["hidden"], "hunter2");
    run(&cli, "config env rm moves/dev --yes").await;
    assert!(!run(&cli, "config").await.stdout.contains("password"));
    // From the configuration of the last update.
    run(&cli, "config refresh --force").await;
    assert_eq!(run(&cli, "config get password").await.stdout, "hunter2\n");
}

#[tokio::test]
async fn the_service_holds_the_configuration_of_a_stack() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app);
    cli.yaml_project("remote", SECRET_PROGRAM);
    let made = run(&cli, "stack init prod --remote-config").await;
    assert_says(&made, &["Created environment remote/prod for stack configuration"]);
    let config = app.get("/api/stacks/acme/remote/prod/config").send().await.expect(200);
    assert_eq!(config, json!({ "environment": "remote/prod" }));
    run(&cli, "env set acme/remote/prod pulumiConfig.password hunter2 --secret").await;
    assert_says(&run(&cli, "config").await, &["password", "[secret]"]);
    assert_eq!(run(&cli, "config get password").await.stdout, "hunter2\n");
    cli.run(UP).await.assert_success();
    assert_eq!(outputs(&cli).await["hidden"], "hunter2");
    assert_says(&run(&cli, "preview").await, &["unchanged"]);
    assert!(!cli.project_dir().join("Pulumi.prod.yaml").exists());
    let refused = cli.run(["config", "set", "password", "x"]).await.assert_failure();
    assert_says(&refused, &["pulumi env set remote/prod"]);

    // It stays with the stack under another name, and continues if another environment is named.
    run(&cli, "stack rename live").await;
    assert_eq!(run(&cli, "config get password").await.stdout, "hunter2\n");
    write(&cli, "acme/remote/next", "imports: [remote/prod]\nvalues: {pulumiConfig: {extra: 1}}\n").await;
    let path = "/api/stacks/acme/remote/live/config";
    let put = |body| app.request(axum::http::Method::PUT, path).json(&body).send();
    put(json!({ "environment": "remote/none" })).await.refused(404);
    put(json!({ "environment": "remote/next" })).await.expect(200);
    assert_says(&run(&cli, "config").await, &["extra", "1", "password"]);
    cli.run(DESTROY).await.assert_success();
    app.request(axum::http::Method::DELETE, path).send().await.expect(204);
    app.get(path).send().await.refused(404);
    let empty = run(&cli, "config").await;
    assert!(!empty.stdout.contains("password"), "{empty}");
    run(&cli, "stack rm live --yes").await;
    assert_says(&run(&cli, "env ls").await, &["acme/remote/prod", "acme/remote/next"]);
}

#[tokio::test]
async fn an_environment_has_the_outputs_of_stacks() {
    let app = TestApp::on(BACKEND).await;
    let cli = yaml(&app, "source", SECRET_PROGRAM).await;
    run(&cli, "config set --secret password hunter2").await;
    cli.run(UP).await.assert_success();
    let text = "values:\n  stacks:\n    fn::open::pulumi-stacks:\n      stacks:\n        one: {stack: source/dev}\n  \
                joined: ${stacks.one.open}/${stacks.one.hidden}\n";
    write(&cli, "acme/web/outputs", text).await;
    let opened = run(&cli, "env open acme/web/outputs").await.json();
    assert_eq!(opened["stacks"], json!({ "one": { "hidden": "hunter2", "open": "in-the-open" } }));
    assert_eq!(opened["joined"], "in-the-open/hunter2");
    let shown = run(&cli, "env get acme/web/outputs --value json").await.json();
    assert_eq!(shown["joined"], "[unknown]", "a read calls no provider");
    write(&cli, "acme/web/outputs", &text.replace("source/dev", "source/none")).await;
    let refused = cli.run(["env", "open", "acme/web/outputs"]).await.assert_failure();
    assert_says(&refused, &["stack acme/source/none not found"]);
}

#[tokio::test]
async fn a_token_that_may_plan_opens_environments_and_changes_none() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app);
    write(&cli, "acme/web/base", "values: {n: {fn::secret: one}}\n").await;
    // Each from a home of its own: this client remembers its user.
    let as_other = |token: String| client(&app).token(token);
    let ci = as_other(app.scoped_token(Role::Plan).await);
    assert_eq!(run(&ci, "env open acme/web/base n --format string").await.stdout, "one\n");
    for (command, role) in [
        ("env set acme/web/base n 2", "apply"),
        ("env init acme/web/other", "apply"),
        ("env clone acme/web/base web/copy", "apply"),
        ("env version tag acme/web/base@stable @1", "apply"),
        ("env rm acme/web/base --yes", "member"),
    ] {
        let refused = ci.run(command.split(' ')).await.assert_failure();
        assert_says(&refused, &[&format!("needs the role {role} in acme")]);
    }
    // The client has its own text for this one.
    let refused =
        ci.run("env settings set acme/web/base deletion-protected true".split(' ')).await.assert_failure();
    assert_says(&refused, &["insufficient permissions to update settings"]);
    let reader = as_other(app.scoped_token(Role::Outputs).await);
    let refused = reader.run(["env", "open", "acme/web/base"]).await.assert_failure();
    assert_says(&refused, &["needs the role plan in acme"]);
    let stranger = as_other(app.other_user("bob", "beta").await);
    let refused = stranger.run(["env", "get", "acme/web/base"]).await.assert_failure();
    assert_says(&refused, &["environment acme/web/base not found"]);
}

//! The operator's commands while a server runs, as its users see them.

use serde_json::json;
use statewright_tests::app::TestApp;
use statewright_tests::cli::PulumiCli;
use statewright_tests::commands::{run, stdout_of};

use crate::support::{REFRESH, UP, assert_says, export, export_version, names, outputs, yaml};

const PROGRAM: &str = "resources:
  first:
    type: bench:index:Item
    properties:
      secretValue:
        fn::secret: hunter2
      value: in-the-open
outputs:
  hidden: ${first.secretValue}
";

const LARGER: &str = "resources:
  first:
    type: bench:index:Item
    properties:
      secretValue:
        fn::secret: hunter2
      value: in-the-open
  second:
    type: bench:index:Item
    properties:
      value: more
outputs:
  hidden: ${first.secretValue}
";

#[tokio::test]
async fn a_restored_version_has_the_current_name_of_the_stack() {
    let app = TestApp::embedded().await;
    let cli = yaml(&app, "shop", PROGRAM).await;
    cli.run(UP).await.assert_success();
    let first = export(&cli).await;
    cli.yaml_project("shop", LARGER);
    cli.run(UP).await.assert_success();

    stdout_of(app.folder(), &["stack", "restore", "acme/shop/dev", "--version", "1"]).await;
    assert_eq!(export(&cli).await, first);
    assert_eq!(outputs(&cli).await, json!({ "hidden": "hunter2" }));
    let history = cli.run(["stack", "history", "--json"]).await.assert_success().json();
    let newest = (&history[0]["kind"], &history[0]["message"]);
    assert_eq!(newest, (&json!("import"), &json!("Restore version 1")));
    let refresh = cli.run(REFRESH).await.assert_success();
    assert_says(&refresh, &["2 unchanged"]);
    // The restored state lacks the second resource, so it is created again.
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["+ 1 created", "2 unchanged"]);

    cli.run(["stack", "rename", "prod"]).await.assert_success();
    let before = export(&cli).await;
    let diff = stdout_of(app.folder(), &["stack", "diff", "acme/shop/prod", "1", "3"]).await;
    assert_eq!(diff, "versions 1 and 3 do not differ\n");
    stdout_of(app.folder(), &["stack", "restore", "acme/shop/prod", "--version", "2"]).await;
    assert_eq!(names(&export(&cli).await), ["shop-prod", "default", "first", "second"]);
    assert_eq!(
        export(&cli).await["deployment"]["secrets_providers"],
        before["deployment"]["secrets_providers"]
    );
    assert_eq!(outputs(&cli).await, json!({ "hidden": "hunter2" }));
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["3 unchanged"]);
    assert_eq!(export_version(&cli, 1).await, first);
}

#[tokio::test]
async fn a_server_moves_to_another_address() {
    let app = TestApp::embedded().await;
    let old = app.url.clone();
    let new = old.replace("127.0.0.1", "localhost");
    // Logged in by their home, as people are: a token in the environment would be used for every address.
    let cli = PulumiCli::new();
    let login = async |url: &str| {
        cli.clone().token(&app.token).run(["login", url]).await.assert_success();
    };
    login(&old).await;
    cli.yaml_project("shop", PROGRAM);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(UP).await.assert_success();

    cli.run(["logout", &old]).await.assert_success();
    login(&new).await;
    cli.run(["stack", "select", "acme/shop/dev"]).await.assert_success();
    let up = cli.run(UP).await.assert_failure();
    assert_says(&up, &[&old, &format!("statewright rehome --from {old} --to")]);

    // The client has begun the update, and does not end it when it fails.
    let rehome = ["rehome", "--from", old.as_str(), "--to", new.as_str()];
    let held = run(app.folder(), &rehome).await;
    assert_eq!((held.code, held.stdout.contains("Another update is currently in progress")), (Some(1), true));
    stdout_of(app.folder(), &["stack", "unlock", "acme/shop/dev", "--yes"]).await;
    let done = stdout_of(app.folder(), &rehome).await;
    assert!(done.contains("acme/shop/dev"), "{done}");
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["2 unchanged"]);
    assert!(!up.to_string().contains("warning"), "{up}");
    assert_eq!(outputs(&cli).await, json!({ "hidden": "hunter2" }));
    let again = stdout_of(app.folder(), &rehome).await;
    assert!(again.contains("none of them names"), "{again}");

    // A user who is logged in to both gets a warning, and the client itself writes the address that it uses.
    stdout_of(app.folder(), &["rehome", "--from", &new, "--to", &old]).await;
    login(&old).await;
    login(&new).await;
    let up = cli.run(UP).await.assert_success();
    assert_says(&up, &["warning: the state of this stack names", "statewright rehome --from"]);
    let up = cli.run(UP).await.assert_success();
    assert!(!up.to_string().contains("warning"), "{up}");
    let history = cli.run(["stack", "history", "--json"]).await.assert_success().json();
    let kinds: Vec<_> = history.as_array().unwrap().iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds, ["update", "update", "rename", "update", "rename", "update", "update"]);
}

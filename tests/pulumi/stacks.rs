//! Stacks: made, listed, selected, removed.

use statewright_tests::app::TestApp;

use crate::support::{UP, assert_says, bench, client, export, names};

#[tokio::test]
async fn stacks_are_made_listed_and_selected() {
    let app = TestApp::embedded().await;
    let cli = bench(&app, "stacks", &[("count", "1")]).await;
    cli.run(["stack", "init", "acme/prod"]).await.assert_success();

    let exists = cli.run(["stack", "init", "dev"]).await.assert_failure();
    assert_says(&exists, &["stack 'acme/stacks/dev' already exists"]);
    let exists = cli.run(["stack", "init", "elsewhere/dev"]).await.assert_failure();
    assert_says(&exists, &["organization elsewhere not found"]);

    let listed = cli.run(["stack", "ls", "--json"]).await.assert_success().json();
    let listed: Vec<_> =
        listed.as_array().unwrap().iter().map(|stack| (&stack["name"], &stack["current"])).collect();
    assert_eq!(listed, [(&"dev".into(), &false.into()), (&"prod".into(), &true.into())]);

    cli.run(["stack", "select", "dev"]).await.assert_success();
    let shown = cli.run(["stack", "--show-name"]).await.assert_success();
    assert_eq!(shown.stdout.trim(), "dev");

    let missing = cli.run(["stack", "select", "nowhere"]).await.assert_failure();
    assert_says(&missing, &["no stack named 'nowhere' found"]);
    let missing = cli.run(["up", "--yes", "--stack", "nowhere"]).await.assert_failure();
    assert_says(&missing, &["no stack named 'nowhere' found"]);
}

#[tokio::test]
async fn tags_are_set_listed_and_removed() {
    let app = TestApp::embedded().await;
    let cli = bench(&app, "tagged", &[]).await;
    cli.run(["stack", "tag", "set", "team", "storage"]).await.assert_success();
    let tags = cli.run(["stack", "tag", "ls", "--json"]).await.assert_success().json();
    let expected =
        serde_json::json!({"pulumi:project": "tagged", "pulumi:runtime": "bench", "team": "storage"});
    assert_eq!(tags, expected);

    // An update brings the tags of its project along, and leaves those that were set.
    cli.run(UP).await.assert_success();
    let tags = cli.run(["stack", "tag", "ls", "--json"]).await.assert_success().json();
    assert_eq!(tags, expected);
    let found =
        cli.run(["stack", "ls", "--all", "--tag", "team=storage", "--json"]).await.assert_success().json();
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    let found =
        cli.run(["stack", "ls", "--all", "--tag", "team=network", "--json"]).await.assert_success().json();
    assert_eq!(found, serde_json::json!([]));

    cli.run(["stack", "tag", "rm", "team"]).await.assert_success();
    let missing = cli.run(["stack", "tag", "get", "team"]).await.assert_failure();
    assert_says(&missing, &["stack tag 'team' not found"]);
}

#[tokio::test]
async fn a_stack_with_resources_is_removed_only_by_force() {
    let app = TestApp::embedded().await;
    let cli = bench(&app, "removal", &[("count", "1")]).await;
    cli.run(UP).await.assert_success();

    let refused = cli.run(["stack", "rm", "dev", "--yes"]).await.assert_failure();
    assert_says(&refused, &["still has resources; removal rejected"]);
    assert_eq!(names(&export(&cli).await).len(), 3);

    cli.run(["stack", "rm", "dev", "--yes", "--force"]).await.assert_success();
    let listed = cli.run(["stack", "ls", "--json"]).await.assert_success().json();
    assert_eq!(listed, serde_json::json!([]));
    app.get("/api/stacks/acme/removal/dev").send().await.refused(404);

    // The name is free, and nothing of the old stack comes back with it.
    cli.run(["stack", "init", "dev"]).await.assert_success();
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());
}

#[tokio::test]
async fn a_stack_without_resources_is_removed() {
    let app = TestApp::embedded().await;
    let cli = client(&app);
    cli.bench_project("removal", &[]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(["stack", "rm", "dev", "--yes"]).await.assert_success();
    app.get("/api/stacks/acme/removal/dev").send().await.refused(404);
}

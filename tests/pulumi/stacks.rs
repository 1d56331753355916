//! Stacks: created, listed, selected, deleted.

use statewright_tests::app::{ORG, TestApp};

use crate::BACKEND;
use crate::support::{UP, assert_says, bench, client, export, names};

#[tokio::test]
async fn stacks_are_made_listed_and_selected() {
    let app = TestApp::on(BACKEND).await;
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
async fn tags_are_set_listed_and_deleted() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "tagged", &[]).await;
    cli.run(["stack", "tag", "set", "team", "storage"]).await.assert_success();
    let tags = cli.run(["stack", "tag", "ls", "--json"]).await.assert_success().json();
    let expected =
        serde_json::json!({"pulumi:project": "tagged", "pulumi:runtime": "bench", "team": "storage"});
    assert_eq!(tags, expected);

    // An update sets the tags of its project, and keeps those that were set.
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
async fn a_tag_that_breaks_a_limit_is_refused_and_changes_nothing() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "tagged", &[]).await;
    let longest = "x".repeat(256);
    cli.run(["stack", "tag", "set", "a.b-c_d:e", &longest]).await.assert_success();
    for (name, value) in [("a b", "v"), ("", "v"), (&"n".repeat(41), "v"), ("n", &"x".repeat(257))] {
        cli.run(["stack", "tag", "set", name, value]).await.assert_failure();
    }
    let got = cli.run(["stack", "tag", "get", "a.b-c_d:e"]).await.assert_success();
    assert_eq!(got.stdout.trim(), longest);
    let tags = cli.run(["stack", "tag", "ls", "--json"]).await.assert_success().json();
    assert_eq!(tags.as_object().map(serde_json::Map::len), Some(3), "{tags}");
}

#[tokio::test]
async fn lists_are_narrowed_to_organization_project_and_tag() {
    let app = TestApp::on(BACKEND).await;
    let token = app.member_of(&[ORG, "beta"], "carol", "laptop").await;
    let cli = client(&app).token(&token);
    for (org, project, stack) in [("acme", "one", "dev"), ("beta", "one", "dev"), ("acme", "two", "prod")] {
        cli.bench_project(project, &[]);
        cli.run(["stack", "init", &format!("{org}/{project}/{stack}")]).await.assert_success();
    }
    cli.run(["stack", "tag", "set", "team", "a=b"]).await.assert_success();
    let list = async |arguments: &[&str]| -> Vec<String> {
        let listed = cli.run(["stack", "ls", "--json"].iter().chain(arguments)).await.assert_success().json();
        let names = listed.as_array().unwrap().iter().map(|stack| stack["name"].as_str().unwrap().to_owned());
        names.collect()
    };
    // A stack of the current project and organization is named by its last part.
    let all = ["acme/one/dev", "beta/one/dev", "prod"];
    assert_eq!(list(&["-a"]).await, all);
    assert_eq!(list(&["-a", "-o", "beta"]).await, ["beta/one/dev"]);
    assert_eq!(list(&["-p", "one"]).await, ["acme/one/dev", "beta/one/dev"]);
    assert_eq!(list(&["-a", "-t", "team"]).await, ["prod"]);
    assert_eq!(list(&["-a", "-t", "team=a=b"]).await, ["prod"]);
    assert_eq!(list(&["-a", "-t", "team=a"]).await, [""; 0]);
    assert_eq!(list(&["-a", "-o", "elsewhere"]).await, [""; 0]);
}

#[tokio::test]
async fn a_stack_with_resources_is_deleted_only_by_force() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "removal", &[("count", "1")]).await;
    cli.run(UP).await.assert_success();

    let refused = cli.run(["stack", "rm", "dev", "--yes"]).await.assert_failure();
    assert_says(&refused, &["still has resources; removal rejected"]);
    assert_eq!(names(&export(&cli).await).len(), 3);

    cli.run(["stack", "rm", "dev", "--yes", "--force"]).await.assert_success();
    let listed = cli.run(["stack", "ls", "--json"]).await.assert_success().json();
    assert_eq!(listed, serde_json::json!([]));
    app.get("/api/stacks/acme/removal/dev").send().await.refused(404);

    // The name is free, and a new stack has nothing of the old one.
    cli.run(["stack", "init", "dev"]).await.assert_success();
    assert_eq!(names(&export(&cli).await), Vec::<String>::new());
}

/// The rest when a program registers nothing.
#[tokio::test]
async fn a_stack_with_only_its_root_is_deleted() {
    let app = TestApp::on(BACKEND).await;
    let cli = bench(&app, "removal", &[("count", "0")]).await;
    cli.run(UP).await.assert_success();
    assert_eq!(names(&export(&cli).await), ["removal-dev"]);
    cli.run(["stack", "rm", "dev", "--yes"]).await.assert_success();
    app.get("/api/stacks/acme/removal/dev").send().await.refused(404);
}

#[tokio::test]
async fn a_stack_without_resources_is_deleted() {
    let app = TestApp::on(BACKEND).await;
    let cli = client(&app);
    cli.bench_project("removal", &[]);
    cli.run(["stack", "init", "dev"]).await.assert_success();
    cli.run(["stack", "rm", "dev", "--yes"]).await.assert_success();
    app.get("/api/stacks/acme/removal/dev").send().await.refused(404);
}

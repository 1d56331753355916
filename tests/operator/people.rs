//! Users and organizations, beside a running server.

use std::time::Duration;

use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::commands::{document, refused, told};

/// The first words of a table's rows.
fn names(table: &str) -> Vec<&str> {
    table.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect()
}

#[tokio::test]
async fn a_colleague_gets_in_and_out_again() {
    let app = TestApp::embedded_on_manual_clock().await;
    let folder = app.folder();
    let made = told(folder, &["user", "create", "bob", "--org", ORG]).await;
    assert!(made.contains("statewright token create NAME --user bob"), "{made}");
    let token = told(folder, &["token", "create", "laptop", "--user", "bob"]).await;
    let whoami = app.get("/api/user").token(token.trim()).send().await.expect(200);
    assert_eq!((&whoami["githubLogin"], &whoami["organizations"][0]["name"]), (&"bob".into(), &ORG.into()));
    let default = app.get("/api/user/organizations/default").token(token.trim()).send().await.expect(200);
    assert_eq!(default["GitHubLogin"], ORG);

    assert_eq!(names(&told(folder, &["user", "list"]).await), [USER, "bob"]);
    let words = refused(folder, 1, &["user", "remove", "bob"]).await;
    assert!(words.contains("add --yes if that is meant"), "{words}");
    let removed = told(folder, &["user", "remove", "bob", "--yes"]).await;
    assert!(removed.contains("bob is removed, with 1 access tokens"), "{removed}");
    app.advance(Duration::from_secs(61));
    app.get("/api/user").token(token.trim()).send().await.refused(401);
    assert_eq!(names(&told(folder, &["user", "list"]).await), [USER]);
    let words = refused(folder, 1, &["user", "remove", "bob", "--yes"]).await;
    assert_eq!(words, "error: there is no user bob\n  `statewright user list` shows which there are\n");
}

#[tokio::test]
async fn an_organization_is_for_its_members() {
    let app = TestApp::embedded_on_manual_clock().await;
    let folder = app.folder();
    told(folder, &["org", "create", "beta"]).await;
    assert_eq!(names(&told(folder, &["org", "list"]).await), [ORG, "beta"]);
    let body = serde_json::json!({ "stackName": "dev" });
    app.post("/api/stacks/beta/shop", &body).send().await.refused(404);

    let added = told(folder, &["org", "member", "add", "beta", USER]).await;
    assert_eq!(added, "alice is a member of beta, with the role member\n");
    assert_eq!(
        told(folder, &["org", "member", "add", "beta", USER]).await,
        "alice was already a member of beta, with the role member\n"
    );
    app.advance(Duration::from_secs(61));
    app.post("/api/stacks/beta/shop", &body).send().await.expect(200);
    assert_eq!(names(&told(folder, &["org", "member", "list", "beta"]).await), [USER]);

    told(folder, &["org", "member", "remove", "beta", USER]).await;
    app.advance(Duration::from_secs(61));
    app.get("/api/stacks/beta/shop/dev").send().await.refused(404);
    // The organization has its stacks, and its operator sees them.
    let listed = document(folder, &["stack", "list", "--org", "beta"]).await;
    assert_eq!(listed["stacks"][0]["stack"], "beta/shop/dev");
    let words = refused(folder, 1, &["stack", "list", "--org", "gamma"]).await;
    assert_eq!(
        words,
        "error: organization gamma not found\n  `statewright org list` shows which there are\n"
    );
}

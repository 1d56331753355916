//! Users and organizations, while a server runs.

use std::time::Duration;

use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::commands::{document, refused, stdout_of};

use crate::support::{Run, stack};

/// The first words of a table's rows.
fn names(table: &str) -> Vec<&str> {
    table.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect()
}

#[tokio::test]
async fn a_colleague_gets_in_and_out_again() {
    let app = TestApp::embedded_on_manual_clock().await;
    let folder = app.folder();
    let made = stdout_of(folder, &["user", "create", "bob", "--org", ORG]).await;
    assert!(made.contains("statewright token create NAME --user bob"), "{made}");
    let token = stdout_of(folder, &["token", "create", "laptop", "--user", "bob"]).await;
    let whoami = app.get("/api/user").token(token.trim()).send().await.expect(200);
    assert_eq!((&whoami["githubLogin"], &whoami["organizations"][0]["name"]), (&"bob".into(), &ORG.into()));
    let default = app.get("/api/user/organizations/default").token(token.trim()).send().await.expect(200);
    assert_eq!(default["GitHubLogin"], ORG);

    assert_eq!(names(&stdout_of(folder, &["user", "list"]).await), [USER, "bob"]);
    let words = refused(folder, 1, &["user", "remove", "bob"]).await;
    assert!(words.contains("to confirm, add --yes"), "{words}");
    let removed = stdout_of(folder, &["user", "remove", "bob", "--yes"]).await;
    assert!(removed.contains("removed bob and 1 access token"), "{removed}");
    app.advance(Duration::from_secs(61));
    app.get("/api/user").token(token.trim()).send().await.refused(401);
    assert_eq!(names(&stdout_of(folder, &["user", "list"]).await), [USER]);
    let words = refused(folder, 1, &["user", "remove", "bob", "--yes"]).await;
    assert_eq!(
        words,
        "error: user bob not found: check the name\n  `statewright user list` lists the users\n"
    );
}

#[tokio::test]
async fn an_organization_is_for_its_members() {
    let app = TestApp::embedded_on_manual_clock().await;
    let folder = app.folder();
    stdout_of(folder, &["org", "create", "beta"]).await;
    assert_eq!(names(&stdout_of(folder, &["org", "list"]).await), [ORG, "beta"]);
    let body = serde_json::json!({ "stackName": "dev" });
    app.post("/api/stacks/beta/shop", &body).send().await.refused(404);

    let added = stdout_of(folder, &["org", "member", "add", "beta", USER]).await;
    assert_eq!(added, "alice is a member of beta with the role member\n");
    assert_eq!(
        stdout_of(folder, &["org", "member", "add", "beta", USER]).await,
        "alice was already a member of beta with the role member\n"
    );
    app.advance(Duration::from_secs(61));
    app.post("/api/stacks/beta/shop", &body).send().await.expect(200);
    assert_eq!(names(&stdout_of(folder, &["org", "member", "list", "beta"]).await), [USER]);

    stdout_of(folder, &["org", "member", "remove", "beta", USER]).await;
    app.advance(Duration::from_secs(61));
    app.get("/api/stacks/beta/shop/dev").send().await.refused(404);
    // The organization has its stacks, and its operator sees them.
    let listed = document(folder, &["stack", "list", "--org", "beta"]).await;
    assert_eq!(listed["stacks"][0]["stack"], "beta/shop/dev");
    let words = refused(folder, 1, &["stack", "list", "--org", "gamma"]).await;
    assert_eq!(
        words,
        "error: organization gamma not found: check its name, and that your user is a member\n  `statewright org list` lists the organizations\n"
    );
}

#[tokio::test]
async fn a_member_may_do_less_and_a_token_less_than_its_owner() {
    let app = TestApp::embedded_on_manual_clock().await;
    let folder = app.folder();
    app.post(&format!("/api/stacks/{ORG}/shop"), &serde_json::json!({ "stackName": "dev" }))
        .send()
        .await
        .expect(200);
    let stack = format!("/api/stacks/{ORG}/shop/dev");
    stdout_of(folder, &["user", "create", "bob", "--org", ORG, "--role", "outputs"]).await;
    let bob = stdout_of(folder, &["token", "create", "laptop", "--user", "bob"]).await;
    let ask = async |token: &str, tail: &str| {
        let answer = app.get(&format!("{stack}{tail}")).token(token.trim()).send().await;
        answer.status.as_u16()
    };
    assert_eq!((ask(&bob, "/outputs").await, ask(&bob, "/export").await), (200, 403));
    let listed = stdout_of(folder, &["user", "list"]).await;
    assert!(listed.contains(&format!("{ORG} (outputs)")), "{listed}");

    let role = ["org", "member", "role", ORG, "bob", "plan"];
    assert_eq!(stdout_of(folder, &role).await, format!("bob has the role plan in {ORG}\n"));
    assert_eq!(stdout_of(folder, &role).await, format!("bob already had the role plan in {ORG}\n"));
    let listed = stdout_of(folder, &["org", "member", "list", ORG]).await;
    assert!(listed.lines().any(|line| line.split_whitespace().eq(["bob", "plan"])), "{listed}");
    app.advance(Duration::from_secs(61));
    assert_eq!(ask(&bob, "/export").await, 200);
    // Adding an existing member prints their role, and changes nothing.
    let added = stdout_of(folder, &["org", "member", "add", ORG, "bob", "--role", "admin"]).await;
    assert_eq!(added, format!("bob was already a member of {ORG} with the role plan\n"));
    stdout_of(folder, &["user", "create", "carol"]).await;
    let words = refused(folder, 1, &["org", "member", "role", ORG, "carol", "plan"]).await;
    assert!(words.contains(&format!("statewright org member add {ORG} carol --role plan")), "{words}");

    let scoped = stdout_of(folder, &["token", "create", "ci", "--user", USER, "--may", "outputs"]).await;
    assert_eq!((ask(&scoped, "/outputs").await, ask(&scoped, "/export").await), (200, 403));
    let listed = document(folder, &["token", "list", "--user", USER]).await;
    let may = |name: &str| {
        let tokens = listed["tokens"].as_array().unwrap();
        tokens.iter().find(|token| token["name"] == name).unwrap()["may"].clone()
    };
    assert_eq!((may("ci"), may("first-start")), ("outputs".into(), serde_json::Value::Null));
}

/// An operator who revokes something gets the list of what still runs with it, and how to end that.
#[tokio::test]
async fn revoking_lists_what_still_runs() {
    let app = TestApp::embedded().await;
    let folder = app.folder();
    stdout_of(folder, &["user", "create", "bob", "--org", ORG, "--role", "apply"]).await;
    stdout_of(folder, &["org", "create", "beta", "--member", "bob"]).await;
    let token = async |name: &str| {
        let printed = stdout_of(folder, &["token", "create", name, "--user", "bob"]).await;
        printed.trim().to_owned()
    };
    let (ci, laptop) = (token("ci").await, token("laptop").await);
    stack(&app, "web").await;
    stack(&app, "shop").await;
    let run = Run::begin_by(&app, "web", &ci).await;
    Run::begin(&app, "shop").await;

    let of = |name: &'static str| ["token", "revoke", name, "--user", "bob"];
    let quiet = stdout_of(folder, &of("laptop")).await;
    assert!(!quiet.contains("still run"), "it began nothing: {quiet}");
    let message = stdout_of(folder, &of("ci")).await;
    assert!(message.contains("end within 5 min"), "{message}");
    assert!(message.contains(&format!("{ORG}/web/dev: update {} (token ci) until ", run.id)), "{message}");
    assert!(
        message.contains(&format!("to cancel it, run `statewright stack unlock {ORG}/web/dev`")),
        "{message}"
    );
    assert!(!message.contains("shop"), "that is another user's: {message}");

    let listed = async |arguments: &[&str]| {
        let answer = document(folder, arguments).await;
        answer["running"].as_array().unwrap().iter().map(|it| it["update"].clone()).collect::<Vec<_>>()
    };
    let role = ["org", "member", "role", ORG, "bob"];
    let with = |role_of: &'static str| [role.as_slice(), &[role_of]].concat();
    assert_eq!(listed(&with("member")).await, [""; 0], "it may continue");
    assert_eq!(listed(&with("plan")).await, [run.id.as_str()]);
    assert_eq!(listed(&["org", "member", "remove", "beta", "bob"]).await, [""; 0], "nothing runs there");
    assert_eq!(listed(&["org", "member", "remove", ORG, "bob"]).await, [run.id.as_str()]);
    stdout_of(folder, &["stack", "unlock", &format!("{ORG}/web/dev"), "--yes"]).await;
    assert_eq!(listed(&["user", "remove", "bob", "--yes"]).await, [""; 0], "it was canceled");
    drop(laptop);
}

#[tokio::test]
async fn machines_get_tokens_that_are_rotated_and_revoked() {
    let app = TestApp::embedded_on_manual_clock().await;
    let folder = app.folder();
    let create = ["token", "create", "ci", "--org", ORG, "--may", "plan", "--description", "jobs"];
    let first = stdout_of(folder, &create).await;
    let whoami = async |token: &str| app.get("/api/user").token(token.trim()).send().await;
    let shown = whoami(&first).await.expect(200);
    let expected = serde_json::json!({ "name": "ci", "organization": ORG, "team": null });
    assert_eq!((&shown["githubLogin"], &shown["tokenInfo"]), (&ORG.into(), &expected));
    let listed = document(folder, &["token", "list", "--org", ORG]).await;
    let token = &listed["tokens"][0];
    assert_eq!((&token["name"], &token["may"]), (&"ci".into(), &"plan".into()), "{listed}");
    assert_eq!((&token["description"], &token["createdBy"]), (&"jobs".into(), &serde_json::Value::Null));

    let second = stdout_of(folder, &["token", "rotate", "ci", "--org", ORG]).await;
    app.advance(Duration::from_secs(61));
    whoami(&first).await.refused(401);
    whoami(&second).await.expect(200);
    let rotated = document(folder, &["token", "rotate", "ci", "--org", ORG, "--grace", "1h"]).await;
    assert!(rotated["previousExpires"].is_string() && rotated["expires"].is_null(), "{rotated}");
    whoami(&second).await.expect(200);
    let revoked = stdout_of(folder, &["token", "revoke", "ci", "--org", ORG]).await;
    assert!(revoked.starts_with(&format!("ci of {ORG} is revoked")), "{revoked}");
    app.advance(Duration::from_secs(61));
    whoami(&second).await.refused(401);
    whoami(rotated["token"].as_str().unwrap()).await.refused(401);

    for (arguments, code, expected) in [
        (&create[..], 1, "a name is used only once"),
        (&["token", "revoke", "ci", "--org", ORG], 1, "statewright token list --org"),
        (&["token", "create", "x", "--org", ORG, "--team", "none"], 1, "has no team named none"),
        (&["token", "create", "x", "--team", "none"], 2, "--org"),
        (&["token", "list", "--org", ORG, "--user", USER], 2, "--user"),
    ] {
        let words = refused(folder, code, arguments).await;
        assert!(words.contains(expected), "{words}");
    }
}

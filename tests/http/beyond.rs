//! What is asked of the hosted service and not of this one: what is true all the same, and what is refused by name.

use reqwest::Method;
use serde_json::json;
use statewright_tests::app::{ORG, TestApp, USER};

use crate::world::Stack;

#[tokio::test]
async fn what_is_empty_here_is_told_as_empty() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    for (path, expected) in [
        ("/api/registry/packages?limit=499&name=random".to_owned(), json!({ "packages": [] })),
        ("/api/registry/templates?limit=499&backing=vcs".to_owned(), json!({ "templates": [] })),
        (format!("/api/orgs/{ORG}/templates"), json!({ "templates": {}, "orgHasTemplates": false })),
        (format!("/api/orgs/{ORG}/policypacks"), json!({ "policyPacks": [] })),
        (format!("/api/orgs/{ORG}/policygroups"), json!({ "policyGroups": [] })),
        (format!("{}/policypacks", stack.path), json!({ "requiredPolicies": [] })),
        (format!("{}/policygroups", stack.path), json!({ "policyGroups": [] })),
    ] {
        assert_eq!(app.get(&path).send().await.expect(200), expected, "{path}");
    }
    app.get("/api/orgs/none/templates").send().await.refused(404);
    app.get("/api/orgs/a%20b/members").send().await.refused(400);
}

#[tokio::test]
async fn the_members_of_an_organization_are_its_users() {
    let app = TestApp::memory().await;
    let member = |role: &str, login: &str| {
        json!({
            "role": role, "user": { "name": login, "githubLogin": login, "avatarUrl": "" }, "knownToPulumi": true,
            "virtualAdmin": false, "fgaRole": { "id": role, "name": role },
        })
    };
    let path = format!("/api/orgs/{ORG}/members");
    let alone = json!({ "members": [member("admin", USER)] });
    assert_eq!(app.get(&path).send().await.expect(200), alone);
    let bob = app.member("bob", "laptop").await;
    let mallory = app.other_user("mallory", "evil").await;
    let both = json!({ "members": [member("admin", USER), member("member", "bob")] });
    for token in [&app.token, &bob] {
        assert_eq!(app.get(&path).token(token).send().await.expect(200), both);
    }
    app.get(&path).token(&mallory).send().await.refused(404);
}

#[tokio::test]
async fn what_is_not_supported_is_refused_by_its_name() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let of_stack = |tail: &str| format!("{}/{tail}", stack.path);
    let of_org = |tail: &str| format!("/api/orgs/{ORG}/{tail}");
    for (method, path, feature) in [
        (Method::GET, of_stack("deployments"), "Pulumi Deployments"),
        (Method::POST, of_stack("deployments"), "Pulumi Deployments"),
        (Method::GET, of_stack("deployments/settings"), "Pulumi Deployments"),
        (Method::GET, of_stack("deployments/schedules"), "scheduling"),
        (Method::GET, of_stack("deployments/drift/schedules"), "drift detection"),
        (Method::GET, of_stack("drift/status"), "drift detection"),
        (Method::GET, of_stack("hooks"), "sending webhooks"),
        (Method::GET, of_org("hooks"), "sending webhooks"),
        (Method::POST, of_org("policypacks"), "managing policies"),
        (Method::GET, of_org("policypacks/mine/versions/1"), "managing policies"),
        (Method::DELETE, of_org("members/bob"), "managing members"),
        (Method::GET, of_org("roles"), "managing roles"),
        (Method::GET, of_org("auditlogs/v2"), "an audit log"),
        (Method::GET, of_org("search/resourcesv2?query=x"), "searching resources"),
        (Method::GET, "/api/esc/environments".to_owned(), "Pulumi ESC (environments)"),
        (Method::POST, format!("/api/esc/environments/{ORG}/yaml/open"), "Pulumi ESC (environments)"),
        (Method::POST, "/api/ai/chat/preview".to_owned(), "Pulumi AI"),
        (Method::GET, format!("/api/preview/insights/{ORG}/accounts"), "Pulumi Insights"),
        (Method::POST, "/api/oauth/token".to_owned(), "the exchange of tokens"),
        (
            Method::DELETE,
            "/api/registry/packages/private/acme/p/versions/1".to_owned(),
            "publishing to a registry",
        ),
        // Names that people gave say nothing.
        (
            Method::PUT,
            format!("/api/stacks/{ORG}/hooks/deployments"),
            "PUT /api/stacks/acme/hooks/deployments",
        ),
        (Method::GET, "/api/nothing".to_owned(), "GET /api/nothing"),
    ] {
        let words = app.request(method, &path).send().await.refused(404);
        assert_eq!(words, format!("Not Found: {feature} is not supported by this backend"), "{path}");
    }
}

//! Requests for features of the hosted service: some have a true answer here, the others are refused by name.

use reqwest::Method;
use serde_json::{Value, json};
use statewright_tests::app::{ORG, TestApp, USER};

use crate::world::Stack;

#[tokio::test]
async fn features_without_content_are_shown_as_empty() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    for (path, expected) in [
        ("/api/registry/packages?limit=499&name=random".to_owned(), json!({ "packages": [] })),
        ("/api/registry/templates?limit=499&backing=vcs".to_owned(), json!({ "templates": [] })),
        (
            format!("/api/orgs/{ORG}/templates"),
            json!({
                "templates": {}, "orgHasTemplates": false, "hasAccessError": false, "hasUpstreamError": false,
            }),
        ),
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
async fn the_history_also_comes_in_pages() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.get("/updates/latest").send().await.refused(404);
    stack.get("/updates/1").send().await.refused(404);
    for names in [&["a"][..], &["a", "b"], &["c"]] {
        stack.publish(names).await;
    }
    let of = async |version: u64| stack.get(&format!("/updates/{version}")).send().await.expect(200);
    let second = of(2).await;
    assert_eq!((&second["version"], &second["latestVersion"]), (&2.into(), &3.into()), "{second}");
    assert_eq!(second["info"], stack.history().await[1]);
    assert_eq!(second["info"]["resourceCount"], 2);
    assert_eq!(second["requestedBy"]["githubLogin"], USER);
    assert_eq!(stack.get("/updates/latest").send().await.expect(200), of(3).await);

    let page = stack.get("/updates?output-type=service&pageSize=2&page=1").send().await.expect(200);
    let expected = json!({ "updates": [of(3).await, of(2).await], "itemsPerPage": 2, "total": 3 });
    assert_eq!(page, expected);
    let all = stack.get("/updates?output-type=service").send().await.expect(200);
    assert_eq!(all["updates"].as_array().unwrap().len(), 3);

    let summary = stack.get("/updates/2/summary").send().await.expect(200);
    assert_eq!((&summary["result"], &summary["resourceCount"]), (&"succeeded".into(), &2.into()));
    assert!(summary["config"].is_null(), "{summary}");
    for version in ["0", "x", "-1"] {
        stack.get(&format!("/updates/{version}")).send().await.refused(400);
        stack.get(&format!("/updates/{version}/summary")).send().await.refused(400);
    }
    stack.get("/updates/4").send().await.refused(404);
    stack.get("/updates/4/summary").send().await.refused(404);
}

#[tokio::test]
async fn a_stack_says_who_made_it() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let found = stack.get("/metadata").send().await.expect(200);
    assert_eq!(found["id"], stack.get("").send().await.expect(200)["id"]);
    assert_eq!(
        (&found["projectName"], &found["ownedBy"]["githubLogin"]),
        (&json!(stack.project), &json!(USER))
    );
    let settings = json!({ "notifyUpdateFailure": false, "notifyUpdateSuccess": false });
    assert_eq!(found["notificationSettings"], settings);
}

#[tokio::test]
async fn events_that_come_one_by_one_stand_among_those_of_batches() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let post = async |event: Value| {
        let call = app.post(&format!("{}/events", run.path), &event).update_token(&run.token);
        call.send().await
    };
    let changes = json!({ "create": 3 });
    post(json!({ "sequence": 3, "timestamp": 1, "summaryEvent": { "resourceChanges": changes } }))
        .await
        .expect(204);
    run.event(2).await.expect(204);
    post(json!({ "sequence": 1, "timestamp": 1, "cancelEvent": {} })).await.expect(204);
    post(json!([])).await.refused(400);
    run.complete("succeeded").await.expect(204);
    post(json!({ "sequence": 4, "timestamp": 1, "cancelEvent": {} })).await.refused(403);
    let page = app.get(&format!("{}/events", run.path)).send().await.expect(200);
    let sequences: Vec<_> =
        page["events"].as_array().unwrap().iter().map(|event| &event["sequence"]).collect();
    assert_eq!(sequences, [1, 2, 3]);
    assert_eq!(stack.history().await[0]["resourceChanges"], changes);
}

#[tokio::test]
async fn events_are_narrowed_to_a_resource_or_to_policy_violations() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let (a, b) = (stack.urn("a"), stack.urn("b"));
    let events = json!({ "events": [
        { "sequence": 0, "timestamp": 1, "preludeEvent": { "config": { "urn": "x" } } },
        { "sequence": 1, "timestamp": 1, "resourcePreEvent": { "metadata": { "urn": a, "op": "create" } } },
        { "sequence": 2, "timestamp": 1, "diagnosticEvent": { "urn": a, "message": "m" } },
        { "sequence": 3, "timestamp": 1, "policyEvent": { "resourceUrn": a, "message": "m" } },
        { "sequence": 4, "timestamp": 1, "policyEvent": { "resourceUrn": b, "message": "m" } },
        { "sequence": 5, "timestamp": 1, "resOutputsEvent": { "metadata": { "urn": b, "op": "create" } } },
    ] });
    let call = app.post(&format!("{}/events/batch", run.path), &events).update_token(&run.token);
    assert!(call.send().await.status.is_success());
    run.complete("succeeded").await.expect(204);
    let found = async |query: String| {
        let page = app.get(&format!("{}/events?{query}", run.path)).send().await.expect(200);
        assert!(page["continuationToken"].is_null(), "{page}");
        let events = page["events"].as_array().unwrap();
        events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(found("include_non_activated=true".to_owned()).await, [0, 1, 2, 3, 4, 5]);
    assert_eq!(found(format!("urn={a}")).await, [1, 2, 3]);
    assert_eq!(found("type=9".to_owned()).await, [3, 4]);
    assert_eq!(found(format!("type=9&type=9&urn={b}")).await, [4]);
    assert_eq!(found("urn=urn:pulumi:none".to_owned()).await, [0; 0]);
    let words = app.get(&format!("{}/events?type=7", run.path)).send().await.refused(400);
    assert!(words.contains("policy violations"), "{words}");
}

#[tokio::test]
async fn missing_features_are_refused_by_name() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let of_stack = |tail: &str| format!("{}/{tail}", stack.path);
    let of_environment = |tail: &str| format!("/api/esc/environments/{ORG}/hooks/drafts/{tail}");
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
        (Method::POST, of_org("members/bob/set-admin"), "managing members"),
        (Method::DELETE, of_org("roles/plan"), "managing roles"),
        (Method::POST, of_org("teams/github"), "managing teams"),
        (Method::GET, of_org("auditlogs/export/config"), "sending the audit trail elsewhere"),
        (Method::GET, of_org("search/resourcesv2?query=x"), "searching resources"),
        (Method::POST, of_environment("rotate"), "rotating secrets of environments"),
        (Method::GET, of_environment("schedules/s1/history"), "scheduling"),
        (Method::GET, of_environment("hooks"), "sending webhooks"),
        (Method::POST, of_environment("drafts"), "drafts of environments"),
        (Method::GET, of_environment("drafts/d1/status"), "drafts of environments"),
        (Method::POST, of_environment("open/request"), "asking for access to an environment"),
        (Method::GET, format!("/api/change-requests/{ORG}"), "change requests"),
        (Method::GET, "/api/esc/providers".to_owned(), "this part of Pulumi ESC"),
        (Method::POST, "/api/ai/chat/preview".to_owned(), "Pulumi AI"),
        (Method::GET, format!("/api/preview/insights/{ORG}/accounts"), "Pulumi Insights"),
        (
            Method::DELETE,
            "/api/registry/packages/private/acme/p/versions/1".to_owned(),
            "publishing to a registry",
        ),
        // Names that people chose are not in the answer.
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

//! Stacks: lists, tags, a first state, a reused name.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::services::stacks::LIST_PAGE;
use statewright_tests::app::{ORG, TestApp};

use crate::world::{Stack, deployment, new_project};

/// All pages of a list, as the CLI reads them: it continues while there is a token, even an empty one.
async fn list(app: &TestApp, query: &str) -> (Vec<String>, usize) {
    list_as(app, &app.token, query).await
}

async fn list_as(app: &TestApp, user: &str, query: &str) -> (Vec<String>, usize) {
    let (mut found, mut pages, mut token) = (Vec::new(), 0, String::new());
    loop {
        let path = format!("/api/user/stacks?{query}&continuationToken={token}");
        let page = app.get(&path).token(user).send().await.expect(200);
        pages += 1;
        let stacks = page["stacks"].as_array().unwrap().iter();
        found.extend(stacks.map(|stack| stack["stackName"].as_str().unwrap().to_owned()));
        match page.get("continuationToken") {
            None => return (found, pages),
            Some(next) => {
                token = next.as_str().unwrap().to_owned();
                assert!(!token.is_empty());
                // The client does not escape it.
                assert!(
                    token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)),
                    "{token}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_list_of_many_stacks_is_whole_and_in_order_over_its_pages() {
    let app = TestApp::memory().await;
    let project = new_project();
    for number in 0..1_201 {
        let tags = json!({ "parity": if number % 2 == 0 { "even" } else { "odd" } });
        let body = json!({ "stackName": format!("s{number:04}"), "tags": tags });
        app.post(&format!("/api/stacks/{ORG}/{project}"), &body).send().await.expect(200);
    }
    // A project whose name has the same prefix is another one.
    Stack::in_project(&app, &format!("{project}x")).await;
    let expected: Vec<_> = (0..1_201).map(|number| format!("s{number:04}")).collect();
    let (found, pages) = list(&app, &format!("project={project}")).await;
    assert_eq!(found, expected);
    assert_eq!(pages, 3);
    let (odd, _) = list(&app, &format!("project={project}&tagName=parity&tagValue=odd")).await;
    assert_eq!(odd.len(), 600);
    assert_eq!(list(&app, &format!("project={project}&tagName=parity&tagValue=none")).await.0, [""; 0]);
    assert_eq!(list(&app, "organization=other").await.0, [""; 0]);
    let (all, _) = list(&app, &format!("organization={ORG}")).await;
    assert_eq!(all.len(), 1_202);
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 1_202);
}

#[tokio::test]
async fn a_list_continues_over_organizations_and_empty_pages() {
    let app = TestApp::memory().await;
    let token = app.member_of(&["beta", ORG], "carol", "laptop").await;
    let make = async |org: &str, stack: &str, tags: Value| {
        let body = json!({ "stackName": stack, "tags": tags });
        app.post(&format!("/api/stacks/{org}/shop"), &body).token(&token).send().await.expect(200);
    };
    // The first organization ends where its page ends.
    for number in 0..LIST_PAGE {
        let tags = if number == LIST_PAGE - 1 { json!({ "team": "a" }) } else { json!({}) };
        make(ORG, &format!("s{number:03}"), tags).await;
    }
    make("beta", "dev", json!({ "team": "b" })).await;
    make("beta", "prod", json!({ "team": "" })).await;
    let all = list_as(&app, &token, "").await;
    assert_eq!((all.0.len(), all.1), (LIST_PAGE + 2, 2));
    assert_eq!(all.0[LIST_PAGE - 1..], ["s499", "dev", "prod"]);
    assert_eq!(list_as(&app, &token, "tagName=team").await.0, ["s499", "dev", "prod"]);
    assert_eq!(list_as(&app, &token, "tagName=team&tagValue=b").await, (vec!["dev".to_owned()], 2));
    assert_eq!(
        list_as(&app, &token, "organization=beta").await,
        (vec!["dev".to_owned(), "prod".to_owned()], 1)
    );
    assert_eq!(
        list_as(&app, &token, "organization=beta&project=shop&tagName=team&tagValue=a").await.0,
        [""; 0]
    );
    assert_eq!(list_as(&app, &token, "project=sho").await.0, [""; 0]);
    // A member of one organization sees only its stacks, even with the token of another's page.
    assert_eq!(list(&app, "").await.0.len(), LIST_PAGE);
    let page = app.get("/api/user/stacks").token(&token).send().await.expect(200);
    let next = format!("/api/user/stacks?continuationToken={}", page["continuationToken"].as_str().unwrap());
    assert_eq!(app.get(&next).send().await.expect(200), json!({ "stacks": [] }));
}

#[tokio::test]
async fn tags_are_replaced_whole_and_left_alone_where_they_are_absent() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let tags = async || stack.get("").send().await.expect(200)["tags"].clone();
    let set = async |tags: &Value| app.patch(&format!("{}/tags", stack.path), tags).send().await.expect(204);
    set(&json!({ "a": "1", "b": "2" })).await;
    set(&json!({ "b": "3" })).await;
    assert_eq!(tags().await, json!({ "b": "3" }));
    set(&json!({})).await;
    assert_eq!(tags().await, json!({}));
    set(&json!({ "b": "3" })).await;

    let begin = async |tags: Value| {
        let mut body = crate::world::begin_body("update", false);
        body["tags"] = tags;
        let begun = stack.post("/begin-update", &body).send().await.expect(200);
        let path = format!("{}/update/{}/complete", stack.path, begun["updateID"].as_str().unwrap());
        let token = begun["token"].as_str().unwrap();
        app.post(&path, &json!({ "status": "succeeded" })).update_token(token).send().await.expect(204);
        begun["stack"]["tags"].clone()
    };
    assert_eq!(begin(Value::Null).await, json!({ "b": "3" }));
    assert_eq!(begin(json!({ "c": "4" })).await, json!({ "c": "4" }));
    assert_eq!(tags().await, json!({ "c": "4" }));
    assert_eq!(begin(json!({})).await, json!({}));
    assert_eq!(tags().await, json!({}));
}

#[tokio::test]
async fn a_stack_can_be_made_with_a_first_state() {
    let app = TestApp::memory().await;
    let project = new_project();
    let path = format!("/api/stacks/{ORG}/{project}");
    let like = Stack::new(&app).await;
    let state = deployment(&[like.resource("a")]);
    let body = json!({ "stackName": "dev", "state": state });
    app.post(&path, &body).send().await.expect(200);
    let stack = Stack { app: &app, project, path: format!("{path}/dev") };
    assert_eq!(stack.export().await, state);
    assert_eq!(stack.version().await, 1);
    let history = stack.history().await;
    assert_eq!((history.len(), &history[0]["kind"]), (1, &json!("import")));
    // A second one changes nothing.
    let again = json!({ "stackName": "dev", "state": deployment(&[]) });
    app.post(&path, &again).send().await.refused(409);
    assert_eq!(stack.export().await, state);
    for broken in [json!({}), json!(3), json!({ "version": 3 }), json!({ "version": 99, "deployment": {} })] {
        app.post(&path, &json!({ "stackName": "other", "state": broken })).send().await.refused(400);
        stack.post("/import", &broken).send().await.refused(400);
    }
    assert_eq!(stack.version().await, 1);
    app.get(&format!("{path}/other")).send().await.refused(404);
}

#[tokio::test]
async fn of_many_that_make_the_same_stack_at_once_one_does() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    for _ in 0..10 {
        let path = format!("/api/stacks/{ORG}/{}", new_project());
        let calls = (0..8).map(|number| {
            let app = if number % 2 == 0 { &app } else { &other };
            app.post(&path, &json!({ "stackName": "dev" })).send()
        });
        let answers = futures::future::join_all(calls).await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
        for refused in answers.iter().filter(|answer| answer.status != 200) {
            assert!(refused.refused(409).contains("already exists"));
        }
    }
}

#[tokio::test]
async fn a_reused_name_is_another_stack_for_every_process() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let never_started = stack.created().await;
    let preview = stack.preview().await;
    assert_eq!(stack.at(&other).resources().await, ["a"]);

    app.request(Method::DELETE, &format!("{}?force=true", stack.path)).send().await.expect(204);
    stack.at(&other).get("").send().await.refused(404);
    stack.at(&other).get("/export/1").send().await.refused(404);
    preview.at(&other).start(Some(2)).await.refused(404);
    assert_eq!(other.get("/api/user/stacks").send().await.expect(200), json!({ "stacks": [] }));

    let again = Stack::in_project(&app, &stack.project).await;
    for server in [&app, &other] {
        let again = again.at(server);
        assert_eq!(again.version().await, 0);
        assert_eq!(again.resources().await, [""; 0]);
        again.get("/export/1").send().await.refused(404);
        assert_eq!(again.history().await, Vec::<Value>::new());
        never_started.at(server).start(Some(2)).await.refused(404);
        never_started.at(server).cancel().await.refused(404);
    }
}

/// The client shows "in progress" if the time is 0.
#[tokio::test]
async fn a_list_says_which_stacks_an_update_holds() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let listed = async || {
        let path = format!("/api/user/stacks?project={}", stack.project);
        app.get(&path).send().await.expect(200)["stacks"][0]["lastUpdate"].clone()
    };
    assert_eq!(listed().await, Value::Null);
    let first = stack.begin().await;
    assert_eq!(listed().await, 0, "also for the first update of a stack");
    first.complete("succeeded").await.expect(204);
    let at_rest = listed().await;
    assert!(at_rest.as_i64().is_some_and(|at| at > 0), "{at_rest}");

    let preview = stack.preview().await;
    assert_eq!(listed().await, at_rest, "a preview holds nothing");
    preview.cancel().await.expect(204);
    let created = stack.created().await;
    assert_eq!(listed().await, at_rest, "a created update holds nothing");
    created.start(Some(2)).await.expect(200);
    assert_eq!(listed().await, 0);
    // Tags are in the same item.
    app.patch(&format!("{}/tags", stack.path), &json!({ "a": "b" })).send().await.expect(204);
    assert_eq!(listed().await, 0);
    created.cancel().await.expect(204);
    assert_ne!(listed().await, 0);

    // The client disconnected: its lease ends, and the sweep ends the update.
    stack.begin().await;
    app.advance(Duration::from_secs(331));
    assert_eq!(listed().await, 0);
    app.sweep().await;
    assert_ne!(listed().await, 0);
}

/// As in Pulumi Cloud, the root stands for the stack itself.
#[tokio::test]
async fn a_stack_with_only_its_root_is_deleted_without_force() {
    let app = TestApp::memory().await;
    let remove = async |stack: &Stack<'_>, query: &str| {
        app.request(Method::DELETE, &format!("{}{query}", stack.path)).send().await
    };
    let root = |stack: &Stack<'_>| {
        let urn = format!("urn:pulumi:dev::{0}::pulumi:pulumi:Stack::{0}-dev", stack.project);
        json!({ "urn": urn, "custom": false, "type": "pulumi:pulumi:Stack" })
    };
    let stack = Stack::new(&app).await;
    stack.import(&deployment(&[root(&stack)])).await;
    remove(&stack, "?force=false").await.expect(204);

    let stack = Stack::new(&app).await;
    stack.import(&deployment(&[root(&stack), stack.resource("a")])).await;
    remove(&stack, "?force=false").await.refused(400);
    stack.import(&deployment(&[stack.resource("a")])).await;
    remove(&stack, "").await.refused(400);
    // A pending operation may have created something.
    let mut pending = deployment(&[root(&stack)]);
    let operation = json!({ "type": "creating", "resource": stack.resource("a") });
    pending["deployment"]["pending_operations"] = json!([operation]);
    stack.import(&pending).await;
    remove(&stack, "").await.refused(400);
    // As the service's provider sends it.
    remove(&stack, "?forceDestroy=true").await.expect(204);
}

#[tokio::test]
async fn tags_are_added_changed_and_deleted_one_by_one() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let tags = async || stack.get("").send().await.expect(200)["tags"].clone();
    let add = async |name: &str, value: &str| {
        stack.post("/tags", &json!({ "name": name, "value": value })).send().await
    };
    let one = |name: &str| format!("{}/tags/{name}", stack.path);
    add("a", "1").await.expect(204);
    add("b:c", "2").await.expect(204);
    // A repeat, as after a lost answer, adds nothing.
    add("a", "1").await.expect(204);
    assert!(add("a", "2").await.refused(400).contains("already has the tag \"a\" with the value \"1\""));
    assert_eq!(tags().await, json!({ "a": "1", "b:c": "2" }));
    app.patch(&one("a"), &json!({ "name": "a", "value": "3" })).send().await.expect(204);
    app.patch(&one("none"), &json!({ "value": "3" })).send().await.refused(404);
    app.request(Method::DELETE, &one("b:c")).send().await.expect(204);
    let words = app.request(Method::DELETE, &one("b:c")).send().await.refused(404);
    assert!(words.contains("has no tag \"b:c\""), "{words}");
    assert_eq!(tags().await, json!({ "a": "3" }));
    let (long_name, long_value) = ("n".repeat(41), "v".repeat(257));
    for (name, value) in [("", "x"), ("a b", "x"), (long_name.as_str(), "x"), ("long", long_value.as_str())] {
        add(name, value).await.refused(400);
    }
    app.patch(&one("a"), &json!({ "value": "v".repeat(257) })).send().await.refused(400);
    assert_eq!(tags().await, json!({ "a": "3" }));
}

/// `pulumi config refresh` takes both from the newest entry of the history.
#[tokio::test]
async fn a_version_without_a_program_keeps_its_configuration() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let mut begin = crate::world::begin_body("update", false);
    begin["program"]["config"] = json!({ "shop:size": { "string": "3", "secret": false, "object": false } });
    let environments = r#"[{"id":"shop/base"}]"#;
    begin["program"]["metadata"]["environment"] =
        json!({ "stack.environments": environments, "git.head": "0123abc" });
    let run = stack.begun(stack.post("/begin-update", &begin)).await;
    run.append(&[stack.made(1, "a")]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    let latest = async |path: &str| {
        let latest = app.get(&format!("{path}/updates/latest")).send().await.expect(200);
        (
            latest["info"]["kind"].clone(),
            latest["info"]["config"].clone(),
            latest["info"]["environment"].clone(),
        )
    };
    let kept = |kind: &str| {
        let config = json!({ "shop:size": { "string": "3", "secret": false, "object": false } });
        (json!(kind), config, json!({ "stack.environments": environments }))
    };
    stack.import(&deployment(&[stack.resource("b")])).await;
    assert_eq!(latest(&stack.path).await, kept("import"));
    stack.import(&deployment(&[stack.resource("c")])).await;
    assert_eq!(latest(&stack.path).await, kept("import"));
    stack.post("/rename", &json!({ "newName": "prod" })).send().await.expect(200);
    assert_eq!(latest(&stack.path.replace("/dev", "/prod")).await, kept("rename"));
}

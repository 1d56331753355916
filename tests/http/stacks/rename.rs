//! Renaming and transferring: what moves, what stays, and who may.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_tests::app::{Answer, ORG, TestApp};

use crate::world::{Stack, deployment, new_project};

/// The same stack under another address.
fn at<'a>(stack: &Stack<'a>, org: &str, project: &str, name: &str) -> Stack<'a> {
    Stack { app: stack.app, project: project.to_owned(), path: format!("/api/stacks/{org}/{project}/{name}") }
}

async fn rename(stack: &Stack<'_>, name: &str, project: &str) -> Answer {
    stack.post("/rename", &json!({ "newName": name, "newProject": project })).send().await
}

async fn seal(stack: &Stack<'_>, plaintext: &str) -> String {
    let body = json!({ "plaintext": STANDARD.encode(plaintext) });
    stack.post("/encrypt", &body).send().await.expect(200)["ciphertext"].as_str().unwrap().to_owned()
}

async fn opened(stack: &Stack<'_>, ciphertext: &str) -> Answer {
    stack.post("/decrypt", &json!({ "ciphertext": ciphertext })).send().await
}

#[track_caller]
fn assert_opens(answer: &Answer, plaintext: &str) {
    assert_eq!(answer.expect(200), json!({ "plaintext": STANDARD.encode(plaintext) }));
}

/// A state with every member that names the stack.
fn state(stack: &Stack<'_>, org: &str, name: &str) -> Value {
    let project = &stack.project;
    let urn = |kind: &str, tail: &str| format!("urn:pulumi:{name}::{project}::{kind}::{tail}");
    let root = urn("pulumi:pulumi:Stack", &format!("{project}-{name}"));
    let provider = urn("pulumi:providers:pkg", "default");
    let mut state = deployment(&[
        json!({ "urn": root, "custom": false, "type": "pulumi:pulumi:Stack", "outputs": { "url": "x" } }),
        json!({ "urn": provider, "custom": true, "id": "p1", "type": "pulumi:providers:pkg", "parent": root }),
        json!({ "urn": urn("pkg:m:T", "a"), "custom": true, "id": "1", "type": "pkg:m:T", "parent": root,
                "provider": format!("{provider}::p1"), "dependencies": [provider],
                "aliases": [urn("pkg:m:T", "old"), "urn:pulumi:other::p::pkg:m:T::old"] }),
    ]);
    state["deployment"]["secrets_providers"] = json!({
        "type": "service", "state": { "url": "http://here", "owner": org, "project": project, "stack": name },
    });
    state
}

#[tokio::test]
async fn a_rename_moves_the_state_and_keeps_old_versions() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    let stack = Stack::new(&app).await;
    app.patch(&format!("{}/tags", stack.path), &json!({ "team": "storage" })).send().await.expect(204);
    stack.import(&state(&stack, ORG, "dev")).await;
    let id = stack.get("").send().await.expect(200)["id"].clone();
    let ciphertext = seal(&stack, "hunter2").await;
    assert_eq!(stack.at(&other).version().await, 1);

    let preview = stack.preview().await;
    let answer = rename(&stack, "prod", "").await.expect(200);
    // A preview holds nothing, and its own requests use the name that it began under.
    preview.event(1).await.expect(204);
    preview.renew(300).await.expect(200);
    preview.complete("succeeded").await.expect(204);
    let renamed = at(&stack, ORG, &stack.project, "prod");
    for server in [&app, &other] {
        let renamed = renamed.at(server);
        assert_eq!(renamed.export().await, state(&stack, ORG, "prod"));
        assert_eq!(renamed.get("/export/1").send().await.expect(200), state(&stack, ORG, "dev"));
        let history = renamed.history().await;
        assert_eq!((&history[0]["kind"], &history[0]["version"]), (&json!("rename"), &json!(2)));
        assert_eq!(history[0]["message"], format!("Rename acme/{0}/dev to acme/{0}/prod", stack.project));
        assert_eq!((history.len(), &history[1]["kind"]), (2, &json!("import")));
        let view = renamed.get("").send().await.expect(200);
        assert_eq!((&view["id"], &view["version"], &view["stackName"]), (&id, &json!(2), &json!("prod")));
        assert_eq!(
            (&view["tags"], &view["activeUpdate"]),
            (&json!({ "team": "storage" }), &answer["updateId"])
        );
        let outputs = renamed.get("/outputs").send().await.expect(200);
        assert_eq!(outputs["outputs"], json!({ "url": "x" }));
        assert_eq!(outputs["secretsProviders"]["state"]["stack"], "prod");
        let listed = server.get("/api/user/stacks").send().await.expect(200);
        assert_eq!(listed["stacks"].as_array().map(Vec::len), Some(1), "{listed}");
        assert_eq!(
            (&listed["stacks"][0]["stackName"], &listed["stacks"][0]["resourceCount"]),
            (&json!("prod"), &json!(3))
        );
        // No stack has the old name, which still opens the secrets in version 1.
        stack.at(server).get("").send().await.refused(404);
        stack.at(server).get("/export").send().await.refused(404);
        stack.at(server).begin_call("update", false).send().await.refused(404);
        assert_opens(&opened(&renamed, &ciphertext).await, "hunter2");
        assert_opens(&opened(&stack.at(server), &ciphertext).await, "hunter2");
    }
    let status = renamed.get(&format!("/update/{}", answer["updateId"].as_str().unwrap())).send().await;
    assert_eq!(status.expect(200)["status"], "succeeded");

    // And the stack continues.
    let run = renamed.begin().await;
    run.complete("succeeded").await.expect(204);
    assert_eq!(renamed.version().await, 3);
}

#[tokio::test]
async fn i6_whole_a_renamed_broken_state_stays_marked_as_broken() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let mut child = stack.resource("child");
    child["parent"] = stack.urn("lost").into();
    stack.import(&deployment(&[child])).await;
    let mark = async |stack: &Stack<'_>| {
        let export = stack.export().await;
        export["deployment"]["metadata"]["integrity_error"]["error"].as_str().unwrap_or_default().to_owned()
    };
    let before = mark(&stack).await;
    assert!(before.contains(&stack.urn("lost")), "{before}");
    rename(&stack, "prod", "").await.expect(200);
    let after = mark(&at(&stack, ORG, &stack.project, "prod")).await;
    assert_eq!(after, before.replace("urn:pulumi:dev::", "urn:pulumi:prod::"));
}

#[tokio::test]
async fn a_new_stack_of_an_old_name_is_the_one_that_the_name_means() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let ciphertext = seal(&stack, "hunter2").await;
    rename(&stack, "prod", "").await.expect(200);
    assert_opens(&opened(&stack, &ciphertext).await, "hunter2");

    let new = Stack::in_project(&app, &stack.project).await;
    opened(&new, &ciphertext).await.refused(400);
    let theirs = seal(&new, "correct horse").await;
    assert_opens(&opened(&new, &theirs).await, "correct horse");
    let renamed = at(&stack, ORG, &stack.project, "prod");
    assert_opens(&opened(&renamed, &ciphertext).await, "hunter2");
    // The first client repeated its rename: the name belongs to a stack with another alias.
    rename(&new, "prod", "").await.refused(409);
    // A deleted stack leaves nothing to open.
    app.request(Method::DELETE, &renamed.path).send().await.expect(204);
    app.request(Method::DELETE, &new.path).send().await.expect(204);
    opened(&new, &ciphertext).await.refused(404);
}

#[tokio::test]
async fn a_stack_without_a_version_just_moves() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let project = new_project();
    assert_eq!(rename(&stack, "prod", &project).await.expect(200), json!({}));
    let renamed = at(&stack, ORG, &project, "prod");
    assert_eq!((renamed.version().await, renamed.history().await), (0, Vec::new()));
    renamed.get("/updates/latest").send().await.refused(404);
    app.request(Method::HEAD, &format!("/api/stacks/{ORG}/{project}")).send().await.expect(200);
    let old = app.request(Method::HEAD, &format!("/api/stacks/{ORG}/{}", stack.project)).send().await;
    assert_eq!(old.status, 404);
}

#[tokio::test]
async fn the_configuration_of_the_last_update_stays_the_newest() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let mut body = crate::world::begin_body("update", false);
    let config = json!({ "shop:size": { "string": "3", "secret": false, "object": false } });
    body["program"]["config"] = config.clone();
    let begun = stack.post("/begin-update", &body).send().await.expect(200);
    let path = format!("{}/update/{}/complete", stack.path, begun["updateID"].as_str().unwrap());
    let complete = app.post(&path, &json!({ "status": "succeeded" }));
    complete.update_token(begun["token"].as_str().unwrap()).send().await.expect(204);
    rename(&stack, "prod", "").await.expect(200);
    let latest = at(&stack, ORG, &stack.project, "prod").get("/updates/latest").send().await.expect(200);
    assert_eq!((&latest["info"]["kind"], &latest["info"]["config"]), (&json!("rename"), &config));
}

#[tokio::test]
async fn a_rename_waits_for_updates_and_ends_abandoned_ones() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "a")]).await.expect(204);
    let words = rename(&stack, "prod", "").await.refused(409);
    assert!(words.contains("Another update is currently in progress"), "{words}");
    stack.post("/transfer", &json!({ "toOrg": ORG })).send().await.refused(409);
    app.advance(std::time::Duration::from_secs(301));
    rename(&stack, "prod", "").await.expect(200);
    let renamed = at(&stack, ORG, &stack.project, "prod");
    assert_eq!((renamed.version().await, renamed.resources().await), (2, vec!["a".to_owned()]));
    run.append(&[stack.made(2, "b")]).await.refused(403);
    run.complete("succeeded").await.refused(403);
}

#[tokio::test]
async fn a_taken_or_invalid_name_is_refused_without_effect() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    app.post(&format!("/api/stacks/{ORG}/{}", stack.project), &json!({ "stackName": "prod" }))
        .send()
        .await
        .expect(200);
    for (name, project) in [("prod", ""), ("prod", stack.project.as_str()), ("", ""), ("dev", "")] {
        let words = rename(&stack, name, project).await.refused(409);
        assert!(words.contains("already exists"), "{words}");
    }
    for (name, project) in
        [("a b", ""), ("a/b", ""), (".", ""), ("", "a#b"), ("", ".."), (&"x".repeat(101), "")]
    {
        rename(&stack, name, project).await.refused(400);
    }
    for org in ["", ORG] {
        stack.post("/transfer", &json!({ "toOrg": org })).send().await.refused(409);
    }
    stack.post("/transfer", &json!({ "toOrg": "a b" })).send().await.refused(400);
    at(&stack, ORG, &stack.project, "nowhere").post("/rename", &json!({})).send().await.refused(404);
    assert_eq!((stack.version().await, stack.history().await.len()), (1, 1));
}

#[tokio::test]
async fn i5_repeatable_a_rename_that_is_asked_for_again_is_done_once() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let first = rename(&stack, "prod", "").await.expect(200);
    assert_eq!(rename(&stack, "prod", "").await.expect(200), first);
    rename(&stack, "other", "").await.refused(404);
    let renamed = at(&stack, ORG, &stack.project, "prod");
    assert_eq!(renamed.version().await, 2);
    // There and back: each rename is a version, and the names are current.
    rename(&renamed, "dev", "").await.expect(200);
    assert_eq!((stack.version().await, stack.resources().await), (3, vec!["a".to_owned()]));
    assert_eq!(stack.export().await, stack.get("/export/1").send().await.expect(200));
}

#[tokio::test]
async fn of_many_renames_to_one_name_at_once_one_is_done() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    let project = new_project();
    for number in 0..8 {
        let body = json!({ "stackName": format!("s{number}") });
        app.post(&format!("/api/stacks/{ORG}/{project}"), &body).send().await.expect(200);
    }
    let calls = (0..8).map(|number| {
        let app = if number % 2 == 0 { &app } else { &other };
        app.post(&format!("/api/stacks/{ORG}/{project}/s{number}/rename"), &json!({ "newName": "prod" }))
            .send()
    });
    let answers = futures::future::join_all(calls).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    for refused in answers.iter().filter(|answer| answer.status != 200) {
        assert!(refused.refused(409).contains("already exists"));
    }
    let listed = app.get(&format!("/api/user/stacks?project={project}")).send().await.expect(200);
    assert_eq!(listed["stacks"].as_array().map(Vec::len), Some(8));
}

#[tokio::test]
async fn i5_repeatable_concurrent_equal_renames_act_once() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    for _ in 0..10 {
        let stack = Stack::new(&app).await;
        stack.publish(&["a"]).await;
        let stacks = [stack.at(&app), stack.at(&other)];
        let calls = (0..6).map(|number| rename(&stacks[number % 2], "prod", ""));
        let answers = futures::future::join_all(calls).await;
        let first = answers[0].expect(200);
        assert!(answers.iter().all(|answer| answer.expect(200) == first), "{answers:?}");
        assert_eq!(at(&stack, ORG, &stack.project, "prod").version().await, 2);
    }
}

#[tokio::test]
async fn i8_walled_transfers_stay_within_the_callers_organizations() {
    let app = TestApp::memory().await;
    let stranger = app.other_user("mallory", "evil").await;
    let both = app.member_of(&[ORG, "beta"], "carol", "laptop").await;
    let beta = app.member_of(&["beta"], "dave", "laptop").await;
    let stack = Stack::new(&app).await;
    stack.import(&state(&stack, ORG, "dev")).await;
    let ciphertext = seal(&stack, "hunter2").await;

    let to = |org: &str| stack.post("/transfer", &json!({ "toOrg": org }));
    // Not a member of the first, not a member of the second, nor of one that does not exist.
    let words = to("evil").token(&stranger).send().await.refused(404);
    assert_eq!(words, format!("Not Found: stack {ORG}/{}/dev not found: check its name", stack.project));
    for org in ["evil", "beta", "nobodys"] {
        assert_eq!(
            to(org).send().await.refused(404),
            format!(
                "Not Found: organization {org} not found: check its name, and that your user is a member"
            )
        );
    }
    to(ORG).token(&beta).send().await.refused(404);
    stack.post("/rename", &json!({ "newName": "x" })).token(&stranger).send().await.refused(404);
    assert_eq!(stack.version().await, 1);

    to("beta").token(&both).send().await.expect(200);
    let moved = at(&stack, "beta", &stack.project, "dev");
    assert_eq!(moved.get("/export").token(&both).send().await.expect(200), state(&stack, "beta", "dev"));
    moved.get("").token(&beta).send().await.expect(200);
    // The old name leads to the secrets only users who may see the stack under its new name.
    let body = json!({ "ciphertext": ciphertext });
    let open = |stack: &Stack<'_>, token: &str| {
        app.post(&format!("{}/decrypt", stack.path), &body).token(token).send()
    };
    assert_opens(&open(&stack, &both).await, "hunter2");
    assert_opens(&open(&moved, &beta).await, "hunter2");
    let no_such_stack = open(&at(&stack, ORG, &stack.project, "none"), &app.token).await.refused(404);
    let refused = open(&stack, &app.token).await.refused(404);
    assert_eq!(refused.replace("/dev", "/none"), no_such_stack);
    open(&stack, &beta).await.refused(404);
    open(&stack, &stranger).await.refused(404);
    moved.get("").send().await.refused(404);
    stack.get("").token(&both).send().await.refused(404);
    // A repeat by a user who lost access finds nothing.
    to("beta").send().await.refused(404);
}

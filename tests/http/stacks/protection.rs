//! Protection from deletion and destruction: what it refuses, who lifts it, and what it leaves alone.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::domain::role::{Right, Role};
use statewright_shared::services::identity::orgs;
use statewright_tests::app::{Answer, Call, ORG, TestApp, USER};

use crate::states::lifecycle::text;
use crate::world::{Stack, deployment, new_project, program};

const REASON: &str = "it is production";

fn protect<'a>(app: &'a TestApp, path: &str, reason: &str) -> Call<'a> {
    app.request(Method::PUT, &format!("{path}/protection")).json(&json!({ "reason": reason }))
}

fn lift<'a>(app: &'a TestApp, path: &str) -> Call<'a> {
    app.request(Method::DELETE, &format!("{path}/protection"))
}

/// Checks that a protection refused it, with all that a person needs.
#[track_caller]
fn refused(answer: &Answer, reason: &str, what: &str, kind: &str) -> String {
    let words = answer.refused(409);
    assert_eq!(answer.value()["reason"], reason, "{words}");
    let message = format!(
        "{what} is protected by {USER} since 2026-01-01T00:00:00Z, with the reason \"{REASON}\": ask an admin to run \
         `statewright unprotect {} --kind {kind}`",
        what.split_once(' ').unwrap().1
    );
    assert!(words.contains(&message), "{words}");
    words
}

#[tokio::test]
async fn a_protected_stack_is_neither_deleted_nor_destroyed() {
    let app = TestApp::memory().await;
    let (org, login) = (OrgName::parse("beta").unwrap(), Login::parse(USER).unwrap());
    orgs::create(&app.context, &org, &[login]).await.unwrap();
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let created = stack.created_by(stack.post("/destroy", &program(false))).await;
    let running = stack.begin_kind("destroy", false).await;
    let shown = protect(&app, &stack.path, REASON).send().await.expect(200);
    let expected =
        json!({ "by": USER, "token": "first-start", "at": "2026-01-01T00:00:00Z", "reason": REASON });
    assert_eq!(shown, expected);
    // What runs already is not stopped.
    running.complete("failed").await.expect(204);
    assert_eq!(stack.get("").send().await.expect(200)["protection"], expected);

    let what = format!("stack {ORG}/{}/dev", stack.project);
    let is_refused = |answer: &Answer| refused(answer, "stack_protected", &what, "stack");
    for query in ["", "?force=true", "?forceDestroy=true"] {
        is_refused(&app.request(Method::DELETE, &format!("{}{query}", stack.path)).send().await);
    }
    is_refused(&stack.begin_call("destroy", false).send().await);
    is_refused(&stack.post("/destroy", &program(false)).send().await);
    is_refused(&created.start(Some(2)).await);
    is_refused(&stack.post("/transfer", &json!({ "toOrg": "beta" })).send().await);

    // Everything else goes on, and the protection stays with the stack.
    stack.begin_kind("destroy", true).await.complete("succeeded").await.expect(204);
    let run = stack.begin().await;
    run.append(&[stack.made(1, "b")]).await.expect(204);
    run.complete("succeeded").await.expect(204);
    stack.publish(&["b"]).await;
    stack.post("/rename", &json!({ "newName": "prod" })).send().await.expect(200);
    let renamed =
        Stack { app: &app, project: stack.project.clone(), path: stack.path.replace("/dev", "/prod") };
    assert_eq!(renamed.get("").send().await.expect(200)["protection"], expected);

    lift(&app, &renamed.path).send().await.expect(204);
    lift(&app, &renamed.path).send().await.expect(204);
    assert_eq!(renamed.get("").send().await.expect(200).get("protection"), None);
    renamed.begin_kind("destroy", false).await.complete("succeeded").await.expect(204);
    renamed.import(&deployment(&[])).await;
    app.request(Method::DELETE, &renamed.path).send().await.expect(204);
}

#[tokio::test]
async fn a_held_stack_is_not_updated_until_it_is_released() {
    let app = TestApp::memory().await;
    let bob = app.member_with_role(Role::Member, "bob", "ci").await;
    let carol = app.member_with_role(Role::Apply, "carol", "ci").await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let path = format!("{}/hold", stack.path);
    let hold = |reason: &str| app.request(Method::PUT, &path).json(&json!({ "reason": reason }));
    let release = || app.request(Method::DELETE, &path);
    let created = stack.created().await;
    let running = stack.begin().await;
    for wrong in ["", "two\nlines", &"x".repeat(501)] {
        let words = hold(wrong).send().await.refused(400);
        assert!(words.contains("invalid reason to hold a stack"), "{words}");
    }
    hold("we move").token(&carol).send().await.refused(403);
    let shown = hold("we move").send().await.expect(200);
    let expected = json!({
        "by": USER, "token": "first-start", "at": "2026-01-01T00:00:00Z", "reason": "we move",
    });
    assert_eq!(shown, expected);
    // What runs already is not stopped.
    running.append(&[stack.made(1, "b")]).await.expect(204);
    running.complete("succeeded").await.expect(204);
    assert_eq!(stack.get("").send().await.expect(200)["hold"], expected);
    let listed = async || {
        let query = format!("/api/user/stacks?project={}", stack.project);
        app.get(&query).send().await.expect(200)["stacks"][0]["onHold"].clone()
    };
    assert_eq!(listed().await, json!(true));

    let message = format!(
        "stack {ORG}/{}/dev is held by {USER} since 2026-01-01T00:00:00Z, with the reason \"we move\"",
        stack.project
    );
    let is_refused = |answer: &Answer| {
        let words = answer.refused(409);
        assert_eq!(answer.value()["reason"], "stack_on_hold", "{words}");
        assert!(words.contains(&message) && words.contains("statewright stack release"), "{words}");
    };
    for kind in ["update", "refresh", "destroy"] {
        is_refused(&stack.begin_call(kind, false).send().await);
    }
    is_refused(&created.start(Some(2)).await);
    is_refused(&stack.post("/import", &deployment(&[])).send().await);
    is_refused(&stack.post("/updates/1/restore", &Value::Null).send().await);
    is_refused(&stack.post("/rename", &json!({ "newName": "prod" })).send().await);
    is_refused(&app.request(Method::DELETE, &format!("{}?force=true", stack.path)).send().await);
    // Another user does not take it over.
    is_refused(&hold("mine").token(&bob).send().await);
    stack.preview().await.complete("succeeded").await.expect(204);
    stack.get("/export").send().await.expect(200);
    assert_eq!(hold("we move on").send().await.expect(200)["reason"], "we move on");

    release().token(&carol).send().await.refused(403);
    release().token(&bob).send().await.expect(204);
    release().send().await.expect(204);
    assert_eq!(stack.get("").send().await.expect(200).get("hold"), None);
    assert_eq!(listed().await, Value::Null);
    stack.publish(&["c"]).await;
    let trail = app.get(&format!("/api/orgs/{ORG}/auditlogs/v2?eventFilter=stack.release")).send().await;
    let events = trail.expect(200)["auditLogEvents"].to_string();
    assert!(events.contains(&format!("of {USER} since 2026-01-01T00:00:00Z: we move on")), "{events}");
}

#[tokio::test]
async fn a_protected_stack_is_not_emptied_by_an_old_state() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let root = json!({
        "urn": format!("urn:pulumi:dev::{0}::pulumi:pulumi:Stack::{0}-dev", stack.project), "custom": false,
        "type": "pulumi:pulumi:Stack",
    });
    let only_root = deployment(std::slice::from_ref(&root));
    stack.import(&deployment(&[])).await;
    stack.import(&only_root).await;
    stack.import(&deployment(&[root, stack.resource("a")])).await;
    protect(&app, &stack.path, REASON).send().await.expect(200);

    let what = format!("stack {ORG}/{}/dev", stack.project);
    for empty in [deployment(&[]), only_root] {
        let words = refused(&stack.post("/import", &empty).send().await, "stack_protected", &what, "stack");
        assert!(words.contains("this version has no resources, and stack "), "{words}");
    }
    let restore =
        |version: u32| app.request(Method::POST, &format!("{}/updates/{version}/restore", stack.path));
    for version in [1, 2] {
        refused(&restore(version).send().await, "stack_protected", &what, "stack");
    }
    assert_eq!(stack.version().await, 3);

    // A version with some of its resources, or another one, is as good as before.
    stack.publish(&["b"]).await;
    restore(3).send().await.expect(200);
    lift(&app, &stack.path).send().await.expect(204);
    restore(2).send().await.expect(200);
    // What is empty may stay empty.
    protect(&app, &stack.path, REASON).send().await.expect(200);
    stack.import(&deployment(&[])).await;
    restore(2).send().await.expect(200);
}

/// A state with one resource.
struct Net<'a> {
    app: &'a TestApp,
    /// Of clients.
    path: String,
    /// Of people.
    api: String,
    name: String,
}

impl<'a> Net<'a> {
    async fn new(app: &'a TestApp) -> Self {
        let project = new_project();
        let path = format!("/tfstate/{ORG}/{project}");
        app.post(&path, &text(1, &["a"])).send().await.expect(200);
        let name = format!("{ORG}/{project}/default");
        let shown = app.get(&format!("/api/orgs/{ORG}/tfstates/{project}/default")).send().await.expect(200);
        let api = format!("/api/tfstates/{}", shown["id"].as_str().unwrap());
        Self { app, path, api, name }
    }

    async fn write(&self, text: &Value) -> Answer {
        self.app.post(&self.path, text).send().await
    }

    fn is_refused(&self, answer: &Answer) -> String {
        refused(answer, "state_protected", &format!("state {}", self.name), "tfstate")
    }
}

#[tokio::test]
async fn a_protected_state_is_neither_deleted_nor_emptied() {
    let app = TestApp::memory().await;
    let net = Net::new(&app).await;
    let shown = protect(&app, &net.api, REASON).send().await.expect(200);
    assert_eq!(app.get(&net.api).send().await.expect(200)["protection"], shown);
    app.patch(&net.api, &json!({ "policy": { "deleteAllowed": true } })).send().await.expect(200);
    for path in [net.api.clone(), format!("{}?force=true", net.api), net.path.clone()] {
        net.is_refused(&app.request(Method::DELETE, &path).send().await);
    }

    // A destroy saves what is left from time to time, and nothing at its end.
    net.write(&text(2, &["b"])).await.expect(200);
    let words = net.is_refused(&net.write(&text(3, &[])).await);
    assert!(words.contains("this write leaves no resources, and state "), "{words}");
    assert_eq!(app.get(&net.path).send().await.expect(200), text(2, &["b"]));
    let rejected = app.get(&format!("{}/rejected", net.api)).send().await.expect(200);
    let [kept] = &rejected["rejected"].as_array().unwrap()[..] else { panic!("{rejected}") };
    assert_eq!((&kept["why"], &kept["resourceCount"]), (&json!("protected"), &json!(0)));
    let id = kept["id"].as_str().unwrap();
    assert!(words.contains(&format!("state restore {} --version {id}`", net.name)), "{words}");
    // A repeat is kept once. It is restored only without the protection.
    net.is_refused(&net.write(&text(3, &[])).await);
    let restore = format!("{}/versions/{id}/restore", net.api);
    net.is_refused(&app.request(Method::POST, &restore).send().await);
    app.request(Method::POST, &format!("{}/versions/1/restore", net.api)).send().await.expect(200);

    lift(&app, &net.api).send().await.expect(204);
    app.request(Method::POST, &restore).send().await.expect(200);
    assert_eq!(app.get(&net.path).send().await.expect(200)["resources"], json!([]));
    // What is empty may stay empty.
    protect(&app, &net.api, REASON).send().await.expect(200);
    net.write(&text(9, &[])).await.expect(200);
    lift(&app, &net.api).send().await.expect(204);
    app.request(Method::DELETE, &net.api).send().await.expect(204);
}

#[tokio::test]
async fn an_empty_protected_state_keeps_its_name() {
    let app = TestApp::memory().await;
    let net = Net::new(&app).await;
    app.request(Method::DELETE, &format!("{}?force=true", net.api)).send().await.expect(204);
    let project = net.name.split('/').nth(1).unwrap();
    let new = app.post(&format!("/api/orgs/{ORG}/tfstates"), &json!({ "project": project }));
    let new = new.send().await.expect(200);
    let api = format!("/api/tfstates/{}", new["id"].as_str().unwrap());
    protect(&app, &api, REASON).send().await.expect(200);
    // Without the protection, the undeleted one would take the place of the new one.
    app.request(Method::POST, &format!("{}/undelete", net.api)).send().await.refused(409);
    lift(&app, &api).send().await.expect(204);
    app.request(Method::POST, &format!("{}/undelete", net.api)).send().await.expect(200);
}

#[tokio::test]
async fn only_admins_protect_and_lift() {
    let app = TestApp::memory().await;
    let (stack, net) = (Stack::new(&app).await, Net::new(&app).await);
    for role in Role::ALL {
        let token = app.member_with_role(role, &format!("m-{role}"), "laptop").await;
        let scoped = app.scoped_token(role).await;
        for (token, how) in [(&token, "role"), (&scoped, "scope")] {
            for path in [&stack.path, &net.api] {
                let what = format!("{path} as {role} by {how}");
                let protected = protect(&app, path, REASON).token(token).send().await;
                let lifted = lift(&app, path).token(token).send().await;
                let is_admin = role.gives(Right::Admin);
                assert_eq!(protected.status.is_success(), is_admin, "{what}: {}", protected.text());
                assert_eq!(lifted.status.is_success(), is_admin, "{what}: {}", lifted.text());
            }
        }
    }
    let stranger = app.other_user("mallory", "evil").await;
    for path in [&stack.path, &net.api] {
        protect(&app, path, REASON).token(&stranger).send().await.refused(404);
        lift(&app, path).token(&stranger).send().await.refused(404);
    }
}

#[tokio::test]
async fn an_admin_of_a_part_protects_that_part() {
    let app = TestApp::memory().await;
    let (stack, other) = (Stack::new(&app).await, Stack::new(&app).await);
    let (net, far) = (Net::new(&app).await, Net::new(&app).await);
    let gina = app.member_with_role(Role::Member, "gina", "laptop").await;
    let of_net = net.name.split('/').nth(1).unwrap();
    for project in [stack.project.as_str(), of_net, "sandbox"] {
        let grant = json!({ "to": "user:gina", "on": format!("{project}/*"), "role": "admin" });
        app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    }
    for path in [&stack.path, &net.api] {
        protect(&app, path, REASON).token(&gina).send().await.expect(200);
        lift(&app, path).token(&gina).send().await.expect(204);
    }
    for path in [&other.path, &far.api] {
        let words = protect(&app, path, REASON).token(&gina).send().await.refused(403);
        assert!(words.contains("needs the role admin") && words.contains("; ask an admin: "), "{words}");
        protect(&app, path, REASON).send().await.expect(200);
        lift(&app, path).token(&gina).send().await.refused(403);
    }
    // Nor by a new name at which the grant would count.
    let words = app
        .post(&format!("{}/rename", other.path), &json!({ "newName": "dev", "newProject": "sandbox" }))
        .token(&gina)
        .send()
        .await
        .refused(403);
    assert!(words.contains("renaming a stack to where you are an admin needs the role admin"), "{words}");
    let words = app.patch(&far.api, &json!({ "project": "sandbox" })).token(&gina).send().await.refused(403);
    assert!(words.contains("renaming a state to where you are an admin needs the role admin"), "{words}");
    // Other new names need no more than before.
    let project = new_project();
    app.post(&format!("{}/rename", other.path), &json!({ "newName": "dev", "newProject": project }))
        .token(&gina)
        .send()
        .await
        .expect(200);
    app.patch(&far.api, &json!({ "state": "prod" })).token(&gina).send().await.expect(200);
}

#[tokio::test]
async fn a_reason_is_one_line_and_a_repeat_changes_nothing() {
    let app = TestApp::memory().await;
    let (stack, net) = (Stack::new(&app).await, Net::new(&app).await);
    for path in [&stack.path, &net.api] {
        for bad in ["", " ", "two\nlines", "turned\u{202e}around", &"x".repeat(501)] {
            let words = protect(&app, path, bad).send().await.refused(400);
            assert!(words.contains("write one line of up to 500 characters"), "{words}");
        }
        app.request(Method::PUT, &format!("{path}/protection")).json(&json!({})).send().await.refused(400);
        assert!(app.get(path).send().await.expect(200)["protection"].is_null());
        let first = protect(&app, path, REASON).send().await.expect(200);
        app.advance(Duration::from_secs(60));
        assert_eq!(protect(&app, path, REASON).send().await.expect(200), first);
        let other = protect(&app, path, "an audit").send().await.expect(200);
        assert_ne!((&other["at"], &other["reason"]), (&first["at"], &first["reason"]));
    }
}

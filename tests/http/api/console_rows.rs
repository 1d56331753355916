//! What the console asks for beyond the rows of clients: how updates ended, one's own rights, deleted stacks, and the
//! server as its admins see it.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::Calls;
use statewright_shared::cache::REMEMBERED_FOR;
use statewright_shared::domain::access::Scope;
use statewright_shared::domain::names::{Login, OrgName, StackAddress, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::domain::update::LEASE;
use statewright_shared::layout::{Record as _, StackEntry, put};
use statewright_shared::ports::Expect;
use statewright_shared::services::identity::tokens::{NewToken, Owner};
use statewright_shared::services::identity::{orgs, tokens};
use statewright_tests::app::{Answer, ORG, TestApp, USER};

use crate::api::call_counts::{counted, describe_calls};
use crate::world::Stack;

const DELETED: &str = "/api/orgs/acme/restore-stack";
const RIGHTS: &str = "/api/orgs/acme/rights";

async fn remove(stack: &Stack<'_>) {
    let path = format!("{}?force=true", stack.path);
    stack.app.request(Method::DELETE, &path).send().await.expect(204);
}

async fn give(app: &TestApp, to: &str, on: &str, role: &str) {
    let grant = json!({ "to": to, "on": on, "role": role });
    app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    // Also in the caches of the process.
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
}

async fn undelete(app: &TestApp, token: &str, listed: &Value, name: &str) -> Answer {
    let path = format!("{DELETED}/{}", listed["programId"].as_str().unwrap());
    app.post(&path, &json!({ "stackName": name })).token(token).send().await
}

#[tokio::test]
async fn a_list_tells_how_the_last_update_of_each_stack_ended() {
    let app = TestApp::memory().await;
    let (good, bad, new) = (Stack::new(&app).await, Stack::new(&app).await, Stack::new(&app).await);
    let (cancelled, running) = (Stack::new(&app).await, Stack::new(&app).await);
    good.publish(&["a"]).await;
    let run = bad.begin().await;
    run.append(&[bad.made(1, "b")]).await.expect(204);
    run.complete("failed").await.expect(204);
    cancelled.begin().await.cancel().await.expect(204);
    running.begin().await.complete("failed").await.expect(204);
    let _running = running.begin().await;

    let list = async |query: &str| {
        let listed = app.get(&format!("/api/user/stacks{query}")).send().await.expect(200);
        listed["stacks"].as_array().unwrap().clone()
    };
    let all = list("").await;
    let one =
        |stack: &Stack<'_>| all.iter().find(|one| one["projectName"] == stack.project.as_str()).unwrap();
    for (stack, result) in [(&good, "succeeded"), (&bad, "failed"), (&cancelled, "cancelled")] {
        let latest = stack.get("/updates/latest").send().await.expect(200);
        assert_eq!(one(stack)["lastUpdateResult"], result);
        // Clients know two results.
        let known = if result == "cancelled" { "failed" } else { result };
        assert_eq!((&latest["info"]["result"], &latest["info"]["outcome"]), (&json!(known), &json!(result)));
        assert_eq!(one(stack)["version"], latest["version"], "{result}");
        assert!(one(stack)["bytes"].as_u64().unwrap() > 20, "{result}");
    }
    // An update that runs does not hide how the one before it ended.
    assert_eq!(
        (&one(&running)["lastUpdateResult"], &one(&running)["lastUpdate"]),
        (&json!("failed"), &json!(0))
    );
    for name in ["lastUpdateResult", "version", "bytes"] {
        assert_eq!(one(&new).get(name), None, "{name}");
    }
    // A few tags, the own ones first.
    let tags: serde_json::Map<String, Value> =
        (0..30).map(|number| (format!("t{number:02}"), json!("x"))).collect();
    let mut of_client = tags.clone();
    of_client.insert("pulumi:runtime".to_owned(), json!("yaml"));
    app.patch(&format!("{}/tags", good.path), &Value::Object(of_client)).send().await.expect(204);
    app.patch(&format!("{}/tags", bad.path), &json!({ "pulumi:runtime": "go", "team": "web" }))
        .send()
        .await
        .expect(204);
    let all = list("").await;
    let one =
        |stack: &Stack<'_>| all.iter().find(|one| one["projectName"] == stack.project.as_str()).unwrap();
    let first: serde_json::Map<String, Value> = tags.into_iter().take(20).collect();
    assert_eq!(one(&good)["tags"], Value::Object(first));
    assert_eq!(one(&bad)["tags"], json!({ "pulumi:runtime": "go", "team": "web" }));
    assert_eq!(one(&new).get("tags"), None);
    let failed = list("?lastUpdateResult=failed").await;
    let names: Vec<&Value> = failed.iter().map(|one| &one["projectName"]).collect();
    assert_eq!(names, [&json!(bad.project)]);
    let words = app.get("/api/user/stacks?lastUpdateResult=bad").send().await.refused(400);
    assert!(words.contains("invalid result \"bad\" of updates"), "{words}");
}

#[tokio::test]
async fn a_caller_learns_what_it_may_do() {
    let app = TestApp::memory().await;
    let bob = app.member_with_role(Role::View, "bob", "ci").await;
    let none = app.member_with_role(Role::None, "nora", "ci").await;
    let team = json!({ "name": "web", "displayName": "", "description": "", "teamType": "pulumi" });
    app.post(&format!("/api/orgs/{ORG}/teams/pulumi"), &team).send().await.expect(201);
    let add = json!({ "memberAction": "add", "member": "bob" });
    app.patch(&format!("/api/orgs/{ORG}/teams/web"), &add).send().await.expect(204);
    let promote = json!({ "memberAction": "promote", "member": "bob" });
    app.patch(&format!("/api/orgs/{ORG}/teams/web"), &promote).send().await.expect(204);
    give(&app, "team:web", "web/*", "apply").await;
    give(&app, "user:alice", "web/*", "plan").await;

    let own = app.get(RIGHTS).send().await.expect(200);
    assert_eq!((&own["login"], &own["role"], &own["admin"]), (&json!(USER), &json!("admin"), &json!(true)));
    assert_eq!(own["serverAdmin"], json!(true));
    assert_eq!(own["rights"].as_array().unwrap().len(), 8);
    let own = app.get(RIGHTS).token(&bob).send().await.expect(200);
    let apply = json!(["see", "view", "outputs", "plan", "apply"]);
    assert_eq!(
        own,
        json!({
            "login": "bob", "role": "view", "admin": false, "rights": ["see", "view"], "somewhere": apply,
            "teams": [{ "name": "web", "role": "admin" }],
            "grants": [{ "on": "web/*", "role": "apply", "rights": apply }],
            "within": null, "serverAdmin": false,
        })
    );
    // A member who may do nothing learns that.
    app.get(RIGHTS).token(&none).send().await.refused(403);
    let stranger = app.other_user("mallory", "evil").await;
    app.get(RIGHTS).token(&stranger).send().await.refused(404);

    // A token leaves of all that only what it allows, and administers no server.
    let plan = app.scoped_token(Role::Plan).await;
    let own = app.get(RIGHTS).token(&plan).send().await.expect(200);
    assert_eq!(
        (&own["role"], &own["admin"], &own["serverAdmin"]),
        (&json!("admin"), &json!(false), &json!(false))
    );
    assert_eq!(own["rights"], json!(["see", "view", "outputs", "plan"]));
    let within = issue(&app, None, Some("web/*")).await;
    let own = app.get(RIGHTS).token(&within).send().await.expect(200);
    assert_eq!(
        (&own["rights"], &own["within"], &own["serverAdmin"]),
        (&json!([]), &json!("web/*"), &json!(false))
    );
    assert_eq!(own["somewhere"].as_array().unwrap().len(), 8);
}

/// A token of an admin, limited to an organization or a part of one.
async fn issue(app: &TestApp, org: Option<&str>, on: Option<&str>) -> String {
    let name = format!("limited-{}", app.context.ids.uuid().simple());
    let name = TokenName::parse(&name[..40]).unwrap();
    let new = NewToken {
        org: org.map(|org| OrgName::parse(org).unwrap()),
        within: on.map(|on| Scope::parse(on).unwrap()),
        ..NewToken::new(Owner::User(Login::parse(USER).unwrap()), name)
    };
    tokens::issue(&app.context, new).await.unwrap().secret
}

#[tokio::test]
async fn a_deleted_stack_is_listed_and_undeleted_by_its_admins() {
    let app = TestApp::memory().await;
    let (stack, other) = (Stack::new(&app).await, Stack::new(&app).await);
    stack.publish(&["a", "b"]).await;
    let id = stack.get("").send().await.expect(200)["id"].clone();
    remove(&stack).await;
    remove(&other).await;
    let list = async |token: &str| {
        let listed = app.get(DELETED).token(token).send().await.expect(200);
        let mut listed = listed["deletedStacks"].as_array().unwrap().clone();
        listed.retain(|one| one["projectName"] == stack.project.as_str());
        listed
    };
    let listed = list(&app.token).await;
    let [one] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!((&one["id"], &one["programId"], &one["stackName"]), (&id, &id, &json!("dev")));
    assert_eq!((&one["version"], &one["deletedBy"]), (&json!(1), &json!(USER)));
    assert_eq!(
        (&one["lastUpdate"]["result"], &one["lastUpdate"]["resourceCount"]),
        (&json!("succeeded"), &json!(2))
    );
    let until = one["until"].as_i64().unwrap() - one["deletedAt"].as_i64().unwrap();
    assert_eq!(until, 30 * 86_400);

    // With `view` it is seen, with less than `admin` it is not undeleted, and elsewhere it does not exist.
    let bob = app.member_with_role(Role::Member, "bob", "ci").await;
    assert_eq!(list(&bob).await.len(), 1);
    assert_eq!((&one["mayUndelete"], &list(&bob).await[0]["mayUndelete"]), (&json!(true), &json!(false)));
    let words = undelete(&app, &bob, one, "dev").await.refused(403);
    assert!(words.contains("needs the role admin"), "{words}");
    let carol = app.member_with_role(Role::None, "carol", "ci").await;
    give(&app, "user:carol", "elsewhere/*", "admin").await;
    assert_eq!(list(&carol).await, Vec::<Value>::new());
    undelete(&app, &carol, one, "dev").await.refused(404);
    let stranger = app.other_user("mallory", "evil").await;
    undelete(&app, &stranger, one, "dev").await.refused(404);
    let evil = format!("/api/orgs/evil/restore-stack/{}", id.as_str().unwrap());
    app.post(&evil, &json!({ "stackName": "dev" })).token(&stranger).send().await.refused(404);
    undelete(&app, &app.token, one, "prod").await.refused(404);
    let nothing = json!({ "programId": "none" });
    let words = undelete(&app, &app.token, &nothing, "dev").await.refused(404);
    assert!(words.contains("has no deleted stack with the id \"none\""), "{words}");

    // The name may be taken meanwhile.
    let new = Stack::in_project(&app, &stack.project).await;
    undelete(&app, &app.token, one, "dev").await.refused(409);
    app.post(&format!("{}/rename", new.path), &json!({ "newName": "new" })).send().await.expect(200);
    give(&app, "user:carol", &format!("{}/*", stack.project), "admin").await;
    assert_eq!(list(&carol).await.len(), 1);
    app.take_audit();
    undelete(&app, &carol, one, "dev").await.expect(204);
    let record = app.take_audit().pop().unwrap();
    assert_eq!((&record["action"], &record["user"]), (&json!("stack.undelete"), &json!("carol")), "{record}");
    assert_eq!(stack.resources().await, ["a", "b"]);
    assert_eq!(list(&app.token).await, Vec::<Value>::new());
    undelete(&app, &app.token, one, "dev").await.refused(404);
}

/// Before, an entry did not say what its last version was.
#[tokio::test]
async fn a_deleted_stack_of_an_older_program_has_its_version() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let address = StackAddress::parse(ORG, &stack.project, "dev").unwrap();
    let key = StackEntry::key(&address);
    let item = app.context.ledger.get(&key).await.unwrap().unwrap();
    let older = StackEntry { newest: None, ..StackEntry::decode(&item.value).unwrap() };
    let write = put(key, Expect::Any, app.context.ids.revision(), &older);
    app.context.ledger.commit(vec![write]).await.unwrap();
    let path = format!("/api/user/stacks?project={}", stack.project);
    let listed = app.get(&path).send().await.expect(200);
    assert_eq!(listed["stacks"][0].get("lastUpdateResult"), None);
    remove(&stack).await;
    let listed = app.get(DELETED).send().await.expect(200);
    assert_eq!(listed["deletedStacks"][0]["version"], 1);
    assert_eq!(listed["deletedStacks"][0]["lastUpdate"]["result"], "succeeded");
}

#[tokio::test]
async fn an_admin_by_a_tag_learns_which_stacks_to_undelete() {
    let app = TestApp::memory().await;
    let (stack, other) = (Stack::new(&app).await, Stack::new(&app).await);
    app.patch(&format!("{}/tags", stack.path), &json!({ "team": "web" })).send().await.expect(204);
    let dave = app.member_with_role(Role::View, "dave", "ci").await;
    give(&app, "user:dave", "tag:team=web", "admin").await;
    remove(&stack).await;
    remove(&other).await;
    let listed = app.get(DELETED).token(&dave).send().await.expect(200);
    let of = |project: &str| {
        let all = listed["deletedStacks"].as_array().unwrap();
        all.iter().find(|one| one["projectName"] == project).unwrap().clone()
    };
    let (mine, theirs) = (of(&stack.project), of(&other.project));
    assert_eq!((&mine["mayUndelete"], &theirs["mayUndelete"]), (&json!(true), &json!(false)));
    undelete(&app, &dave, &theirs, "dev").await.refused(403);
    undelete(&app, &dave, &mine, "dev").await.expect(204);
}

#[tokio::test]
async fn i10_cheap_the_rows_of_the_console_cost_these_calls() {
    let (app, counter) = counted().await;
    let mut first = None;
    for number in 0..12 {
        let stack = Stack::new(&app).await;
        stack.publish(&["a"]).await;
        if number < 6 {
            remove(&stack).await;
        }
        first.get_or_insert(stack);
    }
    app.get(RIGHTS).send().await.expect(200);
    let listed = app.get(DELETED).send().await.expect(200);
    let project = first.unwrap().project;
    let deleted = listed["deletedStacks"].as_array().unwrap();
    let one = deleted.iter().find(|one| one["projectName"] == project.as_str()).unwrap();
    counter.take();
    let mut costs = Vec::new();
    app.get(DELETED).send().await.expect(200);
    costs.push(describe_calls(counter.take()));
    undelete(&app, &app.token, one, "dev").await.expect(204);
    costs.push(describe_calls(counter.take()));
    app.get("/api/admin/status").send().await.expect(200);
    // Without those of the health check, which is made at most once a second.
    let calls = counter.take();
    assert_eq!((calls.ledger_queries, calls.ledger_single_commits), (4, 0), "{calls:?}");
    app.get("/api/admin/storage").send().await.expect(200);
    costs.push(describe_calls(counter.take()));
    app.get(RIGHTS).send().await.expect(200);
    assert_eq!(counter.take(), Calls::default(), "the teams and grants are known");
    assert_eq!(costs, ["1 query (1)", "2 get, 1 joint commit (3)", "3 query (3)"]);
}

#[tokio::test]
async fn an_admin_of_the_server_sees_what_waits_and_what_is_stored() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a", "b"]).await;
    let status = async || app.get("/api/admin/status").send().await.expect(200);
    let before = status().await;
    assert_eq!((&before["health"], &before["version"]), (&json!("ok"), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!((&before["sweep"]["overdue"], &before["sweep"]["updates"]), (&json!(0), &json!([])));
    assert_eq!(before["signsSince"], json!("2026-01-01T00:00:00Z"));
    let run = stack.begin().await;
    let recent = |status: &Value| status["sweep"]["recent"].as_u64().unwrap();
    assert_eq!(recent(&status().await), recent(&before) + 1);
    app.advance(LEASE + Duration::from_secs(31));
    let now = status().await;
    let [waiting] = now["sweep"]["updates"].as_array().unwrap().as_slice() else { panic!("{now}") };
    let whole = format!("{ORG}/{}/dev", stack.project);
    assert_eq!(
        (&waiting["updateID"], &waiting["stack"], &waiting["by"]),
        (&json!(run.id), &json!(whole), &json!(USER))
    );
    assert_eq!(now["sweep"]["oldest"], waiting["since"]);
    app.sweep().await;
    assert_eq!(status().await["sweep"]["updates"], json!([]));

    // A page has some organizations, and all pages have each once.
    for number in 0..20 {
        let org = OrgName::parse(&format!("org-{number:02}")).unwrap();
        orgs::create(&app.context, &org, &[]).await.unwrap();
    }
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &json!({ "project": "net" })).send().await.expect(200);
    let (mut found, mut token, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = app.get(&format!("/api/admin/storage?continuationToken={token}")).send().await.expect(200);
        found.extend(page["organizations"].as_array().unwrap().clone());
        pages += 1;
        match page["continuationToken"].as_str() {
            Some(next) => token = next.to_owned(),
            None => break,
        }
    }
    assert_eq!((found.len(), pages), (21, 3));
    let here = found.iter().find(|one| one["name"] == ORG).unwrap();
    assert_eq!((&here["stacks"], &here["states"], &here["resources"]), (&json!(1), &json!(1), &json!(2)));
    assert_eq!(here["unmeasured"], json!(0));
    assert!(here["bytes"].as_u64().unwrap() > 20);
    for wrong in ["x", "eyJhZnRlciI6ImEgYiJ9"] {
        app.get(&format!("/api/admin/storage?continuationToken={wrong}")).send().await.refused(400);
    }

    // An admin of an organization, a machine and a limited token are refused.
    let ada = app.member_with_role(Role::Admin, "ada", "ci").await;
    let machine = json!({ "name": "deploys", "description": "", "expires": 0, "admin": true });
    let machine = app.post(&format!("/api/orgs/{ORG}/tokens"), &machine).send().await.expect(200);
    let machine = machine["tokenValue"].as_str().unwrap().to_owned();
    let limited = [issue(&app, Some(ORG), None).await, issue(&app, None, Some("*/*")).await];
    let plan = app.scoped_token(Role::Plan).await;
    for token in [&ada, &machine, &plan, &limited[0], &limited[1]] {
        for path in ["/api/admin/status", "/api/admin/storage", "/api/admin/storage?continuationToken=x"] {
            let words = app.get(path).token(token).send().await.refused(403);
            assert!(words.contains("only admins of the server"), "{words}");
        }
    }
}

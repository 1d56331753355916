//! The permissions of members and tokens: the column of the route table, and what depends on more than a row.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::Calls;
use statewright_shared::api::routes::{Auth, ROUTES, Route};
use statewright_shared::cache::REMEMBERED_FOR;
use statewright_shared::domain::access::Scope;
use statewright_shared::domain::names::{Login, OrgName, TeamName, TokenName};
use statewright_shared::domain::role::{Right, Role};
use statewright_shared::layout::{Member, Record, User, put_bytes};
use statewright_shared::ports::Expect;
use statewright_shared::services::identity::tokens::{NewToken, Owner};
use statewright_shared::services::identity::{orgs, tokens};
use statewright_tests::app::{Answer, ORG, TestApp, USER};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::api::call_counts::counted;
use crate::api::routes::{STATE, path, unit_in};
use crate::states::lifecycle::text;
use crate::world::{Stack, begin_body, program};

/// A part of every refusal for a role.
pub(crate) const NEEDS: &str = "needs the role ";

fn login(text: &str) -> Login {
    Login::parse(text).unwrap()
}

fn org(text: &str) -> OrgName {
    OrgName::parse(text).unwrap()
}

fn verb(name: &str) -> Method {
    Method::from_bytes(name.as_bytes()).unwrap()
}

fn info(id: &str, operation: &str) -> Value {
    json!({ "ID": id, "Operation": operation, "Who": "ci", "Created": "2026-01-02T03:04:05Z" })
}

/// The state of rows that name one, with a version.
async fn state(app: &TestApp) {
    let state = json!({ "id": STATE, "project": "net" });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &state).send().await.expect(200);
    app.post(&format!("/tfstate/{STATE}"), &text(1, &["a"])).send().await.expect(200);
}

/// One token for each role: of a user with that role, and of an admin with a token of that role. The users are
/// admins of another organization, so that a refusal needs the row's organization, unless its path names it.
async fn tokens(app: &TestApp) -> Vec<(Role, &'static str, String)> {
    orgs::create(&app.context, &org("beta"), &[]).await.unwrap();
    let mut tokens = Vec::new();
    for role in Role::ALL {
        let name = format!("m-{role}");
        let token = app.member_with_role(role, &name, "laptop").await;
        orgs::add_member(&app.context, &org("beta"), &login(&name), Role::Admin).await.unwrap();
        tokens.push((role, "role", token));
        tokens.push((role, "scope", app.scoped_token(role).await));
    }
    tokens
}

pub(crate) fn commits(calls: Calls) -> u64 {
    calls.ledger_single_commits + calls.ledger_joint_commits + calls.blob_puts + calls.blob_deletes
}

/// Whether a row is about an organization, by its path or by what it names. Of rows about a team, its admins may have
/// no role in the organization; and tokens and sessions of the caller belong to no organization.
fn is_about_an_organization(route: &Route) -> bool {
    let is_of_team_tokens = route.path.contains("{team}") && route.path.contains("/tokens");
    matches!(route.auth, Auth::Token | Auth::State | Auth::Run)
        && !route.path.starts_with("/api/user/oidc/")
        && !is_of_team_tokens
        && !route.path.starts_with("/api/user/tokens/")
        && !route.path.starts_with("/api/user/sessions/")
        && (route.path.contains('{') || ["/api/user/stacks", "/api/esc/environments"].contains(&route.path))
}

#[test]
fn exactly_the_rows_about_organizations_name_a_role() {
    for route in ROUTES {
        assert_eq!(route.needs.is_some(), is_about_an_organization(route), "{route:?}");
        // Every change needs a higher role than a read.
        let reads = matches!(route.method, Method::GET | Method::HEAD) || route.reveals();
        match route.needs {
            Some(Right::See | Right::View | Right::Outputs) => {
                let is_kept = route.action.is_some_and(|action| !action.ends_with(".outputs"));
                // An admin of a team changes its members, with any role in the organization.
                assert!((reads && !is_kept) || route.operation == "UpdateTeam", "{route:?}");
            }
            Some(Right::Member) => assert!(!reads && route.action.is_some(), "{route:?}"),
            Some(Right::Plan | Right::Apply | Right::Audit | Right::Admin) | None => {}
        }
    }
}

/// A body that the row accepts: if the path does not name the organization, the body may be checked first.
fn body(route: &Route) -> Value {
    let takes_reason = ["/lock", "/protection", "/hold"].iter().any(|tail| route.path.ends_with(tail));
    match (route.path.starts_with("/tfstate/"), takes_reason) {
        (true, true) => info("row", "OperationTypePlan"),
        (true, false) => text(2, &["a"]),
        (false, true) => json!({ "reason": "maintenance" }),
        (false, false) => json!({}),
    }
}

#[tokio::test]
async fn each_row_refuses_lower_roles_and_writes_nothing() {
    let (app, counter) = counted().await;
    state(&app).await;
    let callers = tokens(&app).await;
    for (_, _, token) in &callers {
        app.get("/api/user").token(token).send().await.expect(200);
    }
    // Who may do what in the organization is remembered from here on, too.
    app.get(&format!("/api/orgs/{ORG}/members")).send().await.expect(200);
    let (mut refused, mut passed) = (0, 0);
    for route in ROUTES {
        let Some(needs) = route.needs else { continue };
        let stack = Stack::new(&app).await;
        let run = stack.begin().await;
        let path = path(route, &stack.project, &run.id);
        for (role, how, token) in &callers {
            let what = format!("{route:?} as {role} by {how}");
            counter.take();
            let call = app.request(route.method.clone(), &path).token(token);
            let call = if route.body_bytes_max > 0 { call.json(&body(route)) } else { call };
            let answer = call.send().await;
            let calls = counter.take();
            assert!(answer.status.as_u16() < 500, "{what}: {} {}", answer.status, answer.text());
            if role.gives(needs) {
                // Its body or its object may need a higher role, and then the text differs.
                assert!(!answer.text().contains(&format!("this {NEEDS}")), "{what}: {}", answer.text());
                passed += 1;
                continue;
            }
            // The first such refusal in a minute stores its audit record, and nothing else.
            let kept = calls.ledger_single_commits;
            assert!(kept <= 1 && commits(calls) == kept, "{what}: {calls:?}");
            if route.path.contains("{org}") || *how == "scope" {
                // If an admin can lift it, one query finds some.
                let queries = u64::from(*how == "role");
                let none = Calls {
                    ledger_queries: queries,
                    ledger_single_commits: kept,
                    in_sequence: kept + queries,
                    ..Calls::default()
                };
                assert_eq!(calls, none, "{what}: the head alone decides");
            }
            if *role == Role::None && *how == "role" && !route.path.contains("{org}") {
                // A list of all organizations leaves this one out.
                if ["/api/user/stacks", "/api/esc/environments"].contains(&route.path) {
                    let lists = answer.expect(200);
                    let is_empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
                    assert!(lists.as_object().unwrap().values().all(is_empty), "{what}: {lists}");
                } else {
                    // Without any right on it, a state that is named by its ID does not exist.
                    assert!([403, 404].contains(&answer.status.as_u16()), "{what}: {}", answer.text());
                }
                refused += 1;
                continue;
            }
            assert_eq!(answer.status, 403, "{what}: {}", answer.text());
            if route.method != Method::HEAD {
                let words = answer.refused(403);
                assert!(words.contains(&format!("{NEEDS}{needs} in {ORG}")) || *how == "scope", "{words}");
                let keeps_all = needs.role().rights().contains(role.rights());
                let way = match (*how, unit_in(route, &stack.project, "net")) {
                    ("role", Some(unit)) => {
                        format!("statewright org grant add {ORG} user:m-{role} {unit} {}", needs.role())
                    }
                    ("role", None) if keeps_all => {
                        format!("statewright org member role {ORG} m-{role} {}", needs.role())
                    }
                    // The role would take what the member has.
                    ("role", None) => {
                        format!("statewright org grant add {ORG} user:m-{role} '*' {}", needs.role())
                    }
                    _ => format!("statewright token create NAME --user {USER} --may {}", needs.role()),
                };
                assert!(words.contains(&way), "{what}: {words}");
                let is_named = words.ends_with(&format!("; ask an admin: {USER}, m-admin"));
                assert_eq!(is_named, *how == "role", "{what}: {words}");
            }
            refused += 1;
        }
    }
    assert!(refused > 200 && passed > 200, "{refused} {passed}");
}

/// A token with no limit but these, of this owner.
pub(crate) async fn issue(
    app: &TestApp,
    owner: Owner,
    name: &str,
    may: Option<Role>,
    on: Option<&str>,
) -> String {
    let within = on.map(|on| Scope::parse(on).unwrap());
    let new = NewToken { may, within, ..NewToken::new(owner, TokenName::parse(name).unwrap()) };
    tokens::issue(&app.context, new).await.unwrap().secret
}

#[tokio::test]
async fn each_row_that_reads_asks_for_the_role_of_a_machine() {
    let app = TestApp::memory().await;
    state(&app).await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let teams = format!("/api/orgs/{ORG}/teams/pulumi");
    let mut machines = Vec::new();
    for role in Role::ALL {
        let name = format!("of-{role}");
        let token = issue(&app, Owner::Organization(org(ORG)), &name, Some(role), None).await;
        machines.push((role, "organization", token));
        let team = format!("team-{role}");
        let new = json!({ "name": team, "displayName": "", "description": "", "teamType": "pulumi" });
        app.post(&teams, &new).send().await.expect(201);
        if role != Role::None {
            let grant = json!({ "to": format!("team:{team}"), "on": "*", "role": role });
            app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
        }
        let owner = Owner::Team(org(ORG), TeamName::parse(&team).unwrap());
        machines.push((role, "team", issue(&app, owner, &team, None, None).await));
    }
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
    let (mut refused, mut passed) = (0, 0);
    for route in ROUTES.iter().filter(|route| route.method == Method::GET) {
        let Some(needs) = route.needs else { continue };
        let path = path(route, &stack.project, &run.id);
        for (role, kind, token) in &machines {
            let what = format!("{route:?} as {role} of a machine of {kind}");
            let answer = app.get(&path).token(token).send().await;
            assert!(answer.status.as_u16() < 500, "{what}: {} {}", answer.status, answer.text());
            if role.gives(needs) {
                assert!(!answer.text().contains(&format!("this {NEEDS}")), "{what}: {}", answer.text());
                assert_ne!(answer.status, 401, "{what}");
                passed += 1;
            } else {
                assert!([403, 404].contains(&answer.status.as_u16()), "{what}: {}", answer.text());
                refused += 1;
            }
        }
    }
    assert!(refused > 200 && passed > 200, "{refused} {passed}");
}

/// Whether a row is about one stack, state or environment.
fn is_about_one(route: &Route) -> bool {
    let named = ["{stack}", "{state}", "{guid}", "{environment}"];
    route.path.starts_with("/tfstate/") || named.iter().any(|name| route.path.contains(name))
}

/// A token of an admin that works with everything in the organization, but not with the organization; and one that
/// works with nothing that exists.
#[tokio::test]
async fn each_row_that_reads_asks_for_the_part_of_a_token() {
    let app = TestApp::memory().await;
    state(&app).await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let run = stack.begin().await;
    let environment = json!({ "project": stack.project, "name": "dev" });
    app.post(&format!("/api/esc/environments/{ORG}"), &environment).send().await.expect(204);
    let owner = || Owner::User(login(USER));
    let all = issue(&app, owner(), "all-units", None, Some("*/*")).await;
    let none = issue(&app, owner(), "no-unit", None, Some("nowhere/*")).await;
    let (mut of_units, mut of_orgs) = (0, 0);
    for route in ROUTES.iter().filter(|route| route.method == Method::GET) {
        let Some(needs) = route.needs else { continue };
        let path = path(route, &stack.project, &run.id);
        let status = async |token: &str| app.get(&path).token(token).send().await.status.as_u16();
        if is_about_one(route) {
            assert_eq!(status(&all).await, status(&app.token).await, "{route:?}");
            let refused = status(&none).await;
            assert!([403, 404].contains(&refused), "{route:?}: {refused}");
            of_units += 1;
        } else if matches!(needs, Right::Audit | Right::Admin) && route.operation != "ListGrants" {
            // Grants on a part are listed to its admins.
            assert_eq!((status(&all).await, status(&none).await), (403, 403), "{route:?}");
            of_orgs += 1;
        }
    }
    assert!(of_units > 40 && of_orgs > 9, "{of_units} {of_orgs}");
}

/// A refusal tells members what they lack, and outsiders nothing.
#[tokio::test]
async fn outsiders_get_404_or_403_whatever_their_tokens_role() {
    let app = TestApp::memory().await;
    state(&app).await;
    let stack = Stack::new(&app).await;
    let mallory = app.other_user("mallory", "evil").await;
    let name = TokenName::parse("outputs").unwrap();
    let scoped =
        tokens::create_scoped_token(&app.context, &login("mallory"), &name, Some(Role::Outputs), None).await;
    for token in [mallory, scoped.unwrap()] {
        let words = stack.get("/export").token(&token).send().await.refused(404);
        assert!(words.contains(" not found: "), "{words}");
        let api = format!("/api/orgs/{ORG}/tfstates");
        app.post(&api, &json!({ "project": "x" })).token(&token).send().await.refused(404);
        let words = app.get(&format!("/tfstate/{ORG}/net")).token(&token).send().await.refused(403);
        assert!(!words.contains(NEEDS), "{words}");
    }
}

#[tokio::test]
async fn a_forbidden_write_is_refused_unread_and_not_kept() {
    let app = TestApp::memory().await;
    state(&app).await;
    let plan = app.scoped_token(Role::Plan).await;
    for path in [format!("/tfstate/{STATE}?ID=run"), format!("/tfstate/{ORG}/net?ID=run")] {
        let mut socket = TcpStream::connect(app.url.trim_start_matches("http://")).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: statewright\r\nAuthorization: Bearer {plan}\r\nContent-Length: 1000000\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        // No byte of the body was sent, and the server waits for none.
        socket.read_exact(&mut status).await.unwrap();
        assert_eq!(&status[9..], b"403");
    }
    app.post(&format!("/tfstate/{STATE}?ID=run"), &text(2, &["b"])).token(&plan).send().await.refused(403);
    let rejected = app.get(&format!("/api/tfstates/{STATE}/rejected")).send().await.expect(200);
    assert_eq!(rejected["rejected"], json!([]));
    assert_eq!(app.get(&format!("/tfstate/{STATE}")).send().await.expect(200), text(1, &["a"]));
}

#[tokio::test]
async fn plan_previews_apply_writes_and_member_ends_others_updates() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let plan = app.member_with_role(Role::Plan, "pat", "ci").await;
    let apply = app.member_with_role(Role::Apply, "ann", "ci").await;
    let member = app.member("mia", "laptop").await;

    let refused = stack.begin_call("update", false).token(&plan).send().await.refused(403);
    let way = format!("statewright org grant add {ORG} user:pat {}/dev apply", stack.project);
    assert!(refused.contains("an update other than a preview") && refused.contains(&way), "{refused}");
    for kind in ["update", "refresh", "destroy"] {
        stack.post(&format!("/{kind}"), &program(false)).token(&plan).send().await.refused(403);
        stack.begin_call(kind, false).token(&plan).send().await.refused(403);
    }
    // An update that another user created is not started either.
    let created = stack.created().await;
    app.post(&created.path, &json!({})).token(&plan).send().await.refused(403);
    // A preview is, in both ways, to its end; and it belongs to its user.
    let preview = stack.begun(stack.begin_call("update", true).token(&plan)).await;
    preview.event(1).await.expect(204);
    preview.complete("succeeded").await.expect(204);
    let answer = stack.post("/preview", &program(true)).token(&plan).send().await.expect(200);
    let started = format!("{}/preview/{}", stack.path, answer["updateID"].as_str().unwrap());
    app.post(&started, &json!({})).token(&plan).send().await.expect(200);
    app.post(&format!("{started}/cancel"), &json!({})).token(&plan).send().await.expect(204);

    // A member ends another user's update.
    let run = stack.begun(stack.begin_call("update", false).token(&apply)).await;
    run.append(&[stack.made(1, "a")]).await.expect(204);
    let cancel = format!("{}/cancel", run.path);
    let other = app.member_with_role(Role::Apply, "abe", "ci").await;
    for token in [&plan, &other] {
        let refused = app.post(&cancel, &json!({})).token(token).send().await.refused(403);
        assert!(refused.contains("another user's update needs the role member"), "{refused}");
    }
    assert_eq!(run.status().await, "running");
    app.post(&cancel, &json!({})).token(&member).send().await.expect(204);
    // Its creator ends it too.
    let run = stack.begun(stack.begin_call("update", false).token(&apply)).await;
    let cancel = format!("{}/cancel", run.path);
    app.post(&cancel, &json!({})).token(&apply).send().await.expect(204);
    assert_eq!(stack.resources().await, ["a"]);
}

async fn unlock(app: &TestApp, token: &str, body: Option<&Value>) -> Answer {
    let call = app.request(verb("UNLOCK"), &format!("/tfstate/{STATE}")).token(token);
    match body {
        Some(body) => call.json(body),
        None => call,
    }
    .send()
    .await
}

#[tokio::test]
async fn a_lock_is_released_by_its_user_and_broken_by_members() {
    let app = TestApp::memory().await;
    state(&app).await;
    let owner = app.member_with_role(Role::Apply, "ann", "ci").await;
    let apply = app.member_with_role(Role::Apply, "abe", "ci").await;
    let plan = app.member_with_role(Role::Plan, "pat", "ci").await;
    let member = app.member("mia", "laptop").await;
    let take = async |token: &str, operation: &str| {
        let call = app.request(verb("LOCK"), &format!("/tfstate/{STATE}")).token(token);
        call.json(&info("run", operation)).send().await.expect(200);
    };
    let held = async || {
        let lock = app.get(&format!("/api/tfstates/{STATE}/lock")).send().await.expect(200);
        !lock.is_null()
    };
    let ours = info("run", "OperationTypeApply");
    for body in [Some(&ours), None] {
        take(&owner, "OperationTypeApply").await;
        for token in [&apply, &plan] {
            let refused = unlock(&app, token, body).await.refused(403);
            assert!(refused.contains("breaking the lock of another user needs the role member"), "{refused}");
            // And with the other request for it.
            let lock = format!("/api/tfstates/{STATE}/lock");
            app.request(Method::DELETE, &lock).token(token).send().await.refused(403);
        }
        assert!(held().await);
        // The ID of another lock gets another answer, as for everyone.
        unlock(&app, &plan, Some(&info("other", ""))).await.refused(409);
        unlock(&app, &owner, body).await.expect(200);
        assert!(!held().await);
        unlock(&app, &owner, body).await.expect(200);

        take(&owner, "OperationTypeApply").await;
        app.take_audit();
        unlock(&app, &member, body).await.expect(200);
        let record = app.take_audit().pop().unwrap();
        let forced = record["detail"].as_str().unwrap().starts_with("forced: ");
        assert_eq!(forced, body.is_none(), "{record}");
        assert!(record["detail"].as_str().unwrap().contains("of ann"), "{record}");
        assert!(!held().await);
    }
    // A lock that was taken by hand belongs to a member.
    let lock = format!("/api/tfstates/{STATE}/lock");
    app.post(&lock, &json!({ "reason": "maintenance" })).token(&apply).send().await.refused(403);
    app.post(&lock, &json!({ "reason": "maintenance" })).token(&member).send().await.expect(200);
    unlock(&app, &apply, None).await.refused(403);
    app.request(Method::DELETE, &lock).send().await.expect(204);
}

/// A token that leaks from where plans are made must not break what the same user applies with another one.
#[tokio::test]
async fn a_token_that_may_plan_breaks_no_apply_of_its_own_user() {
    let app = TestApp::memory().await;
    state(&app).await;
    let plan = app.scoped_token(Role::Plan).await;
    let take = async |token: &str, operation: &str| {
        let call = app.request(verb("LOCK"), &format!("/tfstate/{STATE}")).token(token);
        call.json(&info("run", operation)).send().await
    };
    take(&app.token, "OperationTypeApply").await.expect(200);
    for body in [Some(info("run", "")), None] {
        unlock(&app, &plan, body.as_ref()).await.refused(403);
    }
    unlock(&app, &app.token, Some(&info("run", ""))).await.expect(200);
    take(&app.token, "OperationTypePlan").await.expect(200);
    unlock(&app, &plan, Some(&info("run", ""))).await.expect(200);
    // A user with a lowered role releases what they took with the same token.
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    take(&ann, "OperationTypeApply").await.expect(200);
    orgs::set_role(&app.context, &org(ORG), &login("ann"), Role::Plan).await.unwrap();
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
    unlock(&app, &ann, Some(&info("run", ""))).await.expect(200);
}

#[tokio::test]
async fn a_lock_for_a_write_is_refused_at_once_to_plan() {
    let app = TestApp::memory().await;
    state(&app).await;
    for plan in [app.scoped_token(Role::Plan).await, app.member_with_role(Role::Plan, "pat", "ci").await] {
        for method in ["LOCK", "POST", "PUT"] {
            let path = match method {
                "LOCK" => format!("/tfstate/{STATE}"),
                _ => format!("/tfstate/{STATE}/lock"),
            };
            let take = async |operation: &str| {
                let call = app.request(verb(method), &path).token(&plan);
                call.json(&info("run", operation)).send().await
            };
            for operation in ["OperationTypePlan", "OperationTypeInvalid", "migration source state"] {
                take(operation).await.expect(200);
                unlock(&app, &plan, Some(&info("run", operation))).await.expect(200);
            }
            for operation in [
                "OperationTypeApply",
                "OperationTypeRefresh",
                "state-mv",
                "state-rm",
                "state-push",
                "taint",
                "untaint",
                "migration destination state",
                "",
                "something new",
            ] {
                let answer = take(operation).await;
                let words = answer.refused(423);
                assert!(words.contains("a lock for a run that may write needs the role apply"), "{words}");
                // Clients show this text where they show the holder of a lock, and there is no holder.
                let id = answer.value()["ID"].as_str().unwrap().to_owned();
                assert!(id.starts_with("none, but ") && id.contains("statewright "), "{id}");
                assert_eq!(answer.value()["principal"], "");
            }
            let lock = app.get(&format!("/api/tfstates/{STATE}/lock")).send().await.expect(200);
            assert_eq!(lock, Value::Null);
        }
    }
}

#[tokio::test]
async fn a_plan_token_creates_no_state_by_a_lock() {
    let app = TestApp::memory().await;
    let plan = app.scoped_token(Role::Plan).await;
    let path = format!("/tfstate/{ORG}/new");
    let lock = app.request(verb("LOCK"), &path).token(&plan).json(&info("run", "OperationTypePlan"));
    let words = lock.send().await.refused(423);
    assert!(words.contains("creating a state needs the role apply"), "{words}");
    assert_eq!(app.get(&path).token(&plan).send().await.status, 204);
    let listed = app.get(&format!("/api/orgs/{ORG}/tfstates")).send().await.expect(200);
    assert_eq!(listed["states"], json!([]));
    let apply = app.scoped_token(Role::Apply).await;
    let lock = app.request(verb("LOCK"), &path).token(&apply).json(&info("run", "OperationTypeApply"));
    lock.send().await.expect(200);
}

#[tokio::test]
async fn labels_need_apply_and_names_and_policies_need_member() {
    let app = TestApp::memory().await;
    state(&app).await;
    let apply = app.scoped_token(Role::Apply).await;
    let edit = async |token: &str, body: Value| {
        app.patch(&format!("/api/tfstates/{STATE}"), &body).token(token).send().await
    };
    edit(&apply, json!({ "labels": { "env": "dev" } })).await.expect(200);
    for body in [
        json!({ "state": "other" }),
        json!({ "policy": { "deleteAllowed": true } }),
        json!({ "labels": { "env": "prod" }, "state": "other" }),
    ] {
        let words = edit(&apply, body.clone()).await.refused(403);
        assert!(words.contains("another name or policy of a state needs the role member"), "{words}");
    }
    let new = json!({ "project": "new", "policy": { "deleteAllowed": true } });
    let create = app.post(&format!("/api/orgs/{ORG}/tfstates"), &new).token(&apply);
    let words = create.send().await.refused(403);
    assert!(words.contains("a policy for a new state needs the role member"), "{words}");
    let shown = app.get(&format!("/api/tfstates/{STATE}")).send().await.expect(200);
    assert_eq!((&shown["labels"], &shown["state"]), (&json!({ "env": "dev" }), &json!("default")));
    edit(&app.scoped_token(Role::Member).await, json!({ "state": "other" })).await.expect(200);
}

#[tokio::test]
async fn outputs_are_seen_without_the_state_secret_ones_too() {
    let app = TestApp::memory().await;
    state(&app).await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let outputs = app.member_with_role(Role::Outputs, "olga", "ci").await;
    let get = async |path: &str| app.get(path).token(&outputs).send().await;
    for path in [format!("/tfstate/{STATE}"), format!("/tfstate/{ORG}/net"), format!("{}/export", stack.path)]
    {
        get(&path).await.refused(403);
    }
    let document = get(&format!("/tfstate/{STATE}/outputs")).await.expect(200);
    assert_eq!(document["outputs"]["password"]["value"], "hunter2");
    assert_eq!(document["resources"], json!([]));
    get(&format!("/api/tfstates/{STATE}/outputs")).await.expect(200);
    get(&format!("/api/orgs/{ORG}/outputs/tfstate/net/default")).await.expect(200);
    let listed = get(&format!("/api/orgs/{ORG}/outputs")).await.expect(200);
    assert_eq!(listed["sources"].as_array().unwrap().len(), 1);
    get(&format!("{}/outputs", stack.path)).await.expect(200);
    get(&stack.path).await.expect(200);
    // A secret of a stack is shown there as ciphertext, and opening it needs a higher role.
    let secret = json!({ "ciphertext": "AAAA" });
    stack.post("/decrypt", &secret).token(&outputs).send().await.refused(403);
    // The holder of a lock is not an output.
    get(&format!("/api/tfstates/{STATE}/lock")).await.refused(403);
    app.request(verb("LOCK"), &format!("/tfstate/{STATE}"))
        .token(&outputs)
        .json(&info("run", "OperationTypePlan"))
        .send()
        .await
        .refused(403);
}

/// A stack moves only where its mover has the role.
#[tokio::test]
async fn a_viewer_sees_the_names_of_properties_without_their_values() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let with_config = async |dry_run: bool| {
        let mut body = begin_body("update", dry_run);
        body["program"]["config"] = json!({ "shop:size": { "string": "large", "secret": false } });
        stack.begun(stack.post("/begin-update", &body)).await
    };
    let run = with_config(false).await;
    let new = json!({ "type": "t", "inputs": { "shop:size": "large" }, "outputs": { "url": ["large"] } });
    let metadata = json!({ "op": "create", "urn": "u", "type": "t", "old": null, "new": new });
    let events = json!({ "events": [
        { "sequence": 0, "timestamp": 1, "preludeEvent": { "config": { "shop:size": "large" } } },
        { "sequence": 1, "timestamp": 1, "resOutputsEvent": { "metadata": metadata } },
    ] });
    let path = format!("{}/events", run.path);
    app.post(&format!("{path}/batch"), &events).update_token(&run.token).send().await.expect(204);
    run.complete("succeeded").await.expect(204);
    let preview = with_config(true).await;
    preview.complete("succeeded").await.expect(204);
    let viewer = app.member_with_role(Role::View, "vera", "laptop").await;
    let planner = app.member_with_role(Role::Plan, "paul", "laptop").await;
    let updates = format!("{}/updates", stack.path);
    for path in [
        path,
        updates.clone(),
        format!("{updates}?output-type=service"),
        format!("{updates}/1"),
        format!("{updates}/{}", run.id),
        format!("{updates}/{}", preview.id),
        format!("{}/previews", stack.path),
        format!("{updates}/latest/previews"),
        format!("{updates}/latest/timeline"),
    ] {
        for (token, sees) in [(&viewer, false), (&planner, true)] {
            let answer = app.get(&path).token(token).send().await;
            let text = answer.expect(200).to_string();
            assert!(text.contains("shop:size"), "{path}: {text}");
            assert_eq!((text.contains("large"), text.contains("[masked]")), (sees, !sees), "{path}: {text}");
        }
    }
}

#[tokio::test]
async fn a_transfer_needs_the_role_in_both_organizations() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let mia = app.member("mia", "laptop").await;
    orgs::create(&app.context, &org("beta"), &[]).await.unwrap();
    orgs::add_member(&app.context, &org("beta"), &login("mia"), Role::Apply).await.unwrap();
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
    let transfer = async || stack.post("/transfer", &json!({ "toOrg": "beta" })).token(&mia).send().await;
    let words = transfer().await.refused(403);
    assert!(words.contains("needs the role member in beta"), "{words}");
    orgs::set_role(&app.context, &org("beta"), &login("mia"), Role::Member).await.unwrap();
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
    transfer().await.expect(200);
    let moved = format!("/api/stacks/beta/{}/dev", stack.project);
    app.get(&moved).token(&mia).send().await.expect(200);
    // The former name opens the secrets of old versions for users with access under both names.
    orgs::set_role(&app.context, &org("beta"), &login("mia"), Role::Outputs).await.unwrap();
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
    let plain = json!({ "plaintext": "AAAA" });
    stack.post("/encrypt", &plain).token(&mia).send().await.refused(403);
}

#[tokio::test]
async fn a_role_is_kept_in_both_places_and_known_within_a_minute() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let bob = app.member("bob", "laptop").await;
    stack.get("/export").token(&bob).send().await.expect(200);
    let both = async || {
        let listed = orgs::members(&app.context, &org(ORG)).await.unwrap();
        let listed = listed.into_iter().find(|(member, _)| member.as_str() == "bob").map(|(_, role)| role);
        let item = app.context.ledger.get(&User::key(&login("bob"))).await.unwrap().unwrap();
        (listed, User::decode(&item.value).unwrap().role_in(&org(ORG)))
    };
    for role in [Role::Outputs, Role::Admin, Role::Plan, Role::Member, Role::Apply] {
        let set = async || orgs::set_role(&app.context, &org(ORG), &login("bob"), role).await.unwrap();
        assert!(set().await.changed, "{role}");
        assert!(!set().await.changed, "{role}");
        assert_eq!(both().await, (Some(role), Some(role)));
    }
    // Adding an existing member changes nothing.
    let added = orgs::add_member(&app.context, &org(ORG), &login("bob"), Role::Admin).await.unwrap();
    assert_eq!(added, orgs::Membership { role: Role::Apply, changed: false });
    orgs::remove_member(&app.context, &org(ORG), &login("bob")).await.unwrap();
    assert_eq!(both().await, (None, None));
    let refused = orgs::set_role(&app.context, &org(ORG), &login("bob"), Role::Plan).await.unwrap_err();
    assert!(refused.to_string().contains("org member add acme bob --role plan"), "{refused}");
    // What was deleted with the membership does not return with it.
    orgs::add_member(&app.context, &org(ORG), &login("bob"), Role::Member).await.unwrap();
    assert_eq!(both().await, (Some(Role::Member), Some(Role::Member)));
    orgs::set_role(&app.context, &org(ORG), &login("bob"), Role::Outputs).await.unwrap();
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
    stack.get("/export").token(&bob).send().await.refused(403);
}

/// In a store from before there were roles, its creator is an admin in one place and a plain member in the other.
#[tokio::test]
async fn members_of_an_older_store_stay_what_they_were() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let old = format!(r#"{{"login":"{USER}","created":0,"orgs":["{ORG}"]}}"#);
    let mut bytes = vec![1];
    bytes.extend_from_slice(&u32::try_from(old.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(old.as_bytes());
    let ctx = &app.context;
    let write = put_bytes(User::key(&login(USER)), Expect::Any, ctx.ids.revision(), bytes.into());
    ctx.ledger.commit(vec![write]).await.unwrap();
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
    stack.publish(&["a"]).await;
    app.request(Method::DELETE, &format!("{}?force=true", stack.path)).send().await.expect(204);
    // And can be lowered in both.
    let item = ctx.ledger.get(&Member::key(&org(ORG), &login(USER))).await.unwrap().unwrap();
    assert_eq!(Member::decode(&item.value).unwrap().role, Role::Admin);
    assert!(orgs::set_role(ctx, &org(ORG), &login(USER), Role::Member).await.unwrap().changed);
    assert_eq!(orgs::members(ctx, &org(ORG)).await.unwrap(), [(login(USER), Role::Member)]);
}

#[tokio::test]
async fn the_document_has_the_role_of_each_route() {
    let app = TestApp::memory().await;
    let document = app.get("/api/openapi").send().await.expect(200);
    for route in ROUTES {
        let operation =
            &document["paths"][route.path_in_document()][route.method.as_str().to_ascii_lowercase()];
        assert_eq!(
            operation["x-statewright-role"],
            json!(route.needs.map(|needs| needs.to_string())),
            "{route:?}"
        );
    }
}

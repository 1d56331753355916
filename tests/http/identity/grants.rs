//! Grants: each role on each scope, what is reached and what is not, and who may give it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::{Calls, MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds};
use statewright_shared::api::routes::ROUTES;
use statewright_shared::cache::REMEMBERED_FOR;
use statewright_shared::domain::access::RANGES_MAX;
use statewright_shared::domain::ids::StackId;
use statewright_shared::domain::names::{Login, OrgName, StackAddress};
use statewright_shared::domain::role::{Right, Role};
use statewright_shared::layout::{OrgAccess, StackEntry, put};
use statewright_shared::ports::{
    CommitError, Expect, Ids, Item, ItemKey, Ledger, Page, PortError, Query, Write,
};
use statewright_shared::services::identity::orgs;
use statewright_shared::services::stacks::LIST_PAGE;
use statewright_tests::app::{Answer, ORG, TestApp, USER};

use crate::api::call_counts::counted;
use crate::api::routes::STATE;
use crate::states::lifecycle::text;
use crate::world::{Stack, begin_body, program};

async fn give(app: &TestApp, token: &str, to: &str, on: &str, role: &str) -> Answer {
    let grant = json!({ "to": to, "on": on, "role": role });
    app.post(&format!("/api/orgs/{ORG}/grants"), &grant).token(token).send().await
}

async fn take(app: &TestApp, token: &str, to: &str, on: &str, role: &str) -> Answer {
    let path = format!("/api/orgs/{ORG}/grants?to={to}&on={}&role={role}", on.replace('=', "%3D"));
    app.request(Method::DELETE, &path).token(token).send().await
}

/// A stack, a state and an environment, all named `web/dev` and, where they can be, tagged `tier=one`.
async fn units(app: &TestApp) {
    let stack = json!({ "stackName": "dev", "tags": { "tier": "one" } });
    app.post(&format!("/api/stacks/{ORG}/web"), &stack).send().await.expect(200);
    let state = json!({ "id": STATE, "project": "web", "state": "dev", "labels": { "tier": "one" } });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &state).send().await.expect(200);
    app.post(&format!("/tfstate/{STATE}"), &text(1, &["a"])).send().await.expect(200);
    let environment = json!({ "project": "web", "name": "dev" });
    app.post(&format!("/api/esc/environments/{ORG}"), &environment).send().await.expect(204);
}

/// Reads of the three, by the operation of their rows. Those of the last kind have no tags that a grant can name.
fn reads() -> Vec<(String, &'static str, bool)> {
    let stack = format!("/api/stacks/{ORG}/web/dev");
    let environment = format!("/api/esc/environments/{ORG}/web/dev");
    vec![
        (stack.clone(), "GetStack", true),
        (format!("{stack}/updates"), "GetStackUpdates", true),
        (format!("{stack}/outputs"), "GetStackOutputs", true),
        (format!("{stack}/export"), "ExportStack", true),
        (format!("/api/tfstates/{STATE}"), "GetState", true),
        (format!("/api/tfstates/{STATE}/outputs"), "GetStateOutputs", true),
        (format!("/api/tfstates/{STATE}/resources"), "ListStateResources", true),
        (format!("/api/tfstates/{STATE}/versions/1/text"), "GetStateText", true),
        (environment.clone(), "ReadEnvironment_esc_environments", false),
        (format!("{environment}/decrypt"), "DecryptEnvironment_esc_environments", false),
    ]
}

fn needs(operation: &str) -> Right {
    let route = ROUTES.iter().find(|route| route.operation == operation).unwrap();
    route.needs.unwrap()
}

#[tokio::test]
async fn each_role_counts_on_each_scope_and_nowhere_else() {
    let app = TestApp::memory().await;
    units(&app).await;
    let none = app.member_with_role(Role::None, "bob", "ci").await;
    let mut checked = 0;
    for on in
        ["*", "web/*", "*/dev", "w*b/d*", "web/dev", "tag:tier=one", "net/*", "web/prod", "tag:tier=two"]
    {
        let (is_tag, is_other) =
            (on.starts_with("tag:"), ["net/*", "web/prod", "tag:tier=two"].contains(&on));
        // The trail is of the whole organization.
        let is_there = |role: &Role| *role != Role::None && (*role != Role::Auditor || on == "*");
        for role in Role::ALL.into_iter().filter(is_there) {
            give(&app, &app.token, "user:bob", on, role.as_str()).await.expect(200);
            for (path, operation, has_tags) in reads() {
                let what = format!("{operation} with {role} on {on}");
                let answer = app.get(&path).token(&none).send().await;
                let is_reached = !is_other && (has_tags || !is_tag);
                let expected = match is_reached {
                    true if role.gives(needs(operation)) => 200,
                    true => 403,
                    // The caller may do nothing of the kind anywhere, which reveals nothing.
                    false if !role.gives(needs(operation)) => 403,
                    false => 404,
                };
                assert_eq!(answer.status.as_u16(), expected, "{what}: {}", answer.text());
                checked += 1;
            }
            take(&app, &app.token, "user:bob", on, role.as_str()).await.expect(204);
        }
    }
    assert!(checked > 400, "{checked}");
    for (path, operation, _) in reads() {
        let answer = app.get(&path).token(&none).send().await;
        assert!([403, 404].contains(&answer.status.as_u16()), "{operation}: {}", answer.text());
    }
}

#[tokio::test]
async fn what_a_grant_does_not_reach_answers_like_what_is_missing() {
    let app = TestApp::memory().await;
    units(&app).await;
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    give(&app, &app.token, "user:bob", "net/*", "member").await.expect(200);
    for (there, missing) in [
        (format!("/api/stacks/{ORG}/web/dev"), format!("/api/stacks/{ORG}/web/sin")),
        (format!("/api/esc/environments/{ORG}/web/dev"), format!("/api/esc/environments/{ORG}/web/sin")),
        (format!("/api/orgs/{ORG}/tfstates/web/dev"), format!("/api/orgs/{ORG}/tfstates/web/sin")),
    ] {
        let one = app.get(&there).token(&bob).send().await.refused(404);
        let other = app.get(&missing).token(&bob).send().await.refused(404);
        assert_eq!(one.replace("dev", "sin"), other);
    }
}

async fn names(app: &TestApp, token: &str) -> Vec<String> {
    let (mut found, mut next) = (Vec::new(), String::new());
    loop {
        let page = app.get(&format!("/api/user/stacks?continuationToken={next}")).token(token).send().await;
        let page = page.expect(200);
        let name =
            |stack: &Value| format!("{}/{}", stack["projectName"], stack["stackName"]).replace('"', "");
        found.extend(page["stacks"].as_array().unwrap().iter().map(name));
        match page["continuationToken"].as_str() {
            Some(token) => token.clone_into(&mut next),
            None => return found,
        }
    }
}

#[tokio::test]
async fn a_list_shows_what_grants_reach() {
    let app = TestApp::memory().await;
    for (project, stack) in [("web", "dev"), ("web", "prod"), ("net", "prod")] {
        let body = json!({ "stackName": stack });
        app.post(&format!("/api/stacks/{ORG}/{project}"), &body).send().await.expect(200);
    }
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    app.get("/api/user/stacks").token(&bob).send().await.refused(403);
    give(&app, &app.token, "user:bob", "web/*", "view").await.expect(200);
    assert_eq!(names(&app, &bob).await, ["web/dev", "web/prod"]);
    give(&app, &app.token, "everybody", "*/prod", "outputs").await.expect(200);
    assert_eq!(names(&app, &bob).await, ["net/prod", "web/dev", "web/prod"]);
    take(&app, &app.token, "user:bob", "web/*", "view").await.expect(204);
    assert_eq!(names(&app, &bob).await, ["net/prod", "web/prod"]);
    assert_eq!(names(&app, &app.token).await.len(), 3);
}

/// The write of what lists show of a new stack.
fn listed_stack(ids: &Arc<dyn Ids>, project: &str, name: &str) -> Write {
    let address = StackAddress::parse(ORG, project, name).unwrap();
    let entry = StackEntry {
        id: StackId::new(ids.uuid()),
        tags: BTreeMap::new(),
        last_update: None,
        resource_count: None,
        is_updating: false,
        is_held: false,
        newest: None,
        references: Vec::new(),
    };
    put(StackEntry::key(&address), Expect::Absent, ids.revision(), &entry)
}

#[tokio::test]
async fn a_list_reads_only_the_names_that_grants_reach() {
    let (app, counter) = counted().await;
    let projects = ["aaa", "net", "web", "zzz"];
    for (project, count) in projects.into_iter().zip([LIST_PAGE + 1, LIST_PAGE - 1, 3, 1]) {
        let entries: Vec<Write> = (0..count)
            .map(|number| listed_stack(&app.context.ids, project, &format!("s{number:03}")))
            .collect();
        for some in entries.chunks(100) {
            app.context.ledger.commit(some.to_vec()).await.unwrap();
        }
    }
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    let read = async |grants: &[&str]| {
        for on in grants {
            give(&app, &app.token, "user:bob", on, "view").await.expect(200);
        }
        app.advance(REMEMBERED_FOR + Duration::from_secs(1));
        names(&app, &bob).await;
        counter.take();
        let found = names(&app, &bob).await;
        let Calls { ledger_gets, ledger_queries, .. } = counter.take();
        for on in grants {
            take(&app, &app.token, "user:bob", on, "view").await.expect(204);
        }
        (found, (ledger_gets, ledger_queries))
    };

    let (found, calls) = read(&["web/*"]).await;
    assert_eq!(found, ["web/s000", "web/s001", "web/s002"]);
    assert_eq!(calls, (0, 1), "nothing of other projects");
    let (found, calls) = read(&["web/s001", "web/s00", "zzz/*"]).await;
    assert_eq!(found, ["web/s001", "zzz/s000"], "a name is not a prefix of others");
    assert_eq!(calls, (2, 1));
    // The first page ends within a range, the second one goes on there.
    let (found, calls) = read(&["net/*", "web/*", "zzz/s000"]).await;
    let expected = (0..LIST_PAGE - 1).map(|number| format!("net/s{number:03}"));
    let expected = expected.chain((0..3).map(|number| format!("web/s00{number}")));
    assert_eq!(found, expected.chain(["zzz/s000".to_owned()]).collect::<Vec<_>>());
    assert_eq!(calls, (1, 3));
    // Too many ranges: everything is read, and the same is shown.
    let many: Vec<String> = (0..=RANGES_MAX).map(|number| format!("net/s00{number}")).collect();
    let (found, calls) = read(&many.iter().map(String::as_str).collect::<Vec<_>>()).await;
    assert_eq!((found, calls), (many, (0, 3)));
}

#[tokio::test]
async fn lists_of_states_and_environments_read_what_grants_reach() {
    let (app, counter) = counted().await;
    units(&app).await;
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    let environments = format!("/api/esc/environments/{ORG}");
    let states = format!("/api/orgs/{ORG}/tfstates");
    for (on, is_reached) in [("web/*", true), ("web/dev", true), ("web/d", false), ("net/*", false)] {
        give(&app, &app.token, "user:bob", on, "view").await.expect(200);
        for (list, member) in [(&environments, "environments"), (&states, "states")] {
            app.get(list).token(&bob).send().await.expect(200);
            counter.take();
            let page = app.get(list).token(&bob).send().await.expect(200);
            let (calls, found) = (counter.take(), page[member].as_array().unwrap().len());
            assert_eq!(found, usize::from(is_reached), "{list} with {on}: {page}");
            assert_eq!(calls.ledger_gets + calls.ledger_queries, 1, "{list} with {on}");
        }
        take(&app, &app.token, "user:bob", on, "view").await.expect(204);
    }
}

/// As on functions, where the one that changes teams and grants is not the one that asks for rights.
#[tokio::test]
async fn another_process_applies_grants_within_a_minute() {
    let app = TestApp::memory().await;
    units(&app).await;
    let other = app.another_process("other").await;
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    // Of read, head, secrets, tfstate and environments.
    let may = async || {
        let stack = format!("/api/stacks/{ORG}/web/dev");
        let mut all = Vec::new();
        for call in [
            other.get(&stack),
            other.patch(&format!("{stack}/tags"), &json!({ "owner": "web" })),
            other.post(&format!("{stack}/encrypt"), &json!({ "plaintext": "eA==" })),
            other.get(&format!("/tfstate/{STATE}")),
            other.get(&format!("/api/esc/environments/{ORG}/web/dev")),
        ] {
            all.push(call.token(&bob).send().await.status.is_success());
        }
        all
    };
    let a_minute_later = || app.advance(REMEMBERED_FOR + Duration::from_secs(1));
    assert_eq!(may().await, [false; 5]);
    give(&app, &app.token, "user:bob", "web/*", "apply").await.expect(200);
    a_minute_later();
    assert_eq!(may().await, [true; 5]);
    take(&app, &app.token, "user:bob", "web/*", "apply").await.expect(204);
    a_minute_later();
    assert_eq!(may().await, [false; 5]);

    let teams = format!("/api/orgs/{ORG}/teams");
    let new = json!({ "name": "web", "displayName": "", "description": "", "teamType": "pulumi" });
    app.post(&format!("{teams}/pulumi"), &new).send().await.expect(201);
    give(&app, &app.token, "team:web", "web/*", "apply").await.expect(200);
    for (action, expected) in [("add", true), ("remove", false)] {
        let change = json!({ "memberAction": action, "member": "bob" });
        app.patch(&format!("{teams}/web"), &change).send().await.expect(204);
        a_minute_later();
        assert_eq!(may().await, [expected; 5], "{action}");
    }
}

#[tokio::test]
async fn an_organization_without_any_right_hides_no_other() {
    let app = TestApp::memory().await;
    units(&app).await;
    let bob = app.member_with_role(Role::View, "bob", "ci").await;
    let (login, first) = (Login::parse("bob").unwrap(), OrgName::parse("aaa").unwrap());
    orgs::create(&app.context, &first, &[]).await.unwrap();
    orgs::add_member(&app.context, &first, &login, Role::None).await.unwrap();
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
    assert_eq!(names(&app, &bob).await, ["web/dev"]);
    app.get("/api/user/stacks?organization=aaa").token(&bob).send().await.refused(403);
    let page = app.get("/api/esc/environments").token(&bob).send().await.expect(200);
    assert_eq!(page["environments"], json!([]));
    let next = page["nextToken"].as_str().unwrap();
    let page = app.get(&format!("/api/esc/environments?continuationToken={next}")).token(&bob).send().await;
    assert_eq!(page.expect(200)["environments"][0]["name"], "dev");
    app.get("/api/esc/environments/aaa").token(&bob).send().await.refused(403);
}

#[tokio::test]
async fn no_environment_is_made_or_found_where_no_grant_reaches() {
    let app = TestApp::memory().await;
    units(&app).await;
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    give(&app, &app.token, "user:bob", "web/*", "apply").await.expect(200);
    let environments = format!("/api/esc/environments/{ORG}");
    app.post(&environments, &json!({ "project": "net", "name": "xkept" })).send().await.expect(204);
    // A name that exists and one that does not get the same answer.
    let clone = async |project: &str, name: &str| {
        let body = json!({ "project": project, "name": name });
        app.post(&format!("{environments}/web/dev/clone"), &body).token(&bob).send().await
    };
    let create = async |environment: &str| {
        let body = json!({ "stackName": "two", "config": { "environment": environment } });
        app.post(&format!("/api/stacks/{ORG}/web"), &body).token(&bob).send().await
    };
    let set = async |environment: &str| {
        let path = format!("/api/stacks/{ORG}/web/dev/config");
        let body = json!({ "environment": environment });
        app.request(Method::PUT, &path).json(&body).token(&bob).send().await
    };
    for (status, there, missing) in [
        (403, clone("net", "xkept").await, clone("net", "xgone").await),
        (403, create("net/xkept").await, create("net/xgone").await),
        (404, set("net/xkept").await, set("net/xgone").await),
    ] {
        assert_eq!(there.refused(status).replace("xkept", "xgone"), missing.refused(status));
    }
    app.get(&format!("{environments}/net/xgone")).send().await.refused(404);
    clone("web", "copy").await.expect(204);
    set("web/copy").await.expect(200);
    create("web/two").await.expect(200);
    let made = app.get(&format!("{environments}/web/two")).token(&bob).send().await;
    assert_eq!(made.status, 200, "{}", made.text());
}

#[tokio::test]
async fn a_grant_on_one_name_follows_a_rename_and_patterns_do_not() {
    let app = TestApp::memory().await;
    let stack = Stack::in_project(&app, "web").await;
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    give(&app, &app.token, "user:bob", "web/dev", "view").await.expect(200);
    stack.post("/rename", &json!({ "newName": "prod" })).send().await.expect(200);
    assert_eq!(names(&app, &bob).await, ["web/prod"]);
    let grants = app.get(&format!("/api/orgs/{ORG}/grants")).send().await.expect(200);
    assert_eq!(grants["grants"], json!([{ "to": "user:bob", "on": "web/prod", "role": "view" }]));
    take(&app, &app.token, "user:bob", "web/prod", "view").await.expect(204);
    give(&app, &app.token, "user:bob", "web/p*", "view").await.expect(200);
    let path = format!("/api/stacks/{ORG}/web/prod/rename");
    app.post(&path, &json!({ "newName": "dev" })).send().await.expect(200);
    assert_eq!(names(&app, &bob).await, [""; 0]);
}

/// Creates a stack, a state or an environment, and returns its path.
async fn make(app: &TestApp, kind: &str, project: &str, name: &str) -> String {
    let (list, body) = match kind {
        "stack" => (format!("/api/stacks/{ORG}/{project}"), json!({ "stackName": name })),
        "state" => (format!("/api/orgs/{ORG}/tfstates"), json!({ "project": project, "state": name })),
        _ => (format!("/api/esc/environments/{ORG}"), json!({ "project": project, "name": name })),
    };
    let made = app.post(&list, &body).send().await;
    assert!(made.status.is_success(), "{kind} {project}/{name}: {}", made.text());
    match kind {
        "stack" => format!("{list}/{name}"),
        "state" => format!("/api/tfstates/{}", made.value()["id"].as_str().unwrap()),
        _ => format!("{list}/{project}/{name}"),
    }
}

/// Asks for a new name of a stack or a state.
async fn rename(app: &TestApp, token: &str, path: &str, project: &str, name: &str) -> Answer {
    match path.starts_with("/api/stacks/") {
        true => {
            let body = json!({ "newProject": project, "newName": name });
            app.post(&format!("{path}/rename"), &body).token(token).send().await
        }
        false => app.patch(path, &json!({ "project": project, "state": name })).token(token).send().await,
    }
}

/// The grants of the organization, each as `who on role`.
async fn all_grants(app: &TestApp) -> BTreeSet<String> {
    let all = app.get(&format!("/api/orgs/{ORG}/grants")).send().await.expect(200);
    let text = |grant: &Value| format!("{} {} {}", grant["to"], grant["on"], grant["role"]).replace('"', "");
    all["grants"].as_array().unwrap().iter().map(text).collect()
}

fn set<const N: usize>(texts: [&str; N]) -> BTreeSet<String> {
    texts.into_iter().map(str::to_owned).collect()
}

/// What the trail says of the last event of this kind.
async fn last_in_trail(app: &TestApp, event: &str) -> String {
    let path = format!("/api/orgs/{ORG}/auditlogs/v2?eventFilter={event}");
    let page = app.get(&path).send().await.expect(200);
    page["auditLogEvents"][0]["description"].as_str().unwrap_or_else(|| panic!("{page}")).to_owned()
}

/// Lena is an admin of what she has, by its name. She names it like something else.
#[tokio::test]
async fn a_rename_takes_no_grant_to_a_state_of_others() {
    for (own, other) in
        [("stack", "state"), ("state", "stack"), ("stack", "environment"), ("state", "environment")]
    {
        let app = TestApp::memory().await;
        let lena = app.member("lena", "laptop").await;
        app.member_with_role(Role::None, "bob", "ci").await;
        let (here, there) = (make(&app, own, "web", "dev").await, make(&app, other, "net", "prod").await);
        let protection = format!("{there}/protection");
        if other != "environment" {
            let reason = json!({ "reason": "it is production" });
            app.request(Method::PUT, &protection).json(&reason).send().await.expect(200);
        }
        give(&app, &app.token, "user:lena", "web/dev", "admin").await.expect(200);
        give(&app, &app.token, "user:bob", "web/dev", "view").await.expect(200);
        let refused = async |token: &str, what: &str, place: &str| {
            let before = all_grants(&app).await;
            let words = rename(&app, token, &here, "net", "prod").await.refused(403);
            let start = format!("{what} needs the role admin in {ORG}/{place}, and lena has ");
            assert!(words.contains(&start), "{own}, {other}: {words}");
            assert_eq!(all_grants(&app).await, before, "{own}, {other}");
            words
        };
        let words = refused(&lena, "taking along grants that give more than your rights", "net/prod").await;
        let way = format!("`statewright org grant add {ORG} user:lena net/prod admin --server`");
        assert!(words.contains(&way), "{words}");
        if other != "environment" {
            app.request(Method::DELETE, &protection).token(&lena).send().await.refused(403);
            assert!(!app.get(&there).send().await.expect(200)["protection"].is_null(), "{other}");
            app.request(Method::DELETE, &protection).send().await.expect(204);
        }

        // Nor does she take the grant of another user along, which gives less than she has.
        take(&app, &app.token, "user:lena", "web/dev", "admin").await.expect(204);
        let to_others = "taking grants along to a name that something else has or had";
        refused(&lena, to_others, "web/dev").await;
        // An admin of the old name alone is not enough, and what is deleted may come back.
        give(&app, &app.token, "user:lena", "web/*", "admin").await.expect(200);
        app.request(Method::DELETE, &there).send().await.expect(204);
        refused(&lena, to_others, "net/prod").await;
        give(&app, &app.token, "user:lena", "net/*", "admin").await.expect(200);
        rename(&app, &lena, &here, "net", "prod").await.expect(200);
        let expected = set(["user:bob net/prod view", "user:lena net/* admin", "user:lena web/* admin"]);
        assert_eq!(all_grants(&app).await, expected, "{own}, {other}");
    }
}

#[tokio::test]
async fn a_rename_of_a_stack_keeps_the_grant_of_its_state() {
    let app = TestApp::memory().await;
    units(&app).await;
    let (stack, state) = (format!("/api/stacks/{ORG}/web/dev"), format!("/api/tfstates/{STATE}"));
    let mia = app.member("mia", "laptop").await;
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    give(&app, &app.token, "user:bob", "web/dev", "view").await.expect(200);
    for path in [&stack, &state] {
        let words = rename(&app, &mia, path, "net", "dev").await.refused(403);
        let what = "taking along grants on a name that something else has or had";
        assert!(words.contains(&format!("{what} needs the role admin in {ORG}/web/dev")), "{words}");
    }
    assert_eq!(all_grants(&app).await, set(["user:bob web/dev view"]));

    rename(&app, &app.token, &stack, "net", "dev").await.expect(200);
    let on_both = set(["user:bob net/dev view", "user:bob web/dev view"]);
    assert_eq!(all_grants(&app).await, on_both);
    let moved = format!("/api/stacks/{ORG}/net/dev");
    let environment = format!("/api/esc/environments/{ORG}/web/dev");
    for path in [&moved, &state, &environment] {
        app.get(path).token(&bob).send().await.expect(200);
    }
    let said = last_in_trail(&app, "stack.rename").await;
    let expected = format!("web/dev: to {ORG}/net/dev; grants are copied: user:bob view");
    assert_eq!(said, expected);
    // The stack and the state have names of their own now, and one grant on each.
    rename(&app, &app.token, &moved, "net", "prod").await.expect(200);
    assert_eq!(all_grants(&app).await, set(["user:bob net/prod view", "user:bob web/dev view"]));
}

#[tokio::test]
async fn a_grant_on_one_state_follows_its_rename() {
    let app = TestApp::memory().await;
    let state = make(&app, "state", "web", "dev").await;
    let mia = app.member("mia", "laptop").await;
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    give(&app, &app.token, "user:bob", "web/dev", "apply").await.expect(200);
    give(&app, &app.token, "everybody", "web/dev", "view").await.expect(200);
    give(&app, &app.token, "user:bob", "db/*", "view").await.expect(200);
    // Nothing else has either name, and the grants give no more than what Mia has.
    rename(&app, &mia, &state, "net", "prod").await.expect(200);
    let expected = set(["everybody net/prod view", "user:bob db/* view", "user:bob net/prod apply"]);
    assert_eq!(all_grants(&app).await, expected);
    app.patch(&state, &json!({ "labels": { "owner": "web" } })).token(&bob).send().await.expect(200);
    app.patch(&state, &json!({ "project": "db" })).token(&mia).send().await.expect(200);
    let said = last_in_trail(&app, "state.edit").await;
    let grants = "grants go along: everybody view, user:bob apply";
    assert_eq!(said, format!("net/prod: to db/prod; {grants}"));
    // A name that is taken is refused as such.
    make(&app, "state", "web", "dev").await;
    let words = rename(&app, &app.token, &state, "web", "dev").await.refused(409);
    assert!(words.contains("already"), "{words}");
}

/// A ledger in which another process commits this write just before the next change of grants.
struct Meanwhile {
    ledger: MemoryLedger,
    write: Arc<Mutex<Option<Write>>>,
}

#[async_trait]
impl Ledger for Meanwhile {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        self.ledger.get(key).await
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.ledger.query(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        let access = OrgAccess::key(&OrgName::parse(ORG).unwrap());
        let is_change = writes.iter().any(|write| write.key == access);
        let before = self.write.lock().unwrap().take_if(|_| is_change);
        if let Some(before) = before {
            self.ledger.commit(vec![before]).await?;
        }
        self.ledger.commit(writes).await
    }
    fn inline_bytes_max(&self) -> usize {
        self.ledger.inline_bytes_max()
    }
}

#[tokio::test]
async fn a_name_taken_meanwhile_stops_a_rename_with_grants() {
    for taken in ["net", "web"] {
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
        let write: Arc<Mutex<Option<Write>>> = Arc::default();
        let ledger = Meanwhile { ledger: MemoryLedger::new(), write: Arc::clone(&write) };
        let keys = Arc::new(MemoryKeys::new(Arc::clone(&ids)));
        let blobs = Arc::new(MemoryBlobs::new());
        let app = TestApp::memory_with(Arc::new(ledger), blobs, keys, ids).await;
        let state = make(&app, "state", "web", "dev").await;
        let mia = app.member("mia", "laptop").await;
        give(&app, &app.token, "everybody", "web/dev", "view").await.expect(200);
        *write.lock().unwrap() = Some(listed_stack(&app.context.ids, taken, "dev"));
        let words = rename(&app, &mia, &state, "net", "dev").await.refused(403);
        assert!(words.contains("a name that something else has or had needs the role admin"), "{words}");
        assert!(write.lock().unwrap().is_none(), "the name was taken between the check and the commit");
        assert_eq!(all_grants(&app).await, set(["everybody web/dev view"]));
    }
}

#[tokio::test]
async fn a_rename_into_a_pattern_needs_admin_there() {
    for kind in ["stack", "state"] {
        let app = TestApp::memory().await;
        let unit = make(&app, kind, "web", "dev").await;
        let mia = app.member("mia", "laptop").await;
        app.member_with_role(Role::None, "bob", "ci").await;
        give(&app, &app.token, "user:bob", "net/*", "admin").await.expect(200);
        give(&app, &app.token, "everybody", "db/*", "view").await.expect(200);
        let words = rename(&app, &mia, &unit, "net", "dev").await.refused(403);
        let what = "a name that grants reach with more than your rights";
        assert!(words.contains(&format!("{what} needs the role admin in {ORG}/net/dev")), "{words}");

        // Nor does she become the admin of what she has.
        give(&app, &app.token, "user:mia", "net/*", "admin").await.expect(200);
        let words = rename(&app, &mia, &unit, "net", "dev").await.refused(403);
        let what = format!("renaming a {kind} to where you are an admin");
        assert!(words.contains(&format!("{what} needs the role admin in {ORG}/web/dev")), "{words}");
        give(&app, &app.token, "user:mia", "web/*", "admin").await.expect(200);
        rename(&app, &mia, &unit, "net", "dev").await.expect(200);

        let own = make(&app, kind, "shop", "dev").await;
        rename(&app, &mia, &own, "db", "dev").await.expect(200);
    }
}

#[tokio::test]
async fn a_member_does_not_choose_labels_that_grants_name() {
    let app = TestApp::memory().await;
    units(&app).await;
    let mia = app.member("mia", "laptop").await;
    app.member_with_role(Role::None, "bob", "ci").await;
    give(&app, &app.token, "user:bob", "tag:tier=one", "view").await.expect(200);
    let what = format!("a tag that a grant names needs the role admin in {ORG}/");
    let new = |labels: Value| json!({ "project": "net", "state": "dev", "labels": labels });
    let list = format!("/api/orgs/{ORG}/tfstates");
    let words = app.post(&list, &new(json!({ "tier": "one" }))).token(&mia).send().await.refused(403);
    assert!(words.contains(&format!("{what}net/dev")), "{words}");
    app.get(&format!("{list}/net/dev")).send().await.refused(404);
    app.post(&list, &new(json!({ "owner": "net" }))).token(&mia).send().await.expect(200);
    let state = format!("/api/tfstates/{STATE}");
    for tier in [json!("two"), Value::Null] {
        let labels = json!({ "labels": { "tier": tier } });
        let words = app.patch(&state, &labels).token(&mia).send().await.refused(403);
        assert!(words.contains(&format!("{what}web/dev")), "{words}");
    }
    let same = json!({ "labels": { "tier": "one", "owner": "web" } });
    let edited = app.patch(&state, &same).token(&mia).send().await.expect(200);
    assert_eq!(edited["labels"], json!({ "tier": "one", "owner": "web" }));
}

/// Whose rights end at a project does not create something in another one through what is in it.
#[tokio::test]
async fn a_copy_needs_the_right_to_create_at_its_new_name() {
    let app = TestApp::memory().await;
    units(&app).await;
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    give(&app, &app.token, "user:bob", "web/*", "apply").await.expect(200);
    let environments = format!("/api/esc/environments/{ORG}");
    let clone = async |project: &str| {
        let body = json!({ "project": project, "name": "copy" });
        app.post(&format!("{environments}/web/dev/clone"), &body).token(&bob).send().await
    };
    let words = clone("net").await.refused(403);
    assert!(words.contains(&format!("the clone needs the role apply in {ORG}/net/copy")), "{words}");
    let configured = async |name: &str, environment: &str| {
        let body = json!({ "stackName": name, "config": { "environment": environment } });
        app.post(&format!("/api/stacks/{ORG}/web"), &body).token(&bob).send().await
    };
    let words = configured("one", "net/copy").await.refused(403);
    let what = "an environment for the configuration of a stack needs the role apply";
    assert!(words.contains(&format!("{what} in {ORG}/net/copy")), "{words}");
    app.get(&format!("/api/stacks/{ORG}/web/one")).send().await.refused(404);
    app.get(&format!("{environments}/net/copy")).send().await.refused(404);
    clone("web").await.expect(204);
    configured("one", "web/one").await.expect(200);
}

#[tokio::test]
async fn a_token_of_the_organization_has_what_is_granted_to_it() {
    let app = TestApp::memory().await;
    units(&app).await;
    let tokens = format!("/api/orgs/{ORG}/tokens");
    let new = json!({ "name": "ci", "description": "", "expires": 0, "roleID": "view" });
    let made = app.post(&tokens, &new).send().await.expect(200);
    let (id, ci) = (made["id"].as_str().unwrap(), made["tokenValue"].as_str().unwrap());
    let tag = json!({ "name": "owner", "value": "web" });
    let sets_tag = async || {
        let path = format!("/api/stacks/{ORG}/web/dev/tags");
        app.post(&path, &tag).token(ci).send().await
    };
    let words = sets_tag().await.refused(403);
    assert!(words.contains(&format!("grant add {ORG} token:ci web/dev apply --server")), "{words}");
    give(&app, &app.token, "token:ci", "web/dev", "apply").await.expect(200);
    // It is the only one of that name, and a user may have a token named like it.
    let mia = app.member_with_role(Role::View, "mia", "ci").await;
    app.post(&format!("/api/stacks/{ORG}/web/dev/tags"), &tag).token(&mia).send().await.refused(403);
    sets_tag().await.expect(204);
    app.request(Method::DELETE, &format!("{tokens}/{id}")).send().await.expect(204);
    assert!(give(&app, &app.token, "token:ci", "web/*", "apply").await.refused(404).contains("named ci"));
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
    sets_tag().await.refused(401);
}

#[tokio::test]
async fn a_member_does_not_choose_tags_that_grants_name() {
    let app = TestApp::memory().await;
    units(&app).await;
    let mia = app.member("mia", "laptop").await;
    app.member_with_role(Role::None, "bob", "ci").await;
    give(&app, &app.token, "user:bob", "tag:tier=one", "view").await.expect(200);
    let path = format!("/api/stacks/{ORG}/web/dev/tags/tier");
    let words = app.request(Method::DELETE, &path).token(&mia).send().await.refused(403);
    assert!(words.contains("a tag that a grant names needs the role admin"), "{words}");
    app.request(Method::DELETE, &path).send().await.expect(204);

    // A client sends all tags with each update.
    let stack = Stack::in_project(&app, "shop").await;
    let begin = async |tier: &str| {
        let mut body = begin_body("update", false);
        body["tags"] = json!({ "owner": "web", "tier": tier });
        stack.post("/begin-update", &body).token(&mia).send().await
    };
    let words = begin("one").await.refused(403);
    assert!(words.contains("a tag that a grant names needs the role admin"), "{words}");
    let created = stack.post("/update", &program(false)).token(&mia);
    let run = stack.created_by(created).await;
    let start = json!({ "journalVersion": 2, "tags": { "tier": "one" } });
    app.post(&run.path, &start).token(&mia).send().await.refused(403);
    assert_eq!(stack.get("").send().await.expect(200)["tags"], json!({}));
    app.post(&format!("{}/tags", stack.path), &json!({ "name": "tier", "value": "one" }))
        .send()
        .await
        .expect(204);
    begin("one").await.expect(200);
    let tags = stack.get("").send().await.expect(200)["tags"].clone();
    assert_eq!(tags, json!({ "owner": "web", "tier": "one" }));
}

#[tokio::test]
async fn only_admins_give_roles_and_only_where_they_are_admins() {
    let app = TestApp::memory().await;
    let mia = app.member("mia", "laptop").await;
    let lead = app.member_with_role(Role::View, "lena", "laptop").await;
    let path = format!("/api/orgs/{ORG}/grants");
    give(&app, &mia, "user:mia", "*", "admin").await.refused(403);
    give(&app, &app.token, "user:lena", "web/*", "admin").await.expect(200);
    give(&app, &app.token, "user:mia", "net/*", "view").await.expect(200);
    give(&app, &lead, "user:mia", "web/dev", "admin").await.expect(200);
    give(&app, &lead, "everybody", "web/d*", "plan").await.expect(200);
    for on in ["*", "net/dev", "*/dev", "tag:tier=one"] {
        let words = give(&app, &lead, "user:lena", on, "view").await.refused(403);
        assert!(words.contains("giving a role here needs the role admin"), "{words}");
    }
    take(&app, &lead, "user:mia", "net/*", "view").await.refused(403);
    take(&app, &lead, "user:mia", "web/dev", "admin").await.expect(204);
    let own = app.get(&path).token(&lead).send().await.expect(200);
    let on: BTreeSet<&str> =
        own["grants"].as_array().unwrap().iter().map(|grant| grant["on"].as_str().unwrap()).collect();
    assert_eq!(on, BTreeSet::from(["web/*", "web/d*"]));
    // A token that may less gives nothing, whatever its user may.
    let scoped = app.scoped_token(Role::Member).await;
    give(&app, &scoped, "user:mia", "web/dev", "view").await.refused(403);
    app.get(&format!("/api/orgs/{ORG}/access")).token(&lead).send().await.refused(403);
}

#[tokio::test]
async fn a_grant_that_names_what_is_missing_is_refused() {
    let app = TestApp::memory().await;
    for (to, on, role, status, word) in [
        ("user:bob", "*", "view", 400, "bob is not a member"),
        ("team:ops", "*", "view", 404, "has no team named ops"),
        ("token:ci", "*", "view", 404, "no token of its own named ci"),
        ("everybody", "*", "none", 400, "gives nothing"),
        ("everybody", "web/*", "auditor", 400, "granted on `*` only"),
        ("everybody", "tag:env=dev", "auditor", 400, "granted on `*` only"),
        ("everyone", "*", "view", 400, "is not a grantee"),
        ("everybody", "web", "view", 400, "is not a scope"),
        ("everybody", "*", "owner", 400, "owner"),
    ] {
        app.take_audit();
        let words = give(&app, &app.token, to, on, role).await.refused(status);
        assert!(words.contains(word), "{words}");
        let record = app.take_audit().pop().unwrap();
        assert_eq!((&record["action"], &record["result"]), (&json!("grant.add"), &json!("refused")));
    }
    take(&app, &app.token, "everybody", "*", "view").await.refused(404);
    app.request(Method::DELETE, &format!("/api/orgs/{ORG}/grants")).send().await.refused(400);
    // A repeat changes nothing.
    for _ in 0..2 {
        give(&app, &app.token, "everybody", "*", "view").await.expect(200);
    }
}

#[tokio::test]
async fn a_refusal_names_the_grant_that_would_help() {
    let app = TestApp::memory().await;
    let stack = Stack::in_project(&app, "web").await;
    let viewer = app.member_with_role(Role::View, "vera", "ci").await;
    give(&app, &app.token, "user:vera", "net/*", "apply").await.expect(200);
    let refused = stack.post("/tags", &json!({ "name": "a", "value": "b" })).token(&viewer).send().await;
    let words = refused.refused(403);
    let way = |role: &str| {
        format!(
            "an admin of {ORG} gives it in the console or with `statewright org grant add {ORG} user:vera web/dev {role} \
             --server`, and the operator with the same command without --server; ask an admin: {USER}"
        )
    };
    assert!(words.contains(&way("apply")), "{words}");
    // Nothing that she has anywhere suffices, so the path alone decides.
    let refused = app.request(Method::DELETE, &stack.path).token(&viewer).send().await;
    let words = refused.refused(403);
    let start = "this needs the role member in acme/web/dev, and vera has view: ";
    assert!(words.contains(start) && words.contains(&way("member")), "{words}");
    // A state is named by its path too, and an environment.
    for (path, unit) in [
        (format!("/tfstate/{ORG}/net"), "net/default"),
        (format!("/tfstate/{ORG}/net/prod"), "net/prod"),
        (format!("/api/esc/environments/{ORG}/net/dev"), "net/dev"),
    ] {
        let words = app.request(Method::DELETE, &path).token(&viewer).send().await.refused(403);
        let way = format!("with `statewright org grant add {ORG} user:vera {unit} member --server`");
        assert!(words.contains(&way), "{words}");
    }
    // What concerns the organization itself takes a role in it.
    let words = app.get(&format!("/api/orgs/{ORG}/tokens")).token(&viewer).send().await.refused(403);
    assert!(words.contains(&format!("`statewright org member role {ORG} vera admin --server`")), "{words}");
}

#[tokio::test]
async fn an_admin_learns_why_a_member_may_do_something() {
    let app = TestApp::memory().await;
    let stack = Stack::in_project(&app, "web").await;
    let bob = app.member_with_role(Role::View, "bob", "ci").await;
    give(&app, &app.token, "user:bob", "web/*", "apply").await.expect(200);
    let why = stack.get("/access?user=bob").send().await.expect(200);
    assert_eq!(
        (&why["login"], &why["role"], &why["roleHere"]),
        (&json!("bob"), &json!("view"), &json!("apply"))
    );
    let right = |name: &str| {
        let rights = why["rights"].as_array().unwrap();
        rights.iter().find(|right| right["right"] == name).map(|right| right["because"].clone())
    };
    let grant = json!({ "to": "user:bob", "on": "web/*", "role": "apply" });
    assert_eq!(right("apply"), Some(json!([{ "role": "apply", "grant": grant }])));
    assert_eq!(right("view").unwrap().as_array().unwrap().len(), 2);
    assert_eq!(right("member"), None);
    // A member asks about no other user.
    assert_eq!(stack.get("/access").token(&bob).send().await.expect(200), why);
    stack.get(&format!("/access?user={USER}")).token(&bob).send().await.refused(403);
    stack.get("/access?user=stranger").send().await.refused(404);
    // A state or an environment may have a name that no stack has.
    let other = format!("/api/stacks/{ORG}/web/none/access");
    let why = app.get(&format!("{other}?user=bob")).send().await.expect(200);
    assert_eq!(why["roleHere"], "apply");
    app.get(&other).send().await.refused(404);
    app.get(&format!("{other}?user={USER}")).token(&bob).send().await.refused(403);
    let stranger = app.other_user("mallory", "evil").await;
    app.get(&format!("{other}?user=bob")).token(&stranger).send().await.refused(404);
}

#[tokio::test]
async fn the_labels_of_a_state_explain_what_is_done_with_it() {
    let app = TestApp::memory().await;
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    let state = |project: &str, tier: &str| {
        let state = json!({ "project": project, "state": "dev", "labels": { "tier": tier } });
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &state)
    };
    state("net", "one").send().await.expect(200);
    // A stack and a state of one name, of which the stack has another tag.
    let stack = json!({ "stackName": "dev", "tags": { "tier": "two" } });
    app.post(&format!("/api/stacks/{ORG}/web"), &stack).send().await.expect(200);
    state("web", "one").send().await.expect(200);
    give(&app, &app.token, "user:bob", "tag:tier=one", "plan").await.expect(200);
    let explained = async |query: &str| {
        let why = app.get(&format!("/api/stacks/{ORG}/{query}")).send().await.expect(200);
        (why["roleHere"].clone(), why["kind"].clone())
    };
    let is = |role: &str, kind: Value| (json!(role), kind);
    for (query, expected) in [
        ("net/dev/access?user=bob", is("plan", json!("tfstate"))),
        ("net/dev/access?user=bob&kind=stack", is("none", json!("stack"))),
        ("net/dev/access?user=bob&kind=environment", is("none", json!("environment"))),
        ("web/dev/access?user=bob", is("none", json!("stack"))),
        ("web/dev/access?user=bob&kind=tfstate", is("plan", json!("tfstate"))),
        ("web/none/access?user=bob", is("none", Value::Null)),
    ] {
        assert_eq!(explained(query).await, expected, "{query}");
    }
    for query in ["?user=bob&kind=state", "?kind=tfstate"] {
        app.get(&format!("/api/stacks/{ORG}/web/dev/access{query}")).send().await.refused(400);
    }
    // A caller asks about himself, and does not learn that there is a state that he may not see.
    let own = async |name: &str| {
        let path = format!("/api/stacks/{ORG}/{name}/access?user=bob");
        app.get(&path).token(&bob).send().await.expect(200)["kind"].clone()
    };
    assert_eq!(own("net/dev").await, json!("tfstate"));
    state("db", "three").send().await.expect(200);
    assert_eq!(own("db/dev").await, Value::Null);
}

#[tokio::test]
async fn access_is_exported_and_applied_as_one_document() {
    let app = TestApp::memory().await;
    app.member_with_role(Role::None, "bob", "ci").await;
    let path = format!("/api/orgs/{ORG}/access");
    let put = async |query: &str, body: &Value| {
        app.request(Method::PUT, &format!("{path}{query}")).json(body).send().await
    };
    let empty = app.get(&path).send().await.expect(200);
    assert_eq!(empty, json!({ "version": "0", "teams": {}, "grants": [] }));
    let team = json!({ "displayName": "Ops", "description": "", "members": { "bob": "admin" } });
    let grants = json!([{ "to": "team:ops", "on": "web/*", "role": "apply" }]);
    let mut wanted = json!({ "version": "0", "teams": { "ops": team }, "grants": grants });
    let difference = put("?dryRun=true", &wanted).await.expect(200);
    assert_eq!(difference["teamsAdded"], json!(["ops"]));
    for misspelled in ["?dry-run=true", "?dryRun=1", "?dryRun=yes", "?dryRun=true&force=true"] {
        assert!(put(misspelled, &wanted).await.refused(400).contains("dryRun=true"), "{misspelled}");
    }
    assert_eq!(app.get(&path).send().await.expect(200), empty, "a dry run changes nothing");
    assert_eq!(put("", &wanted).await.expect(200), difference);
    app.take_audit();
    let before = app.get(&path).send().await.expect(200);
    wanted["grants"][0]["role"] = "admin".into();
    let words = put("", &wanted).await.refused(409);
    assert!(words.contains("have changed since version \"0\""), "{words}");
    let record = app.take_audit().pop().unwrap();
    assert_eq!((&record["action"], &record["result"]), (&json!("access.apply"), &json!("refused")));
    assert_eq!(app.get(&path).send().await.expect(200), before, "nothing of it is applied");
    wanted["grants"][0]["role"] = "apply".into();
    let there = app.get(&path).send().await;
    let etag = there.headers["ETag"].to_str().unwrap().to_owned();
    let there = there.expect(200);
    assert_eq!(etag, format!("\"{}\"", there["version"].as_str().unwrap()));
    wanted["version"] = there["version"].clone();
    assert_eq!(there, wanted);
    let nothing = put("", &wanted).await.expect(200);
    assert_eq!((&nothing["teamsChanged"], &nothing["grantsAdded"]), (&json!([]), &json!([])));
    // The header counts more than the document.
    let call = app.request(Method::PUT, &path).header("If-Match", "\"1\"").json(&wanted);
    call.send().await.refused(409);
    wanted["grants"] = json!([{ "to": "user:stranger", "on": "*", "role": "view" }]);
    put("", &wanted).await.refused(400);
    wanted["grants"] = json!([{ "to": "team:gone", "on": "*", "role": "view" }]);
    put("", &wanted).await.refused(404);
    put("", &json!({})).await.refused(400);
    let removed = put("", &json!({ "teams": {}, "grants": [] })).await.expect(200);
    assert_eq!(
        (&removed["teamsRemoved"], removed["grantsRemoved"].as_array().unwrap().len()),
        (&json!(["ops"]), 1)
    );
}

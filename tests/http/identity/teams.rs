//! Members, teams and roles by the API, with the shapes of Pulumi Cloud.

use futures::future::join;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::domain::names::OrgName;
use statewright_shared::domain::role::Role;
use statewright_shared::services::identity::orgs;
use statewright_tests::app::{Answer, ORG, TestApp, USER};

use crate::world::Stack;

fn members(tail: &str) -> String {
    format!("/api/orgs/{ORG}/members{tail}")
}

fn teams(tail: &str) -> String {
    format!("/api/orgs/{ORG}/teams{tail}")
}

async fn delete(app: &TestApp, path: &str, token: &str) -> Answer {
    app.request(Method::DELETE, path).token(token).send().await
}

async fn roles(app: &TestApp) -> Vec<(String, Role)> {
    let org = OrgName::parse(ORG).unwrap();
    let members = orgs::members(&app.context, &org).await.unwrap();
    members.into_iter().map(|(login, role)| (login.to_string(), role)).collect()
}

/// A team with these members.
async fn team(app: &TestApp, name: &str, logins: &[&str]) {
    let new = json!({ "name": name, "displayName": "", "description": "", "teamType": "pulumi" });
    app.post(&teams("/pulumi"), &new).send().await.expect(201);
    for login in logins {
        change(app, &app.token, name, "add", login).await.expect(204);
    }
}

async fn change(app: &TestApp, token: &str, name: &str, action: &str, login: &str) -> Answer {
    let body = json!({ "memberAction": action, "member": login });
    app.patch(&teams(&format!("/{name}")), &body).token(token).send().await
}

async fn shown(app: &TestApp, name: &str) -> Value {
    app.get(&teams(&format!("/{name}"))).send().await.expect(200)
}

#[tokio::test]
async fn an_admin_adds_changes_and_removes_members() {
    let app = TestApp::memory().await;
    let outsider = app.other_user("olga", "elsewhere").await;
    app.get(&format!("/api/orgs/{ORG}")).token(&outsider).send().await.refused(404);
    let added = app.post(&members("/olga"), &json!({ "role": "member" })).send().await.expect(200);
    assert_eq!((&added["role"], &added["user"]["githubLogin"]), (&json!("member"), &json!("olga")));
    app.post(&members("/olga"), &json!({ "role": "member" })).send().await.refused(409);
    app.post(&members("/stranger"), &json!({ "role": "member" })).send().await.refused(404);
    app.patch(&members("/stranger"), &json!({ "role": "admin" })).send().await.refused(404);
    app.patch(&members("/olga"), &json!({ "role": "billing-manager" })).send().await.refused(400);
    let words = app.patch(&members("/olga"), &json!({ "fgaRoleId": "x" })).send().await.refused(400);
    assert!(words.contains("'roleID'"), "{words}");
    // The ID of a role counts more than its name.
    let both = json!({ "role": "admin", "fgaRoleId": "plan" });
    app.patch(&members("/olga"), &both).send().await.expect(204);
    assert_eq!(roles(&app).await[1], ("olga".to_owned(), Role::Plan));
    let organization = app.get(&format!("/api/orgs/{ORG}")).send().await.expect(200);
    assert_eq!(organization["githubLogin"], ORG);
    delete(&app, &members("/olga"), &app.token).await.expect(204);
    delete(&app, &members("/olga"), &app.token).await.refused(404);
    let words = delete(&app, &members(&format!("/{USER}")), &app.token).await.refused(400);
    assert!(words.contains("you cannot remove yourself"), "{words}");
    let words =
        app.patch(&members(&format!("/{USER}")), &json!({ "role": "member" })).send().await.refused(409);
    assert!(words.contains("is the last admin"), "{words}");
    assert_eq!(roles(&app).await, [(USER.to_owned(), Role::Admin)]);
}

#[tokio::test]
async fn two_admins_who_remove_each_other_leave_one() {
    for _ in 0..10 {
        let app = TestApp::memory().await;
        let ann = app.member_with_role(Role::Admin, "ann", "laptop").await;
        let (mine, theirs) = (members("/ann"), members(&format!("/{USER}")));
        let (one, other) = join(delete(&app, &mine, &app.token), delete(&app, &theirs, &ann)).await;
        let done = [&one, &other].iter().filter(|answer| answer.status == 204).count();
        assert_eq!(done, 1, "{} {}", one.text(), other.text());
        let left = roles(&app).await;
        assert!(matches!(&left[..], [(_, Role::Admin)]), "{left:?}");
    }
}

#[tokio::test]
async fn a_member_who_left_has_no_team_and_no_grant_later() {
    let app = TestApp::memory().await;
    app.member("bob", "laptop").await;
    team(&app, "ops", &["bob"]).await;
    let grant = json!({ "to": "user:bob", "on": "*", "role": "admin" });
    app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    let of_bob = app.get(&members("/bob/teams")).send().await.expect(200);
    assert_eq!(of_bob["teams"], json!(["ops"]));
    delete(&app, &members("/bob"), &app.token).await.expect(204);
    assert_eq!(shown(&app, "ops").await["members"], json!([]));
    let grants = app.get(&format!("/api/orgs/{ORG}/grants")).send().await.expect(200);
    assert_eq!(grants["grants"], json!([]));
    let words = change(&app, &app.token, "ops", "add", "bob").await.refused(400);
    assert!(words.contains("bob is not a member"), "{words}");
}

#[tokio::test]
async fn teams_have_members_and_permissions_as_in_pulumi_cloud() {
    let app = TestApp::memory().await;
    app.member("bob", "laptop").await;
    let new = json!({ "name": "Ops", "displayName": "Operations", "description": "runs it" });
    let made = app.post(&teams("/pulumi"), &new).send().await.expect(201);
    assert_eq!(
        (&made["name"], &made["kind"], &made["members"]),
        (&json!("Ops"), &json!("pulumi"), &json!([]))
    );
    app.post(&teams("/pulumi"), &new).send().await.refused(409);
    app.post(&teams("/pulumi"), &json!({ "name": "github" })).send().await.refused(400);
    let long = json!({ "name": "long", "displayName": "x".repeat(101), "description": "" });
    app.post(&teams("/pulumi"), &long).send().await.refused(400);
    app.post(&teams("/github"), &json!({ "githubTeamID": 1 })).send().await.refused(404);
    app.get(&teams("/none")).send().await.refused(404);

    change(&app, &app.token, "Ops", "add", "bob").await.expect(204);
    change(&app, &app.token, "Ops", "add", "bob").await.refused(409);
    change(&app, &app.token, "Ops", "promote", "bob").await.expect(204);
    change(&app, &app.token, "Ops", "promote", USER).await.refused(404);
    let member = json!({ "name": "bob", "githubLogin": "bob", "avatarUrl": "", "role": "admin" });
    assert_eq!(shown(&app, "Ops").await["members"], json!([member]));

    let edit = async |body: Value| app.patch(&teams("/Ops"), &body).send().await;
    let stack =
        |permission: u32| json!({ "projectName": "web", "stackName": "dev", "permission": permission });
    for (sent, role) in [(101, "plan"), (102, "apply"), (103, "member"), (104, "member"), (102, "apply")] {
        edit(json!({ "addStackPermission": stack(sent) })).await.expect(204);
        let stacks = shown(&app, "Ops").await["stacks"].clone();
        assert_eq!(stacks.as_array().unwrap().len(), 1, "a later permission replaces: {stacks}");
        assert_eq!(stacks[0]["permissionSetName"], role);
    }
    edit(json!({ "addStackPermission": stack(7) })).await.refused(400);
    edit(json!({ "removeStack": { "projectName": "web", "stackName": "dev" } })).await.expect(204);
    edit(json!({ "removeStack": { "projectName": "web", "stackName": "dev" } })).await.expect(204);
    assert_eq!(shown(&app, "Ops").await["stacks"], json!([]));
    let open = json!({ "projectName": "web", "envName": "base", "permission": "open" });
    edit(json!({ "addEnvironmentPermission": open })).await.expect(204);
    assert_eq!(shown(&app, "Ops").await["environments"][0]["permission"], "open");
    edit(json!({ "newDisplayName": "All", "newDescription": "" })).await.expect(204);
    let listed = app.get(&teams("")).send().await.expect(200);
    assert_eq!(
        (&listed["teams"][0]["displayName"], listed["teams"][0].get("members")),
        (&json!("All"), None)
    );

    app.post(&teams("/Ops/roles/apply"), &Value::Null).send().await.expect(204);
    app.post(&teams("/Ops/roles/view"), &Value::Null).send().await.expect(204);
    let held = app.get(&teams("/Ops/roles")).send().await.expect(200);
    assert_eq!((held["roles"].as_array().unwrap().len(), &held["roles"][0]["id"]), (1, &json!("view")));
    app.post(&teams("/Ops/roles/owner"), &Value::Null).send().await.refused(404);
    delete(&app, &teams("/Ops/roles/view"), &app.token).await.expect(204);
    delete(&app, &teams("/Ops/roles/view"), &app.token).await.refused(404);
    delete(&app, &teams("/Ops"), &app.token).await.expect(204);
    delete(&app, &teams("/Ops"), &app.token).await.refused(404);
}

#[tokio::test]
async fn an_admin_of_a_team_changes_its_members_only() {
    let app = TestApp::memory().await;
    let lead = app.member_with_role(Role::View, "lena", "laptop").await;
    let bob = app.member_with_role(Role::None, "bob", "laptop").await;
    team(&app, "web", &["lena"]).await;
    team(&app, "net", &[]).await;
    change(&app, &app.token, "web", "promote", "lena").await.expect(204);
    change(&app, &lead, "web", "add", "bob").await.expect(204);
    change(&app, &bob, "web", "add", USER).await.refused(403);
    let words = change(&app, &lead, "net", "add", "bob").await.refused(403);
    assert!(words.contains("changing the members of a team needs the role admin"), "{words}");
    for body in [
        json!({ "newDisplayName": "mine", "newDescription": "" }),
        json!({ "addStackPermission": { "projectName": "web", "stackName": "dev", "permission": 103 } }),
    ] {
        app.patch(&teams("/web"), &body).token(&lead).send().await.refused(403);
    }
    delete(&app, &teams("/web"), &lead).await.refused(403);
    // Who views nothing sees the own teams.
    let role = json!({ "to": "team:web", "on": "web/*", "role": "view" });
    app.post(&format!("/api/orgs/{ORG}/grants"), &role).send().await.expect(200);
    let own = app.get(&teams("")).token(&bob).send().await.expect(200);
    assert_eq!(own["teams"].as_array().unwrap().len(), 1);
    app.get(&teams("/net")).token(&bob).send().await.refused(404);
    change(&app, &bob, "net", "add", "bob").await.refused(404);
}

#[tokio::test]
async fn a_limited_token_adds_no_member_to_a_team_with_more() {
    let app = TestApp::memory().await;
    let lead = app.member_with_role(Role::View, "lena", "laptop").await;
    app.member_with_role(Role::None, "bob", "laptop").await;
    team(&app, "web", &["lena"]).await;
    change(&app, &app.token, "web", "promote", "lena").await.expect(204);
    for role in ["plan", "apply"] {
        let grant = json!({ "to": "team:web", "on": "web/*", "role": role });
        app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    }
    let limited = json!({ "name": "limited", "description": "", "expires": 0, "roleID": "plan" });
    let limited = app.post("/api/user/tokens", &limited).token(&lead).send().await.expect(200);
    let limited = limited["tokenValue"].as_str().unwrap();
    let before = shown(&app, "web").await["members"].clone();
    let words = change(&app, limited, "web", "add", "bob").await.refused(403);
    assert!(words.contains("changing the members of a team needs the role admin"), "{words}");
    assert!(words.contains("the token \"limited\" of lena allows at most plan"), "{words}");
    assert_eq!(shown(&app, "web").await["members"], before);
    // The token gives what it has itself.
    let grant = format!("/api/orgs/{ORG}/grants?to=team:web&on=web/*&role=apply");
    delete(&app, &grant, &app.token).await.expect(204);
    change(&app, limited, "web", "add", "bob").await.expect(204);
}

#[tokio::test]
async fn a_new_stack_gives_its_teams_a_role_on_it() {
    let app = TestApp::memory().await;
    let bob = app.member_with_role(Role::None, "bob", "laptop").await;
    let ann = app.member_with_role(Role::Apply, "ann", "laptop").await;
    team(&app, "ops", &["bob"]).await;
    let path = format!("/api/stacks/{ORG}/web");
    let with = |teams: Value| json!({ "stackName": "dev", "teams": teams });
    app.post(&path, &with(json!(["ops", "none"]))).send().await.refused(400);
    // As `pulumi stack init --teams ops,ops` sends it: one name.
    app.post(&path, &with(json!(["ops,ops"]))).send().await.refused(400);
    let words = app.post(&path, &with(json!(["ops"]))).token(&ann).send().await.refused(403);
    assert!(words.contains("giving teams a role on a stack needs the role admin"), "{words}");
    app.get(&format!("{path}/dev")).send().await.refused(404);
    app.post(&path, &with(json!(["ops"]))).send().await.expect(200);
    app.get(&format!("{path}/dev/export")).token(&bob).send().await.expect(200);
    let of_stack = app.get(&format!("{path}/dev/teams")).send().await.expect(200);
    assert_eq!(
        (&of_stack["teams"][0]["name"], &of_stack["teams"][0]["permission"]),
        (&json!("ops"), &json!(102))
    );
    let of_bob = format!("/api/console/orgs/{ORG}/members/bob/stacks/web/dev");
    let of_bob = app.get(&of_bob).send().await.expect(200);
    let by_team = &of_bob["teamPermissions"][0];
    assert_eq!((&by_team["team"]["name"], &by_team["permission"]), (&json!("ops"), &json!(102)));
    let console = format!("/api/console/stacks/{ORG}/web/dev/teams/ops");
    app.patch(&console, &json!({ "permissions": 0 })).send().await.expect(204);
    app.get(&format!("{path}/dev/export")).token(&bob).send().await.refused(403);
}

#[tokio::test]
async fn members_are_shown_with_what_they_have_on_a_stack() {
    let app = TestApp::memory().await;
    let stack = Stack::in_project(&app, "web").await;
    app.member_with_role(Role::Plan, "bob", "laptop").await;
    app.member_with_role(Role::None, "cleo", "laptop").await;
    let grant = json!({ "to": "user:bob", "on": "web/dev", "role": "apply" });
    app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    let all = stack.get("/collaborators").send().await.expect(200);
    let of = |login: &str| {
        let users = all["users"].as_array().unwrap();
        users.iter().find(|user| user["user"]["name"] == login).map(|user| user["permission"].clone())
    };
    assert_eq!((of(USER), of("bob"), of("cleo")), (Some(json!(103)), Some(json!(102)), None));
    let path = format!("/api/console/orgs/{ORG}/members/bob/stacks/web/dev");
    let bob = app.get(&path).send().await.expect(200);
    assert_eq!((&bob["explicitPermission"], &bob["organizationDefault"]), (&json!(102), &json!(101)));
    app.get(&path.replace("/bob/", "/stranger/")).send().await.refused(404);
}

#[tokio::test]
async fn the_roles_are_fixed_and_have_their_names_as_ids() {
    let app = TestApp::memory().await;
    let path = format!("/api/orgs/{ORG}/roles");
    let listed = app.get(&format!("{path}?uxPurpose=role")).send().await.expect(200);
    let ids: Vec<&str> =
        listed["roles"].as_array().unwrap().iter().map(|role| role["id"].as_str().unwrap()).collect();
    assert_eq!(ids, Role::ALL.map(Role::as_str));
    let of = |name: &str| {
        listed["roles"].as_array().unwrap().iter().find(|role| role["defaultIdentifier"] == name)
    };
    assert!(of("member").is_some() && of("admin").is_some());
    let policies = app.get(&format!("{path}?uxPurpose=policy")).send().await.expect(200);
    assert_eq!(policies["roles"], json!([]));
    app.get(&format!("{path}/plan")).send().await.expect(200);
    app.get(&format!("{path}/owner")).send().await.refused(404);
    let words = app.post(&path, &json!({ "name": "mine" })).send().await.refused(400);
    assert!(words.contains("no custom roles"), "{words}");
    let admins = app.get(&format!("{path}/admin/users")).send().await.expect(200);
    assert_eq!(admins["users"][0]["githubLogin"], USER);
}

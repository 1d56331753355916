//! Access tokens by the API: personal ones, those of organizations and of teams, and those of members.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::cache::REMEMBERED_FOR;
use statewright_shared::domain::access::{Grant, GrantedRole, Grantee, Scope, Team, TeamRole};
use statewright_shared::domain::names::{Login, OrgName, TeamName, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::layout::{OrgAccess, Stored, put};
use statewright_shared::ports::Expect;
use statewright_shared::services::identity::tokens::{self, NewToken, Owner};
use statewright_shared::services::identity::{orgs, passwords};
use statewright_tests::app::{Answer, ORG, TestApp, USER};

use crate::states::lifecycle::text;
use crate::world::Stack;

const PERSONAL: &str = "/api/user/tokens";

const DAY: Duration = Duration::from_secs(24 * 3_600);

fn org() -> OrgName {
    OrgName::parse(ORG).unwrap()
}

fn login(text: &str) -> Login {
    Login::parse(text).unwrap()
}

fn of_org() -> String {
    format!("/api/orgs/{ORG}/tokens")
}

fn of_team(team: &str) -> String {
    format!("/api/orgs/{ORG}/teams/{team}/tokens")
}

fn past_memory(app: &TestApp) {
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
}

async fn change_access(app: &TestApp, change: impl FnOnce(&mut OrgAccess)) {
    let key = OrgAccess::key(&org());
    let item = app.context.ledger.get(&key).await.unwrap();
    let mut access = item.map(|item| Stored::<OrgAccess>::read(&item).unwrap().value).unwrap_or_default();
    change(&mut access);
    let write = put(key, Expect::Any, app.context.ids.revision(), &access);
    app.context.ledger.commit(vec![write]).await.unwrap();
    past_memory(app);
}

/// Gives the organization a team with these members, which may apply in the project `web`.
async fn add_team(app: &TestApp, name: &str, members: &[(&str, TeamRole)]) {
    let created = app.context.now();
    change_access(app, |access| {
        let team = Team {
            created,
            display_name: String::new(),
            description: String::new(),
            members: members.iter().map(|(member, role)| (login(member), *role)).collect(),
        };
        access.teams.insert(TeamName::parse(name).unwrap(), team);
        access.grants.insert(Grant {
            to: Grantee::parse(&format!("team:{name}")).unwrap(),
            on: Scope::parse("web/*").unwrap(),
            role: GrantedRole(Role::Apply),
        });
    })
    .await;
}

/// A new token: its ID and its secret.
async fn make(app: &TestApp, list: &str, token: &str, body: Value) -> (String, String) {
    let made = app.post(list, &body).token(token).send().await.expect(200);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("tokenValue"))
}

async fn end(app: &TestApp, list: &str, token: &str, id: &str) -> Answer {
    app.request(Method::DELETE, &format!("{list}/{id}")).token(token).send().await
}

async fn rotate(app: &TestApp, list: &str, id: &str, body: Value) -> Answer {
    app.post(&format!("{list}/{id}/rotate"), &body).send().await
}

/// The tokens of the first page, as a client without a query reads it.
async fn listed(app: &TestApp, list: &str, token: &str) -> Vec<Value> {
    let page = app.get(list).token(token).send().await.expect(200);
    assert!(page.get("continuationToken").is_none(), "{page}");
    page["tokens"].as_array().unwrap().clone()
}

async fn status_of(app: &TestApp, token: &str) -> u16 {
    app.get("/api/user").token(token).send().await.status.as_u16()
}

fn seconds_from_now(app: &TestApp, duration: Duration) -> i64 {
    app.context.now().plus(duration).seconds()
}

#[tokio::test]
async fn each_kind_is_created_listed_used_and_ended() {
    let app = TestApp::memory().await;
    add_team(&app, "platform", &[]).await;
    let paths = [PERSONAL.to_owned(), of_org(), of_team("platform")];
    let kinds = [
        // The client takes a token for a personal one only if the answer does not describe it.
        ("personal", USER, Value::Null),
        ("organization", ORG, json!({ "name": "of-organization", "organization": ORG, "team": null })),
        ("team", ORG, json!({ "name": "of-team", "organization": ORG, "team": "platform" })),
    ];
    for (list, (kind, user, info)) in paths.iter().zip(kinds) {
        let name = format!("of-{kind}");
        let new = json!({ "name": name, "description": "deploys" });
        let before = app.context.now();
        let (id, secret) = make(&app, list, &app.token, new.clone()).await;
        let all = listed(&app, list, &app.token).await;
        let found = all.iter().find(|token| token["id"] == id).unwrap();
        assert_eq!(found["name"], name);
        assert_eq!(found["description"], "deploys");
        assert_eq!(found["type"], kind);
        assert_eq!(found["createdBy"], USER);
        assert_eq!(found["created"], before.to_rfc3339());
        assert_eq!((&found["expires"], &found["admin"]), (&json!(0), &json!(false)), "{kind}");
        assert!(!app.get(list).send().await.text().contains(&secret), "{kind}");

        let whoami = app.get("/api/user").token(&secret).send().await.expect(200);
        assert_eq!(whoami["githubLogin"], user, "{kind}");
        assert_eq!(whoami["organizations"][0]["githubLogin"], ORG, "{kind}");
        assert_eq!(whoami["tokenInfo"], info);

        for other in paths.iter().filter(|other| *other != list) {
            // The organization and its teams share one list.
            let share = other != PERSONAL && list != PERSONAL;
            let words = end(&app, other, &app.token, &id).await.refused(if share { 400 } else { 404 });
            assert_eq!(words.contains("the requested token is not "), share, "{other}: {words}");
        }
        end(&app, list, &app.token, "0123").await.refused(404);
        end(&app, list, &app.token, &id).await.expect(204);
        end(&app, list, &app.token, &id).await.refused(404);
        assert_eq!(status_of(&app, &secret).await, 401, "{kind}");
        assert!(listed(&app, list, &app.token).await.iter().all(|token| token["id"] != id), "{kind}");
        // The name of a machine token is used once.
        let again = app.post(list, &new).send().await;
        match kind {
            "personal" => drop(again.expect(200)),
            _ => assert!(again.refused(409).contains("a name is used only once"), "{kind}"),
        }
    }
}

#[tokio::test]
async fn a_personal_token_gets_a_name_and_a_machine_token_needs_one() {
    let app = TestApp::memory().await;
    add_team(&app, "platform", &[]).await;
    // As the provider of Pulumi Cloud sends it.
    let (id, _) = make(&app, PERSONAL, &app.token, json!({ "description": "laptop" })).await;
    let all = listed(&app, PERSONAL, &app.token).await;
    let found = all.iter().find(|token| token["id"] == id).unwrap();
    assert!(found["name"].as_str().unwrap().starts_with("token-"), "{found}");
    for list in [of_org(), of_team("platform")] {
        app.post(&list, &json!({ "description": "ci" })).send().await.refused(400);
        let long = json!({ "name": "n".repeat(41) });
        assert!(app.post(&list, &long).send().await.refused(400).contains("at most 40"), "{list}");
        app.post(&list, &json!({ "name": "a b" })).send().await.refused(400);
    }
    for (body, words) in [
        (json!({ "expires": 1 }), "use a later one"),
        (json!({ "expires": -1 }), "use a later one"),
        (json!({ "expires": seconds_from_now(&app, DAY * 800) }), "within 732 days"),
        (json!({ "description": "d".repeat(501) }), "at most 500 characters"),
        (json!({ "organization": "no such" }), "organization name"),
    ] {
        let refused = app.post(PERSONAL, &body).send().await.refused(400);
        assert!(refused.contains(words), "{body}: {refused}");
    }
    // What may be meant as a limit is not left out.
    for path in [PERSONAL, &of_org()] {
        let misspelled = json!({ "name": "limited", "role": "plan" });
        let words = app.post(path, &misspelled).send().await.refused(400);
        assert!(words.contains("unknown field `role`") && words.contains("`roleID`"), "{words}");
    }
    let unknown = app.post(PERSONAL, &json!({ "roleID": "owner" })).send().await.refused(404);
    assert!(unknown.contains("use one of none, view"), "{unknown}");
    let two = json!({ "name": "two", "admin": true, "roleID": "plan" });
    assert!(app.post(&of_org(), &two).send().await.refused(400).contains("different roles"));
    app.post(&of_team("nobodys"), &json!({ "name": "x" })).send().await.refused(404);
    app.get(&of_team("nobodys")).send().await.refused(404);
    // A name that was refused is free.
    make(&app, &of_org(), &app.token, json!({ "name": "two", "roleID": "plan" })).await;
}

#[tokio::test]
async fn a_list_has_pages_and_a_filter() {
    let app = TestApp::memory().await;
    let hour = seconds_from_now(&app, DAY / 24);
    for name in ["a", "b", "c"] {
        make(&app, &of_org(), &app.token, json!({ "name": name })).await;
    }
    make(&app, &of_org(), &app.token, json!({ "name": "short", "expires": hour })).await;
    let names = async |query: &str| {
        let page = app.get(&format!("{}{query}", of_org())).send().await.expect(200);
        let names: Vec<String> = page["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .map(|token| token["name"].as_str().unwrap().to_owned())
            .collect();
        (names.join(" "), page["continuationToken"].as_str().map(str::to_owned))
    };
    assert_eq!(names("").await, ("a b c short".to_owned(), None));
    let (first, next) = names("?maxResults=3").await;
    assert_eq!(first, "a b c");
    let rest = names(&format!("?maxResults=3&continuationToken={}", next.unwrap())).await;
    assert_eq!(rest, ("short".to_owned(), None));
    app.advance(DAY);
    assert_eq!(names("").await.0, "a b c");
    assert_eq!(names("?filter=active").await.0, "a b c");
    assert_eq!(names("?filter=expired").await.0, "short");
    assert_eq!(names("?filter=all").await.0, "a b c short");
    for query in ["maxResults=0", "maxResults=1001", "maxResults=x", "continuationToken=%25"] {
        let words = app.get(&format!("{}?{query}", of_org())).send().await.refused(400);
        assert!(words.contains("invalid continuationToken or maxResults value"), "{query}: {words}");
    }
    app.get(&format!("{}?filter=other", of_org())).send().await.refused(400);
}

#[tokio::test]
async fn a_thousand_tokens_are_on_the_first_page() {
    let app = TestApp::memory().await;
    for number in 0..999 {
        let name = TokenName::parse(&format!("ci-{number:04}")).unwrap();
        let new = NewToken { may: Some(Role::Plan), ..NewToken::new(Owner::Organization(org()), name) };
        tokens::issue(&app.context, new).await.unwrap();
    }
    make(&app, &of_org(), &app.token, json!({ "name": "z-last" })).await;
    let all = listed(&app, &of_org(), &app.token).await;
    assert_eq!((all.len(), &all[999]["name"]), (1_000, &json!("z-last")));
    let (id, _) = make(&app, &of_org(), &app.token, json!({ "name": "z-one-more" })).await;
    let page = app.get(&of_org()).send().await.expect(200);
    let next = page["continuationToken"].as_str().unwrap();
    let rest = app.get(&format!("{}?continuationToken={next}", of_org())).send().await.expect(200);
    assert_eq!(rest["tokens"][0]["id"], id);
}

#[tokio::test]
async fn no_token_makes_one_that_allows_more() {
    let app = TestApp::memory().await;
    let week = seconds_from_now(&app, DAY * 7);
    let limited = json!({ "name": "limited", "roleID": "plan", "organization": ORG, "expires": week });
    let (_, limited) = make(&app, PERSONAL, &app.token, limited).await;
    let (id, child) = make(&app, PERSONAL, &limited, json!({ "description": "" })).await;
    let all = listed(&app, PERSONAL, &child).await;
    let made = all.iter().find(|token| token["id"] == id).unwrap();
    assert_eq!((&made["role"]["id"], &made["expires"]), (&json!("plan"), &json!(week)), "{made}");
    assert_eq!(made["organization"], ORG, "{made}");
    let later = seconds_from_now(&app, DAY * 8);
    for (body, status, words) in [
        (json!({ "roleID": "apply" }), 403, "allows at most plan"),
        (json!({ "expires": later }), 403, "expires at "),
        (json!({ "organization": "lab" }), 404, "organization lab not found"),
    ] {
        let refused = app.post(PERSONAL, &body).token(&limited).send().await.refused(status);
        assert!(refused.contains(words), "{body}: {refused}");
    }
    make(&app, PERSONAL, &limited, json!({ "roleID": "view", "expires": week - 1 })).await;

    // It ends what allows no more, and itself.
    let first = all.iter().find(|token| token["name"] == "first-start").unwrap()["id"].as_str().unwrap();
    let elsewhere = make(&app, PERSONAL, &app.token, json!({ "roleID": "view" })).await.0;
    for id in [first, elsewhere.as_str()] {
        end(&app, PERSONAL, &limited, id).await.refused(403);
        app.post(&format!("{PERSONAL}/{id}/rotate"), &json!({})).token(&limited).send().await.refused(403);
    }
    end(&app, PERSONAL, &limited, &id).await.expect(204);
    let own = all.iter().find(|token| token["name"] == "limited").unwrap()["id"].as_str().unwrap();
    end(&app, PERSONAL, &limited, own).await.expect(204);
    assert_eq!((status_of(&app, &limited).await, status_of(&app, &app.token).await), (401, 200));

    // The same for machines: an admin whose token ends makes none that outlives it.
    let ending = json!({ "name": "ending", "expires": week });
    let (_, ending) = make(&app, PERSONAL, &app.token, ending).await;
    let (id, _) = make(&app, &of_org(), &ending, json!({ "name": "ci" })).await;
    let all = listed(&app, &of_org(), &ending).await;
    assert_eq!(all.iter().find(|token| token["id"] == id).unwrap()["expires"], week);
    let refused = app.post(&of_org(), &json!({ "name": "cd", "expires": later })).token(&ending).send().await;
    refused.refused(403);
    let (endless, _) = make(&app, &of_org(), &app.token, json!({ "name": "endless" })).await;
    let path = format!("{}/{endless}/rotate", of_org());
    app.post(&path, &json!({})).token(&ending).send().await.refused(403);
    app.post(&path, &json!({})).send().await.expect(200);
}

#[tokio::test]
async fn a_token_works_in_its_scope_alone() {
    let app = TestApp::memory().await;
    for (project, tier) in [("web", "one"), ("net", "two")] {
        let stack = json!({ "stackName": "dev", "tags": { "tier": tier } });
        app.post(&format!("/api/stacks/{ORG}/{project}"), &stack).send().await.expect(200);
        let environment = json!({ "project": project, "name": "dev" });
        app.post(&format!("/api/esc/environments/{ORG}"), &environment).send().await.expect(204);
        let state = json!({ "project": project, "state": "dev", "labels": { "tier": tier } });
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &state).send().await.expect(200);
    }
    let org = format!("/api/orgs/{ORG}");
    let (stacks, environments) = (format!("/api/stacks/{ORG}"), format!("/api/esc/environments/{ORG}"));
    for (on, has_environment) in [("web/*", true), ("web/dev", true), ("tag:tier=one", false)] {
        let (id, token) = make(&app, PERSONAL, &app.token, json!({ "on": on, "expires": 0 })).await;
        let all = listed(&app, PERSONAL, &app.token).await;
        assert_eq!(all.iter().find(|token| token["id"] == id).unwrap()["on"], on);
        let status = async |path: &str| app.get(path).token(&token).send().await.status.as_u16();
        for (path, expected) in [
            (format!("{stacks}/web/dev"), 200),
            (format!("{stacks}/web/dev/export"), 200),
            (format!("{stacks}/net/dev"), 404),
            (format!("{stacks}/net/dev/export"), 404),
            (format!("{environments}/web/dev"), if has_environment { 200 } else { 404 }),
            (format!("{environments}/net/dev"), 404),
            (format!("{org}/tfstates/web/dev"), 200),
            (format!("{org}/tfstates/net/dev"), 404),
            // The organization itself.
            (format!("{org}/tokens"), 403),
            (format!("{org}/auditlogs/v2"), 403),
            (format!("{org}/oidc/issuers"), 403),
        ] {
            assert_eq!(status(&path).await, expected, "{path} with {on}");
        }
        let page = app.get("/api/user/stacks").token(&token).send().await.expect(200);
        assert_eq!(page["stacks"].as_array().unwrap().len(), 1, "{page}");
        assert_eq!(page["stacks"][0]["projectName"], "web", "{page}");
        let words = app.get(&format!("{org}/tokens")).token(&token).send().await.refused(403);
        let expected = format!("works only in {on}: use another token");
        assert!(words.contains(&expected), "{words}");
        app.post(&format!("{stacks}/net"), &json!({ "stackName": "new" }))
            .token(&token)
            .send()
            .await
            .refused(403);
        let grant = json!({ "to": "everybody", "on": "net/*", "role": "view" });
        app.post(&format!("{org}/grants"), &grant).token(&token).send().await.refused(403);
    }
}

#[tokio::test]
async fn a_token_with_a_scope_gives_no_more() {
    let app = TestApp::memory().await;
    let lead = app.member_with_role(Role::None, "lead", "laptop").await;
    add_team(&app, "platform", &[("lead", TeamRole::Admin)]).await;
    let (first, _) = make(&app, PERSONAL, &lead, json!({ "name": "all" })).await;
    let (_, token) = make(&app, PERSONAL, &lead, json!({ "on": "web/d*" })).await;
    let (id, child) = make(&app, PERSONAL, &token, json!({})).await;
    let all = listed(&app, PERSONAL, &child).await;
    assert_eq!(all.iter().find(|token| token["id"] == id).unwrap()["on"], "web/d*");
    make(&app, PERSONAL, &token, json!({ "on": "web/dev" })).await;
    for on in ["*", "web/*", "net/dev", "tag:tier=one"] {
        let words = app.post(PERSONAL, &json!({ "on": on })).token(&token).send().await.refused(403);
        assert!(words.contains("works only in web/d*"), "{on}: {words}");
    }
    app.post(PERSONAL, &json!({ "on": "web" })).send().await.refused(400);
    app.post(&format!("{PERSONAL}/{first}/rotate"), &json!({})).token(&token).send().await.refused(403);
    end(&app, PERSONAL, &token, &first).await.refused(403);
    // The admin of a team manages its tokens and its members, but not with a token of a part.
    let machine = json!({ "name": "machine" });
    app.post(&of_team("platform"), &machine).token(&token).send().await.refused(403);
    let added = json!({ "memberAction": "add", "member": USER });
    let team = format!("/api/orgs/{ORG}/teams/platform");
    app.patch(&team, &added).token(&token).send().await.refused(403);
    app.patch(&team, &added).token(&lead).send().await.expect(204);

    // Tokens of machines can be limited too.
    app.post(&format!("/api/stacks/{ORG}/web"), &json!({ "stackName": "dev" })).send().await.expect(200);
    for (list, kind) in [(of_org(), "organization"), (of_team("platform"), "team")] {
        let machine = |on: &str, what: &str| json!({ "name": format!("{kind}-{what}"), "on": on });
        let (_, there) = make(&app, &list, &app.token, machine("web/*", "there")).await;
        let (_, not) = make(&app, &list, &app.token, machine("net/*", "elsewhere")).await;
        let stack = format!("/api/stacks/{ORG}/web/dev");
        app.get(&stack).token(&there).send().await.expect(200);
        app.get(&stack).token(&not).send().await.refused(404);
    }
}

#[tokio::test]
async fn tokens_are_managed_by_admins_of_their_owner_alone() {
    let app = TestApp::memory().await;
    let lead = app.member_with_role(Role::None, "lead", "laptop").await;
    let limited = NewToken {
        may: Some(Role::Member),
        ..NewToken::new(Owner::User(login("lead")), TokenName::parse("limited").unwrap())
    };
    let limited = tokens::issue(&app.context, limited).await.unwrap().secret;
    let mate = app.member_with_role(Role::Member, "mate", "laptop").await;
    let mallory = app.other_user("mallory", "evil").await;
    let members = [("lead", TeamRole::Admin), ("mate", TeamRole::Member)];
    add_team(&app, "platform", &members).await;
    add_team(&app, "data", &[]).await;
    let admin_below = app.scoped_token(Role::Member).await;

    let (of_team, of_data, of_org) = (of_team("platform"), of_team("data"), of_org());
    let (id, machine) = make(&app, &of_team, &lead, json!({ "name": "by-lead" })).await;
    let (org_id, org_machine) = make(&app, &of_org, &app.token, json!({ "name": "ci" })).await;
    let new = json!({ "name": "more" });
    for (list, id, token, status) in [
        (&of_team, &id, &mate, 403),
        (&of_team, &id, &limited, 403),
        (&of_team, &id, &admin_below, 403),
        (&of_team, &id, &machine, 403),
        (&of_team, &id, &org_machine, 403),
        (&of_team, &id, &mallory, 404),
        (&of_data, &id, &lead, 403),
        (&of_org, &org_id, &lead, 403),
        (&of_org, &org_id, &mate, 403),
        (&of_org, &org_id, &admin_below, 403),
        (&of_org, &org_id, &machine, 403),
        (&of_org, &org_id, &org_machine, 403),
        (&of_org, &org_id, &mallory, 404),
    ] {
        app.get(list).token(token).send().await.refused(status);
        app.post(list, &new).token(token).send().await.refused(status);
        app.post(&format!("{list}/{id}/rotate"), &json!({})).token(token).send().await.refused(status);
        end(&app, list, token, id).await.refused(status);
    }
    // A machine has no personal tokens.
    for token in [&machine, &org_machine] {
        app.get(PERSONAL).token(token).send().await.refused(403);
        app.post(PERSONAL, &json!({})).token(token).send().await.refused(403);
    }
    assert_eq!((status_of(&app, &machine).await, status_of(&app, &org_machine).await), (200, 200));
    assert_eq!(listed(&app, &of_team, &lead).await.len(), 1);
    end(&app, &of_team, &lead, &id).await.expect(204);
    // Another user's tokens have no path at all.
    let mates = tokens::list_all(&app.context, &Owner::User(login("mate"))).await.unwrap();
    end(&app, PERSONAL, &app.token, mates[0].entry.id()).await.refused(404);

    // A machine that is an admin manages machines.
    let (_, admin) = make(&app, &of_org, &app.token, json!({ "name": "root", "admin": true })).await;
    make(&app, &of_org, &admin, json!({ "name": "by-root", "admin": true })).await;
    let made = listed(&app, &of_org, &admin).await;
    let by_root = made.iter().find(|token| token["name"] == "by-root").unwrap();
    assert_eq!((&by_root["createdBy"], &by_root["admin"]), (&json!(ORG), &json!(true)));
}

#[tokio::test]
async fn a_machine_may_do_what_its_team_or_its_role_allows() {
    let app = TestApp::memory().await;
    add_team(&app, "platform", &[]).await;
    let (_, team) = make(&app, &of_team("platform"), &app.token, json!({ "name": "of-team" })).await;
    let (_, plan) = make(&app, &of_org(), &app.token, json!({ "name": "plans", "roleID": "plan" })).await;
    let (_, member) = make(&app, &of_org(), &app.token, json!({ "name": "works" })).await;
    let create = async |project: &str, stack: &str, token: &str| {
        let path = format!("/api/stacks/{ORG}/{project}");
        let answer = app.post(&path, &json!({ "stackName": stack })).token(token).send().await;
        answer.status.as_u16()
    };
    assert_eq!(create("web", "dev", &team).await, 200);
    assert!(matches!(create("net", "dev", &team).await, 403 | 404), "a grant on another project");
    assert_eq!((create("net", "dev", &plan).await, create("net", "dev", &member).await), (403, 200));
    // The same tokens are those of clients of states.
    let write = async |project: &str, serial: u64, token: &str| {
        let path = format!("/tfstate/{ORG}/{project}");
        app.post(&path, &text(serial, &["a"])).token(token).send().await.status.as_u16()
    };
    assert_eq!((write("web", 1, &team).await, write("net", 1, &team).await), (200, 403));
    assert_eq!((write("net", 1, &member).await, write("net", 2, &plan).await), (200, 403));

    change_access(&app, |access| access.teams.clear()).await;
    assert_eq!(status_of(&app, &team).await, 401);
    // A later team of the name has other tokens.
    add_team(&app, "platform", &[]).await;
    assert_eq!(status_of(&app, &team).await, 401);
    assert!(listed(&app, &of_team("platform"), &app.token).await.is_empty());
}

#[tokio::test]
async fn a_running_update_ends_when_its_machine_token_does() {
    let app = TestApp::memory().await;
    add_team(&app, "platform", &[]).await;
    for list in [of_org(), of_team("platform")] {
        let (name, project) = if list == of_org() { ("org-ci", "shop") } else { ("team-ci", "web") };
        let stack = Stack::in_project(&app, project).await;
        let (id, secret) = make(&app, &list, &app.token, json!({ "name": name })).await;
        let run = stack.begun(stack.begin_call("update", false).token(&secret)).await;
        run.renew(300).await.expect(200);
        // Its new secret is of the same token.
        let id = rotate(&app, &list, &id, json!({})).await.expect(200)["id"].as_str().unwrap().to_owned();
        run.renew(300).await.expect(200);
        end(&app, &list, &app.token, &id).await.expect(204);
        let words = run.renew(300).await.refused(403);
        assert!(words.contains("was revoked"), "{words}");
    }
}

#[tokio::test]
async fn a_rotated_secret_works_for_its_grace_alone() {
    let app = TestApp::memory().await;
    add_team(&app, "platform", &[]).await;
    for list in [PERSONAL.to_owned(), of_org(), of_team("platform")] {
        let name = format!("rotated-{}", list.split('/').nth(4).unwrap_or("own"));
        let (id, first) = make(&app, &list, &app.token, json!({ "name": name })).await;
        assert_eq!(status_of(&app, &first).await, 200);
        let rotated = rotate(&app, &list, &id, json!({ "graceSeconds": 3_600 })).await.expect(200);
        let until = seconds_from_now(&app, Duration::from_secs(3_600));
        assert_eq!(rotated["previousExpires"], until);
        let (second, new_id) = (rotated["tokenValue"].as_str().unwrap(), rotated["id"].as_str().unwrap());
        assert_eq!((status_of(&app, &first).await, status_of(&app, second).await), (200, 200), "{list}");
        rotate(&app, &list, &id, json!({})).await.refused(404);
        let of_name = async || {
            let all = listed(&app, &list, &app.token).await;
            all.into_iter().filter(|token| token["name"] == name).collect::<Vec<_>>()
        };
        assert_eq!(of_name().await.len(), 1, "the old secret is not a token of its own");
        app.advance(Duration::from_secs(3_601));
        assert_eq!((status_of(&app, &first).await, status_of(&app, second).await), (401, 200), "{list}");

        // Without a grace, the old one ends at once; and so does one from before an earlier rotation.
        let rotated = rotate(&app, &list, new_id, json!({ "graceSeconds": 3_600 })).await.expect(200);
        let (third, id) = (rotated["tokenValue"].as_str().unwrap(), rotated["id"].as_str().unwrap());
        let rotated = rotate(&app, &list, id, json!({})).await.expect(200);
        let (fourth, id) = (rotated["tokenValue"].as_str().unwrap(), rotated["id"].as_str().unwrap());
        assert_eq!(rotated["previousExpires"], 0);
        let statuses = [second, third, fourth].map(|token| status_of(&app, token));
        assert_eq!(futures::future::join_all(statuses).await, [401, 401, 200], "{list}");

        // The end of a token ends both of its secrets.
        let rotated = rotate(&app, &list, id, json!({ "graceSeconds": 60 })).await.expect(200);
        let (fifth, id) = (rotated["tokenValue"].as_str().unwrap(), rotated["id"].as_str().unwrap());
        for body in [json!({ "graceSeconds": -1 }), json!({ "graceSeconds": 2_592_001 })] {
            rotate(&app, &list, id, body).await.refused(400);
        }
        end(&app, &list, &app.token, id).await.expect(204);
        assert_eq!((status_of(&app, fourth).await, status_of(&app, fifth).await), (401, 401), "{list}");
    }
}

#[tokio::test]
async fn a_rotation_keeps_the_expiry_or_sets_one() {
    let app = TestApp::memory().await;
    let (hour, week) = (seconds_from_now(&app, DAY / 24), seconds_from_now(&app, DAY * 7));
    let new = json!({ "name": "short", "expires": hour });
    let (id, first) = make(&app, &of_org(), &app.token, new).await;
    // The old secret never lives longer than it would have.
    let rotated = rotate(&app, &of_org(), &id, json!({ "graceSeconds": 90_000 })).await.expect(200);
    assert_eq!(rotated["previousExpires"], hour);
    assert_eq!(listed(&app, &of_org(), &app.token).await[0]["expires"], hour);
    let id = rotated["id"].as_str().unwrap();
    let rotated = rotate(&app, &of_org(), id, json!({ "expires": week })).await.expect(200);
    let (id, secret) = (rotated["id"].as_str().unwrap(), rotated["tokenValue"].as_str().unwrap());
    app.advance(DAY);
    assert_eq!((status_of(&app, &first).await, status_of(&app, secret).await), (401, 200));
    app.advance(DAY * 7);
    let refused = rotate(&app, &of_org(), id, json!({})).await.refused(400);
    assert!(refused.contains("use a later one"), "{refused}");
}

#[tokio::test]
async fn two_creations_of_one_name_make_one_token() {
    let app = TestApp::memory().await;
    let other = app.another_process("other").await;
    for list in [PERSONAL.to_owned(), of_org()] {
        let new = json!({ "name": "twice" });
        let (one, two) = futures::join!(app.post(&list, &new).send(), other.post(&list, &new).send());
        let mut statuses = [one.status.as_u16(), two.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{list}");
        let all = listed(&app, &list, &app.token).await;
        assert_eq!(all.iter().filter(|token| token["name"] == "twice").count(), 1, "{list}");
    }
}

#[tokio::test]
async fn an_organization_limits_the_days_that_tokens_have_left() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let both = app.member_of(&[ORG, "lab"], "bob", "endless").await;
    app.post("/api/stacks/lab/shop", &json!({ "stackName": "dev" })).token(&both).send().await.expect(200);
    let path = format!("/api/orgs/{ORG}");
    let set = async |days: i64, token: &str| {
        app.patch(&path, &json!({ "setMaxAccessTokenExpiryDays": days })).token(token).send().await
    };
    assert_eq!(app.patch(&path, &json!({})).send().await.expect(200)["maxAccessTokenExpiryDays"], 0);
    set(14, &both).await.refused(403);
    for days in [-1, 731] {
        set(days, &app.token).await.refused(400);
    }
    let unknown = json!({ "setDefaultStackPermission": 101 });
    let words = app.patch(&path, &unknown).send().await.refused(400);
    assert!(words.contains("setDefaultStackPermission"), "{words}");
    passwords::set(&app.context, &login(USER), "correct horse battery").await.unwrap();
    // The token that sets the limit could not lift it.
    let (_, later) =
        make(&app, PERSONAL, &app.token, json!({ "expires": seconds_from_now(&app, DAY * 15) })).await;
    for token in [&app.token, &later] {
        let answer = set(14, token).await;
        let words = answer.refused(403);
        let expected =
            "your own token has more than 14 days left, or no end, so acme would refuse it from now on";
        assert!(words.contains(expected), "{words}");
    }
    let answer = set(14, &app.token).await.expect(403);
    assert_eq!(answer["reason"], "token_lives_too_long");
    stack.get("").send().await.expect(200);
    let (_, meets) =
        make(&app, PERSONAL, &app.token, json!({ "expires": seconds_from_now(&app, DAY * 14) })).await;
    assert_eq!(set(14, &meets).await.expect(200)["maxAccessTokenExpiryDays"], 14);

    let words = stack.get("").send().await.refused(403);
    let expected = "the `acme` organization enforces a max access token expiry of `14` days that your current token \
                    does not meet. Please generate a new token with a TTL meeting your org's threshold to perform this \
                    request.";
    assert!(words.contains(expected), "{words}");
    let answer = stack.get("").send().await.expect(403);
    assert_eq!(answer["reason"], "token_lives_too_long");
    let state = format!("/tfstate/{ORG}/net");
    app.get(&state).send().await.refused(403);
    set(0, &app.token).await.refused(403);
    // The rule is about this organization, and about tokens: not about passwords.
    let listed = app.get("/api/user/stacks").token(&both).send().await.expect(200);
    assert_eq!(listed["stacks"].as_array().unwrap().len(), 1, "{listed}");
    let basic = STANDARD.encode(format!("{USER}:correct horse battery"));
    let write = app.post(&state, &text(1, &["a"])).anonymous();
    write.header("Authorization", &format!("Basic {basic}")).send().await.expect(200);

    // Each user can still make a token that meets it.
    let late = json!({ "expires": seconds_from_now(&app, DAY * 15) });
    let (_, late) = make(&app, PERSONAL, &app.token, late).await;
    stack.get("").token(&late).send().await.refused(403);
    app.advance(DAY + Duration::from_secs(1));
    stack.get("").token(&late).send().await.expect(200);
    set(0, &late).await.expect(200);
    stack.get("").send().await.expect(200);
}

#[tokio::test]
async fn an_admin_ends_members_tokens_that_work_here_alone() {
    let app = TestApp::memory().await;
    let only = app.member("ann", "laptop").await;
    let both = app.member_of(&[ORG, "lab"], "bob", "laptop").await;
    let mate = app.member("mate", "laptop").await;
    let (here, limited) = make(&app, PERSONAL, &both, json!({ "name": "here", "organization": ORG })).await;
    let members = |user: &str| format!("/api/orgs/{ORG}/members/{user}/tokens");
    let id_of = async |user: &str, name: &str| {
        let all = tokens::list_all(&app.context, &Owner::User(login(user))).await.unwrap();
        let named = all.iter().map(|listed| &listed.entry).find(|entry| entry.token.name.as_str() == name);
        named.unwrap().id().to_owned()
    };

    let names = async |user: &str| {
        let all = listed(&app, &members(user), &app.token).await;
        all.iter().map(|token| token["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names("ann").await, ["laptop"]);
    assert_eq!(names("bob").await, ["here"], "the other one works in another organization too");
    end(&app, &members("bob"), &app.token, &id_of("bob", "laptop").await).await.refused(404);
    for user in ["ann", "bob"] {
        app.get(&members(user)).token(&mate).send().await.refused(403);
        end(&app, &members(user), &mate, &here).await.refused(403);
    }
    end(&app, &members("ann"), &app.token, &here).await.refused(404);
    for stranger in ["nosuch", "mallory"] {
        if stranger == "mallory" {
            app.other_user(stranger, "evil").await;
        }
        let words = app.get(&members(stranger)).send().await.refused(404);
        assert!(words.contains(&format!("user {stranger} not found")), "{words}");
    }
    end(&app, &members("bob"), &app.token, &here).await.expect(204);
    end(&app, &members("ann"), &app.token, &id_of("ann", "laptop").await).await.expect(204);
    for (token, status) in [(&limited, 401), (&only, 401), (&both, 200)] {
        assert_eq!(status_of(&app, token).await, status);
    }
    // An admin does not see what a former member still has.
    orgs::remove_member(&app.context, &org(), &login("bob")).await.unwrap();
    past_memory(&app);
    app.get(&members("bob")).send().await.refused(404);
    assert_eq!(status_of(&app, &both).await, 200);
}

#[tokio::test]
async fn changes_of_tokens_are_recorded_without_secrets() {
    let app = TestApp::memory().await;
    app.take_audit();
    let path = format!("{}?reason=new%20runner", of_org());
    let (id, secret) = make(&app, &path, &app.token, json!({ "name": "ci" })).await;
    let rotated = rotate(&app, &of_org(), &id, json!({})).await.expect(200);
    let (id, second) = (rotated["id"].as_str().unwrap(), rotated["tokenValue"].as_str().unwrap());
    end(&app, &of_org(), &app.token, id).await.expect(204);
    let settings = json!({ "setMaxAccessTokenExpiryDays": 0 });
    app.patch(&format!("/api/orgs/{ORG}"), &settings).send().await.expect(200);
    let records = app.take_audit();
    let actions: Vec<_> = records.iter().map(|record| record["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["token.create", "token.rotate", "token.delete", "organization.edit"]);
    let first = records[0].to_string();
    assert!(first.contains("organization token ci of acme") && first.contains("new runner"), "{first}");
    for record in &records {
        assert_eq!((&record["user"], &record["organization"]), (&json!(USER), &json!(ORG)), "{record}");
        let text = record.to_string();
        assert!(!text.contains(&secret) && !text.contains(second), "{text}");
    }
}

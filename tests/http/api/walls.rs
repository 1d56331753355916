//! Walls: each row of the route table with each role on each part of the organization by each kind of credentials, with
//! credentials that have ended, and with guesses.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::Method;
use serde_json::{Map, Value, json};
use statewright_shared::adapters::Counter;
use statewright_shared::api::routes::{Auth, ROUTES, Route};
use statewright_shared::cache::REMEMBERED_FOR;
use statewright_shared::domain::names::{
    Login, OrgName, ProjectName, StackAddress, StackName, TeamName, TokenName,
};
use statewright_shared::domain::role::{Right, Role};
use statewright_shared::layout::{SignedInBy, StackEntry};
use statewright_shared::ports::{CommitError, Item, ItemKey, Ledger, Page, PortError, Query, Write};
use statewright_shared::services::audit;
use statewright_shared::services::identity::tokens::{NewToken, Owner};
use statewright_shared::services::identity::{invitations, passwords, sessions, tokens};
use statewright_shared::settings::Settings;
use statewright_tests::app::{Answer, Call, ORG, TestApp, USER};
use statewright_tests::issuer::{ISSUER, Issuer};
use statewright_tests::sign_ins;
use statewright_tests::visitor::Visitor;
use tower::ServiceExt as _;

use crate::api::call_counts::counted;
use crate::api::routes::{STATE, path, sent, unit_in};
use crate::identity::credentials::{made, over};
use crate::identity::roles::{NEEDS, commits, issue};
use crate::states::lifecycle::text;
use crate::world::Stack;

const HOUR: Duration = Duration::from_secs(3_600);

const PASSWORD: &str = "correct horse battery";

fn login(text: &str) -> Login {
    Login::parse(text).unwrap()
}

fn org() -> OrgName {
    OrgName::parse(ORG).unwrap()
}

fn token_name(text: &str) -> TokenName {
    TokenName::parse(text).unwrap()
}

fn team_name(text: &str) -> TeamName {
    TeamName::parse(text).unwrap()
}

/// The part of the organization that a grant is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    Everything,
    /// Exactly what the row names.
    Exactly,
    Pattern,
    /// A tag of the stack, and a label of the state.
    Tag,
    Elsewhere,
}

const ON: [On; 5] = [On::Everything, On::Exactly, On::Pattern, On::Tag, On::Elsewhere];

impl On {
    fn scope(self, unit: &str) -> String {
        let (project, name) = unit.split_once('/').unwrap();
        match self {
            Self::Everything => "*".to_owned(),
            Self::Exactly => unit.to_owned(),
            Self::Pattern => format!("{project}*/{}*", &name[..1]),
            Self::Tag => "tag:tier=one".to_owned(),
            Self::Elsewhere => "elsewhere/*".to_owned(),
        }
    }
}

/// What a row asks for rights on.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asks {
    /// The organization itself.
    Whole,
    /// Anything in the organization: it shows what the caller may see, or decides by its body.
    Anything,
    /// One stack, state or environment. `has_tags` tells whether a grant can reach it by a tag.
    Unit { name: String, has_tags: bool },
}

impl Asks {
    fn of(route: &Route, project: &str) -> Self {
        let unit = |name: String, has_tags| Self::Unit { name, has_tags };
        // An explanation is for everybody who may do something in the organization.
        if route.path.ends_with("{stack}/access") {
            return Self::Anything;
        }
        if let Some(name) = unit_in(route, project, project) {
            return unit(name, !route.path.contains("{environment}"));
        }
        match (route.method.as_str(), route.path) {
            // No tag gives a right to what does not exist.
            ("POST", "/api/stacks/{org}/{project}") => unit(format!("{project}/dev"), false),
            ("POST", "/api/esc/environments/{org}") => unit(format!("{project}/dev"), false),
            ("PUT", "/api/esc/environments/{org}/restore") => unit(format!("{project}/dev"), false),
            ("POST", "/api/orgs/{org}/tfstates") => unit(format!("{project}/default"), false),
            // An admin of a part gives roles in that part, and undeletes what was there.
            (_, "/api/orgs/{org}/grants" | "/api/orgs/{org}/restore-stack/{program}") => Self::Anything,
            (_, "/api/orgs/{org}/teams/{team}/roles/{role}") => Self::Anything,
            (
                _,
                "/api/orgs/{org}/members"
                | "/api/orgs/{org}/roles/{role}/users"
                | "/api/orgs/{org}/tfstate-policy"
                | "/api/orgs/{org}/tfstate-policy/compliance",
            ) => Self::Whole,
            _ if matches!(route.needs, Some(Right::Audit | Right::Admin)) => Self::Whole,
            _ => Self::Anything,
        }
    }

    /// Whether a grant reaches it. `None` if the row decides that by more than its path.
    fn is_reached(&self, on: On) -> Option<bool> {
        match (self, on) {
            (_, On::Everything) => Some(true),
            (Self::Anything, _) => None,
            (Self::Whole, _) | (Self::Unit { .. }, On::Elsewhere) => Some(false),
            (Self::Unit { has_tags, .. }, On::Tag) => Some(*has_tags),
            (Self::Unit { .. }, On::Exactly | On::Pattern) => Some(true),
        }
    }
}

/// The kinds of credentials. Each has no role of its own, so that what it may do comes from one grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    User,
    OrganizationToken,
    TeamToken,
    /// A token that works with units alone, and not with the organization.
    TokenOfPart,
    ShortLived,
    Exchanged,
}

/// Somebody with one grant.
struct Holder {
    /// As grants name it.
    to: String,
    token: String,
}

/// The audience of tokens of another issuer.
const AUDIENCE: &str = "urn:pulumi:org:acme";

/// Registers an issuer whose jobs get tokens of the teams.
async fn issuer_of_teams(app: &TestApp) -> Arc<Issuer> {
    let issuer = Issuer::new(ISSUER);
    let new = json!({ "name": "ci", "url": ISSUER, "jwks": issuer.key_set() });
    let registered = app.post(&format!("/api/orgs/{ORG}/oidc/issuers"), &new).send().await.expect(200);
    let policy = json!({
        "decision": "allow", "tokenType": "team", "teamName": "job-*", "rules": { "sub": "job:*" },
    });
    let path = format!("/api/orgs/{ORG}/auth/policies/{}", registered["id"].as_str().unwrap());
    app.patch(&path, &json!({ "policies": [policy] })).send().await.expect(200);
    issuer
}

/// A token of another issuer, as a request for one of this server.
fn exchange(app: &TestApp, issuer: &Issuer, kind: &str, scope: &str) -> Value {
    let now = app.context.now().seconds();
    let claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "job:a", "iat": now, "exp": now + 300 });
    json!({
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "audience": AUDIENCE,
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "subject_token": issuer.token(&claims),
        "requested_token_type": format!("urn:pulumi:token-type:access_token:{kind}"),
        "scope": scope,
    })
}

async fn ask_for_token(app: &TestApp, request: &Value) -> Answer {
    app.post("/api/oauth/token", request).anonymous().send().await
}

fn secret_in(answer: &Answer) -> String {
    answer.expect(200)["access_token"].as_str().unwrap().to_owned()
}

async fn new_team(app: &TestApp, name: &str) {
    let new = json!({ "name": name, "displayName": "", "description": "", "teamType": "pulumi" });
    app.post(&format!("/api/orgs/{ORG}/teams/pulumi"), &new).send().await.expect(201);
}

async fn holder(app: &TestApp, issuer: &Issuer, kind: Kind, number: usize) -> Holder {
    let named = |what: &str| format!("{what}-{number}");
    let (to, token) = match kind {
        Kind::User => {
            let name = named("user");
            (format!("user:{name}"), app.member_with_role(Role::None, &name, "ci").await)
        }
        Kind::OrganizationToken => {
            let name = named("machine");
            let token = issue(app, Owner::Organization(org()), &name, Some(Role::None), None).await;
            (format!("token:{name}"), token)
        }
        Kind::TeamToken => {
            let name = named("team");
            new_team(app, &name).await;
            let owner = Owner::Team(org(), team_name(&name));
            (format!("team:{name}"), issue(app, owner, &name, None, None).await)
        }
        Kind::TokenOfPart => {
            let name = named("part");
            app.member_with_role(Role::None, &name, "unused").await;
            let owner = Owner::User(login(&name));
            (format!("user:{name}"), issue(app, owner, "part", None, Some("*/d*")).await)
        }
        Kind::ShortLived => {
            let name = named("short");
            let token = app.member_with_role(Role::None, &name, "long").await;
            let request = json!({ "grant_type": "refresh_token", "refresh_token": token });
            (format!("user:{name}"), secret_in(&ask_for_token(app, &request).await))
        }
        Kind::Exchanged => {
            let name = named("job");
            new_team(app, &name).await;
            let request = exchange(app, issuer, "team", &format!("team:{name}"));
            (format!("team:{name}"), secret_in(&ask_for_token(app, &request).await))
        }
    };
    // Its first use is recorded, and the process knows it from here on.
    app.get("/api/user").token(&token).send().await.expect(200);
    Holder { to, token }
}

/// Each role on each part on which it can be granted. Without a role there is no grant.
fn grants() -> Vec<(Role, On)> {
    let mut all = vec![(Role::None, On::Everything)];
    for role in Role::ALL.into_iter().filter(|role| *role != Role::None) {
        // The trail is of the whole organization.
        let is_possible = |on: &On| role != Role::Auditor || *on == On::Everything;
        all.extend(ON.into_iter().filter(is_possible).map(|on| (role, on)));
    }
    all
}

/// Makes what a row names, and returns its path.
async fn prepared(app: &TestApp, route: &Route, number: usize) -> (String, String) {
    let stack = Stack::new(app).await;
    let (project, mut update) = (stack.project.clone(), String::new());
    let id = format!("019b7c3a-0000-7000-8000-{:012x}", 0x1000 + number);
    let tag = json!({ "name": "tier", "value": "one" });
    if route.path.contains("{stack}") {
        stack.post("/tags", &tag).send().await.expect(204);
    }
    if route.path.contains("{update}") {
        update = stack.begin().await.id;
    }
    if route.path.contains("{guid}") || route.path.contains("{state}") || route.path.starts_with("/tfstate/")
    {
        let state = json!({ "id": id, "project": project, "labels": { "tier": "one" } });
        app.post(&format!("/api/orgs/{ORG}/tfstates"), &state).send().await.expect(200);
        app.post(&format!("/tfstate/{id}"), &text(1, &["a"])).send().await.expect(200);
    }
    if route.path.contains("{environment}") {
        let environment = json!({ "project": project, "name": "dev" });
        app.post(&format!("/api/esc/environments/{ORG}"), &environment).send().await.expect(204);
    }
    (path(route, &project, &update).replace(STATE, &id), project)
}

/// A body with which the row finds what this project has.
fn body(route: &Route, project: &str) -> Value {
    if route.method == Method::POST && route.path == "/api/orgs/{org}/tfstates" {
        return json!({ "project": project });
    }
    let mut body = sent(route);
    if body.get("project").is_some() {
        body["project"] = project.into();
        if route.path.starts_with("/api/esc/environments/{org}") {
            body["name"] = "dev".into();
        }
    }
    body
}

/// The status and the text of a row's answer to this token. Without a socket, which would take most of the time.
async fn answer_to(router: &Router, route: &Route, path: &str, token: &str, body: &Value) -> (u16, String) {
    let request = Request::builder()
        .method(route.method.as_str())
        .uri(path)
        .header("Host", "127.0.0.1")
        .header("Authorization", format!("token {token}"))
        .header("Content-Type", "application/json");
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let answer = router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, String::from_utf8_lossy(&bytes).into_owned())
}

/// Each row with each role on each part, for credentials of this kind.
async fn each_row_asks_for_the_role_of_a_grant(kind: Kind) {
    let (app, counter) = counted().await;
    let issuer = issuer_of_teams(&app).await;
    let grants = grants();
    let mut holders = Vec::new();
    for number in 0..grants.len() {
        holders.push(Box::pin(holder(&app, &issuer, kind, number)).await);
    }
    let teams: Map<String, Value> = holders
        .iter()
        .filter_map(|holder| holder.to.strip_prefix("team:"))
        .map(|team| (team.to_owned(), json!({})))
        .collect();
    let router = app.router();
    let (mut refused, mut allowed) = (0, 0);
    for (row, route) in ROUTES.iter().filter(|route| route.needs.is_some()).enumerate() {
        let needs = route.needs.unwrap();
        let (path, project) = Box::pin(prepared(&app, route, row)).await;
        let asks = Asks::of(route, &project);
        let unit = match &asks {
            Asks::Unit { name, .. } => name.clone(),
            Asks::Whole | Asks::Anything => format!("{project}/dev"),
        };
        let is_outside = kind == Kind::TokenOfPart && !matches!(asks, Asks::Unit { .. });
        // Those who are refused ask first, while everything is there.
        let mut calls = Vec::new();
        let mut given = Vec::new();
        for ((role, on), holder) in grants.iter().zip(&holders) {
            if *role != Role::None {
                given.push(json!({ "to": holder.to, "on": on.scope(&unit), "role": role }));
            }
            let is_reached = match (&asks, is_outside) {
                (Asks::Whole, true) => Some(false),
                (Asks::Anything, true) => None,
                _ => asks.is_reached(*on),
            };
            let is_allowed = if role.gives(needs) { is_reached } else { Some(false) };
            calls.push((is_allowed, *role, *on, holder));
        }
        calls.sort_by_key(|(is_allowed, ..)| *is_allowed != Some(false));
        let access = json!({ "teams": teams, "grants": given });
        let access = app.request(Method::PUT, &format!("/api/orgs/{ORG}/access")).json(&access);
        access.send().await.expect(200);
        let body = body(route, &project);
        let ask = |token| answer_to(&router, route, &path, token, &body);
        let is_shown = route.method == Method::GET && ask(&app.token).await.0 == 200;
        for (is_allowed, role, on, holder) in calls {
            let what = format!("{route:?} as {role} on {on:?} by {kind:?}");
            counter.take();
            let (status, text) = ask(&holder.token).await;
            let calls = counter.take();
            assert!(status < 500 && status != 401, "{what}: {status} {text}");
            if is_allowed == Some(false) {
                assert!([403, 404].contains(&status), "{what}: {status} {text}");
                let kept = calls.ledger_single_commits;
                assert!(kept <= 1 && commits(calls) == kept, "{what}: {calls:?}");
                refused += 1;
                continue;
            }
            // Its body or its object may need a higher role, and then the text differs.
            assert!(!text.contains(&format!("this {NEEDS}")), "{what}: {text}");
            if is_shown && is_allowed == Some(true) {
                assert_eq!(status, 200, "{what}: {text}");
            }
            allowed += 1;
        }
    }
    let rows = ROUTES.iter().filter(|route| route.needs.is_some()).count();
    assert_eq!(refused + allowed, rows * grants.len());
    assert!(refused > 1_000 && allowed > 1_000, "{refused} {allowed}");
}

#[tokio::test]
async fn each_row_asks_for_the_role_of_a_users_grant() {
    Box::pin(each_row_asks_for_the_role_of_a_grant(Kind::User)).await;
}

#[tokio::test]
async fn each_row_asks_for_the_role_of_a_machines_grant() {
    Box::pin(each_row_asks_for_the_role_of_a_grant(Kind::OrganizationToken)).await;
}

#[tokio::test]
async fn each_row_asks_for_the_role_of_a_teams_grant() {
    Box::pin(each_row_asks_for_the_role_of_a_grant(Kind::TeamToken)).await;
}

#[tokio::test]
async fn each_row_keeps_a_token_in_its_part() {
    Box::pin(each_row_asks_for_the_role_of_a_grant(Kind::TokenOfPart)).await;
}

#[tokio::test]
async fn each_row_gives_a_short_lived_token_no_more() {
    Box::pin(each_row_asks_for_the_role_of_a_grant(Kind::ShortLived)).await;
}

#[tokio::test]
async fn each_row_asks_for_the_role_of_a_jobs_grant() {
    Box::pin(each_row_asks_for_the_role_of_a_grant(Kind::Exchanged)).await;
}

/// The rows that take a token or what stands for one.
fn rows_of_people() -> impl Iterator<Item = &'static Route> {
    ROUTES.iter().filter(|route| matches!(route.auth, Auth::Token | Auth::State | Auth::Run))
}

/// The state that rows name by its ID, with a version.
async fn state(app: &TestApp) {
    let state = json!({ "id": STATE, "project": "net" });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &state).send().await.expect(200);
    app.post(&format!("/tfstate/{STATE}"), &text(1, &["a"])).send().await.expect(200);
}

/// Tokens that are revoked, expired, or of a team that is gone.
async fn ended_tokens(app: &TestApp) -> Vec<(String, String)> {
    let ctx = &app.context;
    for team in ["stays", "goes"] {
        new_team(app, team).await;
    }
    app.member_with_role(Role::Admin, "ann", "laptop").await;
    let owners = [
        ("personal", Owner::User(login("ann"))),
        ("organization", Owner::Organization(org())),
        ("team", Owner::Team(org(), team_name("stays"))),
    ];
    let mut ended = Vec::new();
    for (kind, owner) in owners {
        for is_short_lived in [false, true] {
            for is_revoked in [false, true] {
                let name = token_name(&format!("{kind}-{is_short_lived}-{is_revoked}"));
                let end = if is_revoked { 100 * HOUR } else { HOUR };
                let new = NewToken {
                    may: Some(Role::Admin),
                    expires: Some(ctx.now().plus(end)),
                    is_short_lived,
                    ..NewToken::new(owner.clone(), name.clone())
                };
                let token = tokens::issue(ctx, new).await.unwrap().secret;
                app.get("/api/user").token(&token).send().await.expect(200);
                if is_revoked {
                    tokens::revoke(ctx, &owner, &name).await.unwrap();
                }
                ended.push((name.to_string(), token));
            }
        }
    }
    let gone = issue(app, Owner::Team(org(), team_name("goes")), "gone", None, None).await;
    app.get("/api/user").token(&gone).send().await.expect(200);
    let team = format!("/api/orgs/{ORG}/teams/goes");
    app.request(Method::DELETE, &team).send().await.expect(204);
    ended.push(("of a team that is gone".to_owned(), gone));
    ended
}

/// A token of a user whom the provider has to confirm again within the hour.
async fn stopping_token(app: &TestApp) -> String {
    let token = app.member_with_role(Role::Admin, "dora", "laptop").await;
    sign_ins::confirm_for(app, "dora", HOUR).await;
    app.get("/api/user/stacks").token(&token).send().await.expect(200);
    token
}

#[tokio::test]
async fn each_row_refuses_ended_credentials_of_every_kind() {
    let app = TestApp::memory().await;
    let ctx = &app.context;
    state(&app).await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let ended = Box::pin(ended_tokens(&app)).await;
    let stopped = stopping_token(&app).await;

    app.member_with_role(Role::Admin, "bob", "laptop").await;
    let (bob, read) = (login("bob"), format!("/tfstate/{STATE}"));
    let mut certificates = Vec::new();
    // The first is revoked, and the second expires.
    for number in [1, 2] {
        let (name, made) = (token_name(&format!("key-{number}")), made(number));
        tokens::create_certificate(ctx, &bob, &name, &made, None, None).await.unwrap();
        let der = Bytes::from(made.der);
        assert_eq!(over(&app, &der, "GET", &read, &[], &Value::Null).await, 200);
        certificates.push(der);
    }
    tokens::revoke_token(ctx, &bob, &token_name("key-1")).await.unwrap();

    let basic = |login: &str| format!("Basic {}", STANDARD.encode(format!("{login}:{PASSWORD}")));
    app.member_with_role(Role::Admin, "carol", "laptop").await;
    for user in ["bob", "carol"] {
        passwords::set(ctx, &login(user), PASSWORD).await.unwrap();
        let call = app.get(&read).anonymous().header("Authorization", &basic(user));
        call.send().await.expect(200);
    }
    passwords::set(ctx, &bob, "another horse battery").await.unwrap();
    passwords::remove(ctx, &login("carol")).await.unwrap();

    let mut cookies = Vec::new();
    for _ in 0..3 {
        let begun = sessions::begin(ctx, &bob, SignedInBy::Password, "Firefox").await.unwrap();
        by_console(&app, &Method::GET, "/api/user", Some(&begun.cookie)).await.expect(200);
        cookies.push(begun.cookie);
    }
    sessions::end(ctx, &cookies[0]).await.unwrap();
    let listed = sessions::list_of(ctx, &bob).await.unwrap();
    sessions::end_by_id(ctx, &bob, &listed[0].id).await.unwrap();

    // Past the minute for which a process remembers a caller, and not past the day in which a run may end.
    app.advance(HOUR + REMEMBERED_FOR);
    for route in rows_of_people() {
        let path = path(route, &stack.project, &run.id);
        for (name, token) in &ended {
            let call = app.request(route.method.clone(), &path).token(token).json(&json!({}));
            let answer = call.send().await;
            assert_eq!(answer.status, 401, "{route:?} with {name}: {}", answer.text());
        }
        let call = app.request(route.method.clone(), &path).token(&stopped).json(&json!({}));
        let answer = call.send().await;
        // One row tells who asks, since `pulumi login` shows no reason of a refusal.
        let tells_who = route.method == Method::GET && route.path == "/api/user";
        let expected: u16 = if tells_who { 200 } else { 401 };
        assert_eq!(answer.status, expected, "{route:?} with a stopped token: {}", answer.text());
        if route.auth == Auth::Token {
            continue;
        }
        for der in &certificates {
            let status = over(&app, der, route.method.as_str(), &path, &[], &json!({})).await;
            assert_eq!(status, 401, "{route:?} with a certificate");
        }
        for user in ["bob", "carol"] {
            let call = app.request(route.method.clone(), &path).anonymous().json(&json!({}));
            let answer = call.header("Authorization", &basic(user)).send().await;
            assert_eq!(answer.status, 401, "{route:?} with a password: {}", answer.text());
        }
        // Wrong passwords are slowed down.
        app.advance(Duration::from_secs(31));
    }
    // The last session ends by itself.
    app.advance(24 * HOUR);
    for route in ROUTES.iter().filter(|route| route.auth == Auth::Token) {
        let path = path(route, &stack.project, &run.id);
        for cookie in &cookies {
            let answer = by_console(&app, &route.method, &path, Some(cookie)).await;
            assert_eq!(answer.status, 401, "{route:?} with a session: {}", answer.text());
        }
    }
    assert_eq!(stack.get("").send().await.expect(200)["stackName"], "dev");
}

/// A request as the console sends it.
async fn by_console(app: &TestApp, method: &Method, path: &str, cookie: Option<&str>) -> Answer {
    let call = app.request(method.clone(), path).anonymous().header("X-Statewright-Console", "1");
    with_cookie(call.header("Sec-Fetch-Site", "same-origin"), cookie).send().await
}

/// A request of a page of this server, of a client that is shown JSON.
async fn by_page(app: &TestApp, method: &Method, path: &str, cookie: Option<&str>) -> Answer {
    let call = app.request(method.clone(), path).anonymous().header("Sec-Fetch-Site", "same-origin");
    with_cookie(call, cookie).send().await
}

fn with_cookie<'a>(call: Call<'a>, cookie: Option<&str>) -> Call<'a> {
    match cookie {
        Some(cookie) => call.header("Cookie", &format!("statewright={cookie}")),
        None => call,
    }
}

#[tokio::test]
async fn each_page_of_a_person_refuses_other_sessions() {
    let (app, counter) = counted().await;
    app.member("bob", "laptop").await;
    let begin = async || {
        let begun = sessions::begin(&app.context, &login("bob"), SignedInBy::Password, "Firefox").await;
        begun.unwrap().cookie
    };
    let (good, ended) = (begin().await, begin().await);
    sessions::end(&app.context, &ended).await.unwrap();
    let secret = good.split_once('.').unwrap().1;
    let unknown = format!("bob.sws_{}", "0".repeat(64));
    let cookies = [
        None,
        Some(String::new()),
        Some("bob".to_owned()),
        Some(secret.to_owned()),
        Some(format!("{USER}.{secret}")),
        Some(format!("bob.{}", app.token)),
        Some(good.to_uppercase()),
        Some(unknown),
        Some(ended),
    ];
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    assert_eq!(by_page(&app, &Method::GET, "/user/settings/account", Some(&good)).await.status, 200);
    by_console(&app, &Method::GET, "/api/user", Some(&good)).await.expect(200);
    counter.take();
    let (mut pages, mut rows) = (0, 0);
    for route in ROUTES.iter().filter(|route| matches!(route.auth, Auth::Session | Auth::Token)) {
        let path = path(route, &stack.project, &run.id);
        for cookie in &cookies {
            let cookie = cookie.as_deref();
            let answer = match route.auth {
                Auth::Session => by_page(&app, &route.method, &path, cookie).await,
                _ => by_console(&app, &route.method, &path, cookie).await,
            };
            assert_eq!(answer.status, 401, "{route:?} with {cookie:?}: {}", answer.text());
        }
        if route.auth == Auth::Session {
            pages += 1;
        } else {
            rows += 1;
        }
    }
    assert!(pages > 10 && rows > 100, "{pages} {rows}");
    nothing_is_written(&app, &counter).await;
}

/// Neither at once nor when what happened in a minute is summed up.
async fn nothing_is_written(app: &TestApp, counter: &Counter) {
    app.advance(Duration::from_secs(61));
    audit::flush(&app.context, false).await.unwrap();
    let calls = counter.take();
    assert_eq!(commits(calls), 0, "{calls:?}");
}

/// More guesses of each kind than are free.
const GUESSES: u32 = 6;

#[tokio::test]
async fn no_guess_is_written() {
    let (app, counter) = counted().await;
    let ctx = &app.context;
    let alice = login(USER);
    let issuer = Box::pin(issuer_of_teams(&app)).await;
    new_team(&app, "job-web").await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    passwords::set(ctx, &alice, PASSWORD).await.unwrap();
    let invited = invitations::invite(ctx, &alice, HOUR).await.unwrap();
    let begun = sessions::begin(ctx, &alice, SignedInBy::Password, "Firefox").await.unwrap();
    // Each of them is good.
    secret_in(&ask_for_token(&app, &exchange(&app, &issuer, "team", "team:job-web")).await);
    run.renew(300).await.expect(200);
    let page = by_page(&app, &Method::GET, "/user/settings/account", Some(&begun.cookie)).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let other = Issuer::new(ISSUER);
    let (net, refused) = (format!("/tfstate/{ORG}/net"), [401, 403, 429]);
    // The process knows the user, the organization and the names from here on.
    assert_eq!(app.get(&net).send().await.status, 204);
    let mut browser = Visitor::new(&app.url);
    counter.take();
    for number in 0..GUESSES {
        let token = format!("swt_{number:064x}");
        let password = format!("wrong horse battery {number}");
        let basic = format!("Basic {}", STANDARD.encode(format!("{USER}:{password}")));
        let lease = json!({ "token": "", "duration": 300 });
        let renew = app.post(&format!("{}/renew_lease", run.path), &lease);
        let code = json!({
            "grant_type": "authorization_code", "code": format!("{USER}.swc_{number:064x}"),
            "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        });
        let refresh = json!({ "grant_type": "refresh_token", "refresh_token": token });
        let forged = exchange(&app, &other, "team", "team:job-web");
        let cookie = format!("{USER}.sws_{number:064x}");
        let answers = [
            app.get("/api/user").token(&token).send().await,
            app.get(&net).token(&token).send().await,
            app.get(&net).anonymous().header("Authorization", &basic).send().await,
            renew.update_token(&format!("{}{number}", run.token)).send().await,
            ask_for_token(&app, &code).await,
            ask_for_token(&app, &refresh).await,
            ask_for_token(&app, &forged).await,
            by_page(&app, &Method::GET, "/user/settings/account", Some(&cookie)).await,
            by_console(&app, &Method::GET, "/api/user", Some(&cookie)).await,
        ];
        for (at, answer) in answers.iter().enumerate() {
            let status = answer.status.as_u16();
            assert!(refused.contains(&status), "guess {at}: {status} {}", answer.text());
        }
        let invitation = format!("{}{number}", invited.code);
        let shown = [
            browser.submit("/signin", &[("login", USER), ("password", &password)]).await,
            browser.open(&format!("/invite?code={invitation}")).await,
            browser.submit("/invite", &[("code", &invitation)]).await,
        ];
        for (at, shown) in shown.iter().enumerate() {
            let status = shown.status.as_u16();
            assert!(refused.contains(&status), "form {at}: {status} {}", shown.text);
        }
    }
    nothing_is_written(&app, &counter).await;
}

/// A ledger that never answers for these items.
struct Silent {
    inner: Arc<dyn Ledger>,
    of: Vec<ItemKey>,
}

#[async_trait]
impl Ledger for Silent {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        if self.of.contains(key) {
            std::future::pending::<()>().await;
        }
        self.inner.get(key).await
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.inner.query(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        self.inner.commit(writes).await
    }
    fn inline_bytes_max(&self) -> usize {
        self.inner.inline_bytes_max()
    }
}

/// A process that knows nothing looks for the stack before it knows who asks.
#[tokio::test]
async fn a_cold_process_refuses_without_what_it_reads_ahead() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let nothing = app.member_with_role(Role::None, "bob", "ci").await;
    let elsewhere = app.member_with_role(Role::None, "carol", "ci").await;
    let stranger = app.other_user("dan", "others").await;
    let grant = json!({ "to": "user:carol", "on": "elsewhere/*", "role": "view" });
    let access = app.request(Method::PUT, &format!("/api/orgs/{ORG}/access"));
    access.json(&json!({ "teams": {}, "grants": [grant] })).send().await.expect(200);
    let key = |name: &str| -> ItemKey {
        let project = ProjectName::parse(&stack.project).unwrap();
        let address = StackAddress { org: org(), project, stack: StackName::parse(name).unwrap() };
        StackEntry::key(&address).into()
    };
    let cold = async || {
        let of = vec![key("dev"), key("gone")];
        let ledger = Silent { inner: Arc::clone(&app.context.ledger), of };
        app.over(Arc::new(ledger), Settings::default()).await
    };
    let path = |name: &str| format!("/api/stacks/{ORG}/{}/{name}/resources", stack.project);
    for token in [&nothing, &elsewhere, &stranger] {
        let mut refusals = Vec::new();
        for name in ["dev", "gone"] {
            let process = cold().await;
            let asked = process.get(&path(name)).token(token).send();
            let answer = tokio::time::timeout(Duration::from_secs(60), asked).await.expect("it is answered");
            let status = answer.status.as_u16();
            assert!([403, 404].contains(&status), "{status} {}", answer.text());
            refusals.push((status, answer.text().replace(name, "NAME")));
        }
        assert_eq!(refusals[0], refusals[1]);
    }
    // The ledger is silent indeed.
    let process = cold().await;
    let asked = process.get(&path("dev")).send();
    assert!(tokio::time::timeout(Duration::from_millis(300), asked).await.is_err());
}

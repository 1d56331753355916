//! Signing in with a browser: providers whose answers are wrong, sessions, invitations, and the pages of a person's
//! own tokens. `tests/pulumi/browser.rs` has the same with a real browser and a real provider.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::adapters::SystemIds;
use statewright_shared::api::routes::{Auth, ROUTES, Route};
use statewright_shared::domain::access::{Access, Team, TeamRole};
use statewright_shared::domain::names::{Login, OrgName, ProviderName, TeamName, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::domain::sign_in::SignInRule;
use statewright_shared::layout::{AuditRecord, AuditResult, OrgAccess, Record as _, SignedInBy, put};
use statewright_shared::ports::{Expect, Ids as _, Order, WEB_TIME_MAX};
use statewright_shared::services::identity::{
    accounts, code_flow, given_providers, invitations, orgs, passwords, providers, sessions, tokens, users,
};
use statewright_shared::services::{Error, audit};
use statewright_shared::settings::Settings;
use statewright_tests::app::{Answer, Backend, Call, ORG, START, TestApp, USER};
use statewright_tests::fake_provider::{Behavior, CLIENT_ID, FakeProvider};
use statewright_tests::sign_ins::{self, add, rule};
use statewright_tests::stopwatch::Stopwatch;
use statewright_tests::visitor::Visitor;

use crate::api::routes::{EDGE, path};

fn login(name: &str) -> Login {
    Login::parse(name).unwrap()
}

fn org(name: &str) -> OrgName {
    OrgName::parse(name).unwrap()
}

/// A server with a provider, whose people of the group `dev` may apply.
async fn with_provider() -> (TestApp, FakeProvider) {
    let app = TestApp::memory().await;
    let provider = sign_ins::with_provider(&app).await;
    (app, provider)
}

/// Servers on a manual clock: in memory, on a folder, and two processes on AWS. Each with its number of processes.
async fn everywhere() -> [(TestApp, usize); 3] {
    [
        (TestApp::memory().await, 1),
        (Box::pin(TestApp::embedded_on_manual_clock()).await, 1),
        (Box::pin(TestApp::on_manual_clock(Backend::Aws)).await, 2),
    ]
}

async fn role(app: &TestApp, name: &str) -> Option<Role> {
    let members = orgs::members(&app.context, &org(ORG)).await.unwrap();
    members.into_iter().find_map(|(login, role)| (login.as_str() == name).then_some(role))
}

#[tokio::test]
async fn a_first_sign_in_makes_the_user_whom_a_rule_lets_in() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    let page = browser.open("/signin").await;
    assert!(page.text.contains("Sign in with The corp"), "{}", page.text);
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    assert_eq!(browser.user().await.as_deref(), Some("bob"));
    assert_eq!(role(&app, "bob").await, Some(Role::Apply));
    let page = browser.open("/user/settings/account").await;
    for shown in ["The corp", "Linked 2026-01-01: bob", "This browser", "before 2026-01-31"] {
        assert!(page.text.contains(shown), "{shown}: {}", page.text);
    }
}

#[tokio::test]
async fn the_clients_address_for_a_new_sign_in_leads_back() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    browser.open("/signin/sso/acme/reauth").await.leads("/signin?next=/acme");
    let page = browser.open("/signin?next=/acme").await;
    assert!(page.text.contains("/signin/corp?next=%2Facme"), "{}", page.text);
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    // Also for a person who is signed in.
    browser.open("/signin/sso/acme/reauth").await.leads("/signin?next=/acme");
    browser.open("/signin/sso/a%2Fb/reauth").await.refuses(400);
}

#[tokio::test]
async fn a_person_is_known_by_issuer_and_subject_alone() {
    let (app, provider) = with_provider().await;
    Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    // The same person under another name is the same user.
    let renamed = BTreeMap::from([("preferred_username", json!("robert"))]);
    provider.behaves(Behavior { claims: renamed, ..Behavior::default() });
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    assert_eq!(browser.user().await.as_deref(), Some("bob"));
    // Another person under the same name is refused.
    let taken = BTreeMap::from([("preferred_username", json!("bob")), ("email", json!("bob@example.com"))]);
    provider.behaves(Behavior { claims: taken, ..Behavior::default() });
    let refused = Visitor::new(&app.url).sign_in(&provider, "corp", "other").await.refuses(409);
    assert!(refused.starts_with("The user bob exists and is not linked with your account"), "{refused}");
    // So is one of another issuer with the same subject.
    let other = FakeProvider::start(START.seconds()).await;
    add(&app, "other", &other, &[rule("dev", Role::Admin)]).await;
    Visitor::new(&app.url).sign_in(&other, "other", "bob").await.refuses(409);
    assert_eq!(role(&app, "bob").await, Some(Role::Apply));
}

#[tokio::test]
async fn groups_decide_anew_at_each_sign_in() {
    let (app, provider) = with_provider().await;
    let name = ProviderName::parse("corp").unwrap();
    let rules = [rule("dev", Role::Apply), rule("ops-*", Role::Admin)];
    providers::set_rules(&app.context, &name, &rules).await.unwrap();
    let groups =
        |groups: Value| Behavior { claims: BTreeMap::from([("groups", groups)]), ..Behavior::default() };
    for (given, expected) in [(json!(["ops-eu"]), Role::Admin), (json!(["dev", "x"]), Role::Apply)] {
        provider.behaves(groups(given));
        Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
        assert_eq!(role(&app, "bob").await, Some(expected));
    }
    // Without a group that a rule names, the membership ends, and a new person is not let in.
    provider.behaves(groups(json!(["sales"])));
    for subject in ["bob", "eve-1"] {
        app.take_audit();
        let refused = Visitor::new(&app.url).sign_in(&provider, "corp", subject).await.refuses(403);
        assert!(refused.starts_with("No rule of the provider corp lets you in"), "{refused}");
        let records = app.take_audit();
        let record = records.last().unwrap();
        assert_eq!((&record["action"], &record["detail"]), (&json!("session.begin"), &json!("corp")));
        assert_eq!((&record["result"], &record["status"]), (&json!("refused"), &json!(403)));
        assert_eq!(record["user"], Value::Null);
        assert_eq!(role(&app, subject).await, None);
    }
    // What an operator gave is not taken away.
    orgs::create(&app.context, &org("beta"), &[login("bob")]).await.unwrap();
    Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    let members = orgs::members(&app.context, &org("beta")).await.unwrap();
    assert_eq!(members, [(login("bob"), Role::Member)]);
}

#[tokio::test]
async fn the_last_admin_keeps_the_role_that_no_rule_gives() {
    let (app, provider) = with_provider().await;
    let name = ProviderName::parse("corp").unwrap();
    providers::set_rules(&app.context, &name, &[rule("dev", Role::Admin)]).await.unwrap();
    Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    users::remove(&app.context, &login(USER)).await.unwrap();
    providers::set_rules(&app.context, &name, &[rule("dev", Role::Plan)]).await.unwrap();
    Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    assert_eq!(role(&app, "bob").await, Some(Role::Admin));
    let query = AuditRecord::of_trail(Some(&org(ORG))).query(None, Order::Ascending, 1_000);
    let items = app.context.ledger.query(&query).await.unwrap().items;
    let records: Vec<AuditRecord> =
        items.iter().map(|item| AuditRecord::decode(&item.value).unwrap()).collect();
    let noted: Vec<_> = records.iter().filter(|record| record.action == "member.role").collect();
    let [noted] = noted[..] else { panic!("{records:?}") };
    assert_eq!((noted.user.as_ref(), noted.result), (Some(&login("bob")), AuditResult::Refused));
    let message = "bob stays the last admin, although no rule of the provider corp says so";
    assert_eq!(noted.detail.as_deref(), Some(message));
    // As soon as there is another admin, the rule counts.
    app.member_with_role(Role::Admin, "ann", "laptop").await;
    Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    assert_eq!(role(&app, "bob").await, Some(Role::Plan));
}

#[tokio::test]
async fn groups_that_were_left_out_change_nothing() {
    let (app, provider) = with_provider().await;
    Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    for left_out in [
        ("_claim_names", json!({ "groups": "src1" })),
        ("hasgroups", json!(true)),
        ("groups", json!({ "dev": true })),
    ] {
        let claims = BTreeMap::from([left_out.clone()]);
        provider.behaves(Behavior { claims, ..Behavior::default() });
        let refused = Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.refuses(403);
        assert!(refused.contains("administrator"), "{left_out:?}: {refused}");
        assert_eq!(role(&app, "bob").await, Some(Role::Apply));
    }
}

#[tokio::test]
async fn a_token_that_is_not_for_this_sign_in_is_refused() {
    for (app, _) in Box::pin(everywhere()).await {
        let provider = sign_ins::with_provider(&app).await;
        Box::pin(sign_ins::refuses_wrong_tokens(&app, &provider, 0)).await;
    }
}

#[tokio::test]
async fn a_sign_in_ends_in_the_browser_that_began_it() {
    for (app, _) in Box::pin(everywhere()).await {
        Box::pin(ends_where_it_began(&app)).await;
    }
}

async fn ends_where_it_began(app: &TestApp) {
    let provider = sign_ins::with_provider(app).await;
    let (mut mallory, mut victim) = (Visitor::new(&app.url), Visitor::new(&app.url));
    let led = mallory.open("/signin/corp").await;
    let query = provider.sign_in(&led.leads_to, "mallory");
    let callback = format!("/signin/corp/callback?{query}");
    // Somebody else's answer, in a browser without and with a sign-in of its own.
    let refused = victim.open(&callback).await.refuses(400);
    assert!(refused.starts_with("This sign-in was begun in another browser"), "{refused}");
    victim.open("/signin/corp").await;
    let refused = victim.open(&callback).await.refuses(400);
    assert!(refused.starts_with("The answer of the provider belongs to another sign-in"), "{refused}");
    assert_eq!(victim.user().await, None);
    // An answer that names another issuer.
    let mixed = mallory.open(&format!("{callback}&iss=https%3A%2F%2Fevil.example")).await.refuses(400);
    assert!(mixed.starts_with("The answer of the provider belongs to another sign-in"), "{mixed}");
    // The right one works once.
    let attempt = mallory.cookies.clone();
    mallory.open(&callback).await.leads("/user/settings/account");
    mallory.cookies = attempt.clone();
    let replayed = mallory.open(&callback).await.refuses(403);
    assert!(replayed.contains("refused the sign-in (invalid_grant)"), "{replayed}");
    // It is over after ten minutes.
    mallory.cookies.clear();
    let led = mallory.open("/signin/corp").await;
    let query = provider.sign_in(&led.leads_to, "mallory");
    app.advance(Duration::from_secs(601));
    mallory.open(&format!("/signin/corp/callback?{query}")).await.refuses(400);
}

#[tokio::test]
async fn an_answer_of_one_provider_is_not_taken_for_another() {
    for (app, _) in Box::pin(everywhere()).await {
        let provider = sign_ins::with_provider(&app).await;
        Box::pin(sign_ins::keeps_providers_apart(&app, &provider)).await;
    }
}

#[tokio::test]
async fn a_changed_cookie_begins_nothing() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    let led = browser.open("/signin/corp").await;
    let query = provider.sign_in(&led.leads_to, "bob");
    let right = browser.cookies.clone();
    let (name, value) = right.first_key_value().unwrap();
    for wrong in ["", "AAAA", &value[..value.len() - 2], &format!("AA{}", &value[2..])] {
        browser.cookies.insert(name.clone(), wrong.to_owned());
        browser.open(&format!("/signin/corp/callback?{query}")).await.refuses(400);
    }
    browser.cookies = right;
    browser.open(&format!("/signin/corp/callback?{query}")).await.leads("/user/settings/account");
}

#[tokio::test]
async fn a_rotated_key_is_found_and_keys_are_read_rarely() {
    for (app, processes) in Box::pin(everywhere()).await {
        let provider = sign_ins::with_provider(&app).await;
        Box::pin(sign_ins::finds_rotated_keys(&app, &provider, processes)).await;
    }
}

#[tokio::test]
async fn documents_of_a_provider_are_read_once() {
    let (app, provider) = with_provider().await;
    let sign_in = async || Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await;
    sign_in().await.leads("/user/settings/account");
    assert_eq!(provider.take_requests(), ["configuration", "keys", "token"]);
    sign_in().await.leads("/user/settings/account");
    assert_eq!(provider.take_requests(), ["token"]);
    // Those of another key are read again, after a minute.
    provider.behaves(Behavior { signs_with: 2, publishes: vec![1, 2], ..Behavior::default() });
    app.advance(Duration::from_secs(61));
    provider.shows(START.seconds() + 61);
    sign_in().await.leads("/user/settings/account");
    assert_eq!(provider.take_requests(), ["token", "configuration", "keys"]);
}

#[tokio::test]
async fn a_provider_that_is_down_stops_no_other_way() {
    for (app, processes) in Box::pin(everywhere()).await {
        let provider = sign_ins::with_provider(&app).await;
        Box::pin(sign_ins::finds_a_provider_down(&app, &provider, processes)).await;
        Box::pin(sign_ins::finds_a_provider_down_at_the_exchange(&app, &provider)).await;
    }
}

/// Up to the limit of a request, in real time: a connection to a provider knows no other clock.
#[tokio::test]
async fn a_provider_without_an_answer_is_given_up() {
    let servers = Box::pin(everywhere()).await;
    join_all(servers.iter().map(|(app, processes)| Box::pin(gives_up(app, *processes)))).await;
}

async fn gives_up(app: &TestApp, processes: usize) {
    let provider = sign_ins::with_provider(app).await;
    let silent = || Behavior { is_silent: true, ..Behavior::default() };
    provider.behaves(silent());
    let watch = Stopwatch::start();
    let mut browser = Visitor::new(&app.url);
    let refused = browser.open("/signin/corp").await.refuses(503);
    assert!(refused.starts_with("The provider corp does not answer"), "{refused}");
    assert!(watch.elapsed() >= WEB_TIME_MAX, "{:?}", watch.elapsed());
    // Others do not wait for it.
    for _ in 0..5 {
        Visitor::new(&app.url).open("/signin/corp").await.refuses(503);
    }
    assert_eq!(provider.take_requests(), vec!["configuration"; processes]);
    assert_eq!(Visitor::new(&app.url).open("/signin").await.status, 200);

    // While it has a code to exchange.
    app.advance(Duration::from_secs(6));
    provider.behaves(Behavior::default());
    let led = browser.open("/signin/corp").await;
    let query = provider.sign_in(&led.leads_to, "bob");
    provider.behaves(silent());
    browser.open(&format!("/signin/corp/callback?{query}")).await.refuses(503);
    assert_eq!(role(app, "bob").await, None);
    provider.behaves(Behavior::default());
    app.advance(Duration::from_secs(6));
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
}

#[tokio::test]
async fn a_provider_that_names_another_issuer_is_none() {
    let (app, provider) = with_provider().await;
    provider.behaves(Behavior { names: Some("https://id.example.com"), ..Behavior::default() });
    let refused = Visitor::new(&app.url).open("/signin/corp").await.refuses(503);
    assert!(refused.starts_with("The provider corp does not answer"), "{refused}");
}

#[tokio::test]
async fn a_provider_of_the_environment_replaces_a_stored_one() {
    let (app, provider) = with_provider().await;
    add(&app, "other", &provider, &[]).await;
    let describe = |name: &str, id: &str| {
        let (issuer, server) = (&provider.issuer, &app.url);
        json!({ "name": name, "issuer": issuer, "clientId": id, "public": true, "server": server })
    };
    let described = json!([describe("corp", "of-environment"), describe("alpha", "alpha")]).to_string();
    let mut process = app.process_with(Settings::default());
    process.providers = given_providers::parse(&described, None, |_| None).unwrap().into();
    let listed = providers::list(&process).await.unwrap();
    let listed: Vec<_> = listed.iter().map(|one| (one.name.as_str(), one.client_id.as_str())).collect();
    assert_eq!(listed, [("alpha", "alpha"), ("corp", "of-environment"), ("other", CLIENT_ID)]);
    for (name, id) in listed {
        let name = ProviderName::parse(name).unwrap();
        assert_eq!(providers::get(&process, &name).await.unwrap().client_id, id);
        let begun = code_flow::begin(&process, &name, "/", None).await.unwrap();
        assert!(begun.url.contains(&format!("client_id={id}&")), "{}", begun.url);
    }
    // Without the variable, the stored one counts again.
    let stored = providers::get(&app.context, &ProviderName::parse("corp").unwrap()).await.unwrap();
    assert_eq!(stored.client_id, CLIENT_ID);
}

#[tokio::test]
async fn a_refusal_of_the_provider_is_shown() {
    let (app, _provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    let led = browser.open("/signin/corp").await;
    let state = led.leads_to.split("state=").nth(1).unwrap().split('&').next().unwrap().to_owned();
    let path = format!("/signin/corp/callback?state={state}&error=%3Cscript%3Eaccess_denied");
    let refused = browser.open(&path).await.refuses(403);
    assert!(refused.contains("refused the sign-in (&lt;script&gt;access_denied)"), "{refused}");
    browser.open("/signin/none").await.refuses(404);
    browser.open("/signin/NONE").await.refuses(400);
}

#[tokio::test]
async fn an_account_is_linked_by_the_user_it_belongs_to() {
    let (app, provider) = with_provider().await;
    passwords::set(&app.context, &login(USER), "correct horse battery").await.unwrap();
    let mut alice = Visitor::new(&app.url);
    alice.submit("/signin", &[("login", USER), ("password", "correct horse battery")]).await;
    // Another site cannot begin it.
    let refused = alice.send(Method::GET, "/user/settings/link/corp", "cross-site", None).await.refuses(403);
    assert!(refused.starts_with("The request does not come from a page of this server"), "{refused}");
    let link = async |browser: &mut Visitor| {
        browser.send(Method::GET, "/user/settings/link/corp", "same-origin", None).await.leads_to
    };
    // The session has to be the same until the end.
    let led = link(&mut alice).await;
    let query = provider.sign_in(&led, "alice-at-corp");
    let signed_in = alice.cookies.clone();
    alice.cookies.remove("statewright");
    let path = format!("/signin/corp/callback?{query}");
    alice
        .open(&path)
        .await
        .leads(&format!("/signin?next={}", path.replace('?', "%3F").replace('=', "%3D").replace('&', "%26")));
    alice.cookies = signed_in;
    let led = link(&mut alice).await;
    let query = provider.sign_in(&led, "alice-at-corp");
    alice.open(&format!("/signin/corp/callback?{query}")).await.leads("/user/settings/account");
    assert_eq!(alice.user().await.as_deref(), Some(USER));
    assert_eq!(role(&app, USER).await, Some(Role::Admin), "no rule gave the role, so none takes it away");
    // From then on, the account signs in as this user.
    let mut other = Visitor::new(&app.url);
    other.sign_in(&provider, "corp", "alice-at-corp").await.leads("/user/settings/account");
    assert_eq!(other.user().await.as_deref(), Some(USER));
    // Another user cannot link it.
    users::create(&app.context, &login("carol"), &[org(ORG)], Role::Plan).await.unwrap();
    let invited = invitations::invite(&app.context, &login("carol"), Duration::from_secs(60)).await.unwrap();
    let mut carol = Visitor::new(&app.url);
    carol.submit("/invite", &[("code", &invited.code)]).await;
    let led = link(&mut carol).await;
    let query = provider.sign_in(&led, "alice-at-corp");
    let refused = carol.open(&format!("/signin/corp/callback?{query}")).await.refuses(409);
    assert!(refused.starts_with("This account is already linked with the user alice"), "{refused}");
    // The operator unlinks it.
    let name = ProviderName::parse("corp").unwrap();
    assert_eq!(accounts::unlink(&app.context, &login(USER), &name).await.unwrap(), 1);
    accounts::unlink(&app.context, &login(USER), &name).await.unwrap_err();
    let refused = Visitor::new(&app.url).sign_in(&provider, "corp", "alice").await.refuses(409);
    assert!(refused.starts_with("The user alice exists"), "{refused}");
}

#[tokio::test]
async fn tokens_stop_without_a_sign_in() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    let token = tokens::create_token(&app.context, &login("bob"), &TokenName::parse("ci").unwrap(), None)
        .await
        .unwrap();
    let named = |name: &str| TokenName::parse(name).unwrap();
    let days = |days: u64| Duration::from_secs(days * 24 * 3600);
    let short = tokens::create_token(&app.context, &login("bob"), &named("short"), Some(days(30))).await;
    let gone = tokens::create_token(&app.context, &login("bob"), &named("gone"), None).await.unwrap();
    let short = short.unwrap();
    passwords::set(&app.context, &login("bob"), "correct horse battery").await.unwrap();
    app.advance(days(30) - Duration::from_secs(1));
    let user = app.get("/api/user").token(&token).send().await.expect(200);
    for token in [&short, &gone] {
        assert_eq!(app.get("/api/user").token(token).send().await.expect(200), user);
    }
    app.advance(Duration::from_secs(1));
    let stacks = || app.get("/api/user/stacks").token(&token);
    let refused = stacks().send().await.refused(401);
    assert!(refused.contains("sign in at /signin"), "{refused}");
    // Clients make the address of a page of it, which leads to the sign-in.
    let link = json!([{ "errorType": "saml_login_required", "attribute": ORG }]);
    let expected = json!({ "code": 401, "message": refused, "reason": "sign_in_needed", "errors": link });
    for path in ["/api/user/organizations/default", "/api/user/stacks", "/api/stacks/acme/web/dev"] {
        assert_eq!(app.get(path).token(&token).send().await.expect(401), expected, "{path}");
    }
    // `pulumi login` learns who asks all the same, but not with a token that ended in another way.
    assert_eq!(app.get("/api/user").token(&token).send().await.expect(200), user);
    app.get("/api/user").token(&short).send().await.refused(401);
    tokens::revoke_token(&app.context, &login("bob"), &named("gone")).await.unwrap();
    app.advance(Duration::from_secs(61));
    app.get("/api/user").token(&gone).send().await.refused(401);
    // A password does not stand in for the provider.
    let form = [("login", "bob"), ("password", "correct horse battery")];
    Visitor::new(&app.url).submit("/signin", &form).await.refuses(401);
    // The next sign-in starts them again.
    provider.shows(app.context.now().seconds());
    Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    app.advance(Duration::from_secs(61));
    stacks().send().await.expect(200);
    // A stopped token of a removed user names no user.
    app.advance(days(30));
    app.get("/api/user").token(&token).send().await.expect(200);
    users::remove(&app.context, &login("bob")).await.unwrap();
    app.advance(Duration::from_secs(61));
    app.get("/api/user").token(&token).send().await.refused(401);
}

#[tokio::test]
async fn a_session_is_new_with_each_sign_in_and_ends() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    // A session that somebody else put into the browser.
    browser.cookies.insert("statewright".to_owned(), "bob.sws_planted".to_owned());
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    let first = browser.cookies["statewright"].clone();
    assert!(first.starts_with("bob.sws_"), "{first}");
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    let second = browser.cookies.clone();
    assert_ne!(second["statewright"], first);
    let with = |cookie: &str| {
        let mut browser = Visitor::new(&app.url);
        browser.cookies.insert("statewright".to_owned(), cookie.to_owned());
        browser
    };
    assert_eq!(with(&first).user().await, None, "the earlier session of the browser is over");
    // A session is not an access token, and a token not a session.
    let secret = second["statewright"].split('.').nth(1).unwrap().to_owned();
    app.get("/api/user").token(&secret).send().await.refused(401);
    assert_eq!(with(&format!("{USER}.{}", app.token)).user().await, None);
    assert_eq!(with(&second["statewright"].replace("bob.", "alice.")).user().await, None);
    // Another browser ends it, by its ID.
    let mut other = Visitor::new(&app.url);
    other.sign_in(&provider, "corp", "bob").await;
    let page = other.open("/user/settings/account").await;
    let id = page.text.split("name=\"id\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    other.submit("/user/settings/sessions/end", &[("id", &id)]).await.leads("/user/settings/account");
    assert_eq!(browser.user().await, None);
    other.submit("/user/settings/sessions/end", &[("id", &id)]).await.refuses(404);
    // Signing out.
    let cookies = other.cookies.clone();
    other.submit("/signout", &[]).await.leads("/signin");
    assert_eq!(other.user().await, None);
    other.cookies = cookies;
    assert_eq!(other.user().await, None, "the copy of the cookie is worth nothing");
    // A day later, by itself.
    browser.sign_in(&provider, "corp", "bob").await;
    app.advance(Duration::from_secs(24 * 3600 - 1));
    assert_eq!(browser.user().await.as_deref(), Some("bob"));
    app.advance(Duration::from_secs(1));
    assert_eq!(browser.user().await, None);
}

#[tokio::test]
async fn a_removed_user_is_signed_out_within_a_minute() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await;
    let other = app.another_process("other").await;
    users::remove(&other.context, &login("bob")).await.unwrap();
    app.advance(Duration::from_secs(61));
    assert_eq!(browser.user().await, None);
    // A later user of the name is another one, also for the account and the session.
    users::create(&app.context, &login("bob"), &[org(ORG)], Role::Plan).await.unwrap();
    assert_eq!(browser.user().await, None);
    let refused = Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.refuses(409);
    assert!(refused.starts_with("The user bob exists"), "{refused}");
}

#[tokio::test]
async fn other_sites_cannot_send_forms() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await;
    let form = [("name", "mine"), ("days", "30")];
    for site in ["cross-site", "same-site", "none"] {
        let refused =
            browser.send(Method::POST, "/user/settings/tokens", site, Some(&form)).await.refuses(403);
        assert!(refused.starts_with("The request does not come from a page of this server"), "{refused}");
        browser.send(Method::POST, "/signin", site, Some(&form)).await.refuses(403);
    }
    assert_eq!(tokens::list_all(&app.context, &tokens::Owner::User(login("bob"))).await.unwrap().len(), 0);
}

#[tokio::test]
async fn an_invitation_works_once() {
    let app = TestApp::memory().await;
    let invite = async |valid: u64| {
        invitations::invite(&app.context, &login(USER), Duration::from_secs(valid)).await.unwrap().code
    };
    let code = invite(3600).await;
    let mut browser = Visitor::new(&app.url);
    // Opening the link does not use it: programs do that too.
    for _ in 0..2 {
        let page = browser.open(&format!("/invite?code={code}")).await;
        assert!(page.text.contains("This link signs you in as <strong>alice</strong>"), "{}", page.text);
    }
    browser.submit("/invite", &[("code", &code)]).await.leads("/user/settings/account");
    assert_eq!(browser.user().await.as_deref(), Some(USER));
    let mut other = Visitor::new(&app.url);
    let refused = other.submit("/invite", &[("code", &code)]).await.refuses(403);
    assert!(refused.starts_with("This invitation is not valid"), "{refused}");
    // A second one replaces the first, and each stops.
    let (first, second) = (invite(3600).await, invite(3600).await);
    other.open(&format!("/invite?code={first}")).await.refuses(403);
    app.advance(Duration::from_secs(3600));
    other.submit("/invite", &[("code", &second)]).await.refuses(403);
    for wrong in ["", "alice", "alice.", "nobody-1.00", "a b.00"] {
        other.open(&format!("/invite?code={wrong}")).await.refuses(403);
    }
    // A later user of the name is not invited.
    let code = invite(3600).await;
    users::remove(&app.context, &login(USER)).await.unwrap();
    users::create(&app.context, &login(USER), &[org(ORG)], Role::Plan).await.unwrap();
    other.submit("/invite", &[("code", &code)]).await.refuses(403);
}

async fn invite(app: &TestApp, user: &str, token: &str, role: &str) -> Answer {
    let path = format!("/api/orgs/{ORG}/members/{user}/invitation");
    app.post(&path, &json!({ "role": role })).token(token).send().await
}

/// The code of a link.
fn code_in(made: &Value) -> String {
    made["path"].as_str().unwrap().strip_prefix("/invite?code=").unwrap().to_owned()
}

#[tokio::test]
async fn an_admin_invites_a_new_person() {
    let app = TestApp::memory().await;
    app.take_audit();
    let made = invite(&app, "bob", &app.token, "plan").await.expect(200);
    let records = app.take_audit();
    let record = records.last().unwrap();
    assert_eq!((&record["action"], &record["detail"]), (&json!("user.invite"), &json!("bob as plan")));
    assert!(!records.iter().any(|record| record.to_string().contains(&code_in(&made))), "{records:?}");
    assert_eq!((&made["user"], &made["role"]), (&json!("bob"), &json!("plan")));
    // The link was lost. The role stays.
    let again = invite(&app, "bob", &app.token, "admin").await.expect(200);
    assert_eq!((&again["role"], role(&app, "bob").await), (&json!("plan"), Some(Role::Plan)));
    let mut browser = Visitor::new(&app.url);
    browser.submit("/invite", &[("code", &code_in(&made))]).await.refuses(403);
    browser.submit("/invite", &[("code", &code_in(&again))]).await.leads("/user/settings/account");
    assert_eq!(browser.user().await.as_deref(), Some("bob"));

    let elsewhere = app.other_user("mallory", "evil").await;
    let member = app.member_with_role(Role::Member, "ann", "laptop").await;
    for (token, role, status, words) in [
        (&app.token, "owner", 400, "invalid role"),
        (&elsewhere, "plan", 404, "organization acme not found"),
        (&member, "view", 403, "needs the role admin"),
    ] {
        let refused = invite(&app, "carol", token, role).await.refused(status);
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!(role(&app, "carol").await, None);
}

#[tokio::test]
async fn a_member_who_forgot_the_password_sets_another() {
    let app = TestApp::memory().await;
    app.member_with_role(Role::Apply, "bob", "laptop").await;
    passwords::set(&app.context, &login("bob"), "the forgotten password").await.unwrap();
    let made = invite(&app, "bob", &app.token, "view").await.expect(200);
    assert_eq!((&made["role"], role(&app, "bob").await), (&json!("apply"), Some(Role::Apply)));
    let mut browser = Visitor::new(&app.url);
    browser.submit("/invite", &[("code", &code_in(&made))]).await.leads("/user/settings/account");
    let set = [("password", "correct horse battery"), ("again", "correct horse battery")];
    browser.submit("/user/settings/password", &set).await.leads("/user/settings/account");
    let form = [("login", "bob"), ("password", "correct horse battery")];
    Visitor::new(&app.url).submit("/signin", &form).await.leads("/user/settings/account");
}

/// Who can sign in needs no link, and an admin who gets one could sign in as that person.
#[tokio::test]
async fn a_removed_member_comes_back_in_one_call_without_a_link() {
    let app = TestApp::memory().await;
    app.member_with_role(Role::Apply, "bob", "laptop").await;
    let member = format!("/api/orgs/{ORG}/members/bob");
    let remove = async || {
        app.request(Method::DELETE, &member).send().await.expect(204);
        assert_eq!(role(&app, "bob").await, None);
    };
    remove().await;
    let refused = invite(&app, "bob", &app.token, "view").await.refused(403);
    assert!(refused.contains("can sign in already and needs no link"), "{refused}");
    assert!(refused.contains(&format!("`statewright org member add {ORG} bob --server`")), "{refused}");
    assert!(refused.contains(&format!("`POST {member}`")), "{refused}");
    assert_eq!(role(&app, "bob").await, None);
    let added = app.post(&member, &json!({ "role": "view" })).send().await;
    assert!(!added.headers.contains_key("X-Pulumi-Warning"));
    added.expect(200);
    assert_eq!(role(&app, "bob").await, Some(Role::View));
    // A password alone is enough to sign in, and so is a session.
    remove().await;
    tokens::revoke_token(&app.context, &login("bob"), &TokenName::parse("laptop").unwrap()).await.unwrap();
    passwords::set(&app.context, &login("bob"), "correct horse battery").await.unwrap();
    invite(&app, "bob", &app.token, "view").await.refused(403);
    let form = [("login", "bob"), ("password", "correct horse battery")];
    Visitor::new(&app.url).submit("/signin", &form).await.leads("/user/settings/account");
    passwords::remove(&app.context, &login("bob")).await.unwrap();
    invite(&app, "bob", &app.token, "view").await.refused(403);
    assert_eq!(role(&app, "bob").await, None);
}

#[tokio::test]
async fn a_user_who_never_signed_in_is_invited_again() {
    let app = TestApp::memory().await;
    let member = format!("/api/orgs/{ORG}/members/bob");
    let made = invite(&app, "bob", &app.token, "view").await.expect(200);
    // The link stops with the membership.
    app.request(Method::DELETE, &member).send().await.expect(204);
    let mut browser = Visitor::new(&app.url);
    browser.submit("/invite", &[("code", &code_in(&made))]).await.refuses(403);
    let made = invite(&app, "bob", &app.token, "plan").await.expect(200);
    assert_eq!((&made["role"], role(&app, "bob").await), (&json!("plan"), Some(Role::Plan)));
    browser.submit("/invite", &[("code", &code_in(&made))]).await.leads("/user/settings/account");
    assert_eq!(browser.user().await.as_deref(), Some("bob"));
}

#[tokio::test]
async fn an_admin_does_not_replace_a_link_of_the_operator() {
    let app = TestApp::memory().await;
    users::create(&app.context, &login("bob"), &[], Role::Member).await.unwrap();
    let valid = Duration::from_secs(3600);
    let by_operator = invitations::invite(&app.context, &login("bob"), valid).await.unwrap();
    let refused = invite(&app, "bob", &app.token, "plan").await.refused(403);
    assert!(refused.contains("a link that the operator made for this user still works"), "{refused}");
    assert_eq!(role(&app, "bob").await, None);
    let page = Visitor::new(&app.url).open(&format!("/invite?code={}", by_operator.code)).await;
    assert_eq!(page.status, 200, "it works as before");
    app.advance(valid);
    let made = invite(&app, "bob", &app.token, "plan").await.expect(200);
    let code = code_in(&made);
    Visitor::new(&app.url).submit("/invite", &[("code", &code)]).await.leads("/user/settings/account");
}

/// The admin may have used the link, and would get what the user gets elsewhere.
#[tokio::test]
async fn what_a_reset_gave_ends_with_rights_elsewhere() {
    let app = TestApp::memory().await;
    let own = app.member_with_role(Role::Apply, "bob", "laptop").await;
    let beta = app.other_user("mallory", "beta").await;
    let made = invite(&app, "bob", &app.token, "plan").await.expect(200);
    let mut browser = Visitor::new(&app.url);
    browser.submit("/invite", &[("code", &code_in(&made))]).await.leads("/user/settings/account");
    let set = [("password", "correct horse battery"), ("again", "correct horse battery")];
    browser.submit("/user/settings/password", &set).await.leads("/user/settings/account");
    assert_eq!(browser.user().await.as_deref(), Some("bob"));
    app.get("/api/user").token(&own).send().await.expect(200);

    // No admin elsewhere ends how bob signs in. Neither does a command that fails.
    let add = app.post("/api/orgs/beta/members/bob", &json!({ "role": "plan" })).token(&beta);
    let refused = add.send().await.refused(403);
    assert!(refused.contains("only the operator adds this user"), "{refused}");
    orgs::create(&app.context, &org("beta"), &[login("bob")]).await.unwrap_err();
    orgs::create(&app.context, &org("delta"), &[login("bob"), login("nobody")]).await.unwrap_err();
    app.get("/api/user").token(&own).send().await.expect(200);
    orgs::add_member(&app.context, &org("beta"), &login("bob"), Role::Plan).await.unwrap();
    assert_eq!(browser.user().await, None);
    app.get("/api/user").token(&own).send().await.refused(401);
    assert!(!passwords::is_set(&app.context, &login("bob")).await.unwrap());
    // Once. What the operator's link gives stays.
    let by_operator =
        invitations::invite(&app.context, &login("bob"), Duration::from_secs(60)).await.unwrap();
    browser.submit("/invite", &[("code", &by_operator.code)]).await.leads("/user/settings/account");
    orgs::create(&app.context, &org("gamma"), &[login("bob")]).await.unwrap();
    assert_eq!(browser.user().await.as_deref(), Some("bob"));
}

#[tokio::test]
async fn a_link_of_the_operator_ends_what_a_reset_gave() {
    let app = TestApp::memory().await;
    let own = app.member_with_role(Role::Apply, "bob", "laptop").await;
    let made = invite(&app, "bob", &app.token, "plan").await.expect(200);
    let mut of_admin = Visitor::new(&app.url);
    of_admin.submit("/invite", &[("code", &code_in(&made))]).await.leads("/user/settings/account");
    let by_operator =
        invitations::invite(&app.context, &login("bob"), Duration::from_secs(60)).await.unwrap();
    let mut browser = Visitor::new(&app.url);
    browser.submit("/invite", &[("code", &by_operator.code)]).await.leads("/user/settings/account");
    assert_eq!((of_admin.user().await, browser.user().await.as_deref()), (None, Some("bob")));
    app.get("/api/user").token(&own).send().await.refused(401);
    // From here on, nothing ends with rights elsewhere.
    orgs::create(&app.context, &org("beta"), &[login("bob")]).await.unwrap();
    assert_eq!(browser.user().await.as_deref(), Some("bob"));
}

/// No person could sign in as a new user before, so the first link resets nothing.
#[tokio::test]
async fn what_a_first_link_gave_stays_in_other_organizations() {
    let app = TestApp::memory().await;
    let made = invite(&app, "bob", &app.token, "plan").await.expect(200);
    let mut browser = Visitor::new(&app.url);
    browser.submit("/invite", &[("code", &code_in(&made))]).await.leads("/user/settings/account");
    orgs::create(&app.context, &org("beta"), &[login("bob")]).await.unwrap();
    assert_eq!(browser.user().await.as_deref(), Some("bob"));
}

#[tokio::test]
async fn a_user_who_changes_meanwhile_gets_no_session() {
    let app = TestApp::memory().await;
    orgs::create(&app.context, &org("beta"), &[]).await.unwrap();
    let made = invite(&app, "bob", &app.token, "plan").await.expect(200);
    let redeemed = invitations::redeem(&app.context, &code_in(&made)).await.unwrap();
    assert_eq!(redeemed.made_by, format!("{USER}, an admin of {ORG}"));
    orgs::add_member(&app.context, &org("beta"), &login("bob"), Role::View).await.unwrap();
    let begun = sessions::begin_of(&app.context, redeemed.user, SignedInBy::Invitation, "Firefox").await;
    assert!(matches!(begun, Err(Error::Contended(_))), "{begun:?}");
    assert!(sessions::list_of(&app.context, &login("bob")).await.unwrap().is_empty());
}

/// An admin of an organization does not sign in as somebody who may have rights outside of it.
#[tokio::test]
async fn no_admin_gets_a_link_of_a_user_with_other_rights() {
    let (app, provider) = with_provider().await;
    app.other_user("mallory", "evil").await;
    Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    let ada = app.member_with_role(Role::Admin, "ada", "laptop").await;
    app.member_of(&[ORG, "beta"], "carol", "laptop").await;
    let refuses = async |user: &str, token: &str, words: &str| {
        let before = role(&app, user).await;
        let refused = invite(&app, user, token, "plan").await.refused(403);
        assert!(refused.contains(words), "{user}: {refused}");
        assert_eq!(role(&app, user).await, before, "{user} stays what they were");
        refused
    };
    refuses("ada", &ada, "you cannot invite yourself").await;
    for (user, why) in [
        (USER, "the login of an admin of the server"),
        ("mallory", "in another organization"),
        ("carol", "in another organization"),
        ("bob", "an account of a provider"),
    ] {
        let refused = refuses(user, &ada, why).await;
        assert!(refused.contains(&format!("`statewright user invite {user}`")), "{refused}");
    }
    // Nor if the user is in no organization: a rule may give rights elsewhere at the next sign-in.
    app.request(Method::DELETE, &format!("/api/orgs/{ORG}/members/bob")).send().await.expect(204);
    refuses("bob", &ada, "can sign in already").await;
}

#[tokio::test]
async fn a_link_of_an_admin_stops_once_the_user_has_other_rights() {
    let app = TestApp::memory().await;
    orgs::create(&app.context, &org("beta"), &[]).await.unwrap();
    let made = invite(&app, "bob", &app.token, "plan").await.expect(200);
    let link = format!("/invite?code={}", code_in(&made));
    let mut browser = Visitor::new(&app.url);
    assert_eq!(browser.open(&link).await.status, 200);
    orgs::add_member(&app.context, &org("beta"), &login("bob"), Role::View).await.unwrap();
    browser.open(&link).await.refuses(403);
    browser.submit("/invite", &[("code", &code_in(&made))]).await.refuses(403);
    assert_eq!(browser.user().await, None);
    // The operator's link works whatever rights the user has.
    let by_operator =
        invitations::invite(&app.context, &login("bob"), Duration::from_secs(60)).await.unwrap();
    browser.submit("/invite", &[("code", &by_operator.code)]).await.leads("/user/settings/account");
}

/// The login decides who administers the server, so only the operator makes a user of that name.
#[tokio::test]
async fn no_other_person_becomes_an_admin_of_the_server() {
    let (app, provider) = with_provider().await;
    let ada = app.member_with_role(Role::Admin, "ada", "laptop").await;
    let named = BTreeMap::from([("preferred_username", json!(USER))]);
    provider.behaves(Behavior { claims: named, ..Behavior::default() });
    // One who has only a token has no other way in, and then there is no such user.
    for exists in [true, false] {
        let refused = invite(&app, USER, &ada, "plan").await.refused(403);
        assert!(refused.contains("an admin of the server"), "{refused}");
        let refused = Visitor::new(&app.url).sign_in(&provider, "corp", "other").await.refuses(409);
        assert!(exists || refused.contains("an admin of this server"), "{refused}");
        if exists {
            users::remove(&app.context, &login(USER)).await.unwrap();
        }
        assert_eq!(role(&app, USER).await, None);
    }
}

#[tokio::test]
async fn a_person_makes_and_revokes_tokens() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await;
    let form = [("name", "laptop"), ("description", "<b>mine</b>"), ("days", "7")];
    let page = browser.submit("/user/settings/tokens", &form).await;
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(
        page.text.contains("&lt;b&gt;mine&lt;/b&gt;") && page.text.contains("expires 2026-01-08"),
        "{}",
        page.text
    );
    assert!(page.text.contains("Created 2026-01-01, never used, expires"), "{}", page.text);
    let token = page.text.split("class=\"secret\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
    assert_eq!(app.get("/api/user").token(&token).send().await.expect(200)["githubLogin"], "bob");
    let again = browser.open("/user/settings/tokens").await;
    assert!(again.text.contains("laptop") && !again.text.contains(&token), "it is shown once");
    assert!(again.text.contains("last used 2026-01-01 00:00 UTC, "), "{}", again.text);
    let refused = browser.submit("/user/settings/tokens", &form).await.refuses(409);
    assert!(refused.contains("already has a token named laptop"), "{refused}");
    for wrong in
        [[("name", ""), ("days", "7")], [("name", "a b"), ("days", "7")], [("name", "x"), ("days", "9999")]]
    {
        browser.submit("/user/settings/tokens", &wrong).await.refuses(400);
    }
    browser
        .submit("/user/settings/tokens/revoke", &[("name", "laptop")])
        .await
        .leads("/user/settings/tokens");
    app.get("/api/user").token(&token).send().await.refused(401);
    let part = [("name", "part"), ("on", "web/*"), ("days", "7")];
    let page = browser.submit("/user/settings/tokens", &part).await;
    assert!(page.text.contains("only in web/*"), "{}", page.text);
    browser
        .submit("/user/settings/tokens", &[("name", "other"), ("on", "web"), ("days", "7")])
        .await
        .refuses(400);
    // An hour after the sign-in, a session makes no more tokens.
    app.advance(Duration::from_secs(3601));
    let refused = browser.submit("/user/settings/tokens", &form).await.refuses(401);
    assert!(refused.starts_with("You signed in too long ago for this"), "{refused}");
    let page = browser.open("/user/settings/tokens").await;
    assert!(page.text.contains("This needs a recent sign-in"), "{}", page.text);
    let set = [("password", "correct horse battery"), ("again", "correct horse battery")];
    browser.submit("/user/settings/password", &set).await.refuses(401);
}

#[tokio::test]
async fn a_person_sets_a_password_and_signs_in_with_it() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await;
    for (password, again) in [("short", "short"), ("correct horse battery", "other horse battery")] {
        browser
            .submit("/user/settings/password", &[("password", password), ("again", again)])
            .await
            .refuses(400);
    }
    let set = [("password", "correct horse battery"), ("again", "correct horse battery")];
    browser.submit("/user/settings/password", &set).await.leads("/user/settings/account");
    let mut other = Visitor::new(&app.url);
    let form = [("login", "bob"), ("password", "correct horse battery"), ("next", "/user/settings/tokens")];
    other.submit("/signin", &form).await.leads("/user/settings/tokens");
    assert_eq!(other.user().await.as_deref(), Some("bob"));
    let elsewhere = [("login", "bob"), ("password", "correct horse battery"), ("next", "//evil.example")];
    Visitor::new(&app.url).submit("/signin", &elsewhere).await.leads("/user/settings/account");
    // Guesses are slowed down, as for states. The right password is remembered for a minute.
    app.advance(Duration::from_secs(61));
    for _ in 0..5 {
        let refused =
            Visitor::new(&app.url).submit("/signin", &[("login", "bob"), ("password", "wrong")]).await;
        assert_eq!(refused.refuses(401), "The user or the password is wrong: check both.");
    }
    let slowed = Visitor::new(&app.url).submit("/signin", &form).await;
    assert!(slowed.refuses(429).starts_with("Too many wrong passwords"), "{}", slowed.text);
    assert_eq!(slowed.headers["retry-after"], "1");
}

#[tokio::test]
async fn the_command_line_gets_a_token_by_a_click() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    let nonce = "0a".repeat(32);
    let query = format!(
        "cliSessionPort=43210&cliSessionNonce={nonce}&cliSessionDescription=by+%3Cb%3E&cliCommand=pulumi+login"
    );
    let path = format!("/cli-login?{query}");
    // Signed out, it leads to the sign-in page, and back.
    let led = browser.open(&path).await;
    assert!(led.leads_to.starts_with("/signin?next=/cli-login%3FcliSessionPort%3D43210"), "{}", led.leads_to);
    let page = browser.open(&led.leads_to).await;
    let link = page
        .text
        .split("href=\"/signin/corp")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .replace("&amp;", "&");
    let led = browser.open(&format!("/signin/corp{link}")).await;
    let back = provider.sign_in(&led.leads_to, "bob");
    browser.open(&format!("/signin/corp/callback?{back}")).await.leads(&path);
    let page = browser.open(&path).await;
    assert!(page.text.contains("by &lt;b&gt;") && page.text.contains("pulumi login"), "{}", page.text);
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("form-action 'self' http://127.0.0.1:43210;"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("x-content-type-options", "nosniff"),
    ] {
        assert_eq!(page.headers[name], value);
    }
    let form = [
        ("cliSessionPort", "43210"),
        ("cliSessionNonce", nonce.as_str()),
        ("cliSessionDescription", "by <b>"),
        ("days", "7"),
    ];
    browser.send(Method::POST, "/cli-login", "cross-site", Some(&form)).await.refuses(403);
    let given = browser.submit("/cli-login", &form).await;
    let token = given.leads_to.strip_prefix("http://127.0.0.1:43210/?accessToken=").unwrap();
    let token = token.strip_suffix(&format!("&nonce={nonce}")).unwrap();
    app.get("/api/user").token(token).send().await.expect(200);
    let listed = tokens::list_all(&app.context, &tokens::Owner::User(login("bob"))).await.unwrap();
    assert_eq!(listed[0].entry.token.description, "by <b>");
    assert_eq!(listed[0].entry.token.expires, Some(START.plus(Duration::from_secs(7 * 24 * 3600))));
    // Only this machine, and only what the command line sends.
    for (name, value) in [
        ("cliSessionPort", "43210@evil.example"),
        ("cliSessionPort", "80"),
        ("cliSessionNonce", "short"),
        ("days", "100000"),
    ] {
        let wrong = form.map(|(field, right)| (field, if field == name { value } else { right }));
        browser.submit("/cli-login", &wrong).await.refuses(400);
    }
    app.advance(Duration::from_secs(3601));
    assert!(browser.open(&path).await.leads_to.starts_with("/signin?next="));
    browser.submit("/cli-login", &form).await.refuses(401);
    assert!(browser.open("/welcome/cli").await.text.contains("The command line is logged in"));
}

#[tokio::test]
async fn what_people_do_is_audited_without_secrets() {
    let (app, provider) = with_provider().await;
    app.take_audit();
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await;
    browser.submit("/user/settings/tokens", &[("name", "laptop"), ("days", "7")]).await;
    browser.submit("/signin", &[("login", "bob"), ("password", "wrong")]).await;
    browser.submit("/signout", &[]).await;
    let records = app.take_audit();
    let entries: Vec<_> = records
        .iter()
        .map(|record| {
            let text = |name: &str| record[name].as_str().unwrap_or("-");
            (text("action"), text("result"), text("user"), text("detail"))
        })
        .collect();
    assert_eq!(
        entries,
        [
            ("session.begin", "done", "bob", "corp"),
            ("token.create", "done", "bob", "laptop"),
            ("session.begin", "refused", "-", "-"),
            ("session.end", "done", "-", "-"),
        ]
    );
    let all = Value::from(records).to_string();
    for secret in ["swt_", "sws_", "wrong", "code-1"] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
}

/// The actions and the details of a trail: that of an organization, or of the server.
async fn trail_of(app: &TestApp, trail: Option<&OrgName>) -> Vec<String> {
    let query = AuditRecord::of_trail(trail).query(None, Order::Ascending, 1_000);
    let items = app.context.ledger.query(&query).await.unwrap().items;
    let records = items.iter().map(|item| AuditRecord::decode(&item.value).unwrap());
    records.map(|record| format!("{} {}", record.action, record.detail.unwrap_or_default())).collect()
}

#[tokio::test]
async fn sign_ins_and_own_tokens_are_in_the_trails_of_a_user() {
    let (app, provider) = with_provider().await;
    let (acme, beta) = (org(ORG), org("beta"));
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    browser.submit("/user/settings/tokens", &[("name", "laptop"), ("days", "7")]).await;
    browser.submit("/user/settings/tokens/revoke", &[("name", "laptop")]).await;
    browser.submit("/signin", &[("login", "bob"), ("password", "wrong")]).await;
    let expected = ["session.begin corp", "token.create laptop", "token.revoke laptop"];
    assert_eq!(trail_of(&app, Some(&acme)).await, expected);
    assert_eq!(trail_of(&app, None).await, expected);
    // Of several organizations, each has it. Within a minute, they are summed up.
    orgs::create(&app.context, &beta, &[login("bob")]).await.unwrap();
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    assert_eq!(trail_of(&app, Some(&beta)).await, ["session.begin corp"]);
    assert_eq!(trail_of(&app, Some(&acme)).await, expected);
    app.advance(Duration::from_secs(60));
    audit::flush(&app.context, false).await.unwrap();
    assert_eq!(trail_of(&app, Some(&acme)).await.len(), 4);
}

#[tokio::test]
async fn a_used_invitation_is_in_the_trail_of_the_organization() {
    let app = TestApp::memory().await;
    let path = format!("/api/orgs/{ORG}/members/dora/invitation");
    let made = app.post(&path, &json!({ "role": "plan" })).send().await.expect(200);
    let code = made["path"].as_str().unwrap().strip_prefix("/invite?code=").unwrap();
    let mut browser = Visitor::new(&app.url);
    browser.submit("/invite", &[("code", code)]).await.leads("/user/settings/account");
    browser.submit("/invite", &[("code", code)]).await.refuses(403);
    let trail = trail_of(&app, Some(&org(ORG))).await;
    let begun = format!("session.begin by an invitation of {USER}, an admin of {ORG}");
    assert_eq!(trail, ["user.invite dora as plan", begun.as_str()]);
}

#[tokio::test]
async fn of_many_organizations_the_first_eight_have_the_record() {
    let app = TestApp::memory().await;
    let names: Vec<String> = (0..10).map(|number| format!("many-{number}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let bob = app.member_of(&all, "bob", "laptop").await;
    app.post("/api/user/tokens", &json!({ "name": "ci", "expires": 0 })).token(&bob).send().await.expect(200);
    let mut have_it = Vec::new();
    for name in all {
        have_it.push(trail_of(&app, Some(&org(name))).await.len());
    }
    assert_eq!(have_it, [1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
    assert_eq!(trail_of(&app, None).await.len(), 1);
}

#[tokio::test]
async fn other_clients_get_errors_as_json() {
    let app = TestApp::memory().await;
    let message = app.get("/user/settings/tokens").anonymous().send().await.refused(401);
    assert_eq!(message, "Unauthorized: you are not signed in: sign in, and try again");
    app.request(Method::POST, "/signin").anonymous().send().await.refused(403);
    // Access tokens do not open pages.
    app.get("/user/settings/tokens").send().await.refused(401);
}

#[tokio::test]
async fn rules_put_people_into_teams_that_exist() {
    let (app, provider) = with_provider().await;
    let (name, corp) = (TeamName::parse("web").unwrap(), ProviderName::parse("corp").unwrap());
    let team = Team {
        created: START,
        display_name: String::new(),
        description: String::new(),
        members: BTreeMap::from([(login(USER), TeamRole::Admin)]),
    };
    let access = Access { teams: BTreeMap::from([(name.clone(), team)]), ..Access::default() };
    let write = put(OrgAccess::key(&org(ORG)), Expect::Any, SystemIds.revision(), &OrgAccess(access));
    app.context.ledger.commit(vec![write]).await.unwrap();
    let members = async || {
        let item = app.context.ledger.get(&OrgAccess::key(&org(ORG))).await.unwrap().unwrap();
        let access = OrgAccess::decode(&item.value).unwrap();
        access.teams[&name].members.clone()
    };
    let with_team = |team: &str| SignInRule { team: TeamName::parse(team).ok(), ..rule("dev", Role::None) };
    providers::set_rules(&app.context, &corp, &[with_team("web"), with_team("missing")]).await.unwrap();
    Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    let (alice, bob) = ((login(USER), TeamRole::Admin), (login("bob"), TeamRole::Member));
    assert_eq!(members().await, BTreeMap::from([alice.clone(), bob]));
    assert_eq!(role(&app, "bob").await, Some(Role::None));
    providers::set_rules(&app.context, &corp, &[rule("dev", Role::Plan)]).await.unwrap();
    Visitor::new(&app.url).sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    assert_eq!(members().await, BTreeMap::from([alice]));
}

/// A request to the API as the console in this browser sends it.
fn from_console<'a>(app: &'a TestApp, browser: &Visitor, method: Method, path: &str) -> Call<'a> {
    let cookie = format!("statewright={}", browser.cookies["statewright"]);
    let call = app.request(method, path).anonymous().header("Cookie", &cookie);
    call.header("X-Statewright-Console", "1")
}

#[tokio::test]
async fn the_console_asks_the_api_as_the_signed_in_person() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    let get = |path: &str| from_console(&app, &browser, Method::GET, path);
    let user = get("/api/user").header("Sec-Fetch-Site", "same-origin").send().await.expect(200);
    assert_eq!(user["githubLogin"], "bob");
    let members = format!("/api/orgs/{ORG}/members");
    get(&members).header("Sec-Fetch-Site", "same-origin").send().await.expect(200);

    // Other sites, other pages of the same site, addresses that a person types, and clients that are no browser.
    for site in ["cross-site", "same-site", "none"] {
        get("/api/user").header("Sec-Fetch-Site", site).send().await.refused(403);
    }
    get("/api/user").send().await.refused(403);
    let foreign = get("/api/user").header("Sec-Fetch-Site", "same-origin");
    foreign.header("Origin", "https://evil.example").send().await.refused(403);
    // The cookie alone, which a browser adds to any request.
    let cookie = format!("statewright={}", browser.cookies["statewright"]);
    let bare = app.get("/api/user").anonymous().header("Cookie", &cookie);
    bare.header("Sec-Fetch-Site", "same-origin").send().await.refused(401);
    // What is sent on purpose counts.
    let both = get("/api/user").header("Sec-Fetch-Site", "same-origin").token("swt_0");
    both.send().await.refused(401);

    // Rows that take other credentials do not take the cookie.
    let state = get(&format!("/tfstate/{ORG}/net")).header("Sec-Fetch-Site", "same-origin");
    state.send().await.refused(401);
    let update = "11111111-1111-4111-8111-111111111111";
    let renew = format!("/api/stacks/{ORG}/web/dev/update/{update}/renew_lease");
    let renew = from_console(&app, &browser, Method::POST, &renew).json(&json!({ "duration": 60 }));
    renew.header("Sec-Fetch-Site", "same-origin").send().await.refused(401);
}

#[tokio::test]
async fn a_changed_membership_ends_what_an_open_console_may_do() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    let of_org = format!("/api/orgs/{ORG}/members");
    let members =
        || from_console(&app, &browser, Method::GET, &of_org).header("Sec-Fetch-Site", "same-origin").send();
    members().await.expect(200);
    // No time passes between the change and the next request.
    app.request(Method::DELETE, &format!("{of_org}/bob")).send().await.expect(204);
    members().await.refused(404);
    app.post(&format!("{of_org}/bob"), &json!({ "role": "member" })).send().await.expect(200);
    members().await.expect(200);
}

#[tokio::test]
async fn the_console_changes_rights_only_soon_after_a_sign_in() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    let post = |path: &str, body: &Value| {
        let call = from_console(&app, &browser, Method::POST, path).json(body);
        call.header("Sec-Fetch-Site", "same-origin")
    };
    let made = post("/api/user/tokens", &json!({ "name": "laptop" })).send().await.expect(200);
    let token = made["tokenValue"].as_str().unwrap();
    app.get("/api/user").token(token).send().await.expect(200);
    app.advance(Duration::from_secs(3601));
    let late = post("/api/user/tokens", &json!({ "name": "desk" })).send().await;
    assert!(late.refused(401).contains("sign in again"), "{}", late.text());
    assert_eq!(late.value()["reason"], "sign_in_too_old");
    // Everything else works for the day.
    let stack = format!("/api/stacks/{ORG}/web");
    post(&stack, &json!({ "stackName": "dev" })).send().await.expect(200);
    // A session of a removed user ends within a minute.
    users::remove(&app.context, &login("bob")).await.unwrap();
    app.advance(Duration::from_secs(61));
    let gone = from_console(&app, &browser, Method::GET, "/api/user");
    gone.header("Sec-Fetch-Site", "same-origin").send().await.refused(401);
}

/// What a browser reveals needs more than a link, an image or a form can send: a row with POST and a header.
#[tokio::test]
async fn a_browser_gets_secrets_by_post_alone() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    let (mut refused, mut answered) = (0, 0);
    for route in ROUTES.iter().filter(|route| route.auth == Auth::Token && route.reveals()) {
        let path = path(route, "shop", EDGE);
        let call = || from_console(&app, &browser, route.method.clone(), &path);
        let answer = call().header("Sec-Fetch-Site", "same-origin").send().await;
        if route.method == Method::GET {
            let words = answer.refused(403);
            assert_eq!(answer.value()["reason"], "post_needed", "{route:?}: {words}");
            refused += 1;
            continue;
        }
        // What the path names does not exist, and one row reads a body.
        let status = answer.status.as_u16();
        assert!(status == 404 || status == 400, "{route:?}: {}", answer.text());
        call().header("Sec-Fetch-Site", "cross-site").send().await.refused(403);
        let cookie = format!("statewright={}", browser.cookies["statewright"]);
        let form = app.request(route.method.clone(), &path).anonymous().header("Cookie", &cookie);
        form.header("Sec-Fetch-Site", "same-origin").send().await.refused(401);
        answered += 1;
    }
    // Those of the console, and a few without a page.
    assert_eq!((refused, answered), (9, 7));
    // A client with a token asks as before.
    let stack = format!("/api/stacks/{ORG}/web");
    app.post(&stack, &json!({ "stackName": "dev" })).send().await.expect(200);
    app.get(&format!("{stack}/dev/export")).send().await.expect(200);
}

/// The hosts of other machines, and what a client reports about itself, open no session of this machine.
#[tokio::test]
async fn a_session_works_at_the_host_that_has_its_cookie() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    let here = app.url.trim_start_matches("http://");
    let ask = |headers: &[(&str, &str)]| {
        let mut call = from_console(&app, &browser, Method::GET, "/api/user");
        for (name, value) in headers {
            call = call.header(name, value);
        }
        call.header("Sec-Fetch-Site", "same-origin").send()
    };
    ask(&[]).await.expect(200);
    ask(&[("X-Forwarded-Host", here)]).await.expect(200);
    // A name of another machine that leads here has cookies of its own, which need HTTPS.
    for headers in [
        &[("Host", "evil.example:8080")][..],
        &[("Host", "evil.example:8080"), ("Origin", "http://evil.example:8080")],
        &[("Host", "evil.example:8080"), ("X-Forwarded-Host", here)],
        &[("Host", "evil.example:8080"), ("X-Forwarded-Host", here), ("Origin", "http://evil.example:8080")],
        &[("X-Forwarded-Host", "evil.example")],
    ] {
        let answer = ask(headers).await;
        let status = answer.status.as_u16();
        assert!(status == 401 || status == 403, "{headers:?}: {}", answer.text());
    }
    // A page of another host is refused also where the browser has a cookie.
    let secure = format!("__Host-statewright={}", browser.cookies["statewright"]);
    let call = app.get("/api/user").anonymous().header("Cookie", &secure).header("Host", "state.example.com");
    let call = call.header("X-Statewright-Console", "1").header("Sec-Fetch-Site", "same-origin");
    call.header("Origin", "https://evil.example").send().await.refused(403);
}

/// Whether a change decides who may do something: who a person is, and what tokens, members, teams, grants and issuers
/// are allowed.
fn decides(route: &Route) -> bool {
    let parts = [
        "/access",
        "/consents",
        "/grants",
        "/invitation",
        "/issuers",
        "/members/",
        "/policies/",
        "/roles",
        "/sessions",
        "/teams",
        "/tokens",
    ];
    route.path == "/api/orgs/{org}" || parts.iter().any(|part| route.path.contains(part))
}

#[tokio::test]
async fn each_change_of_rights_needs_a_recent_sign_in() {
    let (app, provider) = with_provider().await;
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(&provider, "corp", "bob").await.leads("/user/settings/account");
    let ask = |route: &Route| {
        let call = from_console(&app, &browser, route.method.clone(), &path(route, "shop", EDGE));
        call.header("Sec-Fetch-Site", "same-origin").json(&json!({})).send()
    };
    let changes: Vec<&Route> = ROUTES
        .iter()
        .filter(|route| route.auth == Auth::Token)
        .filter(|route| route.method != Method::GET && route.method != Method::HEAD)
        .collect();
    // Soon after the sign-in, the role decides.
    for route in changes.iter().copied().filter(|route| decides(route)) {
        let answer = ask(route).await;
        assert_ne!(answer.status.as_u16(), 401, "{route:?}: {}", answer.text());
    }
    app.advance(Duration::from_secs(3601));
    let (mut refused, mut passed) = (0, 0);
    for route in changes {
        let answer = ask(route).await;
        if decides(route) {
            let words = answer.refused(401);
            assert_eq!(answer.value()["reason"], "sign_in_too_old", "{route:?}: {words}");
            refused += 1;
        } else {
            assert_ne!(answer.status.as_u16(), 401, "{route:?}: {}", answer.text());
            passed += 1;
        }
    }
    assert!(refused > 25 && passed > 40, "{refused} {passed}");
    // Reading what others may do needs none.
    let of_org = format!("/api/orgs/{ORG}/members");
    let list = from_console(&app, &browser, Method::GET, &of_org).header("Sec-Fetch-Site", "same-origin");
    list.send().await.expect(200);
}

//! `statewright login`: the pages that allow it, its codes, and the short-lived tokens of its token. The
//! command itself, with a real browser, is in `tests/pulumi/browser.rs`.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::domain::role::Role;
use statewright_shared::services::identity::{passwords, tokens, users};
use statewright_tests::app::{Answer, ORG, START, TestApp, USER};
use statewright_tests::visitor::Visitor;

// RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

const STATE: &str = "0a0b0c0d0e0f0a0b0c0d";
const PASSWORD: &str = "correct horse battery";

fn login(name: &str) -> Login {
    Login::parse(name).unwrap()
}

async fn signed_in(app: &TestApp, name: &str) -> Visitor {
    passwords::set(&app.context, &login(name), PASSWORD).await.unwrap();
    let mut browser = Visitor::new(&app.url);
    let form = [("login", name), ("password", PASSWORD)];
    browser.submit("/signin", &form).await.leads("/user/settings/account");
    browser
}

/// The form of the page, with a program that listens.
fn form() -> [(&'static str, &'static str); 5] {
    [
        ("code_challenge", CHALLENGE),
        ("description", "statewright login on <b>laptop</b>"),
        ("port", "43210"),
        ("state", STATE),
        ("days", "7"),
    ]
}

/// Allows a login, and returns its code.
async fn allow(browser: &mut Visitor) -> String {
    let led = browser.submit("/cli-login/authorize", &form()).await;
    assert_eq!(led.status.as_u16(), 303, "{}", led.text);
    let code = led.leads_to.strip_prefix("http://127.0.0.1:43210/?code=").unwrap();
    code.strip_suffix(&format!("&state={STATE}")).unwrap().to_owned()
}

async fn exchange(app: &TestApp, members: &Value) -> Answer {
    app.post("/api/oauth/token", members).anonymous().send().await
}

async fn redeem(app: &TestApp, code: &str, verifier: &str) -> Answer {
    let members = json!({ "grant_type": "authorization_code", "code": code, "code_verifier": verifier });
    exchange(app, &members).await
}

async fn shorten(app: &TestApp, token: &str) -> Answer {
    exchange(app, &json!({ "grant_type": "refresh_token", "refresh_token": token })).await
}

/// All codes that are not accepted have the same answer.
#[track_caller]
fn assert_refused(answer: &Answer) {
    let body = answer.expect(403);
    assert_eq!(
        (&body["error"], &body["reason"]),
        (&json!("invalid_grant"), &json!("login_code_not_accepted"))
    );
    assert!(
        body["error_description"].as_str().unwrap().starts_with("the code is not valid, was used already")
    );
}

fn page(challenge: &str, method: &str, port: &str) -> String {
    format!(
        "/cli-login/authorize?code_challenge={challenge}&code_challenge_method={method}&port={port}&state={STATE}\
         &description=by+%3Cb%3E%E2%80%AE"
    )
}

#[tokio::test]
async fn the_page_shows_what_asks_and_leads_to_this_machine() {
    let app = TestApp::memory().await;
    let path = page(CHALLENGE, "S256", "43210");
    let led = Visitor::new(&app.url).open(&path).await;
    assert!(
        led.leads_to.starts_with("/signin?next=/cli-login/authorize%3Fcode_challenge"),
        "{}",
        led.leads_to
    );

    let mut browser = signed_in(&app, USER).await;
    let shown = browser.open(&path).await;
    assert_eq!(shown.status.as_u16(), 200, "{}", shown.text);
    for text in ["log in as <strong>alice", "by &lt;b&gt;</p>", "A program on this computer", "Allow"] {
        assert!(shown.text.contains(text), "{text}: {}", shown.text);
    }
    let policy = shown.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("form-action 'self' http://127.0.0.1:43210;"), "{policy}");
    for (name, value) in [("cache-control", "no-store"), ("referrer-policy", "no-referrer")] {
        assert_eq!(shown.headers[name], value);
    }
    // Without a port, the code is shown to the person, and forms lead nowhere else.
    let shown = browser.open(&path.replace("port=43210&", "")).await;
    assert!(shown.text.contains("Show the code") && shown.text.contains("action=\"/cli-login/code\""));
    let policy = shown.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("form-action 'self';"), "{policy}");

    // Only S256, and only a port of this machine.
    for wrong in [
        page(CHALLENGE, "plain", "43210"),
        page(CHALLENGE, "", "43210"),
        page(VERIFIER.split_at(42).0, "S256", "43210"),
        page(CHALLENGE, "S256", "80"),
        page(CHALLENGE, "S256", "43210@evil.example"),
        page(CHALLENGE, "S256", "evil.example"),
    ] {
        let refused = browser.open(&wrong).await.refuses(400);
        assert!(refused.ends_with("is missing or wrong: run `statewright login` again."), "{refused}");
    }
    app.advance(Duration::from_secs(3601));
    assert!(browser.open(&path).await.leads_to.starts_with("/signin?next="), "the sign-in is too old");
    browser.submit("/cli-login/authorize", &form()).await.refuses(401);
}

#[tokio::test]
async fn a_code_is_used_once_by_the_program_that_began() {
    let app = TestApp::memory().await;
    let mut browser = signed_in(&app, USER).await;
    browser.send(Method::POST, "/cli-login/authorize", "cross-site", Some(&form())).await.refuses(403);
    let code = allow(&mut browser).await;
    // Somebody who sees the code has no verifier.
    for wrong in ["short", CHALLENGE, &VERIFIER.replace('d', "e")] {
        assert_refused(&redeem(&app, &code, wrong).await);
    }
    assert_eq!(redeem(&app, &code, "").await.expect(400)["error"], "invalid_request");
    let answer = redeem(&app, &code, VERIFIER).await;
    let body = answer.expect(200);
    assert_eq!(answer.headers["Cache-Control"], "no-store");
    assert_eq!((&body["token_type"], &body["expires_in"]), (&json!("token"), &json!(7 * 24 * 3600)));
    let token = body["access_token"].as_str().unwrap();
    let user = app.get("/api/user").token(token).send().await.expect(200);
    assert_eq!(user["githubLogin"], USER);
    let listed = tokens::list_all(&app.context, &tokens::Owner::User(login(USER))).await.unwrap();
    let made = listed
        .iter()
        .map(|used| &used.entry)
        .find(|entry| entry.token.name.as_str().starts_with("cli-"))
        .unwrap();
    assert_eq!(made.token.description, "statewright login on <b>laptop</b>");
    assert_eq!(made.token.expires, Some(START.plus(Duration::from_secs(7 * 24 * 3600))));
    assert_refused(&redeem(&app, &code, VERIFIER).await);
    app.get("/api/user").token(token).send().await.expect(200);

    // It lasts five minutes.
    let code = allow(&mut browser).await;
    app.advance(Duration::from_secs(300));
    assert_refused(&redeem(&app, &code, VERIFIER).await);
}

#[tokio::test]
async fn a_copied_code_works_like_a_brought_one() {
    let app = TestApp::memory().await;
    let mut browser = signed_in(&app, USER).await;
    let form = [("code_challenge", CHALLENGE), ("description", ""), ("days", "1")];
    let shown = browser.submit("/cli-login/code", &form).await;
    let code = shown.text.split("<code class=\"secret\">").nth(1).unwrap().split('<').next().unwrap();
    assert!(code.starts_with(&format!("{USER}.swc_")), "{code}");
    assert_eq!(redeem(&app, code, VERIFIER).await.expect(200)["expires_in"], 24 * 3600);
    assert_refused(&redeem(&app, code, VERIFIER).await);
}

#[tokio::test]
async fn codes_that_were_never_given_are_refused() {
    let app = TestApp::memory().await;
    app.member("bob", "laptop").await;
    let code = allow(&mut signed_in(&app, USER).await).await;
    let secret = code.split('.').nth(1).unwrap();
    assert_eq!(redeem(&app, "", VERIFIER).await.expect(400)["error"], "invalid_request");
    for wrong in [
        ".",
        "alice.",
        secret,
        &format!("bob.{secret}"),
        &format!("nobody-here.{secret}"),
        &format!("{code}0"),
        &code.to_uppercase(),
    ] {
        assert_refused(&redeem(&app, wrong, VERIFIER).await);
    }
    let form = app.request(Method::POST, "/api/oauth/token").anonymous();
    let form = form.header("Content-Type", "application/x-www-form-urlencoded");
    let text = format!("grant_type=authorization_code&code={code}&code_verifier={VERIFIER}");
    form.raw(text.into_bytes()).send().await.expect(200);
}

#[tokio::test]
async fn a_code_of_a_removed_user_gives_nothing() {
    let app = TestApp::memory().await;
    app.member("bob", "laptop").await;
    let code = allow(&mut signed_in(&app, "bob").await).await;
    users::remove(&app.context, &login("bob")).await.unwrap();
    assert_refused(&redeem(&app, &code, VERIFIER).await);
    // A later user of the same name does not get it either.
    app.advance(Duration::from_secs(1));
    let org = OrgName::parse(ORG).unwrap();
    users::create(&app.context, &login("bob"), &[org], Role::Member).await.unwrap();
    assert_refused(&redeem(&app, &code, VERIFIER).await);
}

#[tokio::test]
async fn only_this_machine_gets_a_code_and_only_from_a_form() {
    let app = TestApp::memory().await;
    let mut browser = signed_in(&app, USER).await;
    for (name, value) in [
        ("port", ""),
        ("port", "80"),
        ("port", "43210@evil.example"),
        ("port", "43210/evil"),
        ("state", ""),
        ("state", "0a0b0c0d0e0f0a0b&code=x"),
        ("code_challenge", ""),
        ("code_challenge", "plain"),
        ("days", "100000"),
        ("days", ""),
    ] {
        let wrong = form().map(|(field, right)| (field, if field == name { value } else { right }));
        browser.submit("/cli-login/authorize", &wrong).await.refuses(400);
    }
    assert_eq!(
        Visitor::new(&app.url).submit("/cli-login/authorize", &form()).await.refuses(401),
        "You are not signed in: sign in, and try again."
    );
}

#[tokio::test]
async fn a_token_makes_short_lived_ones_that_allow_no_more() {
    let app = TestApp::memory().await;
    let answer = shorten(&app, &app.token).await.expect(200);
    assert_eq!(answer["expires_in"], 3600);
    let short = answer["access_token"].as_str().unwrap().to_owned();
    app.get("/api/user").token(&short).send().await.expect(200);
    // What it makes ends with it.
    app.advance(Duration::from_secs(1800));
    let shorter = shorten(&app, &short).await.expect(200);
    assert_eq!(shorter["expires_in"], 1800);
    app.advance(Duration::from_secs(1801));
    for over in [short.as_str(), shorter["access_token"].as_str().unwrap()] {
        app.get("/api/user").token(over).send().await.refused(401);
        assert_eq!(shorten(&app, over).await.expect(401)["error"], "invalid_grant");
    }
    // The role of the token is its own.
    let planner = app.scoped_token(Role::Plan).await;
    let short = shorten(&app, &planner).await.expect(200)["access_token"].as_str().unwrap().to_owned();
    app.get(&format!("/api/orgs/{ORG}/tokens")).send().await.expect(200);
    app.get(&format!("/api/orgs/{ORG}/tokens")).token(&short).send().await.refused(403);
    // Machines have no short-lived ones.
    let machine = app.post(&format!("/api/orgs/{ORG}/tokens"), &json!({ "name": "deploy" })).send().await;
    let machine = machine.expect(200)["tokenValue"].as_str().unwrap().to_owned();
    let refused = shorten(&app, &machine).await;
    assert!(refused.status.is_client_error() && refused.status != 401, "{}", refused.text());
    assert_eq!(shorten(&app, "swt_unknown").await.expect(401)["error"], "invalid_grant");
    assert_eq!(shorten(&app, "").await.expect(400)["error"], "invalid_request");
}

#[tokio::test]
async fn a_login_is_audited_without_its_secrets() {
    let app = TestApp::memory().await;
    let mut browser = signed_in(&app, USER).await;
    app.take_audit();
    let code = allow(&mut browser).await;
    redeem(&app, &code, "wrong").await;
    let token = redeem(&app, &code, VERIFIER).await.expect(200)["access_token"].as_str().unwrap().to_owned();
    shorten(&app, &token).await.expect(200);
    let records = app.take_audit();
    let entries: Vec<_> = records
        .iter()
        .map(|record| {
            let text = |name: &str| record[name].as_str().unwrap_or("-");
            let detail = text("detail").split('-').next().unwrap_or_default();
            (text("action"), text("result"), text("user"), detail)
        })
        .collect();
    assert_eq!(
        entries,
        [
            ("login.allow", "done", USER, "statewright login on <b>laptop</b>"),
            ("token.exchange", "refused", "-", ""),
            ("token.exchange", "done", USER, "cli"),
            ("token.exchange", "done", USER, "short"),
        ]
    );
    let all = Value::from(records).to_string();
    for secret in ["swt_", "swc_", VERIFIER, CHALLENGE] {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
}

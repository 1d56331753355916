//! Tokens of other issuers: registrations, policies, consents, and the exchange.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Body;
use axum::extract::Request;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures::future::join_all;
use reqwest::Method;
use ring::hmac;
use serde_json::{Value, json};
use statewright_shared::api::Peer;
use statewright_shared::cache::REMEMBERED_FOR;
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::domain::role::Role;
use statewright_shared::layout::{AuditRecord, Record as _};
use statewright_shared::ports::{Item, Order, Web, WebAnswer, WebError, WebRequest};
use statewright_shared::services::audit;
use statewright_shared::services::identity::oidc::{FETCH_PAUSE, KEYS_REMEMBERED_FOR};
use statewright_shared::services::identity::orgs;
use statewright_tests::app::{Answer, ORG, START, TestApp, USER};
use statewright_tests::issuer::{Answers, ISSUER, Issuer, claims_of, unsigned};
use statewright_tests::sts::{AWS, DEPLOY, Sts};
use tower::ServiceExt as _;

const AUDIENCE: &str = "urn:pulumi:org:acme";
const ISSUERS: &str = "/api/orgs/acme/oidc/issuers";
const KIND: &str = "urn:pulumi:token-type:access_token:";

/// A server with an issuer, which is registered with these policies.
async fn with_policies(policies: &Value) -> (TestApp, Arc<Issuer>, String) {
    let issuer = Issuer::new(ISSUER);
    let app = TestApp::memory_asking(Arc::<Issuer>::clone(&issuer)).await;
    let id = register(&app, &json!({ "name": "ci", "url": ISSUER })).await;
    if !policies.is_null() {
        set_policies(&app, &id, policies).await;
    }
    (app, issuer, id)
}

async fn register(app: &TestApp, body: &Value) -> String {
    let registered = app.post(ISSUERS, body).send().await.expect(200);
    registered["id"].as_str().unwrap().to_owned()
}

async fn set_policies(app: &TestApp, id: &str, policies: &Value) {
    let path = format!("/api/orgs/acme/auth/policies/{id}");
    app.patch(&path, &json!({ "policies": policies })).send().await.expect(200);
}

/// A policy that gives tokens of the organization to this subject.
fn allow(subject: &str) -> Value {
    json!([{
        "decision": "allow", "tokenType": "organization", "authorizedPermissions": [],
        "rules": { "aud": AUDIENCE, "sub": subject },
    }])
}

fn now(app: &TestApp) -> i64 {
    app.context.now().seconds()
}

/// The claims of a job.
fn job(app: &TestApp) -> Value {
    let now = now(app);
    json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "job:deploy", "iat": now, "nbf": now, "exp": now + 300 })
}

fn job_with(app: &TestApp, name: &str, value: Value) -> Value {
    let mut claims = job(app);
    claims[name] = value;
    claims
}

/// The form of the exchange as the CLI sends it, for a token of the organization.
fn form(token: &str) -> Vec<(&'static str, String)> {
    vec![
        ("audience", AUDIENCE.to_owned()),
        ("expiration", "7200".to_owned()),
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange".to_owned()),
        ("requested_token_type", format!("{KIND}organization")),
        ("scope", String::new()),
        ("subject_token", token.to_owned()),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token".to_owned()),
    ]
}

fn form_with(token: &str, changes: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let mut form = form(token);
    for (name, value) in changes {
        form.retain(|(known, _)| known != name);
        form.push((name, (*value).to_owned()));
    }
    form
}

fn encoded(form: &[(&'static str, String)]) -> String {
    let escaped = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let pairs: Vec<String> = form.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    pairs.join("&")
}

async fn send(app: &TestApp, form: &[(&'static str, String)]) -> Answer {
    app.request(Method::POST, "/api/oauth/token")
        .anonymous()
        .header("Content-Type", "application/x-www-form-urlencoded")
        .raw(encoded(form).into_bytes())
        .send()
        .await
}

async fn exchange(app: &TestApp, token: &str) -> Answer {
    send(app, &form(token)).await
}

/// The answer to a token that is not accepted is always the same. Returns why, as the audit log has it.
#[track_caller]
fn why_refused(app: &TestApp, answer: &Answer) -> String {
    let body = answer.expect(403);
    assert_eq!((&body["error"], &body["reason"]), (&"access_denied".into(), &"token_not_accepted".into()));
    let text = body["error_description"].as_str().unwrap();
    assert!(text.starts_with("the organization does not accept this token"), "{text}");
    let records = app.take_audit();
    let record = records.last().expect("it is recorded");
    assert_eq!((&record["action"], &record["result"]), (&"token.exchange".into(), &"refused".into()));
    record["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_job_gets_a_token_that_works_until_it_expires() {
    let (app, issuer, id) = with_policies(&allow("job:*")).await;
    app.take_audit();
    let answer = exchange(&app, &issuer.token(&job(&app))).await;
    let body = answer.expect(200);
    assert_eq!(answer.headers["Cache-Control"], "no-store");
    let token = body["access_token"].as_str().unwrap().to_owned();
    assert!(token.starts_with("swt_"));
    let rest = json!({
        "issued_token_type": format!("{KIND}organization"), "token_type": "token", "expires_in": 7200, "scope": "",
    });
    for (name, value) in rest.as_object().unwrap() {
        assert_eq!(&body[name], value, "{name}");
    }
    let records = app.take_audit();
    let record = records.last().unwrap();
    assert_eq!((&record["action"], &record["result"]), (&"token.exchange".into(), &"done".into()));
    assert_eq!(record["organization"], ORG);
    assert_eq!(record["detail"], format!("iss {ISSUER:?}, sub \"job:deploy\""));

    let trail = format!("/api/orgs/{ORG}/auditlogs/v2?eventFilter=token.exchange");
    let trail = app.get(&trail).send().await.expect(200);
    let event = &trail["auditLogEvents"][0];
    assert_eq!(
        (&event["event"], &event["user"]["githubLogin"]),
        (&"token.exchange".into(), &ORG.into()),
        "{trail}"
    );
    assert!(event["description"].as_str().unwrap().contains("sub \"job:deploy\""), "{trail}");

    let user = app.get("/api/user").token(&token).send().await.expect(200);
    assert_eq!(user["organizations"][0]["githubLogin"], ORG);
    app.post("/api/stacks/acme/of-ci", &json!({ "stackName": "dev" })).token(&token).send().await.expect(200);
    // It may do everything with stacks, and does not administer.
    assert_eq!(app.get(ISSUERS).token(&token).send().await.status, 403);
    let used = app.get(&format!("{ISSUERS}/{id}")).send().await.expect(200);
    assert_eq!(used["lastUsed"], "2026-01-01T00:00:00Z");

    app.advance(Duration::from_secs(7201));
    app.get("/api/user").token(&token).send().await.refused(401);
}

#[tokio::test]
async fn json_as_the_action_for_github_sends_it_is_read() {
    let (app, issuer, _) = with_policies(&allow("job:*")).await;
    let token = issuer.token(&job(&app));
    let body = json!({
        "audience": AUDIENCE,
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "requested_token_type": format!("{KIND}organization"),
        "subject_token": token,
        "expiration": 600,
    });
    let call = || app.post("/api/oauth/token", &body).anonymous();
    assert_eq!(call().send().await.expect(200)["expires_in"], 600);
    // Without what the action leaves out if it is not set.
    let mut shorter = body.clone();
    shorter.as_object_mut().unwrap().remove("expiration");
    let answer = app.post("/api/oauth/token", &shorter).anonymous().send().await;
    assert_eq!(answer.expect(200)["expires_in"], 7200);
}

/// The refused exchanges in the trail of the organization, oldest first: who, and the description.
async fn refused_in_trail(app: &TestApp) -> Vec<String> {
    let path = format!("/api/orgs/{ORG}/auditlogs/v2?eventFilter=token.exchange");
    let page = app.get(&path).send().await.expect(200);
    let events = page["auditLogEvents"].as_array().unwrap().iter().rev();
    let refused = events.filter(|event| event["authFailure"] == true);
    let text = |event: &Value| {
        let (login, what) = (&event["user"]["githubLogin"], &event["description"]);
        format!("{}: {}", login.as_str().unwrap(), what.as_str().unwrap())
    };
    refused.map(text).collect()
}

#[tokio::test]
async fn refused_jobs_of_a_minute_are_two_records() {
    let (app, issuer, _) = with_policies(&allow("job:*")).await;
    let other = issuer.token(&job_with(&app, "sub", json!("other")));
    for _ in 0..3 {
        why_refused(&app, &exchange(&app, &other).await);
    }
    let of = |sub: &str, why: &str| format!("{ORG}: iss {ISSUER:?}, sub {sub:?}, {why} (refused)");
    let first = of("other", "no policy allows it");
    assert_eq!(refused_in_trail(&app).await, std::slice::from_ref(&first));
    let foreign = issuer.token(&job_with(&app, "aud", json!("urn:pulumi:org:other")));
    why_refused(&app, &exchange(&app, &foreign).await);
    app.advance(Duration::from_secs(60));
    audit::flush(&app.context, false).await.unwrap();
    // The newest of them stands for all.
    let rest = of("job:deploy", "it is for another audience") + " (3 times within a minute)";
    assert_eq!(refused_in_trail(&app).await, [first, rest]);
}

#[tokio::test]
async fn what_an_issuer_did_not_sign_is_not_in_the_trail() {
    let (app, issuer, _) = with_policies(&allow("job:*")).await;
    let claims = job(&app);
    why_refused(&app, &exchange(&app, &Issuer::new(ISSUER).token(&claims)).await);
    let unknown = issuer.token(&job_with(&app, "iss", json!("https://other.example.com")));
    why_refused(&app, &exchange(&app, &unknown).await);
    let elsewhere = issuer.token(&job_with(&app, "aud", json!("urn:pulumi:org:nowhere")));
    let nowhere = form_with(&elsewhere, &[("audience", "urn:pulumi:org:nowhere")]);
    why_refused(&app, &send(&app, &nowhere).await);
    assert_eq!(refused_in_trail(&app).await, [""; 0]);
    let query = AuditRecord::of_trail(None).query(None, Order::Ascending, 100);
    let of_server = app.context.ledger.query(&query).await.unwrap().items;
    let is_exchange =
        |item: &Item| AuditRecord::decode(&item.value).is_ok_and(|record| record.action == "token.exchange");
    assert!(!of_server.iter().any(is_exchange), "{of_server:?}");
}

/// Each of these has a valid signature, and one thing wrong.
#[tokio::test]
async fn a_token_with_a_wrong_claim_is_refused() {
    let (app, issuer, id) = with_policies(&allow("job:*")).await;
    exchange(&app, &issuer.token(&job(&app))).await.expect(200);
    let now = now(&app);
    for (name, value, why) in [
        ("aud", json!("urn:pulumi:org:other"), "another audience"),
        ("aud", json!([]), "another audience"),
        ("aud", Value::Null, "aud"),
        ("iss", json!("https://other.example.com"), "not registered"),
        ("iss", json!("https://ci.example.com/"), "not registered"),
        ("iss", json!("http://ci.example.com"), "not an address"),
        ("exp", json!(now - 61), "expired"),
        ("exp", Value::Null, "exp"),
        ("exp", json!("soon"), "exp"),
        ("nbf", json!(now + 61), "not valid yet"),
        ("iat", json!(now + 61), "not valid yet"),
        ("nbf", json!("soon"), "nbf is not a time"),
        ("sub", json!("other"), "no policy allows it"),
    ] {
        let claims = job_with(&app, name, value.clone());
        let why_not = why_refused(&app, &exchange(&app, &issuer.token(&claims)).await);
        assert!(why_not.contains(why), "{name} {value}: {why_not}");
    }
    // A rule on a claim that is missing is not met, whatever it allows.
    let mut without = job(&app);
    without.as_object_mut().unwrap().remove("sub");
    without["ref"] = "main".into();
    for rules in [
        json!({ "sub": "job:*" }),
        json!({ "sub": "*", "ref": "main" }),
        json!({ "ref": "main", "environment": "*" }),
    ] {
        let policy = json!([{ "decision": "allow", "tokenType": "organization", "rules": rules }]);
        set_policies(&app, &id, &policy).await;
        let why_not = why_refused(&app, &exchange(&app, &issuer.token(&without)).await);
        assert!(why_not.contains("no policy allows it") && !why_not.contains("sub"), "{rules}: {why_not}");
    }
    set_policies(&app, &id, &allow("job:*")).await;
    for (name, value) in [("exp", now - 59), ("nbf", now + 59), ("iat", now + 59)] {
        let claims = job_with(&app, name, json!(value));
        exchange(&app, &issuer.token(&claims)).await.expect(200);
    }
    let both = job_with(&app, "aud", json!(["other", AUDIENCE]));
    exchange(&app, &issuer.token(&both)).await.expect(200);
}

#[tokio::test]
async fn a_token_without_a_valid_signature_is_refused() {
    let (app, issuer, _) = with_policies(&allow("job:*")).await;
    let claims = job(&app);
    let good = issuer.token(&claims);
    let (signed, signature) = good.rsplit_once('.').unwrap();

    let other = Issuer::new(ISSUER);
    assert!(why_refused(&app, &exchange(&app, &other.token(&claims)).await).contains("signature is wrong"));
    let (header, _) = signed.split_once('.').unwrap();
    let more = URL_SAFE_NO_PAD.encode(job_with(&app, "sub", json!("job:admin")).to_string());
    let changed = format!("{header}.{more}.{signature}");
    assert!(why_refused(&app, &exchange(&app, &changed).await).contains("signature is wrong"));

    // The public key as a shared secret.
    let hs256 = unsigned(&json!({ "alg": "HS256", "kid": "key-1" }), &claims);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &issuer.public_bytes()), hs256.as_bytes());
    let hs256 = format!("{hs256}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()));
    assert!(why_refused(&app, &exchange(&app, &hs256).await).contains("not for the token's algorithm"));
    for algorithm in ["RS256", "ES384", "EdDSA", "PS256"] {
        let other = unsigned(&json!({ "alg": algorithm, "kid": "key-1" }), &claims);
        let why = why_refused(&app, &exchange(&app, &format!("{other}.{signature}")).await);
        assert!(why.contains("not for the token's algorithm"), "{algorithm}: {why}");
    }
    // These are not signed tokens at all.
    let none = unsigned(&json!({ "alg": "none", "kid": "key-1" }), &claims);
    for bad in [format!("{none}."), none, "abc".to_owned(), String::new(), "a.b.c".to_owned()] {
        let body = exchange(&app, &bad).await.expect(400);
        assert_eq!(body["error"], "invalid_request", "{bad}");
    }
    let critical = unsigned(&json!({ "alg": "ES256", "kid": "key-1", "crit": ["x"], "x": 1 }), &claims);
    why_refused(&app, &exchange(&app, &format!("{critical}.{signature}")).await);
}

/// Two issuers that are asked through one port.
struct Both(Arc<Issuer>, Arc<Issuer>);

#[async_trait]
impl Web for Both {
    async fn send(&self, request: WebRequest) -> Result<WebAnswer, WebError> {
        match request.url.starts_with(&self.0.url) {
            true => self.0.send(request).await,
            false => self.1.send(request).await,
        }
    }
}

#[tokio::test]
async fn a_token_of_one_issuer_is_not_taken_for_another() {
    const OTHER: &str = "https://other.example.com";
    let (first, second) = (Issuer::new(ISSUER), Issuer::new(OTHER));
    let both = Arc::new(Both(Arc::clone(&first), Arc::clone(&second)));
    let app = TestApp::memory_asking(both).await;
    for (url, subject) in [(ISSUER, "job:*"), (OTHER, "ops:*")] {
        let id = register(&app, &json!({ "name": "ci", "url": url })).await;
        set_policies(&app, &id, &allow(subject)).await;
    }
    let of_other = |subject: &str| {
        let mut claims = job_with(&app, "iss", json!(OTHER));
        claims["sub"] = json!(subject);
        claims
    };
    // Both have a key of the same name.
    let why = why_refused(&app, &exchange(&app, &first.token(&of_other("ops:deploy"))).await);
    assert!(why.contains("signature is wrong"), "{why}");
    let why = why_refused(&app, &exchange(&app, &second.token(&job(&app))).await);
    assert!(why.contains("signature is wrong"), "{why}");
    // The policies of an issuer are for its own tokens.
    let why = why_refused(&app, &exchange(&app, &second.token(&of_other("job:deploy"))).await);
    assert!(why.contains("no policy allows it"), "{why}");
    exchange(&app, &second.token(&of_other("ops:deploy"))).await.expect(200);
    // The refusals of each are summed up on their own.
    why_refused(&app, &exchange(&app, &first.token(&job_with(&app, "sub", json!("other")))).await);
    why_refused(&app, &exchange(&app, &second.token(&of_other("other"))).await);
    let in_trail = refused_in_trail(&app).await;
    let issuers: Vec<bool> = in_trail.iter().map(|line| line.contains(OTHER)).collect();
    assert_eq!(issuers, [true, false], "{in_trail:?}");
    // One that is down does not stop the other.
    app.advance(KEYS_REMEMBERED_FOR);
    second.set(Answers::Never);
    exchange(&app, &second.token(&of_other("ops:deploy"))).await.expect(503);
    exchange(&app, &first.token(&job(&app))).await.expect(200);
}

#[tokio::test]
async fn two_members_of_one_name_are_refused() {
    let (app, issuer, _) = with_policies(&allow("job:*")).await;
    let claims = job(&app).to_string();
    // A signer of texts: the claims as text, with one member twice.
    let twice = claims.replacen('{', "{\"role\":\"a\",\"role\":\"b\",", 1);
    let token = issuer.token_of_text("key-1", &twice);
    assert!(why_refused(&app, &exchange(&app, &token).await).contains("malformed"));
    exchange(&app, &issuer.token_of_text("key-1", &claims)).await.expect(200);
}

#[tokio::test]
async fn a_rotated_key_is_found_and_a_withdrawn_one_refused() {
    let (app, issuer, _) = with_policies(&allow("job:*")).await;
    assert_eq!(issuer.request_count(), 1, "registering asks once");
    let with = async |key: &str| exchange(&app, &issuer.token_with(key, &job(&app))).await;
    with("key-1").await.expect(200);
    assert_eq!(issuer.request_count(), 1, "the keys are known");

    issuer.add_key("key-2");
    let why = why_refused(&app, &with("key-2").await);
    assert!(why.contains("no key of the issuer"), "too soon after the last time: {why}");
    app.advance(FETCH_PAUSE);
    with("key-2").await.expect(200);
    assert_eq!(issuer.request_count(), 2);

    // However many tokens name unknown keys, the issuer is asked once a minute.
    let unknown = Issuer::new(ISSUER);
    unknown.add_key("key-9");
    let forged = unknown.token_with("key-9", &job(&app));
    for _ in 0..5 {
        assert!(why_refused(&app, &exchange(&app, &forged).await).contains("no key of the issuer"));
    }
    assert_eq!(issuer.request_count(), 2);

    let old = issuer.token_with("key-1", &job(&app));
    issuer.withdraw_key("key-1");
    exchange(&app, &old).await.expect(200);
    app.advance(KEYS_REMEMBERED_FOR);
    let later = with("key-2").await;
    later.expect(200);
    assert_eq!(issuer.request_count(), 3);
    issuer.add_key("key-1");
    let again = issuer.token_with("key-1", &job(&app));
    assert!(why_refused(&app, &exchange(&app, &again).await).contains("no key of the issuer"));
}

#[tokio::test]
async fn an_issuer_that_fails_is_a_failure_that_clients_repeat() {
    for answers in [
        Answers::Never,
        Answers::Redirect,
        Answers::TooMuch,
        Answers::WithoutKeys,
        Answers::As("https://other.example.com".to_owned()),
    ] {
        let (app, issuer, _) = with_policies(&allow("job:*")).await;
        app.advance(KEYS_REMEMBERED_FOR);
        issuer.set(answers.clone());
        let token = issuer.token(&job(&app));
        app.take_audit();
        for _ in 0..3 {
            let body = exchange(&app, &token).await.expect(503);
            assert_eq!(body["error"], "temporarily_unavailable", "{answers:?}");
            assert_eq!(body["reason"], "issuer_unavailable");
            assert!(!body.to_string().contains("other.example.com"), "details are for the operator: {body}");
        }
        assert_eq!(issuer.request_count(), 2, "{answers:?}: it is asked once a minute");
        let records = app.take_audit();
        let detail = records.last().unwrap()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("https://ci.example.com/"), "{answers:?}: {detail}");
        issuer.set(Answers::Well);
        app.advance(FETCH_PAUSE);
        exchange(&app, &token).await.expect(200);
        // A failure while the keys are known and suffice is not seen.
        issuer.set(answers);
        app.advance(KEYS_REMEMBERED_FOR - Duration::from_secs(1));
        let now = now(&app);
        exchange(&app, &issuer.token(&job_with(&app, "exp", json!(now + 300)))).await.expect(200);
    }
}

#[tokio::test]
async fn the_parameters_of_a_request_are_checked() {
    let (app, issuer, _) = with_policies(&allow("job:*")).await;
    let token = issuer.token(&job(&app));
    for (name, value, error) in [
        ("grant_type", "password", "unsupported_grant_type"),
        ("grant_type", "refresh_token", "invalid_request"),
        ("grant_type", "authorization_code", "invalid_request"),
        ("grant_type", "", "unsupported_grant_type"),
        ("audience", "acme", "invalid_target"),
        ("audience", "urn:pulumi:org:", "invalid_target"),
        ("audience", "urn:pulumi:org:a/b", "invalid_target"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:access_token", "invalid_request"),
        ("requested_token_type", "urn:pulumi:token-type:access_token:runner", "invalid_request"),
        ("requested_token_type", "", "invalid_request"),
        ("scope", "team:web", "invalid_request"),
        ("scope", "nonsense", "invalid_request"),
        ("expiration", "0", "invalid_request"),
        ("expiration", "-5", "invalid_request"),
        ("expiration", "2h", "invalid_request"),
        ("subject_token", &"x".repeat(20_000), "invalid_request"),
    ] {
        let answer = send(&app, &form_with(&token, &[(name, value)])).await;
        let body = answer.expect(400);
        assert_eq!(body["error"], error, "{name} {value}");
        let text = body["error_description"].as_str().unwrap();
        assert!(!text.is_empty() && body["message"] == text, "{name}: {body}");
    }
    let long = send(&app, &form_with(&token, &[("expiration", "999999999")])).await.expect(200);
    assert_eq!(long["expires_in"], 25 * 3600);
    // Every refusal has the form of this endpoint.
    let huge = vec![b'x'; 100_000];
    let answer = app.post("/api/oauth/token", &Value::Null).anonymous().raw(huge).send().await;
    assert_eq!(answer.expect(413)["error"], "invalid_request");
}

/// An organization that does not exist answers like one that does not know the issuer.
#[tokio::test]
async fn unknown_organizations_and_issuers_answer_alike() {
    let (app, issuer, _) = with_policies(&allow("job:*")).await;
    let of_other = |audience: &str| {
        let token = issuer.token(&job_with(&app, "aud", json!(audience)));
        form_with(&token, &[("audience", audience)])
    };
    let unknown = send(&app, &of_other("urn:pulumi:org:nowhere")).await;
    why_refused(&app, &unknown);
    app.other_user("bob", "beta").await;
    let foreign = send(&app, &of_other("urn:pulumi:org:beta")).await;
    why_refused(&app, &foreign);
    assert_eq!(unknown.expect(403), foreign.expect(403));
    // A token for one organization does not open another one that accepts the same issuer.
    let here = issuer.token(&job(&app));
    let elsewhere = send(&app, &form_with(&here, &[("audience", "urn:pulumi:org:beta")])).await;
    why_refused(&app, &elsewhere);
}

#[tokio::test]
async fn nothing_is_allowed_by_default_and_deny_wins() {
    let (app, issuer, id) = with_policies(&Value::Null).await;
    let token = issuer.token(&job(&app));
    assert!(why_refused(&app, &exchange(&app, &token).await).contains("no policy allows it"));
    let found = app.get(&format!("/api/orgs/acme/auth/policies/oidcissuers/{id}")).send().await.expect(200);
    assert_eq!((&found["policies"], &found["version"]), (&json!([]), &json!(0)));
    assert_eq!(found["id"], id.as_str());

    let mut both = allow("job:*");
    both.as_array_mut().unwrap().push(json!({
        "decision": "deny", "tokenType": "organization", "authorizedPermissions": [], "rules": { "sub": "job:dep*" },
    }));
    set_policies(&app, &id, &both).await;
    assert!(why_refused(&app, &exchange(&app, &token).await).contains("a policy denies it"));
    let other = issuer.token(&job_with(&app, "sub", json!("job:test")));
    exchange(&app, &other).await.expect(200);
}

#[tokio::test]
async fn the_role_of_a_token_is_that_of_its_policy() {
    let (app, issuer, id) = with_policies(&Value::Null).await;
    let token = issuer.token(&job(&app));
    let create = json!({ "stackName": "dev" });
    for (parts, scope, may_create, may_administer) in [
        (json!({ "roleID": "plan" }), "", false, false),
        (json!({}), "", true, false),
        (json!({ "authorizedPermissions": ["standard"] }), "", true, false),
        (json!({ "authorizedPermissions": ["admin"] }), "", true, true),
        (json!({ "authorizedPermissions": ["admin"] }), "admin", true, true),
    ] {
        let mut policy = allow("job:*");
        policy[0].as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
        set_policies(&app, &id, &policy).await;
        let given = send(&app, &form_with(&token, &[("scope", scope)])).await.expect(200);
        let given = given["access_token"].as_str().unwrap().to_owned();
        let project = crate::world::new_project();
        let created = app.post(&format!("/api/stacks/acme/{project}"), &create).token(&given).send().await;
        assert_eq!(created.status == 200, may_create, "{parts}: {}", created.status);
        let listed = app.get(ISSUERS).token(&given).send().await;
        assert_eq!(listed.status == 200, may_administer, "{parts}: {}", listed.status);
    }
    set_policies(&app, &id, &allow("job:*")).await;
    let refused = send(&app, &form_with(&token, &[("scope", "admin")])).await;
    assert!(why_refused(&app, &refused).contains("scope admin"));
}

#[tokio::test]
async fn a_personal_token_needs_the_users_consent() {
    let policies = json!([{
        "decision": "allow", "tokenType": "personal", "userLogin": "alice", "rules": { "sub": "job:*" },
    }]);
    let (app, issuer, id) = with_policies(&policies).await;
    let token = issuer.token(&job(&app));
    let personal = |login: &str| {
        let (kind, scope) = (format!("{KIND}personal"), format!("user:{login}"));
        form_with(&token, &[("requested_token_type", &kind), ("scope", &scope)])
    };
    let refused = send(&app, &personal("alice")).await.expect(403);
    assert_eq!((&refused["error"], &refused["reason"]), (&"access_denied".into(), &"consent_missing".into()));
    assert!(refused["error_description"].as_str().unwrap().contains("statewright consent add"), "{refused}");
    why_refused(&app, &send(&app, &personal("bob")).await);

    let consents = "/api/user/oidc/consents";
    let consent = json!({ "organization": ORG, "issuer": ISSUER });
    let given = app.post(consents, &consent).send().await.expect(200);
    assert_eq!((&given["issuerId"], &given["url"]), (&id.as_str().into(), &ISSUER.into()));
    assert_eq!(app.get(consents).send().await.expect(200)["consents"], json!([given]));
    let exchanged = send(&app, &personal("alice")).await.expect(200);
    let own = exchanged["access_token"].as_str().unwrap().to_owned();
    assert_eq!(app.get("/api/user").token(&own).send().await.expect(200)["githubLogin"], "alice");
    // Alice is an admin, and this token is not one, nor can it consent to more.
    assert_eq!(app.get(ISSUERS).token(&own).send().await.status, 403);
    assert_eq!(app.post(consents, &consent).token(&own).send().await.status, 403);
    let plan = app.scoped_token(Role::Plan).await;
    assert_eq!(app.post(consents, &consent).token(&plan).send().await.status, 403);

    // A later registration of the same address has no consent.
    app.request(Method::DELETE, &format!("{ISSUERS}/{id}")).send().await.expect(204);
    let again = register(&app, &json!({ "name": "ci", "url": ISSUER })).await;
    set_policies(&app, &again, &policies).await;
    assert_eq!(again, id, "an address has one ID");
    app.advance(Duration::from_secs(1));
    let path = format!("{ISSUERS}/{id}");
    app.request(Method::DELETE, &path).send().await.expect(204);
    let last = register(&app, &json!({ "name": "ci", "url": ISSUER })).await;
    set_policies(&app, &last, &policies).await;
    assert_eq!(send(&app, &personal("alice")).await.expect(403)["reason"], "consent_missing");
    app.post(consents, &consent).send().await.expect(200);
    send(&app, &personal("alice")).await.expect(200);
    app.request(Method::DELETE, &format!("{consents}/{id}")).send().await.expect(204);
    assert_eq!(send(&app, &personal("alice")).await.expect(403)["reason"], "consent_missing");
    let gone = app.request(Method::DELETE, &format!("{consents}/{id}")).send().await;
    assert_eq!(gone.expect(404)["reason"], "consent_not_found");
}

#[tokio::test]
async fn a_job_gets_a_token_of_a_team_while_the_team_exists() {
    let policies = json!([{
        "decision": "allow", "tokenType": "team", "teamName": "web", "rules": { "sub": "job:*" },
    }]);
    let (app, issuer, _) = with_policies(&policies).await;
    let token = issuer.token(&job(&app));
    let kind = format!("{KIND}team");
    let ask = async || {
        let asks = [("requested_token_type", kind.as_str()), ("scope", "team:web")];
        send(&app, &form_with(&token, &asks)).await
    };
    let refused = async || {
        let body = ask().await.expect(403);
        assert_eq!(
            (&body["error"], &body["reason"]),
            (&"access_denied".into(), &"token_not_accepted".into())
        );
        let text = body["error_description"].as_str().unwrap();
        assert!(text.starts_with("team web of acme not found"), "{text}");
        let records = app.take_audit();
        let why = records.last().unwrap()["detail"].as_str().unwrap();
        assert!(why.contains("its team does not exist"), "{why}");
    };
    refused().await;
    let (stack, teams) = (format!("/api/stacks/{ORG}/web/dev"), format!("/api/orgs/{ORG}/teams"));
    app.post(&format!("/api/stacks/{ORG}/web"), &json!({ "stackName": "dev" })).send().await.expect(200);
    let new = json!({ "name": "web", "displayName": "", "description": "", "teamType": "pulumi" });
    app.post(&format!("{teams}/pulumi"), &new).send().await.expect(201);
    let grant = json!({ "to": "team:web", "on": "web/*", "role": "view" });
    app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    let given = ask().await.expect(200)["access_token"].as_str().unwrap().to_owned();
    app.get(&stack).token(&given).send().await.expect(200);
    app.get(&format!("{stack}/export")).token(&given).send().await.refused(403);
    app.request(Method::DELETE, &format!("{teams}/web")).send().await.expect(204);
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
    app.get(&stack).token(&given).send().await.refused(401);
    refused().await;
    // A later team of the name does not get the token of the former one.
    app.post(&format!("{teams}/pulumi"), &new).send().await.expect(201);
    app.get(&stack).token(&given).send().await.refused(401);
}

/// Alice is a member of two organizations and administers the server. A token of a job, also her own, does neither.
#[tokio::test]
async fn an_exchanged_token_reaches_its_organization_alone() {
    let allowed = |more: Value| {
        let mut policy = json!({ "decision": "allow", "rules": { "sub": "job:*" } });
        policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        policy
    };
    let policies = json!([
        allowed(json!({ "tokenType": "personal", "userLogin": USER })),
        allowed(json!({ "tokenType": "team", "teamName": "web" })),
        allowed(json!({ "tokenType": "organization", "authorizedPermissions": ["admin"] })),
    ]);
    let (app, issuer, _) = with_policies(&policies).await;
    orgs::create(&app.context, &OrgName::parse("beta").unwrap(), &[Login::parse(USER).unwrap()])
        .await
        .unwrap();
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
    for org in [ORG, "beta"] {
        let created = app.post(&format!("/api/stacks/{org}/web"), &json!({ "stackName": "dev" }));
        created.send().await.expect(200);
    }
    let team = json!({ "name": "web", "displayName": "", "description": "", "teamType": "pulumi" });
    app.post(&format!("/api/orgs/{ORG}/teams/pulumi"), &team).send().await.expect(201);
    let grant = json!({ "to": "team:web", "on": "*", "role": "admin" });
    app.post(&format!("/api/orgs/{ORG}/grants"), &grant).send().await.expect(200);
    let consent = json!({ "organization": ORG, "issuer": ISSUER });
    app.post("/api/user/oidc/consents", &consent).send().await.expect(200);

    let of_server = ["/api/admin/status", "/api/admin/storage"];
    for path in of_server {
        app.get(path).send().await.expect(200);
    }
    let orgs_of = async |token: &str| -> Vec<String> {
        let listed = app.get("/api/user/stacks").token(token).send().await.expect(200);
        let name = |stack: &Value| stack["orgName"].as_str().unwrap().to_owned();
        listed["stacks"].as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(orgs_of(&app.token).await, [ORG, "beta"]);
    let of_job = issuer.token(&job(&app));
    for (kind, scope) in
        [("personal", "user:alice"), ("team", "team:web"), ("organization", ""), ("organization", "admin")]
    {
        let requested = format!("{KIND}{kind}");
        let form = form_with(&of_job, &[("requested_token_type", requested.as_str()), ("scope", scope)]);
        let given = send(&app, &form).await.expect(200)["access_token"].as_str().unwrap().to_owned();
        app.get(&format!("/api/stacks/{ORG}/web/dev")).token(&given).send().await.expect(200);
        app.get("/api/stacks/beta/web/dev").token(&given).send().await.refused(404);
        assert_eq!(orgs_of(&given).await, [ORG], "{kind} {scope}");
        for path in of_server {
            let refused = app.get(path).token(&given).send().await;
            assert_eq!(refused.status, 403, "{kind} {scope} {path}: {}", refused.text());
        }
    }
}

/// The claims that each CI makes, with a policy as the page about CI shows it.
#[tokio::test]
async fn tokens_as_each_ci_makes_them_are_accepted() {
    for (ci, rules) in [
        ("github", json!({ "sub": "repo:acme/app:environment:production" })),
        ("github", json!({ "repository_owner": "acme", "ref": "refs/heads/main", "event_name": "push" })),
        ("gitlab", json!({ "project_path": "acme/app", "ref": "main", "ref_protected": "true" })),
        (
            "gitlab",
            json!({ "sub": "project_path:acme/*:ref_type:branch:ref:main", "groups_direct": "acme/ops" }),
        ),
        (
            "bitbucket",
            json!({ "repositoryUuid": "{30e67ee4-9a3b-4d7c-a4d9-2f6f0f1b5a01}", "branchName": "main" }),
        ),
        ("circleci", json!({ "\"oidc.circleci.com/project-id\"": "5e4d3c2b-1a09-4f8e-8d7c-6b5a49382712" })),
        (
            "circleci",
            json!({ "sub": "org/*/project/5e4d3c2b-*", "\"oidc.circleci.com/ssh-rerun\"": "false" }),
        ),
        ("kubernetes", json!({ "sub": "system:serviceaccount:ci:deploy" })),
        (
            "kubernetes",
            json!({ "\"kubernetes.io\".namespace": "ci", "\"kubernetes.io\".serviceaccount.name": "dep*" }),
        ),
    ] {
        let claims = claims_of(ci, AUDIENCE, START.seconds());
        let url = claims["iss"].as_str().unwrap();
        let issuer = Issuer::new(url);
        let app = TestApp::memory_asking(Arc::<Issuer>::clone(&issuer)).await;
        let id = register(&app, &json!({ "name": ci, "url": url })).await;
        let policy =
            |rules: &Value| json!([{ "decision": "allow", "tokenType": "organization", "rules": rules }]);
        set_policies(&app, &id, &policy(&rules)).await;
        let answer = exchange(&app, &issuer.token(&claims)).await;
        assert_eq!(answer.status, 200, "{ci} {rules}: {}", answer.text());
        // With one rule that the token does not meet.
        let mut more = rules.clone();
        more["aud"] = json!("another");
        set_policies(&app, &id, &policy(&more)).await;
        why_refused(&app, &exchange(&app, &issuer.token(&claims)).await);
    }
}

#[tokio::test]
async fn an_issuer_is_registered_changed_and_deleted() {
    let issuer = Issuer::new(ISSUER);
    let app = TestApp::memory_asking(Arc::<Issuer>::clone(&issuer)).await;
    let new = json!({ "name": "ci", "url": ISSUER, "maxExpiration": 600 });
    let registered = app.post(ISSUERS, &new).send().await.expect(200);
    let id = registered["id"].as_str().unwrap();
    assert_eq!((&registered["issuer"], &registered["url"]), (&ISSUER.into(), &ISSUER.into()));
    assert_eq!(registered["thumbprints"], json!(["07".repeat(32)]));
    assert_eq!(registered["created"], "2026-01-01T00:00:00Z");
    assert_eq!(app.get(ISSUERS).send().await.expect(200)["oidcIssuers"], json!([registered]));
    assert_eq!(app.post(ISSUERS, &new).send().await.expect(409)["reason"], "issuer_exists");

    set_policies(&app, id, &allow("job:*")).await;
    let job_token = issuer.token(&job(&app));
    let seconds = async |expiration: &str| {
        let form = form_with(&job_token, &[("expiration", expiration)]);
        send(&app, &form).await.expect(200)["expires_in"].clone()
    };
    for (asked, given) in [("7200", 600), ("600", 600), ("60", 60)] {
        assert_eq!(seconds(asked).await, given, "{asked}");
    }

    let path = format!("{ISSUERS}/{id}");
    assert_eq!(
        app.patch(&path, &json!({})).send().await.refused(400),
        "Bad Request: the issuer name is required: send `name`"
    );
    let print = "ab".repeat(32);
    let changed = json!({ "name": "new", "thumbprints": [print], "maxExpiration": null });
    let changed = app.patch(&path, &changed).send().await.expect(200);
    assert_eq!((&changed["name"], &changed["thumbprints"]), (&"new".into(), &json!([print])));
    assert_eq!(changed["maxExpiration"], Value::Null);
    assert_eq!(seconds("7200").await, 7200);
    let renewed = app.post(&format!("{path}/regenerate-thumbprints"), &json!({})).send().await.expect(200);
    assert_eq!(renewed["thumbprints"], json!(["07".repeat(32)]));

    // With registered keys, the issuer is not asked.
    let fixed =
        app.patch(&path, &json!({ "name": "new", "jwks": issuer.key_set() })).send().await.expect(200);
    assert_eq!(fixed["jwks"], issuer.key_set());
    let refused = app.post(&format!("{path}/regenerate-thumbprints"), &json!({})).send().await.refused(400);
    assert!(refused.contains("issuer jwks are statically configured"), "{refused}");
    issuer.set(Answers::Never);
    app.advance(KEYS_REMEMBERED_FOR);
    let before = issuer.request_count();
    exchange(&app, &issuer.token(&job(&app))).await.expect(200);
    assert_eq!(issuer.request_count(), before);

    app.request(Method::DELETE, &path).send().await.expect(204);
    for missing in [&path, "/api/orgs/acme/auth/policies/oidcissuers/nonsense"] {
        assert_eq!(app.get(missing).send().await.expect(404)["reason"], "issuer_not_found");
    }
    assert!(why_refused(&app, &exchange(&app, &issuer.token(&job(&app))).await).contains("not registered"));
}

#[tokio::test]
async fn a_registration_that_breaks_a_rule_is_refused() {
    let issuer = Issuer::new(ISSUER);
    let app = TestApp::memory_asking(Arc::<Issuer>::clone(&issuer)).await;
    let private = json!({ "keys": [{ "kty": "oct", "k": "c2VjcmV0" }] });
    for (parts, why) in [
        (json!({ "name": "" }), "the issuer name is required"),
        (json!({ "name": null }), "the issuer name is required"),
        (json!({ "url": "http://ci.example.com" }), "is not the address of an issuer"),
        (json!({ "url": null }), "is not the address of an issuer"),
        (json!({ "thumbprints": ["abc"] }), "is not a thumbprint"),
        (json!({ "maxExpiration": 0 }), "maxExpiration"),
        (json!({ "maxExpiration": 90_001 }), "maxExpiration"),
        (json!({ "jwks": {} }), "not a JSON Web Key Set"),
        (json!({ "jwks": private }), "register public keys only"),
        (json!({ "jwks": { "keys": [] } }), "no key can verify"),
        (json!({ "url": "https://unknown.example.com" }), "cannot be fetched"),
    ] {
        let mut body = json!({ "name": "ci", "url": ISSUER });
        body.as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
        let refused = app.post(ISSUERS, &body).send().await.refused(400);
        assert!(refused.contains(why), "{parts}: {refused}");
    }
    assert_eq!(app.get(ISSUERS).send().await.expect(200)["oidcIssuers"], json!([]));
    let id = register(&app, &json!({ "name": "ci", "url": ISSUER })).await;
    let policies = format!("/api/orgs/acme/auth/policies/{id}");
    for (body, why) in [
        (json!({}), "policy definition can not be empty"),
        (json!({ "policies": null }), "policy definition can not be empty"),
        (json!({ "policies": [] }), "policy definition can not be empty"),
        (json!({ "policies": allow("*") }), "it allows every token of the issuer"),
        (json!({ "policies": [{ "decision": "maybe" }] }), "unknown variant"),
        (
            json!({ "policies": [{ "decision": "allow", "tokenType": "runner", "runnerID": "x", "rules": {} }] }),
            "unknown variant `runner`",
        ),
        (
            json!({ "policies": [{
                "decision": "allow", "tokenType": "organization", "rules": { "sub": "x" }, "roleID": "owner",
            }] }),
            "unknown variant `owner`",
        ),
    ] {
        let refused = app.patch(&policies, &body).send().await.refused(400);
        assert!(refused.contains(why), "{body}: {refused}");
    }
}

/// Registering an issuer or its policies is giving rights.
#[tokio::test]
async fn only_admins_manage_issuers() {
    let (app, _, id) = with_policies(&Value::Null).await;
    for role in [Role::Plan, Role::Member] {
        let member = app.member_with_role(role, &format!("of-{role}"), "laptop").await;
        for call in [
            app.get(ISSUERS),
            app.post(ISSUERS, &json!({ "name": "x", "url": "https://x.example.com" })),
            app.patch(&format!("/api/orgs/acme/auth/policies/{id}"), &json!({ "policies": allow("x") })),
        ] {
            assert_eq!(call.token(&member).send().await.status, 403, "{role}");
        }
    }
    let other = app.other_user("bob", "beta").await;
    assert_eq!(app.get(ISSUERS).token(&other).send().await.expect(404)["reason"], "organization_not_found");
    // An issuer of one organization is not known in another.
    let elsewhere = format!("/api/orgs/beta/oidc/issuers/{id}");
    assert_eq!(app.get(&elsewhere).token(&other).send().await.status, 404);
}

const SERVER: &str = "https://state.example.com";

/// The type of a proof.
const PROOF: &str = "urn:statewright:token-type:aws-caller-identity";

/// A proof with this last byte in its signature.
fn proof(last: u8, server: &str) -> String {
    proof_with("AKIA", last, server)
}

/// The same, made with this access key.
fn proof_with(key: &str, last: u8, server: &str) -> String {
    let url = format!(
        "https://sts.eu-central-1.amazonaws.com/?Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=\
         AWS4-HMAC-SHA256&X-Amz-Credential={key}%2F20260101%2Feu-central-1%2Fsts%2Faws4_request&X-Amz-Date=\
         20260101T000000Z&X-Amz-Expires=300&X-Amz-SignedHeaders=host%3Bx-statewright-server&X-Amz-Signature={}{last:02x}",
        "ab".repeat(31)
    );
    URL_SAFE_NO_PAD.encode(json!({ "url": url, "server": server }).to_string())
}

async fn show(app: &TestApp, proof: &str) -> Answer {
    send(app, &form_with(proof, &[("subject_token_type", PROOF)])).await
}

/// Shows the proof of a principal with a key of its own.
async fn show_of(app: &TestApp, number: u8) -> Answer {
    show(app, &proof_with(&format!("AKIA{number}"), number, SERVER)).await
}

/// A server whose organization accepts the principal of [`Sts`].
async fn for_principals(sts: &Arc<Sts>) -> TestApp {
    let app = TestApp::memory_of_address(Arc::<Sts>::clone(sts), SERVER).await;
    let id = accept_deploy(&app).await;
    let refused = json!({ "policies": allow("arn:aws:sts::*") });
    let refused =
        app.patch(&format!("/api/orgs/acme/auth/policies/{id}"), &refused).send().await.refused(400);
    assert!(refused.contains("aws:account"), "{refused}");
    app
}

/// Registers AWS with a policy for one role, and returns its ID.
async fn accept_deploy(app: &TestApp) -> String {
    let id = register(app, &json!({ "name": "aws", "url": AWS })).await;
    set_policies(app, &id, &by_rules(&json!({ "aws:role": "arn:aws:iam::123456789012:role/deploy" }))).await;
    id
}

/// A policy that gives tokens of the organization by these rules.
fn by_rules(rules: &Value) -> Value {
    json!([{ "decision": "allow", "tokenType": "organization", "rules": rules }])
}

/// Of two processes that get it at the same time, one accepts it.
#[tokio::test]
async fn a_proof_counts_once_for_two_processes() {
    let sts = Sts::answering(SERVER, 200);
    let web = || Arc::<Sts>::clone(&sts);
    for app in [
        TestApp::memory_of_address(web(), SERVER).await,
        Box::pin(TestApp::embedded_of_address_on_manual_clock(web(), SERVER)).await,
        Box::pin(TestApp::aws_of_address(web(), SERVER)).await,
    ] {
        accept_deploy(&app).await;
        let other = app.another_process("other").await;
        let shown = proof(1, SERVER);
        let (one, two) = tokio::join!(show(&app, &shown), show(&other, &shown));
        let mut statuses = [one.status.as_u16(), two.status.as_u16()];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 403], "{} {}", one.text(), two.text());
        let why = match one.status.as_u16() {
            403 => why_refused(&app, &one),
            _ => why_refused(&other, &two),
        };
        assert!(why.contains("shown before"), "{why}");
        // Later, and with the next request of a fleet, too.
        for at in [&app, &app, &other] {
            assert!(why_refused(at, &show(at, &shown).await).contains("shown before"));
        }
        show(&other, &proof_with("AKIB", 2, SERVER)).await.expect(200);
    }
}

#[tokio::test]
async fn another_role_or_account_is_refused() {
    const ELSEWHERE: &str = "arn:aws:sts::210987654321:assumed-role/deploy/run";
    let others = [
        "arn:aws:sts::123456789012:assumed-role/other/run",
        "arn:aws:sts::123456789012:assumed-role/deploy-all/run",
        "arn:aws:iam::123456789012:user/deploy",
        ELSEWHERE,
    ];
    let sts = Sts::answering(SERVER, 200);
    let app = for_principals(&sts).await;
    let id = app.get(ISSUERS).send().await.expect(200)["oidcIssuers"][0]["id"].as_str().unwrap().to_owned();
    for (number, arn) in (0..).zip(others) {
        sts.knows(arn);
        let why = why_refused(&app, &show_of(&app, number).await);
        assert_eq!(why, format!("iss {AWS:?}, sub {arn:?}, no policy allows it"));
    }
    let line = |arn: &str| format!("{ORG}: iss {AWS:?}, sub {arn:?}, no policy allows it (refused)");
    assert_eq!(refused_in_trail(&app).await, [line(others[0])]);
    app.advance(Duration::from_secs(60));
    audit::flush(&app.context, false).await.unwrap();
    let rest = line(ELSEWHERE) + " (3 times within a minute)";
    assert_eq!(refused_in_trail(&app).await, [line(others[0]), rest]);

    // By account, each principal of it is accepted, and none of another.
    set_policies(&app, &id, &by_rules(&json!({ "aws:account": "210987654321" }))).await;
    show_of(&app, 10).await.expect(200);
    sts.knows("arn:aws:iam::210987654321:user/ann");
    show_of(&app, 11).await.expect(200);
    sts.knows(DEPLOY);
    assert!(why_refused(&app, &show_of(&app, 12).await).contains("no policy allows it"));
}

#[tokio::test]
async fn a_principal_of_aws_shows_a_proof_once() {
    let sts = Sts::answering(SERVER, 200);
    let app = for_principals(&sts).await;
    let show = async |proof: &str| show(&app, proof).await;

    let first = show(&proof(1, SERVER)).await.expect(200);
    let token = first["access_token"].as_str().unwrap().to_owned();
    app.get("/api/user").token(&token).send().await.expect(200);
    let records = app.take_audit();
    let exchanged = records.iter().find(|record| record["action"] == "token.exchange").unwrap();
    assert!(exchanged["detail"].as_str().unwrap().contains("assumed-role/deploy/run"), "{exchanged}");
    assert!(why_refused(&app, &show(&proof(1, SERVER)).await).contains("shown before"));
    assert!(why_refused(&app, &show(&proof(2, "https://evil.example.com")).await).contains("another server"));
    sts.set(403);
    assert!(why_refused(&app, &show(&proof(3, SERVER)).await).contains("status 403"));
    sts.set(500);
    assert_eq!(show(&proof(4, SERVER)).await.expect(503)["error"], "temporarily_unavailable");
    assert_eq!(show("nonsense").await.expect(400)["error"], "invalid_request");
    app.advance(Duration::from_secs(300));
    assert!(why_refused(&app, &show(&proof(5, SERVER)).await).contains("older than five minutes"));
    // A token that names AWS as its issuer is not a proof.
    let issuer = Issuer::new(AWS);
    let why = why_refused(&app, &exchange(&app, &issuer.token(&job_with(&app, "iss", json!(AWS)))).await);
    assert!(why.contains("not a token"), "{why}");
}

/// Each proof that is checked costs a request to AWS.
#[tokio::test]
async fn refused_proofs_are_slowed_by_access_key_and_by_address() {
    let sts = Sts::answering(SERVER, 403);
    let app = for_principals(&sts).await;
    for number in 0..5 {
        assert!(why_refused(&app, &show(&app, &proof(number, SERVER)).await).contains("status 403"));
    }
    let refused = show(&app, &proof(5, SERVER)).await;
    let body = refused.expect(429);
    assert_eq!(
        (&body["error"], &body["reason"]),
        (&"temporarily_unavailable".into(), &"too_many_wrong_proofs".into())
    );
    assert_eq!(
        (&refused.headers["retry-after"], sts.request_count()),
        (&"1".parse().unwrap(), 5),
        "AWS is not asked"
    );
    show(&app, &proof_with("ASIA", 5, SERVER)).await.expect(403);
    app.advance(Duration::from_secs(1));
    show(&app, &proof(6, SERVER)).await.expect(403);
    assert_eq!(show(&app, &proof(7, SERVER)).await.expect(429)["reason"], "too_many_wrong_proofs");
    app.advance(Duration::from_secs(2));
    sts.set(200);
    show(&app, &proof(7, SERVER)).await.expect(200);
    sts.set(403);
    // An accepted proof ends the count.
    for number in 8..12 {
        show(&app, &proof(number, SERVER)).await.expect(403);
    }

    let from = async |address: &str, number: u8| {
        let proof = proof_with(&format!("AKIA{number}"), number, SERVER);
        let request = Request::builder()
            .method("POST")
            .uri("/api/oauth/token")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .extension(Peer(SocketAddr::new(address.parse().unwrap(), 40_000)))
            .body(Body::from(encoded(&form_with(&proof, &[("subject_token_type", PROOF)]))))
            .unwrap();
        app.router().oneshot(request).await.unwrap().status().as_u16()
    };
    for number in 20..25 {
        assert_eq!(from("2606:4700::1", number).await, 403);
    }
    assert_eq!(from("2606:4700::2", 25).await, 429, "of the same network");
    assert_eq!(from("1.1.1.1", 26).await, 403);
    // It may be the address of a proxy, behind which all clients are.
    for number in 30..40 {
        assert_eq!(from("10.1.2.3", number).await, 403);
    }
}

#[tokio::test]
async fn few_proofs_are_checked_with_aws_at_once() {
    const AT_ONCE: u8 = 16;
    let sts = Sts::holding(SERVER, 403);
    let app = for_principals(&sts).await;
    let mut held = pin!(join_all((0..AT_ONCE).map(|number| show_of(&app, number))));
    let all_wait = async {
        while sts.request_count() < usize::from(AT_ONCE) {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        _ = &mut held => panic!("AWS has not answered"),
        () = all_wait => {}
    }
    let time_passes = async {
        for _ in 0..200_000 {
            app.advance(Duration::from_millis(1));
            tokio::task::yield_now().await;
        }
    };
    let refused = tokio::select! {
        answer = show_of(&app, AT_ONCE) => answer,
        _ = &mut held => panic!("AWS has not answered"),
        () = time_passes => panic!("it waits without an end"),
    };
    assert_eq!(refused.expect(429)["reason"], "proofs_busy");
    assert_eq!(sts.request_count(), usize::from(AT_ONCE));
    sts.let_answer(2 * usize::from(AT_ONCE));
    for answer in held.await {
        answer.expect(403);
    }
    show_of(&app, AT_ONCE + 1).await.expect(403);
}

//! Passwords and client certificates, which clients of states may use instead of a token.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::api::routes::{Auth, ROUTES};
use statewright_shared::api::{ClientCertificate, Peer};
use statewright_shared::cache::REMEMBERED_FOR;
use statewright_shared::domain::names::{Login, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::layout::{Password, delete, put_bytes};
use statewright_shared::ports::{Expect, ItemKey, Timestamp};
use statewright_shared::services::identity::tokens::Certificate;
use statewright_shared::services::identity::{passwords, tokens, users};
use statewright_tests::app::{Answer, ORG, START, TestApp};
use tower::ServiceExt as _;

use crate::api::call_counts::{counted, describe_calls};
use crate::api::routes::path;
use crate::states::lifecycle::text;
use crate::world::hex_bytes;

/// An existing state.
const NET: &str = "/tfstate/acme/net";

const PASSWORD: &str = "correct horse: battery";

fn login(text: &str) -> Login {
    Login::parse(text).unwrap()
}

fn name(text: &str) -> TokenName {
    TokenName::parse(text).unwrap()
}

fn basic(credentials: impl AsRef<[u8]>) -> String {
    format!("Basic {}", STANDARD.encode(credentials))
}

/// The answer to a read of the state with these credentials.
async fn shown(app: &TestApp, authorization: &str) -> Answer {
    app.get(NET).anonymous().header("Authorization", authorization).send().await
}

/// A server with a state, whose member bob has a password.
async fn with_password() -> TestApp {
    let app = TestApp::memory().await;
    prepare(&app).await;
    app
}

async fn prepare(app: &TestApp) {
    app.post(NET, &text(1, &[])).send().await.expect(200);
    app.member("bob", "laptop").await;
    passwords::set(&app.context, &login("bob"), PASSWORD).await.unwrap();
}

fn past_memory(app: &TestApp) {
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
}

#[tokio::test]
async fn a_password_is_accepted_from_its_user_alone() {
    let app = with_password().await;
    app.member("carol", "laptop").await;
    passwords::set(&app.context, &login("carol"), "another password").await.unwrap();
    shown(&app, &basic(format!("bob:{PASSWORD}"))).await.expect(200);
    shown(&app, &format!("basic {}", STANDARD.encode(format!("bob:{PASSWORD}")))).await.expect(200);
    shown(&app, &basic("carol:another password")).await.expect(200);
    for wrong in [
        "bob:another password",
        "carol:correct horse: battery",
        "bob:correct horse: Battery",
        "bob:correct horse: battery ",
        "bob:correct horse",
        "bob:",
        "bob",
        ":correct horse: battery",
        "Bob:correct horse: battery",
        "b o b:correct horse: battery",
        // She has no password.
        "alice:correct horse: battery",
        "nobody:correct horse: battery",
        "operator:correct horse: battery",
    ] {
        let refused = shown(&app, &basic(wrong)).await;
        refused.refused(401);
        assert_eq!(refused.headers["www-authenticate"], "Basic realm=\"statewright\", charset=\"UTF-8\"");
        app.advance(Duration::from_secs(31));
    }
    shown(&app, &basic(b"bob:\xff\xfe correct horse")).await.refused(401);
    shown(&app, "Basic !!!").await.refused(401);
    shown(&app, &basic(format!("bob:{}", "x".repeat(30_000)))).await.refused(401);
    // A password may be in any script, and contain colons.
    passwords::set(&app.context, &login("bob"), "пароль:из:букв:🦀").await.unwrap();
    shown(&app, &basic("bob:пароль:из:букв:🦀")).await.expect(200);
}

/// Only clients of states need them.
#[tokio::test]
async fn a_password_and_a_certificate_are_for_states_alone() {
    let app = with_password().await;
    let certificate = certificate(&app, "bob", "laptop-key", None).await;
    // Pages take cookies alone: `sign_in.rs` has them.
    for route in ROUTES.iter().filter(|route| !route.auth.is_page()) {
        let is_of_states = matches!(route.auth, Auth::State | Auth::Run);
        let takes_none = matches!(route.auth, Auth::Public | Auth::Exchange);
        let path = path(route, "net", "none");
        let sent = |request: axum::http::request::Builder| {
            let request = request.method(&route.method).uri(&path).body(Body::empty()).unwrap();
            app.router().oneshot(request)
        };
        let new = Request::builder;
        let basic = basic(format!("bob:{PASSWORD}"));
        for request in
            [new().header("Authorization", &basic), new().extension(ClientCertificate(certificate.clone()))]
        {
            let status = sent(request).await.unwrap().status().as_u16();
            let is_refused = status == 401;
            assert_eq!(is_refused, !is_of_states && !takes_none, "{route:?}: {status}");
        }
        if !takes_none {
            for scheme in ["Bearer", "token", "update-token"] {
                let status = sent(new().header("Authorization", format!("{scheme} {PASSWORD}"))).await;
                // This alone ends the update of a client whose token is no longer valid.
                let expected =
                    if route.auth == Auth::UpdateToken && scheme == "update-token" { 403 } else { 401 };
                assert_eq!(status.unwrap().status(), expected, "{route:?} with {scheme}");
            }
        }
    }
}

#[tokio::test]
async fn a_bad_password_is_refused_with_text() {
    let app = TestApp::memory().await;
    let refused = async |password: &str| {
        passwords::set(&app.context, &login("alice"), password).await.unwrap_err().to_string()
    };
    assert_eq!(refused("").await, "the password is too short: use at least 12 characters");
    assert_eq!(refused("eleven char").await, "the password is too short: use at least 12 characters");
    assert_eq!(
        refused("🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀").await,
        "the password is too short: use at least 12 characters"
    );
    assert_eq!(refused(&"x".repeat(1025)).await, "the password is too long: use at most 1024 bytes");
    assert!(refused("swt_0123456789").await.contains("taken for an access token"));
    assert!(!passwords::is_set(&app.context, &login("alice")).await.unwrap());
    passwords::set(&app.context, &login("alice"), "twelve chars").await.unwrap();
    passwords::set(&app.context, &login("alice"), &"x".repeat(1024)).await.unwrap();
    let nobody = passwords::set(&app.context, &login("nobody"), "twelve chars").await.unwrap_err();
    assert_eq!(nobody.to_string(), "user nobody not found: check the name");
    let nobody = passwords::remove(&app.context, &login("nobody")).await.unwrap_err();
    assert_eq!(nobody.to_string(), "user nobody not found: check the name");
}

#[tokio::test]
async fn a_password_ends_when_changed_removed_or_with_its_user() {
    let app = with_password().await;
    let good = basic(format!("bob:{PASSWORD}"));
    let other = basic("bob:another password");
    shown(&app, &good).await.expect(200);
    passwords::set(&app.context, &login("bob"), "another password").await.unwrap();
    shown(&app, &other).await.expect(200);
    past_memory(&app);
    shown(&app, &good).await.refused(401);
    shown(&app, &other).await.expect(200);

    passwords::remove(&app.context, &login("bob")).await.unwrap();
    passwords::remove(&app.context, &login("bob")).await.unwrap();
    past_memory(&app);
    shown(&app, &other).await.refused(401);

    passwords::set(&app.context, &login("bob"), PASSWORD).await.unwrap();
    shown(&app, &good).await.expect(200);
    users::remove(&app.context, &login("bob")).await.unwrap();
    past_memory(&app);
    shown(&app, &good).await.refused(401);
    // It does not return with the name.
    app.member("bob", "laptop").await;
    assert!(!passwords::is_set(&app.context, &login("bob")).await.unwrap());
    shown(&app, &good).await.refused(401);
}

#[tokio::test]
async fn wrong_passwords_are_slowed_for_their_user_alone() {
    let app = with_password().await;
    let good = basic(format!("bob:{PASSWORD}"));
    let wrong = |login: &str, number: u32| basic(format!("{login}:wrong password {number}"));
    for number in 0..5 {
        shown(&app, &wrong("bob", number)).await.refused(401);
    }
    // The answer does not reveal whether the user exists.
    for number in 0..5 {
        shown(&app, &wrong("nobody", number)).await.refused(401);
    }
    for login in ["bob", "nobody"] {
        let refused = shown(&app, &wrong(login, 5)).await;
        assert!(refused.refused(429).contains("try again in 1 s"), "{}", refused.text());
        assert_eq!(refused.headers["retry-after"], "1");
    }
    // The right one is not checked either, and others do not wait.
    shown(&app, &good).await.refused(429);
    shown(&app, &basic(format!("b:{}", app.token))).await.expect(200);
    shown(&app, &wrong("carol", 0)).await.refused(401);
    let metrics = app.metrics().await;
    assert!(metrics.contains("statewright_refusals_total{reason=\"credentials\"} 14"), "{metrics}");

    app.advance(Duration::from_secs(1));
    shown(&app, &wrong("bob", 6)).await.refused(401);
    assert_eq!(shown(&app, &good).await.headers["retry-after"], "2");
    app.advance(Duration::from_secs(2));
    shown(&app, &good).await.expect(200);
    // A cached password is accepted whatever others try.
    for number in 0..5 {
        shown(&app, &wrong("bob", number)).await.refused(401);
    }
    shown(&app, &wrong("bob", 5)).await.refused(429);
    shown(&app, &good).await.expect(200);
}

#[tokio::test]
async fn wrong_passwords_for_many_users_slow_their_address_alone() {
    let app = with_password().await;
    let from = async |address: &str, authorization: &str| {
        let request = Request::builder()
            .uri(NET)
            .header("Authorization", authorization)
            .extension(Peer(SocketAddr::new(address.parse().unwrap(), 40_000)))
            .body(Body::empty())
            .unwrap();
        app.router().oneshot(request).await.unwrap().status().as_u16()
    };
    let (good, here, elsewhere) = (basic(format!("bob:{PASSWORD}")), "1.1.1.1", "8.8.8.8");
    let wrong = |number: u32| basic(format!("user-{number}:wrong password"));
    // A client with an old password does not slow others at its address.
    for number in 0..10 {
        from(here, &basic(format!("carol:wrong password {number}"))).await;
        app.advance(Duration::from_secs(30));
    }
    assert_eq!(from(here, &good).await, 200);
    // With the five of that client, these are twenty.
    for number in 0..14 {
        assert_eq!(from(here, &wrong(number)).await, 401);
    }
    past_memory(&app);
    assert_eq!(from(here, &wrong(14)).await, 401);
    assert_eq!(from(here, &good).await, 429, "the right one is not checked either");
    assert_eq!(from(elsewhere, &wrong(15)).await, 401);
    app.advance(Duration::from_secs(1));
    assert_eq!(from(here, &good).await, 200);
    // It may be the address of a proxy, behind which all clients are.
    for number in 100..121 {
        assert_eq!(from("10.1.2.3", &wrong(number)).await, 401);
    }
}

#[tokio::test]
async fn concurrent_uses_of_one_password_wait_for_one_check() {
    let app = with_password().await;
    let good = basic(format!("bob:{PASSWORD}"));
    let requests = (0..40).map(|_| shown(&app, &good));
    for answer in futures::future::join_all(requests).await {
        answer.expect(200);
    }
    past_memory(&app);
    // Of concurrent guesses, few are checked.
    let guesses: Vec<_> = (0..40).map(|number| basic(format!("bob:wrong password {number}"))).collect();
    let answers = futures::future::join_all(guesses.iter().map(|guess| shown(&app, guess))).await;
    let statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 5, "{statuses:?}");
    assert!(statuses.iter().all(|status| [401, 429].contains(status)), "{statuses:?}");
}

/// A browser that was asked for a password once adds it to requests of any page.
#[tokio::test]
async fn a_password_from_a_page_in_a_browser_is_refused() {
    let app = TestApp::memory().await;
    prepare(&app).await;
    let by_token = basic(format!("b:{}", app.token));
    let (by_password, bearer) = (basic(format!("bob:{PASSWORD}")), format!("Bearer {}", app.token));
    let asks = async |method: &str, path: &str, authorization: &str, header: (&str, &str)| {
        let call = app.request(Method::from_bytes(method.as_bytes()).unwrap(), path).anonymous();
        let call = call.header("Authorization", authorization).header(header.0, header.1);
        call.header("Content-Type", "text/plain").send().await.status.as_u16()
    };
    for page in [
        ("Origin", "https://elsewhere.example"),
        ("Origin", "null"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        for authorization in [&by_token, &by_password] {
            for (method, path) in
                [("GET", NET.to_owned()), ("POST", NET.to_owned()), ("POST", format!("{NET}/lock"))]
            {
                assert_eq!(asks(method, &path, authorization, page).await, 401, "{method} {page:?}");
            }
        }
        assert_eq!(asks("GET", NET, &bearer, page).await, 200, "no browser adds a token by itself: {page:?}");
    }
    for person in [("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "same-origin")] {
        assert_eq!(asks("GET", NET, &by_password, person).await, 200, "{person:?}");
    }
}

/// I10: an uncached caller costs the same calls, whether the user exists or not.
#[tokio::test]
async fn a_password_costs_three_reads_a_minute_and_a_wrong_one_two() {
    let (app, counter) = counted().await;
    prepare(&app).await;
    let good = basic(format!("bob:{PASSWORD}"));
    let cost = async |authorization: &str| {
        counter.take();
        let status = shown(&app, authorization).await.status.as_u16();
        (status, describe_calls(counter.take()))
    };
    // The process caches where the state is.
    cost(&basic(format!("b:{}", app.token))).await;
    let of_token = cost(&basic(format!("b:{}", app.token))).await;
    let (status, first) = cost(&good).await;
    assert_eq!((status, first.as_str()), (200, "4 get, 1 commit, 1 blob get (5)"), "with its audit record");
    assert_eq!(cost(&good).await, of_token, "then it costs as much as a token");
    for wrong in ["bob:wrong password", "alice:wrong password", "nobody:wrong password"] {
        assert_eq!(cost(&basic(wrong)).await, (401, "2 get (1)".to_owned()), "{wrong}");
    }
    // An invalid login is refused without a call.
    assert_eq!(cost(&basic("b o b:wrong password")).await, (401, "nothing".to_owned()));
}

/// An earlier version stored it in the user's partition, which every function may read.
#[tokio::test]
async fn a_password_of_an_earlier_version_is_good_and_moves() {
    let app = with_password().await;
    let ctx = &app.context;
    let (place, old) = (Password::key(&login("bob")), Password::old_key(&login("bob")));
    let found = async || {
        let there = async |key: &ItemKey| ctx.ledger.get(key).await.unwrap().is_some();
        (there(&old).await, there(&place).await)
    };
    let as_before = async || {
        let item = ctx.ledger.get(&place).await.unwrap().unwrap();
        let writes = vec![
            put_bytes(old.clone(), Expect::Absent, ctx.ids.revision(), item.value),
            delete(place.clone(), Expect::Any),
        ];
        ctx.ledger.commit(writes).await.unwrap();
    };
    as_before().await;
    assert_eq!(found().await, (true, false));
    shown(&app, &basic(format!("bob:{PASSWORD}"))).await.expect(200);
    shown(&app, &basic("bob:another password")).await.refused(401);
    assert!(passwords::is_set(ctx, &login("bob")).await.unwrap());
    // At the start of a server.
    assert_eq!((passwords::move_old(ctx).await.unwrap(), found().await), (1, (false, true)));
    assert_eq!(passwords::move_old(ctx).await.unwrap(), 0);
    past_memory(&app);
    shown(&app, &basic(format!("bob:{PASSWORD}"))).await.expect(200);
    // With the next change of it.
    as_before().await;
    passwords::set(ctx, &login("bob"), "another password").await.unwrap();
    assert_eq!(found().await, (false, true));
    past_memory(&app);
    shown(&app, &basic("bob:another password")).await.expect(200);
    shown(&app, &basic(format!("bob:{PASSWORD}"))).await.refused(401);
    // It is deleted with its user.
    as_before().await;
    users::remove(ctx, &login("bob")).await.unwrap();
    assert_eq!(found().await, (false, false));
}

#[tokio::test]
async fn no_password_is_stored_where_others_could_read_it() {
    let app = TestApp::embedded().await;
    prepare(&app).await;
    shown(&app, &basic(format!("bob:{PASSWORD}"))).await.expect(200);
    shown(&app, &basic("bob:the wrong password")).await.refused(401);
    app.post(NET, &text(2, &[]))
        .anonymous()
        .header("Authorization", &basic(format!("bob:{PASSWORD}")))
        .send()
        .await
        .expect(200);
    for (file, bytes) in app.at_rest().await {
        for secret in [PASSWORD, "the wrong password"] {
            assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{file}");
        }
    }
    let audit = app.take_audit();
    let last = audit.last().unwrap();
    assert_eq!((&last["user"], &last["token"]), (&json!("bob"), &json!("password")));
    let written = Value::from(audit).to_string();
    assert!(!written.contains(PASSWORD) && !written.contains("argon2"), "{written}");
}

#[tokio::test]
async fn no_token_has_the_name_that_passwords_go_by() {
    let app = TestApp::memory().await;
    let refused = tokens::create_token(&app.context, &login("alice"), &name("password"), None).await;
    assert!(refused.unwrap_err().to_string().contains("choose another name"));
    let (login, name, made) = (login("alice"), name("password"), made(1));
    let refused = tokens::create_certificate(&app.context, &login, &name, &made, None, None).await;
    assert!(refused.unwrap_err().to_string().contains("choose another name"));
}

/// A certificate as far as the server reads it: some DER, and an expiry.
pub(crate) fn made(number: u8) -> Certificate {
    let der = [b"\x30\x82\x01\x00".as_slice(), &[number; 256]].concat();
    Certificate { der, not_after: START.plus(Duration::from_secs(3_600)) }
}

/// The certificate with this number, registered.
async fn certificate(app: &TestApp, user: &str, token: &str, expires_in: Option<Duration>) -> Bytes {
    let certificate = made(1);
    tokens::create_certificate(&app.context, &login(user), &name(token), &certificate, None, expires_in)
        .await
        .unwrap();
    certificate.der.into()
}

/// The answer on a connection that was made with a certificate.
pub(crate) async fn over(
    app: &TestApp,
    certificate: &Bytes,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> u16 {
    let mut request =
        Request::builder().method(method).uri(path).extension(ClientCertificate(certificate.clone()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    app.router().oneshot(request.body(body).unwrap()).await.unwrap().status().as_u16()
}

async fn reads(app: &TestApp, certificate: &Bytes, headers: &[(&str, &str)]) -> u16 {
    over(app, certificate, "GET", NET, headers, &Value::Null).await
}

#[tokio::test]
async fn a_certificate_is_a_token_with_a_private_key_as_its_secret() {
    let app = with_password().await;
    let known = certificate(&app, "bob", "laptop-key", None).await;
    let unknown = Bytes::from(made(2).der);
    assert_eq!(reads(&app, &known, &[]).await, 200);
    assert_eq!(reads(&app, &unknown, &[]).await, 401);
    assert_eq!(reads(&app, &Bytes::new(), &[]).await, 401);
    app.take_audit();
    assert_eq!(over(&app, &known, "POST", NET, &[], &text(2, &["a"])).await, 200);
    let record = app.take_audit().pop().unwrap();
    assert_eq!((&record["user"], &record["token"]), (&json!("bob"), &json!("laptop-key")));

    // Credentials of the request take precedence over those of the connection.
    let token = format!("Bearer {}", app.token);
    assert_eq!(reads(&app, &unknown, &[("Authorization", &token)]).await, 200);
    for wrong in ["Bearer none", "Basic !", "Digest none", "", "token "] {
        assert_eq!(reads(&app, &known, &[("Authorization", wrong)]).await, 401, "{wrong:?}");
    }
    // A browser shows its user's certificate for requests of any page.
    assert_eq!(reads(&app, &known, &[("Origin", "https://elsewhere.example")]).await, 401);
    // No header is trusted.
    for header in ["x-client-cert", "x-amzn-mtls-clientcert", "x-forwarded-client-cert", "ssl-client-cert"] {
        let der = STANDARD.encode(&known);
        app.get(NET).anonymous().header(header, &der).send().await.refused(401);
    }

    tokens::revoke_token(&app.context, &login("bob"), &name("laptop-key")).await.unwrap();
    past_memory(&app);
    assert_eq!(reads(&app, &known, &[]).await, 401);
    certificate(&app, "bob", "laptop-key", None).await;
    assert_eq!(reads(&app, &known, &[]).await, 200);
    assert_eq!(users::remove(&app.context, &login("bob")).await.unwrap().tokens, 2);
    past_memory(&app);
    assert_eq!(reads(&app, &known, &[]).await, 401);
}

/// A lock belongs to its user, whatever the credentials.
#[tokio::test]
async fn a_lock_by_certificate_is_of_its_user_and_no_other() {
    let app = with_password().await;
    let bob = tokens::create_token(&app.context, &login("bob"), &name("second"), None).await.unwrap();
    let ours = certificate(&app, "bob", "laptop-key", None).await;
    app.member("carol", "laptop").await;
    let theirs = made(2);
    tokens::create_certificate(&app.context, &login("carol"), &name("key"), &theirs, None, None)
        .await
        .unwrap();
    let theirs = Bytes::from(theirs.der);
    let lock = json!({ "ID": "run", "Operation": "OperationTypeApply" });
    let under = format!("{NET}?ID=run");
    let by = async |certificate: &Bytes, method: &str, path: &str, body: &Value| {
        over(&app, certificate, method, path, &[], body).await
    };
    assert_eq!(by(&ours, "LOCK", NET, &lock).await, 200);
    assert_eq!(by(&theirs, "LOCK", NET, &lock).await, 423);
    assert_eq!(by(&theirs, "POST", &under, &text(2, &["theirs"])).await, 423);
    app.post(&under, &text(2, &["a"])).token(&bob).send().await.expect(200);
    assert_eq!(by(&ours, "POST", &under, &text(3, &["a", "b"])).await, 200);
    // It is unlocked and not broken, as the record says.
    app.take_audit();
    let unlock = Method::from_bytes(b"UNLOCK").unwrap();
    app.request(unlock, NET).token(&bob).json(&lock).send().await.expect(200);
    let unlocked = app.take_audit().pop().unwrap();
    assert_eq!((&unlocked["user"], &unlocked["detail"]), (&json!("bob"), &json!("lock run")));
    assert_eq!(by(&theirs, "LOCK", NET, &lock).await, 200, "it is free");
    let state = app.get(NET).send().await.expect(200);
    assert_eq!(state["serial"], 3);
}

#[tokio::test]
async fn a_certificate_may_do_less_than_its_owner_as_a_token_may() {
    let app = with_password().await;
    let (plan, made) = (Some(Role::Plan), made(1));
    tokens::create_certificate(&app.context, &login("bob"), &name("plans"), &made, plan, None).await.unwrap();
    let known = Bytes::from(made.der);
    assert_eq!(reads(&app, &known, &[]).await, 200);
    assert_eq!(over(&app, &known, "POST", NET, &[], &text(2, &["a"])).await, 403);
}

/// Neither its hash nor the certificate is a secret.
#[tokio::test]
async fn no_public_part_of_a_certificate_is_a_token() {
    let app = with_password().await;
    let known = certificate(&app, "bob", "laptop-key", None).await;
    let entries = tokens::list_all(&app.context, &tokens::Owner::User(login("bob"))).await.unwrap();
    let entry = entries.iter().map(|listed| &listed.entry).find(|entry| entry.certificate.is_some()).unwrap();
    let latin = String::from_utf8_lossy(&known).into_owned();
    for shown_as in
        [&entry.hash, entry.certificate.as_ref().unwrap(), &hex_bytes(&known), &STANDARD.encode(&known)]
    {
        shown(&app, &format!("Bearer {shown_as}")).await.refused(401);
        shown(&app, &basic(format!("x:swt_{shown_as}"))).await.refused(401);
        shown(&app, &basic(format!("{shown_as}:"))).await.refused(401);
    }
    shown(&app, &basic(format!("{latin}:"))).await.refused(401);
    // The preimage of the hash, which is not UTF-8.
    shown(&app, &basic([b"\xffcertificate ".as_slice(), &known, b":"].concat())).await.refused(401);
}

#[tokio::test]
async fn a_certificate_ends_as_a_token_does() {
    let app = with_password().await;
    let early = Some(Duration::from_secs(60));
    let known = certificate(&app, "bob", "laptop-key", early).await;
    let lock = json!({ "ID": "run", "Operation": "OperationTypeApply" });
    let locking = format!("{NET}/lock");
    assert_eq!(over(&app, &known, "POST", &locking, &[], &lock).await, 200);
    past_memory(&app);
    // The holder of the lock ends the run, and nothing else is allowed.
    assert_eq!(over(&app, &known, "GET", "/tfstate/acme/other", &[], &Value::Null).await, 401);
    assert_eq!(over(&app, &known, "POST", &locking, &[], &lock).await, 401);
    assert_eq!(over(&app, &known, "POST", &format!("{NET}?ID=run"), &[], &text(2, &["a"])).await, 200);
    assert_eq!(over(&app, &known, "DELETE", &locking, &[], &lock).await, 200);
    assert_eq!(reads(&app, &known, &[]).await, 401);
}

#[tokio::test]
async fn a_certificate_is_known_once_and_until_its_end_at_most() {
    let app = with_password().await;
    let ctx = &app.context;
    let create = async |user: &str, token: &str, certificate: &Certificate, expires_in: Option<Duration>| {
        tokens::create_certificate(ctx, &login(user), &name(token), certificate, None, expires_in).await
    };
    let long = Some(Duration::from_secs(86_400));
    let entry = create("bob", "a", &made(1), long).await.unwrap();
    assert_eq!(entry.token.expires, Some(made(1).not_after));
    let refused = async |user: &str, token: &str, certificate: &Certificate| {
        create(user, token, certificate, None).await.unwrap_err().to_string()
    };
    assert!(refused("bob", "a", &made(2)).await.contains("already has a token named a"));
    assert!(refused("bob", "laptop", &made(2)).await.contains("already has a token named laptop"));
    assert!(refused("bob", "b", &made(1)).await.contains("already belongs to another token"));
    assert!(refused("alice", "b", &made(1)).await.contains("already belongs to another token"));
    assert_eq!(refused("nobody", "b", &made(2)).await, "user nobody not found: check the name");
    let over = Certificate { not_after: START, ..made(3) };
    assert_eq!(
        refused("bob", "b", &over).await,
        "this certificate expired at 2026-01-01T00:00:00Z: make a new one"
    );
    let for_ever = |number| Certificate { not_after: Timestamp(i64::MAX), ..made(number) };
    let minute = Duration::from_secs(60);
    let entry = create("bob", "b", &for_ever(4), Some(minute)).await.unwrap();
    assert_eq!(entry.token.expires, Some(START.plus(minute)));
    let entry = create("bob", "c", &for_ever(5), None).await.unwrap();
    assert_eq!(entry.token.expires, Some(Timestamp(i64::MAX)));
}

#[tokio::test]
async fn a_certificate_costs_what_a_token_costs() {
    let (app, counter) = counted().await;
    prepare(&app).await;
    let known = certificate(&app, "bob", "laptop-key", None).await;
    // The process caches where the state is.
    app.get(NET).send().await.expect(200);
    counter.take();
    assert_eq!(reads(&app, &known, &[]).await, 200);
    // The commits are the record of its use, and the audit record of the first look in a minute.
    assert_eq!(describe_calls(counter.take()), "4 get, 2 commit, 1 blob get (6)");
    assert_eq!(reads(&app, &known, &[]).await, 200);
    assert_eq!(describe_calls(counter.take()), "1 get, 1 blob get (2)");
}

/// The answers for clients that use only methods of their own.
#[tokio::test]
async fn a_password_locks_writes_and_unlocks() {
    let app = with_password().await;
    let good = basic(format!("bob:{PASSWORD}"));
    let ask = async |method: &str, path: &str, body: &Value| {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        app.request(method, path).anonymous().header("Authorization", &good).json(body).send().await
    };
    let lock = json!({ "ID": "run", "Operation": "OperationTypeApply" });
    ask("LOCK", NET, &lock).await.expect(200);
    let held = app.get(&format!("/api/orgs/{ORG}/tfstate-locks")).send().await.expect(200);
    assert_eq!(
        (&held["locks"][0]["lock"]["principal"], &held["locks"][0]["lock"]["token"]),
        (&json!("bob"), &json!("password"))
    );
    ask("POST", &format!("{NET}?ID=run"), &text(2, &["a"])).await.expect(200);
    ask("UNLOCK", NET, &lock).await.expect(200);
}

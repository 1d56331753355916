//! What an operator sees: the ID of each request, the log, the metrics, whether the server is ready.

use std::cell::RefCell;
use std::io::Write;
use std::sync::{Arc, Once};
use std::time::Duration;

use serde_json::{Value, json};
use statewright_shared::adapters::{Fault, Faults, Faulty, MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds};
use statewright_shared::api::routes::ROUTES;
use statewright_shared::domain::names::Login;
use statewright_shared::ports::Ids;
use statewright_shared::services::identity::invitations;
use statewright_tests::app::{Answer, ORG, TestApp, USER};
use statewright_tests::sign_ins;
use statewright_tests::visitor::Visitor;
use tracing_subscriber::filter::dynamic_filter_fn;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::api::routes::path;
use crate::world::{Stack, deployment, raw, refusal};

fn id(answer: &Answer) -> String {
    answer.headers["X-Pulumi-Request-ID"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_answer_has_an_id_the_clients_if_it_sent_one() {
    let app = TestApp::memory().await;
    let mut ids = std::collections::BTreeSet::new();
    for route in ROUTES {
        let path = path(route, "shop", "none");
        for call in [
            app.request(route.method.clone(), &path),
            app.request(route.method.clone(), &path).anonymous(),
            app.request(reqwest::Method::PUT, &path),
        ] {
            let id = id(&call.send().await);
            assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{route:?}: {id}");
            assert!(ids.insert(id), "{route:?}: an ID was used twice");
        }
    }
    let ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7";
    let call = app.get("/api/user").header("traceparent", &format!("00-{ids}-01"));
    assert_eq!(id(&call.send().await), ids);
    let made_up = id(&app.get("/api/user").header("traceparent", "00-mine-01").send().await);
    assert_eq!(made_up.len(), 32);
}

thread_local! {
    /// The log of this thread, on which a test's server runs too.
    static LOG: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.with_borrow_mut(|log| log.as_mut().map(|log| log.extend_from_slice(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// From now on captures the log of this thread.
    fn listen() -> Self {
        // One subscriber for the process: tracing caches the interest of several incorrectly now and then.
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            let is_listening = dynamic_filter_fn(|_, _| LOG.with_borrow(Option::is_some));
            let lines =
                fmt::layer().json().flatten_event(true).with_writer(|| Self).with_filter(is_listening);
            tracing_subscriber::registry().with(lines).init();
        });
        LOG.set(Some(Vec::new()));
        Self
    }

    fn text(&self) -> String {
        LOG.with_borrow(|log| String::from_utf8(log.clone().unwrap()).unwrap())
    }

    /// The server's lines since the last call.
    fn take(&self) -> Vec<Value> {
        let text = self.text();
        LOG.set(Some(Vec::new()));
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        // Lines of the client's libraries are left out.
        let ours = |line: &Value| {
            let target = line["target"].as_str().unwrap();
            target == "access" || target.starts_with("statewright")
        };
        lines.filter(ours).collect()
    }
}

#[tokio::test]
async fn a_request_is_one_line_with_who_and_what() {
    let log = Log::listen();
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    log.take();

    run.append(&[stack.made(1, "a")]).await.expect(204);
    let answer = stack.get("/updates").send().await;
    app.get("/api/user").anonymous().send().await.refused(401);
    app.get("/nowhere/secret-path").send().await.refused(404);
    let lines = log.take();
    assert_eq!(lines.len(), 4, "{lines:?}");
    let address = format!("{ORG}/{}/dev", stack.project);
    for line in &lines {
        assert_eq!((&line["target"], &line["message"]), (&"access".into(), &"request".into()), "{line}");
        assert!(line["duration_ms"].is_number() && line["request_id"].is_string(), "{line}");
    }
    let prefix = "/api/stacks/{org}/{project}/{stack}";
    assert_eq!(lines[0]["route"], format!("{prefix}/{{kind}}/{{update}}/journalentries"));
    assert_eq!((&lines[0]["method"], &lines[0]["status"]), (&"PATCH".into(), &204.into()));
    assert_eq!((&lines[0]["stack"], &lines[0]["update"]), (&address.clone().into(), &run.id.clone().into()));
    assert!(lines[0]["request_bytes"].as_u64() > Some(50) && lines[0]["answer_bytes"] == 0, "{}", lines[0]);
    assert_eq!((&lines[1]["user"], &lines[1]["stack"]), (&USER.into(), &address.into()));
    assert_eq!(lines[1]["request_id"], id(&answer));
    assert_eq!(lines[1]["answer_bytes"], answer.bytes.len());
    assert_eq!((&lines[2]["user"], &lines[2]["status"]), (&Value::Null, &401.into()));
    assert_eq!((&lines[3]["route"], &lines[3]["status"]), (&"-".into(), &404.into()));
}

#[tokio::test]
async fn i7_secret_no_log_or_audit_line_has_a_token_or_a_plaintext() {
    let log = Log::listen();
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let plaintext = "aHVudGVyMi1pcy1teS1wYXNzd29yZA==";
    let sealed = stack.post("/encrypt", &json!({ "plaintext": plaintext })).send().await.expect(200);
    stack.post("/decrypt", &json!({ "ciphertext": sealed["ciphertext"] })).send().await.expect(200);
    stack.post("/decrypt", &json!({ "ciphertext": plaintext })).send().await.refused(400);
    stack.post("/batch-encrypt", &json!({ "plaintexts": [plaintext, 7] })).send().await.refused(400);
    let run = stack.begin().await;
    let mut resource = stack.resource("a");
    resource["outputs"] = json!({ "password": { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": "\"hunter2-is-my-password\"" } });
    run.checkpoint(&deployment(&[resource])).await;
    run.complete("succeeded").await.expect(204);
    let wrong = "swt_deadbeefdeadbeefdeadbeefdeadbeef";
    app.get("/api/user").token(wrong).send().await.refused(401);
    run.with_token("swu1.deadbeef.deadbeef").append(&[]).await.refused(403);
    let text = log.text() + &Value::from(app.take_audit()).to_string();
    assert!(text.contains("journalentries") && text.contains("secrets.open"));
    for secret in [&app.token, &run.token, wrong, "swu1.deadbeef", plaintext, "hunter2", "my-password"] {
        assert!(!text.contains(secret), "{secret} is in the log");
    }
}

/// The value of a parameter in an address.
fn parameter(address: &str, name: &str) -> String {
    let query = address.split_once('?').map_or(address, |(_, query)| query);
    let found = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name}: {address}")).to_owned()
}

/// Browsers put into addresses what proves who asks.
#[tokio::test]
async fn no_query_of_a_page_is_logged() {
    // RFC 7636, appendix B.
    const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
    let log = Log::listen();
    let app = TestApp::memory().await;
    let provider = sign_ins::with_provider(&app).await;
    let alice = Login::parse(USER).unwrap();
    let invited = invitations::invite(&app.context, &alice, Duration::from_secs(600)).await.unwrap();
    let (nonce, state) = ("0b".repeat(32), "0c".repeat(20));
    let cli = format!("/cli-login?cliSessionPort=43210&cliSessionNonce={nonce}");
    let ours = format!(
        "/cli-login/authorize?code_challenge={CHALLENGE}&code_challenge_method=S256&port=43210&state={state}"
    );
    let invitation = format!("/invite?code={}", invited.code);
    log.take();
    app.take_audit();

    let mut browser = Visitor::new(&app.url);
    for page in [&cli, &ours, &invitation] {
        browser.open(page).await;
    }
    let led = browser.open("/signin/corp").await.leads_to;
    let query = provider.sign_in(&led, "bob");
    let callback = format!("/signin/corp/callback?{query}");
    Visitor::new(&app.url).open(&callback).await.refuses(400);
    browser.open(&callback).await.leads("/user/settings/account");
    let session = browser.cookies["statewright"].clone();
    for page in [&cli, &ours] {
        assert_eq!(browser.open(page).await.status, 200);
    }
    let form = [("cliSessionPort", "43210"), ("cliSessionNonce", nonce.as_str()), ("days", "7")];
    let given = browser.submit("/cli-login", &form).await.leads_to;
    let form = [("code_challenge", CHALLENGE), ("days", "7"), ("port", "43210"), ("state", state.as_str())];
    let code = parameter(&browser.submit("/cli-login/authorize", &form).await.leads_to, "code");
    let redeemed = json!({ "grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER });
    let redeemed = app.post("/api/oauth/token", &redeemed).anonymous().send().await.expect(200);
    browser.submit("/invite", &[("code", &invited.code)]).await.leads("/user/settings/account");

    let text = Value::from(log.take()).to_string() + &Value::from(app.take_audit()).to_string();
    for route in ["/cli-login\"", "/cli-login/authorize\"", "/signin/{provider}/callback\"", "/invite\""] {
        assert!(text.contains(route), "{route} is not in the log: {text}");
    }
    let secrets = [
        nonce.as_str(),
        &state,
        CHALLENGE,
        VERIFIER,
        &invited.code,
        &code,
        &session,
        &parameter(&led, "state"),
        &parameter(&led, "nonce"),
        &parameter(&led, "code_challenge"),
        &parameter(&query, "code"),
        &parameter(&given, "accessToken"),
        redeemed["access_token"].as_str().unwrap(),
        "accessToken",
        "cliSession",
        "code_challenge",
    ];
    for secret in secrets {
        assert!(!text.contains(secret), "{secret} is in the log: {text}");
    }
}

/// The value of a series.
fn value(metrics: &str, series: &str) -> Option<f64> {
    metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

#[tokio::test]
async fn requests_are_counted_by_their_route() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let export = r#"{method="GET",route="/api/stacks/{org}/{project}/{stack}/export""#;
    let requests = |status: &str| format!("statewright_requests_total{export},status=\"{status}\"}}");
    for _ in 0..3 {
        stack.get("/export").send().await.expect(200);
    }
    stack.get("/export").anonymous().send().await.refused(401);
    let metrics = app.metrics().await;
    assert_eq!(value(&metrics, &requests("2xx")), Some(3.0), "{metrics}");
    assert_eq!(value(&metrics, &requests("4xx")), Some(1.0), "{metrics}");
    assert_eq!(value(&metrics, &format!("statewright_request_duration_seconds_count{export}}}")), Some(4.0));
    let bytes = value(&metrics, &format!("statewright_answer_size_bytes_total{export}}}"));
    assert!(bytes > Some(90.0), "{bytes:?}");
    let create = r#"{method="POST",route="/api/stacks/{org}/{project}"}"#;
    let bytes = value(&metrics, &format!("statewright_request_size_bytes_total{create}"));
    assert_eq!(bytes, Some(r#"{"stackName":"dev"}"#.len() as f64));
    assert_eq!(value(&metrics, "statewright_requests_under_way"), Some(0.0));
    assert_eq!(value(&metrics, r#"statewright_refusals_total{reason="credentials"}"#), Some(1.0));
    assert!(value(&metrics, "process_resident_memory_bytes") > Some(0.0), "{metrics}");
    assert_eq!(value(&metrics, "process_start_time_seconds"), Some(1_767_225_600.0), "{metrics}");
    // The public address does not show it.
    app.get("/metrics").send().await.refused(404);
}

#[tokio::test]
async fn running_updates_and_conflicts_are_counted() {
    let app = TestApp::memory().await;
    let (stack, other) = (Stack::new(&app).await, Stack::new(&app).await);
    let running = async || value(&app.metrics().await, "statewright_updates_running");
    assert_eq!(running().await, Some(0.0));
    let (run, theirs) = (stack.begin().await, other.begin().await);
    other.preview().await;
    assert_eq!(running().await, Some(2.0));
    stack.begin_call("update", false).send().await.refused(409);
    run.renew(300).await.expect(200);
    run.complete("succeeded").await.expect(204);
    assert_eq!(running().await, Some(1.0));
    theirs.cancel().await.expect(204);
    run.append(&[stack.made(1, "a")]).await.refused(403);
    let metrics = app.metrics().await;
    assert_eq!(value(&metrics, "statewright_updates_running"), Some(0.0));
    assert_eq!(value(&metrics, r#"statewright_refusals_total{reason="locked"}"#), Some(1.0));
    assert_eq!(value(&metrics, r#"statewright_refusals_total{reason="fenced"}"#), Some(1.0));
}

/// Whatever is requested, the route table limits the number of series.
#[tokio::test]
async fn i9_bounded_made_up_requests_make_no_metric_series() {
    let app = TestApp::memory().await;
    let headers = [("Authorization", "token made-up")];
    let ask = async |number: u32| {
        for path in [
            format!("/{number}"),
            format!("/api/stacks/{number}/{number}/{number}"),
            format!("/api/stacks/{number}/{number}/{number}/updates/{number}"),
        ] {
            for method in ["GET", "BREW"] {
                raw(&app, method, &path, &headers, b"").await;
            }
        }
    };
    ask(0).await;
    let series = app.metrics().await.lines().count();
    for number in 1..30 {
        ask(number).await;
    }
    assert_eq!(app.metrics().await.lines().count(), series);
}

#[tokio::test]
async fn a_server_is_ready_while_ledger_key_and_blobs_work() {
    let faults = Faults::none();
    let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
    let app = TestApp::memory_with(
        Arc::new(Faulty::new(MemoryLedger::new(), faults.clone())),
        Arc::new(Faulty::new(MemoryBlobs::new(), faults.clone())),
        Arc::new(Faulty::new(MemoryKeys::new(Arc::clone(&ids)), faults.clone())),
        ids,
    )
    .await;
    let ask = async || app.get("/readyz").anonymous().send().await;
    assert_eq!(ask().await.expect(200), json!({ "status": "ok" }));
    // Each call in turn, in their order: a read, the same for the key, its unwrap, a put, a delete.
    for (call, part) in [
        (1, "the ledger"),
        (2, "the master key"),
        (3, "the master key"),
        (4, "the blob store"),
        (5, "the blob store"),
    ] {
        app.advance(Duration::from_secs(1));
        faults.fail_at(call, Fault::Before);
        assert_eq!(ask().await.refused(503), format!("Service Unavailable: {part} is not ready: try again"));
        // The answer is cached for a second.
        let calls = faults.calls();
        ask().await.refused(503);
        assert_eq!(faults.calls(), calls);
        app.get("/healthz").anonymous().send().await.expect(200);
        app.advance(Duration::from_secs(1));
        ask().await.expect(200);
    }
    // A call that never returns is given up.
    app.advance(Duration::from_secs(1));
    faults.fail_at(1, Fault::DeathBefore);
    let waiting = async {
        faults.death().await;
        app.advance(Duration::from_secs(5));
    };
    let (answer, ()) = tokio::join!(ask(), waiting);
    answer.refused(503);
    let (status, body) = raw(&app, "GET", "/readyz", &[], b"").await;
    refusal(status, &body);
}

/// The manual lists the same metrics and actions as the server.
#[tokio::test]
async fn the_page_names_every_metric_and_every_action() {
    const PAGE: &str = include_str!("../../../shared/docs/monitoring.md");
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.begin().await;
    stack.begin_call("update", false).send().await.refused(409);
    app.sweep().await;
    let metrics = app.metrics().await;
    let served = metrics.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let name = line.split(['{', ' ']).next().unwrap();
        ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
    });
    let served: std::collections::BTreeSet<&str> = served.collect();
    let counted =
        PAGE.split('`').filter(|word| word.starts_with("statewright_") || word.starts_with("process_"));
    assert_eq!(counted.collect::<std::collections::BTreeSet<_>>(), served);
    let actions = PAGE.split("The actions are").nth(1).unwrap().split("`command`").next().unwrap();
    for action in ROUTES.iter().filter_map(|route| route.action) {
        let (noun, verb) = action.split_once('.').unwrap();
        let of_noun = actions.split("\n- ").find(|words| words.contains(&format!("`{noun}.")));
        assert!(
            of_noun.is_some_and(|words| words.contains(&format!(".{verb}`"))),
            "{action} is not in the page"
        );
    }
}

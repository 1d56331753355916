//! Traces of functions, for a collector.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use statewright_tests::app::ORG;
use statewright_tests::functions::{Functions, Setting};
use tokio::net::TcpListener;

/// A collector that records what it receives, and its address.
async fn collector() -> (String, Arc<Mutex<Vec<Bytes>>>) {
    let got = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&got);
    let take = move |body: Bytes| async move { keep.lock().unwrap().push(body) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/v1/traces", post(take));
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, got)
}

/// No code runs after an answer, so traces are sent before.
#[tokio::test]
async fn spans_reach_the_collector_before_the_answer() {
    let (address, got) = collector().await;
    let environment = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", address)];
    let functions = Functions::start_as(Setting { environment, ..Setting::default() }).await;
    let trace =
        [0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36];
    let hex: String = trace.iter().map(|byte| format!("{byte:02x}")).collect();
    let answer = reqwest::Client::new()
        .get(format!("{}/api/orgs/{ORG}/members", functions.url))
        .header("Authorization", format!("token {}", functions.token))
        .header("traceparent", format!("00-{hex}-00f067aa0ba902b7-01"))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    let sent = got.lock().unwrap().concat();
    let has = |part: &[u8]| sent.windows(part.len()).any(|window| window == part);
    assert!(has(b"GET /api/orgs/{org}/members"), "the request");
    assert!(has(b"ledger"), "its calls of the store");
    assert!(has(&trace), "they are a part of the client's own trace");
    assert!(!has(functions.token.as_bytes()));
    functions.sweep().await.unwrap();
    let sent = got.lock().unwrap().concat();
    assert!(sent.windows(5).any(|window| window == b"sweep"));
}

/// A missing collector does not prevent an answer.
#[tokio::test]
async fn a_request_is_answered_without_its_collector() {
    let environment = vec![("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1".to_owned())];
    let functions = Functions::start_as(Setting { environment, ..Setting::default() }).await;
    let answer = reqwest::get(format!("{}/api/capabilities", functions.url)).await.unwrap();
    assert_eq!(answer.status(), 200);
}

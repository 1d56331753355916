//! The cost of the log, the metrics and the limits of each request.

use std::io;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use statewright_tests::app::TestApp;
use statewright_tests::stopwatch::Stopwatch;
use tower::ServiceExt as _;

const REQUESTS: u32 = 100_000;
const ROUNDS: usize = 9;

/// Requests the smallest route of the server, and one of a bare router with the same answer, without a socket
/// and without a log.
#[expect(clippy::print_stdout, reason = "a command's output")]
pub(crate) async fn run() -> io::Result<()> {
    let watched = TestApp::memory().await.router();
    let bare =
        Router::new().route("/healthz", get(async || axum::Json(serde_json::json!({ "status": "ok" }))));
    let mut differences = Vec::new();
    for _ in 0..ROUNDS {
        let (watched, bare) = (micros(&watched).await?, micros(&bare).await?);
        differences.push(watched - bare);
        println!("{watched:.2} µs a request, of which {bare:.2} µs for the router and the answer");
    }
    differences.sort_by(f64::total_cmp);
    println!("{:.2} µs for the ID, the trail, the guard and the numbers (median)", differences[ROUNDS / 2]);
    Ok(())
}

async fn micros(router: &Router) -> io::Result<f64> {
    let since = Stopwatch::start();
    for _ in 0..REQUESTS {
        let request = Request::get("/healthz").body(Body::empty()).map_err(io::Error::other)?;
        router.clone().oneshot(request).await.map_err(io::Error::other)?;
    }
    Ok(since.elapsed().as_secs_f64() * 1e6 / f64::from(REQUESTS))
}

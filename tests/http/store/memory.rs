//! The memory that requests hold: long answers, pages of events, and that all of it is released.

use std::io::Read as _;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::api::Limits;
use statewright_tests::app::{Call, ORG, TestApp};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::world::{Run, Stack, begin_body, deployment};

const MIB: usize = 1 << 20;

/// Waits until nothing is reserved.
async fn until_given_back(app: &TestApp) {
    let waits = async {
        while app.reserved() > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waits).await.expect("all of it is released in time");
}

/// A deployment of this many bytes, which compresses to a few.
fn long_state(bytes: usize) -> Value {
    json!({ "version": 3, "deployment": {
        "manifest": { "time": "2026-01-02T03:04:05Z", "magic": "", "version": "" },
        "resources": [], "more": "a".repeat(bytes),
    } })
}

#[tokio::test]
async fn a_long_export_is_inflated_on_its_way() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let state = long_state(3 * MIB);
    stack.post("/import", &state).gzip(state.to_string().as_bytes()).send().await.expect(200);
    let path = format!("{}/export", stack.path);
    let plain = app.get(&path).send().await;
    assert!(plain.status.is_success() && !plain.headers.contains_key("content-encoding"));
    assert_eq!(plain.headers.get("content-length"), None, "its length is not known when it begins");
    assert_eq!(plain.value()["deployment"]["more"], state["deployment"]["more"]);
    let packed = app.get(&path).header("Accept-Encoding", "gzip").send().await;
    assert_eq!(packed.headers["content-encoding"], "gzip");
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(&packed.bytes[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, plain.text());
    until_given_back(&app).await;
}

#[tokio::test]
async fn an_answer_is_counted_until_its_client_has_it() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let state = long_state(64 * MIB);
    stack.post("/import", &state).gzip(state.to_string().as_bytes()).send().await.expect(200);
    until_given_back(&app).await;
    let mut socket = TcpStream::connect(app.url.trim_start_matches("http://")).await.unwrap();
    let head = format!(
        "GET {}/export HTTP/1.1\r\nHost: statewright\r\nAuthorization: token {}\r\nConnection: close\r\n\r\n",
        stack.path, app.token
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    socket.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let held = app.reserved();
    assert!((1..2 * MIB).contains(&held), "64 MiB are on their way, and {held} bytes are held");
    drop(socket);
    until_given_back(&app).await;
}

/// What is read counts twice, as it is stored and as it is decoded, and the text of the answer once more.
#[tokio::test]
async fn a_long_list_is_reserved_before_it_is_written() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    for number in 0..8 {
        let mut body = begin_body("update", false);
        body["program"]["metadata"]["message"] = json!("m".repeat(64 << 10));
        let run = stack.begun(stack.post("/begin-update", &body)).await;
        run.append(&[stack.made(1, &format!("r{number}"))]).await.expect(204);
        run.complete("succeeded").await.expect(204);
    }
    until_given_back(&app).await;
    app.most_reserved();
    let text = stack.get("/updates").send().await.text();
    let most = app.most_reserved();
    assert!(text.len() > 8 * (64 << 10), "{} bytes", text.len());
    assert!(most * 2 > text.len() * 5, "{most} bytes are reserved for a text of {}", text.len());
    until_given_back(&app).await;
}

async fn batch(run: &Run<'_>, app: &TestApp, first: u64, count: u64, bytes: usize) {
    let event = |sequence| {
        let message = "m".repeat(bytes);
        let urn = if sequence % 2 == 0 { "even" } else { "odd" };
        json!({ "sequence": sequence, "timestamp": 1, "diagnosticEvent": { "urn": urn, "message": message } })
    };
    let events = json!({ "events": (first..first + count).map(event).collect::<Vec<_>>() });
    let call = app.request(Method::POST, &format!("{}/events/batch", run.path)).update_token(&run.token);
    call.gzip(events.to_string().as_bytes()).send().await.expect(204);
}

/// The sequence numbers on each page.
async fn pages(run: &Run<'_>, app: &TestApp, filter: &str) -> Vec<Vec<u64>> {
    let (mut found, mut from) = (Vec::new(), String::new());
    loop {
        let path = format!("{}/events?continuationToken={from}{filter}", run.path);
        let page = app.get(&path).send().await.expect(200);
        let events = page["events"].as_array().unwrap();
        found.push(events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect());
        match page["continuationToken"].as_str() {
            Some(next) => from = next.to_owned(),
            None => return found,
        }
    }
}

#[tokio::test]
async fn pages_of_events_end_at_four_mebibytes() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    // Four of 1.5 MiB, one that is longer than a page, and two short ones.
    for first in 0..4 {
        batch(&run, &app, first, 1, MIB + MIB / 2).await;
    }
    batch(&run, &app, 4, 3, 2 * MIB).await;
    batch(&run, &app, 7, 1, 10).await;
    batch(&run, &app, 8, 1, 10).await;
    run.complete("succeeded").await.expect(204);
    assert_eq!(pages(&run, &app, "").await, [vec![0, 1], vec![2, 3], vec![4, 5, 6], vec![7, 8]]);
    assert_eq!(pages(&run, &app, "&urn=even").await, [vec![0], vec![2], vec![4, 6], vec![8]]);
    assert_eq!(pages(&run, &app, "&type=9").await, [vec![0; 0], vec![], vec![], vec![]]);
    until_given_back(&app).await;
}

#[tokio::test]
async fn a_gzip_with_a_wrong_length_is_accepted() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let text = json!({ "events": [{ "sequence": 0, "timestamp": 1, "m": "m".repeat(5 * MIB) }] }).to_string();
    let (one, other) = text.as_bytes().split_at(text.len() - 20);
    let members = [one, other].map(statewright_shared::services::store::compression::gzip).concat();
    let call = app.request(Method::POST, &format!("{}/events/batch", run.path)).update_token(&run.token);
    call.raw(members).send().await.expect(204);
    run.complete("succeeded").await.expect(204);
    assert_eq!(pages(&run, &app, "").await, [vec![0]]);
    until_given_back(&app).await;
}

/// Sends all of these requests concurrently, and expects an answer for each.
async fn all_end_well(app: &TestApp, what: &str, requests: impl IntoIterator<Item = Call<'_>>) {
    let sent = futures::future::join_all(requests.into_iter().map(Call::send));
    let answers = tokio::time::timeout(Duration::from_secs(120), sent).await;
    for answer in answers.unwrap_or_else(|_| panic!("{what}: they wait for each other")) {
        assert!(answer.status.is_success(), "{what}: {} {}", answer.status, answer.text());
    }
    until_given_back(app).await;
}

/// A text of this many bytes that compresses badly.
fn noise(bytes: usize) -> String {
    let mut random = fastrand::Rng::with_seed(7);
    std::iter::repeat_with(|| random.alphanumeric()).take(bytes).collect()
}

fn noisy_state(noise: &str, serial: u64) -> Value {
    let outputs = json!({ "o": { "value": noise, "type": "string" } });
    json!({ "version": 4, "terraform_version": "1.5.7", "serial": serial, "lineage": "l", "outputs": outputs, "resources": [] })
}

/// Each gzip announces too small a size, so its memory is reserved step by step.
#[tokio::test]
async fn gzips_with_wrong_lengths_do_not_wait_for_each_other() {
    let limits = Limits { memory_bytes_max: 128 * MIB, ..Limits::default() };
    let app = TestApp::memory_limited(limits).await;
    let run = Stack::new(&app).await.begin().await;
    let batch = |at: usize| {
        let event = json!({ "sequence": at, "timestamp": 1, "m": "m".repeat(5 * MIB) });
        let text = json!({ "events": [event] }).to_string();
        let (one, other) = text.as_bytes().split_at(text.len() - 20);
        let members = [one, other].map(statewright_shared::services::store::compression::gzip).concat();
        let call = app.request(Method::POST, &format!("{}/events/batch", run.path));
        call.update_token(&run.token).raw(members)
    };
    all_end_well(&app, "gzips with wrong lengths", (0..4).map(batch)).await;
}

/// Each reserves memory in more than one step, and all of them together need more than there is.
#[tokio::test]
async fn requests_that_need_more_do_not_wait_for_each_other() {
    let limits = Limits { memory_bytes_max: 24 * MIB, ..Limits::default() };
    let app = TestApp::memory_limited(limits).await;
    let stack = Stack::new(&app).await;
    let project = &stack.project;
    let path = format!("/tfstate/{ORG}/{project}/long");
    let noise = noise(2 * MIB);
    for serial in [1, 2] {
        app.post(&path, &noisy_state(&noise, serial)).send().await.expect(200);
    }
    let root = json!({
        "urn": format!("urn:pulumi:dev::{project}::pulumi:pulumi:Stack::{project}-dev"), "custom": false,
        "type": "pulumi:pulumi:Stack", "outputs": { "o": noise },
    });
    stack.post("/import", &deployment(&[root])).send().await.expect(200);

    let states = (0..16).map(|at| {
        let path = format!("/tfstate/{ORG}/{project}/written{at}");
        app.request(Method::POST, &path).json(&noisy_state(&noise, 1))
    });
    all_end_well(&app, "states, written", states).await;
    let many = |count, path: String| {
        let app = &app;
        (0..count).map(move |_| app.get(&path))
    };
    let listed = app.get(&format!("/api/orgs/{ORG}/tfstates/{project}/long")).send().await.expect(200);
    let versions = format!("/api/tfstates/{}/versions", listed["id"].as_str().unwrap());
    for (what, count, path) in [
        ("outputs of a state", 24, format!("{path}/outputs")),
        ("differences of states", 16, format!("{versions}/1/diff/2")),
        ("outputs of an organization", 24, format!("/api/orgs/{ORG}/outputs")),
        ("outputs of a stack", 24, format!("{}/outputs", stack.path)),
        ("outputs of a stack by name", 24, format!("/api/orgs/{ORG}/outputs/stack/{project}/dev")),
    ] {
        all_end_well(&app, what, many(count, path)).await;
    }
}

#[tokio::test]
async fn a_client_that_disconnects_during_work_leaves_nothing() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let state = long_state(16 * MIB).to_string();
    let mut socket = TcpStream::connect(app.url.trim_start_matches("http://")).await.unwrap();
    let head = format!(
        "POST {}/import HTTP/1.1\r\nHost: statewright\r\nAuthorization: token {}\r\nContent-Length: {}\r\n\r\n",
        stack.path,
        app.token,
        state.len()
    );
    socket.write_all(&[head.as_bytes(), state.as_bytes()].concat()).await.unwrap();
    // More than the text: parsing takes more memory.
    while app.reserved() <= state.len() {
        tokio::task::yield_now().await;
    }
    drop(socket);
    until_given_back(&app).await;
}

/// A client that sends a body of 4 MiB without its last byte, so that its bytes stay reserved until the task is
/// aborted.
async fn stalls(app: &TestApp, path: &str, authorization: &str) -> JoinHandle<()> {
    let body = json!({ "more": "a".repeat(4 * MIB) }).to_string();
    let mut socket = TcpStream::connect(app.url.trim_start_matches("http://")).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: statewright\r\nAuthorization: {authorization}\r\nContent-Length: {}\r\n\r\n",
        body.len() + 1
    );
    tokio::spawn(async move {
        let _ = socket.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await;
        std::future::pending::<()>().await;
    })
}

/// Both users are served while these clients hold as much as one user may: half of 32 MiB, and one body more.
async fn leaves_room(app: &TestApp, path: &str, other: &str, stalled: Vec<JoinHandle<()>>) {
    while app.reserved() < 15 * MIB {
        tokio::task::yield_now().await;
    }
    for _ in 0..10 {
        let call = app.request(Method::POST, path).token(other);
        call.json(&json!({ "plaintexts": ["YQ=="] })).send().await.expect(200);
    }
    assert!(app.most_reserved() <= 21 * MIB, "half of it, one body with the turn, and the other user's");
    stalled.iter().for_each(JoinHandle::abort);
    drop(stalled);
    until_given_back(app).await;
}

#[tokio::test]
async fn requests_of_one_token_leave_memory_for_others() {
    let limits = Limits { memory_bytes_max: 32 * MIB, ..Limits::default() };
    let app = TestApp::memory_limited(limits).await;
    let (greedy, other) = (app.member("greedy", "laptop").await, app.member("other", "laptop").await);
    let path = format!("{}/batch-encrypt", Stack::new(&app).await.path);
    let mut stalled = Vec::new();
    for _ in 0..8 {
        stalled.push(stalls(&app, &path, &format!("token {greedy}")).await);
    }
    leaves_room(&app, &path, &other, stalled).await;
}

/// A preview takes no lock, so one token can begin any number of them.
#[tokio::test]
async fn memory_of_previews_counts_for_their_user() {
    let limits = Limits { memory_bytes_max: 32 * MIB, ..Limits::default() };
    let app = TestApp::memory_limited(limits).await;
    let (greedy, other) = (app.member("greedy", "laptop").await, app.member("other", "laptop").await);
    let stack = Stack::new(&app).await;
    let mut stalled = Vec::new();
    for _ in 0..8 {
        let preview = stack.begun(stack.begin_call("update", true).token(&greedy)).await;
        let authorization = format!("update-token {}", preview.token);
        stalled.push(stalls(&app, &format!("{}/events/batch", preview.path), &authorization).await);
    }
    leaves_room(&app, &format!("{}/batch-encrypt", stack.path), &other, stalled).await;
}

//! Clients with too many concurrent requests, and clients that keep the server waiting for a body.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use statewright_shared::api::Limits;
use statewright_shared::domain::role::Role;
use statewright_shared::ports::{CommitError, Item, ItemKey, Ledger, Page, PortError, Query, Write};
use statewright_shared::settings::Settings;
use statewright_tests::app::{Answer, ORG, TestApp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::world::{Stack, refusal};

/// A request that is sent piece by piece: to set tags, or to import.
struct Upload {
    socket: TcpStream,
}

impl Upload {
    /// Sends the head, which announces this length, and these first bytes.
    async fn begin(app: &TestApp, stack: &Stack<'_>, token: &str, length: usize, first: &[u8]) -> Self {
        Self::of(app, &format!("PATCH {}/tags", stack.path), token, length, first).await
    }

    async fn of(app: &TestApp, what: &str, token: &str, length: usize, first: &[u8]) -> Self {
        let mut socket = TcpStream::connect(app.url.trim_start_matches("http://")).await.unwrap();
        let head = format!(
            "{what} HTTP/1.1\r\nHost: statewright\r\nAuthorization: token {token}\r\nContent-Length: {length}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        socket.write_all(first).await.unwrap();
        Self { socket }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    /// The answer up to where the server closes the connection.
    async fn last_answer(mut self) -> (u16, String, Vec<u8>) {
        let mut answer = Vec::new();
        self.socket.read_to_end(&mut answer).await.unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("an answer has a head");
        let body = answer.split_off(end + 4);
        let head = String::from_utf8(answer).unwrap();
        (head[9..12].parse().unwrap(), head, body)
    }

    /// The same while the clock moves.
    async fn ends_while_time_passes(self, app: &TestApp) -> (u16, String, Vec<u8>) {
        let mut answer = pin!(self.last_answer());
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                () = tokio::task::yield_now() => app.advance(Duration::from_secs(1)),
            }
        }
    }

    async fn status(&mut self) -> u16 {
        let mut head = [0; 12];
        self.socket.read_exact(&mut head).await.unwrap();
        std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
    }
}

/// Repeats the request until the answer has this status: requests of others may still be on their way.
async fn until(status: u16, ask: impl AsyncFn() -> Answer) -> Answer {
    let asking = async {
        loop {
            let answer = ask().await;
            if answer.status == status {
                return answer;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking).await.expect("the answer comes in time")
}

#[tokio::test]
async fn requests_of_one_token_are_as_many_at_once_as_may_be() {
    let limits = Limits { requests_per_token_max: 2, ..Limits::default() };
    let app = TestApp::memory_limited(limits).await;
    let other = app.member("bob", "laptop").await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let mut uploads = Vec::new();
    for _ in 0..2 {
        uploads.push(Upload::begin(&app, &stack, &app.token, 2, b"{").await);
    }
    let answer = until(429, async || stack.get("").send().await).await;
    assert_eq!(answer.headers["Retry-After"], "1");
    let words = answer.refused(429);
    assert!(words.contains("2 concurrent requests"), "{words}");
    // Another token, an update of the same user, and anonymous requests are not affected.
    stack.get("").token(&other).send().await.expect(200);
    run.renew(300).await.expect(200);
    app.get("/api/capabilities").send().await.expect(200);
    for upload in &mut uploads {
        upload.send(b"}").await;
        assert_eq!(upload.status().await, 204);
    }
    stack.get("").send().await.expect(200);
}

#[tokio::test]
async fn i9_bounded_bodies_wait_for_memory_and_not_for_ever() {
    let limits = Limits { memory_bytes_max: 40_000, ..Limits::default() };
    let app = TestApp::memory_limited(limits).await;
    let stack = Stack::new(&app).await;
    // Almost all that one user may have.
    let mut first = Upload::begin(&app, &stack, &app.token, 30_000, &[b' '; 19_000]).await;
    until_reserved(&app, 19_000).await;
    let tags: BTreeMap<String, String> = (0..20).map(|at| (format!("t{at}"), "v".repeat(200))).collect();
    let set = || app.patch(&format!("{}/tags", stack.path), &json!(tags)).send();
    let words = loop {
        let mut other = pin!(set());
        let answer = loop {
            tokio::select! {
                biased;
                answer = &mut other => break answer,
                () = tokio::task::yield_now() => {}
            }
            first.send(b" ").await;
            app.advance(Duration::from_secs(1));
        };
        // Before the first one has the memory that it waits for, there is room for the other.
        if answer.status != 204 {
            break answer.refused(503);
        }
    };
    assert!(words.contains("try again"), "{words}");
    assert_eq!(app.metrics().await.matches("statewright_refusals_total{reason=\"memory\"} 1").count(), 1);
    // Requests without a body continue, and all requests do when the first one has ended.
    stack.get("").send().await.expect(200);
    drop(first);
    until(204, async || set().await).await;
}

/// Waits until requests hold this many bytes.
async fn until_reserved(app: &TestApp, bytes: usize) {
    let waits = async {
        while app.reserved() != bytes {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waits).await.expect("the memory is reserved in time");
}

#[tokio::test]
async fn a_slow_body_that_others_wait_for_is_given_up() {
    let limits = Limits { memory_bytes_max: 40_000, ..Limits::default() };
    let app = TestApp::memory_limited(limits).await;
    let stack = Stack::new(&app).await;
    // More than the share of its user.
    let upload = Upload::begin(&app, &stack, &app.token, 30_000, &[b' '; 25_000]).await;
    until_reserved(&app, 25_000).await;
    let began = app.context.now();
    let (status, head, _) = upload.ends_while_time_passes(&app).await;
    assert_eq!(status, 503);
    assert!(head.to_ascii_lowercase().contains("retry-after: 2"), "{head}");
    assert!(app.context.now().since(began) >= Duration::from_secs(5));
    until_reserved(&app, 0).await;
}

#[tokio::test]
async fn a_body_that_does_not_arrive_gets_a_408_and_is_disconnected() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let upload = Upload::begin(&app, &stack, &app.token, 10, b"{").await;
    let (status, head, body) = upload.ends_while_time_passes(&app).await;
    assert_eq!(status, 408);
    assert!(head.to_ascii_lowercase().contains("connection: close"), "{head}");
    let words = refusal(status, &body);
    assert!(words.contains("did not arrive in time"), "{words}");
}

#[tokio::test]
async fn a_body_that_arrives_too_slowly_is_given_up() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let mut upload = Upload::begin(&app, &stack, &app.token, 1_000_000, b"{").await;
    app.take_audit();
    let mut seconds = 0;
    let record = loop {
        if let Some(record) = app.take_audit().pop() {
            break record;
        }
        // After the timeout the server accepts nothing more.
        let _ = upload.socket.write_all(b" ").await;
        app.advance(Duration::from_secs(1));
        seconds += 1;
        tokio::task::yield_now().await;
    };
    assert_eq!((&record["action"], &record["status"]), (&"stack.tag".into(), &408.into()), "{record}");
    assert!(seconds >= 30, "{seconds}");
    until_reserved(&app, 0).await;
}

#[tokio::test]
async fn a_slow_body_holds_its_bytes_for_ten_minutes() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let what = format!("POST {}/import", stack.path);
    let mut upload = Upload::of(&app, &what, &app.token, 30_000_000, b"").await;
    app.take_audit();
    // A little more than the required progress.
    let (mut sent, piece, every) = (0, vec![b' '; 66_000], Duration::from_secs(30));
    while app.take_audit().is_empty() {
        upload.send(&piece).await;
        sent += piece.len();
        until_reserved(&app, sent).await;
        app.advance(every - Duration::from_secs(1));
        if sent > 20 * piece.len() {
            break;
        }
    }
    let (status, _, _) = upload.ends_while_time_passes(&app).await;
    assert_eq!((status, sent), (408, 21 * piece.len()));
    until_reserved(&app, 0).await;
}

#[tokio::test]
async fn a_client_that_disconnects_early_is_still_logged() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    app.take_audit();
    drop(Upload::begin(&app, &stack, &app.token, 10, b"{").await);
    let gone = async {
        loop {
            if let Some(record) = app.take_audit().pop() {
                return record;
            }
            tokio::task::yield_now().await;
        }
    };
    let record = tokio::time::timeout(Duration::from_secs(60), gone).await.expect("it is reported in time");
    assert_eq!((&record["action"], &record["stack"]), (&"stack.tag".into(), &"dev".into()), "{record}");
    // Either the handler saw that the body is incomplete, or the client was gone.
    assert!(record["result"] == "unknown" || record["status"] == 400, "{record}");
    assert!(app.metrics().await.contains("statewright_requests_under_way 0"));
}

/// A ledger that reads one item at a time, in the order in which reads ask for it.
struct OneAtATime {
    inner: Arc<dyn Ledger>,
    turn: Semaphore,
}

#[async_trait]
impl Ledger for OneAtATime {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        let _turn = self.turn.acquire().await.unwrap();
        tokio::task::yield_now().await;
        self.inner.get(key).await
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        let _turn = self.turn.acquire().await.unwrap();
        self.inner.query(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        self.inner.commit(writes).await
    }
    fn inline_bytes_max(&self) -> usize {
        self.inner.inline_bytes_max()
    }
}

/// A grant names a tag, so that the tags are read while the stack is looked for.
#[tokio::test]
async fn what_is_read_ahead_blocks_no_other_read() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    stack.post("/tags", &json!({ "name": "tier", "value": "one" })).send().await.expect(204);
    let bob = app.member_with_role(Role::None, "bob", "ci").await;
    let grant = json!({ "to": "user:bob", "on": "tag:tier=one", "role": "view" });
    let access = app.request(Method::PUT, &format!("/api/orgs/{ORG}/access"));
    access.json(&json!({ "teams": {}, "grants": [grant] })).send().await.expect(200);
    let ledger = OneAtATime { inner: Arc::clone(&app.context.ledger), turn: Semaphore::new(1) };
    let cold = app.over(Arc::new(ledger), Settings::default()).await;
    let calls = (0..4).map(|_| stack.at(&cold).get("/resources").token(&bob).send());
    let answers = tokio::time::timeout(Duration::from_secs(60), join_all(calls)).await.expect("all end");
    for answer in answers {
        assert_eq!(answer.expect(200)["total"], 1);
    }
}

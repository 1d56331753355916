//! When tokens were last used: recorded once an hour, and never in the way of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::api::ShowedToken;
use statewright_shared::cache::REMEMBERED_FOR;
use statewright_shared::domain::names::{Login, OrgName, TeamName, TokenName};
use statewright_shared::domain::principal::Principal;
use statewright_shared::domain::role::Role;
use statewright_shared::layout::{Stored, TokenUse, put};
use statewright_shared::ports::{
    CommitError, Expect, Item, ItemKey, Ledger, Page, PortError, Query, Revision, Timestamp, Write,
};
use statewright_shared::services::identity::tokens::{self, NewToken, Owner, TOKEN_GRACE};
use statewright_shared::services::identity::users;
use statewright_shared::settings::Settings;
use statewright_tests::app::{ORG, TestApp, USER};
use statewright_tests::sign_ins;
use tower::ServiceExt as _;

use crate::api::call_counts::counted;

const HOUR: Duration = Duration::from_secs(3_600);

const PERSONAL: &str = "/api/user/tokens";

fn login(text: &str) -> Login {
    Login::parse(text).unwrap()
}

fn past_memory(app: &TestApp) {
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
}

/// A new token: its ID and its secret.
async fn make(app: &TestApp, list: &str, name: &str) -> (String, String) {
    let made = app.post(list, &json!({ "name": name })).send().await.expect(200);
    let text = |member: &str| made[member].as_str().unwrap().to_owned();
    (text("id"), text("tokenValue"))
}

async fn status_of(app: &TestApp, token: &str) -> u16 {
    app.get("/api/user").token(token).send().await.status.as_u16()
}

/// The last use of a token, in seconds, as its list has it.
async fn listed(app: &TestApp, list: &str, name: &str) -> Value {
    let page = app.get(list).send().await.expect(200);
    let all = page["tokens"].as_array().unwrap();
    all.iter().find(|token| token["name"] == name).unwrap()["lastUsed"].clone()
}

/// The stored last use of a token of [`USER`].
async fn stored(app: &TestApp, name: &str) -> Option<Item> {
    app.context.ledger.get(&key(name)).await.unwrap()
}

fn key(name: &str) -> ItemKey {
    TokenUse::key(&Principal::User, &login(USER), &TokenName::parse(name).unwrap()).into()
}

#[tokio::test]
async fn a_use_is_recorded_once_an_hour_for_each_kind_of_token() {
    let (app, counter) = counted().await;
    let team = json!({ "name": "platform", "displayName": "", "description": "" });
    app.post(&format!("/api/orgs/{ORG}/teams/pulumi"), &team).send().await.expect(201);
    let lists = [
        PERSONAL.to_owned(),
        format!("/api/orgs/{ORG}/tokens"),
        format!("/api/orgs/{ORG}/teams/platform/tokens"),
    ];
    for (number, list) in lists.iter().enumerate() {
        let name = format!("used-{number}");
        let (_, secret) = make(&app, list, &name).await;
        assert_eq!(listed(&app, list, &name).await, 0, "{list}");
        // The reads and the writes of a request with the token.
        let costs = async || {
            counter.take();
            assert_eq!(status_of(&app, &secret).await, 200, "{list}");
            let calls = counter.take();
            (calls.ledger_gets, calls.ledger_single_commits, calls.in_sequence)
        };
        let first = app.context.now().seconds();
        // The token, then its owner and its last use, then the record.
        assert_eq!(costs().await, (3, 1, 3), "{list}");
        assert_eq!(costs().await, (0, 0, 0), "a warm request: {list}");
        past_memory(&app);
        assert_eq!(costs().await, (3, 0, 2), "within the hour: {list}");
        assert_eq!(listed(&app, list, &name).await, first, "{list}");
        app.advance(HOUR - REMEMBERED_FOR - Duration::from_secs(1));
        assert_eq!(costs().await, (3, 1, 3), "after an hour: {list}");
        assert_eq!(listed(&app, list, &name).await, first + 3_600, "{list}");
    }
}

/// Its client still learns whose it is.
#[tokio::test]
async fn a_stopped_token_is_not_used_and_keeps_no_connection() {
    let (app, counter) = counted().await;
    let bob = app.member("bob", "laptop").await;
    sign_ins::confirm_for(&app, "bob", HOUR).await;
    app.advance(HOUR);
    app.take_audit();
    // How often a valid token was shown, and the detail of the record.
    let asked = async |token: &str| {
        let shown = Arc::new(AtomicUsize::new(0));
        let valid = Arc::clone(&shown);
        let showed = ShowedToken(Arc::new(move || {
            valid.fetch_add(1, Ordering::Relaxed);
        }));
        let request = Request::get("/api/user").header("Host", "127.0.0.1");
        let request = request.header("Authorization", format!("token {token}")).extension(showed);
        let answer = app.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        let records = app.take_audit();
        assert_eq!(records.len(), 1, "{records:?}");
        (shown.load(Ordering::Relaxed), records[0]["detail"].clone())
    };
    let detail = json!("with a token that stopped until the provider confirms the user");
    assert_eq!(asked(&app.token).await, (1, Value::Null));
    counter.take();
    assert_eq!(asked(&bob).await, (0, detail));
    let calls = counter.take();
    assert_eq!((calls.ledger_gets, calls.ledger_single_commits), (3, 0), "{calls:?}");
}

#[tokio::test]
async fn a_list_costs_one_more_query() {
    let (app, counter) = counted().await;
    for name in ["a", "b", "c"] {
        let (_, secret) = make(&app, PERSONAL, name).await;
        assert_eq!(status_of(&app, &secret).await, 200);
    }
    counter.take();
    let now = app.context.now().seconds();
    let names = async |query: &str| {
        let page = app.get(&format!("{PERSONAL}{query}")).send().await.expect(200);
        assert_eq!(counter.take().ledger_queries, 2, "the entries and their uses: {page}");
        let all = page["tokens"].as_array().unwrap();
        let used = |token: &Value| (token["name"].as_str().unwrap().to_owned(), token["lastUsed"] == now);
        (all.iter().map(used).collect::<Vec<_>>(), page["continuationToken"].as_str().map(str::to_owned))
    };
    let (first, next) = names("?maxResults=2").await;
    let (rest, _) = names(&format!("?maxResults=2&continuationToken={}", next.unwrap())).await;
    let used = |name: &str| (name.to_owned(), true);
    assert_eq!((first, rest), (vec![used("a"), used("b")], vec![used("c"), used("first-start")]));
}

#[tokio::test]
async fn a_token_made_anew_was_never_used() {
    let app = TestApp::memory().await;
    let (id, secret) = make(&app, PERSONAL, "again").await;
    assert_eq!(status_of(&app, &secret).await, 200);
    let left = Stored::<TokenUse>::read(&stored(&app, "again").await.unwrap()).unwrap().value;
    assert_eq!(left, TokenUse { made: app.context.now(), used: app.context.now() });
    app.request(Method::DELETE, &format!("{PERSONAL}/{id}")).send().await.expect(204);
    assert_eq!(stored(&app, "again").await, None, "it ends with the token");
    past_memory(&app);
    assert_eq!(status_of(&app, &secret).await, 401);
    assert_eq!(stored(&app, "again").await, None, "a revoked token is not used");

    // As a request leaves it that read the token before it was revoked.
    let write = put(
        TokenUse::key(&Principal::User, &login(USER), &TokenName::parse("again").unwrap()),
        Expect::Absent,
        Revision(7),
        &left,
    );
    app.context.ledger.commit(vec![write]).await.unwrap();
    let (_, secret) = make(&app, PERSONAL, "again").await;
    assert_eq!(listed(&app, PERSONAL, "again").await, 0);
    assert_eq!(status_of(&app, &secret).await, 200);
    assert_eq!(listed(&app, PERSONAL, "again").await, app.context.now().seconds());
}

#[tokio::test]
async fn a_token_that_has_expired_is_not_marked_as_used() {
    let app = TestApp::memory().await;
    let end = app.context.now().plus(HOUR * 2);
    let new = json!({ "name": "short", "expires": end.seconds() });
    let made = app.post(PERSONAL, &new).send().await.expect(200);
    let secret = made["tokenValue"].as_str().unwrap();
    let first = app.context.now().seconds();
    assert_eq!(status_of(&app, secret).await, 200);
    app.advance(HOUR * 2);
    assert_eq!(status_of(&app, secret).await, 401);
    let all = format!("{PERSONAL}?filter=all");
    assert_eq!(listed(&app, &all, "short").await, first);
}

#[tokio::test]
async fn the_uses_of_a_user_end_with_the_user() {
    let app = TestApp::memory().await;
    let secret = app.member("bob", "laptop").await;
    assert_eq!(status_of(&app, &secret).await, 200);
    let used = TokenUse::key(&Principal::User, &login("bob"), &TokenName::parse("laptop").unwrap());
    assert!(app.context.ledger.get(&used).await.unwrap().is_some());
    users::remove(&app.context, &login("bob")).await.unwrap();
    assert_eq!(app.context.ledger.get(&used).await.unwrap(), None);
}

/// A token of one job expires by itself, and its last use with it.
#[tokio::test]
async fn the_use_of_a_short_lived_token_expires_with_it() {
    let app = TestApp::memory().await;
    let end = app.context.now().plus(HOUR);
    let new = NewToken {
        expires: Some(end),
        is_short_lived: true,
        ..NewToken::new(Owner::User(login(USER)), TokenName::parse("job").unwrap())
    };
    let secret = tokens::issue(&app.context, new).await.unwrap().secret;
    assert_eq!(status_of(&app, &secret).await, 200);
    assert_eq!(stored(&app, "job").await.unwrap().expires, Some(end.plus(TOKEN_GRACE)));
}

/// A rotated token is the same token, and was used when its former secret was.
#[tokio::test]
async fn a_rotation_keeps_the_last_use() {
    let app = TestApp::memory().await;
    let (id, secret) = make(&app, PERSONAL, "rotated").await;
    assert_eq!(status_of(&app, &secret).await, 200);
    let first = app.context.now().seconds();
    app.advance(HOUR * 2);
    let rotated = app.post(&format!("{PERSONAL}/{id}/rotate"), &json!({})).send().await.expect(200);
    assert_eq!(listed(&app, PERSONAL, "rotated").await, first);
    assert_eq!(status_of(&app, rotated["tokenValue"].as_str().unwrap()).await, 200);
    assert_eq!(listed(&app, PERSONAL, "rotated").await, first + 7_200);
}

/// What goes wrong with the last uses of tokens in [`Odd`].
#[derive(Debug, Clone, Copy)]
enum How {
    CannotBeRead,
    CannotBeWritten,
    AnotherIsFaster,
}

/// A ledger in which only the last uses of tokens go wrong.
struct Odd {
    inner: Arc<dyn Ledger>,
    how: How,
    another: Timestamp,
}

#[async_trait]
impl Ledger for Odd {
    async fn get(&self, key: &ItemKey) -> Result<Option<Item>, PortError> {
        match self.how {
            How::CannotBeRead if key.partition.starts_with("USED#") => {
                Err(PortError::not_done("reading", "by script"))
            }
            _ => self.inner.get(key).await,
        }
    }
    async fn query(&self, query: &Query) -> Result<Page, PortError> {
        self.inner.query(query).await
    }
    async fn commit(&self, writes: Vec<Write>) -> Result<(), CommitError> {
        if writes.iter().any(|write| write.key.partition.starts_with("USED#")) {
            match self.how {
                How::CannotBeRead => panic!("nothing is written without the record before"),
                How::CannotBeWritten => return Err(PortError::not_done("writing", "by script").into()),
                How::AnotherIsFaster => {
                    let faster = put(
                        TokenUse::key(&Principal::User, &login(USER), &TokenName::parse("odd").unwrap()),
                        Expect::Any,
                        Revision(7),
                        &TokenUse { made: self.another, used: self.another },
                    );
                    self.inner.commit(vec![faster]).await?;
                }
            }
        }
        self.inner.commit(writes).await
    }
    fn inline_bytes_max(&self) -> usize {
        self.inner.inline_bytes_max()
    }
}

#[tokio::test]
async fn no_request_fails_because_of_its_last_use() {
    let app = TestApp::memory().await;
    let (_, secret) = make(&app, PERSONAL, "odd").await;
    let made = app.context.now();
    for (how, expected) in
        [(How::CannotBeRead, 0), (How::CannotBeWritten, 0), (How::AnotherIsFaster, made.seconds())]
    {
        let inner = Arc::clone(&app.context.ledger);
        let odd = app.over(Arc::new(Odd { inner, how, another: made }), Settings::default()).await;
        assert_eq!(status_of(&odd, &secret).await, 200, "{how:?}");
        assert_eq!(listed(&app, PERSONAL, "odd").await, expected, "{how:?}");
    }
    // Two processes see the token for the first time.
    let (_, secret) = make(&app, PERSONAL, "both").await;
    let other = app.another_process("other").await;
    let statuses = futures::join!(status_of(&app, &secret), status_of(&other, &secret));
    assert_eq!(statuses, (200, 200));
    assert_eq!(listed(&app, PERSONAL, "both").await, made.seconds());
}

/// The names of an organization's tokens and of a user's are apart, also if both owners have one name.
#[tokio::test]
async fn a_user_and_an_organization_of_one_name_share_no_uses() {
    let app = TestApp::memory().await;
    let name = TokenName::parse("same").unwrap();
    users::create(&app.context, &login(ORG), &[OrgName::parse(ORG).unwrap()], Role::Admin).await.unwrap();
    let person = tokens::create_token(&app.context, &login(ORG), &name, None).await.unwrap();
    make(&app, &format!("/api/orgs/{ORG}/tokens"), "same").await;
    assert_eq!(status_of(&app, &person).await, 200);
    assert_eq!(listed(&app, &format!("/api/orgs/{ORG}/tokens"), "same").await, 0);
    let all = tokens::list_all(&app.context, &Owner::User(login(ORG))).await.unwrap();
    assert_eq!(all[0].used, Some(app.context.now()));
    // A team has a part of its organization's list.
    let team = Principal::Team(TeamName::parse("platform").unwrap());
    let of = |of: &Principal| ItemKey::from(TokenUse::key(of, &login(ORG), &name));
    assert_eq!(of(&team), of(&Principal::Organization));
    assert_ne!(of(&team), of(&Principal::User));
}

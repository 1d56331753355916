//! Sign-ins at providers whose answers are wrong, on a server of any kind.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use statewright_shared::domain::names::{Login, OrgName, ProviderName};
use statewright_shared::domain::role::Role;
use statewright_shared::domain::sign_in::SignInRule;
use statewright_shared::layout::{Record as _, SignInProvider, User, put};
use statewright_shared::ports::Expect;
use statewright_shared::services::identity::{passwords, providers};

use crate::app::{ORG, TestApp, USER};
use crate::fake_provider::{Behavior, CLIENT_ID, CLIENT_SECRET, FakeProvider};
use crate::visitor::{Shown, Visitor};

/// Where a sign-in leads.
const ACCOUNT: &str = "/user/settings/account";

/// A rule that gives a group a role in [`ORG`].
pub fn rule(group: &str, role: Role) -> SignInRule {
    let org = OrgName::parse(ORG).expect("valid");
    SignInRule { group: group.to_owned(), org, role, team: None }
}

/// Adds the provider to the server.
pub async fn add(app: &TestApp, name: &str, provider: &FakeProvider, rules: &[SignInRule]) {
    let added = SignInProvider {
        name: ProviderName::parse(name).expect("valid"),
        title: format!("The {name}"),
        scopes: vec!["profile".to_owned()],
        ..provider.registration(&app.url, rules.to_vec(), app.context.now())
    };
    providers::add(&app.context, added, Some(CLIENT_SECRET)).await.expect("the name is new");
}

/// A provider of the server, named `corp`, whose people of the group `dev` may apply.
pub async fn with_provider(app: &TestApp) -> FakeProvider {
    let provider = FakeProvider::start(app.context.now().seconds()).await;
    add(app, "corp", &provider, &[rule("dev", Role::Apply)]).await;
    provider
}

/// A provider confirms this user for this time from now on, as at a sign-in.
///
/// # Panics
/// If the store lacks the user.
pub async fn confirm_for(app: &TestApp, login: &str, time: Duration) {
    let key = User::key(&Login::parse(login).expect("valid"));
    let item = app.context.ledger.get(&key).await.expect("the store works").expect("the user exists");
    let mut user = User::decode(&item.value).expect("as stored");
    user.confirmed_until = Some(app.context.now().plus(time));
    let write = put(key, Expect::Any, app.context.ids.revision(), &user);
    app.context.ledger.commit(vec![write]).await.expect("the store works");
}

async fn sign_in(app: &TestApp, provider: &FakeProvider, name: &str) -> Shown {
    Visitor::new(&app.url).sign_in(provider, name, "bob").await
}

/// ID tokens with one thing wrong. `slack` is the time in seconds that the server's clock may move meanwhile.
///
/// # Panics
/// If the server accepts one of them.
pub async fn refuses_wrong_tokens(app: &TestApp, provider: &FakeProvider, slack: i64) {
    let now = app.context.now().seconds();
    let claim = |name: &'static str, value: Value| Behavior {
        claims: BTreeMap::from([(name, value)]),
        ..Behavior::default()
    };
    for (what, behavior, why) in [
        ("another nonce", claim("nonce", json!("other")), "it belongs to another sign-in"),
        ("no nonce", claim("nonce", Value::Null), "it belongs to another sign-in"),
        ("another issuer", claim("iss", json!("https://evil.example")), "another issuer made it"),
        ("another audience", claim("aud", json!("other")), "it is for another application"),
        ("two audiences", claim("aud", json!([CLIENT_ID, "other"])), "it is for another application"),
        ("expired", claim("exp", json!(now - 61)), "it is not valid at this time"),
        ("of the future", claim("iat", json!(now + 61 + slack)), "it is not valid at this time"),
        ("no signature", Behavior { algorithm: "none", ..Behavior::default() }, "its signature is not valid"),
        (
            "signed with the secret",
            Behavior { algorithm: "HS256", ..Behavior::default() },
            "its signature is not valid",
        ),
        (
            "another algorithm",
            Behavior { algorithm: "RS256", ..Behavior::default() },
            "its signature is not valid",
        ),
        ("an unknown key", Behavior { signs_with: 2, ..Behavior::default() }, "its signature is not valid"),
    ] {
        provider.behaves(behavior);
        let mut browser = Visitor::new(&app.url);
        let refused = browser.sign_in(provider, "corp", "bob").await.refuses(403);
        let expected = format!("The ID token of the provider corp is refused: {why}");
        assert!(refused.starts_with(&expected), "{what}: {refused}");
        assert_eq!(browser.user().await, None, "{what}");
    }
    // A key that the provider does not publish. The server has not seen the published one of this provider before.
    let other = FakeProvider::start(now).await;
    add(app, "fresh", &other, &[rule("dev", Role::Apply)]).await;
    other.behaves(Behavior { signs_with: 1, publishes: vec![2], ..Behavior::default() });
    sign_in(app, &other, "fresh").await.refuses(403);
    // Clocks may be a minute apart.
    for (name, value) in [("exp", now - 59 + slack), ("iat", now + 59)] {
        provider.behaves(claim(name, json!(value)));
        sign_in(app, provider, "corp").await.leads(ACCOUNT);
    }
    provider.behaves(Behavior::default());
}

/// How often the provider was asked for its keys since the last call.
fn keys_read(provider: &FakeProvider) -> usize {
    provider.take_requests().iter().filter(|path| *path == "keys").count()
}

/// A key that the provider publishes later, and one that it withdraws. The server has a manual clock, and this number of
/// processes: of two, one begins each sign-in, and the other one ends it.
///
/// # Panics
/// If the server does not find the first, or accepts the second.
pub async fn finds_rotated_keys(app: &TestApp, provider: &FakeProvider, processes: usize) {
    let begun = app.context.now().seconds();
    for expected in [processes, 0] {
        sign_in(app, provider, "corp").await.leads(ACCOUNT);
        assert_eq!(keys_read(provider), expected);
    }
    provider.behaves(Behavior { signs_with: 2, publishes: vec![1, 2], ..Behavior::default() });
    sign_in(app, provider, "corp").await.refuses(403);
    assert_eq!(keys_read(provider), 0, "the keys were read within the last minute");
    app.advance(Duration::from_secs(61));
    provider.shows(begun + 61);
    sign_in(app, provider, "corp").await.leads(ACCOUNT);
    assert_eq!(keys_read(provider), 1);
    // A withdrawn key is refused once the documents are read again.
    provider.behaves(Behavior { signs_with: 1, publishes: vec![2], ..Behavior::default() });
    app.advance(Duration::from_secs(601));
    provider.shows(begun + 662);
    sign_in(app, provider, "corp").await.refuses(403);
}

/// A provider that is down before the sign-in. The server has a manual clock, and this number of processes.
///
/// # Panics
/// If the server does not say so, or asks it again at once.
pub async fn finds_a_provider_down(app: &TestApp, provider: &FakeProvider, processes: usize) {
    provider.behaves(Behavior { fails: Some(StatusCode::BAD_GATEWAY), ..Behavior::default() });
    let mut browser = Visitor::new(&app.url);
    for _ in 0..2 * processes {
        let refused = browser.open("/signin/corp").await.refuses(503);
        assert!(refused.starts_with("The provider corp does not answer"), "{refused}");
    }
    assert_eq!(provider.take_requests().len(), processes, "it is not asked again at once");
    provider.behaves(Behavior::default());
    app.advance(Duration::from_secs(6));
    browser.sign_in(provider, "corp", "bob").await.leads(ACCOUNT);
}

/// A provider that is down when it has a code to exchange.
///
/// # Panics
/// If the server does not say so, or if a person cannot sign in in another way.
pub async fn finds_a_provider_down_at_the_exchange(app: &TestApp, provider: &FakeProvider) {
    const PASSWORD: &str = "correct horse battery";
    let mut browser = Visitor::new(&app.url);
    browser.sign_in(provider, "corp", "bob").await.leads(ACCOUNT);
    let mut browser = Visitor::new(&app.url);
    let led = browser.open("/signin/corp").await;
    let query = provider.sign_in(&led.leads_to, "bob");
    provider.behaves(Behavior { fails: Some(StatusCode::INTERNAL_SERVER_ERROR), ..Behavior::default() });
    browser.open(&format!("/signin/corp/callback?{query}")).await.refuses(503);
    assert_eq!(browser.user().await, None);
    let login = Login::parse(USER).expect("valid");
    passwords::set(&app.context, &login, PASSWORD).await.expect("the user exists");
    let form = [("login", USER), ("password", PASSWORD)];
    Visitor::new(&app.url).submit("/signin", &form).await.leads(ACCOUNT);
    provider.behaves(Behavior::default());
}

/// Two providers, and an answer of one of them at the address of the other.
///
/// # Panics
/// If the server takes one for the other.
pub async fn keeps_providers_apart(app: &TestApp, provider: &FakeProvider) {
    let other = FakeProvider::start(app.context.now().seconds()).await;
    add(app, "other", &other, &[rule("dev", Role::Admin)]).await;
    let mut browser = Visitor::new(&app.url);
    let led = browser.open("/signin/corp").await;
    assert!(led.leads_to.contains("%2Fsignin%2Fcorp%2Fcallback"), "{}", led.leads_to);
    let query = provider.sign_in(&led.leads_to, "bob");
    let refused = browser.open(&format!("/signin/other/callback?{query}")).await.refuses(400);
    assert!(refused.starts_with("This sign-in was begun in another browser"), "{refused}");
    assert_eq!(other.take_requests(), [""; 0], "the code went nowhere");
    assert_eq!(browser.user().await, None);
}

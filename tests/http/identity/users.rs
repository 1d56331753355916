//! Users, organizations and memberships, as the operator manages them.

use std::time::Duration;

use statewright_shared::cache::REMEMBERED_FOR;
use statewright_shared::domain::names::{Login, OrgName, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::layout::{User, delete};
use statewright_shared::ports::{Expect, Item, Order, Query};
use statewright_shared::services::identity::{bootstrap, directory, orgs, tokens, users};
use statewright_tests::app::{ORG, TestApp, USER};

use crate::world::Stack;

fn login(text: &str) -> Login {
    Login::parse(text).unwrap()
}

fn org(text: &str) -> OrgName {
    OrgName::parse(text).unwrap()
}

async fn token(app: &TestApp, user: &str, name: &str) -> String {
    let name = TokenName::parse(name).unwrap();
    tokens::create_token(&app.context, &login(user), &name, None).await.unwrap()
}

fn past_memory(app: &TestApp) {
    app.advance(REMEMBERED_FOR + Duration::from_secs(1));
}

/// The stored contents of the directory.
async fn entries(app: &TestApp) -> Vec<Item> {
    let query = Query {
        partition: "DIRECTORY".to_owned(),
        prefix: String::new(),
        after: None,
        order: Order::Ascending,
        limit: 100,
    };
    app.context.ledger.query(&query).await.unwrap().items
}

async fn listed(app: &TestApp) -> (Vec<String>, Vec<String>) {
    let users = users::list(&app.context).await.unwrap();
    let orgs = directory::orgs(&app.context).await.unwrap();
    (
        users.iter().map(|user| user.login.to_string()).collect(),
        orgs.iter().map(|(org, _)| org.to_string()).collect(),
    )
}

#[tokio::test]
async fn a_deleted_users_tokens_end_and_do_not_serve_a_namesake() {
    let app = TestApp::memory().await;
    users::create(&app.context, &login("bob"), &[org(ORG)], Role::Member).await.unwrap();
    let laptop = token(&app, "bob", "laptop").await;
    for number in 0..120 {
        token(&app, "bob", &format!("ci-{number}")).await;
    }
    let other = app.another_process("other").await;
    for process in [&app, &other] {
        process.get("/api/user").token(&laptop).send().await.expect(200);
    }

    let removed = users::remove(&app.context, &login("bob")).await.unwrap();
    assert_eq!((removed.tokens, removed.orgs), (121, vec![org(ORG)]));
    app.get("/api/user").token(&laptop).send().await.refused(401);
    past_memory(&app);
    other.get("/api/user").token(&laptop).send().await.refused(401);
    let again = users::remove(&app.context, &login("bob")).await.unwrap_err();
    assert_eq!(again.to_string(), "user bob not found: check the name");
    let name = TokenName::parse("late").unwrap();
    tokens::create_token(&app.context, &login("bob"), &name, None).await.unwrap_err();

    users::create(&app.context, &login("bob"), &[org(ORG)], Role::Member).await.unwrap();
    app.get("/api/user").token(&laptop).send().await.refused(401);
    assert!(tokens::list_all(&app.context, &tokens::Owner::User(login("bob"))).await.unwrap().is_empty());
    // All names are free again.
    let laptop = token(&app, "bob", "laptop").await;
    app.get("/api/user").token(&laptop).send().await.expect(200);
}

/// A deletion that ended after its first step leaves tokens without an owner.
#[tokio::test]
async fn leftover_tokens_do_not_serve_a_new_user_of_the_name() {
    let app = TestApp::memory().await;
    users::create(&app.context, &login("bob"), &[], Role::Member).await.unwrap();
    let laptop = token(&app, "bob", "laptop").await;
    app.context.ledger.commit(vec![delete(User::key(&login("bob")), Expect::Any)]).await.unwrap();
    app.get("/api/user").token(&laptop).send().await.refused(401);
    users::create(&app.context, &login("bob"), &[org(ORG)], Role::Member).await.unwrap();
    app.get("/api/user").token(&laptop).send().await.refused(401);
}

#[tokio::test]
async fn a_member_sees_what_does_not_exist_for_others() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    users::create(&app.context, &login("bob"), &[], Role::Member).await.unwrap();
    let bob = token(&app, "bob", "laptop").await;
    let ask = async |status: u16| app.get(&stack.path).token(&bob).send().await.expect(status);
    let missing = app.get("/api/stacks/nowhere/none/dev").token(&bob).send().await.refused(404);
    let walled = ask(404).await["message"].as_str().unwrap().to_owned();
    assert_eq!(walled.replace(&format!("{ORG}/{}", stack.project), "nowhere/none"), missing);

    assert!(orgs::add_member(&app.context, &org(ORG), &login("bob"), Role::Member).await.unwrap().changed);
    assert!(!orgs::add_member(&app.context, &org(ORG), &login("bob"), Role::Member).await.unwrap().changed);
    past_memory(&app);
    ask(200).await;
    let members = orgs::members(&app.context, &org(ORG)).await.unwrap();
    let members: Vec<_> = members.iter().map(|(login, _)| login.as_str()).collect();
    assert_eq!(members, [USER, "bob"]);

    assert!(orgs::remove_member(&app.context, &org(ORG), &login("bob")).await.unwrap());
    assert!(!orgs::remove_member(&app.context, &org(ORG), &login("bob")).await.unwrap());
    past_memory(&app);
    ask(404).await;
}

#[tokio::test]
async fn existing_and_missing_things_are_refused_by_name() {
    let app = TestApp::memory().await;
    let ctx = &app.context;
    let words = |error: statewright_shared::services::Error| error.to_string();
    orgs::create(ctx, &org("beta"), &[login(USER)]).await.unwrap();
    let refused = words(orgs::create(ctx, &org("beta"), &[]).await.unwrap_err());
    assert_eq!(refused, "organization beta already exists: choose another name");
    let refused = words(orgs::create(ctx, &org("gamma"), &[login("nobody")]).await.unwrap_err());
    assert_eq!(refused, "user nobody not found: check the name");
    let refused = words(users::create(ctx, &login(USER), &[], Role::Member).await.unwrap_err());
    assert_eq!(
        refused,
        "user alice already exists: choose another name, or add this user to an organization as a member"
    );
    let refused = words(users::create(ctx, &login("bob"), &[org("gamma")], Role::Member).await.unwrap_err());
    assert_eq!(refused, "organization gamma not found: check its name, and that your user is a member");
    let refused = words(users::create(ctx, &login("operator"), &[], Role::Member).await.unwrap_err());
    assert!(refused.contains("choose another name"), "{refused}");
    // A refused command changed nothing.
    assert_eq!(listed(&app).await, (vec![USER.to_owned()], vec![ORG.to_owned(), "beta".to_owned()]));
}

#[tokio::test]
async fn a_store_from_before_the_directory_lists_its_users() {
    let app = TestApp::memory().await;
    app.member("bob", "laptop").await;
    app.member_of(&["beta", "gamma"], "carol", "laptop").await;
    orgs::add_member(&app.context, &org("beta"), &login("bob"), Role::Member).await.unwrap();
    app.other_user("dora", "delta").await;
    let before = entries(&app).await;
    assert_eq!(before.len(), 8);

    // As an earlier version left it.
    let writes = before.iter().map(|item| delete(item.key.clone(), Expect::Any)).collect();
    app.context.ledger.commit(writes).await.unwrap();
    assert_eq!(bootstrap::bootstrap(&app.context, &login(USER), &org(ORG)).await.unwrap().map(|_| ()), None);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert_eq!(listed(&app).await, (names(&["alice", "bob", "carol"]), names(&["acme", "beta", "gamma"])));

    // An unrelated organization is listed once it is named.
    let operator = directory::operator(&app.context, Some(&org("delta"))).await.unwrap();
    assert_eq!(operator.user.orgs.len(), 4);
    let same =
        |items: &[Item]| items.iter().map(|item| (item.key.clone(), item.value.clone())).collect::<Vec<_>>();
    assert_eq!(same(&entries(&app).await), same(&before));
}

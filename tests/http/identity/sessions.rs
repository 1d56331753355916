//! Sessions of browsers by the API: a person's own, and those of members.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::domain::names::{Login, OrgName, ProviderName, TokenName};
use statewright_shared::domain::role::Role;
use statewright_shared::layout::SignedInBy;
use statewright_shared::services::identity::sessions::{self, SESSION_MAX};
use statewright_shared::services::identity::tokens::{self, NewToken, Owner};
use statewright_tests::app::{Answer, ORG, TestApp, USER};

const OWN: &str = "/api/user/sessions";

fn login(text: &str) -> Login {
    Login::parse(text).unwrap()
}

fn of_member(user: &str) -> String {
    format!("/api/orgs/{ORG}/members/{user}/sessions")
}

/// The cookie of a new session.
async fn begin(app: &TestApp, user: &str, by: SignedInBy, browser: &str) -> String {
    sessions::begin(&app.context, &login(user), by, browser).await.unwrap().cookie
}

async fn is_signed_in(app: &TestApp, cookie: &str) -> bool {
    sessions::authenticate(&app.context, cookie).await.is_ok()
}

async fn listed(app: &TestApp, path: &str, token: &str) -> Vec<Value> {
    let list = app.get(path).token(token).send().await.expect(200);
    list["sessions"].as_array().unwrap().clone()
}

async fn end(app: &TestApp, path: &str, token: &str) -> Answer {
    app.request(Method::DELETE, path).token(token).send().await
}

#[tokio::test]
async fn a_person_lists_and_ends_sessions_with_a_token() {
    let app = TestApp::memory().await;
    let bob = app.member("bob", "laptop").await;
    let corp = SignedInBy::Provider(ProviderName::parse("corp").unwrap());
    let lost = begin(&app, "bob", corp, "Firefox/140.0").await;
    let signed_in = app.context.now();
    app.advance(Duration::from_secs(1));
    let kept = begin(&app, "bob", SignedInBy::Password, "Safari").await;
    let all = listed(&app, OWN, &bob).await;
    assert_eq!(all.len(), 2);
    assert_eq!((&all[0]["browser"], &all[0]["by"]), (&json!("Safari"), &json!("password")), "newest first");
    let id = all[1]["id"].as_str().unwrap();
    let expected = json!({
        "id": id, "signedIn": signed_in.to_rfc3339(), "until": signed_in.plus(SESSION_MAX).to_rfc3339(),
        "by": "provider", "provider": "corp", "browser": "Firefox/140.0",
    });
    assert_eq!(all[1], expected);
    assert!(!lost.contains(id) && !kept.contains(id), "the ID is not in a cookie");

    // Those of others are not there.
    let one = format!("{OWN}/{id}");
    assert_eq!(listed(&app, OWN, &app.token).await.len(), 0);
    for wrong in [id, "0123456789abcdef", "x", "%23"] {
        end(&app, &format!("{OWN}/{wrong}"), &app.token).await.refused(404);
    }
    // A session allows more than a token with a limit.
    let limit = |name: &str| NewToken::new(Owner::User(login("bob")), TokenName::parse(name).unwrap());
    let limited = [
        NewToken { may: Some(Role::Member), ..limit("with-role") },
        NewToken { org: OrgName::parse(ORG).ok(), ..limit("in-organization") },
    ];
    for new in limited {
        let limited = tokens::issue(&app.context, new).await.unwrap().secret;
        assert_eq!(listed(&app, OWN, &limited).await.len(), 2);
        let words = end(&app, &one, &limited).await.refused(403);
        assert!(words.contains("your token has limits"), "{words}");
    }
    let machine = json!({ "name": "ci" });
    let machine = app.post(&format!("/api/orgs/{ORG}/tokens"), &machine).send().await.expect(200);
    let machine = machine["tokenValue"].as_str().unwrap();
    app.get(OWN).token(machine).send().await.refused(403);
    end(&app, &one, machine).await.refused(403);

    assert!(is_signed_in(&app, &lost).await);
    end(&app, &one, &bob).await.expect(204);
    end(&app, &one, &bob).await.refused(404);
    assert_eq!((is_signed_in(&app, &lost).await, is_signed_in(&app, &kept).await), (false, true));
    app.advance(SESSION_MAX);
    assert_eq!(listed(&app, OWN, &bob).await.len(), 0, "the other one is over");
}

#[tokio::test]
async fn an_admin_ends_sessions_of_members_who_are_here_alone() {
    let app = TestApp::memory().await;
    app.member("ann", "laptop").await;
    let bob = app.member_of(&[ORG, "lab"], "bob", "laptop").await;
    let mate = app.member("mate", "laptop").await;
    let anns = [
        begin(&app, "ann", SignedInBy::Password, "a").await,
        begin(&app, "ann", SignedInBy::Password, "b").await,
    ];
    let bobs = begin(&app, "bob", SignedInBy::Invitation, "c").await;
    let (of_ann, of_bob) = (of_member("ann"), of_member("bob"));
    let all = listed(&app, &of_ann, &app.token).await;
    assert_eq!(all.len(), 2);
    let one = format!("{of_ann}/{}", all[0]["id"].as_str().unwrap());
    for path in [&of_ann, &of_bob, &one] {
        let method = if *path == one { Method::DELETE } else { Method::GET };
        app.request(method, path).token(&mate).send().await.refused(403);
        end(&app, path, &mate).await.refused(403);
    }
    // Another organization of the member has a say in these.
    let id = listed(&app, OWN, &bob).await[0]["id"].as_str().unwrap().to_owned();
    let ends = [end(&app, &of_bob, &app.token).await, end(&app, &format!("{of_bob}/{id}"), &app.token).await];
    for answer in [app.get(&of_bob).send().await].into_iter().chain(ends) {
        let body = answer.expect(403);
        assert_eq!(body["reason"], "role_too_low", "{body}");
        let words = "bob is also in another organization: only the operator sees and ends these sessions, with \
                     `statewright session revoke --user bob`";
        assert!(body["message"].as_str().unwrap().contains(words), "{body}");
    }
    assert!(is_signed_in(&app, &bobs).await);
    for stranger in ["nosuch", "mallory"] {
        if stranger == "mallory" {
            app.other_user(stranger, "evil").await;
        }
        let words = app.get(&of_member(stranger)).send().await.refused(404);
        assert!(words.contains(&format!("user {stranger} not found")), "{words}");
    }

    app.take_audit();
    end(&app, &one, &app.token).await.expect(204);
    end(&app, &one, &app.token).await.refused(404);
    assert_eq!(end(&app, &of_ann, &app.token).await.expect(200), json!({ "ended": 1 }));
    for cookie in &anns {
        assert!(!is_signed_in(&app, cookie).await);
    }
    for record in app.take_audit() {
        assert_eq!(
            (&record["action"], &record["detail"]),
            (&json!("session.end"), &json!("ann")),
            "{record}"
        );
        assert_eq!((&record["user"], &record["organization"]), (&json!(USER), &json!(ORG)), "{record}");
    }
}

//! An id is not a proof: the visible ids of another user's update, lock or session give no permission.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use statewright_shared::api::routes::{Auth, ROUTES, Route};
use statewright_shared::domain::ids::UpdateId;
use statewright_shared::domain::names::{Login, OrgName, StackAddress, TokenName};
use statewright_shared::domain::role::{Right, Role};
use statewright_shared::domain::update::{LEASE, Update};
use statewright_shared::layout::{Stored, put};
use statewright_shared::ports::Expect;
use statewright_shared::services::identity::{orgs, passwords, tokens, users};
use statewright_shared::services::updates;
use statewright_tests::app::{Answer, ORG, TestApp};

use crate::api::routes::{STATE, path};
use crate::states::lifecycle::text;
use crate::world::{Run, Stack, begin_body, delta_body, deployment, program};

const HOUR: Duration = Duration::from_secs(3_600);

/// The text by which clients recognize a running update.
const IN_PROGRESS: &str = "Another update is currently in progress";

fn login(text: &str) -> Login {
    Login::parse(text).unwrap()
}

fn org() -> OrgName {
    OrgName::parse(ORG).unwrap()
}

fn verb(name: &str) -> Method {
    Method::from_bytes(name.as_bytes()).unwrap()
}

/// A token of this user with this name.
async fn token(app: &TestApp, user: &str, name: &str, may: Option<Role>, life: Option<Duration>) -> String {
    let name = TokenName::parse(name).unwrap();
    tokens::create_scoped_token(&app.context, &login(user), &name, may, life).await.unwrap()
}

async fn revoke(app: &TestApp, user: &str, name: &str) {
    tokens::revoke_token(&app.context, &login(user), &TokenName::parse(name).unwrap()).await.unwrap();
}

async fn record(app: &TestApp, run: &Run<'_>) -> Update {
    let id = UpdateId::parse(&run.id).unwrap();
    let item = app.context.ledger.get(&Update::key(id)).await.unwrap().unwrap();
    Stored::<Update>::read(&item).unwrap().value
}

async fn start(app: &TestApp, run: &Run<'_>, token: &str) -> Answer {
    app.post(&run.path, &json!({ "journalVersion": 2 })).token(token).send().await
}

/// The update with the token from the answer to a start.
fn again<'a>(run: &Run<'a>, answer: &Answer) -> Run<'a> {
    run.with_token(answer.expect(200)["token"].as_str().unwrap())
}

#[tokio::test]
async fn a_running_update_gives_its_token_to_its_user_alone() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    let others = [
        app.member_with_role(Role::Apply, "abe", "ci").await,
        app.member_with_role(Role::Member, "mia", "ci").await,
        app.member_with_role(Role::Admin, "ada", "ci").await,
    ];
    let run = stack.begun(stack.begin_call("update", false).token(&ann)).await;
    app.advance(Duration::from_secs(100));
    let before = record(&app, &run).await;
    for other in &others {
        // All users who see the stack see the id.
        let seen = stack.get("").token(other).send().await.expect(200);
        assert_eq!(seen["activeUpdate"], run.id);
        let answer = start(&app, &run, other).await;
        let words = answer.refused(409);
        assert!(words.contains(IN_PROGRESS) && words.contains("ann (token \"ci\")"), "{words}");
        assert!(!answer.text().contains("swu1"), "{words}");
    }
    // CI has a token for each job.
    let second = token(&app, "ann", "second", Some(Role::Apply), None).await;
    let third = again(&run, &start(&app, &run, &second).await);
    let now = Update { renewed_by: before.renewed_by.clone(), ..record(&app, &run).await };
    assert_eq!(now, before, "neither its owner nor its lease changes");
    third.append(&[stack.made(1, "a")]).await.expect(204);
    third.renew(300).await.expect(200);
    again(&run, &start(&app, &run, &ann).await).append(&[stack.made(2, "b")]).await.expect(204);
    let plan = token(&app, "ann", "plan", Some(Role::Plan), None).await;
    start(&app, &run, &plan).await.refused(403);
    app.take_audit();
    third.complete("succeeded").await.expect(204);
    let ended = app.take_audit().pop().unwrap();
    assert_eq!((&ended["user"], &ended["token"]), (&json!("ann"), &json!("second")), "{ended}");
    let latest = stack.get("/updates/latest").send().await.expect(200);
    assert_eq!(latest["requestedBy"]["githubLogin"], "ann");
    // The ended update gives the same answer to all users.
    for token in [&ann, &others[0]] {
        let words = start(&app, &run, token).await.refused(409);
        assert!(words.contains("ended as succeeded"), "{words}");
    }
}

#[tokio::test]
async fn an_update_that_does_not_run_yet_is_started_by_its_user() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    let abe = app.member_with_role(Role::Apply, "abe", "ci").await;
    let run = stack.created_by(stack.post("/update", &program(false)).token(&ann)).await;
    for other in [&abe, &app.token] {
        let words = start(&app, &run, other).await.refused(409);
        assert!(words.contains("ann (token \"ci\") created this update"), "{words}");
        assert!(!words.contains(IN_PROGRESS), "nothing runs: {words}");
    }
    let second = token(&app, "ann", "second", None, None).await;
    let run = again(&run, &start(&app, &run, &second).await);
    assert_eq!(record(&app, &run).await.requester.token.as_str(), "ci");
    run.complete("succeeded").await.expect(204);

    // For previews, a token with the role `plan` is enough.
    let pat = app.member_with_role(Role::Plan, "pat", "ci").await;
    let peg = app.member_with_role(Role::Plan, "peg", "ci").await;
    let preview = stack.begun(stack.begin_call("update", true).token(&pat)).await;
    for other in [&peg, &abe, &app.token] {
        let words = start(&app, &preview, other).await.refused(409);
        assert!(words.contains("pat (token \"ci\") created this preview"), "{words}");
    }
    let second = token(&app, "pat", "second", Some(Role::Plan), None).await;
    again(&preview, &start(&app, &preview, &second).await).event(1).await.expect(204);
}

/// What is revoked from the user who runs an update, and a part of the client's next answer.
#[derive(Debug, Clone, Copy)]
enum Taken {
    Token,
    TokenOfThisName,
    Role,
    Membership,
    User,
    UserOfThisName,
}

const TAKEN: [(Taken, &str); 6] = [
    (Taken::Token, "the token \"ci\" of ann was revoked"),
    (Taken::TokenOfThisName, "the token \"ci\" of ann was revoked"),
    (Taken::Role, "needs the role"),
    (Taken::Membership, "ann is no longer a member of acme"),
    (Taken::User, "the user ann was removed"),
    (Taken::UserOfThisName, "the user ann was removed"),
];

async fn take_away(app: &TestApp, taken: Taken) {
    let (ctx, ann) = (&app.context, login("ann"));
    match taken {
        Taken::Token => revoke(app, "ann", "ci").await,
        Taken::TokenOfThisName => {
            revoke(app, "ann", "ci").await;
            app.advance(Duration::from_secs(1));
            token(app, "ann", "ci", None, None).await;
        }
        Taken::Role => drop(orgs::set_role(ctx, &org(), &ann, Role::Outputs).await.unwrap()),
        Taken::Membership => drop(orgs::remove_member(ctx, &org(), &ann).await.unwrap()),
        Taken::User => drop(users::remove(ctx, &ann).await.unwrap()),
        Taken::UserOfThisName => {
            users::remove(ctx, &ann).await.unwrap();
            app.advance(Duration::from_secs(1));
            app.member("ann", "ci").await;
        }
    }
}

#[tokio::test]
async fn revoked_permissions_end_with_the_lease() {
    for (taken, message) in TAKEN {
        for dry_run in [false, true] {
            let app = TestApp::memory().await;
            let stack = Stack::new(&app).await;
            let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
            let run = stack.begun(stack.begin_call("update", dry_run).token(&ann)).await;
            run.renew(300).await.expect(200);
            take_away(&app, taken).await;
            let words = run.renew(300).await.refused(403);
            assert!(words.contains(message), "{taken:?}: {words}");
            // Until the lease ends, the client can save, so that no created resource is lost.
            if !dry_run {
                run.append(&[stack.made(1, "a")]).await.expect(204);
            }
            run.event(1).await.expect(204);
            app.advance(LEASE + Duration::from_secs(1));
            run.event(2).await.refused(403);
            run.append(&[stack.made(2, "b")]).await.refused(403);
            if !dry_run {
                assert_eq!(stack.resources().await, ["a"], "{taken:?}");
                assert_eq!(stack.history().await[0]["result"], "failed");
            }
        }
    }
}

/// The update needs the token that it was created with, and the client that continues needs its own.
#[tokio::test]
async fn of_two_tokens_each_is_needed_for_a_renewal() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    let second = token(&app, "ann", "second", None, None).await;
    let run = stack.begun(stack.begin_call("update", false).token(&ann)).await;
    let other = again(&run, &start(&app, &run, &second).await);
    other.renew(300).await.expect(200);
    revoke(&app, "ann", "second").await;
    let words = other.renew(300).await.refused(403);
    assert!(words.contains("the token \"second\" of ann was revoked"), "{words}");
    run.renew(300).await.expect(200);
    let third = token(&app, "ann", "third", None, None).await;
    let other = again(&run, &start(&app, &run, &third).await);
    revoke(&app, "ann", "ci").await;
    let words = other.renew(300).await.refused(403);
    assert!(words.contains("the token \"ci\" of ann was revoked"), "{words}");
}

/// Tokens of an older server do not name their user: the record of the update has the creator.
#[tokio::test]
async fn a_token_of_an_older_program_is_renewed_by_the_same_rights() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    let run = stack.begun(stack.begin_call("update", false).token(&ann)).await;
    let old = begun_by_an_older_program(&app, &stack, &run).await;
    old.append(&[stack.made(1, "a")]).await.expect(204);
    // Also a token that is issued again.
    let renewed = again(&run, &old.renew(300).await);
    again(&run, &start(&app, &run, &ann).await).renew(300).await.expect(200);
    old.renew(300).await.expect(200);
    revoke(&app, "ann", "ci").await;
    let words = renewed.renew(300).await.refused(403);
    assert!(words.contains("the token \"ci\" of ann was revoked"), "{words}");
}

/// The update as an older program would have begun it, with the token that it issued.
async fn begun_by_an_older_program<'a>(app: &TestApp, stack: &Stack<'_>, run: &Run<'a>) -> Run<'a> {
    let id = UpdateId::parse(&run.id).unwrap();
    let update = Update { renewed_by: Vec::new(), user_made: None, ..record(app, run).await };
    let write = put(Update::key(id), Expect::Any, app.context.ids.revision(), &update);
    app.context.ledger.commit(vec![write]).await.unwrap();
    run.with_token(&forged(app, stack, run).await)
}

/// A token for an update, signed by an attacker with a copy of the key.
async fn forged(app: &TestApp, stack: &Stack<'_>, run: &Run<'_>) -> String {
    let (id, update) = (UpdateId::parse(&run.id).unwrap(), record(app, run).await);
    let address = StackAddress::parse(ORG, &stack.project, "dev").unwrap();
    let expires = app.context.now().plus(LEASE);
    updates::tokens::issue(&app.context, id, &update, &address, expires, None, None).await.unwrap()
}

/// Also before a key rotation: a token signed elsewhere ends with the lease that it claims.
#[tokio::test]
async fn a_token_that_was_not_given_out_is_not_renewed() {
    let app = TestApp::memory().await;
    for dry_run in [false, true] {
        let stack = Stack::new(&app).await;
        let run = stack.begin_kind("update", dry_run).await;
        let forged = run.with_token(&forged(&app, &stack, &run).await);
        forged.event(1).await.expect(204);
        let words = forged.renew(300).await.refused(403);
        assert!(words.contains("this server did not issue it"), "{words}");
        // Nor with the secret of another update.
        let other = Stack::new(&app).await.begin().await;
        let words = run.with_token(&other.token).renew(300).await.refused(403);
        assert!(words.contains("not valid for this update"), "{words}");
        // Each of ours is valid, including the one before a lost answer.
        let renewed = again(&run, &run.renew(300).await);
        run.renew(300).await.expect(200);
        renewed.renew(300).await.expect(200);
    }
}

/// An update that an older program began has no secret: a key rotation ends it.
#[tokio::test]
async fn an_unbound_update_is_not_renewed_once_another_key_signs() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let run = stack.begin().await;
    let old = begun_by_an_older_program(&app, &stack, &run).await;
    updates::tokens::renew_signer(&app.context).await.unwrap();
    app.advance(Duration::from_secs(61));
    old.append(&[stack.made(1, "a")]).await.expect(204);
    let words = old.renew(300).await.refused(403);
    assert!(words.contains("its signing key was replaced"), "{words}");
}

/// A user who is deleted and created again under the same login is another user.
#[tokio::test]
async fn a_later_user_of_a_login_has_nothing_of_the_former() {
    let app = TestApp::memory().await;
    state(&app).await;
    let stack = Stack::new(&app).await;
    let bob = app.member_with_role(Role::Apply, "bob", "ci").await;
    let run = stack.begun(stack.begin_call("update", false).token(&bob)).await;
    let waiting = stack.created_by(stack.post("/update", &program(true)).token(&bob)).await;
    take(&app, &bob, "run", "OperationTypeApply").await.expect(200);
    let open = format!("/api/esc/environments/{ORG}/yaml/open");
    let opened = app.post(&open, &json!({ "values": {} })).token(&bob).send().await.expect(200);
    let look = format!("{open}/{}", opened["id"].as_str().unwrap());
    app.get(&look).token(&bob).send().await.expect(200);
    users::remove(&app.context, &login("bob")).await.unwrap();
    app.advance(Duration::from_millis(1));
    let later = app.member_with_role(Role::Apply, "bob", "ci").await;
    start(&app, &run, &later).await.refused(409);
    start(&app, &waiting, &later).await.refused(409);
    app.post(&format!("{}/cancel", run.path), &Value::Null).token(&later).send().await.refused(403);
    take(&app, &later, "run", "OperationTypeApply").await.refused(423);
    write(&app, &later, "POST", "run", 2).await.refused(423);
    let words = give(&app, &later, "run").await.refused(403);
    assert!(words.contains("the lock of another user"), "{words}");
    app.get(&look).token(&later).send().await.refused(404);
    let words = run.renew(300).await.refused(403);
    assert!(words.contains("the user bob was removed"), "{words}");
    assert_eq!(serial(&app).await, 1);
}

/// Ending one's own update or lock with a token of a lower role.
#[tokio::test]
async fn a_refusal_names_the_token_with_the_lower_role() {
    let app = TestApp::memory().await;
    state(&app).await;
    let stack = Stack::new(&app).await;
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    let plan = token(&app, "ann", "plan", Some(Role::Plan), None).await;
    let run = stack.begun(stack.begin_call("update", false).token(&ann)).await;
    take(&app, &ann, "run", "OperationTypeApply").await.expect(200);
    let cancel = app.post(&format!("{}/cancel", run.path), &Value::Null).token(&plan).send().await;
    let unlock = give(&app, &plan, "run").await;
    for (answer, what) in [(cancel, "canceling your update"), (unlock, "releasing your lock")] {
        let words = answer.refused(403);
        let message = ", and the token \"plan\" of ann allows at most plan";
        let start = format!("{what} needs the role apply in {ORG}/");
        assert!(words.contains(&start) && words.contains(message), "{words}");
    }
}

#[tokio::test]
async fn a_member_who_may_only_plan_can_preview() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    let run = stack.begun(stack.begin_call("update", false).token(&ann)).await;
    let preview = stack.begun(stack.begin_call("update", true).token(&ann)).await;
    orgs::set_role(&app.context, &org(), &login("ann"), Role::Plan).await.unwrap();
    run.renew(300).await.refused(403);
    preview.renew(300).await.expect(200);
}

/// An `up` that began in time may finish: half of its work would be worse. A revoked token does not allow that.
#[tokio::test]
async fn an_expired_token_may_finish_what_it_began() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    app.member_with_role(Role::Apply, "ann", "laptop").await;
    let short = token(&app, "ann", "short", None, Some(HOUR)).await;
    let run = stack.begun(stack.begin_call("update", false).token(&short)).await;
    let mut at = Duration::ZERO;
    while at < 25 * HOUR - Duration::from_secs(250) {
        run.renew(300).await.expect(200);
        app.advance(Duration::from_secs(250));
        at += Duration::from_secs(250);
    }
    stack.get("").token(&short).send().await.refused(401);
    run.renew(300).await.expect(200);
    app.advance(Duration::from_secs(250));
    let words = run.renew(300).await.refused(403);
    assert!(words.contains("the token \"short\" of ann has expired"), "{words}");
    let other = token(&app, "ann", "other", None, Some(HOUR)).await;
    app.advance(Duration::from_secs(60));
    let run = stack.begun(stack.begin_call("update", false).token(&other)).await;
    app.advance(LEASE);
    revoke(&app, "ann", "other").await;
    run.renew(300).await.refused(403);
}

#[tokio::test]
async fn a_preview_ends_with_its_stack() {
    let app = TestApp::memory().await;
    for taken_again in [false, true] {
        let stack = Stack::new(&app).await;
        let preview = stack.preview().await;
        app.request(Method::DELETE, &format!("{}?force=true", stack.path)).send().await.expect(204);
        if taken_again {
            Stack::in_project(&app, &stack.project).await;
        }
        let words = preview.renew(300).await.refused(403);
        assert!(words.contains("was deleted"), "{words}");
    }
    // A renamed stack continues, unless its former name belongs to another stack.
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let preview = stack.preview().await;
    stack.post("/rename", &json!({ "newName": "prod" })).send().await.expect(200);
    preview.renew(300).await.expect(200);
    Stack::in_project(&app, &stack.project).await;
    let words = preview.renew(300).await.refused(403);
    assert!(words.contains("another stack has the name"), "{words}");
}

/// The state that rows name by its id, with a version.
async fn state(app: &TestApp) {
    let state = json!({ "id": STATE, "project": "net" });
    app.post(&format!("/api/orgs/{ORG}/tfstates"), &state).send().await.expect(200);
    app.post(&format!("/tfstate/{STATE}"), &text(1, &["a"])).send().await.expect(200);
}

fn info(id: &str, operation: &str) -> Value {
    json!({ "ID": id, "Operation": operation, "Who": "ci", "Created": "2026-01-02T03:04:05Z" })
}

async fn take(app: &TestApp, token: &str, id: &str, operation: &str) -> Answer {
    let call = app.request(verb("LOCK"), &format!("/tfstate/{STATE}")).token(token);
    call.json(&info(id, operation)).send().await
}

async fn give(app: &TestApp, token: &str, id: &str) -> Answer {
    let call = app.request(verb("UNLOCK"), &format!("/tfstate/{STATE}")).token(token);
    call.json(&info(id, "")).send().await
}

async fn write(app: &TestApp, token: &str, method: &str, id: &str, serial: u64) -> Answer {
    let call = app.request(verb(method), &format!("/tfstate/{STATE}?ID={id}")).token(token);
    call.json(&text(serial, &["a", method])).send().await
}

async fn refused_writes(app: &TestApp) -> Vec<Value> {
    let found = app.get(&format!("/api/tfstates/{STATE}/rejected")).send().await.expect(200);
    found["rejected"].as_array().unwrap().clone()
}

async fn serial(app: &TestApp) -> Value {
    app.get(&format!("/tfstate/{STATE}")).send().await.expect(200)["serial"].clone()
}

#[tokio::test]
async fn nothing_is_written_under_another_users_lock() {
    let app = TestApp::memory().await;
    state(&app).await;
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    let abe = app.member_with_role(Role::Apply, "abe", "ci").await;
    let mia = app.member("mia", "ci").await;
    take(&app, &ann, "run", "OperationTypeApply").await.expect(200);
    let mut serial_of_next = 2;
    for other in [&abe, &mia, &app.token] {
        // Every refusal shows its ID.
        let id = take(&app, other, "mine", "OperationTypeApply").await.expect(423)["ID"].clone();
        assert_eq!(id, "run");
        take(&app, other, "run", "OperationTypeApply").await.refused(423);
        for method in ["POST", "PUT", "PATCH"] {
            let answer = write(&app, other, method, "run", serial_of_next).await;
            let words = answer.refused(423);
            assert!(words.contains("of ann"), "{words}");
            assert_eq!(answer.value()["ID"], "run");
            serial_of_next += 1;
        }
    }
    let refused = refused_writes(&app).await;
    assert_eq!(refused.len(), 9);
    for one in &refused {
        assert_eq!((&one["why"], &one["lock"]), (&json!("locked"), &json!("run")), "{one}");
        assert_ne!(one["by"], "ann");
    }
    assert_eq!(serial(&app).await, 1);
    // The lock stays with its holder, and the refused write is kept.
    write(&app, &ann, "POST", "run", 2).await.expect(200);
    give(&app, &ann, "run").await.expect(200);
    let id = refused[0]["id"].as_str().unwrap();
    let restore = format!("/api/tfstates/{STATE}/versions/{id}/restore");
    app.post(&restore, &Value::Null).token(&mia).send().await.expect(200);
}

#[tokio::test]
async fn of_one_user_each_credential_that_may_take_the_lock_holds_it() {
    let app = TestApp::memory().await;
    state(&app).await;
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    passwords::set(&app.context, &login("ann"), "correct horse battery").await.unwrap();
    let second = token(&app, "ann", "second", Some(Role::Apply), None).await;
    let plan = token(&app, "ann", "plan", Some(Role::Plan), None).await;
    take(&app, &ann, "run", "OperationTypeApply").await.expect(200);
    take(&app, &second, "run", "OperationTypeApply").await.expect(200);
    write(&app, &second, "POST", "run", 2).await.expect(200);
    let with_password = app.request(verb("POST"), &format!("/tfstate/{STATE}?ID=run")).anonymous();
    let basic = "Basic YW5uOmNvcnJlY3QgaG9yc2UgYmF0dGVyeQ==";
    let call = with_password.header("Authorization", basic).json(&text(3, &["a"]));
    call.send().await.expect(200);
    // A lock with the role `plan` is refused, whatever operation it claims.
    take(&app, &plan, "run", "OperationTypePlan").await.refused(423);
    write(&app, &plan, "POST", "run", 9).await.refused(403);
    give(&app, &second, "run").await.expect(200);
    // Several users can hold a lock for a plan.
    take(&app, &ann, "look", "OperationTypePlan").await.expect(200);
    take(&app, &plan, "look", "OperationTypePlan").await.expect(200);
    give(&app, &plan, "look").await.expect(200);
}

#[tokio::test]
async fn a_lock_by_hand_is_written_under_by_its_member_alone() {
    let app = TestApp::memory().await;
    state(&app).await;
    let mia = app.member("mia", "laptop").await;
    let moe = app.member("moe", "laptop").await;
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    let by_hand = format!("/api/tfstates/{STATE}/lock");
    let lock = app.post(&by_hand, &json!({ "reason": "maintenance" })).token(&mia).send().await.expect(200);
    let id = lock["ID"].as_str().unwrap();
    let scoped = token(&app, "mia", "scoped", Some(Role::Apply), None).await;
    for other in [&ann, &moe, &scoped] {
        write(&app, other, "POST", id, 2).await.refused(423);
        take(&app, other, id, "OperationTypeApply").await.refused(423);
    }
    assert_eq!(serial(&app).await, 1);
    let second = token(&app, "mia", "second", None, None).await;
    write(&app, &second, "POST", id, 2).await.expect(200);
    assert_eq!(serial(&app).await, 2);
}

/// Any user may reuse an ID that ended: it is not the ended run.
#[tokio::test]
async fn a_run_does_not_write_under_an_id_that_others_took() {
    let app = TestApp::memory().await;
    state(&app).await;
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    let abe = app.member_with_role(Role::Apply, "abe", "ci").await;
    take(&app, &ann, "run", "OperationTypeApply").await.expect(200);
    give(&app, &app.token, "run").await.expect(200);
    take(&app, &abe, "run", "OperationTypeApply").await.expect(200);
    write(&app, &ann, "POST", "run", 2).await.refused(423);
    give(&app, &ann, "run").await.refused(403);
    write(&app, &abe, "POST", "run", 2).await.expect(200);
}

#[tokio::test]
async fn a_lock_for_a_plan_ends_by_itself_after_an_hour() {
    let app = TestApp::memory().await;
    state(&app).await;
    let pat = app.member_with_role(Role::Plan, "pat", "ci").await;
    let ann = app.member_with_role(Role::Apply, "ann", "ci").await;
    let expired = async || {
        let lock = app.get(&format!("/api/tfstates/{STATE}/lock")).send().await.expect(200);
        lock["expired"].clone()
    };
    let policy = async |policy: Value| {
        let edit = json!({ "policy": policy });
        app.patch(&format!("/api/tfstates/{STATE}"), &edit).send().await.expect(200);
    };
    take(&app, &pat, "leaked", "OperationTypePlan").await.expect(200);
    take(&app, &ann, "run", "OperationTypeApply").await.refused(423);
    app.advance(HOUR - Duration::from_secs(1));
    assert_eq!(expired().await, false);
    take(&app, &ann, "run", "OperationTypeApply").await.refused(423);
    app.advance(Duration::from_secs(1));
    assert_eq!(expired().await, true);
    take(&app, &ann, "run", "OperationTypeApply").await.expect(200);
    // A lock for a write does not expire, for any user.
    app.advance(100 * HOUR);
    take(&app, &pat, "again", "OperationTypePlan").await.refused(423);
    give(&app, &ann, "run").await.expect(200);
    // Its policy has another number, or none.
    take(&app, &pat, "leaked", "OperationTypePlan").await.expect(200);
    policy(json!({ "planLockExpiresAfterSeconds": 60 })).await;
    app.advance(Duration::from_secs(60));
    assert_eq!(expired().await, true);
    policy(json!({ "planLockExpiresAfterSeconds": 0 })).await;
    app.advance(100 * HOUR);
    assert_eq!(expired().await, false);
    take(&app, &ann, "run", "OperationTypeApply").await.refused(423);
}

/// Whether a row is about a user's update, lock or session: such a row must be in [`second`].
fn is_of_somebody(route: &Route) -> bool {
    let is_of = |part: &str| route.path.contains(part);
    is_of("{update}") || is_of("{session}") || route.path.ends_with("/lock") || route.auth == Auth::Run
}

/// The answer on this row for a second user of the same role about the first user's update, lock or session,
/// with the second user's credentials and update token.
fn second(route: &Route) -> u16 {
    let tail = route.path.rsplit_once('}').map_or("", |(_, tail)| tail);
    match (route.method.as_str(), route.auth) {
        // Reading depends on the role alone.
        ("GET", _) if !route.path.contains("{session}") => 200,
        ("GET" | "POST", _) if route.path.contains("{session}") => 404,
        (_, Auth::UpdateToken) => 403,
        ("POST", Auth::Run | Auth::State) => 423,
        ("DELETE", Auth::Run) => 403,
        ("POST", Auth::Token) if tail == "/cancel" => 403,
        ("POST", Auth::Token) if tail == "/lock" => 423,
        ("POST", Auth::Token) if route.path.ends_with("{update}") => 409,
        ("DELETE", Auth::Token) if tail == "/lock" => 403,
        _ => panic!("{route:?} is about a user's update, lock or session: add the answer for a second user"),
    }
}

/// A valid body for this row.
fn body(route: &Route, stack: &Stack<'_>) -> Option<Value> {
    let tail = route.path.rsplit_once("{update}").map(|(_, tail)| tail);
    let is_protocol = route.path.starts_with("/tfstate/");
    Some(match tail {
        Some("") if route.method == Method::POST => json!({ "journalVersion": 2 }),
        Some("/renew_lease") => json!({ "token": "", "duration": 300 }),
        Some("/complete") => json!({ "status": "succeeded" }),
        Some("/journalentries") => json!({ "entries": [stack.made(1, "theirs")] }),
        Some("/checkpoint") => deployment(&[stack.resource("theirs")]),
        Some("/checkpointverbatim") => {
            let state = deployment(&[stack.resource("theirs")]);
            json!({ "version": 3, "untypedDeployment": state, "sequenceNumber": 1 })
        }
        Some("/checkpointdelta") => delta_body(1, "", "x"),
        Some("/events/batch") => json!({ "events": [{ "sequence": 1, "timestamp": 1, "cancelEvent": {} }] }),
        Some("/events") if route.method == Method::POST => {
            json!({ "sequence": 1, "timestamp": 1, "cancelEvent": {} })
        }
        Some("/cancel") => json!({}),
        Some(_) => return None,
        None if !route.path.ends_with("/lock") => {
            return (route.method != Method::GET).then(|| text(9, &["theirs"]));
        }
        None if is_protocol => info("held", "OperationTypeApply"),
        None if route.method == Method::POST => json!({ "reason": "mine" }),
        None => return None,
    })
}

#[tokio::test]
async fn a_second_user_of_the_role_can_do_nothing_with_an_id() {
    let app = TestApp::memory().await;
    state(&app).await;
    let app = &app;
    let environments = format!("/api/esc/environments/{ORG}");
    let mut rows = 0;
    for route in ROUTES.iter().filter(|route| is_of_somebody(route)) {
        // Updates and locks that write need a higher role than the row that ends them.
        let role = match route.needs {
            None | Some(Right::Plan | Right::View) if !route.path.contains("{session}") => Role::Apply,
            needs => needs.map_or(Role::Apply, Right::role),
        };
        let row = rows.to_string();
        let first = app.member_with_role(role, &format!("first-{row}"), "ci").await;
        let second_one = app.member_with_role(role, &format!("second-{row}"), "ci").await;
        let stack = Stack::new(app).await;
        let mut begin = begin_body("update", false);
        // An update saves either entries or states.
        if route.path.contains("/checkpoint") {
            begin["journalVersion"] = Value::Null;
        }
        let mut here = path(route, &stack.project, "none");
        let theirs = match route.path.contains("{update}") {
            true => {
                let run = stack.begun(stack.post("/begin-update", &begin).token(&first)).await;
                here = path(route, &stack.project, &run.id);
                Some(run)
            }
            false => None,
        };
        if route.path.contains("{session}") {
            let name = json!({ "project": stack.project, "name": "dev" });
            app.post(&environments, &name).send().await.expect(204);
            let open = match route.path.contains("/yaml/") {
                true => app.post(&format!("{environments}/yaml/open"), &json!({ "values": {} })),
                false => app.post(&format!("{environments}/{}/dev/open", stack.project), &Value::Null),
            };
            let opened = open.token(&first).send().await.expect(200);
            here = here.replace(crate::api::routes::EDGE, opened["id"].as_str().unwrap());
            app.request(route.method.clone(), &here).token(&first).send().await.expect(200);
        }
        let is_of_state = theirs.is_none() && !route.path.contains("{session}");
        if is_of_state {
            here = here.replace(&format!("{}/default", stack.project), "net/default");
            here = here.replace(&format!("/{ORG}/{}", stack.project), &format!("/{ORG}/net"));
            take(app, &first, "held", "OperationTypeApply").await.expect(200);
            if route.auth == Auth::Run && route.method == Method::POST {
                here.push_str("?ID=held");
            }
        }
        let before = serial(app).await;
        let shown = match route.auth {
            Auth::UpdateToken => {
                let own = Stack::new(app).await;
                let run = own.begun(own.post("/begin-update", &begin).token(&second_one)).await;
                app.request(route.method.clone(), &here).update_token(&run.token)
            }
            _ => app.request(route.method.clone(), &here).token(&second_one),
        };
        let call = match body(route, &stack) {
            Some(body) => shown.json(&body),
            None => shown,
        };
        let answer = call.send().await;
        assert_eq!(answer.status.as_u16(), second(route), "{route:?}: {}", answer.text());
        assert!(!answer.text().contains("swu1"), "{route:?} gives an update token: {}", answer.text());
        // And nothing has changed.
        if let Some(run) = theirs {
            assert_eq!(run.status().await, "running", "{route:?}");
            run.complete("succeeded").await.expect(204);
            assert_eq!(stack.resources().await, [""; 0], "{route:?}");
        }
        if is_of_state {
            let lock = app.get(&format!("/api/tfstates/{STATE}/lock")).send().await.expect(200);
            assert_eq!(lock["ID"], "held", "{route:?}");
            assert_eq!(serial(app).await, before, "{route:?}");
            give(app, &first, "held").await.expect(200);
        }
        rows += 1;
    }
    assert!(rows > 20, "{rows}");
}

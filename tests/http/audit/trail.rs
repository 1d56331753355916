//! The audit trail in the store: what has a record, who reads it, and what `check` finds.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use statewright_shared::adapters::{Fault, Faults, Faulty, MemoryBlobs, MemoryKeys, MemoryLedger, SeededIds};
use statewright_shared::domain::names::{Login, OrgName};
use statewright_shared::domain::role::Role;
use statewright_shared::domain::update::PUBLISHER_HEAD_START;
use statewright_shared::layout::{AuditDay, AuditErased, AuditRecord, AuditRoot, Record, delete, put_bytes};
use statewright_shared::ports::{BlobKey, Blobs, Expect, Ids, Inventory, Item, Ledger, Order};
use statewright_shared::services::audit;
use statewright_shared::services::audit::About;
use statewright_shared::services::maintenance::check;
use statewright_tests::app::{Answer, ORG, START, TestApp};
use statewright_tests::aws::StandIn;

use crate::states::lifecycle::text;
use crate::world::{Run, Stack};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A server whose store the test can open.
struct World {
    app: TestApp,
    ledger: Arc<dyn Ledger>,
    blobs: Arc<dyn Blobs>,
    inventory: Box<dyn Inventory>,
}

impl World {
    async fn new() -> Self {
        let (ledger, blobs) = (MemoryLedger::new(), MemoryBlobs::new());
        let ids: Arc<dyn Ids> = Arc::new(SeededIds::new(1));
        let keys = MemoryKeys::new(Arc::clone(&ids));
        let app =
            TestApp::memory_with(Arc::new(ledger.clone()), Arc::new(blobs.clone()), Arc::new(keys), ids)
                .await;
        Self::of(app, Box::new((ledger, blobs)))
    }

    /// The same on a table and a bucket.
    async fn on_aws() -> Self {
        let stand_in = StandIn::of_this_process();
        let (store, names) = stand_in.fresh_store().await;
        let app = TestApp::aws_long_ago(&stand_in.url, &names).await;
        Self::of(app, Box::new(store))
    }

    fn of(app: TestApp, inventory: Box<dyn Inventory>) -> Self {
        let (ledger, blobs) = (Arc::clone(&app.context.ledger), Arc::clone(&app.context.blobs));
        Self { app, ledger, blobs, inventory }
    }

    async fn problems(&self) -> Vec<String> {
        check::store(&self.app.context, &*self.inventory).await.unwrap()
    }

    /// The stored records of the organization, oldest first.
    async fn items(&self) -> Vec<Item> {
        let org = OrgName::parse(ORG).unwrap();
        let query = AuditRecord::of_trail(Some(&org)).query(None, Order::Ascending, 1_000);
        self.ledger.query(&query).await.unwrap().items
    }

    async fn write(&self, item: &Item, record: &AuditRecord) {
        let revision = self.app.context.ids.revision();
        let write = put_bytes(item.key.clone(), Expect::Any, revision, record.encode());
        self.ledger.commit(vec![write]).await.unwrap();
    }

    async fn restore(&self, item: &Item) {
        self.write(item, &AuditRecord::decode(&item.value).unwrap()).await;
    }

    async fn remove(&self, item: &Item) {
        self.ledger.commit(vec![delete(item.key.clone(), Expect::Any)]).await.unwrap();
    }
}

/// The events of a query, oldest first, with the user, the event and the description.
async fn events(app: &TestApp, query: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let page = app.get(&format!("/api/orgs/{ORG}/auditlogs/v2?{query}{after}")).send().await.expect(200);
        all.extend(page["auditLogEvents"].as_array().unwrap().iter().map(summary));
        match page["continuationToken"].as_str() {
            Some(token) => after = format!("&continuationToken={token}"),
            None => break,
        }
    }
    all.reverse();
    all
}

fn summary(event: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    format!(
        "{} {} {}",
        word(&event["user"]["githubLogin"]),
        word(&event["event"]),
        word(&event["description"])
    )
}

#[tokio::test]
async fn the_trail_has_the_reason_of_a_cancel() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let cancel = async |run: &Run<'_>, body: &Value| {
        app.post(&format!("{}/update/{}/cancel", stack.path, run.id), body).send().await
    };
    let run = stack.begin().await;
    cancel(&run, &json!({ "reason": 7 })).await.refused(400);
    cancel(&run, &json!({ "reason": "the runner\nis gone" })).await.expect(204);
    cancel(&stack.begin().await, &json!({})).await.expect(204);
    cancel(&stack.begin().await, &json!({ "reason": "x".repeat(999) })).await.expect(204);
    cancel(&stack.preview().await, &json!({ "reason": "not needed" })).await.expect(204);
    cancel(&stack.preview().await, &Value::Null).await.expect(204);
    let all = events(&app, "").await;
    let ends: Vec<String> = all
        .into_iter()
        .filter(|line| line.contains("update.cancel") && !line.contains("(refused)"))
        .map(|line| line.replace(&stack.project, "web"))
        .collect();
    let begun = "alice update.cancel web/dev: begun by alice (first-start)".to_owned();
    assert_eq!(
        ends,
        [
            format!("{begun}; the runner is gone"),
            begun.clone(),
            format!("{begun}; {}", "x".repeat(200)),
            "alice update.cancel web/dev: not needed".to_owned(),
            "alice update.cancel web/dev".to_owned(),
        ]
    );
}

/// A server that a test lets die.
async fn mortal() -> (TestApp, Faults) {
    let (ids, faults): (Arc<dyn Ids>, _) = (Arc::new(SeededIds::new(1)), Faults::none());
    let app = TestApp::memory_with(
        Arc::new(MemoryLedger::new()),
        Arc::new(Faulty::new(MemoryBlobs::new(), faults.clone())),
        Arc::new(MemoryKeys::new(Arc::clone(&ids))),
        ids,
    )
    .await;
    (app, faults)
}

/// Cancels an update of a new stack, with a reason, on a server that dies when the log is sealed and nothing is published.
/// Returns the path of the cancel too.
async fn cancelled_by_the_dead<'a>(app: &'a TestApp, faults: &Faults) -> (Stack<'a>, String) {
    let stack = Stack::new(app).await;
    let run = stack.begin().await;
    run.append(&[stack.made(1, "a")]).await.expect(204);
    faults.fail_at(1, Fault::DeathBefore);
    let path = format!("{}/update/{}/cancel", stack.path, run.id);
    let body = json!({ "reason": "the runner is gone" });
    tokio::select! {
        answer = app.post(&path, &body).send() => panic!("the process lives: {}", answer.status),
        () = faults.death() => {}
    }
    app.advance(PUBLISHER_HEAD_START + Duration::from_secs(1));
    (stack, path)
}

#[tokio::test]
async fn the_reason_of_a_cancel_outlives_its_process() {
    let (app, faults) = mortal().await;
    let (stack, _) = cancelled_by_the_dead(&app, &faults).await;
    let other = app.another_process("other").await;
    assert_eq!(stack.at(&other).resources().await, ["a"]);
    let cancelled = "alice update.cancel web/dev: begun by alice (first-start); the runner is gone";
    let all: Vec<String> =
        events(&app, "").await.into_iter().map(|line| line.replace(&stack.project, "web")).collect();
    assert!(all.iter().any(|line| line == cancelled), "{all:?}");
}

/// The same user cancels once more, with another token, and that request publishes.
#[tokio::test]
async fn a_cancel_is_of_the_token_that_came_first() {
    let (app, faults) = mortal().await;
    let admin = app.scoped_token(Role::Admin).await;
    let (_, cancel) = cancelled_by_the_dead(&app, &faults).await;
    let other = app.another_process("other").await;
    let body = json!({ "reason": "another one" });
    other.post(&cancel, &body).token(&admin).send().await.expect(204);
    let page = app.get(&format!("/api/orgs/{ORG}/auditlogs/v2")).send().await.expect(200);
    let all = page["auditLogEvents"].as_array().unwrap();
    let all: Vec<_> = all.iter().filter(|event| event["event"] == "update.cancel").collect();
    let first = all.iter().find(|event| summary(event).ends_with("; the runner is gone")).unwrap();
    assert_eq!((&first["tokenName"], &first["sourceIP"]), (&json!("first-start"), &json!("")), "{all:?}");
}

#[tokio::test]
async fn the_trail_of_a_stack_and_of_a_state_covers_their_lives() {
    let app = TestApp::memory().await;
    let bob = app.member("bob", "laptop").await;
    let stack = Stack::new(&app).await;
    let project = stack.project.as_str();
    stack.preview().await.complete("succeeded").await.expect(204);
    let run = stack.begin().await;
    run.append(&[stack.made(1, "a")]).await.expect(204);
    run.renew(300).await.expect(200);
    stack.begin_call("update", false).token(&bob).send().await.refused(409);
    run.complete("succeeded").await.expect(204);
    let run = stack.begun(stack.begin_call("destroy", false).token(&bob)).await;
    run.cancel().await.expect(204);
    stack.get("/export").send().await.expect(200);
    stack.get("/export").send().await.expect(200);
    app.patch(&format!("{}/tags", stack.path), &json!({ "a": "b" })).send().await.expect(204);
    let path = format!("/tfstate/{ORG}/net");
    let lock = json!({ "ID": "run-1", "Operation": "OperationTypeApply" });
    app.post(&format!("{path}/lock"), &lock).send().await.expect(200);
    app.post(&format!("{path}?ID=run-1"), &text(1, &["a"])).send().await.expect(200);
    app.get(&path).send().await.expect(200);
    app.request(reqwest::Method::DELETE, &format!("{path}/lock")).json(&lock).send().await.expect(200);

    let all = events(&app, "").await;
    let all: Vec<String> = all.into_iter().map(|line| line.replace(project, "web")).collect();
    assert_eq!(
        all,
        [
            "alice stack.create web/dev",
            "alice update.begin web/dev: update, dry run",
            "alice update.end web/dev: succeeded",
            "alice update.begin web/dev: update",
            "bob update.begin web/dev: update (refused)",
            "alice update.end web/dev: succeeded",
            "bob update.begin web/dev: destroy",
            "alice update.cancel web/dev: begun by bob (laptop)",
            "alice stack.export web/dev",
            "alice stack.tag web/dev",
            "alice state.create net/default",
            "alice state.lock net/default: lock run-1",
            "alice state.write net/default: version 1",
            "alice state.read net/default",
            "alice state.unlock net/default: lock run-1",
        ]
    );
    let of = async |query: &str| events(&app, query).await.len();
    assert_eq!(of("userFilter=bob").await, 2);
    assert_eq!(of("eventFilter=update.begin").await, 4);
    assert_eq!(of(&format!("stack={project}/dev")).await, 10);
    assert_eq!(of("state=net/default").await, 5);
    assert_eq!(of("state=net/other").await, 0);
    // The second export, and the looks at the trail itself, wait until their minute is over.
    app.advance(Duration::from_secs(60));
    audit::flush(&app.context, false).await.unwrap();
    assert_eq!(of("eventFilter=stack.export").await, 2);
}

#[tokio::test]
async fn a_period_ends_where_its_parameter_says() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    app.advance(Duration::from_secs(100));
    stack.preview().await;
    app.advance(Duration::from_secs(100));
    app.patch(&format!("{}/tags", stack.path), &json!({ "a": "b" })).send().await.expect(204);
    let actions = async |path: &str| {
        let page = app.get(&format!("/api/orgs/{ORG}/auditlogs{path}")).send().await.expect(200);
        let events = page["auditLogEvents"].as_array().unwrap();
        events.iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let at = START.seconds() + 100;
    let [create, begin, tag] = ["stack.create", "update.begin", "stack.tag"];
    assert_eq!(actions(&format!("/v2?startTime={at}&eventFilter=")).await, [tag, begin]);
    assert_eq!(actions(&format!("/v2?endTime={at}")).await, [begin, create]);
    assert_eq!(actions(&format!("/v2?startTime={at}&endTime={at}")).await, [begin]);
    // The first version of the path has an upper bound only, under the name of the lower one.
    assert_eq!(actions(&format!("?startTime={at}")).await, [begin, create]);
    assert_eq!(actions("/v2?order=oldest&eventFilter=").await[..3], [create, begin, tag]);
    assert_eq!(actions(&format!("/v2?order=oldest&startTime={at}&endTime={at}")).await, [begin]);
    app.get(&format!("/api/orgs/{ORG}/auditlogs/v2?order=random")).send().await.refused(400);
    let page =
        app.get(&format!("/api/orgs/{ORG}/auditlogs/v2?whole=true&endTime={at}")).send().await.expect(200);
    let record: AuditRecord = serde_json::from_value(page["auditLogEvents"][1]["record"].clone()).unwrap();
    assert_eq!((record.at.seconds(), record.action.as_str()), (START.seconds(), create));
    app.get(&format!("/api/orgs/{ORG}/auditlogs/v2?startTime=monday")).send().await.refused(400);
    app.get(&format!("/api/orgs/{ORG}/auditlogs/v2?stack=dev")).send().await.refused(400);
    app.get(&format!("/api/orgs/{ORG}/auditlogs/v2/export?format=xml")).send().await.refused(400);
}

#[tokio::test]
async fn a_member_does_not_read_the_trail_and_an_admin_does() {
    let app = TestApp::memory().await;
    let member = app.member("bob", "laptop").await;
    let stranger = app.other_user("mallory", "evil").await;
    for path in ["", "/v2", "/export", "/v2/export", "/event-types"] {
        let path = format!("/api/orgs/{ORG}/auditlogs{path}");
        let words = app.get(&path).token(&member).send().await.refused(403);
        // The role alone would take what the member has.
        assert!(words.contains(&format!("statewright org grant add {ORG} user:bob '*' auditor")), "{words}");
        app.get(&path).token(&stranger).send().await.refused(404);
        app.get(&path).anonymous().send().await.refused(401);
        app.get(&path).send().await;
    }
    let types = app.get(&format!("/api/orgs/{ORG}/auditlogs/event-types")).send().await.expect(200);
    let of_type = |event: &str| {
        let all = types["eventTypes"].as_array().unwrap();
        let found = all.iter().find(|of_type| of_type["event"] == event).unwrap();
        ["requiresOrgAdmin", "requiresStackAdmin", "authenticationFailure"].map(|what| found[what] == true)
    };
    assert_eq!(of_type("member.add"), [true, false, false]);
    assert_eq!(of_type("stack.delete"), [false, true, false]);
    assert_eq!(of_type("access"), [false, false, true]);
    // Every user creates tokens, and admins those of the organization.
    assert_eq!(of_type("token.create"), [false, false, false]);
    let refused = events(&app, "eventFilter=audit.read").await;
    assert!(refused.iter().any(|line| line == "bob audit.read (refused)"), "{refused:?}");
    assert!(!refused.iter().any(|line| line.contains("mallory")), "{refused:?}");
    // A request about an organization of others is in the log alone.
    let query = AuditRecord::of_trail(None).query(None, Order::Ascending, 100);
    let items = app.context.ledger.query(&query).await.unwrap().items;
    let of_server: Vec<_> = items.iter().map(|item| AuditRecord::decode(&item.value).unwrap()).collect();
    let mallory = Login::parse("mallory").unwrap();
    assert!(of_server.iter().all(|record| record.user.as_ref() != Some(&mallory)), "{of_server:?}");
    let logged = app.take_audit();
    assert!(logged.iter().any(|record| record["user"] == "mallory" && record["organization"] == ORG));
}

async fn status_of_trail(app: &TestApp, token: &str) -> u16 {
    let path = format!("/api/orgs/{ORG}/auditlogs/v2");
    app.get(&path).token(token).send().await.status.as_u16()
}

#[tokio::test]
async fn an_auditor_reads_the_trail_and_no_value() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let auditor = app.member_with_role(Role::Auditor, "otto", "laptop").await;
    for path in ["", "/v2", "/export", "/v2/export", "/event-types"] {
        let path = format!("/api/orgs/{ORG}/auditlogs{path}");
        assert_eq!(app.get(&path).token(&auditor).send().await.status, 200, "{path}");
    }
    stack.get("").token(&auditor).send().await.expect(200);
    for path in ["/export", "/outputs"] {
        stack.get(path).token(&auditor).send().await.refused(403);
    }
    app.get(&format!("/api/orgs/{ORG}/access")).token(&auditor).send().await.refused(403);
    let own = app.get(&format!("/api/orgs/{ORG}/rights")).token(&auditor).send().await.expect(200);
    assert_eq!((&own["role"], &own["rights"]), (&json!("auditor"), &json!(["see", "view", "audit"])));
}

#[tokio::test]
async fn a_member_audits_by_a_grant_and_a_machine_by_its_role() {
    let app = TestApp::memory().await;
    let member = app.member("bob", "laptop").await;
    assert_eq!(status_of_trail(&app, &member).await, 403);
    let grants = format!("/api/orgs/{ORG}/grants");
    let grant = json!({ "to": "user:bob", "on": "*", "role": "auditor" });
    // A member holds no right to the trail, and gives none.
    app.post(&grants, &grant).token(&member).send().await.refused(403);
    app.post(&grants, &grant).send().await.expect(200);
    assert_eq!(status_of_trail(&app, &member).await, 200);
    let stack = Stack::new(&app).await;
    stack.begin_call("update", false).token(&member).send().await.expect(200);

    let new = json!({ "name": "to-the-archive", "description": "", "roleID": "auditor" });
    let made = app.post(&format!("/api/orgs/{ORG}/tokens"), &new).send().await.expect(200);
    let machine = made["tokenValue"].as_str().unwrap();
    assert_eq!(status_of_trail(&app, machine).await, 200);
    stack.get("/export").token(machine).send().await.refused(403);
    // Of an admin's tokens, those of the role carry the right.
    assert_eq!(status_of_trail(&app, &app.scoped_token(Role::Auditor).await).await, 200);
    assert_eq!(status_of_trail(&app, &app.scoped_token(Role::Member).await).await, 403);
}

#[tokio::test]
async fn refusals_of_a_minute_are_two_records() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    let _run = stack.begin().await;
    for _ in 0..5 {
        stack.begin_call("update", false).send().await.refused(409);
    }
    let refused = async || {
        let all = events(&app, "eventFilter=update.begin").await;
        let of = all.into_iter().filter(|line| line.contains("refused"));
        of.map(|line| line.replace(&stack.project, "web")).collect::<Vec<_>>()
    };
    let first = "alice update.begin web/dev: update (refused)";
    assert_eq!(refused().await, [first]);
    app.advance(Duration::from_secs(60));
    audit::flush(&app.context, false).await.unwrap();
    assert_eq!(
        refused().await,
        [first, "alice update.begin web/dev: update (refused) (4 times within a minute)"]
    );
}

fn text_of(answer: &Answer) -> String {
    assert_eq!(answer.status.as_u16(), 200, "{}", answer.text());
    answer.text()
}

#[tokio::test]
async fn a_trail_is_exported_page_by_page() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    for number in 0..150 {
        let tags = json!({ "a": number.to_string() });
        app.patch(&format!("{}/tags", stack.path), &tags).send().await.expect(204);
    }
    let path = format!("/api/orgs/{ORG}/auditlogs/v2/export");
    let csv = text_of(&app.get(&format!("{path}?format=csv")).send().await);
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 1 + 151, "{csv}");
    assert!(lines[0].starts_with("Timestamp,Name,Login,Event,Description,SourceIP,"), "{}", lines[0]);
    assert!(lines[1].contains(",alice,alice,stack.tag,"), "{}", lines[1]);
    assert!(lines[151].contains(",stack.create,"), "the newest is first: {}", lines[151]);
    let cef = text_of(&app.get(&format!("{path}?format=cef&eventFilter=stack.create")).send().await);
    let [line] = cef.lines().collect::<Vec<_>>()[..] else { panic!("not one line: {cef}") };
    assert!(line.contains(" CEF:0|Statewright|Statewright|1.0|stack.create|"), "{line}");
    assert!(line.contains(" suser=alice ") && line.contains(&format!(" orgID={ORG} ")), "{line}");
}

#[tokio::test]
async fn check_finds_what_was_changed_or_removed() {
    finds_what_was_changed_or_removed(World::new().await).await;
}

#[tokio::test]
async fn check_finds_what_was_changed_or_removed_on_aws() {
    finds_what_was_changed_or_removed(Box::pin(World::on_aws()).await).await;
}

async fn finds_what_was_changed_or_removed(world: World) {
    let stack = Stack::new(&world.app).await;
    for _ in 0..3 {
        stack.publish(&["a"]).await;
    }
    for _ in 0..3 {
        world.app.patch(&format!("{}/tags", stack.path), &json!({ "a": "b" })).send().await.expect(204);
    }
    assert_eq!(world.problems().await, [""; 0]);
    let items = world.items().await;
    let (of_stack, of_writer): (Vec<&Item>, Vec<&Item>) =
        items.iter().partition(|item| AuditRecord::decode(&item.value).unwrap().action != "stack.tag");
    let name = format!("the stack {ORG}/{}/dev", stack.project);

    // The last record of the head's chain cannot be removed either.
    for (item, number) in of_stack.iter().zip(1..) {
        world.remove(item).await;
        let problems = world.problems().await;
        let is_last = number == of_stack.len();
        let words = if is_last { "is missing: it is the last" } else { "are missing" };
        assert!(
            problems.iter().any(|words_| words_.contains(&name) && words_.contains(words)),
            "{problems:?}"
        );
        world.restore(item).await;

        let mut record = AuditRecord::decode(&item.value).unwrap();
        record.user = None;
        world.write(item, &record).await;
        let problems = world.problems().await;
        let changed = format!("audit record {number} of {name} was changed");
        assert!(problems.contains(&changed), "{problems:?}");
        world.restore(item).await;
    }
    world.remove(of_writer[1]).await;
    let problems = world.problems().await;
    assert!(problems.len() == 1 && problems[0].contains("are missing"), "{problems:?}");
    world.restore(of_writer[1]).await;
    assert_eq!(world.problems().await, [""; 0]);

    // The newest record of a writer is anchored by the root of its day.
    // Two days, and some hours: a day may be without its root for a while.
    world.app.advance(DAY * 2 + Duration::from_secs(2 * 3600));
    world.app.sweep().await;
    assert_eq!(world.problems().await, [""; 0]);
    world.remove(of_writer[2]).await;
    let problems = world.problems().await;
    assert!(problems.len() == 1 && problems[0].contains("differ from its signed root"), "{problems:?}");
    world.restore(of_writer[2]).await;

    // A root that somebody else signed, and one that is gone: a later day is signed.
    stack.publish(&["b"]).await;
    world.app.advance(DAY * 2);
    world.app.sweep().await;
    assert_eq!(world.problems().await, [""; 0]);
    let org = OrgName::parse(ORG).unwrap();
    let key = AuditRoot::key(Some(&org), AuditDay::of(START));
    let root = world.ledger.get(&key).await.unwrap().unwrap();
    world.ledger.commit(vec![delete(key, Expect::Any)]).await.unwrap();
    let problems = world.problems().await;
    assert!(problems.len() == 2 && problems[0].contains("it is not signed"), "{problems:?}");
    let mut forged = AuditRoot::decode(&root.value).unwrap();
    let blob = BlobKey::parse(&forged.blob).unwrap();
    let day = AuditDay::of(START);
    assert!(blob.as_str().starts_with(&format!("audit/org/{ORG}/{day}-")), "{blob}");
    let genuine = world.blobs.get(&blob).await.unwrap().unwrap().into_bytes().await.unwrap();
    // The copy outside the table is changed, and then gone.
    let again =
        put_bytes(root.key.clone(), Expect::Any, world.app.context.ids.revision(), root.value.clone());
    world.ledger.commit(vec![again]).await.unwrap();
    assert_eq!(world.problems().await, [""; 0]);
    let of_day = format!("the audit trail of {ORG} on {day}: ");
    let finds = async |words: &str| {
        let problems = world.problems().await;
        let is_it = |problem: &String| problem.starts_with(&of_day) && problem.contains(words);
        assert!(problems.iter().any(is_it), "{words}: {problems:?}");
    };
    world.blobs.put(&blob, [&genuine[..], b" "].concat().into()).await.unwrap();
    finds("does not match its hash").await;
    world.blobs.delete(&blob).await.unwrap();
    finds("is missing").await;
    world.blobs.put(&blob, genuine.clone()).await.unwrap();
    assert_eq!(world.problems().await, [""; 0]);
    let genuine = String::from_utf8(genuine.to_vec()).unwrap();
    let other = genuine.replace("\\\"records\\\":", "\\\"records\\\":1");
    assert_ne!(other, genuine);
    let blob = BlobKey::parse("audit/org/acme/forged").unwrap();
    world.blobs.put(&blob, other.clone().into()).await.unwrap();
    forged.blob = blob.to_string();
    forged.sha256 = sha256(other.as_bytes());
    let write = put_bytes(root.key.clone(), Expect::Any, world.app.context.ids.revision(), forged.encode());
    world.ledger.commit(vec![write]).await.unwrap();
    let problems = world.problems().await;
    assert!(problems.len() == 2 && problems[0].contains("no valid signature"), "{problems:?}");
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn a_day_is_signed_kept_for_400_days_and_erased() {
    let world = World::new().await;
    let app = &world.app;
    let org = OrgName::parse(ORG).unwrap();
    let stack = Stack::new(app).await;
    stack.publish(&["a"]).await;
    let first = world.items().await.len();
    app.sweep().await;
    let root = AuditRoot::key(Some(&org), AuditDay::of(START));
    assert!(world.ledger.get(&root).await.unwrap().is_none(), "the day is not over");

    app.advance(DAY + Duration::from_secs(3600 + 60));
    app.sweep().await;
    let stored = world.ledger.get(&root).await.unwrap().expect("the day is signed");
    let blob = AuditRoot::decode(&stored.value).unwrap().blob;
    let key = BlobKey::parse(&blob).unwrap();
    let text = world.blobs.get(&key).await.unwrap().unwrap().into_bytes().await.unwrap();
    let text: Value = serde_json::from_slice(&text).unwrap();
    let statement: Value = serde_json::from_str(text["statement"].as_str().unwrap()).unwrap();
    assert_eq!((&statement["organization"], &statement["records"]), (&json!(ORG), &json!(first)));
    stack.publish(&["b"]).await;
    app.advance(DAY);
    app.sweep().await;
    assert_eq!(world.problems().await, [""; 0]);

    app.advance(DAY * 398);
    app.sweep().await;
    assert_eq!(world.items().await.len() - first, 1, "400 days are not over");
    app.advance(DAY);
    app.sweep().await;
    assert_eq!(world.items().await.len(), 1, "the first day is gone, the second is not");
    assert!(world.ledger.get(&root).await.unwrap().is_none());
    let erased = world.ledger.get(&AuditErased::key(Some(&org))).await.unwrap().unwrap();
    assert_eq!(AuditErased::decode(&erased.value).unwrap().until, AuditDay::of(START));
    // The chain of the stack begins in the erased day.
    assert_eq!(world.problems().await, [""; 0]);
    // Without the mark of the sweep, the same is a deletion by somebody else.
    world.ledger.commit(vec![delete(erased.key.clone(), Expect::Any)]).await.unwrap();
    let problems = world.problems().await;
    assert!(problems.iter().any(|words| words.contains("are missing")), "{problems:?}");
    // A mark for a later day is not signed.
    let mut forged = AuditErased::decode(&erased.value).unwrap();
    forged.until = AuditDay::of(START.plus(DAY));
    let write = put_bytes(erased.key, Expect::Any, app.context.ids.revision(), forged.encode());
    world.ledger.commit(vec![write]).await.unwrap();
    let problems = world.problems().await;
    assert!(problems.iter().any(|words| words.contains("no valid signature")), "{problems:?}");
    // The copy outlives the day, as every blob outlives its last item.
    assert!(world.blobs.get(&key).await.unwrap().is_some());
    app.advance(DAY * 37);
    app.sweep().await;
    assert!(world.blobs.get(&key).await.unwrap().is_none());
}

/// As other parts of the server record what they do.
#[tokio::test]
async fn an_event_without_a_commit_of_its_own_is_kept() {
    let app = TestApp::memory().await;
    let org = OrgName::parse(ORG).unwrap();
    let entry = audit::entry(&app.context, "command", &About::Org(&org)).saying("by hand");
    audit::keep(&app.context, entry).await.unwrap();
    assert_eq!(events(&app, "eventFilter=command").await, [" command by hand"]);
}

#[tokio::test]
async fn two_processes_write_chains_of_their_own() {
    let world = World::new().await;
    let other = world.app.another_process("other").await;
    let stack = Stack::new(&world.app).await;
    let there = stack.at(&other);
    for round in 0..4 {
        let tags = json!({ "round": round.to_string() });
        world.app.patch(&format!("{}/tags", stack.path), &tags).send().await.expect(204);
        other.patch(&format!("{}/tags", stack.path), &tags).send().await.expect(204);
        there.publish(&["a"]).await;
        stack.publish(&["b"]).await;
    }
    assert_eq!(world.problems().await, [""; 0]);
    let chains: std::collections::BTreeSet<String> =
        world.items().await.iter().map(|item| AuditRecord::decode(&item.value).unwrap().link.chain).collect();
    assert_eq!(chains.len(), 3, "one of the stack, and one of each process: {chains:?}");
    assert_eq!(world.items().await.len(), 1 + 8 + 8, "one of the stack, and one of each tag and import");
}

/// A chain of a process goes through the trails of several organizations.
#[tokio::test]
async fn check_verifies_records_that_several_trails_have() {
    let world = World::new().await;
    let app = &world.app;
    let bob = app.member_of(&[ORG, "beta"], "bob", "laptop").await;
    for name in ["one", "two", "three"] {
        let new = json!({ "name": name, "expires": 0 });
        app.post("/api/user/tokens", &new).token(&bob).send().await.expect(200);
    }
    let items = world.items().await;
    assert_eq!(items.len(), 3);
    assert_eq!(world.problems().await, [""; 0]);
    world.remove(&items[1]).await;
    let problems = world.problems().await;
    assert!(problems.len() == 1 && problems[0].contains("missing"), "{problems:?}");
    world.restore(&items[1]).await;
    app.advance(DAY * 2 + Duration::from_secs(2 * 3600));
    app.sweep().await;
    assert_eq!(world.problems().await, [""; 0]);
}

/// The store has the record before the client has the answer: no secret is shown without one.
#[tokio::test]
async fn a_member_who_only_sees_outputs_leaves_records() {
    let app = TestApp::memory().await;
    let stack = Stack::new(&app).await;
    stack.publish(&["a"]).await;
    let reader = app.member_with_role(Role::Outputs, "carol", "ci").await;
    stack.get("/outputs").token(&reader).send().await.expect(200);
    stack.get("/export").token(&reader).send().await.refused(403);
    let of_carol: Vec<String> = events(&app, "userFilter=carol")
        .await
        .iter()
        .map(|line| line.replace(&stack.project, "web"))
        .collect();
    assert_eq!(of_carol, ["carol stack.outputs web/dev", "carol stack.export web/dev (refused)"]);
}
